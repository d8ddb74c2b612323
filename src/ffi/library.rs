//! What belongs to the library as a whole: version, names of statuses, messages, log.

use std::ffi::{CString, c_char, c_void};

use crate::error::{Error, WFMM_ERR_COUNT};
use crate::error::{Status, WFMM_ERR_VALUE};
use crate::logging;
use crate::options::{LogLevel, code};

use super::boundary::{api, last_error, not_null, output, set_last_error};
use super::{text, wfmm_log_fn, wfmm_status};

/// Version of the binary interface; grows when a caller must be compiled again.
pub const WFMM_ABI_VERSION: u32 = 1;

/// Version of the binary interface of the loaded library; compare with `WFMM_ABI_VERSION` of the header.
/// Thread rule: any thread. Example: `if (wfmm_abi_version() != WFMM_ABI_VERSION) return 1;`
#[unsafe(no_mangle)]
pub extern "C" fn wfmm_abi_version() -> u32 {
    WFMM_ABI_VERSION
}

/// Name of a status, `"WFMM_ERR_NULL"` for example; never NULL, the library's own, do not free.
/// Thread rule: any thread. Example: `puts(wfmm_status_name(status));`
#[unsafe(no_mangle)]
pub extern "C" fn wfmm_status_name(status: wfmm_status) -> *const c_char {
    status_name(status).as_ptr()
}

/// With a closing NUL each, because C reads them.
fn status_name(status: wfmm_status) -> &'static std::ffi::CStr {
    use once_cell::sync::Lazy;
    static NAMES: Lazy<Vec<(i32, CString)>> = Lazy::new(|| {
        let name = |&(status, name): &(Status, &str)| (status as i32, CString::new(name).expect("no NUL in a name"));
        Status::ALL.iter().map(name).collect()
    });
    NAMES.iter().find(|(s, _)| *s == status).map_or(c"unknown status", |(_, name)| name.as_c_str())
}

api! {
    /// Version of the library.
    /// Each output may be NULL. Thread rule: any thread. Errors: none.
    /// Example: `int32_t major, minor, patch; wfmm_version(&major, &minor, &patch);`
    fn wfmm_version(#[optional] major: *mut i32, #[optional] minor: *mut i32, #[optional] patch: *mut i32) {
        let parts = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
        for ((name, out), part) in [("major", major), ("minor", minor), ("patch", patch)].into_iter().zip(parts) {
            if !out.is_null() {
                *unsafe { output(name, out) }? = part.parse().unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Copies the calling thread's last message: which argument, its value, and what would be accepted.
    /// `buf` gets at most `capacity` bytes with the closing NUL (NULL where `capacity` is 0); `out_length`, which may be
    /// NULL, gets the full length without the NUL. A success does not erase the message.
    /// Thread rule: any thread, each has its own message. Errors: WFMM_ERR_NULL.
    /// Example: `char m[512]; wfmm_last_error(m, sizeof m, NULL); fputs(m, stderr);`
    fn wfmm_last_error(buf: *mut c_char, capacity: usize, #[optional] out_length: *mut usize) {
        unsafe { text::put(buf, capacity, out_length, &last_error()) }
    }

    /// Sets the calling thread's last message, cut after 2048 bytes. For bindings of other languages, which check the shapes of
    /// arrays themselves. `message` holds `length` bytes.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_COUNT.
    /// Example: `wfmm_last_error_set("velocity is too short", 21);`
    fn wfmm_last_error_set(message: *const c_char, length: usize) {
        not_null("message", message)?;
        if length > 65536 {
            return Error::fail(WFMM_ERR_COUNT, format!("length = {length}; accepted: 0 to 65536"));
        }
        // Not NULL; the caller vouches for `length` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(message.cast::<u8>(), length) };
        set_last_error(&String::from_utf8_lossy(bytes));
        Ok(())
    }

    /// Sets how much is logged (`WFMM_LOG_*`) and where: to a callback, or to standard error without one.
    /// `callback` may be NULL; `user` is handed back to it. When the call returns, an earlier callback is called no more.
    /// At the start the level is that of the environment variable WAKEFMM_LOG (off, error, warn, info, debug), else off.
    /// Thread rule: any thread, but not from inside a callback. Errors: WFMM_ERR_CONSTANT.
    /// Example: `wfmm_log_set(WFMM_LOG_INFO, NULL, NULL);`
    fn wfmm_log_set(level: i32, #[optional] callback: wfmm_log_fn, #[optional] user: *mut c_void) {
        let level = code("level", level, LogLevel::from_code(level), "WFMM_LOG_OFF (0) to WFMM_LOG_DEBUG (4)")?;
        let sink = callback.map(|callback| {
            let user = user as usize;
            let sink: logging::Sink = Box::new(move |level, message| {
                let line = CString::new(message.replace('\0', " ")).unwrap_or_default();
                // The caller vouches for callback and user until the next wfmm_log_set.
                unsafe { callback(level, line.as_ptr(), user as *mut c_void) }
            });
            sink
        });
        if logging::set(level, sink) {
            return Ok(());
        }
        Error::fail(WFMM_ERR_VALUE, "another logger is installed in this Rust program; set the level there")
    }
}
