//! Error of the FMM against the direct sum of the library in double precision, over all targets of a case.
//!
//! The direct sum is itself held against the one-pair-at-a-time oracle in `oracle_difference` (tests/cpu.rs).

use super::api::{Plan, Scalar, Session, flat, list};
use super::cases::{Case, Kind, Vec3};
use wakefmm::math::biot_savart;
use wakefmm::math::regularization::Part;
use wakefmm::options::*;

/// What one evaluation gave.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Relative L2 errors.
    pub velocity: f64,
    pub gradient: f64,
    /// Largest error of the velocity at one target over the root mean square of the field.
    pub largest: f64,
    pub far_pairs: i64,
    pub core_pairs: i64,
    pub method: i32,
    pub recipe: String,
}

/// Field of a case in double precision: three (or one) and nine (or three) numbers a target.
pub struct Field {
    pub main: Vec<f64>,
    pub gradient: Vec<f64>,
}

pub fn options(method: i32, tolerance: f64, segments: i32, particles: i32, leaf_capacity: i32) -> wfmm_plan_options {
    wfmm_plan_options {
        method,
        tolerance,
        leaf_capacity,
        segment_regularization: segments,
        particle_regularization: particles,
        ..Default::default()
    }
}

pub fn fill<T: Scalar>(plan: &mut Plan<T>, case: &Case) {
    if !case.ends.is_empty() {
        let core = list::<T>(&case.segment_core);
        plan.segments(&flat(&case.points), &case.ends, &list(&case.circulation), Some(&core));
    }
    if !case.position.is_empty() {
        let core = list::<T>(&case.particle_core);
        plan.particles(&flat(&case.position), &flat(&case.strength), Some(&core));
    }
    if !case.charge.is_empty() {
        plan.charges(&flat(&case.charge_position), &list(&case.charge));
    }
    plan.targets(&flat(&case.targets));
}

/// Evaluates with gradients.
pub fn evaluate<T: Scalar>(session: &Session, case: &Case, o: &wfmm_plan_options) -> (Field, Outcome) {
    let mut plan = Plan::<T>::new(session, o);
    fill(&mut plan, case);
    let (m, charges) = (case.targets.len(), !case.charge.is_empty());
    let rows = if charges { (1, 3) } else { (3, 9) };
    let (mut main, mut gradient) = (vec![T::default(); rows.0 * m], vec![T::default(); rows.1 * m]);
    if charges {
        plan.potential(&mut main, Some(&mut gradient));
    } else {
        plan.velocity(&mut main, Some(&mut gradient));
    }
    let r = plan.report();
    let outcome = Outcome {
        far_pairs: r.far_pairs,
        core_pairs: r.core_pairs,
        method: r.method,
        recipe: plan.recipe(),
        ..Default::default()
    };
    let wide = |v: Vec<T>| v.into_iter().map(T::f64).collect();
    (Field { main: wide(main), gradient: wide(gradient) }, outcome)
}

/// The exact, regularized sum.
pub fn reference(session: &Session, case: &Case, segments: i32, particles: i32) -> Field {
    let o = options(WFMM_METHOD_DIRECT, 1e-10, segments, particles, 0);
    evaluate::<f64>(session, case, &wfmm_plan_options { precision: WFMM_PRECISION_F64, ..o }).0
}

pub fn relative_l2(got: &[f64], want: &[f64]) -> f64 {
    let sum = |f: &dyn Fn(usize) -> f64| (0..want.len()).map(|k| f(k).powi(2)).sum::<f64>();
    let (wrong, size) = (sum(&|k| got[k] - want[k]), sum(&|k| want[k]));
    if wrong == 0.0 { 0.0 } else { (wrong / size).sqrt() }
}

/// Largest error at one target over the root mean square of the field, of which a target has `rows` numbers.
pub fn largest_error(got: &[f64], want: &[f64], rows: usize) -> f64 {
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let wrong: Vec<f64> = got.iter().zip(want).map(|(a, b)| a - b).collect();
    let most = wrong.chunks(rows).map(square).fold(0.0, f64::max);
    if most == 0.0 { 0.0 } else { (most * (want.len() / rows) as f64 / square(want)).sqrt() }
}

/// The FMM at one tolerance, compared.
pub fn measure<T: Scalar>(session: &Session, case: &Case, want: &Field, o: &wfmm_plan_options) -> Outcome {
    let (got, mut outcome) = evaluate::<T>(session, case, o);
    outcome.velocity = relative_l2(&got.main, &want.main);
    outcome.gradient = relative_l2(&got.gradient, &want.gradient);
    outcome.largest = largest_error(&got.main, &want.main, want.main.len() / case.targets.len());
    outcome
}

/// Relative L2 difference, of the field and of its gradient, between `field` and the oracle at every `step`-th target.
pub fn oracle_difference(case: &Case, field: &Field, segments: i32, particles: i32, step: usize) -> (f64, f64) {
    let norm = 1.0 / (4.0 * std::f64::consts::PI);
    let (mut got, mut want) = ([vec![], vec![]], [vec![], vec![]]);
    for (k, &x) in case.targets.iter().enumerate().step_by(step) {
        let (main, gradient) = exact(case, x, segments, particles);
        got[0].extend_from_slice(&field.main[k * main.len()..(k + 1) * main.len()]);
        got[1].extend_from_slice(&field.gradient[k * gradient.len()..(k + 1) * gradient.len()]);
        want[0].extend(main.iter().map(|v| v * norm));
        want[1].extend(gradient.iter().map(|v| v * norm));
    }
    (relative_l2(&got[0], &want[0]), relative_l2(&got[1], &want[1]))
}

/// The sum of `math::biot_savart` at one target.
fn exact(case: &Case, x: Vec3, segments: i32, particles: i32) -> (Vec<f64>, Vec<f64>) {
    let reg = |code| Regularization::from_code(code).expect("a regularization");
    if !case.charge.is_empty() {
        let mut sum = [0.0; 4];
        for (p, q) in case.charge_position.iter().zip(&case.charge) {
            let a = biot_savart::charge(x, *p, *q);
            sum[0] += a.potential;
            (0..3).for_each(|i| sum[1 + i] += a.gradient[i]);
        }
        return (vec![sum[0]], sum[1..].to_vec());
    }
    let (mut u, mut g) = (vec![0.0; 3], vec![0.0; 9]);
    let mut add = |v: biot_savart::Induced| {
        (0..3).for_each(|i| u[i] += v.velocity[i]);
        (0..9).for_each(|i| g[i] += v.gradient[i / 3][i % 3]);
    };
    for (k, e) in case.ends.chunks(2).enumerate() {
        let (p1, p2) = (case.points[e[0] as usize], case.points[e[1] as usize]);
        let core = case.segment_core[k];
        add(biot_savart::segment(reg(segments), Part::Regularized, x, p1, p2, case.circulation[k], core));
    }
    for (k, p) in case.position.iter().enumerate() {
        let (a, core) = (case.strength[k], case.particle_core[k]);
        add(biot_savart::particle(reg(particles), Part::Regularized, x, *p, a, core));
    }
    (u, g)
}

/// Regularizations of a kind of element: (of segments, of particles).
pub fn regularizations(kind: Kind) -> Vec<(i32, i32)> {
    let segments: Vec<i32> = (WFMM_REG_NONE..=WFMM_REG_OFFSET).collect();
    let particles: Vec<i32> = std::iter::once(WFMM_REG_NONE).chain(WFMM_REG_GAUSS_ERF..=WFMM_REG_POLYNOMIAL).collect();
    match kind {
        Kind::Segments => segments.iter().map(|&s| (s, 0)).collect(),
        Kind::Particles => particles.iter().map(|&p| (0, p)).collect(),
        Kind::Both => vec![
            (WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF),
            (WFMM_REG_LAMB_OSEEN, WFMM_REG_WINCKELMANS),
            (WFMM_REG_SCULLY, WFMM_REG_POLYNOMIAL),
        ],
        Kind::Charges => vec![(0, 0)],
    }
}

/// Those of them without cores, with Vatistas cores of segments and with Gauss-erf cores of particles.
pub fn some_regularizations(kind: Kind) -> Vec<(i32, i32)> {
    let taken = [WFMM_REG_NONE, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF];
    regularizations(kind).into_iter().filter(|(s, p)| taken.contains(s) && taken.contains(p)).collect()
}

pub fn name_of(code: i32) -> &'static str {
    let names = Regularization::ALL.iter().find(|(r, _)| *r as i32 == code);
    names.map_or("?", |(_, n)| n.trim_start_matches("WFMM_REG_"))
}
