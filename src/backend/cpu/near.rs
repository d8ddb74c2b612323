//! interim scalar near field
use super::sources::{Particle, Segment};
use crate::math::biot_savart as bs;
use crate::math::regularization::Part;
use crate::options::Regularization;
use crate::simd::Real;
use std::marker::PhantomData;
use std::ops::Range;

#[derive(Default)]
pub struct SegmentSources<T>(Vec<Segment>, PhantomData<T>);
#[derive(Default)]
pub struct ParticleSources<T>(Vec<Particle>, Vec<[T; 6]>);
#[derive(Default)]
pub struct ChargeSources<T>(Vec<([f64; 3], f64)>, PhantomData<T>);
pub enum Kind {
    Segments(Regularization),
    Particles(Regularization),
    Charges,
}
impl<T> SegmentSources<T> {
    pub fn new(s: impl Iterator<Item = Segment>) -> Self {
        Self(s.collect(), PhantomData)
    }
    pub fn bytes(&self) -> u64 {
        self.0.capacity() as u64 * 64
    }
}
impl<T: Real> ParticleSources<T> {
    pub fn new(s: impl Iterator<Item = Particle>) -> Self {
        let v: Vec<Particle> = s.collect();
        let w =
            v.iter().map(|p| std::array::from_fn(|i| T::of(if i < 3 { p.x[i] } else { p.strength[i - 3] }))).collect();
        Self(v, w)
    }
    pub fn bytes(&self) -> u64 {
        self.0.capacity() as u64 * 64
    }
}
impl<T> ChargeSources<T> {
    pub fn new(s: impl Iterator<Item = ([f64; 3], f64)>) -> Self {
        Self(s.collect(), PhantomData)
    }
    pub fn bytes(&self) -> u64 {
        self.0.capacity() as u64 * 64
    }
}
fn put<T: Real>(i: bs::Induced, g: bool, out: &mut [T], stride: usize, k: usize) {
    for r in 0..3 {
        out[r * stride + k] += T::of(i.velocity[r]);
    }
    if g {
        for r in 0..9 {
            out[(3 + r) * stride + k] += T::of(i.gradient[r / 3][r % 3]);
        }
    }
}
#[allow(clippy::too_many_arguments)]
pub fn segments<T: Real>(
    reg: Regularization,
    part: Part,
    s: &SegmentSources<T>,
    ranges: &[Range<usize>],
    t: &[Vec<T>; 3],
    g: bool,
    out: &mut [T],
    stride: usize,
) {
    for k in 0..t[0].len() {
        let x = std::array::from_fn(|i| t[i][k].f64());
        for r in ranges {
            for s in &s.0[r.clone()] {
                put(bs::segment(reg, part, x, s.p1, s.p2, s.circulation, s.core), g, out, stride, k);
            }
        }
    }
}
#[allow(clippy::too_many_arguments)]
pub fn particles<T: Real>(
    reg: Regularization,
    part: Part,
    s: &ParticleSources<T>,
    ranges: &[Range<usize>],
    t: &[Vec<T>; 3],
    g: bool,
    out: &mut [T],
    stride: usize,
) {
    if !g && (part == Part::Singular || reg == Regularization::None) {
        crate::simd::dispatch(Plain { s: &s.1, ranges, t, out, stride });
        return;
    }
    for k in 0..t[0].len() {
        let x = std::array::from_fn(|i| t[i][k].f64());
        for r in ranges {
            for s in &s.0[r.clone()] {
                put(bs::particle(reg, part, x, s.x, s.strength, s.core), g, out, stride, k);
            }
        }
    }
}
struct Plain<'a, T: Real> {
    s: &'a [[T; 6]],
    ranges: &'a [Range<usize>],
    t: &'a [Vec<T>; 3],
    out: &'a mut [T],
    stride: usize,
}
impl<T: Real> crate::simd::Kernel for Plain<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: crate::simd::Simd>(self, sm: S) {
        use crate::simd::Lane;
        let w = Lane::<S, T>::LANES;
        let n = self.t[0].len();
        let mut k = 0;
        while k < n {
            let x: [[Lane<S, T>; 3]; 2] = std::array::from_fn(|h| {
                std::array::from_fn(|i| {
                    let at = (k + h * w).min(n);
                    Lane::load_part(sm, &self.t[i][at..], T::of(1e3))
                })
            });
            let zero = Lane::<S, T>::zero(sm);
            let mut u = [[zero; 3]; 2];
            for r in self.ranges {
                for q in &self.s[r.clone()] {
                    let p: [Lane<S, T>; 6] = std::array::from_fn(|i| Lane::splat(sm, q[i]));
                    for h in 0..2 {
                        let d = [x[h][0] - p[0], x[h][1] - p[1], x[h][2] - p[2]];
                        let r2 = d[0].fma(d[0], d[1].fma(d[1], d[2] * d[2]));
                        let i = r2.rsqrt();
                        let i = zero.lt(r2).select(i, zero);
                        let i3 = i * i * i;
                        let c =
                            [p[5].fnma(d[1], p[4] * d[2]), p[3].fnma(d[2], p[5] * d[0]), p[4].fnma(d[0], p[3] * d[1])];
                        for a in 0..3 {
                            u[h][a] = c[a].fma(i3, u[h][a]);
                        }
                    }
                }
            }
            for h in 0..2 {
                let at = k + h * w;
                for a in 0..3 {
                    let mut v = [T::ZERO; 16];
                    u[h][a].store(&mut v);
                    for l in 0..w.min(n.saturating_sub(at)) {
                        self.out[a * self.stride + at + l] += v[l];
                    }
                }
            }
            k += 2 * w;
        }
    }
}

pub fn charges<T: Real>(
    s: &ChargeSources<T>,
    ranges: &[Range<usize>],
    t: &[Vec<T>; 3],
    g: bool,
    out: &mut [T],
    stride: usize,
) {
    for k in 0..t[0].len() {
        let x = std::array::from_fn(|i| t[i][k].f64());
        for r in ranges {
            for s in &s.0[r.clone()] {
                let a = bs::charge(x, s.0, s.1);
                out[k] += T::of(a.potential);
                if g {
                    (0..3).for_each(|i| out[(1 + i) * stride + k] += T::of(a.gradient[i]));
                }
            }
        }
    }
}
pub fn pair_seconds<T: Real>(_: Kind, _: bool) -> f64 {
    if T::IS_F64 { 0.95e-9 } else { 0.4e-9 }
}
