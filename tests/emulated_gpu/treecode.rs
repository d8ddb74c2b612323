//! The treecode: multipoles at the targets in place of local expansions. Every target is compared with the direct sum.

use super::*;
use wakefmm::report::*;

/// Leaves of at most so many points, so that few points have several levels.
fn small_leaves(tolerance: f64, segments: i32, particles: i32, leaf: i32) -> wfmm_plan_options {
    options(WFMM_METHOD_TREECODE, tolerance, segments, particles, leaf)
}

/// Holds its tolerance at once.
fn holds<T: Scalar>(gpu: &Session, c: &Case, want: &Field, o: &wfmm_plan_options, what: &str) {
    let (got, outcome) = evaluate::<T>(gpu, c, o);
    let what = format!("{what} {} {}", T::NAME, outcome.recipe);
    assert_eq!(outcome.method, WFMM_METHOD_TREECODE, "{what}");
    assert!(outcome.recipe.starts_with("Treecode") && !outcome.recipe.contains("tightening"), "{what}");
    close(&got, want, o.tolerance, &what);
}

/// Every kind of source with every core, with gradients, in leaves of the third and fourth level.
fn every_core<T: Scalar>(tolerance: f64) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for kind in KINDS {
        let c = case("cube", kind, 900, 800, 1.0).rounded();
        let some = values(&regularizations(kind)[..1], &regularizations(kind)).to_vec();
        for (segments, particles) in if kind == Kind::Both { some } else { regularizations(kind) } {
            // These have neither an FMM nor a treecode.
            if segments == WFMM_REG_OFFSET {
                continue;
            }
            let want = reference(&cpu, &c, segments, particles);
            let what = format!("{kind:?} {} {}", name_of(segments), name_of(particles));
            holds::<T>(&gpu, &c, &want, &small_leaves(tolerance, segments, particles, 16), &what);
        }
    }
}

#[test]
fn every_core_in_double_precision() {
    with_gpu("treecode::every_core_in_double_precision", &[], || every_core::<f64>(1e-4));
}

#[test]
fn every_core_in_single_precision() {
    with_gpu("treecode::every_core_in_single_precision", &[], || every_core::<f32>(1e-3));
}

/// Tolerances choose the degrees; leaves are small, so that there are four levels and five.
fn every_tolerance<T: Scalar>(tolerances: &[f64]) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for kind in [Kind::Particles, Kind::Charges] {
        let mut c = case("cube", kind, 3000, 2500, 1.0).rounded();
        c.particle_core.fill(0.0);
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        for tolerance in tolerances {
            let o = small_leaves(*tolerance, WFMM_REG_NONE, WFMM_REG_NONE, 8);
            holds::<T>(&gpu, &c, &want, &o, &format!("{kind:?}"));
            let mut plan = Plan::<T>::new(&gpu, &as_arrays::<T>(&o));
            fill(&mut plan, &c);
            let error = relative_l2(&field(&mut plan, &c), &want.main);
            assert!(error <= *tolerance, "{kind:?} {error:.1e} of {tolerance:.0e}: {}", plan.recipe());
            assert!(error >= 1e-4 * tolerance, "{kind:?} {error:.1e} of {tolerance:.0e} is too good for expansions");
            println!("error {kind:?} {} {tolerance:.0e}: {error:.1e} {}", T::NAME, plan.recipe());
        }
    }
}

#[test]
fn every_tolerance_in_double_precision() {
    with_gpu("treecode::every_tolerance_in_double_precision", &[], || {
        every_tolerance::<f64>(values(&[1e-1, 1e-3, 1e-6], &[1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]))
    });
}

#[test]
fn every_tolerance_in_single_precision() {
    with_gpu("treecode::every_tolerance_in_single_precision", &[], || {
        every_tolerance::<f32>(values(&[1e-1, 1e-3, 1e-4], &[1e-1, 1e-2, 1e-3, 3e-4, 1e-4]))
    });
}

/// Trees that are deep, of one cell, of more cells than were thought of.
fn every_distribution<T: Scalar>(tolerance: f64, unit: f64) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for (k, name) in DISTRIBUTIONS.iter().enumerate() {
        for (_, kind) in KINDS.into_iter().enumerate().filter(|(number, _)| takes(k + number, 4)) {
            let c = case(name, kind, 500 + 40 * k, 600, unit).rounded();
            let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
            let o = plan_options(WFMM_METHOD_TREECODE, tolerance);
            let (got, outcome) = evaluate::<T>(&gpu, &c, &o);
            let what = format!("{name} {kind:?} {}", outcome.recipe);
            assert_eq!(outcome.method, WFMM_METHOD_TREECODE, "{what}");
            close(&got, &want, tolerance, &what);
        }
    }
}

#[test]
fn every_distribution_in_double_precision() {
    with_gpu("treecode::every_distribution_in_double_precision", &[], || every_distribution::<f64>(1e-4, 1.0));
}

#[test]
fn every_distribution_in_single_precision() {
    with_gpu("treecode::every_distribution_in_single_precision", &[], || every_distribution::<f32>(1e-3, 1e3));
}

/// Few targets of many sources, many of few; near sources are summed in parts where leaves are few.
#[test]
fn lopsided_problems_are_right() {
    with_gpu("treecode::lopsided_problems_are_right", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for (kind, n, m) in [
            (Kind::Charges, 40_000, 30),
            (Kind::Charges, 30, 40_000),
            (Kind::Particles, 20_000, 5),
            (Kind::Particles, 1, 1),
            (Kind::Segments, 900, 2),
            (Kind::Both, 2, 900),
        ] {
            let mut c = case("cube", kind, n, m, 1.0).rounded();
            c.particle_core.fill(0.0);
            let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
            let o = small_leaves(1e-3, WFMM_REG_NONE, WFMM_REG_NONE, 0);
            holds::<f64>(&gpu, &c, &want, &o, &format!("{kind:?} {n} {m}"));
            holds::<f32>(&gpu, &c, &want, &o, &format!("{kind:?} {n} {m}"));
        }
    });
}

/// A plan that keeps what did not change is right after each step, and the second time has the same bits.
#[test]
fn what_is_kept_between_evaluations_is_right() {
    with_gpu("treecode::what_is_kept_between_evaluations_is_right", &[], || {
        for &kind in values(&[Kind::Both, Kind::Charges], &KINDS) {
            one_plan_through_changes(kind, &plan_options(WFMM_METHOD_TREECODE, 1e-4));
        }
    });
}

/// New targets of kept sources evaluate the kept multipoles, with gradients the second time, which other expansions are for.
#[test]
fn multipoles_are_kept_while_only_targets_change() {
    const NAME: &str = "treecode::multipoles_are_kept_while_only_targets_change";
    let text = with_gpu(NAME, &[("FAKE_CUDA_LOG", "/dev/stdout")], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        let mut c = case("cube", Kind::Particles, 5000, 3000, 1.0);
        let mut plan = Plan::<f64>::new(&gpu, &as_arrays::<f64>(&small_leaves(1e-3, 0, WFMM_REG_NONE, 16)));
        fill(&mut plan, &c);
        for round in 0..2 {
            c.targets = case("cube", Kind::Particles, 10 + round, 100 + 40 * round, 0.8).targets;
            println!("\ntargets {round}");
            plan.targets(&flat(&c.targets));
            let got = field(&mut plan, &c);
            let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
            assert!(relative_l2(&got, &want.main) <= 1e-3, "{round}: {}", plan.recipe());
            assert_eq!(plan.report().method, WFMM_METHOD_TREECODE);
        }
        let (mut u, mut g) = (vec![0.0; 3 * c.targets.len()], vec![0.0; 9 * c.targets.len()]);
        plan.velocity(&mut u, Some(&mut g));
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        assert!(relative_l2(&u, &want.main) <= 1e-3 && relative_l2(&g, &want.gradient) <= 3e-2);
    });
    if text.is_empty() {
        return; // the child
    }
    let rounds: Vec<&str> = text.split("\ntargets ").collect();
    assert_eq!(rounds.len(), 3, "{text}");
    let starts = |round: usize, kernel: &str| rounds[round].matches(&format!("\n{kernel}")).count();
    assert!(starts(0, "fmm_m2p_fields_velocity_f64") == 0, "nothing was evaluated then");
    assert!(starts(1, "fmm_m2p_fields_velocity_f64") > 0 && starts(1, "fmm_p2m") > 0, "{}", rounds[1]);
    assert!(starts(2, "fmm_m2p_velocity_f64") > 0 && starts(2, "fmm_m2p_write_velocity_f64") > 0, "{}", rounds[2]);
    assert!(starts(2, "fmm_m2p_fields_velocity_f64") == 0, "{}", rounds[2]);
    for kernel in ["fmm_m2l", "fmm_l2l", "fmm_l2p", "fmm_add_parts"] {
        assert!(!text.contains(&format!("\n{kernel}")), "{kernel} is no part of a treecode: {text}");
    }
}

#[test]
fn the_report_tells_of_the_treecode() {
    with_gpu("treecode::the_report_tells_of_the_treecode", &[], || {
        for session in [Session::gpu(), Session::auto()] {
            let c = case("cube", Kind::Both, 2000, 1500, 1.0);
            let mut plan = Plan::<f64>::new(&session, &as_arrays::<f64>(&plan_options(WFMM_METHOD_TREECODE, 1e-3)));
            fill(&mut plan, &c);
            field(&mut plan, &c);
            let (r, recipe) = (plan.report(), plan.recipe());
            assert_eq!((r.method, r.backend), (WFMM_METHOD_TREECODE, WFMM_BACKEND_CUDA), "{recipe}");
            assert!(recipe.starts_with("Treecode"), "{recipe}");
            for pass in [WFMM_PASS_P2M, WFMM_PASS_M2P] {
                assert!(r.seconds[pass as usize] > 0.0, "pass {pass} took no time");
            }
            for pass in [WFMM_PASS_M2L, WFMM_PASS_L2L, WFMM_PASS_L2P] {
                assert_eq!(r.seconds[pass as usize], 0.0, "pass {pass} is no part of a treecode");
            }
            assert!(r.order > 2 && r.near_pairs > 0 && r.estimated_error > 0.0 && r.estimated_error <= 1e-3);
            let e = plan.check(200, 5);
            assert!(e > 0.0 && e <= 1e-3, "{e:e}");
        }
    });
}

/// Beside their sources targets have a far field alone: the sample sees that it misses, and smaller budgets hold it.
#[test]
fn a_field_that_misses_its_tolerance_is_computed_again() {
    with_gpu("treecode::a_field_that_misses_its_tolerance_is_computed_again", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        let mut c = case("cube", Kind::Particles, 1500, 1200, 1.0);
        c.targets.iter_mut().for_each(|x| x[0] += 1.5);
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        let o = small_leaves(1e-3, WFMM_REG_NONE, WFMM_REG_NONE, 0);
        let (got, outcome) = evaluate::<f64>(&gpu, &c, &o);
        close(&got, &want, 1e-3, &outcome.recipe);
        assert!(outcome.method == WFMM_METHOD_TREECODE && outcome.recipe.contains("tightening"), "{}", outcome.recipe);
        // What no order reaches is summed directly.
        let o = small_leaves(1e-11, WFMM_REG_NONE, WFMM_REG_NONE, 8);
        let (got, outcome) = evaluate::<f64>(&gpu, &c, &o);
        close(&got, &want, 1e-11, &outcome.recipe);
        assert_eq!(outcome.method, WFMM_METHOD_DIRECT, "{}", outcome.recipe);
    });
}

/// No result depends on which thread is first, nor on which kernels made the trees.
#[test]
fn the_order_of_threads_changes_no_bit() {
    let o = plan_options(WFMM_METHOD_TREECODE, 1e-3);
    bits_in_any_order("treecode::the_order_of_threads_changes_no_bit", &o);
}
