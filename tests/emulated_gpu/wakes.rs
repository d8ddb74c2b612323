//! What real wakes have and clouds have not: targets that are the ends of bare segments, points that crowd towards one point over many
//! decades, cores that matter here and there. Every target is compared.

use super::*;
use std::f64::consts::TAU;
use support::accuracy::evaluate;

/// Three bladed lattice of straight vortices whose targets are their ends; cores grow down the wake.
fn lattice(rows: usize) -> Case {
    let (span, blades) = (6, 3);
    let mut c = Case::default();
    for b in 0..blades {
        for j in 0..=rows {
            for i in 0..=span {
                let angle = TAU * (j as f64 / 36.0 + b as f64 / 3.0);
                let r =
                    63.0 * (0.1 + 0.9 * i as f64 / span as f64) * (1.0 + 0.15 * (1.0 - (-(j as f64) / 200.0).exp()));
                c.points.push([r * angle.cos(), r * angle.sin(), 90.0 + 1.5 * j as f64]);
                let (k, core) = ((c.points.len() - 1) as i32, 0.5 * (1.0 + 0.05 * j as f64).sqrt());
                let mut add = |to: i32, circulation: f64| {
                    c.ends.extend([k, to]);
                    c.circulation.push(circulation);
                    c.segment_core.push(core);
                };
                if i < span {
                    add(k + 1, 5.0 * (0.3 * j as f64 + i as f64).sin());
                }
                if j < rows {
                    add(
                        k + span + 1,
                        if i == 0 {
                            -80.0
                        } else if i == span {
                            80.0
                        } else {
                            4.0 * (i as f64).cos()
                        },
                    );
                }
            }
        }
    }
    c.targets.clone_from(&c.points);
    c
}

/// Velocities by the FMM: within the tolerance at once, at all targets together.
fn holds<T: Scalar>(c: &Case, segments: i32, tolerance: f64) {
    let mut plan = Plan::<T>::new(
        &Session::gpu(),
        &as_arrays::<T>(&options(WFMM_METHOD_FMM, tolerance, segments, WFMM_REG_NONE, 0)),
    );
    fill(&mut plan, c);
    let got = field(&mut plan, c);
    let want = reference(&Session::cpu(1), c, segments, WFMM_REG_NONE);
    let (error, report) = (relative_l2(&got, &want.main), plan.report());
    let what = format!("{} {} {tolerance:.0e}: {error:.1e}, {}", T::NAME, name_of(segments), plan.recipe());
    assert!(error <= tolerance, "{what}");
    assert_eq!((report.method, report.retries), (WFMM_METHOD_FMM, 0), "{what}");
    let estimate = report.estimated_error;
    assert!(estimate > 0.2 * error && estimate <= tolerance, "{what}: estimated {estimate:.1e}");
}

/// A target that is an end of a bare segment gets nothing of it, in the near field as in the sums that judge it.
#[test]
fn ends_of_bare_segments_are_ends_in_the_near_field() {
    with_gpu("wakes::ends_of_bare_segments_are_ends_in_the_near_field", &[], || {
        let mut c = lattice(24);
        holds::<f64>(&c, WFMM_REG_NONE, 1e-4);
        holds::<f64>(&c, WFMM_REG_NONE, 1e-6);
        // Far from the origin of the coordinates, too.
        c.points.iter_mut().chain(&mut c.targets).flatten().for_each(|x| *x += 1234.5);
        holds::<f64>(&c, WFMM_REG_NONE, 1e-4);
        let c = c.rounded();
        holds::<f32>(&c, WFMM_REG_NONE, 1e-4);
    });
}

/// Corrections of cores are left out by what they are to the field as a whole.
#[test]
fn corrections_that_do_not_count_are_left_out() {
    with_gpu("wakes::corrections_that_do_not_count_are_left_out", &[], || {
        let c = lattice(24).rounded();
        for regularization in [WFMM_REG_VATISTAS, WFMM_REG_LAMB_OSEEN, WFMM_REG_SCULLY] {
            for tolerance in [1e-2, 1e-4] {
                holds::<f64>(&c, regularization, tolerance);
                holds::<f32>(&c, regularization, tolerance);
            }
        }
    });
}

/// Half of the points in a unit cube, half from there down to a millionth of a millionth of it.
fn crowd(kind: Kind, decades: f64) -> Case {
    let mut c = case("cube", kind, 900, 800, 1.0);
    c.particle_core.fill(0.0);
    let crowd = |x: &mut Vec<[f64; 3]>| {
        for (k, x) in x.iter_mut().enumerate().filter(|(k, _)| k % 2 == 0) {
            let scale = 10f64.powf(-decades * (k as f64 * 0.618_033_988_75).fract());
            x.iter_mut().for_each(|x| *x *= scale);
        }
    };
    [&mut c.position, &mut c.charge_position, &mut c.targets].into_iter().for_each(crowd);
    c
}

/// Differences of near points are those of the caller's numbers: in double precision to all their digits, in single to those of the
/// distance, not of the box.
#[test]
fn points_that_crowd_keep_their_digits() {
    with_gpu("wakes::points_that_crowd_keep_their_digits", &[], || {
        for kind in [Kind::Particles, Kind::Charges] {
            for (decades, is_f64) in [(12.0, true), (4.0, false)] {
                let c = crowd(kind, decades);
                let c = if is_f64 { c } else { c.rounded() };
                let want = reference(&Session::cpu(1), &c, WFMM_REG_NONE, WFMM_REG_NONE);
                let o = options(WFMM_METHOD_FMM, 1e-4, WFMM_REG_NONE, WFMM_REG_NONE, 0);
                let (got, outcome) = if is_f64 {
                    evaluate::<f64>(&Session::gpu(), &c, &o)
                } else {
                    evaluate::<f32>(&Session::gpu(), &c, &o)
                };
                let what = format!("{kind:?} over {decades} decades, {}", outcome.recipe);
                close(&got, &want, 1e-4, &what);
            }
        }
    });
}

/// Targets that are on no line.
const ANYWHERE: usize = 6000;

/// Many short segments and some as long as the domain; targets anywhere, on middles, quarters and ends of the long ones, and beside them.
fn short_and_long(short: usize, long: usize) -> Case {
    let mut r = Random::new(7);
    let mut c = Case::default();
    for k in 0..short + long {
        let from: [f64; 3] = std::array::from_fn(|_| r.unit());
        let length = if k < short { 0.02 } else { 0.4 + r.unit() };
        let to = std::array::from_fn(|i| from[i] + length * (r.unit() - 0.5));
        c.ends.extend([c.points.len() as i32, c.points.len() as i32 + 1]);
        c.points.extend([from, to]);
        c.circulation.push(r.unit() - 0.5);
        c.segment_core.push(0.004 * (1.0 + 3.0 * r.unit()));
    }
    c.targets = (0..ANYWHERE).map(|_| std::array::from_fn(|_| r.unit())).collect();
    for k in short..short + long / 4 {
        let [a, b] = [c.points[2 * k], c.points[2 * k + 1]];
        let at = |share: f64| -> [f64; 3] { std::array::from_fn(|i| a[i] + share * (b[i] - a[i])) };
        c.targets.extend([a, b, at(0.25), at(0.75), std::array::from_fn(|i| 0.5 * (a[i] + b[i]))]);
        c.targets.push(at(0.3).map(|x| x + 1e-3));
    }
    c
}

/// Long segments among short ones are cut: few pairs are near, and the field is that of the whole segments, on their lines too, after
/// new strengths and new targets as well.
#[test]
fn long_segments_are_cut_and_their_field_is_the_same() {
    let settings = [("FAKE_CUDA_SHARED", "65536")]; // trees of few points are made by kernels that take segments whole
    with_gpu("wakes::long_segments_are_cut_and_their_field_is_the_same", &settings, || {
        let mut c = short_and_long(10_800, 120).rounded();
        let gpu = Session::gpu();
        let cases = [(WFMM_REG_NONE, 1e-6), (WFMM_REG_VATISTAS, 1e-4)];
        for &(regularization, tolerance) in values(&cases[..1], &cases) {
            let o = options(WFMM_METHOD_FMM, tolerance, regularization, WFMM_REG_NONE, 0);
            let mut plan = Plan::<f64>::new(&gpu, &as_arrays::<f64>(&o));
            fill(&mut plan, &c);
            for round in 0..3 {
                if round == 1 {
                    c.circulation.iter_mut().for_each(|g| *g = 0.3 - 2.0 * *g);
                    plan.strengths(&c.circulation, &[], &[]);
                } else if round == 2 {
                    c.targets.iter_mut().take(3000).for_each(|x| *x = x.map(|x| 1.0 - x));
                    plan.targets(&flat(&c.targets));
                }
                let got = field(&mut plan, &c);
                let want = reference(&Session::cpu(1), &c, regularization, WFMM_REG_NONE);
                let (error, report) = (relative_l2(&got, &want.main), plan.report());
                let what = format!("{} round {round}: {error:.1e}, {}", name_of(regularization), plan.recipe());
                assert!(error <= tolerance, "{what}");
                // Beside lines the field is so large that errors elsewhere are not seen.
                let elsewhere = relative_l2(&got[..3 * ANYWHERE], &want.main[..3 * ANYWHERE]);
                assert!(elsewhere <= 1e-3, "{what}, {elsewhere:.1e}");
                assert_eq!((report.method, report.retries), (WFMM_METHOD_FMM, 0), "{what}");
                let share = report.near_pairs as f64 / (c.circulation.len() * c.targets.len()) as f64;
                assert!(share < 0.6, "{what}: {share:.2} of all pairs");
            }
            let single = options(WFMM_METHOD_FMM, 1e-4, regularization, WFMM_REG_NONE, 0);
            let mut plan = Plan::<f32>::new(&gpu, &single);
            fill(&mut plan, &c);
            let got = field(&mut plan, &c);
            let want = reference(&Session::cpu(1), &c, regularization, WFMM_REG_NONE);
            let (error, report) = (relative_l2(&got, &want.main), plan.report());
            assert!(error <= 1e-4, "single {}: {error:.1e}, {}", name_of(regularization), plan.recipe());
            assert_eq!(report.precision, WFMM_PRECISION_F32, "{}", plan.recipe());
        }
    });
}

/// Straight filaments whose nodes are the targets: each is exactly on the line of all other segments of its filament. An expansion has a
/// gradient there, which cores take away.
fn straight_filaments<T: Scalar>(tolerance: f64, turn: usize) {
    let mut r = Random::new(71);
    let mut c = Case::default();
    for filament in 0..100 {
        let at = [filament % 10, filament / 10].map(|k| f64::from(k) / 8.0);
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
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    let want = reference(&cpu, &c, WFMM_REG_LAMB_OSEEN, WFMM_REG_NONE);
    let methods = [WFMM_METHOD_FMM, WFMM_METHOD_TREECODE].into_iter().enumerate();
    for (_, method) in methods.filter(|(number, _)| takes(turn + number, 2)) {
        let o = options(method, tolerance, WFMM_REG_LAMB_OSEEN, WFMM_REG_NONE, 20);
        let (got, outcome) = evaluate::<T>(&gpu, &c, &as_arrays::<T>(&o));
        close(&got, &want, tolerance, &outcome.recipe);
        assert!(!outcome.recipe.starts_with("Direct"), "{}", outcome.recipe);
    }
}

#[test]
fn nodes_of_straight_filaments_have_the_gradient_of_cores() {
    with_gpu("wakes::nodes_of_straight_filaments_have_the_gradient_of_cores", &[], || {
        straight_filaments::<f64>(1e-4, 0);
        straight_filaments::<f32>(1e-3, 1);
    });
}

/// Nothing but segments as long as the last digit of their positions: as far away as targets are, no direction to them can be told from
/// that of the segment in ordinary products.
#[test]
fn segments_as_long_as_the_last_digit_have_a_field() {
    with_gpu("wakes::segments_as_long_as_the_last_digit_have_a_field", &[], || {
        let mut r = Random::new(52);
        let mut c = Case::default();
        for k in 0..7 {
            let from: [f64; 3] = std::array::from_fn(|_| 0.5 + 0.4 * r.unit());
            let to = std::array::from_fn(|i| from[i] + f64::EPSILON * f64::from(i == k % 3));
            c.ends.extend([2 * k as i32, 2 * k as i32 + 1]);
            c.points.extend([from, to]);
            c.circulation.push(1e15 * (0.5 + r.unit()));
            c.segment_core.push(1e-3);
        }
        c.targets = (0..400).map(|_| std::array::from_fn(|_| r.unit())).collect();
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for (regularization, method) in [
            (WFMM_REG_NONE, WFMM_METHOD_DIRECT),
            (WFMM_REG_VATISTAS, WFMM_METHOD_DIRECT),
            (WFMM_REG_LAMB_OSEEN, WFMM_METHOD_FMM),
            (WFMM_REG_NONE, WFMM_METHOD_FMM),
        ] {
            let o = options(method, 1e-6, regularization, WFMM_REG_NONE, 0);
            let (got, outcome) = evaluate::<f64>(&gpu, &c, &as_arrays::<f64>(&o));
            let want = reference(&cpu, &c, regularization, WFMM_REG_NONE);
            close(&got, &want, 1e-6, &format!("{} {}", name_of(regularization), outcome.recipe));
        }
    });
}
