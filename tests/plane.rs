//! The ground plane of a plan against explicit images of all sources: segments, particles and charges, velocity, potential and
//! gradient, single and double arrays, both methods, every axis, targets above and below.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::{Field, evaluate, fill, options, reference, relative_l2};
use support::api::{Plan, Scalar, Session, flat};
use support::cases::{Case, Kind, Vec3, case};
use support::random::Random;
use wakefmm::options::*;

const POSITION: f64 = 0.375;

fn plan_options(method: i32, tolerance: f64, axis: usize) -> wfmm_plan_options {
    let plane = wfmm_plan_options { plane_axis: axis as i32 + 1, plane_position: POSITION, ..Default::default() };
    wfmm_plan_options { method, tolerance, ..plane }
}

fn mirrored(mut x: Vec3, axis: usize) -> Vec3 {
    x[axis] = 2.0 * POSITION - x[axis];
    x
}

/// Sources on one side of the plane, and with their images.
fn with_images(name: &str, kind: Kind, n: usize, axis: usize) -> (Case, Case) {
    let mut real = case(name, kind, n, 400, 1.0);
    let above = |x: &mut Vec3| x[axis] = POSITION + 0.02 + (x[axis] - POSITION).abs();
    real.points.iter_mut().chain(&mut real.position).chain(&mut real.charge_position).for_each(above);
    let both = real.with_images(axis, POSITION);
    (real, both)
}

fn errors(got: &Field, want: &Field) -> (f64, f64) {
    (relative_l2(&got.main, &want.main), relative_l2(&got.gradient, &want.gradient))
}

#[test]
fn direct_sums_equal_explicit_images_to_rounding() {
    let session = Session::cpu(2);
    for kind in [Kind::Segments, Kind::Particles, Kind::Both, Kind::Charges] {
        for axis in 0..3 {
            let (real, both) = with_images("helical wake", kind, 300, axis);
            assert!(real.targets.iter().any(|x| x[axis] < POSITION) && real.targets.iter().any(|x| x[axis] > POSITION));
            let want = reference(&session, &both, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
            let got = evaluate::<f64>(&session, &real, &plan_options(WFMM_METHOD_DIRECT, 1e-10, axis)).0;
            let (u, g) = errors(&got, &want);
            assert!(u < 1e-12 && g < 1e-11, "{kind:?} axis {axis}: {u:.1e} {g:.1e}");
            let got = evaluate::<f32>(&session, &real, &plan_options(WFMM_METHOD_DIRECT, 1e-4, axis)).0;
            let (u, g) = errors(&got, &want);
            assert!(u < 1e-4 && g < 3e-3, "{kind:?} axis {axis} single: {u:.1e} {g:.1e}");
        }
    }
}

#[test]
fn the_fmm_holds_its_tolerance() {
    let session = Session::cpu(2);
    for (name, kind) in [("cube", Kind::Both), ("helical wake", Kind::Segments), ("cube", Kind::Charges)] {
        let (mut real, mut both) = with_images(name, kind, 6000, 2);
        real.targets = case("cube", Kind::Both, 10, 6000, 1.0).targets;
        both.targets = real.targets.clone();
        let want = reference(&session, &both, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
        for tolerance in [1e-3, 1e-6] {
            let (got, _) = evaluate::<f64>(&session, &real, &plan_options(WFMM_METHOD_FMM, tolerance, 2));
            let (u, g) = errors(&got, &want);
            assert!(u <= tolerance && g <= 30.0 * tolerance, "{name} {kind:?} at {tolerance:.0e}: {u:.1e} {g:.1e}");
        }
    }
}

/// Far above a flat wake the images cancel most of the field; the tolerance is of what remains.
#[test]
fn the_tolerance_is_of_what_the_images_leave() {
    let session = Session::cpu(2);
    let (mut real, mut both) = with_images("cube", Kind::Particles, 4000, 2);
    for k in 0..4000 {
        real.position[k][2] = POSITION + 0.01 * (real.position[k][2] - POSITION);
        real.strength[k] = [1.0, 0.2, 0.0];
        both.position[k] = real.position[k];
        both.position[4000 + k] = mirrored(real.position[k], 2);
        both.strength[k] = real.strength[k];
        both.strength[4000 + k] = [-1.0, -0.2, 0.0];
    }
    real.targets = case("cube", Kind::Both, 10, 4000, 1.0).targets;
    real.targets.iter_mut().for_each(|x| x[2] += 1.0);
    both.targets = real.targets.clone();
    let want = reference(&session, &both, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
    let mut alone = real.clone();
    alone.targets = both.targets.clone();
    let half = reference(&session, &alone, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!(norm(&want.main) < 0.1 * norm(&half.main), "the case cancels");
    let got = evaluate::<f64>(&session, &real, &plan_options(WFMM_METHOD_FMM, 1e-3, 2)).0;
    let error = relative_l2(&got.main, &want.main);
    assert!(error <= 1e-3, "{error:.1e}");
}

/// Fields by FMM and direct sum above a plane at z = `position`, in arrays of type T, against explicit images.
fn near_a_plane<T: Scalar>(session: &Session, c: &Case, position: f64, tolerance: f64) {
    let want = reference(session, &c.with_images(2, position), WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
    for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM, WFMM_METHOD_TREECODE] {
        let of = options(method, tolerance, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0);
        let o = wfmm_plan_options { plane_axis: 3, plane_position: position, ..of };
        let (got, outcome) = evaluate::<T>(session, c, &o);
        let (u, g) = errors(&got, &want);
        let what = format!("plane at {position}, tolerance {tolerance:e}: {}", outcome.recipe);
        assert!(u <= tolerance && g <= 30.0 * tolerance, "{u:.1e} {g:.1e}, {what}");
    }
}

/// Particles just above a plane, which are targets too: what images leave of a field has the digits of single arrays, wherever the plane is.
#[test]
fn single_arrays_beside_a_plane_keep_their_digits() {
    let (session, mut r) = (Session::cpu(2), Random::new(17));
    for (position, height, is_flat) in [(100.25, 1e-2, false), (0.375, 1e-3, false), (0.0, 1e-5, true)] {
        let mut c = Case::default();
        for _ in 0..300 {
            c.position.push([r.unit(), r.unit(), position + height * r.log_between(0.1, 10.0)]);
            c.strength.push([r.unit() - 0.5, r.unit() - 0.5, if is_flat { 0.0 } else { r.unit() - 0.5 }]);
        }
        c.particle_core = vec![0.0; 300];
        c.targets = c.position.clone();
        near_a_plane::<f32>(&session, &c.rounded(), position, 5e-6);
    }
}

/// Strong segments in the plane, whose images take their whole field away.
#[test]
fn what_lies_in_the_plane_leaves_nothing() {
    let (session, mut r) = (Session::cpu(2), Random::new(3));
    let mut c = Case::default();
    for k in 0..600 {
        let is_in_plane = k < 30;
        let (mut x, d) = (r.in_cube(), r.signed());
        x[2] = if is_in_plane { 0.0 } else { 0.3 + 0.5 * x[2] };
        let mut y: Vec3 = std::array::from_fn(|i| x[i] + 0.1 * d[i]);
        y[2] = if is_in_plane { 0.0 } else { y[2] };
        c.points.extend([x, y]);
        c.ends.extend([2 * k, 2 * k + 1]);
        c.circulation.push((r.unit() - 0.5) * if is_in_plane { 1e7 } else { 1.0 });
        c.targets.push(r.in_cube());
    }
    c.segment_core = vec![0.01; 600];
    near_a_plane::<f64>(&session, &c, 0.0, 1e-3);
}

/// In wide cores the gradients of both halves cancel more than the velocities do.
#[test]
fn gradients_count_where_they_cancel_more() {
    let (session, mut r) = (Session::cpu(2), Random::new(5));
    let mut c = Case::default();
    for k in 0..400 {
        c.position.push([k as f64 * 0.125, 0.25, 0.5]);
        c.strength.push(r.signed());
    }
    c.targets = c.position.clone();
    for (core, tolerance) in [(100.0, 1e-3), (1000.0, 1e-5)] {
        c.particle_core = vec![core; 400];
        near_a_plane::<f64>(&session, &c, 0.0, tolerance);
    }
}

#[test]
fn nothing_flows_through_the_plane() {
    let session = Session::cpu(2);
    for (method, tolerance) in [(WFMM_METHOD_DIRECT, 1e-10), (WFMM_METHOD_FMM, 1e-5)] {
        for kind in [Kind::Both, Kind::Segments] {
            let (mut real, _) = with_images("cube", kind, 3000, 1);
            real.targets.iter_mut().for_each(|x| x[1] = POSITION);
            let u = evaluate::<f64>(&session, &real, &plan_options(method, tolerance, 1)).0.main;
            let largest = u.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            let through = u.iter().skip(1).step_by(3).fold(0.0f64, |m, v| m.max(v.abs()));
            assert!(largest > 0.0 && through <= tolerance * largest, "{kind:?}: {through:.1e} of {largest:.1e}");
        }
    }
}

fn added<T: Scalar>(flags: u64) -> (Vec<f64>, Vec<f64>) {
    let session = Session::cpu(1);
    let (real, _) = with_images("cube", Kind::Both, 200, 0);
    let o = wfmm_plan_options { flags, ..plan_options(WFMM_METHOD_DIRECT, 1e-4, 0) };
    let mut plan = Plan::<T>::new(&session, &o);
    fill(&mut plan, &real);
    let m = real.targets.len();
    let (mut u, mut g) = (vec![T::of(2.0); 3 * m], vec![T::of(-1.0); 9 * m]);
    plan.velocity(&mut u, Some(&mut g));
    (u.into_iter().map(T::f64).collect(), g.into_iter().map(T::f64).collect())
}

#[test]
fn accumulate_adds_to_what_is_there() {
    for (add, fresh, rounding) in [
        (added::<f64>(WFMM_FLAG_ACCUMULATE), added::<f64>(0), 1e-12),
        (added::<f32>(WFMM_FLAG_ACCUMULATE), added::<f32>(0), 1e-5),
    ] {
        let largest = |v: &[f64]| v.iter().fold(1.0f64, |m, x| m.max(x.abs()));
        for (base, add, fresh) in [(2.0, &add.0, &fresh.0), (-1.0, &add.1, &fresh.1)] {
            let wrong = add.iter().zip(fresh).fold(0.0f64, |m, (a, f)| m.max((a - f - base).abs()));
            assert!(wrong < rounding * largest(fresh), "{wrong:.1e}");
        }
    }
}

#[test]
fn a_plan_with_a_plane_answers_as_any_other() {
    let session = Session::cpu(2);
    let (real, both) = with_images("cube", Kind::Both, 5000, 2);
    let mut plan = Plan::<f64>::new(&session, &plan_options(WFMM_METHOD_FMM, 1e-4, 2));
    fill(&mut plan, &real);
    plan.prepare();
    let mut u = vec![0.0; 3 * real.targets.len()];
    plan.velocity(&mut u, None);
    let error = plan.check(100, 3);
    assert!(error > 0.0 && error <= 1e-4, "{error:.1e}");
    assert!(plan.recipe().contains("ground plane"));
    // Fewer targets, then other strengths: the sources' tree serves again.
    let few: Vec<Vec3> = real.targets[..7].to_vec();
    plan.targets(&flat(&few));
    let mut again = vec![9.0; 24];
    plan.velocity(&mut again, None);
    assert!(relative_l2(&again[..21], &u[..21]) < 2e-4);
    assert_eq!(again[21..], [9.0; 3], "the tail is not written");
    let double: Vec<f64> = real.circulation.iter().map(|g| 2.0 * g).collect();
    let stronger: Vec<f64> = real.strength.iter().flatten().map(|a| 2.0 * a).collect();
    plan.strengths(&double, &stronger, &[]);
    plan.velocity(&mut again, None);
    assert!(relative_l2(&again[..21], &u[..21].iter().map(|v| 2.0 * v).collect::<Vec<_>>()) < 4e-4);
    // No sources: zero. The sum of explicit images is what `check` compares with.
    plan.segments(&[], &[], &[], None);
    plan.particles(&[], &[], None);
    plan.velocity(&mut again, None);
    assert!(again[..21].iter().all(|v| *v == 0.0));
    let exact = reference(&session, &both, options(0, 1e-4, 3, 6, 0).segment_regularization, WFMM_REG_GAUSS_ERF).main;
    assert!((relative_l2(&u, &exact)) <= 1e-4);
}

/// A field whose halves nearly cancel takes a direct sum; later ones of the same plan do not.
#[test]
fn what_one_field_needs_others_do_not() {
    let (session, mut r) = (Session::cpu(2), Random::new(23));
    let mut c = Case::default();
    for _ in 0..4000 {
        c.position.push([r.unit(), r.unit(), POSITION + 1e-4 * r.unit()]);
        c.strength.push([r.unit() - 0.5, r.unit() - 0.5, 0.0]);
    }
    c.particle_core = vec![0.0; 4000];
    for flags in [0, WFMM_FLAG_REPRODUCIBLE] {
        let o = wfmm_plan_options { method: WFMM_METHOD_FMM, flags, ..plan_options(WFMM_METHOD_FMM, 1e-3, 2) };
        let mut plan = Plan::<f64>::new(&session, &o);
        fill(&mut plan, &c);
        let mut field = |height: f64, strength: [f64; 3]| {
            let targets: Vec<Vec3> = (0..4000).map(|_| [r.unit(), r.unit(), POSITION + height]).collect();
            let all = vec![strength; 4000];
            let of = Case { targets, strength: all, ..c.clone() };
            fill(&mut plan, &of);
            let mut u = vec![0.0; 12_000];
            plan.velocity(&mut u, None);
            let want = reference(&session, &of.with_images(2, POSITION), WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
            let error = relative_l2(&u, &want.main);
            assert!(error <= 1e-3, "{error:.1e}: {}", plan.recipe());
            (plan.report().method, plan.recipe())
        };
        let (method, recipe) = field(0.5, [1.0, 0.2, 0.0]);
        assert!(method == WFMM_METHOD_DIRECT && recipe.contains("nearly cancel"), "{recipe}");
        let (method, recipe) = field(0.5, [0.1, 0.2, 1.0]);
        assert!(method == WFMM_METHOD_FMM && !recipe.contains("nearly cancel"), "{recipe}");
    }
}
