//! One step in time: the rates of everything that moves, an integrator over them, dust, and the new state at the end.
//!
//! Enters: a flow and dt. Leaves: the flow one step later, or as it was. All moving points are targets of one evaluation a
//! stage. Nothing of the state is written before all that can fail is over, on all ranks where there are several.

use rayon::prelude::*;

use super::Flow;
use super::dust::{Medium, Parcel};
use super::filaments;
use super::integrate::{self, History};
use super::options::{ElementKind, FlowOptions, Spreading, Stretching};
use super::state::{Dust, State, room, row};
use super::sums::{Sums, joined};
use super::vector::{Part, Vector};
use crate::error::{Error, Result, WFMM_ERR_NOT_FINITE};
use crate::math::biot_savart::{norm, sub};
use crate::memory;
use crate::session::Session;

impl Flow {
    pub(super) fn step(&mut self, dt: f64) -> Result<()> {
        let session = self.session.clone();
        let outcome = session.collective("wfmm_flow_advance", || self.outcome(dt))?;
        self.commit(outcome);
        Ok(())
    }

    /// All that can fail; the state is as it was, with room for what comes.
    fn outcome(&mut self, dt: f64) -> Result<Outcome> {
        let start = beginning(&self.state);
        let medium = Medium::new(&self.options, self.plan_options.plane);
        let session = self.session.clone();
        let (state, sums, options) = (&self.state, &mut self.sums, &self.options);
        let stretched = options.stretching != Stretching::None && session.any(!state.particle_id.is_empty())?;
        let mut stage = Stage { state, sums, options, medium, session: &session, start: &start, dt, stretched };
        let mut rate = |y: &Vector, fraction: f64| stage.rate(y, fraction);
        let (history, anywhere) = (self.history.as_ref(), |mine| session.any(mine));
        let (method, pool) = (options.integrator, session.pool());
        let (y, history) = integrate::step(method, pool, start.copy(), dt, history, &mut rate, &anywhere)?;
        let dust = dust_at(&session, medium, &state.dust, y.part(Part::DustDrift), dt);
        let dust = memory::collect(dust.into_iter().map(|p| medium.land(p, dt)));
        let core = filaments::cores(&state.filaments, &start, &y);
        let finite = y.is_finite() && core.iter().all(|c| c.is_finite());
        if !finite || !dust.iter().all(|p| norm(p.position).is_finite() && norm(p.velocity).is_finite()) {
            return Error::fail(WFMM_ERR_NOT_FINITE, format!("a step of dt = {dt} leaves the range of numbers"));
        }
        let split = filaments::split(&state.filaments, &core, y.part(Part::PointPosition), options.split_length);
        let mut outcome = Outcome { y, dust, core, split, history, dt, skipped: [[0; 2]; 2] };
        if options.split_length > 0.0 {
            outcome.number(&session)?;
        }
        outcome.make_room(&mut self.state)?;
        Ok(outcome)
    }

    /// Everything succeeded: the new state takes the old one's place.
    fn commit(&mut self, new: Outcome) {
        let displacement = largest_displacement(&self.state, &new);
        let state = &mut self.state;
        let mut moving = new.y;
        moving.part_mut(Part::SegmentVolume).clear();
        moving.part_mut(Part::DustDrift).clear();
        state.moving = moving;
        state.filaments.core = new.core;
        for (k, p) in new.dust.iter().enumerate() {
            state.dust.position[3 * k..3 * k + 3].copy_from_slice(&p.position);
            state.dust.velocity[3 * k..3 * k + 3].copy_from_slice(&p.velocity);
        }
        self.history = new.history;
        let [before, after] = new.skipped;
        state.skip_identities(ElementKind::Filaments, before[0], before[1]);
        if let Some(split) = new.split {
            if let Some(history) = &mut self.history {
                // A piece begins anew: the whole segment's rate is not its own.
                let rates = history.rate.part_mut(Part::SegmentVolume);
                split.first.iter().for_each(|(k, _)| rates[*k] = f64::NAN);
            }
            state.split(&split.points, &split.first, split.more);
        }
        state.skip_identities(ElementKind::Filaments, after[0], after[1]);
        state.time += new.dt;
        state.step += 1;
        self.fit_history();
        self.largest_displacement = displacement;
        self.velocities = None;
    }

    /// Makes the history as long as the state; what is new in it has none.
    pub(super) fn fit_history(&mut self) {
        let Some(History { rate, .. }) = &mut self.history else { return };
        let state = &self.state;
        let lengths = [
            (Part::ParticlePosition, 3 * state.particle_id.len()),
            (Part::ParticleStrength, 3 * state.particle_id.len()),
            (Part::ParticleCore2, state.particle_id.len()),
            (Part::PointPosition, 3 * state.filaments.point_id.len()),
            (Part::SegmentVolume, state.filaments.id.len()),
            (Part::TracerPosition, 3 * state.tracer_id.len()),
            (Part::DustDrift, 3 * state.dust.id.len()),
        ];
        let fits = lengths.into_iter().all(|(part, len)| {
            let values = rate.part_mut(part);
            let room = values.try_reserve(len.saturating_sub(values.len())).is_ok();
            if room {
                values.resize(len, f64::NAN);
            }
            room
        });
        if !fits {
            // Room was made before; without it the next step begins anew, which costs an evaluation.
            self.history = None;
        }
    }
}

/// What a step leaves.
struct Outcome {
    y: Vector,
    dust: Vec<Parcel>,
    /// Of filament segments.
    core: Vec<f64>,
    split: Option<filaments::Split>,
    history: Option<History>,
    dt: f64,
    /// Identities of pieces and of their points that ranks before this one take, and ranks after it.
    skipped: [[usize; 2]; 2],
}

impl Outcome {
    /// Pieces of all ranks get identities in the order of the ranks.
    fn number(&mut self, session: &Session) -> Result<()> {
        let mine = self.split.as_ref().map_or([0; 2], |s| [s.more.ends.len(), s.points.len() / 3]);
        for (k, n) in mine.into_iter().enumerate() {
            let (first, all) = session.numbered(n)?;
            (self.skipped[0][k], self.skipped[1][k]) = (first, all - first - n);
        }
        Ok(())
    }

    /// Room for the pieces: in the arrays that stay, and in those that replace others.
    fn make_room(&mut self, state: &mut State) -> Result<()> {
        let Some(split) = &self.split else { return Ok(()) };
        let (n, points, lines) = (split.more.ends.len(), split.points.len(), &mut state.filaments);
        room(self.y.part_mut(Part::PointPosition), points)?;
        room(&mut self.core, n)?;
        room(&mut lines.ends, n)?;
        room(&mut lines.circulation, n)?;
        room(&mut lines.id, n)?;
        room(&mut lines.point_id, points / 3)?;
        if let Some(history) = &mut self.history {
            room(history.rate.part_mut(Part::PointPosition), points)?;
            room(history.rate.part_mut(Part::SegmentVolume), n)?;
        }
        Ok(())
    }
}

/// The state as the vector that a step begins with.
pub fn beginning(state: &State) -> Vector {
    let mut y = state.moving.copy();
    *y.part_mut(Part::SegmentVolume) = filaments::volumes(&state.filaments, state.moving.part(Part::PointPosition));
    *y.part_mut(Part::DustDrift) = memory::filled(0.0, state.dust.position.len());
    y
}

/// What the rates of a step need beside the vector.
struct Stage<'a> {
    state: &'a State,
    sums: &'a mut Sums,
    options: &'a FlowOptions,
    medium: Medium,
    session: &'a Session,
    start: &'a Vector,
    dt: f64,
    /// The gradient is wanted: on all ranks, where one has particles.
    stretched: bool,
}

impl Stage<'_> {
    fn rate(&mut self, y: &Vector, fraction: f64) -> Result<Vector> {
        let state = self.state;
        self.sums.set_sources(state, self.start, y)?;
        let dust = dust_at(self.session, self.medium, &state.dust, y.part(Part::DustDrift), fraction * self.dt);
        let places = memory::collect(dust.iter().map(|p| p.position));
        let x = joined(&[
            y.part(Part::ParticlePosition),
            y.part(Part::PointPosition),
            y.part(Part::TracerPosition),
            places.as_flattened(),
        ]);
        let (u, g) = self.sums.velocity(state.time + fraction * self.dt, &x, self.stretched)?;
        Ok(self.rates(y, &u, &g))
    }

    fn rates(&self, y: &Vector, u: &[f64], g: &[f64]) -> Vector {
        let mut f = Vector::default();
        let (particles, rest) = u.split_at(y.part(Part::ParticlePosition).len());
        let (points, rest) = rest.split_at(y.part(Part::PointPosition).len());
        let (tracers, dust) = rest.split_at(y.part(Part::TracerPosition).len());
        *f.part_mut(Part::ParticlePosition) = memory::copy(particles);
        *f.part_mut(Part::ParticleStrength) = stretching(self.options.stretching, y.part(Part::ParticleStrength), g);
        let spreads = self.options.spreading == Spreading::Cores;
        let growth = if spreads { 2.0 * self.options.viscosity } else { 0.0 };
        *f.part_mut(Part::ParticleCore2) = memory::filled(growth, y.part(Part::ParticleCore2).len());
        *f.part_mut(Part::PointPosition) = memory::copy(points);
        *f.part_mut(Part::SegmentVolume) =
            filaments::growth(&self.state.filaments, self.options, y.part(Part::PointPosition));
        *f.part_mut(Part::TracerPosition) = memory::copy(tracers);
        *f.part_mut(Part::DustDrift) = memory::copy(dust);
        f
    }
}

/// da/dt of particles; `g` begins with their gradients, `g[i][j]` = du_i/dx_j.
fn stretching(kind: Stretching, strength: &[f64], g: &[f64]) -> Vec<f64> {
    let mut rate = memory::filled(0.0, strength.len());
    let (classical, transpose) = match kind {
        Stretching::None => return rate,
        Stretching::Classical => (1.0, 0.0),
        Stretching::Transpose => (0.0, 1.0),
        Stretching::Mixed => (0.5, 0.5),
    };
    for ((rate, a), g) in rate.chunks_exact_mut(3).zip(strength.chunks_exact(3)).zip(g.chunks_exact(9)) {
        for i in 0..3 {
            rate[i] = (0..3).map(|j| (classical * g[3 * i + j] + transpose * g[3 * j + i]) * a[j]).sum();
        }
    }
    rate
}

/// Dust after a time h of a step in which the fluid around each parcel moved by `drift`.
fn dust_at(session: &Session, medium: Medium, dust: &Dust, drift: &[f64], h: f64) -> Vec<Parcel> {
    let parcel = |k: usize| {
        let p = Parcel {
            position: row(&dust.position, k),
            velocity: row(&dust.velocity, k),
            diameter: dust.diameter[k],
            density: dust.density[k],
        };
        if h == 0.0 { p } else { medium.advance(&p, row(drift, k).map(|d| d / h), h) }
    };
    let n = dust.id.len();
    if n < 4096 {
        memory::collect((0..n).map(parcel))
    } else {
        session.pool().install(|| memory::par_collect((0..n).into_par_iter().map(parcel)))
    }
}

/// The longest way that a point went.
fn largest_displacement(state: &State, new: &Outcome) -> f64 {
    let mut largest = 0.0f64;
    for part in [Part::ParticlePosition, Part::PointPosition, Part::TracerPosition] {
        let (before, after) = (state.moving.part(part), new.y.part(part));
        (0..before.len() / 3).for_each(|k| largest = largest.max(norm(sub(row(after, k), row(before, k)))));
    }
    let dust = new.dust.iter().enumerate();
    dust.fold(largest, |m, (k, p)| m.max(norm(sub(p.position, row(&state.dust.position, k)))))
}
