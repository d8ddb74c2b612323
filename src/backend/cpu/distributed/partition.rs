//! Who has what: a partition of sources and targets along a space-filling curve.
//!
//! Enters: each rank's own elements, wherever they are. Leaves: on each rank those of its range of Morton keys, about equally
//! many of sources and targets together; and the way back for the values at the targets.

use super::elements::{Elements, Record};
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
    pub fn new<const C: usize, S: Elements<C>>(peers: &Peers, root: Root, sources: &S, targets: &[[f64; 3]]) -> Self {
        let records = sources.records();
        let of_sources: Vec<u64> = memory::par_collect(records.par_iter().map(|r| key(S::place(r), root)));
        let of_targets: Vec<u64> = memory::par_collect(targets.par_iter().map(|x| key(*x, root)));
        let ends = splitters(peers, &of_sources, &of_targets);
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

/// The first key of every rank but the first, from a sample of all keys.
fn splitters(peers: &Peers, of_sources: &[u64], of_targets: &[u64]) -> Vec<u64> {
    let size = peers.size();
    let mine = of_sources.len() + of_targets.len();
    let all = peers.total(mine as f64);
    let stride = (all / (SAMPLES * size) as f64).max(1.0);
    let mut keys: Vec<u64> = memory::with_room(mine);
    keys.extend(of_sources.iter().chain(of_targets).copied());
    keys.par_sort_unstable();
    // A key is two numbers of 32 bits on its way.
    let count = (mine as f64 / stride).ceil() as usize;
    let sampled = (0..count).map(|k| keys[((k as f64 + 0.5) * stride).min(mine as f64 - 1.0) as usize]);
    let halves: Vec<f64> = sampled.flat_map(|k| [(k >> 32) as f64, (k & 0xffff_ffff) as f64]).collect();
    let (halves, _) = peers.gather(&halves);
    let mut keys: Vec<u64> = halves.as_chunks::<2>().0.iter().map(|h| (h[0] as u64) << 32 | h[1] as u64).collect();
    keys.sort_unstable();
    let at = |r: usize| keys.get(r * keys.len() / size).copied().unwrap_or(u64::MAX);
    (1..size).map(at).collect()
}
