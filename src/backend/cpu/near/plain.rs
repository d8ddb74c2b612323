//! The same sums without lanes, for processors that have none: the oracle, pair by pair.
//!
//! Enters: a call as for the lanes. Leaves: the same. Slow; its use is that nothing has to be refused.

use super::sources::{Charge, Particle, Segment};
use super::sweep::Call;
use crate::math::biot_savart::{self as oracle, Induced};
use crate::math::regularization::Part;
use crate::options::Regularization;
use crate::simd::Real;

pub fn particles<T: Real>(reg: Regularization, part: Part, call: Call<'_, '_, T, Particle<T>>) {
    let f = |v: [T; 3]| v.map(T::f64);
    sum(call, |x, p| flat(oracle::particle(reg, part, x, f(p.position), f(p.strength), p.core.f64())));
}

pub fn segments<T: Real>(reg: Regularization, part: Part, call: Call<'_, '_, T, Segment<T>>) {
    let f = |v: [T; 3]| v.map(T::f64);
    sum(call, |x, s| flat(oracle::segment(reg, part, x, f(s.p1), f(s.p2), s.circulation.f64(), s.core.f64())));
}

pub fn charges<T: Real>(call: Call<'_, '_, T, Charge<T>>) {
    sum(call, |x, c| {
        let a = oracle::charge(x, c.position.map(T::f64), c.charge.f64());
        [a.potential, a.gradient[0], a.gradient[1], a.gradient[2]]
    });
}

fn flat(u: Induced) -> [f64; 12] {
    std::array::from_fn(|i| if i < 3 { u.velocity[i] } else { u.gradient[(i - 3) / 3][(i - 3) % 3] })
}

fn sum<T: Real, P, const N: usize>(call: Call<'_, '_, T, P>, pair: impl Fn([f64; 3], &P) -> [f64; N]) {
    for (k, t) in call.t.enumerate() {
        let x = [call.targets.x[t].f64(), call.targets.y[t].f64(), call.targets.z[t].f64()];
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
