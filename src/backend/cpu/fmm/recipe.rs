//! What was chosen: leaves, error per pair, orders and lists, and what they will cost.
//!
//! Enters: trees, a sample, measured costs. Leaves: lists and operators, and the `Recipe` that tells of them.

use super::{Fmm, SourceSet, cost};
use crate::backend::cpu::lists::{self, CellLists, Cost, Only, Rules};
use crate::backend::cpu::tree::{Cell, Tree};
use crate::math::accuracy::OrderTable;
use crate::math::harmonics::MAX_ORDER;
use crate::memory;
use crate::report::Pass;
use crate::simd::Real;
use rayon::prelude::*;
use std::time::Instant;

/// Share of the tolerance that the truncation may use, and that left-out cores may use.
const TRUNCATION_SHARE: f64 = 1.0;
const CORE_SHARE: f64 = 0.35;
/// Pairs closer than this ratio are split rather than expanded; found on CUBE at 1e-3 … 1e-9 (docs/results.md).
pub(super) const CLOSEST_RATIO: f64 = 0.33;
/// See `capacities`.
const CAPACITY_FACTOR: f64 = 4.0;
/// Leaves are chosen among these multiples of what `capacities` says.
pub(super) const SMALLEST_LEAF: f64 = 0.4;
const LARGEST_LEAF: f64 = 6.0;
const LEAF_STEP: f64 = 1.6;
/// Everything else that a cell costs: sorting, lists, the rows of its field; from CUBE of 1e4 and 1e5 (docs/results.md).
const CELL_SECONDS: f64 = 8e-6;

/// See `budget`.
struct Budget {
    pair: f64,
    core: f64,
    orders: OrderTable,
    cost: Cost,
}

/// What the caller fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wish {
    pub tolerance: f64,
    /// 0: chosen.
    pub order: usize,
    /// 0: chosen.
    pub leaf_capacity: usize,
    pub gradient: bool,
}

/// What was chosen: plain data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recipe {
    /// Relative error allowed to a pair of cells.
    pub pair_tolerance: f64,
    /// The same for a core that is left out.
    pub core_tolerance: f64,
    pub order: usize,
    pub source_capacity: usize,
    pub target_capacity: usize,
    pub depth: usize,
    pub cells: usize,
    pub far_pairs: u64,
    pub near_pairs: u64,
    pub correction_pairs: u64,
    /// Predicted seconds on this machine, and those of the direct sum.
    pub predicted: f64,
    pub direct: f64,
    /// Sampled relative error of the last field, and how often it had to be tightened.
    pub sampled_error: f64,
    pub tightened: u32,
}

impl<T: Real, const C: usize> Fmm<T, C> {
    /// Leaves in which a direct pair of cells costs about what its share of translations does: with 27 near cells and some
    /// 100 far ones a leaf, n_s n_t pair · 27 = 100 · m2l. Cells of both trees are to be of one size, so that the product
    /// is divided in proportion to the densities. `factor` makes them larger.
    pub(super) fn capacities(&self, [n, m]: [usize; 2], factor: f64) -> [usize; 2] {
        let wish = self.wish.expect("set by prepare");
        if wish.leaf_capacity > 0 {
            return [wish.leaf_capacity; 2];
        }
        let typical = order_at(wish.tolerance, 0.3).min(MAX_ORDER - 1);
        let product = CAPACITY_FACTOR * self.cost.m2l[typical] / self.cost.pair;
        let ratio = (n.max(1) as f64 / m.max(1) as f64).clamp(1e-3, 1e3).sqrt();
        let each = factor * product.sqrt();
        [(each * ratio).clamp(4.0, 4096.0) as usize, (each / ratio).clamp(8.0, 4096.0) as usize]
    }

    /// Error allowed to a pair of cells and to a core that is left out, and the orders that follow.
    fn budget(&self) -> Budget {
        let wish = self.wish.expect("set by prepare");
        let budget = self.far_ratio().clamp(1.0, 1e3) * self.safety;
        let pair = (TRUNCATION_SHARE * wish.tolerance * budget * self.looseness).min(0.1);
        let closest = highest_order(pair);
        let orders = match wish.order {
            0 => OrderTable::new(pair, closest),
            order => OrderTable::fixed(order, pair, closest),
        };
        let mut cost = self.cost.clone();
        cost.m2l.truncate(orders.highest() + 1);
        Budget { pair, core: (CORE_SHARE * wish.tolerance * budget).min(0.1), orders, cost }
    }

    /// The leaves, among some sizes, whose lists cost least. An octree of even sources has leaves of one size only, eight
    /// times that of the next level, so that a formula can miss by much. The lists are made for the cells above the sampled
    /// targets alone: a target's share of its leaf's direct pairs and of the translations into the cells that hold it.
    pub(super) fn best_leaves(&self, sources: &dyn SourceSet<T, C>, new_sources: bool) -> [usize; 2] {
        let budget = self.budget();
        let numbers = [self.source_tree.permutation.len(), self.target_tree.permutation.len()];
        let mut best = (f64::INFINITY, [0; 2]);
        let mut factor = SMALLEST_LEAF;
        while factor < LARGEST_LEAF {
            let mut leaves = self.capacities(numbers, factor);
            if !new_sources {
                leaves[0] = 0;
            }
            let seconds = self.estimate(sources, &budget, leaves);
            log::debug!("leaves of {leaves:?}: {seconds:.3e} processor seconds expected");
            if seconds < best.0 {
                best = (seconds, leaves);
            }
            factor *= LEAF_STEP;
        }
        best.1
    }

    /// Processor seconds with leaves of at most so many sources and targets.
    fn estimate(&self, sources: &dyn SourceSet<T, C>, budget: &Budget, leaves: [usize; 2]) -> f64 {
        let sample = self.sample.as_ref().expect("taken by prepare");
        let cells = &self.target_tree.cells;
        let is_leaf = |c: usize| cells[c].is_leaf() || cells[c].len() <= leaves[1];
        let kept = |&c: &usize| c == 0 || !is_leaf(cells[c].parent as usize);
        let chain = |target: u32| self.chain(target).filter(kept);
        let mut marked = memory::filled(false, cells.len());
        sample.targets.iter().flat_map(|&t| chain(t)).for_each(|c| marked[c] = true);
        let lists = self.lists_within(sources, budget, leaves, Only(Some(&marked)));
        let share = |t: u32| -> f64 {
            let of = |c: usize| {
                let (near, correction) = lists[c].elements();
                let far: f64 = lists[c].far.iter().map(|f| self.cost.m2l[f.0 as usize]).sum();
                far / cells[c].len() as f64 + (near + correction) as f64 * self.cost.pair
            };
            chain(t).map(of).sum()
        };
        let mean = sample.targets.iter().map(|&t| share(t)).sum::<f64>() / sample.targets.len().max(1) as f64;
        let count = |tree: &Tree, capacity: usize| {
            let kept = |c: &&Cell| c.parent == u32::MAX || tree.cells[c.parent as usize].len() > capacity;
            tree.cells.iter().filter(kept).count() as f64
        };
        let both = count(&self.source_tree, leaves[0]) + count(&self.target_tree, leaves[1]);
        mean * self.target_tree.permutation.len() as f64 + both * self.cell_seconds(budget.orders.highest())
    }

    /// M2M and L2L cost about an M2L each.
    fn cell_seconds(&self, order: usize) -> f64 {
        self.cost.m2l[order] + CELL_SECONDS
    }

    fn lists_within(
        &self,
        sources: &dyn SourceSet<T, C>,
        budget: &Budget,
        leaves: [usize; 2],
        only: Only<'_>,
    ) -> Vec<CellLists> {
        let cells = &self.source_tree.cells;
        let core_matters = |s: u32, t: &Cell| sources.core_matters(s, &cells[s as usize], t, budget.core);
        lists::build(&Rules {
            sources: &self.source_tree,
            targets: &self.target_tree,
            orders: &budget.orders,
            cost: &budget.cost,
            leaves,
            only,
            core_matters: &core_matters,
        })
    }

    /// Error per pair, orders, lists, and what they will cost.
    pub(super) fn choose_orders(&mut self, sources: &dyn SourceSet<T, C>) {
        let start = Instant::now();
        let wish = self.wish.expect("set by prepare");
        let budget = self.budget();
        self.lists = self.lists_within(sources, &budget, [0; 2], Only(None));
        self.downward_done = false;
        let (far, near, correction) = lists::count(&self.target_tree, &self.lists);
        let used = self.lists.par_iter().filter_map(|l| l.far.first()).map(|f| f.0 as usize).max().unwrap_or(2);
        let threads = rayon::current_num_threads() as f64;
        let m2l: f64 = self.lists.par_iter().flat_map_iter(|l| l.far.iter()).map(|f| self.cost.m2l[f.0 as usize]).sum();
        let (n, m) = (self.source_tree.permutation.len() as f64, self.target_tree.permutation.len() as f64);
        let points = (n + m) * (2.5e-7 + 2.2e-10 * (C * used * used) as f64);
        let cells = (self.source_tree.cells.len() + self.target_tree.cells.len()) as f64 * self.cell_seconds(used);
        let r = &mut self.recipe;
        r.pair_tolerance = budget.pair;
        r.core_tolerance = budget.core;
        // Expansions of a slightly higher order serve as well, and the upward pass need not be done again.
        let kept = self.ops.as_ref().map_or(0, |o| o.order);
        r.order = if (used..used + 8).contains(&kept) && wish.order == 0 { kept } else { used.max(wish.order) };
        r.depth = self.source_tree.depth().max(self.target_tree.depth());
        r.cells = self.source_tree.cells.len() + self.target_tree.cells.len();
        (r.far_pairs, r.near_pairs, r.correction_pairs) = (far, near, correction);
        r.predicted = (m2l + (near + correction) as f64 * self.cost.pair + points + cells) / threads;
        r.direct = n * m * self.cost.pair / threads;
        if self.ops.as_ref().is_none_or(|o| o.order != r.order) {
            self.ops = Some(cost::operators(r.order));
            self.upward_done = false;
        }
        self.seconds[Pass::Lists as usize] = start.elapsed().as_secs_f64();
    }
}

/// Order at which a pair of equal balls at radius/distance `ratio` reaches `tolerance`.
pub(super) fn order_at(tolerance: f64, ratio: f64) -> usize {
    OrderTable::new(tolerance, MAX_ORDER).order(ratio, ratio, 1.0, 2.0 * ratio).map_or(MAX_ORDER, usize::from)
}

fn highest_order(tolerance: f64) -> usize {
    order_at(tolerance, CLOSEST_RATIO).clamp(3, MAX_ORDER)
}
