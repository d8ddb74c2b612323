//! The C boundary: checks every pointer and number, catches every panic. The header `include/wakefmm.h` and the Fortran
//! module `fortran/wakefmm.f90` are generated from these files (`tests/generated`).
//!
//! ```text
//!   library     version, messages, log          session     machines
//!   plan        create … destroy, queries       arrays      set_*, evaluate (f32 and f64 from one body)
//!   induce      one call, nothing kept              overlap     evaluations beside the host's own work
//!   flow        elements that move              flow_arrays their arrays        flow_cell   behind their handle
//!   picture     of a flow                   communicator  functions of the host that join processes
//!       │
//!   boundary    macros, guard, pointer checks   handles     live objects    structs   struct_size    text   strings
//!   elements    arrays of segments and of particles
//! ```

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

pub mod arrays;
mod boundary;
pub mod communicator;
pub mod ctypes;
mod elements;
mod float_mode;
pub mod flow;
pub mod flow_arrays;
mod flow_cell;
mod handles;
pub mod induce;
pub mod library;
pub mod overlap;
pub mod picture;
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

/// Adds the host's own velocity at `n` points of a flow: `position` and `velocity` are `[n][3]`; `velocity` holds what is there
/// already. Return 0 to go on; another number stops the step. `memory` says where both arrays are. On a session of
/// one process made with WFMM_BACKEND_CUDA it is WFMM_MEMORY_DEVICE, and `stream` is the `cudaStream_t` on which to
/// queue the work; there is no need to wait for it. On all other sessions (WFMM_BACKEND_AUTO, WFMM_BACKEND_CPU, all of
/// several processes) it is WFMM_MEMORY_HOST, and `stream` is NULL. `user` is that of
/// `wfmm_flow_set_velocity_callback`.
pub type wfmm_velocity_fn = Option<
    unsafe extern "C" fn(
        time: f64,
        n: i64,
        position: *const f64,
        velocity: *mut f64,
        memory: i32,
        stream: *mut c_void,
        user: *mut c_void,
    ) -> i32,
>;

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

/// Vortex elements, tracers and dust that move step by step. One thread at a time; a second caller gets `WFMM_ERR_BUSY`.
#[repr(C)]
pub struct wfmm_flow {
    _opaque: [u8; 0],
}
