//! One far field on the CPU, by the FMM or the treecode, in typed stages: each is made of the one before it.
//!
//! ```text
//!   Trees        both octrees, sorted targets                                             trees
//!   Statistics   strengths of cells, exact field at a sample, budget of errors            statistics
//!   Choice       leaf capacities, interaction lists, truncation orders, predicted cost    choice   (Recipe: as plain data)
//!   Expansions   multipoles, and local expansions or (treecode) rows of M2P               expansions
//!   field        expansions and near sources at the targets                               field
//!   verdict      an independent sample against exact sums                                 sample, backend::verdict
//!   Run          all from the expansions on, again where the field misses                 run
//! ```
//!
//! On many ranks (`shared`) the source tree has beside this rank's own cells those of others that are essential here
//! (`essential`); sample, budget and verdict are of all ranks. Where all ranks have the same sources, targets and trees instead, each
//! evaluates a part of the target leaves (`division`).
//!
//! Enters: a set of sources (`SourceSet`) and targets, both in units of the plan's scale. Leaves: the field at the targets.
//! `C` harmonic components: 3, the vector potential of vortices; 1, charges. The same code serves both.
//!
//! The tolerance becomes an absolute error that one interaction may add at a target (`Budget`): the same for every pair of
//! cells and every target, so that the error is spread evenly and a sample can see it. See docs/theory.md.

mod choice;
mod distant;
mod division;
mod essential;
mod expansions;
mod field;
mod run;
mod sample;
mod shared;
mod statistics;
#[cfg(test)]
mod tests;
mod trees;
pub mod virtual_ranks;
mod work;

use super::cores::{CellCores, NoCores};
use super::cost;
use super::lists::{CoreTest, Cost, Scheme, SourceCell, Subset};
use super::near;
use super::passes::LeafSources;
use super::pseudo;
use super::tree::{Cell, Tree};
use crate::backend::periods;
use crate::distributed::Peers;
use crate::math::regularization::Part;
use crate::memory;
use crate::report::{PASS_COUNT, Pass};
use crate::simd::{Real, lanes};
use choice::{Choice, Leaves};
pub use choice::{Recipe, Request};
pub use distant::Distant;
use division::Division;
use expansions::Expansions;
use run::Run;
use statistics::Statistics;
use std::ops::Range;
use std::time::Instant;
use trees::Trees;
pub use work::{LeafCost, Work};

/// What the method needs of a set of sources; sorted indices are those of the source tree.
pub trait SourceSet<T: Real, const C: usize>: Sync + Send {
    fn is_empty(&self) -> bool;
    /// Midpoints and, where there are segments, half vectors; original order.
    fn positions(&self) -> (&[[f64; 3]], &[[f64; 3]]);
    /// Takes over the order of the tree.
    fn sort(&mut self, tree: &Tree);
    /// Collects what it must know of its elements' cores, after `sort`; strengths are divided by `unit`.
    fn survey(&mut self, unit: f64);
    /// The same of the cells, before `core_test`.
    fn survey_cells(&mut self, tree: &Tree);
    fn has_cores(&self) -> bool;
    /// Where cores matter, for errors of field and gradient (strengths divided by the unit of `survey`) that one core, and
    /// all cores of a cell together, may leave.
    fn core_test(&self, budget: [f64; 2], together: [f64; 2]) -> Box<dyn CoreTest + '_>;
    /// The cores of the cells of another tree of the same sources, after `survey`; `core_test` for them.
    fn cell_cores(&self, _tree: &Tree) -> CellCores {
        CellCores::default()
    }
    fn core_test_of<'a>(&'a self, _: &'a CellCores, _budget: [f64; 2], _together: [f64; 2]) -> Box<dyn CoreTest + 'a> {
        Box::new(NoCores)
    }
    /// Distance from which no core changes its element's field by more than `share` of it.
    fn core_extent(&self, _share: f64) -> f64 {
        0.0
    }
    /// Sum of charges times their squared distances from a position.
    fn square_moment(&self, _from: [f64; 3]) -> f64 {
        0.0
    }
    /// The caller's order, where no tree sorted the sources yet: for the direct sum.
    fn keep_order(&mut self);
    fn bytes(&self) -> u64;
    /// Sources of a leaf, relative to its centre, in its unit.
    fn fill(&self, cell: &Cell, to: &mut LeafSources<T, C>);
    /// Largest component of a strength.
    fn largest_strength(&self) -> f64;
    /// What each cell amounts to in a truncation error, strengths divided by `unit`; `moment`: half the power of the mean.
    fn source_cells(&self, tree: &Tree, unit: f64, moment: i32) -> Vec<SourceCell>;
    /// Direct regularized sums in double precision, `[row][point]`.
    fn exact(&self, points: &[[f64; 3]], gradient: bool) -> Vec<f64>;
    /// Adds the direct sum of the sorted sources in `ranges` to the rows of `out`, one a number wanted at a target.
    fn near(&self, part: Part, ranges: &[Range<u32>], targets: &near::Points<T>, out: &mut [&mut [T]]);
    /// The same in double precision.
    fn exact_of(&self, part: Part, ranges: &[Range<u32>], points: &near::Points<f64>, out: &mut [&mut [f64]]);
    /// Seconds of one thread for a direct pair, measured on the kernels; `exact`: in double precision.
    fn pair_seconds(&self, part: Part, gradient: bool, exact: bool) -> f64;
    /// Records of this rank's own sources, in the order of its tree; only sets of many ranks have them.
    fn own_records(&self) -> Vec<[f64; 8]> {
        vec![]
    }
    /// This rank's own sources, in the order of its own tree: the same set, but where it was joined with those of others.
    fn own(&self) -> &dyn SourceSet<T, C>;
    /// Takes these records for all sources but those of exact sums; `tree` gets their permutation.
    fn join(&mut self, _records: &[[f64; 8]], _tree: &mut Tree, _unit: f64) {}
}

/// Numbers at a target: velocity (3) and gradient (9), or potential (1) and gradient (3).
pub const fn rows(components: usize, gradient: bool) -> usize {
    match (components, gradient) {
        (1, false) => 1,
        (1, true) => 4,
        (_, false) => 3,
        (_, true) => 12,
    }
}

/// Everything that is made before an evaluation.
struct Prepared<T: Real, const C: usize> {
    request: Request,
    cost: Cost,
    trees: Trees,
    statistics: Statistics,
    choice: Choice<T>,
}

/// The state of one far field.
pub struct Fmm<T: Real, const C: usize> {
    prepared: Option<Prepared<T, C>>,
    expansions: Expansions<T>,
    /// Ranks that all have the same sources and targets.
    team: Peers,
    pub recipe: Recipe,
    pub seconds: [f64; PASS_COUNT],
}

impl<T: Real, const C: usize> Default for Fmm<T, C> {
    fn default() -> Self {
        Self {
            prepared: None,
            expansions: Expansions::default(),
            team: Peers::default(),
            recipe: Recipe::default(),
            seconds: [0.0; PASS_COUNT],
        }
    }
}

/// What changed since the last call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Changes {
    pub sources: bool,
    pub strengths: bool,
    pub targets: bool,
}

/// Results on the CPU: where target k of the caller goes. Rows are scaled by the engine.
pub struct Sink<'a, T> {
    pub main: &'a mut [T],
    pub gradient: Option<&'a mut [T]>,
    pub main_factor: f64,
    /// What the gradient is multiplied by after `main_factor`: one product of the two could leave the range.
    pub per_length: f64,
    pub accumulate: bool,
}

/// Sorting alone costs more than the direct sum below so many seconds of it a point.
const SORT_SECONDS: f64 = 2.5e-7;

impl<T: Real, const C: usize> Fmm<T, C> {
    /// For ranks that all have the same sources and targets.
    pub fn divided(peers: &Peers) -> Self {
        Self { team: peers.clone(), ..Self::default() }
    }

    /// The targets of each of several such ranks, by their numbers; nothing where nothing is prepared.
    pub fn divided_targets(&self) -> Vec<&[u32]> {
        let Some(p) = &self.prepared else { return vec![] };
        let parts = p.trees.division.targets().iter();
        memory::collect(parts.map(|part| &p.trees.target.permutation[part.clone()]))
    }

    pub fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// A number that follows from the last digits of what was prepared; zero where nothing is.
    pub fn token(&self) -> f64 {
        self.prepared.as_ref().map_or(0.0, |p| 1.0 + (p.statistics.seed() >> 12) as f64)
    }

    /// Trees, lists and orders for `sources` and the targets last given. Returns false where the direct sum would be
    /// faster and `may_decline`.
    pub fn prepare(
        &mut self,
        sources: &mut dyn SourceSet<T, C>,
        targets: &[[f64; 3]],
        changes: Changes,
        request: Request,
        may_decline: bool,
    ) -> bool {
        let start = Instant::now();
        if changes.sources || changes.strengths {
            self.expansions.forget_sources();
        }
        // Whatever declines or fails below leaves nothing behind that a later call could take for current.
        let same = |p: &Prepared<T, C>| p.request == request && !changes.sources && !request.reproducible;
        let mut kept = self.prepared.take().filter(same);
        if kept.is_none() {
            self.expansions.forget_sources();
        }
        self.expansions.forget_targets();
        let counts = [sources.positions().0.len(), targets.len()];
        if may_decline && self.too_small(sources, counts, request) {
            return false;
        }
        let cost = kept.as_mut().map_or_else(|| Self::costs(sources, request), |p| std::mem::take(&mut p.cost));
        let new_trees = kept.is_none() || changes.targets;
        let trees = match kept {
            Some(p) if !changes.targets => p.trees,
            Some(p) => p.trees.with_targets(targets, Leaves::grown(&cost, counts, request)),
            None => {
                let grown = Leaves::grown(&cost, counts, request);
                let reach = sources.core_extent(periods::CORES_OF_IMAGES * request.tolerance);
                let mut trees = Trees::grow(sources.positions(), targets, grown, request, reach);
                trees.division = Division::among(self.team.clone());
                sources.sort(&trees.source);
                trees
            }
        };
        if new_trees {
            self.seconds[Pass::Tree as usize] = start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        let (trees, statistics, choice) = choice::make(sources, trees, &cost, request, self.expansions.upward_order());
        self.seconds[Pass::Lists as usize] = start.elapsed().as_secs_f64();
        self.recipe = choice.recipe.clone();
        if may_decline && self.recipe.predicted > self.recipe.direct {
            return false;
        }
        self.prepared = Some(Prepared { request, cost, trees, statistics, choice });
        true
    }

    /// The sources are about to be sorted by somebody else.
    pub fn forget(&mut self) {
        self.prepared = None;
        self.expansions.forget_sources();
    }

    fn costs(sources: &dyn SourceSet<T, C>, request: Request) -> Cost {
        let cost = Self::costs_of_harmonics(sources, request);
        // With leaves of the caller the lists are those of harmonics, to be compared with them.
        if request.is_pseudo() && request.leaf_capacity == 0 { pseudo::costs::<C>(cost) } else { cost }
    }

    fn costs_of_harmonics(sources: &dyn SourceSet<T, C>, request: Request) -> Cost {
        if request.reproducible {
            return cost::typical::<T, C>(request.gradient);
        }
        let at_targets = request.schemes().contains(&Scheme::Treecode);
        Cost {
            pair: sources.pair_seconds(Part::Regularized, request.gradient, false),
            exact: sources.pair_seconds(Part::Regularized, request.gradient, true),
            correction: sources.pair_seconds(Part::Correction, request.gradient, false),
            m2l: cost::m2l::<T, C>(),
            m2p: if at_targets { cost::m2p::<T, C>(request.gradient) } else { vec![] },
            lanes: lanes::<T>(),
        }
    }

    /// Whether sorting alone costs more than the direct sum: no expansion can win it back.
    fn too_small(&mut self, sources: &dyn SourceSet<T, C>, [n, m]: [usize; 2], request: Request) -> bool {
        self.recipe.direct = n as f64 * m as f64 * request.direct_pair(&Self::costs(sources, request));
        self.recipe.direct += m as f64 * choice::image_seconds(request);
        self.recipe.direct < SORT_SECONDS * (n + m) as f64
    }

    /// The field at all targets, judged on a sample; tightened and repeated where it misses. False: it still misses, and
    /// what was written is not to be used.
    pub fn evaluate(&mut self, sources: &mut dyn SourceSet<T, C>, sink: &mut Sink<'_, T>) -> bool {
        let is_pseudo = self.prepared.as_ref().is_some_and(|p| p.request.is_pseudo());
        let Some(mut run) = self.run(sources) else { return false };
        if !sink.accumulate && !is_pseudo {
            return run.judged(sink);
        }
        // What is added must be good before it is added, and what no direct sum takes the place of before it is written.
        let mut main = memory::filled(T::ZERO, sink.main.len());
        let mut gradient = sink.gradient.as_ref().map(|g| memory::filled(T::ZERO, g.len()));
        let good =
            run.judged(&mut Sink { main: &mut main, gradient: gradient.as_deref_mut(), accumulate: false, ..*sink });
        if good {
            let accumulate = sink.accumulate;
            let put = |to: &mut [T], from: &[T]| {
                to.iter_mut().zip(from).for_each(|(t, &f)| *t = if accumulate { *t + f } else { f });
            };
            put(sink.main, &main);
            if let (Some(to), Some(from)) = (&mut sink.gradient, &gradient) {
                put(to, from);
            }
        }
        good
    }

    /// Positions of some sorted targets and the field there, `[row][k]`, without gradient; nothing where nothing is prepared.
    pub fn at(&mut self, sources: &mut dyn SourceSet<T, C>, targets: &[u32]) -> Option<(Vec<[f64; 3]>, Vec<T>)> {
        self.run(sources).map(|mut run| run.at(targets))
    }

    fn run<'a>(&'a mut self, sources: &'a mut dyn SourceSet<T, C>) -> Option<Run<'a, T, C>> {
        let Self { prepared, expansions, recipe, seconds, .. } = self;
        prepared.as_mut().map(|prepared| Run { prepared, expansions, recipe, seconds, sources })
    }

    pub fn bytes(&self) -> u64 {
        let prepared = self.prepared.as_ref().map_or(0, |p| p.trees.bytes() + p.choice.bytes());
        (prepared + self.expansions.bytes()) as u64
    }
}
