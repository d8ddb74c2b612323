//! Where the cores of elements change the field by more than a budget.
//!
//! Enters: elements with their cores, a tree, the budget of a core that is left out (`Budget::core`). Leaves: for a source
//! cell and a target cell whether any core matters between them, and for leaves which elements do. The measure is absolute:
//! strength times what the core takes from the singular kernel, not the share of it.
//!
//! With S the strength (|a|, or |Γ|ℓ), r the distance to the element and ρ that to a segment's line, a core takes from the
//! velocity at most S (1-g)/r² (particles) or S c/r³ · t(1-F), t = ρ/c (segments: the singular field at r is at most
//! S ρ/r³), and from its gradient at most S/r³ times 2(1-g) + 3(1-G), or 3(1-F) + (2-H).

mod bounds;
mod directions;
mod distances;
#[cfg(test)]
mod tests;

use super::lists::CoreTest;
use super::shared;
use super::tree::{Cell, Tree};
use crate::memory;
use crate::simd::dispatch;
pub use bounds::CoreBounds;
use bounds::Weights;
use directions::Group;
use distances::{BLOCK, Distances, Near};
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

/// Largest values over elements that have a core, and the sum of their strengths.
#[derive(Debug, Clone, Copy, Default)]
struct Largest {
    strength: f64,
    sum: f64,
    core: f64,
    length: f64,
}

impl Largest {
    fn of(e: &CoreElement) -> Self {
        Self { strength: e.strength, sum: e.strength, core: e.core, length: 2.0 * dot(e.half, e.half).sqrt() }
    }

    fn join(self, o: Self) -> Self {
        Self {
            strength: self.strength.max(o.strength),
            sum: self.sum + o.sum,
            core: self.core.max(o.core),
            length: self.length.max(o.length),
        }
    }

    /// One element that takes at least as much as all together.
    fn as_one(self) -> Self {
        Self { strength: self.sum, ..self }
    }
}

/// The largest cores of all cells of a source tree.
#[derive(Default)]
pub struct CellCores {
    particles: Vec<Largest>,
    segments: Vec<[Group; 3]>,
    distances: Distances,
    weights: Vec<Weights>,
}

impl CellCores {
    /// `elements`: in the order of the tree.
    pub fn of(tree: &Tree, elements: &[CoreElement], bounds: &CoreBounds) -> Self {
        let of_leaf = |c: &Cell| {
            let members = if c.is_leaf() { &elements[c.begin as usize..c.end as usize] } else { &[] };
            let cored = members.iter().filter(|e| e.core > 0.0 && !e.is_segment);
            cored.map(Largest::of).fold(Largest::default(), Largest::join)
        };
        let mut particles: Vec<Largest> = memory::par_collect(shared(tree.cells.par_iter()).map(of_leaf));
        tree.gather(&mut particles, |_, all, children| *all = children.iter().fold(*all, |a, c| a.join(*c)));
        let segments = directions::groups(tree, elements);
        let distances = Distances::of(tree, elements, bounds.offset);
        let weights = memory::par_collect(elements.par_iter().with_min_len(4096).map(|e| bounds.weights(e)));
        Self { particles, segments, distances, weights }
    }

    pub fn bytes(&self) -> usize {
        let largest =
            self.particles.capacity() * size_of::<Largest>() + self.segments.capacity() * size_of::<[Group; 3]>();
        largest + self.distances.bytes() + self.weights.capacity() * size_of::<Weights>()
    }
}

/// The test for one budget: the cores of a cell matter within a distance of its ball, those of its segments near their lines only.
pub struct CoreReach<'a> {
    bounds: &'a CoreBounds,
    cells: &'a CellCores,
    /// Errors of field and gradient at which a core may be left out, and at which all of a cell may.
    budget: [f64; 2],
    together: [f64; 2],
    /// Of each cell.
    reach: Vec<Reach>,
}

/// How far the cores of a cell matter, and what they take beyond.
struct Reach {
    particles: f64,
    segments: f64,
    /// All particles as one.
    one_particle: Largest,
    /// What all segments take at distance one, wherever their lines are: it falls with the third power, but for OFFSET.
    of_segments: [f64; 2],
}

impl<'a> CoreReach<'a> {
    pub fn new(bounds: &'a CoreBounds, cells: &'a CellCores, budget: [f64; 2], together: [f64; 2]) -> Self {
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
        let one = |(&p, groups): (&Largest, &[Group; 3])| {
            let s = directions::largest(groups);
            Reach {
                particles: within(p, &|r| bounds.of_particle(p, r)),
                segments: within(s, &|r| bounds.of_segment(s, r)),
                one_particle: p.as_one(),
                of_segments: bounds.of_segment(s.as_one(), 1.0),
            }
        };
        let reach = memory::par_collect(cells.particles.par_iter().zip(&cells.segments).map(one));
        Self { bounds, cells, budget, together, reach }
    }

    /// Writes what the core of each element takes at most from field and gradient in the target cell; no number where there
    /// is no bound. Returns the sums of those that may be left out one by one, and whether all of them may.
    fn bounds(&self, among: Range<u32>, target: &Cell, bounds: &mut Vec<[f64; 2]>) -> ([f64; 2], bool) {
        bounds.clear();
        memory::resize(bounds, among.len(), [0.0; 2]);
        let (mut left, mut all) = ([0.0; 2], true);
        let (mut inverse, mut q) = ([0.0; BLOCK], [0.0; BLOCK]);
        let (of, mut begin) = (&self.cells.distances, among.start);
        while begin < among.end {
            let leaf = of.leaf(begin);
            let end = among.end.min(leaf.end).min(begin + BLOCK as u32);
            dispatch(Near { all: of, leaf, among: begin..end, target, inverse: &mut inverse, q: &mut q });
            let unit = 1.0 / leaf.scale;
            let weights = &self.cells.weights[begin as usize..end as usize];
            let to = &mut bounds[(begin - among.start) as usize..];
            for (((w, &inverse), &q), to) in weights.iter().zip(&inverse).zip(&q).zip(to) {
                let b = self.bounds.of_element(w, f64::from(inverse) * unit, q);
                let is_small = within(b, self.budget);
                all &= is_small;
                left = [0, 1].map(|k| left[k] + if is_small { b[k] } else { 0.0 });
                *to = b;
            }
            begin = end;
        }
        (left, all)
    }
}

impl CoreReach<'_> {
    /// What the cores of all segments of a cell take at most, by the distances from their lines; `None` where they matter. `radii` of both
    /// cells together, `d` from the middle of the cell to that of the target, `square` of its length.
    fn beside_segments(&self, source: u32, radii: f64, d: [f64; 3], square: f64) -> Option<[f64; 2]> {
        let distance = square.sqrt();
        let (r, slack) = (distance - radii, radii + directions::MARGIN * distance);
        if r <= 0.0 {
            return None;
        }
        let mut all = [0.0; 2];
        for group in self.cells.segments[source as usize].iter().filter(|g| g.largest.core > 0.0) {
            let largest = group.largest;
            let one = self.bounds.of_segment_beside(largest, r, group.distance_from_lines(d, square, slack));
            all = [0, 1].map(|k| all[k] + one[k] * (largest.sum / largest.strength));
            if !within(one, self.budget) || !within(all, self.together) {
                return None;
            }
        }
        Some(all)
    }
}

impl CoreTest for CoreReach<'_> {
    #[inline]
    fn left_out(&self, source: u32, cell: &Cell, target: &Cell) -> Option<[f64; 2]> {
        let Some(reach) = self.reach.get(source as usize) else { return Some([0.0; 2]) };
        if reach.particles == 0.0 && reach.segments == 0.0 {
            return Some([0.0; 2]);
        }
        let d: [f64; 3] = std::array::from_fn(|i| target.center[i] - cell.center[i]);
        let (square, radii) = (dot(d, d), cell.radius + target.radius);
        let is_within = |reach: f64| reach > 0.0 && square < (reach + radii).powi(2);
        if is_within(reach.particles) {
            return None;
        }
        let r = square.sqrt() - radii;
        let particles = if reach.particles > 0.0 { self.bounds.of_particle(reach.one_particle, r) } else { [0.0; 2] };
        let segments = match reach.segments {
            0.0 => [0.0; 2],
            within if is_within(within) => self.beside_segments(source, radii, d, square)?,
            _ if self.bounds.offset => {
                self.bounds.of_segment(directions::largest(&self.cells.segments[source as usize]).as_one(), r)
            }
            _ => reach.of_segments.map(|v| v / (r * r * r)),
        };
        Some([0, 1].map(|k| particles[k] + segments[k]))
    }

    fn elements(
        &self,
        among: Range<u32>,
        target: &Cell,
        most: [f64; 2],
        scratch: &mut Vec<[f64; 2]>,
        out: &mut Vec<Range<u32>>,
    ) -> [f64; 2] {
        let most = [0, 1].map(|k| self.together[k].min(most[k]));
        let (left, all) = self.bounds(among.clone(), target, scratch);
        let together = within(left, most);
        if all && together {
            return left;
        }
        // Each may be left out; where all together may not, each is held to its share.
        let share = [0, 1].map(|k| self.budget[k].min(most[k] / among.len() as f64));
        let limit = if together { self.budget } else { share };
        let mut left = [0.0; 2];
        for (k, &b) in among.zip(scratch.iter()) {
            if within(b, limit) {
                left = [0, 1].map(|k| left[k] + b[k]);
                continue;
            }
            match out.last_mut() {
                Some(last) if last.end == k => last.end = k + 1,
                _ => memory::push(out, k..k + 1),
            }
        }
        left
    }
}

/// No number is above every limit.
#[inline]
fn within(b: [f64; 2], limit: [f64; 2]) -> bool {
    b[0] <= limit[0] && b[1] <= limit[1]
}

/// No element has a core.
pub struct NoCores;

impl CoreTest for NoCores {
    fn left_out(&self, _: u32, _: &Cell, _: &Cell) -> Option<[f64; 2]> {
        Some([0.0; 2])
    }
    fn elements(
        &self,
        _: Range<u32>,
        _: &Cell,
        _: [f64; 2],
        _: &mut Vec<[f64; 2]>,
        _: &mut Vec<Range<u32>>,
    ) -> [f64; 2] {
        [0.0; 2]
    }
}

/// Distances below this do not occur: positions have 53 bits of the domain, and clusters may sit at its origin.
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
