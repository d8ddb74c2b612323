//! The direct sum on all threads, with all periodic images, and whether single precision is enough for it.
//!
//! Enters: sources, targets, periods. Leaves: the field where the caller wants it.

use super::fmm::{Distant, Request, Sink, SourceSet, rows};
use super::near;
use super::tree::{Root, Tree, bounds};
use crate::backend::draw::stratified;
use crate::backend::periods::LEAST_LEFT;
use crate::backend::verdict::{GRADIENT_TOLERANCES, Verdict, unit_of};
use crate::distributed::Peers;
use crate::math::regularization::Part;
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;
use std::ops::Range;

/// One in so many targets is summed in double precision too, and how many at least and at most.
const SAMPLED: usize = 16;
const SAMPLES: Range<usize> = 8..64;
/// Targets that tell how large the field is.
const CORE_SAMPLES: usize = 32;
const SEED: u64 = 0x6a09_e667_f3bc_c908;
/// Targets that a thread takes at a time in the direct sum.
const TARGET_BLOCK: usize = 256;

/// Periodic images of all sources, on many ranks of this one's.
pub struct Remote(Distant);

/// Where all images together leave less than this part of the field of the sources alone, images are summed for a tolerance that is
/// smaller by what they leave; so many times at most.
const CANCELS: f64 = 0.03;
const MOST_TIGHTENED: usize = 3;
/// Leaves of the tree that images are summed by.
const LEAF: usize = 64;

impl Remote {
    /// Sorts the sources; nothing, and the sources as they are, where no axis is periodic.
    pub fn new<T: Real, const C: usize>(
        sources: &mut dyn SourceSet<T, C>,
        targets: &[[f64; 3]],
        request: Request,
    ) -> Option<Self> {
        Self::of_ranks(&Peers::default(), sources, targets, request)
    }

    /// The same on many ranks, some of which have sources and some targets: the images of this rank's sources at the targets of any rank.
    /// Nothing where this rank has none, too.
    pub fn of_ranks<T: Real, const C: usize>(
        peers: &Peers,
        sources: &mut dyn SourceSet<T, C>,
        targets: &[[f64; 3]],
        request: Request,
    ) -> Option<Self> {
        let periods = request.periods?;
        if !(peers.any(!sources.is_empty()) && peers.any(!targets.is_empty())) {
            return None;
        }
        let unit = unit_of(peers.max(sources.largest_strength()));
        let (positions, half) = sources.positions();
        let corners = bounds(positions, half);
        let (mut tree, _) = Tree::build(positions, half, Root::around(&[corners]), LEAF, None);
        tree.center_root(periods.center, periods.radius(corners));
        sources.sort(&tree);
        sources.survey(unit);
        let radius = if targets.is_empty() { 0.0 } else { periods.radius(bounds(targets, &[])) };
        let picked = picked(peers, targets);
        let of = |tolerance: f64| Distant::new(sources, &tree, periods, radius, tolerance, peers).map(Self);
        // Root mean squares of velocity and gradient, or of potential and its gradient; a rank without images has no sources.
        let sizes = |images: Option<&Self>| {
            let sum = Sum { sources: &*sources, images };
            let mut field = match sources.is_empty() {
                true => memory::filled(0.0, rows(C, true) * picked.len()),
                false => sum.exact(&picked, true),
            };
            peers.sum(&mut field);
            sizes_of(&field, rows(C, false), picked.len(), unit)
        };
        let has_cores = peers.any(sources.has_cores());
        let alone = sizes(None);
        let asked = if request.gradient { 0..2 } else { 0..1 };
        let left = |whole: [f64; 2]| asked.clone().fold(1.0, |least, i| f64::min(least, whole[i] / alone[i]));
        let (mut images, mut share) = (of(request.tolerance), 1.0);
        let mut whole = sizes(images.as_ref());
        // What an image may miss is a part of what it contributes. Where all of them leave little, as beyond a slab, that is too much.
        for _ in 0..MOST_TIGHTENED {
            let remaining = left(whole).max(LEAST_LEFT);
            if remaining > CANCELS * share {
                break;
            }
            share = remaining;
            images = of(share * request.tolerance);
            whole = sizes(images.as_ref());
        }
        if let Some(Self(images)) = images.as_mut().filter(|_| has_cores) {
            let allowed = [whole[0], GRADIENT_TOLERANCES * whole[1]].map(|u| request.tolerance * u);
            images.set_core_budget(sources, allowed, &[], true);
        }
        images
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Root mean squares by target of the first `main` rows of a field, `[row][target]`, and of the others, in units of `unit`.
fn sizes_of(field: &[f64], main: usize, targets: usize, unit: f64) -> [f64; 2] {
    let size = |values: &[f64]| (values.iter().map(|v| (v / unit).powi(2)).sum::<f64>() / targets as f64).sqrt();
    let (main, gradient) = field.split_at(main * targets);
    [size(main), size(gradient)]
}

/// Some of all ranks' targets, which tell how large the field is.
fn picked(peers: &Peers, targets: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let counts = peers.gather(&[targets.len() as f64]).0;
    let before = |rank: usize| counts[..rank].iter().map(|&n| n as usize).sum::<usize>();
    let first = before(peers.rank());
    let all = stratified(before(counts.len()), CORE_SAMPLES, SEED).into_iter();
    let mine: Vec<f64> = all.filter_map(|k| targets.get(k.checked_sub(first)?)).flatten().copied().collect();
    memory::copy(peers.gather(&mine).0.as_chunks::<3>().0)
}

/// The direct sum of sources and their images.
pub struct Sum<'a, T: Real, const C: usize> {
    pub sources: &'a dyn SourceSet<T, C>,
    pub images: Option<&'a Remote>,
}

impl<T: Real, const C: usize> Sum<'_, T, C> {
    pub fn write(&self, targets: &[[f64; 3]], gradient: bool, sink: &mut Sink<'_, T>) {
        write_blocks::<T, C, f64>(targets.len(), gradient, sink, |block| self.at(&targets[block], gradient));
    }

    /// From the sources' positions and strengths in double precision.
    pub fn write_in_double(&self, targets: &[[f64; 3]], gradient: bool, sink: &mut Sink<'_, T>) {
        write_blocks::<T, C, f64>(targets.len(), gradient, sink, |block| self.exact(&targets[block], gradient));
    }

    /// `[row][target]`; the sweep keeps its sums in double precision and its sources in the first cache.
    fn at(&self, targets: &[[f64; 3]], gradient: bool) -> Vec<f64> {
        let mut at = near::Points::with_capacity(targets.len());
        targets.iter().for_each(|&x| at.push(x));
        let mut sum = memory::filled(T::ZERO, rows(C, gradient) * targets.len());
        let mut rows: Vec<&mut [T]> = sum.chunks_exact_mut(targets.len()).collect();
        let all = 0..self.sources.positions().0.len() as u32;
        self.sources.near(Part::Regularized, std::slice::from_ref(&all), &at, &mut rows);
        self.with_images(memory::collect(sum.into_iter().map(|v| v.f64())), targets, gradient)
    }

    /// `[row][target]`, each target by itself in double precision.
    pub fn exact(&self, targets: &[[f64; 3]], gradient: bool) -> Vec<f64> {
        self.with_images(self.sources.exact(targets, gradient), targets, gradient)
    }

    fn with_images(&self, mut field: Vec<f64>, targets: &[[f64; 3]], gradient: bool) -> Vec<f64> {
        if let Some(Remote(images)) = self.images {
            let more = images.field(self.sources, targets, gradient);
            field.iter_mut().zip(&more).for_each(|(f, v)| *f += v);
        }
        field
    }

    /// Whether a direct sum in single precision misses the tolerance at a sample of targets: where contributions cancel, or
    /// strengths are nearly parallel to distances, 24 bits of each are too few.
    pub fn lacks_digits(&self, targets: &[[f64; 3]], gradient: bool, tolerance: f64) -> bool {
        if T::IS_F64 || targets.is_empty() || self.sources.is_empty() {
            return false;
        }
        let count = (targets.len() / SAMPLED).clamp(SAMPLES.start, SAMPLES.end).min(targets.len());
        let picked: Vec<[f64; 3]> =
            memory::collect(stratified(targets.len(), count, SEED).into_iter().map(|k| targets[k]));
        let (got, want) = (self.at(&picked, gradient), self.exact(&picked, gradient));
        let unit = unit_of(want.iter().fold(0.0, |a, v| f64::max(a, v.abs())));
        let (main, n) = (rows(C, false), picked.len());
        let squares = |range: Range<usize>, value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            memory::collect((0..n).map(|k| range.clone().map(|r| value(r * n + k).powi(2)).sum()))
        };
        let error = |i: usize| (got[i] - want[i]) / unit;
        let all = if gradient { main..rows(C, true) } else { main..main };
        let errors = [squares(0..main, &error), if gradient { squares(all.clone(), &error) } else { vec![] }];
        let mean = |range| squares(range, &|i| want[i] / unit).iter().sum::<f64>() / n as f64;
        let norms = [mean(0..main), mean(all)];
        !Verdict::of([&errors[0], &errors[1]], norms, n == targets.len()).holds(tolerance)
    }
}

/// Blocks of targets in parallel, from `sum` to where the caller wants them.
fn write_blocks<T: Real, const C: usize, X: Real>(
    targets: usize,
    gradient: bool,
    sink: &mut Sink<'_, T>,
    sum: impl Fn(Range<usize>) -> Vec<X> + Sync,
) {
    let (all, main) = (rows(C, gradient), rows(C, false));
    let chunk = |b: usize| sum(b * TARGET_BLOCK..((b + 1) * TARGET_BLOCK).min(targets));
    let put = |to: &mut T, v: f64, add: bool| *to = if add { *to + T::of(v) } else { T::of(v) };
    let (f, length, add) = (sink.main_factor, sink.per_length, sink.accumulate);
    let write = |b: usize, to: &mut [T], to_gradient: Option<&mut [T]>| {
        let sum = chunk(b);
        let count = to.len() / main;
        for k in 0..count {
            (0..main).for_each(|r| put(&mut to[k * main + r], sum[r * count + k].f64() * f, add));
        }
        if let Some(g) = to_gradient {
            let more = all - main;
            for k in 0..count {
                (0..more).for_each(|r| put(&mut g[k * more + r], sum[(main + r) * count + k].f64() * f * length, add));
            }
        }
    };
    let mains = sink.main.par_chunks_mut(TARGET_BLOCK * main).enumerate();
    match &mut sink.gradient {
        Some(g) => {
            mains.zip(g.par_chunks_mut(TARGET_BLOCK * (all - main))).for_each(|((b, to), g)| write(b, to, Some(g)))
        }
        None => mains.for_each(|(b, to)| write(b, to, None)),
    }
}
