//! The exponential and the Gauss-erf radial function on lanes.
//!
//! Enters: lanes ≥ 0. Leaves: values to a few units in the last place, without the cancellation of 1 - e^(-y) near zero and
//! without integer operations, so that one text serves every instruction set. Polynomials: weighted minimax, 60 digits.

use crate::simd::{Lane, Real, Simd};

/// (1 - e^(-a))/a on [0, 11/16], to 1.4e-17.
const EXP_F64: [f64; 11] = [
    0.999_999_999_999_999_986_2,
    -0.499_999_999_999_995_251_64,
    0.166_666_666_666_395_332_81,
    -0.041_666_666_660_596_178_274,
    0.008_333_333_263_433_242_940_7,
    -0.001_388_888_417_915_420_975_1,
    0.000_198_410_712_658_057_862_45,
    -0.000_024_796_185_714_753_922_804,
    2.746_228_675_727_692_576_1e-6,
    -2.650_623_845_144_834_120_9e-7,
    1.828_980_804_139_114_267_8e-8,
];
/// The same on [0, 11/8], to 8e-10.
const EXP_F32: [f64; 8] = [
    0.999_999_999_204_835_652_06,
    -0.499_999_930_193_785_644_77,
    0.166_665_641_722_854_588_14,
    -0.041_660_845_723_574_133_587,
    0.008_316_862_183_111_896_852_4,
    -0.001_363_134_159_018_347_076_6,
    0.000_175_478_400_361_226_651_51,
    -0.000_013_512_149_291_053_014_051,
];
/// g/q³ in q² on [0, 4], to 9e-17.
const CORE_F64: [f64; 14] = [
    0.265_961_520_267_621_760_97,
    -0.079_788_456_080_284_310_554,
    0.014_247_938_585_731_315_1,
    -0.001_846_955_001_650_235_930_5,
    0.000_188_893_124_521_833_722_57,
    -0.000_015_983_263_145_539_856_984,
    1.154_345_242_947_945_211_9e-6,
    -7.275_154_540_106_893_156_3e-8,
    4.067_568_442_338_841_815_9e-9,
    -2.041_299_973_419_232_255e-10,
    9.223_350_735_318_670_857e-12,
    -3.663_102_232_075_369_457_2e-13,
    1.155_545_895_624_131_352_9e-14,
    -2.118_298_499_155_619_857_9e-16,
];
/// g/q³ in q² on [0, 9/4], to 8e-9.
const CORE_F32: [f64; 7] = [
    0.265_961_518_106_939_580_32,
    -0.079_788_368_215_017_235_367,
    0.014_247_340_857_262_372_955,
    -0.001_845_401_139_046_188_269_5,
    0.000_186_933_282_168_710_591_3,
    -0.000_014_681_539_463_741_947_468,
    7.031_316_688_650_769_014_7e-7,
];
/// e^(q²/2) erfc(q/√2) in 1/(q+3) on q in [2, 9.2], to 3e-17 e^(q²/2).
const TAIL_F64: [f64; 10] = [
    0.000_052_076_304_100_017_962_99,
    0.794_655_857_926_707_910_6,
    2.483_569_697_980_289_282_7,
    4.904_745_069_125_966_386_3,
    30.191_624_408_923_353_756,
    -90.512_797_730_127_825_499,
    570.711_456_800_216_934_63,
    -1_799.868_717_654_601_639_8,
    2_551.300_618_484_050_274_6,
    -1_408.283_063_497_154_266_9,
];
/// The same in 1/(q+2) on q in [1.5, 6.5], to 3e-9 e^(q²/2).
const TAIL_F32: [f64; 5] = [
    -0.000_366_501_729_591_332_981_26,
    0.818_451_814_048_132_410_09,
    1.279_466_652_175_716_942_3,
    4.518_675_921_609_922_682_8,
    -4.765_034_196_971_706_884_5,
];

/// √(2/π)
const SQRT_2_PI: f64 = 0.797_884_560_802_865_4;

#[inline(always)]
fn horner<S: Simd, T: Real, const N: usize>(x: Lane<S, T>, p: &[f64; N]) -> Lane<S, T> {
    let s = x.simd();
    let mut y = Lane::splat(s, T::of(p[N - 1]));
    for i in (0..N - 1).rev() {
        y = y.fma(x, Lane::splat(s, T::of(p[i])));
    }
    y
}

/// Where e^(-y) is below the last place of one: arguments must not exceed it.
#[inline(always)]
pub fn exp_end<T: Real>() -> f64 {
    if T::IS_F64 { 44.0 } else { 22.0 }
}

/// 1 - e^(-y) with its relative and e^(-y) with its absolute accuracy, for y in [0, `exp_end`].
/// e^(-y/2^n) by a polynomial, then doublings: 1 - e^(-2a) = h (2 - h), which keep the relative accuracy of h.
#[inline(always)]
pub fn exponential<S: Simd, T: Real>(y: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
    let s = y.simd();
    let mut h;
    if T::IS_F64 {
        let a = y * Lane::splat(s, T::of(1.0 / 64.0));
        h = a * horner(a, &EXP_F64);
        h = h.fnma(h, h + h);
        h = h.fnma(h, h + h);
    } else {
        let a = y * Lane::splat(s, T::of(1.0 / 16.0));
        h = a * horner(a, &EXP_F32);
    }
    h = h.fnma(h, h + h);
    h = h.fnma(h, h + h);
    h = h.fnma(h, h + h);
    let u = Lane::splat(s, T::ONE) - h;
    (h.fma(u, h), u * u)
}

/// Where g is one to the last place: `q` must not exceed it.
#[inline(always)]
pub fn gauss_end<T: Real>() -> f64 {
    if T::IS_F64 { 9.2 } else { 6.5 }
}

/// Gauss-erf: g = erf(q/√2) - √(2/π) q e^(-q²/2), G = g - √(2/π) q³/3 e^(-q²/2), and 1 - g without cancellation far out.
/// Near the core g = q³ · polynomial; there 1 - g has its absolute accuracy.
#[inline(always)]
pub fn gauss_erf<S: Simd, T: Real>(q: Lane<S, T>) -> [Lane<S, T>; 3] {
    let s = q.simd();
    let one = Lane::splat(s, T::ONE);
    let k = Lane::splat(s, T::of(SQRT_2_PI));
    let (z, near, shift) = (q * q, if T::IS_F64 { 2.0 } else { 1.5 }, if T::IS_F64 { 3.0 } else { 2.0 });
    let (_, e) = exponential(z * Lane::splat(s, T::of(0.5)));
    let v = one / (q + Lane::splat(s, T::of(shift)));
    let (erfcx, inner) = if T::IS_F64 {
        (horner(v, &TAIL_F64), horner(z, &CORE_F64))
    } else {
        (horner(v, &TAIL_F32), horner(z, &CORE_F32))
    };
    let q3 = z * q;
    let tail = e * k.fma(q, erfcx);
    let inner = inner * q3;
    let is_near = q.lt(Lane::splat(s, T::of(near)));
    let g = is_near.select(inner, one - tail);
    let slope = (Lane::splat(s, T::of(SQRT_2_PI / 3.0)) * q3).fnma(e, g);
    [g, slope, is_near.select(one - inner, tail)]
}
