//! A study of many ranks in one process, one after the other: what each would send, receive and do.
//!
//! Enters: sources and targets of every rank, as a partition gives them. Leaves: for some ranks the messages of the exchange of
//! essential cells, as they would be on their way, the joined tree and its lists, and the seconds that the lists stand for. No
//! field is summed. Trees, boxes, walks, messages and lists are those of a distributed session (`essential`, `choice`).

use super::choice::{self, Choice, Leaves, order_at};
use super::essential::{Branch, Fate, Own, TargetBox, Walk, boxes_in, boxes_of, graft, message};
use super::statistics::Statistics;
use super::trees::Trees;
use super::work::{self, Work};
use super::{Cost, Request, SourceSet, cost};
use crate::backend::cpu::lists::Scheme;
use crate::backend::cpu::tree::Tree;
use crate::distributed::Peers;
use crate::memory;
use crate::options::Method;
use rayon::prelude::*;

/// Numbers of a box on its way.
const BOX_WORDS: usize = 6;

/// A problem as a whole.
pub struct Problem<const C: usize> {
    statistics: Statistics,
    cost: Cost,
    request: Request,
    leaves: Leaves,
}

/// One rank with its own tree.
pub struct Rank<S> {
    pub sources: S,
    own: Own,
    targets: Vec<[f64; 3]>,
    boxes: Vec<TargetBox>,
}

/// What one rank exchanges and does.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    pub sources: usize,
    pub targets: usize,
    /// Ranks that something goes to, and that something comes from.
    pub sent_to: usize,
    pub received_from: usize,
    /// Bytes of cells, sources and multipoles.
    pub sent: f64,
    pub received: f64,
    /// The joined tree: cells, and sources of others in it.
    pub cells: usize,
    pub guests: usize,
    /// Cells of others that came as multipoles.
    pub multipoles: usize,
    pub work: Work,
    /// Seconds of one thread.
    pub seconds: f64,
}

/// Traffic of one walk: bytes of the message, and closed cells.
#[derive(Debug, Clone, Copy, Default)]
struct Parcel {
    bytes: f64,
    closed: usize,
}

impl<const C: usize> Problem<C> {
    /// Budget and costs of the whole; costs are typical ones, so that figures do not depend on the machine.
    pub fn new(whole: &mut dyn SourceSet<f64, C>, targets: &[[f64; 3]], tolerance: f64) -> Self {
        let request = Request { reproducible: true, ..Request::new(Method::Fmm, tolerance) };
        let cost = cost::typical::<f64, C>(false);
        let counts = [whole.positions().0.len(), targets.len()];
        let grown = Leaves::grown(&cost, counts, request);
        let mut trees = Trees::grow(whole.positions(), targets, grown, request, 0.0);
        whole.sort(&trees.source);
        let mut statistics = Statistics::measure(whole, &mut trees, request);
        let (_, scale) = choice::choose_leaves::<f64, C>(whole, &mut trees, &mut statistics, &cost, request);
        statistics.budget = statistics.budget.scaled(scale, 1.0);
        Self { statistics, cost, request, leaves: Leaves { capacities: trees.capacities, ..grown } }
    }

    /// What leaves hold at most.
    pub fn leaf_capacity(&self) -> usize {
        self.leaves.capacities[0]
    }

    /// A rank's own trees.
    pub fn rank<S: SourceSet<f64, C>>(&self, mut sources: S, targets: Vec<[f64; 3]>) -> Rank<S> {
        let trees = Trees::grow(sources.positions(), &targets, self.leaves, self.request, 0.0);
        sources.sort(&trees.source);
        sources.survey(self.statistics.unit);
        sources.survey_cells(&trees.source);
        let cells = sources.source_cells(&trees.source, self.statistics.unit, trees.moment);
        let boxes = boxes_in(&boxes_of(&trees.target));
        Rank { sources, own: Own::new(trees.source, cells), targets, boxes }
    }

    /// Numbers of a multipole, of the highest order that a pair may need.
    fn multipole(&self) -> usize {
        let order = order_at(self.request.tolerance, choice::CLOSEST_RATIO);
        C * order * order
    }

    /// Of the ranks numbered in `some`.
    pub fn figures<S: SourceSet<f64, C>>(&mut self, ranks: &mut [Rank<S>], some: &[usize]) -> Vec<Figures> {
        let whole = 8.0 * self.multipole() as f64;
        // Every rank walks its tree against the boxes of the others: what goes to those in `some`, and from them to all.
        let of_sender = |(s, rank): (usize, &Rank<S>)| {
            let walk = Walk::new(&rank.sources, &rank.own, Scheme::Fmm, &self.statistics, self.request, &[[0.0; 3]]);
            let records = rank.sources.own_records();
            let to = |r: usize| {
                let cells = if r == s { vec![] } else { walk.cells(&ranks[r].boxes) };
                let closed = cells.iter().filter(|c| c.1 == Fate::Closed).count();
                let words = if cells.is_empty() { vec![] } else { message(&walk, &rank.own.cells, &records, &cells) };
                (Parcel { bytes: 8.0 * words.len() as f64 + whole * closed as f64, closed }, words)
            };
            let kept: Vec<(Parcel, Vec<f64>)> = some.iter().map(|&r| to(r)).collect();
            let is_asked = some.contains(&s);
            let all: Vec<Parcel> = if is_asked { (0..ranks.len()).map(|r| to(r).0).collect() } else { vec![] };
            (kept, all)
        };
        let walked: Vec<(Vec<(Parcel, Vec<f64>)>, Vec<Parcel>)> =
            memory::par_collect(ranks.par_iter().enumerate().map(of_sender));
        let mut found: Vec<Figures> = some.iter().map(|&r| sums(&walked[r].1)).collect();
        for (k, &r) in some.iter().enumerate() {
            let mut branches = vec![];
            for (s, (kept, _)) in walked.iter().enumerate() {
                let (parcel, words) = &kept[k];
                found[k].received += parcel.bytes;
                found[k].multipoles += parcel.closed;
                found[k].received_from += usize::from(parcel.bytes > 0.0);
                branches.push(if s == r { self.own_branch(&ranks[r]) } else { Branch::of_message(words) });
            }
            self.do_work(&mut ranks[r], branches, &mut found[k]);
        }
        found
    }

    fn own_branch<S: SourceSet<f64, C>>(&self, rank: &Rank<S>) -> Branch {
        let cells = rank.own.tree.cells.iter().copied().zip(rank.own.cells.iter().copied());
        Branch::new(memory::collect(cells), rank.sources.own_records())
    }

    /// Joins the branches and makes the lists.
    fn do_work<S: SourceSet<f64, C>>(&mut self, rank: &mut Rank<S>, branches: Vec<Branch>, found: &mut Figures) {
        let mut joined = graft(&branches);
        let mut records = memory::with_room(branches.iter().map(|b| b.records.len()).sum());
        branches.into_iter().for_each(|b| records.extend_from_slice(&b.records));
        (found.sources, found.targets) = (rank.own.tree.permutation.len(), rank.targets.len());
        (found.cells, found.guests) = (joined.tree.cells.len(), records.len() - found.sources);
        let mut trees = Trees::grow((&[], &[]), &rank.targets, self.leaves, self.request, 0.0);
        trees.join(&Peers::default());
        rank.sources.join(&records, &mut joined.tree, self.statistics.unit);
        trees.source = joined.tree;
        trees.own = Some(std::mem::replace(&mut rank.own, Own::new(Tree::default(), vec![])));
        let whole = std::mem::replace(&mut self.statistics.source_cells, joined.cells);
        let mut choice: Choice<f64> = choice::empty(Scheme::Fmm);
        choice.build_lists::<C>(&rank.sources, &trees, &self.statistics, &self.cost, self.request);
        self.statistics.source_cells = whole;
        let samples = self.statistics.sample.points.len() + choice.recipe.judges;
        found.work = work::of_lists::<f64, C>(&trees, &choice, &self.cost, samples);
        found.seconds = found.work.seconds(found.sources);
        rank.own = trees.own.take().expect("put there above");
    }

    /// Bytes that all ranks gather from each: its boxes.
    pub fn boxes_bytes<S>(ranks: &[Rank<S>]) -> f64 {
        ranks.iter().map(|r| 8.0 * (BOX_WORDS * r.boxes.len()) as f64).fold(0.0, f64::max)
    }
}

fn sums(all: &[Parcel]) -> Figures {
    let sent_to = all.iter().filter(|p| p.bytes > 0.0).count();
    Figures { sent_to, sent: all.iter().map(|p| p.bytes).sum(), ..Figures::default() }
}
