//! Where the CPU engine's tolerance is hard to hold: orders by hand, lines, ends of the range of numbers.
//!
//! Enters: small problems through the C functions. Every answer is held against the direct sum of a plan of its own.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::{evaluate, fill, options, reference, relative_l2};
use support::api::{Plan, Scalar, Session, flat};
use support::cases::{Case, Kind, case};
use support::random::Random;
use wakefmm::options::*;

const GAUSS: i32 = WFMM_REG_GAUSS_ERF;

fn plan_options(method: i32, tolerance: f64) -> wfmm_plan_options {
    options(method, tolerance, WFMM_REG_VATISTAS, GAUSS, 0)
}

/// Particles on a line at `positions`, targets on them.
fn on_a_line(positions: &[f64], core: f64, strength: impl FnMut(usize) -> [f64; 3]) -> Case {
    let position: Vec<[f64; 3]> = positions.iter().map(|&x| [x, 0.25, 0.25]).collect();
    Case {
        targets: position.clone(),
        strength: (0..positions.len()).map(strength).collect(),
        particle_core: vec![core; positions.len()],
        position,
        ..Case::default()
    }
}

#[test]
fn a_higher_order_by_hand_brings_no_pairs_closer() {
    let session = Session::cpu(2);
    let mut r = Random::new(5);
    let positions: Vec<f64> = (0..4000).map(|_| r.unit()).collect();
    let c = on_a_line(&positions, 0.02, |_| std::array::from_fn(|_| 2.0 * r.unit() - 1.0));
    let want = reference(&session, &c, 0, GAUSS);
    for order in [4, 8, 12, 20, 30, 40] {
        let o = wfmm_plan_options { order, ..plan_options(WFMM_METHOD_FMM, 1e-3) };
        let (got, outcome) = evaluate::<f64>(&session, &c, &o);
        let e = relative_l2(&got.main, &want.main);
        assert!(e <= 1e-3, "order {order}: {e:.1e}; {}", outcome.recipe);
        assert_eq!(outcome.method, WFMM_METHOD_FMM, "order {order}; {}", outcome.recipe);
    }
}

#[test]
fn rows_of_like_particles_hold_the_tolerance() {
    let session = Session::cpu(2);
    for n in [3000, 12_000] {
        let positions: Vec<f64> = (0..n).map(|k| k as f64 / n as f64).collect();
        for width in [0.0, 2.0] {
            let mut c = on_a_line(&positions, width / n as f64, |_| [0.0, 1.0, 0.0]);
            // On the particles, then between them.
            for (seed, shift) in [(1, 0.0), (2, 1.0), (3, 1.0)] {
                let mut r = Random::new(seed);
                c.targets.iter_mut().zip(&c.position).for_each(|(x, p)| x[0] = p[0] + shift * (r.unit() - p[0]));
                let want = reference(&session, &c, 0, GAUSS);
                for tolerance in [1e-2, 1e-3, 1e-4] {
                    let (got, outcome) = evaluate::<f64>(&session, &c, &plan_options(WFMM_METHOD_FMM, tolerance));
                    let e = relative_l2(&got.main, &want.main);
                    let what = format!("{n} of width {width}, shift {shift}, seed {seed}");
                    assert!(e <= tolerance, "{e:.1e} of {tolerance:.0e}, {what}: {}", outcome.recipe);
                }
            }
        }
    }
}

/// Strengths along a ring and targets on it: each contribution is small beside strength over distance, so that the digits of
/// single precision are too few.
#[test]
fn direct_sums_in_single_precision_give_way_where_digits_are_lost() {
    let session = Session::cpu(2);
    let (n, m) = (500, 600);
    let at = |k: f64, count: usize| {
        let angle = std::f64::consts::TAU * k / count as f64;
        [angle.cos(), angle.sin(), 0.0]
    };
    let position: Vec<[f64; 3]> = (0..n).map(|k| at(k as f64, n)).collect();
    let c = Case {
        strength: position.iter().map(|p| [-p[1], p[0], 0.0]).collect(),
        particle_core: vec![0.0; n],
        // Some of them close to a particle.
        targets: (0..m).map(|k| at((k % n) as f64 + 2e-5 + 1e-4 * (k / n) as f64, n)).collect(),
        position,
        ..Case::default()
    };
    let want = reference(&session, &c, 0, GAUSS);
    for (precision, tolerance) in [(WFMM_PRECISION_F32, 1e-4), (WFMM_PRECISION_F64, 1e-10)] {
        let o = wfmm_plan_options { precision, ..plan_options(WFMM_METHOD_DIRECT, tolerance) };
        let (got, outcome) = evaluate::<f64>(&session, &c, &o);
        let e = relative_l2(&got.main, &want.main);
        assert!(e <= tolerance, "{e:.1e} of {tolerance:.0e}: {}", outcome.recipe);
        let gave_way = outcome.recipe.contains("single precision missed");
        assert_eq!(gave_way, precision == WFMM_PRECISION_F32, "{}", outcome.recipe);
        // `check` measures the field that was written.
        let mut plan = Plan::<f64>::new(&session, &o);
        fill(&mut plan, &c);
        plan.velocity(&mut vec![0.0; 3 * m], None);
        let found = plan.check(m as i64, 1);
        assert!(found <= tolerance, "check: {found:.1e} of {tolerance:.0e}");
    }
}

#[test]
fn strengths_whose_squares_overflow_or_vanish_hold_the_tolerance() {
    let session = Session::cpu(2);
    for kind in [Kind::Particles, Kind::Charges] {
        let base = case("cube", kind, 3000, 3000, 1.0);
        let want = reference(&session, &base, 0, 0);
        for size in [1e152, 1e160, 1e-170] {
            let mut c = base.clone();
            c.strength.iter_mut().flatten().chain(&mut c.charge).for_each(|a| *a *= size);
            let o = options(WFMM_METHOD_FMM, 1e-8, 0, 0, 0);
            let (got, outcome) = evaluate::<f64>(&session, &c, &o);
            let got: Vec<f64> = got.main.iter().map(|u| u / size).collect();
            let e = relative_l2(&got, &want.main);
            assert!(e <= 1e-8, "{kind:?} {size:e}: {e:.1e}; {}", outcome.recipe);
            let mut plan = Plan::<f64>::new(&session, &o);
            fill(&mut plan, &c);
            let e = plan.check(100, 1);
            assert!(e > 0.0 && e <= 1e-8, "{kind:?} {size:e}: check {e:e}");
        }
    }
}

/// Charges at lengths and with strengths times 2^`exponent`: potentials stay, gradients are divided by it.
fn scaled<T: Scalar>(session: &Session, method: i32, exponent: i32) {
    let base = case("cube", Kind::Charges, 3000, 3000, 1.0).rounded();
    let want = reference(session, &base, 0, 0);
    // In two steps, because 2^1026 is no number.
    let length = 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    let mut c = base;
    c.charge_position.iter_mut().chain(&mut c.targets).flatten().chain(&mut c.charge).for_each(|x| *x *= length);
    let (got, outcome) = evaluate::<T>(session, &c, &plan_options(method, 1e-4));
    let what = format!("{} 2^{exponent}: {}", T::NAME, outcome.recipe);
    let e = relative_l2(&got.main, &want.main);
    assert!(e <= 1e-4, "{e:.1e}, {what}");
    // Beyond, the gradient is no number.
    if exponent > -1023 {
        let e = relative_l2(&got.gradient.iter().map(|g| g * length).collect::<Vec<f64>>(), &want.gradient);
        assert!(e <= 3e-3, "gradient {e:.1e}, {what}");
    }
}

/// Strengths that single precision has no numbers for, in double arrays, where single precision is asked for: set at first and later.
#[test]
fn strengths_beyond_single_precision_are_summed_in_double() {
    let session = Session::cpu(2);
    for (kind, n) in [(Kind::Particles, 300), (Kind::Segments, 300), (Kind::Charges, 300), (Kind::Particles, 3000)] {
        let base = case("cube", kind, n, n, 1.0);
        let want = reference(&session, &base, WFMM_REG_VATISTAS, GAUSS).main;
        for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
            let o = wfmm_plan_options { precision: WFMM_PRECISION_F32, ..plan_options(method, 1e-3) };
            let mut plan = Plan::<f64>::new(&session, &o);
            fill(&mut plan, &base);
            for size in [1.0, 1e-170, 1e-40, 1e40, 1e160] {
                let circulation: Vec<f64> = base.circulation.iter().map(|g| g * size).collect();
                let strength: Vec<f64> = base.strength.iter().flatten().map(|a| a * size).collect();
                let charge: Vec<f64> = base.charge.iter().map(|q| q * size).collect();
                plan.strengths(&circulation, &strength, &charge);
                let mut got = vec![0.0; want.len()];
                match kind {
                    Kind::Charges => plan.potential(&mut got, None),
                    _ => plan.velocity(&mut got, None),
                }
                got.iter_mut().for_each(|u| *u /= size);
                let e = relative_l2(&got, &want);
                assert!(e <= 1e-3, "{kind:?} {n} {method} {size:e}: {e:.1e}; {}", plan.recipe());
            }
        }
    }
}

#[test]
fn gradients_hold_in_any_unit_of_length() {
    let session = Session::cpu(2);
    for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
        [-83, 83].into_iter().for_each(|exponent| scaled::<f32>(&session, method, exponent));
        [-1026, -660, 660].into_iter().for_each(|exponent| scaled::<f64>(&session, method, exponent));
    }
}

/// A cloud so small and so far from zero that the middle of a segment, rounded to a number, is a millionth of the cloud beside it.
#[test]
fn segments_far_from_zero_keep_the_digits_of_their_ends() {
    let session = Session::cpu(2);
    let mut c = case("cube", Kind::Segments, 3000, 3000, 1.0);
    c.points.iter_mut().chain(&mut c.targets).flatten().for_each(|x| *x = 1.0 + 1e-10 * *x);
    c.segment_core.iter_mut().for_each(|r| *r = 0.0);
    let want = reference(&session, &c, 0, 0);
    let (got, outcome) = evaluate::<f64>(&session, &c, &options(WFMM_METHOD_FMM, 1e-8, 0, 0, 0));
    let e = relative_l2(&got.main, &want.main);
    assert!(e <= 1e-8, "{e:.1e}: {}", outcome.recipe);
    assert!(outcome.recipe.starts_with("FMM") && !outcome.recipe.contains("retries"), "{}", outcome.recipe);
}

/// Targets in the middles of bare segments, as codes with straight elements have them: the middle of two points, rounded, is up to a last
/// digit off the line, where the field has any size. It counts as on the line, and the other targets keep their tolerance.
#[test]
fn rounded_middles_of_bare_segments_are_on_their_lines() {
    let session = Session::cpu(2);
    let middles = 300;
    for (offset, seed) in [(0.0, 1), (1e4, 2)] {
        let mut c = case("cube", Kind::Segments, 3000, 1500, 1.0);
        c.segment_core.iter_mut().for_each(|r| *r = 0.0);
        c.points.iter_mut().chain(&mut c.targets).flatten().for_each(|x| *x += offset);
        let mut r = Random::new(seed);
        for _ in 0..middles {
            let k = (r.unit() * 3000.0) as usize;
            let [a, b] = [c.points[c.ends[2 * k] as usize], c.points[c.ends[2 * k + 1] as usize]];
            c.targets.push(std::array::from_fn(|i| 0.5 * (a[i] + b[i])));
        }
        let want = reference(&session, &c, 0, 0);
        let field = |range: std::ops::Range<usize>, v: &[f64]| v[3 * range.start..3 * range.end].to_vec();
        let (others, at_middles) = (0..1500, 1500..1500 + middles);
        let size = |v: &[f64]| v.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let largest = size(&field(at_middles.clone(), &want.main)) / size(&field(others.clone(), &want.main));
        assert!(largest < 100.0, "offset {offset}: {largest:.1e} times the largest field elsewhere");
        for (method, precision) in [
            (WFMM_METHOD_FMM, WFMM_PRECISION_ARRAYS),
            (WFMM_METHOD_FMM, WFMM_PRECISION_F64),
            (WFMM_METHOD_TREECODE, WFMM_PRECISION_F64),
        ] {
            let o = wfmm_plan_options { precision, ..options(method, 1e-4, 0, 0, 0) };
            let (got, outcome) = evaluate::<f64>(&session, &c, &o);
            for part in [others.clone(), at_middles.clone()] {
                let e = relative_l2(&field(part.clone(), &got.main), &field(part.clone(), &want.main));
                assert!(e <= 2e-4, "offset {offset}, targets {part:?}: {e:.1e}; {}", outcome.recipe);
            }
        }
    }
}

/// Straight filaments whose nodes are the targets: each is exactly on the line of all other segments of its filament. An expansion has a
/// gradient there, which cores take away.
#[test]
fn nodes_of_straight_filaments_have_the_gradient_of_cores() {
    let (session, mut r) = (Session::cpu(2), Random::new(71));
    let mut c = Case::default();
    for filament in 0..400 {
        let at = [filament % 20, filament / 20].map(|k| f64::from(k) / 16.0);
        for k in 0..=40 {
            c.points.push([f64::from(k) / 32.0, at[0], at[1]]);
            if k > 0 {
                let n = c.points.len() as i32;
                c.ends.extend([n - 2, n - 1]);
                c.circulation.push(r.unit() - 0.5);
                c.segment_core.push(0.02);
            }
        }
    }
    c.targets = c.points.clone();
    let regularization = WFMM_REG_LAMB_OSEEN;
    let want = reference(&session, &c, regularization, 0);
    for method in [WFMM_METHOD_FMM, WFMM_METHOD_TREECODE] {
        for precision in [WFMM_PRECISION_F64, WFMM_PRECISION_F32] {
            let tolerance = if precision == WFMM_PRECISION_F64 { 1e-6 } else { 1e-4 };
            let o = wfmm_plan_options { precision, ..options(method, tolerance, regularization, 0, 0) };
            let (got, outcome) = evaluate::<f64>(&session, &c, &o);
            let (u, g) = (relative_l2(&got.main, &want.main), relative_l2(&got.gradient, &want.gradient));
            assert!(u <= tolerance && g <= 30.0 * tolerance, "{u:.1e}, {g:.1e}: {}", outcome.recipe);
            assert!(!outcome.recipe.starts_with("Direct"), "{}", outcome.recipe);
        }
    }
}

#[test]
fn targets_that_leave_the_box_are_in_the_range_of_single_precision() {
    let session = Session::cpu(2);
    // Some segments without a core: theirs are the largest numbers.
    let mut c = case("cube", Kind::Segments, 2000, 2000, 1.0).rounded();
    c.segment_core.iter_mut().enumerate().for_each(|(k, r)| *r = (k % 2) as f64 * 0.02);
    for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
        let mut plan = Plan::<f32>::new(&session, &plan_options(method, 1e-4));
        fill(&mut plan, &c);
        let mut u = vec![0.0; 6000];
        plan.velocity(&mut u, None);
        let mut moved = c.clone();
        moved.targets.iter_mut().flatten().for_each(|x| *x += 2.0);
        plan.targets(&flat(&moved.targets));
        plan.velocity(&mut u, None);
        let want = reference(&session, &moved.rounded(), WFMM_REG_VATISTAS, 0);
        let e = relative_l2(&u.iter().map(|&u| u as f64).collect::<Vec<f64>>(), &want.main);
        assert!(e <= 1e-4, "{e:.1e}, {}", plan.recipe());
    }
}

/// Few targets are summed directly, since they are few or since single precision has too few digits for one of them. The sources of that
/// sum are told to the far field of a later one.
#[test]
fn a_direct_sum_in_between_leaves_no_older_trees() {
    let (session, mut r) = (Session::cpu(2), Random::new(11));
    let mut points = |n: usize| (0..n).map(|_| std::array::from_fn(|_| r.unit())).collect::<Vec<[f64; 3]>>();
    let (first, second, strength, mut targets) = (points(40_000), points(36_000), points(40_000), points(40_000));
    let beside = |sources: &[[f64; 3]]| std::array::from_fn(|i| sources[0][i] + if i == 0 { 1e-9 } else { 0.0 });
    let mut plan = Plan::<f64>::new(&session, &plan_options(WFMM_METHOD_AUTO, 1e-3));
    let field = |plan: &mut Plan<f64>, targets: &[[f64; 3]]| {
        let mut u = vec![0.0; 3 * targets.len()];
        plan.targets(&flat(targets));
        plan.velocity(&mut u, None);
        u
    };
    plan.particles(&flat(&first), &flat(&strength), None);
    targets[0] = beside(&first);
    field(&mut plan, &targets);
    plan.particles(&flat(&second), &flat(&strength[..second.len()]), None);
    field(&mut plan, &targets[100..225]);
    targets[0] = beside(&second);
    let got = field(&mut plan, &targets);
    assert_eq!(plan.report().method, WFMM_METHOD_FMM, "{}", plan.recipe());
    let mut fresh = Plan::<f64>::new(&session, &plan_options(WFMM_METHOD_DIRECT, 1e-3));
    fresh.particles(&flat(&second), &flat(&strength[..second.len()]), None);
    let e = relative_l2(&got, &field(&mut fresh, &targets));
    assert!(e <= 1e-3, "{e:.1e}: {}", plan.recipe());
}

#[test]
fn nothing_to_sum_has_an_empty_report_and_charges_alone_are_checked() {
    let (session, c) = (Session::cpu(1), case("cube", Kind::Particles, 3000, 3000, 1.0));
    let mut plan = Plan::<f64>::new(&session, &plan_options(WFMM_METHOD_FMM, 1e-3));
    fill(&mut plan, &c);
    let mut u = vec![1.0; 9000];
    plan.velocity(&mut u, None);
    assert!(plan.report().near_pairs > 0 && plan.report().estimated_error > 0.0);
    plan.particles(&[], &[], None);
    plan.velocity(&mut u, None);
    let report = plan.report();
    assert!(u.iter().all(|&u| u == 0.0) && report.host_bytes > 0);
    assert_eq!((report.method, report.near_pairs, report.estimated_error), (0, 0, 0.0));
    let charges: Vec<f64> = c.strength.iter().map(|a| a[0]).collect();
    plan.charges(&flat(&c.position), &charges);
    assert!(plan.check(100, 1) > 0.0, "the potential of charges, with particles of which there are none");
}
