//! One problem: the library's answer compared at every target with the exact sum, and the exact sum with a plain loop.

use crate::support::accuracy::{Field, largest_error, relative_l2};
use crate::support::cases::Case;
use crate::support::random::Random;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::build::{build, plane};
use super::draw::Problem;
use super::evaluate::{Machine, evaluate};
use super::exact::{Exact, direct, elements, rows};
use super::limits::Limit;
use super::ranks;

/// Up to so many pairs the plain loop is the reference at all targets.
const PLAIN: usize = 200_000;
/// Beyond, the direct sum is held against the plain loop at so many pairs.
const SAMPLED: usize = 30_000;
/// And at so many targets where the library is farthest from it, and at as many where the field is greatest.
const EXTREMES: usize = 4;
/// Nearer than so many last digits a target may count as on a line.
const ON_LINE: f64 = 4.0;
/// So many times all sources are moved by their last digits, where a problem is over.
const MOVED_CASES: usize = 4;
/// What the direct sum may differ by from the plain loop, in tolerances, before single targets are looked at.
const DIRECT: f64 = 0.1;
/// So many of the targets that are most wrong are looked at, where a problem is over, and as many again as long as some of them are left
/// out; without and with periods, where each takes up to 44 of Ewald's sums.
const MOST_EXAMINED: [usize; 2] = [2048, 16];

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
    /// Targets that were left out of the errors: see `undetermined`.
    pub undetermined: usize,
    /// Estimated error of the report, in tolerances.
    pub estimated: f64,
    pub method: i32,
    pub order: i32,
    pub depth: i32,
    pub precision: i32,
    pub recipe: String,
    /// A limit of docs/periodic.md that the problem is at, and the recipe says so: it is counted apart.
    pub limit: Option<Limit>,
    /// A call failed: its message.
    pub failure: Option<String>,
}

impl Outcome {
    pub fn over(&self) -> bool {
        self.missed() && !self.refused() && self.limit.is_none()
    }

    /// Not within the tolerance, for whatever reason.
    pub fn missed(&self) -> bool {
        self.failure.is_some() || exceeds(self.velocity, 1.0) || exceeds(self.gradient, 1.0)
    }

    /// The library said that it does not have this periodic sum: too many near images, or cores that reach too far.
    pub fn refused(&self) -> bool {
        let reasons = [
            "that so few periods",
            "of so few periods that",
            "too many images are near",
            "core_radius",
            "has no potential, which would be infinite",
            "WFMM_EXPANSION_PSEUDO_PARTICLES with tolerance",
        ];
        self.failure.as_ref().is_some_and(|text| reasons.iter().any(|r| text.contains(r)))
    }

    pub fn worst(&self) -> f64 {
        if self.refused() {
            return 0.0;
        }
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

    /// Their sum over all targets but some.
    fn sum(&self, f: impl Fn(f64, f64) -> f64, without: &[usize]) -> f64 {
        let squares = self.squares(f);
        squares.iter().enumerate().filter(|(k, _)| !without.contains(k)).map(|(_, s)| s).sum()
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
    /// `is_open`: a target is left out, told its error squared.
    fn apart(&self, some: &[usize], exact: &[f64], of: Option<usize>, is_open: impl Fn(usize, f64) -> bool) -> f64 {
        let at = |k: usize| &self.want[k * self.rows..(k + 1) * self.rows];
        let error = |(&k, exact): (&usize, &[f64])| {
            let error: f64 = at(k).iter().zip(exact).map(|(a, b)| (a - b).powi(2)).sum();
            if error > 0.0 && is_open(k, error) { 0.0 } else { error }
        };
        let wrong: f64 = some.iter().zip(exact.chunks(self.rows)).map(error).sum();
        let share = of.map_or(1.0, |n| n as f64 / self.targets() as f64);
        if wrong == 0.0 { 0.0 } else { (wrong / (square(self.want) * share)).sqrt() }
    }
}

/// How far the direct sum is from the plain loop, in tolerances: at targets of chance, and where it matters most.
fn trust(true_field: &Exact<'_>, got: &Field, sum: &Field) -> f64 {
    let (p, case) = (true_field.p, true_field.case);
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
        let exact = true_field.field(targets);
        let one = |pair: &Pair, exact: &[f64], first: usize, allowed: f64| {
            let error = pair.apart(targets, exact, of, |_, _| false) / allowed;
            if error <= DIRECT {
                return error;
            }
            pair.apart(targets, exact, of, |k, e| is_open(true_field, &[], k, e, first..first + pair.rows)) / allowed
        };
        worst = worst.max(one(&pair, &exact.main, 0, p.tolerance));
        if p.gradient {
            worst = worst.max(one(&slope, &exact.gradient, main, 30.0 * p.tolerance));
        }
    }
    worst
}

/// The exact field, and how far the direct sum is from the plain loop.
fn reference(machine: &Machine, true_field: &Exact<'_>, got: &Field) -> (Field, f64) {
    let (p, case) = (true_field.p, true_field.case);
    let (n, m) = (elements(case), case.targets.len());
    let everywhere = || {
        let mut exact = true_field.field(&(0..m).collect::<Vec<_>>());
        if !p.gradient {
            exact.gradient.clear();
        }
        exact
    };
    if true_field.is_periodic() {
        return (everywhere(), 0.0);
    }
    let sum = direct(machine.reference(n * m), p, &true_field.all);
    if n * m > PLAIN {
        let apart = trust(true_field, got, &sum);
        return (sum, apart);
    }
    let exact = everywhere();
    let o = excused(true_field, &sum, &exact, judge(p, case, &sum, &exact), DIRECT);
    (exact, o.velocity.max(o.gradient))
}

/// The errors of a field.
pub fn judge(p: &Problem, case: &Case, got: &Field, want: &Field) -> Outcome {
    let pair = Pair { got: &got.main, want: &want.main, rows: rows(case).0 };
    Outcome {
        velocity: relative_l2(&got.main, &want.main) / p.tolerance,
        gradient: relative_l2(&got.gradient, &want.gradient) / (30.0 * p.tolerance),
        single_target: largest_error(pair.got, pair.want, pair.rows) / p.tolerance,
        sources: elements(case),
        targets: case.targets.len(),
        ..Default::default()
    }
}

/// How far apart the arithmetic that was asked for may move a target and a source: by the last digit of both coordinates, or the
/// last of the 46 bits of the domain, up to four times as wide as its reach, that double arrays keep in single precision.
/// Single arrays are taken to 2^-51 of the largest coordinate: all digits of coordinates that are not 2^27 times smaller.
fn resolution(p: &Problem, case: &Case) -> f64 {
    let mut all = case.points.iter().chain(&case.position).chain(&case.charge_position).chain(&case.targets).peekable();
    let first = all.peek().map_or([0.0; 3], |x| **x);
    let mut reach = [0.0f64; 2];
    for x in all {
        for i in 0..3 {
            reach = [reach[0].max(x[i].abs()), reach[1].max((x[i] - first[i]).abs())];
        }
    }
    let digits = 2f64.powi(-51) * reach[0];
    // With periods positions are multiples of a step, the last of 50 or 44 bits of the largest coordinate or the domain.
    let extent = reach[0].max(reach[1]).max(p.unit * p.period.into_iter().fold(0.0, f64::max));
    let step = if p.single() { 2f64.powi(-43) } else { 2f64.powi(-49) };
    let digits = if p.periods() > 0 { digits + step * extent.log2().ceil().exp2() } else { digits };
    // Many ranks keep single arrays as double ones, and so are targets whose images in a plane have more digits.
    let has_longer_images = plane(p, case).is_some_and(|(_, position)| position != 0.0);
    let splits = p.single() && (!p.single_arrays || p.periods() > 0 || p.ranks.is_some() || has_longer_images);
    if splits { digits + 2f64.powi(-44) * reach[1] } else { digits }
}

/// The case with every source moved by up to the last digit of the arithmetic in each coordinate, a few times.
fn with_moved_sources(p: &Problem, case: &Case) -> Vec<Case> {
    let (step, mut r) = (resolution(p, case), Random::new(p.seed ^ 0x5e5e));
    let one = |_| {
        let mut moved = case.clone();
        let positions = moved.points.iter_mut().chain(&mut moved.position).chain(&mut moved.charge_position);
        positions.flatten().for_each(|x| *x += step * r.between(-1.0, 1.0));
        moved
    };
    (0..MOVED_CASES).map(one).collect()
}

/// Whether the last digit of the arithmetic decides over the exact field at target `k`. Moved by it, or put onto the lines and
/// particles that are so near, the target has a field that differs by as much as half of an error, or it does in one of the `moved`
/// fields, whose sources are moved; or most of its field comes from these, so that it may be anything. `rows`: the numbers compared.
fn is_open(exact: &Exact<'_>, moved: &[Exact<'_>], k: usize, error: f64, rows: Range<usize>) -> bool {
    let (step, x) = (resolution(exact.p, exact.case), exact.case.targets[k]);
    if step == 0.0 {
        return false;
    }
    let field = |x, near| exact.at(x, near)[rows.clone()].to_vec();
    let here = field(x, 0.0);
    let change = |other: Vec<f64>| other.iter().zip(&here).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    // By the last digit or a part of it: the nearer to a line, the larger the field. One coordinate moves, or all of them.
    let way = |k: usize| [k % 3, k / 3 % 3, k / 9].map(|digit| digit as f64 - 1.0);
    let moves = |way: &[f64; 3]| [1, 3].contains(&way.iter().filter(|w| **w != 0.0).count());
    let ways = (0..27).map(way).filter(moves);
    let beside = |part: f64, way: [f64; 3]| std::array::from_fn(|i| x[i] + part * step * way[i]);
    let mut all = ways.flat_map(|way| [1.0, 0.125, 0.015625].map(|part| beside(part, way)));
    change(field(x, ON_LINE * step)) >= 0.25 * error.min(square(&here))
        || all.any(|x| change(field(x, 0.0)) >= 0.25 * error)
        || moved.iter().any(|moved| change(moved.at(x, 0.0)[rows.clone()].to_vec()) >= 0.25 * error)
}

/// Of the targets that are most wrong, those that are open, without `left_out`. `first`: row of the numbers compared among all
/// of a target. `allowed`: relative error.
fn undetermined(
    (exact, moved): (&Exact<'_>, &[Exact<'_>]),
    pair: &Pair,
    first: usize,
    allowed: f64,
    left_out: &[usize],
) -> Vec<usize> {
    let errors = pair.squares(|a, b| a - b);
    // The others are within the tolerance together.
    let least = 0.1 * allowed * allowed * pair.sum(|_, b| b, left_out) / pair.targets().max(1) as f64;
    let is_left = |k: &usize| errors[*k] > least && !left_out.contains(k);
    let mut order: Vec<usize> = (0..errors.len()).filter(is_left).collect();
    order.sort_by(|&a, &b| errors[b].total_cmp(&errors[a]));
    order.truncate(MOST_EXAMINED[usize::from(exact.is_periodic())]);
    order.retain(|&k| is_open(exact, moved, k, errors[k], first..first + pair.rows));
    order
}

/// Error without some targets, relative to the field at all of them. Those left out have there what sources that are not so near
/// give them.
fn without(exact: &Exact<'_>, pair: &Pair, first: usize, left_out: &[usize]) -> f64 {
    let wrong = pair.sum(|a, b| a - b, left_out);
    let step = resolution(exact.p, exact.case);
    let farther = |k: &usize| square(&exact.at(exact.case.targets[*k], ON_LINE * step)[first..first + pair.rows]);
    let all = pair.sum(|_, b| b, left_out) + left_out.iter().map(farther).sum::<f64>();
    if wrong == 0.0 { 0.0 } else { (wrong / all).sqrt() }
}

/// Errors above `limit`, measured again without the targets whose field the arithmetic asked for leaves open.
fn excused(exact: &Exact<'_>, got: &Field, want: &Field, mut o: Outcome, limit: f64) -> Outcome {
    let (main, gradient) = rows(exact.case);
    let velocity = Pair { got: &got.main, want: &want.main, rows: main };
    let slope = Pair { got: &got.gradient, want: &want.gradient, rows: gradient };
    for (pair, first, error, scale) in [(velocity, 0, &mut o.velocity, 1.0), (slope, main, &mut o.gradient, 30.0)] {
        if exceeds(*error, limit) {
            let allowed = scale * exact.p.tolerance;
            let mut left_out = vec![];
            let cases = with_moved_sources(exact.p, exact.case);
            let moved: Vec<Exact> = cases.iter().map(|case| Exact::new(exact.p, case)).collect();
            // Without a target of a very large field the others count for more.
            while exceeds(*error, limit) {
                let more = undetermined((exact, &moved), &pair, first, limit * allowed, &left_out);
                if more.is_empty() {
                    break;
                }
                left_out.extend(more);
                *error = without(exact, &pair, first, &left_out) / allowed;
            }
            o.undetermined += left_out.len();
        }
    }
    o
}

/// Evaluates and compares.
pub fn run(machine: &Machine, p: &Problem) -> Outcome {
    let case = build(p, 0);
    let (got, report, recipe) = match (p.ranks.is_some(), p.single_arrays) {
        (false, false) => evaluate::<f64>(machine.tested(p), p, &case),
        (false, true) => evaluate::<f32>(machine.tested(p), p, &case),
        (true, false) => ranks::evaluate::<f64>(machine.backend(), p, &case),
        (true, true) => ranks::evaluate::<f32>(machine.backend(), p, &case),
    };
    let exact = Exact::new(p, &case);
    let (want, direct) = reference(machine, &exact, &got);
    let outcome = Outcome {
        direct,
        estimated: report.estimated_error / p.tolerance,
        method: report.method,
        order: report.order,
        depth: report.depth,
        precision: report.precision,
        limit: Limit::of_cores(p, &case, &recipe),
        recipe,
        ..judge(p, &case, &got, &want)
    };
    // At the limit of cores a problem is counted apart, whichever targets are wrong.
    if outcome.limit.is_some() {
        return outcome;
    }
    let outcome = excused(&exact, &got, &want, outcome, 1.0);
    Outcome { limit: Limit::beside_slab(&exact, &outcome, &want), ..outcome }
}

/// The same, where a call may fail.
pub fn run_or_fail(machine: &Machine, p: &Problem) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| run(machine, p))).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let failure = text.or(cause.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default();
        Outcome { failure: Some(failure), sources: p.sources, targets: p.targets, ..Default::default() }
    })
}
