//! Pair kernels of charges: φ = q/r, ∇φ = -q d/r³; a coincident charge adds zero.
//!
//! Enters: one charge and lanes of targets. Leaves: 1 or 4 sums.

use super::particles::tiny;
use super::sources::{Charge, Record};
use super::sweep::{PairKernel, Targets};
use crate::simd::{Lane, Real, Simd};

pub struct Charges;

/// d, and 1/r or zero where r = 0.
#[inline(always)]
fn pair<S: Simd, T: Real, R: Record<T, Charge<T>>>(
    s: S,
    source: &R,
    x: &Targets<S, T>,
) -> ([Lane<S, T>; 3], Lane<S, T>) {
    let d = x.from(s, source, source.whole().position, 0);
    let r2 = d[2].fma(d[2], d[1].fma(d[1], d[0] * d[0]));
    let zero = Lane::zero(s);
    (d, zero.lt(r2).select(r2.max(tiny(s)).rsqrt(), zero))
}

impl<T: Real, R: Record<T, Charge<T>>> PairKernel<T, Charge<T>, R, 1> for Charges {
    #[inline(always)]
    fn add<S: Simd>(s: S, source: &R, x: &mut Targets<S, T>, sums: &mut [Lane<S, T>; 1]) {
        let (_, y) = pair(s, source, x);
        sums[0] = y.fma(Lane::splat(s, source.whole().charge), sums[0]);
    }
}

impl<T: Real, R: Record<T, Charge<T>>> PairKernel<T, Charge<T>, R, 4> for Charges {
    #[inline(always)]
    fn add<S: Simd>(s: S, source: &R, x: &mut Targets<S, T>, sums: &mut [Lane<S, T>; 4]) {
        let (d, y) = pair(s, source, x);
        let phi = y * Lane::splat(s, source.whole().charge);
        let w = phi * (y * y);
        sums[0] = sums[0] + phi;
        for i in 0..3 {
            sums[1 + i] = w.fnma(d[i], sums[1 + i]);
        }
    }
}
