//! Lanes: one arithmetic type over every instruction set, chosen at run time by crate `pulp`.
//!
//! `Lane<S, T>` holds as many `T` (f32 or f64) as a register of instruction set `S` does and has the usual operators.
//! A kernel implements `Kernel<T>` once; `dispatch` runs it with the best set this machine has.
//! Everything that touches a lane must be `#[inline(always)]`, or it is compiled without the instruction set.

pub mod dense;
mod transpose;

#[cfg(target_arch = "x86_64")]
use std::any::TypeId;
use std::fmt::{Debug, Display};
use std::mem::size_of;
#[cfg(target_arch = "x86_64")]
use std::mem::transmute_copy;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::inputs::RealsMut;
use once_cell::sync::Lazy;
pub use pulp::Simd;

/// The values that `of` gives for 0, 1, …, N-1. Unlike `std::array::from_fn` and an array's `map` it is never a call of its own, which would be
/// compiled without the instruction set.
#[inline(always)]
pub fn each<V: Copy, const N: usize>(of: impl Fn(usize) -> V) -> [V; N] {
    let mut all = [of(0); N];
    for k in 1..N {
        all[k] = of(k);
    }
    all
}

/// The two precisions of the computation.
pub trait Real:
    Copy
    + Send
    + Sync
    + Debug
    + Display
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + std::iter::Sum
    + 'static
{
    /// Register of `S` filled with this type, and the mask of a comparison.
    type Of<S: Simd>: Copy + Debug;
    type Mask<S: Simd>: Copy;
    const ZERO: Self;
    const ONE: Self;
    const EPSILON: Self;
    const IS_F64: bool;

    fn of(x: f64) -> Self;
    fn f64(self) -> f64;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn max(self, o: Self) -> Self;
    fn min(self, o: Self) -> Self;
    fn is_finite(self) -> bool;
    /// The array itself where it is of this type and on the host.
    fn own(array: RealsMut<'_>) -> Result<&mut [Self], RealsMut<'_>>;

    fn splat<S: Simd>(s: S, x: Self) -> Self::Of<S>;
    fn vadd<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    fn vsub<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    fn vmul<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    fn vdiv<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    fn negate<S: Simd>(s: S, a: Self::Of<S>) -> Self::Of<S>;
    fn vabs<S: Simd>(s: S, a: Self::Of<S>) -> Self::Of<S>;
    /// a b + c
    fn fma<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>, c: Self::Of<S>) -> Self::Of<S>;
    /// c - a b
    fn fnma<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>, c: Self::Of<S>) -> Self::Of<S>;
    fn vmax<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    fn vmin<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    fn vsqrt<S: Simd>(s: S, a: Self::Of<S>) -> Self::Of<S>;
    /// 1/√a to a few units in the last place, for normal a > 0.
    fn rsqrt<S: Simd>(s: S, a: Self::Of<S>) -> Self::Of<S>;
    /// a^(-3/2) and 1/a, as good.
    fn inverses<S: Simd>(s: S, a: Self::Of<S>) -> [Self::Of<S>; 2];
    fn less<S: Simd>(s: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Mask<S>;
    fn select<S: Simd>(s: S, m: Self::Mask<S>, yes: Self::Of<S>, no: Self::Of<S>) -> Self::Of<S>;
    fn any<S: Simd>(s: S, m: Self::Mask<S>) -> bool;
    fn reduce_sum<S: Simd>(s: S, a: Self::Of<S>) -> Self;
}

macro_rules! real {
    ($t:ident, $host:ident, $f64:expr, $vt:ident, $mt:ident, $rsqrt:ident $inverses:ident,
     $splat:ident $add:ident $sub:ident $mul:ident $div:ident $neg:ident $abs:ident $fma:ident $fnma:ident
     $max:ident $min:ident $sqrt:ident $lt:ident $select:ident $first:ident $sum:ident $lanes:ident) => {
        impl Real for $t {
            type Of<S: Simd> = S::$vt;
            type Mask<S: Simd> = S::$mt;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const EPSILON: Self = $t::EPSILON;
            const IS_F64: bool = $f64;

            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn max(self, o: Self) -> Self {
                $t::max(self, o)
            }
            #[inline(always)]
            fn min(self, o: Self) -> Self {
                $t::min(self, o)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            fn own(array: RealsMut<'_>) -> Result<&mut [Self], RealsMut<'_>> {
                match array {
                    RealsMut::$host(v) => Ok(v),
                    other => Err(other),
                }
            }
            #[inline(always)]
            fn splat<S: Simd>(s: S, x: Self) -> S::$vt {
                s.$splat(x)
            }
            #[inline(always)]
            fn vadd<S: Simd>(s: S, a: S::$vt, b: S::$vt) -> S::$vt {
                s.$add(a, b)
            }
            #[inline(always)]
            fn vsub<S: Simd>(s: S, a: S::$vt, b: S::$vt) -> S::$vt {
                s.$sub(a, b)
            }
            #[inline(always)]
            fn vmul<S: Simd>(s: S, a: S::$vt, b: S::$vt) -> S::$vt {
                s.$mul(a, b)
            }
            #[inline(always)]
            fn vdiv<S: Simd>(s: S, a: S::$vt, b: S::$vt) -> S::$vt {
                s.$div(a, b)
            }
            #[inline(always)]
            fn negate<S: Simd>(s: S, a: S::$vt) -> S::$vt {
                s.$neg(a)
            }
            #[inline(always)]
            fn vabs<S: Simd>(s: S, a: S::$vt) -> S::$vt {
                s.$abs(a)
            }
            #[inline(always)]
            fn fma<S: Simd>(s: S, a: S::$vt, b: S::$vt, c: S::$vt) -> S::$vt {
                s.$fma(a, b, c)
            }
            #[inline(always)]
            fn fnma<S: Simd>(s: S, a: S::$vt, b: S::$vt, c: S::$vt) -> S::$vt {
                s.$fnma(a, b, c)
            }
            #[inline(always)]
            fn vmax<S: Simd>(s: S, a: S::$vt, b: S::$vt) -> S::$vt {
                s.$max(a, b)
            }
            #[inline(always)]
            fn vmin<S: Simd>(s: S, a: S::$vt, b: S::$vt) -> S::$vt {
                s.$min(a, b)
            }
            #[inline(always)]
            fn vsqrt<S: Simd>(s: S, a: S::$vt) -> S::$vt {
                s.$sqrt(a)
            }
            #[inline(always)]
            fn rsqrt<S: Simd>(s: S, a: S::$vt) -> S::$vt {
                $rsqrt(s, a)
            }
            #[inline(always)]
            fn inverses<S: Simd>(s: S, a: S::$vt) -> [S::$vt; 2] {
                $inverses(s, a)
            }
            #[inline(always)]
            fn less<S: Simd>(s: S, a: S::$vt, b: S::$vt) -> S::$mt {
                s.$lt(a, b)
            }
            #[inline(always)]
            fn select<S: Simd>(s: S, m: S::$mt, yes: S::$vt, no: S::$vt) -> S::$vt {
                s.$select(m, yes, no)
            }
            #[inline(always)]
            fn any<S: Simd>(s: S, m: S::$mt) -> bool {
                s.$first(m) < S::$lanes
            }
            #[inline(always)]
            fn reduce_sum<S: Simd>(s: S, a: S::$vt) -> Self {
                s.$sum(a)
            }
        }
    };
}

real!(f64, HostF64, true, f64s, m64s, rsqrt_f64 inverses_f64,
    splat_f64s add_f64s sub_f64s mul_f64s div_f64s neg_f64s abs_f64s mul_add_f64s negate_mul_add_f64s
    max_f64s min_f64s sqrt_f64s less_than_f64s select_f64s first_true_m64s reduce_sum_f64s F64_LANES);
real!(f32, HostF32, false, f32s, m32s, rsqrt_f32 inverses_f32,
    splat_f32s add_f32s sub_f32s mul_f32s div_f32s neg_f32s abs_f32s mul_add_f32s negate_mul_add_f32s
    max_f32s min_f32s sqrt_f32s less_than_f32s select_f32s first_true_m32s reduce_sum_f32s F32_LANES);

/// Reinterprets a register as another of the same size.
///
/// # Safety
/// Both must be plain lanes of the same size; used only where a `TypeId` proved that `S` is one concrete set.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
unsafe fn same<A: Copy, B: Copy>(a: A) -> B {
    debug_assert_eq!(size_of::<A>(), size_of::<B>());
    // SAFETY: the caller's promise.
    unsafe { transmute_copy(&a) }
}

/// 14-bit seed and one fourth-order step on AVX-512; a root and a division elsewhere.
#[inline(always)]
fn rsqrt_f64<S: Simd>(s: S, a: S::f64s) -> S::f64s {
    #[cfg(target_arch = "x86_64")]
    if TypeId::of::<S>() == TypeId::of::<pulp::x86::V4>() {
        // SAFETY: S is V4, so its token and registers are the ones cast to.
        let y: S::f64s = unsafe {
            let v4: pulp::x86::V4 = same(s);
            same(v4.avx512f._mm512_rsqrt14_pd(same(a)))
        };
        // e = 1 - a y²; 1/√a = y (1 - e)^(-1/2) ≈ y (1 + e/2 + 3e²/8 + 5e³/16)
        let e = s.negate_mul_add_f64s(s.mul_f64s(a, y), y, s.splat_f64s(1.0));
        let q = s.mul_add_f64s(e, s.splat_f64s(0.3125), s.splat_f64s(0.375));
        let q = s.mul_add_f64s(e, q, s.splat_f64s(0.5));
        return s.mul_add_f64s(s.mul_f64s(y, e), q, y);
    }
    s.div_f64s(s.splat_f64s(1.0), s.sqrt_f64s(a))
}

/// Hardware seed and one Newton step on AVX-512 and AVX; a root and a division elsewhere.
#[inline(always)]
fn rsqrt_f32<S: Simd>(s: S, a: S::f32s) -> S::f32s {
    #[cfg(target_arch = "x86_64")]
    {
        let v4 = TypeId::of::<S>() == TypeId::of::<pulp::x86::V4>();
        let v3 = TypeId::of::<S>() == TypeId::of::<pulp::x86::V3>();
        if v4 || v3 {
            // SAFETY: S is V4 or V3, so its token and registers are the ones cast to.
            let y: S::f32s = unsafe {
                if v4 {
                    let t: pulp::x86::V4 = same(s);
                    same(t.avx512f._mm512_rsqrt14_ps(same(a)))
                } else {
                    let t: pulp::x86::V3 = same(s);
                    same(t.avx._mm256_rsqrt_ps(same(a)))
                }
            };
            let e = s.negate_mul_add_f32s(s.mul_f32s(a, y), y, s.splat_f32s(1.0));
            return s.mul_add_f32s(s.mul_f32s(y, e), s.splat_f32s(0.5), y);
        }
    }
    s.div_f32s(s.splat_f32s(1.0), s.sqrt_f32s(a))
}

#[inline(always)]
fn inverses_f64<S: Simd>(s: S, a: S::f64s) -> [S::f64s; 2] {
    let y = rsqrt_f64(s, a);
    let y2 = s.mul_f64s(y, y);
    [s.mul_f64s(y2, y), y2]
}

/// On AVX-512 the step is made with the seed's powers, which saves an operation: with e = 1 - a y², a^(-3/2) = y³ (1 - e)^(-3/2)
/// ≈ y³ (1 + 3e/2) to 15e²/8, 3e-8. The seed of AVX has too few digits for that.
#[inline(always)]
fn inverses_f32<S: Simd>(s: S, a: S::f32s) -> [S::f32s; 2] {
    #[cfg(target_arch = "x86_64")]
    if TypeId::of::<S>() == TypeId::of::<pulp::x86::V4>() {
        // SAFETY: S is V4, so its token and registers are the ones cast to.
        let y: S::f32s = unsafe {
            let t: pulp::x86::V4 = same(s);
            same(t.avx512f._mm512_rsqrt14_ps(same(a)))
        };
        let y2 = s.mul_f32s(y, y);
        let e = s.negate_mul_add_f32s(a, y2, s.splat_f32s(1.0));
        let y3 = s.mul_f32s(y2, y);
        let cube = s.mul_add_f32s(s.mul_f32s(y3, e), s.splat_f32s(1.5), y3);
        return [cube, s.mul_add_f32s(y2, e, y2)];
    }
    let y = rsqrt_f32(s, a);
    let y2 = s.mul_f32s(y, y);
    [s.mul_f32s(y2, y), y2]
}

/// One register of `T`.
#[derive(Clone, Copy)]
pub struct Lane<S: Simd, T: Real> {
    s: S,
    v: T::Of<S>,
}

/// The result of a comparison.
#[derive(Clone, Copy)]
pub struct LaneMask<S: Simd, T: Real> {
    s: S,
    m: T::Mask<S>,
}

impl<S: Simd, T: Real> LaneMask<S, T> {
    #[inline(always)]
    pub fn select(self, yes: Lane<S, T>, no: Lane<S, T>) -> Lane<S, T> {
        Lane { s: self.s, v: T::select(self.s, self.m, yes.v, no.v) }
    }
    #[inline(always)]
    pub fn any(self) -> bool {
        T::any(self.s, self.m)
    }
}

impl<S: Simd, T: Real> Lane<S, T> {
    pub const LANES: usize = size_of::<T::Of<S>>() / size_of::<T>();

    #[inline(always)]
    pub fn splat(s: S, x: T) -> Self {
        Lane { s, v: T::splat(s, x) }
    }
    #[inline(always)]
    pub fn zero(s: S) -> Self {
        Self::splat(s, T::ZERO)
    }
    /// The first `LANES` of `x`.
    #[inline(always)]
    pub fn load(s: S, x: &[T]) -> Self {
        assert!(x.len() >= Self::LANES);
        // SAFETY: the length was just checked; lanes are plain numbers.
        Lane { s, v: unsafe { x.as_ptr().cast::<T::Of<S>>().read_unaligned() } }
    }
    #[inline(always)]
    pub fn store(self, x: &mut [T]) {
        assert!(x.len() >= Self::LANES);
        // SAFETY: the length was just checked.
        unsafe { x.as_mut_ptr().cast::<T::Of<S>>().write_unaligned(self.v) }
    }
    /// # Safety
    /// `LANES` numbers must be readable at `p`.
    #[inline(always)]
    pub unsafe fn load_ptr(s: S, p: *const T) -> Self {
        // SAFETY: the caller's promise.
        Lane { s, v: unsafe { p.cast::<T::Of<S>>().read_unaligned() } }
    }
    /// # Safety
    /// `LANES` numbers must be writable at `p`.
    #[inline(always)]
    pub unsafe fn store_ptr(self, p: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<T::Of<S>>().write_unaligned(self.v) }
    }
    /// Fewer than `LANES` numbers; the rest is `fill`.
    #[inline(always)]
    pub fn load_part(s: S, x: &[T], fill: T) -> Self {
        let mut v = [fill; 16];
        let n = x.len().min(Self::LANES);
        v[..n].copy_from_slice(&x[..n]);
        Self::load(s, &v)
    }
    #[inline(always)]
    pub fn store_part(self, x: &mut [T]) {
        let mut v = [T::ZERO; 16];
        self.store(&mut v);
        let n = x.len().min(Self::LANES);
        x[..n].copy_from_slice(&v[..n]);
    }
    #[inline(always)]
    pub fn simd(self) -> S {
        self.s
    }
    #[inline(always)]
    pub fn raw(self) -> T::Of<S> {
        self.v
    }
    #[inline(always)]
    pub fn from_raw(s: S, v: T::Of<S>) -> Self {
        Lane { s, v }
    }
    /// self b + c
    #[inline(always)]
    pub fn fma(self, b: Self, c: Self) -> Self {
        Lane { s: self.s, v: T::fma(self.s, self.v, b.v, c.v) }
    }
    /// c - self b
    #[inline(always)]
    pub fn fnma(self, b: Self, c: Self) -> Self {
        Lane { s: self.s, v: T::fnma(self.s, self.v, b.v, c.v) }
    }
    #[inline(always)]
    pub fn max(self, b: Self) -> Self {
        Lane { s: self.s, v: T::vmax(self.s, self.v, b.v) }
    }
    #[inline(always)]
    pub fn min(self, b: Self) -> Self {
        Lane { s: self.s, v: T::vmin(self.s, self.v, b.v) }
    }
    #[inline(always)]
    pub fn abs(self) -> Self {
        Lane { s: self.s, v: T::vabs(self.s, self.v) }
    }
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        Lane { s: self.s, v: T::vsqrt(self.s, self.v) }
    }
    /// 1/√self for normal self > 0.
    #[inline(always)]
    pub fn rsqrt(self) -> Self {
        Lane { s: self.s, v: T::rsqrt(self.s, self.v) }
    }
    /// self^(-3/2) and 1/self for normal self > 0.
    #[inline(always)]
    pub fn inverses(self) -> [Self; 2] {
        let [a, b] = T::inverses(self.s, self.v);
        [Lane { s: self.s, v: a }, Lane { s: self.s, v: b }]
    }
    #[inline(always)]
    pub fn lt(self, b: Self) -> LaneMask<S, T> {
        LaneMask { s: self.s, m: T::less(self.s, self.v, b.v) }
    }
    #[inline(always)]
    pub fn sum(self) -> T {
        T::reduce_sum(self.s, self.v)
    }
}

macro_rules! operator {
    ($trait:ident $f:ident $v:ident) => {
        impl<S: Simd, T: Real> $trait for Lane<S, T> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, b: Self) -> Self {
                Lane { s: self.s, v: T::$v(self.s, self.v, b.v) }
            }
        }
    };
}
operator!(Add add vadd);
operator!(Sub sub vsub);
operator!(Mul mul vmul);
operator!(Div div vdiv);

impl<S: Simd, T: Real> Neg for Lane<S, T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Lane { s: self.s, v: T::negate(self.s, self.v) }
    }
}

/// A computation written once for every instruction set.
pub trait Kernel {
    type Output;
    /// Must be `#[inline(always)]`.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

struct Adapter<K>(K);

impl<K: Kernel> pulp::WithSimd for Adapter<K> {
    type Output = K::Output;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> K::Output {
        self.0.run(s)
    }
}

static ARCH: Lazy<pulp::Arch> = Lazy::new(pulp::Arch::new);

/// Runs `kernel` with the instruction set at hand as a function of its own: large code that several callers share is
/// then compiled once.
#[inline(always)]
pub fn outline<S: Simd, K: Kernel>(s: S, kernel: K) -> K::Output {
    s.vectorize(Adapter(kernel))
}

/// Runs `kernel` with the best instruction set of this machine.
#[inline(always)]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    ARCH.dispatch(Adapter(kernel))
}

/// Whether `arch` has lanes at all.
pub fn has_lanes(arch: pulp::Arch) -> bool {
    !matches!(arch, pulp::Arch::Scalar)
}

/// Runs `kernel` with the instruction set `arch`, which must have lanes: nothing is compiled for one that has none.
#[inline(always)]
pub fn dispatch_lanes<K: Kernel<Output = ()>>(arch: pulp::Arch, kernel: K) {
    #[cfg(target_arch = "x86_64")]
    match arch {
        pulp::Arch::V4(v4) => pulp::Simd::vectorize(v4, Adapter(kernel)),
        pulp::Arch::V3(v3) => pulp::Simd::vectorize(v3, Adapter(kernel)),
        _ => debug_assert!(false, "no lanes"),
    }
    #[cfg(not(target_arch = "x86_64"))]
    arch.dispatch(Adapter(kernel));
}

/// Every instruction set of this machine, plain numbers included.
pub fn instruction_sets() -> Vec<pulp::Arch> {
    #[allow(unused_mut)]
    let mut sets = vec![pulp::Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    {
        sets.extend(pulp::x86::V3::try_new().map(pulp::Arch::V3));
        sets.extend(pulp::x86::V4::try_new().map(pulp::Arch::V4));
    }
    #[cfg(not(target_arch = "x86_64"))]
    sets.extend(has_lanes(best()).then(best));
    sets
}

/// The best instruction set of this machine.
pub fn best() -> pulp::Arch {
    *ARCH
}

/// Vector registers of an instruction set; a compiler sees the number.
#[inline(always)]
pub fn registers<S: Simd>() -> usize {
    #[cfg(target_arch = "x86_64")]
    if TypeId::of::<S>() == TypeId::of::<pulp::x86::V3>() {
        return 16;
    }
    32
}

/// Name of the instruction set in use.
pub fn isa_name() -> String {
    format!("{:?}", *ARCH).chars().take_while(|c| c.is_alphanumeric()).collect()
}

struct Lanes<T>(std::marker::PhantomData<T>);

impl<T: Real> Kernel for Lanes<T> {
    type Output = usize;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        Lane::<S, T>::LANES
    }
}

/// Numbers in a register of this machine.
pub fn lanes<T: Real>() -> usize {
    dispatch(Lanes::<T>(std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Rsqrt<'a, T: Real>(&'a [T], &'a mut [T]);
    impl<T: Real> Kernel for Rsqrt<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            for (x, y) in self.0.chunks(Lane::<S, T>::LANES).zip(self.1.chunks_mut(Lane::<S, T>::LANES)) {
                Lane::<S, T>::load_part(s, x, T::ONE).rsqrt().store_part(y);
            }
        }
    }

    fn worst<T: Real>() -> f64 {
        let x: Vec<T> = (0..4000).map(|i| T::of(10f64.powf(i as f64 / 100.0 - 20.0))).collect();
        let mut y = vec![T::ZERO; x.len()];
        dispatch(Rsqrt(&x, &mut y));
        x.iter().zip(&y).map(|(x, y)| (y.f64() * x.f64().sqrt() - 1.0).abs()).fold(0.0, f64::max)
    }

    struct Inverses<'a, T: Real>(&'a [T], [&'a mut [T]; 2]);
    impl<T: Real> Kernel for Inverses<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let [cubes, squares] = self.1;
            let lanes = Lane::<S, T>::LANES;
            for ((x, c), q) in self.0.chunks(lanes).zip(cubes.chunks_mut(lanes)).zip(squares.chunks_mut(lanes)) {
                let [cube, square] = Lane::<S, T>::load_part(s, x, T::ONE).inverses();
                cube.store_part(c);
                square.store_part(q);
            }
        }
    }

    fn worst_inverses<T: Real>() -> f64 {
        let x: Vec<T> = (0..4000).map(|i| T::of(10f64.powf(i as f64 / 200.0 - 10.0))).collect();
        let [mut cubes, mut squares] = [(); 2].map(|_| vec![T::ZERO; x.len()]);
        dispatch(Inverses(&x, [&mut cubes, &mut squares]));
        let off = |((x, c), q): ((&T, &T), &T)| {
            let x = x.f64();
            (c.f64() * x * x.sqrt() - 1.0).abs().max((q.f64() * x - 1.0).abs())
        };
        x.iter().zip(&cubes).zip(&squares).map(off).fold(0.0, f64::max)
    }

    #[test]
    fn inverses_are_good_to_the_last_places() {
        assert!(worst_inverses::<f32>() < 1e-6 && worst_inverses::<f64>() < 2e-15);
    }

    #[test]
    fn reciprocal_square_root_is_good_to_the_last_places() {
        assert!(worst::<f64>() < 4.0 * f64::EPSILON, "{}", worst::<f64>());
        assert!(worst::<f32>() < 4.0 * f32::EPSILON as f64, "{}", worst::<f32>());
    }
}
