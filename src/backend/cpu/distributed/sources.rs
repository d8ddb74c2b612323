//! The sources of one rank's part: its own, and joined with those of others that its targets need.
//!
//! Enters: records. Leaves: a `SourceSet` whose exact sums are of the own sources, so that all ranks' add up to the whole,
//! and whose expansions and near sums are of the joined ones.

use super::elements::{Elements, Record};
use crate::backend::cpu::fmm::SourceSet;
use crate::backend::cpu::lists::{CoreTest, SourceCell};
use crate::backend::cpu::near;
use crate::backend::cpu::passes::LeafSources;
use crate::backend::cpu::tree::{Cell, Tree};
use crate::math::regularization::Part;
use crate::memory;
use crate::simd::Real;
use std::ops::Range;

pub struct Shared<S> {
    own: S,
    /// In the order of the own tree.
    records: Vec<Record>,
    joined: Option<S>,
}

impl<S> Shared<S> {
    pub fn new<T: Real, const C: usize>(like: &S, records: Vec<Record>) -> Self
    where
        S: Elements<T, C>,
    {
        let (own, numbers) = like.of_records(&records);
        // By combined number, which is what a tree's permutation gives.
        let mut sorted = memory::copy(&records);
        numbers.iter().zip(&records).for_each(|(&n, r)| sorted[n as usize] = *r);
        Self { own, records: sorted, joined: None }
    }

    /// With those of other ranks, once they came.
    pub fn joined(&self) -> &S {
        self.joined.as_ref().unwrap_or(&self.own)
    }
}

impl<T: Real, const C: usize, S: Elements<T, C>> SourceSet<T, C> for Shared<S> {
    fn is_empty(&self) -> bool {
        self.own.is_empty()
    }
    fn positions(&self) -> (&[[f64; 3]], &[[f64; 3]]) {
        self.own.positions()
    }
    fn sort(&mut self, tree: &Tree) {
        self.own.sort(tree);
        self.records = memory::collect(tree.permutation.iter().map(|&k| self.records[k as usize]));
        self.joined = None;
    }
    fn survey(&mut self, unit: f64) {
        self.own.survey(unit);
    }
    fn survey_cells(&mut self, tree: &Tree) {
        self.own.survey_cells(tree);
    }
    fn has_cores(&self) -> bool {
        self.own.has_cores()
    }
    fn core_test(&self, budget: [f64; 2], together: [f64; 2]) -> Box<dyn CoreTest + '_> {
        self.joined().core_test(budget, together)
    }
    fn own(&self) -> &dyn SourceSet<T, C> {
        &self.own
    }
    fn keep_order(&mut self) {
        self.own.keep_order();
    }
    fn bytes(&self) -> u64 {
        let joined = self.joined.as_ref().map_or(0, |j| j.bytes());
        self.own.bytes() + joined + (self.records.capacity() * size_of::<Record>()) as u64
    }
    fn fill(&self, cell: &Cell, to: &mut LeafSources<T, C>) {
        self.joined().fill(cell, to);
    }
    fn largest_strength(&self) -> f64 {
        self.own.largest_strength()
    }
    fn source_cells(&self, tree: &Tree, unit: f64, moment: i32) -> Vec<SourceCell> {
        self.own.source_cells(tree, unit, moment)
    }
    fn exact(&self, points: &[[f64; 3]], gradient: bool) -> Vec<f64> {
        self.own.exact(points, gradient)
    }
    fn near(&self, part: Part, ranges: &[Range<u32>], targets: &near::Points<T>, out: &mut [&mut [T]]) {
        self.joined().near(part, ranges, targets, out);
    }
    fn exact_of(&self, part: Part, ranges: &[Range<u32>], points: &near::Points<f64>, out: &mut [&mut [f64]]) {
        self.joined().exact_of(part, ranges, points, out);
    }
    fn pair_seconds(&self, part: Part, gradient: bool, exact: bool) -> f64 {
        self.own.pair_seconds(part, gradient, exact)
    }
    fn own_records(&self) -> Vec<Record> {
        memory::copy(&self.records)
    }
    fn join(&mut self, records: &[Record], tree: &mut Tree, unit: f64) {
        let (mut set, numbers) = self.own.of_records(records);
        tree.permutation = numbers;
        set.sort(tree);
        set.survey(unit);
        set.survey_cells(tree);
        self.joined = Some(set);
    }
}
