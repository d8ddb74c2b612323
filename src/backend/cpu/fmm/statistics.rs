//! What is measured before anything is chosen: strengths of cells, the size of the field, what cores may be left out.
//!
//! Enters: trees and sources. Leaves: `Statistics`, with the budget of errors that follows from the tolerance.
//!
//! The budget is absolute: so much may any pair of cells, or any core that is left out, add to the error at a target. With
//! the field's root mean square U over the targets, a tolerance of τ allows a root mean square error of τU. The error of
//! a pair of cells is random; `choice` scales its budget so that the modelled sum over all pairs meets its share.

use super::field::Written;
use super::sample::Sample;
use super::trees::Trees;
use super::{Request, SourceSet, near, rows};
use crate::backend::cpu::lists::{Budget, SourceCell};
use crate::backend::precision::SINGLE_SERVES;
use crate::backend::verdict::{GRADIENT_TOLERANCES, LARGEST_NORM, Verdict, unit_of};
use crate::math::regularization::Part;
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;

/// Interactions that a target's error is first taken to consist of.
pub const INTERACTIONS: f64 = 60.0;
/// Share of the tolerance that cores left out may use.
const CORE_SHARE: f64 = 0.4;
/// The largest correction that may be left out, of what is allowed in all.
const LARGEST_CORE_SHARE: f64 = 0.25;
/// The fewest targets that judge, and the fewest where these leave it open.
pub const JUDGES: usize = 112;
const MORE_JUDGES: usize = 1024;
/// Sources whose corrections are summed to see how they are distributed.
const CORE_PROBES: usize = 2048;
/// Rounding of a pair of particles in single precision, of strength over squared distance: a product of vectors that are nearly parallel
/// has no more digits than that.
const PAIR_ROUNDING: f64 = 1.5e-7;
/// What the rounding of one pair may be at a target, in units of the root mean square that the tolerance allows.
const LARGEST_ROUNDING: f64 = 4.0;
/// Half octaves of the histogram of corrections below the size of the field.
const BINS: usize = 96;

/// See the head of this file.
pub struct Statistics {
    /// Largest strength: fields are divided by it before they are squared.
    pub unit: f64,
    /// What each source cell amounts to in a truncation error.
    pub source_cells: Vec<SourceCell>,
    /// The sample that budgets and calibrates.
    pub sample: Sample,
    /// Mean squares of the field and of its gradient over the sample, without the largest values.
    pub norms: [f64; 2],
    /// The same with them.
    whole_norms: [f64; 2],
    pub budget: Budget,
    /// Distance up to which pairs of particles are summed in double precision where the field is in single.
    pub close: f64,
    /// Number of targets.
    pub targets: usize,
    judge: Option<Sample>,
}

impl Statistics {
    pub fn measure<T: Real, const C: usize>(
        sources: &mut dyn SourceSet<T, C>,
        trees: &mut Trees,
        request: Request,
    ) -> Self {
        let largest = trees.peers.max(sources.largest_strength());
        let unit = unit_of(largest);
        sources.survey(unit);
        let source_cells = sources.source_cells(&trees.source, unit, trees.moment);
        trees.look_far(sources.own(), request.tolerance);
        let mut sample = Sample::of_groups(sources, trees, request.gradient);
        let squares = sample.squares(&sample.exact, unit);
        let norms = [0, 1].map(|k| trimmed_mean(&squares[k], &sample.groups));
        let whole_norms = [0, 1].map(|k| mean(&squares[k]));
        let allowed = |k: usize| match k {
            0 => request.tolerance * norms[0].sqrt(),
            _ if request.gradient => GRADIENT_TOLERANCES * request.tolerance * norms[1].sqrt(),
            _ => f64::INFINITY,
        };
        let allowed = [allowed(0), allowed(1)];
        if request.periods.is_some() {
            let own = sources.own();
            let mut more = match &mut trees.distant {
                Some(distant) => distant.set_core_budget(own, allowed, &sample.points, request.gradient),
                None => memory::filled(0.0, sample.exact.len()),
            };
            trees.peers.sum(&mut more);
            sample.exact.iter_mut().zip(&more).for_each(|(e, v)| *e += v);
        }
        let trees = &*trees;
        log::debug!("sample of {} targets summed", sample.targets.len());
        let core = core_budget(sources, trees, &sample, unit, allowed);
        let budget = Budget { pair: allowed.map(|a| a / INTERACTIONS.sqrt()), core, field: allowed };
        let close = if T::IS_F64 || request.tolerance >= SINGLE_SERVES { 0.0 } else { close(largest / unit, allowed) };
        Self { unit, source_cells, sample, norms, whole_norms, budget, close, targets: trees.all_targets, judge: None }
    }

    /// After the source tree was pruned to cells of these former numbers: what a cell amounts to does not depend on its leaves.
    pub fn keep_cells(&mut self, kept: &[u32]) {
        self.source_cells = memory::collect(kept.iter().map(|&c| self.source_cells[c as usize]));
    }

    /// Relative error of `field` at the calibrating sample, one standard error of its groups added; the gradient's counts in
    /// its own tolerances.
    pub fn calibration_error<T: Real>(&self, field: &[T]) -> f64 {
        let squares = self.sample.squared_errors(field.iter().map(|v| v.f64()), self.unit);
        let one = |k: usize, share: f64| {
            if squares[k].is_empty() {
                return 0.0;
            }
            let groups = group_means(&squares[k], &self.sample.groups);
            let mean = mean(&groups);
            let variance = groups.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / groups.len() as f64;
            let upper = mean + (variance / groups.len() as f64).sqrt();
            share * (upper / self.norms[k].max(f64::MIN_POSITIVE)).sqrt()
        };
        one(0, 1.0).max(one(1, 1.0 / GRADIENT_TOLERANCES))
    }

    /// The independent sample of `count` targets. Its points depend on the problem: another field has another sample.
    pub fn judge<T: Real, const C: usize>(
        &mut self,
        sources: &dyn SourceSet<T, C>,
        trees: &Trees,
        request: Request,
        count: usize,
    ) -> &Sample {
        let seed = self.seed();
        self.judge.get_or_insert_with(|| Sample::of_targets(sources, trees, request.gradient, count, seed))
    }

    /// A larger one, of yet other targets.
    pub fn more_judges<T: Real, const C: usize>(
        &mut self,
        sources: &dyn SourceSet<T, C>,
        trees: &Trees,
        request: Request,
        count: usize,
    ) -> &Sample {
        let (seed, count) = (self.seed() ^ 0x5851_f42d_4c95_7f2d, count.max(MORE_JUDGES));
        self.judge.insert(Sample::of_targets(sources, trees, request.gradient, count, seed))
    }

    /// From the exact field at the first of the sample.
    pub fn seed(&self) -> u64 {
        let bits = self.sample.exact.iter().take(6).map(|v| v.to_bits());
        bits.fold(0x2545_f491_4f6c_dd1d, |h: u64, b| (h ^ b).wrapping_mul(0x0100_0000_01b3).rotate_left(23))
    }

    /// What the judging sample, asked for before, says of a field.
    pub fn verdict(&self, written: &Written) -> Verdict {
        let judge = self.judge.as_ref().expect("asked for by the caller");
        let squares = judge.squared_errors(written.judged.iter().copied(), self.unit);
        let exact = judge.squares(&judge.exact, self.unit);
        let all = judge.count() as u64 == written.targets;
        let norm = |k: usize| {
            if all {
                return mean(&exact[k]);
            }
            let sampled = self.whole_norms[k].max(mean(&exact[k]));
            (written.norms[k] / (self.unit * self.unit)).min(LARGEST_NORM * sampled)
        };
        Verdict::of([&squares[0], &squares[1]], [norm(0), norm(1)], all)
    }
}

/// Distance from which the rounding of a pair is small against errors of field and gradient that are allowed: it is a part of the
/// strength over the distance squared or cubed.
fn close(strength: f64, allowed: [f64; 2]) -> f64 {
    let rounding = PAIR_ROUNDING * strength / LARGEST_ROUNDING;
    let of_field = (rounding / allowed[0].max(f64::MIN_POSITIVE)).sqrt();
    let of_gradient = (3.0 * rounding / allowed[1].max(f64::MIN_POSITIVE)).cbrt();
    of_field.max(of_gradient)
}

fn mean(v: &[f64]) -> f64 {
    if v.is_empty() { 0.0 } else { v.iter().sum::<f64>() / v.len() as f64 }
}

fn group_means(v: &[f64], groups: &[usize]) -> Vec<f64> {
    let mut at = 0;
    memory::collect(groups.iter().map(|&n| {
        at += n;
        mean(&v[at - n..at])
    }))
}

/// Mean of squares without the largest thirty-second and without the group that then has most. A singular field has a heavy
/// tail: a norm that rests on one close pair, or on one end of a row, would promise too little elsewhere.
fn trimmed_mean(squares: &[f64], groups: &[usize]) -> f64 {
    let count = squares.len();
    if count < 32 {
        return mean(squares);
    }
    let mut sorted = memory::copy(squares);
    sorted.sort_unstable_by(f64::total_cmp);
    let limit = sorted[count - 1 - count.div_ceil(32)];
    let mut at = 0;
    let mut sums: Vec<(f64, usize)> = memory::collect(groups.iter().map(|&n| {
        at += n;
        let kept = squares[at - n..at].iter().filter(|&&s| s <= limit);
        kept.fold((0.0, 0), |a, s| (a.0 + s, a.1 + 1))
    }));
    if sums.len() >= 8 {
        let largest = (0..sums.len()).max_by(|&a, &b| sums[a].0.total_cmp(&sums[b].0)).expect("eight of them");
        sums.swap_remove(largest);
    }
    let (sum, n) = sums.iter().fold((0.0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
    sum / n.max(1) as f64
}

/// Sums of corrections by their size at one target: vector sums and sums of squares of a half octave each.
struct Histogram {
    rows: usize,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Histogram {
    fn new(rows: usize, targets: usize) -> Self {
        Self { rows, sums: memory::filled(0.0, rows * targets * BINS), squares: memory::filled(0.0, targets * BINS) }
    }

    /// Half octaves below `largest`, from the smallest on.
    fn bin(size: f64, largest: f64) -> usize {
        let below = 2.0 * (size / largest).log2();
        (BINS as f64 + below).clamp(0.0, BINS as f64 - 1.0) as usize
    }

    fn add(&mut self, target: usize, v: impl Iterator<Item = f64> + Clone, largest: f64) {
        let square: f64 = v.clone().map(|v| v * v).sum();
        if square > 0.0 {
            let at = target * BINS + Self::bin(square.sqrt(), largest);
            self.squares[at] += square;
            self.sums[at * self.rows..].iter_mut().zip(v).for_each(|(s, v)| *s += v);
        }
    }

    fn join(&mut self, o: &Self) {
        self.sums.iter_mut().zip(&o.sums).for_each(|(a, b)| *a += b);
        self.squares.iter_mut().zip(&o.squares).for_each(|(a, b)| *a += b);
    }

    /// The largest size up to which all corrections may be left out, where one in `stride` was counted: their sum, as they
    /// add up, and as they would if they were independent, may have a root mean square of `allowed` over the targets.
    fn threshold(&self, largest: f64, stride: f64, allowed: f64) -> f64 {
        let targets = self.squares.len() / BINS;
        let mut sums = memory::filled(0.0, targets * self.rows);
        let mut squares = memory::filled(0.0, targets);
        for bin in 0..BINS {
            let mut total = 0.0;
            for t in 0..targets {
                let at = t * BINS + bin;
                squares[t] += self.squares[at];
                let sum = &mut sums[t * self.rows..(t + 1) * self.rows];
                sum.iter_mut().zip(&self.sums[at * self.rows..]).for_each(|(a, b)| *a += b);
                let coherent = stride * stride * sum.iter().map(|v| v * v).sum::<f64>();
                total += (coherent - (stride * stride - stride) * squares[t]).max(0.0) + stride * squares[t];
            }
            if total > allowed * allowed * targets as f64 {
                return largest * 2f64.powf(0.5 * (bin as f64 - BINS as f64));
            }
        }
        largest
    }
}

/// Errors of field and gradient up to which a core may be left out: the smallest corrections together may use `CORE_SHARE` of
/// what is `allowed`.
fn core_budget<T: Real, const C: usize>(
    sources: &dyn SourceSet<T, C>,
    trees: &Trees,
    sample: &Sample,
    unit: f64,
    allowed: [f64; 2],
) -> [f64; 2] {
    let n = sources.positions().0.len();
    let whole = trees.peers.total(n as f64);
    if !trees.peers.any(sources.has_cores()) || whole == 0.0 {
        return [f64::INFINITY; 2];
    }
    let mut at = near::Points::<T>::with_capacity(sample.groups.len());
    sample.head_points().into_iter().for_each(|x| at.push(x));
    let targets = at.len();
    let gradient = allowed[1].is_finite();
    let (all, main) = (rows(C, gradient), rows(C, false));
    // Larger ones are never left out: they are few, and a probe of some sources may not meet them.
    let largest = allowed.map(|a| LARGEST_CORE_SHARE * a);
    let stride = whole / whole.min(CORE_PROBES as f64);
    let probes = if trees.peers.are_many() { (n as f64 / stride).ceil() as usize } else { n.min(CORE_PROBES) };
    let block = probes.div_ceil(16);
    let parts: Vec<[Histogram; 2]> = memory::par_collect((0..16usize).into_par_iter().map(|b| {
        let mut found = [Histogram::new(main, targets), Histogram::new(all - main, targets)];
        let mut out = memory::filled(T::ZERO, all * targets);
        for k in b * block..((b + 1) * block).min(probes) {
            let source = ((k as f64 + crate::backend::draw::jitter(3, k as u64)) * stride) as u32;
            let source = source.min(n as u32 - 1);
            out.fill(T::ZERO);
            let mut rows: Vec<&mut [T]> = out.chunks_exact_mut(targets).collect();
            sources.near(Part::Correction, std::slice::from_ref(&(source..source + 1)), &at, &mut rows);
            for t in 0..targets {
                let value = |r: usize| out[r * targets + t].f64() / unit;
                found[0].add(t, (0..main).map(value), largest[0]);
                if gradient {
                    found[1].add(t, (main..all).map(value), largest[1]);
                }
            }
        }
        found
    }));
    let mut whole = [Histogram::new(main, targets), Histogram::new(all - main, targets)];
    for part in &parts {
        (0..2).for_each(|k| whole[k].join(&part[k]));
    }
    for part in &mut whole {
        trees.peers.sum(&mut part.sums);
        trees.peers.sum(&mut part.squares);
    }
    [0, 1].map(|k| {
        if allowed[k].is_finite() {
            whole[k].threshold(largest[k], stride, CORE_SHARE * allowed[k])
        } else {
            f64::INFINITY
        }
    })
}
