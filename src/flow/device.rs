//! The arrays of a flow in device memory, beside the host's.
//!
//! Enters: the host's arrays. Leaves: their numbers on the device, and back. Of each kind the first rows may be on the device already:
//! `bring` copies what came after them, `bring_back` the rows that steps have changed. Connectivities, identities and what no step
//! changes are the host's; the device has copies.
//!
//! A vector lies in one piece, the part of each quantity after the other: what moves with the fluid comes first, in the order of the
//! targets, so that a field at the targets is the head of a rate.

use std::sync::Arc;

use super::integrate::History;
use super::options::ElementKind;
use super::picture::device::Pictures;
use super::state::State;
use super::storage::{ALL, Held};
use super::sums::{joined, joined_ends, points};
use super::vector::{PARTS, Part};
use crate::backend::cuda::Context;
use crate::backend::cuda::array::{DeviceArray, DeviceVector, Span, SpanMut, Vectors};
use crate::backend::cuda::motion::{Motion, Parcels};
use crate::error::Result;
use crate::memory;

/// The order of the parts.
const ORDER: [Part; PARTS.len()] = [
    Part::ParticlePosition,
    Part::PointPosition,
    Part::TracerPosition,
    Part::DustDrift,
    Part::ParticleStrength,
    Part::ParticleCore2,
    Part::SegmentVolume,
];

/// Numbers of a part, and where they begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Section {
    start: usize,
    len: usize,
}

/// The lengths of a vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    sections: [Section; PARTS.len()],
    total: usize,
}

/// The kind that a part belongs to, and whether it has rows of its points.
fn owner(part: Part) -> (ElementKind, bool) {
    match part {
        Part::ParticlePosition | Part::ParticleStrength | Part::ParticleCore2 => (ElementKind::Particles, false),
        Part::PointPosition => (ElementKind::Filaments, true),
        Part::SegmentVolume => (ElementKind::Filaments, false),
        Part::TracerPosition => (ElementKind::Tracers, false),
        Part::DustDrift => (ElementKind::Dust, false),
    }
}

fn width(part: Part) -> usize {
    PARTS[part as usize].1
}

/// Particles of one core radius in a caller's arrays in device memory.
#[derive(Debug, Clone, Copy)]
pub struct GivenParticles<'a> {
    pub position: Span<'a, f64>,
    pub strength: Span<'a, f64>,
    pub core: f64,
}

impl Shape {
    fn new(len: impl Fn(Part) -> usize) -> Self {
        let mut shape = Self::default();
        for part in ORDER {
            let section = Section { start: shape.total, len: len(part) };
            shape.sections[part as usize] = section;
            shape.total += section.len;
        }
        shape
    }

    fn of(state: &State) -> Self {
        Self::new(|part| {
            let (kind, is_points) = owner(part);
            let (elements, points) = state.counts(kind);
            width(part) * if is_points { points } else { elements }
        })
    }

    /// The same with n particles.
    fn with_particles(&self, n: usize) -> Self {
        Self::new(|part| if owner(part).0 == ElementKind::Particles { width(part) * n } else { self.len(part) })
    }

    pub fn total(&self) -> usize {
        self.total
    }

    pub fn len(&self, part: Part) -> usize {
        self.sections[part as usize].len
    }

    /// Where a part begins.
    pub fn start(&self, part: Part) -> usize {
        self.sections[part as usize].start
    }

    /// Numbers of all positions of targets, or of their velocities.
    pub fn targets(&self) -> usize {
        self.start(Part::ParticleStrength)
    }

    /// A part of a vector.
    pub fn part<'a>(&self, of: Span<'a, f64>, part: Part) -> Span<'a, f64> {
        of.part(self.start(part), self.len(part))
    }

    pub fn part_mut<'a>(&self, of: &'a mut SpanMut<'_, f64>, part: Part) -> SpanMut<'a, f64> {
        of.part(self.start(part), self.len(part))
    }
}

/// Parcels; `next` is where a step writes.
pub(super) struct DeviceDust {
    pub position: DeviceArray<f64>,
    pub velocity: DeviceArray<f64>,
    pub diameter: DeviceArray<f64>,
    pub density: DeviceArray<f64>,
    pub next: [DeviceArray<f64>; 2],
}

impl DeviceDust {
    /// What is there, and where a step writes positions and velocities.
    pub fn parts(&mut self) -> (Parcels<'_>, [SpanMut<'_, f64>; 2]) {
        let Self { position, velocity, diameter, density, next: [next_position, next_velocity] } = self;
        let (position, velocity) = (position.span(), velocity.span());
        let now = Parcels { position, velocity, diameter: diameter.span(), density: density.span() };
        (now, [next_position.span_mut(), next_velocity.span_mut()])
    }

    /// What a step wrote takes the place of what was there.
    pub fn turn(&mut self) {
        let [position, velocity] = &mut self.next;
        std::mem::swap(&mut self.position, position);
        std::mem::swap(&mut self.velocity, velocity);
    }
}

/// Segments: those of the filaments, then the bound ones.
pub(super) struct DeviceLines {
    pub ends: DeviceArray<i32>,
    pub circulation: DeviceArray<f64>,
    pub core: DeviceArray<f64>,
    /// Core radii at a stage, or after a step.
    pub next_core: DeviceArray<f64>,
    pub bound_points: DeviceArray<f64>,
}

/// What the plan reads and writes: at the same addresses at every stage, so that what it recorded can be replayed.
pub(super) struct Exchange {
    /// Points of segments, the bound ones too, where there are such.
    pub points: DeviceArray<f64>,
    /// Of particles.
    pub position: DeviceArray<f64>,
    pub strength: DeviceArray<f64>,
    pub core: DeviceArray<f64>,
    /// Positions of all that moves.
    pub targets: DeviceArray<f64>,
    pub velocity: DeviceArray<f64>,
    pub gradient: DeviceArray<f64>,
}

/// See the head of this file.
pub struct Resident {
    pub(super) motion: Motion,
    pub(super) vectors: Arc<Vectors>,
    pub(super) shape: Shape,
    /// The state as the vector that a step begins with.
    pub(super) y: Arc<DeviceVector>,
    /// The rate at the last step's beginning, where the host says that there is one.
    pub(super) history: Option<Arc<DeviceVector>>,
    pub(super) dust: DeviceDust,
    pub(super) lines: DeviceLines,
    pub(super) exchange: Exchange,
    /// Elements and points of each kind that are here, from the first on; nothing where the host has replaced them, be it by none.
    held: [Option<(usize, usize)>; ALL.len()],
    /// Whether those are newer than the host's.
    newer: [bool; ALL.len()],
    /// The callback gets host arrays.
    pub(super) callback_on_host: bool,
    /// Made when first needed.
    pub(super) pictures: Option<Box<Pictures>>,
}

impl Resident {
    pub fn new(context: &Arc<Context>, pool: Arc<rayon::ThreadPool>, callback_on_host: bool) -> Result<Self> {
        let vectors = Vectors::new(context);
        let array = || DeviceArray::new(context);
        Ok(Self {
            motion: Motion::new(context, pool)?,
            y: Arc::new(vectors.take(0)?),
            vectors,
            shape: Shape::default(),
            history: None,
            dust: DeviceDust {
                position: array(),
                velocity: array(),
                diameter: array(),
                density: array(),
                next: [array(), array()],
            },
            lines: DeviceLines {
                ends: DeviceArray::new(context),
                circulation: array(),
                core: array(),
                next_core: array(),
                bound_points: array(),
            },
            exchange: Exchange {
                points: array(),
                position: array(),
                strength: array(),
                core: array(),
                targets: array(),
                velocity: array(),
                gradient: array(),
            },
            held: Default::default(),
            newer: Default::default(),
            callback_on_host,
            pictures: None,
        })
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        let (dust, lines, exchange) = (&self.dust, &self.lines, &self.exchange);
        let dust = [&dust.position, &dust.velocity, &dust.diameter, &dust.density, &dust.next[0], &dust.next[1]];
        let lines = [&lines.circulation, &lines.core, &lines.next_core, &lines.bound_points];
        let exchange = [
            &exchange.points,
            &exchange.position,
            &exchange.strength,
            &exchange.core,
            &exchange.targets,
            &exchange.velocity,
            &exchange.gradient,
        ];
        let arrays = dust.into_iter().chain(lines).chain(exchange).map(DeviceArray::bytes).sum::<u64>();
        let vectors = self.vectors.bytes() + self.y.bytes() + self.history.as_ref().map_or(0, |h| h.bytes());
        arrays + vectors + self.lines.ends.bytes() + self.pictures.as_ref().map_or(0, |p| p.bytes())
    }

    /// Gives all memory back; what was here was brought back before.
    pub fn release(&mut self) {
        let (dust, lines, exchange) = (&mut self.dust, &mut self.lines, &mut self.exchange);
        let [next_position, next_velocity] = &mut dust.next;
        let dust = [
            &mut dust.position,
            &mut dust.velocity,
            &mut dust.diameter,
            &mut dust.density,
            next_position,
            next_velocity,
        ];
        let lines_of = [&mut lines.circulation, &mut lines.core, &mut lines.next_core, &mut lines.bound_points];
        let exchange = [
            &mut exchange.points,
            &mut exchange.position,
            &mut exchange.strength,
            &mut exchange.core,
            &mut exchange.targets,
            &mut exchange.velocity,
            &mut exchange.gradient,
        ];
        dust.into_iter().chain(lines_of).chain(exchange).for_each(DeviceArray::release);
        lines.ends.release();
        self.replaced(&ALL);
        (self.history, self.pictures) = (None, None);
        if let Ok(empty) = self.vectors.take(0) {
            (self.y, self.shape) = (Arc::new(empty), Shape::default());
        }
        self.vectors.release();
    }

    /// The host has other numbers of these kinds now.
    pub fn replaced(&mut self, kinds: &[ElementKind]) {
        for kind in kinds {
            self.held[*kind as usize] = None;
            self.newer[*kind as usize] = false;
            if let Some(pictures) = &mut self.pictures {
                pictures.forget(*kind);
            }
        }
    }

    /// Whether all elements of a state are here.
    pub fn has_all(&self, state: &State) -> bool {
        ALL.into_iter().all(|kind| self.has(state, kind))
    }

    fn has(&self, state: &State, kind: ElementKind) -> bool {
        self.held[kind as usize] == Some(state.counts(kind))
    }

    /// Whether the device has what there is of a kind, or had when the last step began.
    pub(super) fn holds(&self, kind: ElementKind) -> bool {
        self.held[kind as usize].is_some()
    }

    /// Elements and points of a kind that need not be brought.
    fn held(&self, kind: ElementKind) -> (usize, usize) {
        self.held[kind as usize].unwrap_or_default()
    }

    /// A step has changed everything that moves.
    pub(super) fn stepped(&mut self) {
        for kind in ALL {
            // Points of filaments may be there without a segment.
            self.newer[kind as usize] = kind != ElementKind::BoundSegments && self.held(kind) != (0, 0);
        }
    }

    /// Whether numbers of a kind are newer than the host's.
    pub fn is_newer(&self, kind: ElementKind) -> bool {
        self.newer[kind as usize]
    }

    /// Numbers of a kind are newer than the host's.
    pub(super) fn changed(&mut self, kind: ElementKind) {
        self.newer[kind as usize] = true;
    }

    /// Rows of a part that are here.
    fn rows(&self, part: Part) -> usize {
        let (kind, is_points) = owner(part);
        let (elements, points) = self.held(kind);
        if is_points { points } else { elements }
    }

    /// Everything to the device; after a failure the device has what it had.
    pub(super) fn bring(&mut self, state: &State, history: Option<&History>) -> Result<()> {
        let shape = Shape::of(state);
        if self.has_all(state) && self.shape == shape && history.is_some() == self.history.is_some() {
            return Ok(());
        }
        points(state)?;
        let old = self.y.clone();
        let y = self.vector(shape, Some(&old), |part| match part {
            // A step makes them for itself.
            Part::SegmentVolume | Part::DustDrift => None,
            part => Some(state.moving.part(part)),
        })?;
        let history = match history {
            Some(history) => {
                let old = self.history.clone();
                Some(Arc::new(self.vector(shape, old.as_deref(), |part| Some(history.rate.part(part)))?))
            }
            None => None,
        };
        self.bring_dust(state)?;
        if ![ElementKind::Filaments, ElementKind::BoundSegments].into_iter().all(|kind| self.has(state, kind)) {
            self.bring_lines(state)?;
        }
        (self.y, self.history, self.shape) = (Arc::new(y), history, shape);
        ALL.into_iter().for_each(|kind| self.held[kind as usize] = Some(state.counts(kind)));
        Ok(())
    }

    /// A vector of a new shape: rows that are here from `old`, the others from the host, NaN where the host has none.
    fn vector<'h>(
        &mut self,
        shape: Shape,
        old: Option<&DeviceVector>,
        host: impl Fn(Part) -> Option<&'h [f64]>,
    ) -> Result<DeviceVector> {
        let mut new = self.vectors.take(shape.total)?;
        let mut to = new.span_mut();
        for part in ORDER {
            let Some(values) = host(part) else { continue };
            let mut to = shape.part_mut(&mut to, part);
            let (mut held, len) = (0, shape.len(part));
            if let Some(old) = old {
                held = width(part) * self.rows(part);
                let from = old.span().part(self.shape.start(part), held);
                to.part(0, held).copy_from(from, self.motion.stream())?;
            }
            match values.get(held..len) {
                Some(more) => self.motion.upload(to.part(held, len - held), more)?,
                None => self.motion.fill(to.part(held, len - held), f64::NAN)?,
            }
        }
        Ok(new)
    }

    /// Particles in the place of those that were there. False, and nothing has changed: a number is not finite.
    pub(super) fn renew_particles(&mut self, held: Held<'_>, given: GivenParticles<'_>) -> Result<bool> {
        let Held { state, history } = held;
        let (n, core2) = (given.position.len() / 3, given.core * given.core);
        let shape = self.shape.with_particles(n);
        self.motion.after_default_stream()?;
        self.motion.look_anew()?;
        let (motion, stream) = (&self.motion, self.motion.stream());
        let y = self.with_particles(&self.y, shape, |part, mut to| match part {
            Part::ParticlePosition => to.copy_from(given.position, stream),
            Part::ParticleStrength => to.copy_from(given.strength, stream),
            _ => motion.fill(to, core2),
        })?;
        motion.look(shape.part(y.span(), Part::ParticlePosition))?;
        motion.look(shape.part(y.span(), Part::ParticleStrength))?;
        // Waits: the caller may change his arrays afterwards.
        if motion.found()?.infinite {
            return Ok(false);
        }
        state.renew_particles(n)?;
        // Rates in the field of other particles are no history.
        *history = None;
        (self.y, self.history, self.shape) = (Arc::new(y), None, shape);
        self.replaced(&[ElementKind::Particles]);
        self.held[ElementKind::Particles as usize] = Some((n, n));
        self.changed(ElementKind::Particles);
        Ok(true)
    }

    /// A vector of a new shape: the parts of particles as they are `put`, the others from `old`.
    fn with_particles(
        &self,
        old: &DeviceVector,
        shape: Shape,
        put: impl Fn(Part, SpanMut<'_, f64>) -> Result<()>,
    ) -> Result<DeviceVector> {
        let mut new = self.vectors.take(shape.total)?;
        let mut to = new.span_mut();
        for part in ORDER {
            let mut to = shape.part_mut(&mut to, part);
            match owner(part).0 {
                ElementKind::Particles => put(part, to)?,
                _ => to.copy_from(self.shape.part(old.span(), part), self.motion.stream())?,
            }
        }
        Ok(new)
    }

    fn bring_dust(&mut self, state: &State) -> Result<()> {
        if self.has(state, ElementKind::Dust) {
            return Ok(());
        }
        let (held, n) = (self.held(ElementKind::Dust).0, state.dust.id.len());
        let (here, dust) = (&mut self.dust, &state.dust);
        let arrays = [
            (&mut here.position, &dust.position, 3),
            (&mut here.velocity, &dust.velocity, 3),
            (&mut here.diameter, &dust.diameter, 1),
            (&mut here.density, &dust.density, 1),
        ];
        for (to, from, width) in arrays {
            to.grow(width * n, width * held, self.motion.stream())?;
            self.motion.upload(to.span_mut().part(width * held, width * (n - held)), &from[width * held..])?;
        }
        here.next.iter_mut().try_for_each(|next| next.resize(3 * n))
    }

    /// Segments and bound points anew; core radii of those that are here stay.
    fn bring_lines(&mut self, state: &State) -> Result<()> {
        let held = self.held(ElementKind::Filaments).0;
        let (moving, bound) = (&state.filaments, &state.bound);
        let base = moving.point_id.len();
        let ends = joined_ends(state, base);
        let circulation = joined(&[&moving.circulation, &bound.circulation]);
        let core = joined(&[&moving.core[held..], &bound.core]);
        let n = circulation.len();
        let (here, motion) = (&mut self.lines, &mut self.motion);
        // The old cores are kept until everything has room.
        here.next_core.resize(n)?;
        here.next_core.span_mut().part(0, held).copy_from(here.core.span().part(0, held), motion.stream())?;
        motion.upload(here.next_core.span_mut().part(held, n - held), &core)?;
        here.ends.resize(2 * n)?;
        motion.upload(here.ends.span_mut(), &ends)?;
        here.circulation.resize(n)?;
        motion.upload(here.circulation.span_mut(), &circulation)?;
        here.bound_points.resize(state.bound_points.len())?;
        motion.upload(here.bound_points.span_mut(), &state.bound_points)?;
        // From here on the new array has the cores of those that are here, whatever fails: an array that finds no room is empty.
        std::mem::swap(&mut here.core, &mut here.next_core);
        here.next_core.resize(n)?;
        let (first, last) = (moving.id.len(), bound.id.len());
        let from = here.core.span().part(first, last);
        here.next_core.span_mut().part(first, last).copy_from(from, motion.stream())
    }

    /// The host's rows of these kinds up to date.
    pub fn bring_back(&mut self, kinds: &[ElementKind], held: Held<'_>) -> Result<()> {
        let Held { state, history } = held;
        for kind in kinds.iter().copied() {
            if !self.newer[kind as usize] {
                continue;
            }
            for part in ORDER.into_iter().filter(|part| owner(*part).0 == kind) {
                if !matches!(part, Part::SegmentVolume | Part::DustDrift) {
                    self.take(part, state.moving.part_mut(part))?;
                }
                let Some(history) = history.as_mut() else { continue };
                let len = width(part) * self.rows(part);
                let to = history.rate.part_mut(part);
                if to.len() < len {
                    memory::resize(to, len, f64::NAN);
                }
                if let Some(old) = self.history.clone() {
                    let from = old.span().part(self.shape.start(part), len);
                    self.motion.download(from, &mut to[..len])?;
                }
            }
            let n = self.held(kind).0;
            match kind {
                ElementKind::Filaments => {
                    self.motion.download(self.lines.core.span().part(0, n), &mut state.filaments.core[..n])?;
                }
                ElementKind::Dust => {
                    let (from, to) = (&self.dust, &mut state.dust);
                    self.motion.download(from.position.span().part(0, 3 * n), &mut to.position[..3 * n])?;
                    self.motion.download(from.velocity.span().part(0, 3 * n), &mut to.velocity[..3 * n])?;
                }
                ElementKind::Particles | ElementKind::BoundSegments | ElementKind::Tracers => {}
            }
            self.newer[kind as usize] = false;
        }
        Ok(())
    }

    /// A part of the state to the head of a host array.
    fn take(&mut self, part: Part, to: &mut [f64]) -> Result<()> {
        let len = width(part) * self.rows(part);
        let y = self.y.clone();
        self.motion.download(y.span().part(self.shape.start(part), len), &mut to[..len])
    }
}
