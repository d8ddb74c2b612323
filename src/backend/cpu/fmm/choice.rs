//! What is chosen: leaf capacities, interaction lists, truncation orders, and what they will cost.
//!
//! Enters: trees, statistics, measured costs. Leaves: a `Choice`, and the `Recipe` that tells of it as plain data.

use super::statistics::{JUDGES, Statistics};
use super::trees::Trees;
use super::{SourceSet, cost};
use crate::backend::cpu::cores::NoCores;
use crate::backend::cpu::images::Periods;
use crate::backend::cpu::lists::{self, Admission, CellLists, Cost, Far, Rules, Scheme, Seen, SourceCell};
use crate::backend::cpu::operators::Operators;
use crate::backend::cpu::pseudo::{self, Pseudo};
use crate::backend::cpu::tree::{Cell, Tree};
use crate::math::accuracy::{Cut, ErrorTable, Geometry};
use crate::math::harmonics::MAX_ORDER;
use crate::memory;
use crate::options::{Expansion, Method, PlanOptions};
use crate::simd::Real;
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Instant;

/// Share of the tolerance that the modelled truncation errors may use, and that the measured ones are calibrated to.
const TRUNCATION_SHARE: f64 = 0.5;
pub const CALIBRATION_AIM: f64 = 0.4;
/// The model may be found too careful by so much; beyond that a sample is not trusted.
pub const MOST_LOOSENED: f64 = 8.0;
/// Factors on the budget of pairs between these change nothing.
pub const TIGHTENED_BELOW: f64 = 0.8;
pub const LOOSENED_ABOVE: f64 = 1.25;
/// The same below the tolerances that single precision otherwise serves: a third to a half of the tolerance is rounding there.
pub const TIGHTENED_BELOW_IN_SINGLE: f64 = 0.6;
/// From this factor on higher orders are tried before other lists, as many above the highest: at `CLOSEST_RATIO` each leaves half of
/// the error. They serve if the sample's error is then within this part of the tolerance, cores that are left out included.
pub const LEAST_BY_ORDERS: f64 = 0.1;
pub const ORDERS_RAISED: usize = 4;
pub const RAISED_AIM: f64 = 0.6;
/// Pairs closer than this ratio of radius to distance are split rather than expanded; found on CUBE at 1e-3 … 1e-9.
pub const CLOSEST_RATIO: f64 = 0.33;
/// The same of a treecode, where only the radius of the source cell counts; found on CUBE at 1e-2 … 1e-6.
const CLOSEST_RATIO_AT_TARGETS: f64 = 0.45;
/// See `capacities`.
const CAPACITY_FACTOR: f64 = 4.0;
/// Leaves are chosen among these multiples of what `capacities` says: the first is what trees are grown with.
pub const SMALLEST_LEAF: f64 = 0.4;
pub const LEAF_STEP: f64 = 1.6;
const LEAF_SIZES: usize = 6;
/// What a leaf of sources and one of targets cost among even ones, besides near cells: M2L, of which few have the typical order, and
/// everything else; from the leaves that were best on CUBE of 1e5 and 1e6 at 1e-3, 1e-6 and 1e-9.
const CELLS_NEAR: f64 = 27.0;
const CELLS_SEEN: f64 = 40.0;
const LEAF_SECONDS: f64 = 5e-5;
/// A scheme that takes so many times what another does, with the leaves of that one, is not looked at with others.
const FAR_BEHIND: f64 = 1.2;
/// See `Request::retries`.
const RETRIES: u32 = 2;
/// Everything else that a cell costs: sorting, lists, the rows of its field; from CUBE of 1e4 and 1e5.
pub const CELL_SECONDS: f64 = 8e-6;
/// A point's share of sorting and copying, and of P2M and L2P a coefficient.
pub const POINT_SECONDS: f64 = 2.5e-7;
pub const COEFFICIENT_SECONDS: f64 = 2.2e-10;
/// A coefficient of a row of M2P is made in so many seconds.
const ROW_SECONDS: f64 = 3e-9;

/// Exact sums at targets that judge may take this part of what the passes take, times the passes' part of the direct sum: where expansions save
/// little, many of all targets are compared.
const JUDGE_SHARE: f64 = 0.1;
/// The same of pseudo-particles, which are there to be compared and have no bounds at single targets.
const JUDGE_SHARE_PSEUDO: f64 = 0.5;
/// What cores that are left out may take together at any target, times what they take at most at nine tenths of the sampled targets.
const MOST_OF_USUAL: f64 = 3.0;
const NO_LIMIT: [f64; 2] = [f64::INFINITY; 2];

/// What the caller fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// FMM or treecode; AUTO: what is expected to be faster.
    pub method: Method,
    pub tolerance: f64,
    /// 0: chosen.
    pub order: usize,
    /// 0: chosen.
    pub leaf_capacity: usize,
    pub gradient: bool,
    /// Nothing that was measured on this machine or kept from other inputs may decide.
    pub reproducible: bool,
    pub periods: Option<Periods>,
    pub expansion: Expansion,
    /// The direct sum that may be taken instead, and the field where this one misses its tolerance, are in double precision.
    pub for_double: bool,
}

/// Seconds of one thread that a direct sum spends on the periodic images at one target.
pub fn image_seconds(request: Request) -> f64 {
    request.periods.map_or(0.0, |_| super::distant::seconds(request.tolerance, request.gradient))
}

impl Request {
    /// Velocities or potentials alone in open space, by harmonics; everything else is chosen.
    pub fn new(method: Method, tolerance: f64) -> Self {
        Self {
            method,
            tolerance,
            order: 0,
            leaf_capacity: 0,
            gradient: false,
            reproducible: false,
            periods: None,
            expansion: Expansion::Harmonics,
            for_double: false,
        }
    }

    pub fn of(options: &PlanOptions, gradient: bool, periods: Option<Periods>) -> Self {
        Self {
            order: options.order.max(0) as usize,
            leaf_capacity: options.leaf_capacity.max(0) as usize,
            gradient,
            reproducible: options.reproducible,
            periods,
            expansion: options.expansion,
            ..Self::new(options.method, options.tolerance)
        }
    }

    /// Seconds of a pair of the direct sum that may be taken instead.
    pub fn direct_pair(&self, cost: &Cost) -> f64 {
        if self.for_double { cost.exact } else { cost.pair }
    }

    /// A field that misses its tolerance is computed again so often, tighter; then another sum takes over.
    pub fn retries(&self) -> u32 {
        if self.for_double { 0 } else { RETRIES }
    }

    /// Whether multipoles and local expansions are pseudo-particles.
    pub fn is_pseudo(&self) -> bool {
        self.expansion == Expansion::PseudoParticles
    }

    /// What may be chosen: images beyond the near ones act through local expansions, which the treecode has not; it has no
    /// pseudo-particles either.
    pub fn schemes(&self) -> &'static [Scheme] {
        match self.method {
            _ if self.periods.is_some() || self.is_pseudo() => &[Scheme::Fmm],
            Method::Auto => &[Scheme::Fmm, Scheme::Treecode],
            Method::Treecode => &[Scheme::Treecode],
            _ => &[Scheme::Fmm],
        }
    }
}

/// What was chosen: plain data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recipe {
    pub scheme: Scheme,
    /// Error that a pair of cells may add at a target, relative to the field's root mean square; the same for a core.
    pub pair_error: f64,
    pub core_error: f64,
    pub order: usize,
    pub source_capacity: usize,
    pub target_capacity: usize,
    pub depth: usize,
    pub cells: usize,
    pub far_pairs: u64,
    pub near_pairs: u64,
    pub correction_pairs: u64,
    /// Targets that judge the field.
    pub judges: usize,
    /// Predicted seconds on this machine, and those of the direct sum.
    pub predicted: f64,
    pub direct: f64,
    /// Relative error of the last field on the judging sample, and how often it was computed again.
    pub sampled_error: f64,
    pub retries: u32,
    /// On many ranks: sources and closed cells of others, the most of any rank.
    pub guests: [usize; 2],
    /// On many ranks: the predicted seconds of the busiest one over their mean.
    pub imbalance: f64,
}

/// A choice without lists.
pub fn empty<T: Real>(scheme: Scheme) -> Choice<T> {
    let recipe = Recipe::default();
    Choice {
        scheme,
        lists: vec![],
        ops: cost::operators(2),
        pseudo: None,
        recipe,
        close: 0.0,
        far_seconds: 0.0,
        direct_seconds: 0.0,
        calibrated: false,
        version: 0,
    }
}

/// The factor on the pair budget that the model allows with the present trees.
pub fn allowed_by_model<T: Real, const C: usize>(
    scheme: Scheme,
    trees: &Trees,
    statistics: &Statistics,
    cost: &Cost,
    request: Request,
) -> f64 {
    Search::new::<T, C>(scheme, trees, statistics, cost, request).estimate([0; 2]).budget
}

/// See the head of this file.
pub struct Choice<T: Real> {
    pub scheme: Scheme,
    pub lists: Vec<CellLists>,
    pub ops: Arc<Operators<T>>,
    /// In place of harmonics, where they are asked for.
    pub pseudo: Option<Pseudo>,
    pub recipe: Recipe,
    /// See `Statistics::close`.
    pub close: f64,
    /// Predicted processor seconds of this rank's M2L or M2P, and of its direct pairs.
    far_seconds: f64,
    direct_seconds: f64,
    /// The orders were measured on the present sample.
    pub calibrated: bool,
    /// Another number after every change of lists or orders.
    pub version: u64,
}

/// Order at which a pair of equal balls at radius/distance `ratio` reaches a relative error.
pub fn order_at(tolerance: f64, ratio: f64) -> usize {
    let g = Geometry::of(ratio, ratio, 1.0, 2.0 * ratio).expect("apart");
    ErrorTable::of_derivative(1, Cut::Both).order(g, tolerance as f32).min(MAX_ORDER)
}

/// The same at targets beyond the centre of their ball, for multipoles.
fn order_at_targets(tolerance: f64, ratio: f64) -> usize {
    let g = Geometry::of(ratio, 0.0, 1.0, ratio).expect("apart");
    ErrorTable::of_derivative(1, Cut::Sources).order(g, tolerance as f32).min(MAX_ORDER)
}

/// What trees are grown with, of sources and of targets.
#[derive(Debug, Clone, Copy)]
pub struct Leaves {
    /// The smallest that are looked at.
    pub capacities: [usize; 2],
    /// What leaves hold best, of sources and targets in the geometric mean; none where the caller chose.
    pub ideal: Option<f64>,
}

impl Leaves {
    pub fn grown(cost: &Cost, counts: [usize; 2], request: Request) -> Self {
        let capacities = capacities(cost, counts, request, SMALLEST_LEAF);
        if request.leaf_capacity > 0 {
            return Self { capacities, ideal: None };
        }
        let m2l = cost.m2l[typical_order(request)];
        let ideal = ((CELLS_SEEN * m2l + LEAF_SECONDS) / (CELLS_NEAR * cost.pair)).sqrt();
        log::debug!("leaves of {ideal:.0} are best: M2L {m2l:.2e}, pair {:.2e}", cost.pair);
        Self { capacities, ideal: Some(ideal) }
    }
}

/// Of most pairs of cells.
fn typical_order(request: Request) -> usize {
    order_at(request.tolerance, 0.3).min(MAX_ORDER - 1)
}

/// Leaves in which a direct pair of cells costs about what its share of translations does: with 27 near cells and some
/// 100 far ones a leaf, n_s n_t pair · 27 = 100 · m2l. Cells of both trees are to be of one size, so that the product
/// is divided in proportion to the densities. `factor` makes them larger.
fn capacities(cost: &Cost, [n, m]: [usize; 2], request: Request, factor: f64) -> [usize; 2] {
    if request.leaf_capacity > 0 {
        return [request.leaf_capacity; 2];
    }
    let product = CAPACITY_FACTOR * cost.m2l[typical_order(request)] / cost.pair;
    let ratio = (n.max(1) as f64 / m.max(1) as f64).clamp(1e-3, 1e3).sqrt();
    let each = factor * product.sqrt();
    [(each * ratio).clamp(4.0, 4096.0) as usize, (each / ratio).clamp(8.0, 4096.0) as usize]
}

/// From grown trees to lists: leaves that cost least, the budget that the model allows, orders. `present`: the order that the
/// multipoles have and keep where it serves; 0 where there are none.
pub fn make<T: Real, const C: usize>(
    sources: &mut dyn SourceSet<T, C>,
    mut trees: Trees,
    cost: &Cost,
    request: Request,
    present: usize,
) -> (Trees, Statistics, Choice<T>) {
    let start = Instant::now();
    let mut statistics = Statistics::measure(sources, &mut trees, request);
    let measured = start.elapsed();
    let (scheme, budget) = choose_leaves::<T, C>(sources, &mut trees, &mut statistics, cost, request);
    let mut choice = empty(scheme);
    if present > 0 {
        choice.ops = cost::operators(present);
    }
    statistics.budget = statistics.budget.scaled(budget, 1.0);
    trees.division.divide(&trees.target);
    let searched = start.elapsed();
    choice.build_lists(sources, &trees, &statistics, cost, request);
    log::debug!("measured in {measured:.1?}, leaves and cells by {searched:.1?}, lists by {:.1?}", start.elapsed());
    (trees, statistics, choice)
}

/// Prunes the trees, on many ranks those of each one's own, to the leaves that cost least. Returns the scheme they are for, and
/// the factor on the pair budget that the model allows.
pub fn choose_leaves<T: Real, const C: usize>(
    sources: &mut dyn SourceSet<T, C>,
    trees: &mut Trees,
    statistics: &mut Statistics,
    cost: &Cost,
    request: Request,
) -> (Scheme, f64) {
    let found = best::<T, C>(trees, statistics, cost, request);
    if let Some(leaves) = found.leaves {
        statistics.keep_cells(&trees.prune(leaves));
    }
    sources.survey_cells(&trees.source);
    (found.scheme, found.estimate.budget)
}

/// The cheapest of what may be chosen; the FMM where two are alike.
fn best<T: Real, const C: usize>(trees: &Trees, statistics: &Statistics, cost: &Cost, request: Request) -> Candidate {
    let mut cheapest: Option<Candidate> = None;
    for &scheme in request.schemes() {
        let found = Search::new::<T, C>(scheme, trees, statistics, cost, request).best(cheapest.as_ref());
        if cheapest.as_ref().is_none_or(|c| found.estimate.seconds < c.estimate.seconds) {
            cheapest = Some(found);
        }
    }
    cheapest.expect("at least one scheme")
}

/// What a search found: leaves to prune to (`None`: they stay), and what is expected there.
struct Candidate {
    scheme: Scheme,
    /// Which of the leaf sizes.
    size: usize,
    leaves: Option<[usize; 2]>,
    estimate: Estimate,
}

/// Processor seconds, and the factor on the pair budget that the model allows.
#[derive(Clone, Copy)]
struct Estimate {
    seconds: f64,
    budget: f64,
}

/// New lists of some cells among all; given as to `lists::build`.
fn renew(rules: &Rules, cells: &[u32], all: &mut [CellLists]) {
    lists::build(rules, cells).into_iter().zip(cells).for_each(|(list, &c)| all[c as usize] = list);
}

fn admission<'a, T: Real>(
    scheme: Scheme,
    components: usize,
    trees: &'a Trees,
    statistics: &'a Statistics,
    request: Request,
) -> Admission<'a> {
    admission_of::<T>(scheme, components, &trees.source, &statistics.source_cells, statistics, request)
}

/// For the cells of any tree of sources.
pub fn admission_of<'a, T: Real>(
    scheme: Scheme,
    components: usize,
    tree: &'a Tree,
    cells: &'a [SourceCell],
    statistics: &Statistics,
    request: Request,
) -> Admission<'a> {
    let most = if request.is_pseudo() { pseudo::HIGHEST_ORDER } else { MAX_ORDER };
    let highest = match request.order {
        0 if scheme == Scheme::Fmm => order_at(request.tolerance, CLOSEST_RATIO).clamp(3, most),
        0 => order_at_targets(request.tolerance, CLOSEST_RATIO_AT_TARGETS).clamp(3, MAX_ORDER),
        order => order,
    };
    let rounding = if T::IS_F64 { 2f64.powi(-50) } else { 2f64.powi(-22) };
    Admission::new(
        scheme,
        components,
        statistics.budget,
        cells,
        &tree.cells,
        highest,
        rounding,
        request.order,
        statistics.targets,
    )
}

/// The search for leaf capacities of one scheme. An octree of even sources has leaves of one size only, eight times that of the next
/// level, so that a formula can miss by much. Lists are made for the cells above the sampled targets alone: a target's
/// share of its leaf's direct pairs and of the translations into the cells that hold it. Core corrections are left out:
/// they depend little on the leaves.
struct Search<'a> {
    scheme: Scheme,
    components: usize,
    trees: &'a Trees,
    statistics: &'a Statistics,
    cost: &'a Cost,
    request: Request,
    admission: Admission<'a>,
    heads: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new<T: Real, const C: usize>(
        scheme: Scheme,
        trees: &'a Trees,
        statistics: &'a Statistics,
        cost: &'a Cost,
        request: Request,
    ) -> Self {
        let admission = admission::<T>(scheme, C, trees, statistics, request);
        Self { scheme, components: C, trees, statistics, cost, request, admission, heads: statistics.sample.heads() }
    }

    /// Where a `rival` was found, the search begins at its leaves and ends there if it is far ahead.
    fn best(&self, rival: Option<&Candidate>) -> Candidate {
        let (scheme, middle) = (self.scheme, LEAF_SIZES / 2);
        if self.request.leaf_capacity > 0 || self.trees.is_pruned {
            return Candidate { scheme, size: middle, leaves: None, estimate: self.estimate([0; 2]) };
        }
        let counts = self.trees.counts();
        let leaves = |k: usize| {
            let mut leaves = capacities(self.cost, counts, self.request, SMALLEST_LEAF * LEAF_STEP.powi(k as i32));
            if self.trees.keeps_sources {
                leaves[0] = 0;
            }
            leaves
        };
        let mut known: [Option<Estimate>; LEAF_SIZES] = [None; LEAF_SIZES];
        let mut seconds = |k: usize| {
            let s = known[k].get_or_insert_with(|| self.estimate(leaves(k))).seconds;
            log::debug!("{scheme:?}, leaves of {:?}: {s:.3e} processor seconds expected", leaves(k));
            s
        };
        // The cost has one valley: downhill from the middle.
        let mut at = rival.map_or(middle, |r| r.size);
        let is_behind = rival.is_some_and(|r| seconds(at) > FAR_BEHIND * r.estimate.seconds);
        let step: isize = if !is_behind && at + 1 < LEAF_SIZES && seconds(at + 1) < seconds(at) { 1 } else { -1 };
        while let Some(next) = at.checked_add_signed(step).filter(|&n| n < LEAF_SIZES && !is_behind) {
            if seconds(next) >= seconds(at) {
                break;
            }
            at = next;
        }
        Candidate { scheme, size: at, leaves: Some(leaves(at)), estimate: known[at].expect("the best is known") }
    }

    /// With leaves of at most so many sources and targets; the same on all ranks.
    fn estimate(&self, leaves: [usize; 2]) -> Estimate {
        let cells = &self.trees.target.cells;
        let is_leaf = |c: usize| cells[c].is_leaf() || cells[c].len() <= leaves[1];
        let kept = |&c: &usize| c == 0 || !is_leaf(cells[c].parent as usize);
        let chain = |target: u32| self.trees.chain(target).filter(kept);
        let mut above = vec![];
        memory::extend(&mut above, self.heads.iter().flat_map(|&t| chain(t)).map(|c| c as u32));
        above.sort_unstable();
        above.dedup();
        let rules = Rules {
            scheme: self.scheme,
            sources: &self.trees.source,
            targets: &self.trees.target,
            admission: &self.admission,
            cost: self.cost,
            leaves,
            cores: &NoCores,
            cores_at_target: NO_LIMIT,
            shifts: &self.trees.images.shifts,
        };
        let lists = lists::build(&rules, &above);
        let of = |c: usize| {
            let list = &lists[lists::place(&above, c as u32)];
            let (near, _) = list.elements();
            let cost = |f: &Far| self.cost.far(self.scheme, f.order as usize, cells[c].len());
            let far: f64 = list.far.iter().map(cost).sum();
            let mut seen = Seen::new(&cells[c]);
            let direct = near as f64 * self.cost.pair;
            let square = |f: &Far| {
                let t = seen.through(f.image, &self.trees.images.shifts);
                self.admission.mean_squares(f.cell, &self.trees.source.cells[f.cell as usize], t, f.order as usize)
            };
            let error = list.far.iter().map(square).fold([0.0; 2], |a, e| [a[0] + e[0], a[1] + e[1]]);
            [far / cells[c].len() as f64 + direct, error[0], error[1]]
        };
        let add = |a: [f64; 3], b: [f64; 3]| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
        let heads: Vec<[f64; 3]> =
            memory::par_collect(self.heads.par_iter().with_max_len(1).map(|&t| chain(t).map(of).fold([0.0; 3], add)));
        let sum = heads.into_iter().fold([0.0; 3], add);
        let mut sum = [sum[0], sum[1], sum[2], self.heads.len() as f64];
        self.trees.peers.sum(&mut sum);
        let mean = [0, 1, 2].map(|k| sum[k] / sum[3].max(1.0));
        let count = |tree: &Tree, capacity: usize| {
            let children = |c: &Cell| if c.len() > capacity { c.children as usize } else { 0 };
            (tree.cells.len().min(1) + tree.cells.par_iter().with_min_len(1024).map(children).sum::<usize>()) as f64
        };
        let cells = [count(&self.trees.source, leaves[0]), count(&self.trees.target, leaves[1])];
        let points = [&self.trees.source, &self.trees.target].map(|t| t.permutation.len() as f64);
        let order = self.admission.highest;
        let seconds = mean[0] * points[1]
            + cells_seconds(self.scheme, self.cost, self.components, order, cells)
            + points_seconds(self.scheme, self.components, order, points);
        let factor = |k: usize| {
            let allowed = self.statistics.budget.pair[k] * super::statistics::INTERACTIONS.sqrt();
            if mean[k + 1] > 0.0 && allowed.is_finite() {
                TRUNCATION_SHARE * allowed / mean[k + 1].sqrt()
            } else {
                f64::INFINITY
            }
        };
        Estimate { seconds: self.trees.peers.total(seconds), budget: factor(0).min(factor(1)).clamp(0.2, 5.0) }
    }
}

/// Of source and target cells: M2M and L2L cost about an M2L each.
fn cells_seconds(scheme: Scheme, cost: &Cost, components: usize, order: usize, [n, m]: [f64; 2]) -> f64 {
    let at_targets = match scheme {
        Scheme::Fmm => m * cost.m2l[order],
        Scheme::Treecode => n * ROW_SECONDS * (components * (order + 1).pow(2)) as f64,
    };
    n * cost.m2l[order] + (n + m) * CELL_SECONDS + at_targets
}

/// Of sources and targets.
fn points_seconds(scheme: Scheme, components: usize, order: usize, [n, m]: [f64; 2]) -> f64 {
    let expanded = if scheme == Scheme::Fmm { n + m } else { n };
    (n + m) * POINT_SECONDS + expanded * COEFFICIENT_SECONDS * (components * order * order) as f64
}

impl<T: Real> Choice<T> {
    /// Lists for the present budget, and the orders that follow.
    pub fn build_lists<const C: usize>(
        &mut self,
        sources: &dyn SourceSet<T, C>,
        trees: &Trees,
        statistics: &Statistics,
        cost: &Cost,
        request: Request,
    ) {
        let cores = sources.core_test(statistics.budget.core, statistics.budget.cores_of_cell());
        let admission = admission::<T>(self.scheme, C, trees, statistics, request);
        let mut rules = Rules {
            scheme: self.scheme,
            sources: &trees.source,
            targets: &trees.target,
            admission: &admission,
            cost,
            leaves: [0; 2],
            cores: cores.as_ref(),
            cores_at_target: NO_LIMIT,
            shifts: &trees.images.shifts,
        };
        let all = 0..trees.target.cells.len() as u32;
        self.lists = match trees.division.cells(&trees.target) {
            None => lists::build(&rules, &memory::collect(all)),
            Some(mut listed) => {
                // The sample calibrates on every rank.
                statistics.sample.targets.iter().flat_map(|&t| trees.chain(t)).for_each(|c| listed[c] = true);
                let cells = memory::filtered(all, |&c| listed[c as usize]);
                let mut lists = memory::with_room(listed.len());
                lists.resize_with(listed.len(), CellLists::default);
                renew(&rules, &cells, &mut lists);
                lists
            }
        };
        rules.cores_at_target = self.usual_left_out(trees, statistics).map(|v| MOST_OF_USUAL * v);
        self.limit_cores(&rules, trees);
        self.describe::<C>(trees, statistics, cost, request);
    }

    /// What cores that are left out take at most at nine tenths of the sampled targets, from the field and from its gradient.
    fn usual_left_out(&self, trees: &Trees, statistics: &Statistics) -> [f64; 2] {
        [0, 1].map(|k| {
            let at = |&t: &u32| self.lists[trees.leaf_of(t)].left_out[k];
            let mut all = memory::collect(statistics.sample.targets.iter().map(at));
            all.sort_unstable_by(f64::total_cmp);
            all.get(all.len() * 9 / 10).copied().unwrap_or(f64::INFINITY)
        })
    }

    /// New lists for the leaves at whose targets the cores that are left out may take far more than is usual: a sample has few of these
    /// targets, if any.
    fn limit_cores(&mut self, rules: &Rules, trees: &Trees) {
        let cells = &trees.target.cells;
        let is_above = |c: usize| {
            let (left, most) = (self.lists[c].left_out, rules.most_left_out(&cells[c]));
            cells[c].is_leaf() && (left[0] > most[0] || left[1] > most[1])
        };
        let above: Vec<usize> = memory::filtered(0..cells.len(), |&c| is_above(c));
        if above.is_empty() {
            return;
        }
        let mut marked = memory::filled(false, cells.len());
        for &leaf in &above {
            let mut c = leaf;
            while !std::mem::replace(&mut marked[c], true) && c > 0 {
                c = cells[c].parent as usize;
            }
        }
        let chains = memory::filtered(0..cells.len() as u32, |&c| marked[c as usize]);
        renew(rules, &chains, &mut self.lists);
    }

    /// New orders for the same lists after the budget changed, at most `raised` above those that expansions have.
    pub fn assign_orders<const C: usize>(
        &mut self,
        trees: &Trees,
        statistics: &Statistics,
        cost: &Cost,
        request: Request,
        raised: usize,
    ) {
        let admission = admission::<T>(self.scheme, C, trees, statistics, request);
        let highest = (self.ops.order + raised).min(MAX_ORDER);
        self.lists.par_iter_mut().zip(&trees.target.cells).for_each(|(list, t)| {
            let mut seen = Seen::new(t);
            for f in &mut list.far {
                let t = seen.through(f.image, &trees.images.shifts);
                f.order = admission.order_of_far(f.cell, &trees.source.cells[f.cell as usize], t, highest);
            }
            list.sort_far();
        });
        self.describe::<C>(trees, statistics, cost, request);
    }

    /// Operators and the recipe for the present lists.
    fn describe<const C: usize>(&mut self, trees: &Trees, statistics: &Statistics, cost: &Cost, request: Request) {
        self.version += 1;
        self.close = statistics.close;
        let division = &trees.division;
        let counted = |t: &Cell| division.is_first_of(t);
        let (far, near, correction) = lists::count(&trees.target, &self.lists, counted);
        let used = self.lists.par_iter().filter_map(|l| l.far.first()).map(|f| f.order as usize).max().unwrap_or(2);
        let admission = admission::<T>(self.scheme, C, trees, statistics, request);
        let used = used.max(trees.images.order(&admission, trees.all_targets));
        let used = division.max(trees.peers.max(used as f64)) as usize;
        let threads = rayon::current_num_threads() as f64;
        let far_of = |(l, t): (&CellLists, &Cell)| -> f64 {
            l.far.iter().map(|f| cost.far(self.scheme, f.order as usize, t.len())).sum()
        };
        let each: Vec<f64> = memory::par_collect(self.lists.par_iter().zip(&trees.target.cells).map(far_of));
        let cells = each.iter().zip(&trees.target.cells).filter(|(_, t)| counted(t));
        self.far_seconds = cells.map(|(seconds, _)| seconds).sum();
        self.direct_seconds = near as f64 * cost.pair + correction as f64 * cost.correction;
        // Of all ranks that have these trees.
        let mut whole = [far as f64, near as f64, correction as f64, self.far_seconds, self.direct_seconds];
        division.sum(&mut whole);
        let [far, near, correction] = [whole[0], whole[1], whole[2]].map(|n| n as u64);
        let [far_seconds, direct] = [whole[3], whole[4]];
        let counts = [&trees.source, &trees.target].map(|t| t.permutation.len() as f64);
        let points = points_seconds(self.scheme, C, used, counts);
        let cells = [&trees.source, &trees.target].map(|t| t.cells.len() as f64);
        let cells = cells_seconds(self.scheme, cost, C, used, cells);
        let images = image_seconds(request);
        let passes = far_seconds + direct + points + cells;
        let one_sampled = counts[0] * cost.exact + images;
        let all_pairs = trees.direct_pairs() * request.direct_pair(cost) + trees.all_targets as f64 * images;
        // Of all ranks: the number is the same on each, and does not depend on how they share the work.
        let mut whole = [passes, all_pairs, one_sampled];
        trees.peers.sum(&mut whole);
        let share = if request.is_pseudo() { JUDGE_SHARE_PSEUDO } else { JUDGE_SHARE };
        let share = share * (whole[0] / whole[1].max(f64::MIN_POSITIVE)).min(1.0);
        let affordable = (share * whole[0] / whole[2].max(f64::MIN_POSITIVE)).min(trees.all_targets as f64);
        let judges = affordable.max(JUDGES as f64) as usize;
        let sampled = (statistics.sample.targets.len() + judges) as f64 * one_sampled;
        // Expansions of a slightly higher order serve as well, and the upward pass need not be done again.
        let keeps = (used..used + 8).contains(&self.ops.order) && request.order == 0 && !request.reproducible;
        let order = if keeps { self.ops.order } else { used.max(request.order) };
        if self.ops.order != order {
            self.ops = cost::operators(order);
        }
        let is_current = self.pseudo.as_ref().is_some_and(|p| p.order == order);
        if request.is_pseudo() && !is_current {
            self.pseudo = Some(Pseudo::new(order));
        }
        if let Some(pseudo) = &mut self.pseudo {
            pseudo.choose_radii([&trees.source, &trees.target], &self.lists);
        }
        let size = statistics.norms[0].sqrt().max(f64::MIN_POSITIVE);
        self.recipe = Recipe {
            scheme: self.scheme,
            pair_error: statistics.budget.pair[0] / size,
            core_error: statistics.budget.core[0] / size,
            order,
            source_capacity: trees.capacities[0],
            target_capacity: trees.capacities[1],
            depth: trees.source.depth().max(trees.target.depth()),
            cells: trees.source.cells.len() + trees.target.cells.len(),
            far_pairs: far,
            near_pairs: near,
            correction_pairs: correction,
            judges,
            predicted: (passes + sampled) / threads,
            direct: all_pairs / threads,
            imbalance: division.imbalance(self.far_seconds + self.direct_seconds),
            ..Recipe::default()
        };
        self.recipe.join(trees);
    }

    /// What of `spent` seconds at the targets was for everything that is summed directly, by the model: all that is left of
    /// the FMM's is for L2P, all of the treecode's for M2P.
    pub fn near_seconds(&self, spent: f64) -> f64 {
        let [near, far] = [self.direct_seconds, self.far_seconds].map(|s| s / rayon::current_num_threads() as f64);
        match self.scheme {
            Scheme::Fmm => near.min(spent),
            Scheme::Treecode => spent * near / (near + far).max(f64::MIN_POSITIVE),
        }
    }

    /// Numbers a component of an expansion.
    pub fn terms(&self) -> usize {
        self.pseudo.as_ref().map_or(self.ops.order * self.ops.order, Pseudo::terms)
    }

    pub fn bytes(&self) -> usize {
        self.lists.iter().map(CellLists::bytes).sum()
    }
}
