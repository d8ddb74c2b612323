//! Periodic boxes on the emulated GPU against the CPU's, at all targets.

use crate::evaluate;
use crate::harness::with_gpu;
use crate::support::accuracy::{Field, fill, relative_l2};
use crate::support::api::{Plan, Scalar, Session, flat, last_error};
use crate::support::cases::{Case, Kind, Vec3};
use crate::support::periodic::{Images, field_at};
use crate::support::random::Random;
use crate::support::tier::{full, takes, values};
use wakefmm::error::WFMM_ERR_UNSUPPORTED;
use wakefmm::options::*;

const PERIOD: f64 = 1.3;

fn plan_options(method: i32, tolerance: f64) -> wfmm_plan_options {
    wfmm_plan_options { method, tolerance, period: [PERIOD; 3], ..Default::default() }
}

/// Elements and targets at positions that `position` draws, the farther from the domain the larger its number: some of both are outside.
/// Strengths have a net one.
pub fn elements(
    kind: Kind,
    [n, m]: [usize; 2],
    [core, length]: [f64; 2],
    r: &mut Random,
    position: impl Fn(&mut Random, f64) -> Vec3,
) -> Case {
    let positions: Vec<Vec3> = (0..n).map(|k| position(r, if k % 16 == 0 { 1.7 } else { 0.0 })).collect();
    let targets = (0..m).map(|k| position(r, if k % 8 == 0 { 2.5 } else { 0.0 })).collect();
    let mut c = Case { targets, ..Case::default() };
    for (k, x) in positions.into_iter().enumerate() {
        let a = r.signed();
        match (kind, k % 2) {
            (Kind::Charges, _) => {
                c.charge_position.push(x);
                c.charge.push(a[0] + 0.3);
            }
            (Kind::Segments, _) | (Kind::Both, 0) => {
                let at = c.points.len() as i32;
                c.points.extend([x, std::array::from_fn(|i| x[i] + length * a[i])]);
                c.ends.extend([at, at + 1]);
                c.circulation.push(r.between(-0.8, 1.0));
                c.segment_core.push(core * r.between(0.5, 1.0));
            }
            _ => {
                c.position.push(x);
                c.strength.push(a.map(|v| v + 0.2));
                c.particle_core.push(core * r.between(0.5, 1.0));
            }
        }
    }
    c
}

/// In a box that is not around zero.
fn case(kind: Kind, n: usize, m: usize, core: f64, length: f64) -> Case {
    let in_box = |r: &mut Random, out: f64| std::array::from_fn(|_| PERIOD * r.between(-out, 1.0 + out));
    elements(kind, [n, m], [core, length], &mut Random::new(n as u64 + 5), in_box)
}

pub fn close(got: &Field, want: &Field, tolerance: f64, what: &str) {
    let (main, gradient) = (relative_l2(&got.main, &want.main), relative_l2(&got.gradient, &want.gradient));
    println!("{what}: {main:.1e} {gradient:.1e}");
    assert!(main <= tolerance && gradient <= 30.0 * tolerance, "{what}: {main:.1e} {gradient:.1e}");
}

/// Against the CPU at a smaller tolerance; the method that was taken.
pub fn held<T: Scalar>(c: &Case, o: &wfmm_plan_options, exact: f64, what: &str) -> i32 {
    let oracle = wfmm_plan_options { method: WFMM_METHOD_FMM, tolerance: exact, ..*o };
    let want = evaluate::<f64>(&Session::cpu(2), c, &oracle).0;
    let (got, outcome) = evaluate::<T>(&Session::gpu(), c, o);
    close(&got, &want, o.tolerance, &format!("{what} at {:.0e}: {}", o.tolerance, outcome.recipe));
    outcome.method
}

/// The field of explicit images and Ewald's sum of the others.
fn by_images(c: &Case, images: &Images, regularizations: (i32, i32)) -> Field {
    let (main, gradient): (Vec<_>, Vec<_>) = c.targets.iter().map(|&x| field_at(c, images, regularizations, x)).unzip();
    Field { main: main.concat(), gradient: gradient.concat() }
}

#[test]
fn direct_sums_in_a_box() {
    with_gpu("periodic::direct_sums_in_a_box", &[], || {
        for kind in [Kind::Particles, Kind::Segments, Kind::Charges, Kind::Both] {
            let core = if kind == Kind::Segments { 0.0 } else { 0.01 };
            for &tolerance in values(&[1e-6], &[1e-3, 1e-6, 1e-10]) {
                let c = case(kind, 200, 150, core, 0.05);
                let o = plan_options(WFMM_METHOD_DIRECT, tolerance);
                assert_eq!(held::<f64>(&c, &o, 1e-11, &format!("{kind:?}")), WFMM_METHOD_DIRECT);
            }
            let c = case(kind, 200, 150, core, 0.05).rounded();
            held::<f32>(&c, &plan_options(WFMM_METHOD_DIRECT, 1e-4), 1e-11, &format!("{kind:?} single"));
        }
    });
}

/// Near images give charges of one sign a potential that others all but take away: single arrays must not round it in between.
#[test]
fn near_images_are_not_rounded() {
    with_gpu("periodic::near_images_are_not_rounded", &[], || {
        let mut c = case(Kind::Charges, 200, 150, 0.0, 0.0).rounded();
        c.charge.iter_mut().for_each(|q| *q = q.abs());
        let o = wfmm_plan_options { precision: WFMM_PRECISION_F64, ..plan_options(WFMM_METHOD_DIRECT, 1e-6) };
        held::<f32>(&c, &o, 1e-11, "charges of one sign");
    });
}

#[test]
fn gaussians_that_fill_a_box_are_refused_by_name() {
    with_gpu("periodic::gaussians_that_fill_a_box_are_refused_by_name", &[], || {
        // The fields of their images cancel.
        let c = case(Kind::Particles, 60, 50, 0.7 * PERIOD, 0.05).rounded();
        let o = wfmm_plan_options {
            particle_regularization: WFMM_REG_GAUSS_ERF,
            core_radius: 0.7 * PERIOD,
            ..plan_options(WFMM_METHOD_DIRECT, 1e-4)
        };
        let mut plan = Plan::<f64>::new(&Session::gpu(), &o);
        fill(&mut plan, &c);
        assert_eq!(plan.try_velocity(&mut vec![0.0; 3 * c.targets.len()]), WFMM_ERR_UNSUPPORTED);
        assert!(last_error().contains("WFMM_REG_GAUSS_ERF"), "{}", last_error());
    });
}

/// Segments that are too long, for cores as wide as theirs, are summed by the CPU where the session may choose.
#[test]
fn under_auto_the_cpu_sums_what_the_gpu_refuses() {
    with_gpu("periodic::under_auto_the_cpu_sums_what_the_gpu_refuses", &[], || {
        let mut c = case(Kind::Segments, 60, 50, 0.6, 0.05).rounded();
        c.points[1] = std::array::from_fn(|i| c.points[0][i] + if i == 0 { 6.0 * PERIOD } else { 0.1 });
        let o = plan_options(WFMM_METHOD_DIRECT, 1e-4);
        let mut plan = Plan::<f64>::new(&Session::gpu(), &o);
        fill(&mut plan, &c);
        assert_eq!(plan.try_velocity(&mut vec![0.0; 3 * c.targets.len()]), WFMM_ERR_UNSUPPORTED);
        assert!(last_error().contains("WFMM_BACKEND_CPU"), "{}", last_error());
        let (got, _) = evaluate::<f64>(&Session::auto(), &c, &o);
        let (want, _) = evaluate::<f64>(&Session::cpu(1), &c, &o);
        assert_eq!(got.main, want.main);
    });
}

/// Without cores, over several levels; a gradient at 1e-6 and less needs more degrees than there are.
#[test]
fn trees_in_a_box() {
    with_gpu("periodic::trees_in_a_box", &[], || {
        let [few, m] = if full() { [4000, 1500] } else { [2500, 900] };
        let cases = [(Kind::Particles, few), (Kind::Charges, few), (Kind::Charges, 20_000)];
        for (k, (kind, n)) in cases.into_iter().enumerate() {
            let c = case(kind, n, m, 0.0, 0.0).rounded();
            for tolerance in values(&[1e-5], &[1e-3, 1e-5]) {
                let o = wfmm_plan_options {
                    particle_regularization: WFMM_REG_NONE,
                    leaf_capacity: if n > few { 20 } else { 0 },
                    ..plan_options(WFMM_METHOD_FMM, *tolerance)
                };
                let what = format!("{kind:?} {n}");
                if takes(k, 4) {
                    assert_eq!(held::<f64>(&c, &o, 1e-2 * o.tolerance, &what), WFMM_METHOD_FMM);
                }
                let o = wfmm_plan_options { tolerance: 10.0 * tolerance, ..o };
                if takes(k + 1, 2) {
                    assert_eq!(held::<f32>(&c, &o, 1e-2 * o.tolerance, &format!("{what} single")), WFMM_METHOD_FMM);
                }
            }
        }
        let c = case(Kind::Particles, 4000, 1500, 0.0, 0.0).rounded();
        far_images_take_half_of_the_tolerance(&c);
    });
}

/// With expansions of the highest order.
fn far_images_take_half_of_the_tolerance(c: &Case) {
    let none = WFMM_REG_NONE;
    let o = wfmm_plan_options { particle_regularization: none, order: 16, ..plan_options(WFMM_METHOD_FMM, 4e-7) };
    let want = evaluate::<f64>(&Session::cpu(2), c, &wfmm_plan_options { tolerance: 1e-11, ..o }).0;
    let (got, outcome) = evaluate::<f64>(&Session::gpu(), c, &o);
    let error = relative_l2(&got.main, &want.main);
    assert!(error < 2e-7 && outcome.method == WFMM_METHOD_FMM, "{error:.1e}: {}", outcome.recipe);
}

/// Boxes whose sides are six leaves, two of each of three cells, which M2L at the top translates between: with all elements everywhere, in a
/// layer, so that most of these cells are empty, and crowded towards an edge, with leaves of several levels.
#[test]
fn boxes_in_thirds() {
    with_gpu("periodic::boxes_in_thirds", &[], || {
        let cases = [
            (Kind::Particles, [0.0, 0.0], [1.0; 3], 1.0),
            (Kind::Charges, [0.0, 0.0], [1.0, 1.0, 0.2], 1.0),
            (Kind::Particles, [0.02, 0.0], [1.0; 3], 3.0),
            (Kind::Segments, [0.01, 0.03], [0.5, 1.0, 1.0], 2.0),
        ];
        // Of the reference, in tolerances; cores take most of the time of a smaller one.
        let exact = if full() { 1e-2 } else { 5e-2 };
        for (k, (kind, [core, length], sides, power)) in cases.into_iter().enumerate() {
            let place = |r: &mut Random, out: f64| {
                std::array::from_fn(|i| {
                    PERIOD * (sides[i] * r.between(0.0, 1.0).powf(power) + out * r.between(-1.0, 1.0))
                })
            };
            let size = if full() { [9000, 1500] } else { [5000, 800] };
            let c = elements(kind, size, [core, length], &mut Random::new(k as u64 + 40), place).rounded();
            let o = wfmm_plan_options {
                particle_regularization: if core > 0.0 { WFMM_REG_GAUSS_ERF } else { WFMM_REG_NONE },
                segment_regularization: WFMM_REG_VATISTAS,
                ..plan_options(WFMM_METHOD_FMM, 1e-4)
            };
            if takes(k, 4) {
                assert_eq!(held::<f64>(&c, &o, exact * o.tolerance, &format!("{kind:?} {k}")), WFMM_METHOD_FMM);
            }
            if k == 0 && full() {
                far_images_take_half_of_the_tolerance(&c);
            }
            let o = wfmm_plan_options { tolerance: 1e-3, ..o };
            if takes(k + 1, 4) {
                assert_eq!(held::<f32>(&c, &o, exact * o.tolerance, &format!("{kind:?} {k} single")), WFMM_METHOD_FMM);
            }
        }
    });
}

/// Cores that are wider than leaves, and segments that stick out of the box.
#[test]
fn trees_with_cores_in_a_box() {
    with_gpu("periodic::trees_with_cores_in_a_box", &[], || {
        let cases = [
            (Kind::Particles, 0.1, 0.0),
            (Kind::Segments, 0.02, 0.05),
            (Kind::Segments, 0.1, 0.02),
            (Kind::Both, 0.03, 0.04),
        ];
        for (k, (kind, core, length)) in cases.into_iter().enumerate() {
            let o = wfmm_plan_options {
                segment_regularization: if core < 0.05 { WFMM_REG_VATISTAS } else { WFMM_REG_LAMB_OSEEN },
                leaf_capacity: 24,
                ..plan_options(WFMM_METHOD_FMM, 1e-3)
            };
            let c = case(kind, 4000, 1000, core, length).rounded();
            if full() {
                assert_eq!(held::<f64>(&c, &o, 1e-2 * o.tolerance, &format!("{kind:?} {core}")), WFMM_METHOD_FMM);
            }
            if takes(k + 1, 4) {
                assert_eq!(
                    held::<f32>(&c, &o, 1e-2 * o.tolerance, &format!("{kind:?} {core} single")),
                    WFMM_METHOD_FMM
                );
            }
        }
    });
}

/// Cores and segments that reach beyond the images of the tree's cells are summed directly, with more images.
#[test]
fn wide_cores_and_long_segments_in_a_box() {
    with_gpu("periodic::wide_cores_and_long_segments_in_a_box", &[], || {
        for (kind, core, length) in [(Kind::Particles, 0.6, 0.0), (Kind::Segments, 0.05, 1.5)] {
            let c = case(kind, 60, 50, core, length);
            let o = wfmm_plan_options {
                segment_regularization: WFMM_REG_LAMB_OSEEN,
                ..plan_options(WFMM_METHOD_FMM, 1e-4)
            };
            assert_eq!(held::<f64>(&c, &o, 1e-6, &format!("{kind:?} {core} {length}")), WFMM_METHOD_DIRECT);
        }
        let offset =
            wfmm_plan_options { segment_regularization: WFMM_REG_OFFSET, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
        let c = case(Kind::Segments, 60, 50, 0.1, 0.1);
        assert_eq!(held::<f64>(&c, &offset, 1e-6, "offset"), WFMM_METHOD_DIRECT);
        let rosenhead =
            wfmm_plan_options { particle_regularization: WFMM_REG_ROSENHEAD, ..plan_options(WFMM_METHOD_AUTO, 1e-4) };
        let mut plan = Plan::<f64>::new(&Session::gpu(), &rosenhead);
        fill(&mut plan, &case(Kind::Particles, 20, 20, 0.3, 0.0));
        assert_eq!(plan.try_velocity(&mut [0.0; 60]), WFMM_ERR_UNSUPPORTED);
        assert!(last_error().contains("core_radius = "), "{}", last_error());
    });
}

/// One strong segment with a wide core among weak ones, at the ends of all: only its images have a field at its own ends, and what the
/// cores of far images take from that does not cancel as that of many segments does.
#[test]
fn few_segments_with_wide_cores_at_their_own_ends() {
    with_gpu("periodic::few_segments_with_wide_cores_at_their_own_ends", &[], || {
        let (images, regularization) = (Images::with_explicit([PERIOD; 3], 15), WFMM_REG_SCULLY);
        for (core, tolerance) in [(0.14, 1e-3), (0.2, 2e-3), (0.3, 4e-3)] {
            let mut c = case(Kind::Segments, 4, 0, core, 1.5);
            c.targets = c.points.clone();
            c.circulation[1..].iter_mut().for_each(|v| *v *= 1e-4);
            let options = plan_options(WFMM_METHOD_AUTO, tolerance);
            let o = wfmm_plan_options { segment_regularization: regularization, ..options };
            let got = evaluate::<f64>(&Session::gpu(), &c, &o).0;
            close(&got, &by_images(&c, &images, (regularization, 0)), tolerance, &format!("cores of {core}"));
        }
    });
}

/// A smooth flow, whose far images are more of the field than those of random sources; and Ewald's sum at some targets.
#[test]
fn smooth_flows_in_a_box() {
    with_gpu("periodic::smooth_flows_in_a_box", &[], || {
        let side = if full() { 14 } else { 10 };
        let mut c = Case::default();
        for k in 0..side * side * side {
            let at = [k % side, k / side % side, k / side / side].map(|i| (i as f64 + 0.5) / side as f64);
            let [x, y, z] = at.map(|v| std::f64::consts::TAU * v);
            c.position.push(at.map(|v| PERIOD * v));
            c.strength.push([
                x.cos() * y.sin() * z.sin(),
                x.sin() * y.cos() * z.sin(),
                -2.0 * x.sin() * y.sin() * z.cos(),
            ]);
            c.particle_core.push(1.4 * PERIOD / side as f64);
        }
        c.targets = c.position.iter().step_by(3).copied().collect();
        for (method, tolerance) in [(WFMM_METHOD_DIRECT, 1e-7), (WFMM_METHOD_FMM, 1e-4)] {
            let o = plan_options(method, tolerance);
            assert_eq!(held::<f64>(&c, &o, 1e-9, "smooth"), method);
        }
        let (o, images) = (plan_options(WFMM_METHOD_DIRECT, 1e-9), Images::new([PERIOD; 3]));
        c.targets.truncate(12);
        let got = evaluate::<f64>(&Session::gpu(), &c, &o).0;
        close(&got, &by_images(&c, &images, (0, o.particle_regularization)), 1e-8, "Ewald");
    });
}

/// New strengths and targets on one plan keep its trees; the check; few elements.
#[test]
fn plans_in_a_box_go_on() {
    with_gpu("periodic::plans_in_a_box_go_on", &[], || {
        let mut c = case(Kind::Particles, 3000, 800, 0.02, 0.0);
        let o = plan_options(WFMM_METHOD_FMM, 1e-3);
        let mut plan = Plan::<f64>::new(&Session::gpu(), &o);
        fill(&mut plan, &c);
        let right = |plan: &mut Plan<f64>, c: &Case, what: &str| {
            let mut u = vec![0.0; 3 * c.targets.len()];
            plan.velocity(&mut u, None);
            let exact = wfmm_plan_options { tolerance: 1e-6, ..o };
            let want = evaluate::<f64>(&Session::cpu(2), c, &exact).0.main;
            let error = relative_l2(&u, &want);
            assert!(error <= 1e-3, "{what}: {error:.1e}");
        };
        right(&mut plan, &c, "first");
        c.strength.iter_mut().enumerate().for_each(|(k, a)| a[k % 3] *= -2.0);
        plan.strengths(&[], &flat(&c.strength), &[]);
        right(&mut plan, &c, "strengths");
        c.targets.iter_mut().for_each(|x| x[0] += 5.1);
        plan.targets(&flat(&c.targets));
        right(&mut plan, &c, "targets");
        assert!(plan.check(60, 5) <= 1e-3);
        for n in [1, 2, 7] {
            for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM] {
                held::<f64>(
                    &case(Kind::Both, n, 3, 0.01, 0.02),
                    &plan_options(method, 1e-6),
                    1e-8,
                    &format!("{n} elements"),
                );
            }
        }
    });
}

/// With many sources the exact sums of the check take equivalent sources for what is far away: they find the error that there is, in
/// every kind of source, with cores and gradients, and sources in one corner.
#[test]
fn checks_with_equivalent_sources_find_the_error() {
    // A small device takes them from 3,000 sources on. Trees of few points are made by kernels that take segments whole.
    let settings = [("FAKE_CUDA_MULTIPROCESSORS", "1"), ("FAKE_CUDA_SHARED", "65536")];
    with_gpu("periodic::checks_with_equivalent_sources_find_the_error", &settings, || {
        let found = |c: &Case, tolerance: f64, gradient: bool, what: &str| {
            let o = wfmm_plan_options {
                particle_regularization: WFMM_REG_GAUSS_ERF,
                segment_regularization: WFMM_REG_NONE,
                ..plan_options(WFMM_METHOD_FMM, tolerance)
            };
            let mut plan = Plan::<f32>::new(&Session::gpu(), &o);
            fill(&mut plan, c);
            let rows = if c.charge.is_empty() { 3 } else { 1 };
            let (mut main, mut slopes) = (vec![0f32; rows * c.targets.len()], vec![0f32; 3 * rows * c.targets.len()]);
            let to = gradient.then_some(&mut slopes[..]);
            if rows == 3 {
                plan.velocity(&mut main, to)
            } else {
                plan.potential(&mut main, to)
            }
            let want = evaluate::<f64>(&Session::cpu(2), c, &wfmm_plan_options { tolerance: 1e-2 * tolerance, ..o }).0;
            let wide = |v: &[f32]| v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let error = relative_l2(&wide(&main), &want.main);
            let error = if gradient { error.max(relative_l2(&wide(&slopes), &want.gradient) / 30.0) } else { error };
            let (report, what) = (plan.report(), format!("{what}, {tolerance:.0e}: {}", plan.recipe()));
            println!("{what}: {error:.2e}, estimated {:.2e}", report.estimated_error);
            assert!(error <= tolerance && report.method == WFMM_METHOD_FMM, "{what}: {error:.1e}");
            let ratio = report.estimated_error / error;
            assert!((0.5..2.0).contains(&ratio), "{what}: {error:.2e}, estimated {:.2e}", report.estimated_error);
        };
        // Cells of one level, and of two.
        let cases = [
            (Kind::Particles, 5000, true),
            (Kind::Segments, 5000, false),
            (Kind::Charges, 13_000, false),
            (Kind::Particles, 30_000, false),
        ];
        for &(kind, n, gradient) in values(&cases[1..2], &cases) {
            found(&case(kind, n, 700, 0.004, 0.01).rounded(), 1e-3, gradient, &format!("{kind:?} {n}"));
        }
        let mut c = case(Kind::Particles, if full() { 30_000 } else { 15_000 }, 700, 0.001, 0.0);
        c.position.iter_mut().skip(2000).for_each(|x| *x = x.map(|v| 0.1 * v.rem_euclid(PERIOD)));
        c.targets.iter_mut().skip(100).for_each(|x| *x = x.map(|v| 0.12 * v.rem_euclid(PERIOD)));
        found(&c.rounded(), 1e-3, false, "corner");
        // Long segments among short ones are cut.
        let mut c = case(Kind::Segments, 12_000, 700, 0.0, 0.01);
        c.points.iter_mut().skip(1).step_by(2).take(60).for_each(|x| x[2] += 0.24 * PERIOD);
        found(&c.rounded(), 1e-3, false, "long segments");
    });
}

/// Positions thousands of periods away are moved by multiples of the unrounded period: the error of the rounded one does not add up.
#[test]
fn positions_thousands_of_periods_away_are_taken_back() {
    with_gpu("periodic::positions_thousands_of_periods_away_are_taken_back", &[], || {
        let periods = |i: usize, k: usize| [4000.0, -7000.0, 5000.0][i] * ((k % 5) as f64 - 2.0);
        let far_away = |x: &mut Vec3, k: usize| *x = std::array::from_fn(|i| x[i] + periods(i, k) * PERIOD);
        let back = |x: &mut Vec3, k: usize| {
            *x = std::array::from_fn(|i| (-periods(i, k)).mul_add(PERIOD, x[i]));
        };
        let all = |c: &mut Case, change: &dyn Fn(&mut Vec3, usize)| {
            c.points.iter_mut().enumerate().for_each(|(k, x)| change(x, k / 2));
            c.position.iter_mut().chain(&mut c.targets).enumerate().for_each(|(k, x)| change(x, k));
        };
        let [n, m] = if full() { [300, 90] } else { [150, 60] };
        let mut far = case(Kind::Both, n, m, 0.05, 0.1);
        all(&mut far, &far_away);
        let mut near = far.clone();
        all(&mut near, &back);
        let o = plan_options(WFMM_METHOD_DIRECT, 1e-8);
        let field = |c: &Case| evaluate::<f64>(&Session::gpu(), c, &o).0.main;
        let error = relative_l2(&field(&far), &field(&near));
        assert!(error < 2e-12, "{error:e}");
    });
}
