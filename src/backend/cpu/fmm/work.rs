//! What a field has cost, leaf by leaf: the lists of an evaluation, in seconds of the kernels.
//!
//! Enters: a prepared `Fmm`. Leaves: `Work`, seconds of one thread for each target and for a source. What cells above a leaf
//! cost is divided evenly among their targets.

use super::choice::{CELL_SECONDS, COEFFICIENT_SECONDS, Choice, POINT_SECONDS};
use super::trees::Trees;
use super::{Cost, Fmm};
use crate::memory;
use crate::simd::Real;

/// Targets of one leaf.
#[derive(Debug, Clone, Copy)]
pub struct LeafCost {
    pub center: [f64; 3],
    pub targets: usize,
    /// For one of these targets.
    pub seconds: f64,
}

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub struct Work {
    pub leaves: Vec<LeafCost>,
    /// For one source of this rank.
    pub source: f64,
}

impl Work {
    /// Of all targets, and of so many sources.
    pub fn seconds(&self, sources: usize) -> f64 {
        let targets: f64 = self.leaves.iter().map(|l| l.targets as f64 * l.seconds).sum();
        targets + sources as f64 * self.source
    }
}

impl<T: Real, const C: usize> Fmm<T, C> {
    /// Of the present lists; nothing where there are none.
    pub fn work(&self) -> Work {
        self.prepared.as_ref().map_or_else(Work::default, |p| {
            of_lists::<T, C>(&p.trees, &p.choice, &p.cost, p.statistics.sample.points.len() + p.choice.recipe.judges)
        })
    }
}

/// What lists stand for; `samples`: targets whose field every rank sums exactly.
pub fn of_lists<T: Real, const C: usize>(trees: &Trees, choice: &Choice<T>, cost: &Cost, samples: usize) -> Work {
    let tree = &trees.target;
    let order = choice.ops.order;
    let cell_seconds = cost.m2l[order] + CELL_SECONDS;
    let point = POINT_SECONDS + COEFFICIENT_SECONDS * (C * order * order) as f64;
    let mut share = memory::filled(0.0, tree.cells.len());
    for (c, (cell, list)) in tree.cells.iter().zip(&choice.lists).enumerate() {
        let above = if c == 0 { 0.0 } else { share[cell.parent as usize] };
        let far: f64 = list.far.iter().map(|f| cost.far(choice.scheme, f.order as usize, cell.len())).sum();
        share[c] = above + (far + cell_seconds) / cell.len().max(1) as f64;
    }
    let leaf = |&l: &u32| {
        let (cell, list) = (&tree.cells[l as usize], &choice.lists[l as usize]);
        let (near, correction) = list.elements();
        let direct = near as f64 * cost.pair + correction as f64 * cost.correction;
        LeafCost { center: cell.center, targets: cell.len(), seconds: share[l as usize] + direct + point }
    };
    let sampled = samples as f64 * cost.exact;
    let own = trees.own.as_ref().map_or(&trees.source, |own| &own.tree);
    let cells = own.cells.len() as f64 * cell_seconds / own.permutation.len().max(1) as f64;
    Work { leaves: memory::collect(tree.leaves.iter().map(leaf)), source: point + sampled + cells }
}
