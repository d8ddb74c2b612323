//! The locally essential tree: of other ranks' sources what the targets of this one need.
//!
//! Enters: this rank's source tree and targets. Leaves: one source tree below a common root, with all own cells and of every
//! other rank the cells that some target here may open, with their sources in leaves; what is good enough unopened is a
//! leaf without sources (`Cell::absent`), whose multipoles come from its rank with every upward pass.
//!
//! Each rank describes its targets by a few dozen boxes. The sender walks its tree against the boxes of the receiver: a cell
//! stays closed where an order within the budget exists for any target in any box and no core matters there.

use super::choice::admission_of;
use super::statistics::Statistics;
use super::trees::Trees;
use super::{Request, SourceSet};
use crate::backend::cpu::lists::{Admission, CoreTest, Image, Scheme, SourceCell};
use crate::backend::cpu::tree::{Cell, Tree};
use crate::distributed::Peers;
use crate::math::sphere::count;
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;

/// Boxes that describe the targets of a rank.
const BOXES: usize = 48;
/// Numbers of a box and of a cell on their way.
const BOX_WORDS: usize = 6;
const CELL_WORDS: usize = 16;
/// The common root is never expanded: its ball is out of all proportion.
const ENDLESS: f64 = 1e30;

/// This rank's own source tree, and where its cells and those of others are in the joined one.
pub struct Own {
    pub tree: Tree,
    pub cells: Vec<SourceCell>,
    /// By rank: cells of the joined tree whose multipoles go there, and those that come from there.
    gives: Vec<Vec<u32>>,
    takes: Vec<Vec<u32>>,
    /// The own root in the joined tree; nothing without sources.
    root: Option<usize>,
    /// Sources and closed cells of other ranks that are here; the most of any rank.
    pub guests: [usize; 2],
}

impl Own {
    pub fn new(tree: Tree, cells: Vec<SourceCell>) -> Self {
        Self { tree, cells, gives: vec![], takes: vec![], root: None, guests: [0; 2] }
    }

    /// Multipoles of closed cells, `size` numbers each, to and from all ranks.
    pub fn exchange<T: Real>(&self, peers: &Peers, multipoles: &mut [T], size: usize) {
        let of = |cells: &Vec<u32>| {
            let mut numbers = memory::with_room(cells.len() * size);
            for &c in cells {
                numbers.extend(multipoles[c as usize * size..][..size].iter().map(|v| v.f64()));
            }
            numbers
        };
        let to: Vec<Vec<f64>> = self.gives.iter().map(of).collect();
        for (cells, numbers) in self.takes.iter().zip(peers.share(to)) {
            for (&c, from) in cells.iter().zip(numbers.chunks_exact(size)) {
                let to = &mut multipoles[c as usize * size..][..size];
                to.iter_mut().zip(from).for_each(|(t, &v)| *t = T::of(v));
            }
        }
    }

    /// The own root's number in the joined tree.
    pub fn root(&self) -> Option<usize> {
        self.root
    }

    /// What the sources of all ranks amount to around the middle of a periodic box: strengths as if they were alike.
    fn of_all(&self, peers: &Peers) -> SourceCell {
        let root = self.cells.first();
        let mut sums = root.map_or([0.0; 2], |c| [c.strength, c.sum]);
        peers.sum(&mut sums);
        let mut most = root.map_or([0.0, 0.0, f64::NEG_INFINITY], |c| [c.spread, c.peak, -c.alike]);
        peers.largest(&mut most);
        let [spread, peak, alike] = most;
        SourceCell { strength: sums[0], spread, peak, sum: sums[1], alike: -alike }
    }

    pub fn bytes(&self) -> usize {
        self.tree.bytes() + self.cells.capacity() * size_of::<SourceCell>()
    }
}

/// Targets of a rank in a ball; `leaf`: the largest radius of a leaf in it; `count`: their number.
pub struct TargetBox {
    center: [f64; 3],
    radius: f64,
    leaf: f64,
    count: u32,
}

/// At most `BOXES` cells that hold all targets, the largest divided first.
pub fn boxes_of(tree: &Tree) -> Vec<f64> {
    if tree.cells.is_empty() {
        return vec![];
    }
    let mut leaf = memory::collect(tree.cells.iter().map(|c| if c.is_leaf() { c.radius } else { 0.0 }));
    tree.gather(&mut leaf, |_, largest, children| *largest = children.iter().copied().fold(*largest, f64::max));
    let mut chosen = vec![0usize];
    loop {
        let inner = (0..chosen.len()).filter(|&k| !tree.cells[chosen[k]].is_leaf());
        let radius = |k: &usize| tree.cells[chosen[*k]].radius;
        let Some(largest) = inner.max_by(|a, b| radius(a).total_cmp(&radius(b))) else { break };
        let cell = &tree.cells[chosen[largest]];
        if chosen.len() + cell.children as usize > BOXES {
            break;
        }
        chosen.swap_remove(largest);
        chosen.extend((cell.first_child..cell.first_child + cell.children).map(|c| c as usize));
    }
    let words = |&c: &usize| {
        let cell = &tree.cells[c];
        let [x, y, z] = cell.center;
        [x, y, z, cell.radius, leaf[c], cell.len() as f64]
    };
    chosen.iter().flat_map(words).collect()
}

/// Which of its cells a rank opens for another one.
pub struct Walk<'a> {
    scheme: Scheme,
    tree: &'a Tree,
    admission: Admission<'a>,
    cores: Box<dyn CoreTest + 'a>,
    /// What periodic images of the sources are moved by; the first by nothing.
    shifts: &'a [[f64; 3]],
    /// Numbers of a multipole, about.
    multipole: usize,
}

/// Boxes as they came.
pub fn boxes_in(words: &[f64]) -> Vec<TargetBox> {
    let one = |w: &[f64]| TargetBox { center: [w[0], w[1], w[2]], radius: w[3], leaf: w[4], count: w[5] as u32 };
    words.chunks_exact(BOX_WORDS).map(one).collect()
}

impl<'a> Walk<'a> {
    /// Of a rank's own tree, each cell of which is there once for each of `shifts`.
    pub fn new<T: Real, const C: usize>(
        sources: &'a dyn SourceSet<T, C>,
        own: &'a Own,
        scheme: Scheme,
        statistics: &Statistics,
        request: Request,
        shifts: &'a [[f64; 3]],
    ) -> Self {
        let admission = admission_of::<T>(scheme, C, &own.tree, &own.cells, statistics, request);
        let highest = admission.highest;
        let terms = if request.is_pseudo() { count(highest) } else { highest * highest };
        let multipole = C * terms / 2;
        let cores = sources.own().core_test(statistics.budget.core, statistics.budget.cores_of_cell());
        Self { scheme, tree: &own.tree, admission, cores, shifts, multipole }
    }

    fn must_open(&self, s: u32, b: &TargetBox, image: Image) -> bool {
        let c = &self.tree.cells[s as usize];
        // Sources that are moved one way are seen from targets that are moved the other.
        let shift = self.shifts[image as usize];
        let seen: [f64; 3] = std::array::from_fn(|i| b.center[i] - shift[i]);
        let away: [f64; 3] = std::array::from_fn(|i| seen[i] - c.center[i]);
        let d = away.iter().map(|v| v * v).sum::<f64>().sqrt();
        // The target cell that it will meet there, as near as one can be: one of its size, or by the treecode a leaf.
        let radius = if self.scheme == Scheme::Fmm { b.leaf.max(c.radius).min(b.radius) } else { b.leaf };
        let nearest = d - b.radius + radius;
        if nearest <= c.radius + radius {
            return true;
        }
        // As if the targets lay on a surface; where more are at one point the receiver's verdict decides.
        let count = (f64::from(b.count) * (radius / b.radius.max(f64::MIN_POSITIVE)).powi(2)).ceil().max(1.0) as u32;
        let blank =
            Cell { children: 0, first_child: 0, begin: 0, end: count, parent: u32::MAX, absent: 0, scale: 1.0, ..*c };
        let center = std::array::from_fn(|i| c.center[i] + away[i] * (nearest / d));
        let close = Cell { center, radius, spread: radius, ..blank };
        let whole = Cell { center: seen, radius: b.radius, spread: b.radius, ..blank };
        self.admission.order(s, c, &close).is_none() || self.cores.matters(s, c, &whole)
    }

    /// Cells for a rank with these boxes, level by level as in the own tree: (cell, what becomes of it).
    pub fn cells(&self, boxes: &[TargetBox]) -> Vec<(u32, Fate)> {
        let mut found: Vec<(u32, Fate)> = vec![];
        if boxes.is_empty() || self.tree.cells.is_empty() {
            return found;
        }
        let mut all: Vec<(u32, Image)> = memory::with_room(boxes.len() * self.shifts.len());
        for image in 0..self.shifts.len() as Image {
            all.extend((0..boxes.len() as u32).map(|b| (b, image)));
        }
        let mut level = vec![(0u32, all)];
        while !level.is_empty() {
            let mut next = vec![];
            for (s, given) in level {
                let c = &self.tree.cells[s as usize];
                let open = |&(b, image): &(u32, Image)| self.must_open(s, &boxes[b as usize], image);
                let mut left: Vec<(u32, Image)> = vec![];
                memory::extend(&mut left, given.into_iter().filter(open));
                let cheaper_as_sources = c.len() * 8 <= self.multipole;
                let fate = match (left.is_empty(), c.is_leaf()) {
                    (true, false) => Fate::Closed,
                    (true, true) if !cheaper_as_sources => Fate::Closed,
                    (_, true) => Fate::Sources,
                    (false, false) => {
                        (c.first_child..c.first_child + c.children)
                            .for_each(|k| memory::push(&mut next, (k, left.clone())));
                        Fate::Opened
                    }
                };
                memory::push(&mut found, (s, fate));
            }
            level = next;
        }
        found
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    Opened,
    Sources,
    Closed,
}

/// What goes to one rank: counts, cells, sources. `first_child` and ranges count within the message.
pub fn message(walk: &Walk<'_>, statistics: &[SourceCell], records: &[[f64; 8]], cells: &[(u32, Fate)]) -> Vec<f64> {
    let tree = walk.tree;
    let mut runs: Vec<(u32, u32)> = vec![];
    let with_sources = cells.iter().filter(|c| c.1 == Fate::Sources).map(|c| &tree.cells[c.0 as usize]);
    memory::extend(&mut runs, with_sources.map(|c| (c.begin, c.end)));
    runs.sort_unstable();
    let mut before = memory::with_room(runs.len() + 1);
    before.push(0u32);
    runs.iter().for_each(|r| before.push(before[before.len() - 1] + r.1 - r.0));
    let sent = |at: u32| before[runs.partition_point(|r| r.0 < at)];
    let mut out = memory::with_room(2 + CELL_WORDS * cells.len() + 8 * before[runs.len()] as usize);
    out.extend([cells.len() as f64, f64::from(before[runs.len()])]);
    let mut child = 1u32;
    for &(s, fate) in cells {
        let (c, f) = (&tree.cells[s as usize], &statistics[s as usize]);
        let children = if fate == Fate::Opened { c.children } else { 0 };
        let (begin, end) = (sent(c.begin), sent(c.end));
        let absent = c.len() as u32 - (end - begin);
        let ([x, y, z], [a, b, d]) = (c.center, [c.radius, c.spread, c.scale]);
        out.extend([child, children, begin, end, absent].map(f64::from));
        out.extend([x, y, z, a, b, d, f.strength, f.spread, f.peak, f.sum, f.alike]);
        child += children;
    }
    runs.iter().for_each(|r| out.extend_from_slice(records[r.0 as usize..r.1 as usize].as_flattened()));
    out
}

/// Cells of one rank, level by level, as they came (or as they are here): ranges and children count within them.
pub struct Branch {
    cells: Vec<(Cell, SourceCell)>,
    levels: Vec<usize>,
    pub records: Vec<[f64; 8]>,
}

impl Branch {
    pub fn new(cells: Vec<(Cell, SourceCell)>, records: Vec<[f64; 8]>) -> Self {
        let mut levels = vec![0];
        let mut level = 0..cells.len().min(1);
        while !level.is_empty() {
            levels.push(level.end);
            let children: u32 = cells[level.clone()].iter().map(|c| c.0.children).sum();
            level = level.end..level.end + children as usize;
        }
        Self { cells, levels, records }
    }

    pub fn of_message(words: &[f64]) -> Self {
        if words.is_empty() {
            return Self::new(vec![], vec![]);
        }
        let (n, records) = (words[0] as usize, words[1] as usize);
        let (of_cells, rest) = words[2..].split_at(CELL_WORDS * n);
        let cell = |w: &[f64]| {
            let [first_child, children, begin, end, absent] = std::array::from_fn(|i| w[i] as u32);
            let center = [w[5], w[6], w[7]];
            let (radius, spread, scale) = (w[8], w[9], w[10]);
            let statistics = SourceCell { strength: w[11], spread: w[12], peak: w[13], sum: w[14], alike: w[15] };
            (Cell { begin, end, first_child, children, parent: 0, absent, center, radius, spread, scale }, statistics)
        };
        let cells = memory::collect(of_cells.chunks_exact(CELL_WORDS).map(cell));
        Self::new(cells, memory::copy(&rest.as_chunks::<8>().0[..records]))
    }

    fn level(&self, k: usize) -> std::ops::Range<usize> {
        match self.levels.get(k + 1) {
            Some(&end) => self.levels[k]..end,
            None => 0..0,
        }
    }
}

/// Makes the joined tree for the present budget, and gives the sources of it to `sources`.
pub fn join<T: Real, const C: usize>(
    sources: &mut dyn SourceSet<T, C>,
    trees: &mut Trees,
    scheme: Scheme,
    statistics: &mut Statistics,
    request: Request,
) {
    let peers = trees.peers.clone();
    let (rank, size) = (peers.rank(), peers.size());
    let mut own = trees.own.take().expect("the own tree of a group");
    let records = sources.own_records();
    let (boxes, counts) = peers.gather(&boxes_of(&trees.target));
    let (to, sent) = {
        let walk = Walk::new(&*sources, &own, scheme, statistics, request, &trees.images.shifts);
        let first = |r: usize| counts[..r].iter().sum::<usize>();
        let of_rank = |r: usize| {
            let theirs = boxes_in(&boxes[first(r)..first(r) + counts[r]]);
            let cells = if r == rank { vec![] } else { walk.cells(&theirs) };
            (if cells.is_empty() { vec![] } else { message(&walk, &own.cells, &records, &cells) }, cells)
        };
        let found: Vec<(Vec<f64>, Vec<(u32, Fate)>)> = (0..size).into_par_iter().map(of_rank).collect();
        found.into_iter().unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let mut branches: Vec<Branch> = peers.share(to).iter().map(|words| Branch::of_message(words)).collect();
    let mine = memory::collect(own.tree.cells.iter().copied().zip(own.cells.iter().copied()));
    branches[rank] = Branch::new(mine, records);
    let Joined { mut tree, mut cells, indices } = graft(&branches);
    own.root = indices[rank].first().map(|&c| c as usize);
    if request.periods.is_some() {
        cells[0] = own.of_all(&peers);
    }
    let closed = |branch: usize| {
        let of = branches[branch].cells.iter().enumerate().filter(|(_, (c, _))| c.is_leaf() && !c.is_whole());
        of.map(|(k, _)| indices[branch][k]).collect::<Vec<u32>>()
    };
    own.takes = (0..size).map(|r| if r == rank { vec![] } else { closed(r) }).collect();
    let given = |cells: &Vec<(u32, Fate)>| {
        let closed = cells.iter().filter(|c| c.1 == Fate::Closed);
        closed.map(|c| indices[rank][c.0 as usize]).collect::<Vec<u32>>()
    };
    own.gives = sent.iter().map(given).collect();
    let mut all = memory::with_room(branches.iter().map(|b| b.records.len()).sum());
    branches.into_iter().for_each(|b| all.extend_from_slice(&b.records));
    let closed = own.takes.iter().map(Vec::len).sum::<usize>();
    let mut guests = [(all.len() - own.tree.permutation.len()) as f64, closed as f64];
    peers.largest(&mut guests);
    own.guests = guests.map(|n| n as usize);
    sources.join(&all, &mut tree, statistics.unit);
    (trees.source, trees.own, statistics.source_cells) = (tree, Some(own), cells);
}

/// A tree of all branches, the statistics of its cells, and the index of each branch's cells in it.
pub struct Joined {
    pub tree: Tree,
    pub cells: Vec<SourceCell>,
    indices: Vec<Vec<u32>>,
}

/// The branches below a common root. The permutation is left to who knows the sources.
pub fn graft(branches: &[Branch]) -> Joined {
    let depth = branches.iter().map(|b| b.levels.len() - 1).max().unwrap_or(0);
    let total: usize = branches.iter().map(|b| b.cells.len()).sum();
    let mut indices: Vec<Vec<u32>> = memory::collect(branches.iter().map(|b| memory::with_room(b.cells.len())));
    let mut tree = Tree { levels: vec![0, 1], ..Tree::default() };
    let mut at = 1u32;
    for level in 0..depth {
        for (b, branch) in branches.iter().enumerate() {
            let count = branch.level(level).len() as u32;
            indices[b].extend(at..at + count);
            at += count;
        }
        tree.levels.push(at as usize);
    }
    let sources: usize = branches.iter().map(|b| b.records.len()).sum();
    let roots = branches.iter().filter(|b| !b.cells.is_empty()).count() as u32;
    let root = Cell {
        begin: 0,
        end: sources as u32,
        first_child: 1,
        children: roots,
        parent: u32::MAX,
        absent: 1,
        center: [0.0; 3],
        radius: ENDLESS,
        spread: ENDLESS,
        scale: 4.0,
    };
    tree.cells = memory::filled(root, total + 1);
    let mut cells = memory::filled(SourceCell::default(), total + 1);
    let mut base = 0u32;
    for (branch, index) in branches.iter().zip(&indices) {
        for (k, (cell, statistics)) in branch.cells.iter().enumerate() {
            let to = index[k] as usize;
            let parent = if k == 0 { 0 } else { tree.cells[to].parent };
            let first_child = if cell.children > 0 { index[cell.first_child as usize] } else { 0 };
            tree.cells[to] = Cell { begin: cell.begin + base, end: cell.end + base, first_child, parent, ..*cell };
            (0..cell.children).for_each(|i| tree.cells[(first_child + i) as usize].parent = to as u32);
            cells[to] = *statistics;
        }
        base += branch.records.len() as u32;
    }
    tree.leaves = (1..tree.cells.len() as u32).filter(|&c| tree.cells[c as usize].is_leaf()).collect();
    Joined { tree, cells, indices }
}
