//! Sessions: back end, device and threads.

use std::ffi::c_char;

use crate::error::Result;
use crate::options::{SessionOptions, wfmm_session_options};
use crate::session::Session;

use super::boundary::{api, enough_memory, not_null, output};
use super::handles::SESSIONS;
use super::{structs, text, wfmm_session};

/// The caller's options, checked.
///
/// # Safety
/// `options` is NULL or a struct of its size, whose `devices` are as many as it says.
pub unsafe fn session_options(options: *const wfmm_session_options) -> Result<SessionOptions> {
    let options = unsafe { structs::read("options", options) }?;
    let devices = match SessionOptions::count_devices(&options)? {
        0 => &[],
        n => {
            not_null("devices", options.devices)?;
            unsafe { std::slice::from_raw_parts(options.devices, n) }
        }
    };
    SessionOptions::checked(&options, devices)
}

api! {
    /// Fills `options` with the defaults. `size` is `sizeof *options`.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
    /// Example: `wfmm_session_options o; wfmm_session_options_init(&o, sizeof o); o.threads = 2;`
    fn wfmm_session_options_init(options: *mut wfmm_session_options, size: usize) {
        unsafe { structs::write("options", options, size, wfmm_session_options::default()) }
    }

    /// Makes a session. `options` may be NULL: defaults. The caller owns `*out` and ends it with `wfmm_session_destroy`;
    /// plans keep a destroyed session alive until they end.
    /// Thread rule: any thread; the session may be shared by all. After `fork()` the child must make its own.
    /// Errors: WFMM_ERR_NULL, _CONSTANT, _VALUE, _TOO_NEW, _STRUCT_SIZE; WFMM_ERR_THREADS, _HOST_MEMORY; for CUDA
    /// WFMM_ERR_DRIVER: no driver or too old, WFMM_ERR_NO_DEVICE: no usable GPU, or no such number, _DEVICE_MEMORY.
    /// Example: `wfmm_session *s = NULL; if (wfmm_session_create(NULL, &s)) return 1;`
    fn wfmm_session_create(#[optional] options: *const wfmm_session_options, out: *mut *mut wfmm_session) {
        let out = unsafe { output("out", out) }?;
        let options = unsafe { session_options(options) }?;
        enough_memory()?;
        *out = SESSIONS.insert(Session::new(&options)?);
        Ok(())
    }

    /// Describes in one line what the session computes on. Buffer rules as in `wfmm_last_error`.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_HANDLE.
    /// Example: `char line[256]; wfmm_session_describe(s, line, sizeof line, NULL);`
    fn wfmm_session_describe(
        session: *const wfmm_session, buf: *mut c_char, capacity: usize, #[optional] out_length: *mut usize,
    ) {
        let session = SESSIONS.get(session)?;
        unsafe { text::put(buf, capacity, out_length, &session.describe()) }
    }

    /// Ends a session; plans that use it go on. `*session` becomes NULL; a NULL session is fine.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL (no address), WFMM_ERR_HANDLE.
    /// Example: `wfmm_session_destroy(&s);`
    fn wfmm_session_destroy(session: *mut *mut wfmm_session) {
        not_null("session", session)?;
        let session = unsafe { output("session", session) }?;
        if !session.is_null() {
            drop(SESSIONS.remove(*session)?);
            *session = std::ptr::null_mut();
        }
        Ok(())
    }
}
