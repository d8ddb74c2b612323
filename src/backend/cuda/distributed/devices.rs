//! Several devices of one process: ranks that are threads, the first of which has all sources and targets.
//!
//! Enters: a device and threads for each rank, `Inputs`. Leaves: the field, made by the ranks' engines together. The ranks
//! exchange through memory (`distributed::threads`). One that panics leaves the group, so that the others end with an error
//! instead of waiting for it.

use super::RanksEngine;
use super::wire::Wire;
use crate::backend::cuda::context::Context;
use crate::backend::{Engine, Field};
use crate::distributed::Communicator;
use crate::distributed::threads::{ThreadExchange, group};
use crate::error::{Error, Result, WFMM_ERR_INTERNAL};
use crate::inputs::{Inputs, RealsMut};
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
}

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
        failure.into_inner().map_or(Ok(Self { ranks }), Err)
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

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
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
        self.first().map_or_else(Report::default, RanksEngine::report)
    }
}
