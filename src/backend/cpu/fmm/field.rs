//! The field at targets: local expansions and near sources, leaf by leaf.
//!
//! Enters: expansions, lists, sorted sources and targets. Leaves: rows of numbers, for some targets or in the caller's places.

use super::{Fmm, Sink, SourceSet, near, rows};
use crate::backend::cpu::passes::{self, Work};
use crate::math::regularization::Part;
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;

impl<T: Real, const C: usize> Fmm<T, C> {
    /// The field in one leaf, `[row][target]`, for the sorted targets `pick` of it.
    fn leaf_field(
        &self,
        sources: &dyn SourceSet<T, C>,
        leaf: usize,
        pick: &[u32],
        gradient: bool,
        near_only: bool,
        desk: &mut Desk<T>,
    ) {
        let ops = self.ops.as_ref().expect("chosen");
        let cell = &self.target_tree.cells[leaf];
        let size = C * ops.order * ops.order;
        let count = pick.len();
        desk.out.clear();
        memory::resize(&mut desk.out, rows(C, gradient) * count, T::ZERO);
        desk.at.restart(count);
        pick.iter().for_each(|&k| desk.at.push(self.target_points[k as usize]));
        for i in 0..3 {
            desk.relative[i].clear();
            memory::reserve(&mut desk.relative[i], count);
            desk.relative[i]
                .extend(pick.iter().map(|&k| T::of((self.target_points[k as usize][i] - cell.center[i]) / cell.scale)));
        }
        if !near_only {
            let local = &self.locals[leaf * size..(leaf + 1) * size];
            passes::field_rows::<T, C>(ops, local, cell.scale, gradient, &mut desk.rows);
            passes::l2p(ops, &desk.rows, &desk.relative, &mut desk.work, &mut desk.out, count);
        }
        let list = &self.lists[leaf];
        let mut out: Vec<&mut [T]> = desk.out.chunks_exact_mut(count).collect();
        for (part, ranges) in
            [(Part::Regularized, &list.near), (Part::Singular, &list.plain), (Part::Correction, &list.correction)]
        {
            if !ranges.is_empty() {
                sources.near(part, ranges, &desk.at, &mut out);
            }
        }
    }

    /// L2P and near field of all leaves, written to the caller's places.
    pub(super) fn leaves(&self, sources: &dyn SourceSet<T, C>, gradient: bool, sink: &mut Sink<'_, T>) {
        let order = self.ops.as_ref().expect("chosen").order;
        let (k_main, k_gradient) = (rows(C, false), rows(C, true) - rows(C, false));
        let main = Scatter(sink.main.as_mut_ptr(), sink.main.len());
        let grad = sink.gradient.as_mut().map(|g| Scatter(g.as_mut_ptr(), g.len()));
        let (f, length, add) = (sink.main_factor, sink.per_length, sink.accumulate);
        let tree = &self.target_tree;
        tree.leaves.par_iter().for_each_init(
            || Desk::new(order, C),
            |desk, &leaf| {
                let cell = &tree.cells[leaf as usize];
                let pick: Vec<u32> = memory::collect(cell.begin..cell.end);
                self.leaf_field(sources, leaf as usize, &pick, gradient, false, desk);
                for (j, &k) in pick.iter().enumerate() {
                    let to = tree.permutation[k as usize] as usize;
                    for row in 0..k_main {
                        main.put(to * k_main + row, T::of(desk.out[row * pick.len() + j].f64() * f), add);
                    }
                    if let Some(g) = &grad {
                        for row in 0..k_gradient {
                            let v = desk.out[(k_main + row) * pick.len() + j].f64() * f * length;
                            g.put(to * k_gradient + row, T::of(v), add);
                        }
                    }
                }
            },
        );
    }

    /// The field at some sorted targets, `[row][k]`; `near_only`: without the far field.
    pub fn field_at(&self, sources: &dyn SourceSet<T, C>, targets: &[u32], gradient: bool, near_only: bool) -> Vec<T> {
        let order = self.ops.as_ref().expect("chosen").order;
        let mut by_leaf: Vec<(usize, usize)> =
            memory::collect(targets.iter().enumerate().map(|(k, &t)| (self.leaf_of(t), k)));
        by_leaf.sort_unstable();
        let mut groups: Vec<&[(usize, usize)]> = vec![];
        memory::extend(&mut groups, by_leaf.chunk_by(|a, b| a.0 == b.0));
        let fields: Vec<Vec<T>> = memory::par_collect(groups.par_iter().map_init(
            || Desk::new(order, C),
            |desk, group| {
                let pick: Vec<u32> = memory::collect(group.iter().map(|&(_, k)| targets[k]));
                self.leaf_field(sources, group[0].0, &pick, gradient, near_only, desk);
                memory::copy(&desk.out)
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

/// One thread's desk for a leaf.
struct Desk<T> {
    work: Work<T>,
    at: near::Points<T>,
    relative: [Vec<T>; 3],
    rows: Vec<T>,
    out: Vec<T>,
}

impl<T: Real> Desk<T> {
    fn new(order: usize, components: usize) -> Self {
        Self {
            work: Work::new(order, components),
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
    fn put(&self, at: usize, v: T, add: bool) {
        assert!(at < self.1);
        // SAFETY: in bounds, and no other task has this index.
        unsafe {
            let p = self.0.add(at);
            *p = if add { *p + v } else { v };
        }
    }
}
