//! Pair kernels of vortex particles: u = a × d S(r), ∂u_i/∂x_j = (a × e_j)_i S + (a × d)_i (S'/r) d_j.
//!
//! Enters: one particle and lanes of targets. Leaves: 3 or 12 sums. A target on the particle adds zero: d = 0 for the
//! velocity, where S stays finite; a mask for the gradient.

use std::marker::PhantomData;

use super::sources::{Particle, Record};
use super::special::{exp_end, exponential, gauss_end, gauss_erf};
use super::sweep::{Doubles, PairKernel, Targets};
use crate::options::Regularization;
use crate::simd::{Lane, Real, Simd, each};

/// Below every squared distance in use, and so that no power of it overflows (f64) or is used unmasked (f32).
#[inline(always)]
pub fn tiny<S: Simd, T: Real>(s: S) -> Lane<S, T> {
    Lane::splat(s, T::of(if T::IS_F64 { 1e-100 } else { 1e-24 }))
}

#[inline(always)]
fn constant<S: Simd, T: Real>(s: S, x: f64) -> Lane<S, T> {
    Lane::splat(s, T::of(x))
}

/// In f32 r⁻⁵ is no number at r = 2e-8: the second radial function is so much smaller, and d as much larger.
fn down<T: Real>() -> f64 {
    if T::IS_F64 { 1.0 } else { 2f64.powi(-60) }
}

/// The radial functions of one regularization; `r2` = r², `k` of the source. What is not used is not computed.
pub trait ParticleLaw: 'static {
    /// What the `k` of its sources is for.
    const REGULARIZATION: Regularization;
    /// (S, `down` S'/r)
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>);

    /// The same minus the singular kernel. A difference is good enough where S is algebraic: its error is a few units in
    /// the last place of the singular kernel, to which it is added in the end.
    #[inline(always)]
    fn deficit<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let (a, b) = (Self::profile(s, r2, k), Singular::profile(s, r2, k));
        (a.0 - b.0, a.1 - b.1)
    }
}

/// (S, `down` S'/r) = (g/r³, -3 `down` G/r⁵)
#[inline(always)]
fn scaled<S: Simd, T: Real>(s: S, y: Lane<S, T>, g: Lane<S, T>, slope: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
    let y2 = y * y;
    let y3 = y2 * y;
    (g * y3, slope * ((y3 * constant(s, -3.0 * down::<T>())) * y2))
}

pub struct Singular;
impl ParticleLaw for Singular {
    const REGULARIZATION: Regularization = Regularization::None;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, _: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let [y3, y2] = r2.max(tiny(s)).inverses();
        (y3, y3 * constant(s, -3.0 * down::<T>()) * y2)
    }
}

/// k = 1/c
pub struct GaussErf;
impl GaussErf {
    #[inline(always)]
    fn parts<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, [Lane<S, T>; 3], Lane<S, T>) {
        let r2 = r2.max(tiny(s));
        let y = r2.rsqrt();
        let q = (r2 * y * k).min(constant(s, gauss_end::<T>()));
        (y, gauss_erf(q), q)
    }
}
impl ParticleLaw for GaussErf {
    const REGULARIZATION: Regularization = Regularization::GaussErf;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let (y, [g, slope, _], _) = Self::parts(s, r2, k);
        scaled(s, y, g, slope)
    }
    #[inline(always)]
    fn deficit<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let (y, [_, slope, missing], _) = Self::parts(s, r2, k);
        scaled(s, y, -missing, slope - constant(s, 1.0))
    }
}

/// k = 1/c: g = 1 - e^(-y), G = g - y e^(-y), y = (r/c)³.
pub struct Exponential;
impl Exponential {
    #[inline(always)]
    fn parts<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> [Lane<S, T>; 4] {
        let r2 = r2.max(tiny(s));
        let y = r2.rsqrt();
        let q = (r2 * y * k).min(constant(s, exp_end::<T>().cbrt() * 0.999_999));
        let t = q * q * q;
        let (g, e) = exponential(t);
        [y, g, e, t]
    }
}
impl ParticleLaw for Exponential {
    const REGULARIZATION: Regularization = Regularization::Exponential;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let [y, g, e, t] = Self::parts(s, r2, k);
        scaled(s, y, g, t.fnma(e, g))
    }
    #[inline(always)]
    fn deficit<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let [y, _, e, t] = Self::parts(s, r2, k);
        scaled(s, y, -e, -t.fma(e, e))
    }
}

/// k = c⁶ in f64; c² in f32, where sixth powers of small lengths underflow: there lengths are taken in units of
/// max(r, c).
pub struct Compact;
impl ParticleLaw for Compact {
    const REGULARIZATION: Regularization = Regularization::Compact;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let r2 = r2.max(tiny(s));
        let r4 = r2 * r2;
        if T::IS_F64 {
            let y = r4.fma(r2, k).rsqrt();
            return (y, r4 * (y * y * y) * constant(s, -3.0));
        }
        let y = r2.max(k).rsqrt();
        let y2 = y * y;
        let (a, b) = (r2 * y2, k * y2);
        let t = (a * a * a + b * b * b).rsqrt();
        let y3 = y2 * y;
        (y3 * t, a * a * (t * t * t) * (y3 * constant(s, -3.0 * down::<T>()) * y2))
    }
}

/// k = c²
pub struct Rosenhead;
impl ParticleLaw for Rosenhead {
    const REGULARIZATION: Regularization = Regularization::Rosenhead;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        Singular::profile(s, r2 + k, k)
    }
}

/// k = c²
pub struct Winckelmans;
impl ParticleLaw for Winckelmans {
    const REGULARIZATION: Regularization = Regularization::Winckelmans;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let r2 = r2.max(tiny(s));
        let y = (r2 + k).rsqrt();
        let y2 = y * y;
        scaled(s, y, k.fma(constant(s, 2.5), r2) * y2, k.fma(constant(s, 3.5), r2) * y2)
    }
}

/// k = 1/c²: S = 1/(r max(r, c)²).
pub struct Polynomial;
impl ParticleLaw for Polynomial {
    const REGULARIZATION: Regularization = Regularization::Polynomial;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let y = r2.max(tiny(s)).rsqrt();
        let y2 = y * y;
        let slope = k.lt(y2).select(k, y2 * constant(s, 3.0));
        (y * y2.min(k), y2 * y * constant(s, -down::<T>()) * slope)
    }
}

/// Regularized minus singular.
pub struct Deficit<L>(PhantomData<L>);
impl<L: ParticleLaw> ParticleLaw for Deficit<L> {
    const REGULARIZATION: Regularization = L::REGULARIZATION;
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, r2: Lane<S, T>, k: Lane<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        L::deficit(s, r2, k)
    }
}

/// Particles that follow law `L`; with `APART` in single precision: close pairs are left out.
pub struct Particles<L, const APART: bool = false>(PhantomData<L>);

/// d = x - X, r², a, a × d.
struct Pair<S: Simd, T: Real> {
    d: [Lane<S, T>; 3],
    r2: Lane<S, T>,
    a: [Lane<S, T>; 3],
    c: [Lane<S, T>; 3],
}

/// d and r²
#[inline(always)]
fn distance<S: Simd, T: Real, R: Record<T, Particle<T>>>(
    s: S,
    record: &R,
    x: &Targets<S, T>,
) -> ([Lane<S, T>; 3], Lane<S, T>) {
    let d = x.from(s, record, record.whole().position, 0);
    (d, d[2].fma(d[2], d[1].fma(d[1], d[0] * d[0])))
}

#[inline(always)]
fn pair<S: Simd, T: Real, R: Record<T, Particle<T>>>(s: S, record: &R, x: &Targets<S, T>) -> Pair<S, T> {
    let source = record.whole();
    let a =
        [Lane::splat(s, source.strength[0]), Lane::splat(s, source.strength[1]), Lane::splat(s, source.strength[2])];
    let (d, r2) = distance(s, record, x);
    let c = [a[2].fnma(d[1], a[1] * d[2]), a[0].fnma(d[2], a[2] * d[0]), a[1].fnma(d[0], a[0] * d[1])];
    Pair { d, r2, a, c }
}

/// The field of one particle at the targets `at` by the kernel in double precision.
#[inline(always)]
fn in_double<S: Simd, T: Real, L: ParticleLaw, R: Record<T, Particle<T>>, const N: usize>(
    s: S,
    source: &R,
    at: &[Doubles; 3],
) -> [Doubles; N]
where
    Particles<L>: PairKernel<f64, Particle<f64>, Particle<f64>, N>,
{
    let (whole, low) = (source.whole(), source.low(0));
    let position = each(|i| whole.position[i].f64() + low[i].f64());
    let source = Particle::<f64>::of(L::REGULARIZATION, position, whole.strength.map(T::f64), whole.core.f64());
    let zero = Lane::<S, f64>::zero(s);
    let lanes = Lane::<S, f64>::LANES;
    let mut field = [[0.0; 16]; N];
    for first in (0..Lane::<S, T>::LANES).step_by(lanes) {
        let x = each(|i| Lane::load(s, &at[i][first..]));
        let mut x = Targets { x, low: [zero; 3], close: zero, least: zero };
        let mut sums = [zero; N];
        Particles::<L>::add(s, &source, &mut x, &mut sums);
        for (field, sum) in field.iter_mut().zip(sums) {
            sum.store(&mut field[first..]);
        }
    }
    field
}

impl<T: Real, L: ParticleLaw, R: Record<T, Particle<T>>, const APART: bool> PairKernel<T, Particle<T>, R, 3>
    for Particles<L, APART>
{
    const CLOSE_APART: bool = APART;

    #[inline(always)]
    fn add<S: Simd>(s: S, source: &R, x: &mut Targets<S, T>, sums: &mut [Lane<S, T>; 3]) {
        let p = pair(s, source, x);
        let (mut value, _) = L::profile(s, p.r2, Lane::splat(s, source.whole().k));
        if APART {
            value = x.are_close(p.r2).select(Lane::zero(s), value);
        }
        for i in 0..3 {
            sums[i] = p.c[i].fma(value, sums[i]);
        }
    }

    #[inline(always)]
    fn squares<S: Simd>(s: S, source: &R, x: &Targets<S, T>) -> Lane<S, T> {
        distance(s, source, x).1
    }

    #[inline(always)]
    fn in_double<S: Simd>(s: S, source: &R, at: &[Doubles; 3]) -> [Doubles; 3] {
        in_double::<S, T, L, R, 3>(s, source, at)
    }
}

impl<T: Real, L: ParticleLaw, R: Record<T, Particle<T>>, const APART: bool> PairKernel<T, Particle<T>, R, 12>
    for Particles<L, APART>
{
    const CLOSE_APART: bool = APART;

    #[inline(always)]
    fn add<S: Simd>(s: S, source: &R, x: &mut Targets<S, T>, sums: &mut [Lane<S, T>; 12]) {
        let p = pair(s, source, x);
        let zero = Lane::zero(s);
        let (value, slope) = L::profile(s, p.r2, Lane::splat(s, source.whole().k));
        let (value, slope) = if APART {
            let is_close = x.are_close(p.r2);
            (is_close.select(zero, value), is_close.select(zero, slope))
        } else {
            let apart = zero.lt(p.r2);
            (apart.select(value, zero), apart.select(slope, zero))
        };
        let w = [p.c[0] * slope, p.c[1] * slope, p.c[2] * slope];
        let up = constant(s, 1.0 / down::<T>());
        let d = if T::IS_F64 { p.d } else { [p.d[0] * up, p.d[1] * up, p.d[2] * up] };
        for i in 0..3 {
            sums[i] = p.c[i].fma(value, sums[i]);
            for j in 0..3 {
                sums[3 + 3 * i + j] = w[i].fma(d[j], sums[3 + 3 * i + j]);
            }
        }
        // (a × e_j)_i S: [1][0] and [0][1] hold ±a_z, and so on.
        sums[4] = p.a[2].fnma(value, sums[4]);
        sums[6] = p.a[2].fma(value, sums[6]);
        sums[5] = p.a[1].fma(value, sums[5]);
        sums[9] = p.a[1].fnma(value, sums[9]);
        sums[8] = p.a[0].fnma(value, sums[8]);
        sums[10] = p.a[0].fma(value, sums[10]);
    }

    #[inline(always)]
    fn squares<S: Simd>(s: S, source: &R, x: &Targets<S, T>) -> Lane<S, T> {
        distance(s, source, x).1
    }

    #[inline(always)]
    fn in_double<S: Simd>(s: S, source: &R, at: &[Doubles; 3]) -> [Doubles; 12] {
        in_double::<S, T, L, R, 12>(s, source, at)
    }
}
