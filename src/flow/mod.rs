//! A flow: elements that move with the fluid, stretch, diffuse and carry dust, step by step.
//!
//! ```text
//!   edit      set, add, remove                query       get, velocity at points
//!   diagnostics  invariants and norms         checkpoint, npy, file   files   picture  what a camera sees
//!      │
//!   storage   where the arrays are: who reads them gets them up to date, who steps works where the session computes
//!      ├ step                in host memory: rates of all that moves, dust, the new state
//!      └ device, device_step in device memory, the same
//!      │
//!   integrate Euler, AB2, RK3, RK4 over either            sums   U at points: one plan, free stream, the host's callback
//!   reinterpolate  narrower cores before a step      gaussians   the vorticity that particles carry
//!      ├ narrow               in host memory            neighbours  particles of many ranks that reach each other
//!      └ device_narrow        in device memory, the same
//!   state     every array of every element    vector      what is integrated     dust, filaments  their physics
//! ```
//!
//! The state is in double precision; the sums go through a plan, which runs them on what the session has. On a distributed session
//! each rank keeps the elements that its host has added, in host memory; what other ranks have acts through the plan.
//! Equations: docs/flow.md.

mod checkpoint;
mod device;
mod device_narrow;
mod device_step;
pub mod diagnostics;
mod dust;
pub mod edit;
mod filaments;
mod file;
mod gaussians;
mod integrate;
mod narrow;
mod neighbours;
mod npy;
pub mod options;
pub mod picture;
mod query;
mod reinterpolate;
pub mod state;
mod step;
mod storage;
mod sums;
mod vector;

use std::sync::Arc;

use log::warn;

use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_VALUE, number};
use crate::options::{PlanOptions, wfmm_plan_options};
use crate::report::Report;
use crate::session::Session;

use dust::Medium;
use options::{ElementKind, FlowOptions, Spreading, wfmm_flow_options};
use reinterpolate::{Before, Spread};
use storage::{Store, Tools};
use sums::Sums;
use vector::Part;

pub use sums::{At, Callback};

pub struct Flow {
    session: Arc<Session>,
    /// Options as they were given, for checkpoints.
    given: (wfmm_plan_options, wfmm_flow_options),
    plan_options: PlanOptions,
    options: FlowOptions,
    store: Store,
    sums: Sums,
    largest_displacement: f64,
    /// Of the present state, where somebody asked for them: at moving points, at bound points.
    velocities: Option<[Vec<f64>; 2]>,
    spread: Spread,
    /// What a step that narrowed cores puts back unless it succeeds.
    before: Option<Before>,
    /// The step at which it was loaded.
    loaded_at: Option<i64>,
    warned: Warned,
}

/// What was told, and is not told again.
#[derive(Debug, Default)]
struct Warned {
    /// Viscosity does not act on its particles.
    viscosity: bool,
    /// Vortices are on both sides of the ground plane.
    sides: bool,
    /// Filaments go on in the next image.
    seam: bool,
}

impl Flow {
    /// The options that it was made with.
    pub fn given(&self) -> (wfmm_plan_options, wfmm_flow_options) {
        self.given
    }

    /// A flow without elements; of many ranks all make it together.
    pub fn new(session: Arc<Session>, sums: wfmm_plan_options, motion: wfmm_flow_options) -> Result<Self> {
        let (plan_options, options) = session.together("wfmm_flow_create", || {
            let plan_options = PlanOptions::checked(&sums)?;
            let options = FlowOptions::checked(&motion, &plan_options)?;
            Ok((plan_options, options))
        })?;
        session.same(&options.fields())?;
        options.without_effect(&plan_options).iter().for_each(|idle| warn!("{idle}"));
        let given = (sums, motion);
        let sums = Sums::create(session.clone(), &plan_options)?;
        let (store, largest_displacement, velocities) = (Store::new(&session), 0.0, None);
        Ok(Self {
            session,
            given,
            plan_options,
            options,
            store,
            sums,
            largest_displacement,
            velocities,
            spread: Spread::default(),
            before: None,
            loaded_at: None,
            warned: Warned::default(),
        })
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub fn plan_options(&self) -> &PlanOptions {
        &self.plan_options
    }

    /// After work that unwound or ran out of memory: what it changed of the state is put back; trees and fields may be anything.
    pub fn recover(&mut self) -> Result<()> {
        let mut sums = Sums::new(self.session.clone(), &self.plan_options);
        sums.free_stream = self.sums.free_stream;
        sums.callback = self.sums.callback.take();
        self.sums = sums;
        self.velocities = None;
        self.take_back()
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

    /// Rates under another callback are no history. That of a flow which was loaded is the one that it had.
    pub fn set_callback(&mut self, callback: Option<Callback>) {
        let both_none = callback.is_none() && self.sums.callback.is_none();
        if !both_none && self.loaded_at != Some(self.time().1) {
            self.store.begin_anew();
        }
        self.sums.callback = callback;
        self.velocities = None;
    }

    /// `steps` steps of dt. Those before one that fails are done; that one is not.
    pub fn advance(&mut self, dt: f64, steps: i64) -> Result<()> {
        self.session.together("wfmm_flow_advance", || {
            if crate::options::finite("dt", dt)? <= 0.0 {
                return Error::fail(WFMM_ERR_VALUE, format!("dt = {}; accepted: a positive number", number(dt)));
            }
            if steps < 0 {
                return Error::fail(WFMM_ERR_COUNT, format!("steps = {steps}; accepted: 0 and more"));
            }
            Ok(())
        })?;
        self.session.same(&[("dt", dt), ("steps", steps as f64)])?;
        self.warn_of_viscosity();
        (0..steps).try_for_each(|_| self.step(dt))
    }

    /// Warns once where viscosity was asked for and does not act on the particles that are there.
    fn warn_of_viscosity(&mut self) {
        let FlowOptions { viscosity, spreading, .. } = self.options;
        let idle = viscosity > 0.0 && spreading == Spreading::None && self.counts(ElementKind::Particles).0 > 0;
        if idle && !self.warned.viscosity {
            warn!(
                "viscosity = {}, but spreading = WFMM_SPREADING_NONE: it does not act on particles. Give WFMM_SPREADING_CORES, or a \
                 viscosity of 0 where that is meant",
                number(viscosity)
            );
        }
        self.warned.viscosity |= idle;
    }

    /// Warns once where vortices are on both sides of the ground plane: one that has gone through it and its image have changed places,
    /// so that its sense of rotation is reversed on the side of the others. What is closer to it than a millionth of the largest distance
    /// lies in it.
    fn warn_of_sides(&mut self) {
        let Some(plane) = self.plan_options.plane.filter(|_| !self.warned.sides) else { return };
        let state = self.store.known();
        let (mut above, mut below) = (0.0f64, 0.0f64);
        let mut see = |x: &[f64], k: usize| {
            let height = x[3 * k + plane.axis] - plane.position;
            (above, below) = (above.max(height), below.max(-height));
        };
        if self.store.is_read(ElementKind::Particles) {
            let (x, a) = (state.moving.part(Part::ParticlePosition), state.moving.part(Part::ParticleStrength));
            (0..x.len() / 3).filter(|&k| a[3 * k..3 * k + 3] != [0.0; 3]).for_each(|k| see(x, k));
        }
        if self.store.is_read(ElementKind::Filaments) {
            let (x, lines) = (state.moving.part(Part::PointPosition), &state.filaments);
            let turning = lines.ends.iter().zip(&lines.circulation).filter(|(_, circulation)| **circulation != 0.0);
            turning.flat_map(|(ends, _)| ends).for_each(|end| see(x, *end as usize));
        }
        if above.min(below) > 1e-6 * above.max(below) {
            warn!(
                "vortices are on both sides of the ground plane, up to {} above it and {} below it. One that has gone through acts with the \
                 opposite sense of rotation on the other side: take smaller steps, or remove it",
                number(above),
                number(below)
            );
            self.warned.sides = true;
        }
    }

    /// Warns once where a line of filaments goes on in the next image: its two ends there are points that move by themselves.
    fn warn_of_seam(&mut self, points: &[f64]) {
        let Some(period) = self.plan_options.period.filter(|_| !self.warned.seam) else { return };
        if filaments::has_seam(points, period) {
            warn!(
                "points of filaments are whole periods apart: where a line goes on in the next image its two ends there part in long steps. \
                 Let dt |circulation| stay below 2 pi core_radius^2 (docs/periodic.md)"
            );
            self.warned.seam = true;
        }
    }

    fn step(&mut self, dt: f64) -> Result<()> {
        self.reinterpolate(dt)?;
        let (store, mut tools) = self.tools();
        let way = store.step(&mut tools, dt);
        if way.is_err() {
            self.take_back()?;
        }
        self.largest_displacement = way?;
        (self.velocities, self.before) = (None, None);
        self.warn_of_sides();
        Ok(())
    }

    /// The arrays, and what steps need beside them.
    fn tools(&mut self) -> (&mut Store, Tools<'_>) {
        let medium = Medium::new(&self.options, self.plan_options.plane);
        let plane = self.plan_options.plane;
        let tools = Tools { sums: &mut self.sums, options: &self.options, medium, plane, session: &self.session };
        (&mut self.store, tools)
    }

    pub fn time(&self) -> (f64, i64) {
        (self.store.known().time, self.store.known().step)
    }

    /// Elements and points of a kind.
    pub fn counts(&self, kind: ElementKind) -> (usize, usize) {
        self.store.known().counts(kind)
    }

    /// Of the last evaluation; the state's arrays are counted.
    pub fn report(&self) -> Report {
        let mut report = self.sums.plan.report();
        report.host_bytes += self.store.known().bytes();
        report.device_bytes += self.store.device_bytes();
        report
    }
}
