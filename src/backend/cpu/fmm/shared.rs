//! One far field over many ranks: the stages of `mod.rs`, with trees that have the other ranks' essential cells.
//!
//! Enters: this rank's part of sources and targets, a range of a space-filling curve. Leaves: a prepared `Fmm`; all that
//! decides is the same number on every rank.

use super::choice::{self, Choice, Leaves};
use super::essential::{self, Own};
use super::statistics::Statistics;
use super::trees::Trees;
use super::{Cost, Fmm, Prepared, Recipe, Request, SORT_SECONDS, SourceSet};
use crate::backend::periods;
use crate::distributed::Peers;
use crate::report::Pass;
use crate::simd::Real;
use std::time::Instant;

/// The pair budget that all sources leave is taken to be this part of the one that the own sources leave.
const EXPECTED_BUDGET: f64 = 0.7;

impl Recipe {
    /// Counts of all ranks; what is predicted is that of the slowest.
    pub fn join(&mut self, trees: &Trees) {
        let peers = &trees.peers;
        self.guests = trees.own.as_ref().map_or([0; 2], |own| own.guests);
        if !peers.are_many() {
            return;
        }
        let mut sums = [self.cells as f64, 0.0, 0.0, 0.0, self.predicted];
        sums[1..4].copy_from_slice(&[self.far_pairs, self.near_pairs, self.correction_pairs].map(|n| n as f64));
        peers.sum(&mut sums);
        let leaves = [self.source_capacity, self.target_capacity];
        let mut most = [self.predicted, self.depth as f64, leaves[0] as f64, leaves[1] as f64, self.direct];
        peers.largest(&mut most);
        self.direct = most[4];
        (self.cells, self.far_pairs) = (sums[0] as usize, sums[1] as u64);
        (self.near_pairs, self.correction_pairs) = (sums[2] as u64, sums[3] as u64);
        self.imbalance = most[0] * peers.size() as f64 / sums[4].max(f64::MIN_POSITIVE);
        (self.predicted, self.depth) = (most[0], most[1] as usize);
        (self.source_capacity, self.target_capacity) = (most[2] as usize, most[3] as usize);
    }
}

impl<T: Real, const C: usize> Fmm<T, C> {
    /// Everything that is made before an evaluation, on all ranks together. False: the direct sum is faster, and nothing is
    /// prepared.
    pub fn prepare_shared(
        &mut self,
        peers: &Peers,
        sources: &mut dyn SourceSet<T, C>,
        targets: &[[f64; 3]],
        request: Request,
        may_decline: bool,
    ) -> bool {
        let start = Instant::now();
        self.prepared = None;
        self.expansions.forget_sources();
        let mut counts = [sources.positions().0.len() as f64, targets.len() as f64];
        peers.sum(&mut counts);
        let mut cost: Cost = Self::costs(sources, request);
        // A rank without sources has no costs of its own.
        let greatest = |cost: f64| peers.max(cost);
        (cost.pair, cost.exact, cost.correction) =
            (greatest(cost.pair), greatest(cost.exact), greatest(cost.correction));
        // As many threads on every rank as on the one that has fewest.
        let threads = peers.min(rayon::current_num_threads() as f64) * peers.size() as f64;
        // Every rank sums the images of its own sources at all targets.
        let images = counts[1] * peers.size() as f64 * choice::image_seconds(request);
        let direct = (counts[0] * counts[1] * request.direct_pair(&cost) + images) / threads;
        self.recipe.direct = direct;
        if may_decline && direct < SORT_SECONDS * (counts[0] + counts[1]) / threads {
            return false;
        }
        let leaves = Leaves::grown(&cost, counts.map(|n| n as usize), request);
        let reach = sources.own().core_extent(periods::CORES_OF_IMAGES * request.tolerance);
        let mut trees = Trees::grow(sources.positions(), targets, leaves, request, reach);
        sources.sort(&trees.source);
        trees.join(peers);
        self.seconds[Pass::Tree as usize] = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut statistics = Statistics::measure(sources, &mut trees, request);
        let measured = start.elapsed();
        // By the own sources: what others add at the faces of the ranges is much the same for all sizes.
        let (scheme, of_own) = choice::choose_leaves::<T, C>(sources, &mut trees, &mut statistics, &cost, request);
        let searched = start.elapsed();
        trees.own = Some(Own::new(std::mem::take(&mut trees.source), std::mem::take(&mut statistics.source_cells)));
        // What is essential depends on the budget, and what the model allows on all that is there. The own sources tell most of
        // it, so that the exchange is seldom needed twice.
        let (whole, expected) = (statistics.budget, EXPECTED_BUDGET * of_own.min(1.0));
        statistics.budget = whole.scaled(expected, 1.0);
        essential::join(sources, &mut trees, scheme, &mut statistics, request);
        statistics.budget = whole;
        let allowed = choice::allowed_by_model::<T, C>(scheme, &trees, &statistics, &cost, request);
        statistics.budget = whole.scaled(allowed, 1.0);
        if allowed < expected {
            essential::join(sources, &mut trees, scheme, &mut statistics, request);
        }
        let joined = start.elapsed();
        let mut choice: Choice<T> = choice::empty(scheme);
        choice.build_lists(sources, &trees, &statistics, &cost, request);
        self.seconds[Pass::Lists as usize] = start.elapsed().as_secs_f64();
        log::debug!(
            "measured in {measured:.1?}, leaves and cells by {searched:.1?}, cells of others by {joined:.1?}{}, lists by {:.1?}",
            if allowed < expected { " (twice)" } else { "" },
            start.elapsed()
        );
        self.recipe = choice.recipe.clone();
        if may_decline && self.recipe.predicted > direct {
            return false;
        }
        self.prepared = Some(Prepared { request, cost, trees, statistics, choice });
        true
    }
}
