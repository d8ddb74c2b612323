//! Sums of Gaussians: the vorticity that particles carry, at points.
//!
//! Enters: positions and squared core radii of particles, a ground plane; then strengths and points. Leaves: Σ_j a_j ζ(x - x_j), ζ the Gaussian
//! of deviation c_j, cut off at `REACH` of it, images in the plane included. Sources lie in cells as wide as half the longest
//! reach, in the order of the cells, so that a row of cells is one run of sources. On a device the same is done by kernels, in the
//! same cells.

use std::f64::consts::PI;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::state::row;
use crate::backend::cuda::gaussians::args::CellsArg;
use crate::math::biot_savart::{Vec3, dot, sub};
use crate::memory;
use crate::options::Plane;

/// Core radii beyond which a Gaussian is zero: exp(-18) of its middle, 7e-8 of its integral is left out.
const REACH: f64 = 6.0;
/// Cells that a reach covers.
const CELLS: i64 = 2;
/// Bits of a cell's number along one axis.
const BITS: u32 = 21;
/// Points that one thread takes at a time.
const SHARE: usize = 64;

/// The squared distance beyond which the Gaussian of a squared core is zero.
pub fn reach2(core2: f64) -> f64 {
    REACH * REACH * core2
}

#[derive(Debug, Clone, Copy)]
struct Source {
    position: Vec3,
    /// -1/(2c²), 1/((2π)^1.5 c³), REACH² c².
    exponent: f64,
    factor: f64,
    cut2: f64,
    of: u32,
    image: bool,
}

/// Cells as wide as half the longest reach, around particles and their images in a plane.
#[derive(Debug, Clone, Copy)]
pub struct Cells {
    origin: Vec3,
    side: f64,
    /// Of all positions along the longest axis.
    extent: f64,
    reach: f64,
    plane: Option<Plane>,
}

impl Cells {
    /// For positions between two corners; the largest core squared is positive.
    pub fn new(mut low: Vec3, mut high: Vec3, largest: f64, plane: Option<Plane>) -> Self {
        let reach = REACH * largest.sqrt();
        if let Some(plane) = plane {
            // Images are those of positions closer to the plane than the reach.
            let (axis, at) = (plane.axis, plane.position);
            let image = [plane.mirror(high)[axis].max(at - reach), plane.mirror(low)[axis].min(at + reach)];
            if image[0] <= image[1] {
                (low[axis], high[axis]) = (low[axis].min(image[0]), high[axis].max(image[1]));
            }
        }
        let extent = sub(high, low).into_iter().fold(0.0, f64::max);
        let side = (reach / CELLS as f64).max(extent / f64::from(1u32 << (BITS - 1)));
        Self { origin: low, side, extent, reach, plane }
    }

    /// The numbers of a point's cell, negative before the first.
    fn of(&self, x: Vec3) -> [i64; 3] {
        std::array::from_fn(|i| ((x[i] - self.origin[i]) / self.side).floor() as i64)
    }

    /// Whether a particle's image counts.
    fn has_image(&self, plane: Plane, x: Vec3) -> bool {
        (x[plane.axis] - plane.position).abs() < self.reach
    }

    /// The same for kernels, with no more bits of keys than these cells need.
    pub fn argument(&self) -> CellsArg {
        let last = (self.extent / self.side).floor() as u64;
        CellsArg {
            origin: self.origin,
            side: self.side,
            reach2: REACH * REACH,
            beside: self.reach,
            position: self.plane.map_or(0.0, |plane| plane.position),
            axis: self.plane.map_or(-1, |plane| plane.axis as i64),
            bits: i64::from((u64::BITS - last.leading_zeros()).clamp(1, BITS)),
            around: CELLS,
        }
    }
}

pub struct Gaussians {
    sources: Vec<Source>,
    /// Cells of the sources, ascending.
    keys: Vec<u64>,
    cells: Cells,
}

fn key([x, y, z]: [i64; 3]) -> u64 {
    (x as u64) << (2 * BITS) | (y as u64) << BITS | z as u64
}

impl Gaussians {
    /// All cores are positive.
    pub fn new(x: &[f64], core2: &[f64], plane: Option<Plane>) -> Self {
        let corner = |fold: fn(f64, f64) -> f64, first: f64| -> Vec3 {
            std::array::from_fn(|i| (0..core2.len()).fold(first, |m, k| fold(m, x[3 * k + i])))
        };
        let largest = core2.iter().copied().fold(0.0, f64::max);
        let cells = Cells::new(corner(f64::min, f64::INFINITY), corner(f64::max, f64::NEG_INFINITY), largest, plane);
        let mut all = memory::with_room(core2.len());
        for (k, &c2) in core2.iter().enumerate() {
            let factor = 1.0 / ((2.0 * PI * c2).powf(1.5));
            let here = Source {
                position: row(x, k),
                exponent: -0.5 / c2,
                factor,
                cut2: reach2(c2),
                of: k as u32,
                image: false,
            };
            memory::push(&mut all, here);
            if let Some(plane) = plane.filter(|p| cells.has_image(*p, here.position)) {
                memory::push(&mut all, Source { position: plane.mirror(here.position), image: true, ..here });
            }
        }
        let mut order = memory::collect(all.iter().enumerate().map(|(k, s)| (key(cells.of(s.position)), k)));
        order.sort_unstable();
        let sources = memory::collect(order.iter().map(|&(_, k)| all[k]));
        let keys = memory::collect(order.iter().map(|&(key, _)| key));
        Self { sources, keys, cells }
    }

    /// The sums at points, for the strengths of the particles.
    pub fn at(&self, pool: &ThreadPool, points: &[f64], strength: &[f64]) -> Vec<f64> {
        let carried = memory::collect(self.sources.iter().map(|s| {
            let a = row(strength, s.of as usize).map(|a| s.factor * a);
            self.cells.plane.filter(|_| s.image).map_or(a, |plane| plane.mirror_strength(a))
        }));
        let mut sums = memory::filled(0.0, points.len());
        pool.install(|| {
            sums.par_chunks_mut(3).with_min_len(SHARE).enumerate().for_each(|(k, sum)| {
                sum.copy_from_slice(&self.one(row(points, k), &carried));
            });
        });
        sums
    }

    fn one(&self, x: Vec3, carried: &[Vec3]) -> Vec3 {
        let [i, j, k] = self.cells.of(x);
        let last = (1i64 << BITS) - 1;
        let mut sum = [0.0; 3];
        for i in (i - CELLS).max(0)..=(i + CELLS).min(last) {
            for j in (j - CELLS).max(0)..=(j + CELLS).min(last) {
                if k + CELLS < 0 || k - CELLS > last {
                    continue;
                }
                let (low, high) = (key([i, j, (k - CELLS).max(0)]), key([i, j, (k + CELLS).min(last)]));
                let from = self.keys.partition_point(|key| *key < low);
                let to = from + self.keys[from..].partition_point(|key| *key <= high);
                for (s, a) in self.sources[from..to].iter().zip(&carried[from..to]) {
                    let d = sub(x, s.position);
                    let r2 = dot(d, d);
                    if r2 < s.cut2 {
                        let bell = (s.exponent * r2).exp();
                        (0..3).for_each(|i| sum[i] += bell * a[i]);
                    }
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_over_all_pairs_and_images() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let number = |k: usize| ((k * 7919 + 13) % 1009) as f64 / 1009.0;
        let n = 300;
        let x: Vec<f64> = (0..3 * n).map(|k| 4.0 * number(k)).collect();
        let a: Vec<f64> = (0..3 * n).map(|k| number(k + 5000) - 0.5).collect();
        let core2: Vec<f64> = (0..n).map(|k| (0.1 + 0.2 * number(k + 900)).powi(2)).collect();
        let points: Vec<f64> = (0..60).map(|k| 6.0 * number(k + 77) - 1.0).collect();
        for plane in [None, Some(Plane { axis: 1, position: -0.1 })] {
            let got = Gaussians::new(&x, &core2, plane).at(&pool, &points, &a);
            let (mut error, mut size) = (0.0f64, 0.0f64);
            for k in 0..20 {
                let mut want = [0.0; 3];
                for j in 0..n {
                    let mut add = |at: Vec3, a: Vec3| {
                        let d = sub(row(&points, k), at);
                        let bell = (-0.5 * dot(d, d) / core2[j]).exp() / (2.0 * PI * core2[j]).powf(1.5);
                        (0..3).for_each(|i| want[i] += bell * a[i]);
                    };
                    add(row(&x, j), row(&a, j));
                    if let Some(plane) = plane {
                        add(plane.mirror(row(&x, j)), plane.mirror_strength(row(&a, j)));
                    }
                }
                for i in 0..3 {
                    error = error.max((got[3 * k + i] - want[i]).abs());
                    size = size.max(want[i].abs());
                }
            }
            assert!(error < 1e-7 * size && size > 0.1, "{error} {size}");
        }
    }
}
