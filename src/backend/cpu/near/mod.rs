//! Pairs of elements on lanes: the direct sum, the near field of the FMM and the correction of its far field for cores.
//!
//! ```text
//!   direct     whole problems: threads over blocks of targets          FMM: one call per target leaf
//!      └────────────┬───────────────────────────────────────────────────────┘
//!   particles() segments() charges()      choose the kernel: regularization × part × gradient
//!                   │
//!   sweep           the loop: targets in lanes, sources broadcast, sums kept in f64
//!                   │
//!   particles segments charges (files)    one pair          special   exp, Gauss-erf       sources   records
//! ```
//!
//! Lengths are in units in which the problem is of size about one (`direct::Frame`, or the root cube); strengths carry the
//! normalization. `out` has 3 components (velocity) or 12 (and `g[i][j]` = ∂u_i/∂x_j at 3 + 3i + j); for charges 1 or 4
//! (potential, gradient). Each is as long as the range of targets and is added to.
//! `Part::Correction` adds what regularized minus singular is.

use std::ops::Range;

pub use crate::math::regularization::Part;
use crate::options::Regularization;
use crate::simd::{self, Real};
pub use sources::{Charge, ChargeSources, Particle, ParticleSources, Points, Segment, SegmentSources};
use sweep::{PairKernel, sweep};

mod charges;
pub mod direct;
mod particles;
mod segments;
mod sources;
mod special;
mod sweep;
#[cfg(test)]
mod tests;

/// Adds the particles in `ranges` to the targets `t`.
pub fn particles<T: Real>(
    part: Part,
    sources: &ParticleSources<T>,
    ranges: &[Range<u32>],
    targets: &Points<T>,
    t: Range<usize>,
    out: &mut [&mut [T]],
) {
    particles_with(simd::best(), part, sources, ranges, targets, t, out);
}

/// Adds the segments in `ranges` to the targets `t`.
pub fn segments<T: Real>(
    part: Part,
    sources: &SegmentSources<T>,
    ranges: &[Range<u32>],
    targets: &Points<T>,
    t: Range<usize>,
    out: &mut [&mut [T]],
) {
    segments_with(simd::best(), part, sources, ranges, targets, t, out);
}

/// Adds the charges in `ranges` to the targets `t`.
pub fn charges<T: Real>(
    sources: &ChargeSources<T>,
    ranges: &[Range<u32>],
    targets: &Points<T>,
    t: Range<usize>,
    out: &mut [&mut [T]],
) {
    charges_with(simd::best(), sources, ranges, targets, t, out);
}

fn particles_with<T: Real>(
    arch: pulp::Arch,
    part: Part,
    sources: &ParticleSources<T>,
    ranges: &[Range<u32>],
    targets: &Points<T>,
    t: Range<usize>,
    out: &mut [&mut [T]],
) {
    use particles::{self as law, Deficit, ParticleLaw};
    let call = Call { arch, sources: &sources.list, ranges, targets, t, out };
    fn go<T: Real, L: ParticleLaw>(part: Part, call: Call<'_, '_, T, Particle<T>>) {
        match part {
            Part::Correction => call.vectors::<law::Particles<Deficit<L>>>(),
            _ => call.vectors::<law::Particles<L>>(),
        }
    }
    match (part, sources.regularization()) {
        (Part::Correction, Regularization::None) => (),
        (Part::Singular, _) | (_, Regularization::None) => call.vectors::<law::Particles<law::Singular>>(),
        (_, Regularization::GaussErf) => go::<T, law::GaussErf>(part, call),
        (_, Regularization::Exponential) => go::<T, law::Exponential>(part, call),
        (_, Regularization::Compact) => go::<T, law::Compact>(part, call),
        (_, Regularization::Rosenhead) => go::<T, law::Rosenhead>(part, call),
        (_, Regularization::Winckelmans) => go::<T, law::Winckelmans>(part, call),
        (_, Regularization::Polynomial) => go::<T, law::Polynomial>(part, call),
        (_, reg) => panic!("{reg:?} is not a regularization of particles"),
    }
}

fn segments_with<T: Real>(
    arch: pulp::Arch,
    part: Part,
    sources: &SegmentSources<T>,
    ranges: &[Range<u32>],
    targets: &Points<T>,
    t: Range<usize>,
    out: &mut [&mut [T]],
) {
    use segments::{self as law, Deficit, LineLaw, Segments};
    let call = Call { arch, sources: &sources.list, ranges, targets, t, out };
    fn go<T: Real, L: LineLaw>(part: Part, call: Call<'_, '_, T, Segment<T>>) {
        match part {
            Part::Correction => call.vectors::<Segments<Deficit<L>>>(),
            _ => call.vectors::<Segments<L>>(),
        }
    }
    match (part, sources.regularization()) {
        (Part::Correction, Regularization::None) => (),
        (Part::Singular, _) | (_, Regularization::None) => call.vectors::<Segments<law::Singular>>(),
        (_, Regularization::Rankine) => go::<T, law::Rankine>(part, call),
        (_, Regularization::LambOseen) => go::<T, law::LambOseen>(part, call),
        (_, Regularization::Vatistas) => go::<T, law::Vatistas>(part, call),
        (_, Regularization::Scully) => go::<T, law::Scully>(part, call),
        (Part::Correction, Regularization::Offset) => call.vectors::<Segments<law::Offset<true>>>(),
        (_, Regularization::Offset) => call.vectors::<Segments<law::Offset<false>>>(),
        (_, reg) => panic!("{reg:?} is not a regularization of segments"),
    }
}

fn charges_with<T: Real>(
    arch: pulp::Arch,
    sources: &ChargeSources<T>,
    ranges: &[Range<u32>],
    targets: &Points<T>,
    t: Range<usize>,
    out: &mut [&mut [T]],
) {
    let list = &sources.list;
    match out.len() {
        1 => sweep::<T, charges::Charges, 1, 2>(arch, list, ranges, targets, t, out),
        4 => sweep::<T, charges::Charges, 4, 2>(arch, list, ranges, targets, t, out),
        n => panic!("a potential has 1 component, with its gradient 4, not {n}"),
    }
}

/// The arguments of one sweep.
struct Call<'a, 'b, T, P> {
    arch: pulp::Arch,
    sources: &'a [P],
    ranges: &'a [Range<u32>],
    targets: &'a Points<T>,
    t: Range<usize>,
    out: &'a mut [&'b mut [T]],
}

impl<T: Real, P> Call<'_, '_, T, P> {
    /// Velocity, with two registers of targets; with the gradient, whose sums fill the registers, one.
    fn vectors<K: PairKernel<T, 3, Source = P> + PairKernel<T, 12, Source = P>>(self) {
        match self.out.len() {
            3 => sweep::<T, K, 3, 2>(self.arch, self.sources, self.ranges, self.targets, self.t, self.out),
            12 => sweep::<T, K, 12, 1>(self.arch, self.sources, self.ranges, self.targets, self.t, self.out),
            n => panic!("a velocity has 3 components, with its gradient 12, not {n}"),
        }
    }
}
