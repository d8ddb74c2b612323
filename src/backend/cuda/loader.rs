//! Finds the NVIDIA driver at run time.
//!
//! Enters: nothing but the machine. Leaves: the trampolines of `symbols` pointing into `libcuda.so.1`, or a sentence
//! that says why not. It runs once; a library that was found stays loaded.

use super::symbols::{NAMES, slots};
use libc::{c_char, c_void};
use once_cell::sync::OnceCell;
use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering;

const LIBRARY: &CStr = c"libcuda.so.1";

/// The address of the loaded library's handle, or why there is none.
static DRIVER: OnceCell<Result<usize, String>> = OnceCell::new();

/// Loads the driver and aims the trampolines at it. Later calls return the first one's answer.
pub(super) fn load() -> Result<(), String> {
    handle().map(|_| ())
}

/// Address of a driver function that crate cust does not list (it knows CUDA 11.4), if this driver has it.
pub(super) fn symbol(name: &str) -> Option<*mut c_void> {
    let handle = handle().ok()?;
    let name = CString::new(name).ok()?;
    // SAFETY: the handle came from dlopen and is never closed; the name ends in NUL.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

fn handle() -> Result<*mut c_void, String> {
    DRIVER.get_or_init(open).clone().map(|handle| handle as *mut c_void)
}

fn open() -> Result<usize, String> {
    // SAFETY: both arguments are valid; the driver's initializers are what any CUDA program runs.
    let handle = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(format!("no NVIDIA driver: {}", dl_error()));
    }
    for (name, slot) in NAMES.iter().zip(slots()) {
        let name = CString::new(*name).expect("a function name has no NUL");
        // SAFETY: as in `symbol`. What an old driver lacks keeps answering CUDA_ERROR_NOT_INITIALIZED.
        let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if !address.is_null() {
            slot.store(address, Ordering::Release);
        }
    }
    Ok(handle as usize)
}

fn dl_error() -> String {
    // SAFETY: dlerror returns NULL or a string of this thread that lives until its next call.
    unsafe {
        let text: *const c_char = libc::dlerror();
        if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}
