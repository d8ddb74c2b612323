//! Pair kernels of straight segments: u = Γ F h C, h = (1/|r1| + 1/|r2|)/e, e = |r1||r2| + r1·r2; see `math::biot_savart`.
//!
//! Enters: one segment and lanes of targets. Leaves: 3 or 12 sums. Here C = λ × r with λ = ℓ/2^n, |λ| in [1, 2), taken
//! from the nearer end point, by products without fused rounding: on the line it is exactly zero where the products are.
//! A mask makes the contribution zero there. Between the points 1/e = q/(2^2n |C|²), q = |r1||r2| + |r1·r2|.
//! Beside the segment the roundings of r, λ and their products, eps of |r|, are eps |r|/ρ of C: where that is too much for
//! any lane, C is computed again with the rounding errors carried along (`cross_beside`).

use std::marker::PhantomData;

use super::particles::tiny;
use super::sources::{Record, Segment};
use super::special::{exp_end, exponential};
use super::sweep::{PairKernel, Targets};
use crate::math::biot_savart::NARROW;
use crate::simd::{Lane, LaneMask, Real, Simd};

#[inline(always)]
fn constant<S: Simd, T: Real>(s: S, x: f64) -> Lane<S, T> {
    Lane::splat(s, T::of(x))
}

#[inline(always)]
fn dot<S: Simd, T: Real>(a: [Lane<S, T>; 3], b: [Lane<S, T>; 3]) -> Lane<S, T> {
    a[2].fma(b[2], a[1].fma(b[1], a[0] * b[0]))
}

/// a × b, every product rounded.
#[inline(always)]
fn cross<S: Simd, T: Real>(a: [Lane<S, T>; 3], b: [Lane<S, T>; 3]) -> [Lane<S, T>; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// a - b and its rounding error.
#[inline(always)]
fn difference<S: Simd, T: Real>(a: Lane<S, T>, b: Lane<S, T>) -> [Lane<S, T>; 2] {
    let d = a - b;
    let t = d - a;
    [d, (a - (d - t)) - (b + t)]
}

/// a b - c d of unevaluated sums, to the last places of the products' lower halves.
#[inline(always)]
fn difference_of_products<S: Simd, T: Real>(
    a: [Lane<S, T>; 2],
    b: [Lane<S, T>; 2],
    c: [Lane<S, T>; 2],
    d: [Lane<S, T>; 2],
) -> Lane<S, T> {
    let (p, q) = (a[0] * b[0], c[0] * d[0]);
    let errors = a[0].fma(b[0], -p) - c[0].fma(d[0], -q);
    let [high, low] = difference(p, q);
    let mixed = (a[0] * b[1] - c[1] * d[0]) + (a[1] * b[0] - c[0] * d[1]);
    high + (low + errors + mixed)
}

/// Where ρ is below this share of the distance to the nearer end, C is computed by `cross_beside`: there its plain rounding
/// error is some 7e-8/32⁻¹ = 2e-6 of the pair in f32, and 5e-13 in f64.
pub fn beside<T: Real>() -> f64 {
    if T::IS_F64 { 2f64.powi(-12) } else { 2f64.powi(-5) }
}

/// Component `i` of λ and of x - end, `end` the nearer one.
#[inline(always)]
fn sides<S: Simd, T: Real, R: Record<T, Segment<T>>>(
    s: S,
    record: &R,
    x: &Targets<S, T>,
    first: LaneMask<S, T>,
    i: usize,
) -> ([Lane<S, T>; 2], [Lane<S, T>; 2]) {
    let source = record.whole();
    let (p1, p2) = (Lane::splat(s, source.p1[i]), Lane::splat(s, source.p2[i]));
    let (mut l, mut r) = (difference(p2, p1), difference(x.x[i], first.select(p1, p2)));
    if R::SPLIT {
        let (p1, p2) = (Lane::splat(s, record.low(0)[i]), Lane::splat(s, record.low(1)[i]));
        l = normal(l[0], l[1] + (p2 - p1));
        r = normal(r[0], r[1] + (x.low[i] - first.select(p1, p2)));
    }
    let unit = Lane::splat(s, source.unit);
    ([l[0] * unit, l[1] * unit], r)
}

/// a + b as a rounded value and its rounding error.
#[inline(always)]
fn normal<S: Simd, T: Real>(a: Lane<S, T>, b: Lane<S, T>) -> [Lane<S, T>; 2] {
    difference(a, -b)
}

/// λ × (x - end) from the points themselves, `end` the nearer one: as exact as the numbers that were handed over. Zero where its square
/// is at most `least`, what may be nothing but rounding.
#[inline(always)]
fn cross_beside<S: Simd, T: Real, R: Record<T, Segment<T>>>(
    s: S,
    record: &R,
    x: &Targets<S, T>,
    first: LaneMask<S, T>,
    least: Lane<S, T>,
) -> [Lane<S, T>; 3] {
    let ((a0, b0), (a1, b1), (a2, b2)) =
        (sides(s, record, x, first, 0), sides(s, record, x, first, 1), sides(s, record, x, first, 2));
    let c = [
        difference_of_products(a1, b2, a2, b1),
        difference_of_products(a2, b0, a0, b2),
        difference_of_products(a0, b1, a1, b0),
    ];
    let (zero, clear) = (Lane::zero(s), least.lt(dot(c, c)));
    [clear.select(c[0], zero), clear.select(c[1], zero), clear.select(c[2], zero)]
}

/// Below the square of every C that is not zero: in units of the box 2^-48 is the least that coordinates of 24 bits leave.
#[inline(always)]
fn least<S: Simd, T: Real>(s: S) -> Lane<S, T> {
    constant(s, if T::IS_F64 { 1e-200 } else { 1e-35 })
}

/// Split positions have some 46 bits of the root cube. Below these squares C may be nothing but their rounding, and the target counts as on
/// the line: |C|² with λ as long as the root cube is wide (2^-45 of it), and over the squared distance to the nearer end (2^-43 of it).
const LEAST_OF_SPLIT: i32 = -90;
const LEAST_OF_SPLIT_BY_DISTANCE: i32 = -86;

/// One segment and lanes of targets.
pub struct Pair<S: Simd, T: Real> {
    s: S,
    along: [Lane<S, T>; 3],
    v1: [Lane<S, T>; 3],
    v2: [Lane<S, T>; 3],
    c: [Lane<S, T>; 3],
    /// |C|², clamped away from zero, and whether the target is off the line.
    c2: Lane<S, T>,
    off_line: LaneMask<S, T>,
    /// 1/|r1|, 1/|r2| and |r1||r2|.
    i1: Lane<S, T>,
    i2: Lane<S, T>,
    p: Lane<S, T>,
    /// |r1||r2| + |r1·r2|, and whether r1·r2 < 0.
    q: Lane<S, T>,
    between: LaneMask<S, T>,
    core: Core<S, T>,
    /// 2^(-n), 1/|λ|²
    unit: Lane<S, T>,
    inverse: Lane<S, T>,
}

impl<S: Simd, T: Real> Pair<S, T> {
    #[inline(always)]
    fn new<R: Record<T, Segment<T>>>(s: S, record: &R, x: &Targets<S, T>) -> Self {
        let source = record.whole();
        let l = source.along;
        let along = [Lane::splat(s, l[0]), Lane::splat(s, l[1]), Lane::splat(s, l[2])];
        let (v1, v2) = (x.from(s, record, source.p1, 0), x.from(s, record, source.p2, 1));
        let (s1, s2, inner) = (dot(v1, v1), dot(v2, v2), dot(v1, v2));
        let first = s1.lt(s2);
        let nearer = [first.select(v1[0], v2[0]), first.select(v1[1], v2[1]), first.select(v1[2], v2[2])];
        let (mut c, zero) = (cross(along, nearer), Lane::zero(s));
        let mut c2 = dot(c, c);
        // |λ| < 2
        let nearest = s1.min(s2);
        let narrow = nearest * constant(s, 4.0 * beside::<T>().powi(2));
        if c2.lt(inner.lt(zero).select(narrow, zero)).any() {
            let least = if R::SPLIT {
                let by_distance = nearest * constant(s, 2f64.powi(LEAST_OF_SPLIT_BY_DISTANCE));
                by_distance.max(constant(s, 2f64.powi(LEAST_OF_SPLIT)))
            } else {
                // See `rounding_beside`: |λ|² 2^-104 (|ℓ|² + |x|²).
                let (square, digit) = (dot(along, along), constant(s, 2f64.powi(-52)) / Lane::splat(s, source.unit));
                let unknown = square * (square * digit * digit + dot(x.x, x.x) * constant(s, 2f64.powi(-104)));
                let angle = constant(s, NARROW) * Lane::splat(s, source.unit * source.unit) * s1 * s2;
                inner.lt(zero).select(unknown.min(angle), zero)
            };
            c = cross_beside(s, record, x, first, least);
            c2 = dot(c, c);
        }
        let (s1, s2) = (s1.max(tiny(s)), s2.max(tiny(s)));
        let (i1, i2) = (s1.rsqrt(), s2.rsqrt());
        let p = (s1 * i1) * (s2 * i2);
        Pair {
            s,
            along,
            v1,
            v2,
            c,
            c2: c2.max(least(s)),
            off_line: Lane::splat(s, source.on_line).lt(c2),
            i1,
            i2,
            p,
            q: p + inner.abs(),
            between: inner.lt(zero),
            core: Core { k: Lane::splat(s, source.k), lift: Lane::splat(s, source.lift) },
            unit: Lane::splat(s, source.unit),
            inverse: Lane::splat(s, source.inverse),
        }
    }

    /// See `SegmentLaw::slopes`; F and H given.
    #[inline(always)]
    fn slopes(&self, f: Lane<S, T>, big_h: Lane<S, T>) -> [Lane<S, T>; 3] {
        let h = self.h();
        let (b, m) = self.b_m();
        [f * h, -(f * b), -(h * big_h + f * m)]
    }

    /// h = (1/|r1| + 1/|r2|)/e
    #[inline(always)]
    fn h(&self) -> Lane<S, T> {
        let inside = self.between.select(self.q * (self.unit * self.unit), constant(self.s, 1.0));
        (self.i1 + self.i2) * (inside / self.between.select(self.c2, self.q))
    }

    /// ∇h = -b λ + …, b = (z1+z2)/|λ| (…), and m = (z1/r1³ - z2/r2³)/|ℓ| as in the oracle.
    #[inline(always)]
    fn b_m(&self) -> (Lane<S, T>, Lane<S, T>) {
        let (s, i1, i2) = (self.s, self.i1, self.i2);
        let (z1, z2) = (dot(self.v1, self.along), dot(self.v2, self.along));
        let z = z1 + z2;
        let (c1, c2) = (i1 * i1 * i1, i2 * i2 * i2);
        let pp = i1 * i2;
        // 1/(p (r1+r2)) = (i1 i2)²/(i1+i2)
        let b = z * self.inverse * (i1.fma(i1, i2.fma(i2, pp))) * (pp * pp / (i1 + i2));
        let outside = (c1 + c2 - z * b) * constant(s, 0.5);
        let inside = (z1 * c1 - z2 * c2) * (self.inverse * self.unit);
        (b, z1.abs().min(z2.abs()).lt((z1 - z2).abs()).select(inside, outside))
    }
}

/// What a regularization needs of the core radius: `k`, and for Vatistas `lift`.
#[derive(Clone, Copy)]
pub struct Core<S: Simd, T: Real> {
    k: Lane<S, T>,
    lift: Lane<S, T>,
}

/// One regularization: `value` = F h; `slopes` = F h and the components of its gradient along λ and along (C × λ)/|C|², a
/// vector as long as ρ's inverse: in f32 the square of |C|² would leave the range of numbers beside a line.
pub trait SegmentLaw: 'static {
    /// What a core changes, to be added to an expansion.
    const IS_CORRECTION: bool;
    fn value<S: Simd, T: Real>(p: &Pair<S, T>) -> Lane<S, T>;
    fn slopes<S: Simd, T: Real>(p: &Pair<S, T>) -> [Lane<S, T>; 3];
}

/// A factor that depends on the distance to the line: F/|C|² = num/den, and F and H for the gradient.
pub trait LineLaw: 'static {
    const IS_DEFICIT: bool = false;
    fn ratio<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>);
    fn profile<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>);

    /// (F-1)/|C|²
    #[inline(always)]
    fn ratio_deficit<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let (f, _) = Self::profile_deficit(s, c2, core);
        (f, c2)
    }
    /// F-1, H-2
    #[inline(always)]
    fn profile_deficit<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let (f, h) = Self::profile(s, c2, core);
        (f - constant(s, 1.0), h - constant(s, 2.0))
    }
}

pub struct Singular;
impl LineLaw for Singular {
    #[inline(always)]
    fn ratio<S: Simd, T: Real>(s: S, c2: Lane<S, T>, _: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        (constant(s, 1.0), c2)
    }
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, _: Lane<S, T>, _: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        (constant(s, 1.0), constant(s, 2.0))
    }
}

/// k = c² |λ|²
pub struct Rankine;
impl LineLaw for Rankine {
    #[inline(always)]
    fn ratio<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        (constant(s, 1.0), c2.max(core.k))
    }
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let inside = c2.lt(core.k);
        (inside.select(c2 / core.k, constant(s, 1.0)), inside.select(Lane::zero(s), constant(s, 2.0)))
    }
}

/// k = 1.25643/(c² |λ|²)
pub struct LambOseen;
impl LineLaw for LambOseen {
    #[inline(always)]
    fn ratio<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        (exponential((c2 * core.k).min(constant(s, exp_end::<T>()))).0, c2)
    }
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let y = (c2 * core.k).min(constant(s, exp_end::<T>()));
        let (f, e) = exponential(y);
        let h = y.fnma(e, f);
        (f, h + h)
    }
    #[inline(always)]
    fn profile_deficit<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let y = (c2 * core.k).min(constant(s, exp_end::<T>()));
        let (_, e) = exponential(y);
        let h = y.fma(e, e);
        (-e, -(h + h))
    }
}

/// k = (g c² |λ|²)², lift g: F = |C|²g/√((|C|²g)² + k). Where the core is small or none, g is so large that in f32 the
/// square of the least |C|² is a number; else it is one.
pub struct Vatistas;
impl Vatistas {
    /// |C|²g and F/(|C|²g)
    #[inline(always)]
    fn parts<S: Simd, T: Real>(c2: Lane<S, T>, core: Core<S, T>) -> [Lane<S, T>; 2] {
        let c2 = if T::IS_F64 { c2 } else { c2 * core.lift };
        [c2, c2.fma(c2, core.k).rsqrt()]
    }
}
impl LineLaw for Vatistas {
    #[inline(always)]
    fn ratio<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let [_, ratio] = Self::parts(c2, core);
        (if T::IS_F64 { ratio } else { ratio * core.lift }, constant(s, 1.0))
    }
    #[inline(always)]
    fn profile<S: Simd, T: Real>(_: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let [c2, ratio] = Self::parts(c2, core);
        let f = c2 * ratio;
        (f, f * (f + f) * f)
    }
}

/// k = c² |λ|²
pub struct Scully;
impl LineLaw for Scully {
    #[inline(always)]
    fn ratio<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        (constant(s, 1.0), c2 + core.k)
    }
    #[inline(always)]
    fn profile<S: Simd, T: Real>(_: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let f = c2 / (c2 + core.k);
        (f, f * (f + f))
    }
    #[inline(always)]
    fn profile_deficit<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        let missing = -(core.k / (c2 + core.k));
        let f = missing + constant(s, 1.0);
        (missing, (missing + missing) * (f + constant(s, 1.0)))
    }
}

/// F - 1 in place of F.
pub struct Deficit<L>(PhantomData<L>);
impl<L: LineLaw> LineLaw for Deficit<L> {
    const IS_DEFICIT: bool = true;
    #[inline(always)]
    fn ratio<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        L::ratio_deficit(s, c2, core)
    }
    #[inline(always)]
    fn profile<S: Simd, T: Real>(s: S, c2: Lane<S, T>, core: Core<S, T>) -> (Lane<S, T>, Lane<S, T>) {
        L::profile_deficit(s, c2, core)
    }
}

impl<L: LineLaw> SegmentLaw for L {
    const IS_CORRECTION: bool = L::IS_DEFICIT;
    /// One division: (1/|r1|+1/|r2|) F/|C|² · (|C|²/q outside, q/2^2n between the points).
    #[inline(always)]
    fn value<S: Simd, T: Real>(p: &Pair<S, T>) -> Lane<S, T> {
        let (num, den) = L::ratio(p.s, p.c2, p.core);
        let one = constant(p.s, 1.0);
        let num = num * p.between.select(p.q * (p.unit * p.unit), p.c2);
        let den = den * p.between.select(one, p.q);
        (p.i1 + p.i2) * (num / den)
    }
    #[inline(always)]
    fn slopes<S: Simd, T: Real>(p: &Pair<S, T>) -> [Lane<S, T>; 3] {
        let (f, h) = L::profile(p.s, p.c2, p.core);
        p.slopes(f, h)
    }
}

/// k = c² |ℓ|²: the singular velocity times φ = D/(D + k), D = |r1||r2| e; `CORRECTION`: φ - 1 in its place.
pub struct Offset<const CORRECTION: bool>;
impl<const CORRECTION: bool> Offset<CORRECTION> {
    /// D
    #[inline(always)]
    fn d<S: Simd, T: Real>(p: &Pair<S, T>) -> Lane<S, T> {
        let square = p.unit * p.unit;
        let between = p.c2 / (square * p.q).max(constant(p.s, if T::IS_F64 { 1e-300 } else { 1e-37 }));
        p.p * p.between.select(between, p.q)
    }
}
impl<const CORRECTION: bool> SegmentLaw for Offset<CORRECTION> {
    const IS_CORRECTION: bool = CORRECTION;
    #[inline(always)]
    fn value<S: Simd, T: Real>(p: &Pair<S, T>) -> Lane<S, T> {
        let d = Self::d(p);
        let u = (p.i1 + p.i2) * p.p / (d + p.core.k);
        if CORRECTION { -(u * p.core.k) / d } else { u }
    }
    #[inline(always)]
    fn slopes<S: Simd, T: Real>(p: &Pair<S, T>) -> [Lane<S, T>; 3] {
        let d = Self::d(p);
        let one = constant(p.s, 1.0);
        let inverse = one / (d + p.core.k);
        let (phi, missing) = (d * inverse, p.core.k * inverse);
        let (value, square) = if CORRECTION { (-missing, -missing * (one + phi)) } else { (phi, phi * phi) };
        let extra = missing * inverse;
        let h = p.h();
        let (b, m) = p.b_m();
        let cosines = dot(p.v1, p.along) * p.i1 + dot(p.v2, p.along) * p.i2;
        let along = (cosines * extra * p.inverse) - square * b;
        let across = (p.i1 + p.i2) * extra * p.inverse * p.c2 - square * (h + h + m);
        [value * h, along, across]
    }
}

/// Segments that follow law `L`.
pub struct Segments<L>(PhantomData<L>);

impl<T: Real, L: SegmentLaw, R: Record<T, Segment<T>>> PairKernel<T, Segment<T>, R, 3> for Segments<L> {
    #[inline(always)]
    fn add<S: Simd>(s: S, source: &R, x: &mut Targets<S, T>, sums: &mut [Lane<S, T>; 3]) {
        let p = Pair::new(s, source, x);
        let value = L::value(&p) * Lane::splat(s, source.whole().gamma);
        let value = p.off_line.select(value, Lane::zero(s));
        for i in 0..3 {
            sums[i] = p.c[i].fma(value, sums[i]);
        }
    }
}

impl<T: Real, L: SegmentLaw, R: Record<T, Segment<T>>> PairKernel<T, Segment<T>, R, 12> for Segments<L> {
    #[inline(always)]
    fn add<S: Simd>(s: S, source: &R, x: &mut Targets<S, T>, sums: &mut [Lane<S, T>; 12]) {
        let p = Pair::new(s, source, x);
        let gamma = Lane::splat(s, source.whole().gamma);
        let [value, along, across] = L::slopes(&p);
        let zero = Lane::zero(s);
        // On the line beyond the ends the gradient of an expansion is Γ h (ℓ×): the core takes that away.
        // At an end q is p.
        let beyond = p.p.lt(p.q).select(value * gamma, zero);
        let expanded = if L::IS_CORRECTION { p.between.select(zero, beyond) } else { zero };
        let value = p.off_line.select(value * gamma, expanded);
        let along = p.off_line.select(along * gamma, zero);
        let across = p.off_line.select(across * gamma, zero);
        let (e, along, across) = if T::IS_F64 {
            (p.c, along, across / p.c2)
        } else {
            let i = p.c2.rsqrt();
            ([p.c[0] * i, p.c[1] * i, p.c[2] * i], along * (p.c2 * i), across)
        };
        let rho = cross(e, p.along);
        let mut slope = [zero; 3];
        for j in 0..3 {
            slope[j] = across.fma(rho[j], along * p.along[j]);
        }
        for i in 0..3 {
            sums[i] = p.c[i].fma(value, sums[i]);
            for j in 0..3 {
                sums[3 + 3 * i + j] = e[i].fma(slope[j], sums[3 + 3 * i + j]);
            }
        }
        // (λ × e_j)_i F h
        sums[4] = p.along[2].fnma(value, sums[4]);
        sums[6] = p.along[2].fma(value, sums[6]);
        sums[5] = p.along[1].fma(value, sums[5]);
        sums[9] = p.along[1].fnma(value, sums[9]);
        sums[8] = p.along[0].fnma(value, sums[8]);
        sums[10] = p.along[0].fma(value, sums[10]);
    }
}
