//! Who has what: a partition of sources and targets along a space-filling curve.
//!
//! Enters: each rank's own elements, wherever they are, and what they weigh. Leaves: on each rank those of its range of Morton
//! keys, about an equal part of the weight; and the way back for the values at the targets.

use super::elements::{Elements, Record};
use super::shares::Shares;
use crate::backend::cpu::tree::{Root, key};
use crate::backend::curve::{Way, joined, splitters};
use crate::distributed::Peers;
use crate::memory;
use rayon::prelude::*;

/// One rank's part.
pub struct Partition {
    /// Sources of all ranks in this range.
    pub records: Vec<Record>,
    /// Targets likewise, rank by rank.
    pub targets: Vec<[f64; 3]>,
    way: Way,
}

impl Partition {
    /// Lengths are the caller's times `scale`.
    pub fn new<const C: usize, S: Elements<f64, C>>(
        peers: &Peers,
        root: Root,
        sources: &S,
        targets: &[[f64; 3]],
        shares: Shares<'_>,
        scale: f64,
    ) -> Self {
        let records = sources.records();
        if matches!(shares, Shares::Host) {
            return Self { records, targets: memory::copy(targets), way: Way::none(peers, targets.len()) };
        }
        let of_sources: Vec<u64> = memory::par_collect(records.par_iter().map(|r| key(S::position(r), root)));
        let of_targets: Vec<u64> = memory::par_collect(targets.par_iter().map(|x| key(*x, root)));
        let weights = shares.weights(scale);
        let ends = splitters(peers, records.len() + targets.len(), |k| match k.checked_sub(records.len()) {
            None => (of_sources[k], weights.of_source()),
            Some(t) => (of_targets[t], weights.of_target(targets[t])),
        });
        let to = Way::along(&of_sources, &ends).packed(|k| records[k]);
        drop(records);
        let records = joined(&peers.share(to));
        let way = Way::along(&of_targets, &ends);
        let targets = joined(&peers.share(way.packed(|k| targets[k])));
        Self { records, targets, way }
    }

    /// Values `[target][row]` of this part to the ranks whose targets they are; returned are those of the own ones, in the
    /// caller's order.
    pub fn back(&self, peers: &Peers, values: &[f64], rows: usize) -> Vec<f64> {
        self.way.back(peers, values, rows)
    }
}
