//! One far field on the CPU: trees, lists, expansions, and the sum of far and near at the targets.
//!
//! Enters: a set of sources (`SourceSet`) and targets, both in units of the plan's scale. Leaves: the field at the targets.
//! `C` harmonic components: 3, the vector potential of vortices; 1, charges. The same code serves both.
//!
//! The tolerance becomes an error per pair of cells in two steps. A sample of targets is summed directly: that gives the
//! size U of the true field. The same targets give V, the size that the far field would have if its cells were
//! independent: V² = Σ_far E²/d⁴, E² = max(Σ|a|², |Σ a|²) of a source cell. Pairs may then be wrong by tol · U/V.
//! After every evaluation the sample is compared; a field that misses its tolerance there is computed again, tighter.

use super::cost;
use super::lists::{self, CellLists, Cost, Rules};
use super::near;
use super::operators::Operators;
use super::passes::{self, Only, Points, Work};
use super::tree::{Cell, Root, Tree, bounds};
use crate::math::accuracy::OrderTable;
use crate::math::harmonics::MAX_ORDER;
use crate::math::regularization::Part;
use crate::report::{PASS_COUNT, Pass};
use crate::simd::Real;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// What the method needs of a set of sources; sorted indices are those of the source tree.
pub trait SourceSet<T: Real, const C: usize>: Sync + Send {
    fn is_empty(&self) -> bool;
    /// Midpoints and, where there are segments, half vectors; original order.
    fn places(&self) -> (&[[f64; 3]], &[[f64; 3]]);
    /// Takes over the order of the tree and whatever it needs to know of its cells.
    fn sort(&mut self, tree: &Tree);
    /// The caller's order, where no tree sorted the sources yet: for the direct sum.
    fn keep_order(&mut self);
    fn bytes(&self) -> u64;
    /// Point sources of a leaf for expansions of `order`, relative to its centre, in its unit.
    fn fill(&self, cell: &Cell, order: usize, points: &mut Points<T, C>);
    /// E² of each cell.
    fn energies(&self, tree: &Tree) -> Vec<f64>;
    /// Whether a core of the source cell is worth a correction in the target cell, at this relative error.
    fn core_matters(&self, source: u32, cell: &Cell, target: &Cell, tolerance: f64) -> bool;
    /// Adds the direct sum of the sorted sources in `ranges` to the rows of `out`, one a number wanted at a target.
    fn near(&self, part: Part, ranges: &[Range<u32>], targets: &near::Points<T>, out: &mut [&mut [T]]);
    /// Seconds of one thread for a direct pair, measured on the kernels.
    fn pair_seconds(&self, gradient: bool) -> f64;
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

/// What the caller fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wish {
    pub tolerance: f64,
    /// 0: chosen.
    pub order: usize,
    /// 0: chosen.
    pub leaf_capacity: usize,
    pub gradient: bool,
}

/// What was chosen: plain data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recipe {
    /// Relative error allowed to a pair of cells.
    pub pair_tolerance: f64,
    /// The same for a core that is left out.
    pub core_tolerance: f64,
    pub order: usize,
    pub source_capacity: usize,
    pub target_capacity: usize,
    pub depth: usize,
    pub cells: usize,
    pub far_pairs: u64,
    pub near_pairs: u64,
    pub correction_pairs: u64,
    /// Predicted seconds on this machine, and those of the direct sum.
    pub predicted: f64,
    pub direct: f64,
    /// Sampled relative error of the last field, and how often it had to be tightened.
    pub sampled_error: f64,
    pub tightened: u32,
}

/// Sampled targets with their exact field.
struct Sample<T> {
    /// Sorted target numbers.
    targets: Vec<u32>,
    /// `[row][sample]`
    exact: Vec<T>,
    /// Mean squares of the field and of its gradient without the largest few, and with them.
    norm2: (f64, f64),
    gradient_norm2: (f64, f64),
}

/// Relative errors over the sample, against the norm without and with the largest few fields, and a factor for how
/// uncertain so few targets leave them.
struct SampledError {
    strict: f64,
    loose: f64,
    doubt: f64,
}

/// The state of one far field.
pub struct Fmm<T: Real, const C: usize> {
    source_tree: Tree,
    target_tree: Tree,
    /// (first target, leaf), by rising target.
    leaf_starts: Vec<(u32, u32)>,
    /// Sorted targets.
    target_points: Vec<[f64; 3]>,
    lists: Vec<CellLists>,
    ops: Option<Arc<Operators<T>>>,
    multipoles: Vec<T>,
    locals: Vec<T>,
    cost: Cost,
    sample: Option<Sample<T>>,
    /// Tightening that this plan's sources were found to need; stays until places change.
    safety: f64,
    /// Leaves are this factor larger than the formula's, found by trial for this wish and these numbers.
    leaf_factor: f64,
    leaves_for: Option<(Wish, [usize; 2])>,
    /// How much more than the estimate allows a pair may be wrong, as measured; remembered from call to call.
    looseness: f64,
    /// The orders were measured on the present sample.
    calibrated: bool,
    pub recipe: Recipe,
    pub seconds: [f64; PASS_COUNT],
    wish: Option<Wish>,
    upward_done: bool,
    energies: Vec<f64>,
}

/// Share of the tolerance that the truncation may use, and that left-out cores may use.
const TRUNCATION_SHARE: f64 = 1.0;
const CORE_SHARE: f64 = 0.35;
/// Targets whose field is summed directly before each new recipe.
const SAMPLES: usize = 64;

impl<T: Real, const C: usize> Default for Fmm<T, C> {
    fn default() -> Self {
        Self {
            source_tree: Tree::default(),
            target_tree: Tree::default(),
            leaf_starts: vec![],
            target_points: vec![],
            lists: vec![],
            ops: None,
            multipoles: vec![],
            locals: vec![],
            cost: Cost::default(),
            sample: None,
            safety: 1.0,
            leaf_factor: 1.0,
            leaves_for: None,
            looseness: 1.0,
            calibrated: false,
            recipe: Recipe::default(),
            seconds: [0.0; PASS_COUNT],
            wish: None,
            upward_done: false,
            energies: vec![],
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
    pub gradient_factor: f64,
    pub accumulate: bool,
}

impl<T: Real, const C: usize> Fmm<T, C> {
    /// Trees, lists and expansions for `sources` and the targets last given. Returns false where the direct sum would be
    /// faster and `may_decline`.
    pub fn prepare(
        &mut self,
        sources: &mut dyn SourceSet<T, C>,
        targets: &[[f64; 3]],
        changes: Changes,
        wish: Wish,
        may_decline: bool,
    ) -> bool {
        // Before anything may decline: a later call must not find an old tree or old multipoles.
        if changes.sources || changes.strengths {
            self.upward_done = false;
            self.safety = 1.0;
        }
        if changes.sources {
            self.source_tree = Tree::default();
        }
        let fresh = self.wish != Some(wish);
        if changes.sources || changes.targets || fresh {
            if may_decline && self.too_small(sources, targets.len(), wish) {
                self.wish = None;
                return false;
            }
            self.wish = Some(wish);
            self.plant(sources, targets, changes.sources);
        } else if changes.strengths {
            self.sample = None;
        }
        if self.sample.is_none() {
            self.measure(sources);
        }
        let go = !(may_decline && self.recipe.predicted > self.recipe.direct);
        if !go {
            self.wish = None;
        }
        go
    }

    /// Whether sorting alone costs more than the direct sum: no expansion can win it back.
    fn too_small(&mut self, sources: &dyn SourceSet<T, C>, m: usize, wish: Wish) -> bool {
        let n = sources.places().0.len();
        self.recipe.direct = n as f64 * m as f64 * sources.pair_seconds(wish.gradient);
        self.recipe.direct < 2.5e-7 * (n + m) as f64
    }

    /// Trees whose leaves cost least. An octree of even sources has leaves of one size only, eight times that of the next
    /// level, so a formula can miss by much: leaves around it are tried, and remembered while the numbers stay alike.
    fn plant(&mut self, sources: &mut dyn SourceSet<T, C>, targets: &[[f64; 3]], new_sources: bool) {
        let numbers = [sources.places().0.len(), targets.len()];
        let alike = |a: usize, b: usize| a.abs_diff(b) * 4 <= a;
        let known = self
            .leaves_for
            .is_some_and(|(wish, n)| Some(wish) == self.wish && alike(n[0], numbers[0]) && alike(n[1], numbers[1]));
        if known || self.wish.expect("set by prepare").leaf_capacity > 0 {
            self.grow(sources, targets, new_sources);
            return;
        }
        let mut seen: Vec<(f64, f64)> = vec![];
        let mut attempt = |me: &mut Self, factor: f64| {
            me.leaf_factor = factor;
            me.grow(sources, targets, new_sources || !seen.is_empty());
            me.measure(sources);
            seen.push((me.recipe.predicted, factor));
            log::debug!("leaves by {factor}: predicted {:.3e} s", me.recipe.predicted);
            seen.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).expect("just pushed").1
        };
        attempt(self, 1.0);
        let best = attempt(self, LEAF_STEP);
        let best = attempt(self, if best > 1.0 { LEAF_STEP * LEAF_STEP } else { 1.0 / LEAF_STEP });
        if best != self.leaf_factor {
            attempt(self, best);
        }
        self.leaves_for = self.wish.map(|wish| (wish, numbers));
    }

    /// Sample, orders and lists for the present trees.
    fn measure(&mut self, sources: &dyn SourceSet<T, C>) {
        self.take_sample(sources);
        self.energies = sources.energies(&self.source_tree);
        self.choose_orders(sources);
        let before = self.sample.as_ref().expect("just taken").norm2.0;
        self.widen_norm(sources, true);
        if self.sample.as_ref().expect("just taken").norm2.0 > 2.0 * before {
            self.choose_orders(sources);
        }
    }

    /// Both trees.
    fn grow(&mut self, sources: &mut dyn SourceSet<T, C>, targets: &[[f64; 3]], new_sources: bool) {
        let start = Instant::now();
        let wish = self.wish.expect("set by prepare");
        let (places, half) = sources.places();
        let (n, m) = (places.len(), targets.len());
        self.cost = Cost { pair: sources.pair_seconds(wish.gradient), m2l: cost::m2l::<T, C>() };
        let (ns, nt) = self.capacities(n, m, wish);
        // Half the order of the closest pair: with it the estimate meets the measured error of CUBE at 1e-3 … 1e-9.
        let moment = (order_at(wish.tolerance, 0.38) as i32 / 2).clamp(3, 32);
        let same = self.recipe.source_capacity == ns && self.source_tree.permutation.len() == n;
        if new_sources || !same {
            let root = Root::around(&[bounds(places, half)]);
            self.source_tree = Tree::build(places, half, root, ns, moment);
            sources.sort(&self.source_tree);
            self.upward_done = false;
        }
        let root = Root::around(&[bounds(targets, &[])]);
        self.target_tree = Tree::build(targets, &[], root, nt, moment);
        self.target_points = self.target_tree.permutation.par_iter().map(|&k| targets[k as usize]).collect();
        self.leaf_starts =
            self.target_tree.leaves.iter().map(|&l| (self.target_tree.cells[l as usize].begin, l)).collect();
        self.leaf_starts.sort_unstable();
        self.recipe.source_capacity = ns;
        self.recipe.target_capacity = nt;
        self.sample = None;
        self.seconds[Pass::Tree as usize] = start.elapsed().as_secs_f64();
    }

    /// Leaves in which a direct pair of cells costs about what its share of translations does: with 27 near cells and some
    /// 100 far ones a leaf, n_s n_t pair · 27 = 100 · m2l. Cells of both trees are to be of one size, so that the product
    /// is divided in proportion to the densities.
    fn capacities(&self, n: usize, m: usize, wish: Wish) -> (usize, usize) {
        if wish.leaf_capacity > 0 {
            return (wish.leaf_capacity, wish.leaf_capacity);
        }
        let typical = order_at(wish.tolerance, 0.3).min(MAX_ORDER - 1);
        let product = CAPACITY_FACTOR * self.cost.m2l[typical] / self.cost.pair;
        let ratio = (n.max(1) as f64 / m.max(1) as f64).clamp(1e-3, 1e3).sqrt();
        let each = self.leaf_factor * product.sqrt();
        ((each * ratio).clamp(4.0, 4096.0) as usize, (each / ratio).clamp(8.0, 4096.0) as usize)
    }

    /// Sorted targets, evenly along the Morton order, each shifted by a share of the golden ratio so that no lattice of the
    /// host's is met in phase.
    fn spread(&self, count: usize) -> Vec<u32> {
        let m = self.target_points.len();
        let count = count.min(m);
        let place = |k: usize| {
            let jitter = (k as f64 * 0.618_033_988_749_894_9).fract();
            (((k as f64 + jitter) * m as f64 / count as f64) as usize).min(m - 1) as u32
        };
        (0..count).map(place).collect()
    }

    /// Exact field at a spread of targets.
    fn take_sample(&mut self, sources: &dyn SourceSet<T, C>) {
        let wish = self.wish.expect("set by prepare");
        let targets = self.spread(SAMPLES);
        let points: Vec<[f64; 3]> = targets.iter().map(|&k| self.target_points[k as usize]).collect();
        let exact = direct(sources, &points, wish.gradient, self.source_tree.permutation.len());
        let (norm2, gradient_norm2) = mean_squares::<T, C>(&exact, targets.len());
        self.calibrated = false;
        self.sample = Some(Sample { norm2, gradient_norm2, targets, exact });
    }

    /// Mean squares over a larger sample: of the near field alone before there is a far one (then they can only grow).
    fn widen_norm(&mut self, sources: &dyn SourceSet<T, C>, near_only: bool) {
        let gradient = self.wish.expect("set by prepare").gradient;
        // Whole leaves, because the pair kernels take a register of targets at a time.
        let leaves = &self.leaf_starts;
        let stride = (self.target_points.len() / 4096).clamp(32, 256).min(leaves.len().div_ceil(4)).max(1);
        let targets: Vec<u32> = leaves
            .iter()
            .step_by(stride)
            .map(|&(_, l)| &self.target_tree.cells[l as usize])
            .flat_map(|c| c.begin..c.end.min(c.begin + 256))
            .collect();
        let field = self.field_at(sources, &targets, gradient, near_only);
        let (a, b) = mean_squares::<T, C>(&field, targets.len());
        let sample = self.sample.as_mut().expect("taken by prepare");
        if !near_only || a.0 > sample.norm2.0 {
            (sample.norm2, sample.gradient_norm2) = (a, b);
        }
    }

    /// Error per pair, orders, lists, and what they will cost.
    fn choose_orders(&mut self, sources: &dyn SourceSet<T, C>) {
        let start = Instant::now();
        let wish = self.wish.expect("set by prepare");
        let budget = self.far_ratio().clamp(1.0, 1e3) * self.safety;
        let pair_tolerance = (TRUNCATION_SHARE * wish.tolerance * budget * self.looseness).min(0.1);
        let core_tolerance = (CORE_SHARE * wish.tolerance * budget).min(0.1);
        let highest = if wish.order > 0 { wish.order } else { highest_order(pair_tolerance) };
        let orders = if wish.order > 0 {
            OrderTable::fixed(wish.order, pair_tolerance)
        } else {
            OrderTable::new(pair_tolerance, highest)
        };
        let cells = &self.source_tree.cells;
        let core_matters = |s: u32, t: &Cell| sources.core_matters(s, &cells[s as usize], t, core_tolerance);
        let mut cost = self.cost.clone();
        cost.m2l.truncate(highest + 1);
        let rules = Rules {
            sources: &self.source_tree,
            targets: &self.target_tree,
            orders: &orders,
            cost: &cost,
            core_matters: &core_matters,
        };
        self.lists = lists::build(&rules);
        let (far, near, correction) = lists::count(&self.target_tree, &self.lists);
        let used = self.lists.par_iter().filter_map(|l| l.far.first()).map(|f| f.0 as usize).max().unwrap_or(2);
        let threads = rayon::current_num_threads() as f64;
        let m2l: f64 = self.lists.par_iter().flat_map_iter(|l| l.far.iter()).map(|f| self.cost.m2l[f.0 as usize]).sum();
        let (n, m) = (self.source_tree.permutation.len() as f64, self.target_tree.permutation.len() as f64);
        let points = (n + m) * (2.5e-7 + 2.2e-10 * (C * used * used) as f64);
        // M2M and L2L cost about an M2L each; lists some microseconds a cell, and twice.
        let cells = (self.source_tree.cells.len() + self.target_tree.cells.len()) as f64;
        let cells = cells * (self.cost.m2l[used] + 4e-6);
        let r = &mut self.recipe;
        r.pair_tolerance = pair_tolerance;
        r.core_tolerance = core_tolerance;
        // Expansions of a slightly higher order serve as well, and the upward pass need not be done again.
        let kept = self.ops.as_ref().map_or(0, |o| o.order);
        r.order = if (used..used + 8).contains(&kept) && wish.order == 0 { kept } else { used.max(wish.order) };
        r.depth = self.source_tree.depth().max(self.target_tree.depth());
        r.cells = self.source_tree.cells.len() + self.target_tree.cells.len();
        (r.far_pairs, r.near_pairs, r.correction_pairs) = (far, near, correction);
        r.predicted = (m2l + (near + correction) as f64 * self.cost.pair + points + cells) / threads;
        r.direct = n * m * self.cost.pair / threads;
        if self.ops.as_ref().is_none_or(|o| o.order != r.order) {
            self.ops = Some(cost::operators(r.order));
            self.upward_done = false;
        }
        self.seconds[Pass::Lists as usize] = start.elapsed().as_secs_f64();
    }

    /// U/V over the sample: how much larger the field is than what the far cells make of it.
    fn far_ratio(&self) -> f64 {
        let sample = self.sample.as_ref().expect("taken by prepare");
        let leaves = &self.source_tree.leaves;
        let power = if C == 3 { 2 } else { 1 };
        let v2: f64 = sample
            .targets
            .par_iter()
            .map(|&k| {
                let (at, near) = (self.target_points[k as usize], self.target_tree.cells[self.leaf_of(k)].spread);
                leaves
                    .iter()
                    .map(|&s| {
                        let c = &self.source_tree.cells[s as usize];
                        let d2: f64 = (0..3).map(|i| (c.center[i] - at[i]).powi(2)).sum();
                        let reach = (c.spread + near) / (2.0 * CLOSEST_RATIO);
                        if d2 > reach * reach { self.energies[s as usize] / d2.powi(power) } else { 0.0 }
                    })
                    .sum::<f64>()
            })
            .sum();
        if v2 > 0.0 { (sample.norm2.0 * sample.targets.len() as f64 / v2).sqrt() } else { 1.0 }
    }

    fn leaf_of(&self, sorted: u32) -> usize {
        let k = self.leaf_starts.partition_point(|&(begin, _)| begin <= sorted) - 1;
        self.leaf_starts[k].1 as usize
    }

    /// The field at all targets, checked on the sample; tightened and repeated where it misses. False: it still misses,
    /// and nothing was written.
    pub fn evaluate(&mut self, sources: &dyn SourceSet<T, C>, sink: &mut Sink<'_, T>) -> bool {
        let wish = self.wish.expect("prepared");
        for round in 0.. {
            self.upward(sources);
            if round == 0 && !self.calibrated {
                self.calibrate(sources);
                self.calibrated = true;
            }
            self.downward(Only(None));
            self.widen_norm(sources, false);
            let SampledError { strict: error, loose, .. } = self.sampled_error(sources, wish);
            self.recipe.sampled_error = loose;
            self.recipe.tightened = round;
            if error <= wish.tolerance || (round > 0 && loose <= wish.tolerance) || wish.order > 0 {
                break;
            }
            if round == 3 {
                return false;
            }
            log::debug!("sampled error {error:.2e} misses {:.2e}: tightening", wish.tolerance);
            self.safety *= (0.4 * wish.tolerance / error).min(0.5);
            self.choose_orders(sources);
        }
        let start = Instant::now();
        self.leaves(sources, wish.gradient, sink);
        let spent = start.elapsed().as_secs_f64();
        // The two are one loop over the leaves; divided by the model.
        let near = (self.recipe.near_pairs + self.recipe.correction_pairs) as f64 * self.cost.pair
            / rayon::current_num_threads() as f64;
        self.seconds[Pass::P2p as usize] = near.min(spent);
        self.seconds[Pass::L2p as usize] = spent - near.min(spent);
        true
    }

    /// Expansions up to date, for single targets.
    pub fn ready(&mut self, sources: &dyn SourceSet<T, C>) {
        if !self.upward_done {
            self.upward(sources);
            self.downward(Only(None));
        }
    }

    pub fn target(&self, sorted: u32) -> [f64; 3] {
        self.target_points[sorted as usize]
    }

    fn upward(&mut self, sources: &dyn SourceSet<T, C>) {
        if self.upward_done {
            return;
        }
        let ops = self.ops.clone().expect("chosen");
        let start = Instant::now();
        self.multipoles.resize(self.source_tree.cells.len() * C * ops.order * ops.order, T::ZERO);
        passes::p2m::<T, C>(&ops, &self.source_tree, &mut self.multipoles, |cell, points| {
            sources.fill(cell, ops.order, points)
        });
        self.seconds[Pass::P2m as usize] = start.elapsed().as_secs_f64();
        let start = Instant::now();
        passes::m2m::<T, C>(&ops, &self.source_tree, &mut self.multipoles);
        self.seconds[Pass::M2m as usize] = start.elapsed().as_secs_f64();
        self.upward_done = true;
    }

    /// Target cells above the sampled targets, themselves included; `None` where that is a large part of the tree.
    fn chains(&self) -> Option<Vec<bool>> {
        let sample = self.sample.as_ref().expect("taken by prepare");
        let mut marked = vec![false; self.target_tree.cells.len()];
        let mut count = 0;
        for &k in &sample.targets {
            let mut cell = self.leaf_of(k);
            while cell < marked.len() && !marked[cell] {
                marked[cell] = true;
                count += 1;
                cell = self.target_tree.cells[cell].parent as usize;
            }
        }
        (count as f64 <= CALIBRATION_PART * marked.len() as f64).then_some(marked)
    }

    /// Measures the error on the sample, where that needs few translations, and gives pairs the orders that the tolerance
    /// needs in this field. The estimate must hold for the worst of fields, so it is too careful for most.
    fn calibrate(&mut self, sources: &dyn SourceSet<T, C>) {
        let wish = self.wish.expect("prepared");
        if wish.order > 0 || self.recipe.far_pairs == 0 {
            return;
        }
        let Some(chains) = self.chains() else { return };
        self.downward(Only(Some(&chains)));
        let sampled = self.sampled_error(sources, wish);
        let error = (sampled.strict * sampled.doubt).max(f64::MIN_POSITIVE);
        let factor = (CALIBRATION_AIM * wish.tolerance / error).clamp(0.03, 30.0);
        log::debug!("calibration: sampled error {error:.2e}, looser by {factor:.2}");
        if !(0.7..1.4).contains(&factor) {
            self.looseness = (self.looseness * factor).clamp(0.1, 100.0);
            self.choose_orders(sources);
            self.upward(sources);
        }
    }

    fn downward(&mut self, only: Only<'_>) {
        let ops = self.ops.clone().expect("chosen");
        let start = Instant::now();
        self.locals.resize(self.target_tree.cells.len() * C * ops.order * ops.order, T::ZERO);
        passes::m2l::<T, C>(
            &ops,
            &self.source_tree,
            &self.target_tree,
            &self.lists,
            only,
            &self.multipoles,
            &mut self.locals,
        );
        self.seconds[Pass::M2l as usize] = start.elapsed().as_secs_f64();
        let start = Instant::now();
        passes::l2l::<T, C>(&ops, &self.target_tree, only, &mut self.locals);
        self.seconds[Pass::L2l as usize] = start.elapsed().as_secs_f64();
    }

    /// The field in one leaf, `[row][target]`, for the sorted targets `pick` of it.
    fn leaf_field(
        &self,
        sources: &dyn SourceSet<T, C>,
        leaf: usize,
        pick: &[u32],
        gradient: bool,
        near_only: bool,
        desk: &mut Desk<T>,
    ) {
        let ops = self.ops.as_ref().expect("chosen");
        let cell = &self.target_tree.cells[leaf];
        let size = C * ops.order * ops.order;
        let count = pick.len();
        desk.out.clear();
        desk.out.resize(rows(C, gradient) * count, T::ZERO);
        desk.at = near::Points::with_capacity(count);
        pick.iter().for_each(|&k| desk.at.push(self.target_points[k as usize]));
        for i in 0..3 {
            desk.relative[i].clear();
            desk.relative[i]
                .extend(pick.iter().map(|&k| T::of((self.target_points[k as usize][i] - cell.center[i]) / cell.scale)));
        }
        if !near_only {
            let local = &self.locals[leaf * size..(leaf + 1) * size];
            passes::field_rows::<T, C>(ops, local, cell.scale, gradient, &mut desk.rows);
            passes::l2p(ops, &desk.rows, &desk.relative, &mut desk.work, &mut desk.out, count);
        }
        let list = &self.lists[leaf];
        let mut out: Vec<&mut [T]> = desk.out.chunks_exact_mut(count).collect();
        for (part, ranges) in
            [(Part::Regularized, &list.near), (Part::Singular, &list.plain), (Part::Correction, &list.correction)]
        {
            if !ranges.is_empty() {
                sources.near(part, ranges, &desk.at, &mut out);
            }
        }
    }

    /// L2P and near field of all leaves, written to the caller's places.
    fn leaves(&self, sources: &dyn SourceSet<T, C>, gradient: bool, sink: &mut Sink<'_, T>) {
        let order = self.ops.as_ref().expect("chosen").order;
        let (k_main, k_gradient) = (rows(C, false), rows(C, true) - rows(C, false));
        let main = Scatter(sink.main.as_mut_ptr(), sink.main.len());
        let grad = sink.gradient.as_mut().map(|g| Scatter(g.as_mut_ptr(), g.len()));
        let (f, fg, add) = (T::of(sink.main_factor), T::of(sink.gradient_factor), sink.accumulate);
        let tree = &self.target_tree;
        tree.leaves.par_iter().for_each_init(
            || Desk::new(order, C),
            |desk, &leaf| {
                let cell = &tree.cells[leaf as usize];
                let pick: Vec<u32> = (cell.begin..cell.end).collect();
                self.leaf_field(sources, leaf as usize, &pick, gradient, false, desk);
                for (j, &k) in pick.iter().enumerate() {
                    let to = tree.permutation[k as usize] as usize;
                    for row in 0..k_main {
                        main.put(to * k_main + row, desk.out[row * pick.len() + j] * f, add);
                    }
                    if let Some(g) = &grad {
                        for row in 0..k_gradient {
                            g.put(to * k_gradient + row, desk.out[(k_main + row) * pick.len() + j] * fg, add);
                        }
                    }
                }
            },
        );
    }

    /// The field at some sorted targets, `[row][k]`; `near_only`: without the far field.
    pub fn field_at(&self, sources: &dyn SourceSet<T, C>, targets: &[u32], gradient: bool, near_only: bool) -> Vec<T> {
        let order = self.ops.as_ref().expect("chosen").order;
        let mut by_leaf: Vec<(usize, usize)> = targets.iter().enumerate().map(|(k, &t)| (self.leaf_of(t), k)).collect();
        by_leaf.sort_unstable();
        let groups: Vec<&[(usize, usize)]> = by_leaf.chunk_by(|a, b| a.0 == b.0).collect();
        let fields: Vec<Vec<T>> = groups
            .par_iter()
            .map_init(
                || Desk::new(order, C),
                |desk, group| {
                    let pick: Vec<u32> = group.iter().map(|&(_, k)| targets[k]).collect();
                    self.leaf_field(sources, group[0].0, &pick, gradient, near_only, desk);
                    desk.out.clone()
                },
            )
            .collect();
        let count = targets.len();
        let mut out = vec![T::ZERO; rows(C, gradient) * count];
        for (group, field) in groups.iter().zip(&fields) {
            for (j, &(_, k)) in group.iter().enumerate() {
                for row in 0..rows(C, gradient) {
                    out[row * count + k] = field[row * group.len() + j];
                }
            }
        }
        out
    }

    /// Relative error over the sample, the gradient's counted a thirtieth.
    fn sampled_error(&self, sources: &dyn SourceSet<T, C>, wish: Wish) -> SampledError {
        let sample = self.sample.as_ref().expect("taken by prepare");
        let mut wrong = self.field_at(sources, &sample.targets, wish.gradient, false);
        wrong.iter_mut().zip(&sample.exact).for_each(|(a, b)| *a -= *b);
        let count = sample.targets.len();
        let (main, gradient) = mean_squares::<T, C>(&wrong, count);
        let ratio = |a: f64, b: f64| if a == 0.0 { 0.0 } else { (a / b.max(f64::MIN_POSITIVE)).sqrt() };
        let error = |f: fn((f64, f64)) -> f64| {
            ratio(main.1, f(sample.norm2)).max(ratio(gradient.1, f(sample.gradient_norm2)) / 30.0)
        };
        // Two standard errors of a mean of squares: a field whose errors sit at few targets is trusted less.
        let spread = |v: &[T]| {
            let squares = target_squares(v, count);
            let mean = squares.iter().sum::<f64>() / count as f64;
            let variance = squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / count as f64;
            if mean > 0.0 { (1.0 + 2.0 * (variance / count as f64).sqrt() / mean).sqrt() } else { 1.0 }
        };
        let main_rows = rows(C, false) * count;
        let doubt = spread(&wrong[..main_rows]).max(if wish.gradient { spread(&wrong[main_rows..]) } else { 1.0 });
        SampledError { strict: error(|n| n.0), loose: error(|n| n.1), doubt }
    }

    pub fn bytes(&self) -> u64 {
        let lists: usize = self
            .lists
            .iter()
            .map(|l| {
                l.far.capacity() * 8
                    + (l.near.capacity() + l.plain.capacity() + l.correction.capacity()) * 8
                    + size_of::<CellLists>()
            })
            .sum();
        (self.source_tree.bytes()
            + self.target_tree.bytes()
            + self.target_points.capacity() * 24
            + (self.multipoles.capacity() + self.locals.capacity()) * size_of::<T>()
            + lists) as u64
    }
}

/// Direct field of the first `n` sorted sources at a few points, `[row][point]`.
fn direct<T: Real, const C: usize>(
    sources: &dyn SourceSet<T, C>,
    points: &[[f64; 3]],
    gradient: bool,
    n: usize,
) -> Vec<T> {
    let count = points.len();
    let mut at = near::Points::with_capacity(count);
    points.iter().for_each(|&p| at.push(p));
    let blocks: Vec<Vec<T>> = (0..n.div_ceil(2048))
        .into_par_iter()
        .map(|b| {
            let mut out = vec![T::ZERO; rows(C, gradient) * count];
            let range = (b * 2048) as u32..((b + 1) * 2048).min(n) as u32;
            let mut rows: Vec<&mut [T]> = out.chunks_exact_mut(count).collect();
            sources.near(Part::Regularized, std::slice::from_ref(&range), &at, &mut rows);
            out
        })
        .collect();
    (0..rows(C, gradient) * count).map(|k| T::of(blocks.iter().map(|b| b[k].f64()).sum())).collect()
}

/// Sum of the squares of all rows at each target, `[row][count]`.
fn target_squares<T: Real>(field: &[T], count: usize) -> Vec<f64> {
    (0..count).map(|k| field.iter().skip(k).step_by(count).map(|x| x.f64().powi(2)).sum()).collect()
}

/// Mean squares per target of the field and of its gradient, `[row][count]`: without the largest 1/256 and with them.
/// A singular field has a heavy tail, and a norm that rests on one close pair would promise too little elsewhere.
fn mean_squares<T: Real, const C: usize>(field: &[T], count: usize) -> ((f64, f64), (f64, f64)) {
    let main = rows(C, false) * count;
    let mean = |v: &[T]| {
        let mut squares = target_squares(v, count);
        let all: f64 = squares.iter().sum();
        let drop = if count < 32 { 0 } else { count.div_ceil(256) };
        squares.select_nth_unstable_by(count - 1 - drop.min(count - 1), f64::total_cmp);
        let kept: f64 = squares[..count - drop].iter().sum();
        (kept / (count - drop) as f64, all / count as f64)
    };
    if count == 0 {
        return Default::default();
    }
    (mean(&field[..main]), if field.len() > main { mean(&field[main..]) } else { (0.0, 0.0) })
}

/// Order at which a pair of equal balls at radius/distance `ratio` reaches `tolerance`.
fn order_at(tolerance: f64, ratio: f64) -> usize {
    OrderTable::new(tolerance, MAX_ORDER).order(ratio, ratio, 1.0, 2.0 * ratio).map_or(MAX_ORDER, usize::from)
}

/// Pairs closer than this ratio are split rather than expanded; found on CUBE at 1e-3 … 1e-9 (docs/results.md).
const CLOSEST_RATIO: f64 = 0.33;
/// See `capacities`.
const CAPACITY_FACTOR: f64 = 4.0;
/// Leaves larger or smaller by this are tried: two steps are most of an octree's level.
const LEAF_STEP: f64 = 2.2;
/// The calibration is worth while below this part of the cells, and aims at this part of the tolerance.
const CALIBRATION_PART: f64 = 0.25;
const CALIBRATION_AIM: f64 = 0.3;

fn highest_order(tolerance: f64) -> usize {
    order_at(tolerance, CLOSEST_RATIO).clamp(3, MAX_ORDER)
}

/// One thread's desk for a leaf.
struct Desk<T> {
    work: Work<T>,
    at: near::Points<T>,
    relative: [Vec<T>; 3],
    rows: Vec<T>,
    out: Vec<T>,
}

impl<T: Real> Desk<T> {
    fn new(order: usize, components: usize) -> Self {
        Self {
            work: Work::new(order, components),
            at: Default::default(),
            relative: Default::default(),
            rows: vec![],
            out: vec![],
        }
    }
}

/// Disjoint writes from many threads: every target belongs to one leaf.
struct Scatter<T>(*mut T, usize);
// SAFETY: only `put` touches the memory, and each index is written by the one task that owns its target.
unsafe impl<T: Send> Sync for Scatter<T> {}

impl<T: Real> Scatter<T> {
    #[inline(always)]
    fn put(&self, at: usize, v: T, add: bool) {
        assert!(at < self.1);
        // SAFETY: in bounds, and no other task has this index.
        unsafe {
            let p = self.0.add(at);
            *p = if add { *p + v } else { v };
        }
    }
}
