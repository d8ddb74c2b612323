//! Both octrees and the targets in the order of theirs.
//!
//! Enters: positions of sources and targets, leaf capacities. Leaves: `Trees`.

use super::choice::{Leaves, order_at};
use super::division::Division;
use super::essential::Own;
use super::{Distant, Request, SourceSet};
use crate::backend::cpu::images::{Images, Periods};
use crate::backend::cpu::tree::{Corners, Root, Tree, bounds};
use crate::distributed::Peers;
use crate::memory;
use crate::simd::Real;

fn root(edge: Option<f64>, corners: Corners) -> Root {
    edge.map_or_else(|| Root::around(&[corners]), |edge| Root::with_edge(edge, corners))
}

/// See the head of this file.
pub struct Trees {
    pub source: Tree,
    pub target: Tree,
    /// Sorted targets.
    pub points: Vec<[f64; 3]>,
    /// The power mean that makes the effective radii.
    pub moment: i32,
    /// Leaf capacities of sources and targets.
    pub capacities: [usize; 2],
    /// The source tree was there before these targets: its leaves are chosen.
    pub keeps_sources: bool,
    /// Leaves are chosen.
    pub is_pruned: bool,
    /// The other ranks; then this rank's own source tree, of which `source` has all and of others what is essential here.
    pub peers: Peers,
    pub own: Option<Own>,
    /// Ranks that have these same trees; those of `peers` have others.
    pub division: Division,
    /// Targets of all ranks, and of those before this one.
    pub all_targets: usize,
    pub first_target: usize,
    /// Sources of all ranks, where there are several.
    all_sources: f64,
    /// Periodic images, how far their cores matter, and exact sums of them.
    pub images: Images,
    periods: Option<Periods>,
    /// See `Root::edge_for_cells_of`.
    edge: Option<f64>,
    reach: f64,
    pub distant: Option<Distant>,
}

impl Trees {
    pub fn grow(
        (positions, half): (&[[f64; 3]], &[[f64; 3]]),
        targets: &[[f64; 3]],
        leaves: Leaves,
        request: Request,
        reach: f64,
    ) -> Self {
        // Half the order of the closest pair: with it the model meets the measured error of CUBE at 1e-3 … 1e-9.
        let moment = (order_at(request.tolerance, 0.38) as i32 / 2).clamp(3, 32);
        let corners = bounds(positions, half);
        // Sums of segments (LATTICE with cores) take up to 15 % longer with it.
        let ideal = leaves.ideal.filter(|_| half.is_empty());
        let sets = || [(positions, corners), (targets, bounds(targets, &[]))];
        let edge = ideal.and_then(|ideal| Root::edge_for_cells_of(ideal, sets()));
        let root = root(edge, corners);
        let (mut source, _) = Tree::build(positions, half, root, leaves.capacities[0], None);
        if let Some(p) = request.periods {
            source.center_root(p.center, p.radius(corners));
        }
        let none = Self {
            source,
            target: Tree::default(),
            points: vec![],
            moment,
            capacities: leaves.capacities,
            keeps_sources: false,
            is_pruned: false,
            peers: Peers::default(),
            division: Division::default(),
            own: None,
            all_targets: 0,
            first_target: 0,
            all_sources: 0.0,
            images: Images::default(),
            periods: request.periods,
            edge,
            reach,
            distant: None,
        };
        Self { keeps_sources: false, ..none.with_targets(targets, leaves) }
    }

    /// The same sources, other targets.
    pub fn with_targets(self, targets: &[[f64; 3]], leaves: Leaves) -> Self {
        let corners = bounds(targets, &[]);
        let (mut target, points) =
            Tree::build(targets, &[], root(self.edge, corners), leaves.capacities[1], Some(self.moment));
        if let Some(p) = self.periods {
            target.center_root(p.center, p.radius(corners));
        }
        let images = Images::of_roots(self.periods, &self.source, &target, self.reach);
        let capacities = [self.capacities[0], leaves.capacities[1]];
        let all_targets = points.len();
        Self { target, points, capacities, keeps_sources: true, is_pruned: false, all_targets, images, ..self }
    }

    /// Joins the other ranks: targets are counted in their order, and all see the same periodic images.
    pub fn join(&mut self, peers: &Peers) {
        if let Some(p) = self.periods.filter(|_| peers.are_many()) {
            self.images = Images::of_ranks(peers, p, &mut self.source, &self.target, self.reach);
        }
        let counts = peers.gather(&[self.points.len() as f64]).0;
        self.all_sources = peers.total(self.source.permutation.len() as f64);
        let before = |n: usize| counts[..n].iter().map(|&n| n as usize).sum();
        (self.first_target, self.all_targets) = (before(peers.rank()), before(counts.len()));
        self.peers = peers.clone();
    }

    /// Sources and targets of all ranks.
    pub fn counts(&self) -> [usize; 2] {
        let sources = if self.peers.are_many() { self.all_sources as usize } else { self.source.permutation.len() };
        [sources, self.all_targets]
    }

    /// Pairs of the direct sum, this rank's share of them.
    pub fn direct_pairs(&self) -> f64 {
        let [sources, targets] = self.counts();
        sources as f64 * targets as f64 / self.peers.size() as f64
    }

    /// Makes leaves of all cells with at most so many sources and targets. Returns the former number of each source cell.
    pub fn prune(&mut self, capacities: [usize; 2]) -> Vec<u32> {
        let kept = if self.keeps_sources {
            memory::collect(0..self.source.cells.len() as u32)
        } else {
            self.capacities[0] = capacities[0];
            self.source.prune(capacities[0])
        };
        self.target.prune(capacities[1]);
        self.capacities[1] = capacities[1];
        self.is_pruned = true;
        kept
    }

    /// Makes the exact sums of images of the own sources, as they are at present.
    pub fn look_far<T: Real, const C: usize>(&mut self, sources: &dyn SourceSet<T, C>, tolerance: f64) {
        let peers = &self.peers;
        self.images.set_moment(|from| peers.total(sources.square_moment(from)));
        let radius = self.target.cells.first().map_or(0.0, |c| c.radius);
        self.distant = self.periods.and_then(|p| Distant::new(sources, &self.source, p, radius, tolerance, peers));
    }

    /// The exact field of the own sources at some points, `[row][point]`.
    pub fn exact<T: Real, const C: usize>(
        &self,
        sources: &dyn SourceSet<T, C>,
        points: &[[f64; 3]],
        gradient: bool,
    ) -> Vec<f64> {
        let mut field = sources.exact(points, gradient);
        if let Some(distant) = &self.distant {
            let images = distant.field(sources.own(), points, gradient);
            field.iter_mut().zip(&images).for_each(|(f, v)| *f += v);
        }
        field
    }

    /// The leaf that holds a sorted target.
    pub fn leaf_of(&self, sorted: u32) -> usize {
        let cells = &self.target.cells;
        let mut leaf = 0;
        while !cells[leaf].is_leaf() {
            let children = &cells[cells[leaf].first_child as usize..][..cells[leaf].children as usize];
            leaf = cells[leaf].first_child as usize + children.partition_point(|c| c.end <= sorted);
        }
        leaf
    }

    /// The leaf of a sorted target and all cells above it.
    pub fn chain(&self, target: u32) -> impl Iterator<Item = usize> {
        let above = |&c: &usize| (c > 0).then(|| self.target.cells[c].parent as usize);
        std::iter::successors(Some(self.leaf_of(target)), above)
    }

    pub fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, Own::bytes);
        let distant = self.images.bytes() + self.distant.as_ref().map_or(0, Distant::bytes);
        own + distant + self.source.bytes() + self.target.bytes() + self.points.capacity() * 24
    }
}
