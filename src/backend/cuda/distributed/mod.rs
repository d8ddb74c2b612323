//! The CUDA engine of a distributed session: each rank has its own sources and targets and a device, the field is of all sources.
//!
//! ```text
//!   wire    arrays of all ranks as one
//!   node    what the ranks of one node have in page-locked memory, mapped by all of them
//!   world   the sources of all ranks, on every rank
//!   deal    which rank computes at which targets
//!   devices ranks that are threads of one process, each with a device of it
//!   parts   targets of one process divided among its devices
//! ```
//!
//! Enters: `Inputs` of this rank. Leaves: the field at this rank's targets, made by an engine that has all sources and a part of
//! the targets. Ranks exchange what has changed, then decide together: one verdict over the targets of all ranks, so that all
//! retry, or all sum directly. All functions run on all ranks alike; a failure of one is told to the others in their next
//! agreement. Every rank has all sources in its device memory.

mod deal;
mod devices;
mod node;
mod parts;
mod wire;
mod world;

use super::context::Context;
use super::direct::CudaReal;
use super::engine::CudaEngine;
use super::fmm::Ranks;
use crate::backend::draw::drawn;
use crate::backend::images::Slot;
use crate::backend::verdict::{relative, squares, unit_of};
use crate::backend::{Engine, Field};
use crate::distributed::Communicator;
use crate::error::{Error, Result};
use crate::inputs::{Inputs, Reals, RealsMut, TargetInput};
use crate::memory;
use crate::options::{Method, PlanOptions};
use crate::report::{Pass, Report};
pub use devices::{DevicesEngine, Seat};
use std::sync::Arc;
use std::time::Instant;
use wire::{Line, Wire};
use world::{Of, Table, World};

/// One rank's part of a plan.
pub struct RanksEngine<T: CudaReal> {
    options: PlanOptions,
    context: Arc<Context>,
    line: Line,
    inner: CudaEngine<T>,
    world: World,
    /// The caller's stream.
    caller: u64,
    /// What ranks are to the reader of a recipe.
    called: &'static str,
    report: Report,
    recipe: String,
}

/// The call that ranks agree on.
const EVALUATE: &str = "wfmm_plan_evaluate";

/// Where a field and its gradient go.
type Outputs<'a> = (RealsMut<'a>, Option<RealsMut<'a>>);

impl<T: CudaReal> RanksEngine<T> {
    /// All ranks make theirs together.
    pub fn new(
        options: PlanOptions,
        context: Arc<Context>,
        pool: Arc<rayon::ThreadPool>,
        communicator: &Communicator,
    ) -> Result<Self> {
        let (line, inner) = communicator.together("an engine of all ranks", || {
            let line = Line::new(&context, &pool, communicator)?;
            // A field is added to the caller's at the end, when all ranks have theirs.
            let options = PlanOptions { accumulate: false, ..options.clone() };
            let mut inner = CudaEngine::new(options, context.clone(), pool)?;
            inner.own_arrays();
            Ok((line, inner))
        })?;
        let (world, report, recipe) = (World::new(options.core_radius), Report::default(), String::new());
        Ok(Self { options, context, line, inner, world, caller: 0, called: "ranks", report, recipe })
    }

    /// The same where ranks are the devices of one process.
    pub fn of_devices(mut self) -> Self {
        self.called = "devices";
        self
    }

    /// Whether every rank is given the sources of all, its part of the targets, and an array of its own for the field there.
    fn share(&mut self, shared: bool) {
        self.world.shared = shared;
    }

    /// The sources that all ranks are given, as this one's engine gets them.
    fn shared_sources(&mut self, inputs: &Inputs) -> Inputs {
        self.world.share(inputs);
        Inputs { targets: None, ..self.world.inputs.clone() }
    }

    /// Whether the field is added to what is in the output.
    fn adds(&self) -> bool {
        self.options.accumulate && !self.world.shared
    }

    /// Brings the sources of all ranks and this rank's part of the targets up to date; false where there is nothing to sum.
    fn gather(&mut self, call: &str, inputs: &Inputs, field: Field, double_output: bool) -> Result<Option<Table>> {
        self.line.follow(self.caller)?;
        let table = Table::gather(&self.line, inputs, field, double_output, self.world.shared)?;
        if table.sources(field) == 0 || !table.any(Of::Targets) {
            return Ok(None);
        }
        let (line, keeps, to) = (&mut self.line, self.options.host_partition, self.inner.intake());
        if table.any(Of::Double) {
            self.world.update::<f64>(line, call, inputs, &table, field, keeps, to)?;
        } else {
            self.world.update::<f32>(line, call, inputs, &table, field, keeps, to)?;
        }
        self.inner.join(Ranks::of(&line.communicator, self.world.most_targets));
        Ok(Some(table))
    }

    /// Whether there was anything to sum.
    fn evaluate_together(&mut self, call: &str, inputs: &Inputs, field: Field, to: Outputs<'_>) -> Result<bool> {
        let start = Instant::now();
        let own = inputs.targets.as_ref().map_or(0, |t| t.n);
        let is_double = matches!(to.0, RealsMut::HostF64(_) | RealsMut::DeviceF64 { .. });
        let Some(table) = self.gather(call, inputs, field, is_double && own > 0)? else {
            self.line.communicator.agree(call, Ok(()))?;
            let zero = self.put_all::<f64>(field, (&[], &[]), to, self.adds());
            return self.after_writing(call, zero).map(|()| false);
        };
        // Straight to where it belongs, unless that is on another rank, or has numbers of its own, or nobody wants this rank's.
        if own > 0 && !self.world.deal.is_moved() && !self.adds() {
            self.inner.evaluate(&self.world.inputs, field, to.0, to.1)?;
            self.tell(&table, field, start)?;
            // Where others still write.
            self.after_writing(call, Ok(()))?;
        } else if table.any(Of::DoubleOutput) {
            self.evaluate_apart::<f64>(call, field, to, &table, start)?;
        } else {
            self.evaluate_apart::<f32>(call, field, to, &table, start)?;
        }
        Ok(true)
    }

    /// By way of arrays of its own, which are written when all ranks have theirs.
    fn evaluate_apart<U: Wire>(
        &mut self,
        call: &str,
        field: Field,
        to: Outputs<'_>,
        table: &Table,
        start: Instant,
    ) -> Result<()> {
        let (width, wide) = field.widths();
        let here = self.world.inputs.targets.as_ref().map_or(0, |t| t.n);
        let mut main = memory::filled(U::default(), width * here);
        let mut gradient = memory::filled(U::default(), if field.has_gradient() { wide * here } else { 0 });
        let slopes = field.has_gradient().then(|| U::host_mut(&mut gradient));
        self.inner.evaluate(&self.world.inputs, field, U::host_mut(&mut main), slopes)?;
        let deal = &self.world.deal;
        let main = deal.back(&self.line, call, main, width)?;
        let gradient = if field.has_gradient() { deal.back(&self.line, call, gradient, wide)? } else { vec![] };
        self.tell(table, field, start)?;
        let written = self.put_all(field, (&main, &gradient), to, self.adds());
        self.after_writing(call, written)
    }

    /// Writes numbers at the own targets, zeros where there are none.
    fn put_all<U: Wire>(&mut self, field: Field, from: (&[U], &[U]), to: Outputs<'_>, add: bool) -> Result<()> {
        let (width, _) = field.widths();
        let put = |line: &mut Line, from: &[U], to: RealsMut<'_>| {
            let len = length(&to);
            if len == 0 || from.is_empty() && add {
                return Ok(());
            }
            let zeros = if from.is_empty() { memory::filled(U::default(), len) } else { vec![] };
            line.put(if from.is_empty() { &zeros } else { &from[..len] }, to, add)
        };
        debug_assert!(from.0.len().is_multiple_of(width));
        put(&mut self.line, from.0, to.0)?;
        to.1.map_or(Ok(()), |to| put(&mut self.line, from.1, to))
    }

    /// One outcome of writing: what was added once must not be added again by another engine.
    fn after_writing(&self, call: &str, written: Result<()>) -> Result<()> {
        let add = self.adds();
        let all = self.line.communicator.agree(call, written);
        all.map_err(|error| if add { Error { agreed: true, ..error.after_writing() } } else { error })
    }

    /// Recipe and report, the numbers of all ranks together; the last agreement before anything is written.
    fn tell(&mut self, table: &Table, field: Field, start: Instant) -> Result<()> {
        let own = self.inner.report();
        let most = [own.order, own.depth].map(f64::from);
        let (line, [host, device]) = (&self.line, self.world.bytes());
        let sums = line.communicator.total(&[own.cells as f64, own.near_pairs as f64])?;
        let most = line.communicator.largest(&[most[0], most[1], own.retries as f64])?;
        self.report = Report {
            order: most[0] as i32,
            depth: most[1] as i32,
            retries: most[2] as i64,
            cells: sums[0] as i64,
            near_pairs: sums[1] as i64,
            host_bytes: own.host_bytes + line.bytes() + host,
            device_bytes: own.device_bytes + device,
            ..own
        };
        let whole = start.elapsed().as_secs_f64();
        let seconds = &mut self.report.seconds;
        seconds[Pass::Transfer as usize] += (whole - seconds[Pass::Total as usize]).max(0.0);
        seconds[Pass::Total as usize] = whole;
        let (ranks, sources) = (line.communicator.size(), table.sources(field));
        let dealt = if self.world.deal.is_moved() || self.world.shared {
            "a range of a Morton curve"
        } else {
            "what its caller has"
        };
        let read = match (self.world.shared, line.sends()) {
            (true, _) => "",
            (_, true) => " sent to it",
            (_, false) => " read from the memory of the others",
        };
        let (text, called) = (self.inner.recipe(), self.called);
        self.recipe =
            format!("{text} On {ranks} {called}, each with all {sources} sources{read}; of the targets {dealt}.");
        Ok(())
    }

    /// Squares of the differences from the direct sum, and of that sum, at `samples` targets of all ranks.
    fn compare(&mut self, call: &str, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        let (width, _) = field.widths();
        let own = inputs.targets.as_ref().map_or(0, |t| t.n);
        let mut values = memory::filled(0.0f64, width * own);
        // Recipe and report stay those of the last evaluation.
        let told = (self.report.clone(), self.recipe.clone());
        let add = std::mem::replace(&mut self.options.accumulate, false);
        let given = self.evaluate_together(call, inputs, field, (RealsMut::HostF64(&mut values), None));
        self.options.accumulate = add;
        if !told.1.is_empty() {
            (self.report, self.recipe) = told;
        }
        if !given? {
            return Ok(0.0);
        }
        let counts = self.line.communicator.each(&[own as f64])?;
        let first = counts[..self.line.communicator.rank()].iter().sum::<f64>() as usize;
        let all = counts.iter().sum::<f64>() as usize;
        let mine: Vec<usize> =
            drawn(all, samples, seed).filter_map(|t| t.checked_sub(first).filter(|&t| t < own)).collect();
        let exact = match &inputs.targets {
            Some(targets) if !mine.is_empty() => self.exact(&targets.position, &mine, field, width)?,
            _ => vec![],
        };
        let largest = exact.iter().fold(0.0, |a, v| f64::max(a, v.abs()));
        let unit = unit_of(self.line.communicator.largest(&[largest])?[0]);
        let found = mine.iter().flat_map(|&t| &values[t * width..][..width]);
        let sums = squares(found.copied().zip(exact.iter().copied()), unit);
        let sums = self.line.communicator.total(&sums)?;
        Ok(relative([sums[0], sums[1]]))
    }

    /// Direct sums of all sources in double precision at some of the own targets; no other rank takes part.
    fn exact(&mut self, position: &Reals, chosen: &[usize], field: Field, width: usize) -> Result<Vec<f64>> {
        let mut exact = memory::filled(0.0, width * chosen.len());
        let x = self.line.own::<f64>(position)?;
        let positions = memory::collect((0..3 * chosen.len()).map(|i| x[3 * chosen[i / 3] + i % 3]));
        let mut inputs = self.world.inputs.clone();
        inputs.targets = Some(TargetInput { n: chosen.len(), position: Reals::HostF64(positions.into()) });
        let options = PlanOptions { method: Method::Direct, accumulate: false, ..self.options.clone() };
        let mut engine = CudaEngine::<f64>::new(options, self.context.clone(), self.line.pool.clone())?;
        engine.evaluate(&inputs, field, RealsMut::HostF64(&mut exact), None)?;
        Ok(exact)
    }
}

fn length(to: &RealsMut<'_>) -> usize {
    match to {
        RealsMut::HostF32(to) => to.len(),
        RealsMut::HostF64(to) => to.len(),
        RealsMut::DeviceF32 { len, .. } | RealsMut::DeviceF64 { len, .. } => *len,
    }
}

impl<T: CudaReal> Engine for RanksEngine<T> {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        const CALL: &str = "wfmm_plan_prepare";
        let communicator = self.line.communicator.clone();
        communicator.collective(CALL, || {
            if self.gather(CALL, inputs, field, false)?.is_some() {
                self.inner.prepare(&self.world.inputs, field)?;
            }
            communicator.agree(CALL, Ok(()))
        })
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        let communicator = self.line.communicator.clone();
        communicator
            .collective(EVALUATE, || self.evaluate_together(EVALUATE, inputs, field, (main, gradient)).map(drop))
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        const CALL: &str = "wfmm_plan_check";
        let communicator = self.line.communicator.clone();
        let field = field.without_gradient();
        communicator.collective(CALL, || self.compare(CALL, inputs, field, samples, seed))
    }

    fn bring(&mut self, inputs: &Inputs) {
        // An error comes back in the evaluation: what was not copied then is copied there.
        let _ = self.world.bring(&self.line, inputs, self.inner.intake());
        self.inner.bring(&self.world.foreseen_targets(inputs));
    }

    fn bring_array(&mut self, slot: Slot, array: &Reals, change: u64) {
        let _ = self.world.bring_array(&self.line, slot, array, change, self.inner.intake());
    }

    fn order_after(&mut self, stream: u64) {
        self.caller = stream;
        self.inner.order_after(stream);
    }

    fn recipe(&self) -> String {
        if self.recipe.is_empty() { self.inner.recipe() } else { self.recipe.clone() }
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}
