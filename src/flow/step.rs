//! One step in time in host memory: the rates of everything that moves, an integrator over them, dust, and the new state.
//!
//! Enters: a state and dt. Leaves: the state one step later, or as it was. All moving points are targets of one evaluation a
//! stage. Nothing of the state is written before all that can fail is over, on all ranks where there are several.

use rayon::prelude::*;

use super::dust::{Medium, Parcel};
use super::filaments;
use super::integrate::{self, History, System};
use super::narrow;
use super::options::{ElementKind, FlowOptions, Spreading, Stretching};
use super::reinterpolate::Narrowed;
use super::state::{Dust, State, room, row};
use super::storage::{Held, Storage, Tools};
use super::sums::{Sums, joined};
use super::vector::{Part, Vector};
use crate::error::{Error, Result, WFMM_ERR_NOT_FINITE, number};
use crate::math::biot_savart::{Vec3, norm, sub};
use crate::memory;
use crate::session::Session;

/// Steps in host memory.
pub struct InHost;

impl Storage for InHost {
    fn step(&mut self, held: Held<'_>, tools: &mut Tools<'_>, dt: f64) -> Result<f64> {
        let Held { state, history } = held;
        let session = tools.session;
        let new = session.collective("wfmm_flow_advance", || outcome(state, history.as_ref(), tools, dt))?;
        let way = largest_displacement(state, &new.y, &new.dust);
        commit(state, history, new);
        Ok(way)
    }

    fn velocity(
        &mut self,
        held: Held<'_>,
        tools: &mut Tools<'_>,
        x: &[f64],
        gradient: bool,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let start = beginning(held.state);
        tools.sums.set_sources(held.state, &start, &start)?;
        tools.sums.velocity(held.state.time, x, gradient)
    }

    fn largest_core2(&mut self, held: Held<'_>) -> Result<f64> {
        Ok(narrow::largest(held.state.moving.part(Part::ParticleCore2)))
    }

    fn narrow(&mut self, held: Held<'_>, tools: &Tools<'_>, limit2: f64) -> Result<Option<Narrowed>> {
        narrow::narrow(held, tools, limit2)
    }
}

/// All that can fail of a step; the state is as it was, with room for what comes.
fn outcome(state: &mut State, history: Option<&History>, tools: &mut Tools<'_>, dt: f64) -> Result<Outcome> {
    let start = beginning(state);
    let (options, medium, session) = (tools.options, tools.medium, tools.session);
    let stretched = options.stretching != Stretching::None && session.any(!state.particle_id.is_empty())?;
    let mut stage = Stage { state, sums: tools.sums, options, medium, session, start: &start, dt, stretched };
    let free_stream = stage.sums.free_stream;
    let last = history.map(|h| h.last(&h.rate, free_stream));
    let (y, rate) = integrate::step(options.integrator, &mut stage, &start, dt, last)?;
    let dust = dust_at(session, medium, &state.dust, y.part(Part::DustDrift), dt);
    let dust = memory::collect(dust.into_iter().map(|p| medium.land(p, dt)));
    let core = filaments::cores(&state.filaments, &start, &y);
    let finite = y.is_finite() && core.iter().all(|c| c.is_finite());
    if !finite || !dust.iter().all(|p| norm(p.position).is_finite() && norm(p.velocity).is_finite()) {
        return out_of_range(dt);
    }
    let split = filaments::split(&state.filaments, &core, y.part(Part::PointPosition), options.split_length)?;
    let history = rate.map(|rate| History { rate, dt, free_stream });
    let mut outcome = Outcome { y, dust, core, split, history, dt, skipped: [[0; 2]; 2] };
    if options.split_length > 0.0 {
        outcome.number(session)?;
    }
    outcome.make_room(state)?;
    Ok(outcome)
}

/// A step of dt that ends in numbers that are none.
pub fn out_of_range<R>(dt: f64) -> Result<R> {
    Error::fail(WFMM_ERR_NOT_FINITE, format!("a step of dt = {} leaves the range of numbers", number(dt)))
}

/// Everything succeeded: the new state takes the old one's place. Room was made, nothing fails.
fn commit(state: &mut State, history: &mut Option<History>, new: Outcome) {
    let mut moving = new.y;
    moving.part_mut(Part::SegmentVolume).clear();
    moving.part_mut(Part::DustDrift).clear();
    state.moving = moving;
    state.filaments.core = new.core;
    for (k, p) in new.dust.iter().enumerate() {
        state.dust.position[3 * k..3 * k + 3].copy_from_slice(&p.position);
        state.dust.velocity[3 * k..3 * k + 3].copy_from_slice(&p.velocity);
    }
    *history = new.history;
    let [before, after] = new.skipped;
    state.skip_identities(ElementKind::Filaments, before[0], before[1]);
    if let Some(split) = new.split {
        cut(state, history, split);
    }
    state.skip_identities(ElementKind::Filaments, after[0], after[1]);
    state.time += new.dt;
    state.step += 1;
    fit_history(state, history);
}

/// Room for what a split adds, but to points and cores.
pub fn make_room(state: &mut State, history: &mut Option<History>, split: &filaments::Split) -> Result<()> {
    let (n, lines) = (split.more.ends.len(), &mut state.filaments);
    room(&mut lines.ends, n)?;
    room(&mut lines.circulation, n)?;
    room(&mut lines.id, n)?;
    room(&mut lines.point_id, split.points.len() / 3)?;
    if let Some(history) = history {
        room(history.rate.part_mut(Part::PointPosition), split.points.len())?;
        room(history.rate.part_mut(Part::SegmentVolume), n)?;
    }
    Ok(())
}

/// Cuts segments. Room was made.
pub fn cut(state: &mut State, history: &mut Option<History>, split: filaments::Split) {
    if let Some(history) = history {
        // A piece begins anew: the whole segment's rate is not its own.
        let rates = history.rate.part_mut(Part::SegmentVolume);
        split.first.iter().for_each(|(k, _)| rates[*k] = f64::NAN);
    }
    state.split(&split.points, &split.first, split.more);
}

/// Makes the history as long as the state; what is new in it has none.
pub fn fit_history(state: &State, history: &mut Option<History>) {
    let Some(History { rate, .. }) = history else { return };
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
        *history = None;
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
        room(self.y.part_mut(Part::PointPosition), split.points.len())?;
        room(&mut self.core, split.more.ends.len())?;
        make_room(state, &mut self.history, split)
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

impl System for Stage<'_> {
    type Vector = Vector;

    fn rate(&mut self, y: &Vector, fraction: f64) -> Result<Vector> {
        let state = self.state;
        self.sums.set_sources(state, self.start, y)?;
        let dust = dust_at(self.session, self.medium, &state.dust, y.part(Part::DustDrift), fraction * self.dt);
        let positions = memory::collect(dust.iter().map(|p| p.position));
        let x = joined(&[
            y.part(Part::ParticlePosition),
            y.part(Part::PointPosition),
            y.part(Part::TracerPosition),
            positions.as_flattened(),
        ]);
        let (u, g) = self.sums.velocity(state.time + fraction * self.dt, &x, self.stretched)?;
        Ok(self.rates(y, &u, &g))
    }

    fn copy(&mut self, y: &Vector) -> Result<Vector> {
        Ok(y.copy())
    }

    fn plus(&mut self, y: &Vector, b: f64, x: &Vector) -> Result<Vector> {
        Ok(y.plus(self.session.pool(), b, x))
    }

    fn plus_both(&mut self, y: &Vector, [a, b]: [f64; 2], [f, g]: [&Vector; 2]) -> Result<Vector> {
        let mut sum = y.plus(self.session.pool(), a, f);
        sum.combine(self.session.pool(), 1.0, b, g);
        Ok(sum)
    }

    fn combine(&mut self, y: &mut Vector, a: f64, b: f64, x: &Vector) -> Result<()> {
        y.combine(self.session.pool(), a, b, x);
        Ok(())
    }

    fn shift(&mut self, y: &mut Vector, way: Vec3) -> Result<()> {
        for part in [Part::ParticlePosition, Part::PointPosition, Part::TracerPosition, Part::DustDrift] {
            y.part_mut(part).chunks_exact_mut(3).for_each(|x| x.iter_mut().zip(way).for_each(|(x, way)| *x += way));
        }
        Ok(())
    }

    fn has_nan(&mut self, y: &Vector) -> Result<bool> {
        Ok(y.has_nan())
    }

    fn fill_gaps(&mut self, y: &mut Vector, x: &Vector) -> Result<()> {
        y.zip(self.session.pool(), x, |y, x| {
            if y.is_nan() {
                *y = x;
            }
        });
        Ok(())
    }

    fn anywhere(&mut self, mine: bool) -> Result<bool> {
        self.session.any(mine)
    }
}

impl Stage<'_> {
    fn rates(&self, y: &Vector, u: &[f64], g: &[f64]) -> Vector {
        let mut f = Vector::default();
        let (particles, rest) = u.split_at(y.part(Part::ParticlePosition).len());
        let (points, rest) = rest.split_at(y.part(Part::PointPosition).len());
        let (tracers, dust) = rest.split_at(y.part(Part::TracerPosition).len());
        *f.part_mut(Part::ParticlePosition) = memory::copy(particles);
        *f.part_mut(Part::ParticleStrength) = stretching(self.options.stretching, y.part(Part::ParticleStrength), g);
        *f.part_mut(Part::ParticleCore2) = memory::filled(spreading(self.options), y.part(Part::ParticleCore2).len());
        *f.part_mut(Part::PointPosition) = memory::copy(points);
        *f.part_mut(Part::SegmentVolume) =
            filaments::growth(&self.state.filaments, self.options, y.part(Part::PointPosition));
        *f.part_mut(Part::TracerPosition) = memory::copy(tracers);
        *f.part_mut(Part::DustDrift) = memory::copy(dust);
        f
    }
}

impl Stretching {
    /// Shares of J a and of its transpose's in the rate of a strength; nothing where it has none.
    pub fn shares(self) -> Option<[f64; 2]> {
        match self {
            Self::None => None,
            Self::Classical => Some([1.0, 0.0]),
            Self::Transpose => Some([0.0, 1.0]),
            Self::Mixed => Some([0.5, 0.5]),
        }
    }
}

/// d(c²)/dt of particles.
pub fn spreading(options: &FlowOptions) -> f64 {
    if options.spreading == Spreading::Cores { 2.0 * options.viscosity } else { 0.0 }
}

/// da/dt of particles; `g` begins with their gradients, `g[i][j]` = du_i/dx_j.
fn stretching(kind: Stretching, strength: &[f64], g: &[f64]) -> Vec<f64> {
    let mut rate = memory::filled(0.0, strength.len());
    let Some([classical, transpose]) = kind.shares() else { return rate };
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
fn largest_displacement(state: &State, y: &Vector, dust: &[Parcel]) -> f64 {
    let mut largest = 0.0f64;
    for part in [Part::ParticlePosition, Part::PointPosition, Part::TracerPosition] {
        let (before, after) = (state.moving.part(part), y.part(part));
        (0..before.len() / 3).for_each(|k| largest = largest.max(norm(sub(row(after, k), row(before, k)))));
    }
    let dust = dust.iter().enumerate();
    dust.fold(largest, |m, (k, p)| m.max(norm(sub(p.position, row(&state.dust.position, k)))))
}
