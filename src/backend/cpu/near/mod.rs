//! Pairs of elements on lanes: the direct sum, the near field of the FMM and the correction of its far field for cores.
//!
//! ```text
//!   particles() segments() charges()      choose the kernel: regularization × part × gradient
//!                   │
//!   sweep           the loop: targets in lanes, sources broadcast, sums kept in f64        plain    without lanes
//!                   │
//!   particles segments charges (files)    one pair          special   exp, Gauss-erf       sources   records
//! ```
//!
//! Lengths are in units in which the problem is of size about one; the normalization is the caller's. `out` has 3
//! components (velocity) or 12 (and `g[i][j]` = ∂u_i/∂x_j at 3 + 3i + j); for charges 1 or 4 (potential, gradient). Each is
//! as long as the range of targets and is added to. `Part::Correction` adds regularized minus singular.
//! The direct sum hands over all sources and a block of targets at a time, the FMM the lists of a target leaf.

use std::ops::Range;

pub use crate::math::regularization::Part;
use crate::options::Regularization;
use crate::simd::{self, Real};
use sources::Record;
pub use sources::{
    Charge, ChargeSources, Digits, Particle, ParticleSources, Points, Segment, SegmentSources, are_mostly_split,
};
use sweep::{Call, PairKernel};

mod charges;
mod particles;
mod plain;
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
    let (reg, list) = (sources.regularization(), &sources.list);
    let is_alone = list.serve_alone(ranges, targets, t.clone());
    let alone = Call { arch, sources: &list.alone, ranges, targets, t, out };
    // A branch by a constant: nothing behind it is compiled for double precision.
    if T::IS_F64 {
        return particle_pairs::<T, _, false>(reg, part, alone);
    }
    match (is_alone, targets.close > 0.0) {
        (true, false) => particle_pairs::<T, _, false>(reg, part, alone),
        (true, true) => particle_pairs::<T, _, true>(reg, part, alone),
        (false, false) => particle_pairs::<T, _, false>(reg, part, alone.of(&list.split)),
        (false, true) => particle_pairs::<T, _, true>(reg, part, alone.of(&list.split)),
    }
}

fn particle_pairs<T: Real, R: Record<T, Particle<T>>, const APART: bool>(
    reg: Regularization,
    part: Part,
    call: Call<'_, '_, T, R>,
) {
    use particles::{self as law, Deficit, ParticleLaw, Particles};
    if !simd::has_lanes(call.arch) {
        return plain::particles(reg, part, call);
    }
    fn go<T: Real, L: ParticleLaw, R: Record<T, Particle<T>>, const APART: bool>(part: Part, call: Call<'_, '_, T, R>) {
        match part {
            Part::Correction => vectors::<T, Particles<Deficit<L>, APART>, _, _>(call),
            _ => vectors::<T, Particles<L, APART>, _, _>(call),
        }
    }
    match (part, reg) {
        (Part::Correction, Regularization::None) => (),
        (Part::Singular, _) | (_, Regularization::None) => vectors::<T, Particles<law::Singular, APART>, _, _>(call),
        (_, Regularization::GaussErf) => go::<T, law::GaussErf, R, APART>(part, call),
        (_, Regularization::Exponential) => go::<T, law::Exponential, R, APART>(part, call),
        (_, Regularization::Compact) => go::<T, law::Compact, R, APART>(part, call),
        (_, Regularization::Rosenhead) => go::<T, law::Rosenhead, R, APART>(part, call),
        (_, Regularization::Winckelmans) => go::<T, law::Winckelmans, R, APART>(part, call),
        (_, Regularization::Polynomial) => go::<T, law::Polynomial, R, APART>(part, call),
        (_, reg) => unreachable!("{reg:?} is refused for particles where options are checked"),
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
    let (reg, list) = (sources.regularization(), &sources.list);
    let is_alone = list.serve_alone(ranges, targets, t.clone());
    let alone = Call { arch, sources: &list.alone, ranges, targets, t, out };
    if !T::IS_F64 && !is_alone {
        segment_pairs(reg, part, alone.of(&list.split))
    } else {
        segment_pairs(reg, part, alone)
    }
}

fn segment_pairs<T: Real, R: Record<T, Segment<T>>>(reg: Regularization, part: Part, call: Call<'_, '_, T, R>) {
    use segments::{self as law, Deficit, LineLaw, Segments};
    if !simd::has_lanes(call.arch) {
        return plain::segments(reg, part, call);
    }
    fn go<T: Real, L: LineLaw, R: Record<T, Segment<T>>>(part: Part, call: Call<'_, '_, T, R>) {
        match part {
            Part::Correction => vectors::<T, Segments<Deficit<L>>, _, _>(call),
            _ => vectors::<T, Segments<L>, _, _>(call),
        }
    }
    match (part, reg) {
        (Part::Correction, Regularization::None) => (),
        (Part::Singular, _) | (_, Regularization::None) => vectors::<T, Segments<law::Singular>, _, _>(call),
        (_, Regularization::Rankine) => go::<T, law::Rankine, R>(part, call),
        (_, Regularization::LambOseen) => go::<T, law::LambOseen, R>(part, call),
        (_, Regularization::Vatistas) => go::<T, law::Vatistas, R>(part, call),
        (_, Regularization::Scully) => go::<T, law::Scully, R>(part, call),
        (Part::Correction, Regularization::Offset) => vectors::<T, Segments<law::Offset<true>>, _, _>(call),
        (_, Regularization::Offset) => vectors::<T, Segments<law::Offset<false>>, _, _>(call),
        (_, reg) => unreachable!("{reg:?} is refused for segments where options are checked"),
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
    let is_alone = list.serve_alone(ranges, targets, t.clone());
    let alone = Call { arch, sources: &list.alone, ranges, targets, t, out };
    if !T::IS_F64 && !is_alone { charge_pairs(alone.of(&list.split)) } else { charge_pairs(alone) }
}

fn charge_pairs<T: Real, R: Record<T, Charge<T>>>(call: Call<'_, '_, T, R>) {
    match call.out.len() {
        _ if !simd::has_lanes(call.arch) => plain::charges(call),
        1 => call.sweep::<_, charges::Charges, 1, 2>(),
        _ => call.sweep::<_, charges::Charges, 4, 2>(),
    }
}

/// Velocity, with two registers of targets; with the gradient, whose sums fill the registers, one.
fn vectors<T: Real, K, P: 'static, R: Record<T, P>>(call: Call<'_, '_, T, R>)
where
    K: PairKernel<T, P, R, 3> + PairKernel<T, P, R, 12>,
{
    match call.out.len() {
        3 => call.sweep::<P, K, 3, 2>(),
        _ => call.sweep::<P, K, 12, 1>(),
    }
}
