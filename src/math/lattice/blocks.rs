//! The same sums by brute force, for tests: partial sums over blocks of cells, and Ewald's sums of degrees 0 and 2.
//!
//! Partial sums over blocks of cells, similar to each other and (2ν-1) times as wide, differ from the limit by powers
//! of the width: a sum over whole cells outside is an integral and its Euler–Maclaurin terms, and each scales as a whole.
//! What the powers leave is found by elimination.

use super::{Shape, mirrors, slot, square};
use crate::math::harmonics::{index, regular};
use crate::memory;
use rayon::prelude::*;
use std::f64::consts::PI;
use std::ops::Range;

/// Blocks are at least so many of the longest periods from the middle to a side.
const BLOCK: f64 = 2.5;
/// Shells that change a sum by less than this part are left out.
const NEGLIGIBLE: f64 = 1e-18;

/// All sums of degrees below `degrees`, from so many sizes of blocks.
pub fn block_sums(shape: Shape, degrees: usize, sizes: usize) -> Vec<f64> {
    let mut sums = far_sums(shape, degrees, sizes);
    if shape.dimensions() == 3 {
        let [zero, two, two_two] = ewald(shape);
        for (k, m, v) in [(0, 0, zero), (2, 0, two), (2, 2, two_two)] {
            if k < degrees {
                sums[slot(k, m)] = v;
            }
        }
        subtract_near(shape, &mut sums, degrees.min(3));
    } else {
        sums[0] = 0.0;
    }
    sums
}

fn longest(shape: Shape) -> f64 {
    shape.period.iter().copied().fold(0.0, f64::max)
}

/// Half numbers of cells of the smallest block.
fn smallest_block(shape: Shape) -> [i64; 3] {
    let side = (BLOCK * longest(shape)).max(shape.near + 0.5 * longest(shape));
    shape.period.map(|p| if p > 0.0 { (side / p - 0.5).ceil() as i64 } else { 0 })
}

/// The limits for all degrees for which there is one.
fn far_sums(shape: Shape, degrees: usize, sizes: usize) -> Vec<f64> {
    let (block, dimensions) = (smallest_block(shape), shape.dimensions());
    let length = slot(degrees + 1, 0) + degrees;
    let mut partial: Vec<Vec<f64>> = vec![];
    let mut sum = memory::filled(0.0, length);
    for size in 0..sizes {
        let shell = shell_sums(shape, block, size, degrees, length);
        sum.iter_mut().zip(&shell).for_each(|(s, v)| *s += v);
        partial.push(memory::copy(&sum));
    }
    for k in (0..degrees).step_by(2) {
        let power = dimensions as f64 - 1.0 - k as f64;
        if power >= 0.0 {
            continue;
        }
        let weights = limit_weights(sizes, power);
        for m in (0..=k).step_by(2) {
            sum[slot(k, m)] = (0..sizes).map(|s| weights[s] * partial[s][slot(k, m)]).sum();
        }
    }
    sum
}

/// What the cells of block `size` add that are not in the one before, nor near.
fn shell_sums(shape: Shape, block: [i64; 3], size: usize, degrees: usize, length: usize) -> Vec<f64> {
    let wide = |m: i64, s: usize| ((2 * m + 1) * (2 * s as i64 + 1) - 1) / 2;
    let half = |s: usize| std::array::from_fn(|i| if shape.period[i] > 0.0 { wide(block[i], s) } else { 0 });
    let (outer, inner): ([i64; 3], [i64; 3]) = (half(size), if size > 0 { half(size - 1) } else { [-1; 3] });
    let ratio = (2 * size).max(1) as f64 - if size > 0 { 1.0 } else { 0.0 };
    // Degrees whose terms are of any size beside those of the first block.
    let seen = |k: usize| size == 0 || ratio.powf(-(k as f64 - 2.0)) > NEGLIGIBLE;
    let degrees = (0..degrees).filter(|&k| seen(k)).count();
    let columns = (0..outer[0] as usize + 1).into_par_iter().map(|x| {
        let x = x as i64;
        let mut sums = memory::filled(0.0, length);
        let mut scratch = memory::filled(0.0, degrees * degrees);
        for y in 0..=outer[1] {
            for z in 0..=outer[2] {
                let n = [x, y, z];
                let inside = (0..3).all(|i| n[i] <= inner[i]);
                let r = shape.vector(n);
                if !inside && !shape.is_near(r) {
                    add(r, mirrors(n), degrees, &mut scratch, &mut sums);
                }
            }
        }
        sums
    });
    let columns: Vec<Vec<f64>> = memory::par_collect(columns);
    let mut total = memory::filled(0.0, length);
    for column in &columns {
        total.iter_mut().zip(column).for_each(|(t, v)| *t += v);
    }
    total
}

/// Weights of the partial sums whose combination has no terms of the powers `power`, `power` - 2, … of the width w. With
/// t = 1/w² a weight times w^power is that of the highest divided difference in t, in which lower powers of t vanish.
fn limit_weights(sizes: usize, power: f64) -> Vec<f64> {
    let width = |s: usize| (2 * s + 1) as f64 / (2 * sizes - 1) as f64;
    let others = |s: usize| (0..sizes).filter(move |&r| r != s);
    let difference = |s: usize| others(s).map(|r| width(s).powi(-2) - width(r).powi(-2)).product::<f64>();
    let mut weights: Vec<f64> = memory::collect((0..sizes).map(|s| width(s).powf(-power) / difference(s)));
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    weights
}

/// Degree 0, and degree 2 of m = 0 and m = 2, of Ewald's sum over all images but the one at the origin.
fn ewald(shape: Shape) -> [f64; 3] {
    let volume = shape.volume();
    let alpha = PI.sqrt() / volume.cbrt();
    let reach = 6.2;
    let ranges = |step: [f64; 3], far: f64| step.map(|s| (far / s).ceil() as i64);
    let mut sums = [0.0; 3];
    // Curvatures along z, and along x minus along y.
    let mut add = |v: f64, curved: [f64; 3], trace: f64, weight: f64| {
        sums[0] += weight * v;
        sums[1] += weight * (curved[2] - trace / 3.0) / 2.0;
        sums[2] += weight * (curved[0] - curved[1]) / (2.0 * 3f64.sqrt());
    };
    for_octant(ranges(shape.period, reach / alpha), |n| {
        let r2 = square(shape.vector(n));
        let r = r2.sqrt();
        let (e, g) = (libm::erfc(alpha * r), 2.0 * alpha / PI.sqrt() * (-alpha * alpha * r2).exp());
        // f = erfc(αr)/r: f'/r, and (f'' - f'/r)/r².
        let first = -(e / r + g) / r2;
        let second = (3.0 * e / r + 3.0 * g + 2.0 * alpha * alpha * r2 * g) / (r2 * r2);
        let x = shape.vector(n);
        let curved = x.map(|v| first + second * v * v);
        add(e / r, curved, curved.iter().sum(), mirrors(n));
    });
    let wave = shape.period.map(|p| 2.0 * PI / p);
    for_octant(ranges(wave, 2.0 * alpha * reach), |n| {
        let k: [f64; 3] = std::array::from_fn(|i| n[i] as f64 * wave[i]);
        let k2 = square(k);
        let f = 4.0 * PI / volume * (-k2 / (4.0 * alpha * alpha)).exp() / k2;
        let curved = k.map(|v| -f * v * v);
        add(f, curved, curved.iter().sum(), mirrors(n));
    });
    sums[0] -= 2.0 * alpha / PI.sqrt() + PI / (alpha * alpha * volume);
    sums
}

/// Near images are summed for themselves.
fn subtract_near(shape: Shape, sums: &mut [f64], degrees: usize) {
    let mut scratch = memory::filled(0.0, degrees * degrees);
    for_octant(shape.most_periods(), |n| {
        let r = shape.vector(n);
        if shape.is_near(r) {
            add(r, -mirrors(n), degrees, &mut scratch, sums);
        }
    });
}

/// Largest difference of two sets of sums, relative to the largest sum of the degree or, where all are small, to the nearest image.
pub fn difference(shape: Shape, degrees: Range<usize>, a: &[f64], b: &[f64]) -> f64 {
    let nearest = shape.nearest_left_out();
    let of_degree = |k: usize| {
        let all = (0..=k).step_by(2).map(|m| slot(k, m));
        let size = all.clone().map(|i| a[i].abs()).fold(nearest.powi(-(k as i32) - 1), f64::max);
        all.map(|i| (a[i] - b[i]).abs()).fold(0.0, f64::max) / size
    };
    degrees.filter(|k| k % 2 == 0).map(of_degree).fold(0.0, f64::max)
}

/// Adds S_i(R) times `weight` to the sums of degrees below `degrees`; R in the octant.
fn add(r: [f64; 3], weight: f64, degrees: usize, scratch: &mut [f64], sums: &mut [f64]) {
    let inverse = 1.0 / square(r);
    regular(degrees, r.map(|v| v * inverse), scratch);
    let f = weight * inverse.sqrt();
    for k in (0..degrees).step_by(2) {
        for m in (0..=k).step_by(2) {
            sums[slot(k, m)] += f * scratch[index(k, m, false)];
        }
    }
}

/// All of an octant but the origin.
fn for_octant(most: [i64; 3], mut f: impl FnMut([i64; 3])) {
    for x in 0..=most[0] {
        for y in 0..=most[1] {
            for z in 0..=most[2] {
                if x + y + z > 0 {
                    f([x, y, z]);
                }
            }
        }
    }
}
