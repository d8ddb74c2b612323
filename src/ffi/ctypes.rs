//! The closed list of types that exported functions may take: those that the header and the Fortran module can say.
//! Any other type stops the build.

use std::ffi::{c_char, c_void};

use super::communicator::wfmm_communicator;
use super::{wfmm_flow, wfmm_log_fn, wfmm_plan, wfmm_session, wfmm_velocity_fn};
use crate::flow::diagnostics::wfmm_diagnostics;
use crate::flow::options::wfmm_flow_options;
use crate::flow::picture::camera::wfmm_camera;
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
    f64,
    wfmm_log_fn,
    wfmm_velocity_fn,
    *mut c_void,
    *const u8,
    *mut u8,
    *mut c_char,
    *const c_char,
    *mut i32,
    *mut i64,
    *mut u64,
    *mut usize,
    *const i32,
    *const i64,
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
    *mut wfmm_flow,
    *const wfmm_flow,
    *mut *mut wfmm_flow,
    *mut wfmm_flow_options,
    *const wfmm_flow_options,
    *mut wfmm_diagnostics,
    *mut wfmm_camera,
    *const wfmm_camera,
    *mut wfmm_communicator,
    *const wfmm_communicator,
);

/// Compiles only for types of the list.
pub const fn allowed<T: CType>() {}
