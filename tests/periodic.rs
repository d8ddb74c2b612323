//! Periodic domains against sums over all images by other means: Ewald's sum, extrapolated blocks of images, closed forms.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::{evaluate, fill, relative_l2};
use support::api::{Plan, Session, flat, last_error};
use support::cases::{Case, Kind, Vec3};
use support::periodic::{Images, cored, field_at};
use support::random::Random;
use support::tier::{full, takes, values};
use wakefmm::error::*;
use wakefmm::options::*;

const OPEN: f64 = 0.0;

fn plan_options(method: i32, tolerance: f64, period: Vec3) -> wfmm_plan_options {
    wfmm_plan_options { method, tolerance, period, ..Default::default() }
}

fn case(kind: Kind, n: usize, m: usize, period: Vec3, net: bool) -> Case {
    cored(kind, n, m, period, net, 0.01)
}

/// Relative errors of the field and its gradient at every `step`-th target.
fn errors(c: &Case, o: &wfmm_plan_options, step: usize) -> (f64, f64) {
    let (got, _) = evaluate::<f64>(&Session::cpu(2), c, o);
    errors_of(c, o, &got.main, &got.gradient, step)
}

fn errors_of(c: &Case, o: &wfmm_plan_options, main: &[f64], gradient: &[f64], step: usize) -> (f64, f64) {
    // Large cores reach through several images.
    let largest = c.segment_core.iter().chain(&c.particle_core).fold(0.0, |a, &b| f64::max(a, b));
    let images = if largest > 0.05 { Images::with_explicit(o.period, 7) } else { Images::new(o.period) };
    let (mut got, mut want) = ([vec![], vec![]], [vec![], vec![]]);
    for (k, &x) in c.targets.iter().enumerate().step_by(step) {
        let (u, g) = field_at(c, &images, (o.segment_regularization, o.particle_regularization), boxed(x, o.period));
        let rows = (u.len(), g.len());
        got[0].extend_from_slice(&main[k * rows.0..(k + 1) * rows.0]);
        got[1].extend_from_slice(&gradient[k * rows.1..(k + 1) * rows.1]);
        want[0].extend(u);
        want[1].extend(g);
    }
    (relative_l2(&got[0], &want[0]), relative_l2(&got[1], &want[1]))
}

/// Brought into the box, where the explicit images of the reference are near.
fn boxed(x: Vec3, period: Vec3) -> Vec3 {
    std::array::from_fn(|i| if period[i] > 0.0 { x[i] - period[i] * (x[i] / period[i]).floor() } else { x[i] })
}

/// A case whose elements are in the box: what the reference needs.
fn in_box(mut c: Case, period: Vec3) -> Case {
    for ends in c.points.chunks_mut(2) {
        let middle: Vec3 = std::array::from_fn(|i| 0.5 * (ends[0][i] + ends[1][i]));
        let by: Vec3 = std::array::from_fn(|i| boxed(middle, period)[i] - middle[i]);
        ends.iter_mut().for_each(|x| *x = std::array::from_fn(|i| x[i] + by[i]));
    }
    c.position.iter_mut().chain(&mut c.charge_position).for_each(|x| *x = boxed(*x, period));
    c
}

fn held(kind: Kind, n: usize, m: usize, period: Vec3, methods: &[i32], tolerances: &[f64]) {
    let net = period.iter().all(|&p| p > 0.0);
    // Segments cost the reference six points each.
    let (n, shown) = if kind == Kind::Segments { (n / 2, 10) } else { (n, 20) };
    let shown = if full() { shown } else { shown / 2 };
    for &method in methods {
        for &tolerance in tolerances {
            // The reference leaves out cores of far images, which matter to segments at this tolerance.
            let core = if kind == Kind::Segments && tolerance < 1e-6 { 0.0 } else { 0.01 };
            let whole = cored(kind, n, m, period, net, core);
            let inside = in_box(whole.clone(), period);
            let o = plan_options(method, tolerance, period);
            let (got, outcome) = evaluate::<f64>(&Session::cpu(2), &whole, &o);
            let (u, g) = errors_of(&inside, &o, &got.main, &got.gradient, m.div_ceil(shown));
            let what = format!("{kind:?} {period:?} method {method} at {tolerance:.0e}: {u:.1e} {g:.1e}");
            println!("{what}");
            assert!(u <= tolerance && g <= 30.0 * tolerance, "{what}: {}", outcome.recipe);
        }
    }
}

const DIRECT: &[i32] = &[WFMM_METHOD_DIRECT];
const FMM: &[i32] = &[WFMM_METHOD_FMM];

#[test]
fn boxes_are_ewalds_sum() {
    for kind in [Kind::Particles, Kind::Segments, Kind::Charges] {
        held(kind, 300, 120, [1.0; 3], DIRECT, &[1e-4, 1e-10]);
        held(kind, 1000, 1500, [1.0; 3], FMM, values(&[1e-3, 1e-10], &[1e-3, 1e-6, 1e-10]));
    }
    held(Kind::Particles, 1000, 1000, [1.0, 1.4, 0.8], FMM, &[1e-6]);
}

#[test]
fn slabs_and_tubes_are_extrapolated_blocks() {
    let periods = [[1.0, 1.2, OPEN], [OPEN, OPEN, 1.0], [OPEN, 0.9, 1.0]];
    for (k, kind) in [Kind::Particles, Kind::Segments, Kind::Charges].into_iter().enumerate() {
        // Each kind with one of them, the first two kinds with another one as well.
        for (_, &period) in periods.iter().enumerate().filter(|(number, _)| takes(k + 2 * number, 3) || k + number == 1)
        {
            held(kind, 200, 50, period, DIRECT, &[1e-9]);
            held(kind, 600, 1000, period, FMM, &[1e-4, 1e-8]);
        }
    }
}

/// Targets in the middle of segments without cores, which have digits that the positions of a periodic domain are rounded to.
#[test]
fn targets_on_the_line_of_a_segment_stay_on_it() {
    let mut r = Random::new(5);
    let last = 2f64.powi(-54);
    let mut coarse =
        |low: f64, high: f64| -> Vec3 { std::array::from_fn(|_| (r.between(low, high) / last).round() * last) };
    let mut c = Case::default();
    for k in 0..60 {
        let (x, half) = (coarse(0.0, 0.24), coarse(-0.02, 0.02));
        c.points.extend([-1.0, 1.0].map(|side| -> Vec3 { std::array::from_fn(|i| x[i] + side * half[i]) }));
        c.ends.extend([2 * k, 2 * k + 1]);
        c.circulation.push(1.0);
        c.segment_core.push(0.0);
        c.targets.push(x);
    }
    for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
        let o = plan_options(method, 1e-6, [0.26; 3]);
        let (field, gradient) = errors(&c, &o, 1);
        assert!(field <= 1e-6 && gradient <= 3e-5, "method {method}: {field:.1e}, {gradient:.1e}");
    }
}

/// A segment of one period is an infinite line, and with a second period a row of them: their closed forms.
#[test]
fn lines_and_rows_of_vortices_have_their_closed_forms() {
    let (gamma, p) = (1.5, 2.0);
    let pieces = 8;
    let mut c = Case::default();
    for k in 0..=pieces {
        c.points.push([0.3, -0.2, p * k as f64 / pieces as f64]);
    }
    c.ends = (0..pieces).flat_map(|k| [k, k + 1]).collect();
    c.circulation = vec![gamma; pieces as usize];
    let mut r = Random::new(3);
    c.targets = (0..40).map(|_| [r.between(-0.7, 1.2), r.between(-1.0, 1.0), r.between(-5.0, 5.0)]).collect();
    for core in [0.0, 0.15] {
        c.segment_core = vec![core; pieces as usize];
        for (method, tolerance) in [(WFMM_METHOD_DIRECT, 1e-8), (WFMM_METHOD_FMM, 1e-6), (WFMM_METHOD_AUTO, 1e-4)] {
            let lamb = WFMM_REG_LAMB_OSEEN;
            let o =
                wfmm_plan_options { segment_regularization: lamb, ..plan_options(method, tolerance, [OPEN, OPEN, p]) };
            let got = evaluate::<f64>(&Session::cpu(2), &c, &o).0.main;
            let want = c.targets.iter().flat_map(|x| {
                let (a, b) = (x[0] - 0.3, x[1] + 0.2);
                let rho2 = a * a + b * b;
                let soft = if core > 0.0 { -(-1.25643 * rho2 / (core * core)).exp_m1() } else { 1.0 };
                let f = gamma * soft / (std::f64::consts::TAU * rho2);
                [-f * b, f * a, 0.0]
            });
            let e = relative_l2(&got, &want.collect::<Vec<_>>());
            println!("line, core {core}, method {method} at {tolerance:.0e}: {e:.1e}");
            assert!(e <= tolerance, "core {core}, method {method} at {tolerance:.0e}: {e:.1e}");
        }
    }
    c.segment_core = vec![0.0; pieces as usize];
    let width = 1.7;
    let got = evaluate::<f64>(&Session::cpu(2), &c, &plan_options(WFMM_METHOD_FMM, 1e-8, [width, OPEN, p])).0.main;
    let want = c.targets.iter().flat_map(|x| {
        let k = std::f64::consts::TAU / width;
        let (a, b) = (k * (x[0] - 0.3), k * (x[1] + 0.2));
        let f = gamma / (2.0 * width * (b.cosh() - a.cos()));
        [-f * b.sinh(), f * a.sin(), 0.0]
    });
    let e = relative_l2(&got, &want.collect::<Vec<_>>());
    assert!(e <= 1e-8, "{e:.1e}");
}

/// Moving elements and targets by whole periods changes nothing; the mean over a box is zero.
#[test]
fn positions_are_taken_back_into_the_box() {
    let period = [1.0, 2.0, 0.5];
    let o = plan_options(WFMM_METHOD_DIRECT, 1e-9, period);
    let mut c = in_box(case(Kind::Particles, 40, 0, period, true), period);
    let grid = 16;
    c.targets = (0..grid * grid * grid)
        .map(|k| [k % grid, k / grid % grid, k / grid / grid])
        .map(|k| std::array::from_fn(|i| period[i] * (k[i] as f64 + 0.37) / grid as f64))
        .collect();
    c.particle_core = vec![0.12; 40];
    let u = evaluate::<f64>(&Session::cpu(2), &c, &o).0.main;
    let size = (u.iter().map(|v| v * v).sum::<f64>() / u.len() as f64).sqrt();
    for i in 0..3 {
        let mean = u.iter().skip(i).step_by(3).sum::<f64>() / (u.len() / 3) as f64;
        assert!(mean.abs() < 1e-5 * size, "component {i}: mean {mean:e} of {size:e}");
    }
    let mut moved = c.clone();
    moved.targets.truncate(50);
    let mut r = Random::new(9);
    let mut by = || -> Vec3 { std::array::from_fn(|i| period[i] * (r.between(-3.0, 4.0)).floor()) };
    for x in moved.position.iter_mut().chain(&mut moved.targets) {
        let d = by();
        *x = std::array::from_fn(|i| x[i] + d[i]);
    }
    let v = evaluate::<f64>(&Session::cpu(2), &moved, &o).0.main;
    assert!(relative_l2(&v, &u[..150]) < 1e-9, "{:e}", relative_l2(&v, &u[..150]));
}

/// Targets thousands of periods away: positions are rounded to 50 bits of their distance, and so is the period, but thousands of periods
/// are not thousands of roundings.
#[test]
fn positions_thousands_of_periods_away_are_taken_back() {
    let period = [0.42118552985617785, 0.3949449144471699, OPEN];
    let o = plan_options(WFMM_METHOD_DIRECT, 1e-11, period);
    let mut c = case(Kind::Particles, 40, 0, period, true);
    let mut r = Random::new(31);
    let (mut near, mut far) = (vec![], vec![]);
    for _ in 0..50 {
        let n = [4000.0, -7000.0, 0.0].map(|n: f64| n + (r.between(-9.0, 9.0)).floor());
        let x: Vec3 = std::array::from_fn(|i| period[i].max(0.1) * r.unit() + n[i] * period[i]);
        far.push(x);
        near.push(std::array::from_fn(|i| (-n[i]).mul_add(period[i], x[i])));
    }
    let mut field = |targets: Vec<Vec3>| {
        c.targets = targets;
        evaluate::<f64>(&Session::cpu(2), &c, &o).0.main
    };
    let error = relative_l2(&field(far), &field(near));
    assert!(error < 2e-11, "{error:e}");
}

/// Cores that reach through several periods, of every kind.
/// Far from zero the digits that the caller has given are kept: the same points, moved back exactly, have the same field. Close pairs
/// lose what rounding takes.
#[test]
fn domains_far_from_zero_keep_the_digits_of_positions() {
    let period = [1.0; 3];
    let (session, n) = (Session::cpu(2), 300);
    for (far, tolerance) in [(1e3, 1e-10), (1e6, 1e-8)] {
        let mut r = Random::new(5);
        let mut position = || -> Vec3 { std::array::from_fn(|_| far + r.unit()) };
        let mut c = Case { position: (0..n).map(|_| position()).collect(), ..Case::default() };
        c.targets = (0..n).map(|_| position()).collect();
        for k in (0..n).step_by(8) {
            c.targets[k] = c.position[k].map(|x| x + 1e-3);
        }
        c.strength = (0..n).map(|_| std::array::from_fn(|_| r.unit() - 0.5)).collect();
        c.particle_core = vec![0.0; n];
        let mut near = c.clone();
        near.position.iter_mut().chain(&mut near.targets).flatten().for_each(|x| *x -= far);
        let (want, _) = evaluate::<f64>(&session, &near, &plan_options(WFMM_METHOD_DIRECT, 1e-11, period));
        for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
            let (got, outcome) = evaluate::<f64>(&session, &c, &plan_options(method, tolerance, period));
            let e = relative_l2(&got.main, &want.main);
            assert!(e <= tolerance, "{e:.1e} at {far:.0e} periods: {}", outcome.recipe);
        }
    }
}

#[test]
fn cores_of_images_count() {
    let period = [1.0, 1.0, OPEN];
    let cases = [
        (Kind::Particles, 0, WFMM_REG_GAUSS_ERF, 0.5),
        (Kind::Particles, 0, WFMM_REG_WINCKELMANS, 0.1),
        (Kind::Segments, WFMM_REG_VATISTAS, 0, 0.1),
        (Kind::Segments, WFMM_REG_LAMB_OSEEN, 0, 0.1),
        (Kind::Segments, WFMM_REG_OFFSET, 0, 0.1),
    ];
    for (k, (kind, segments, particles, core)) in cases.into_iter().enumerate() {
        let mut c = in_box(case(kind, 200, 400, period, false), period);
        c.segment_core.iter_mut().chain(&mut c.particle_core).for_each(|v| *v = core);
        let methods = [(WFMM_METHOD_FMM, 1e-4), (WFMM_METHOD_DIRECT, 1e-4)];
        for (_, (method, tolerance)) in methods.into_iter().enumerate().filter(|(by, _)| takes(k + by, 2)) {
            let o = plan_options(method, tolerance, period);
            let o = wfmm_plan_options { segment_regularization: segments, particle_regularization: particles, ..o };
            let (u, g) = errors(&c, &o, 20);
            println!("{kind:?} {segments} {particles} core {core} method {method}: {u:.1e} {g:.1e}");
            assert!(u <= tolerance && g <= 30.0 * tolerance, "{segments} {particles} method {method}: {u:.1e} {g:.1e}");
        }
    }
}

/// Inside of wide cores like strengths leave a small part of what each image contributes; an error of that part counts. Sums of a tighter
/// tolerance are the reference: those of images that the test has are too few for such cores.
#[test]
fn like_strengths_with_wide_cores_keep_the_tolerance() {
    let period = [1.27, OPEN, 0.83];
    let mut r = Random::new(5);
    let mut c = Case::default();
    for _ in 0..300 {
        let x = [r.unit(), 2e-3 * r.unit(), 4e-5 * r.unit()];
        c.position.push(x);
        c.strength.push([0.0, 0.0, 1.0 + x[0]]);
        c.particle_core.push(r.between(0.2, 3.0));
        c.targets.push(x);
    }
    let field = |method: i32, tolerance: f64| {
        let o = plan_options(method, tolerance, period);
        let o = wfmm_plan_options { particle_regularization: WFMM_REG_EXPONENTIAL, ..o };
        evaluate::<f64>(&Session::cpu(2), &c, &o).0.main
    };
    let want = field(WFMM_METHOD_DIRECT, 5e-12);
    for (method, tolerance) in [DIRECT, FMM].into_iter().flat_map(|m| [3e-10, 1e-8, 1e-5].map(|t| (m[0], t))) {
        let error = relative_l2(&field(method, tolerance), &want);
        println!("method {method} at {tolerance:.0e}: {error:.1e}");
        assert!(error <= tolerance, "method {method} at {tolerance:.0e}: {error:.1e}");
    }
}

/// Single precision, new strengths and targets on the same plan, the check, few elements.
#[test]
fn plans_go_on_as_in_free_space() {
    let (session, period) = (Session::cpu(2), [1.0, 1.0, 1.0]);
    let n = if full() { 1500 } else { 700 };
    let c = in_box(case(Kind::Particles, n, n, period, true), period).rounded();
    for (method, tolerance) in [(WFMM_METHOD_FMM, 1e-4), (WFMM_METHOD_FMM, 1e-5), (WFMM_METHOD_DIRECT, 1e-5)] {
        let o = plan_options(method, tolerance, period);
        let got = evaluate::<f32>(&session, &c, &o).0;
        let (u, g) = errors_of(&c, &o, &got.main, &got.gradient, 60);
        assert!(u <= tolerance && g <= 30.0 * tolerance, "single, method {method} at {tolerance:.0e}: {u:.1e} {g:.1e}");
    }
    let o = plan_options(WFMM_METHOD_FMM, 1e-5, period);
    let mut plan = Plan::<f64>::new(&session, &o);
    fill(&mut plan, &c);
    let mut u = vec![0.0; 3 * c.targets.len()];
    plan.velocity(&mut u, None);
    assert!(plan.check(100, 5) <= 1e-5);
    let mut other = c.clone();
    other.strength.iter_mut().enumerate().for_each(|(k, a)| a[k % 3] *= -2.0);
    plan.strengths(&[], &flat(&other.strength), &[]);
    plan.velocity(&mut u, None);
    let want = evaluate::<f64>(&session, &other, &plan_options(WFMM_METHOD_DIRECT, 1e-9, period)).0.main;
    assert!(relative_l2(&u, &want) <= 1e-5, "{:e}", relative_l2(&u, &want));
    other.targets.iter_mut().for_each(|x| x[0] += 0.21);
    plan.targets(&flat(&other.targets));
    plan.velocity(&mut u, None);
    let want = evaluate::<f64>(&session, &other, &plan_options(WFMM_METHOD_DIRECT, 1e-9, period)).0.main;
    assert!(relative_l2(&u, &want) <= 1e-5, "{:e}", relative_l2(&u, &want));
    for n in [1, 2, 7] {
        for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM, WFMM_METHOD_DIRECT] {
            let c = in_box(case(Kind::Both, n, 3, period, true), period);
            let (u, g) = errors(&c, &plan_options(method, 1e-6, period), 1);
            assert!(u <= 1e-6 && g <= 3e-5, "{n} elements, method {method}: {u:.1e} {g:.1e}");
        }
    }
}

/// The images of a plane and of a slab together: those of the plane as explicit elements.
#[test]
fn a_slab_above_a_plane_has_both_images() {
    let period = [1.0, 1.0, OPEN];
    let mut c = in_box(case(Kind::Particles, 300, 200, period, false), period);
    c.targets.iter_mut().for_each(|x| *x = boxed(*x, period));
    let o = wfmm_plan_options { plane_axis: 3, plane_position: -0.1, ..plan_options(WFMM_METHOD_FMM, 1e-6, period) };
    let got = evaluate::<f64>(&Session::cpu(2), &c, &o).0;
    let mut both = c.clone();
    both.position.extend(c.position.iter().map(|x| [x[0], x[1], -0.2 - x[2]]));
    both.strength.extend(c.strength.iter().map(|a| [-a[0], -a[1], a[2]]));
    both.particle_core.extend(&c.particle_core);
    let (u, g) = errors_of(&both, &plan_options(0, 1e-6, period), &got.main, &got.gradient, 10);
    assert!(u <= 1e-6 && g <= 3e-5, "{u:.1e} {g:.1e}");
}

/// Three periods beyond a slab the flow is uniform but for the longest waves: the gradient is e^(-6π) of what single images add to it, and
/// images are summed for a tolerance that is smaller by that.
#[test]
fn direct_sums_keep_the_tolerance_of_gradients_far_from_a_slab() {
    let (mut c, mut r) = (Case::default(), Random::new(29));
    for _ in 0..60 {
        c.position.push([r.between(-0.4, 0.4), r.unit(), r.unit()]);
        c.strength.push(std::array::from_fn(|_| r.between(0.0, 1.0)));
        c.particle_core.push(0.0);
    }
    c.targets.extend((0..50).map(|_| [r.between(3.6, 3.8), r.unit(), r.unit()]));
    let tau = 2.0 * std::f64::consts::PI;
    let (mut velocity, mut gradient) = (vec![], vec![]);
    for x in &c.targets {
        // First and second derivatives of the potentials of the strengths' components.
        let (mut first, mut second) = ([[0.0; 3]; 3], [[[0.0; 3]; 3]; 3]);
        for (a, strength) in c.position.iter().zip(&c.strength) {
            let d: Vec3 = std::array::from_fn(|i| x[i] - a[i]);
            let waves = (-4i32..=4).flat_map(|i| (-4i32..=4).map(move |j| [tau * f64::from(i), tau * f64::from(j)]));
            (0..3).for_each(|l| first[0][l] -= 0.5 * strength[l]);
            for [ky, kz] in waves.filter(|k| *k != [0.0; 2]) {
                let k = ky.hypot(kz);
                let (sin, cos) = (ky * d[1] + kz * d[2]).sin_cos();
                let f = 0.5 * (-k * d[0]).exp() / k;
                let slope = [-k * cos, -ky * sin, -kz * sin];
                let curve = [
                    [k * k * cos, k * ky * sin, k * kz * sin],
                    [k * ky * sin, -ky * ky * cos, -ky * kz * cos],
                    [k * kz * sin, -ky * kz * cos, -kz * kz * cos],
                ];
                for l in 0..3 {
                    for j in 0..3 {
                        first[j][l] += f * strength[l] * slope[j];
                        (0..3).for_each(|m| second[j][l][m] += f * strength[l] * curve[j][m]);
                    }
                }
            }
        }
        for i in 0..3 {
            let (j, l) = ((i + 1) % 3, (i + 2) % 3);
            velocity.push(first[j][l] - first[l][j]);
            gradient.extend((0..3).map(|m| second[j][l][m] - second[l][j][m]));
        }
    }
    for tolerance in [1e-2, 1e-4, 1e-6] {
        let none = WFMM_REG_NONE;
        let o = plan_options(WFMM_METHOD_DIRECT, tolerance, [0.0, 1.0, 1.0]);
        let (got, _) = evaluate::<f64>(&Session::cpu(2), &c, &wfmm_plan_options { particle_regularization: none, ..o });
        let (e, slope) = (relative_l2(&got.main, &velocity), relative_l2(&got.gradient, &gradient));
        assert!(e < tolerance && slope < 30.0 * tolerance, "{tolerance:.0e}: {e:.1e}, gradient {slope:.1e}");
    }
}

/// The largest ratio of periods: other layers of images are uniform sheets, which elements without a net strength nearly do not see. On a line
/// of images the same holds for those of the other two axes.
#[test]
fn very_long_boxes_are_slabs_and_tubes() {
    let session = Session::cpu(1);
    for (long, open) in [
        ([1.0, 1.0, 1e6], [1.0, 1.0, OPEN]),
        ([1e6, 1.0, 1.0], [OPEN, 1.0, 1.0]),
        ([1e6, 1.0, 1e6], [OPEN, 1.0, OPEN]),
        ([OPEN, 1.0, 1e6], [OPEN, 1.0, OPEN]),
    ] {
        for kind in [Kind::Particles, Kind::Charges] {
            let c = case(kind, 60, 20, [1.0; 3], false);
            let field = |period: Vec3| evaluate::<f64>(&session, &c, &plan_options(0, 1e-5, period)).0;
            let (a, b) = (field(long), field(open));
            // The constant of the potential of charges differs, their forces do not.
            let error = match kind {
                Kind::Charges => relative_l2(&a.gradient, &b.gradient),
                _ => relative_l2(&a.main, &b.main),
            };
            assert!(error < 5e-5, "{long:?} {kind:?}: {error:.1e}");
        }
    }
}

/// What has no sum, or none that could be made, is refused by name.
#[test]
fn what_cannot_be_summed_is_refused() {
    let session = Session::cpu(1);
    let refused = |c: &Case, o: &wfmm_plan_options| {
        let mut plan = Plan::<f64>::new(&session, o);
        fill(&mut plan, c);
        (plan.try_velocity(&mut vec![0.0; 3 * c.targets.len()]), last_error())
    };
    let mut c = case(Kind::Particles, 30, 10, [1.0; 3], true);
    let (status, message) = refused(&c, &plan_options(0, 1e-4, [1e-3, OPEN, 1e-3]));
    assert!(status == WFMM_ERR_UNSUPPORTED && message.contains("period"), "{status} {message}");
    c.particle_core = vec![0.3; 30];
    let rosenhead = plan_options(0, 1e-4, [1.0; 3]);
    let rosenhead = wfmm_plan_options { particle_regularization: WFMM_REG_ROSENHEAD, ..rosenhead };
    let (status, message) = refused(&c, &rosenhead);
    assert!(status == WFMM_ERR_UNSUPPORTED && message.contains("core_radius = 3"), "{status} {message}");
    // Gaussians that fill a box: images leave 6e-5 of their fields. Those of half its size do not.
    for (core, ok) in [(0.7, false), (0.45, true)] {
        c.particle_core = vec![core; 30];
        let gaussians =
            wfmm_plan_options { particle_regularization: WFMM_REG_GAUSS_ERF, ..plan_options(0, 1e-4, [1.0; 3]) };
        let (status, message) = refused(&c, &gaussians);
        assert!(
            if ok { status == 0 } else { status == WFMM_ERR_UNSUPPORTED && message.contains("core_radius = 7") },
            "{status} {message}"
        );
    }
    // Periods that the rounding of positions would change, or make none.
    let mut far = case(Kind::Particles, 30, 10, [1.0; 3], true);
    far.targets.push([0.5, 1e16, 0.5]);
    let near = case(Kind::Particles, 30, 10, [1.0; 3], true);
    for (c, period) in [(&far, [1.0, OPEN, OPEN]), (&near, [3e-16, OPEN, OPEN])] {
        for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
            let (status, message) = refused(c, &plan_options(method, 1e-4, period));
            assert!(status == WFMM_ERR_UNSUPPORTED && message.contains("period = ["), "{status} {message}");
        }
    }
    let unequal = plan_options(0, 1e-4, [1.0, 1.1e6, OPEN]);
    assert_eq!(Plan::<f64>::try_new(&session, &unequal).err(), Some(WFMM_ERR_UNSUPPORTED));
    let message = last_error();
    assert!(message.contains("1100000.0") && message.contains("1e6 times"), "{message}");
    let along = wfmm_plan_options { plane_axis: 1, ..plan_options(0, 1e-4, [1.0, 1.0, OPEN]) };
    assert_eq!(Plan::<f64>::try_new(&session, &along).err(), Some(WFMM_ERR_UNSUPPORTED));
    assert!(last_error().contains("period[0] = 1"));
    let treecode = plan_options(WFMM_METHOD_TREECODE, 1e-4, [OPEN, 1.0, OPEN]);
    assert_eq!(Plan::<f64>::try_new(&session, &treecode).err(), Some(WFMM_ERR_UNSUPPORTED));
    let message = last_error();
    assert!(message.contains("WFMM_METHOD_TREECODE") && message.contains("period[1] = 1"), "{message}");
}
