//! The FMMs of one engine: which kinds of source need one, whether it beats the direct sum, and what the last one did.

use super::{FmmSum, Kind, Recipe};
use crate::backend::Field;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::direct::{CudaReal, Output};
use crate::backend::cuda::gather::DeviceInputs;
use crate::backend::cuda::stream::{Event, Stream};
use crate::error::Result;
use crate::options::{Method, PlanOptions, Regularization};
use crate::report::{Pass, Report};
use std::sync::Arc;

/// The passes that are timed, in their order; each ends where its event is.
const TIMED: [Pass; 8] = [Pass::Tree, Pass::Lists, Pass::P2m, Pass::M2m, Pass::M2l, Pass::L2l, Pass::P2p, Pass::L2p];

/// Seconds of direct sums and of FMMs on one H200, from which AUTO chooses (bench/gpu_scaling crossover, 2026-11-21): pairs a
/// second in f64 and what f32 does more of them, an empty direct sum, an empty FMM, a source or target, and a kept fragment of
/// the operators a target.
const PAIRS: [f64; 3] = [7.5e11, 6.0e11, 2.7e11];
const SINGLE: f64 = 2.2;
const EMPTY_DIRECT: f64 = 0.03e-3;
const EMPTY: f64 = 0.17e-3;
const POINT: f64 = 2e-9;
const FRAGMENT: f64 = 9e-13;

#[derive(Debug)]
pub struct FmmSet<T: CudaReal> {
    /// Made when first asked for: where AUTO keeps to the direct sum, a new one at every call would cost more than the sum.
    recipes: Vec<Recipe>,
    /// Made when first wanted.
    sums: Vec<FmmSum<T>>,
    /// Those of the last evaluation.
    last: Vec<usize>,
    marks: Vec<(Pass, Event)>,
    begin: Option<Event>,
}

impl<T: CudaReal> Default for FmmSet<T> {
    fn default() -> Self {
        Self { recipes: Vec::new(), sums: Vec::new(), last: Vec::new(), marks: Vec::new(), begin: None }
    }
}

impl<T: CudaReal> FmmSet<T> {
    pub fn bytes(&self) -> u64 {
        self.sums.iter().map(FmmSum::bytes).sum()
    }

    /// Evaluates by FMM on `stream` and waits, if that is wanted or expected to be faster; false: nothing was done.
    pub fn evaluate(
        &mut self,
        context: &Arc<Context>,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        field: Field,
        output: Output,
        stream: &Stream,
    ) -> Result<bool> {
        self.last.clear();
        let kinds = kinds(inputs, field);
        let possible =
            inputs.targets.n > 0 && !kinds.is_empty() && kinds.iter().all(|(kind, _)| has_fmm(*kind, options));
        if !possible || options.method == Method::Direct {
            return Ok(false);
        }
        let gradient = output.gradient.address != 0;
        let mut wanted = Vec::new();
        for (kind, n) in &kinds {
            let at = self.recipe(*kind, gradient, options, context);
            let recipe = &self.recipes[at];
            // What the highest order cannot reach is summed directly.
            if !recipe.staircase.reached || options.method == Method::Auto && !pays(recipe, *n, inputs.targets.n) {
                return Ok(false);
            }
            wanted.push(at);
        }
        let mut output = output;
        for at in wanted {
            let recipe = &self.recipes[at];
            let found = self
                .sums
                .iter()
                .position(|sum| sum.recipe.kind == recipe.kind && sum.recipe.gradient == recipe.gradient);
            let k = match found {
                Some(k) => k,
                None => {
                    self.sums.push(FmmSum::new(context, recipe.clone(), stream)?);
                    self.sums.len() - 1
                }
            };
            self.mark(context, stream)?;
            self.sums[k].evaluate(inputs, options, output, stream, &self.marks)?;
            self.last.push(k);
            output.add = true;
        }
        Ok(true)
    }

    /// Index of a recipe; the options of a plan do not change.
    fn recipe(&mut self, kind: Kind, gradient: bool, options: &PlanOptions, context: &Context) -> usize {
        let found = self.recipes.iter().position(|recipe| recipe.kind == kind && recipe.gradient == gradient);
        found.unwrap_or_else(|| {
            let shared = context.info.shared_memory as usize;
            self.recipes.push(Recipe::new(kind, options, gradient, T::IS_F64, shared));
            self.recipes.len() - 1
        })
    }

    fn mark(&mut self, context: &Arc<Context>, stream: &Stream) -> Result<()> {
        if self.marks.is_empty() {
            self.marks = TIMED.iter().map(|pass| Ok((*pass, Event::new(context)?))).collect::<Result<_>>()?;
            self.begin = Some(Event::new(context)?);
        }
        self.begin.as_ref().map_or(Ok(()), |begin| begin.record(stream))
    }

    /// Writes what the last evaluation did into the report; call it after the stream was waited for.
    pub fn note(&self, report: &mut Report) -> Result<()> {
        let accounts = self.last.iter().map(|k| self.sums[*k].account);
        (report.order, report.depth, report.cells, report.near_pairs) = (0, 0, 0, 0);
        for account in accounts {
            report.order = report.order.max(account.order as i32);
            report.depth = report.depth.max(account.depth as i32);
            report.cells += account.cells as i64;
            report.near_pairs += account.near_pairs as i64;
        }
        let mut before = self.begin.as_ref();
        for (pass, event) in &self.marks {
            if let Some(start) = before {
                report.seconds[*pass as usize] = event.seconds_since(start)?;
            }
            before = Some(event);
        }
        Ok(())
    }

    /// What was chosen, if the last field was an FMM's.
    pub fn describe(&self) -> Option<String> {
        let texts: Vec<_> = self.last.iter().map(|k| self.sums[*k].recipe.describe()).collect();
        (!texts.is_empty()).then(|| texts.join(" "))
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
    let far = FRAGMENT * recipe.staircase.fragments as f64 * m * recipe.components() as f64 / 3.0 / speed;
    EMPTY_DIRECT + n * m / rate > EMPTY + POINT * (n + m) + far
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
            leaf_capacity: 0,
            segment_regularization: Regularization::Vatistas,
            particle_regularization: Regularization::None,
            index_base: 0,
            tolerance: 1e-4,
            normalization: 1.0,
            core_radius: 0.0,
            accumulate: false,
        };
        let recipe = Recipe::new(Kind::Particle, &options, false, true, 232_448);
        assert!(!pays(&recipe, 1000, 1000));
        assert!(pays(&recipe, 1_000_000, 1_000_000));
        // Measured at 1e-3: from some 12,000 points in f64, 16,500 in f32.
        let options = PlanOptions { tolerance: 1e-3, ..options };
        for (is_f64, few, many) in [(true, 10_000, 14_000), (false, 14_000, 20_000)] {
            let recipe = Recipe::new(Kind::Particle, &options, false, is_f64, 232_448);
            assert!(!pays(&recipe, few, few) && pays(&recipe, many, many));
        }
    }
}
