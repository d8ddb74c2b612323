//! Arrays of a plan: sources, strengths and targets in, fields out; single and double precision from one body.

use crate::backend::Field;
use crate::error::{Error, WFMM_ERR_COUNT};
use crate::inputs::ArrayReal;
use crate::plan::sources::Strengths;

use super::boundary::{Arrays, count, output, twins};
use super::elements;
use super::handles::with_plan;
use super::wfmm_plan;

twins! {
    /// Sets the straight vortex segments; n = 0 removes them. Segments and particles add up.
    /// `points`: `[n_points][3]`, end points, any length unit. `connectivity`: `[n][ld]`, ld >= 2; the first two numbers
    /// of a row are the points P1, P2 of a segment, counted from `index_base`; positive circulation runs from P1 to P2.
    /// `circulation`: `[n]`, length^2/time. `core_radius`: `[n]`, length, >= 0, or NULL: `core_radius` of the options.
    /// Host arrays are copied; device arrays are borrowed until the next set or destroy.
    /// Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _VALUE (ld < 2, negative radius), _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY; WFMM_ERR_HOST_MEMORY.
    /// Example: `wfmm_plan_set_segments_f64(p, np, x, n, 2, ends, gamma, NULL, WFMM_MEMORY_HOST);`
    fn wfmm_plan_set_segments_f32 | wfmm_plan_set_segments_f64(
        plan: *mut wfmm_plan,
        n_points: i64,
        #[shape(3, n_points)] points: *const Real,
        n: i64,
        ld: i64,
        #[shape(ld, n)] connectivity: *const i32,
        #[shape(n)] circulation: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        memory: i32,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let segments = session.together("wfmm_plan_set_segments", || {
                let arrays = Arrays::new(&session, memory)?;
                let given = (n_points, points, n, ld, connectivity, circulation, core_radius);
                unsafe { elements::segments::<Real>(&arrays, given) }
            })?;
            plan.set_segments(segments)
        })
    }

    /// Sets the vortex particles; n = 0 removes them. Segments and particles add up.
    /// `position`: `[n][3]`, length. `strength`: `[n][3]`, length^3/time. `core_radius`: `[n]`, length, >= 0, or NULL:
    /// `core_radius` of the options. Host arrays are copied; device arrays are borrowed until the next set or destroy.
    /// Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _VALUE (negative radius), _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
    /// Example: `wfmm_plan_set_particles_f64(p, n, x, alpha, sigma, WFMM_MEMORY_HOST);`
    fn wfmm_plan_set_particles_f32 | wfmm_plan_set_particles_f64(
        plan: *mut wfmm_plan,
        n: i64,
        #[shape(3, n)] position: *const Real,
        #[shape(3, n)] strength: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        memory: i32,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let particles = session.together("wfmm_plan_set_particles", || {
                let arrays = Arrays::new(&session, memory)?;
                unsafe { elements::particles::<Real>(&arrays, (n, position, strength, core_radius)) }
            })?;
            plan.set_particles(particles)
        })
    }

    /// Sets the charges of the potential s sum(q/r), s the normalization; n = 0 removes them.
    /// `position`: `[n][3]`, length. `charge`: `[n]`, any unit. Ownership as for particles.
    /// Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
    /// Example: `wfmm_plan_set_charges_f64(p, n, x, q, WFMM_MEMORY_HOST);`
    fn wfmm_plan_set_charges_f32 | wfmm_plan_set_charges_f64(
        plan: *mut wfmm_plan,
        n: i64,
        #[shape(3, n)] position: *const Real,
        #[shape(n)] charge: *const Real,
        memory: i32,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let charges = session.together("wfmm_plan_set_charges", || {
                let arrays = Arrays::new(&session, memory)?;
                let n = count("n", n)?;
                if n == 0 {
                    return Ok(None);
                }
                let position = unsafe { arrays.input::<Real>("position", position, 3 * n) }?;
                Ok(Some((n, position, unsafe { arrays.input("charge", charge, n) }?)))
            })?;
            plan.set_charges(charges)
        })
    }

    /// Sets new strengths at the same positions; trees and lists are kept (not on distributed sessions of CPUs). A NULL
    /// array keeps the present strengths, and its count is ignored; every other count must be the one that was set.
    /// `circulation`: `[n_segments]`. `strength`: `[n_particles][3]`. `charge`: `[n_charges]`. Ownership as in the sets.
    /// Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
    /// Example: `wfmm_plan_set_strengths_f64(p, n, gamma, 0, NULL, 0, NULL, WFMM_MEMORY_HOST);`
    fn wfmm_plan_set_strengths_f32 | wfmm_plan_set_strengths_f64(
        plan: *mut wfmm_plan,
        n_segments: i64,
        #[shape(n_segments)] #[optional] circulation: *const Real,
        n_particles: i64,
        #[shape(3, n_particles)] #[optional] strength: *const Real,
        n_charges: i64,
        #[shape(n_charges)] #[optional] charge: *const Real,
        memory: i32,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let new = session.together("wfmm_plan_set_strengths", || {
                let arrays = Arrays::new(&session, memory)?;
                let array = |name, count_name, pointer: *const Real, n, components| {
                    if pointer.is_null() {
                        return Ok(None);
                    }
                    let n = count(count_name, n)?;
                    unsafe { arrays.input(name, pointer, components * n) }.map(|array| Some((n, array)))
                };
                Ok(Strengths {
                    circulation: array("circulation", "n_segments", circulation, n_segments, 1)?,
                    strength: array("strength", "n_particles", strength, n_particles, 3)?,
                    charge: array("charge", "n_charges", charge, n_charges, 1)?,
                })
            })?;
            plan.set_strengths(new)
        })
    }

    /// Sets the targets; n = 0: none. The sources and their expansions are kept (expansions not on distributed sessions of
    /// CPUs).
    /// `position`: `[n][3]`, length. Ownership as for particles.
    /// Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
    /// Example: `wfmm_plan_set_targets_f64(p, m, x, WFMM_MEMORY_HOST);`
    fn wfmm_plan_set_targets_f32 | wfmm_plan_set_targets_f64(
        plan: *mut wfmm_plan,
        n: i64,
        #[shape(3, n)] position: *const Real,
        memory: i32,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let targets = session.together("wfmm_plan_set_targets", || {
                let arrays = Arrays::new(&session, memory)?;
                let n = count("n", n)?;
                if n == 0 {
                    return Ok(None);
                }
                Ok(Some((n, unsafe { arrays.input::<Real>("position", position, 3 * n) }?)))
            })?;
            plan.set_targets(targets)
        })
    }

    /// Computes the velocity that segments and particles induce at the targets, and optionally its gradient.
    /// `velocity`: `[n_targets][3]`, length/time. `gradient`: `[n_targets][3][3]`, 1/time, `g[k][i][j] = du_i/dx_j` of target k, or
    /// NULL.
    /// Overwritten, or added to under WFMM_FLAG_ACCUMULATE; written only on success, or in part before a negative status
    /// (in device memory: before any error).
    /// No targets: nothing is written and the outputs may be NULL; no sources (n = 0): zero.
    /// Precision of the computation: that of the options; for ARRAYS see WFMM_PRECISION_ARRAYS.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
    /// set), _CONSTANT (memory), _VALUE (charges that do not add up to zero in a tube or slab), _OVERLAP, _MEMORY,
    /// _TOLERANCE; 100..199 where a resource is missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host
    /// memory ran out.
    /// Example: `wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);`
    fn wfmm_plan_evaluate_f32 | wfmm_plan_evaluate_f64(
        plan: *mut wfmm_plan,
        #[shape(3, n_targets)] velocity: *mut Real,
        #[shape(3, 3, n_targets)] #[optional] gradient: *mut Real,
        memory: i32,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let n = plan.counts().targets;
            let (velocity, gradient) = session.together("wfmm_plan_evaluate", || {
                let arrays = Arrays::new(&session, memory)?;
                unsafe { arrays.outputs::<Real>(("velocity", velocity, 3 * n), (gradient, 9 * n)) }
            })?;
            plan.evaluate(Field::Velocity { gradient: gradient.is_some() }, velocity, gradient)
        })
    }

    /// Computes the potential of the charges at the targets, and optionally its gradient.
    /// `potential`: `[n_targets]`, charge/length. `gradient`: `[n_targets][3]`, charge/length^2, `g[k][j] = dphi/dx_j` of target k, or
    /// NULL. All else as in `wfmm_plan_evaluate_*`.
    /// Example: `wfmm_plan_evaluate_potential_f64(p, phi, NULL, WFMM_MEMORY_HOST);`
    fn wfmm_plan_evaluate_potential_f32 | wfmm_plan_evaluate_potential_f64(
        plan: *mut wfmm_plan,
        #[shape(n_targets)] potential: *mut Real,
        #[shape(3, n_targets)] #[optional] gradient: *mut Real,
        memory: i32,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let n = plan.counts().targets;
            let (potential, gradient) = session.together("wfmm_plan_evaluate_potential", || {
                let arrays = Arrays::new(&session, memory)?;
                unsafe { arrays.outputs::<Real>(("potential", potential, n), (gradient, 3 * n)) }
            })?;
            plan.evaluate(Field::Potential { gradient: gradient.is_some() }, potential, gradient)
        })
    }

    /// Measures the error of the field that was evaluated last at `n_samples` targets against the direct sum in double
    /// precision. Before the first evaluation the field is the velocity, or the potential of a plan with charges only.
    /// `out_relative_l2`: the relative L2 error. `seed` chooses the targets; `n_samples` >= n_targets: all targets. Gradients
    /// are not compared. The field is computed again for this; on a GPU at all targets, and report and recipe are then those
    /// of that evaluation.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE, _COUNT (n_samples < 1),
    /// _VALUE (charges that do not add up to zero in a tube or slab), _TOLERANCE; 100..199 where a resource is
    /// missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
    /// Example: `double e; wfmm_plan_check_f64(p, 1000, 1, &e);`
    fn wfmm_plan_check_f32 | wfmm_plan_check_f64(
        plan: *mut wfmm_plan,
        n_samples: i64,
        seed: u64,
        out_relative_l2: *mut Real,
    ) {
        with_plan(plan, |plan| {
            let session = plan.session().clone();
            let (out, samples) = session.together("wfmm_plan_check", || {
                let out = unsafe { output("out_relative_l2", out_relative_l2) }?;
                match count("n_samples", n_samples)? {
                    0 => Error::fail(WFMM_ERR_COUNT, "n_samples = 0; at least 1 is needed"),
                    samples => Ok((out, samples)),
                }
            })?;
            *out = Real::from_f64(plan.check(samples, seed)?);
            Ok(())
        })
    }
}
