//! The FMMs of one engine: which kinds of source need one, whether it beats the direct sum, what the last one did, and what is
//! done where it misses its tolerance.

use super::check::{Check, Place};
use super::times::TIMED;
use super::{FmmSum, Kind, Recipe, recipe};
use crate::backend::Field;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::direct::{CudaReal, Output, Task};
use crate::backend::cuda::gather::DeviceInputs;
use crate::backend::cuda::stream::Stream;
use crate::error::Result;
use crate::options::{Method, PlanOptions, Regularization};
use crate::report::Report;
use std::sync::Arc;

/// Seconds of direct sums and of FMMs on one H200, from which AUTO chooses (bench/gpu_scaling crossover, 2026-11-21): pairs a
/// second in f64 and what f32 does more of them, an empty direct sum, an empty FMM, a source or target, and a kept fragment of
/// the operators a target.
const PAIRS: [f64; 3] = [7.5e11, 6.0e11, 2.7e11];
const SINGLE: f64 = 2.2;
const EMPTY_DIRECT: f64 = 0.035e-3;
/// Without and with cores.
const EMPTY: [f64; 2] = [0.045e-3, 0.175e-3];
const POINT: f64 = 2e-9;
const FRAGMENT: f64 = 9e-13;

/// Times that a field which misses its tolerance is computed again, tighter, before it is given up.
const ROUNDS: u32 = 3;
/// What is left of an error that is worth another round; else it is not the expansions'.
const WORTH: f64 = 0.5;
/// After a miss the largest budget becomes one of these parts of what would just hold the tolerance: the first that expansions reach.
const AIMS: [f64; 2] = [0.4, 0.8];

/// Level from which a leaf has few digits of single precision left. Rounding is then much of the error, few pairs have most of it,
/// and a sample must find no more than so much of the tolerance; expansions mend nothing.
const DEEP: u32 = 11;
const SAMPLED: f64 = 0.25;

/// What came of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The direct sum is to be taken, and nothing was added to the output.
    Direct,
    /// Single precision misses the tolerance; nothing was added either.
    Strained,
}

/// What is to be summed.
struct Problem<'a> {
    context: &'a Arc<Context>,
    inputs: &'a DeviceInputs,
    options: &'a PlanOptions,
    stream: &'a Stream,
    kinds: Vec<(Kind, usize)>,
    gradient: bool,
}

impl Problem<'_> {
    /// Sources and targets.
    fn numbers(&self) -> [usize; 2] {
        [self.kinds.iter().map(|(_, n)| n).sum(), self.inputs.targets.n]
    }
}

#[derive(Debug)]
pub struct FmmSet<T: CudaReal> {
    /// Made when first asked for: where AUTO keeps to the direct sum, a new one at every call would cost more than the sum.
    recipes: Vec<Recipe>,
    /// Made when first wanted.
    sums: Vec<FmmSum<T>>,
    /// Those of the last evaluation.
    last: Vec<usize>,
    /// Made with the first sum.
    check: Option<Check>,
    /// The largest budget of a recipe, in tolerances: what this plan's fields were found to need.
    budget: f64,
    /// Sources and targets of the field that missed.
    missed: [usize; 2],
    /// Times that the last field was computed again.
    tightened: u32,
}

impl<T: CudaReal> Default for FmmSet<T> {
    fn default() -> Self {
        Self {
            recipes: Vec::new(),
            sums: Vec::new(),
            last: Vec::new(),
            check: None,
            budget: f64::INFINITY,
            missed: [0; 2],
            tightened: 0,
        }
    }
}

impl<T: CudaReal> FmmSet<T> {
    pub fn bytes(&self) -> u64 {
        self.sums.iter().map(FmmSum::bytes).sum::<u64>() + self.check.as_ref().map_or(0, Check::bytes)
    }

    /// Evaluates by FMM and waits, if that is wanted or expected to be faster.
    pub fn evaluate(&mut self, task: Task<'_>) -> Result<Outcome> {
        let Task { context, inputs, options, field, output, stream } = task;
        self.last.clear();
        self.tightened = 0;
        let kinds = kinds(inputs, field);
        let possible =
            inputs.targets.n > 0 && !kinds.is_empty() && kinds.iter().all(|(kind, _)| has_fmm(*kind, options));
        if !possible || options.method == Method::Direct {
            return Ok(Outcome::Direct);
        }
        let gradient = output.gradient.address != 0;
        let problem = Problem { context, inputs, options, stream, kinds, gradient };
        self.forget(&problem);
        let Some(wanted) = self.choose(&problem) else { return Ok(Outcome::Direct) };
        let mut check = self.check.take().map_or_else(|| Check::new(context, stream), Ok)?;
        let (main, n) = (if matches!(field, Field::Velocity { .. }) { 3 } else { 1 }, inputs.targets.n);
        // What is added must be right the first time.
        let held = if output.add { check.hold(output, main, n) } else { Ok(output) };
        let outcome = held.and_then(|held| {
            let outcome = self.hold_tolerance(&problem, wanted, held, &check)?;
            if outcome == Outcome::Done && output.add {
                check.add(held, output, main, n, stream)?;
            }
            Ok(outcome)
        });
        self.check = Some(check);
        outcome
    }

    /// What a field of other numbers needed says nothing about this one.
    fn forget(&mut self, problem: &Problem<'_>) {
        let alike = |a: usize, b: usize| 4 * a.abs_diff(b) <= a;
        let numbers = problem.numbers();
        if self.budget < f64::INFINITY && !(0..2).all(|k| alike(self.missed[k], numbers[k])) {
            self.budget = f64::INFINITY;
            self.recipes.clear();
            self.sums.clear();
        }
    }

    /// The recipes of all kinds; none where one of them cannot reach the tolerance, or the direct sum is expected to be faster.
    fn choose(&mut self, problem: &Problem<'_>) -> Option<Vec<usize>> {
        let mut wanted = Vec::new();
        for (kind, n) in &problem.kinds {
            let at = self.recipe(*kind, problem);
            let recipe = &self.recipes[at];
            let may_decline = problem.options.method == Method::Auto;
            if !recipe.staircase.reached || may_decline && !pays(recipe, *n, problem.inputs.targets.n) {
                return None;
            }
            wanted.push(at);
        }
        Some(wanted)
    }

    /// Computes the field until it holds the tolerance at the sampled targets, or no recipe does.
    fn hold_tolerance(
        &mut self,
        problem: &Problem<'_>,
        mut wanted: Vec<usize>,
        to: Output,
        check: &Check,
    ) -> Result<Outcome> {
        let tolerance = recipe::tolerance(problem.options, T::IS_F64);
        let mut before = f64::INFINITY;
        loop {
            let error = self.run(problem, &wanted, to, check)?;
            let rounds = !T::IS_F64 && self.last.iter().any(|k| self.sums[*k].account.depth >= DEEP);
            // NaN: neither are the sources numbers.
            if error <= tolerance * if rounds { SAMPLED } else { 1.0 } || error.is_nan() {
                return Ok(Outcome::Done);
            }
            let mends = !rounds && error < WORTH * before;
            match self.tighten(problem, &wanted, tolerance / error, mends) {
                Some(next) => wanted = next,
                None => return Ok(self.give_up(tolerance, error)),
            }
            before = error;
            self.tightened += 1;
            log::info!("the FMM misses its tolerance of {tolerance:.1e} by {error:.1e}: tightened and computed again");
        }
    }

    /// No recipe holds the tolerance.
    fn give_up(&mut self, tolerance: f64, error: f64) -> Outcome {
        // The next field may be a kinder one.
        self.budget = f64::INFINITY;
        self.recipes.clear();
        if T::IS_F64 {
            log::warn!("the FMM misses its tolerance of {tolerance:.1e} by {error:.1e}: summed directly");
            return Outcome::Direct;
        }
        log::info!("the FMM in single precision misses its tolerance of {tolerance:.1e} by {error:.1e}");
        Outcome::Strained
    }

    /// Other recipes, after an error of so many tolerances' inverse; none where there are no better ones, or where more
    /// coefficients mend nothing.
    fn tighten(&mut self, problem: &Problem<'_>, wanted: &[usize], held: f64, mends: bool) -> Option<Vec<usize>> {
        let largest = wanted.iter().map(|k| self.recipes[*k].budget).fold(0.0, f64::max);
        self.missed = problem.numbers();
        self.last.clear();
        self.sums.clear();
        if self.tightened == ROUNDS || held == 0.0 || !mends {
            return None;
        }
        AIMS.iter().find_map(|aim| {
            self.budget = largest * (aim * held).min(0.5);
            self.recipes.clear();
            self.choose(problem)
        })
    }

    /// Evaluates all kinds and waits: the error found.
    fn run(&mut self, problem: &Problem<'_>, wanted: &[usize], to: Output, check: &Check) -> Result<f64> {
        let mut output = to;
        for (slot, at) in wanted.iter().enumerate() {
            let recipe = &self.recipes[*at];
            let found = self
                .sums
                .iter()
                .position(|sum| sum.recipe.kind == recipe.kind && sum.recipe.gradient == recipe.gradient);
            let k = match found {
                Some(k) => k,
                None => {
                    self.sums.push(FmmSum::new(problem.context, recipe.clone(), problem.stream)?);
                    self.sums.len() - 1
                }
            };
            let check = (check, Place { slot, of: wanted.len() });
            self.sums[k].evaluate(problem.inputs, problem.options, output, check, problem.stream)?;
            self.last.push(k);
            output.add = true;
        }
        Ok(self.error())
    }

    /// Found once the last kind was in the field.
    fn error(&self) -> f64 {
        self.last.last().map_or(0.0, |k| self.sums[*k].account.error)
    }

    /// Index of a recipe; the options of a plan do not change.
    fn recipe(&mut self, kind: Kind, problem: &Problem<'_>) -> usize {
        let found = self.recipes.iter().position(|recipe| recipe.kind == kind && recipe.gradient == problem.gradient);
        found.unwrap_or_else(|| {
            let (options, gradient) = (problem.options, problem.gradient);
            self.recipes.push(Recipe::new(kind, options, gradient, T::IS_F64, self.budget));
            self.recipes.len() - 1
        })
    }

    /// Writes what the last evaluation did into the report. It took `whole` on the device, with what missed its tolerance.
    pub fn note(&self, report: &mut Report, whole: f64) {
        (report.order, report.depth, report.cells, report.near_pairs) = (0, 0, 0, 0);
        for account in self.last.iter().map(|k| &self.sums[*k].account) {
            report.order = report.order.max(account.order as i32);
            report.depth = report.depth.max(account.depth as i32);
            report.cells += account.cells as i64;
            report.near_pairs += account.near_pairs as i64;
            for (pass, seconds) in TIMED.iter().zip(account.seconds) {
                report.seconds[*pass as usize] += seconds;
            }
        }
        report.estimated_error = self.error();
        let last: f64 = TIMED.iter().map(|pass| report.seconds[*pass as usize]).sum();
        if self.tightened > 0 && last > 0.0 {
            TIMED.iter().for_each(|pass| report.seconds[*pass as usize] *= whole / last);
        }
    }

    /// What was chosen, if the last field was an FMM's.
    pub fn describe(&self) -> Option<String> {
        let mut texts: Vec<_> = self.last.iter().map(|k| self.sums[*k].recipe.describe()).collect();
        let times = match self.tightened {
            0 => String::new(),
            times => format!(", after tightening {times} times"),
        };
        texts.push(format!("Error found on a sample: {:.1e}{times}.", self.error()));
        (!self.last.is_empty()).then(|| texts.join(" "))
    }
}

fn kinds(inputs: &DeviceInputs, field: Field) -> Vec<(Kind, usize)> {
    let mut kinds = match field {
        Field::Velocity { .. } => vec![(Kind::Segment, inputs.segments.n), (Kind::Particle, inputs.particles.n)],
        Field::Potential { .. } => vec![(Kind::Charge, inputs.charges.n)],
    };
    kinds.retain(|(_, n)| *n > 0);
    kinds
}

/// The core of an offset segment is no function of the distance to its line: there is no list of whom it reaches.
fn has_fmm(kind: Kind, options: &PlanOptions) -> bool {
    kind != Kind::Segment || options.segment_regularization != Regularization::Offset
}

fn pays(recipe: &Recipe, sources: usize, targets: usize) -> bool {
    let (n, m) = (sources as f64, targets as f64);
    let speed = if recipe.is_f64 { 1.0 } else { SINGLE };
    let rate = speed * PAIRS[recipe.kind as usize] * if recipe.gradient { 0.55 } else { 1.0 };
    let far = FRAGMENT * recipe.staircase.products as f64 * m * recipe.components() as f64 / 3.0 / speed;
    EMPTY_DIRECT + n * m / rate > EMPTY[usize::from(recipe.has_cores())] + POINT * (n + m) + far
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_problems_pay_and_small_ones_do_not() {
        let options = PlanOptions {
            method: Method::Auto,
            precision: crate::options::Precision::F64,
            order: 0,
            plane: None,
            leaf_capacity: 0,
            segment_regularization: Regularization::Vatistas,
            particle_regularization: Regularization::None,
            index_base: 0,
            tolerance: 1e-4,
            normalization: 1.0,
            core_radius: 0.0,
            accumulate: false,
        };
        let recipe = Recipe::new(Kind::Particle, &options, false, true, f64::INFINITY);
        assert!(!pays(&recipe, 1000, 1000));
        assert!(pays(&recipe, 1_000_000, 1_000_000));
        // Measured at 1e-3, by whole calls: from some 5,000 points in f64, 7,000 in f32.
        let options = PlanOptions { tolerance: 1e-3, ..options };
        for (is_f64, few, many) in [(true, 4_000, 6_000), (false, 6_000, 9_000)] {
            let recipe = Recipe::new(Kind::Particle, &options, false, is_f64, f64::INFINITY);
            assert!(!pays(&recipe, few, few) && pays(&recipe, many, many));
        }
    }
}
