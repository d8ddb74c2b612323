//! Each translation of pseudo-particles against harmonics, or against the sources themselves.

use super::*;
use crate::math::harmonics::regular;

const SOURCES: [([f64; 3], f64); 4] =
    [([0.3, -0.5, 0.2], 1.0), ([-0.6, 0.1, 0.4], -0.7), ([0.1, 0.2, -0.8], 0.4), ([0.0, 0.0, 0.0], 0.9)];

/// Moments Σ q R_n^m(x) below `degrees`.
fn moments(degrees: usize, sources: impl Iterator<Item = ([f64; 3], f64)>) -> Vec<f64> {
    let (mut sum, mut r) = (vec![0.0; degrees * degrees], vec![0.0; degrees * degrees]);
    for (x, q) in sources {
        regular(degrees, x, &mut r);
        sum.iter_mut().zip(&r).for_each(|(s, r)| *s += q * r);
    }
    sum
}

/// Local expansion Σ q S_n^m(x) below `degrees`: S is R at the inverted position over the distance.
fn local(degrees: usize, sources: impl Iterator<Item = ([f64; 3], f64)>) -> Vec<f64> {
    moments(
        degrees,
        sources.map(|(x, q)| {
            let r2: f64 = x.iter().map(|v| v * v).sum();
            (x.map(|v| v / r2), q / r2.sqrt())
        }),
    )
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (a, b)| f64::max(m, (a - b).abs()))
}

/// The pseudo-particles on a sphere of radius `s` around `at`.
fn on_sphere<'a>(p: &'a Pseudo, at: [f64; 3], s: f64, q: &'a [f64]) -> impl Iterator<Item = ([f64; 3], f64)> + 'a {
    p.sphere.points.iter().zip(q).map(move |(y, q)| (std::array::from_fn(|a| at[a] + s * y[a]), *q))
}

#[test]
fn sources_become_particles_with_their_multipoles() {
    for order in [1, 2, 3, 6, 10, 16] {
        let p = Pseudo::new(order);
        let mut q = vec![0.0; p.terms()];
        SOURCES.iter().for_each(|&(x, s)| p.add::<1>(Side::Inside, x, 1.3, [s], &mut q));
        let (want, got) = (moments(order, SOURCES.into_iter()), moments(order, on_sphere(&p, [0.0; 3], 1.3, &q)));
        assert!(apart(&want, &got) < 1e-12, "order {order}: {:e}", apart(&want, &got));
    }
}

#[test]
fn lines_become_particles_with_their_multipoles() {
    let (order, k) = (9, 400);
    let p = Pseudo::new(order);
    let mut leaf = LeafSources::<f64, 1>::default();
    let (middle, half) = ([0.2, -0.1, 0.1], [0.3, 0.2, -0.4]);
    leaf.push_line(middle, half, [0.8]);
    leaf.push_point([0.1, 0.5, -0.3], [-0.4]);
    let (tree, _) =
        Tree::build(&[[0.0; 3]], &[], crate::backend::cpu::tree::Root { corner: [-0.5; 3], edge: 1.0 }, 1, None);
    let mut q = vec![0.0; p.terms()];
    p.p2m::<f64, 1>(&tree, &mut q, |_, to| to.widen(&leaf));
    let (nodes, weights) = gauss_legendre(k);
    let line = nodes.iter().zip(&weights).map(|(t, w)| (std::array::from_fn(|a| middle[a] + t * half[a]), 0.4 * w));
    let want = moments(order, line.chain(std::iter::once(([0.1, 0.5, -0.3], -0.4))));
    let got = moments(order, on_sphere(&p, [0.0; 3], 1.0, &q));
    assert!(apart(&want, &got) < 1e-12, "{:e}", apart(&want, &got));
}

/// M2M adds no error below its order.
#[test]
fn multipoles_are_shifted_exactly() {
    for order in [2, 5, 12] {
        let p = Pseudo::new(order);
        let (at, s, radius) = ([0.5, -0.5, 0.5], 0.9, 2.0);
        let mut q = vec![0.0; p.terms()];
        SOURCES.iter().for_each(|&(x, v)| p.add::<1>(Side::Inside, x, s, [v], &mut q));
        let mut above = vec![0.0; p.terms()];
        p.translate::<f64, 1>(Side::Inside, (at, s), &q, ([0.0; 3], radius), &mut above);
        let moved = SOURCES.map(|(x, q)| (std::array::from_fn(|a| x[a] + at[a]), q));
        let (want, got) = (moments(order, moved.into_iter()), moments(order, on_sphere(&p, [0.0; 3], radius, &above)));
        let unit = want.iter().fold(1.0, |m, v| f64::max(m, v.abs()));
        assert!(apart(&want, &got) < 1e-12 * unit, "order {order}: {:e}", apart(&want, &got) / unit);
    }
}

/// Sources outside become particles with their local expansion (M2L, L2L).
#[test]
fn local_expansions_are_those_of_the_sources() {
    for order in [1, 2, 5, 10, 16] {
        let p = Pseudo::new(order);
        let far = SOURCES.map(|(x, q)| ([x[0] + 3.0, x[1] - 1.0, x[2] + 0.5], q));
        let mut q = vec![0.0; p.terms()];
        far.iter().for_each(|&(x, v)| p.add::<1>(Side::Outside, x, LOCAL_RADIUS, [v], &mut q));
        let (want, got) = (local(order, far.into_iter()), local(order, on_sphere(&p, [0.0; 3], LOCAL_RADIUS, &q)));
        assert!(apart(&want, &got) < 1e-12, "order {order}: {:e}", apart(&want, &got));
    }
}

/// From sources through M2L, L2L and L2P to the field, whose error falls with the order as the ratio of the distances says.
#[test]
fn the_whole_chain_has_the_field_of_the_sources() {
    let far: [([f64; 3], f64); 4] =
        SOURCES.map(|(x, q)| (std::array::from_fn(|a| 0.5 * x[a] + [3.0, -1.5, 1.0][a]), q));
    let (child, scale, target) = ([0.4, 0.4, -0.4], 0.5, [0.3, -0.2, 0.1]);
    let mut last = f64::INFINITY;
    for order in [3, 6, 9, 12, 15] {
        let p = Pseudo { radii: vec![LOCAL_RADIUS * scale], ..Pseudo::new(order) };
        let mut multipole = vec![0.0; p.terms()];
        SOURCES.iter().for_each(|&(x, q)| p.add::<1>(Side::Inside, x, 1.0, [q], &mut multipole));
        let (mut above, mut below) = (vec![0.0; p.terms()], vec![0.0; p.terms()]);
        p.translate::<f64, 1>(Side::Outside, ([3.0, -1.5, 1.0], 0.5), &multipole, ([0.0; 3], LOCAL_RADIUS), &mut above);
        let to = (child, LOCAL_RADIUS * scale);
        p.translate::<f64, 1>(Side::Outside, ([0.0; 3], LOCAL_RADIUS), &above, to, &mut below);
        let x = target.map(|v| vec![v]);
        let mut got = vec![0.0; 4];
        p.l2p::<f64, 1>((0, scale), &below, true, &x, &mut got);
        let mut want = [0.0; 12];
        let at: [f64; 3] = std::array::from_fn(|a| child[a] + scale * target[a]);
        far.iter().for_each(|&(x, q)| charge(q, std::array::from_fn(|a| at[a] - x[a]), &mut want));
        let error = (0..4).map(|i| (got[i] - want[i]).powi(2)).sum::<f64>().sqrt();
        println!("order {order}: {error:.2e}");
        assert!(error < 0.2 * last, "order {order}: {error:e} after {last:e}");
        last = error;
    }
    assert!(last < 1e-7, "{last:e}");
}

/// The rows of vortices are the curl of the potentials, and their derivatives.
#[test]
fn vortices_have_the_rows_of_the_oracle() {
    let (a, x, at) = ([0.3, -0.8, 0.5], [0.4, 0.7, -0.2], [1.1, -0.3, 0.6]);
    let mut sum = [0.0; 12];
    vortex(a, std::array::from_fn(|i| at[i] - x[i]), &mut sum);
    let none = crate::options::Regularization::None;
    let part = crate::math::regularization::Part::Singular;
    let want = crate::math::biot_savart::particle(none, part, at, x, a, 0.0);
    let want: Vec<f64> = want.velocity.iter().chain(want.gradient.as_flattened()).copied().collect();
    assert!(apart(&want, &sum) < 1e-14, "{:e}", apart(&want, &sum));
}
