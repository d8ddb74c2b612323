//! Multipoles at targets (M2P): the far field of the treecode.
//!
//! Enters: multipoles of the source cells, `[cell][component][order²]` in units of the cell's `scale`; targets relative to the
//! centre of their group. Leaves: rows of numbers at the targets, one a component of the field or of its gradient.
//!
//! The singular harmonics are regular ones at the inverted position, S_n^m(x) = R_n^m(x)/r^(2n+1) = R_n^m(x/r²)/r. A derivative
//! of the field of multipoles M is that of multipoles one degree higher: ∂_x acts on 1/|x - X| as -∂_X, so that the matrix is
//! the negative transpose of the derivative of regular harmonics. So every row is a scalar expansion (`Rows`), and all rows
//! share the harmonics of a target.
//!
//! Column m of the harmonics is Q_n = z Q_{n-1} - β_nm r² Q_{n-2} from Q_m = Re, Im (x + iy)^m, R_n^m = t_nm Q_n; the t_nm are
//! factors of the coefficients. Targets are lanes.

use super::lists::Far as FarCell;
use super::tree::{Cell, Tree};
use crate::math::harmonics::{self, index};
use crate::memory;
use crate::simd::{Kernel, Lane, Real, Simd, dispatch, each};
use rayon::prelude::*;

/// Constants for multipoles of one order.
pub struct Series<T> {
    /// Of the multipoles.
    pub order: usize,
    /// Degrees 0 .. degrees-1 of the rows.
    degrees: usize,
    /// For each axis (to, from, weight) with ∂(Σ c R) = Σ c_from weight R_to, for all degrees of the rows.
    derivative: [Vec<(u32, u32, T)>; 3],
    /// [m][n-m]: β of n + 1.
    steps: Vec<Vec<T>>,
    /// Where column m of the rows begins: all n of cos, from m = 1 on alternately cos and sin.
    columns: Vec<usize>,
    /// Of each coefficient in the arrangement by columns: index in an expansion, and t_nm.
    indices: Vec<(u32, T)>,
}

/// Numbers at a target, and degrees that the derivatives add.
const fn shape(components: usize, gradient: bool) -> (usize, usize) {
    match (components, gradient) {
        (1, false) => (1, 0),
        (1, true) => (4, 1),
        (_, false) => (3, 1),
        (_, true) => (12, 2),
    }
}

/// Degrees of the rows for multipoles of order `p`.
pub const fn degrees(components: usize, gradient: bool, p: usize) -> usize {
    p + shape(components, gradient).1
}

impl<T: Real> Series<T> {
    pub fn new(order: usize, components: usize, gradient: bool) -> Self {
        let degrees = degrees(components, gradient, order);
        let mut derivative = [vec![], vec![], vec![]];
        for (axis, list) in derivative.iter_mut().enumerate() {
            for (n, m, sin) in (0..degrees).flat_map(of_degree) {
                let from = index(n, m, sin) as u32;
                let terms = harmonics::derivative(n, m, sin, axis).into_iter();
                memory::extend(list, terms.map(|(to, w)| (to as u32, from, T::of(w))));
            }
        }
        let beta = |n: usize, m: usize| {
            let k = (n - 1) as f64;
            (k * k - (m * m) as f64) / ((2.0 * k + 1.0) * (2.0 * k - 1.0))
        };
        let step = |m: usize, n: usize| T::of(if n == m { 0.0 } else { beta(n + 1, m) });
        let steps = (0..degrees).map(|m| memory::collect((m..degrees).map(|n| step(m, n)))).collect();
        let (mut columns, mut indices): (Vec<usize>, Vec<(u32, T)>) = (vec![], vec![]);
        let mut diagonal = 1.0;
        for m in 0..degrees {
            memory::push(&mut columns, indices.len());
            diagonal *= harmonics::diagonal(m);
            let mut t = diagonal;
            for n in m..degrees {
                if n > m {
                    t *= harmonics::vertical(n, m).0;
                }
                let both = if m == 0 { &[false][..] } else { &[false, true] };
                memory::extend(&mut indices, both.iter().map(|&sin| (index(n, m, sin) as u32, T::of(t))));
            }
        }
        Self { order, degrees, derivative, steps, columns, indices }
    }

    /// to += sign/scale ∂_axis of the singular expansion `from`.
    fn add_derivative(&self, from: &[T], axis: usize, factor: T, to: &mut [T]) {
        for &(low, high, w) in &self.derivative[axis] {
            to[high as usize] += -factor * w * from[low as usize];
        }
    }
}

/// All (m, sin) of degree n.
fn of_degree(n: usize) -> impl Iterator<Item = (usize, usize, bool)> {
    (0..=n).flat_map(move |m| [false, true].map(|sin| (n, m, sin))).filter(|&(_, m, sin)| m > 0 || !sin)
}

/// The field of all source cells as scalar expansions: `[cell][coefficient][row]`, coefficients by columns of one m.
pub struct Rows<T> {
    values: Vec<T>,
    count: usize,
    /// Degrees beyond those of the multipoles.
    added: usize,
    /// Numbers a cell.
    size: usize,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { values: vec![], count: 0, added: 0, size: 0 }
    }
}

impl<T: Real> Rows<T> {
    /// From multipoles of `series.order`.
    pub fn make<const C: usize>(&mut self, series: &Series<T>, tree: &Tree, multipoles: &[T], gradient: bool) {
        let terms = series.degrees * series.degrees;
        (self.count, self.added) = shape(C, gradient);
        self.size = self.count * terms;
        memory::resize(&mut self.values, tree.cells.len() * self.size, T::ZERO);
        let given = C * series.order * series.order;
        self.values
            .par_chunks_mut(self.size)
            .zip(multipoles.par_chunks(given))
            .zip(&tree.cells)
            .with_min_len(8)
            .for_each_init(Vec::new, |work, ((out, multipoles), cell)| {
                rows_of::<T, C>(series, multipoles, cell.scale, gradient, work);
                for (to, &(index, t)) in out.chunks_exact_mut(self.count).zip(&series.indices) {
                    to.iter_mut().enumerate().for_each(|(k, v)| *v = t * work[k * terms + index as usize]);
                }
            });
    }

    pub fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }
}

/// The rows of one cell, `[row][degrees²]` in the layout of the multipoles.
fn rows_of<T: Real, const C: usize>(
    series: &Series<T>,
    multipoles: &[T],
    scale: f64,
    gradient: bool,
    rows: &mut Vec<T>,
) {
    let (given, n) = (series.order * series.order, series.degrees * series.degrees);
    let unit = T::of(1.0 / scale);
    let mut whole = memory::filled(T::ZERO, C * n);
    for (to, from) in whole.chunks_exact_mut(n).zip(multipoles.chunks_exact(given)) {
        to[..given].copy_from_slice(from);
    }
    rows.clear();
    memory::resize(rows, shape(C, gradient).0 * n, T::ZERO);
    let (main, rest) = rows.split_at_mut(C * n);
    if C == 1 {
        main.copy_from_slice(&whole);
        rest.chunks_exact_mut(n).enumerate().for_each(|(axis, to)| series.add_derivative(&whole, axis, unit, to));
        return;
    }
    for (i, to) in main.chunks_exact_mut(n).enumerate() {
        // u_i = ∂_j A_k - ∂_k A_j
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        series.add_derivative(&whole[k * n..(k + 1) * n], j, unit, to);
        series.add_derivative(&whole[j * n..(j + 1) * n], k, -unit, to);
    }
    for (k, to) in rest.chunks_exact_mut(n).enumerate() {
        series.add_derivative(&main[k / 3 * n..(k / 3 + 1) * n], k % 3, unit, to);
    }
}

/// What a group of targets gets from its far cells.
pub struct Far<'a, T> {
    pub series: &'a Series<T>,
    pub rows: &'a Rows<T>,
    pub sources: &'a [Cell],
    /// Source cells with their orders, none of an image.
    pub list: &'a [FarCell],
    /// Of the group.
    pub center: [f64; 3],
}

impl<T: Real> Far<'_, T> {
    /// Adds to `out[row][target]` for the targets `x`, relative to the centre of the group; `sums` is scratch.
    pub fn add(&self, x: &[Vec<T>; 3], sums: &mut Vec<T>, out: &mut [T]) {
        assert_eq!(out.len(), self.rows.count * x[0].len(), "as many rows as were made");
        match self.rows.count {
            1 => dispatch(Sweep::<T, 1, 4> { far: self, x, sums, out }),
            3 => dispatch(Sweep::<T, 3, 2> { far: self, x, sums, out }),
            4 => dispatch(Sweep::<T, 4, 2> { far: self, x, sums, out }),
            _ => dispatch(Sweep::<T, 12, 1> { far: self, x, sums, out }),
        }
    }
}

/// ROWS rows, BLOCK registers of targets at a time.
struct Sweep<'a, T: Real, const ROWS: usize, const BLOCK: usize> {
    far: &'a Far<'a, T>,
    x: &'a [Vec<T>; 3],
    sums: &'a mut Vec<T>,
    out: &'a mut [T],
}

impl<T: Real, const ROWS: usize, const BLOCK: usize> Kernel for Sweep<'_, T, ROWS, BLOCK> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { far, x, sums, out } = self;
        let w = Lane::<S, T>::LANES;
        let targets = x[0].len();
        let registers = targets.div_ceil(w);
        sums.clear();
        memory::resize(sums, registers * w * ROWS, T::ZERO);
        for &FarCell { order, cell, .. } in far.list {
            let c = &far.sources[cell as usize];
            let at = OneCell {
                series: far.series,
                rows: far.rows.values[cell as usize * far.rows.size..][..far.rows.size].as_chunks::<ROWS>().0,
                degrees: order as usize + far.rows.added,
                offset: each(|i| Lane::splat(s, T::of(far.center[i] - c.center[i]))),
                scale: Lane::splat(s, T::of(c.scale)),
            };
            let mut k = 0;
            while k + BLOCK <= registers {
                at.add::<BLOCK>(s, x, k, sums);
                k += BLOCK;
            }
            while k < registers {
                at.add::<1>(s, x, k, sums);
                k += 1;
            }
        }
        for (k, sums) in sums.chunks_exact(w * ROWS).enumerate() {
            for (row, sum) in sums.chunks_exact(w).enumerate() {
                let to = &mut out[row * targets + k * w..row * targets + targets.min((k + 1) * w)];
                to.iter_mut().zip(sum).for_each(|(to, &v)| *to += v);
            }
        }
    }
}

/// One far cell.
struct OneCell<'a, S: Simd, T: Real, const ROWS: usize> {
    series: &'a Series<T>,
    /// By columns.
    rows: &'a [[T; ROWS]],
    degrees: usize,
    /// From its centre to that of the group.
    offset: [Lane<S, T>; 3],
    scale: Lane<S, T>,
}

impl<S: Simd, T: Real, const ROWS: usize> OneCell<'_, S, T, ROWS> {
    /// Registers k .. k+B of the targets.
    #[inline(always)]
    fn add<const B: usize>(&self, s: S, targets: &[Vec<T>; 3], k: usize, sums: &mut [T]) {
        let w = Lane::<S, T>::LANES;
        let (zero, one) = (Lane::<S, T>::zero(s), Lane::<S, T>::splat(s, T::ONE));
        let mut at = [[zero; 3]; B];
        let (mut square, mut inverse) = ([zero; B], [zero; B]);
        for b in 0..B {
            let load = |i: usize| self.offset[i] + Lane::load_part(s, &targets[i][(k + b) * w..], T::ZERO);
            let x: [Lane<S, T>; 3] = each(load);
            inverse[b] = x[0].fma(x[0], x[1].fma(x[1], x[2] * x[2])).rsqrt();
            let over = self.scale * inverse[b];
            let factor = over * inverse[b];
            at[b] = each(|i| x[i] * factor);
            square[b] = over * over;
        }
        let mut sum = [[zero; ROWS]; B];
        let (mut cos, mut sin) = ([one; B], [zero; B]);
        for m in 0..self.degrees {
            let steps = &self.series.steps[m][..self.degrees - m];
            let rows = &self.rows[self.series.columns[m]..];
            if m == 0 {
                let mut q = [[zero, one]; B];
                for (&step, row) in steps.iter().zip(rows) {
                    let step = Lane::splat(s, step);
                    for b in 0..B {
                        gather(s, row, q[b][1], &mut sum[b]);
                        q[b] = next(q[b], at[b][2], step * square[b]);
                    }
                }
                continue;
            }
            for b in 0..B {
                let [x, y, _] = at[b];
                (cos[b], sin[b]) = (x.fma(cos[b], -(y * sin[b])), x.fma(sin[b], y * cos[b]));
            }
            let (mut c, mut v): ([[_; 2]; B], [[_; 2]; B]) = (each(|b| [zero, cos[b]]), each(|b| [zero, sin[b]]));
            for (&step, [of_cos, of_sin]) in steps.iter().zip(rows.as_chunks::<2>().0) {
                let step = Lane::splat(s, step);
                for b in 0..B {
                    let beta = step * square[b];
                    gather(s, of_cos, c[b][1], &mut sum[b]);
                    gather(s, of_sin, v[b][1], &mut sum[b]);
                    c[b] = next(c[b], at[b][2], beta);
                    v[b] = next(v[b], at[b][2], beta);
                }
            }
        }
        for b in 0..B {
            for (row, sum) in sum[b].into_iter().enumerate() {
                let to = &mut sums[((k + b) * ROWS + row) * w..];
                sum.fma(inverse[b], Lane::load(s, to)).store(to);
            }
        }
    }
}

/// (Q_{n-1}, Q_n) to (Q_n, Q_{n+1}).
#[inline(always)]
fn next<S: Simd, T: Real>([before, now]: [Lane<S, T>; 2], z: Lane<S, T>, beta: Lane<S, T>) -> [Lane<S, T>; 2] {
    [now, before.fnma(beta, z * now)]
}

#[inline(always)]
fn gather<S: Simd, T: Real, const ROWS: usize>(s: S, row: &[T; ROWS], q: Lane<S, T>, sum: &mut [Lane<S, T>; ROWS]) {
    for r in 0..ROWS {
        sum[r] = q.fma(Lane::splat(s, row[r]), sum[r]);
    }
}

#[cfg(test)]
mod tests;
