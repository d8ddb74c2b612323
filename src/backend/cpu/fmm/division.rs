//! One field that several ranks evaluate together, all of which have the same sources, targets and trees.
//!
//! Enters: the leaves of the target tree. Leaves: the targets of each rank, a range of the sorted ones that ends with a leaf and holds about
//! as many as the others; sums over the ranks of what each finds at its own. Without other ranks all targets are this one's.

use crate::backend::cpu::tree::{Cell, Tree};
use crate::distributed::Peers;
use crate::memory;
use std::ops::Range;

/// See the head of this file.
#[derive(Default)]
pub struct Division {
    peers: Peers,
    /// The sorted targets of each rank; nothing before they were divided.
    targets: Vec<Range<usize>>,
}

impl Division {
    pub fn among(peers: Peers) -> Self {
        Self { peers, targets: vec![] }
    }

    pub fn is_of_many(&self) -> bool {
        self.peers.size() > 1
    }

    /// Divides the targets of a tree whose leaves are chosen.
    pub fn divide(&mut self, tree: &Tree) {
        self.targets = match self.is_of_many() {
            false => vec![0..tree.permutation.len()],
            true => {
                let ends = tree.leaves.iter().map(|&leaf| tree.cells[leaf as usize].end as usize);
                let mut ends: Vec<usize> = memory::collect(ends);
                ends.sort_unstable();
                ranges(&ends, self.peers.size())
            }
        };
    }

    /// The sorted targets of each rank.
    pub fn targets(&self) -> &[Range<usize>] {
        &self.targets
    }

    fn own(&self) -> Range<usize> {
        self.targets.get(self.peers.rank()).map_or(0..usize::MAX, Range::clone)
    }

    /// Whether the first target of a cell is this rank's: of one rank alone.
    pub fn is_first_of(&self, cell: &Cell) -> bool {
        self.own().contains(&(cell.begin as usize))
    }

    /// The leaves of this rank.
    pub fn leaves(&self, tree: &Tree) -> Vec<u32> {
        memory::filtered(tree.leaves.iter().copied(), |&leaf| self.is_first_of(&tree.cells[leaf as usize]))
    }

    /// The cells that have targets of this rank; nothing where all have.
    pub fn cells(&self, tree: &Tree) -> Option<Vec<bool>> {
        let own = self.own();
        let has_own = |c: &Cell| (c.begin as usize) < own.end && own.start < c.end as usize;
        self.is_of_many().then(|| memory::collect(tree.cells.iter().map(has_own)))
    }

    /// Which of some sorted targets, which rise, are this rank's.
    pub fn own_of(&self, targets: &[u32]) -> Range<usize> {
        let own = self.own();
        let before = |end: usize| targets.partition_point(|&k| (k as usize) < end);
        before(own.start)..before(own.end)
    }

    /// Sums over the ranks of numbers that each has of its own targets.
    pub fn sum(&self, values: &mut [f64]) {
        self.peers.sum(values);
    }

    pub fn max(&self, value: f64) -> f64 {
        self.peers.max(value)
    }

    /// The largest number of a rank over the mean.
    pub fn imbalance(&self, value: f64) -> f64 {
        self.max(value) * self.peers.size() as f64 / self.peers.total(value).max(f64::MIN_POSITIVE)
    }
}

/// Ranges that hold about as many each and end at some of the `ends` of leaves, which rise.
fn ranges(ends: &[usize], ranks: usize) -> Vec<Range<usize>> {
    let all = ends.last().copied().unwrap_or(0);
    // The leaf's end that is nearest; the first leaf begins at zero.
    let boundary = |rank: usize| {
        let wanted = all * rank / ranks;
        let after = ends.partition_point(|&end| end < wanted);
        let (low, high) = (if after == 0 { 0 } else { ends[after - 1] }, ends.get(after).copied().unwrap_or(all));
        if wanted - low < high - wanted { low } else { high }
    };
    memory::collect((0..ranks).map(|rank| if rank == 0 { 0 } else { boundary(rank) }..boundary(rank + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_about_equal_and_cover_all_targets_once() {
        let ends: Vec<usize> = (1..=100).map(|k| 10 * k - k % 7).collect();
        for ranks in [1, 2, 3, 7, 300] {
            let ranges = ranges(&ends, ranks);
            assert_eq!((ranges.len(), ranges[0].start, ranges[ranks - 1].end), (ranks, 0, ends[99]));
            assert!(ranges.windows(2).all(|r| r[0].end == r[1].start));
            assert!(ranges.iter().all(|r| r.len().abs_diff(ends[99] / ranks) <= 13), "{ranks} ranks: {ranges:?}");
        }
        assert_eq!(ranges(&[], 2), [0..0, 0..0]);
        assert_eq!(ranges(&[7], 2), [0..0, 0..7]);
    }
}
