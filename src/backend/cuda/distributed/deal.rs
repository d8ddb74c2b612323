//! Which rank computes at which targets: each at its own, unless these are uneven in number or lie in the same region as those of other ranks.
//!
//! Enters: the targets of all ranks, where their callers have them. Leaves: targets of about the same number on every rank, a
//! range of a Morton curve each, and the way back for the fields there.

use super::wire::{Line, Wire, bytes_of, values_of};
use crate::error::Result;
use crate::inputs::{Reals, TargetInput};
use crate::math::morton::interleave;
use crate::memory;
use rayon::prelude::*;

/// Targets are dealt anew where a rank has a quarter more than the mean, and this many besides.
const SLACK: usize = 32;
/// Most levels of the grid that shows whether ranks have targets at the same positions, targets of a rank that a cell should have in
/// the mean, and words with a bit for every cell.
const LEVELS: u32 = 3;
const TARGETS: f64 = 4.0;
const WORDS: usize = 1 << (3 * LEVELS) >> 5;
/// Targets of a rank that are looked at for that: each is a wait for memory.
const LOOKED_AT: usize = 1 << 12;
/// Bits of a coordinate in a key, and keys that are sampled for each rank.
const BITS: u32 = 16;
const SAMPLES: usize = 256;

/// Where the own targets went.
#[derive(Debug, Default)]
pub struct Deal {
    /// In the order of the ranks that they went to; none: they stayed.
    moved: Option<Moved>,
}

#[derive(Debug)]
struct Moved {
    /// Numbers of the own targets as they were sent.
    order: Vec<u32>,
    /// Targets that came from each rank.
    came: Vec<usize>,
}

impl Deal {
    /// Whether some rank has more than its part; `counts` are the targets of all ranks.
    pub fn is_uneven(counts: &[usize]) -> bool {
        let mean = counts.iter().sum::<usize>() / counts.len();
        counts.iter().any(|&n| n > mean + mean / 4 + SLACK)
    }

    pub fn is_moved(&self) -> bool {
        self.moved.is_some()
    }

    /// Decides, moves, and gives the targets to compute at. `may_look`: all ranks have them in host memory.
    pub fn new<T: Wire>(
        line: &mut Line,
        call: &str,
        targets: Option<&TargetInput>,
        counts: &[usize],
        may_look: bool,
    ) -> Result<(Self, Option<TargetInput>)> {
        let kept = |targets: Option<&TargetInput>| Ok((Self::default(), targets.cloned()));
        let uneven = Self::is_uneven(counts);
        if !uneven && !may_look {
            return kept(targets);
        }
        let none = Reals::HostF32(vec![].into());
        let position = targets.map_or(&none, |t| &t.position);
        let own = line.own::<T>(position)?;
        let x = own.as_chunks::<3>().0;
        let some = some(x);
        let grid = Grid::around(line, &some)?;
        if !uneven && !grid.are_mixed(line, &some, counts.iter().sum())? {
            return kept(targets);
        }
        let keys: Vec<u64> = line.pool.install(|| memory::par_collect(x.par_iter().map(|x| grid.key(*x))));
        let ends = splitters(line, &keys)?;
        let size = line.communicator.size();
        let mut to: Vec<Vec<u32>> = vec![vec![]; size];
        keys.iter()
            .enumerate()
            .for_each(|(k, key)| memory::push(&mut to[ends.partition_point(|end| end <= key)], k as u32));
        let counts: Vec<i64> = to.iter().map(|numbers| (numbers.len() * size_of::<[T; 3]>()) as i64).collect();
        let order: Vec<u32> = to.concat();
        let sent: Vec<[T; 3]> = memory::collect(order.iter().map(|&k| x[k as usize]));
        let (bytes, came) = line.communicator.share(call, bytes_of(&sent), &counts)?;
        let came: Vec<usize> = came.iter().map(|&n| n as usize / size_of::<[T; 3]>()).collect();
        let here = TargetInput { n: came.iter().sum(), position: T::host(values_of::<T>(&bytes).into()) };
        Ok((Self { moved: Some(Moved { order, came }) }, Some(here)))
    }

    /// A field of `width` numbers a target at the own targets, from that at those of this rank's part.
    pub fn back<T: Wire>(&self, line: &Line, call: &str, values: Vec<T>, width: usize) -> Result<Vec<T>> {
        let Some(moved) = &self.moved else { return Ok(values) };
        let counts: Vec<i64> = moved.came.iter().map(|n| (n * width * size_of::<T>()) as i64).collect();
        let total = moved.came.iter().sum::<usize>() * width;
        let (bytes, _) = line.communicator.share(call, bytes_of(&values[..total]), &counts)?;
        drop(values);
        let got = values_of::<T>(&bytes);
        let mut own = memory::filled(T::default(), got.len());
        for (row, &k) in got.chunks_exact(width).zip(&moved.order) {
            own[k as usize * width..][..width].copy_from_slice(row);
        }
        Ok(own)
    }
}

/// Some of the targets, all over the array.
fn some<T: Wire>(x: &[[T; 3]]) -> Vec<[T; 3]> {
    let stride = x.len().div_ceil(LOOKED_AT).max(1);
    memory::collect(x.iter().step_by(stride).copied())
}

fn extent_of<T: Wire>(some: &[[T; 3]]) -> [f64; 6] {
    let mut extent = [f64::NEG_INFINITY; 6];
    for (k, v) in some.iter().flat_map(|x| x.iter().enumerate()) {
        extent[k] = extent[k].max(-v.to_f64());
        extent[3 + k] = extent[3 + k].max(v.to_f64());
    }
    extent
}

/// A box around nearly all targets of all ranks; what lies outside goes to its faces.
struct Grid {
    low: [f64; 3],
    /// Cells of the finest level a length.
    scale: f64,
}

impl Grid {
    fn around<T: Wire>(line: &Line, some: &[[T; 3]]) -> Result<Self> {
        let all = line.communicator.largest(&extent_of(some))?;
        let low = [-all[0], -all[1], -all[2]];
        let edge = (0..3).map(|k| all[3 + k] - low[k]).fold(0.0, f64::max);
        Ok(Self { low, scale: if edge > 0.0 { f64::from((1 << BITS) - 1) / edge } else { 0.0 } })
    }

    fn cell<T: Wire>(&self, x: [T; 3]) -> [u32; 3] {
        // Negative numbers become 0.
        std::array::from_fn(|k| (((x[k].to_f64() - self.low[k]) * self.scale) as u32).min((1 << BITS) - 1))
    }

    fn key<T: Wire>(&self, x: [T; 3]) -> u64 {
        let [a, b, c] = self.cell(x).map(|n| interleave(u64::from(n)));
        a << 2 | b << 1 | c
    }

    /// Whether the ranks' targets lie more in the same cells than in different ones.
    fn are_mixed<T: Wire>(&self, line: &Line, some: &[[T; 3]], total: usize) -> Result<bool> {
        let share = total as f64 / (TARGETS * line.communicator.size() as f64);
        let levels = (share.max(1.0).log2() / 3.0).clamp(1.0, f64::from(LEVELS)) as u32;
        let mut mine = vec![0u32; WORDS];
        for x in some {
            let [a, b, c] = self.cell(*x).map(|n| n >> (BITS - levels));
            let cell = (a << levels | b) << levels | c;
            mine[cell as usize / 32] |= 1 << (cell % 32);
        }
        let all = values_of::<u32>(&line.communicator.gather_all("positions of targets", bytes_of(&mine))?);
        let count = |words: &[u32]| words.iter().map(|w| w.count_ones()).sum::<u32>() as usize;
        let union: Vec<u32> = (0..WORDS).map(|w| all.iter().skip(w).step_by(WORDS).fold(0, |a, b| a | b)).collect();
        Ok(2 * count(&all) > (1 + line.communicator.size()) * count(&union))
    }
}

/// The first key of every rank but the first: equal parts of a sample of all keys.
fn splitters(line: &Line, keys: &[u64]) -> Result<Vec<u64>> {
    let size = line.communicator.size();
    let total = line.communicator.total(&[keys.len() as f64])?[0];
    let mut keys = memory::copy(keys);
    line.pool.install(|| keys.par_sort_unstable());
    let stride = (total / (SAMPLES * size) as f64).max(1.0);
    let count = (keys.len() as f64 / stride) as usize;
    let sampled: Vec<f64> = (0..count).map(|k| keys[((k as f64 + 0.5) * stride) as usize] as f64).collect();
    let mut all = line.communicator.joined(&sampled)?;
    all.sort_unstable_by(f64::total_cmp);
    let at = |r: usize| all.get(r * all.len() / size).map_or(u64::MAX, |&key| key as u64);
    Ok((1..size).map(at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_more_are_not_uneven() {
        assert!(!Deal::is_uneven(&[10, 0, 30]) && !Deal::is_uneven(&[1000, 1200]));
        assert!(Deal::is_uneven(&[1000, 0]) && Deal::is_uneven(&[500, 500, 800]));
    }
}
