//! The same sums without lanes, for processors that have none: the oracle, pair by pair.
//!
//! Enters: a call as for the lanes. Leaves: the same. Slow; its use is that nothing has to be refused.

use super::sources::{Charge, Particle, Record, Segment};
use super::sweep::Call;
use crate::math::biot_savart::{self as oracle, Induced};
use crate::math::regularization::Part;
use crate::options::Regularization;
use crate::simd::Real;

pub fn particles<T: Real, R: Record<T, Particle<T>>>(reg: Regularization, part: Part, call: Call<'_, '_, T, R>) {
    let f = |v: [T; 3]| v.map(T::f64);
    sum(call, |x, r: &R| {
        let p = r.whole();
        flat(oracle::particle(reg, part, x, position(r, p.position, 0), f(p.strength), p.core.f64()))
    });
}

pub fn segments<T: Real, R: Record<T, Segment<T>>>(reg: Regularization, part: Part, call: Call<'_, '_, T, R>) {
    sum(call, |x, r: &R| {
        let s = r.whole();
        let (p1, p2) = (position(r, s.p1, 0), position(r, s.p2, 1));
        flat(oracle::segment(reg, part, x, p1, p2, s.circulation(), s.core.f64()))
    });
}

pub fn charges<T: Real, R: Record<T, Charge<T>>>(call: Call<'_, '_, T, R>) {
    sum(call, |x, r: &R| {
        let c = r.whole();
        let a = oracle::charge(x, position(r, c.position, 0), c.charge.f64());
        [a.potential, a.gradient[0], a.gradient[1], a.gradient[2]]
    });
}

/// Both halves of position `k`.
fn position<T: Real, P, R: Record<T, P>>(record: &R, high: [T; 3], k: usize) -> [f64; 3] {
    let low = record.low(k);
    std::array::from_fn(|i| high[i].f64() + low[i].f64())
}

fn flat(u: Induced) -> [f64; 12] {
    std::array::from_fn(|i| if i < 3 { u.velocity[i] } else { u.gradient[(i - 3) / 3][(i - 3) % 3] })
}

fn sum<T: Real, P, const N: usize>(call: Call<'_, '_, T, P>, pair: impl Fn([f64; 3], &P) -> [f64; N]) {
    for (k, t) in call.t.enumerate() {
        let x = call.targets.position(t);
        let mut sums = [0.0; N];
        for r in call.ranges {
            for source in &call.sources[r.start as usize..r.end as usize] {
                let u = pair(x, source);
                (0..N).for_each(|i| sums[i] += u[i]);
            }
        }
        for (out, sum) in call.out.iter_mut().zip(sums) {
            out[k] += T::of(sum);
        }
    }
}
