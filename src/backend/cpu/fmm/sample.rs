//! Targets whose field is summed directly: one sample that budgets and calibrates, another, independent one that judges.
//!
//! Enters: sorted targets. Leaves: which of them, and their exact field.

use super::trees::Trees;
use super::{SourceSet, rows};
use crate::memory;
use crate::simd::Real;

/// Groups of neighbouring targets that calibrate, and targets in a group: as many as the lanes of a register cost nothing.
const GROUPS: usize = 14;
const GROUP: usize = 8;
/// The calibration is worth while below this part of the target cells.
const CALIBRATION_PART: f64 = 0.3;

/// Sampled targets with their exact field.
pub struct Sample {
    /// Sorted target numbers, rising.
    pub targets: Vec<u32>,
    /// `[row][target]`, in double precision.
    pub exact: Vec<f64>,
    /// Neighbouring targets stand together, so many of them.
    pub groups: Vec<usize>,
    gradient: bool,
    components: usize,
}

/// A number in [0, 1) that depends on `seed` and `k` only (splitmix64).
pub fn jitter(seed: u64, k: u64) -> f64 {
    let z = seed.wrapping_add((k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// `count` sorted targets, one at random from each of as many equal runs; all of them, where there are no more.
fn stratified(m: usize, count: usize, seed: u64) -> Vec<u32> {
    let count = count.min(m);
    let at = |k: usize| ((k as f64 + jitter(seed, k as u64)) * m as f64 / count as f64) as usize;
    if count == m { memory::collect(0..m as u32) } else { memory::collect((0..count).map(|k| at(k).min(m - 1) as u32)) }
}

impl Sample {
    /// Groups of neighbours, because the kernels take some targets at a time and their chains of cells are common.
    pub fn of_groups<T: Real, const C: usize>(sources: &dyn SourceSet<T, C>, trees: &Trees, gradient: bool) -> Self {
        let m = trees.points.len();
        let (mut targets, mut groups): (Vec<u32>, Vec<usize>) = (vec![], vec![]);
        for first in stratified(m, GROUPS, 1) {
            let begin =
                (first as usize).min(m.saturating_sub(GROUP)).max(targets.last().map_or(0, |&l| l as usize + 1));
            let end = (begin + GROUP).min(m);
            if begin < end {
                memory::push(&mut groups, end - begin);
                memory::extend(&mut targets, begin as u32..end as u32);
            }
        }
        Self::summed(sources, trees, targets, groups, gradient)
    }

    /// Single targets, spread evenly.
    pub fn of_targets<T: Real, const C: usize>(
        sources: &dyn SourceSet<T, C>,
        trees: &Trees,
        gradient: bool,
        count: usize,
        seed: u64,
    ) -> Self {
        let mut targets = stratified(trees.points.len(), count, seed);
        targets.dedup();
        let groups = memory::filled(1, targets.len());
        Self::summed(sources, trees, targets, groups, gradient)
    }

    fn summed<T: Real, const C: usize>(
        sources: &dyn SourceSet<T, C>,
        trees: &Trees,
        targets: Vec<u32>,
        groups: Vec<usize>,
        gradient: bool,
    ) -> Self {
        let points: Vec<[f64; 3]> = memory::collect(targets.iter().map(|&k| trees.points[k as usize]));
        let exact = sources.exact(&points, gradient);
        Self { targets, exact, groups, gradient, components: C }
    }

    /// One target of each group.
    pub fn heads(&self) -> Vec<u32> {
        let mut at = 0;
        memory::collect(self.groups.iter().map(|&n| {
            at += n;
            self.targets[at - n]
        }))
    }

    /// Target cells above the sampled targets, themselves included; `None` where that is a large part of the tree.
    pub fn chains(&self, trees: &Trees) -> Option<Vec<bool>> {
        let cells = trees.target.cells.len();
        let mut marked = memory::filled(false, cells);
        self.targets.iter().flat_map(|&t| trees.chain(t)).for_each(|c| marked[c] = true);
        let count = marked.iter().filter(|&&m| m).count();
        (count as f64 <= CALIBRATION_PART * cells as f64).then_some(marked)
    }

    /// Squares at each target of `[row][target]` values divided by `unit`: of the field and of its gradient.
    pub fn squares(&self, values: &[f64], unit: f64) -> [Vec<f64>; 2] {
        let count = self.targets.len();
        let main = rows(self.components, false);
        let square = |range: std::ops::Range<usize>| {
            memory::collect((0..count).map(|k| range.clone().map(|r| (values[r * count + k] / unit).powi(2)).sum()))
        };
        [square(0..main), if self.gradient { square(main..rows(self.components, true)) } else { vec![] }]
    }

    /// The same of the differences between `values` and the exact field.
    pub fn squared_errors(&self, values: impl Iterator<Item = f64>, unit: f64) -> [Vec<f64>; 2] {
        let wrong: Vec<f64> = values.zip(&self.exact).map(|(a, b)| a - b).collect();
        self.squares(&wrong, unit)
    }
}
