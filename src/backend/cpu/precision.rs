//! Single precision where it holds, double where it does not: one far point or a core far above the box would make powers
//! of all other distances leave the range of single precision, and the field would be zero or no number.
//!
//! Enters: `Inputs`. Leaves: the fields of one of two engines, chosen anew where places changed; one warning for a cause.

use super::engine::CpuEngine;
use super::range::fallback;
use crate::backend::precision_fallback::PrecisionFallback;
use crate::backend::{Engine, Field};
use crate::error::Result;
use crate::inputs::{Inputs, RealsMut};
use crate::options::PlanOptions;
use crate::report::Report;
use std::sync::Arc;

/// What was found for the places that these counters stand for.
type Verdict = Option<([u64; 2], Option<PrecisionFallback>)>;

/// See the head of this file.
pub struct SingleEngine {
    options: PlanOptions,
    pool: Arc<rayon::ThreadPool>,
    single: CpuEngine<f32>,
    double: Option<Box<CpuEngine<f64>>>,
    vortex: Verdict,
    coulomb: Verdict,
    /// Of the last call.
    fallback: Option<PrecisionFallback>,
}

impl SingleEngine {
    pub fn new(options: PlanOptions, pool: Arc<rayon::ThreadPool>) -> Self {
        let single = CpuEngine::new(options.clone(), pool.clone());
        Self { options, pool, single, double: None, vortex: None, coulomb: None, fallback: None }
    }

    /// The engine for this field of these inputs.
    fn choose(&mut self, inputs: &Inputs, field: Field) -> &mut dyn Engine {
        let (verdict, sources) = match field {
            Field::Velocity { .. } => (&mut self.vortex, inputs.vortex_places),
            Field::Potential { .. } => (&mut self.coulomb, inputs.charge_places),
        };
        let seen = [sources, inputs.target_positions];
        let found = match *verdict {
            Some((old, found)) if old == seen => found,
            _ => self.pool.install(|| fallback(inputs, field, &self.options)),
        };
        *verdict = Some((seen, found));
        self.fallback = found;
        match found {
            Some(fallback) => fallback.warn(),
            None => return &mut self.single,
        }
        let make = || Box::new(CpuEngine::new(self.options.clone(), self.pool.clone()));
        self.double.get_or_insert_with(make).as_mut()
    }

    fn last(&self) -> &dyn Engine {
        match &self.double {
            Some(double) if self.fallback.is_some() => double.as_ref(),
            _ => &self.single,
        }
    }
}

impl Engine for SingleEngine {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        self.choose(inputs, field).prepare(inputs, field)
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        self.choose(inputs, field).evaluate(inputs, field, main, gradient)
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        self.choose(inputs, field).check(inputs, field, samples, seed)
    }

    fn recipe(&self) -> String {
        let text = self.last().recipe();
        match self.fallback {
            Some(fallback) if !text.is_empty() => format!("{text} In double precision: {fallback}."),
            _ => text,
        }
    }

    fn report(&self) -> Report {
        self.last().report()
    }
}
