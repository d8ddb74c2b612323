use super::*;
use crate::backend::cpu::passes::{self, LeafSources};
use crate::backend::cpu::tree::{Root, bounds};
use crate::math::biot_savart::{charge, particle};
use crate::math::harmonics::MAX_ORDER;
use crate::math::regularization::Part;
use crate::options::Regularization;

type Vec3 = [f64; 3];

fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut s = seed;
    move || {
        s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        2.0 * ((s >> 11) as f64 / (1u64 << 53) as f64) - 1.0
    }
}

/// One cell of 40 sources, and the exact field of it.
struct Case {
    tree: Tree,
    positions: Vec<Vec3>,
    strength: Vec<Vec3>,
}

impl Case {
    fn new() -> Self {
        let mut r = random(5);
        let positions: Vec<Vec3> = (0..40).map(|_| [1.3 + 0.2 * r(), 0.2 * r() - 0.4, 0.2 * r()]).collect();
        // The first component, which is the charge, does not cancel.
        let strength = (0..40).map(|_| [0.6 + 0.5 * r(), r(), r()]).collect();
        let root = Root::around(&[bounds(&positions, &[])]);
        let (tree, _) = Tree::build(&positions, &[], root, 100, None);
        Self { tree, positions, strength }
    }

    /// `[row][target]`
    fn exact<const C: usize>(&self, targets: &[Vec3], gradient: bool) -> Vec<f64> {
        let count = shape(C, gradient).0;
        let mut out = vec![0.0; count * targets.len()];
        for (k, &t) in targets.iter().enumerate() {
            for (&x, &a) in self.positions.iter().zip(&self.strength) {
                let values: Vec<f64> = if C == 1 {
                    let v = charge(t, x, a[0]);
                    std::iter::once(v.potential).chain(v.gradient).collect()
                } else {
                    let v = particle(Regularization::None, Part::Singular, t, x, a, 0.0);
                    v.velocity.into_iter().chain(v.gradient.into_iter().flatten()).collect()
                };
                (0..count).for_each(|row| out[row * targets.len() + k] += values[row]);
            }
        }
        out
    }

    /// The same from multipoles of order `most`, of which the first `p` degrees are used.
    fn expanded<T: Real, const C: usize>(
        &self,
        [most, p]: [usize; 2],
        center: Vec3,
        targets: &[Vec3],
        gradient: bool,
    ) -> Vec<f64> {
        let ops = crate::backend::cpu::cost::operators::<T>(most);
        let mut multipoles = vec![T::ZERO; C * most * most];
        passes::p2m::<T, C>(&ops, &self.tree, &mut multipoles, |cell, to: &mut LeafSources<T, C>| {
            for (x, a) in self.positions.iter().zip(&self.strength) {
                to.push_point(
                    std::array::from_fn(|i| T::of((x[i] - cell.center[i]) / cell.scale)),
                    std::array::from_fn(|i| T::of(a[i])),
                );
            }
        });
        let series = Series::new(most, C, gradient);
        let mut rows = Rows::default();
        rows.make::<C>(&series, &self.tree, &multipoles, gradient);
        let list = [FarCell { order: p as u8, image: 0, cell: 0 }];
        let x = std::array::from_fn(|i| targets.iter().map(|t| T::of(t[i] - center[i])).collect());
        let mut out = vec![T::ZERO; shape(C, gradient).0 * targets.len()];
        let far = Far { series: &series, rows: &rows, sources: &self.tree.cells, list: &list, center };
        far.add(&x, &mut vec![], &mut out);
        out.into_iter().map(|v| v.f64()).collect()
    }
}

/// A group of targets some `distance` radii of the source cell away.
fn group(case: &Case, distance: f64, count: usize) -> (Vec3, Vec<Vec3>) {
    let (c, mut r) = (&case.tree.cells[0], random(11));
    let direction = [0.48, -0.6, 0.64];
    let center: Vec3 = std::array::from_fn(|i| c.center[i] + distance * c.radius * direction[i]);
    (center, (0..count).map(|_| center.map(|x| x + 0.2 * c.radius * r())).collect())
}

/// Of the main rows, and of the gradient's.
fn errors<const C: usize>(got: &[f64], want: &[f64], targets: usize) -> [f64; 2] {
    let main = shape(C, false).0 * targets;
    let part = |r: std::ops::Range<usize>| {
        let square = |v: f64| v * v;
        let wrong: f64 = r.clone().map(|k| square(got[k] - want[k])).sum();
        (wrong / r.map(|k| square(want[k])).sum::<f64>()).sqrt()
    };
    [part(0..main), if got.len() > main { part(main..got.len()) } else { 0.0 }]
}

/// Relative errors at all orders: each below the bound of its order, and falling as (a/d)^p.
fn falls<const C: usize>(gradient: bool) {
    let (case, distance) = (Case::new(), 3.0);
    let (center, targets) = group(&case, distance, 21);
    let want = case.exact::<C>(&targets, gradient);
    let of = |p: usize| {
        let got = case.expanded::<f64, C>([p, p], center, &targets, gradient);
        errors::<C>(&got, &want, targets.len())
    };
    let all: Vec<[f64; 2]> = (1..=MAX_ORDER).map(of).collect();
    for (k, found) in all.iter().enumerate() {
        let p = k + 1;
        // The nearest target is 0.35 radii nearer than the centre.
        let bound = 4.0 * ((p + 1) * (p + 1)) as f64 * (1.0 / (distance - 0.35)).powi(p as i32) + 3e-14;
        assert!(found.iter().all(|e| *e <= bound), "{C} components, order {p}: {found:?}, bound {bound:e}");
    }
    let parts = if gradient { 0..2 } else { 0..1 };
    for which in parts {
        let rate = (all[23][which] / all[5][which]).powf(1.0 / 18.0);
        assert!((0.15..0.38).contains(&rate), "{C} components: errors fall by {rate} an order");
        assert!(all[MAX_ORDER - 1][which] < 3e-13, "{C} components: {:e}", all[MAX_ORDER - 1][which]);
    }
}

#[test]
fn velocities_converge_with_the_order() {
    falls::<3>(false);
    falls::<3>(true);
}

#[test]
fn potentials_converge_with_the_order() {
    falls::<1>(false);
    falls::<1>(true);
}

/// The degrees of a lower order are a part of those of a higher one, bit by bit, for any number of targets.
#[test]
fn a_lower_order_is_a_part_of_a_higher_one() {
    let case = Case::new();
    for count in [1, 7, 8, 9, 33] {
        let (center, targets) = group(&case, 3.0, count);
        let want = case.exact::<3>(&targets, false);
        let low = case.expanded::<f64, 3>([6, 6], center, &targets, false);
        let part = case.expanded::<f64, 3>([14, 6], center, &targets, false);
        let difference = low.iter().zip(&part).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let size = want.iter().fold(0.0, |a, v| f64::max(a, v.abs()));
        assert!(difference < 1e-14 * size, "{count} targets: {difference:e} of {size:e}");
    }
}

#[test]
fn single_precision_has_its_digits() {
    let case = Case::new();
    let (center, targets) = group(&case, 3.0, 19);
    for gradient in [false, true] {
        let want = case.exact::<3>(&targets, gradient);
        let got = case.expanded::<f32, 3>([18, 18], center, &targets, gradient);
        let [u, g] = errors::<3>(&got, &want, targets.len());
        assert!(u < 2e-6 && g < 1e-5, "{u:e} {g:e}");
    }
}
