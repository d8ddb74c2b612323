//! Quadrature on the unit sphere: the points at which pseudo-particles sit.
//!
//! The product rule (Stroud 1971, Section 2.7; Makino 1999 names it beside spherical designs): Gauss's nodes along z, on each ring
//! points at equal angles. With `order` rings of 2 `order` - 1 points it is exact for all harmonics up to degree 2 `order` - 2,
//! what products of two harmonics below `order` need. Spherical designs, which Yokota et al. (2009) take, need a little less: 216
//! points in place of their order 10 here are 231.

use super::harmonics::gauss_legendre;
use crate::memory;
use std::f64::consts::PI;

/// Points with weights that add to one.
#[derive(Debug, Clone, Default)]
pub struct Sphere {
    pub points: Vec<[f64; 3]>,
    pub weights: Vec<f64>,
}

/// Number of points for expansions of `order` (degrees 0 .. order - 1).
pub const fn count(order: usize) -> usize {
    order * (2 * order - 1)
}

impl Sphere {
    pub fn new(order: usize) -> Self {
        let (z, weights) = gauss_legendre(order);
        let ring = 2 * order - 1;
        let mut new = Self { points: memory::with_room(count(order)), weights: memory::with_room(count(order)) };
        for (k, (&z, &w)) in z.iter().zip(&weights).enumerate() {
            let rho = (1.0 - z * z).sqrt();
            for i in 0..ring {
                // Rings are turned against each other, so that no meridian has a point of each.
                let (s, c) = (2.0 * PI * (i as f64 + 0.5 * (k % 2) as f64) / ring as f64).sin_cos();
                new.points.push([rho * c, rho * s, z]);
                new.weights.push(0.5 * w / ring as f64);
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::harmonics::regular;

    /// The mean of every harmonic but the constant is zero up to the degree promised, and not of all beyond.
    #[test]
    fn the_rule_is_exact_to_its_degree() {
        for order in 1..=16 {
            let sphere = Sphere::new(order);
            assert_eq!(sphere.points.len(), count(order));
            let degrees = 2 * order + 3;
            let (mut mean, mut r) = (vec![0.0; degrees * degrees], vec![0.0; degrees * degrees]);
            for (&x, &w) in sphere.points.iter().zip(&sphere.weights) {
                assert!((x.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-14);
                regular(degrees, x, &mut r);
                mean.iter_mut().zip(&r).for_each(|(m, r)| *m += w * r);
            }
            let worst =
                |from: usize, to: usize| mean[from * from..to * to].iter().fold(0.0, |a: f64, v| a.max(v.abs()));
            assert!((mean[0] - 1.0).abs() < 1e-13, "order {order}");
            assert!(worst(1, 2 * order - 1) < 1e-13, "order {order}: {:e}", worst(1, 2 * order - 1));
            assert!(worst(2 * order - 1, degrees) > 1e-3, "order {order}");
        }
    }

    /// Beside Table 1 of Yokota et al. (2009), whose p is the highest degree: never fewer points, and at most half as many again
    /// from p = 2 on.
    #[test]
    fn points_are_about_as_many_as_in_the_paper() {
        let table = [4, 14, 26, 36, 60, 84, 108, 144, 180, 216];
        for (k, &theirs) in table.iter().enumerate() {
            let ours = count(k + 2);
            assert!(ours >= theirs && 2 * ours <= 3 * theirs, "p = {}: {ours} {theirs}", k + 1);
        }
    }
}
