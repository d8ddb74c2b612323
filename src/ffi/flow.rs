//! Flows: everything but their arrays of reals.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::backend::cuda::Plain;
use crate::error::{Error, Result, WFMM_ERR_FILE};
use crate::flow::diagnostics::wfmm_diagnostics;
use crate::flow::options::{ElementKind, FlowOptions, wfmm_flow_options};
use crate::flow::state::Gone;
use crate::flow::{At, Callback, Flow};
use crate::options::{PlanOptions, WFMM_MEMORY_DEVICE, WFMM_MEMORY_HOST, code, wfmm_plan_options};
use crate::plan::arrays::ArrayMut;
use crate::report::wfmm_report;
use crate::session::Session;

use super::boundary::{Arrays, api, count, enough_memory, not_null, output};
use super::flow_cell::{FLOWS, FlowCell, with_flow};
use super::handles::SESSIONS;
use super::{structs, wfmm_flow, wfmm_session, wfmm_velocity_fn};

/// A kind by its number.
pub fn kind_of(kind: i32) -> Result<ElementKind> {
    let accepted = "WFMM_KIND_PARTICLES, _FILAMENTS, _BOUND_SEGMENTS, _TRACERS or _DUST (0 to 4)";
    code("kind", kind, ElementKind::from_code(kind), accepted)
}

/// An output of `len` elements.
///
/// # Safety
/// As `Arrays::outputs`.
pub unsafe fn output_array<'a, T>(
    arrays: &Arrays<'_>,
    name: &str,
    pointer: *mut T,
    len: usize,
) -> Result<ArrayMut<'a, T>> {
    Ok(unsafe { arrays.outputs((name, pointer, len), (std::ptr::null_mut(), 0)) }?.0)
}

/// A kind, and an array that says which of its elements are meant, in host memory.
///
/// # Safety
/// As `Arrays::input`.
unsafe fn chosen<'a, T: Plain + Default>(
    session: &Session,
    kind: i32,
    memory: i32,
    (name, pointer, n): (&str, *const T, i64),
) -> Result<(ElementKind, Cow<'a, [T]>)> {
    let arrays = Arrays::new(session, memory)?;
    let (kind, n) = (kind_of(kind)?, count("n", n)?);
    if n == 0 {
        return Ok((kind, Cow::Borrowed(&[])));
    }
    Ok((kind, unsafe { arrays.input(name, pointer, n) }?.on_host(session, name)?))
}

/// A path of a call.
///
/// # Safety
/// `path` is NULL or ends with a NUL.
pub unsafe fn path_of(name: &str, path: *const c_char) -> Result<PathBuf> {
    not_null(name, path)?;
    // Not NULL; the caller vouches for its end.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    if bytes.is_empty() {
        return Error::fail(WFMM_ERR_FILE, format!("{name} is empty"));
    }
    Ok(OsStr::from_bytes(bytes).into())
}

/// The host's function as the flow calls it.
fn callback_of(function: wfmm_velocity_fn, user: *mut c_void) -> Option<Callback> {
    let function = function?;
    let user = user as usize;
    Some(Box::new(move |time, at| {
        let (n, x, u, memory, stream) = match at {
            At::Host { position, velocity } => {
                let n = position.len() as i64 / 3;
                (n, position.as_ptr(), velocity.as_mut_ptr(), WFMM_MEMORY_HOST, 0)
            }
            At::Device { n, position, velocity, stream } => {
                (n as i64, position as *const f64, velocity as *mut f64, WFMM_MEMORY_DEVICE, stream)
            }
        };
        // Both arrays hold 3 n numbers during the call; the caller vouches for its function and `user`.
        unsafe { function(time, n, x, u, memory, stream as *mut c_void, user as *mut c_void) }
    }))
}

api! {
    /// Fills `options` with the defaults. `size` is `sizeof *options`.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
    /// Example: `wfmm_flow_options o; wfmm_flow_options_init(&o, sizeof o); o.integrator = WFMM_INTEGRATOR_AB2;`
    fn wfmm_flow_options_init(options: *mut wfmm_flow_options, size: usize) {
        unsafe { structs::write("options", options, size, wfmm_flow_options::default()) }
    }

    /// Makes a flow without elements at time 0. `session` may be NULL: a default session; `plan_options` are those of its sums,
    /// `options` those of its motion; both may be NULL: defaults. The state is kept in double precision where the session computes
    /// (on distributed sessions in host memory); precision and device of the sums are those of options and session. The
    /// caller owns `*out` and ends it with `wfmm_flow_destroy`.
    /// Thread rule: any thread; the flow itself serves one thread at a time.
    /// Errors: WFMM_ERR_NULL, _HANDLE, _CONSTANT, _VALUE, _NOT_FINITE, _TOLERANCE, _TOO_NEW, _STRUCT_SIZE; WFMM_ERR_THREADS,
    /// _HOST_MEMORY, _UNSUPPORTED; WFMM_ERR_FORKED where the session was made before `fork()`.
    /// Example: `wfmm_flow *f = NULL; if (wfmm_flow_create(NULL, NULL, NULL, &f)) return 1;`
    fn wfmm_flow_create(
        #[optional] session: *mut wfmm_session, #[optional] plan_options: *const wfmm_plan_options,
        #[optional] options: *const wfmm_flow_options, out: *mut *mut wfmm_flow,
    ) {
        let take = || {
            let out = unsafe { output("out", out) }?;
            let sums = unsafe { structs::read("plan_options", plan_options) }?;
            let options = unsafe { structs::read("options", options) }?;
            FlowOptions::checked(&options, &PlanOptions::checked(&sums)?)?;
            enough_memory()?;
            Ok((out, sums, options))
        };
        if session.is_null() {
            // Before a session is made.
            let (out, sums, options) = take()?;
            *out = FLOWS.insert(FlowCell::new(Flow::new(Session::default_session()?, sums, options)?));
            return Ok(());
        }
        let session = SESSIONS.get(session)?;
        session.alive()?;
        let _turn = session.turn()?;
        let (out, sums, options) = session.together("wfmm_flow_create", take)?;
        *out = FLOWS.insert(FlowCell::new(Flow::new(session.clone(), sums, options)?));
        Ok(())
    }

    /// Removes elements of a kind by identity; the others keep their order. Points that lose their last segment go too.
    /// `identity`: `[n]`, as `wfmm_flow_get_*` returns them; twice the same is fine.
    /// Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _CONSTANT, _VALUE (no live element), _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_remove(f, WFMM_KIND_DUST, 1, &id, WFMM_MEMORY_HOST);`
    fn wfmm_flow_remove(
        flow: *mut wfmm_flow, kind: i32, n: i64, #[shape(n)] identity: *const i64, memory: i32,
    ) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let given = || unsafe { chosen(&session, kind, memory, ("identity", identity, n)) };
            let (kind, identity) = session.together("wfmm_flow_remove", given)?;
            flow.remove(kind, Gone::Identities(&identity))
        })
    }

    /// Removes the elements of a kind that a mask names; the others keep their order. Points that lose their last segment go too.
    /// `mask`: `[n]`, one byte for each element in the order of `wfmm_flow_get_*` (of segments for filaments), 0: stays, all else:
    /// removed. `n`: the number of elements that `wfmm_flow_counts` returns.
    /// Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT (n),
    /// _CONSTANT, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_remove_mask(f, WFMM_KIND_DUST, n, outside, WFMM_MEMORY_HOST);`
    fn wfmm_flow_remove_mask(
        flow: *mut wfmm_flow, kind: i32, n: i64, #[shape(n)] mask: *const u8, memory: i32,
    ) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let given = || unsafe { chosen(&session, kind, memory, ("mask", mask, n)) };
            let (kind, mask) = session.together("wfmm_flow_remove_mask", given)?;
            flow.remove(kind, Gone::Masked(&mask))
        })
    }

    /// Sets the velocity far away, which is added everywhere; default 0. It acts from the next step on, also in what
    /// WFMM_INTEGRATOR_AB2 takes along from the last one. `velocity`: `[3]`, length/time, host memory.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _NOT_FINITE.
    /// Example: `const double wind[3] = {5, 0, 0}; wfmm_flow_set_free_stream(f, wind);`
    fn wfmm_flow_set_free_stream(flow: *mut wfmm_flow, #[shape(3)] velocity: *const f64) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let v = session.together("wfmm_flow_set_free_stream", || {
                unsafe { Arrays::on_host(&session).input("velocity", velocity, 3) }?.on_host(&session, "velocity")
            })?;
            flow.set_free_stream([v[0], v[1], v[2]])
        })
    }

    /// Sets a function of the host that adds its own velocity at all points of every evaluation; see `wfmm_velocity_fn`. A NULL
    /// function removes it. It is called on the thread that calls the flow; calls of this flow from inside it return
    /// WFMM_ERR_BUSY. After this call WFMM_INTEGRATOR_AB2 begins anew, but for calls after wfmm_flow_load and before a
    /// step: this function counts as the one that the saved flow had.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
    /// Example: `wfmm_flow_set_velocity_callback(f, add_gust, &gust);`
    fn wfmm_flow_set_velocity_callback(
        flow: *mut wfmm_flow, callback: wfmm_velocity_fn, #[optional] user: *mut c_void,
    ) {
        with_flow(flow, |flow| {
            flow.set_callback(callback_of(callback, user));
            Ok(())
        })
    }

    /// Moves everything by `steps` steps of `dt` each. A step that fails leaves the flow as it was before that step.
    /// The steps before it are done; `wfmm_flow_time` has their number. `dt` > 0, time; `steps` >= 0.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _VALUE (dt), _COUNT (steps), _NOT_FINITE (dt, or
    /// a state that leaves the range of numbers), _TOLERANCE; a callback's number from 1 to 199, else WFMM_ERR_CALLBACK; 100..199
    /// where memory or a device is missing. WFMM_ERR_DEVICE_LOST: what the GPU held is gone, and the flow with it.
    /// Example: `if (wfmm_flow_advance(f, 0.01, 100)) return 1;`
    fn wfmm_flow_advance(flow: *mut wfmm_flow, dt: f64, steps: i64) {
        with_flow(flow, |flow| flow.advance(dt, steps))
    }

    /// Returns the time of the flow and the number of steps. Each output may be NULL.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
    /// Example: `double t; wfmm_flow_time(f, &t, NULL);`
    fn wfmm_flow_time(flow: *const wfmm_flow, #[optional] time: *mut f64, #[optional] step: *mut i64) {
        let (now, steps) = with_flow(flow, |flow| Ok(flow.time()))?;
        if !time.is_null() {
            *unsafe { output("time", time) }? = now;
        }
        if !step.is_null() {
            *unsafe { output("step", step) }? = steps;
        }
        Ok(())
    }

    /// Returns the numbers of elements of a kind and of their points. Segments have end points; of other kinds both
    /// numbers are equal. Each output may be NULL.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT.
    /// Example: `int64_t n; wfmm_flow_counts(f, WFMM_KIND_DUST, &n, NULL);`
    fn wfmm_flow_counts(
        flow: *const wfmm_flow, kind: i32, #[optional] elements: *mut i64, #[optional] points: *mut i64,
    ) {
        let (n, n_points) = with_flow(flow, |flow| Ok(flow.counts(kind_of(kind)?)))?;
        for (name, out, value) in [("elements", elements, n), ("points", points, n_points)] {
            if !out.is_null() {
                *unsafe { output(name, out) }? = value as i64;
            }
        }
        Ok(())
    }

    /// Returns the point numbers of filaments or bound segments, which `wfmm_flow_remove` and splitting change. `connectivity`:
    /// `[capacity][2]`, counted from `index_base` of the plan options, in the order of the segments; points as
    /// `wfmm_flow_get_*` returns their positions. Rows beyond the segments are not written.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (kind), _COUNT (capacity),
    /// _MEMORY.
    /// Example: `wfmm_flow_get_connectivity(f, WFMM_KIND_FILAMENTS, n, ends, WFMM_MEMORY_HOST);`
    fn wfmm_flow_get_connectivity(
        flow: *mut wfmm_flow, kind: i32, capacity: i64, #[shape(2, capacity)] connectivity: *mut i32, memory: i32,
    ) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let arrays = Arrays::new(&session, memory)?;
            let (kind, capacity) = (kind_of(kind)?, count("capacity", capacity)?);
            let ends = flow.connectivity(kind)?;
            let n = flow.counts(kind).0;
            if n > capacity {
                let message = format!("capacity = {capacity}; there are {n} segments");
                return Error::fail(crate::error::WFMM_ERR_COUNT, message);
            }
            unsafe { output_array(&arrays, "connectivity", connectivity, 2 * n) }?.fill(&session, "connectivity", ends)
        })
    }

    /// Fills `diagnostics` with zeros and its size. `size` is `sizeof *diagnostics`.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
    /// Example: `wfmm_diagnostics d; wfmm_diagnostics_init(&d, sizeof d);`
    fn wfmm_diagnostics_init(diagnostics: *mut wfmm_diagnostics, size: usize) {
        unsafe { structs::write("diagnostics", diagnostics, size, wfmm_diagnostics::default()) }
    }

    /// Computes invariants and norms of the present state, on a distributed session of all ranks' elements together: impulses,
    /// energy, enstrophy, largest velocity. It takes one evaluation at all moving points unless their velocities are
    /// known. Set `diagnostics->struct_size` before. What has no formula is NaN, and `reason` says why.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE, and those of an evaluation.
    /// Example: `wfmm_flow_diagnostics(f, &d); printf("%g\n", d.linear_impulse[2]);`
    fn wfmm_flow_diagnostics(flow: *mut wfmm_flow, diagnostics: *mut wfmm_diagnostics) {
        with_flow(flow, |flow| {
            let size = flow.session().together("wfmm_flow_diagnostics", || unsafe {
                structs::size_of_callers("diagnostics", diagnostics)
            })?;
            let value = flow.diagnostics()?;
            unsafe { structs::write("diagnostics", diagnostics, size, value) }
        })
    }

    /// Writes the whole flow to a file, which `wfmm_flow_load` reads: an `.npz` container of NumPy's arrays, its members are in the
    /// manual. A file of that name is replaced when the new one is whole. The velocity callback is not in it. `path`: NUL-terminated.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _FILE.
    /// Example: `wfmm_flow_save(f, "step-1000.npz");`
    fn wfmm_flow_save(flow: *mut wfmm_flow, path: *const c_char) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let path = session.together("wfmm_flow_save", || unsafe { path_of("path", path) })?;
            flow.save(&path)
        })
    }

    /// Makes a flow from a file of `wfmm_flow_save`, with its options: `wfmm_flow_get_options` tells them, and `index_base` is that of
    /// the program that saved it. `session` may be NULL: a default session. It continues from the saved state; the host sets a
    /// velocity callback again. `path`: NUL-terminated.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, _HANDLE, _FILE (missing, cut short, damaged), _TOO_NEW (of a newer
    /// library); those of `wfmm_flow_create`.
    /// Example: `wfmm_flow *f = NULL; if (wfmm_flow_load(NULL, "step-1000.npz", &f)) return 1;`
    fn wfmm_flow_load(#[optional] session: *mut wfmm_session, path: *const c_char, out: *mut *mut wfmm_flow) {
        let session = if session.is_null() { Session::default_session()? } else { SESSIONS.get(session)? };
        session.alive()?;
        let _turn = session.turn()?;
        let (out, path) = session.together("wfmm_flow_load", || {
            let (out, path) = (unsafe { output("out", out) }?, unsafe { path_of("path", path) }?);
            enough_memory().map(|()| (out, path))
        })?;
        *out = FLOWS.insert(FlowCell::new(Flow::load(session.clone(), &path)?));
        Ok(())
    }

    /// Fills in the options that a flow was made with, those of a loaded flow as the file has them. The caller sets `struct_size` of
    /// each before; NULL: not wanted.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE.
    /// Example: `wfmm_plan_options o; o.struct_size = sizeof o; wfmm_flow_get_options(f, &o, NULL); printf("%d\n", o.index_base);`
    fn wfmm_flow_get_options(
        flow: *const wfmm_flow, #[optional] plan_options: *mut wfmm_plan_options, #[optional] options: *mut wfmm_flow_options,
    ) {
        let (of_sums, of_motion) = with_flow(flow, |flow| Ok(flow.given()))?;
        if !plan_options.is_null() {
            unsafe { structs::fill("plan_options", plan_options, of_sums) }?;
        }
        if !options.is_null() {
            unsafe { structs::fill("options", options, of_motion) }?;
        }
        Ok(())
    }

    /// Fills a report of the last evaluation of the flow's sums, as `wfmm_plan_report`; `host_bytes` includes the
    /// state.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE.
    /// Example: `wfmm_report r; r.struct_size = sizeof r; wfmm_flow_report(f, &r);`
    fn wfmm_flow_report(flow: *const wfmm_flow, report: *mut wfmm_report) {
        not_null("report", report)?;
        let value = with_flow(flow, |flow| Ok(wfmm_report::from(&flow.report())))?;
        unsafe { structs::fill("report", report, value) }
    }

    /// Ends a flow. `*flow` becomes NULL; a NULL flow is fine.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL (no address), WFMM_ERR_HANDLE, WFMM_ERR_BUSY.
    /// Example: `wfmm_flow_destroy(&f);`
    fn wfmm_flow_destroy(flow: *mut *mut wfmm_flow) {
        let flow = unsafe { output("flow", flow) }?;
        if !flow.is_null() {
            FLOWS.get(*flow)?.idle()?;
            drop(FLOWS.remove(*flow)?);
            *flow = std::ptr::null_mut();
        }
        Ok(())
    }
}
