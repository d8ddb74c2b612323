//! The field at targets: local expansions (FMM) or multipoles (treecode), and near sources, leaf by leaf.
//!
//! Enters: expansions, lists, sorted sources and targets. Leaves: rows of numbers, for some targets or in the caller's arrays.

use super::choice::Choice;
use super::expansions::Expansions;
use super::trees::Trees;
use super::{Sink, SourceSet, near, rows};
use crate::backend::cpu::lists::Scheme;
use crate::backend::cpu::m2p::Far;
use crate::backend::cpu::passes::{self, Work};
use crate::backend::cpu::shared;
use crate::math::regularization::Part;
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;

/// Everything that a field is made of.
pub struct Evaluation<'a, T: Real, const C: usize> {
    sources: &'a dyn SourceSet<T, C>,
    trees: &'a Trees,
    choice: &'a Choice<T>,
    expansions: &'a Expansions<T>,
}

/// What is known of a field that was written to the caller's arrays.
pub struct Written {
    pub targets: u64,
    /// Sums of squares of the field and of its gradient over all targets that were written.
    pub norms: [f64; 2],
    /// `[row][k]` at the targets that judge.
    pub judged: Vec<f64>,
}

impl Written {
    /// Mean squares over all targets of all ranks.
    pub fn of_all(&self, trees: &Trees) -> [f64; 2] {
        let mut sums = self.norms;
        trees.peers.sum(&mut sums);
        sums.map(|s| s / trees.all_targets as f64)
    }
}

impl<'a, T: Real, const C: usize> Evaluation<'a, T, C> {
    pub fn new(
        sources: &'a dyn SourceSet<T, C>,
        trees: &'a Trees,
        choice: &'a Choice<T>,
        expansions: &'a Expansions<T>,
    ) -> Self {
        Self { sources, trees, choice, expansions }
    }

    /// The field in one leaf, `[row][target]` in `work.out`, for the sorted targets `pick` of it.
    fn leaf(&self, leaf: usize, pick: impl ExactSizeIterator<Item = u32>, gradient: bool, work: &mut LeafWork<T>) {
        let cell = &self.trees.target.cells[leaf];
        let count = pick.len();
        work.out.clear();
        memory::resize(&mut work.out, rows(C, gradient) * count, T::ZERO);
        work.positions.clear();
        memory::extend(&mut work.positions, pick.map(|k| self.trees.points[k as usize]));
        for i in 0..3 {
            work.relative[i].clear();
            memory::reserve(&mut work.relative[i], count);
        }
        // Local expansions are in the unit of the cell.
        let unit = if self.choice.scheme == Scheme::Fmm { cell.scale } else { 1.0 };
        for x in &work.positions {
            for i in 0..3 {
                work.relative[i].push(T::of((x[i] - cell.center[i]) / unit));
            }
        }
        self.far(leaf, gradient, work, count);
        let mut out: Vec<&mut [T]> = work.out.chunks_exact_mut(count).collect();
        for list in &self.choice.lists[leaf].direct {
            // Sources that are moved one way are seen from targets that are moved the other.
            let shift = self.trees.images.shifts[list.image as usize];
            work.at.restart(count);
            work.at.close = self.choice.close;
            work.positions.iter().for_each(|x| work.at.push(std::array::from_fn(|i| x[i] - shift[i])));
            for (part, ranges) in
                [(Part::Regularized, &list.near), (Part::Singular, &list.plain), (Part::Correction, &list.correction)]
            {
                if !ranges.is_empty() {
                    self.sources.near(part, ranges, &work.at, &mut out);
                }
            }
        }
        if let Some(far) = &self.trees.images.far {
            let net = self.expansions.net::<C>(self.choice.ops.order.pow(2));
            far.add_background::<T, C>(net, &work.positions, gradient, &mut work.out);
        }
    }

    /// What far cells add.
    fn far(&self, leaf: usize, gradient: bool, work: &mut LeafWork<T>, count: usize) {
        let (ops, cell) = (&self.choice.ops, &self.trees.target.cells[leaf]);
        if self.choice.scheme == Scheme::Treecode {
            let (series, rows) = self.expansions.rows();
            let (sources, list) = (&self.trees.source.cells, &self.choice.lists[leaf].far);
            Far { series, rows, sources, list, center: cell.center }.add(&work.relative, &mut work.rows, &mut work.out);
            return;
        }
        let local = self.expansions.local(leaf, C * self.choice.terms());
        if let Some(pseudo) = &self.choice.pseudo {
            return pseudo.l2p::<T, C>((leaf, cell.scale), local, gradient, &work.relative, &mut work.out);
        }
        passes::field_rows::<T, C>(ops, local, cell.scale, gradient, &mut work.rows);
        passes::l2p(ops, &work.rows, &work.relative, &mut work.passes, &mut work.out, count);
    }

    /// The field at all targets of some leaves, written to the caller's arrays; `judged`: sorted targets, rising, whose field is kept, or
    /// zero where they are in other leaves.
    pub fn everywhere(&self, gradient: bool, sink: &mut Sink<'_, T>, leaves: &[u32], judged: &[u32]) -> Written {
        let (k_main, k_all) = (rows(C, false), rows(C, gradient));
        let main = Scatter(sink.main.as_mut_ptr(), sink.main.len());
        let grad = sink.gradient.as_mut().map(|g| Scatter(g.as_mut_ptr(), g.len()));
        let (f, length) = (sink.main_factor, sink.per_length);
        let tree = &self.trees.target;
        let of_leaf = |work: &mut LeafWork<T>, &leaf: &u32| {
            let cell = &tree.cells[leaf as usize];
            let count = cell.len();
            self.leaf(leaf as usize, cell.begin..cell.end, gradient, work);
            for (j, &to) in tree.permutation[cell.begin as usize..cell.end as usize].iter().enumerate() {
                let to = to as usize;
                for row in 0..k_main {
                    main.put(to * k_main + row, T::of(work.out[row * count + j].f64() * f));
                }
                if let Some(g) = &grad {
                    for row in k_main..k_all {
                        let v = work.out[row * count + j].f64() * f * length;
                        g.put(to * (k_all - k_main) + row - k_main, T::of(v));
                    }
                }
            }
            let square = |v: &[T]| v.iter().map(|v| v.f64() * v.f64()).sum::<f64>();
            let (a, b) = work.out.split_at(k_main * count);
            let first = judged.partition_point(|&k| k < cell.begin);
            let mine = judged[first..].iter().take_while(|&&k| k < cell.end);
            let mut kept = vec![];
            for &k in mine {
                let j = (k - cell.begin) as usize;
                memory::extend(&mut kept, (0..k_all).map(|row| work.out[row * count + j].f64()));
            }
            LeafResult { squares: [square(a), square(b)], first, kept }
        };
        let results: Vec<LeafResult> = memory::par_collect(
            shared(leaves.par_iter()).map_init(|| LeafWork::new(self.choice.ops.order, C), of_leaf),
        );
        // One after the other: the sum does not depend on threads.
        let sums = results.iter().fold([0.0; 2], |a, l| [a[0] + l.squares[0], a[1] + l.squares[1]]);
        let mut values = memory::filled(0.0, k_all * judged.len());
        for leaf in &results {
            for (k, target) in leaf.kept.chunks_exact(k_all).enumerate() {
                (0..k_all).for_each(|row| values[row * judged.len() + leaf.first + k] = target[row]);
            }
        }
        Written { targets: self.trees.points.len() as u64, norms: sums, judged: values }
    }

    /// The field at some sorted targets, `[row][k]`.
    pub fn at(&self, targets: &[u32], gradient: bool) -> Vec<T> {
        let mut by_leaf: Vec<(usize, usize)> =
            memory::collect(targets.iter().enumerate().map(|(k, &t)| (self.trees.leaf_of(t), k)));
        by_leaf.sort_unstable();
        let mut groups: Vec<&[(usize, usize)]> = vec![];
        memory::extend(&mut groups, by_leaf.chunk_by(|a, b| a.0 == b.0));
        let fields: Vec<Vec<T>> = memory::par_collect(shared(groups.par_iter()).map_init(
            || LeafWork::new(self.choice.ops.order, C),
            |work, group| {
                self.leaf(group[0].0, group.iter().map(|&(_, k)| targets[k]), gradient, work);
                memory::copy(&work.out)
            },
        ));
        let count = targets.len();
        let mut out = memory::filled(T::ZERO, rows(C, gradient) * count);
        for (group, field) in groups.iter().zip(&fields) {
            for (j, &(_, k)) in group.iter().enumerate() {
                for row in 0..rows(C, gradient) {
                    out[row * count + k] = field[row * group.len() + j];
                }
            }
        }
        out
    }
}

/// What a leaf tells beside what it wrote.
struct LeafResult {
    squares: [f64; 2],
    /// Where its judging targets begin among all of them, and their field, `[k][row]`.
    first: usize,
    kept: Vec<f64>,
}

/// One thread's memory for a leaf.
struct LeafWork<T> {
    passes: Work<T>,
    positions: Vec<[f64; 3]>,
    at: near::Points<T>,
    /// Targets relative to the leaf's centre, in its unit.
    relative: [Vec<T>; 3],
    rows: Vec<T>,
    /// `[row][target]`
    out: Vec<T>,
}

impl<T: Real> LeafWork<T> {
    fn new(order: usize, components: usize) -> Self {
        Self {
            passes: Work::new(order, components),
            positions: vec![],
            at: Default::default(),
            relative: Default::default(),
            rows: vec![],
            out: vec![],
        }
    }
}

/// Disjoint writes from many threads: every target belongs to one leaf.
struct Scatter<T>(*mut T, usize);
// SAFETY: only `put` touches the memory, and each index is written by the one task that owns its target.
unsafe impl<T: Send> Sync for Scatter<T> {}

impl<T: Real> Scatter<T> {
    #[inline(always)]
    fn put(&self, at: usize, v: T) {
        assert!(at < self.1);
        // SAFETY: in bounds, and no other task has this index.
        unsafe { *self.0.add(at) = v }
    }
}
