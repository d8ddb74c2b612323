//! The direct sum of whole problems: every target meets every source.
//!
//! Enters: sources and targets in the units of a `Frame`. Leaves: components added to, one thread per block of targets.

use std::ops::Range;

use rayon::prelude::*;

use super::{ChargeSources, Part, ParticleSources, Points, SegmentSources};
use crate::simd::Real;

/// Targets a thread takes at a time: a multiple of the sweep's block, small enough to share work evenly.
const SHARE: usize = 512;

/// Units in which a problem is of size about one: x' = (x - origin) 2^n. Scaling is exact, so results do not depend on the
/// caller's units; in single precision it also keeps powers of lengths from underflow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub origin: [f64; 3],
    /// 2^n
    pub scale: f64,
}

impl Frame {
    /// Around all points, so that the largest extent becomes a number in [1/2, 1).
    pub fn around(points: impl Iterator<Item = [f64; 3]>) -> Self {
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for p in points {
            for i in 0..3 {
                low[i] = low[i].min(p[i]);
                high[i] = high[i].max(p[i]);
            }
        }
        let size = (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max);
        if !(size > 0.0 && size.is_finite()) {
            let origin = if low[0].is_finite() { low } else { [0.0; 3] };
            return Frame { origin, scale: 1.0 };
        }
        Frame { origin: std::array::from_fn(|i| 0.5 * (low[i] + high[i])), scale: (-size.log2().floor() - 1.0).exp2() }
    }

    pub fn position(&self, x: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| (x[i] - self.origin[i]) * self.scale)
    }
    pub fn core(&self, c: f64) -> f64 {
        c * self.scale
    }
    /// Strengths in which the velocity comes out in the caller's units.
    pub fn strength(&self, a: [f64; 3]) -> [f64; 3] {
        a.map(|a| a * self.scale * self.scale)
    }
    pub fn circulation(&self, gamma: f64) -> f64 {
        gamma * self.scale
    }
    pub fn charge(&self, q: f64) -> f64 {
        q * self.scale
    }
    /// What a gradient is still to be multiplied with.
    pub fn gradient(&self) -> f64 {
        self.scale
    }
}

/// Velocity (3 components of `out`) or velocity and gradient (12) of all particles at all targets.
pub fn particles<T: Real>(
    pool: &rayon::ThreadPool,
    part: Part,
    sources: &ParticleSources<T>,
    targets: &Points<T>,
    out: &mut [Vec<T>],
) {
    let all = [0..sources.list.len() as u32];
    over_targets(pool, targets.len(), out, |t, out| super::particles(part, sources, &all, targets, t, out));
}

/// The same for segments.
pub fn segments<T: Real>(
    pool: &rayon::ThreadPool,
    part: Part,
    sources: &SegmentSources<T>,
    targets: &Points<T>,
    out: &mut [Vec<T>],
) {
    let all = [0..sources.list.len() as u32];
    over_targets(pool, targets.len(), out, |t, out| super::segments(part, sources, &all, targets, t, out));
}

/// Potential (1 component) or potential and gradient (4) of all charges.
pub fn charges<T: Real>(pool: &rayon::ThreadPool, sources: &ChargeSources<T>, targets: &Points<T>, out: &mut [Vec<T>]) {
    let all = [0..sources.list.len() as u32];
    over_targets(pool, targets.len(), out, |t, out| super::charges(sources, &all, targets, t, out));
}

/// Calls `sum` for shares of the targets with the parts of `out` that belong to them.
fn over_targets<T: Real>(
    pool: &rayon::ThreadPool,
    n: usize,
    out: &mut [Vec<T>],
    sum: impl Fn(Range<usize>, &mut [&mut [T]]) + Sync,
) {
    // With few targets every thread still gets some.
    let share = SHARE.min(n.div_ceil(4 * pool.current_num_threads()).next_multiple_of(32)).max(32);
    let mut shares: Vec<(Range<usize>, Vec<&mut [T]>)> =
        (0..n).step_by(share).map(|b| (b..(b + share).min(n), vec![])).collect();
    for component in out.iter_mut() {
        assert_eq!(component.len(), n);
        for (piece, (_, pieces)) in component.chunks_mut(share).zip(&mut shares) {
            pieces.push(piece);
        }
    }
    pool.install(|| shares.par_iter_mut().for_each(|(t, pieces)| sum(t.clone(), pieces)));
}
