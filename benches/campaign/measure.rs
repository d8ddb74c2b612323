//! One problem: evaluated by the library as its description says, and compared at every target.

use crate::support::accuracy::{Field, fill, relative_l2};
use crate::support::api::{Plan, Scalar, Session};
use crate::support::cases::Case;
use crate::support::random::Random;
use std::sync::Arc;
use wakefmm::options::*;
use wakefmm::report::wfmm_report;

use super::build::build;
use super::draw::Problem;
use super::exact::{direct, plain, rows};

/// Up to so many pairs the plain loop is the reference at all targets.
const PLAIN: usize = 200_000;
/// Beyond, the direct sum is held against the plain loop at so many pairs.
const SAMPLED: usize = 30_000;
/// A direct sum on a GPU costs a call; the CPU is as fast up to so many pairs.
const FOR_CPU: usize = 3_000_000;

/// What was found of one problem.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Errors relative to the norm of the field and of its gradient, over all targets; in tolerances, in 30 tolerances.
    pub velocity: f64,
    pub gradient: f64,
    /// Greatest error at one target against the root mean square of the field, in tolerances.
    pub single_target: f64,
    /// Difference of the direct sum and the plain loop, in tolerances (30 for gradients).
    pub direct: f64,
    pub sources: usize,
    pub targets: usize,
    /// Estimated error of the report, in tolerances.
    pub estimated: f64,
    pub method: i32,
    pub order: i32,
    pub depth: i32,
    pub precision: i32,
    pub recipe: String,
    /// A call failed: its message.
    pub failure: Option<String>,
}

impl Outcome {
    pub fn over(&self) -> bool {
        // Not a number is over, too.
        !(self.velocity <= 1.0 && self.gradient <= 1.0) || self.failure.is_some()
    }

    pub fn worst(&self) -> f64 {
        if self.failure.is_some() || self.velocity.is_nan() || self.gradient.is_nan() {
            return f64::INFINITY;
        }
        self.velocity.max(self.gradient)
    }

    /// What the library did, in one line.
    pub fn account(&self) -> String {
        let method = ["AUTO", "direct", "FMM", "treecode"].get(self.method as usize).unwrap_or(&"?");
        let precision = ["?", "f32", "f64"].get(self.precision as usize).unwrap_or(&"?");
        format!(
            "{method} order {} depth {} in {precision}, estimated {:.2}, one target {:.1}, direct sum {:.1e}",
            self.order, self.depth, self.estimated, self.single_target, self.direct
        )
    }
}

/// Sessions of one worker.
pub struct Machine {
    pub cuda: Option<Arc<Session>>,
    pub cuda_reference: Option<Arc<Session>>,
    /// Of the CPU, by number of threads.
    pub cpu: Vec<Session>,
}

impl Machine {
    pub fn new(cuda: Option<Arc<Session>>, cuda_reference: Option<Arc<Session>>) -> Self {
        Self { cuda, cuda_reference, cpu: (1..4).map(Session::cpu).collect() }
    }

    fn tested(&self, p: &Problem) -> &Session {
        self.cuda.as_deref().unwrap_or(&self.cpu[p.threads as usize - 1])
    }

    fn reference(&self, pairs: usize) -> &Session {
        self.cuda_reference.as_deref().filter(|_| pairs > FOR_CPU).unwrap_or(&self.cpu[0])
    }
}

fn evaluate<T: Scalar>(session: &Session, p: &Problem, case: &Case) -> (Field, wfmm_report, String) {
    let o = wfmm_plan_options {
        method: p.method,
        precision: p.precision,
        tolerance: p.tolerance,
        leaf_capacity: p.leaf_capacity,
        segment_regularization: p.segment_regularization,
        particle_regularization: p.particle_regularization,
        ..Default::default()
    };
    let mut plan = Plan::<T>::new(session, &o);
    if p.history {
        field::<T>(&mut plan, p, &build(p, 1));
    }
    let f = field::<T>(&mut plan, p, case);
    (f, plan.report(), plan.recipe())
}

fn field<T: Scalar>(plan: &mut Plan<T>, p: &Problem, case: &Case) -> Field {
    fill(plan, case);
    let ((main, gradient), m) = (rows(case), case.targets.len());
    let (mut u, mut g) = (vec![T::default(); main * m], vec![T::default(); if p.gradient { gradient * m } else { 0 }]);
    let wanted = p.gradient.then_some(&mut g[..]);
    if case.charge.is_empty() {
        plan.velocity(&mut u, wanted)
    } else {
        plan.potential(&mut u, wanted)
    }
    let wide = |v: Vec<T>| v.into_iter().map(T::f64).collect();
    Field { main: wide(u), gradient: wide(g) }
}

/// The exact field, and how far the direct sum is from the plain loop, in tolerances.
fn reference(machine: &Machine, p: &Problem, case: &Case) -> (Field, f64) {
    let n = case.circulation.len() + case.position.len() + case.charge.len();
    let (m, (main, gradient)) = (case.targets.len(), rows(case));
    let sum = direct(machine.reference(n * m), p, case);
    let all = n * m <= PLAIN;
    let mut r = Random::new(p.seed ^ 0x9a9a);
    let some: Vec<usize> = match all {
        true => (0..m).collect(),
        false => (0..(SAMPLED / n).clamp(1, m)).map(|_| (r.bits() % m as u64) as usize).collect(),
    };
    let mut exact = plain(p, case, &some);
    let pick = |v: &[f64], rows: usize| -> Vec<f64> {
        some.iter().flat_map(|&k| v[k * rows..(k + 1) * rows].to_vec()).collect()
    };
    let mut apart = distance(&pick(&sum.main, main), &exact.main, &sum.main);
    if p.gradient {
        apart = apart.max(distance(&pick(&sum.gradient, gradient), &exact.gradient, &sum.gradient) / 30.0);
    } else {
        exact.gradient.clear();
    }
    (if all { exact } else { sum }, apart / p.tolerance)
}

/// Root mean square of a difference at some targets against that of the whole field.
fn distance(got: &[f64], want: &[f64], field: &[f64]) -> f64 {
    let mean = |s: f64, n: usize| s / n.max(1) as f64;
    let wrong = mean(got.iter().zip(want).map(|(a, b)| (a - b).powi(2)).sum(), got.len());
    let size = mean(field.iter().map(|v| v * v).sum(), field.len());
    if wrong == 0.0 { 0.0 } else { (wrong / size).sqrt() }
}

/// Greatest difference at one target against the root mean square.
fn single_target(got: &[f64], want: &[f64], rows: usize) -> f64 {
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let difference: Vec<f64> = got.iter().zip(want).map(|(a, b)| a - b).collect();
    let most = difference.chunks(rows).map(square).fold(0.0, f64::max);
    let mean = square(want) * rows as f64 / want.len().max(1) as f64;
    if most == 0.0 { 0.0 } else { (most / mean).sqrt() }
}

/// Evaluates and compares.
pub fn run(machine: &Machine, p: &Problem) -> Outcome {
    let case = build(p, 0);
    let evaluate = if p.single_arrays { evaluate::<f32> } else { evaluate::<f64> };
    let (got, report, recipe) = evaluate(machine.tested(p), p, &case);
    let (want, direct) = reference(machine, p, &case);
    Outcome {
        velocity: relative_l2(&got.main, &want.main) / p.tolerance,
        gradient: relative_l2(&got.gradient, &want.gradient) / (30.0 * p.tolerance),
        single_target: single_target(&got.main, &want.main, rows(&case).0) / p.tolerance,
        direct,
        sources: case.circulation.len() + case.position.len() + case.charge.len(),
        targets: case.targets.len(),
        estimated: report.estimated_error / p.tolerance,
        method: report.method,
        order: report.order,
        depth: report.depth,
        precision: report.precision,
        recipe,
        failure: None,
    }
}
