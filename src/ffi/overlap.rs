//! Evaluations beside the host's own work: started, waited for, put in order with its GPU work.

use std::ffi::c_void;

use crate::backend::Field;
use crate::session::Session;

use super::boundary::{Arrays, api, not_null, size, twins};
use super::handles::{PLANS, SESSIONS, with_plan};
use super::{wfmm_plan, wfmm_session};

twins! {
    /// Starts the evaluation that `wfmm_plan_evaluate_*` makes, and returns at once. Its status is that of `wfmm_plan_wait`,
    /// which must always be called; the fields are complete when it returns 0. Until then every other call with this plan
    /// returns WFMM_ERR_BUSY, and `velocity`, `gradient` and borrowed device arrays must stay valid. In Fortran they must be
    /// contiguous and have the attribute `target` or `asynchronous`: a temporary would be gone.
    /// `velocity`: `[n_targets][3]`. `gradient`: `[n_targets][3][3]`, or NULL.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT (memory), _OVERLAP, _MEMORY;
    /// WFMM_ERR_THREADS; all others are those of `wfmm_plan_wait`.
    /// Example: `wfmm_plan_evaluate_async_f64(p, u, NULL, WFMM_MEMORY_HOST); move_bodies(); wfmm_plan_wait(p);`
    fn wfmm_plan_evaluate_async_f32 | wfmm_plan_evaluate_async_f64(
        plan: *mut wfmm_plan,
        #[shape(3, n_targets)] velocity: *mut Real,
        #[shape(3, 3, n_targets)] #[optional] gradient: *mut Real,
        memory: i32,
    ) {
        let (queue, (velocity, gradient)) = with_plan(plan, |plan| {
            let session = plan.session().clone();
            session.not_distributed("an evaluation beside the host's own work")?;
            let n = plan.counts().targets;
            let arrays = Arrays::new(&session, memory)?;
            // The caller keeps both alive until `wfmm_plan_wait`.
            let outputs = unsafe { arrays.outputs::<Real>(("velocity", velocity, 3 * n), (gradient, 9 * n)) }?;
            Ok((plan.queue_now()?, outputs))
        })?;
        let field = Field::Velocity { gradient: gradient.is_some() };
        PLANS.get(plan)?.start(move |plan| plan.evaluate_behind(queue, field, velocity, gradient))
    }
}

api! {
    /// Waits for the evaluation that `wfmm_plan_evaluate_async_*` started and returns its status; 0 where none is under way.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, and those of `wfmm_plan_evaluate_*`.
    /// Example: `if (wfmm_plan_wait(p)) return 1;`
    fn wfmm_plan_wait(plan: *mut wfmm_plan) {
        PLANS.get(plan)?.wait()
    }

    /// Sets the CUDA stream (`cudaStream_t`, `CUstream`) on which the caller computes this plan's device arrays: an
    /// evaluation begins after the work that is queued on it when `wfmm_plan_evaluate_*` or `wfmm_plan_evaluate_async_*` is called
    /// (`cudaStreamPerThread`: on that of the calling thread). NULL, the default: the default stream. The stream must outlive its
    /// use by the plan. Without a GPU the call has no effect.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
    /// Example: `wfmm_plan_set_stream(p, stream);`
    fn wfmm_plan_set_stream(plan: *mut wfmm_plan, #[optional] stream: *mut c_void) {
        let stream = stream as usize as u64;
        with_plan(plan, |plan| {
            plan.set_stream(stream);
            Ok(())
        })
    }

    /// Page-locks the caller's memory at `array`, `bytes` long, so that results are copied from the device straight into it.
    /// `wfmm_session_unregister` must be called before the memory is freed. Without a GPU the call has no effect.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, _HANDLE, _COUNT; WFMM_ERR_DRIVER where the driver refuses.
    /// Example: `wfmm_session_register(s, u, 3 * m * sizeof *u);`
    fn wfmm_session_register(session: *mut wfmm_session, array: *mut c_void, bytes: i64) {
        not_null("array", array)?;
        SESSIONS.get(session)?.register(array as usize, size("bytes", bytes)?)
    }

    /// Unlocks memory that `wfmm_session_register` has locked.
    /// Thread rule: any thread; not while an evaluation uses the array. Errors: WFMM_ERR_NULL, _HANDLE; WFMM_ERR_DRIVER.
    /// Example: `wfmm_session_unregister(s, u);`
    fn wfmm_session_unregister(session: *mut wfmm_session, array: *mut c_void) {
        not_null("array", array)?;
        let session: std::sync::Arc<Session> = SESSIONS.get(session)?;
        session.unregister(array as usize)
    }
}
