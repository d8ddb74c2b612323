//! The C boundary: checks every pointer and number, catches every panic. The header `include/wakefmm.h` and the Fortran
//! module `fortran/wakefmm.f90` are generated from these files (`tests/generated`).
//!
//! ```text
//!   library     version, messages, log          session     machines
//!   plan        create … destroy, queries       arrays      set_*, evaluate (f32 and f64 from one body)
//!   induce      one call, nothing kept              overlap     evaluations beside the host's own work
//!       │
//!   boundary    macros, guard, pointer checks   handles     live objects    structs   struct_size    text   strings
//! ```

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

pub mod arrays;
mod boundary;
pub mod ctypes;
mod float_mode;
mod handles;
pub mod induce;
pub mod library;
pub mod overlap;
pub mod plan;
pub mod session;
mod structs;
mod text;

/// Result of a call: 0 ok; 1..99 the caller's error, nothing changed; 100..199 a resource is missing, may be retried;
/// negative: the object is unusable, only `destroy` is allowed. See `WFMM_ERR_*`.
pub type wfmm_status = i32;

/// Receives log lines: a `WFMM_LOG_*` level, a NUL-terminated message that is valid during the call, and `user`.
/// May be called from any thread; must not call `wfmm_log_set`.
pub type wfmm_log_fn = Option<unsafe extern "C" fn(level: i32, message: *const c_char, user: *mut c_void)>;

/// Back end, device and threads. Any thread may use it.
#[repr(C)]
pub struct wfmm_session {
    _opaque: [u8; 0],
}

/// Sources, targets, tree and results of one sum. One thread at a time; a second caller gets `WFMM_ERR_BUSY`.
#[repr(C)]
pub struct wfmm_plan {
    _opaque: [u8; 0],
}
