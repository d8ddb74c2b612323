//! Targets whose field is summed directly: one sample that budgets and calibrates, another, independent one that judges.
//!
//! Enters: sorted targets. Leaves: which of them, and their exact field.

use super::trees::Trees;
use super::{SourceSet, rows};
use crate::backend::draw::stratified;
use crate::memory;
use crate::simd::Real;
use std::ops::Range;

/// Groups of neighbouring targets that calibrate, and targets in a group: as many as the lanes of a register cost nothing.
const GROUPS: usize = 14;
const GROUP: usize = 8;
/// The calibration is worth while below this part of the target cells (treecode: of the targets).
const CALIBRATION_PART: f64 = 0.3;

/// `[row][target]` of `rows` rows and `count` targets: `values` of some targets, zero at the others.
pub fn among<T: Real>([rows, count]: [usize; 2], some: Range<usize>, values: &[T]) -> Vec<f64> {
    let mut all = memory::filled(0.0, rows * count);
    for (row, found) in values.chunks_exact(some.len().max(1)).enumerate() {
        all[row * count..][some.clone()].iter_mut().zip(found).for_each(|(to, v)| *to = v.f64());
    }
    all
}

/// Sampled targets with their exact field.
pub struct Sample {
    /// Sorted target numbers of this rank, rising.
    pub targets: Vec<u32>,
    /// Targets of all ranks, in their order: all that follows is of these.
    pub points: Vec<[f64; 3]>,
    /// Sampled targets before this rank's.
    first: usize,
    /// `[row][target]`, in double precision.
    pub exact: Vec<f64>,
    /// Neighbouring targets stand together, so many of them.
    pub groups: Vec<usize>,
    gradient: bool,
    components: usize,
}

impl Sample {
    /// Groups of neighbours, because the kernels take some targets at a time and their chains of cells are common.
    pub fn of_groups<T: Real, const C: usize>(sources: &dyn SourceSet<T, C>, trees: &Trees, gradient: bool) -> Self {
        let m = trees.all_targets;
        let (mut targets, mut groups): (Vec<usize>, Vec<usize>) = (vec![], vec![]);
        for first in stratified(m, GROUPS, 1) {
            let begin = first.min(m.saturating_sub(GROUP)).max(targets.last().map_or(0, |&l| l + 1));
            let end = (begin + GROUP).min(m);
            if begin < end {
                memory::push(&mut groups, end - begin);
                memory::extend(&mut targets, begin..end);
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
        let mut targets = stratified(trees.all_targets, count, seed);
        targets.dedup();
        let groups = memory::filled(1, targets.len());
        Self::summed(sources, trees, targets, groups, gradient)
    }

    fn summed<T: Real, const C: usize>(
        sources: &dyn SourceSet<T, C>,
        trees: &Trees,
        all: Vec<usize>,
        groups: Vec<usize>,
        gradient: bool,
    ) -> Self {
        // Of the targets of all ranks those that are here; every rank sums its own sources at all of them.
        let here = trees.first_target..trees.first_target + trees.points.len();
        let first = all.partition_point(|&k| k < here.start);
        let last = all.partition_point(|&k| k < here.end);
        let targets: Vec<u32> = memory::collect(all[first..last].iter().map(|&k| (k - here.start) as u32));
        let mine: Vec<[f64; 3]> = memory::collect(targets.iter().map(|&k| trees.points[k as usize]));
        let points = memory::copy(trees.peers.gather(mine.as_flattened()).0.as_chunks::<3>().0);
        let mut exact = trees.exact(sources, &points, gradient);
        memory::resize(&mut exact, rows(C, gradient) * points.len(), 0.0);
        trees.peers.sum(&mut exact);
        Self { targets, points, first, exact, groups, gradient, components: C }
    }

    /// Number of targets on all ranks.
    pub fn count(&self) -> usize {
        self.points.len()
    }

    /// Values of all ranks' targets, `[row][target]`, from those of this rank's.
    pub fn whole(&self, trees: &Trees, mine: Vec<f64>) -> Vec<f64> {
        if !trees.peers.are_many() {
            return mine;
        }
        let here = self.first..self.first + self.targets.len();
        let mut values = among([rows(self.components, self.gradient), self.count()], here, &mine);
        trees.peers.sum(&mut values);
        values
    }

    /// Where the first target of each group is among all.
    fn firsts(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().scan(0, |at, &n| {
            *at += n;
            Some(*at - n)
        })
    }

    /// One target of each group that begins on this rank.
    pub fn heads(&self) -> Vec<u32> {
        let here = self.firsts().filter_map(|k| self.targets.get(k.checked_sub(self.first)?).copied());
        let mut heads = vec![];
        memory::extend(&mut heads, here);
        heads
    }

    /// The positions of one target of each group.
    pub fn head_points(&self) -> Vec<[f64; 3]> {
        let mut points = vec![];
        memory::extend(&mut points, self.firsts().map(|k| self.points[k]));
        points
    }

    /// Target cells above the sampled targets, themselves included; `None` where that is a large part of the tree.
    pub fn chains(&self, trees: &Trees) -> Option<Vec<bool>> {
        let cells = trees.target.cells.len();
        let mut marked = memory::filled(false, cells);
        self.targets.iter().flat_map(|&t| trees.chain(t)).for_each(|c| marked[c] = true);
        let count = marked.iter().filter(|&&m| m).count();
        (count as f64 <= CALIBRATION_PART * cells as f64).then_some(marked)
    }

    /// It holds so many of all targets that it is not worth while to calibrate with it.
    pub fn is_most(&self, trees: &Trees) -> bool {
        self.count() as f64 > CALIBRATION_PART * trees.all_targets as f64
    }

    /// Squares at each target of `[row][target]` values divided by `unit`: of the field and of its gradient.
    pub fn squares(&self, values: &[f64], unit: f64) -> [Vec<f64>; 2] {
        let count = self.count();
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
