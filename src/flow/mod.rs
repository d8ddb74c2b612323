//! A flow: elements that move with the fluid, stretch, diffuse and carry dust, step by step.
//!
//! ```text
//!   edit      set, add, remove                step        one step: rates of all that moves, dust, the new state
//!   query     get, velocity at points         diagnostics invariants and norms     checkpoint, npy   files
//!      │                                         │
//!   sums      U at points: one plan, free stream, the host's callback      integrate  Euler, AB2, RK3, RK4
//!      │                                         │
//!   state     every array of every element    vector      what is integrated     dust, filaments  their physics
//! ```
//!
//! The state is in host memory, in double precision; the sums go through a plan, which runs them on what the session has. On a
//! distributed session each rank keeps the elements that its host has added; what other ranks have acts through the plan.
//! Equations: docs/flow.md.

mod checkpoint;
pub mod diagnostics;
mod dust;
pub mod edit;
mod filaments;
mod integrate;
mod npy;
pub mod options;
mod query;
pub mod state;
mod step;
mod sums;
mod vector;

use std::sync::Arc;

use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_VALUE};
use crate::options::{PlanOptions, wfmm_plan_options};
use crate::report::Report;
use crate::session::Session;

use integrate::History;
use options::{ElementKind, FlowOptions, wfmm_flow_options};
use state::State;
use sums::Sums;

pub use sums::Callback;

pub struct Flow {
    session: Arc<Session>,
    /// Options as they were given, for checkpoints.
    given: (wfmm_plan_options, wfmm_flow_options),
    plan_options: PlanOptions,
    options: FlowOptions,
    state: State,
    sums: Sums,
    history: Option<History>,
    largest_displacement: f64,
    /// Of the present state, where somebody asked for them: at moving points, at bound points.
    velocities: Option<[Vec<f64>; 2]>,
}

impl Flow {
    /// A flow without elements; of many ranks all make it together.
    pub fn new(session: Arc<Session>, sums: wfmm_plan_options, motion: wfmm_flow_options) -> Result<Self> {
        let (plan_options, options) = session.together("wfmm_flow_create", || {
            let plan_options = PlanOptions::checked(&sums)?;
            let options = FlowOptions::checked(&motion, &plan_options)?;
            Ok((plan_options, options))
        })?;
        session.same(&options.fields())?;
        let given = (sums, motion);
        let sums = Sums::create(session.clone(), &plan_options)?;
        let (state, history, velocities) = (State::default(), None, None);
        let largest_displacement = 0.0;
        Ok(Self { session, given, plan_options, options, state, sums, history, largest_displacement, velocities })
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub fn plan_options(&self) -> &PlanOptions {
        &self.plan_options
    }

    /// After work that unwound: the state is as it was, trees and fields may not be.
    pub fn renew_sums(&mut self) {
        let mut sums = Sums::new(self.session.clone(), &self.plan_options);
        sums.free_stream = self.sums.free_stream;
        sums.callback = self.sums.callback.take();
        self.sums = sums;
        self.velocities = None;
    }

    pub fn set_free_stream(&mut self, velocity: [f64; 3]) -> Result<()> {
        self.session.together("wfmm_flow_set_free_stream", || {
            let mut all = velocity.into_iter().enumerate();
            all.try_for_each(|(k, v)| crate::options::finite(&format!("velocity[{k}]"), v).map(|_| ()))
        })?;
        let [x, y, z] = velocity;
        self.session.same(&[("velocity[0]", x), ("velocity[1]", y), ("velocity[2]", z)])?;
        self.sums.free_stream = velocity;
        self.velocities = None;
        Ok(())
    }

    pub fn set_callback(&mut self, callback: Option<Callback>) {
        self.sums.callback = callback;
        self.velocities = None;
    }

    /// `steps` steps of dt. Those before one that fails are done; that one is not.
    pub fn advance(&mut self, dt: f64, steps: i64) -> Result<()> {
        self.session.together("wfmm_flow_advance", || {
            if crate::options::finite("dt", dt)? <= 0.0 {
                return Error::fail(WFMM_ERR_VALUE, format!("dt = {dt}; accepted: a positive number"));
            }
            if steps < 0 {
                return Error::fail(WFMM_ERR_COUNT, format!("steps = {steps}; accepted: 0 and more"));
            }
            Ok(())
        })?;
        self.session.same(&[("dt", dt), ("steps", steps as f64)])?;
        (0..steps).try_for_each(|_| self.step(dt))
    }

    pub fn time(&self) -> (f64, i64) {
        (self.state.time, self.state.step)
    }

    /// Elements and points of a kind.
    pub fn counts(&self, kind: ElementKind) -> (usize, usize) {
        self.state.counts(kind)
    }

    /// Of the last evaluation; the state's arrays are counted.
    pub fn report(&self) -> Report {
        let mut report = self.sums.plan.report();
        report.host_bytes += self.state.bytes();
        report
    }
}
