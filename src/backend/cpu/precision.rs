//! The CPU's engines in both precisions, and which of them computes a field.
//!
//! Enters: `Inputs`. Leaves: fields.
//! Single precision, asked for or that of the arrays, serves tolerances from 1e-4 on. Even then it gives way to double where one far
//! point or a core far above the box would make powers of all other distances leave its range: the field would be zero or no number.
//! One warning tells the cause; none where nobody asked for single precision and the tolerance is the cause.
//! Where nobody asked for double precision an FMM in single is tried first, if that serves the tolerance: that of double arrays, and at
//! tolerances below 1e-4 that of particles in arrays of both kinds. Its field is compared with sums in double precision. Double takes
//! over where it misses, and where a direct sum is expected to be faster.

use super::engine::{ByFmm, CpuEngine};
use super::range;
use crate::backend::precision::{
    PrecisionFallback, PrecisionHistory, single_holds_on_cpu, single_serves, single_serves_particles,
};
use crate::backend::{Engine, Field};
use crate::error::Result;
use crate::inputs::{Inputs, RealsMut};
use crate::options::{Expansion, Method, PlanOptions, Precision};
use crate::report::Report;
use std::sync::Arc;

/// Pairs from which an FMM of double arrays is tried in single precision: fewer are summed in a few milliseconds.
pub const TRIED_FROM: f64 = 4e6;

/// See the head of this file.
pub struct PrecisionEngine {
    options: PlanOptions,
    pool: Arc<rayon::ThreadPool>,
    asked_for_single: bool,
    single: Option<Box<CpuEngine<f32>>>,
    double: Option<Box<CpuEngine<f64>>>,
    vortex: PrecisionHistory,
    coulomb: PrecisionHistory,
    /// Whether strengths of vortices and of charges need double precision, by the counters of sources, strengths and targets.
    strengths: [Option<([u64; 3], bool)>; 2],
    /// Of the last field: whether it is of single precision, why not, and whether an FMM in it missed the tolerance just before.
    by_single: bool,
    fallback: Option<PrecisionFallback>,
    missed: bool,
}

/// Who computes a field.
enum Who {
    Single,
    /// An FMM in single precision, if it is chosen and keeps the tolerance.
    TrySingle,
    Double(Option<PrecisionFallback>),
}

impl PrecisionEngine {
    /// `precision` is F32 or F64.
    pub fn new(options: PlanOptions, pool: Arc<rayon::ThreadPool>, precision: Precision) -> Self {
        Self {
            options,
            pool,
            asked_for_single: precision == Precision::F32,
            single: None,
            double: None,
            vortex: PrecisionHistory::default(),
            coulomb: PrecisionHistory::default(),
            strengths: [None; 2],
            by_single: false,
            fallback: None,
            missed: false,
        }
    }

    fn who(&mut self, inputs: &Inputs, field: Field) -> Who {
        self.missed = false;
        let holds = self.asked_for_single && single_holds_on_cpu(self.options.tolerance);
        let single = if holds { Who::Single } else { Who::TrySingle };
        match holds || self.may_try_single(inputs, field) {
            true => match self.look(inputs, field) {
                Some(found) => Who::Double(Some(found)),
                None if self.strengths_need_double(inputs, field) => Who::Double(Some(PrecisionFallback::Strength)),
                None => single,
            },
            false => Who::Double(self.asked_for_single.then_some(PrecisionFallback::Digits)),
        }
    }

    fn history(&mut self, field: Field) -> &mut PrecisionHistory {
        match field {
            Field::Velocity { .. } => &mut self.vortex,
            Field::Potential { .. } => &mut self.coulomb,
        }
    }

    /// What is known of these positions, or can be told of them without a field.
    fn look(&mut self, inputs: &Inputs, field: Field) -> Option<PrecisionFallback> {
        let sources =
            if matches!(field, Field::Velocity { .. }) { inputs.vortex_positions } else { inputs.charge_positions };
        let history = self.history(field);
        let known = history.before([sources, inputs.target_positions]);
        if known.is_some() || history.is_current() {
            return known;
        }
        let found = self.pool.install(|| range::fallback(inputs, field, &self.options));
        self.history(field).keep(found);
        found
    }

    fn strengths_need_double(&mut self, inputs: &Inputs, field: Field) -> bool {
        let (kind, sources, strengths) = match field {
            Field::Velocity { .. } => (0, inputs.vortex_positions, inputs.vortex_strengths),
            Field::Potential { .. } => (1, inputs.charge_positions, inputs.charge_strengths),
        };
        let of = [sources, strengths, inputs.target_positions];
        let known = self.strengths[kind].filter(|(known, _)| *known == of).map(|(_, found)| found);
        let look = || range::strengths_need_double(inputs, field, &self.options);
        let found = known.unwrap_or_else(|| self.pool.install(look));
        self.strengths[kind] = Some((of, found));
        found
    }

    fn may_try_single(&self, inputs: &Inputs, field: Field) -> bool {
        let pairs = inputs.vortices() as f64 * inputs.points() as f64;
        let options = &self.options;
        let by_expansions = options.method != Method::Direct && options.expansion == Expansion::Harmonics;
        let is_of_particles = inputs.segments.as_ref().is_none_or(|s| s.n == 0);
        let serves = single_serves(options, field) || is_of_particles && single_serves_particles(options, field);
        by_expansions && pairs >= TRIED_FROM && serves
    }

    fn single(&mut self) -> &mut CpuEngine<f32> {
        let (options, pool) = (&self.options, &self.pool);
        let alone = self.asked_for_single && single_holds_on_cpu(options.tolerance);
        self.by_single = true;
        self.fallback = None;
        self.single.get_or_insert_with(|| {
            let engine = CpuEngine::new(options.clone(), pool.clone());
            Box::new(if alone { engine } else { engine.for_double() })
        })
    }

    fn double(&mut self, fallback: Option<PrecisionFallback>) -> &mut CpuEngine<f64> {
        let (options, pool) = (&self.options, &self.pool);
        self.by_single = false;
        self.fallback = fallback.filter(|_| self.asked_for_single);
        // Nobody asked for single precision, and the tolerance is the cause.
        let is_expected = self.options.precision == Precision::Arrays && !single_holds_on_cpu(self.options.tolerance);
        if let Some(fallback) = self.fallback.filter(|_| !is_expected) {
            fallback.warn();
        }
        let engine = self.double.get_or_insert_with(|| Box::new(CpuEngine::new(options.clone(), pool.clone())));
        // Where an FMM in single precision does not pay, one in double does not either.
        engine.use_method(match fallback {
            Some(PrecisionFallback::Short) => Method::Direct,
            _ => options.method,
        });
        engine
    }

    /// An FMM in single precision was not taken.
    fn give_up_single(&mut self, field: Field, why: ByFmm) -> &mut CpuEngine<f64> {
        self.missed = why == ByFmm::Missed;
        let fallback = if self.missed { PrecisionFallback::Tolerance } else { PrecisionFallback::Short };
        if self.missed {
            self.single = None;
        }
        self.history(field).keep(Some(fallback));
        self.double(Some(fallback))
    }

    /// The engine for this field of these inputs, with its trees and choices made.
    fn prepared(&mut self, inputs: &Inputs, field: Field) -> Result<&mut dyn Engine> {
        let who = self.who(inputs, field);
        let engine: &mut dyn Engine = match who {
            Who::Single => self.single(),
            Who::Double(fallback) => self.double(fallback),
            Who::TrySingle => {
                self.single().prepare(inputs, field)?;
                match self.single().is_direct(field) {
                    true => self.give_up_single(field, ByFmm::Declined),
                    false => self.single(),
                }
            }
        };
        engine.prepare(inputs, field)?;
        Ok(engine)
    }

    fn last(&self) -> Option<&dyn Engine> {
        match self.by_single {
            true => self.single.as_deref().map(|engine| engine as &dyn Engine),
            false => self.double.as_deref().map(|engine| engine as &dyn Engine),
        }
    }
}

impl Engine for PrecisionEngine {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        self.prepared(inputs, field).map(drop)
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        mut main: RealsMut<'_>,
        mut gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        match self.who(inputs, field) {
            Who::Single => self.single().evaluate(inputs, field, main, gradient),
            Who::Double(fallback) => self.double(fallback).evaluate(inputs, field, main, gradient),
            Who::TrySingle => {
                let to_gradient = gradient.as_mut().map(RealsMut::again);
                match self.single().compute(inputs, field, main.again(), to_gradient)? {
                    ByFmm::Done => Ok(()),
                    why => self.give_up_single(field, why).evaluate(inputs, field, main, gradient),
                }
            }
        }
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        self.prepared(inputs, field)?.check(inputs, field, samples, seed)
    }

    fn recipe(&self) -> String {
        let text = self.last().map_or_else(String::new, Engine::recipe);
        match self.fallback {
            _ if text.is_empty() => text,
            Some(fallback) => format!("{text} In double precision: {fallback}."),
            None if self.by_single && !self.asked_for_single => {
                format!("{text} Of double arrays: single precision serves the tolerance.")
            }
            None => text,
        }
    }

    fn report(&self) -> Report {
        let bytes = |engine: Option<Report>| engine.map_or(0, |report| report.host_bytes);
        let host_bytes =
            bytes(self.single.as_ref().map(|e| e.report())) + bytes(self.double.as_ref().map(|e| e.report()));
        let report = self.last().map_or_else(Report::default, Engine::report);
        Report { host_bytes, retries: report.retries + i64::from(self.missed), ..report }
    }
}
