//! Square blocks of numbers transposed in registers: what brings expansions that lie apart in memory side by side.

use super::dense::WIDEST;
use super::{Lane, Real, Simd};
#[cfg(target_arch = "x86_64")]
use super::{TypeId, same};

/// Number r of register k becomes number k of register r; registers beyond `LANES` have no meaning.
#[inline(always)]
pub fn block<S: Simd, T: Real>(s: S, rows: [Lane<S, T>; WIDEST]) -> [Lane<S, T>; WIDEST] {
    #[cfg(target_arch = "x86_64")]
    {
        let v4 = TypeId::of::<S>() == TypeId::of::<pulp::x86::V4>();
        let v3 = TypeId::of::<S>() == TypeId::of::<pulp::x86::V3>();
        let mut r = rows;
        macro_rules! with {
            ($f:ident, $n:literal) => {{
                // SAFETY: S and T are the ones that `f` is for, so token and registers are the ones cast to.
                unsafe {
                    let mut v = [same(r[0].v); $n];
                    for k in 1..$n {
                        v[k] = same(r[k].v);
                    }
                    let v = x86::$f(same(s), v);
                    for k in 0..$n {
                        r[k].v = same(v[k]);
                    }
                }
                return r;
            }};
        }
        match (v4, v3, T::IS_F64) {
            (true, _, true) => with!(f64x8, 8),
            (true, _, false) => with!(f32x16, 16),
            (_, true, true) => with!(f64x4, 4),
            (_, true, false) => with!(f32x8, 8),
            _ => {}
        }
    }
    let w = Lane::<S, T>::LANES;
    let (mut from, mut to) = ([[T::ZERO; WIDEST]; WIDEST], [[T::ZERO; WIDEST]; WIDEST]);
    (0..w).for_each(|r| rows[r].store(&mut from[r]));
    (0..w).for_each(|r| (0..w).for_each(|k| to[k][r] = from[r][k]));
    let mut out = rows;
    (0..w).for_each(|k| out[k] = Lane::load(s, &to[k]));
    out
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use pulp::x86::{V3, V4};
    use std::arch::x86_64::*;

    #[inline(always)]
    fn even_f64(t: V4, a: __m512d, b: __m512d) -> __m512d {
        t.avx512f._mm512_shuffle_f64x2::<0x88>(a, b)
    }
    #[inline(always)]
    fn odd_f64(t: V4, a: __m512d, b: __m512d) -> __m512d {
        t.avx512f._mm512_shuffle_f64x2::<0xdd>(a, b)
    }

    /// 128-bit blocks of four registers sorted: results hold block 0, 1, 2, 3 of each.
    #[inline(always)]
    fn blocks_f64(t: V4, r: [__m512d; 4]) -> [__m512d; 4] {
        let (a, b) = (even_f64(t, r[0], r[1]), odd_f64(t, r[0], r[1]));
        let (c, d) = (even_f64(t, r[2], r[3]), odd_f64(t, r[2], r[3]));
        [even_f64(t, a, c), even_f64(t, b, d), odd_f64(t, a, c), odd_f64(t, b, d)]
    }

    /// Neighbouring rows are interleaved, then 128-bit blocks sorted.
    #[inline(always)]
    pub fn f64x8(t: V4, r: [__m512d; 8]) -> [__m512d; 8] {
        let i = t.avx512f;
        let a = blocks_f64(
            t,
            [
                i._mm512_unpacklo_pd(r[0], r[1]),
                i._mm512_unpacklo_pd(r[2], r[3]),
                i._mm512_unpacklo_pd(r[4], r[5]),
                i._mm512_unpacklo_pd(r[6], r[7]),
            ],
        );
        let b = blocks_f64(
            t,
            [
                i._mm512_unpackhi_pd(r[0], r[1]),
                i._mm512_unpackhi_pd(r[2], r[3]),
                i._mm512_unpackhi_pd(r[4], r[5]),
                i._mm512_unpackhi_pd(r[6], r[7]),
            ],
        );
        [a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]]
    }

    /// Four rows: block b of result q holds the rows' column 4b + q.
    #[inline(always)]
    fn quad_f32(t: V4, r0: __m512, r1: __m512, r2: __m512, r3: __m512) -> [__m512d; 4] {
        let i = t.avx512f;
        let a = i._mm512_castps_pd(i._mm512_unpacklo_ps(r0, r1));
        let b = i._mm512_castps_pd(i._mm512_unpacklo_ps(r2, r3));
        let c = i._mm512_castps_pd(i._mm512_unpackhi_ps(r0, r1));
        let d = i._mm512_castps_pd(i._mm512_unpackhi_ps(r2, r3));
        [i._mm512_unpacklo_pd(a, b), i._mm512_unpackhi_pd(a, b), i._mm512_unpacklo_pd(c, d), i._mm512_unpackhi_pd(c, d)]
    }

    #[inline(always)]
    pub fn f32x16(t: V4, r: [__m512; 16]) -> [__m512; 16] {
        let i = t.avx512f;
        let a = quad_f32(t, r[0], r[1], r[2], r[3]);
        let b = quad_f32(t, r[4], r[5], r[6], r[7]);
        let c = quad_f32(t, r[8], r[9], r[10], r[11]);
        let d = quad_f32(t, r[12], r[13], r[14], r[15]);
        let mut out = r;
        for q in 0..4 {
            let v = blocks_f64(t, [a[q], b[q], c[q], d[q]]);
            for k in 0..4 {
                out[4 * k + q] = i._mm512_castpd_ps(v[k]);
            }
        }
        out
    }

    #[inline(always)]
    pub fn f64x4(t: V3, r: [__m256d; 4]) -> [__m256d; 4] {
        let i = t.avx;
        let (a, b) = (i._mm256_unpacklo_pd(r[0], r[1]), i._mm256_unpackhi_pd(r[0], r[1]));
        let (c, d) = (i._mm256_unpacklo_pd(r[2], r[3]), i._mm256_unpackhi_pd(r[2], r[3]));
        [
            i._mm256_permute2f128_pd::<0x20>(a, c),
            i._mm256_permute2f128_pd::<0x20>(b, d),
            i._mm256_permute2f128_pd::<0x31>(a, c),
            i._mm256_permute2f128_pd::<0x31>(b, d),
        ]
    }

    /// As `quad_f32`.
    #[inline(always)]
    fn half_f32(t: V3, r0: __m256, r1: __m256, r2: __m256, r3: __m256) -> [__m256d; 4] {
        let i = t.avx;
        let a = i._mm256_castps_pd(i._mm256_unpacklo_ps(r0, r1));
        let b = i._mm256_castps_pd(i._mm256_unpacklo_ps(r2, r3));
        let c = i._mm256_castps_pd(i._mm256_unpackhi_ps(r0, r1));
        let d = i._mm256_castps_pd(i._mm256_unpackhi_ps(r2, r3));
        [i._mm256_unpacklo_pd(a, b), i._mm256_unpackhi_pd(a, b), i._mm256_unpacklo_pd(c, d), i._mm256_unpackhi_pd(c, d)]
    }

    #[inline(always)]
    pub fn f32x8(t: V3, r: [__m256; 8]) -> [__m256; 8] {
        let i = t.avx;
        let a = half_f32(t, r[0], r[1], r[2], r[3]);
        let b = half_f32(t, r[4], r[5], r[6], r[7]);
        let mut out = r;
        for q in 0..4 {
            out[q] = i._mm256_castpd_ps(i._mm256_permute2f128_pd::<0x20>(a[q], b[q]));
            out[4 + q] = i._mm256_castpd_ps(i._mm256_permute2f128_pd::<0x31>(a[q], b[q]));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Kernel, instruction_sets};

    struct Numbered<T>(std::marker::PhantomData<T>);
    impl<T: Real> Kernel for Numbered<T> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let w = Lane::<S, T>::LANES;
            let rows: Vec<Vec<T>> =
                (0..WIDEST).map(|r| (0..w).map(|k| T::of((100 * r + k) as f64)).collect()).collect();
            let columns = block(s, std::array::from_fn(|r| Lane::load(s, &rows[r])));
            for k in 0..w {
                let mut got = vec![T::ZERO; w];
                columns[k].store(&mut got);
                for (r, v) in got.iter().enumerate() {
                    assert_eq!(v.f64(), (100 * r + k) as f64, "row {r}, column {k} of {w}");
                }
            }
        }
    }

    #[test]
    fn every_number_finds_its_slot() {
        for arch in instruction_sets() {
            arch.dispatch(crate::simd::Adapter(Numbered::<f64>(Default::default())));
            arch.dispatch(crate::simd::Adapter(Numbered::<f32>(Default::default())));
        }
    }
}
