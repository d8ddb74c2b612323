//! Who has what: a partition of sources and targets along a space-filling curve.
//!
//! Enters: each rank's own elements, wherever they are, and what they weigh. Leaves: on each rank those of its range of Morton
//! keys, about an equal part of the weight; and the way back for the values at the targets.

use super::elements::{Elements, Record};
use super::shares::Shares;
use crate::backend::cpu::tree::{Root, key};
use crate::distributed::Peers;
use crate::memory;
use rayon::prelude::*;

/// Keys that are sampled for each rank: the parts are equal to about 1/sqrt of that.
const SAMPLES: usize = 256;

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
    pub fn new<const C: usize, S: Elements<C>>(
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
        let of_sources: Vec<u64> = memory::par_collect(records.par_iter().map(|r| key(S::place(r), root)));
        let of_targets: Vec<u64> = memory::par_collect(targets.par_iter().map(|x| key(*x, root)));
        let (heavy, costly) = shares.weights(records.len(), targets, scale);
        let mut keyed = memory::with_room(records.len() + targets.len());
        keyed.extend(of_sources.iter().copied().zip(heavy));
        keyed.extend(of_targets.iter().copied().zip(costly));
        let ends = splitters(peers, keyed);
        let rank_of = |k: u64| ends.partition_point(|&end| end <= k);
        let size = peers.size();
        let mut to: Vec<Vec<f64>> = vec![vec![]; size];
        for (r, &k) in records.iter().zip(&of_sources) {
            memory::extend(&mut to[rank_of(k)], r.iter().copied());
        }
        drop(records);
        let mut came = vec![];
        peers.share(to).iter().for_each(|r| memory::extend(&mut came, r.as_chunks::<8>().0.iter().copied()));
        let mut went: Vec<Vec<u32>> = vec![vec![]; size];
        of_targets.iter().enumerate().for_each(|(n, &k)| memory::push(&mut went[rank_of(k)], n as u32));
        let places =
            |numbers: &Vec<u32>| memory::copy(&numbers.iter().flat_map(|&n| targets[n as usize]).collect::<Vec<_>>());
        let mut here = vec![];
        for from in peers.share(went.iter().map(places).collect()) {
            memory::extend(&mut here, from.as_chunks::<3>().0.iter().copied());
        }
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

/// The first key of every rank but the first, from a sample of all keys: one for an equal part of the weight each.
fn splitters(peers: &Peers, mut keyed: Vec<(u64, f64)>) -> Vec<u64> {
    let size = peers.size();
    keyed.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mine: f64 = keyed.iter().map(|k| k.1).sum();
    let stride = peers.total(mine) / (SAMPLES * size) as f64;
    let mut halves: Vec<f64> = vec![];
    let mut next = 0.5 * stride;
    let mut weight = 0.0;
    for (k, w) in keyed {
        weight += w;
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
