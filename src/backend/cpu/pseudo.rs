//! Pseudo-particles in place of harmonics (Anderson 1992; Makino 1999; Yokota et al. 2009, Section 3.3).
//!
//! Enters: trees, interaction lists, sources of the leaves. Leaves: strengths of K pseudo-particles a cell and component,
//! `[cell][component][K]`: on a sphere around the cell's sources those with its multipoles, on a wider one around its targets those
//! with its local expansion. With y_i the points of the sphere, w_i their weights and s its radius, sources q_j at x_j become
//!
//! q_i = w_i Σ_j q_j Σ_n (2n + 1) t_ij^n P_n(cos γ_ij), t = |x_j|/s (multipoles; P2M, M2M), or
//! q_i = w_i Σ_j q_j Σ_n (2n + 1) t_ij^(n+1) P_n(cos γ_ij), t = s/|x_j| (local; M2L, L2L).
//!
//! So every translation is the same sum over sources, and L2P is that of the pseudo-particles at the targets. It takes K² n operations
//! where harmonics take a few times n³: plain code, there to be compared.

use super::lists::{CellLists, Cost, Subset};
use super::passes::LeafSources;
use super::tree::{Cell, Tree};
use crate::math::harmonics::{MAX_ORDER, gauss_legendre};
use crate::math::sphere::{Sphere, count};
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;

/// Highest order: 496 points a cell.
pub const HIGHEST_ORDER: usize = 16;
/// Least radius of the sphere of a local expansion in units of the cell: what the points add beyond their degree falls with its powers.
const LOCAL_RADIUS: f64 = 2.0;
/// Otherwise that radius is so much of the distance to the nearest pseudo-particle that it is made from: on a far smaller sphere, as a
/// cell of one target would have, the strengths are alike to rounding, and differences of them are the derivatives of the field.
const NEAREST_SHARE: f64 = 0.5;
/// Seconds of a degree of one pair of pseudo-particles, and of what else the pair costs a component.
const DEGREE_SECONDS: f64 = 3e-9;
const PAIR_SECONDS: f64 = 1e-9;

/// Which degrees of a source count: those of its position inside the sphere, or outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Inside,
    Outside,
}

/// Everything that one order needs.
pub struct Pseudo {
    pub order: usize,
    sphere: Sphere,
    /// Nodes and weights on [-1, 1], exact for harmonics along a line.
    line: (Vec<f64>, Vec<f64>),
    /// Of the local expansions' spheres, by target cell.
    radii: Vec<f64>,
}

/// Seconds of M2L at each order.
pub fn costs<const C: usize>(cost: Cost) -> Cost {
    let m2l = |p: usize| (count(p.max(1)) as f64).powi(2) * (p as f64 * DEGREE_SECONDS + C as f64 * PAIR_SECONDS);
    Cost { m2l: memory::collect((0..MAX_ORDER + 1).map(m2l)), ..cost }
}

impl Pseudo {
    pub fn new(order: usize) -> Self {
        Self { order, sphere: Sphere::new(order), line: gauss_legendre(order.div_ceil(2)), radii: vec![] }
    }

    /// Chooses the radii for these lists.
    pub fn choose_radii(&mut self, [sources, targets]: [&Tree; 2], lists: &[CellLists]) {
        let apart = |a: &Cell, b: &Cell| (0..3).map(|i| (a.center[i] - b.center[i]).powi(2)).sum::<f64>().sqrt();
        self.radii = memory::with_room(targets.cells.len());
        for (k, (cell, list)) in targets.cells.iter().zip(lists).enumerate() {
            let of_far = |source: &Cell| apart(cell, source) - source.scale;
            let far = list.far.iter().map(|f| of_far(&sources.cells[f.cell as usize]));
            let parent =
                (k > 0).then(|| self.radii[cell.parent as usize] - apart(cell, &targets.cells[cell.parent as usize]));
            let nearest = far.chain(parent).fold(f64::INFINITY, f64::min);
            let wide = if nearest.is_finite() { NEAREST_SHARE * nearest } else { 0.0 };
            self.radii.push(wide.max(LOCAL_RADIUS * cell.scale));
        }
    }

    /// Numbers a component of an expansion.
    pub fn terms(&self) -> usize {
        self.sphere.points.len()
    }

    /// Adds a source of strengths `q` at `x` from the middle of a sphere of radius `s`.
    fn add<const C: usize>(&self, side: Side, x: [f64; 3], s: f64, q: [f64; C], to: &mut [f64]) {
        let r = x.iter().map(|v| v * v).sum::<f64>().sqrt();
        let (t, direction) = match side {
            Side::Outside => (s / r, x.map(|v| v / r)),
            Side::Inside if r > 0.0 => (r / s, x.map(|v| v / r)),
            Side::Inside => (0.0, [0.0; 3]),
        };
        let first = if side == Side::Outside { t } else { 1.0 };
        let k = self.terms();
        for (i, (y, w)) in self.sphere.points.iter().zip(&self.sphere.weights).enumerate() {
            let cos = (0..3).map(|a| direction[a] * y[a]).sum::<f64>();
            let f = w * first * self.kernel(t, cos);
            (0..C).for_each(|c| to[c * k + i] += f * q[c]);
        }
    }

    /// Σ (2n + 1) t^n P_n(cos)
    fn kernel(&self, t: f64, cos: f64) -> f64 {
        let (mut before, mut now, mut sum) = (0.0, 1.0, 1.0);
        for n in 1..self.order {
            let m = n as f64;
            (before, now) = (now, ((2.0 * m - 1.0) * cos * t * now - (m - 1.0) * t * t * before) / m);
            sum += (2.0 * m + 1.0) * now;
        }
        sum
    }

    /// Adds an expansion of another cell, whose pseudo-particles are on a sphere of radius `s` around `from`.
    fn translate<T: Real, const C: usize>(
        &self,
        side: Side,
        (from, s): ([f64; 3], f64),
        strengths: &[T],
        (to, radius): ([f64; 3], f64),
        sum: &mut [f64],
    ) {
        let k = self.terms();
        for (j, y) in self.sphere.points.iter().enumerate() {
            let x = std::array::from_fn(|a| from[a] + s * y[a] - to[a]);
            self.add::<C>(side, x, radius, std::array::from_fn(|c| strengths[c * k + j].f64()), sum);
        }
    }

    /// P2M of all leaves.
    pub fn p2m<T: Real, const C: usize>(
        &self,
        tree: &Tree,
        multipoles: &mut [T],
        fill: impl Fn(&Cell, &mut LeafSources<T, C>) + Sync,
    ) {
        let size = C * self.terms();
        let leaves = multipoles.par_chunks_mut(size).zip(&tree.cells).filter(|(_, c)| c.is_leaf());
        leaves.for_each_init(LeafSources::default, |sources, (out, cell)| {
            sources.clear();
            fill(cell, sources);
            let mut sum = memory::filled(0.0, size);
            sources.points().for_each(|(x, q)| self.add::<C>(Side::Inside, x, 1.0, q, &mut sum));
            for (middle, half, q) in sources.lines() {
                for (t, w) in self.line.0.iter().zip(&self.line.1) {
                    let x = std::array::from_fn(|a| middle[a] + t * half[a]);
                    self.add::<C>(Side::Inside, x, 1.0, q.map(|v| 0.5 * w * v), &mut sum);
                }
            }
            store(&sum, out);
        });
    }

    /// M2M, deepest level first.
    pub fn m2m<T: Real, const C: usize>(&self, tree: &Tree, multipoles: &mut [T]) {
        let size = C * self.terms();
        for level in (0..tree.depth().saturating_sub(1)).rev() {
            let range = tree.level(level);
            let (upper, lower) = multipoles.split_at_mut(range.end * size);
            let below = range.end;
            let parents = upper[range.start * size..].par_chunks_mut(size).zip(&tree.cells[range]);
            parents.filter(|(_, c)| !c.is_leaf()).for_each(|(out, cell)| {
                let mut sum = memory::filled(0.0, size);
                for k in cell.first_child as usize..(cell.first_child + cell.children) as usize {
                    let (child, at) = (&tree.cells[k], (k - below) * size);
                    let from = (child.center, child.scale);
                    self.translate::<T, C>(
                        Side::Inside,
                        from,
                        &lower[at..at + size],
                        (cell.center, cell.scale),
                        &mut sum,
                    );
                }
                store(&sum, out);
            });
        }
    }

    /// M2L from the far lists; open domains only.
    pub fn m2l<T: Real, const C: usize>(
        &self,
        [sources, targets]: [&Tree; 2],
        lists: &[CellLists],
        subset: Subset<'_>,
        multipoles: &[T],
        locals: &mut [T],
    ) {
        let size = C * self.terms();
        let cells = locals.par_chunks_mut(size).zip(&targets.cells).zip(lists).enumerate();
        cells.filter(|(k, _)| subset.has(*k)).for_each(|(k, ((out, cell), list))| {
            let mut sum = memory::filled(0.0, size);
            for far in &list.far {
                let source = &sources.cells[far.cell as usize];
                let strengths = &multipoles[far.cell as usize * size..][..size];
                let (from, to) = ((source.center, source.scale), (cell.center, self.radii[k]));
                self.translate::<T, C>(Side::Outside, from, strengths, to, &mut sum);
            }
            store(&sum, out);
        });
    }

    /// L2L, top level first.
    pub fn l2l<T: Real, const C: usize>(&self, tree: &Tree, subset: Subset<'_>, locals: &mut [T]) {
        let size = C * self.terms();
        for level in 1..tree.depth() {
            let range = tree.level(level);
            let (upper, lower) = locals.split_at_mut(range.start * size);
            let first = range.start;
            let cells = lower[..(range.end - first) * size].par_chunks_mut(size).zip(&tree.cells[range]).enumerate();
            cells.filter(|(_, (_, c))| subset.has(c.parent as usize)).for_each(|(k, (out, cell))| {
                let parent = &tree.cells[cell.parent as usize];
                let mut sum: Vec<f64> = memory::collect(out.iter().map(|v| v.f64()));
                let of_parent = self.radii[cell.parent as usize];
                let (from, to) = ((parent.center, of_parent), (cell.center, self.radii[first + k]));
                let strengths = &upper[cell.parent as usize * size..][..size];
                self.translate::<T, C>(Side::Outside, from, strengths, to, &mut sum);
                store(&sum, out);
            });
        }
    }

    /// The field of the local expansion of `cell` at targets relative to its centre, in its unit: `out[row][target] += …`.
    pub fn l2p<T: Real, const C: usize>(
        &self,
        (cell, scale): (usize, f64),
        local: &[T],
        gradient: bool,
        x: &[Vec<T>; 3],
        out: &mut [T],
    ) {
        let (k, targets, radius) = (self.terms(), x[0].len(), self.radii[cell]);
        for target in 0..targets {
            let mut sum = [0.0; 12];
            for (j, y) in self.sphere.points.iter().enumerate() {
                let d = std::array::from_fn(|a| scale * x[a][target].f64() - radius * y[a]);
                let strength: [f64; C] = std::array::from_fn(|c| local[c * k + j].f64());
                if C == 1 {
                    charge(strength[0], d, &mut sum)
                } else {
                    vortex([0, 1, 2].map(|c| strength[c % C]), d, &mut sum)
                }
            }
            for (row, out) in out.chunks_exact_mut(targets).enumerate() {
                out[target] += T::of(sum[row]);
            }
        }
        debug_assert_eq!(out.len(), super::fmm::rows(C, gradient) * targets);
    }
}

/// Potential and gradient of a charge at distance d.
fn charge(q: f64, d: [f64; 3], sum: &mut [f64; 12]) {
    let inverse = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    let potential = q * inverse.sqrt();
    sum[0] += potential;
    (0..3).for_each(|i| sum[1 + i] -= potential * inverse * d[i]);
}

/// Velocity a × d/r³ and its gradient.
fn vortex(a: [f64; 3], d: [f64; 3], sum: &mut [f64; 12]) {
    let inverse = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    let cube = inverse * inverse.sqrt();
    for i in 0..3 {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        let u = cube * (a[j] * d[k] - a[k] * d[j]);
        sum[i] += u;
        (0..3).for_each(|l| sum[3 + 3 * i + l] -= 3.0 * u * inverse * d[l]);
        // (a × e_j)_i = -a_k, (a × e_k)_i = a_j
        sum[3 + 3 * i + j] -= cube * a[k];
        sum[3 + 3 * i + k] += cube * a[j];
    }
}

fn store<T: Real>(sum: &[f64], out: &mut [T]) {
    out.iter_mut().zip(sum).for_each(|(to, &v)| *to = T::of(v));
}

#[cfg(test)]
mod tests;
