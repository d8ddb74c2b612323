//! One device, opened: its primary context, shared with the host's own CUDA code, and the kernels loaded into it.
//!
//! Enters: a device number. Leaves: a `Context`; `enter` makes it current until the guard goes, then the caller's is back.

use super::driver::{self, DeviceInfo, check, from_cust};
use super::locked::Store;
use crate::error::{Error, Result};
use cust::sys;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// A device's primary context. Plans of one session share it; it is released with the last.
#[derive(Debug)]
pub struct Context {
    raw: sys::CUcontext,
    device: sys::CUdevice,
    pub info: DeviceInfo,
    /// Kernels by unit and name; modules stay loaded as long as the context.
    functions: Mutex<Kernels>,
    /// After a sticky error nothing works until the context is made anew.
    lost: AtomicBool,
    /// Page-locked memory between two uses.
    pub(super) locked: Mutex<Store>,
}

#[derive(Debug, Default)]
struct Kernels {
    modules: HashMap<&'static str, sys::CUmodule>,
    functions: HashMap<(&'static str, String), Function>,
    /// Dynamic shared memory that each function may have, by its handle.
    shared: HashMap<usize, usize>,
}

/// A kernel, valid as long as its context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Function {
    pub(super) raw: sys::CUfunction,
}

// SAFETY: driver handles may be used from any thread; the maps are behind a lock.
unsafe impl Send for Context {}
unsafe impl Sync for Context {}
unsafe impl Send for Function {}
unsafe impl Sync for Function {}
unsafe impl Send for Kernels {}

/// While this lives, its context is current on this thread.
pub struct Current<'a> {
    /// Contexts are current on a thread: the guard must not leave it.
    thread: PhantomData<(*const (), &'a Context)>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: pops what `enter` pushed on this thread.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&mut popped) };
    }
}

impl Context {
    /// Opens a device of a probe.
    pub fn open(info: &DeviceInfo) -> Result<Arc<Self>> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle; an ordinal of the probe is a device handle.
        unsafe { check(sys::cuDevicePrimaryCtxRetain(&mut raw, info.ordinal), "cuDevicePrimaryCtxRetain")? };
        let context = Self {
            raw,
            device: info.ordinal,
            info: info.clone(),
            functions: Mutex::default(),
            lost: AtomicBool::new(false),
            locked: Mutex::default(),
        };
        // A primary context that another part of the process has broken is seen here and not in the first evaluation.
        context.enter()?;
        Ok(Arc::new(context))
    }

    /// Makes this context current until the guard is dropped.
    pub fn enter(&self) -> Result<Current<'_>> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(Error::new(
                driver::DEVICE_LOST,
                "an earlier error on this GPU left it unusable for this process, which must be started again to use it",
            ));
        }
        // SAFETY: the context is retained as long as `self`.
        unsafe { check(sys::cuCtxPushCurrent_v2(self.raw), "cuCtxPushCurrent")? };
        Ok(Current { thread: PhantomData })
    }

    /// Passes a result on and notes when it says that the device is lost.
    pub(super) fn note_loss<T>(&self, result: Result<T>) -> Result<T> {
        if matches!(&result, Err(error) if error.status == driver::DEVICE_LOST) {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }

    /// A kernel by its unit (`kernels/UNIT.cu`) and name.
    pub fn function(&self, unit: &'static str, name: &str) -> Result<Function> {
        let mut kernels = self.functions.lock();
        if let Some(function) = kernels.functions.get(&(unit, name.to_owned())) {
            return Ok(*function);
        }
        let _current = self.enter()?;
        let module = match kernels.modules.get(unit) {
            Some(module) => *module,
            None => {
                let module = self.load(unit)?;
                kernels.modules.insert(unit, module);
                module
            }
        };
        let c_name = CString::new(name).map_err(|_| Error::new(driver::INTERNAL, format!("kernel name '{name}'")))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: module and name are live, the pointer is to a live handle.
        unsafe {
            check(sys::cuModuleGetFunction(&mut raw, module, c_name.as_ptr()), &format!("kernel {unit}/{name}"))?
        };
        let function = Function { raw };
        kernels.functions.insert((unit, name.to_owned()), function);
        Ok(function)
    }

    fn load(&self, unit: &str) -> Result<sys::CUmodule> {
        let image = KERNELS.iter().find(|(name, _)| *name == unit).map(|(_, image)| *image);
        let image =
            image.ok_or_else(|| Error::new(driver::INTERNAL, format!("no kernel unit '{unit}' is embedded")))?;
        let mut module = std::ptr::null_mut();
        // SAFETY: a fat binary carries its own length; it was made by kernels/compile.sh.
        let status = unsafe { sys::cuModuleLoadData(&mut module, image.as_ptr().cast()) };
        check(status, "cuModuleLoadData").map_err(|error| {
            let (major, minor) = self.info.capability;
            let reason = format!(
                "the kernels do not load on {} (compute capability {major}.{minor}): {}",
                self.info.name, error.message
            );
            Error::new(error.status, reason)
        })?;
        Ok(module)
    }

    /// Lets a kernel use more than 48 KB of shared memory a block. Never less than before: plans share the kernels.
    pub fn allow_shared_memory(&self, function: Function, bytes: usize) -> Result<()> {
        let mut kernels = self.functions.lock();
        let most = kernels.shared.entry(function.raw as usize).or_default();
        if bytes <= *most {
            return Ok(());
        }
        let _current = self.enter()?;
        let which = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function belongs to this context.
        unsafe { check(sys::cuFuncSetAttribute(function.raw, which, bytes as i32), "cuFuncSetAttribute")? };
        *most = bytes;
        Ok(())
    }

    pub(super) fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// Asks the driver to let this device read the other's memory directly, which stays so; false where copies go through the host's.
    pub fn reach(&self, other: &Self) -> Result<bool> {
        const ALREADY: u32 = 704;
        if self.raw == other.raw {
            return Ok(true);
        }
        let _current = self.enter()?;
        let mut can = 0;
        // SAFETY: the pointer is to a live number; device handles are ordinals.
        unsafe { check(sys::cuDeviceCanAccessPeer(&mut can, self.device, other.device), "cuDeviceCanAccessPeer")? };
        // SAFETY: both contexts are retained.
        Ok(can != 0 && matches!(unsafe { sys::cuCtxEnablePeerAccess(other.raw, 0) } as u32, 0 | ALREADY))
    }

    /// Waits for everything that was started on this device through this context.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: no arguments.
        self.note_loss(unsafe { check(sys::cuCtxSynchronize(), "cuCtxSynchronize") })
    }

    /// Free and total bytes of device memory.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let _current = self.enter()?;
        cust::memory::mem_get_info().map_err(|error| from_cust(error, "cuMemGetInfo"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.unlock_all();
        if let Ok(_current) = self.enter() {
            for module in self.functions.lock().modules.values() {
                // SAFETY: nothing that used the module outlives its context.
                let _ = unsafe { sys::cuModuleUnload(*module) };
            }
        }
        // SAFETY: retained once in `open`.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
