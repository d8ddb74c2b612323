//! What a few targets tell: the size of the field, the error of the expansions, and from both the orders that it needs.
//!
//! Enters: trees and sources; for the error, expansions. Leaves: the direct field at the sample, norms, and how much more
//! or less than estimated a pair of cells may be wrong.

use super::recipe::CLOSEST_RATIO;
use super::{Fmm, SourceSet, Wish, near, rows, unit_of};
use crate::backend::cpu::lists::Only;
use crate::math::regularization::Part;
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;

/// Targets whose field is summed directly before each new recipe.
const SAMPLES: usize = 64;
/// Targets of a leaf that serve for the norm: four registers of the widest.
const LEAF_SAMPLES: u32 = 64;
/// The calibration is worth while below this part of the cells, and aims at this part of the tolerance.
const CALIBRATION_PART: f64 = 0.15;
const CALIBRATION_AIM: f64 = 0.3;

/// Sampled targets with their exact field.
pub(super) struct Sample<T> {
    /// Sorted target numbers.
    pub(super) targets: Vec<u32>,
    /// `[row][sample]`
    pub(super) exact: Vec<T>,
    /// Largest strength: fields are divided by it before they are squared, or squares of 1e160 would overflow.
    unit: f64,
    /// Mean squares of the field and of its gradient without the largest few, and with them.
    pub(super) norm2: (f64, f64),
    pub(super) gradient_norm2: (f64, f64),
}

/// Relative errors over the sample, against the norm without and with the largest few fields, and a factor for how
/// uncertain so few targets leave them.
pub(super) struct SampledError {
    pub(super) strict: f64,
    pub(super) loose: f64,
    pub(super) doubt: f64,
}

impl<T: Real, const C: usize> Fmm<T, C> {
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
    pub(super) fn take_sample(&mut self, sources: &dyn SourceSet<T, C>) {
        let wish = self.wish.expect("set by prepare");
        let targets = self.spread(SAMPLES);
        let points: Vec<[f64; 3]> = memory::collect(targets.iter().map(|&k| self.target_points[k as usize]));
        let exact = direct(sources, &points, wish.gradient, self.source_tree.permutation.len());
        let unit = unit_of(sources.largest_strength());
        let (norm2, gradient_norm2) = mean_squares::<T, C>(&exact, &memory::filled(1, targets.len()), unit);
        self.calibrated = false;
        self.sample = Some(Sample { norm2, gradient_norm2, targets, exact, unit });
    }

    /// See `Sample::unit`.
    pub(super) fn unit(&self) -> f64 {
        self.sample.as_ref().expect("taken by prepare").unit
    }

    /// Mean squares over a larger sample: of the near field alone before there is a far one (then they can only grow).
    pub(super) fn widen_norm(&mut self, sources: &dyn SourceSet<T, C>, near_only: bool) {
        let gradient = self.wish.expect("set by prepare").gradient;
        let leaves = &self.leaf_starts;
        let stride = (self.target_points.len() / 4096).clamp(32, 256).min(leaves.len().div_ceil(16)).max(1);
        // From the middle of a stride: the first leaf is a corner of the box, and a row's end has its largest field.
        let cells = leaves.iter().skip(stride / 2).step_by(stride).map(|&(_, l)| &self.target_tree.cells[l as usize]);
        let (mut targets, mut groups): (Vec<u32>, Vec<usize>) = (vec![], vec![]);
        for c in cells {
            // Neighbours, because the pair kernels take some registers of targets at a time.
            let part = c.begin..c.end.min(c.begin + LEAF_SAMPLES);
            memory::push(&mut groups, part.len());
            memory::extend(&mut targets, part);
        }
        let field = self.field_at(sources, &targets, gradient, near_only);
        let (a, b) = mean_squares::<T, C>(&field, &groups, self.unit());
        let sample = self.sample.as_mut().expect("taken by prepare");
        if !near_only || a.0 > sample.norm2.0 {
            (sample.norm2, sample.gradient_norm2) = (a, b);
        }
    }

    /// U/V over the sample: how much larger the field is than what the far cells make of it.
    pub(super) fn far_ratio(&self) -> f64 {
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

    /// Relative error over the sample, the gradient's counted a thirtieth.
    pub(super) fn sampled_error(&self, sources: &dyn SourceSet<T, C>, wish: Wish) -> SampledError {
        let sample = self.sample.as_ref().expect("taken by prepare");
        let mut wrong = self.field_at(sources, &sample.targets, wish.gradient, false);
        wrong.iter_mut().zip(&sample.exact).for_each(|(a, b)| *a -= *b);
        let count = sample.targets.len();
        let (main, gradient) = mean_squares::<T, C>(&wrong, &memory::filled(1, count), sample.unit);
        let ratio = |a: f64, b: f64| match (a, b) {
            (0.0, _) => 0.0,
            _ if a.is_finite() && b.is_finite() => (a / b.max(f64::MIN_POSITIVE)).sqrt(),
            // What overflowed says nothing: a miss.
            _ => f64::INFINITY,
        };
        let error = |f: fn((f64, f64)) -> f64| {
            ratio(main.1, f(sample.norm2)).max(ratio(gradient.1, f(sample.gradient_norm2)) / 30.0)
        };
        // Two standard errors of a mean of squares: a field whose errors sit at few targets is trusted less.
        let spread = |v: &[T]| {
            let squares = target_squares(v, count, sample.unit);
            let mean = squares.iter().sum::<f64>() / count as f64;
            if mean == 0.0 || !mean.is_finite() {
                return 1.0;
            }
            let variance = squares.iter().map(|s| (s / mean - 1.0).powi(2)).sum::<f64>() / count as f64;
            (1.0 + 2.0 * (variance / count as f64).sqrt()).sqrt()
        };
        let main_rows = rows(C, false) * count;
        let doubt = spread(&wrong[..main_rows]).max(if wish.gradient { spread(&wrong[main_rows..]) } else { 1.0 });
        SampledError { strict: error(|n| n.0), loose: error(|n| n.1), doubt }
    }

    /// The leaf of a sorted target and all cells above it.
    pub(super) fn chain(&self, target: u32) -> impl Iterator<Item = usize> {
        let above = |&c: &usize| (c > 0).then(|| self.target_tree.cells[c].parent as usize);
        std::iter::successors(Some(self.leaf_of(target)), above)
    }

    /// Target cells above the sampled targets, themselves included; `None` where that is a large part of the tree.
    fn chains(&self) -> Option<Vec<bool>> {
        let sample = self.sample.as_ref().expect("taken by prepare");
        let mut marked = memory::filled(false, self.target_tree.cells.len());
        sample.targets.iter().flat_map(|&t| self.chain(t)).for_each(|c| marked[c] = true);
        let count = marked.iter().filter(|&&m| m).count();
        (count as f64 <= CALIBRATION_PART * marked.len() as f64).then_some(marked)
    }

    /// Measures the error on the sample, where that needs few translations, and gives pairs the orders that the tolerance
    /// needs in this field. The estimate must hold for the worst of fields, so it is too careful for most.
    pub(super) fn calibrate(&mut self, sources: &dyn SourceSet<T, C>) {
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
    let blocks: Vec<Vec<T>> = memory::par_collect((0..n.div_ceil(2048)).into_par_iter().map(|b| {
        let mut out = memory::filled(T::ZERO, rows(C, gradient) * count);
        let range = (b * 2048) as u32..((b + 1) * 2048).min(n) as u32;
        let mut rows: Vec<&mut [T]> = out.chunks_exact_mut(count).collect();
        sources.near(Part::Regularized, std::slice::from_ref(&range), &at, &mut rows);
        out
    }));
    memory::collect((0..rows(C, gradient) * count).map(|k| T::of(blocks.iter().map(|b| b[k].f64()).sum())))
}

/// Sum of the squares of all rows at each target, `[row][count]`, of the field divided by `unit`.
fn target_squares<T: Real>(field: &[T], count: usize, unit: f64) -> Vec<f64> {
    memory::collect((0..count).map(|k| field.iter().skip(k).step_by(count).map(|x| (x.f64() / unit).powi(2)).sum()))
}

/// Mean squares per target of the field and of its gradient, `[row][target]`: without the largest 1/256 and, where targets
/// were taken in several `groups` of neighbours, without the largest of these; and with them. A singular field has a heavy
/// tail, and a norm that rests on one close pair, or on one end of a row, would promise too little elsewhere.
fn mean_squares<T: Real, const C: usize>(field: &[T], groups: &[usize], unit: f64) -> ((f64, f64), (f64, f64)) {
    let count: usize = groups.iter().sum();
    let main = rows(C, false) * count;
    let mean = |v: &[T]| {
        let squares = target_squares(v, count, unit);
        let all: f64 = squares.iter().sum();
        (kept_mean(&squares, groups), all / count as f64)
    };
    if count == 0 {
        return Default::default();
    }
    (mean(&field[..main]), if field.len() > main { mean(&field[main..]) } else { (0.0, 0.0) })
}

/// See `mean_squares`.
fn kept_mean(squares: &[f64], groups: &[usize]) -> f64 {
    let count = squares.len();
    let drop = if count < 32 { 0 } else { count.div_ceil(256) };
    let mut order: Vec<usize> = memory::collect(0..count);
    order.select_nth_unstable_by(count - 1 - drop, |&a, &b| squares[a].total_cmp(&squares[b]));
    let mut kept = memory::filled(true, count);
    order[count - drop..].iter().for_each(|&k| kept[k] = false);
    let mut begin = 0;
    let sums: Vec<(f64, usize)> = memory::collect(groups.iter().map(|&n| {
        let group = begin..begin + n;
        begin += n;
        let of = |k: usize| if kept[k] { (squares[k], 1) } else { (0.0, 0) };
        group.map(of).fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }));
    let largest = (0..sums.len()).max_by(|&a, &b| sums[a].0.total_cmp(&sums[b].0));
    let dropped = largest.filter(|_| (8..count).contains(&groups.len()));
    let rest = sums.iter().enumerate().filter(|&(k, _)| Some(k) != dropped);
    let (sum, n) = rest.fold((0.0, 0), |a, (_, b)| (a.0 + b.0, a.1 + b.1));
    sum / n.max(1) as f64
}
