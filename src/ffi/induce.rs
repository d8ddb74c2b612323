//! One call: velocities of sources at targets on the default session, nothing kept.

use std::sync::Arc;

use crate::backend::Field;
use crate::error::Result;
use crate::options::{PlanOptions, wfmm_plan_options};
use crate::plan::Plan;
use crate::session::Session;

use super::boundary::{Arrays, count, enough_memory, twins};
use super::elements;
use super::structs;

/// A plan for one call.
///
/// # Safety
/// As `structs::read`.
unsafe fn plan(options: *const wfmm_plan_options) -> Result<(Arc<Session>, Plan)> {
    let options = PlanOptions::checked(&unsafe { structs::read("options", options) }?)?;
    enough_memory()?;
    let session = Session::default_session()?;
    Ok((session.clone(), Plan::new(session, options)))
}

twins! {
    /// Computes the velocity of straight vortex segments at the targets in one call; all arrays in host memory.
    /// `points`: `[n_points][3]`. `connectivity`: `[n][ld]`, counted from `options->index_base`. `circulation`: `[n]`.
    /// `core_radius`: `[n]` or NULL. `target`: `[n_targets][3]`. `options` may be NULL. `velocity`: `[n_targets][3]`.
    /// `gradient`: `[n_targets][3][3]` or NULL. See `wfmm_plan_set_segments_*` and `wfmm_plan_evaluate_*`.
    /// Thread rule: any thread, any number at once. Errors: as of those, nothing is written.
    /// Example: `wfmm_induce_segments_f64(np, x, n, 2, ends, gamma, NULL, m, y, NULL, u, NULL);`
    fn wfmm_induce_segments_f32 | wfmm_induce_segments_f64(
        n_points: i64,
        #[shape(3, n_points)] points: *const Real,
        n: i64,
        ld: i64,
        #[shape(ld, n)] connectivity: *const i32,
        #[shape(n)] circulation: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        n_targets: i64,
        #[shape(3, n_targets)] target: *const Real,
        #[optional] options: *const wfmm_plan_options,
        #[shape(3, n_targets)] velocity: *mut Real,
        #[shape(3, 3, n_targets)] #[optional] gradient: *mut Real,
    ) {
        let (session, mut plan) = unsafe { plan(options) }?;
        let arrays = Arrays::on_host(&session);
        let given = (n_points, points, n, ld, connectivity, circulation, core_radius);
        let (segments, n_targets) = (unsafe { elements::segments(&arrays, given) }?, count("n_targets", n_targets)?);
        plan.set_segments::<Real>(segments)?;
        let target = if n_targets == 0 { None } else { Some((n_targets, unsafe { arrays.input("target", target, 3 * n_targets) }?)) };
        plan.set_targets::<Real>(target)?;
        let (velocity, gradient) =
            unsafe { arrays.outputs(("velocity", velocity, 3 * n_targets), (gradient, 9 * n_targets)) }?;
        plan.evaluate(Field::Velocity { gradient: gradient.is_some() }, velocity, gradient)
    }

    /// Computes the velocity of vortex particles at the targets in one call; all arrays in host memory.
    /// `position`: `[n][3]`. `strength`: `[n][3]`. `core_radius`: `[n]` or NULL. `target`: `[n_targets][3]`. `options` may
    /// be NULL. `velocity`: `[n_targets][3]`. `gradient`: `[n_targets][3][3]` or NULL.
    /// See `wfmm_plan_set_particles_*` and `wfmm_plan_evaluate_*`.
    /// Thread rule: any thread, any number at once. Errors: as of those, nothing is written.
    /// Example: `wfmm_induce_particles_f64(n, x, alpha, sigma, m, y, NULL, u, NULL);`
    fn wfmm_induce_particles_f32 | wfmm_induce_particles_f64(
        n: i64,
        #[shape(3, n)] position: *const Real,
        #[shape(3, n)] strength: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        n_targets: i64,
        #[shape(3, n_targets)] target: *const Real,
        #[optional] options: *const wfmm_plan_options,
        #[shape(3, n_targets)] velocity: *mut Real,
        #[shape(3, 3, n_targets)] #[optional] gradient: *mut Real,
    ) {
        let (session, mut plan) = unsafe { plan(options) }?;
        let arrays = Arrays::on_host(&session);
        let given = (n, position, strength, core_radius);
        let (particles, n_targets) = (unsafe { elements::particles(&arrays, given) }?, count("n_targets", n_targets)?);
        plan.set_particles::<Real>(particles)?;
        let target = if n_targets == 0 { None } else { Some((n_targets, unsafe { arrays.input("target", target, 3 * n_targets) }?)) };
        plan.set_targets::<Real>(target)?;
        let (velocity, gradient) =
            unsafe { arrays.outputs(("velocity", velocity, 3 * n_targets), (gradient, 9 * n_targets)) }?;
        plan.evaluate(Field::Velocity { gradient: gradient.is_some() }, velocity, gradient)
    }
}
