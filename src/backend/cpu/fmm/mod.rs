//! One far field on the CPU: trees, lists, expansions, and the sum of far and near at the targets.
//!
//! Enters: a set of sources (`SourceSet`) and targets, both in units of the plan's scale. Leaves: the field at the targets.
//! `C` harmonic components: 3, the vector potential of vortices; 1, charges. The same code serves both.
//!
//! The tolerance becomes an error per pair of cells in two steps. A sample of targets is summed directly: that gives the
//! size U of the true field. The same targets give V, the size that the far field would have if its cells were
//! independent: V² = Σ_far E²/d⁴, E² = max(Σ|a|², |Σ a|²) of a source cell. Pairs may then be wrong by tol · U/V.
//! That holds for the worst of fields. Where the cells above the sampled targets are few, the far field is made for those
//! alone first, its error is measured, and the pairs get the orders that this field needs (`calibrate`).
//! After every evaluation the sample is compared; a field that misses its tolerance there is computed again, tighter.

mod field;
mod recipe;
mod sample;
#[cfg(test)]
mod tests;

use super::cost;
use super::lists::{CellLists, Cost, Only};
use super::near;
use super::operators::Operators;
use super::passes::{self, Points};
use super::tree::{Cell, Root, Tree, bounds};
use crate::math::regularization::Part;
use crate::memory;
use crate::report::{PASS_COUNT, Pass};
use crate::simd::Real;
use rayon::prelude::*;
pub use recipe::{Recipe, Wish};
use recipe::{SMALLEST_LEAF, order_at};
use sample::{Sample, SampledError};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// What the method needs of a set of sources; sorted indices are those of the source tree.
pub trait SourceSet<T: Real, const C: usize>: Sync + Send {
    fn is_empty(&self) -> bool;
    /// Midpoints and, where there are segments, half vectors; original order.
    fn places(&self) -> (&[[f64; 3]], &[[f64; 3]]);
    /// Takes over the order of the tree and whatever it needs to know of its cells.
    fn sort(&mut self, tree: &Tree);
    /// The same where only the cells are new.
    fn survey(&mut self, tree: &Tree);
    /// The caller's order, where no tree sorted the sources yet: for the direct sum.
    fn keep_order(&mut self);
    fn bytes(&self) -> u64;
    /// Point sources of a leaf for expansions of `order`, relative to its centre, in its unit.
    fn fill(&self, cell: &Cell, order: usize, points: &mut Points<T, C>);
    /// Largest component of a strength.
    fn largest_strength(&self) -> f64;
    /// E² of each leaf, strengths divided by `unit`.
    fn energies(&self, tree: &Tree, unit: f64) -> Vec<f64>;
    /// Whether a core of the source cell is worth a correction in the target cell, at this relative error.
    fn core_matters(&self, source: u32, cell: &Cell, target: &Cell, tolerance: f64) -> bool;
    /// Adds the direct sum of the sorted sources in `ranges` to the rows of `out`, one a number wanted at a target.
    fn near(&self, part: Part, ranges: &[Range<u32>], targets: &near::Points<T>, out: &mut [&mut [T]]);
    /// Seconds of one thread for a direct pair, measured on the kernels.
    fn pair_seconds(&self, gradient: bool) -> f64;
}

/// Numbers at a target: velocity (3) and gradient (9), or potential (1) and gradient (3).
pub const fn rows(components: usize, gradient: bool) -> usize {
    match (components, gradient) {
        (1, false) => 1,
        (1, true) => 4,
        (_, false) => 3,
        (_, true) => 12,
    }
}

/// What numbers are divided by before they are squared: squares of 1e160 would overflow, those of 1e-170 vanish.
pub fn unit_of(largest: f64) -> f64 {
    if largest > 0.0 { largest } else { 1.0 }
}

/// The state of one far field.
pub struct Fmm<T: Real, const C: usize> {
    source_tree: Tree,
    target_tree: Tree,
    /// (first target, leaf), by rising target.
    leaf_starts: Vec<(u32, u32)>,
    /// Sorted targets.
    target_points: Vec<[f64; 3]>,
    lists: Vec<CellLists>,
    ops: Option<Arc<Operators<T>>>,
    multipoles: Vec<T>,
    locals: Vec<T>,
    cost: Cost,
    sample: Option<Sample<T>>,
    /// Tightening that this plan's sources were found to need; stays until places change.
    safety: f64,
    leaves_for: Option<KnownLeaves>,
    /// How much more than the estimate allows a pair may be wrong, as measured; remembered from call to call.
    looseness: f64,
    /// The orders were measured on the present sample.
    calibrated: bool,
    pub recipe: Recipe,
    pub seconds: [f64; PASS_COUNT],
    wish: Option<Wish>,
    upward_done: bool,
    /// `locals` hold all target cells' expansions, of the present trees, lists and multipoles.
    downward_done: bool,
    energies: Vec<f64>,
}

impl<T: Real, const C: usize> Default for Fmm<T, C> {
    fn default() -> Self {
        Self {
            source_tree: Tree::default(),
            target_tree: Tree::default(),
            leaf_starts: vec![],
            target_points: vec![],
            lists: vec![],
            ops: None,
            multipoles: vec![],
            locals: vec![],
            cost: Cost::default(),
            sample: None,
            safety: 1.0,
            leaves_for: None,
            looseness: 1.0,
            calibrated: false,
            recipe: Recipe::default(),
            seconds: [0.0; PASS_COUNT],
            wish: None,
            upward_done: false,
            downward_done: false,
            energies: vec![],
        }
    }
}

/// Leaves of sources and targets that were found best for a wish and so many of both.
#[derive(Debug, Clone, Copy)]
struct KnownLeaves {
    wish: Wish,
    numbers: [usize; 2],
    leaves: [usize; 2],
}

/// What changed since the last call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Changes {
    pub sources: bool,
    pub strengths: bool,
    pub targets: bool,
}

/// Results on the CPU: where target k of the caller goes. Rows are scaled by the engine.
pub struct Sink<'a, T> {
    pub main: &'a mut [T],
    pub gradient: Option<&'a mut [T]>,
    pub main_factor: f64,
    /// What the gradient is multiplied by after `main_factor`: one product of the two could leave the range.
    pub per_length: f64,
    pub accumulate: bool,
}

impl<T: Real, const C: usize> Fmm<T, C> {
    /// Trees, lists and expansions for `sources` and the targets last given. Returns false where the direct sum would be
    /// faster and `may_decline`.
    pub fn prepare(
        &mut self,
        sources: &mut dyn SourceSet<T, C>,
        targets: &[[f64; 3]],
        changes: Changes,
        wish: Wish,
        may_decline: bool,
    ) -> bool {
        // Before anything may decline: a later call must not find an old tree or old multipoles.
        if changes.sources || changes.strengths {
            self.upward_done = false;
            self.safety = 1.0;
        }
        if changes.sources {
            self.source_tree = Tree::default();
        }
        let fresh = self.wish != Some(wish);
        if changes.sources || changes.targets || fresh {
            if may_decline && self.too_small(sources, targets.len(), wish) {
                self.wish = None;
                return false;
            }
            self.wish = Some(wish);
            self.plant(sources, targets, changes.sources || fresh);
            self.measure(sources);
        } else if changes.strengths {
            self.take_sample(sources);
            self.measure(sources);
        }
        let go = !(may_decline && self.recipe.predicted > self.recipe.direct);
        if !go {
            self.wish = None;
        }
        go
    }

    /// Whether sorting alone costs more than the direct sum: no expansion can win it back.
    fn too_small(&mut self, sources: &dyn SourceSet<T, C>, m: usize, wish: Wish) -> bool {
        let n = sources.places().0.len();
        self.recipe.direct = n as f64 * m as f64 * sources.pair_seconds(wish.gradient);
        self.recipe.direct < 2.5e-7 * (n + m) as f64
    }

    /// Trees whose leaves cost least: grown with the smallest leaves that may be chosen, then pruned; the choice is
    /// remembered while the numbers stay alike.
    fn plant(&mut self, sources: &mut dyn SourceSet<T, C>, targets: &[[f64; 3]], new_sources: bool) {
        let start = Instant::now();
        let wish = self.wish.expect("set by prepare");
        self.cost = Cost { pair: sources.pair_seconds(wish.gradient), m2l: cost::m2l::<T, C>() };
        let numbers = [sources.places().0.len(), targets.len()];
        let alike = |a: usize, b: usize| 4 * a.abs_diff(b) <= a;
        let known = self.leaves_for.filter(|k| k.wish == wish && (0..2).all(|i| alike(k.numbers[i], numbers[i])));
        let capacities = known.map_or_else(|| self.capacities(numbers, SMALLEST_LEAF), |k| k.leaves);
        self.grow(sources, targets, new_sources, capacities);
        self.take_sample(sources);
        if known.is_none() && wish.leaf_capacity == 0 {
            self.energies = sources.energies(&self.source_tree, self.unit());
            let leaves = self.best_leaves(sources, new_sources);
            if new_sources {
                self.source_tree.prune(leaves[0]);
                sources.survey(&self.source_tree);
                self.recipe.source_capacity = leaves[0];
                self.leaves_for = Some(KnownLeaves { wish, numbers, leaves });
            }
            self.target_tree.prune(leaves[1]);
            self.recipe.target_capacity = leaves[1];
            self.name_leaves();
        }
        self.seconds[Pass::Tree as usize] = start.elapsed().as_secs_f64();
    }

    /// Orders and lists for the present trees and sample.
    fn measure(&mut self, sources: &dyn SourceSet<T, C>) {
        self.energies = sources.energies(&self.source_tree, self.unit());
        self.choose_orders(sources);
        let before = self.sample.as_ref().expect("just taken").norm2.0;
        self.widen_norm(sources, true);
        if self.sample.as_ref().expect("just taken").norm2.0 > 2.0 * before {
            self.choose_orders(sources);
        }
    }

    /// Both trees.
    fn grow(
        &mut self,
        sources: &mut dyn SourceSet<T, C>,
        targets: &[[f64; 3]],
        new_sources: bool,
        [ns, nt]: [usize; 2],
    ) {
        let wish = self.wish.expect("set by prepare");
        let (places, half) = sources.places();
        // Half the order of the closest pair: with it the estimate meets the measured error of CUBE at 1e-3 … 1e-9.
        let moment = (order_at(wish.tolerance, 0.38) as i32 / 2).clamp(3, 32);
        if new_sources {
            let root = Root::around(&[bounds(places, half)]);
            self.source_tree = Tree::build(places, half, root, ns, moment);
            sources.sort(&self.source_tree);
            self.recipe.source_capacity = ns;
            self.upward_done = false;
        }
        self.downward_done = false;
        let root = Root::around(&[bounds(targets, &[])]);
        self.target_tree = Tree::build(targets, &[], root, nt, moment);
        self.recipe.target_capacity = nt;
        self.target_points = memory::par_collect(self.target_tree.permutation.par_iter().map(|&k| targets[k as usize]));
        self.name_leaves();
    }

    fn name_leaves(&mut self) {
        let starts = self.target_tree.leaves.iter().map(|&l| (self.target_tree.cells[l as usize].begin, l));
        self.leaf_starts = memory::collect(starts);
        self.leaf_starts.sort_unstable();
    }

    fn leaf_of(&self, sorted: u32) -> usize {
        let k = self.leaf_starts.partition_point(|&(begin, _)| begin <= sorted) - 1;
        self.leaf_starts[k].1 as usize
    }

    /// The field at all targets, checked on the sample; tightened and repeated where it misses. False: it still misses,
    /// and nothing was written.
    pub fn evaluate(&mut self, sources: &dyn SourceSet<T, C>, sink: &mut Sink<'_, T>) -> bool {
        let wish = self.wish.expect("prepared");
        for round in 0.. {
            self.upward(sources);
            if round == 0 && !self.calibrated {
                self.calibrate(sources);
                self.calibrated = true;
            }
            self.downward(Only(None));
            self.widen_norm(sources, false);
            let SampledError { strict, loose, doubt } = self.sampled_error(sources, wish);
            self.recipe.sampled_error = loose;
            self.recipe.tightened = round;
            let error = strict * doubt;
            if error <= wish.tolerance || (round > 0 && loose * doubt <= wish.tolerance) {
                break;
            }
            // Numbers that overflowed cannot be judged, nor would more digits mend them.
            if round == 3 || !error.is_finite() {
                return false;
            }
            log::debug!("sampled error {error:.2e} misses {:.2e}: tightening", wish.tolerance);
            self.safety *= (0.4 * wish.tolerance / error).min(0.5);
            self.choose_orders(sources);
        }
        let start = Instant::now();
        self.leaves(sources, wish.gradient, sink);
        let spent = start.elapsed().as_secs_f64();
        // The two are one loop over the leaves; divided by the model.
        let near = (self.recipe.near_pairs + self.recipe.correction_pairs) as f64 * self.cost.pair
            / rayon::current_num_threads() as f64;
        self.seconds[Pass::P2p as usize] = near.min(spent);
        self.seconds[Pass::L2p as usize] = spent - near.min(spent);
        true
    }

    /// Expansions up to date, for single targets.
    pub fn ready(&mut self, sources: &dyn SourceSet<T, C>) {
        self.upward(sources);
        if !self.downward_done {
            self.downward(Only(None));
        }
    }

    pub fn target(&self, sorted: u32) -> [f64; 3] {
        self.target_points[sorted as usize]
    }

    fn upward(&mut self, sources: &dyn SourceSet<T, C>) {
        if self.upward_done {
            return;
        }
        let ops = self.ops.clone().expect("chosen");
        let start = Instant::now();
        memory::resize(&mut self.multipoles, self.source_tree.cells.len() * C * ops.order * ops.order, T::ZERO);
        passes::p2m::<T, C>(&ops, &self.source_tree, &mut self.multipoles, |cell, points| {
            sources.fill(cell, ops.order, points)
        });
        self.seconds[Pass::P2m as usize] = start.elapsed().as_secs_f64();
        let start = Instant::now();
        passes::m2m::<T, C>(&ops, &self.source_tree, &mut self.multipoles);
        self.seconds[Pass::M2m as usize] = start.elapsed().as_secs_f64();
        (self.upward_done, self.downward_done) = (true, false);
    }

    fn downward(&mut self, only: Only<'_>) {
        let ops = self.ops.clone().expect("chosen");
        self.downward_done = only.0.is_none();
        let start = Instant::now();
        memory::resize(&mut self.locals, self.target_tree.cells.len() * C * ops.order * ops.order, T::ZERO);
        passes::m2l::<T, C>(
            &ops,
            &self.source_tree,
            &self.target_tree,
            &self.lists,
            only,
            &self.multipoles,
            &mut self.locals,
        );
        self.seconds[Pass::M2l as usize] = start.elapsed().as_secs_f64();
        let start = Instant::now();
        passes::l2l::<T, C>(&ops, &self.target_tree, only, &mut self.locals);
        self.seconds[Pass::L2l as usize] = start.elapsed().as_secs_f64();
    }

    pub fn bytes(&self) -> u64 {
        let lists: usize = self
            .lists
            .iter()
            .map(|l| {
                l.far.capacity() * 8
                    + (l.near.capacity() + l.plain.capacity() + l.correction.capacity()) * 8
                    + size_of::<CellLists>()
            })
            .sum();
        (self.source_tree.bytes()
            + self.target_tree.bytes()
            + self.target_points.capacity() * 24
            + (self.multipoles.capacity() + self.locals.capacity()) * size_of::<T>()
            + lists) as u64
    }
}
