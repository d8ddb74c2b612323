//! A partition of one problem into many parts in one process, and what every rank would exchange and do with it.
//!
//! Enters: segments, particles, targets, as one process has them. Leaves: `Figures` of some ranks of any number of them. The parts
//! are runs of the space-filling curve, as those of a distributed session, with exact instead of sampled ends.

use super::elements::{Elements, Record};
use super::shares::{Costs, Shares};
use super::sources::Shared;
use crate::backend::cpu::fmm::virtual_ranks::{Problem, Rank};
use crate::backend::cpu::fmm::{SourceSet, Work, virtual_ranks};
use crate::backend::cpu::near::Digits;
use crate::backend::cpu::sources::{Particle, Segment, VortexSources};
use crate::backend::cpu::tree::{Root, bounds, key};
use crate::memory;
use crate::options::Regularization;
use rayon::prelude::*;

pub use virtual_ranks::Figures;

/// See the head of this file.
pub struct Study {
    problem: Problem<3>,
    like: VortexSources<f64>,
    root: Root,
    /// By rising key.
    records: Vec<(u64, Record)>,
    targets: Vec<(u64, [f64; 3])>,
    costs: Option<Costs>,
}

impl Study {
    /// Segments have Vatistas cores, particles Gaussian ones.
    pub fn new(segments: Vec<Segment>, particles: Vec<Particle>, targets: &[[f64; 3]], tolerance: f64) -> Self {
        let new = || VortexSources::new(Regularization::Vatistas, Regularization::GaussErf);
        let mut whole = new();
        whole.set_elements(segments, particles, Digits::default());
        let (low, high) = bounds(SourceSet::<f64, 3>::positions(&whole).0, &[]);
        let root = Root::around(&[(low, high), bounds(targets, &[])]);
        let keyed = |r: Record| (key(<VortexSources<f64> as Elements<f64, 3>>::position(&r), root), r);
        let mut records: Vec<(u64, Record)> = memory::par_collect(whole.records().into_par_iter().map(keyed));
        records.par_sort_unstable_by_key(|r| r.0);
        let mut sorted: Vec<(u64, [f64; 3])> = memory::par_collect(targets.par_iter().map(|x| (key(*x, root), *x)));
        sorted.par_sort_unstable_by_key(|t| t.0);
        let problem = Problem::new(&mut whole, targets, tolerance);
        Self { problem, like: new(), root, records, targets: sorted, costs: None }
    }

    /// What leaves hold at most.
    pub fn leaf_capacity(&self) -> usize {
        self.problem.leaf_capacity()
    }

    /// Shares follow what these ranks have found, from now on.
    pub fn weigh(&mut self, found: &[Figures]) {
        let works: Vec<&Work> = found.iter().map(|f| &f.work).collect();
        self.costs = Some(Costs::of_all(self.root, &works));
    }

    /// Figures of the ranks numbered in `some`, of `size` ranks; and the most bytes of boxes that a rank tells all.
    pub fn figures(&mut self, size: usize, some: &[usize]) -> (Vec<Figures>, f64) {
        let ends = self.ends(size);
        let part = |r: usize| {
            let from = |k: usize| if k == 0 { 0 } else { ends.get(k - 1).copied().unwrap_or(u64::MAX) };
            let (low, high) = (from(r), from(r + 1));
            let last = r + 1 == size;
            let records = self.records.iter().skip(self.records.partition_point(|e| e.0 < low));
            let records: Vec<Record> = records.take_while(|e| last || e.0 < high).map(|e| e.1).collect();
            let targets = self.targets.iter().skip(self.targets.partition_point(|e| e.0 < low));
            let targets: Vec<[f64; 3]> = targets.take_while(|e| last || e.0 < high).map(|e| e.1).collect();
            self.problem.rank(Shared::new::<f64, 3>(&self.like, records), targets)
        };
        let mut ranks: Vec<Rank<Shared<VortexSources<f64>>>> = memory::par_collect((0..size).into_par_iter().map(part));
        let boxes = Problem::<3>::boxes_bytes(&ranks);
        (self.problem.figures(&mut ranks, some), boxes)
    }

    /// First keys of all ranks but the first.
    fn ends(&self, size: usize) -> Vec<u64> {
        let weights = self.costs.as_ref().map_or(Shares::Counts, Shares::Costs).weights(1.0);
        let mut keyed: Vec<(u64, f64)> = memory::with_room(self.records.len() + self.targets.len());
        keyed.extend(self.records.iter().map(|r| (r.0, weights.of_source())));
        keyed.extend(self.targets.iter().map(|t| (t.0, weights.of_target(t.1))));
        keyed.par_sort_unstable_by_key(|k| k.0);
        let whole: f64 = keyed.iter().map(|k| k.1).sum();
        let (mut ends, mut weight) = (vec![], 0.0);
        for (k, w) in keyed {
            while ends.len() + 1 < size && weight >= whole * (ends.len() + 1) as f64 / size as f64 {
                ends.push(k);
            }
            weight += w;
        }
        ends
    }
}
