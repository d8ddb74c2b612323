//! One step in time in device memory: what step.rs does, by kernels.
//!
//! Enters: the arrays of `Resident`. Leaves: them one step later, or as they were. During a step the bus carries launches and a few
//! words of what was found, and element data in two cases: segments that are split are cut in host memory, and under
//! WFMM_BACKEND_AUTO the velocity callback gets host arrays.

use std::sync::Arc;

use super::device::Resident;
use super::filaments::{self, LAMB};
use super::integrate::{self, History, System};
use super::options::{ElementKind, FlowOptions, Stretching};
use super::reinterpolate::Narrowed;
use super::state::{State, room};
use super::step::{cut, make_room, out_of_range, spreading};
use super::storage::{Held, Storage, Tools};
use super::sums::{At, Sums, points};
use super::vector::{Part, Vector};
use crate::backend::Field;
use crate::backend::cuda::array::{DeviceVector, Span, SpanMut};
use crate::backend::cuda::motion::Lines;
use crate::error::{Error, Result, WFMM_ERR_NOT_FINITE};
use crate::math::biot_savart::Vec3;
use crate::memory;
use crate::plan::arrays::{Array, ArrayMut};
use crate::plan::sources::{Particles, Segments};

/// A device array as a plan takes it.
fn borrowed<T, U>(span: Span<'_, T>) -> Array<'static, U> {
    Array::Device { address: span.address(), len: span.len() }
}

/// What a step leaves beside the vector.
struct Outcome {
    y: DeviceVector,
    rate: Option<DeviceVector>,
    way: f64,
    /// Points, core radii and pieces of filaments that are cut, in host memory.
    cut: Option<Cut>,
}

struct Cut {
    points: Vec<f64>,
    core: Vec<f64>,
    /// The rates of points and of c² l, where there is a history.
    rates: Option<[Vec<f64>; 2]>,
    split: filaments::Split,
}

impl Storage for Resident {
    fn step(&mut self, held: Held<'_>, tools: &mut Tools<'_>, dt: f64) -> Result<f64> {
        let Held { state, history } = held;
        self.bring(state, history.as_ref())?;
        let last = self.history.clone();
        let start = self.begin()?;
        let method = tools.options.integrator;
        let free_stream = tools.sums.free_stream;
        let mut stage = Stage { here: self, state, tools, start: start.clone(), dt };
        let last = last.as_deref().zip(history.as_ref()).map(|(rate, h)| h.last(rate, free_stream));
        let (y, rate) = integrate::step(method, &mut stage, &start, dt, last)?;
        let new = self.finish(state, tools, dt, (y, rate))?;
        Ok(self.commit(state, history, new, (dt, free_stream)))
    }

    fn velocity(
        &mut self,
        held: Held<'_>,
        tools: &mut Tools<'_>,
        x: &[f64],
        gradient: bool,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        self.exchange.targets.resize(x.len())?;
        self.motion.upload(self.exchange.targets.span_mut(), x)?;
        self.field_now(held, tools, gradient)?;
        let mut u = memory::filled(0.0, x.len());
        let mut g = memory::filled(0.0, if gradient { 3 * x.len() } else { 0 });
        self.motion.download(self.exchange.velocity.span(), &mut u)?;
        if gradient {
            self.motion.download(self.exchange.gradient.span(), &mut g)?;
        }
        Ok((u, g))
    }

    fn largest_core2(&mut self, held: Held<'_>) -> Result<f64> {
        self.largest_core(held)
    }

    fn narrow(&mut self, held: Held<'_>, tools: &Tools<'_>, limit2: f64) -> Result<Option<Narrowed>> {
        self.narrowed(held, tools, limit2)
    }
}

/// A caller's points in device memory, and his arrays there for the velocities at them and the gradients.
pub struct Places<'a> {
    pub target: Span<'a, f64>,
    pub velocity: SpanMut<'a, f64>,
    pub gradient: Option<SpanMut<'a, f64>>,
}

impl Resident {
    /// U at a caller's points at the present time, and the gradient of its induced part. False, and nothing is written: a
    /// point is not finite.
    pub(super) fn velocity_at(&mut self, held: Held<'_>, tools: &mut Tools<'_>, mut at: Places<'_>) -> Result<bool> {
        self.motion.after_default_stream()?;
        self.exchange.targets.resize(at.target.len())?;
        self.exchange.targets.span_mut().copy_from(at.target, self.motion.stream())?;
        self.motion.look_anew()?;
        self.motion.look(self.exchange.targets.span())?;
        if self.motion.found()?.infinite {
            return Ok(false);
        }
        self.field_now(held, tools, at.gradient.is_some())?;
        let (exchange, stream) = (&self.exchange, self.motion.stream());
        at.velocity.copy_from(exchange.velocity.span(), stream)?;
        if let Some(gradient) = &mut at.gradient {
            gradient.copy_from(exchange.gradient.span(), stream)?;
        }
        stream.synchronize()?;
        Ok(true)
    }

    /// `field` of the present state.
    fn field_now(&mut self, held: Held<'_>, tools: &mut Tools<'_>, gradient: bool) -> Result<()> {
        let Held { state, history } = held;
        self.bring(state, history.as_ref())?;
        let start = self.begin()?;
        self.set_sources(state, tools.sums, &start, &start)?;
        self.field(tools.sums, state.time, gradient)
    }

    /// The state as the vector that a step begins with: volumes of segments, and dust that has not drifted.
    pub(super) fn begin(&mut self) -> Result<Arc<DeviceVector>> {
        let (shape, core, ends) = (self.shape, self.lines.core.span(), self.lines.ends.span());
        let y = Arc::get_mut(&mut self.y).expect("between two steps nobody else has it");
        let moved = shape.start(Part::DustDrift);
        let (head, mut tail) = y.split(moved);
        let (drift, volume) = (shape.len(Part::DustDrift), shape.len(Part::SegmentVolume));
        self.motion.fill(tail.part(0, drift), 0.0)?;
        let points = shape.part(head, Part::PointPosition);
        let to = tail.part(shape.start(Part::SegmentVolume) - moved, volume);
        self.motion.volumes(Lines { ends, points }, core, to)?;
        Ok(self.y.clone())
    }

    /// Hands the vortex elements of a stage to the plan.
    pub(super) fn set_sources(
        &mut self,
        state: &State,
        sums: &mut Sums,
        start: &DeviceVector,
        y: &DeviceVector,
    ) -> Result<()> {
        sums.plan.set_stream(self.motion.stream().handle());
        self.set_particles(sums, y)?;
        let n = state.filaments.id.len() + state.bound.id.len();
        if n == 0 {
            return sums.plan.set_segments::<f64>(None);
        }
        let n_points = points(state)?;
        let lines = &self.lines;
        let lengths = [lines.ends.span().len() / 2, lines.circulation.span().len(), lines.next_core.span().len()];
        assert_eq!(lengths, [n; 3], "`bring` has brought all segments");
        self.stage_cores(start, y, false)?;
        let (shape, motion) = (self.shape, &self.motion);
        let (moved, bound) = (shape.part(y.span(), Part::PointPosition), self.lines.bound_points.span());
        self.exchange.points.resize(moved.len() + bound.len())?;
        let mut to = self.exchange.points.span_mut();
        to.part(0, moved.len()).copy_from(moved, motion.stream())?;
        to.part(moved.len(), bound.len()).copy_from(bound, motion.stream())?;
        sums.plan.set_segments::<f64>(Some(Segments {
            n_points,
            points: borrowed(self.exchange.points.span()),
            n,
            ld: 2,
            connectivity: borrowed(self.lines.ends.span()),
            circulation: borrowed(self.lines.circulation.span()),
            core: Some(borrowed(self.lines.next_core.span())),
        }))
    }

    fn set_particles(&mut self, sums: &mut Sums, y: &DeviceVector) -> Result<()> {
        let shape = self.shape;
        let (n, exchange, motion) = (shape.len(Part::ParticleCore2), &mut self.exchange, &self.motion);
        if n == 0 {
            return sums.plan.set_particles::<f64>(None);
        }
        exchange.core.resize(n)?;
        motion.particle_cores(shape.part(y.span(), Part::ParticleCore2), exchange.core.span_mut())?;
        exchange.strength.resize(3 * n)?;
        exchange.strength.span_mut().copy_from(shape.part(y.span(), Part::ParticleStrength), motion.stream())?;
        exchange.position.resize(3 * n)?;
        exchange.position.span_mut().copy_from(shape.part(y.span(), Part::ParticlePosition), motion.stream())?;
        sums.plan.set_particles::<f64>(Some(Particles {
            n,
            position: borrowed(exchange.position.span()),
            strength: borrowed(exchange.strength.span()),
            core: Some(borrowed(exchange.core.span())),
        }))
    }

    /// Core radii of filaments at a stage, before those of the bound segments.
    fn stage_cores(&mut self, start: &DeviceVector, y: &DeviceVector, note: bool) -> Result<()> {
        let shape = self.shape;
        let n = shape.len(Part::SegmentVolume);
        if n == 0 {
            return Ok(());
        }
        let (before, after) = (start.span(), y.span());
        let lines = Lines { ends: self.lines.ends.span(), points: shape.part(before, Part::PointPosition) };
        let core = self.lines.core.span();
        let (q0, q) = (shape.part(before, Part::SegmentVolume), shape.part(after, Part::SegmentVolume));
        let mut to = self.lines.next_core.span_mut();
        self.motion.cores(lines, core, q0, shape.part(after, Part::PointPosition), q, to.part(0, n), note)
    }

    /// U at `exchange.targets` to `exchange.velocity`, and the gradient of its induced part.
    pub(super) fn field(&mut self, sums: &mut Sums, time: f64, gradient: bool) -> Result<()> {
        let exchange = &mut self.exchange;
        let len = exchange.targets.span().len();
        exchange.velocity.resize(len)?;
        exchange.gradient.resize(if gradient { 3 * len } else { 0 })?;
        if len == 0 {
            return Ok(());
        }
        let counts = sums.plan.counts();
        if counts.segments + counts.particles > 0 {
            sums.plan.set_targets::<f64>(Some((len / 3, borrowed(exchange.targets.span()))))?;
            let u = ArrayMut::Device { address: exchange.velocity.span().address(), len };
            let g = exchange.gradient.span();
            let slopes = gradient.then_some(ArrayMut::Device { address: g.address(), len: g.len() });
            sums.plan.evaluate::<f64>(Field::Velocity { gradient }, u, slopes)?;
        } else {
            self.motion.clear(exchange.velocity.span_mut())?;
            self.motion.clear(exchange.gradient.span_mut())?;
        }
        self.add_others(sums, time)
    }

    fn add_others(&mut self, sums: &mut Sums, time: f64) -> Result<()> {
        let exchange = &mut self.exchange;
        if sums.free_stream != [0.0; 3] {
            self.motion.add_stream(exchange.velocity.span_mut(), sums.free_stream)?;
        }
        if sums.callback.is_none() {
            return Ok(());
        }
        let (x, u) = (exchange.targets.span(), exchange.velocity.span());
        if self.callback_on_host {
            let (mut position, mut velocity) = (memory::filled(0.0, x.len()), memory::filled(0.0, u.len()));
            self.motion.download(x, &mut position)?;
            self.motion.download(u, &mut velocity)?;
            sums.call(time, At::Host { position: &position, velocity: &mut velocity })?;
            self.motion.upload(exchange.velocity.span_mut(), &velocity)?;
        } else {
            let (n, stream) = (x.len() / 3, self.motion.stream().handle());
            sums.call(time, At::Device { n, position: x.address(), velocity: u.address(), stream })?;
        }
        self.motion.look_anew()?;
        self.motion.look(exchange.velocity.span())?;
        match self.motion.found()?.first {
            None => Ok(()),
            Some(at) => {
                let message = format!("velocity[{}][{}] is not finite after the velocity callback", at / 3, at % 3);
                Error::fail(WFMM_ERR_NOT_FINITE, message)
            }
        }
    }

    /// What the end of a step needs: dust, core radii, and whether all of it may be. Nothing of the state is written.
    fn finish(
        &mut self,
        state: &mut State,
        tools: &Tools<'_>,
        dt: f64,
        (y, rate): (DeviceVector, Option<DeviceVector>),
    ) -> Result<Outcome> {
        let (shape, start) = (self.shape, self.y.clone());
        self.motion.look_anew()?;
        self.stage_cores(&start, &y, true)?;
        let n = shape.len(Part::SegmentVolume);
        self.motion.look(self.lines.next_core.span().part(0, n))?;
        self.motion.look(y.span())?;
        let moved = shape.start(Part::DustDrift);
        self.motion.displacement(start.span().part(0, moved), y.span().part(0, moved))?;
        if shape.len(Part::DustDrift) > 0 {
            let drift = shape.part(y.span(), Part::DustDrift);
            let (parcels, next) = self.dust.parts();
            self.motion.dust_lands(parcels, drift, dt, tools.medium.argument(), next)?;
        }
        let found = self.motion.found()?;
        if found.infinite {
            return out_of_range(dt);
        }
        let limit = tools.options.split_length;
        let cut = if limit > 0.0 && found.length > limit { self.cut(state, &y, rate.as_ref(), limit)? } else { None };
        Ok(Outcome { y, rate, way: found.displacement, cut })
    }

    /// Cuts segments longer than `limit`, in host memory.
    fn cut(
        &mut self,
        state: &mut State,
        y: &DeviceVector,
        rate: Option<&DeviceVector>,
        limit: f64,
    ) -> Result<Option<Cut>> {
        let n = self.shape.len(Part::SegmentVolume);
        let mut points = self.fetched(y, Part::PointPosition)?;
        let mut core = memory::filled(0.0, n);
        self.motion.download(self.lines.next_core.span().part(0, n), &mut core)?;
        let Some(split) = filaments::split(&state.filaments, &core, &points, limit)? else { return Ok(None) };
        let mut rates = match rate {
            Some(rate) => Some([self.fetched(rate, Part::PointPosition)?, self.fetched(rate, Part::SegmentVolume)?]),
            None => None,
        };
        let more = split.more.ends.len();
        room(&mut points, split.points.len())?;
        room(&mut core, more)?;
        if let Some([of_points, of_volumes]) = &mut rates {
            room(of_points, split.points.len())?;
            room(of_volumes, more)?;
        }
        make_room(state, &mut None, &split)?;
        Ok(Some(Cut { points, core, rates, split }))
    }

    /// A part of a vector in host memory.
    fn fetched(&mut self, from: &DeviceVector, part: Part) -> Result<Vec<f64>> {
        let mut values = memory::filled(0.0, self.shape.len(part));
        self.motion.download(self.shape.part(from.span(), part), &mut values)?;
        Ok(values)
    }

    /// Everything succeeded: what the step left takes the old state's place.
    fn commit(
        &mut self,
        state: &mut State,
        history: &mut Option<History>,
        new: Outcome,
        (dt, free_stream): (f64, Vec3),
    ) -> f64 {
        self.y = Arc::new(new.y);
        std::mem::swap(&mut self.lines.core, &mut self.lines.next_core);
        self.dust.turn();
        self.history = new.rate.map(Arc::new);
        match (history.as_mut(), &self.history) {
            (Some(history), Some(_)) => (history.dt, history.free_stream) = (dt, free_stream),
            (None, Some(_)) => *history = Some(History { rate: Vector::default(), dt, free_stream }),
            (_, None) => *history = None,
        }
        self.stepped();
        if let Some(cut) = new.cut {
            self.take_cut(state, history, cut);
        }
        state.time += dt;
        state.step += 1;
        new.way
    }

    /// Filaments as they were cut are the host's until the next step.
    fn take_cut(&mut self, state: &mut State, history: &mut Option<History>, new: Cut) {
        self.replaced(&[ElementKind::Filaments]);
        *state.moving.part_mut(Part::PointPosition) = new.points;
        state.filaments.core = new.core;
        if let (Some(history), Some([of_points, of_volumes])) = (history.as_mut(), new.rates) {
            *history.rate.part_mut(Part::PointPosition) = of_points;
            *history.rate.part_mut(Part::SegmentVolume) = of_volumes;
        }
        cut(state, history, new.split);
        if let Some(history) = history {
            // Room was made. What is new has no history.
            history.rate.part_mut(Part::PointPosition).resize(3 * state.filaments.point_id.len(), f64::NAN);
            history.rate.part_mut(Part::SegmentVolume).resize(state.filaments.id.len(), f64::NAN);
        }
    }

    /// The positions of all that moves at a stage, after a time h of a step.
    fn stage_targets(&mut self, y: &DeviceVector, h: f64, tools: &Tools<'_>) -> Result<()> {
        let shape = self.shape;
        self.exchange.targets.resize(shape.targets())?;
        let mut to = self.exchange.targets.span_mut();
        let moved = shape.start(Part::DustDrift);
        to.part(0, moved).copy_from(y.span().part(0, moved), self.motion.stream())?;
        let drift = shape.part(y.span(), Part::DustDrift);
        let (parcels, _) = self.dust.parts();
        if h == 0.0 {
            return to.part(moved, drift.len()).copy_from(parcels.position, self.motion.stream());
        }
        self.motion.dust_positions(parcels, drift, h, tools.medium.argument(), to.part(moved, drift.len()))
    }

    /// The rates of everything at a stage, from the field at all that moves.
    fn rates(&mut self, y: &DeviceVector, options: &FlowOptions) -> Result<DeviceVector> {
        let (shape, motion) = (self.shape, &self.motion);
        let mut rate = self.vectors.take(shape.total())?;
        let mut to = rate.span_mut();
        to.part(0, shape.targets()).copy_from(self.exchange.velocity.span(), motion.stream())?;
        let strength = shape.part(y.span(), Part::ParticleStrength);
        let of_strength = shape.part_mut(&mut to, Part::ParticleStrength);
        match options.stretching.shares().filter(|_| !strength.is_empty()) {
            Some(shares) => motion.stretching(shares, strength, self.exchange.gradient.span(), of_strength)?,
            None => motion.fill(of_strength, 0.0)?,
        }
        motion.fill(shape.part_mut(&mut to, Part::ParticleCore2), spreading(options))?;
        let points = shape.part(y.span(), Part::PointPosition);
        let (lines, law) = (Lines { ends: self.lines.ends.span(), points }, [LAMB, options.viscosity, options.squire]);
        let of_volume = shape.part_mut(&mut to, Part::SegmentVolume);
        motion.growth(lines, self.lines.circulation.span(), law, of_volume)?;
        Ok(rate)
    }
}

/// What the rates of a step need.
struct Stage<'a, 'b> {
    here: &'a mut Resident,
    state: &'a State,
    tools: &'a mut Tools<'b>,
    start: Arc<DeviceVector>,
    dt: f64,
}

impl System for Stage<'_, '_> {
    type Vector = DeviceVector;

    fn rate(&mut self, y: &DeviceVector, fraction: f64) -> Result<DeviceVector> {
        let (here, sums, h) = (&mut *self.here, &mut *self.tools.sums, fraction * self.dt);
        if h > 0.0 {
            // The plan does not look at device arrays.
            here.motion.look_anew()?;
            here.motion.look(y.span())?;
            if here.motion.found()?.infinite {
                return out_of_range(self.dt);
            }
        }
        here.set_sources(self.state, sums, &self.start, y)?;
        here.stage_targets(y, h, self.tools)?;
        let options = self.tools.options;
        let stretched = options.stretching != Stretching::None && here.shape.len(Part::ParticleStrength) > 0;
        here.field(self.tools.sums, self.state.time + h, stretched)?;
        here.rates(y, options)
    }

    fn copy(&mut self, y: &DeviceVector) -> Result<DeviceVector> {
        let mut copy = self.here.vectors.take(y.span().len())?;
        copy.span_mut().copy_from(y.span(), self.here.motion.stream())?;
        Ok(copy)
    }

    fn plus(&mut self, y: &DeviceVector, b: f64, x: &DeviceVector) -> Result<DeviceVector> {
        let mut sum = self.here.vectors.take(y.span().len())?;
        self.here.motion.plus(sum.span_mut(), y.span(), b, x.span())?;
        Ok(sum)
    }

    fn plus_both(&mut self, y: &DeviceVector, shares: [f64; 2], [f, g]: [&DeviceVector; 2]) -> Result<DeviceVector> {
        let mut sum = self.here.vectors.take(y.span().len())?;
        self.here.motion.plus_both(sum.span_mut(), y.span(), shares, [f.span(), g.span()])?;
        Ok(sum)
    }

    fn combine(&mut self, y: &mut DeviceVector, a: f64, b: f64, x: &DeviceVector) -> Result<()> {
        self.here.motion.combine(y.span_mut(), a, b, x.span())
    }

    fn shift(&mut self, y: &mut DeviceVector, way: Vec3) -> Result<()> {
        let targets = self.here.shape.targets();
        self.here.motion.add_stream(y.span_mut().part(0, targets), way)
    }

    fn has_nan(&mut self, y: &DeviceVector) -> Result<bool> {
        self.here.motion.look_anew()?;
        self.here.motion.look(y.span())?;
        Ok(self.here.motion.found()?.gaps)
    }

    fn fill_gaps(&mut self, y: &mut DeviceVector, x: &DeviceVector) -> Result<()> {
        self.here.motion.fill_gaps(y.span_mut(), x.span())
    }

    fn anywhere(&mut self, mine: bool) -> Result<bool> {
        Ok(mine)
    }
}
