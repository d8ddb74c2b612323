//! Ranges of a space-filling curve: which rank gets which element, and the way back.
//!
//! Enters: keys of each rank's own elements along the curve, and what they weigh. Leaves: elements on the rank of their range, about an
//! equal part of the weight for each; later their values on the ranks that they came from.

use rayon::prelude::*;

use crate::backend::cpu::tree::Corners;
use crate::backend::draw::stratified;
use crate::distributed::Peers;
use crate::memory;

/// Keys that all ranks together tell for each of them: parts are equal to about one over that.
const SAMPLES: usize = 256;
/// A rank sorts so many of its keys at most, to find those that it tells: a few thousandths of a part.
const SORTED: usize = 1 << 16;

/// Which of the own elements goes to which rank.
pub struct Way {
    went: Vec<Vec<u32>>,
}

impl Way {
    /// To each rank these; one may go to several, and some nowhere.
    pub fn of(went: Vec<Vec<u32>>) -> Self {
        Self { went }
    }

    /// Of elements with these keys; `ends` are the first keys of every rank but the first.
    pub fn along(keys: &[u64], ends: &[u64]) -> Self {
        let ranks: Vec<u32> =
            memory::par_collect(keys.par_iter().map(|&k| ends.partition_point(|&end| end <= k) as u32));
        let mut counts = memory::filled(0, ends.len() + 1);
        ranks.iter().for_each(|&rank| counts[rank as usize] += 1);
        let mut went: Vec<Vec<u32>> = counts.into_iter().map(memory::with_room).collect();
        ranks.iter().enumerate().for_each(|(k, &rank)| went[rank as usize].push(k as u32));
        Self { went }
    }

    /// So many, none of which goes away.
    pub fn none(peers: &Peers, count: usize) -> Self {
        let mut went: Vec<Vec<u32>> = vec![vec![]; peers.size()];
        went[peers.rank()] = memory::collect(0..count as u32);
        Self { went }
    }

    /// Numbers of the own elements for each rank.
    pub fn packed<const N: usize>(&self, row: impl Fn(usize) -> [f64; N]) -> Vec<Vec<f64>> {
        let of_rank = |numbers: &Vec<u32>| {
            let mut rows = memory::with_room(N * numbers.len());
            numbers.iter().for_each(|&k| rows.extend_from_slice(&row(k as usize)));
            rows
        };
        self.went.iter().map(of_rank).collect()
    }

    /// Values of the elements that came here, rank by rank, `rows` for each, to the ranks whose they are; returned are those of the own
    /// ones, in their order.
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

/// The box around those of all ranks; of nothing, infinities.
pub fn around_all(peers: &Peers, (low, high): Corners) -> Corners {
    let mut extent = [-low[0], -low[1], -low[2], high[0], high[1], high[2]];
    peers.largest(&mut extent);
    let [x, y, z, high @ ..] = extent;
    ([-x, -y, -z], high)
}

/// What came from all ranks, in their order.
pub fn joined<const N: usize>(parts: &[Vec<f64>]) -> Vec<[f64; N]> {
    let mut all = memory::with_room(parts.iter().map(|p| p.len() / N).sum());
    parts.iter().for_each(|p| all.extend_from_slice(p.as_chunks().0));
    all
}

/// The first key of every rank but the first, from a sample of all keys: one for an equal part of the weight each.
/// `element`: key and weight of each of the own `count`.
pub fn splitters(peers: &Peers, count: usize, element: impl Fn(usize) -> (u64, f64)) -> Vec<u64> {
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
