//! The sources of one far field, in the engine's precision and in its unit of length.
//!
//! Enters: positions, strengths and cores as arrays. Leaves: what `fmm` asks of a `SourceSet`. Vortex sources are segments
//! and particles in one tree: combined number k is segment k, or particle k - segments. After sorting, the segments of a
//! cell are a run of the sorted segments and its particles a run of the sorted particles.

use super::cores::{CellCores, CoreBounds, CoreElement, CoreReach, NoCores};
use super::cost::{self, Law};
use super::fmm::{SourceSet, rows};
use super::lists::{CoreTest, SourceCell, power as integer_power};
use super::near;
use super::passes::LeafSources;
use super::shared;
use super::tree::{Cell, Tree};
use crate::math::regularization::{Part, core_reach, offset_shortfall, segment_deficit, shortfall};
use crate::memory;
use crate::options::Regularization;
use crate::simd::Real;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Segments and particles.
pub struct VortexSources<T> {
    segment_regularization: Regularization,
    particle_regularization: Regularization,
    pub digits: near::Digits,
    /// Whether most particles are at sums of two numbers.
    is_split: bool,
    /// Original order: ends, circulation, core.
    pub segments: Vec<Segment>,
    pub particles: Vec<Particle>,
    positions: Vec<[f64; 3]>,
    half: Vec<[f64; 3]>,
    /// `permutation[sorted] = combined number`.
    permutation: Vec<u32>,
    /// Sorted segments before each combined sorted number; n + 1 entries. Empty where all are of one kind.
    before: Vec<u32>,
    /// Whether some segment, some particle has a core.
    cored: [bool; 2],
    near_segments: near::SegmentSources<T>,
    near_particles: near::ParticleSources<T>,
    /// In the order of the tree; empty where no element has a core.
    elements: Vec<CoreElement>,
    cell_cores: CellCores,
    bounds: CoreBounds,
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
            digits: near::Digits::default(),
            is_split: false,
            segments: vec![],
            particles: vec![],
            positions: vec![],
            half: vec![],
            permutation: vec![],
            before: vec![],
            cored: [false; 2],
            near_segments: near::SegmentSources::new(segment_regularization, near::Digits::default()),
            near_particles: near::ParticleSources::new(particle_regularization, false),
            elements: vec![],
            cell_cores: CellCores::default(),
            bounds: CoreBounds::new(segment_regularization, particle_regularization),
        }
    }

    /// Of segments and of particles.
    pub fn regularizations(&self) -> [Regularization; 2] {
        [self.segment_regularization, self.particle_regularization]
    }

    /// New positions, and how exactly they are known; sorted by the next `sort`.
    pub fn set_elements(&mut self, segments: Vec<Segment>, particles: Vec<Particle>, digits: near::Digits) {
        self.digits = digits;
        self.set_strengths(segments, particles);
        self.is_split = digits.splits && near::are_mostly_split::<T>(self.particles.par_iter().map(|p| p.x));
        let middle = |s: &Segment| std::array::from_fn(|i| 0.5 * (s.p1[i] + s.p2[i]));
        let (segments, particles) = (self.segments.par_iter().map(middle), self.particles.par_iter().map(|p| p.x));
        self.positions = memory::par_collect(segments.chain(particles));
        self.half = if self.segments.is_empty() {
            vec![]
        } else {
            let half = |s: &Segment| std::array::from_fn(|i| 0.5 * (s.p2[i] - s.p1[i]));
            let none = rayon::iter::repeat_n([0.0; 3], self.particles.len());
            memory::par_collect(self.segments.par_iter().map(half).chain(none))
        };
        self.permutation.clear();
    }

    /// The largest core, and the largest part of an element's field that a core takes at this distance.
    pub fn largest_core(&self, distance: f64) -> (f64, f64) {
        let largest = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.max(b.1));
        let of_segment = |(s, &h): (&Segment, &[f64; 3])| match self.segment_regularization {
            Regularization::Offset => (s.core, offset_shortfall(distance, s.core, 2.0 * norm(h))),
            _ if s.core == 0.0 => (0.0, 0.0),
            other => (s.core, shortfall(other, distance / s.core)),
        };
        let segments = self.segments.par_iter().zip(&self.half).map(of_segment).reduce(|| (0.0, 0.0), largest);
        let of_particle = |p: &Particle| match p.core {
            0.0 => (0.0, 0.0),
            core => (core, shortfall(self.particle_regularization, distance / core)),
        };
        largest(segments, self.particles.par_iter().map(of_particle).reduce(|| (0.0, 0.0), largest))
    }

    /// The largest core of particles if they are Gaussian, else 0.
    pub fn largest_gaussian(&self) -> f64 {
        match self.particle_regularization {
            Regularization::GaussErf => self.particles.par_iter().map(|p| p.core).reduce(|| 0.0, f64::max),
            _ => 0.0,
        }
    }

    /// New circulations, strengths and cores, same positions: call `refresh` afterwards.
    pub fn set_strengths(&mut self, segments: Vec<Segment>, particles: Vec<Particle>) {
        self.cored = [segments.par_iter().any(|s| s.core > 0.0), particles.par_iter().any(|p| p.core > 0.0)];
        (self.segments, self.particles) = (segments, particles);
    }

    /// What the pair kernels read, from the elements.
    pub fn refresh(&mut self) {
        let (n, m) = (self.segments.len() as u32, self.particles.len() as u32);
        if self.permutation.len() != self.positions.len() {
            return;
        }
        let is_mixed = n > 0 && m > 0;
        let of_kind = |is_segment: bool| match is_mixed {
            false => Cow::Borrowed(&self.permutation),
            true => Cow::Owned(memory::filtered(self.permutation.iter().copied(), |&k| (k < n) == is_segment)),
        };
        let (segments, particles) = (of_kind(true), of_kind(false));
        self.near_segments = near::SegmentSources::new(self.segment_regularization, self.digits);
        self.near_segments.fill(n as usize, self.cored[0], |k| {
            let s = &self.segments[segments[k] as usize];
            ([s.p1, s.p2], s.circulation, s.core)
        });
        self.near_particles = near::ParticleSources::new(self.particle_regularization, self.digits.splits);
        self.near_particles.fill(m as usize, self.cored[1], |k| {
            let p = &self.particles[(particles[k] - n) as usize];
            (p.x, p.strength, p.core)
        });
    }

    fn order_by(&mut self, permutation: Vec<u32>) {
        let n = self.segments.len() as u32;
        self.permutation = permutation;
        self.before = vec![];
        if !self.segments.is_empty() && !self.particles.is_empty() {
            let mut count = 0;
            self.before = memory::with_room(self.permutation.len() + 1);
            self.before.push(0);
            self.before.extend(self.permutation.iter().map(|&k| {
                count += (k < n) as u32;
                count
            }));
        }
        self.refresh();
    }

    fn segment_run(&self, r: &Range<u32>) -> Range<u32> {
        self.before[r.start as usize]..self.before[r.end as usize]
    }
    fn particle_run(&self, r: &Range<u32>) -> Range<u32> {
        r.start - self.before[r.start as usize]..r.end - self.before[r.end as usize]
    }
    /// The sorted segments and the sorted particles of a cell.
    fn members(&self, cell: &Cell) -> [Range<u32>; 2] {
        let all = cell.begin..cell.end;
        match (self.segments.is_empty(), self.particles.is_empty()) {
            (true, _) => [0..0, all],
            (_, true) => [all, 0..0],
            _ => [self.segment_run(&all), self.particle_run(&all)],
        }
    }

    /// Element with combined number k, strengths divided by `unit`.
    fn core_element(&self, k: u32, unit: f64) -> CoreElement {
        let n = self.segments.len();
        match self.segments.get(k as usize) {
            Some(s) => {
                let half = self.half[k as usize];
                let strength = 2.0 * norm(half) * (s.circulation / unit).abs();
                let core = if strength > 0.0 { s.core } else { 0.0 };
                CoreElement { middle: self.positions[k as usize], half, strength, core, is_segment: true }
            }
            None => {
                let p = &self.particles[k as usize - n];
                let strength = norm(p.strength.map(|v| v / unit));
                CoreElement { middle: p.x, half: [0.0; 3], strength, core: p.core, is_segment: false }
            }
        }
    }

    /// Direct sums of some elements (combined numbers) in double precision, added to `rows`.
    fn add_exact(
        &self,
        part: Part,
        elements: impl Iterator<Item = usize> + Clone,
        at: &near::Points<f64>,
        rows: &mut [&mut [f64]],
    ) {
        let n = self.segments.len();
        let mut segments = near::SegmentSources::<f64>::new(self.segment_regularization, self.digits);
        let mut particles = near::ParticleSources::<f64>::new(self.particle_regularization, false);
        let of_particles = elements.clone().filter(|&k| k >= n).count();
        let of_segments = elements.clone().count() - of_particles;
        segments.list.reserve(of_segments);
        particles.list.reserve(of_particles);
        for k in elements {
            match self.segments.get(k) {
                Some(s) => segments.push(s.p1, s.p2, s.circulation, s.core),
                None => {
                    let p = &self.particles[k - n];
                    particles.push(p.x, p.strength, p.core);
                }
            }
        }
        if of_segments > 0 {
            near::segments(part, &segments, &[0..of_segments as u32], at, 0..at.len(), rows);
        }
        if of_particles > 0 {
            near::particles(part, &particles, &[0..of_particles as u32], at, 0..at.len(), rows);
        }
    }
}

impl<T: Real> SourceSet<T, 3> for VortexSources<T> {
    fn own(&self) -> &dyn SourceSet<T, 3> {
        self
    }
    fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    fn positions(&self) -> (&[[f64; 3]], &[[f64; 3]]) {
        (&self.positions, &self.half)
    }

    fn sort(&mut self, tree: &Tree) {
        self.order_by(memory::copy(&tree.permutation));
    }

    fn survey(&mut self, unit: f64) {
        self.elements = vec![];
        self.cell_cores = CellCores::default();
        if self.cored.contains(&true) {
            self.elements = memory::par_collect(
                self.permutation.par_iter().with_min_len(1024).map(|&k| self.core_element(k, unit)),
            );
        }
    }

    fn survey_cells(&mut self, tree: &Tree) {
        if !self.elements.is_empty() {
            self.cell_cores = CellCores::of(tree, &self.elements, &self.bounds);
        }
    }

    fn has_cores(&self) -> bool {
        !self.elements.is_empty()
    }

    fn core_test(&self, budget: [f64; 2], together: [f64; 2]) -> Box<dyn CoreTest + '_> {
        if self.elements.is_empty() {
            return Box::new(NoCores);
        }
        Box::new(CoreReach::new(&self.bounds, &self.cell_cores, budget, together))
    }

    fn cell_cores(&self, tree: &Tree) -> CellCores {
        if self.elements.is_empty() { CellCores::default() } else { CellCores::of(tree, &self.elements, &self.bounds) }
    }

    fn core_test_of<'a>(
        &'a self,
        cores: &'a CellCores,
        budget: [f64; 2],
        together: [f64; 2],
    ) -> Box<dyn CoreTest + 'a> {
        Box::new(CoreReach::new(&self.bounds, cores, budget, together))
    }

    fn core_extent(&self, share: f64) -> f64 {
        let particles = self.particles.par_iter().map(|p| p.core).reduce(|| 0.0, f64::max);
        let segments = self.segments.par_iter().zip(&self.half).map(|(s, &h)| [s.core, 2.0 * norm(h)]);
        let [core, length] = segments.reduce(|| [0.0; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
        let of_segments =
            if core > 0.0 { segment_extent(self.segment_regularization, core, length, share) } else { 0.0 };
        let reach = |core: f64| if core > 0.0 { core * core_reach(self.particle_regularization, share) } else { 0.0 };
        of_segments.max(reach(particles))
    }

    fn exact(&self, points: &[[f64; 3]], gradient: bool) -> Vec<f64> {
        exact_in_blocks(self.positions.len(), points, rows(3, gradient), |range, at, out| {
            self.add_exact(Part::Regularized, range, at, out)
        })
    }

    fn exact_of(&self, part: Part, ranges: &[Range<u32>], points: &near::Points<f64>, out: &mut [&mut [f64]]) {
        let sorted = ranges.iter().flat_map(|r| &self.permutation[r.start as usize..r.end as usize]);
        self.add_exact(part, sorted.map(|&k| k as usize), points, out);
    }

    fn keep_order(&mut self) {
        if self.permutation.len() != self.positions.len() {
            self.order_by(memory::collect(0..self.positions.len() as u32));
        }
    }

    fn bytes(&self) -> u64 {
        (self.segments.capacity() * size_of::<Segment>()
            + self.particles.capacity() * size_of::<Particle>()
            + (self.positions.capacity() + self.half.capacity()) * 24
            + (self.permutation.capacity() + self.before.capacity()) * 4
            + self.elements.capacity() * size_of::<CoreElement>()
            + self.cell_cores.bytes()) as u64
            + self.near_segments.list.bytes()
            + self.near_particles.list.bytes()
    }

    fn fill(&self, cell: &Cell, to: &mut LeafSources<T, 3>) {
        let unit = 1.0 / cell.scale;
        let from = |x: [f64; 3], i: usize| x[i] - cell.center[i];
        let [segments, particles] = self.members(cell);
        for k in segments {
            // By its ends: a middle is seldom a number, and its rounding is much in a small cell far from zero.
            let (s, [p1, p2]) = self.near_segments.list.at(k as usize);
            let middle = |i: usize| T::of(0.5 * (from(p1, i) + from(p2, i)) * unit);
            to.push_line(std::array::from_fn(middle), s.half().map(|h| T::of(h * unit)), s.strength().map(T::of));
        }
        for k in particles {
            let (p, [x]) = self.near_particles.list.at(k as usize);
            to.push_point(std::array::from_fn(|i| T::of(from(x, i) * unit)), p.strength);
        }
    }

    fn largest_strength(&self) -> f64 {
        let segment = |(s, h): (&Segment, &[f64; 3])| largest(&h.map(|h| 2.0 * s.circulation * h));
        let segments = self.segments.par_iter().zip(&self.half).map(segment);
        segments.chain(self.particles.par_iter().map(|p| largest(&p.strength))).reduce(|| 0.0, f64::max)
    }

    fn source_cells(&self, tree: &Tree, unit: f64, moment: i32) -> Vec<SourceCell> {
        let (segments, particles) = (&self.near_segments.list, &self.near_particles.list);
        let particle = |k: usize| {
            let (p, [x]) = particles.at(k);
            (p.strength.map(|v| v.f64() / unit), x)
        };
        let segment = |k: usize| {
            let (s, ends) = segments.at(k);
            (s.strength().map(|v| v / unit), ends)
        };
        match (self.segments.is_empty(), self.particles.is_empty()) {
            (true, _) => effective_sources(tree, moment, |k| {
                let (strength, x) = particle(k);
                (strength, [x])
            }),
            (_, true) => effective_sources(tree, moment, segment),
            _ => effective_sources(tree, moment, |k| {
                let before = self.before[k];
                if self.before[k + 1] > before {
                    return segment(before as usize);
                }
                let (strength, x) = particle(k - before as usize);
                (strength, [x; 2])
            }),
        }
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

    fn pair_seconds(&self, part: Part, gradient: bool, exact: bool) -> f64 {
        let of = |law, gradient, splits| match exact {
            true => cost::pair::<f64>(law, part, gradient, false),
            false => cost::pair::<T>(law, part, gradient, splits),
        };
        let (n, m) = (self.segments.len() as f64, self.particles.len() as f64);
        let none = Regularization::None;
        let soft = |reg: Regularization, cored: bool| if cored { reg } else { none };
        let segment = soft(self.segment_regularization, self.cored[0]);
        let particle = soft(self.particle_regularization, self.cored[1]);
        let mut sum = 0.0;
        if n > 0.0 {
            sum += n * of(Law::Segment(segment), gradient, self.digits.splits);
        }
        if m > 0.0 {
            sum += m * of(Law::Particle(particle), gradient, self.is_split);
        }
        sum / (n + m).max(1.0)
    }
}

/// Distance from which the core of a segment changes its field by less than `share` of it, and, on the line, by less than that
/// of what it would be beside it.
fn segment_extent(regularization: Regularization, core: f64, length: f64, share: f64) -> f64 {
    match regularization {
        Regularization::None => 0.0,
        Regularization::Offset => 0.5 * length + ((core * length).powi(2) / (2.0 * share)).sqrt().sqrt(),
        _ => core * core_reach(regularization, share).max((segment_deficit(regularization, 0.0) / share).sqrt()),
    }
}

/// Largest component.
pub fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |a, b| f64::max(a, b.abs()))
}

fn norm(v: [f64; 3]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Sources of a block of `exact_in_blocks`.
const EXACT_BLOCK: usize = 2048;

/// Direct sums in double precision of `n` sources at `points`, `[row][point]`, in an order that does not depend on threads.
fn exact_in_blocks(
    n: usize,
    points: &[[f64; 3]],
    rows: usize,
    add: impl Fn(Range<usize>, &near::Points<f64>, &mut [&mut [f64]]) + Sync,
) -> Vec<f64> {
    let count = points.len();
    if count == 0 {
        return vec![];
    }
    let mut at = near::Points::with_capacity(count);
    points.iter().for_each(|&p| at.push(p));
    let blocks: Vec<Vec<f64>> = memory::par_collect(shared((0..n.div_ceil(EXACT_BLOCK)).into_par_iter()).map(|b| {
        let mut out = memory::filled(0.0, rows * count);
        let mut rows: Vec<&mut [f64]> = out.chunks_exact_mut(count).collect();
        add(b * EXACT_BLOCK..((b + 1) * EXACT_BLOCK).min(n), &at, &mut rows);
        out
    }));
    let sum = |k: usize| blocks.iter().map(|b| b[k]).sum();
    memory::par_collect((0..rows * count).into_par_iter().with_min_len(64).map(sum))
}

/// Least share of the sum of absolute strengths that counts as the strength of a cell: sources that cancel in the sum but
/// not in higher multipoles (a ring, a shear layer) may be underestimated eightfold, not more.
const COHERENT_SHARE: f64 = 0.125;

/// Members of a cell that its effective radius is taken from.
const SPREAD_SAMPLE: usize = 256;

/// What each cell's sources amount to in a truncation error. The strength is the largest of the norm of their sum, the root
/// of the sum of squares, and a share of the sum of absolute values; `element` gives vector strength and ends of a sorted element.
fn effective_sources<const E: usize>(
    tree: &Tree,
    moment: i32,
    element: impl Fn(usize) -> ([f64; 3], [[f64; 3]; E]) + Sync,
) -> Vec<SourceCell> {
    let of_cell = |c: &Cell| {
        // Sum, sum of squares and of absolute values, largest.
        let mut sums = [0.0; 6];
        let step = if c.is_leaf() { 1 } else { c.len().div_ceil(SPREAD_SAMPLE) };
        let (mut power, mut weight) = (0.0, 0.0);
        // In units of the radius, so that the power neither over- nor underflows.
        let unit = if c.radius > 0.0 { 1.0 / (c.radius * c.radius) } else { 0.0 };
        for k in (c.begin..c.end).step_by(step) {
            let (a, ends) = element(k as usize);
            let square = a.iter().map(|v| v * v).sum::<f64>();
            if c.is_leaf() {
                (0..3).for_each(|i| sums[i] += a[i]);
                sums[3] += square;
                sums[4] += square.sqrt();
                sums[5] = f64::max(sums[5], square.sqrt());
            }
            for e in ends {
                let r2: f64 = (0..3).map(|i| (e[i] - c.center[i]).powi(2)).sum();
                power += square * integer_power(r2 * unit, moment as usize);
                weight += square;
            }
        }
        let spread = if weight > 0.0 { c.radius * (power / weight).powf(0.5 / moment as f64) } else { 0.0 };
        (sums, spread)
    };
    let mut cells: Vec<([f64; 6], f64)> = memory::par_collect(shared(tree.cells.par_iter()).map(of_cell));
    tree.gather(&mut cells, |_, (sums, _), children| {
        for (child, _) in children {
            (0..5).for_each(|i| sums[i] += child[i]);
            sums[5] = sums[5].max(child[5]);
        }
    });
    memory::par_collect(cells.par_iter().with_min_len(1024).map(|(s, spread)| {
        let sum = s[..3].iter().map(|v| v * v).sum::<f64>();
        let sum = sum.max(s[3]).sqrt();
        let strength = sum.max(COHERENT_SHARE * s[4]);
        let alike = if s[5] > 0.0 { (s[3] / (s[5] * strength)).powi(2).max(1.0) } else { 1.0 };
        SourceCell { strength, spread: *spread, peak: s[5], sum, alike }
    }))
}

/// Charges.
pub struct ChargeSources<T> {
    pub positions: Vec<[f64; 3]>,
    pub charge: Vec<f64>,
    permutation: Vec<u32>,
    near: near::ChargeSources<T>,
    splits: bool,
    /// As for vortices.
    is_split: bool,
}

impl<T: Real> Default for ChargeSources<T> {
    fn default() -> Self {
        let near = near::ChargeSources::new(false);
        Self { positions: vec![], charge: vec![], permutation: vec![], near, splits: false, is_split: false }
    }
}

impl<T: Real> ChargeSources<T> {
    /// As for vortices.
    fn add_exact(
        &self,
        elements: impl Iterator<Item = usize> + Clone,
        at: &near::Points<f64>,
        rows: &mut [&mut [f64]],
    ) {
        let mut list = near::ChargeSources::<f64>::new(false);
        let count = elements.clone().count();
        list.list.reserve(count);
        elements.for_each(|k| list.push(self.positions[k], self.charge[k]));
        near::charges(&list, &[0..count as u32], at, 0..at.len(), rows);
    }

    /// As for vortices.
    pub fn set_elements(&mut self, positions: Vec<[f64; 3]>, charge: Vec<f64>, splits: bool) {
        (self.positions, self.charge, self.splits) = (positions, charge, splits);
        let positions = self.positions.par_iter().copied();
        self.is_split = splits && near::are_mostly_split::<T>(positions);
        self.permutation.clear();
    }
    pub fn refresh(&mut self) {
        if self.permutation.len() != self.positions.len() {
            return;
        }
        self.near = near::ChargeSources::new(self.splits);
        self.near.fill(self.positions.len(), |k| {
            let k = self.permutation[k] as usize;
            (self.positions[k], self.charge[k])
        });
    }
}

impl<T: Real> SourceSet<T, 1> for ChargeSources<T> {
    fn own(&self) -> &dyn SourceSet<T, 1> {
        self
    }
    fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
    fn positions(&self) -> (&[[f64; 3]], &[[f64; 3]]) {
        (&self.positions, &[])
    }
    fn sort(&mut self, tree: &Tree) {
        self.permutation = memory::copy(&tree.permutation);
        self.refresh();
    }
    fn survey(&mut self, _: f64) {}
    fn survey_cells(&mut self, _: &Tree) {}
    fn has_cores(&self) -> bool {
        false
    }
    fn core_test(&self, _: [f64; 2], _: [f64; 2]) -> Box<dyn CoreTest + '_> {
        Box::new(NoCores)
    }
    fn keep_order(&mut self) {
        if self.permutation.len() != self.positions.len() {
            self.permutation = memory::collect(0..self.positions.len() as u32);
            self.refresh();
        }
    }
    fn bytes(&self) -> u64 {
        (self.positions.capacity() * 24 + self.charge.capacity() * 8 + self.permutation.capacity() * 4) as u64
            + self.near.list.bytes()
    }
    fn fill(&self, cell: &Cell, to: &mut LeafSources<T, 1>) {
        for k in cell.begin..cell.end {
            let (q, [x]) = self.near.list.at(k as usize);
            to.push_point(std::array::from_fn(|i| T::of((x[i] - cell.center[i]) / cell.scale)), [q.charge]);
        }
    }
    fn largest_strength(&self) -> f64 {
        largest(&self.charge)
    }
    fn square_moment(&self, from: [f64; 3]) -> f64 {
        let one = |(x, q): (&[f64; 3], &f64)| q * (0..3).map(|i| (x[i] - from[i]).powi(2)).sum::<f64>();
        self.positions.iter().zip(&self.charge).map(one).sum()
    }
    fn source_cells(&self, tree: &Tree, unit: f64, moment: i32) -> Vec<SourceCell> {
        effective_sources(tree, moment, |k| {
            let (q, places) = self.near.list.at(k);
            ([q.charge.f64() / unit, 0.0, 0.0], places)
        })
    }
    fn exact(&self, points: &[[f64; 3]], gradient: bool) -> Vec<f64> {
        exact_in_blocks(self.positions.len(), points, rows(1, gradient), |range, at, out| {
            self.add_exact(range, at, out);
        })
    }
    fn exact_of(&self, part: Part, ranges: &[Range<u32>], points: &near::Points<f64>, out: &mut [&mut [f64]]) {
        if part != Part::Correction {
            let sorted = ranges.iter().flat_map(|r| &self.permutation[r.start as usize..r.end as usize]);
            self.add_exact(sorted.map(|&k| k as usize), points, out);
        }
    }
    fn near(&self, part: Part, ranges: &[Range<u32>], targets: &near::Points<T>, out: &mut [&mut [T]]) {
        if part != Part::Correction {
            near::charges(&self.near, ranges, targets, 0..targets.len(), out);
        }
    }
    fn pair_seconds(&self, _: Part, gradient: bool, exact: bool) -> f64 {
        match exact {
            true => cost::pair::<f64>(Law::Charge, Part::Regularized, gradient, false),
            false => cost::pair::<T>(Law::Charge, Part::Regularized, gradient, self.is_split),
        }
    }
}
