//! Several devices of one process: ranks that are threads.
//!
//! Enters: a device and threads for each rank, `Inputs`. Leaves: the field, made by the ranks' engines together. Where all arrays are in host
//! memory every rank reads the sources there, has its part of the targets (`parts`), and brings the field at a range of the caller's
//! targets back. Otherwise the first rank has all sources and targets, and the ranks exchange them as those of several processes do,
//! through memory (`distributed::threads`). One that panics leaves the group, so that the others end with an error instead of waiting for it.

use super::parts::{Board, Parts, targets_of};
use super::wire::Wire;
use super::world::{is_on_host, shared_change};
use super::{EVALUATE, Outputs, RanksEngine};
use crate::backend::cuda::context::Context;
use crate::backend::cuda::gather::{Reader, bring_array_together, bring_together};
use crate::backend::images::Slot;
use crate::backend::{Engine, Field};
use crate::distributed::Communicator;
use crate::distributed::threads::{ThreadExchange, group};
use crate::error::{Error, Result, WFMM_ERR_INTERNAL};
use crate::inputs::{Inputs, Reals, RealsMut};
use crate::memory;
use crate::options::PlanOptions;
use crate::report::{Pass, Report};
use parking_lot::Mutex;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

/// A device and the threads that work for it.
#[derive(Debug, Clone)]
pub struct Seat {
    pub context: Arc<Context>,
    pub pool: Arc<rayon::ThreadPool>,
}

/// What a rank sums with.
struct Member<T: Wire> {
    engine: RanksEngine<T>,
    parts: Parts,
    /// Seconds of the last evaluation beside the engine's.
    beside: f64,
}

/// One rank; without a member until it is made, and once it has panicked.
struct Rank<T: Wire> {
    seat: Seat,
    /// Its end of the group, until its engine has it.
    end: Option<Arc<ThreadExchange>>,
    member: Option<Member<T>>,
}

/// See the head of this file.
pub struct DevicesEngine<T: Wire> {
    ranks: Vec<Rank<T>>,
    /// Whether fields are added to what is in the output.
    adds: bool,
}

/// Where a rank brings its range of the field, and of the gradient.
struct Task<'a, U> {
    range: Range<usize>,
    to: [&'a mut [U]; 2],
}

impl<T: Wire> Member<T> {
    fn rank(&self) -> usize {
        self.engine.line.communicator.rank()
    }

    /// What brings the sources to this rank's device together with others.
    fn reader(&mut self) -> Reader<'_> {
        self.engine.inner.reader(self.parts.arrived())
    }

    /// The inputs with this rank's part of the targets.
    fn divide(&mut self, call: &str, inputs: &Inputs) -> Result<Inputs> {
        let communicator = self.engine.line.communicator.clone();
        communicator.together(call, || self.parts.divide(inputs))
    }

    /// The field at this rank's part, and then of all parts what it brings back.
    fn evaluate<U: Wire>(
        &mut self,
        inputs: &Inputs,
        field: Field,
        task: Task<'_, U>,
        board: &Board,
        adds: bool,
    ) -> Result<()> {
        let communicator = self.engine.line.communicator.clone();
        communicator.collective(EVALUATE, || {
            let start = Instant::now();
            let own = self.divide(EVALUATE, inputs)?;
            let [main, gradient] = communicator.together(EVALUATE, || self.parts.make_room::<U>(field, board))?;
            let (n, (width, wide)) = (own.targets.as_ref().map_or(0, |t| t.n), field.widths());
            let slopes = field.has_gradient().then(|| U::device_mut(gradient, wide * n));
            let before = start.elapsed();
            self.engine.evaluate_together(EVALUATE, &own, field, (U::device_mut(main, width * n), slopes))?;
            let start = Instant::now();
            let brought = self.parts.bring_back(field, board, task.to, task.range, adds);
            self.beside = (before + start.elapsed()).as_secs_f64();
            let all = communicator.agree(EVALUATE, brought);
            all.map_err(|error| if adds { Error { agreed: true, ..error.after_writing() } } else { error })
        })
    }
}

impl<T: Wire> DevicesEngine<T> {
    pub fn new(options: &PlanOptions, seats: &[Seat]) -> Result<Self> {
        // The targets are all on the first rank: they must be dealt.
        let options = PlanOptions { host_partition: false, ..options.clone() };
        let of = |(seat, end): (&Seat, Arc<ThreadExchange>)| Rank { seat: seat.clone(), end: Some(end), member: None };
        let mut ranks: Vec<Rank<T>> = memory::collect(seats.iter().zip(group(seats.len())).map(of));
        let failure = Mutex::new(None);
        let make = |rank: &mut Rank<T>| {
            let Some(end) = rank.end.take() else { return };
            match member(&options, &rank.seat, end, seats) {
                Ok(member) => rank.member = Some(member),
                Err(error) => *failure.lock() = Some(error),
            }
        };
        each_beside(&mut ranks, &make, || ());
        let adds = options.accumulate;
        failure.into_inner().map_or(Ok(Self { ranks, adds }), Err)
    }

    /// Runs `first` on the first rank and `other` on all others, at the same time.
    fn together<R>(
        &mut self,
        first: impl FnOnce(&mut Member<T>) -> Result<R>,
        other: impl Fn(&mut Member<T>) -> Result<()> + Sync,
    ) -> Result<R> {
        if self.ranks.iter().any(|rank| rank.member.is_none()) {
            return Err(gone());
        }
        let [head, rest @ ..] = self.ranks.as_mut_slice() else { return Err(gone()) };
        let mut answer = None;
        let run = |rank: &mut Rank<T>| drop(guarded(&mut rank.member, &other));
        each_beside(rest, &run, || answer = Some(guarded(&mut head.member, first)));
        match answer.expect("the first rank has run") {
            Ok(answer) if rest.iter().all(|rank| rank.member.is_some()) => answer,
            Ok(_) => Err(gone()),
            Err(cause) => resume_unwind(cause),
        }
    }

    fn members(&mut self) -> impl Iterator<Item = &mut Member<T>> {
        self.ranks.iter_mut().filter_map(|rank| rank.member.as_mut())
    }

    /// Whether sources and targets are in host memory, where all ranks read them.
    fn shares(&mut self, inputs: &Inputs, field: Field) -> bool {
        let shared = is_on_host(inputs, field);
        self.members().for_each(|member| member.engine.share(shared));
        shared
    }

    /// Of arrays in host memory: each rank sums at its part of the targets and brings back an equal range of the caller's.
    fn evaluate_parts<U: Wire>(
        &mut self,
        inputs: &Inputs,
        field: Field,
        mut main: &mut [U],
        gradient: Option<&mut [U]>,
    ) -> Result<()> {
        let (width, wide) = field.widths();
        let (n, ranks) = (main.len() / width, self.ranks.len());
        let mut steep = gradient.unwrap_or_default();
        let slopes = !steep.is_empty();
        let mut tasks = Vec::new();
        for rank in 0..ranks {
            let range = n * rank / ranks..n * (rank + 1) / ranks;
            let (own, rest) = main.split_at_mut(width * range.len());
            let (own_steep, more) = steep.split_at_mut(if slopes { wide * range.len() } else { 0 });
            (main, steep) = (rest, more);
            tasks.push(Mutex::new(Some(Task { range, to: [own, own_steep] })));
        }
        let (board, adds) = (Board::new(ranks), self.adds);
        let work = |member: &mut Member<T>| {
            let task = tasks[member.rank()].lock().take().ok_or_else(gone)?;
            member.evaluate(inputs, field, task, &board, adds)
        };
        self.together(work, work)
    }

    /// Of arrays some of which are in device memory: the first rank has them all.
    fn evaluate_exchanged(&mut self, inputs: &Inputs, field: Field, (main, gradient): Outputs<'_>) -> Result<()> {
        let none = nothing(inputs);
        let slopes = field.has_gradient();
        self.together(
            |first| {
                first.beside = 0.0;
                first.engine.evaluate(inputs, field, main, gradient)
            },
            |other| {
                let empty = || RealsMut::HostF64(&mut []);
                other.engine.evaluate(&none, field, empty(), slopes.then(empty))
            },
        )
    }

    fn first(&self) -> Option<&Member<T>> {
        self.ranks.first()?.member.as_ref()
    }
}

fn gone() -> Error {
    Error::new(WFMM_ERR_INTERNAL, "a thread that works for one of the devices has ended")
}

/// A rank's engine and division of targets, on a device that reads the memory of the others where it can.
fn member<T: Wire>(options: &PlanOptions, seat: &Seat, end: Arc<ThreadExchange>, seats: &[Seat]) -> Result<Member<T>> {
    let Seat { context, pool } = seat;
    let communicator = Communicator::new(end);
    let engine = RanksEngine::new(options.clone(), context.clone(), pool.clone(), &communicator)?;
    let parts = communicator.together("a division of targets", || {
        for other in seats {
            if !context.reach(&other.context)? {
                log::info!("{} reads the memory of {} by way of the host", context.info.name, other.context.info.name);
            }
        }
        Parts::new(context, pool, [communicator.rank(), communicator.size()])
    })?;
    Ok(Member { engine: engine.of_devices(), parts, beside: 0.0 })
}

/// The work of one rank. A panic ends its engine, and with it its end of the group.
fn guarded<T: Wire, R>(
    member: &mut Option<Member<T>>,
    work: impl FnOnce(&mut Member<T>) -> Result<R>,
) -> std::thread::Result<Result<R>> {
    let Some(own) = member else { return Ok(Err(gone())) };
    let answer = catch_unwind(AssertUnwindSafe(|| work(own)));
    if answer.is_err() {
        *member = None;
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
        if self.shares(inputs, field) {
            let work = |member: &mut Member<T>| {
                let own = member.divide("wfmm_plan_prepare", inputs)?;
                member.engine.prepare(&own, field)
            };
            return self.together(work, work);
        }
        let none = nothing(inputs);
        self.together(|first| first.engine.prepare(inputs, field), |other| other.engine.prepare(&none, field))
    }

    fn bring(&mut self, inputs: &Inputs) {
        if !self.members().all(|member| member.engine.world.shared) {
            return;
        }
        // An error comes back in the evaluation: what was not copied then is copied there.
        let mut sources = Inputs::default();
        self.members().for_each(|member| sources = member.engine.shared_sources(inputs));
        let mut readers: Vec<_> = self.members().map(Member::reader).collect();
        let _ = bring_together(&mut readers, &sources);
        let mut readers: Vec<_> = self.members().map(|member| member.parts.reader()).collect();
        let _ = bring_together(&mut readers, &targets_of(inputs));
    }

    fn bring_array(&mut self, slot: Slot, array: &Reals, change: u64) {
        if self.members().all(|member| member.engine.world.shared) {
            let mut readers: Vec<_> = self.members().map(Member::reader).collect();
            let _ = bring_array_together(&mut readers, slot, array, shared_change(change));
        }
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        use RealsMut::{HostF32, HostF64};
        let to_host = matches!(main, HostF32(_) | HostF64(_));
        match (to_host && self.shares(inputs, field), main, gradient) {
            (true, HostF32(main), None) => self.evaluate_parts(inputs, field, main, None),
            (true, HostF64(main), None) => self.evaluate_parts(inputs, field, main, None),
            (true, HostF32(main), Some(HostF32(g))) => self.evaluate_parts(inputs, field, main, Some(g)),
            (true, HostF64(main), Some(HostF64(g))) => self.evaluate_parts(inputs, field, main, Some(g)),
            (_, main, gradient) => {
                self.members().for_each(|member| member.engine.share(false));
                self.evaluate_exchanged(inputs, field, (main, gradient))
            }
        }
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        if self.shares(inputs, field) {
            let check = |member: &mut Member<T>| {
                let own = member.divide("wfmm_plan_check", inputs)?;
                member.engine.check(&own, field, samples, seed)
            };
            return self.together(check, |member| check(member).map(drop));
        }
        let none = nothing(inputs);
        self.together(
            |first| first.engine.check(inputs, field, samples, seed),
            |other| other.engine.check(&none, field, samples, seed).map(drop),
        )
    }

    fn order_after(&mut self, stream: u64) {
        // What the caller's stream has written is read by the first rank alone.
        if let Some(member) = self.members().next() {
            member.engine.order_after(stream);
        }
    }

    fn recipe(&self) -> String {
        self.first().map_or_else(String::new, |member| member.engine.recipe())
    }

    fn report(&self) -> Report {
        let Some(member) = self.first() else { return Report::default() };
        let (mut report, [device, host]) = (member.engine.report(), member.parts.bytes());
        report.device_bytes += device;
        report.host_bytes += host;
        for pass in [Pass::Transfer, Pass::Total] {
            report.seconds[pass as usize] += member.beside;
        }
        report
    }
}
