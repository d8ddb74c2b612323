//! One far field on the CPU, by the FMM or the treecode, in typed stages: each is made of the one before it.
//!
//! ```text
//!   Trees        both octrees, sorted targets                                             trees
//!   Statistics   strengths of cells, exact field at a sample, budget of errors            statistics
//!   Choice       leaf capacities, interaction lists, truncation orders, predicted cost    choice   (Recipe: as plain data)
//!   Expansions   multipoles, and local expansions or (treecode) rows of M2P               expansions
//!   field        expansions and near sources at the targets                               field
//!   verdict      an independent sample against exact sums                                 sample, backend::verdict
//! ```
//!
//! On many ranks (`shared`) the source tree has beside this rank's own cells those of others that are essential here
//! (`essential`); sample, budget and verdict are of all ranks.
//!
//! Enters: a set of sources (`SourceSet`) and targets, both in units of the plan's scale. Leaves: the field at the targets.
//! `C` harmonic components: 3, the vector potential of vortices; 1, charges. The same code serves both.
//!
//! The tolerance becomes an absolute error that one interaction may add at a target (`Budget`): the same for every pair of
//! cells and every target, so that the error is spread evenly and a sample can see it. See docs/theory.md.

mod choice;
mod distant;
mod essential;
mod expansions;
mod field;
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
use crate::backend::verdict::Verdict;
use crate::math::regularization::Part;
use crate::memory;
use crate::report::{PASS_COUNT, Pass};
use crate::simd::{Real, lanes};
use choice::{Choice, Leaves};
pub use choice::{Recipe, Request};
pub use distant::Distant;
use expansions::Expansions;
use field::Evaluation;
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
    pub recipe: Recipe,
    pub seconds: [f64; PASS_COUNT],
}

impl<T: Real, const C: usize> Default for Fmm<T, C> {
    fn default() -> Self {
        Self {
            prepared: None,
            expansions: Expansions::default(),
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
/// A retry aims at this part of the tolerance.
const RETRY_AIM: f64 = 0.3;

impl<T: Real, const C: usize> Fmm<T, C> {
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
                let trees = Trees::grow(sources.positions(), targets, grown, request, reach);
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
        self.prepared = Some(Prepared { request, cost, trees, statistics, choice });
        !(may_decline && self.recipe.predicted > self.recipe.direct) || {
            self.prepared = None;
            false
        }
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
        if !sink.accumulate {
            return self.judged(sources, sink);
        }
        // What is added must be good before it is added.
        let mut main = memory::filled(T::ZERO, sink.main.len());
        let mut gradient = sink.gradient.as_ref().map(|g| memory::filled(T::ZERO, g.len()));
        let good = self.judged(
            sources,
            &mut Sink { main: &mut main, gradient: gradient.as_deref_mut(), accumulate: false, ..*sink },
        );
        if good {
            let add = |to: &mut [T], from: &[T]| to.iter_mut().zip(from).for_each(|(t, &f)| *t += f);
            add(sink.main, &main);
            if let (Some(to), Some(from)) = (&mut sink.gradient, &gradient) {
                add(to, from);
            }
        }
        good
    }

    fn judged(&mut self, sources: &mut dyn SourceSet<T, C>, sink: &mut Sink<'_, T>) -> bool {
        for retry in 0.. {
            self.upward(sources);
            if retry == 0 {
                self.calibrate(sources);
                self.upward(sources);
            }
            self.downward(Subset::ALL);
            self.at_targets();
            let verdict = self.write_and_judge(sources, sink);
            let p = self.prepared.as_mut().expect("prepared");
            self.recipe.sampled_error = verdict.error;
            self.recipe.retries = retry;
            if verdict.holds(p.request.tolerance) {
                return true;
            }
            // Numbers that are none cannot be judged, nor would more digits mend them.
            if retry == p.request.retries() || !verdict.error.is_finite() {
                return false;
            }
            log::debug!("sampled error {:.2e} misses {:.2e}: tightening", verdict.error, p.request.tolerance);
            let factor = (RETRY_AIM * p.request.tolerance / verdict.upper).min(RETRY_AIM);
            p.statistics.budget = p.statistics.budget.scaled(factor, factor);
            self.list_again(sources);
        }
        unreachable!("the loop returns")
    }

    /// Lists for a budget that became smaller: cells of other ranks that served until now may have to be opened.
    fn list_again(&mut self, sources: &mut dyn SourceSet<T, C>) {
        let p = self.prepared.as_mut().expect("prepared");
        if p.trees.peers.are_many() {
            essential::join(sources, &mut p.trees, &mut p.statistics, p.request);
            self.expansions.forget_sources();
        }
        p.choice.build_lists(sources, &p.trees, &p.statistics, &p.cost, p.request);
        self.recipe = p.choice.recipe.clone();
    }

    /// Orders, or lists, follow what errors the sampled targets really have: the model must hold for sources of any kind.
    fn calibrate(&mut self, sources: &mut dyn SourceSet<T, C>) {
        let p = self.prepared.as_mut().expect("prepared");
        if p.choice.calibrated || p.request.order > 0 || p.choice.recipe.far_pairs == 0 {
            return;
        }
        p.choice.calibrated = true;
        let (tolerance, in_single) = (p.request.tolerance, p.choice.close > 0.0);
        // The error of pseudo-particles is not that of the model: no more of it is allowed than the model says.
        let most = if p.request.is_pseudo() { 1.0 } else { choice::MOST_LOOSENED };
        let Some(mut error) = self.calibration_error(sources) else { return };
        let aim = choice::CALIBRATION_AIM * tolerance;
        let factor = |error: f64| (aim / error.max(f64::MIN_POSITIVE)).clamp(0.03, most);
        let tightened_below = if in_single { choice::TIGHTENED_BELOW_IN_SINGLE } else { choice::TIGHTENED_BELOW };
        if self.raises_orders(factor(error), tightened_below) {
            self.order_again(factor(error), choice::ORDERS_RAISED);
            self.upward(sources);
            error = self.calibration_error(sources).expect("as before");
            // Cores that were left out may have the rest of the error; in single precision rounding has it.
            if error <= choice::RAISED_AIM * tolerance || in_single {
                return;
            }
        }
        let factor = factor(error);
        if factor < tightened_below {
            let p = self.prepared.as_mut().expect("prepared");
            p.statistics.budget = p.statistics.budget.scaled(factor, factor.max(0.3));
            self.list_again(sources);
        } else if factor > choice::LOOSENED_ABOVE {
            self.order_again(factor, 0);
        }
    }

    /// Whether orders alone can mend an error that is one over `factor` times what is aimed at: lists, and the cores that matter in
    /// far pairs, take longer to find than higher orders.
    fn raises_orders(&self, factor: f64, tightened_below: f64) -> bool {
        let p = self.prepared.as_ref().expect("prepared");
        let is_moderate = (choice::LEAST_BY_ORDERS..tightened_below).contains(&factor);
        is_moderate && p.choice.scheme == Scheme::Fmm && !p.request.is_pseudo()
    }

    /// Other orders for the present lists, up to `raised` above the highest of them.
    fn order_again(&mut self, factor: f64, raised: usize) {
        let p = self.prepared.as_mut().expect("prepared");
        p.statistics.budget = p.statistics.budget.scaled(factor, 1.0);
        p.choice.assign_orders::<C>(&p.trees, &p.statistics, &p.cost, p.request, raised);
        self.recipe = p.choice.recipe.clone();
    }

    /// The error at the sample that calibrates, with present lists and orders; none where it is not worth while.
    fn calibration_error(&mut self, sources: &dyn SourceSet<T, C>) -> Option<f64> {
        let p = self.prepared.as_ref().expect("prepared");
        match p.choice.scheme {
            Scheme::Fmm => {
                let chains = p.statistics.sample.chains(&p.trees);
                if !p.trees.peers.any(chains.is_some()) {
                    return None;
                }
                self.downward(Subset(chains.as_deref()));
            }
            Scheme::Treecode if p.statistics.sample.is_most(&p.trees) => return None,
            Scheme::Treecode => self.at_targets(),
        }
        let p = self.prepared.as_ref().expect("prepared");
        let e = Evaluation::new(sources, &p.trees, &p.choice, &self.expansions);
        let field = e.at(&p.statistics.sample.targets, p.request.gradient);
        let field = p.statistics.sample.whole(&p.trees, memory::collect(field.iter().map(|v| v.f64())));
        let error = p.statistics.calibration_error(&field);
        log::debug!("calibration: sampled error {error:.2e} at order {}", p.choice.recipe.order);
        Some(error)
    }

    /// The field at all targets, and what an independent sample says of it.
    fn write_and_judge(&mut self, sources: &dyn SourceSet<T, C>, sink: &mut Sink<'_, T>) -> Verdict {
        let p = self.prepared.as_mut().expect("prepared");
        let judges = p.choice.recipe.judges;
        let judge = memory::copy(&p.statistics.judge(sources, &p.trees, p.request, judges).targets);
        let start = Instant::now();
        let e = Evaluation::new(sources, &p.trees, &p.choice, &self.expansions);
        let mut written = e.everywhere(p.request.gradient, sink, &judge);
        let spent = start.elapsed().as_secs_f64();
        // The two are one loop over the leaves; divided by the model.
        let near = p.choice.near_seconds(&p.cost, spent);
        self.seconds[Pass::P2p as usize] = near;
        match p.choice.scheme {
            Scheme::Fmm => self.seconds[Pass::L2p as usize] = spent - near,
            Scheme::Treecode => self.seconds[Pass::M2p as usize] += spent - near,
        }
        written.norms = written.of_all(&p.trees);
        written.targets = p.trees.all_targets as u64;
        written.judged = p.statistics.judge(sources, &p.trees, p.request, judges).whole(&p.trees, written.judged);
        let verdict = p.statistics.verdict(&written);
        if verdict.holds(p.request.tolerance) || !verdict.is_inconclusive(p.request.tolerance) {
            return verdict;
        }
        // Few targets leave it open: more of them decide.
        let judge = p.statistics.more_judges(sources, &p.trees, p.request, 2 * judges);
        let field =
            Evaluation::new(sources, &p.trees, &p.choice, &self.expansions).at(&judge.targets, p.request.gradient);
        let judged = judge.whole(&p.trees, memory::collect(field.iter().map(|v| v.f64())));
        p.statistics.verdict(&field::Written { judged, ..written })
    }

    /// Expansions up to date, for single targets.
    pub fn ready(&mut self, sources: &dyn SourceSet<T, C>) {
        self.upward(sources);
        self.downward(Subset::ALL);
        self.at_targets();
    }

    pub fn target(&self, sorted: u32) -> [f64; 3] {
        self.prepared.as_ref().expect("prepared").trees.points[sorted as usize]
    }

    /// The field at some sorted targets, `[row][k]`, once it is `ready`: the rows that were asked for, of those prepared.
    pub fn field_at(&self, sources: &dyn SourceSet<T, C>, targets: &[u32], gradient: bool) -> Vec<T> {
        let p = self.prepared.as_ref().expect("prepared");
        // Rows of M2P come all together; local expansions are differentiated as wanted.
        let all = gradient || (p.choice.scheme == Scheme::Treecode && p.request.gradient);
        let mut field = Evaluation::new(sources, &p.trees, &p.choice, &self.expansions).at(targets, all);
        field.truncate(rows(C, gradient) * targets.len());
        field
    }

    fn upward(&mut self, sources: &dyn SourceSet<T, C>) {
        let p = self.prepared.as_ref().expect("prepared");
        self.expansions.upward::<C>(sources, &p.trees, &p.choice, &mut self.seconds);
    }

    fn downward(&mut self, subset: Subset<'_>) {
        let p = self.prepared.as_ref().expect("prepared");
        self.expansions.downward::<C>(&p.trees, &p.choice, subset, &mut self.seconds);
    }

    fn at_targets(&mut self) {
        let p = self.prepared.as_ref().expect("prepared");
        self.expansions.at_targets::<C>(&p.trees, &p.choice, p.request.gradient, &mut self.seconds);
    }

    pub fn bytes(&self) -> u64 {
        let prepared = self.prepared.as_ref().map_or(0, |p| p.trees.bytes() + p.choice.bytes());
        (prepared + self.expansions.bytes()) as u64
    }
}
