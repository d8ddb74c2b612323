//! The velocity of the fluid: what the vortex elements of a stage induce, the free stream, and what the host adds.
//!
//! Enters: vortex elements at one instant, points. Leaves: velocities U there and the gradient of the induced part. One plan does
//! the sums, on whatever the session has; all points are targets of one evaluation.

use super::filaments;
use super::state::State;
use super::vector::{Part, Vector};
use crate::backend::Field;
use crate::error::{Error, Result, WFMM_ERR_CALLBACK, WFMM_ERR_COUNT, WFMM_ERR_NOT_FINITE};
use crate::memory;
use crate::options::PlanOptions;
use crate::plan::Plan;
use crate::plan::arrays::{Array, ArrayMut};
use crate::plan::sources::{Particles, Segments};
use crate::session::Session;
use std::sync::Arc;

/// Points `[n][3]` and the velocities there, to which the host's own is added.
#[derive(Debug)]
pub enum At<'a> {
    Host {
        position: &'a [f64],
        velocity: &'a mut [f64],
    },
    /// Addresses in device memory; what reads and writes them is queued on `stream`.
    Device {
        n: usize,
        position: u64,
        velocity: u64,
        stream: u64,
    },
}

/// The host's own velocity: adds it and returns 0, or stops the step with another number.
pub type Callback = Box<dyn FnMut(f64, At<'_>) -> i32 + Send>;

pub struct Sums {
    pub plan: Plan,
    pub free_stream: [f64; 3],
    pub callback: Option<Callback>,
}

impl Sums {
    /// `options` are the caller's; the flow's own arrays count points from 0 and are overwritten.
    pub fn new(session: Arc<Session>, options: &PlanOptions) -> Self {
        Self { plan: Plan::new(session, Self::own(options)), free_stream: [0.0; 3], callback: None }
    }

    /// The same, of many ranks together.
    pub fn create(session: Arc<Session>, options: &PlanOptions) -> Result<Self> {
        Ok(Self { plan: Plan::create(session, Self::own(options))?, free_stream: [0.0; 3], callback: None })
    }

    fn own(options: &PlanOptions) -> PlanOptions {
        PlanOptions { index_base: 0, accumulate: false, ..options.clone() }
    }

    /// Hands the vortex elements of a stage to the plan: those that do not move from the state, the others from `y`, which began
    /// its step as `start`.
    pub fn set_sources(&mut self, state: &State, start: &Vector, y: &Vector) -> Result<()> {
        self.set_particles(y)?;
        let (moving, bound) = (&state.filaments, &state.bound);
        let n = moving.id.len() + bound.id.len();
        if n == 0 {
            return self.plan.set_segments::<f64>(None);
        }
        let moved = y.part(Part::PointPosition);
        let (base, n_points) = (moved.len() / 3, points(state)?);
        let points = joined(&[moved, &state.bound_points]);
        let ends = joined_ends(state, base);
        let circulation = joined(&[&moving.circulation, &bound.circulation]);
        let core = joined(&[&filaments::cores(moving, start, y), &bound.core]);
        self.plan.set_segments(Some(Segments {
            n_points,
            points: Array::Host(&points),
            n,
            ld: 2,
            connectivity: Array::Host(&ends),
            circulation: Array::Host(&circulation),
            core: Some(Array::Host(&core)),
        }))
    }

    fn set_particles(&mut self, y: &Vector) -> Result<()> {
        let squares = y.part(Part::ParticleCore2);
        if squares.is_empty() {
            return self.plan.set_particles::<f64>(None);
        }
        let core = memory::collect(squares.iter().map(|c| c.max(0.0).sqrt()));
        self.plan.set_particles(Some(Particles {
            n: squares.len(),
            position: Array::Host(y.part(Part::ParticlePosition)),
            strength: Array::Host(y.part(Part::ParticleStrength)),
            core: Some(Array::Host(&core)),
        }))
    }

    /// U at points `[n][3]`, and the gradient of its induced part where that is wanted (else empty).
    pub fn velocity(&mut self, time: f64, x: &[f64], gradient: bool) -> Result<(Vec<f64>, Vec<f64>)> {
        let (n, session) = (x.len() / 3, self.plan.session().clone());
        let mut u = memory::filled(0.0, 3 * n);
        let mut g = memory::filled(0.0, if gradient { 9 * n } else { 0 });
        let counts = self.plan.counts();
        // Where one rank has points, and one sources, all take part.
        let have = [n > 0, counts.segments + counts.particles > 0].map(|yes| f64::from(u8::from(yes)));
        if session.largest(&have)?.iter().all(|&yes| yes > 0.0) {
            self.plan.set_targets((n > 0).then_some((n, Array::Host(x))))?;
            let slopes = (gradient && n > 0).then_some(ArrayMut::Host(&mut g[..]));
            self.plan.evaluate(Field::Velocity { gradient }, ArrayMut::Host(&mut u), slopes)?;
        }
        if n > 0 {
            self.add_others(time, x, &mut u)?;
        }
        Ok((u, g))
    }

    fn add_others(&mut self, time: f64, x: &[f64], u: &mut [f64]) -> Result<()> {
        if self.free_stream != [0.0; 3] {
            u.chunks_exact_mut(3).for_each(|u| u.iter_mut().zip(self.free_stream).for_each(|(u, f)| *u += f));
        }
        if self.call(time, At::Host { position: x, velocity: u })?
            && let Some(at) = u.iter().position(|v| !v.is_finite())
        {
            let message = format!("velocity[{}][{}] = {} after the velocity callback", at / 3, at % 3, u[at]);
            return Error::fail(WFMM_ERR_NOT_FINITE, message);
        }
        Ok(())
    }

    /// Lets the host add its velocity; whether it has a function for that.
    pub fn call(&mut self, time: f64, at: At<'_>) -> Result<bool> {
        let Some(callback) = &mut self.callback else { return Ok(false) };
        match callback(time, at) {
            0 => Ok(true),
            answer => {
                // A status of the caller's or of a resource is passed on; others would say that the flow is unusable.
                let status = if (1..200).contains(&answer) { answer } else { WFMM_ERR_CALLBACK };
                Error::fail(status, format!("the velocity callback returned {answer} at time {time}"))
            }
        }
    }
}

/// Points of filaments and bound segments.
pub fn points(state: &State) -> Result<usize> {
    let n = state.filaments.point_id.len() + state.bound.point_id.len();
    if n > i32::MAX as usize {
        let message = format!("{n} points of filaments and bound segments; accepted: up to {}", i32::MAX);
        return Error::fail(WFMM_ERR_COUNT, message);
    }
    Ok(n)
}

/// Ends of filaments and bound segments, whose points come after `base` of the filaments'.
pub fn joined_ends(state: &State, base: usize) -> Vec<i32> {
    let (moving, bound) = (&state.filaments, &state.bound);
    let mut ends: Vec<i32> = memory::with_room(2 * (moving.id.len() + bound.id.len()));
    ends.extend(moving.ends.iter().flatten());
    ends.extend(bound.ends.iter().flatten().map(|e| e + base as i32));
    ends
}

/// Arrays one after the other.
pub fn joined(arrays: &[&[f64]]) -> Vec<f64> {
    let mut all = memory::with_room(arrays.iter().map(|a| a.len()).sum());
    arrays.iter().for_each(|a| all.extend_from_slice(a));
    all
}
