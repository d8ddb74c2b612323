//! Several devices of one process: ranks that are threads.
//!
//! Enters: a device and threads for each rank, `Inputs`. Leaves: the field, made by the ranks' engines together. Where all arrays are in host
//! memory every rank reads the sources there, has its part of the targets (`parts`), and the fields are put together at the end.
//! Otherwise the first rank has all sources and targets, and the ranks exchange them as those of several processes do, through memory
//! (`distributed::threads`). One that panics leaves the group, so that the others end with an error instead of waiting for it.

use super::parts::Parts;
use super::wire::Wire;
use super::world::is_on_host;
use super::{Outputs, RanksEngine};
use crate::backend::cuda::context::Context;
use crate::backend::cuda::locked::Locked;
use crate::backend::{Engine, Field};
use crate::distributed::Communicator;
use crate::distributed::threads::{ThreadExchange, group};
use crate::error::{Error, Result, WFMM_ERR_INTERNAL};
use crate::inputs::{Inputs, Reals, RealsMut, TargetInput};
use crate::memory;
use crate::options::PlanOptions;
use crate::report::Report;
use parking_lot::Mutex;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// A device and the threads that work for it.
#[derive(Debug, Clone)]
pub struct Seat {
    pub context: Arc<Context>,
    pub pool: Arc<rayon::ThreadPool>,
}

/// One rank; without an engine until it is made, and once it has panicked.
struct Rank<T: Wire> {
    seat: Seat,
    /// Its end of the group, until its engine has it.
    end: Option<Arc<ThreadExchange>>,
    engine: Option<RanksEngine<T>>,
}

/// See the head of this file.
pub struct DevicesEngine<T: Wire> {
    ranks: Vec<Rank<T>>,
    parts: Parts,
    /// Change counter, number and precision of the targets that `parts` has.
    divided: Option<(u64, usize, bool)>,
    /// Whether fields are added to what is in the output.
    adds: bool,
    /// `Fields` of the last output's precision, kept since locking pages takes longer than filling them.
    fields: Option<Box<dyn Any + Send>>,
}

/// Fields of all devices side by side, and gradients, in page-locked memory.
struct Fields<U> {
    main: Locked<U>,
    gradient: Locked<U>,
}

impl<U: Wire> Fields<U> {
    /// Those that are there, if they are of this precision and large enough.
    fn with_room(
        kept: Option<Box<dyn Any + Send>>,
        context: &Arc<Context>,
        [main, gradient]: [usize; 2],
    ) -> Result<Box<Self>> {
        let kept = kept.and_then(|kept| kept.downcast::<Self>().ok());
        let fits = |kept: &Self| kept.main.as_ref().len() >= main && kept.gradient.as_ref().len() >= gradient;
        match kept {
            Some(kept) if fits(&kept) => Ok(kept),
            _ => Ok(Box::new(Self { main: Locked::new(context, main)?, gradient: Locked::new(context, gradient)? })),
        }
    }
}

/// A rank's inputs, and where its field goes.
type Task<'a, U> = Mutex<Option<(Inputs, &'a mut [U], Option<&'a mut [U]>)>>;

impl<T: Wire> DevicesEngine<T> {
    pub fn new(options: &PlanOptions, seats: &[Seat]) -> Result<Self> {
        // The targets are all on the first rank: they must be dealt.
        let options = PlanOptions { host_partition: false, ..options.clone() };
        let of = |(seat, end): (&Seat, Arc<ThreadExchange>)| Rank { seat: seat.clone(), end: Some(end), engine: None };
        let mut ranks: Vec<Rank<T>> = memory::collect(seats.iter().zip(group(seats.len())).map(of));
        let failure = Mutex::new(None);
        let make = |rank: &mut Rank<T>| {
            let Some(end) = rank.end.take() else { return };
            let Seat { context, pool } = rank.seat.clone();
            match RanksEngine::new(options.clone(), context, pool, &Communicator::new(end)) {
                Ok(engine) => rank.engine = Some(engine.of_devices()),
                Err(error) => *failure.lock() = Some(error),
            }
        };
        each_beside(&mut ranks, &make, || ());
        let adds = options.accumulate;
        failure.into_inner().map_or(Ok(Self { ranks, parts: Parts::default(), divided: None, adds, fields: None }), Err)
    }

    /// Runs `first` on the first rank and `other` on all others, at the same time.
    fn together<R>(
        &mut self,
        first: impl FnOnce(&mut RanksEngine<T>) -> Result<R>,
        other: impl Fn(&mut RanksEngine<T>) -> Result<()> + Sync,
    ) -> Result<R> {
        if self.ranks.iter().any(|rank| rank.engine.is_none()) {
            return Err(gone());
        }
        let [head, rest @ ..] = self.ranks.as_mut_slice() else { return Err(gone()) };
        let mut answer = None;
        let run = |rank: &mut Rank<T>| drop(guarded(&mut rank.engine, &other));
        each_beside(rest, &run, || answer = Some(guarded(&mut head.engine, first)));
        match answer.expect("the first rank has run") {
            Ok(answer) if rest.iter().all(|rank| rank.engine.is_some()) => answer,
            Ok(_) => Err(gone()),
            Err(cause) => resume_unwind(cause),
        }
    }

    fn share(&mut self, shared: bool) {
        self.ranks.iter_mut().filter_map(|rank| rank.engine.as_mut()).for_each(|engine| engine.share(shared));
    }

    /// Inputs of each rank, where sources and targets are in host memory: all sources, and its part of the targets.
    fn shared(&mut self, inputs: &Inputs, field: Field) -> Result<Option<Vec<Inputs>>> {
        let shared = is_on_host(inputs, field);
        self.share(shared);
        let Some(targets) = inputs.targets.as_ref().filter(|_| shared) else { return Ok(None) };
        let now = (inputs.target_positions, targets.n, matches!(targets.position, Reals::HostF64(_)));
        if self.divided != Some(now) {
            self.divided = None;
            let contexts: Vec<_> = self.ranks.iter().map(|rank| &rank.seat.context).collect();
            let pool = &self.ranks[0].seat.pool;
            self.parts = match &targets.position {
                Reals::HostF32(x) => Parts::of(x.as_chunks::<3>().0, &contexts, pool)?,
                Reals::HostF64(x) => Parts::of(x.as_chunks::<3>().0, &contexts, pool)?,
                _ => return Ok(None),
            };
            self.divided = Some(now);
        }
        let of = |part: &TargetInput| Inputs { targets: Some(part.clone()).filter(|t| t.n > 0), ..inputs.clone() };
        Ok(Some(self.parts.targets.iter().map(of).collect()))
    }

    /// The fields of all ranks in one array each, in page-locked memory; then to their targets.
    fn evaluate_parts<U: Wire>(
        &mut self,
        inputs: Vec<Inputs>,
        field: Field,
        main: &mut [U],
        gradient: Option<&mut [U]>,
    ) -> Result<()> {
        let (width, wide) = field.widths();
        let lengths = [main.len(), gradient.as_ref().map_or(0, |g| g.len())];
        let mut fields = Fields::<U>::with_room(self.fields.take(), &self.ranks[0].seat.context, lengths)?;
        {
            let (mut rest, mut steep) =
                (fields.main.slice_mut(), gradient.is_some().then(|| fields.gradient.slice_mut()));
            let mut tasks: Vec<Task<'_, U>> = Vec::new();
            for inputs in inputs {
                let n = inputs.targets.as_ref().map_or(0, |t| t.n);
                let (own, others) = rest.split_at_mut(width * n);
                let (g, more) = steep.map(|s| s.split_at_mut(wide * n)).unzip();
                (rest, steep) = (others, more);
                tasks.push(Mutex::new(Some((inputs, own, g))));
            }
            let work = |engine: &mut RanksEngine<T>| {
                let task = tasks[engine.line.communicator.rank()].lock().take();
                let Some((inputs, main, gradient)) = task else { return Err(gone()) };
                engine.evaluate(&inputs, field, U::host_mut(main), gradient.map(U::host_mut))
            };
            self.together(work, work)?;
        }
        let pool = &self.ranks[0].seat.pool;
        self.parts.put(fields.main.as_ref(), width, main, self.adds, pool);
        if let Some(to) = gradient {
            self.parts.put(fields.gradient.as_ref(), wide, to, self.adds, pool);
        }
        self.fields = Some(fields);
        Ok(())
    }

    /// Of arrays some of which are in device memory: the first rank has them all.
    fn evaluate_exchanged(&mut self, inputs: &Inputs, field: Field, (main, gradient): Outputs<'_>) -> Result<()> {
        self.share(false);
        let none = nothing(inputs);
        let slopes = field.has_gradient();
        self.together(
            |engine| engine.evaluate(inputs, field, main, gradient),
            |engine| {
                let empty = || RealsMut::HostF64(&mut []);
                engine.evaluate(&none, field, empty(), slopes.then(empty))
            },
        )
    }

    fn first(&self) -> Option<&RanksEngine<T>> {
        self.ranks.first()?.engine.as_ref()
    }
}

fn gone() -> Error {
    Error::new(WFMM_ERR_INTERNAL, "a thread that works for one of the devices has ended")
}

/// The work of one rank. A panic ends its engine, and with it its end of the group.
fn guarded<T: Wire, R>(
    engine: &mut Option<RanksEngine<T>>,
    work: impl FnOnce(&mut RanksEngine<T>) -> Result<R>,
) -> std::result::Result<Result<R>, Box<dyn Any + Send>> {
    let Some(own) = engine else { return Ok(Err(gone())) };
    let answer = catch_unwind(AssertUnwindSafe(|| work(own)));
    if answer.is_err() {
        *engine = None;
    }
    answer
}

/// Runs `run` for every rank, each on a thread of its own pool, and `last` on this one; waits for all.
fn each_beside<T: Wire>(ranks: &mut [Rank<T>], run: &(impl Fn(&mut Rank<T>) + Sync), last: impl FnOnce()) {
    let [rank, rest @ ..] = ranks else { return last() };
    let pool = rank.seat.pool.clone();
    pool.in_place_scope(|scope| {
        scope.spawn(move |_| run(rank));
        each_beside(rest, run, last);
    });
}

/// What the other ranks have: nothing, as new as what the first one has.
fn nothing(inputs: &Inputs) -> Inputs {
    Inputs {
        segments: None,
        particles: None,
        charges: None,
        targets: None,
        vortex_positions: inputs.vortex_positions,
        vortex_strengths: inputs.vortex_strengths,
        charge_positions: inputs.charge_positions,
        charge_strengths: inputs.charge_strengths,
        target_positions: inputs.target_positions,
    }
}

impl<T: Wire> Engine for DevicesEngine<T> {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        if let Some(parts) = self.shared(inputs, field)? {
            let work = |engine: &mut RanksEngine<T>| engine.prepare(&parts[engine.line.communicator.rank()], field);
            return self.together(work, work);
        }
        let none = nothing(inputs);
        self.together(|engine| engine.prepare(inputs, field), |engine| engine.prepare(&none, field))
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        use RealsMut::{HostF32, HostF64};
        let parts = match &main {
            HostF32(_) | HostF64(_) => self.shared(inputs, field)?,
            _ => None,
        };
        match (parts, main, gradient) {
            (Some(parts), HostF32(main), None) => self.evaluate_parts(parts, field, main, None),
            (Some(parts), HostF64(main), None) => self.evaluate_parts(parts, field, main, None),
            (Some(parts), HostF32(main), Some(HostF32(g))) => self.evaluate_parts(parts, field, main, Some(g)),
            (Some(parts), HostF64(main), Some(HostF64(g))) => self.evaluate_parts(parts, field, main, Some(g)),
            (_, main, gradient) => self.evaluate_exchanged(inputs, field, (main, gradient)),
        }
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        if let Some(parts) = self.shared(inputs, field)? {
            let check = |engine: &mut RanksEngine<T>| {
                engine.check(&parts[engine.line.communicator.rank()], field, samples, seed)
            };
            return self.together(check, |engine| check(engine).map(drop));
        }
        let none = nothing(inputs);
        self.together(
            |engine| engine.check(inputs, field, samples, seed),
            |engine| engine.check(&none, field, samples, seed).map(drop),
        )
    }

    fn order_after(&mut self, stream: u64) {
        // What the caller's stream has written is read by the first rank alone.
        if let Some(engine) = self.ranks.first_mut().and_then(|rank| rank.engine.as_mut()) {
            engine.order_after(stream);
        }
    }

    fn recipe(&self) -> String {
        self.first().map_or_else(String::new, RanksEngine::recipe)
    }

    fn report(&self) -> Report {
        let report = self.first().map_or_else(Report::default, RanksEngine::report);
        Report { host_bytes: report.host_bytes + self.parts.bytes(), ..report }
    }
}
