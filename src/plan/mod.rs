//! What problem: sources, targets and options of one sum; owns the engine that computes it.
//!
//! Enters: arrays of a caller, through `set_*`. Leaves: fields, through `evaluate`. The engine is made at the first
//! `prepare` or `evaluate`, when the arrays have told the precision, and kept until that changes. An error in `set_*`
//! leaves the plan as it was; after an error in an engine the next call makes a new one from the same inputs.

pub mod arrays;
mod distributed;
mod notes;
mod plane;
pub mod sources;

use std::sync::Arc;

use log::info;

use crate::backend::cuda::Behind;
use crate::backend::{Engine, Field};
use crate::error::{Error, Result, WFMM_ERR_STATE};
use crate::inputs::Inputs;
use crate::options::{PlanOptions, Precision, check_tolerance};
use crate::report::{Pass, Report};
use crate::session::{Session, make_engine};
use notes::KindOfElements;

use arrays::{ArrayMut, HostReal};

/// Which inputs the caller has spoken of; a removed source (n = 0) has been spoken of.
#[derive(Debug, Clone, Copy, Default)]
struct Given {
    vortices: bool,
    charges: bool,
    targets: bool,
}

/// Numbers of elements of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub segments: usize,
    pub particles: usize,
    pub charges: usize,
    pub targets: usize,
}

pub struct Plan {
    session: Arc<Session>,
    options: PlanOptions,
    inputs: Inputs,
    given: Given,
    /// The caller's CUDA stream; 0: the default stream.
    stream: u64,
    /// A queue behind that stream, and its handle in an evaluation on a thread of its own, where it takes the stream's place.
    behind: Option<Behind>,
    queue: Option<u64>,
    /// A double output array was handed over since the last `set_*`; with WFMM_FLAG_REPRODUCIBLE in the last evaluation.
    double_output: bool,
    /// Of a distributed session: some rank has arrays in double precision.
    double_anywhere: bool,
    /// On a distributed session: the largest core radius of segments on any rank, and the elements of all.
    core_anywhere: f64,
    kinds_anywhere: Option<[KindOfElements; 2]>,
    engine: Option<(Precision, Box<dyn Engine>)>,
    last_field: Option<Field>,
    /// The last field had no sources or no targets, and no engine was asked.
    was_nothing: bool,
    logged: bool,
    /// The warning about cores was given.
    warned: bool,
    /// With a ground plane: images of the sources, and how they are summed.
    mirrored: plane::Mirrored,
}

impl Plan {
    pub fn new(session: Arc<Session>, options: PlanOptions) -> Self {
        Self {
            session,
            options,
            inputs: Inputs::default(),
            given: Given::default(),
            stream: 0,
            behind: None,
            queue: None,
            double_output: false,
            double_anywhere: false,
            core_anywhere: 0.0,
            kinds_anywhere: None,
            engine: None,
            last_field: None,
            was_nothing: false,
            logged: false,
            warned: false,
            mirrored: plane::Mirrored::default(),
        }
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub fn options(&self) -> &PlanOptions {
        &self.options
    }

    /// Device arrays are made by what is queued on this CUDA stream.
    pub fn set_stream(&mut self, stream: u64) {
        self.stream = stream;
    }

    /// A queue behind what is on the caller's stream now, for an evaluation on another thread; none without a GPU.
    pub fn queue_now(&mut self) -> Result<Option<u64>> {
        let Some(context) = self.session.device_context() else { return Ok(None) };
        if self.behind.is_none() {
            self.behind = Some(Behind::new(context)?);
        }
        self.behind.as_ref().map(|behind| behind.follow(self.stream)).transpose()
    }

    /// An evaluation in the order of such a queue.
    pub fn evaluate_behind<T: HostReal>(
        &mut self,
        queue: Option<u64>,
        field: Field,
        main: ArrayMut<'_, T>,
        gradient: Option<ArrayMut<'_, T>>,
    ) -> Result<()> {
        self.queue = queue;
        let result = self.evaluate(field, main, gradient);
        self.queue = None;
        result
    }

    /// The queue whose work makes device arrays.
    fn stream(&self) -> u64 {
        self.queue.unwrap_or(self.stream)
    }

    pub fn counts(&self) -> Counts {
        Counts {
            segments: self.inputs.segments.as_ref().map_or(0, |s| s.n),
            particles: self.inputs.particles.as_ref().map_or(0, |p| p.n),
            charges: self.inputs.charges.as_ref().map_or(0, |c| c.n),
            targets: self.inputs.targets.as_ref().map_or(0, |t| t.n),
        }
    }

    /// What the engine can do ahead of `evaluate`, for the fields that the sources allow.
    pub fn prepare(&mut self) -> Result<()> {
        if self.session.communicator().is_some() {
            return self.prepare_distributed();
        }
        if !(self.given.vortices || self.given.charges) || !self.given.targets {
            return Error::fail(WFMM_ERR_STATE, "prepare before sources and targets were set");
        }
        let counts = self.counts();
        if counts.targets == 0 {
            return Ok(());
        }
        let inputs = self.for_engine()?;
        if counts.segments + counts.particles > 0 {
            self.run(|engine| engine.prepare(&inputs, Field::Velocity { gradient: false }))?;
        }
        if counts.charges > 0 {
            self.run(|engine| engine.prepare(&inputs, Field::Potential { gradient: false }))?;
        }
        Ok(())
    }

    /// The field at the targets. `main` and `gradient` have the lengths that `Engine::evaluate` states.
    pub fn evaluate<T: HostReal>(
        &mut self,
        field: Field,
        mut main: ArrayMut<'_, T>,
        mut gradient: Option<ArrayMut<'_, T>>,
    ) -> Result<()> {
        if self.session.communicator().is_some() {
            return self.evaluate_distributed(field, main, gradient);
        }
        self.ready(field)?;
        self.note_output(T::DOUBLE);
        self.check_tolerance()?;
        let nothing = self.counts().targets == 0;
        self.was_nothing = nothing || (self.no_sources(field) && self.zero_field(&mut main, &mut gradient));
        if self.was_nothing {
            self.last_field = Some(field);
            return Ok(());
        }
        if let Some(plane) = self.options.plane {
            self.evaluate_mirrored(plane, field, main, gradient)?;
        } else {
            let (main, gradient) = (main.into_reals(), gradient.map(ArrayMut::into_reals));
            self.with_engine(|engine, inputs| engine.evaluate(inputs, field, main, gradient))?;
        }
        self.last_field = Some(field);
        self.log_once();
        Ok(())
    }

    /// Relative L2 error of the last field (before any: the velocity, or of charges alone the potential) against the direct
    /// sum.
    pub fn check(&mut self, samples: usize, seed: u64) -> Result<f64> {
        let counts = self.counts();
        // Ranks have different counts, but were all told of the same kinds.
        let charges_alone =
            self.session.communicator().is_none() && counts.segments + counts.particles == 0 && counts.charges > 0;
        let first = if self.given.vortices && !charges_alone {
            Field::Velocity { gradient: false }
        } else {
            Field::Potential { gradient: false }
        };
        let field = self.last_field.unwrap_or(first);
        if self.session.communicator().is_some() {
            return self.check_distributed(field, samples, seed);
        }
        self.ready(field)?;
        self.check_tolerance()?;
        let targets = counts.targets;
        if targets == 0 || self.no_sources(field) {
            return Ok(0.0);
        }
        let samples = samples.min(targets);
        if let Some(plane) = self.options.plane {
            return self.check_mirrored(plane, field, samples, seed);
        }
        self.with_engine(|engine, inputs| engine.check(inputs, field, samples, seed))
    }

    pub fn recipe(&self) -> String {
        match &self.engine {
            Some((_, engine)) => engine.recipe() + &self.notes(),
            None => "Nothing was chosen yet: the recipe is made by wfmm_plan_prepare or the first evaluation.".into(),
        }
    }

    pub fn report(&self) -> Report {
        let mut report = self.engine.as_ref().map_or_else(Report::default, |(_, engine)| engine.report());
        if self.was_nothing {
            let Report { host_bytes, device_bytes, .. } = report;
            report = Report { host_bytes, device_bytes, ..Report::default() };
        }
        report.host_bytes += self.input_bytes() + self.mirrored.host_bytes();
        report.device_bytes += self.mirrored.device_bytes();
        report.estimated_error = self.mirrored.error_of(report.estimated_error);
        report.singular = self.singular_kinds();
        report
    }

    /// Every check that does not need the outputs, before any work.
    fn ready(&self, field: Field) -> Result<()> {
        let (given, what) = match field {
            Field::Velocity { .. } => (self.given.vortices, "segments or particles"),
            Field::Potential { .. } => (self.given.charges, "charges"),
        };
        if !given {
            return Error::fail(
                WFMM_ERR_STATE,
                format!("evaluate before sources: {what} were never set (n = 0 sets none of them)"),
            );
        }
        if !self.given.targets {
            return Error::fail(WFMM_ERR_STATE, "evaluate before targets: call wfmm_plan_set_targets_* first");
        }
        Ok(())
    }

    fn no_sources(&self, field: Field) -> bool {
        let counts = self.counts();
        match field {
            Field::Velocity { .. } => counts.segments + counts.particles == 0,
            Field::Potential { .. } => counts.charges == 0,
        }
    }

    /// The field of no sources, where the outputs are on the host; `false` leaves it to the engine.
    fn zero_field<T: HostReal>(&self, main: &mut ArrayMut<'_, T>, gradient: &mut Option<ArrayMut<'_, T>>) -> bool {
        if self.options.accumulate {
            return true;
        }
        main.zero_on_host() && gradient.as_mut().is_none_or(ArrayMut::zero_on_host)
    }

    /// An engine of double precision serves later single arrays too, but where earlier calls must not matter.
    fn note_output(&mut self, is_double: bool) {
        self.double_output = is_double || self.double_output && !self.options.reproducible;
    }

    fn precision(&self) -> Precision {
        match self.options.precision {
            _ if self.mirrored.in_double() => Precision::F64,
            // The same on all ranks, whatever arrays each has.
            _ if self.session.computes_on_ranks_cpus() => Precision::F64,
            Precision::Arrays if self.double_anywhere => Precision::F64,
            Precision::Arrays if self.session.communicator().is_some() => Precision::F32,
            Precision::Arrays if self.double_output || self.inputs_are_double() => Precision::F64,
            Precision::Arrays => Precision::F32,
            asked => asked,
        }
    }

    fn check_tolerance(&self) -> Result<()> {
        check_tolerance(self.options.tolerance, self.precision())
    }

    /// Runs `work` with the caller's own inputs.
    fn with_engine<R>(&mut self, work: impl FnOnce(&mut dyn Engine, &Inputs) -> Result<R>) -> Result<R> {
        let inputs = self.inputs.clone();
        self.run(|engine| work(engine, &inputs))
    }

    /// Runs `work` on an engine of the right precision; a failing engine is dropped.
    fn run<R>(&mut self, work: impl FnOnce(&mut dyn Engine) -> Result<R>) -> Result<R> {
        self.check_tolerance()?;
        let precision = self.precision();
        if self.engine.as_ref().is_none_or(|(p, _)| *p != precision) {
            self.engine = Some((precision, make_engine(&self.session, &self.engine_options(), precision)?));
        }
        let queue = self.stream();
        let (_, engine) = self.engine.as_mut().expect("made above");
        engine.order_after(queue);
        let result = work(engine.as_mut());
        if result.is_err() {
            self.engine = None;
        }
        result
    }

    fn log_once(&mut self) {
        if self.logged || !log::log_enabled!(log::Level::Info) {
            return;
        }
        self.logged = true;
        let seconds = self.report().seconds;
        let spent = |&(pass, name): &(Pass, &str)| {
            let s = seconds[pass as usize];
            (s > 0.0).then(|| format!("{} {s:.3e}", name.trim_start_matches("WFMM_PASS_").to_lowercase()))
        };
        let passes: Vec<_> = Pass::ALL.iter().filter_map(spent).collect();
        info!("plan: {} Seconds per pass: {}.", self.recipe(), passes.join(", "));
    }
}
