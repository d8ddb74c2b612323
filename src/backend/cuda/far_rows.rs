//! From the multipoles of a periodic domain to the fields of all images that are not near, as rows of kernels/periodic.cuh.
//!
//! Kernels have harmonics without norms, column by column; the lattice operator has those of `math::harmonics`.

use crate::math::harmonics::{derivative, index};
use crate::math::lattice::{LatticeSums, Shape};
use crate::memory;

/// Highest order of the kernels: `kMostOrder` of kernels/periodic.cu.
pub const MOST_ORDER: usize = 32;
/// Numbers before the pairs: `kFarHead`.
const HEAD: usize = 2;

/// What follows from an order alone.
#[derive(Debug)]
pub struct Factors {
    pub order: usize,
    /// Pairs (l, m), column by column.
    pairs: Vec<(usize, usize)>,
    /// Two factors of the recurrence a pair.
    pub steps: Vec<f64>,
    /// √((2-δ_m0)(l-m)!(l+m)!) of a pair: harmonics with norms over those without.
    norms: Vec<f64>,
    /// Along each axis ∂R_k = Σ w R_i as (k, i, w).
    slopes: [Vec<(usize, usize, f64)>; 3],
}

impl Factors {
    pub fn new(order: usize) -> Self {
        let mut pairs = vec![];
        memory::extend(&mut pairs, (0..order).flat_map(|m| (m..order).map(move |l| (l, m))));
        let step = |&(l, m): &(usize, usize)| {
            let per = 1.0 / (((l + 1) * (l + 1) - m * m) as f64);
            [(2 * l + 1) as f64 * per, per]
        };
        let norm = |&(l, m): &(usize, usize)| {
            let factorial = |n: usize| (2..=n).map(|k| k as f64).product::<f64>();
            ((if m > 0 { 2.0 } else { 1.0 }) * factorial(l - m)).sqrt() * factorial(l + m).sqrt()
        };
        let slopes = std::array::from_fn(|axis| {
            let mut of = vec![];
            for &(l, m) in &pairs {
                for sin in [false, true].into_iter().filter(|sin| m > 0 || !sin) {
                    let weights = derivative(l, m, sin, axis).into_iter();
                    memory::extend(&mut of, weights.map(|(i, w)| (index(l, m, sin), i, w)));
                }
            }
            of
        });
        let (mut steps, norms) = (vec![], memory::collect(pairs.iter().map(norm)));
        memory::extend(&mut steps, pairs.iter().flat_map(step));
        Self { order, pairs, steps, norms, slopes }
    }

    /// Rows of the fields, from the sums that the kernel left: multipoles about the middle, [pair][cos, sin][component], in a unit of
    /// length, and behind them of charges their second moment and the sum of their sizes.
    pub fn rows(&self, shape: Shape, moments: &[f64], unit: f64, charges: bool, gradient: bool) -> Vec<f64> {
        let n = self.order * self.order;
        let components = if charges { 1 } else { 3 };
        let multipoles: Vec<Vec<f64>> =
            memory::collect((0..components).map(|c| self.component(moments, c, components)));
        let lattice = LatticeSums::of(shape, self.order);
        // Of a box; tubes and slabs have none.
        let background = if shape.dimensions() == 3 { shape.background() } else { 0.0 };
        let mut locals: Vec<Vec<f64>> = vec![];
        for multipole in &multipoles {
            let mut local = memory::filled(0.0, n);
            lattice.apply(self.order, multipole, unit, &mut local, unit);
            // Of the background's |x - X|² the product x·X.
            (1..n.min(4)).for_each(|i| local[i] -= 2.0 * background * unit * unit * multipole[i]);
            locals.push(local);
        }
        let net: Vec<f64> = memory::collect(multipoles.iter().map(|m| m[0]));
        let fields = if charges {
            self.forces(&locals[0], net[0], moments[moments.len() - 2], [background, unit], gradient)
        } else {
            self.velocities(&locals, &net, [background, unit], gradient)
        };
        let square = if charges { background * net[0] * unit * unit } else { 0.0 };
        self.packed(&fields, square, 1.0 / unit)
    }

    /// A component's multipoles with norms, in the layout of `math::harmonics`.
    fn component(&self, moments: &[f64], c: usize, components: usize) -> Vec<f64> {
        let mut multipole = memory::filled(0.0, self.order * self.order);
        for (k, &(l, m)) in self.pairs.iter().enumerate() {
            multipole[index(l, m, false)] = self.norms[k] * moments[2 * k * components + c];
            if m > 0 {
                multipole[index(l, m, true)] = self.norms[k] * moments[(2 * k + 1) * components + c];
            }
        }
        multipole
    }

    /// Adds a derivative of an expansion times `sign`.
    fn derive(&self, to: &mut [f64], from: &[f64], axis: usize, sign: f64) {
        self.slopes[axis].iter().for_each(|&(k, i, w)| to[i] += sign * w * from[k]);
    }

    /// The potential, and its gradient.
    fn forces(&self, local: &[f64], net: f64, moment: f64, [f, unit]: [f64; 2], gradient: bool) -> Vec<Vec<f64>> {
        let mut fields = vec![memory::copy(local)];
        fields[0][0] += f * moment * unit * unit;
        for axis in (0..3).filter(|_| gradient) {
            let mut row = memory::filled(0.0, local.len());
            self.derive(&mut row, local, axis, 1.0 / unit);
            row[linear(axis)] += 2.0 * f * net * unit;
            fields.push(row);
        }
        fields
    }

    /// The velocity, the curl of the potential, and its gradient.
    fn velocities(&self, a: &[Vec<f64>], net: &[f64], [f, unit]: [f64; 2], gradient: bool) -> Vec<Vec<f64>> {
        let mut fields = vec![];
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let mut row = memory::filled(0.0, a[0].len());
            self.derive(&mut row, &a[k], j, 1.0 / unit);
            self.derive(&mut row, &a[j], k, -1.0 / unit);
            // Of the background's f |x|² a: 2 f x × a.
            row[linear(j)] += 2.0 * f * net[k] * unit;
            row[linear(k)] -= 2.0 * f * net[j] * unit;
            fields.push(row);
        }
        for d in (0..9).filter(|_| gradient) {
            let mut row = memory::filled(0.0, a[0].len());
            self.derive(&mut row, &fields[d / 3], d % 3, 1.0 / unit);
            fields.push(row);
        }
        fields
    }

    fn packed(&self, fields: &[Vec<f64>], square: f64, per_unit: f64) -> Vec<f64> {
        let mut rows = memory::with_room(HEAD + self.pairs.len() * (2 + 2 * fields.len()));
        memory::extend(&mut rows, [square, per_unit]);
        for (k, &(l, m)) in self.pairs.iter().enumerate() {
            memory::extend(&mut rows, self.steps[2 * k..2 * k + 2].iter().copied());
            for field in fields {
                let sin = if m > 0 { field[index(l, m, true)] } else { 0.0 };
                let both = [self.norms[k] * field[index(l, m, false)], self.norms[k] * sin];
                memory::extend(&mut rows, both);
            }
        }
        rows
    }
}

/// The harmonic that is the coordinate along an axis.
fn linear(axis: usize) -> usize {
    index(1, usize::from(axis != 2), axis == 1)
}
