//! The sources of one far field, in the engine's precision and in its unit of length.
//!
//! Enters: places, strengths and cores as arrays. Leaves: what `fmm` asks of a `SourceSet`. Vortex sources are segments
//! and particles in one tree: combined number k is segment k, or particle k - segments. After sorting, the segments of a
//! cell are a run of the sorted segments and its particles a run of the sorted particles.

use super::cost::{self, Law};
use super::fmm::SourceSet;
use super::near;
use super::passes::Points;
use super::tree::{Cell, Tree};
use crate::math::harmonics::gauss_legendre;
use crate::math::regularization::{self, Part};
use crate::memory;
use crate::options::Regularization;
use crate::simd::Real;
use rayon::prelude::*;
use std::ops::Range;

/// What the cores in a cell can reach.
#[derive(Debug, Clone, Copy, Default)]
struct Cores {
    /// Largest core of its particles.
    particle: f64,
    /// Largest core and length of its segments that have a core.
    segment: f64,
    length: f64,
    /// Axis of those segments, and the largest angle between a segment and it.
    axis: [f64; 3],
    spread: f64,
}

/// Segments and particles.
pub struct VortexSources<T> {
    segment_regularization: Regularization,
    particle_regularization: Regularization,
    /// Places have more digits than `T`.
    splits: bool,
    /// Original order: ends, circulation, core.
    pub segments: Vec<Segment>,
    pub particles: Vec<Particle>,
    places: Vec<[f64; 3]>,
    half: Vec<[f64; 3]>,
    /// `permutation[sorted] = combined number`.
    permutation: Vec<u32>,
    /// Sorted segments before each combined sorted number; n + 1 entries.
    before: Vec<u32>,
    near_segments: near::SegmentSources<T>,
    near_particles: near::ParticleSources<T>,
    cores: Vec<Cores>,
}

/// One segment, engine units.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub p1: [f64; 3],
    pub p2: [f64; 3],
    pub circulation: f64,
    pub core: f64,
}

/// One particle, engine units.
#[derive(Debug, Clone, Copy)]
pub struct Particle {
    pub x: [f64; 3],
    pub strength: [f64; 3],
    pub core: f64,
}

impl<T: Real> VortexSources<T> {
    pub fn new(segment_regularization: Regularization, particle_regularization: Regularization) -> Self {
        Self {
            segment_regularization,
            particle_regularization,
            splits: false,
            segments: vec![],
            particles: vec![],
            places: vec![],
            half: vec![],
            permutation: vec![],
            before: vec![],
            near_segments: near::SegmentSources::new(segment_regularization, false),
            near_particles: near::ParticleSources::new(particle_regularization, false),
            cores: vec![],
        }
    }

    /// New places, and whether they have more digits than `T`; sorted by the next `sort`.
    pub fn place(&mut self, segments: Vec<Segment>, particles: Vec<Particle>, splits: bool) {
        self.splits = splits;
        self.segments = segments;
        self.particles = particles;
        let middle = |s: &Segment| std::array::from_fn(|i| 0.5 * (s.p1[i] + s.p2[i]));
        let (segments, particles) = (self.segments.par_iter().map(middle), self.particles.par_iter().map(|p| p.x));
        self.places = memory::par_collect(segments.chain(particles));
        self.half = if self.segments.is_empty() {
            vec![]
        } else {
            let half = |s: &Segment| std::array::from_fn(|i| 0.5 * (s.p2[i] - s.p1[i]));
            let none = rayon::iter::repeat_n([0.0; 3], self.particles.len());
            memory::par_collect(self.segments.par_iter().map(half).chain(none))
        };
        self.permutation.clear();
    }

    /// New circulations and strengths, same places: call `refresh` afterwards.
    pub fn refresh(&mut self) {
        let n = self.segments.len();
        if self.permutation.len() != self.places.len() {
            return;
        }
        self.near_segments = near::SegmentSources::new(self.segment_regularization, self.splits);
        self.near_particles = near::ParticleSources::new(self.particle_regularization, self.splits);
        self.near_segments.list.reserve(n);
        self.near_particles.list.reserve(self.particles.len());
        for &k in &self.permutation {
            match self.segments.get(k as usize) {
                Some(s) => self.near_segments.push(s.p1, s.p2, s.circulation, s.core),
                None => {
                    let p = &self.particles[k as usize - n];
                    self.near_particles.push(p.x, p.strength, p.core);
                }
            }
        }
    }

    fn order_by(&mut self, permutation: Vec<u32>) {
        let n = self.segments.len() as u32;
        self.permutation = permutation;
        let mut count = 0;
        self.before = memory::with_room(self.permutation.len() + 1);
        self.before.push(0);
        self.before.extend(self.permutation.iter().map(|&k| {
            count += (k < n) as u32;
            count
        }));
        self.refresh();
    }

    fn segment_run(&self, r: &Range<u32>) -> Range<u32> {
        self.before[r.start as usize]..self.before[r.end as usize]
    }
    fn particle_run(&self, r: &Range<u32>) -> Range<u32> {
        r.start - self.before[r.start as usize]..r.end - self.before[r.end as usize]
    }
    /// Combined numbers of a cell's members.
    fn members<'a>(&'a self, cell: &Cell) -> &'a [u32] {
        &self.permutation[cell.begin as usize..cell.end as usize]
    }

    fn cores_of(&self, cell: &Cell) -> Cores {
        let mut c = Cores::default();
        let n = self.segments.len();
        let mut axis = [0.0; 3];
        let directed = |s: &Segment| -> Option<[f64; 3]> {
            let d: [f64; 3] = std::array::from_fn(|i| s.p2[i] - s.p1[i]);
            let l = d.iter().map(|v| v * v).sum::<f64>().sqrt();
            (l > 0.0 && s.core > 0.0).then(|| d.map(|v| v / l))
        };
        for &k in self.members(cell) {
            let Some(s) = self.segments.get(k as usize) else {
                c.particle = c.particle.max(self.particles[k as usize - n].core);
                continue;
            };
            if let Some(t) = directed(s) {
                c.segment = c.segment.max(s.core);
                c.length = c.length.max((0..3).map(|i| (s.p2[i] - s.p1[i]).powi(2)).sum::<f64>().sqrt());
                // A line has no sense of direction: each joins the side it already leans to.
                let side = if (0..3).map(|i| t[i] * axis[i]).sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
                (0..3).for_each(|i| axis[i] += side * t[i]);
            }
        }
        let l = axis.iter().map(|v| v * v).sum::<f64>().sqrt();
        if c.segment > 0.0 {
            c.axis = if l > 0.0 { axis.map(|v| v / l) } else { [1.0, 0.0, 0.0] };
            c.spread = self
                .members(cell)
                .iter()
                .filter_map(|&k| self.segments.get(k as usize).and_then(directed))
                .map(|t| (0..3).map(|i| t[i] * c.axis[i]).sum::<f64>().abs().min(1.0).acos())
                .fold(0.0, f64::max);
        }
        c
    }

    /// Particles: the core reaches as far as 1 - F stays above the tolerance.
    fn particle_core_matters(&self, c: &Cores, gap: f64, tolerance: f64) -> bool {
        let reg = self.particle_regularization;
        reg != Regularization::None
            && c.particle > 0.0
            && (gap <= 0.0 || regularization::shortfall(reg, gap / c.particle) > tolerance)
    }

    /// Segments: F depends on the distance to the line, so what is missed is (c/r) t(1-F(t)) of Γℓ/r², t = ρ/c, and the
    /// target cell is asked how near it comes to any line of the source cell.
    fn segment_core_matters(&self, c: &Cores, source: &Cell, target: &Cell, tolerance: f64) -> bool {
        let reg = self.segment_regularization;
        if c.segment == 0.0 || reg == Regularization::None {
            return false;
        }
        let d: [f64; 3] = std::array::from_fn(|i| target.center[i] - source.center[i]);
        let r = d.iter().map(|v| v * v).sum::<f64>().sqrt();
        let reach = source.radius + target.radius;
        let gap = r - reach;
        if gap <= 0.0 {
            return true;
        }
        if reg == Regularization::Offset {
            return regularization::offset_shortfall(gap, c.segment, c.length) > tolerance;
        }
        let cosine = ((0..3).map(|i| d[i] * c.axis[i]).sum::<f64>() / r).abs().min(1.0);
        let angle = (cosine.acos() - c.spread).max(0.0);
        // Folded at a right angle: a line that leans the other way may come closer.
        let other = (std::f64::consts::PI - cosine.acos() - c.spread).max(0.0);
        let rho = (r * angle.min(other).sin() - reach).max(0.0);
        // Near the line the deficit cannot exceed the whole: (ρ/r)(1-F) with ρ ≤ r.
        let missing = regularization::segment_deficit(reg, rho / c.segment) * c.segment / gap;
        missing > tolerance
    }
}

impl<T: Real> SourceSet<T, 3> for VortexSources<T> {
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn places(&self) -> (&[[f64; 3]], &[[f64; 3]]) {
        (&self.places, &self.half)
    }

    fn sort(&mut self, tree: &Tree) {
        self.order_by(memory::copy(&tree.permutation));
        self.survey(tree);
    }

    fn survey(&mut self, tree: &Tree) {
        let soft = self.segments.iter().any(|s| s.core > 0.0) || self.particles.iter().any(|p| p.core > 0.0);
        self.cores = if soft { memory::par_collect(tree.cells.par_iter().map(|c| self.cores_of(c))) } else { vec![] };
    }

    fn keep_order(&mut self) {
        if self.permutation.len() != self.places.len() {
            self.order_by(memory::collect(0..self.places.len() as u32));
        }
    }

    fn bytes(&self) -> u64 {
        (self.segments.capacity() * size_of::<Segment>()
            + self.particles.capacity() * size_of::<Particle>()
            + (self.places.capacity() + self.half.capacity()) * 24
            + (self.permutation.capacity() + self.before.capacity()) * 4
            + self.cores.capacity() * size_of::<Cores>()) as u64
            + self.near_segments.list.bytes()
            + self.near_particles.list.bytes()
    }

    fn fill(&self, cell: &Cell, order: usize, points: &mut Points<T, 3>) {
        let unit = 1.0 / cell.scale;
        let local = |x: [f64; 3]| std::array::from_fn(|i| T::of((x[i] - cell.center[i]) * unit));
        let n = self.segments.len();
        let (nodes, weights) = if n > 0 { gauss_legendre(order.div_ceil(2)) } else { (vec![], vec![]) };
        for &k in self.members(cell) {
            let Some(s) = self.segments.get(k as usize) else {
                let p = &self.particles[k as usize - n];
                points.push(local(p.x), p.strength.map(T::of));
                continue;
            };
            let (m, h) = (self.places[k as usize], self.half[k as usize]);
            for (t, w) in nodes.iter().zip(&weights) {
                points.push(
                    local(std::array::from_fn(|i| m[i] + t * h[i])),
                    std::array::from_fn(|i| T::of(s.circulation * w * h[i])),
                );
            }
        }
    }

    fn largest_strength(&self) -> f64 {
        let segment = |(s, h): (&Segment, &[f64; 3])| largest(&h.map(|h| 2.0 * s.circulation * h));
        let segments = self.segments.par_iter().zip(&self.half).map(segment);
        segments.chain(self.particles.par_iter().map(|p| largest(&p.strength))).reduce(|| 0.0, f64::max)
    }

    fn energies(&self, tree: &Tree, unit: f64) -> Vec<f64> {
        let n = self.segments.len();
        memory::par_collect(tree.cells.par_iter().map(|c| {
            if !c.is_leaf() {
                return 0.0;
            }
            let (mut square, mut sum) = (0.0, [0.0; 3]);
            for &k in self.members(c) {
                let a = match self.segments.get(k as usize) {
                    Some(s) => self.half[k as usize].map(|h| 2.0 * s.circulation * h),
                    None => self.particles[k as usize - n].strength,
                }
                .map(|v| v / unit);
                square += a.iter().map(|v| v * v).sum::<f64>();
                (0..3).for_each(|i| sum[i] += a[i]);
            }
            square.max(sum.iter().map(|v| v * v).sum())
        }))
    }

    fn core_matters(&self, source: u32, cell: &Cell, target: &Cell, tolerance: f64) -> bool {
        let Some(c) = self.cores.get(source as usize) else { return false };
        let r = (0..3).map(|i| (target.center[i] - cell.center[i]).powi(2)).sum::<f64>().sqrt();
        let gap = r - cell.radius - target.radius;
        self.particle_core_matters(c, gap, tolerance) || self.segment_core_matters(c, cell, target, tolerance)
    }

    fn near(&self, part: Part, ranges: &[Range<u32>], targets: &near::Points<T>, out: &mut [&mut [T]]) {
        let all = 0..targets.len();
        if self.segments.is_empty() {
            return near::particles(part, &self.near_particles, ranges, targets, all, out);
        }
        if self.particles.is_empty() {
            return near::segments(part, &self.near_segments, ranges, targets, all, out);
        }
        let runs: Vec<_> = ranges.iter().map(|r| self.segment_run(r)).filter(|r| !r.is_empty()).collect();
        near::segments(part, &self.near_segments, &runs, targets, all.clone(), out);
        let runs: Vec<_> = ranges.iter().map(|r| self.particle_run(r)).filter(|r| !r.is_empty()).collect();
        near::particles(part, &self.near_particles, &runs, targets, all, out);
    }

    fn pair_seconds(&self, gradient: bool) -> f64 {
        let (n, m) = (self.segments.len() as f64, self.particles.len() as f64);
        let none = Regularization::None;
        let soft = |reg: Regularization, cored: bool| if cored { reg } else { none };
        let segment = soft(self.segment_regularization, self.segments.iter().any(|s| s.core > 0.0));
        let particle = soft(self.particle_regularization, self.particles.iter().any(|p| p.core > 0.0));
        let mut sum = 0.0;
        if n > 0.0 {
            sum += n * cost::pair::<T>(Law::Segment(segment), gradient);
        }
        if m > 0.0 {
            sum += m * cost::pair::<T>(Law::Particle(particle), gradient);
        }
        sum / (n + m).max(1.0)
    }
}

/// Largest component.
pub fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |a, b| f64::max(a, b.abs()))
}

/// Charges.
pub struct ChargeSources<T> {
    pub places: Vec<[f64; 3]>,
    pub charge: Vec<f64>,
    permutation: Vec<u32>,
    near: near::ChargeSources<T>,
    splits: bool,
}

impl<T: Real> Default for ChargeSources<T> {
    fn default() -> Self {
        let near = near::ChargeSources::new(false);
        Self { places: vec![], charge: vec![], permutation: vec![], near, splits: false }
    }
}

impl<T: Real> ChargeSources<T> {
    /// As for vortices.
    pub fn place(&mut self, places: Vec<[f64; 3]>, charge: Vec<f64>, splits: bool) {
        (self.places, self.charge, self.splits) = (places, charge, splits);
        self.permutation.clear();
    }
    pub fn refresh(&mut self) {
        if self.permutation.len() != self.places.len() {
            return;
        }
        self.near = near::ChargeSources::new(self.splits);
        self.near.list.reserve(self.places.len());
        for &k in &self.permutation {
            self.near.push(self.places[k as usize], self.charge[k as usize]);
        }
    }
}

impl<T: Real> SourceSet<T, 1> for ChargeSources<T> {
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
    fn places(&self) -> (&[[f64; 3]], &[[f64; 3]]) {
        (&self.places, &[])
    }
    fn sort(&mut self, tree: &Tree) {
        self.permutation = memory::copy(&tree.permutation);
        self.refresh();
    }
    fn survey(&mut self, _: &Tree) {}
    fn keep_order(&mut self) {
        if self.permutation.len() != self.places.len() {
            self.permutation = memory::collect(0..self.places.len() as u32);
            self.refresh();
        }
    }
    fn bytes(&self) -> u64 {
        (self.places.capacity() * 24 + self.charge.capacity() * 8 + self.permutation.capacity() * 4) as u64
            + self.near.list.bytes()
    }
    fn fill(&self, cell: &Cell, _order: usize, points: &mut Points<T, 1>) {
        for &k in &self.permutation[cell.begin as usize..cell.end as usize] {
            let x = self.places[k as usize];
            points.push(
                std::array::from_fn(|i| T::of((x[i] - cell.center[i]) / cell.scale)),
                [T::of(self.charge[k as usize])],
            );
        }
    }
    fn largest_strength(&self) -> f64 {
        largest(&self.charge)
    }
    fn energies(&self, tree: &Tree, unit: f64) -> Vec<f64> {
        let energy = |c: &Cell| {
            let members = &self.permutation[c.begin as usize..c.end as usize];
            let (a, b) = members.iter().fold((0.0, 0.0), |(a, b), &k| {
                let q = self.charge[k as usize] / unit;
                (a + q * q, b + q)
            });
            if c.is_leaf() { f64::max(a, b * b) } else { 0.0 }
        };
        memory::par_collect(tree.cells.par_iter().map(energy))
    }
    fn core_matters(&self, _: u32, _: &Cell, _: &Cell, _: f64) -> bool {
        false
    }
    fn near(&self, part: Part, ranges: &[Range<u32>], targets: &near::Points<T>, out: &mut [&mut [T]]) {
        if part != Part::Correction {
            near::charges(&self.near, ranges, targets, 0..targets.len(), out);
        }
    }
    fn pair_seconds(&self, gradient: bool) -> f64 {
        cost::pair::<T>(Law::Charge, gradient)
    }
}
