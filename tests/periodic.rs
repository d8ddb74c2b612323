//! Periodic domains against sums over all images by other means: Ewald's sum, extrapolated blocks of images, closed forms.

#[path = "../benches/support/mod.rs"]
mod support;

use support::accuracy::{evaluate, fill, relative_l2};
use support::api::{Plan, Session, flat, last_error};
use support::cases::{Case, Kind, Vec3};
use support::periodic::{Images, field_at};
use support::random::Random;
use wakefmm::error::*;
use wakefmm::options::*;

const OPEN: f64 = 0.0;

fn plan_options(method: i32, tolerance: f64, period: Vec3) -> wfmm_plan_options {
    wfmm_plan_options { method, tolerance, period, ..Default::default() }
}

/// Elements in a box, and some beyond its sides; targets likewise. Of charges the sum is zero unless `net`.
fn case(kind: Kind, n: usize, m: usize, period: Vec3, net: bool) -> Case {
    let mut r = Random::new(n as u64 + 77);
    let size = period.map(|p| if p > 0.0 { p } else { 1.0 });
    let mut place = |out: f64| -> Vec3 { std::array::from_fn(|i| size[i] * r.between(-out, 1.0 + out)) };
    let places: Vec<Vec3> = (0..n).map(|k| place(if k % 16 == 0 { 0.7 } else { 0.0 })).collect();
    let targets = (0..m).map(|k| place(if k % 8 == 0 { 1.5 } else { 0.0 })).collect();
    let mut c = Case { targets, ..Case::default() };
    let core = 0.01 * size.iter().copied().fold(f64::INFINITY, f64::min);
    for (k, x) in places.into_iter().enumerate() {
        let a = r.signed();
        match kind {
            Kind::Charges => {
                c.charge_position.push(x);
                c.charge.push(if net { a[0] + 0.3 } else { (1 + k % 2) as f64 - 1.5 });
            }
            Kind::Segments => {
                let at = c.points.len() as i32;
                c.points.extend([x, std::array::from_fn(|i| x[i] + 0.04 * size[i] * a[i])]);
                c.ends.extend([at, at + 1]);
                c.circulation.push(r.between(-1.0, 1.0));
                c.segment_core.push(core);
            }
            _ => {
                c.position.push(x);
                c.strength.push(if net { a.map(|v| v + 0.2) } else { a });
                c.particle_core.push(core);
            }
        }
    }
    c
}

/// Relative errors of the field and its gradient at every `step`-th target.
fn errors(c: &Case, o: &wfmm_plan_options, step: usize) -> (f64, f64) {
    let (got, _) = evaluate::<f64>(&Session::cpu(2), c, o);
    errors_of(c, o, &got.main, &got.gradient, step)
}

fn errors_of(c: &Case, o: &wfmm_plan_options, main: &[f64], gradient: &[f64], step: usize) -> (f64, f64) {
    let images = Images::new(o.period);
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
    let whole = case(kind, n, m, period, net);
    let inside = in_box(whole.clone(), period);
    for &method in methods {
        for &tolerance in tolerances {
            let o = plan_options(method, tolerance, period);
            let (got, outcome) = evaluate::<f64>(&Session::cpu(2), &whole, &o);
            let (u, g) = errors_of(&inside, &o, &got.main, &got.gradient, m.div_ceil(60));
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
        held(kind, 2000, 1500, [1.0; 3], FMM, &[1e-3, 1e-6, 1e-10]);
    }
    held(Kind::Particles, 1500, 1000, [1.0, 1.4, 0.8], FMM, &[1e-6]);
}

#[test]
fn slabs_and_tubes_are_extrapolated_blocks() {
    for kind in [Kind::Particles, Kind::Segments, Kind::Charges] {
        for period in [[1.0, 1.2, OPEN], [OPEN, OPEN, 1.0], [OPEN, 0.9, 1.0]] {
            held(kind, 300, 100, period, DIRECT, &[1e-9]);
            held(kind, 1500, 1000, period, FMM, &[1e-4, 1e-8]);
        }
    }
}
