//! Pair kernels of charges: φ = q/r, ∇φ = -q d/r³; a coincident charge adds zero.
//!
//! Enters: one charge and lanes of targets. Leaves: 1 or 4 sums.

use super::particles::tiny;
use super::sources::Charge;
use super::sweep::PairKernel;
use crate::simd::{Lane, Real, Simd};

pub struct Charges;

/// d, and 1/r or zero where r = 0.
#[inline(always)]
fn pair<S: Simd, T: Real>(s: S, source: &Charge<T>, x: [Lane<S, T>; 3]) -> ([Lane<S, T>; 3], Lane<S, T>) {
    let p = source.position;
    let d = [x[0] - Lane::splat(s, p[0]), x[1] - Lane::splat(s, p[1]), x[2] - Lane::splat(s, p[2])];
    let r2 = d[2].fma(d[2], d[1].fma(d[1], d[0] * d[0]));
    let zero = Lane::zero(s);
    (d, zero.lt(r2).select(r2.max(tiny(s)).rsqrt(), zero))
}

impl<T: Real> PairKernel<T, 1> for Charges {
    type Source = Charge<T>;
    #[inline(always)]
    fn add<S: Simd>(s: S, source: &Charge<T>, x: [Lane<S, T>; 3], sums: &mut [Lane<S, T>; 1]) {
        let (_, y) = pair(s, source, x);
        sums[0] = y.fma(Lane::splat(s, source.charge), sums[0]);
    }
}

impl<T: Real> PairKernel<T, 4> for Charges {
    type Source = Charge<T>;
    #[inline(always)]
    fn add<S: Simd>(s: S, source: &Charge<T>, x: [Lane<S, T>; 3], sums: &mut [Lane<S, T>; 4]) {
        let (d, y) = pair(s, source, x);
        let phi = y * Lane::splat(s, source.charge);
        let w = phi * (y * y);
        sums[0] = sums[0] + phi;
        for i in 0..3 {
            sums[1 + i] = w.fnma(d[i], sums[1 + i]);
        }
    }
}
