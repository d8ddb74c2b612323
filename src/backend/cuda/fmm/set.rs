//! The FMMs of one engine: one for each kind of source, the choice between FMM and direct sum, retries where a field misses its
//! tolerance.

use super::args::SampleSums;
use super::check::{self, Check, Look, Numbers, Part, Sample};
use super::layout::NEAR_IMAGES;
use super::recipe::{Far, Limits};
use super::times::TIMED;
use super::verdict::Verdict;
use super::{Asked, FmmSum, Kind, Ranks, Recipe, pseudo, recipe};
use crate::backend::Field;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::direct::{CudaReal, Output, Task};
use crate::backend::cuda::gather::DeviceInputs;
use crate::backend::cuda::held::Held;
use crate::backend::cuda::stream::Stream;
use crate::backend::verdict::{ROUNDING, missed_by_pseudo_particles};
use crate::error::Result;
use crate::options::{Expansion, Method, PlanOptions, Regularization, WFMM_METHOD_FMM, WFMM_METHOD_TREECODE};
use crate::report::{Pass, Report};
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

/// Largest number of retries with smaller budgets of a field that misses its tolerance.
const ROUNDS: u32 = 3;
/// Number of problem sizes whose budgets a plan remembers.
const KNOWN: usize = 8;
/// A retry must reduce the error at least by this factor; else the error is not that of the expansions.
const WORTH: f64 = 0.5;
/// After a miss the largest budget becomes one of these parts of what would just hold the tolerance: the first that expansions reach.
const AIMS: [f64; 2] = [0.4, 0.8];

/// The estimate of an error has three standard errors in it. Those of the expansions at corners of cells are so much larger than the others that
/// from 500 targets it was up to twice the error: of a field with up to so many tolerances more targets decide, before it is given up.
const HOPEFUL: f64 = 3.0;

/// A field whose sampled error is more than this part of the tolerance is computed again where a better recipe exists. The errors of a
/// few targets beside strong sources can be most of the whole, and the sample need not have one of them: of 43,000 random problems of
/// up to 20,000 targets, 2026-11-23, those that missed with expansions alone had 0.8 to 1 tolerances at the sample, and less than one
/// problem in a hundred has so much.
const ACCEPTED: f64 = 0.75;

/// A direct sum that takes no longer than so many evaluations takes the place of a field with more of the tolerance than `ACCEPTED` that
/// no recipe improves.
const FEW_EVALUATIONS: f64 = 4.0;

/// Largest error that a core which is left out may make at one target, in tolerances of the field's mean size over the root of the number
/// of targets: it adds the square of this to that of the error.
const AT_TARGET: f64 = 0.2;

/// Depth from which the cells are so small that single precision has few digits left in them, and tolerances to which it has few anyway.
/// Rounding is then much of the error (`ROUNDING`), and smaller budgets do not help.
const DEEP: u32 = 11;
const FINE: f64 = 1e-5;
/// The same depth where pairs have positions of two floats: their last digit is 2^-49 of the root cube, 2^-33 of such a cell.
const DEEP_IN_TWO_FLOATS: u32 = 16;

/// Result of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The direct sum must be taken; nothing was added to the output.
    Direct,
    /// Single precision misses the tolerance; nothing was added either.
    NotInSingle,
}

/// What is to be summed.
struct Problem<'a> {
    context: &'a Arc<Context>,
    inputs: &'a DeviceInputs,
    options: &'a PlanOptions,
    stream: &'a Stream,
    kinds: Vec<(Kind, usize)>,
    gradient: bool,
    ranks: &'a Ranks,
}

impl Problem<'_> {
    /// The same with the targets of the rank that has the most: what all ranks choose by.
    fn size(&self) -> [usize; 2] {
        let [sources, targets] = self.numbers();
        [sources, self.ranks.most_targets(targets)]
    }

    /// Sources and targets. What takes longer counts accordingly: segments and cores twice, with gradients three times that.
    fn numbers(&self) -> [usize; 2] {
        let weight = |kind: Kind| match kind {
            Kind::Charge => 1,
            Kind::Particle if self.options.particle_regularization == Regularization::None => 1,
            _ => 2,
        } * if self.gradient { 3 } else { 1 };
        [self.kinds.iter().map(|(kind, n)| weight(*kind) * n).sum(), self.inputs.targets.n]
    }

    /// What the check samples by.
    fn sampled(&self) -> Numbers {
        let [sources, targets] = self.numbers();
        Numbers { sources, targets, images: self.images(), ranks: self.ranks.size() }
    }

    /// Whether a direct sum may take the place of this one at little cost; the same on all ranks.
    fn is_cheap_directly(&self, wanted: &[Recipe]) -> bool {
        let [directly, by_fmm] = self.seconds(wanted).fold([0.0; 2], |a, [direct, fmm]| [a[0] + direct, a[1] + fmm]);
        !self.is_pseudo() && directly <= FEW_EVALUATIONS * by_fmm
    }

    /// Expected of each kind, near images included: by the direct sum and by the FMM.
    fn seconds(&self, wanted: &[Recipe]) -> impl Iterator<Item = [f64; 2]> {
        let [_, targets] = self.size();
        let images = self.images();
        self.kinds.iter().zip(wanted).map(move |((_, n), recipe)| seconds(recipe, images * n, targets))
    }

    fn is_pseudo(&self) -> bool {
        self.options.expansion == Expansion::PseudoParticles
    }

    /// Where no FMM serves, which leaves this error: one in double precision may. Pseudo-particles are asked for to be compared, and no
    /// other sum takes their place.
    fn without_fmm<T: CudaReal>(&self, error: f64) -> Result<Outcome> {
        match self.is_pseudo() {
            _ if !T::IS_F64 => Ok(Outcome::NotInSingle),
            true => Err(missed_by_pseudo_particles(self.options.tolerance, error)),
            false => Ok(Outcome::Direct),
        }
    }

    /// The sources and those of their near images in a periodic domain that are no sources themselves: a direct sum takes all of them.
    fn images(&self) -> usize {
        self.inputs.far.and_then(|far| far.images).map_or(1, |_| NEAR_IMAGES as usize)
    }
}

/// What fields of one size needed.
#[derive(Debug, Clone, Copy)]
struct Needed {
    numbers: [usize; 2],
    gradient: bool,
    limits: Limits,
}

impl Needed {
    /// Whether this size is that of what is remembered.
    fn serves(&self, problem: &Problem<'_>) -> bool {
        let alike = |a: usize, b: usize| 4 * a.abs_diff(b) <= a;
        let numbers = problem.size();
        self.gradient == problem.gradient && (0..2).all(|k| alike(self.numbers[k], numbers[k]))
    }
}

/// A recipe, and the limits that it was asked to have.
#[derive(Debug)]
struct Made {
    limits: Limits,
    recipe: Recipe,
}

#[derive(Debug)]
pub struct FmmSet<T: CudaReal> {
    /// Made when first asked for: where AUTO keeps to the direct sum, a new one at every call would cost more than the sum.
    recipes: Vec<Made>,
    /// Made when first wanted; they stay, and follow another recipe where one is wanted.
    sums: Vec<FmmSum<T>>,
    /// Those of the last evaluation.
    last: Vec<usize>,
    /// Made with the first sum.
    check: Option<Check>,
    /// What this plan's fields were found to need.
    needed: Vec<Needed>,
    /// Largest error that a core which was left out of the last field may make at one target, in tolerances of the field's mean size;
    /// zero where every target was compared.
    left_out: f64,
    /// Times that the last field was computed again.
    tightened: u32,
    /// Fields of the last evaluation that missed their tolerance.
    missed: u32,
    /// The last one's error, with the uncertainty of a sample.
    error: f64,
}

impl<T: CudaReal> Default for FmmSet<T> {
    fn default() -> Self {
        Self {
            recipes: Vec::new(),
            sums: Vec::new(),
            last: Vec::new(),
            check: None,
            needed: Vec::new(),
            left_out: 0.0,
            tightened: 0,
            missed: 0,
            error: 0.0,
        }
    }
}

impl<T: CudaReal> FmmSet<T> {
    pub fn bytes(&self) -> u64 {
        self.sums.iter().map(FmmSum::bytes).sum::<u64>() + self.check.as_ref().map_or(0, Check::bytes)
    }

    /// Clears what is known of the last field.
    pub fn begin(&mut self) {
        self.last.clear();
        (self.tightened, self.missed, self.error) = (0, 0, 0.0);
    }

    /// Fields of the last evaluation that missed their tolerance and were computed again, here or by another sum.
    pub fn missed(&self) -> u32 {
        self.missed
    }

    /// Evaluates by FMM and waits, if that is wanted or expected to be faster.
    pub fn evaluate(&mut self, task: Task<'_>) -> Result<Outcome> {
        let Task { context, inputs, options, field, output, stream, ranks } = task;
        self.begin();
        let kinds = kinds(inputs, field);
        let possible =
            inputs.targets.n > 0 && !kinds.is_empty() && kinds.iter().all(|(kind, _)| has_fmm(*kind, options));
        if !possible || options.method == Method::Direct || inputs.far.is_some_and(|far| !far.has_tree) {
            return Ok(Outcome::Direct);
        }
        let gradient = output.gradient.address != 0;
        let problem = Problem { context, inputs, options, stream, kinds, gradient, ranks };
        let limits = self.limits(&problem);
        let wanted = self.recipes(&problem, limits);
        if declines(&problem, &wanted) {
            return Ok(Outcome::Direct);
        }
        if !wanted.iter().all(|recipe| recipe.truncation.reached) {
            let floor = wanted.iter().map(|recipe| recipe.truncation.floor).fold(0.0, f64::max);
            return problem.without_fmm::<T>(floor / wanted[0].budget);
        }
        let mut check = self.check.take().map_or_else(|| Check::new(context, stream), Ok)?;
        let (main, n) = (field.widths().0, inputs.targets.n);
        let held = output.add || problem.is_pseudo() || Held::keeps_parts(output, wanted.len());
        let place = if held { check.held.place(output, main, n) } else { Ok(output) };
        let outcome = place.and_then(|place| {
            let outcome = self.hold_tolerance(&problem, (limits, wanted), place, &check)?;
            if outcome == Outcome::Done && held {
                check.held.hand_over(output, main, n, stream)?;
            }
            Ok(outcome)
        });
        self.check = Some(check);
        outcome
    }

    /// The limits of a recipe for this: none until a field missed its tolerance, and where earlier fields must not matter.
    fn limits(&self, problem: &Problem<'_>) -> Limits {
        if problem.options.reproducible {
            return Limits::NONE;
        }
        self.needed.iter().find(|needed| needed.serves(problem)).map_or(Limits::NONE, |needed| needed.limits)
    }

    /// Remembers the limits that this field needed.
    fn need(&mut self, problem: &Problem<'_>, limits: Limits) {
        self.needed.retain(|needed| !needed.serves(problem));
        if limits != Limits::NONE {
            self.needed.insert(0, Needed { numbers: problem.size(), gradient: problem.gradient, limits });
            self.needed.truncate(KNOWN);
        }
    }

    /// The recipes of all kinds.
    fn recipes(&mut self, problem: &Problem<'_>, limits: Limits) -> Vec<Recipe> {
        problem.kinds.iter().map(|(kind, _)| self.recipe(*kind, problem, limits)).collect()
    }

    /// Limits with which no core that is left out of the last field can have more of the tolerance at a single target than `AT_TARGET`
    /// allows; none where that is so. Cores end where they change the source's own field by the tolerance, segments' by four, which is
    /// too much where that field is far larger than the whole, as where neighbours have opposite strengths.
    fn farther_cores(&self, problem: &Problem<'_>, limits: Limits) -> Option<Limits> {
        let [_, targets] = problem.size();
        let allowed = AT_TARGET * (targets as f64).sqrt();
        (self.left_out > allowed && self.left_out < f64::INFINITY).then(|| {
            // In steps of two: recipes that are alike are made once.
            let cores = (0.5 * limits.cores * allowed / self.left_out).log2().floor().exp2();
            Limits { cores, ..limits }
        })
    }

    /// Computes the field until it holds the tolerance at the sampled targets, or no recipe does.
    fn hold_tolerance(
        &mut self,
        problem: &Problem<'_>,
        (mut limits, mut wanted): (Limits, Vec<Recipe>),
        to: Output,
        check: &Check,
    ) -> Result<Outcome> {
        let tolerance = recipe::tolerance(problem.options, T::IS_F64);
        let (mut before, mut tried, mut extended) = (f64::INFINITY, 0, 0);
        loop {
            let ran = self.run(problem, &wanted, to, check)?;
            let two_floats = wanted.iter().all(|recipe| recipe.two_floats);
            let levels = if two_floats { DEEP_IN_TWO_FLOATS } else { DEEP };
            let deep = || self.last.iter().any(|k| self.sums[*k].account.depth >= levels);
            let rounds = !T::IS_F64 && (tolerance < FINE && !two_floats || deep());
            let [dense, rounds] = problem.ranks.any([!ran, rounds])?;
            if dense {
                self.missed += 1;
                self.last.clear();
                return Ok(Outcome::Direct);
            }
            let most = tolerance * if rounds { ROUNDING } else { ACCEPTED };
            let error = self.judge(problem, check, most)?;
            let mut holds = error <= most;
            let mends = !holds && !rounds && tried < ROUNDS && error < WORTH * before;
            let next = if mends { self.tighten(problem, &wanted, limits, tolerance / error) } else { None };
            // As good as it gets: more targets decide.
            if !holds && next.is_none() && !rounds && error <= HOPEFUL * tolerance {
                let enough = if problem.is_cheap_directly(&wanted) { most } else { tolerance };
                holds = self.look_again(problem, check, Sample::Last, most)? <= enough;
            }
            let farther = if holds || next.is_none() { self.farther_cores(problem, limits) } else { None };
            if holds && farther.is_none() {
                return Ok(Outcome::Done);
            }
            self.missed += 1;
            if let Some(farther) = farther.filter(|_| extended < ROUNDS) {
                self.need(problem, farther);
                (limits, wanted) = (farther, self.recipes(problem, farther));
                if declines(problem, &wanted) {
                    self.last.clear();
                    return problem.without_fmm::<T>(error);
                }
                (self.tightened, extended) = (self.tightened + 1, extended + 1);
                log::info!("cores of strong sources end farther away, and the field is computed again");
                continue;
            }
            let Some(next) = next else { return self.give_up(problem, &wanted, limits, tolerance) };
            (limits, wanted) = next;
            before = error;
            (self.tightened, tried) = (self.tightened + 1, tried + 1);
            log::info!(
                "the FMM has an error of {error:.1e}, the tolerance is {tolerance:.1e}: tightened and computed again"
            );
        }
    }

    /// The error of the field that was just made; looks again where the first sample is inconclusive.
    fn judge(&mut self, problem: &Problem<'_>, check: &Check, most: f64) -> Result<f64> {
        self.left_out = 0.0;
        let Some(last) = self.last.last().copied() else { return Ok(0.0) };
        let numbers = problem.sampled();
        let sampled = [check::samples(numbers), numbers.targets];
        let left_out = |k: &usize| self.sums[*k].recipe.left_of_cores(self.sums[*k].account.found.strongest);
        let left_out = self.last.iter().map(left_out).fold(0.0, f64::max);
        let mine = SampleSums { strongest: left_out, ..self.sums[last].account.found };
        let (found, [sampled, of_all]) = problem.ranks.found(&mine, sampled)?;
        if found.is_of_nothing() {
            let main = problem.kinds[0].0.results(false);
            let has_values = check.has_values(problem.kinds.len(), check::samples(numbers), main, problem.stream)?;
            if let [true] = problem.ranks.any([has_values])? {
                self.error = f64::INFINITY;
                return Ok(self.error);
            }
        }
        let verdict = Verdict::new(&found, sampled, of_all, most, false);
        let size = (found.written[0] / found.targets.max(1.0)).sqrt();
        self.left_out = if sampled < of_all && size > 0.0 { found.strongest / size } else { 0.0 };
        self.error = verdict.error;
        // A field that missed before has larger errors than its sources let expect.
        let doubtful = self.tightened > 0 && verdict.error <= most;
        if verdict.inconclusive || doubtful {
            return self.look_again(problem, check, Sample::Second, most);
        }
        Ok(self.error)
    }

    /// The error of the same field by a larger sample and at the targets of the largest fields; what it is where all were compared.
    fn look_again(&mut self, problem: &Problem<'_>, check: &Check, sample: Sample, most: f64) -> Result<f64> {
        let (Some(last), of) = (self.last.last().copied(), self.last.len()) else { return Ok(self.error) };
        let (numbers, round) = (problem.sampled(), self.tightened);
        let all = numbers.targets;
        let [open] = problem.ranks.any([check::samples(numbers) < all])?;
        if !open {
            return Ok(self.error);
        }
        let left = self.sums[last].last();
        let mut found = SampleSums::default();
        for batch in 0..sample.batches(numbers) {
            for slot in 0..of {
                let asked = Asked { check, part: Part { slot, of }, numbers, round, before: None };
                let look = Look { round, sample, batch: batch as u32 };
                self.sums[self.last[slot]].look_again(asked, look, left, problem.stream)?;
            }
            found = self.sums[last].account.found.with_samples_of(&found);
        }
        let sampled = [sample.batches(numbers) * sample.targets(numbers), all];
        let (found, [sampled, of_all]) = problem.ranks.found(&found, sampled)?;
        self.error = Verdict::new(&found, sampled, of_all, most, true).error;
        Ok(self.error)
    }

    /// No recipe holds the tolerance. A budget that was wider than such sources should have is not tried again.
    fn give_up(&mut self, problem: &Problem<'_>, wanted: &[Recipe], limits: Limits, tolerance: f64) -> Result<Outcome> {
        let error = self.error;
        let widened = wanted.iter().filter(|recipe| recipe.widened).map(|recipe| recipe.budget);
        let budget = 0.9 * widened.fold(f64::INFINITY, f64::min);
        self.need(problem, Limits { budget, ..limits });
        self.last.clear();
        if !T::IS_F64 {
            log::info!(
                "the FMM in single precision has an error of {error:.1e} at sampled targets, the tolerance is {tolerance:.1e}"
            );
            return Ok(Outcome::NotInSingle);
        }
        if error <= tolerance {
            log::info!(
                "the FMM has an error of {error:.1e} at sampled targets, close to the tolerance of {tolerance:.1e}: summed directly"
            );
        } else if !problem.is_pseudo() {
            log::warn!("the FMM misses its tolerance of {tolerance:.1e} by {error:.1e}: summed directly");
        }
        problem.without_fmm::<T>(error)
    }

    /// Other recipes and their limits, after an error of so many tolerances' inverse; none where there are no better ones.
    fn tighten(
        &mut self,
        problem: &Problem<'_>,
        wanted: &[Recipe],
        limits: Limits,
        held: f64,
    ) -> Option<(Limits, Vec<Recipe>)> {
        let largest = wanted.iter().map(|recipe| recipe.budget).fold(0.0, f64::max);
        if held.is_nan() || held <= 0.0 {
            return None;
        }
        AIMS.iter().find_map(|aim| {
            // In steps of the root of two: recipes of budgets that are alike are made once.
            let steps = (2.0 * (largest * (aim * held).min(0.5)).log2()).floor();
            let budget = (0.5 * steps).exp2();
            let limits = Limits { budget, ..limits };
            let next = self.recipes(problem, limits);
            let serves = next.iter().all(|recipe| recipe.truncation.reached) && !declines(problem, &next);
            if serves {
                self.need(problem, limits);
            }
            serves.then_some((limits, next))
        })
    }

    /// Evaluates all kinds and waits; false where a direct sum is better.
    fn run(&mut self, problem: &Problem<'_>, wanted: &[Recipe], to: Output, check: &Check) -> Result<bool> {
        let mut output = to;
        let (numbers, round) = (problem.sampled(), self.tightened);
        self.last.clear();
        for (slot, recipe) in wanted.iter().enumerate() {
            let k = self.sum(recipe, problem)?;
            let before = self.last.first().map(|first| self.sums[*first].summed());
            let asked = Asked { check, part: Part { slot, of: wanted.len() }, numbers, round, before };
            if !self.sums[k].evaluate(problem.inputs, problem.options, output, asked, problem.stream)? {
                return Ok(false);
            }
            self.last.push(k);
            output.add = true;
        }
        Ok(true)
    }

    /// The sum of this kind, with this recipe.
    fn sum(&mut self, recipe: &Recipe, problem: &Problem<'_>) -> Result<usize> {
        let alike = |sum: &FmmSum<T>| sum.recipe.kind == recipe.kind && sum.recipe.gradient == recipe.gradient;
        let Some(k) = self.sums.iter().position(alike) else {
            self.sums.push(FmmSum::new(problem.context, recipe.clone(), problem.stream)?);
            return Ok(self.sums.len() - 1);
        };
        if !self.sums[k].follows(recipe)
            && let Err(error) = self.sums[k].remake(recipe.clone(), problem.stream)
        {
            // A partial result is not used.
            self.sums.clear();
            self.last.clear();
            return Err(error);
        }
        Ok(k)
    }

    /// The recipe of a kind; the options of a plan do not change.
    fn recipe(&mut self, kind: Kind, problem: &Problem<'_>, limits: Limits) -> Recipe {
        let alike = |made: &&Made| {
            made.recipe.kind == kind && made.recipe.gradient == problem.gradient && made.limits == limits
        };
        if let Some(made) = self.recipes.iter().find(alike) {
            return made.recipe.clone();
        }
        let recipe = Recipe::new(kind, problem.options, problem.gradient, T::IS_F64, limits);
        self.recipes.truncate(4 * KNOWN);
        self.recipes.insert(0, Made { limits, recipe: recipe.clone() });
        recipe
    }

    /// Writes what the last evaluation did into the report. It took `whole` on the device, with what missed its tolerance.
    pub fn note(&self, report: &mut Report, whole: f64) {
        let treecode = self.last.iter().any(|k| matches!(self.sums[*k].recipe.far, Far::AtTargets(_)));
        report.method = if treecode { WFMM_METHOD_TREECODE } else { WFMM_METHOD_FMM };
        (report.order, report.depth, report.cells, report.near_pairs) = (0, 0, 0, 0);
        for account in self.last.iter().map(|k| &self.sums[*k].account) {
            report.order = report.order.max(account.order as i32);
            report.depth = report.depth.max(account.depth as i32);
            report.cells += account.cells as i64;
            report.near_pairs += account.near_pairs as i64;
            for (pass, seconds) in TIMED.iter().zip(account.seconds) {
                // What a treecode has in their place.
                let at_targets = treecode && matches!(pass, Pass::M2l | Pass::L2l | Pass::L2p);
                report.seconds[if at_targets { Pass::M2p } else { *pass } as usize] += seconds;
            }
        }
        report.estimated_error = self.error;
        let timed = || TIMED.into_iter().chain([Pass::M2p]);
        let last: f64 = timed().map(|pass| report.seconds[pass as usize]).sum();
        if self.tightened > 0 && last > 0.0 {
            timed().for_each(|pass| report.seconds[pass as usize] *= whole / last);
        }
    }

    /// What was chosen, if the last field was an FMM's.
    pub fn describe(&self) -> Option<String> {
        let mut texts: Vec<_> = self.last.iter().map(|k| self.sums[*k].recipe.describe()).collect();
        let times = match self.tightened {
            0 => String::new(),
            times => format!(", after tightening {times} times"),
        };
        texts.push(format!("Error found on a sample: {:.1e}{times}.", self.error));
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

/// The core of an OFFSET segment is not a function of the distance to its line, so there are no core lists for it.
fn has_fmm(kind: Kind, options: &PlanOptions) -> bool {
    kind != Kind::Segment || options.segment_regularization != Regularization::Offset
}

/// Whether AUTO takes the direct sum, which it expects to be faster.
fn declines(problem: &Problem<'_>, wanted: &[Recipe]) -> bool {
    problem.options.method == Method::Auto && problem.seconds(wanted).any(|[direct, fmm]| direct <= fmm)
}

/// What a direct sum and an FMM are expected to take.
fn seconds(recipe: &Recipe, sources: usize, targets: usize) -> [f64; 2] {
    let (n, m) = (sources as f64, targets as f64);
    let speed = if recipe.is_f64 { 1.0 } else { SINGLE };
    let rate = speed * PAIRS[recipe.kind as usize] * if recipe.gradient { 0.55 } else { 1.0 };
    let far = match recipe.far {
        Far::Pseudo(order) => pseudo::seconds(order),
        _ => FRAGMENT * recipe.truncation.products as f64 * recipe.components() as f64 / 3.0,
    } * m
        / speed;
    [EMPTY_DIRECT + n * m / rate, EMPTY[usize::from(recipe.has_cores())] + POINT * (n + m) + far]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pays(recipe: &Recipe, sources: usize, targets: usize) -> bool {
        let [direct, fmm] = seconds(recipe, sources, targets);
        direct > fmm
    }

    #[test]
    fn large_problems_pay_and_small_ones_do_not() {
        let options = PlanOptions {
            method: Method::Auto,
            precision: crate::options::Precision::F64,
            order: 0,
            plane: None,
            period: None,
            expansion: crate::options::Expansion::Harmonics,
            leaf_capacity: 0,
            segment_regularization: Regularization::Vatistas,
            particle_regularization: Regularization::None,
            index_base: 0,
            tolerance: 1e-4,
            normalization: 1.0,
            core_radius: 0.0,
            accumulate: false,
            reproducible: false,
            host_partition: false,
        };
        let recipe = Recipe::new(Kind::Particle, &options, false, true, Limits::NONE);
        assert!(!pays(&recipe, 1000, 1000));
        assert!(pays(&recipe, 1_000_000, 1_000_000));
        // Measured at 1e-3, by whole calls: from some 5,000 points in f64, 7,000 in f32.
        let options = PlanOptions { tolerance: 1e-3, ..options };
        for (is_f64, few, many) in [(true, 4_000, 6_000), (false, 6_000, 9_000)] {
            let recipe = Recipe::new(Kind::Particle, &options, false, is_f64, Limits::NONE);
            assert!(!pays(&recipe, few, few) && pays(&recipe, many, many));
        }
    }
}
