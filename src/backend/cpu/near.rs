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
pub struct ParticleSources<T>(Vec<Particle>, PhantomData<T>);
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
}
impl<T> ParticleSources<T> {
    pub fn new(s: impl Iterator<Item = Particle>) -> Self {
        Self(s.collect(), PhantomData)
    }
}
impl<T> ChargeSources<T> {
    pub fn new(s: impl Iterator<Item = ([f64; 3], f64)>) -> Self {
        Self(s.collect(), PhantomData)
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
pub fn segments<T: Real>(reg: Regularization, part: Part, s: &SegmentSources<T>, ranges: &[Range<usize>], t: &[Vec<T>; 3], g: bool, out: &mut [T], stride: usize) {
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
pub fn particles<T: Real>(reg: Regularization, part: Part, s: &ParticleSources<T>, ranges: &[Range<usize>], t: &[Vec<T>; 3], g: bool, out: &mut [T], stride: usize) {
    for k in 0..t[0].len() {
        let x = std::array::from_fn(|i| t[i][k].f64());
        for r in ranges {
            for s in &s.0[r.clone()] {
                put(bs::particle(reg, part, x, s.x, s.strength, s.core), g, out, stride, k);
            }
        }
    }
}
pub fn charges<T: Real>(s: &ChargeSources<T>, ranges: &[Range<usize>], t: &[Vec<T>; 3], g: bool, out: &mut [T], stride: usize) {
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
    1e-9
}
