//! Whether single precision can hold a problem, from its positions, cores and strengths alone.
//!
//! Enters: a plan's inputs in host memory. Leaves: what of them leaves the range or the digits of single precision, if
//! anything does. The kernels work in units of the box, and the powers of a distance or a core in them must stay numbers:
//! one far point makes all other distances small. Which distances there are is found exactly. Two positions nearer than h
//! are nearer than h along any axis, too, so a sweep over the positions, sorted along an axis that no lattice is aligned
//! with, meets every such pair.

use super::images::Periods;
use super::intake::{Unit, ends_of, number};
use super::sort;
use super::tree::{Corners, bounds_of, joined};
use crate::backend::Field;
use crate::backend::precision::PrecisionFallback;
use crate::inputs::{Inputs, Ints, Reals, SegmentInput};
use crate::memory;
use crate::options::{PlanOptions, Regularization};
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Least distance in units of the box. Segments: h = (1/|r1| + 1/|r2|)/e beside the line, at 2^-24 of the distance, is a
/// number down to 2^-26. Positions that are sums of two numbers are known to 2^-48. Powers of the distance to particles and
/// charges alone are numbers down to 2^-36.
const NEAREST: f64 = 1.0 / (1u64 << 24) as f64;
const NEAREST_PARTICLE: f64 = 1.0 / (1u64 << 30) as f64;
/// Largest core in units of the box: (r/c)³ is a number at every distance above.
const LARGEST_CORE: f64 = 256.0;
/// Least core of OFFSET: c²ℓ² and its inverse stay numbers.
const LEAST_OFFSET_CORE: f64 = 1.0 / (1u64 << 24) as f64;
/// Where the largest strength in the unit of the box may be, and the field that it has at the size of the box with its gradient: far
/// inside the range of single precision, since close pairs have more and parts of expansions less.
const STRENGTHS: RangeInclusive<f64> = power(-60)..=power(50);
const FIELDS: RangeInclusive<f64> = power(-80)..=power(90);
/// No longer than one; its components have no common measure.
const AXIS: [f64; 3] = [0.648_217_935_1, 0.578_094_612_7, 0.495_593_742_2];
/// Pairs near along the axis but not in space, per target; with more the question stays open, and the answer is no.
const STEPS: usize = 256;
/// Positions that a thread takes at a time.
const CHUNK: usize = 4096;

/// What of `inputs` single precision cannot hold, for this field.
pub fn fallback(inputs: &Inputs, field: Field, options: &PlanOptions) -> Option<PrecisionFallback> {
    let positions = Positions::new(inputs, field).in_box(options.period);
    if !positions.on_host || positions.sources() == 0 || positions.targets == 0 {
        return None;
    }
    let (low, size) = positions.extent();
    let unit = if size > 0.0 { 1.0 / positions.length(size) } else { 1.0 };
    if matches!(field, Field::Velocity { .. }) && cores_need_double(inputs, options, unit) {
        return Some(PrecisionFallback::Core);
    }
    if size == 0.0 {
        return None;
    }
    let nearest = if !positions.ends.is_empty() || positions.double { NEAREST } else { NEAREST_PARTICLE };
    (!(1.0 / size).is_normal() || positions.nearer_than(nearest * size, low, size))
        .then_some(PrecisionFallback::Distance)
}

/// Whether strengths and the fields that they make are out of the range of single precision.
pub fn strengths_need_double(inputs: &Inputs, field: Field, options: &PlanOptions) -> bool {
    let positions = Positions::new(inputs, field);
    if !positions.on_host || positions.sources() == 0 || positions.targets == 0 {
        return false;
    }
    let (low, high) = positions.corners();
    let period = options.period.unwrap_or_default();
    let side = |i: usize| if period[i] > 0.0 { period[i] } else { high[i] - low[i] };
    let size = (0..3).map(side).fold(0.0, f64::max);
    let per_length = if size > 0.0 { 1.0 / size } else { 1.0 };
    let largest = |of: Option<(&Reals, usize)>| of.map_or(0.0, |(a, n)| largest(a, n));
    let inside = match field {
        Field::Velocity { .. } => {
            let circulation = largest(inputs.segments.as_ref().map(|s| (&s.circulation, s.n)));
            let strength = largest(inputs.particles.as_ref().map(|p| (&p.strength, 3 * p.n)));
            circulation.max(strength * per_length)
        }
        Field::Potential { .. } => largest(inputs.charges.as_ref().map(|c| (&c.charge, c.n))),
    };
    let main = inside * per_length * options.normalization.abs();
    let fits = STRENGTHS.contains(&inside) && [main, main * per_length].iter().all(|v| FIELDS.contains(v));
    inside * options.normalization != 0.0 && !fits
}

/// Of arrays on the host; 0 of others.
fn largest(a: &Reals, n: usize) -> f64 {
    if !matches!(a, Reals::HostF32(_) | Reals::HostF64(_)) {
        return 0.0;
    }
    (0..n).into_par_iter().with_min_len(CHUNK).map(|k| number(a, k).abs()).reduce(|| 0.0, f64::max)
}

const fn power(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Whether single precision cannot tell some source from some target of these, in a box of this lower corner and size.
pub fn too_near(sources: &[[f64; 3]], targets: &[[f64; 3]], low: [f64; 3], size: f64) -> bool {
    let (sources, targets) = ((sources.len(), |k: usize| sources[k]), (targets.len(), |k: usize| targets[k]));
    size > 0.0 && nearer_than(NEAREST * size, low, size, sources, targets)
}

/// Cores of elements that have one, against the box; `unit`: one over its size.
pub fn cores_need_double(inputs: &Inputs, options: &PlanOptions, unit: f64) -> bool {
    let range = |core: &Option<Reals>, default: f64, n: usize| {
        let join = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        let one = |c: f64| (if c > 0.0 { c } else { f64::INFINITY }, c);
        match core {
            _ if n == 0 => (f64::INFINITY, 0.0),
            Some(a) => (0..n)
                .into_par_iter()
                .with_min_len(CHUNK)
                .map(|k| one(number(a, k)))
                .reduce(|| (f64::INFINITY, 0.0), join),
            None => one(default),
        }
    };
    let needs_double = |(least, largest): (f64, f64), reg: Regularization| {
        let offset = reg == Regularization::Offset && least * unit < LEAST_OFFSET_CORE;
        reg != Regularization::None && (largest * unit > LARGEST_CORE || offset)
    };
    let segments = inputs.segments.as_ref();
    let particles = inputs.particles.as_ref();
    segments.is_some_and(|s| needs_double(range(&s.core, s.default_core, s.n), options.segment_regularization))
        || particles.is_some_and(|p| needs_double(range(&p.core, p.default_core, p.n), options.particle_regularization))
}

/// A flat array of triples.
#[derive(Clone, Copy)]
enum Triples<'a> {
    F32(&'a [[f32; 3]]),
    F64(&'a [[f64; 3]]),
}

impl<'a> Triples<'a> {
    /// No triples where there is no array, or none in host memory.
    fn of(array: Option<&'a Reals>) -> Self {
        match array {
            Some(Reals::HostF32(v)) => Self::F32(v.as_chunks().0),
            Some(Reals::HostF64(v)) => Self::F64(v.as_chunks().0),
            _ => Self::F64(&[]),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
        }
    }

    #[inline]
    fn at(&self, k: usize) -> [f64; 3] {
        match self {
            Self::F32(v) => v[k].map(f64::from),
            Self::F64(v) => v[k],
        }
    }
}

/// Positions of sources, ends of segments or single points, and of targets, by number.
struct Positions<'a> {
    nodes: Triples<'a>,
    /// Nodes that segments use, each once.
    ends: Vec<u32>,
    /// Positions of particles or charges, and of targets.
    points: Triples<'a>,
    positions: Triples<'a>,
    singles: usize,
    targets: usize,
    on_host: bool,
    double: bool,
    in_box: Option<InBox>,
}

/// Positions of sources and targets that were moved into a periodic box, in the engine's unit.
struct InBox {
    sources: Vec<[f64; 3]>,
    targets: Vec<[f64; 3]>,
    periods: Periods,
    scale: f64,
}

impl<'a> Positions<'a> {
    fn new(inputs: &'a Inputs, field: Field) -> Self {
        let (segments, points) = match field {
            Field::Velocity { .. } => {
                let segments = inputs.segments.as_ref().filter(|s| s.n > 0);
                (segments, inputs.particles.as_ref().map(|p| (&p.position, p.n)))
            }
            Field::Potential { .. } => (None, inputs.charges.as_ref().map(|c| (&c.position, c.n))),
        };
        let targets = inputs.targets.as_ref();
        let arrays =
            || segments.map(|s| &s.points).into_iter().chain(points.map(|p| p.0)).chain(targets.map(|t| &t.position));
        let cores =
            || segments.and_then(|s| s.core.as_ref()).into_iter().chain(inputs.particles.iter().flat_map(|p| &p.core));
        let host = |a: &Reals| matches!(a, Reals::HostF32(_) | Reals::HostF64(_));
        let on_host =
            arrays().chain(cores()).all(host) && segments.is_none_or(|s| matches!(s.connectivity, Ints::Host(_)));
        Self {
            ends: segments.filter(|_| on_host).map_or(vec![], used_nodes),
            nodes: Triples::of(segments.map(|s| &s.points)),
            points: Triples::of(points.map(|p| p.0)),
            positions: Triples::of(targets.map(|t| &t.position)),
            singles: points.map_or(0, |p| p.1),
            targets: targets.map_or(0, |t| t.n),
            on_host,
            double: arrays().any(|a| matches!(a, Reals::HostF64(_))),
            in_box: None,
        }
    }

    /// With periods, as the engine has them.
    fn in_box(self, period: Option<[f64; 3]>) -> Self {
        let Some(period) = period.filter(|_| self.on_host && self.sources() > 0) else { return self };
        let sources = bounds_of(self.sources(), |k| [self.source(k); 2].into());
        let unit = Unit::in_single(period, sources, self.corners());
        let Some(periods) = unit.periods() else { return self };
        let sources = memory::par_collect((0..self.sources()).into_par_iter().map(|k| unit.inside(self.source(k))));
        let targets = memory::par_collect((0..self.targets).into_par_iter().map(|k| unit.inside(self.target(k))));
        Self { in_box: Some(InBox { sources, targets, periods, scale: unit.scale }), ..self }
    }

    fn sources(&self) -> usize {
        self.ends.len() + self.singles
    }

    fn source(&self, k: usize) -> [f64; 3] {
        if let Some(inside) = &self.in_box {
            return inside.sources[k];
        }
        match self.ends.get(k) {
            Some(&node) => self.nodes.at(node as usize),
            None => self.points.at(k - self.ends.len()),
        }
    }

    fn target(&self, k: usize) -> [f64; 3] {
        self.in_box.as_ref().map_or_else(|| self.positions.at(k), |inside| inside.targets[k])
    }

    /// In the caller's unit.
    fn length(&self, inside: f64) -> f64 {
        self.in_box.as_ref().map_or(inside, |in_box| inside / in_box.scale)
    }

    /// Of the box around sources and targets.
    fn corners(&self) -> Corners {
        let sources = bounds_of(self.sources(), |k| [self.source(k); 2].into());
        joined([sources, bounds_of(self.targets, |k| [self.target(k); 2].into())])
    }

    /// Lower corner and largest side of the box.
    fn extent(&self) -> ([f64; 3], f64) {
        let (low, high) = self.corners();
        (low, (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max))
    }

    fn nearer_than(&self, nearest: f64, low: [f64; 3], size: f64) -> bool {
        let (sources, targets) = (|k: usize| self.source(k), |k: usize| self.target(k));
        nearer_than(nearest, low, size, (self.sources(), sources), (self.targets, targets))
            || self.in_box.as_ref().is_some_and(|inside| inside.nearer_than(nearest, low, size))
    }
}

impl InBox {
    /// See `nearer_than`: targets, and images of sources beyond the faces of the box.
    fn nearer_than(&self, nearest: f64, low: [f64; 3], size: f64) -> bool {
        let Periods { period, center } = self.periods;
        // Sources are so near to a face then, and targets to its other side.
        let is_beside = |x: &[f64; 3], i: usize| (x[i] - center[i]).abs() >= 0.5 * period[i] - nearest;
        let axes = || (0..3).filter(|&i| period[i] > 0.0);
        let beside =
            |points: &[[f64; 3]]| memory::filtered(points.iter().copied(), |x| axes().any(|i| is_beside(x, i)));
        let (mut sources, targets) = (beside(&self.sources), beside(&self.targets));
        // One axis after the other: images beyond an edge are images of images.
        for i in axes() {
            let mut images = memory::filtered(sources.iter().copied(), |x| is_beside(x, i));
            images.iter_mut().for_each(|x| x[i] -= period[i].copysign(x[i] - center[i]));
            memory::extend(&mut sources, images);
        }
        let (low, size) = (low.map(|v| v - nearest), size + 2.0 * nearest);
        nearer_than(nearest, low, size, (sources.len(), |k| sources[k]), (targets.len(), |k| targets[k]))
    }
}

/// Whether a source and a target, numbers and positions of which are given, are nearer to each other than `nearest` without being at
/// one point.
fn nearer_than(
    nearest: f64,
    low: [f64; 3],
    size: f64,
    (n, source): (usize, impl Fn(usize) -> [f64; 3] + Sync),
    (m, target): (usize, impl Fn(usize) -> [f64; 3] + Sync),
) -> bool {
    let axis = Axis::new(low, size, n.max(m));
    let (sources, targets) = (axis.sorted(n, &source), axis.sorted(m, &target));
    let window = axis.window(nearest);
    let meets = |chunk: &[u64]| {
        let (mut first, mut steps) = (sources.partition_point(|&s| s.saturating_add(window) < chunk[0]), 0);
        for &t in chunk {
            while first < sources.len() && sources[first].saturating_add(window) < t {
                first += 1;
            }
            for &s in sources[first..].iter().take_while(|&&s| s <= t.saturating_add(window)) {
                let (x, y) = (target(axis.number(t)), source(axis.number(s)));
                let d2: f64 = (0..3).map(|i| ((x[i] - y[i]) / nearest).powi(2)).sum();
                steps += 1;
                if (x != y && d2 < 1.0) || steps > STEPS * chunk.len() {
                    return true;
                }
            }
        }
        false
    };
    targets.par_chunks(CHUNK).any(meets)
}

/// By their first use.
fn used_nodes(s: &SegmentInput) -> Vec<u32> {
    let count = Triples::of(Some(&s.points)).len();
    let (mut is_used, mut used) = (memory::filled(false, count), memory::with_room(count.min(2 * s.n)));
    for node in (0..s.n).flat_map(|k| ends_of(s, k)) {
        if !std::mem::replace(&mut is_used[node], true) {
            used.push(node as u32);
        }
    }
    used
}

/// Positions along `AXIS`: fixed-point numbers whose last bits are the positions' own numbers.
struct Axis {
    low: [f64; 3],
    size: f64,
    /// `AXIS` in units of the box.
    weight: [f64; 3],
    mask: u64,
}

impl Axis {
    fn new(low: [f64; 3], size: f64, count: usize) -> Self {
        Self { low, size, weight: AXIS.map(|a| a / size), mask: (count.next_power_of_two() - 1) as u64 }
    }

    /// Sorted; of several at one point one.
    fn sorted(&self, n: usize, position: impl Fn(usize) -> [f64; 3] + Sync) -> Vec<u64> {
        let key = |k: usize| {
            let x = position(k);
            // Components sum up to less than two.
            let along: f64 = (0..3).map(|i| (x[i] - self.low[i]) * self.weight[i]).sum();
            ((along * 2f64.powi(63)) as u64 & !self.mask) | k as u64
        };
        let mut keys: Vec<u64> = memory::par_collect((0..n).into_par_iter().with_min_len(CHUNK).map(key));
        sort::sort(&mut keys);
        keys.dedup_by(|a, b| (*a ^ *b) <= self.mask && position(self.number(*a)) == position(self.number(*b)));
        keys
    }

    fn number(&self, key: u64) -> usize {
        (key & self.mask) as usize
    }

    /// Keys of positions at a distance of `h` or less differ by no more: what was cut off and rounded is added.
    fn window(&self, h: f64) -> u64 {
        (h / self.size * 2f64.powi(63)) as u64 + self.mask + (1 << 14)
    }
}

#[cfg(test)]
mod tests;
