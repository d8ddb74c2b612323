//! Segments into multipoles, exactly: the mean of every harmonic along a straight line.
//!
//! Enters: middles and half vectors of lines, one a lane. Leaves: the means of R_n^m over each, degrees below an order.
//! The multipole moments of a segment of even strength are its strength times these.

use super::operators::{Operators, labels};
use crate::math::harmonics;
use crate::memory;
use crate::simd::{Lane, Real, Simd};

/// The recurrence for means along a line, see `Operators::mean`: for each coefficient the weight of the two ends, and a run of
/// (axis, from, weight).
pub struct Means<T> {
    ends: Vec<T>,
    starts: Vec<u32>,
    terms: Vec<(u32, u32, T)>,
}

impl<T: Real> Means<T> {
    pub fn new(order: usize) -> Self {
        let mut of = Self { ends: vec![], starts: vec![], terms: vec![] };
        memory::push(&mut of.starts, 0);
        for n in 0..order {
            for (m, sin) in labels(n) {
                let share = 1.0 / (n + 1) as f64;
                memory::push(&mut of.ends, T::of(0.5 * share));
                for axis in 0..3 {
                    let terms = harmonics::derivative(n, m, sin, axis).into_iter();
                    memory::extend(&mut of.terms, terms.map(|(from, w)| (axis as u32, from as u32, T::of(w * share))));
                }
                memory::push(&mut of.starts, of.terms.len() as u32);
            }
        }
        of
    }
}

impl<T: Real> Operators<T> {
    /// The mean of R over the straight line from `middle` - `half` to `middle` + `half`, degrees 0 .. p-1, one line per lane.
    ///
    /// R of degree n is homogeneous, n R = x·∇R; on the line x = middle + t half, so that n R = middle·∇R + t dR/dt. The
    /// mean of this, the last term by parts, is (n+1) mean(R) = middle·mean(∇R) + (R(end 1) + R(end 2))/2, and ∇R has only
    /// functions of degree n-1.
    /// `ends`: scratch for R at both ends. `out[i·LANES..]` is coefficient i.
    #[inline(always)]
    pub fn mean<S: Simd>(
        &self,
        s: S,
        p: usize,
        middle: [Lane<S, T>; 3],
        half: [Lane<S, T>; 3],
        ends: [&mut [T]; 2],
        out: &mut [T],
    ) {
        let w = Lane::<S, T>::LANES;
        self.regular(s, p, std::array::from_fn(|i| middle[i] + half[i]), ends[0]);
        self.regular(s, p, std::array::from_fn(|i| middle[i] - half[i]), ends[1]);
        let m = &self.means;
        for i in 0..p * p {
            let both = Lane::load(s, &ends[0][i * w..]) + Lane::load(s, &ends[1][i * w..]);
            let mut mean = Lane::splat(s, m.ends[i]) * both;
            for &(axis, from, weight) in &m.terms[m.starts[i] as usize..m.starts[i + 1] as usize] {
                let factor = Lane::splat(s, weight) * middle[axis as usize];
                mean = factor.fma(Lane::load(s, &out[from as usize * w..]), mean);
            }
            mean.store(&mut out[i * w..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::harmonics::{gauss_legendre, regular};
    use crate::simd::{Kernel, dispatch};

    struct One<'a> {
        ops: &'a Operators<f64>,
        middle: [f64; 3],
        half: [f64; 3],
        out: &'a mut [f64],
    }

    impl Kernel for One<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let (w, n) = (Lane::<S, f64>::LANES, self.out.len());
            let [mut first, mut second, mut all] = std::array::from_fn(|_| vec![0.0; n * w]);
            let lane = |x: [f64; 3]| x.map(|v| Lane::splat(s, v));
            let order = self.ops.order;
            self.ops.mean(s, order, lane(self.middle), lane(self.half), [&mut first, &mut second], &mut all);
            self.out.iter_mut().zip(all.chunks(w)).for_each(|(to, lanes)| *to = lanes[w - 1]);
        }
    }

    /// Against a Gauss rule that is exact for all degrees; lines from the length of the cell down to points.
    #[test]
    fn means_are_those_of_a_quadrature() {
        let order = 26;
        let ops = Operators::<f64>::new(order);
        let (nodes, weights) = gauss_legendre(order);
        let middle = [0.31, -0.42, 0.17];
        for (length, bound) in [(0.45, 1e-14), (1e-3, 1e-14), (0.0, 1e-14)] {
            let half = [0.6, 0.48, -0.64].map(|v: f64| v * length);
            let mut got = vec![0.0; order * order];
            dispatch(One { ops: &ops, middle, half, out: &mut got });
            let (mut want, mut at) = (vec![0.0; order * order], vec![0.0; order * order]);
            for (t, w) in nodes.iter().zip(&weights) {
                regular(order, std::array::from_fn(|i| middle[i] + t * half[i]), &mut at);
                want.iter_mut().zip(&at).for_each(|(sum, r)| *sum += 0.5 * w * r);
            }
            let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < bound, "half length {length}: {worst:e}");
        }
    }
}
