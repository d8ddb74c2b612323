//! The field of one process on many ranks: every rank has all sources and targets and the same trees, and evaluates a part of the targets.
//!
//! Enters: each rank's own sources and targets. Leaves: the field at its own targets, made of the same sums in the same order as in one
//! process that has the elements of all ranks, one rank after the other. For plans whose fields must not depend on the number of ranks; a
//! rank's memory is that of the whole problem.

use super::elements::Elements;
use super::ring::Values;
use crate::backend::cpu::fmm::{Changes, Fmm, Recipe, Request, Sink, rows};
use crate::backend::curve::Way;
use crate::distributed::Peers;
use crate::memory;
use crate::report::PASS_COUNT;
use crate::simd::isa_name;
use std::ops::Range;

/// See the head of this file.
pub struct Whole<const C: usize, S> {
    sources: S,
    fmm: Fmm<f64, C>,
    /// The targets of each rank among all.
    targets: Vec<Range<usize>>,
}

impl<const C: usize, S: Elements<f64, C>> Whole<C, S> {
    /// Whether one rank can number all sources and targets, of which there are `counts`, and all ranks make the same sums: they do with
    /// the same instructions.
    pub fn is_possible(peers: &Peers, counts: [f64; 2]) -> bool {
        let own = isa_name().bytes().fold(0.0, |number, byte| 256.0 * number + f64::from(byte));
        counts.iter().all(|&n| n <= f64::from(i32::MAX)) && peers.have_same(own)
    }

    /// Whether all ranks have the same: their processors may round a function otherwise.
    pub fn is_common(&self, peers: &Peers) -> bool {
        peers.have_same(self.fmm.token())
    }

    /// Whether a direct sum is not expected to be faster, which is asked with `auto`.
    pub fn serves(&self) -> bool {
        self.fmm.is_prepared()
    }

    pub fn new(peers: &Peers, own: &S, targets: &[[f64; 3]], request: Request, auto: bool) -> Self {
        let records = peers.join(own.records().into_flattened());
        let (mut sources, _) = own.of_records(records.as_chunks().0);
        drop(records);
        let counts = peers.gather(&[targets.len() as f64]).0;
        let targets = peers.join(memory::copy(targets.as_flattened()));
        let mut fmm = Fmm::divided(peers);
        let changes = Changes { sources: true, strengths: true, targets: true };
        fmm.prepare(&mut sources, targets.as_chunks().0, changes, request, auto);
        let first = |rank: usize| counts[..rank].iter().map(|&n| n as usize).sum::<usize>();
        let targets = memory::collect((0..counts.len()).map(|rank| first(rank)..first(rank + 1)));
        Self { sources, fmm, targets }
    }

    /// The field at this rank's targets; nothing where it misses its tolerance.
    pub fn field(&mut self, peers: &Peers, gradient: bool) -> Option<Values> {
        let all = self.targets.last().map_or(0, |t| t.end);
        let mut values = Values::zero(C, all, gradient);
        let sink = &mut Sink { accumulate: false, ..values.sink() };
        if !self.fmm.evaluate(&mut self.sources, sink) {
            return None;
        }
        let (parts, mine) = (self.fmm.divided_targets(), &self.targets[peers.rank()]);
        let those_in = |part: &[u32], range: &Range<usize>| {
            memory::filtered(part.iter().map(|&t| t as usize), |t| range.contains(t))
        };
        // Where the own targets are evaluated; and what is evaluated here, rank by rank.
        let numbers = |part: &&[u32]| memory::collect(those_in(part, mine).iter().map(|t| (t - mine.start) as u32));
        let way = Way::of(parts.iter().map(numbers).collect());
        let mut here = vec![];
        self.targets.iter().for_each(|theirs| memory::extend(&mut here, those_in(parts[peers.rank()], theirs)));
        let back = |values: &[f64], rows: usize| {
            let mut packed = memory::with_room(rows * here.len());
            here.iter().for_each(|target| packed.extend_from_slice(&values[target * rows..][..rows]));
            way.back(peers, &packed, rows)
        };
        let (main, all) = (rows(C, false), rows(C, gradient));
        Some(Values {
            main: back(&values.main, main),
            gradient: if gradient { back(&values.gradient, all - main) } else { vec![] },
        })
    }

    /// Recipe and seconds of its passes.
    pub fn told(&self) -> (Recipe, [f64; PASS_COUNT]) {
        (self.fmm.recipe.clone(), self.fmm.seconds)
    }

    pub fn seconds(&mut self) -> &mut [f64; PASS_COUNT] {
        &mut self.fmm.seconds
    }

    pub fn bytes(&self) -> u64 {
        self.sources.bytes() + self.fmm.bytes()
    }
}
