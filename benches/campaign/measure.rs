//! One problem: the library's answer compared at every target with the exact sum, and the exact sum with a plain loop.

use crate::support::accuracy::{Field, relative_l2};
use crate::support::cases::Case;
use crate::support::random::Random;

use super::build::build;
use super::draw::Problem;
use super::evaluate::{Machine, evaluate};
use super::exact::{direct, elements, plain, rows};

/// Up to so many pairs the plain loop is the reference at all targets.
const PLAIN: usize = 200_000;
/// Beyond, the direct sum is held against the plain loop at so many pairs.
const SAMPLED: usize = 30_000;
/// And at so many targets where the library is farthest from it, and at as many where the field is greatest.
const EXTREMES: usize = 4;

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
        self.failure.is_some() || exceeds(self.velocity, 1.0) || exceeds(self.gradient, 1.0)
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

/// Above a limit, or no number.
pub fn exceeds(x: f64, limit: f64) -> bool {
    x.is_nan() || x > limit
}

fn square(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum()
}

/// Numbers of both fields at the same targets.
struct Pair<'a> {
    got: &'a [f64],
    want: &'a [f64],
    rows: usize,
}

impl Pair<'_> {
    fn targets(&self) -> usize {
        self.want.len() / self.rows
    }

    /// Squares by target of `f`, which is given what was found and what was wanted.
    fn squares(&self, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let values: Vec<f64> = self.got.iter().zip(self.want).map(|(&a, &b)| f(a, b)).collect();
        values.chunks(self.rows).map(square).collect()
    }

    fn single_target(&self) -> f64 {
        let most = self.squares(|a, b| a - b).into_iter().fold(0.0, f64::max);
        if most == 0.0 { 0.0 } else { (most * self.targets() as f64 / square(self.want)).sqrt() }
    }

    /// Targets with the greatest errors and the greatest fields.
    fn extremes(&self) -> Vec<usize> {
        let first = |v: Vec<f64>| {
            let mut order: Vec<usize> = (0..v.len()).collect();
            order.sort_by(|&a, &b| v[b].total_cmp(&v[a]));
            order.into_iter().take(EXTREMES).collect::<Vec<_>>()
        };
        let mut all = first(self.squares(|a, b| a - b));
        all.extend(first(self.squares(|_, b| b)));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Error of `want` at some targets, `exact` is right there, against its norm at `of` targets of the mean (`None`: at all).
    fn apart(&self, some: &[usize], exact: &[f64], of: Option<usize>) -> f64 {
        let at = |k: usize| self.want[k * self.rows..(k + 1) * self.rows].iter();
        let wrong: f64 = some.iter().flat_map(|&k| at(k)).zip(exact).map(|(a, b)| (a - b).powi(2)).sum();
        let share = of.map_or(1.0, |n| n as f64 / self.targets() as f64);
        if wrong == 0.0 { 0.0 } else { (wrong / (square(self.want) * share)).sqrt() }
    }
}

/// How far the direct sum is from the plain loop, in tolerances: at targets of chance, and where it matters most.
fn trust(p: &Problem, case: &Case, got: &Field, sum: &Field) -> f64 {
    let (m, (main, gradient)) = (case.targets.len(), rows(case));
    let pair = Pair { got: &got.main, want: &sum.main, rows: main };
    let slope = Pair { got: &got.gradient, want: &sum.gradient, rows: gradient };
    let mut r = Random::new(p.seed ^ 0x9a9a);
    let some: Vec<usize> =
        (0..(SAMPLED / elements(case)).clamp(1, m)).map(|_| (r.bits() % m as u64) as usize).collect();
    let mut extremes = pair.extremes();
    extremes.extend(slope.extremes());
    let mut worst: f64 = 0.0;
    for (targets, of) in [(&some, Some(some.len())), (&extremes, None)] {
        let exact = plain(p, case, targets);
        worst = worst.max(pair.apart(targets, &exact.main, of));
        if p.gradient {
            worst = worst.max(slope.apart(targets, &exact.gradient, of) / 30.0);
        }
    }
    worst / p.tolerance
}

/// The exact field, and how far the direct sum is from the plain loop.
fn reference(machine: &Machine, p: &Problem, case: &Case, got: &Field) -> (Field, f64) {
    let (n, m) = (elements(case), case.targets.len());
    let sum = direct(machine.reference(n * m), p, case);
    if n * m > PLAIN {
        let apart = trust(p, case, got, &sum);
        return (sum, apart);
    }
    let mut exact = plain(p, case, &(0..m).collect::<Vec<_>>());
    if !p.gradient {
        exact.gradient.clear();
    }
    let apart = relative_l2(&sum.main, &exact.main).max(relative_l2(&sum.gradient, &exact.gradient) / 30.0);
    (exact, apart / p.tolerance)
}

/// The errors of a field.
pub fn judge(p: &Problem, case: &Case, got: &Field, want: &Field) -> Outcome {
    let pair = Pair { got: &got.main, want: &want.main, rows: rows(case).0 };
    Outcome {
        velocity: relative_l2(&got.main, &want.main) / p.tolerance,
        gradient: relative_l2(&got.gradient, &want.gradient) / (30.0 * p.tolerance),
        single_target: pair.single_target() / p.tolerance,
        sources: elements(case),
        targets: case.targets.len(),
        ..Default::default()
    }
}

/// Evaluates and compares.
pub fn run(machine: &Machine, p: &Problem) -> Outcome {
    let case = build(p, 0);
    let evaluate = if p.single_arrays { evaluate::<f32> } else { evaluate::<f64> };
    let (got, report, recipe) = evaluate(machine.tested(p), p, &case);
    let (want, direct) = reference(machine, p, &case, &got);
    Outcome {
        direct,
        estimated: report.estimated_error / p.tolerance,
        method: report.method,
        order: report.order,
        depth: report.depth,
        precision: report.precision,
        recipe,
        ..judge(p, &case, &got, &want)
    }
}
