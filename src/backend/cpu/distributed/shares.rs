//! How large the ranks' shares are: equal in number, or in the work of the evaluation before.
//!
//! Enters: what a field has cost on each rank. Leaves: weights of sources and targets anywhere, the same on all ranks. Costs
//! belong to positions, not to elements: these may move, change ranks and become more or fewer.

use crate::backend::cpu::fmm::{LeafCost, Work};
use crate::backend::cpu::tree::{Root, key};
use crate::distributed::Peers;
use crate::memory;
use rayon::prelude::*;

/// Pieces of the curve with one cost each that a rank tells the others.
const PIECES: usize = 256;

/// What decides where an element goes.
#[derive(Debug, Clone, Copy)]
pub enum Shares<'a> {
    /// The host's partition is kept.
    Host,
    /// Every element weighs the same.
    Counts,
    /// An element weighs what the elements at its position have cost.
    Costs(&'a Costs),
}

/// Seconds a target by position, of all ranks; lengths are the caller's.
#[derive(Debug, Clone)]
pub struct Costs {
    root: Root,
    /// First key of a piece, seconds for a target in it.
    pieces: Vec<(u64, f64)>,
    /// For a source.
    source: f64,
}

/// The root in the caller's lengths from one in lengths times `scale`.
fn unscaled(root: Root, scale: f64) -> Root {
    Root { corner: root.corner.map(|x| x / scale), edge: root.edge / scale }
}

/// Pieces of equal work, so that they are short where it is dense: first key in two halves, seconds for a target.
fn pieces(root: Root, work: &Work) -> Vec<f64> {
    let all = |l: &LeafCost| (key(l.center, root), l.targets as f64, l.targets as f64 * l.seconds);
    let mut leaves: Vec<(u64, f64, f64)> = memory::par_collect(work.leaves.par_iter().map(all));
    leaves.par_sort_unstable_by_key(|l| l.0);
    let whole: f64 = leaves.iter().map(|l| l.2).sum();
    let mut found: Vec<f64> = vec![];
    let (mut targets, mut seconds, mut first) = (0.0, 0.0, None);
    for (n, &(k, count, spent)) in leaves.iter().enumerate() {
        first.get_or_insert(k);
        (targets, seconds) = (targets + count, seconds + spent);
        if seconds * PIECES as f64 >= whole || n + 1 == leaves.len() {
            let from: u64 = first.take().unwrap_or(k);
            memory::extend(&mut found, [(from >> 32) as f64, (from & 0xffff_ffff) as f64, seconds / targets]);
            (targets, seconds) = (0.0, 0.0);
        }
    }
    found
}

impl Costs {
    /// Of all ranks' work, which was in lengths times `scale`.
    pub fn gather(peers: &Peers, root: Root, scale: f64, work: &Work) -> Self {
        let all = peers.gather(&pieces(root, work)).0;
        Self::of(unscaled(root, scale), all.as_chunks::<3>().0, peers.max(work.source))
    }

    /// The same where all ranks' work is here; lengths are the caller's.
    pub fn of_all(root: Root, works: &[&Work]) -> Self {
        let all: Vec<f64> = works.iter().flat_map(|work| pieces(root, work)).collect();
        let source = works.iter().map(|work| work.source).fold(0.0, f64::max);
        Self::of(root, all.as_chunks::<3>().0, source)
    }

    fn of(root: Root, all: &[[f64; 3]], source: f64) -> Self {
        let piece = |w: &[f64; 3]| ((w[0] as u64) << 32 | w[1] as u64, w[2]);
        let mut pieces = memory::collect(all.iter().map(piece));
        pieces.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Self { root, pieces, source }
    }
}

impl<'a> Shares<'a> {
    /// For positions in lengths times `scale`.
    pub fn weights(&self, scale: f64) -> Weights<'a> {
        match self {
            Self::Costs(costs) => Weights(Some((costs, unscaled(costs.root, 1.0 / scale)))),
            Self::Host | Self::Counts => Weights(None),
        }
    }
}

/// What single elements weigh.
pub struct Weights<'a>(Option<(&'a Costs, Root)>);

impl Weights<'_> {
    pub fn of_source(&self) -> f64 {
        self.0.map_or(1.0, |(costs, _)| costs.source)
    }

    pub fn of_target(&self, x: [f64; 3]) -> f64 {
        let Some((costs, root)) = self.0 else { return 1.0 };
        let after = costs.pieces.partition_point(|p| p.0 <= key(x, root));
        costs.pieces.get(after.saturating_sub(1)).map_or(1.0, |p| p.1)
    }
}
