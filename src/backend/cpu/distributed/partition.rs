//! Who has what: a partition of sources and targets along a space-filling curve.
//!
//! Enters: each rank's own elements, wherever they are, and what they weigh. Leaves: on each rank those of its range of Morton
//! keys, about an equal part of the weight; and the way back for the values at the targets.

use super::elements::{Elements, Record};
use super::shares::Shares;
use crate::backend::cpu::tree::{Root, key};
use crate::backend::draw::stratified;
use crate::distributed::Peers;
use crate::memory;
use rayon::prelude::*;

/// Keys that all ranks together tell for each of them: parts are equal to about one over that.
const SAMPLES: usize = 256;
/// A rank sorts so many of its keys at most, to find those that it tells: a few thousandths of a part.
const SORTED: usize = 1 << 16;

/// One rank's part.
pub struct Partition {
    /// Sources of all ranks in this range.
    pub records: Vec<Record>,
    /// Targets likewise, rank by rank.
    pub targets: Vec<[f64; 3]>,
    /// Which of the own targets went to each rank.
    went: Vec<Vec<u32>>,
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
            let mut went: Vec<Vec<u32>> = vec![vec![]; peers.size()];
            went[peers.rank()] = memory::collect(0..targets.len() as u32);
            return Self { records, targets: memory::copy(targets), went };
        }
        let of_sources: Vec<u64> = memory::par_collect(records.par_iter().map(|r| key(S::position(r), root)));
        let of_targets: Vec<u64> = memory::par_collect(targets.par_iter().map(|x| key(*x, root)));
        let weights = shares.weights(scale);
        let ends = splitters(peers, records.len() + targets.len(), |k| match k.checked_sub(records.len()) {
            None => (of_sources[k], weights.of_source()),
            Some(t) => (of_targets[t], weights.of_target(targets[t])),
        });
        let size = peers.size();
        let ranks_of = |keys: &[u64]| -> Vec<u32> {
            memory::par_collect(keys.par_iter().map(|&k| ends.partition_point(|&end| end <= k) as u32))
        };
        let (sources_to, targets_to) = (ranks_of(&of_sources), ranks_of(&of_targets));
        let mut to = rooms(&sources_to, size, 8);
        records.iter().zip(&sources_to).for_each(|(r, &rank)| to[rank as usize].extend_from_slice(r));
        drop(records);
        let came = joined(&peers.share(to));
        let (mut went, mut to) = (rooms(&targets_to, size, 1), rooms(&targets_to, size, 3));
        for (n, (x, &rank)) in targets.iter().zip(&targets_to).enumerate() {
            went[rank as usize].push(n as u32);
            to[rank as usize].extend_from_slice(x);
        }
        let here = joined(&peers.share(to));
        Self { records: came, targets: here, went }
    }

    /// Values `[target][row]` of this part to the ranks whose targets they are; returned are those of the own ones, in the
    /// caller's order.
    pub fn back(&self, peers: &Peers, values: &[f64], rows: usize) -> Vec<f64> {
        // How many came from each rank, in whose order they are.
        let counts: Vec<Vec<f64>> = self.went.iter().map(|w| vec![w.len() as f64]).collect();
        let came = peers.share(counts);
        let mut at = 0;
        let mut of_rank = |count: &Vec<f64>| {
            let from = at;
            at += rows * count[0] as usize;
            memory::copy(&values[from..at])
        };
        let to: Vec<Vec<f64>> = came.iter().map(&mut of_rank).collect();
        let total: usize = self.went.iter().map(Vec::len).sum();
        let mut own = memory::filled(0.0, rows * total);
        for (numbers, got) in self.went.iter().zip(peers.share(to)) {
            for (&n, row) in numbers.iter().zip(got.chunks_exact(rows)) {
                own[n as usize * rows..][..rows].copy_from_slice(row);
            }
        }
        own
    }
}

/// One empty list for each rank, with room for `each` numbers an element that goes there.
fn rooms<T>(ranks: &[u32], size: usize, each: usize) -> Vec<Vec<T>> {
    let mut counts = memory::filled(0, size);
    ranks.iter().for_each(|&rank| counts[rank as usize] += each);
    counts.into_iter().map(memory::with_room).collect()
}

/// What came from all ranks, in their order.
fn joined<const N: usize>(parts: &[Vec<f64>]) -> Vec<[f64; N]> {
    let mut all = memory::with_room(parts.iter().map(|p| p.len() / N).sum());
    parts.iter().for_each(|p| all.extend_from_slice(p.as_chunks().0));
    all
}

/// The first key of every rank but the first, from a sample of all keys: one for an equal part of the weight each.
/// `element`: key and weight of each of the own `count`.
fn splitters(peers: &Peers, count: usize, element: impl Fn(usize) -> (u64, f64)) -> Vec<u64> {
    let size = peers.size();
    let mut sorted: Vec<(u64, f64)> = memory::collect(stratified(count, SORTED, 5).into_iter().map(element));
    sorted.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // What each stands for.
    let share = count as f64 / sorted.len().max(1) as f64;
    let mine = share * sorted.iter().map(|k| k.1).sum::<f64>();
    let stride = peers.total(mine) / (SAMPLES * size) as f64;
    let mut halves: Vec<f64> = vec![];
    let mut next = 0.5 * stride;
    let mut weight = 0.0;
    for (k, w) in sorted {
        weight += share * w;
        while weight > next {
            // A key is two numbers of 32 bits on its way.
            memory::extend(&mut halves, [(k >> 32) as f64, (k & 0xffff_ffff) as f64]);
            next += stride;
        }
    }
    let (halves, _) = peers.gather(&halves);
    let mut keys: Vec<u64> =
        memory::collect(halves.as_chunks::<2>().0.iter().map(|h| (h[0] as u64) << 32 | h[1] as u64));
    keys.sort_unstable();
    let at = |r: usize| keys.get(r * keys.len() / size).copied().unwrap_or(u64::MAX);
    (1..size).map(at).collect()
}
