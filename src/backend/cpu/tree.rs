//! The adaptive octree over one set of points (source midpoints or targets).
//!
//! Enters: points in units of the root cube, and for segments the half vector from midpoint to P2.
//! Leaves: the permutation by Morton key, and cells in breadth-first order (children of a cell stand together, a level is
//! a range), each with the tight ball of what it really holds: wakes are thin and cubes are mostly empty.

use super::lists::power;
use super::{shared, sort};
use crate::backend::draw::stratified;
use crate::math::morton::interleave;
use crate::memory;
use rayon::prelude::*;

/// Cells, or points, that a thread takes at least, where each takes long and where it takes not: waking the others costs more.
const FEW: usize = 32;
const MANY: usize = 1024;

/// Levels of the Morton key: 21 bits an axis.
pub const DEEPEST: u32 = 21;

/// The cube that both trees share: lower corner and edge, in the units of the points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Root {
    pub corner: [f64; 3],
    pub edge: f64,
}

impl Root {
    /// The smallest cube, slightly widened, around all boxes given as (min, max).
    pub fn around(boxes: &[Corners]) -> Self {
        let (low, high) = joined(boxes.iter().copied());
        let size = (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max);
        let edge = if size > 0.0 { size * (1.0 + 1e-9) } else { 1.0 };
        Self { corner: std::array::from_fn(|i| 0.5 * (low[i] + high[i] - edge)), edge }
    }

    /// Of the given edge, doubled or halved until it holds the box; its cells have the sizes of those of any other such root.
    pub fn with_edge(edge: f64, corners: Corners) -> Self {
        let around = Self::around(&[corners]);
        Self { edge: edge * (around.edge / edge).log2().ceil().exp2(), ..around }
    }

    /// The edge for two sets of points with which the cells of some level hold `ideal` points of each in the geometric mean: of an even
    /// cloud, the levels of one root differ by a factor of eight. None where the cells of the larger box are near to that, or where
    /// there are too few points to tell.
    pub fn edge_for_cells_of(ideal: f64, sets: [(&[[f64; 3]], Corners); 2]) -> Option<f64> {
        let roots = sets.map(|(_, corners)| Self::around(&[corners]));
        let sets = [0, 1].map(|k| (sets[k].0, roots[k])).into_iter().filter(|(points, _)| points.len() >= DRAWN);
        let edge = sets.clone().map(|(_, root)| root.edge).fold(0.0, f64::max);
        let drawn: Vec<Drawn> = sets.map(|(points, root)| Drawn::of(points, Self { edge, ..root })).collect();
        let level = level_of(ideal, &drawn)?;
        let wanted = (level - level.ceil()).exp2();
        let off = |part: &f64| (part / wanted).ln().abs();
        let part = PARTS.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))?;
        // Half of the edge is the next level.
        Some(if part > 0.5 { edge / part } else { edge })
    }
}

/// Parts of the root's edge that the larger box may have: cells of whole numbers fill it.
const PARTS: [f64; 5] = [0.5, 0.625, 0.75, 0.875, 1.0];
/// A level whose cells hold up to so many times more or less than the ideal is near to it.
const NEAR_IDEAL: f64 = 1.6;
/// Points that are drawn to find what cells hold, and pairs of them in a cell below which a level tells nothing.
const DRAWN: usize = 4096;
const FEWEST_PAIRS: usize = 32;

/// Keys of points that were drawn from a set, sorted, and how many the set has.
struct Drawn {
    keys: Vec<u64>,
    all: usize,
}

impl Drawn {
    fn of(points: &[[f64; 3]], root: Root) -> Self {
        let drawn = stratified(points.len(), DRAWN, 2).into_iter();
        let mut keys = memory::collect(drawn.map(|k| key(points[k], root)));
        keys.sort_unstable();
        Self { keys, all: points.len() }
    }

    /// Points in the cell of a point, in the mean.
    fn held(&self, level: u32) -> Option<f64> {
        let cells = self.keys.chunk_by(|a, b| (a ^ b) >> (3 * (DEEPEST - level)) == 0);
        let pairs: usize = cells.map(|c| c.len() * (c.len() - 1) / 2).sum();
        (pairs >= FEWEST_PAIRS).then(|| 2.0 * pairs as f64 * self.all as f64 / (self.keys.len() as f64).powi(2))
    }
}

/// The level, between levels too, at which cells hold `ideal` points of each set in the geometric mean; none where a level is near
/// to that, or where it is not found.
fn level_of(ideal: f64, sets: &[Drawn]) -> Option<f64> {
    let held = |level: u32| {
        let product = sets.iter().map(|set| set.held(level)).product::<Option<f64>>()?;
        Some(product.powf(1.0 / sets.len() as f64))
    };
    let is_near = |held: f64| held.max(ideal) <= NEAR_IDEAL * held.min(ideal);
    let mut above = held(0).filter(|&held| !sets.is_empty() && held > ideal && !is_near(held))?;
    for level in 1..=DEEPEST {
        let here = held(level).filter(|&held| !is_near(held))?;
        if here < ideal {
            return Some(f64::from(level - 1) + (above / ideal).ln() / (above / here).ln());
        }
        above = here;
    }
    None
}

/// One cell.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// Points `begin..end` in sorted order.
    pub begin: u32,
    pub end: u32,
    /// Children `first_child..first_child + children`; none: a leaf.
    pub first_child: u32,
    pub children: u32,
    pub parent: u32,
    /// Of the cell's sources, those that are on other ranks and came as multipoles only.
    pub absent: u32,
    /// Centre of the tight box.
    pub center: [f64; 3],
    /// All that the cell holds lies within this distance of the centre (for segments both end points).
    pub radius: f64,
    /// (mean of r^2q)^(1/2q), q the `moment` of the build: what the radius means for multipoles of degree q.
    pub spread: f64,
    /// Unit of length of the cell's expansions; positive even where the radius is zero.
    pub scale: f64,
}

impl Cell {
    pub fn len(&self) -> usize {
        (self.end - self.begin) as usize
    }
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }
    pub fn is_leaf(&self) -> bool {
        self.children == 0
    }
    /// All of its sources are here: it may be summed directly.
    pub fn is_whole(&self) -> bool {
        self.absent == 0
    }
}

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub cells: Vec<Cell>,
    /// `permutation[sorted] = original`.
    pub permutation: Vec<u32>,
    /// Cells of level k are `levels[k]..levels[k+1]`; the last entry is the number of cells.
    pub levels: Vec<usize>,
    pub leaves: Vec<u32>,
}

/// Lower and upper corner of a box.
pub type Corners = ([f64; 3], [f64; 3]);

/// The box of nothing.
const NOTHING: Corners = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);

fn join(a: Corners, b: Corners) -> Corners {
    (std::array::from_fn(|i| a.0[i].min(b.0[i])), std::array::from_fn(|i| a.1[i].max(b.1[i])))
}

/// The box around all boxes; of none, infinities.
pub fn joined(boxes: impl IntoIterator<Item = Corners>) -> Corners {
    boxes.into_iter().fold(NOTHING, join)
}

/// Box of point `k` with its half vector.
fn box_of_point(points: &[[f64; 3]], half: &[[f64; 3]], k: usize) -> Corners {
    let (p, h) = (points[k], half.get(k).copied().unwrap_or([0.0; 3]));
    (std::array::from_fn(|i| p[i] - h[i].abs()), std::array::from_fn(|i| p[i] + h[i].abs()))
}

/// Box of a set of points with half vectors.
pub fn bounds(points: &[[f64; 3]], half: &[[f64; 3]]) -> Corners {
    bounds_of(points.len(), |k| box_of_point(points, half, k))
}

/// The box around `n` boxes.
pub fn bounds_of(n: usize, corners: impl Fn(usize) -> Corners + Sync) -> Corners {
    let points = (0..n).into_par_iter().with_min_len(4096);
    points.fold(|| NOTHING, |b, k| join(b, corners(k))).reduce(|| NOTHING, join)
}

impl Tree {
    /// The tree and the sorted points. `half` is empty or one half vector a point; `moment`: see `Cell::spread`, the radius
    /// where there is none; leaves hold at most `capacity` points unless the key is exhausted.
    pub fn build(
        points: &[[f64; 3]],
        half: &[[f64; 3]],
        root: Root,
        capacity: usize,
        moment: Option<i32>,
    ) -> (Self, Vec<[f64; 3]>) {
        if points.is_empty() {
            return (Self { levels: vec![0], ..Self::default() }, vec![]);
        }
        let keyed = sorted_keys(points, root);
        let mut tree = Self { permutation: memory::par_collect(keyed.par_iter().map(|k| k.1)), ..Self::default() };
        tree.split(&keyed, capacity.max(1));
        drop(keyed);
        let sorted = |of: &[[f64; 3]]| match of.is_empty() {
            true => vec![],
            false => memory::par_collect(tree.permutation.par_iter().with_min_len(MANY).map(|&k| of[k as usize])),
        };
        let (points, half) = (sorted(points), sorted(half));
        tree.measure(&points, &half, root, moment);
        (tree, points)
    }

    /// Makes leaves of all cells that hold at most `capacity` points; the order of the points stays. Returns the former number
    /// of each cell.
    pub fn prune(&mut self, capacity: usize) -> Vec<u32> {
        let mut kept = memory::with_room(self.cells.len());
        let old = std::mem::take(&mut self.cells);
        let mut new_index = memory::filled(u32::MAX, old.len());
        let levels = std::mem::take(&mut self.levels);
        for level in levels.windows(2) {
            let start = self.cells.len();
            for c in level[0]..level[1] {
                let parent = old[c].parent as usize;
                let is_kept = c == 0 || (new_index[parent] != u32::MAX && old[parent].len() > capacity);
                if is_kept {
                    new_index[c] = self.cells.len() as u32;
                    kept.push(c as u32);
                    let parent = if c == 0 { u32::MAX } else { new_index[parent] };
                    memory::push(&mut self.cells, Cell { parent, ..old[c] });
                }
            }
            if self.cells.len() > start {
                self.levels.push(start);
            }
        }
        self.levels.push(self.cells.len());
        let mut leaves = std::mem::take(&mut self.leaves);
        leaves.clear();
        for (c, cell) in self.cells.iter_mut().enumerate() {
            if cell.len() <= capacity || cell.is_leaf() {
                (cell.children, cell.first_child) = (0, 0);
                memory::push(&mut leaves, c as u32);
            } else {
                cell.first_child = new_index[cell.first_child as usize];
            }
        }
        self.leaves = leaves;
        kept
    }

    /// Gives the root another centre, `radius` from all that it holds.
    pub fn center_root(&mut self, center: [f64; 3], radius: f64) {
        if let Some(root) = self.cells.first_mut() {
            (root.center, root.radius, root.spread) = (center, radius, radius);
            root.scale = root.scale.max(radius);
        }
    }

    /// Cells level by level, and leaves. A cell with one occupied octant is passed over: its only child stands for it.
    fn split(&mut self, keys: &[(u64, u32)], capacity: usize) {
        let blank = Cell {
            begin: 0,
            end: keys.len() as u32,
            first_child: 0,
            children: 0,
            parent: u32::MAX,
            absent: 0,
            center: [0.0; 3],
            radius: 0.0,
            spread: 0.0,
            scale: 0.0,
        };
        memory::push(&mut self.cells, blank);
        // Bits of the key that are left, of the cells of the level.
        let mut bits = vec![DEEPEST];
        let mut level = 0..1;
        while !level.is_empty() {
            self.levels.push(level.start);
            let cells = &self.cells[level.clone()];
            let octants_of = |(cell, &left): (&Cell, &u32)| octants(keys, cell.begin, cell.end, left, capacity);
            let mut parts: Vec<Octants> =
                memory::par_collect(shared(cells.par_iter().zip(&bits).with_min_len(FEW)).map(octants_of));
            let mut parents: Vec<u32> = vec![];
            for (k, part) in parts.iter_mut().enumerate() {
                let cell = level.start + k;
                if part.count == 0 {
                    memory::push(&mut self.leaves, cell as u32);
                    continue;
                }
                part.first_child = (level.end + parents.len()) as u32;
                (self.cells[cell].first_child, self.cells[cell].children) = (part.first_child, part.count);
                memory::extend(&mut parents, std::iter::repeat_n(k as u32, part.count as usize));
            }
            bits = memory::par_collect(parents.par_iter().with_min_len(MANY).map(|&k| parts[k as usize].left));
            memory::reserve(&mut self.cells, parents.len());
            self.cells.par_extend(parents.par_iter().with_min_len(MANY).enumerate().map(|(j, &k)| {
                let part = &parts[k as usize];
                let child = level.end + j - part.first_child as usize;
                let begin = if child == 0 { part.begin } else { part.ends[child - 1] };
                Cell { begin, end: part.ends[child], parent: level.start as u32 + k, ..blank }
            }));
            level = level.end..self.cells.len();
        }
        self.levels.push(self.cells.len());
    }

    /// Tight boxes and balls of all cells, of sorted points and half vectors.
    fn measure(&mut self, points: &[[f64; 3]], half: &[[f64; 3]], root: Root, moment: Option<i32>) {
        let box_of = |c: &Cell| match c.is_leaf() {
            true => joined((c.begin as usize..c.end as usize).map(|k| box_of_point(points, half, k))),
            false => NOTHING,
        };
        let mut boxes = memory::par_collect(shared(self.cells.par_iter()).map(box_of));
        self.gather(&mut boxes, |_, b, children| *b = joined(children.iter().copied()));
        shared(self.cells.par_iter_mut().zip(&boxes)).for_each(|(cell, b)| {
            cell.center = std::array::from_fn(|i| 0.5 * (b.0[i] + b.1[i]));
            let diagonal = (0..3).map(|i| (b.1[i] - b.0[i]).powi(2)).sum::<f64>().sqrt();
            ball(cell, 0.5 * diagonal, points, half, moment);
            cell.scale = cell.radius.max(1e-7 * root.edge);
        });
    }

    /// Makes what belongs to each inner cell from what belongs to its children, from the deepest level on.
    pub fn gather<V: Send + Sync>(&self, values: &mut [V], of_children: impl Fn(&Cell, &mut V, &[V]) + Sync) {
        for level in self.levels.windows(2).rev() {
            let (above, below) = values.split_at_mut(level[1]);
            let cells = &self.cells[level[0]..level[1]];
            let inner = shared(above[level[0]..].par_iter_mut().zip(cells).with_min_len(FEW))
                .filter(|(_, cell)| !cell.is_leaf());
            inner.for_each(|(value, cell)| {
                of_children(cell, value, &below[cell.first_child as usize - level[1]..][..cell.children as usize])
            });
        }
    }

    pub fn level(&self, k: usize) -> std::ops::Range<usize> {
        self.levels[k]..self.levels[k + 1]
    }

    pub fn depth(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    pub fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>() + (self.permutation.capacity() + self.leaves.capacity()) * 4
    }
}

/// The Morton key of a position: 63 bits.
pub fn key(p: [f64; 3], root: Root) -> u64 {
    let grid = (1u64 << DEEPEST) as f64;
    let q: [u64; 3] = std::array::from_fn(|i| {
        let t = (p[i] - root.corner[i]) / root.edge * grid;
        t.clamp(0.0, grid - 1.0) as u64
    });
    interleave(q[0]) << 2 | interleave(q[1]) << 1 | interleave(q[2])
}

/// Morton keys with their points, sorted; the point number breaks ties, so that the order is unique.
fn sorted_keys(points: &[[f64; 3]], root: Root) -> Vec<(u64, u32)> {
    let mut keyed: Vec<(u64, u32)> =
        memory::par_collect(points.par_iter().enumerate().map(|(k, p)| (key(*p, root), k as u32)));
    sort::sort(&mut keyed);
    keyed
}

/// Up to eight occupied octants of a cell: where the points of each end, and the bits of the key that they have left.
#[derive(Debug, Default)]
struct Octants {
    begin: u32,
    ends: [u32; 8],
    count: u32,
    left: u32,
    first_child: u32,
}

/// Occupied octants of a cell, none if it is to be a leaf.
fn octants(keys: &[(u64, u32)], begin: u32, end: u32, mut left: u32, capacity: usize) -> Octants {
    let mut found = Octants { begin, ..Octants::default() };
    if (end - begin) as usize <= capacity {
        return found;
    }
    let keys = &keys[begin as usize..end as usize];
    while left > 0 {
        left -= 1;
        let octant = |k: u64| (k >> (3 * left)) & 7;
        if octant(keys[0].0) == octant(keys[keys.len() - 1].0) {
            continue;
        }
        let mut at = 0;
        while at < keys.len() {
            let o = octant(keys[at].0);
            at += keys[at..].partition_point(|k| octant(k.0) == o);
            found.ends[found.count as usize] = begin + at as u32;
            found.count += 1;
        }
        found.left = left;
        break;
    }
    found
}

/// Radius and spread; large cells take the half diagonal and a sample.
fn ball(cell: &mut Cell, half_diagonal: f64, points: &[[f64; 3]], half: &[[f64; 3]], moment: Option<i32>) {
    const SAMPLE: usize = 2048;
    let step = cell.len().div_ceil(SAMPLE);
    let (mut far, mut sum, mut count) = (0.0f64, 0.0f64, 0.0);
    // In units of the half diagonal, so that the power neither over- nor underflows.
    let unit = if half_diagonal > 0.0 { 1.0 / (half_diagonal * half_diagonal) } else { 0.0 };
    for k in (cell.begin as usize..cell.end as usize).step_by(step) {
        let mut add = |end: [f64; 3]| {
            let r2: f64 = (0..3).map(|i: usize| (end[i] - cell.center[i]).powi(2)).sum();
            far = far.max(r2);
            sum += moment.map_or(0.0, |q| power(r2 * unit, q as usize));
            count += 1.0;
        };
        let p = points[k];
        match half.get(k) {
            None => add(p),
            Some(h) => [1.0, -1.0].into_iter().for_each(|s| add(std::array::from_fn(|i| p[i] + s * h[i]))),
        }
    }
    cell.radius = if step == 1 { far.sqrt().min(half_diagonal) } else { half_diagonal };
    cell.spread = moment.map_or(cell.radius, |q| half_diagonal * (sum / count).powf(0.5 / q as f64));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(n: usize) -> Vec<[f64; 3]> {
        let mut s = 1u64;
        let mut next = move || {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (s >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..n).map(|_| [next(), next() * 0.1, next()]).collect()
    }

    /// Of a flat box: a level quarters or eighths what cells hold, another edge comes near to any number.
    #[test]
    fn cells_of_two_sets_hold_what_is_ideal() {
        let (x, y) = (points(60_000), points(20_000));
        let boxes = [bounds(&x, &[]), bounds(&y, &[])];
        let around = boxes.map(|b| Root::around(&[b]));
        let larger = around[0].edge.max(around[1].edge);
        let mut found = 0;
        for ideal in (0..12).map(|k| 40.0 * 1.3f64.powi(k)) {
            let edge = Root::edge_for_cells_of(ideal, [(&x, boxes[0]), (&y, boxes[1])]);
            assert!(edge.is_none_or(|edge| PARTS[1..].contains(&(larger / edge))));
            found += edge.is_some() as usize;
            let roots = boxes.map(|b| edge.map_or(Root::around(&[b]), |edge| Root::with_edge(edge, b)));
            let keyed = [sorted_keys(&x, roots[0]), sorted_keys(&y, roots[1])];
            let held = |keyed: &Vec<(u64, u32)>, level: u32| {
                let cells = keyed.chunk_by(|a, b| (a.0 ^ b.0) >> (3 * (DEEPEST - level)) == 0);
                cells.map(|c| (c.len() * c.len()) as f64).sum::<f64>() / keyed.len() as f64
            };
            let off = |level: u32| ((held(&keyed[0], level) * held(&keyed[1], level)).sqrt() / ideal).ln().abs();
            let nearest = (1..9).map(off).fold(f64::INFINITY, f64::min);
            assert!(nearest.exp() < 1.1 * NEAR_IDEAL, "{ideal} points: {:.2} times off, {edge:?}", nearest.exp());
        }
        assert!((3..12).contains(&found), "{found}");
        // Few points, points in one place, or no ideal.
        for (x, ideal) in [(&x[..1000], 50.0), (&vec![[0.3; 3]; 60_000], 50.0), (&x, 0.0)] {
            let set = (x, bounds(x, &[]));
            assert_eq!(Root::edge_for_cells_of(ideal, [set, set]), None);
        }
    }

    #[test]
    fn an_edge_is_doubled_or_halved_until_it_holds_the_box() {
        for (size, edge) in [(1.0, 1.6), (0.3, 0.4), (0.9, 1.6), (5.0, 6.4), (6.3, 6.4)] {
            let root = Root::with_edge(1.6, ([0.0; 3], [size, 0.1, 0.0]));
            assert_eq!(root.edge, edge, "{size}");
        }
    }

    #[test]
    fn a_pruned_tree_is_the_one_that_larger_leaves_would_have_made() {
        let x = points(5000);
        let root = Root::around(&[bounds(&x, &[])]);
        let shape = |t: &Tree| -> Vec<_> {
            t.cells.iter().map(|c| (c.begin, c.end, c.children, c.parent, c.center, c.radius)).collect()
        };
        for capacity in [20, 75, 600, 6000] {
            let mut pruned = Tree::build(&x, &[], root, 10, Some(8)).0;
            pruned.prune(capacity);
            let built = Tree::build(&x, &[], root, capacity, Some(8)).0;
            assert_eq!(shape(&pruned), shape(&built), "leaves of {capacity}");
            assert_eq!((&pruned.levels, &pruned.leaves), (&built.levels, &built.leaves));
            for (a, b) in pruned.cells.iter().zip(&built.cells).filter(|(a, _)| !a.is_leaf()) {
                assert_eq!(a.first_child, b.first_child);
            }
        }
    }

    #[test]
    fn every_point_is_in_one_leaf_and_inside_its_ball() {
        let x = points(5000);
        let half: Vec<[f64; 3]> = x.iter().map(|p| [0.01 * p[1], -0.01, 0.002]).collect();
        let root = Root::around(&[bounds(&x, &half)]);
        let (tree, sorted) = Tree::build(&x, &half, root, 30, Some(8));
        let mut seen = vec![0; x.len()];
        for &l in &tree.leaves {
            let c = &tree.cells[l as usize];
            assert!(c.len() <= 30);
            for &k in &tree.permutation[c.begin as usize..c.end as usize] {
                seen[k as usize] += 1;
            }
        }
        assert!(seen.iter().all(|&n| n == 1));
        assert!(tree.permutation.iter().zip(&sorted).all(|(&k, p)| x[k as usize] == *p));
        for c in &tree.cells {
            for &k in &tree.permutation[c.begin as usize..c.end as usize] {
                for s in [1.0, -1.0] {
                    let r2: f64 =
                        (0..3).map(|i| (x[k as usize][i] + s * half[k as usize][i] - c.center[i]).powi(2)).sum();
                    assert!(r2.sqrt() <= c.radius * (1.0 + 1e-12));
                }
            }
            if !c.is_leaf() {
                let children = &tree.cells[c.first_child as usize..(c.first_child + c.children) as usize];
                assert_eq!(children.iter().map(Cell::len).sum::<usize>(), c.len());
            }
        }
    }

    #[test]
    fn coincident_points_end_in_one_leaf() {
        let x = vec![[0.3, 0.3, 0.3]; 100];
        let tree = Tree::build(&x, &[], Root::around(&[bounds(&x, &[])]), 8, Some(8)).0;
        assert_eq!(tree.cells.len(), 1);
        assert_eq!(tree.cells[0].radius, 0.0);
        assert!(tree.cells[0].scale > 0.0);
    }
}
