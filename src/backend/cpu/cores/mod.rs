//! Where the cores of elements change the field by more than a budget.
//!
//! Enters: elements with their cores, a tree, the budget of a core that is left out (`Budget::core`). Leaves: for a source
//! cell and a target cell whether any core matters between them, and for leaves which elements do. The measure is absolute:
//! strength times what the core takes from the singular kernel, not the share of it.
//!
//! With S the strength (|a|, or |Γ|ℓ), r the distance to the element and ρ that to a segment's line, a core takes from the
//! velocity at most S (1-g)/r² (particles) or S c/r³ · t(1-F), t = ρ/c (segments: the singular field at r is at most
//! S ρ/r³), and from its gradient at most S/r³ times 2(1-g) + 3(1-G), or 3(1-F) + (2-H).

use super::lists::CoreTest;
use super::tree::{Cell, Tree};
use crate::math::regularization::{self, is_for_particles};
use crate::memory;
use crate::options::Regularization;
use rayon::prelude::*;
use std::ops::Range;

/// One element, in the order of the tree.
#[derive(Debug, Clone, Copy)]
pub struct CoreElement {
    pub middle: [f64; 3],
    /// From the middle to the second end; zero for a particle.
    pub half: [f64; 3],
    /// |a| or |Γ|ℓ.
    pub strength: f64,
    /// Zero: nothing to correct.
    pub core: f64,
    pub is_segment: bool,
}

/// Largest values over the elements of a cell that have a core, and the sum of their strengths.
#[derive(Debug, Clone, Copy, Default)]
struct Largest {
    strength: f64,
    sum: f64,
    core: f64,
    length: f64,
}

impl Largest {
    fn join(self, o: Self) -> Self {
        Self {
            strength: self.strength.max(o.strength),
            sum: self.sum + o.sum,
            core: self.core.max(o.core),
            length: self.length.max(o.length),
        }
    }
}

/// Bins an octave of the distance, and the octaves that the tables span.
const BINS_LOG2: u32 = 4;
const LEAST: i32 = -10;
const OCTAVES: i32 = 42;

/// Upper bounds over the distance in cores, of the field and of its gradient; they never grow with the distance.
struct Bounds {
    values: Vec<[f32; 2]>,
}

impl Bounds {
    fn new(f: impl Fn(f64) -> [f64; 2]) -> Self {
        let bins = (OCTAVES << BINS_LOG2) as usize;
        let mut values = memory::filled([0.0f32; 2], bins);
        let mut most = [0.0f64; 2];
        for k in (0..bins).rev() {
            // The lower edge of the bin, where a falling function is largest.
            let q = f64::from(f32::from_bits(Self::first() + ((k as u32) << (23 - BINS_LOG2))));
            let now = f(q);
            most = [most[0].max(now[0]), most[1].max(now[1])];
            values[k] = most.map(|v| (v * (1.0 + 1e-6)) as f32);
        }
        Self { values }
    }

    const fn first() -> u32 {
        ((127 + LEAST) as u32) << 23
    }

    #[inline]
    fn at(&self, q: f64) -> [f64; 2] {
        let k = (q as f32).to_bits().saturating_sub(Self::first()) >> (23 - BINS_LOG2);
        self.values[(k as usize).min(self.values.len() - 1)].map(f64::from)
    }
}

/// See the head of this file; for the regularizations of one plan.
pub struct CoreBounds {
    particle: Option<Bounds>,
    segment: Option<Bounds>,
    offset: bool,
}

impl CoreBounds {
    pub fn new(segment: Regularization, particle: Regularization) -> Self {
        debug_assert!(is_for_particles(particle));
        let none = Regularization::None;
        Self {
            particle: (particle != none).then(|| {
                Bounds::new(|q| {
                    let (g, slope) = regularization::particle_shortfalls(particle, q);
                    [g, 2.0 * g + 3.0 * slope]
                })
            }),
            segment: (segment != none && segment != Regularization::Offset).then(|| {
                Bounds::new(|t| {
                    let (f, h) = regularization::segment_shortfalls(segment, t);
                    [regularization::segment_deficit(segment, t), 3.0 * f + h]
                })
            }),
            offset: segment == Regularization::Offset,
        }
    }

    fn of_particle(&self, l: Largest, r: f64) -> [f64; 2] {
        match &self.particle {
            Some(b) if l.core > 0.0 => {
                let [u, g] = b.at(r / l.core);
                [l.strength * u / (r * r), l.strength * g / (r * r * r)]
            }
            _ => [0.0; 2],
        }
    }

    /// `r`: distance to the segment (OFFSET: to its middle); `rho`: to its line.
    fn of_segment(&self, l: Largest, r: f64, rho: f64) -> [f64; 2] {
        if l.core == 0.0 {
            return [0.0; 2];
        }
        if self.offset {
            let u = l.strength * regularization::offset_shortfall(r, l.core, l.length) / (r * r);
            return [u, 6.0 * u / r];
        }
        match &self.segment {
            Some(b) => {
                let ([u, g], r3) = (b.at(rho / l.core), r * r * r);
                [l.strength * l.core * u / r3, l.strength * g / r3]
            }
            None => [0.0; 2],
        }
    }
}

/// The largest cores of all cells of a source tree.
#[derive(Default)]
pub struct CellCores {
    particles: Vec<Largest>,
    segments: Vec<Largest>,
}

impl CellCores {
    /// `elements`: in the order of the tree.
    pub fn of(tree: &Tree, elements: &[CoreElement]) -> Self {
        let of_leaf = |c: &Cell, segments: bool| {
            let members = if c.is_leaf() { &elements[c.begin as usize..c.end as usize] } else { &[] };
            members
                .iter()
                .filter(|e| e.core > 0.0 && e.is_segment == segments)
                .map(|e| Largest {
                    strength: e.strength,
                    sum: e.strength,
                    core: e.core,
                    length: 2.0 * dot(e.half, e.half).sqrt(),
                })
                .fold(Largest::default(), Largest::join)
        };
        let all = |segments: bool| {
            let mut of: Vec<Largest> = memory::par_collect(tree.cells.par_iter().map(|c| of_leaf(c, segments)));
            for c in (1..of.len()).rev() {
                let parent = tree.cells[c].parent as usize;
                of[parent] = of[parent].join(of[c]);
            }
            of
        };
        Self { particles: all(false), segments: all(true) }
    }

    pub fn bytes(&self) -> usize {
        (self.particles.capacity() + self.segments.capacity()) * size_of::<Largest>()
    }
}

/// The test for one budget: every cell's cores matter within a distance of its ball.
pub struct CoreReach<'a> {
    bounds: &'a CoreBounds,
    elements: &'a [CoreElement],
    /// Errors of field and gradient at which a core may be left out, and at which all of a cell may.
    budget: [f64; 2],
    together: [f64; 2],
    reach: Vec<f64>,
    /// Squared distance from the middle of each element beyond which its core may be left out wherever its line runs.
    element_reach: Vec<f32>,
}

impl<'a> CoreReach<'a> {
    pub fn new(
        bounds: &'a CoreBounds,
        cells: &CellCores,
        elements: &'a [CoreElement],
        budget: [f64; 2],
        together: [f64; 2],
    ) -> Self {
        let within = |l: Largest, of: &dyn Fn(f64) -> [f64; 2]| {
            if l.core == 0.0 || l.strength == 0.0 {
                return 0.0;
            }
            // `of` is for the strongest; all together are so many times as strong.
            let all = l.sum / l.strength;
            let allowed = [0, 1].map(|k| budget[k].min(together[k] / all));
            farthest(|r| {
                let [u, g] = of(r);
                u > allowed[0] || g > allowed[1]
            })
        };
        let one = |(&p, &s): (&Largest, &Largest)| {
            f64::max(within(p, &|r| bounds.of_particle(p, r)), within(s, &|r| bounds.of_segment(s, r, 0.0)))
        };
        let reach = memory::par_collect(cells.particles.par_iter().zip(&cells.segments).map(one));
        // A segment is felt at a distance from its nearest point; OFFSET and particles are taken as they come.
        let element = |e: &CoreElement| match &bounds.segment {
            Some(b) if e.is_segment && e.core > 0.0 => {
                let [u, g] = b.at(0.0);
                let cube = (e.strength * e.core * u / budget[0]).max(e.strength * g / budget[1]);
                (cube.cbrt() + dot(e.half, e.half).sqrt()) as f32 * (1.0 + 1e-6)
            }
            _ => f32::INFINITY,
        };
        let element_reach = memory::par_collect(elements.par_iter().with_min_len(4096).map(element));
        Self { bounds, elements, budget, together, reach, element_reach }
    }

    /// What an element that is out of its reach takes at most: a bound where its line runs through the target.
    fn beyond(&self, e: &CoreElement, square: f64, radius: f64) -> [f64; 2] {
        let r = square.sqrt() - radius - dot(e.half, e.half).sqrt();
        self.bounds.of_segment(Largest { strength: e.strength, sum: 0.0, core: e.core, length: 0.0 }, r, 0.0)
    }

    /// What the core of an element takes at most from field and gradient within `radius` of `x`; `None`: without bound.
    #[inline]
    fn taken(&self, e: &CoreElement, x: [f64; 3], radius: f64) -> Option<[f64; 2]> {
        let d: [f64; 3] = std::array::from_fn(|i| x[i] - e.middle[i]);
        let (square, one) = (dot(d, d), Largest { strength: e.strength, sum: 0.0, core: e.core, length: 0.0 });
        if !e.is_segment {
            let r = square.sqrt() - radius;
            return (r > 0.0).then(|| self.bounds.of_particle(one, r));
        }
        let h2 = dot(e.half, e.half);
        let along = dot(d, e.half) / h2;
        let rho2 = (square - along * along * h2).max(0.0);
        let beyond = (along.abs() - 1.0).max(0.0);
        let r = if self.bounds.offset { square } else { rho2 + beyond * beyond * h2 }.sqrt() - radius;
        let length = if self.bounds.offset { 2.0 * h2.sqrt() } else { 0.0 };
        (r > 0.0).then(|| self.bounds.of_segment(Largest { length, ..one }, r, (rho2.sqrt() - radius).max(0.0)))
    }

    /// Appends the elements whose cores take more than `limit`; what the others take is summed.
    fn above(&self, among: Range<u32>, target: &Cell, limit: [f64; 2], out: &mut Vec<Range<u32>>) -> [f64; 2] {
        let mut left = [0.0; 2];
        for k in among {
            let e = &self.elements[k as usize];
            if e.core == 0.0 {
                continue;
            }
            let square = (0..3).map(|i| (target.center[i] - e.middle[i]).powi(2)).sum::<f64>();
            let reach = f64::from(self.element_reach[k as usize]) + target.radius;
            if square > reach * reach && limit == self.budget {
                let [u, g] = self.beyond(e, square, target.radius);
                left = [left[0] + u, left[1] + g];
                continue;
            }
            match self.taken(e, target.center, target.radius) {
                Some([u, g]) if u <= limit[0] && g <= limit[1] => left = [left[0] + u, left[1] + g],
                _ => match out.last_mut() {
                    Some(last) if last.end == k => last.end = k + 1,
                    _ => memory::push(out, k..k + 1),
                },
            }
        }
        left
    }
}

impl CoreTest for CoreReach<'_> {
    #[inline]
    fn matters(&self, source: u32, cell: &Cell, target: &Cell) -> bool {
        let Some(&reach) = self.reach.get(source as usize) else { return false };
        let limit = reach + cell.radius + target.radius;
        reach > 0.0 && (0..3).map(|i| (cell.center[i] - target.center[i]).powi(2)).sum::<f64>() < limit * limit
    }

    fn elements(&self, among: Range<u32>, target: &Cell, out: &mut Vec<Range<u32>>) {
        let (before, last) = (out.len(), out.last().cloned());
        let left = self.above(among.clone(), target, self.budget, out);
        if left[0] <= self.together[0] && left[1] <= self.together[1] {
            return;
        }
        // Each may be left out, all together may not.
        out.truncate(before);
        if let (Some(end), Some(last)) = (out.last_mut(), last) {
            *end = last;
        }
        let each = [0, 1].map(|k| self.budget[k].min(self.together[k] / among.len() as f64));
        self.above(among, target, each, out);
    }
}

/// No element has a core.
pub struct NoCores;

impl CoreTest for NoCores {
    fn matters(&self, _: u32, _: &Cell, _: &Cell) -> bool {
        false
    }
    fn elements(&self, _: Range<u32>, _: &Cell, _: &mut Vec<Range<u32>>) {}
}

/// Distances below this do not occur: places have 53 bits of the domain, and clusters may sit at its origin.
const NEAREST: f64 = 1e-40;

/// Largest distance at which `matters`, which holds up to some distance, still holds; rounded up by at most 2 %.
fn farthest(matters: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (NEAREST, 1e6f64);
    if !matters(low) {
        return 0.0;
    }
    if matters(high) {
        return f64::INFINITY;
    }
    while high > 1.02 * low {
        let middle = (low * high).sqrt();
        if matters(middle) { low = middle } else { high = middle }
    }
    high
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
