//! Segments into multipoles, exactly: the mean of every harmonic along a straight line.
//!
//! Enters: middles and half vectors of lines, one a lane. Leaves: the means of R_n^m over each, degrees below an order.
//! The multipole moments of a segment of even strength are its strength times these.

use super::operators::Operators;
use crate::math::harmonics::{self, index};
use crate::memory;
use crate::simd::{Lane, Real, Simd};

/// The recurrence for means along a line, see `Operators::mean`: by rising degree n, then m.
pub struct Means<T> {
    steps: Vec<Step<T>>,
}

/// Cosine and sine of one (n, m), from degree n-1.
struct Step<T> {
    m: usize,
    /// Numbers of the two; m = 0: of the cosine, twice.
    to: [u32; 2],
    /// Numbers of cosine and sine of (n-1, m), (n-1, m-1), (n-1, m+1); one that does not exist: any other, of weight zero.
    from: [[u32; 2]; 3],
    /// Of (n-1, m), of the cosine and the sine of (n-1, m-1), of (n-1, m+1).
    weights: [T; 4],
    /// Weight of the sum over both ends.
    ends: T,
}

impl<T: Real> Means<T> {
    pub fn new(order: usize) -> Self {
        let mut of = Self { steps: vec![] };
        for n in 0..order {
            for m in 0..=n {
                memory::push(&mut of.steps, Step::new(n, m));
            }
        }
        of
    }
}

impl<T: Real> Step<T> {
    fn new(n: usize, m: usize) -> Self {
        let share = 1.0 / (n + 1) as f64;
        // ∂/∂z has (n-1, m) alone, ∂/∂x of the cosine the cosines of both others, the second one negative.
        let weight = |axis: usize, m_from: usize, sign: f64| {
            let terms = harmonics::derivative(n, m, false, axis);
            let is_there = m_from < n;
            let wanted = if is_there { index(n - 1, m_from, false) } else { 0 };
            T::of(terms.iter().find(|t| is_there && t.0 == wanted).map_or(0.0, |t| sign * share * t.1))
        };
        // The sine of m = 0 is nothing.
        let below = |first: usize| if m > first { weight(0, m - 1, 1.0) } else { T::ZERO };
        let pair = |m: usize| match m {
            _ if m >= n => [0; 2],
            0 => [index(n - 1, 0, false) as u32; 2],
            _ => [false, true].map(|sin| index(n - 1, m, sin) as u32),
        };
        Self {
            m,
            to: [index(n, m, false) as u32, index(n, m, m > 0) as u32],
            from: [pair(m), pair(m.saturating_sub(1)), pair(m + 1)],
            weights: [weight(2, m, 1.0), below(0), below(1), weight(0, m + 1, -1.0)],
            ends: T::of(0.5 * share),
        }
    }
}

impl<T: Real> Operators<T> {
    /// The mean of R over the straight line from `middle` - `half` to `middle` + `half`, degrees 0 .. p-1, one line per lane.
    ///
    /// R of degree n is homogeneous, n R = x·∇R; on the line x = middle + t half, so that n R = middle·∇R + t dR/dt. The
    /// mean of this, the last term by parts, is (n+1) mean(R) = middle·mean(∇R) + (R(end 1) + R(end 2))/2, and ∇R has only
    /// functions of degree n-1: with C_m, S_m those of cosine and sine, middle·∇C_m has z C_m, x C_(m-1) - y S_(m-1) and
    /// -(x C_(m+1) + y S_(m+1)), middle·∇S_m has z S_m, x S_(m-1) + y C_(m-1) and -(x S_(m+1) - y C_(m+1)).
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
        self.regular(s, p, [middle[0] + half[0], middle[1] + half[1], middle[2] + half[2]], ends[0]);
        self.regular(s, p, [middle[0] - half[0], middle[1] - half[1], middle[2] - half[2]], ends[1]);
        let [x, y, z] = middle;
        for step in &self.means.steps[..p * (p + 1) / 2] {
            let [[c, v], [c_below, v_below], [c_above, v_above]] = step.from;
            let [c, c_below, c_above] = [load(s, out, c), load(s, out, c_below), load(s, out, c_above)];
            let [v, v_below, v_above] = [load(s, out, v), load(s, out, v_below), load(s, out, v_above)];
            let [same, cos, sin, above] = step.weights;
            let (z, x_above, y_above) =
                (z * Lane::splat(s, same), x * Lane::splat(s, above), y * Lane::splat(s, above));
            let (cos, sin) = (Lane::splat(s, cos), Lane::splat(s, sin));
            let end = Lane::splat(s, step.ends);
            let both = end * (load(s, ends[0], step.to[0]) + load(s, ends[1], step.to[0]));
            let mean = x_above.fnma(c_above, y_above.fnma(v_above, both));
            let mean = z.fma(c, (x * cos).fma(c_below, (y * sin).fnma(v_below, mean)));
            mean.store(&mut out[step.to[0] as usize * w..]);
            if step.m > 0 {
                let both = end * (load(s, ends[0], step.to[1]) + load(s, ends[1], step.to[1]));
                let mean = x_above.fnma(v_above, y_above.fma(c_above, both));
                let mean = z.fma(v, (x * sin).fma(v_below, (y * cos).fma(c_below, mean)));
                mean.store(&mut out[step.to[1] as usize * w..]);
            }
        }
    }
}

/// Coefficient `i` of one source a lane.
#[inline(always)]
fn load<S: Simd, T: Real>(s: S, from: &[T], i: u32) -> Lane<S, T> {
    Lane::load(s, &from[i as usize * Lane::<S, T>::LANES..])
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
