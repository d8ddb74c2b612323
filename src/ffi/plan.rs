//! Plans: everything but their arrays.

use std::ffi::c_char;

use crate::options::{PlanOptions, wfmm_plan_options};
use crate::plan::Plan;
use crate::report::wfmm_report;
use crate::session::Session;

use super::boundary::{api, enough_memory, not_null, output};
use super::handles::{PLANS, PlanCell, SESSIONS, with_plan};
use super::{structs, text, wfmm_plan, wfmm_session};

api! {
    /// Fills `options` with the defaults. `size` is `sizeof *options`.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
    /// Example: `wfmm_plan_options o; wfmm_plan_options_init(&o, sizeof o); o.tolerance = 1e-6;`
    fn wfmm_plan_options_init(options: *mut wfmm_plan_options, size: usize) {
        unsafe { structs::write("options", options, size, wfmm_plan_options::default()) }
    }

    /// Makes a plan without sources and targets. `session` may be NULL: a default session, shared by all such plans;
    /// `options` may be NULL: defaults. The caller owns `*out` and ends it with `wfmm_plan_destroy`.
    /// Thread rule: any thread; the plan itself serves one thread at a time.
    /// Errors: WFMM_ERR_NULL, _HANDLE, _CONSTANT, _VALUE, _NOT_FINITE, _TOLERANCE, _TOO_NEW, _STRUCT_SIZE; WFMM_ERR_THREADS,
    /// _HOST_MEMORY; WFMM_ERR_UNSUPPORTED for options that exclude each other or are not built; WFMM_ERR_FORKED where
    /// the session was made before `fork()`.
    /// Example: `wfmm_plan *p = NULL; if (wfmm_plan_create(NULL, NULL, &p)) return 1;`
    fn wfmm_plan_create(
        #[optional] session: *mut wfmm_session, #[optional] options: *const wfmm_plan_options, out: *mut *mut wfmm_plan,
    ) {
        let take = || {
            let out = unsafe { output("out", out) }?;
            let options = PlanOptions::checked(&unsafe { structs::read("options", options) }?)?;
            enough_memory()?;
            Ok((out, options))
        };
        if session.is_null() {
            let (out, options) = take()?;
            *out = PLANS.insert(PlanCell::new(Plan::new(Session::default_session()?, options)));
            return Ok(());
        }
        let session = SESSIONS.get(session)?;
        session.alive()?;
        let _turn = session.turn()?;
        let (out, options) = session.together("wfmm_plan_create", take)?;
        *out = PLANS.insert(PlanCell::new(Plan::create(session.clone(), options)?));
        Ok(())
    }

    /// Does in advance the part of the next evaluation that needs no output arrays. On the CPU these are trees, lists
    /// and orders, on a GPU the copies of the arrays. Optional: `wfmm_plan_evaluate_*` includes it.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
    /// set), _VALUE (charges that do not add up to zero in a tube or slab), _TOLERANCE; 100..199 where a resource is
    /// missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
    /// Example: `wfmm_plan_prepare(p);`
    fn wfmm_plan_prepare(plan: *mut wfmm_plan) {
        with_plan(plan, Plan::prepare)
    }

    /// Returns the numbers of elements of the plan. Each output may be NULL.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
    /// Example: `int64_t m; wfmm_plan_counts(p, NULL, NULL, NULL, &m);`
    fn wfmm_plan_counts(
        plan: *const wfmm_plan, #[optional] n_segments: *mut i64, #[optional] n_particles: *mut i64,
        #[optional] n_charges: *mut i64, #[optional] n_targets: *mut i64,
    ) {
        let counts = with_plan(plan, |plan| Ok(plan.counts()))?;
        let values = [counts.segments, counts.particles, counts.charges, counts.targets];
        let outputs = [n_segments, n_particles, n_charges, n_targets];
        let names = ["n_segments", "n_particles", "n_charges", "n_targets"];
        for ((name, out), value) in names.into_iter().zip(outputs).zip(values) {
            if !out.is_null() {
                *unsafe { output(name, out) }? = value as i64;
            }
        }
        Ok(())
    }

    /// Returns the memory that the plan uses now, in bytes: its copies of the arrays, trees, lists and expansions.
    /// Each output may be NULL. Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
    /// Example: `uint64_t host, device; wfmm_plan_workspace(p, &host, &device);`
    fn wfmm_plan_workspace(
        plan: *const wfmm_plan, #[optional] host_bytes: *mut u64, #[optional] device_bytes: *mut u64,
    ) {
        let report = with_plan(plan, |plan| Ok(plan.report()))?;
        for (name, out, value) in
            [("host_bytes", host_bytes, report.host_bytes), ("device_bytes", device_bytes, report.device_bytes)]
        {
            if !out.is_null() {
                *unsafe { output(name, out) }? = value;
            }
        }
        Ok(())
    }

    /// Describes in a paragraph what was chosen (method, order, leaf size, precision) and why. Available after
    /// `wfmm_plan_prepare` on the CPU and after the first evaluation on a GPU; before that the text says that nothing was
    /// chosen. Buffer rules as in `wfmm_last_error`.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
    /// Example: `char why[1024]; wfmm_plan_recipe(p, why, sizeof why, NULL); puts(why);`
    fn wfmm_plan_recipe(
        plan: *const wfmm_plan, buf: *mut c_char, capacity: usize, #[optional] out_length: *mut usize,
    ) {
        let recipe = with_plan(plan, |plan| Ok(plan.recipe()))?;
        unsafe { text::put(buf, capacity, out_length, &recipe) }
    }

    /// Fills a report of the last evaluation: order, depth, cells, pairs, bytes, seconds per pass. The caller sets
    /// `report->struct_size` to `sizeof *report` before. Cells, pairs and seconds are 0 where nothing was evaluated yet.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE.
    /// Example: `wfmm_report r; r.struct_size = sizeof r; wfmm_plan_report(p, &r);`
    fn wfmm_plan_report(plan: *const wfmm_plan, report: *mut wfmm_report) {
        not_null("report", report)?;
        let value = with_plan(plan, |plan| Ok(wfmm_report::from(&plan.report())))?;
        unsafe { structs::fill("report", report, value) }
    }

    /// Ends a plan; device arrays are no longer borrowed. `*plan` becomes NULL; a NULL plan is fine.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL (no address), WFMM_ERR_HANDLE, WFMM_ERR_BUSY.
    /// Example: `wfmm_plan_destroy(&p);`
    fn wfmm_plan_destroy(plan: *mut *mut wfmm_plan) {
        let plan = unsafe { output("plan", plan) }?;
        if !plan.is_null() {
            PLANS.get(*plan)?.idle()?;
            drop(PLANS.remove(*plan)?);
            *plan = std::ptr::null_mut();
        }
        Ok(())
    }
}
