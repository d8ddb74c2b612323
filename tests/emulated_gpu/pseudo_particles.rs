//! Pseudo-particles in place of harmonics. Every target is compared with the direct sum.

use super::*;
use wakefmm::error::WFMM_ERR_UNSUPPORTED;
use wakefmm::report::*;

/// Leaves of at most so many points, so that few points have several levels.
fn small_leaves(tolerance: f64, segments: i32, particles: i32, leaf: i32) -> wfmm_plan_options {
    let expansion = WFMM_EXPANSION_PSEUDO_PARTICLES;
    wfmm_plan_options { expansion, ..options(WFMM_METHOD_FMM, tolerance, segments, particles, leaf) }
}

fn by_default(tolerance: f64) -> wfmm_plan_options {
    small_leaves(tolerance, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 40)
}

/// Every kind of source with every core, with gradients, in leaves of the third level.
fn every_core<T: Scalar>(tolerance: f64, turn: usize) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for kind in KINDS {
        let c = case("cube", kind, 500, 400, 1.0).rounded();
        let some = values(&regularizations(kind)[..1], &regularizations(kind)).to_vec();
        let cores = if kind == Kind::Both { some } else { regularizations(kind) };
        for (_, (segments, particles)) in cores.into_iter().enumerate().filter(|(number, _)| takes(number + turn, 2)) {
            // These have no FMM.
            if segments == WFMM_REG_OFFSET {
                continue;
            }
            let want = reference(&cpu, &c, segments, particles);
            let (got, outcome) = evaluate::<T>(&gpu, &c, &small_leaves(tolerance, segments, particles, 24));
            let names = (name_of(segments), name_of(particles));
            let what = format!("{kind:?} {names:?} {} {}", T::NAME, outcome.recipe);
            assert_eq!(outcome.method, WFMM_METHOD_FMM, "{what}");
            assert!(outcome.recipe.contains("pseudo-particles a cell"), "{what}");
            close(&got, &want, tolerance, &what);
        }
    }
}

#[test]
fn every_core_in_double_precision() {
    with_gpu("pseudo_particles::every_core_in_double_precision", &[], || {
        every_core::<f64>(values(&[1e-3], &[1e-4])[0], 0);
    });
}

#[test]
fn every_core_in_single_precision() {
    with_gpu("pseudo_particles::every_core_in_single_precision", &[], || every_core::<f32>(1e-3, 1));
}

/// Tolerances choose the order; the errors are those of expansions, in leaves of the third level and the fourth.
fn every_tolerance<T: Scalar>(tolerances: &[f64]) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for kind in [Kind::Particles, Kind::Charges] {
        let mut c = case("cube", kind, 2500, 1000, 1.0).rounded();
        c.particle_core.fill(0.0);
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        let mut before = 0;
        for tolerance in tolerances {
            let o = small_leaves(*tolerance, WFMM_REG_NONE, WFMM_REG_NONE, 16);
            let mut plan = Plan::<T>::new(&gpu, &as_arrays::<T>(&o));
            fill(&mut plan, &c);
            let error = relative_l2(&field(&mut plan, &c), &want.main);
            let (r, what) =
                (plan.report(), format!("{kind:?} {} {tolerance:.0e}: {error:.1e} {}", T::NAME, plan.recipe()));
            assert!(r.method == WFMM_METHOD_FMM && r.order > before && r.depth >= 3, "{what}");
            assert!(error <= *tolerance, "{what}");
            assert!(error >= 1e-4 * tolerance, "too good for expansions: {what}");
            println!("error {what}");
            before = r.order;
        }
    }
}

#[test]
fn every_tolerance_in_double_precision() {
    with_gpu("pseudo_particles::every_tolerance_in_double_precision", &[], || {
        every_tolerance::<f64>(values(&[1e-1, 1e-3], &[1e-1, 1e-2, 1e-3, 1e-4, 1e-5]));
    });
}

#[test]
fn every_tolerance_in_single_precision() {
    with_gpu("pseudo_particles::every_tolerance_in_single_precision", &[], || {
        every_tolerance::<f32>(values(&[1e-1, 1e-3], &[1e-1, 1e-2, 1e-3, 3e-4]));
    });
}

/// Trees that are deep, of one cell, with few sources or few targets.
#[test]
fn every_distribution_is_right() {
    with_gpu("pseudo_particles::every_distribution_is_right", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for (k, name) in DISTRIBUTIONS.iter().enumerate() {
            for (_, kind) in KINDS.into_iter().enumerate().filter(|(number, _)| takes(k + number, 3)) {
                let (n, m) = [(500, 600), (3, 700), (700, 3), (1, 1)][k % 4];
                let c = case(name, kind, n, m, 1.0).rounded();
                let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
                let (got, outcome) = evaluate::<f64>(&gpu, &c, &by_default(1e-3));
                close(&got, &want, 1e-3, &format!("{name} {kind:?} {}", outcome.recipe));
            }
        }
    });
}

/// A plan that keeps what did not change is right after each step, and the second time has the same bits.
#[test]
fn what_is_kept_between_evaluations_is_right() {
    with_gpu("pseudo_particles::what_is_kept_between_evaluations_is_right", &[], || {
        for &kind in values(&[Kind::Charges], &KINDS) {
            one_plan_through_changes(kind, &by_default(1e-4));
        }
    });
}

/// The passes that the report has seconds of, and the order of what was computed.
#[test]
fn the_report_tells_of_their_order() {
    with_gpu("pseudo_particles::the_report_tells_of_their_order", &[], || {
        for session in [Session::gpu(), Session::auto()] {
            let c = case("cube", Kind::Both, 800, 600, 1.0);
            let mut plan =
                Plan::<f64>::new(&session, &wfmm_plan_options { order: 7, leaf_capacity: 12, ..by_default(1e-1) });
            fill(&mut plan, &c);
            field(&mut plan, &c);
            let (r, recipe) = (plan.report(), plan.recipe());
            assert_eq!((r.method, r.backend, r.order), (WFMM_METHOD_FMM, WFMM_BACKEND_CUDA, 7), "{recipe}");
            assert!(recipe.contains("91 pseudo-particles a cell (order 7)"), "{recipe}");
            for pass in [WFMM_PASS_P2M, WFMM_PASS_M2M, WFMM_PASS_M2L, WFMM_PASS_L2L, WFMM_PASS_L2P] {
                assert!(r.seconds[pass as usize] > 0.0, "pass {pass} took no time");
            }
            let e = plan.check(200, 5);
            assert!(e > 0.0 && e <= 1e-1 && r.estimated_error > 0.0, "{e:e}");
        }
    });
}

/// What they cannot reach is refused and not summed by anything else.
#[test]
fn what_they_do_not_reach_is_refused() {
    with_gpu("pseudo_particles::what_they_do_not_reach_is_refused", &[], || {
        let gpu = Session::gpu();
        let mut c = case("cube", Kind::Particles, 900, 800, 1.0);
        c.particle_core.fill(0.0);
        let mut plan = Plan::<f64>::new(&gpu, &small_leaves(1e-11, WFMM_REG_NONE, WFMM_REG_NONE, 16));
        fill(&mut plan, &c);
        let mut u = vec![7.0; 3 * c.targets.len()];
        assert_eq!(plan.try_velocity(&mut u), WFMM_ERR_UNSUPPORTED);
        assert!(u.iter().all(|u| *u == 7.0), "nothing is written");
    });
}

/// No result depends on which thread is first, nor on which kernels made the trees.
#[test]
fn the_order_of_threads_changes_no_bit() {
    bits_in_any_order("pseudo_particles::the_order_of_threads_changes_no_bit", &by_default(1e-3));
}
