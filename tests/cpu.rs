//! The CPU engine through the C functions: what is kept between calls, what is chosen, array types, ends of the range.
//!
//! Enters: small problems. Every answer is held against the direct sum of a plan of its own. No test looks at a clock: that
//! a pass was not repeated shows in its seconds, which are zero.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::{fill, name_of, options, oracle_difference, reference, regularizations, relative_l2};
use support::api::{Plan, Scalar, Session, flat, last_error, list};
use support::cases::{self, Case, DISTRIBUTIONS, Kind, Vec3, case};
use wakefmm::error::{WFMM_ERR_TOLERANCE, WFMM_ERR_VALUE};
use wakefmm::options::*;
use wakefmm::report::*;

const METHODS: [i32; 4] = [WFMM_METHOD_AUTO, WFMM_METHOD_DIRECT, WFMM_METHOD_FMM, WFMM_METHOD_TREECODE];

fn plan_options(method: i32, tolerance: f64) -> wfmm_plan_options {
    options(method, tolerance, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0)
}

fn wake(n: usize, m: usize) -> Case {
    case("helical wake", Kind::Both, n, m, 1.0)
}

fn velocity<T: Scalar>(plan: &mut Plan<T>, m: usize) -> Vec<f64> {
    let mut u = vec![T::of(f64::NAN); 3 * m];
    plan.velocity(&mut u, None);
    u.into_iter().map(T::f64).collect()
}

/// The exact sum, by a new plan.
fn exact(session: &Session, c: &Case) -> Vec<f64> {
    let mut plan = Plan::<f64>::new(session, &plan_options(WFMM_METHOD_DIRECT, 1e-10));
    fill(&mut plan, c);
    velocity(&mut plan, c.targets.len())
}

fn close(got: &[f64], want: &[f64], tolerance: f64) {
    let e = relative_l2(got, want);
    assert!(e <= tolerance, "{e:.2e} over {tolerance:.0e}");
}

#[test]
fn what_was_declined_leaves_nothing_old_behind() {
    let session = Session::cpu(2);
    let mut plan = Plan::<f64>::new(&session, &plan_options(WFMM_METHOD_AUTO, 1e-4));
    // Large, small, large with other positions, small with other strengths, large again: each declined call in between.
    let (mut large, mut small) = (wake(12_000, 12_000), wake(12_000, 12_000));
    small.targets.truncate(5);
    for (k, c) in [&mut large, &mut small].into_iter().enumerate() {
        c.targets.iter_mut().for_each(|x| x[0] += 1e-3 * k as f64);
    }
    for round in 0..3 {
        for c in [&mut large, &mut small] {
            c.points.iter_mut().for_each(|x| x[2] *= 1.0 + 0.01 * round as f64);
            c.circulation.iter_mut().for_each(|g| *g *= 1.5);
            fill(&mut plan, c);
            let got = velocity(&mut plan, c.targets.len());
            close(&got, &exact(&session, c), 1e-4);
        }
    }
    // Declined with new targets alone, then with new strengths alone.
    fill(&mut plan, &large);
    velocity(&mut plan, large.targets.len());
    assert_ne!(plan.report().method, WFMM_METHOD_DIRECT, "{}", plan.recipe());
    plan.targets(&flat(&small.targets));
    velocity(&mut plan, 5);
    assert_eq!(plan.report().method, WFMM_METHOD_DIRECT);
    large.circulation.iter_mut().for_each(|g| *g = -*g);
    plan.strengths(&large.circulation, &flat(&large.strength), &[]);
    velocity(&mut plan, 5);
    plan.targets(&flat(&large.targets));
    let got = velocity(&mut plan, large.targets.len());
    assert_ne!(plan.report().method, WFMM_METHOD_DIRECT, "{}", plan.recipe());
    close(&got, &exact(&session, &large), 1e-4);
}

/// Single arrays round what is returned, not parts of it that cancel.
#[test]
fn kinds_that_cancel_are_added_before_they_are_rounded() {
    let (session, c) = (Session::cpu(1), cases::cancelling(300, 200));
    let want = reference(&session, &c, WFMM_REG_NONE, WFMM_REG_NONE);
    for (method, tolerance) in METHODS.into_iter().flat_map(|method| [(method, 1e-2), (method, 1e-3)]) {
        let o = options(method, tolerance, WFMM_REG_NONE, WFMM_REG_NONE, 0);
        let (got, outcome) = support::accuracy::evaluate::<f32>(&session, &c, &o);
        println!("{}", outcome.recipe);
        close(&got.main, &want.main, tolerance);
        close(&got.gradient, &want.gradient, 30.0 * tolerance);
    }
}

#[test]
fn auto_sums_small_problems_directly_and_large_ones_by_expansions() {
    let session = Session::cpu(2);
    for (n, direct) in [(1, true), (150, true), (40_000, false)] {
        let c = case("cube", Kind::Particles, n, n, 1.0);
        let mut plan = Plan::<f64>::new(&session, &plan_options(WFMM_METHOD_AUTO, 1e-3));
        fill(&mut plan, &c);
        velocity(&mut plan, n);
        assert_eq!(plan.report().method == WFMM_METHOD_DIRECT, direct, "{n}: {}", plan.recipe());
        let names = if direct { &["Direct"][..] } else { &["FMM", "Treecode"] };
        assert!(names.iter().any(|name| plan.recipe().starts_with(name)), "{}", plan.recipe());
        assert!(plan.check(200, 7) <= 1e-3);
    }
}

#[test]
fn as_many_samples_as_targets_are_all_targets() {
    let session = Session::cpu(2);
    let c = wake(3000, 40);
    let want = exact(&session, &c);
    for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
        let o = wfmm_plan_options { precision: WFMM_PRECISION_F32, ..plan_options(method, 1e-3) };
        let mut plan = Plan::<f64>::new(&session, &o);
        fill(&mut plan, &c);
        let error = relative_l2(&velocity(&mut plan, 40), &want);
        let found = [(40, 1), (40, 2), (100_000, 3)].map(|(samples, seed)| plan.check(samples, seed));
        assert!(found[0] == found[1] && found[0] == found[2], "{method}: {found:?}");
        // Rounding to the caller's arrays and unit aside.
        assert!((found[0] - error).abs() <= 0.1 * error, "{method}: {:e} found, {error:e}", found[0]);
        assert_ne!(plan.check(39, 1), plan.check(39, 2));
    }
}

#[test]
fn new_strengths_keep_the_tree_and_new_targets_the_upward_pass() {
    let session = Session::cpu(2);
    for precision in [WFMM_PRECISION_F64, WFMM_PRECISION_F32] {
        let mut c = wake(9000, 9000);
        // Leaves of a given size: where they follow measured times, one run in many needs a higher order for the new targets.
        let o = wfmm_plan_options { precision, leaf_capacity: 60, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
        let mut plan = Plan::<f64>::new(&session, &o);
        fill(&mut plan, &c);
        velocity(&mut plan, c.targets.len());
        let seconds = |plan: &Plan<f64>, pass: usize| plan.report().seconds[pass];
        let first = [WFMM_PASS_TREE, WFMM_PASS_P2M, WFMM_PASS_M2M].map(|p| seconds(&plan, p as usize));
        assert!(first.iter().all(|&s| s > 0.0), "{first:?}");

        // The same orders serve for these targets, lower ones for those that are farther away; for the latter single
        // precision would take another origin, and so other multipoles.
        let distances = if precision == WFMM_PRECISION_F64 { &[0.003, 1.5][..] } else { &[0.003] };
        for distance in distances {
            c.targets.iter_mut().for_each(|x| x[2] += distance);
            plan.targets(&flat(&c.targets));
            close(&velocity(&mut plan, c.targets.len()), &exact(&session, &c), 1e-4);
            let upward = [WFMM_PASS_P2M, WFMM_PASS_M2M].map(|p| seconds(&plan, p as usize));
            assert_eq!(upward, [0.0; 2], "upward again, {}", plan.recipe());
        }

        c.circulation.iter_mut().enumerate().for_each(|(k, g)| *g *= 1.0 + (k % 7) as f64);
        c.strength.iter_mut().flatten().for_each(|a| *a *= -0.5);
        plan.strengths(&c.circulation, &flat(&c.strength), &[]);
        close(&velocity(&mut plan, c.targets.len()), &exact(&session, &c), 1e-4);
        assert_eq!(seconds(&plan, WFMM_PASS_TREE as usize), 0.0, "a new tree");
        assert!(seconds(&plan, WFMM_PASS_M2M as usize) > 0.0, "old multipoles");
    }
}

#[test]
fn a_check_of_new_targets_takes_their_own_expansions() {
    let session = Session::cpu(2);
    // As many elsewhere, then more, so that the old targets' expansions would be too few.
    for (n, m) in [(3000, 3000), (1000, 8000)] {
        let (old, mut new) = (case("cube", Kind::Particles, 6000, n, 1.0), case("cube", Kind::Particles, 6000, m, 1.0));
        new.targets.iter_mut().for_each(|x| *x = [x[2], 1.0 - x[0], x[1]]);
        for prepared in [false, true] {
            let o = wfmm_plan_options { leaf_capacity: 40, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
            let mut plan = Plan::<f64>::new(&session, &o);
            fill(&mut plan, &old);
            velocity(&mut plan, n);
            plan.targets(&flat(&new.targets));
            if prepared {
                plan.prepare();
            }
            let e = plan.check(200, 1);
            assert!(e > 0.0 && e <= 1e-4, "{n} then {m} targets, prepared {prepared}: {e:.1e}");
            close(&velocity(&mut plan, m), &exact(&session, &new), 1e-4);
        }
    }
}

/// Adds to what the arrays hold, in their precision; `precision` of the computing.
fn accumulates<T: Scalar>(session: &Session, method: i32, precision: i32, charges: bool) {
    let kind = if charges { Kind::Charges } else { Kind::Both };
    let c = case("cube", kind, 700, 400, 1.0).rounded();
    let (main, slopes) = if charges { (1, 3) } else { (3, 9) };
    let run = |flags: u64, old: f64| {
        let o = wfmm_plan_options { flags, precision, ..plan_options(method, 1e-4) };
        let mut plan = Plan::<T>::new(session, &o);
        fill(&mut plan, &c);
        let (mut u, mut g) = (vec![T::of(old); main * 400], vec![T::of(-old); slopes * 400]);
        if charges {
            plan.potential(&mut u, Some(&mut g))
        } else {
            plan.velocity(&mut u, Some(&mut g))
        }
        (u, g)
    };
    let (plain, sum) = (run(0, f64::NAN), run(WFMM_FLAG_ACCUMULATE, 1234.5));
    for (a, b, old) in [(&plain.0, &sum.0, 1234.5), (&plain.1, &sum.1, -1234.5)] {
        for (a, b) in a.iter().zip(b) {
            let last_digit = if T::NAME == "f32" { 1e-4 } else { 1e-12 };
            // Two plans' fields differ by what threads add in another order.
            let slack = last_digit * (1.0 + a.f64().abs() / 1e3) + 1e-6 * a.f64().abs();
            assert!(
                (b.f64() - (old + a.f64())).abs() <= slack,
                "{method} {precision} {}: {} + {old} gave {}",
                T::NAME,
                a.f64(),
                b.f64()
            );
        }
    }
}

#[test]
fn accumulate_adds_in_every_method_and_array_type() {
    let session = Session::cpu(2);
    for method in METHODS {
        for precision in [WFMM_PRECISION_ARRAYS, WFMM_PRECISION_F32, WFMM_PRECISION_F64] {
            for charges in [false, true] {
                accumulates::<f32>(&session, method, precision, charges);
                accumulates::<f64>(&session, method, precision, charges);
            }
        }
    }
}

/// Arrays of `T`, computed in `precision`, against the exact sum of what the arrays hold.
fn mixed<T: Scalar>(session: &Session, c: &Case, precision: i32, tolerance: f64) {
    for method in METHODS {
        let mut plan = Plan::<T>::new(session, &wfmm_plan_options { precision, ..plan_options(method, tolerance) });
        fill(&mut plan, c);
        let got = velocity(&mut plan, c.targets.len());
        // Below 1e-4 rounding in single precision may exceed the tolerance.
        let of_arrays = if size_of::<T>() == 4 { WFMM_PRECISION_F32 } else { WFMM_PRECISION_F64 };
        let asked = if precision == WFMM_PRECISION_ARRAYS { of_arrays } else { precision };
        let computed = if tolerance < 1e-4 { WFMM_PRECISION_F64 } else { asked };
        assert_eq!(plan.report().precision, computed);
        close(&got, &exact(session, c), tolerance);
        assert!(plan.check(100, 3) <= tolerance);
    }
}

#[test]
fn array_types_and_computing_precision_are_independent() {
    let session = Session::cpu(2);
    for name in ["helical wake", "64 clusters", "far source"] {
        let c = case(name, Kind::Both, 2000, 1500, 1.0);
        let rounded = c.clone().rounded();
        for tolerance in [1e-4, 1e-5] {
            mixed::<f64>(&session, &c, WFMM_PRECISION_F32, tolerance);
            mixed::<f32>(&session, &rounded, WFMM_PRECISION_F32, tolerance);
            mixed::<f32>(&session, &rounded, WFMM_PRECISION_ARRAYS, tolerance);
        }
        let c = rounded;
        // The answer is rounded to the array.
        mixed::<f32>(&session, &c, WFMM_PRECISION_F64, 1e-6);
        mixed::<f64>(&session, &c, WFMM_PRECISION_F64, 1e-9);
    }
}

/// Precision, recipe and field of double arrays in which nobody asked for a precision.
fn by_choice(session: &Session, c: &Case, o: &wfmm_plan_options) -> (i32, String, Vec<f64>, Vec<f64>) {
    let (mut plan, m) = (Plan::<f64>::new(session, o), c.targets.len());
    fill(&mut plan, c);
    let (mut u, mut g) = (vec![f64::NAN; 3 * m], vec![f64::NAN; 9 * m]);
    plan.velocity(&mut u, Some(&mut g));
    (plan.report().precision, plan.recipe(), u, g)
}

#[test]
fn velocities_of_double_arrays_are_in_single_precision_where_that_serves() {
    let session = Session::cpu(2);
    for name in ["helical wake", "64 clusters"] {
        let c = case(name, Kind::Both, 6000, 6000, 1.0);
        let want = reference(&session, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
        let single = plan_options(WFMM_METHOD_FMM, 1e-3);
        let others = [
            wfmm_plan_options { tolerance: 9e-5, ..single },
            wfmm_plan_options { precision: WFMM_PRECISION_F64, ..single },
            wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..single },
            wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..single },
        ];
        let treecode = wfmm_plan_options { method: WFMM_METHOD_TREECODE, ..single };
        for (k, o) in [single, treecode].iter().chain(&others).enumerate() {
            let (precision, recipe, u, g) = by_choice(&session, &c, o);
            assert_eq!(precision, if k < 2 { WFMM_PRECISION_F32 } else { WFMM_PRECISION_F64 }, "{recipe}");
            assert_eq!(recipe.contains("Of double arrays: single precision"), k < 2, "{recipe}");
            assert!(!recipe.contains("In double precision"), "{recipe}");
            close(&u, &want.main, o.tolerance);
            close(&g, &want.gradient, 30.0 * o.tolerance);
        }
    }
}

/// Below 1e-4 single precision serves particles without edges, in arrays of both kinds and where it is asked for.
#[test]
fn particles_are_in_single_precision_below_the_tolerances_of_segments() {
    let session = Session::cpu(2);
    let fmm = |tolerance: f64| plan_options(WFMM_METHOD_FMM, tolerance);
    let single = [fmm(1e-6), fmm(9e-5), wfmm_plan_options { precision: WFMM_PRECISION_F32, ..fmm(1e-5) }];
    let double = [
        fmm(9e-7),
        wfmm_plan_options { precision: WFMM_PRECISION_F64, ..fmm(1e-5) },
        wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..fmm(1e-5) },
        wfmm_plan_options { particle_regularization: WFMM_REG_POLYNOMIAL, ..fmm(1e-5) },
    ];
    for name in ["cube", "64 clusters"] {
        let c = case(name, Kind::Particles, 3000, 3000, 1.0);
        for (k, o) in single.iter().chain(&double).enumerate() {
            let want = reference(&session, &c, o.segment_regularization, o.particle_regularization);
            let (precision, recipe, u, g) = by_choice(&session, &c, o);
            assert_eq!(precision, if k < single.len() { WFMM_PRECISION_F32 } else { WFMM_PRECISION_F64 }, "{recipe}");
            close(&u, &want.main, o.tolerance);
            close(&g, &want.gradient, 30.0 * o.tolerance);
        }
        let wake = case(name, Kind::Both, 3000, 3000, 1.0);
        assert_eq!(by_choice(&session, &wake, &fmm(9e-5)).0, WFMM_PRECISION_F64);
        // Single arrays: the answer is rounded to them.
        let c = c.rounded();
        let mut plan = Plan::<f32>::new(&session, &fmm(1e-5));
        fill(&mut plan, &c);
        let mut u = vec![f32::NAN; 9000];
        plan.velocity(&mut u, None);
        assert_eq!(plan.report().precision, WFMM_PRECISION_F32, "{}", plan.recipe());
        let want = reference(&session, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
        close(&u.iter().map(|&v| v as f64).collect::<Vec<_>>(), &want.main, 1e-5);
    }
}

/// What is added to is added to once, whichever precision the field came from.
#[test]
fn a_field_that_single_precision_misses_is_in_double() {
    let session = Session::cpu(2);
    for (pairs, retries) in [(false, 0), (true, 1)] {
        let mut c = case("cube", Kind::Particles, 3000, 3000, 1.0);
        // Neighbours that leave 1e-7 of each other's fields, which are added in single precision.
        for k in (1..if pairs { 3000 } else { 0 }).step_by(2) {
            c.position[k] = c.position[k - 1].map(|x| x + 1e-7);
            c.strength[k] = c.strength[k - 1].map(|a| -a);
        }
        let want = reference(&session, &c, 0, 0);
        let flags = WFMM_FLAG_ACCUMULATE;
        let mut plan =
            Plan::<f64>::new(&session, &wfmm_plan_options { flags, ..options(WFMM_METHOD_FMM, 1e-3, 0, 0, 0) });
        // After a miss not at the next positions either.
        for step in 0..3 {
            fill(&mut plan, &c);
            let mut u = vec![1.0; 9000];
            plan.velocity(&mut u, None);
            let got: Vec<f64> = u.iter().map(|u| u - 1.0).collect();
            close(&got, &want.main, 1.1e-3);
            let report = plan.report();
            let precision = if pairs { WFMM_PRECISION_F64 } else { WFMM_PRECISION_F32 };
            assert_eq!(report.precision, precision, "{}", plan.recipe());
            assert_eq!(report.retries, if step == 0 { retries } else { 0 }, "{}", plan.recipe());
            assert!(plan.check(100, 1) <= 1e-3);
        }
    }
}

/// Closer than single precision could tell, and fields without cores that a direct sum gives sooner.
#[test]
fn double_arrays_are_in_double_precision_where_single_cannot_be() {
    let session = Session::cpu(2);
    let mut c = case("cube", Kind::Particles, 3000, 3000, 1.0);
    let fmm = options(WFMM_METHOD_FMM, 1e-3, 0, 0, 0);
    assert_eq!(by_choice(&session, &c, &fmm).0, WFMM_PRECISION_F32);
    c.targets[7] = c.position[5].map(|x| x + 1e-9);
    let (precision, recipe, u, _) = by_choice(&session, &c, &fmm);
    assert_eq!(precision, WFMM_PRECISION_F64, "{recipe}");
    close(&u, &reference(&session, &c, 0, 0).main, 1e-3);
    // Few targets: AUTO sums directly, in double precision.
    let mut few_targets = case("cube", Kind::Particles, 200_000, 30, 1.0);
    few_targets.position.truncate(200_000);
    let auto = options(WFMM_METHOD_AUTO, 1e-4, 0, 0, 0);
    let mut plan = Plan::<f64>::new(&session, &auto);
    fill(&mut plan, &few_targets);
    velocity(&mut plan, 30);
    let report = plan.report();
    assert_eq!((report.method, report.precision), (WFMM_METHOD_DIRECT, WFMM_PRECISION_F64), "{}", plan.recipe());
}

#[test]
fn nothing_and_one() {
    let session = Session::cpu(64);
    for method in METHODS {
        let mut plan = Plan::<f64>::new(&session, &plan_options(method, 1e-6));
        let target = [0.5, 0.25, 0.0, 1.0, 2.0, 3.0];
        plan.segments(&[], &[], &[], None);
        plan.particles(&[], &[], None);
        plan.targets(&target);
        assert_eq!(velocity(&mut plan, 2), [0.0; 6]);
        plan.targets(&[]);
        let mut untouched = [7.0; 3];
        plan.velocity(&mut untouched, None);
        assert_eq!(untouched, [7.0; 3]);
        assert_eq!(plan.check(10, 1), 0.0);

        plan.targets(&target[..3]);
        plan.segments(&[0.0, 0.0, -1.0, 0.0, 0.0, 1.0], &[0, 1], &[1.0], Some(&[0.5]));
        let one = velocity(&mut plan, 1);
        let want = exact(
            &session,
            &Case {
                points: vec![[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]],
                ends: vec![0, 1],
                circulation: vec![1.0],
                segment_core: vec![0.5],
                targets: vec![[0.5, 0.25, 0.0]],
                ..Case::default()
            },
        );
        close(&one, &want, 1e-6);
        // Removed again.
        plan.segments(&[], &[], &[], None);
        assert_eq!(velocity(&mut plan, 1), [0.0; 3]);
    }
}

#[test]
fn targets_may_be_the_sources() {
    let session = Session::cpu(3);
    let c = case("targets = sources", Kind::Both, 3000, 1, 1.0);
    for method in METHODS {
        let mut plan = Plan::<f64>::new(&session, &plan_options(method, 1e-6));
        fill(&mut plan, &c);
        close(&velocity(&mut plan, c.targets.len()), &exact(&session, &c), 1e-6);
    }
}

#[test]
fn more_threads_than_work() {
    let c = wake(40, 3);
    let want = exact(&Session::cpu(1), &c);
    let session = Session::cpu(64);
    for method in METHODS {
        let mut plan = Plan::<f64>::new(&session, &plan_options(method, 1e-6));
        fill(&mut plan, &c);
        close(&velocity(&mut plan, 3), &want, 1e-6);
    }
}

#[test]
fn results_scale_with_lengths_and_strengths() {
    let session = Session::cpu(2);
    let base = wake(3000, 2000);
    let want = exact(&session, &base);
    let times = |v: &mut Vec<Vec3>, f: f64| v.iter_mut().flatten().for_each(|x| *x *= f);
    for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM, WFMM_METHOD_TREECODE] {
        for (length, strength) in [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-30), (1.0, 1e30), (1e6, 1e-30), (1e-6, 1e30)] {
            let mut c = base.clone();
            times(&mut c.points, length);
            times(&mut c.position, length);
            times(&mut c.targets, length);
            times(&mut c.strength, length * strength);
            c.circulation.iter_mut().for_each(|g| *g *= strength);
            c.segment_core.iter_mut().chain(&mut c.particle_core).for_each(|r| *r *= length);
            let mut plan = Plan::<f64>::new(&session, &plan_options(method, 1e-6));
            fill(&mut plan, &c);
            let got = velocity(&mut plan, c.targets.len());
            assert_eq!(plan.report().method, method, "{length:e} {strength:e}");
            let scaled: Vec<f64> = got.iter().map(|u| u * length / strength).collect();
            close(&scaled, &want, 1e-6);
        }
    }
}

fn zero_strengths_give_zero<T: Scalar>(session: &Session) {
    for method in METHODS {
        let mut c = wake(9000, 6000);
        c.circulation.fill(0.0);
        c.strength.fill([0.0; 3]);
        let mut plan = Plan::<T>::new(session, &plan_options(method, 1e-4));
        fill(&mut plan, &c);
        let (mut u, mut g) = (vec![T::of(1.0); 3 * 6000], vec![T::of(1.0); 9 * 6000]);
        plan.velocity(&mut u, Some(&mut g));
        assert!(u.iter().chain(&g).all(|v| v.f64() == 0.0), "{method} {}", T::NAME);
        // And the same plan still knows what is not zero.
        c.circulation.fill(1.0);
        plan.strengths(&list(&c.circulation), &flat(&c.strength), &[]);
        close(&velocity(&mut plan, 6000), &exact(session, &c.clone()), if T::NAME == "f32" { 2e-4 } else { 1e-4 });
    }
}

#[test]
fn strengths_of_zero() {
    let session = Session::cpu(2);
    zero_strengths_give_zero::<f64>(&session);
    zero_strengths_give_zero::<f32>(&session);
}

#[test]
fn a_tolerance_below_the_precision_is_an_error_that_says_so() {
    let session = Session::cpu(1);
    let c = wake(30, 20);
    let refused = |o: &wfmm_plan_options, with: i32| {
        let status = match Plan::<f32>::try_new(&session, o) {
            Err(status) => status,
            Ok(mut plan) => {
                fill(&mut plan, &c);
                plan.try_velocity(&mut [0.0; 60])
            }
        };
        assert_eq!(status, with, "{}", last_error());
        assert!(last_error().contains("tolerance"), "{}", last_error());
    };
    refused(&plan_options(WFMM_METHOD_AUTO, 1e-6), WFMM_ERR_TOLERANCE);
    refused(
        &wfmm_plan_options { precision: WFMM_PRECISION_F32, ..plan_options(WFMM_METHOD_FMM, 1e-6) },
        WFMM_ERR_TOLERANCE,
    );
    refused(
        &wfmm_plan_options { precision: WFMM_PRECISION_F64, ..plan_options(WFMM_METHOD_FMM, 1e-12) },
        WFMM_ERR_TOLERANCE,
    );
    refused(&plan_options(WFMM_METHOD_DIRECT, 0.0), WFMM_ERR_VALUE);
    // The same number is enough for double precision.
    let mut plan = Plan::<f64>::new(&session, &plan_options(WFMM_METHOD_AUTO, 1e-6));
    fill(&mut plan, &c);
    assert_eq!(plan.try_velocity(&mut [0.0; 60]), 0);
}

#[test]
fn the_direct_sum_is_that_of_the_oracle_everywhere() {
    let session = Session::cpu(2);
    for name in DISTRIBUTIONS {
        for kind in [Kind::Segments, Kind::Particles, Kind::Both, Kind::Charges] {
            let c = case(name, kind, 200, 150, 1.0);
            for (segments, particles) in regularizations(kind) {
                let field = reference(&session, &c, segments, particles);
                let (main, gradient) = oracle_difference(&c, &field, segments, particles, 3);
                let what = format!("{name} {kind:?} {}/{}", name_of(segments), name_of(particles));
                assert!(main <= 1e-11 && gradient <= 1e-10, "{what}: {main:.1e} {gradient:.1e}");
            }
        }
    }
}
