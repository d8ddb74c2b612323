//! Multipoles of all source cells and local expansions of the target cells, and whether they are current.
//!
//! Enters: trees, lists, operators, sorted sources. Leaves: `[cell][component][order²]` (or strengths of pseudo-particles); for the treecode what an M2P takes in
//! place of local expansions.

use super::choice::Choice;
use super::trees::Trees;
use super::{SourceSet, Subset};
use crate::backend::cpu::cost;
use crate::backend::cpu::lists::Scheme;
use crate::backend::cpu::m2p::{Rows, Series};
use crate::backend::cpu::passes::{self, LeafSources};
use crate::backend::cpu::tree::Cell;
use crate::memory;
use crate::report::{PASS_COUNT, Pass};
use crate::simd::Real;
use std::sync::Arc;
use std::time::Instant;

/// See the head of this file; buffers stay from call to call.
pub struct Expansions<T> {
    multipoles: Vec<T>,
    locals: Vec<T>,
    /// Where there are periodic images: the multipoles of all sources, on many ranks of all of theirs.
    root: Vec<f64>,
    /// Order of the present multipoles; 0: there are none, or of other sources.
    upward_order: usize,
    /// Version of the lists that all local expansions belong to.
    downward_version: Option<u64>,
    /// Rows of M2P of the present multipoles, with their gradients or without.
    rows: Rows<T>,
    series: Option<(Arc<Series<T>>, bool)>,
}

impl<T> Default for Expansions<T> {
    fn default() -> Self {
        let (multipoles, locals, root) = (vec![], vec![], vec![]);
        Self { multipoles, locals, root, upward_order: 0, downward_version: None, rows: Rows::default(), series: None }
    }
}

impl<T: Real> Expansions<T> {
    pub fn forget_sources(&mut self) {
        (self.upward_order, self.downward_version, self.series) = (0, None, None);
    }

    /// Order of the present multipoles; 0: there are none.
    pub fn upward_order(&self) -> usize {
        self.upward_order
    }

    pub fn forget_targets(&mut self) {
        self.downward_version = None;
    }

    /// P2M and M2M, unless they are current.
    pub fn upward<const C: usize>(
        &mut self,
        sources: &dyn SourceSet<T, C>,
        trees: &Trees,
        choice: &Choice<T>,
        seconds: &mut [f64; PASS_COUNT],
    ) {
        let (ops, size) = (&choice.ops, C * choice.terms());
        if self.upward_order == ops.order {
            return;
        }
        self.forget_sources();
        let start = Instant::now();
        memory::resize(&mut self.multipoles, trees.source.cells.len() * size, T::ZERO);
        let fill = |cell: &Cell, leaf: &mut LeafSources<T, C>| sources.fill(cell, leaf);
        match &choice.pseudo {
            Some(pseudo) => pseudo.p2m::<T, C>(&trees.source, &mut self.multipoles, fill),
            None => passes::p2m::<T, C>(ops, &trees.source, &mut self.multipoles, fill),
        }
        seconds[Pass::P2m as usize] += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let m2m = |multipoles: &mut [T]| match &choice.pseudo {
            Some(pseudo) => pseudo.m2m::<T, C>(&trees.source, multipoles),
            None => passes::m2m::<T, C>(ops, &trees.source, multipoles),
        };
        m2m(&mut self.multipoles);
        if let Some(own) = &trees.own {
            // Multipoles of cells of other ranks, and then those of the cells above them.
            own.exchange(&trees.peers, &mut self.multipoles, size);
            m2m(&mut self.multipoles);
        }
        if trees.images.far.is_some() {
            self.root = self.of_all_sources(trees, size);
        }
        seconds[Pass::M2m as usize] += start.elapsed().as_secs_f64();
        self.upward_order = ops.order;
    }

    /// The `size` numbers of the root's multipoles.
    fn of_all_sources(&self, trees: &Trees, size: usize) -> Vec<f64> {
        let of = |cell: usize| memory::collect(self.multipoles[cell * size..][..size].iter().map(|v| v.f64()));
        let Some(own) = &trees.own else { return of(0) };
        let mut root = own.root().map_or_else(|| memory::filled(0.0, size), of);
        trees.peers.sum(&mut root);
        root
    }

    /// What the multipoles are at targets, unless it is current; nothing where the scheme is another.
    pub fn at_targets<const C: usize>(
        &mut self,
        trees: &Trees,
        choice: &Choice<T>,
        gradient: bool,
        seconds: &mut [f64; PASS_COUNT],
    ) {
        let is_current = self.series.as_ref().is_some_and(|(_, with)| *with == gradient);
        if choice.scheme == Scheme::Fmm || is_current {
            return;
        }
        let start = Instant::now();
        let series = cost::series(self.upward_order, C, gradient);
        self.rows.make::<C>(&series, &trees.source, &self.multipoles, gradient);
        self.series = Some((series, gradient));
        seconds[Pass::M2p as usize] += start.elapsed().as_secs_f64();
    }

    /// Series and rows of M2P, once they are there.
    pub fn rows(&self) -> (&Series<T>, &Rows<T>) {
        (&self.series.as_ref().expect("made before the field").0, &self.rows)
    }

    /// M2L and L2L for a subset of the target cells, unless all are current.
    pub fn downward<const C: usize>(
        &mut self,
        trees: &Trees,
        choice: &Choice<T>,
        subset: Subset<'_>,
        seconds: &mut [f64; PASS_COUNT],
    ) {
        if choice.scheme == Scheme::Treecode || self.downward_version == Some(choice.version) {
            return;
        }
        self.downward_version = subset.0.is_none().then_some(choice.version);
        let ops = &choice.ops;
        let start = Instant::now();
        memory::resize(&mut self.locals, trees.target.cells.len() * C * choice.terms(), T::ZERO);
        if let Some(pseudo) = &choice.pseudo {
            let (cells, lists) = ([&trees.source, &trees.target], &choice.lists);
            pseudo.m2l::<T, C>(cells, lists, subset, &self.multipoles, &mut self.locals);
            seconds[Pass::M2l as usize] += start.elapsed().as_secs_f64();
            let start = Instant::now();
            pseudo.l2l::<T, C>(&trees.target, subset, &mut self.locals);
            seconds[Pass::L2l as usize] += start.elapsed().as_secs_f64();
            return;
        }
        passes::m2l::<T, C>(
            ops,
            [&trees.source, &trees.target],
            &choice.lists,
            &trees.images.shifts,
            subset,
            &self.multipoles,
            &mut self.locals,
        );
        if let (Some(far), Some(root)) = (&trees.images.far, trees.target.cells.first()) {
            let size = C * ops.order * ops.order;
            far.add::<T, C>(ops.order, &self.root, &mut self.locals[..size], root.scale);
        }
        seconds[Pass::M2l as usize] += start.elapsed().as_secs_f64();
        let start = Instant::now();
        passes::l2l::<T, C>(ops, &trees.target, subset, &mut self.locals);
        seconds[Pass::L2l as usize] += start.elapsed().as_secs_f64();
    }

    /// Local expansion of a target cell, of `size` numbers.
    pub fn local(&self, cell: usize, size: usize) -> &[T] {
        &self.locals[cell * size..(cell + 1) * size]
    }

    /// Sum of all strengths, where there are periodic images; component k of an expansion of `size` numbers is at k `size`.
    pub fn net<const C: usize>(&self, size: usize) -> [f64; C] {
        std::array::from_fn(|k| self.root[k * size])
    }

    pub fn bytes(&self) -> usize {
        (self.multipoles.capacity() + self.locals.capacity()) * size_of::<T>() + self.rows.bytes()
    }
}
