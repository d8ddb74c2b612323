//! The closed list of types that exported functions may take: those that the header and the Fortran module can say.
//! Any other type stops the build.

use std::ffi::{c_char, c_void};

use super::{wfmm_log_fn, wfmm_plan, wfmm_session};
use crate::options::{wfmm_plan_options, wfmm_session_options};
use crate::report::wfmm_report;

/// A type with a known counterpart in C and Fortran.
pub trait CType {}

macro_rules! c_types { ($($t:ty),* $(,)?) => { $(impl CType for $t {})* }; }
c_types!(
    i32,
    i64,
    u32,
    u64,
    usize,
    wfmm_log_fn,
    *mut c_void,
    *mut c_char,
    *const c_char,
    *mut i32,
    *mut i64,
    *mut u64,
    *mut usize,
    *const i32,
    *const f32,
    *const f64,
    *mut f32,
    *mut f64,
    *mut wfmm_session,
    *const wfmm_session,
    *mut *mut wfmm_session,
    *mut wfmm_plan,
    *const wfmm_plan,
    *mut *mut wfmm_plan,
    *mut wfmm_session_options,
    *const wfmm_session_options,
    *mut wfmm_plan_options,
    *const wfmm_plan_options,
    *mut wfmm_report,
);

/// Compiles only for types of the list.
pub const fn allowed<T: CType>() {}
