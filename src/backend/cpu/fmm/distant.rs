//! What the periodic images of all sources do at single points, for exact sums: every image but the sources themselves.
//!
//! Enters: sources in the order of a tree, periods, the accuracy that is needed. Leaves: `[row][point]`, in double precision.
//! Multipoles of a coarse tree are evaluated at the points (no local expansions, no lists); near cells and cores are summed
//! directly; images beyond come by the lattice operator. Orders are high enough to count as exact beside the tolerance.

use super::{SourceSet, near, rows};
use crate::backend::cpu::cores::CellCores;
use crate::backend::cpu::cost;
use crate::backend::cpu::images::{Images, Periods};
use crate::backend::cpu::lists::CoreTest;
use crate::backend::cpu::operators::Operators;
use crate::backend::cpu::passes::{self, LeafSources, Work};
use crate::backend::cpu::shared;
use crate::backend::cpu::tree::{Cell, Tree};
use crate::backend::precision::SINGLE_SERVES;
use crate::distributed::Peers;
use crate::math::accuracy::{Cut, ErrorTable, Geometry};
use crate::math::harmonics::MAX_ORDER;
use crate::math::regularization::Part;
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;
use std::sync::Arc;

/// Share of the tolerance that an image may miss of what it contributes. Like strengths inside of wide cores leave a hundredth of that.
const SHARE: f64 = 5e-4;
/// A multipole is evaluated at points beyond this ratio of radius to distance; images of the whole box beyond the other.
const RATIO: f64 = 0.5;
const BOX_RATIO: f64 = 0.28;
/// Leaves are evaluated beyond this ratio. Where their parents' points are as far away, their orders are lower: of an even cloud, a
/// leaf's radius is half of its parent's, and so is the distance of their centres.
const LEAF_RATIO: f64 = 0.35;
/// Effective radius of a full cell over its radius.
const FILLED: f64 = 0.8;
/// The farther a point is, the fewer degrees it needs: those of the least of these ratios that its own does not exceed.
const SEEN: [f64; 3] = [RATIO, 0.38, 0.29];
/// Leaves hold one of so many parts of all sources, or so few: a multipole at a point takes as long as a thousand pairs. With cores, whose
/// leaves tell where they matter, there are more.
const LEAVES: [usize; 2] = [300, 2048];
const CORED_LEAVES: [usize; 2] = [2500, 64];
/// Errors that one core, and all of a cell, may leave, in units of the tolerated error of the field.
const CORE: f64 = 1e-3;
const CORES_OF_CELL: f64 = 3e-3;
/// Cores of images are looked at where they change a field by more than this part of the tolerance.
const CORE_SHARE: f64 = 0.1;
/// Multipoles of the largest order that take as long as what a point meets, and seconds a coefficient: for what a direct sum will take.
const MET: f64 = 150.0;
const COEFFICIENT_SECONDS: f64 = 1.5e-9;

/// See the head of this file.
pub struct Distant {
    tree: Tree,
    /// `[cell][component][order²]`
    multipoles: Vec<f64>,
    order: usize,
    /// Of each cell: beyond it the multipole is evaluated.
    ratios: Vec<f64>,
    /// By `SEEN`, of orders that have room for two derivatives.
    ops: [Arc<Operators<f64>>; SEEN.len()],
    images: Images,
    /// Of the images beyond, around the middle of the box, and its unit.
    local: Vec<f64>,
    unit: f64,
    cores: CellCores,
    core_budget: Option<[[f64; 2]; 2]>,
}

/// A point as the sources' image sees it.
#[derive(Clone, Copy)]
struct Seen {
    x: [f64; 3],
    target: u32,
    /// A cell above is far: its cores alone are left.
    far: bool,
}

/// What is asked of a traversal.
struct Asked<'a, T: Real, const C: usize> {
    sources: &'a dyn SourceSet<T, C>,
    gradient: bool,
    count: usize,
    /// Core corrections of far cells alone.
    cores_alone: bool,
    cores: Option<Box<dyn CoreTest + 'a>>,
}

fn order_for(tolerance: f64, ratio: f64) -> usize {
    let geometry = Geometry::of(FILLED * ratio, 0.02, 1.0, ratio + 0.02).expect("apart");
    ErrorTable::of_derivative(1, Cut::Both).order(geometry, (SHARE * tolerance) as f32).clamp(6, MAX_ORDER - 2)
}

/// Seconds of one thread for the images at one point.
pub fn seconds(tolerance: f64, gradient: bool) -> f64 {
    let p = order_for(tolerance, RATIO) as f64 + 2.0;
    MET * p * p * COEFFICIENT_SECONDS * if gradient { 3.0 } else { 1.0 }
}

impl Distant {
    /// `tree`: of this rank's sources, in its order; `radius`: of its targets, from the middle of the box. Nothing on a rank without
    /// sources. Where a part of the charges is not balanced by others, their images have a sum with the same near ones on all ranks.
    pub fn new<T: Real, const C: usize>(
        sources: &dyn SourceSet<T, C>,
        tree: &Tree,
        periods: Periods,
        radius: f64,
        tolerance: f64,
        peers: &Peers,
    ) -> Option<Self> {
        let extent = sources.core_extent(CORE_SHARE * tolerance);
        let mut most = [tree.cells.first().map_or(0.0, |c| c.radius), radius, extent];
        peers.largest(&mut most);
        let [of_sources, radius, reach] = most;
        let root = *tree.cells.first()?;
        let mut tree = Tree { cells: memory::copy(&tree.cells), levels: memory::copy(&tree.levels), ..Tree::default() };
        let [parts, few] = if sources.has_cores() { CORED_LEAVES } else { LEAVES };
        tree.prune((sources.positions().0.len() / parts).max(few));
        let order = order_for(tolerance, RATIO);
        let up = cost::operators::<f64>(order);
        let ops = SEEN.map(|ratio| cost::operators::<f64>(order_for(tolerance, ratio) + 2));
        let ratios: Vec<f64> = memory::collect((0..tree.cells.len()).map(|cell| ratio_of(&tree, cell)));
        let mut multipoles = memory::filled(0.0, tree.cells.len() * C * order * order);
        // Digits beyond single precision are beyond what these orders leave out.
        match !T::IS_F64 && tolerance >= SINGLE_SERVES {
            true => add_leaves::<f32, T, C>(sources, &tree, &ratios, tolerance, &mut multipoles),
            false => add_leaves::<f64, T, C>(sources, &tree, &ratios, tolerance, &mut multipoles),
        }
        passes::m2m::<f64, C>(&up, &tree, &mut multipoles);
        let mut images = Images::of(periods, [of_sources, radius], root.scale, BOX_RATIO, reach);
        images.set_moment(|from| sources.square_moment(from));
        let unit = radius.max(root.scale);
        let mut local = memory::filled(0.0, C * order * order);
        if let Some(far) = &images.far {
            far.add::<f64, C>(order, &multipoles[..C * order * order], &mut local, unit);
        }
        let cores = sources.cell_cores(&tree);
        Some(Self { tree, multipoles, order, ratios, ops, images, local, unit, cores, core_budget: None })
    }

    /// The field of all images at these points, `[row][point]`; cores in far cells count once `set_core_budget` was told
    /// what may be left out.
    pub fn field<T: Real, const C: usize>(
        &self,
        sources: &dyn SourceSet<T, C>,
        points: &[[f64; 3]],
        gradient: bool,
    ) -> Vec<f64> {
        let mut out = self.traverse(sources, points, gradient, false);
        self.add_beyond::<C>(points, gradient, &mut out);
        out
    }

    /// Sets what cores may be left out, from the error that the field may have and its gradient; the corrections that follow
    /// at these points.
    pub fn set_core_budget<T: Real, const C: usize>(
        &mut self,
        sources: &dyn SourceSet<T, C>,
        allowed: [f64; 2],
        points: &[[f64; 3]],
        gradient: bool,
    ) -> Vec<f64> {
        if !sources.has_cores() {
            return memory::filled(0.0, rows(C, gradient) * points.len());
        }
        self.core_budget = Some([allowed.map(|a| CORE * a), allowed.map(|a| CORES_OF_CELL * a)]);
        self.traverse(sources, points, gradient, true)
    }

    fn traverse<T: Real, const C: usize>(
        &self,
        sources: &dyn SourceSet<T, C>,
        points: &[[f64; 3]],
        gradient: bool,
        cores_alone: bool,
    ) -> Vec<f64> {
        let cores = self.core_budget.map(|[one, all]| sources.core_test_of(&self.cores, one, all));
        let asked = Asked { sources, gradient, count: points.len(), cores_alone, cores };
        let mut at: Vec<Seen> = memory::with_room(points.len() * self.images.shifts.len());
        for shift in &self.images.shifts[1..] {
            at.extend(points.iter().enumerate().map(|(k, x)| Seen {
                x: std::array::from_fn(|i| x[i] - shift[i]),
                target: k as u32,
                far: false,
            }));
        }
        self.visit(0, at, &asked)
    }

    /// What the cell does at the points.
    fn visit<T: Real, const C: usize>(&self, cell: usize, at: Vec<Seen>, asked: &Asked<'_, T, C>) -> Vec<f64> {
        let c = &self.tree.cells[cell];
        let mut out = memory::filled(0.0, rows(C, asked.gradient) * asked.count);
        let (mut far, mut near, mut left): (Vec<Seen>, Vec<Seen>, Vec<Seen>) = (vec![], vec![], vec![]);
        for p in at {
            if !p.far && c.radius > self.ratios[cell] * distance(c, p.x) {
                memory::push(if c.is_leaf() { &mut near } else { &mut left }, p);
                continue;
            }
            if !p.far && !asked.cores_alone {
                memory::push(&mut far, p);
            }
            if asked.cores.as_ref().is_some_and(|test| test.matters(cell as u32, c, &ball(c, p.x))) {
                memory::push(&mut left, Seen { far: true, ..p });
            }
        }
        if !far.is_empty() {
            self.add_multipole::<C>(cell, &far, asked.gradient, asked.count, &mut out);
        }
        if !near.is_empty() && !asked.cores_alone {
            add_direct(asked, Part::Regularized, std::slice::from_ref(&(c.begin..c.end)), &near, &mut out);
        }
        if c.is_leaf() {
            let mut scratch = vec![];
            for p in &left {
                let mut ranges = vec![];
                let test = asked.cores.as_ref().expect("left by it");
                test.elements(c.begin..c.end, &ball(c, p.x), [f64::INFINITY; 2], &mut scratch, &mut ranges);
                add_direct(asked, Part::Correction, &ranges, std::slice::from_ref(p), &mut out);
            }
        } else if !left.is_empty() {
            let children = c.first_child as usize..(c.first_child + c.children) as usize;
            let parts: Vec<Vec<f64>> =
                memory::par_collect(children.into_par_iter().map(|k| self.visit(k, memory::copy(&left), asked)));
            // One after the other: the sum does not depend on threads.
            parts.iter().for_each(|part| out.iter_mut().zip(part).for_each(|(o, v)| *o += v));
        }
        out
    }

    /// Σ M_i S_i at points around the cell.
    fn add_multipole<const C: usize>(&self, cell: usize, at: &[Seen], gradient: bool, count: usize, out: &mut [f64]) {
        let c = &self.tree.cells[cell];
        let size = C * self.order * self.order;
        let rows = self.rows_of::<C>(&self.multipoles[cell * size..(cell + 1) * size], c.scale, gradient);
        let whole = self.ops[0].order.pow(2);
        let class = |p: &Seen| {
            let ratio = c.radius / distance(c, p.x);
            SEEN.iter().rposition(|&most| ratio <= most).unwrap_or(0)
        };
        for (k, ops) in self.ops.iter().enumerate() {
            let seen = memory::filtered(at.iter().copied(), |p| class(p) == k);
            if seen.is_empty() {
                continue;
            }
            let some = ops.order.pow(2);
            let mut coefficients = memory::with_room(rows.len() / whole * some);
            rows.chunks_exact(whole).for_each(|row| coefficients.extend_from_slice(&row[..some]));
            add_seen(ops, c, &coefficients, &seen, count, out);
        }
    }

    /// The field of multipoles as scalar multipoles, one row a number wanted: as `passes::field_rows`.
    fn rows_of<const C: usize>(&self, multipole: &[f64], scale: f64, gradient: bool) -> Vec<f64> {
        let (n, own) = (self.ops[0].order.pow(2), self.order.pow(2));
        let mut rows = memory::filled(0.0, rows(C, gradient) * n);
        let wide = |c: usize| {
            let mut row = memory::filled(0.0, n);
            row[..own].copy_from_slice(&multipole[c * own..(c + 1) * own]);
            row.iter_mut().for_each(|v| *v /= scale);
            row
        };
        // From ∂R_i = Σ w R_k by Σ R_i(X) S_i(x) = 1/|x - X|: the derivative of S_k is -Σ w S_i.
        let derive = |to: &mut [f64], from: &[f64], axis: usize, sign: f64| {
            for &(k, i, w) in &self.ops[0].derivative[axis] {
                to[i as usize] -= sign / scale * w * from[k as usize];
            }
        };
        if C == 1 {
            let potential = wide(0);
            for (k, row) in rows.chunks_exact_mut(n).enumerate() {
                if k == 0 { row.copy_from_slice(&potential) } else { derive(row, &potential, k - 1, 1.0) }
            }
            return rows;
        }
        let a: Vec<Vec<f64>> = memory::collect((0..3).map(wide));
        let (velocity, rest) = rows.split_at_mut(3 * n);
        for (i, row) in velocity.chunks_exact_mut(n).enumerate() {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            derive(row, &a[k], j, 1.0);
            derive(row, &a[j], k, -1.0);
        }
        for (k, row) in rest.chunks_exact_mut(n).enumerate() {
            derive(row, &velocity[k / 3 * n..(k / 3 + 1) * n], k % 3, 1.0);
        }
        rows
    }

    /// The images beyond the near ones.
    fn add_beyond<const C: usize>(&self, points: &[[f64; 3]], gradient: bool, out: &mut [f64]) {
        let Some(far) = &self.images.far else { return };
        let (root, n) = (&self.tree.cells[0], self.order * self.order);
        let ops = cost::operators::<f64>(self.order);
        let mut coefficients = vec![];
        passes::field_rows::<f64, C>(&ops, &self.local, self.unit, gradient, &mut coefficients);
        let x: [Vec<f64>; 3] =
            std::array::from_fn(|i| memory::collect(points.iter().map(|x| (x[i] - root.center[i]) / self.unit)));
        passes::l2p(&ops, &coefficients, &x, &mut Work::at_targets(self.order), out, points.len());
        far.add_background::<f64, C>(std::array::from_fn(|c| self.multipoles[c * n]), points, gradient, out);
    }

    pub fn bytes(&self) -> usize {
        self.tree.bytes()
            + 8 * (self.multipoles.capacity() + self.local.capacity() + self.ratios.capacity())
            + self.cores.bytes()
    }
}

/// S(x) = R(x/|x|²)/|x|, so that the kernels of local expansions serve. `coefficients`: `[row][order²]`.
fn add_seen(ops: &Operators<f64>, c: &Cell, coefficients: &[f64], at: &[Seen], count: usize, out: &mut [f64]) {
    let mut x: [Vec<f64>; 3] = std::array::from_fn(|_| memory::with_room(at.len()));
    let mut inverse = memory::with_room(at.len());
    for p in at {
        let y: [f64; 3] = std::array::from_fn(|i| (p.x[i] - c.center[i]) / c.scale);
        let square = y.iter().map(|v| v * v).sum::<f64>();
        inverse.push(1.0 / square.sqrt());
        (0..3).for_each(|i| x[i].push(y[i] / square));
    }
    let mut values = memory::filled(0.0, coefficients.len() / ops.order.pow(2) * at.len());
    passes::l2p(ops, coefficients, &x, &mut Work::at_targets(ops.order), &mut values, at.len());
    for (row, values) in values.chunks_exact(at.len()).enumerate() {
        for ((p, v), f) in at.iter().zip(values).zip(&inverse) {
            out[row * count + p.target as usize] += v * f;
        }
    }
}

/// See `LEAF_RATIO`.
fn ratio_of(tree: &Tree, cell: usize) -> f64 {
    let leaf = &tree.cells[cell];
    let apart = |above: &Cell| above.radius / RATIO - distance(above, leaf.center);
    let above = |&c: &usize| (c > 0).then(|| tree.cells[c].parent as usize);
    let mut chain = std::iter::successors(above(&cell), above).map(|c| &tree.cells[c]);
    let is_small = cell > 0 && chain.all(|above| leaf.radius <= LEAF_RATIO * apart(above));
    if leaf.is_leaf() && is_small { LEAF_RATIO } else { RATIO }
}

/// The multipoles of leaves, made in precision `P` with the orders that they need.
fn add_leaves<P: Real, T: Real, const C: usize>(
    sources: &dyn SourceSet<T, C>,
    tree: &Tree,
    ratios: &[f64],
    tolerance: f64,
    multipoles: &mut [f64],
) {
    let [wide, small] = [RATIO, LEAF_RATIO].map(|ratio| cost::operators::<P>(order_for(tolerance, ratio)));
    let all = wide.order * wide.order;
    let cells = shared(multipoles.par_chunks_mut(C * all).zip(&tree.cells).zip(ratios));
    cells.filter(|((_, c), _)| c.is_leaf()).for_each_init(
        || (LeafSources::default(), LeafSources::default(), Work::new(wide.order, C), memory::filled(P::ZERO, C * all)),
        |(own, leaf, work, made), ((out, cell), &ratio)| {
            let ops = if ratio == LEAF_RATIO { &small } else { &wide };
            let n = ops.order * ops.order;
            own.clear();
            leaf.clear();
            sources.fill(cell, own);
            leaf.widen(own);
            passes::moments::<P, C>(ops, leaf, work, &mut made[..C * n]);
            for (to, from) in out.chunks_exact_mut(all).zip(made.chunks_exact(n)) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.f64());
            }
        },
    );
}

/// Adds the direct sum of ranges of sources at some points, in double precision.
fn add_direct<T: Real, const C: usize>(
    asked: &Asked<'_, T, C>,
    part: Part,
    ranges: &[std::ops::Range<u32>],
    at: &[Seen],
    out: &mut [f64],
) {
    if ranges.is_empty() {
        return;
    }
    let mut points = near::Points::<f64>::with_capacity(at.len());
    at.iter().for_each(|p| points.push(p.x));
    let mut sum = memory::filled(0.0, rows(C, asked.gradient) * at.len());
    let mut rows: Vec<&mut [f64]> = sum.chunks_exact_mut(at.len()).collect();
    asked.sources.exact_of(part, ranges, &points, &mut rows);
    for (row, values) in sum.chunks_exact(at.len()).enumerate() {
        for (p, v) in at.iter().zip(values) {
            out[row * asked.count + p.target as usize] += v;
        }
    }
}

fn distance(c: &Cell, x: [f64; 3]) -> f64 {
    (0..3).map(|i| (c.center[i] - x[i]).powi(2)).sum::<f64>().sqrt()
}

/// One point as a target cell.
fn ball(like: &Cell, x: [f64; 3]) -> Cell {
    Cell { center: x, radius: 0.0, ..*like }
}
