//! Distances from a ball of targets to the elements of a leaf, and to the lines of its segments, many at once.
//!
//! Enters: the elements of a source tree. Leaves: for a run of elements of one leaf and a ball, 1/r and q: r is not larger
//! than the distance from any position in the ball to the element, q not larger than that to its line in cores (particles: the
//! same distance). Everything is in single precision, relative to the leaf and in its unit, with a margin for rounding.

use super::CoreElement;
use crate::backend::cpu::tree::{Cell, Tree};
use crate::memory;
use crate::simd::{Kernel, Lane, Simd, each};
use rayon::prelude::*;
use std::ops::Range;

/// Relative error of a squared distance, several times over.
const MARGIN: f32 = 2e-6;
/// Rows go so far beyond the last element, so that whole registers can be read: as many lanes as there ever are.
const PADDING: usize = 16;
/// Rows of `Distances::rows`.
const MIDDLE: usize = 0;
const HALF: usize = 3;
const HALF_SQUARE: usize = 6;
const INVERSE_HALF_SQUARE: usize = 7;
const INVERSE_CORE: usize = 8;
const ROWS: usize = 9;

/// The elements of a source tree, in its order, as rows of single precision.
#[derive(Default)]
pub struct Distances {
    rows: [Vec<f32>; ROWS],
    leaves: Vec<LeafElements>,
    /// Index in `leaves` of every element.
    leaf_of: Vec<u32>,
}

/// A leaf of the source tree.
#[derive(Clone, Copy)]
pub struct LeafElements {
    pub end: u32,
    center: [f64; 3],
    pub scale: f64,
}

impl Distances {
    /// `as_points`: segments count by the distance from their middle alone.
    pub fn of(tree: &Tree, elements: &[CoreElement], as_points: bool) -> Self {
        let mut leaves: Vec<LeafElements> = vec![];
        let mut leaf_of = memory::filled(0u32, elements.len());
        for c in tree.cells.iter().filter(|c| c.is_leaf()) {
            leaf_of[c.begin as usize..c.end as usize].fill(leaves.len() as u32);
            memory::push(&mut leaves, LeafElements { end: c.end, center: c.center, scale: c.scale });
        }
        let row = |k: usize, row: usize| {
            let (e, leaf) = (&elements[k], &leaves[leaf_of[k] as usize]);
            let half = |i: usize| if as_points { 0.0 } else { e.half[i] / leaf.scale };
            let square = || (0..3).map(|i| (half(i) as f32).powi(2)).sum::<f32>();
            match row {
                MIDDLE..HALF => ((e.middle[row] - leaf.center[row]) / leaf.scale) as f32,
                HALF..HALF_SQUARE => half(row - HALF) as f32,
                HALF_SQUARE => square(),
                INVERSE_HALF_SQUARE if square() > f32::MIN_POSITIVE => 1.0 / square(),
                INVERSE_CORE if e.core > 0.0 => (leaf.scale / e.core) as f32,
                _ => 0.0,
            }
        };
        let rows = std::array::from_fn(|i| {
            let mut values = memory::filled(0.0, elements.len() + PADDING);
            let of_elements = values[..elements.len()].par_iter_mut().with_min_len(4096);
            of_elements.enumerate().for_each(|(k, v)| *v = row(k, i));
            values
        });
        Self { rows, leaves, leaf_of }
    }

    /// The leaf that element `k` is in.
    pub fn leaf(&self, k: u32) -> LeafElements {
        self.leaves[self.leaf_of[k as usize] as usize]
    }

    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|r| 4 * r.capacity()).sum::<usize>()
            + self.leaves.capacity() * size_of::<LeafElements>()
            + 4 * self.leaf_of.capacity()
    }
}

/// The most elements that `Near` takes at once.
pub const BLOCK: usize = 64;

/// 1/r (in the leaf's unit; infinite where the ball may touch the element) and q for each of `among`, which are in one leaf.
pub struct Near<'a> {
    pub all: &'a Distances,
    pub leaf: LeafElements,
    pub among: Range<u32>,
    pub target: &'a Cell,
    pub inverse: &'a mut [f32; BLOCK],
    pub q: &'a mut [f32; BLOCK],
}

impl Kernel for Near<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = Lane::<S, f32>::LANES;
        let LeafElements { center, scale, .. } = self.leaf;
        let at = |i: usize| Lane::splat(s, ((self.target.center[i] - center[i]) / scale) as f32);
        let (at, zero, one) = ([at(0), at(1), at(2)], Lane::zero(s), Lane::splat(s, 1.0f32));
        let (less, margin) = (Lane::splat(s, 1.0 - MARGIN), Lane::splat(s, MARGIN));
        let radius = Lane::splat(s, (self.target.radius / scale) as f32 * (1.0 + MARGIN));
        let rows = self.all.rows.each_ref().map(|r| &r[self.among.start as usize..]);
        for k in (0..self.among.len()).step_by(w) {
            let row = |i: usize| Lane::load(s, &rows[i][k..]);
            let d: [Lane<S, f32>; 3] = each(|i| at[i] - row(MIDDLE + i));
            let half: [Lane<S, f32>; 3] = each(|i| row(HALF + i));
            let dot = |a: &[Lane<S, f32>; 3], b: &[Lane<S, f32>; 3]| a[0].fma(b[0], a[1].fma(b[1], a[2] * b[2]));
            let square = dot(&d, &d);
            let (half_square, along) = (row(HALF_SQUARE), dot(&d, &half) * row(INVERSE_HALF_SQUARE));
            // What rounding may have added to the distance from the line.
            let line = (square - along * along * half_square - margin * square).max(zero);
            let beyond = (along.abs() - one).max(zero);
            let r = (beyond * beyond).fma(half_square, line).sqrt() * less - radius;
            let rho = line.sqrt() * less - radius;
            (one / r.max(zero)).store(&mut self.inverse[k..]);
            (rho.max(zero) * row(INVERSE_CORE)).store(&mut self.q[k..]);
        }
    }
}
