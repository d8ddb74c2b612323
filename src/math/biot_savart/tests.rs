use std::f64::consts::PI;

use super::*;
use crate::math::double_double::{self as dd, DD};
use Regularization::*;

const PARTICLES: [Regularization; 7] = [None, GaussErf, Exponential, Compact, Rosenhead, Winckelmans, Polynomial];
const SEGMENTS: [Regularization; 6] = [None, Rankine, LambOseen, Vatistas, Scully, Offset];
const PARTS: [Part; 3] = [Part::Regularized, Part::Singular, Part::Correction];

/// Numbers of a fixed sequence in (-1, 1).
struct Sequence(u64);
impl Sequence {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    fn vector(&mut self) -> Vec3 {
        [self.next(), self.next(), self.next()]
    }
}

fn largest(m: &Mat3) -> f64 {
    m.iter().flatten().fold(0.0, |a, b| a.max(b.abs()))
}

fn distance(a: Vec3, b: Vec3) -> f64 {
    norm(sub(a, b))
}

#[test]
fn known_values_of_one_segment() {
    // The published values, good to 2e-14 only: their D cancels. The second column was computed with 40 digits.
    let values = [
        (None, 3.174316846759495, 3.174316846759421748),
        (Rankine, 0.03174316846759495, 0.03174316846759422101),
        (LambOseen, 0.03963356378147256, 0.03963356378147147495),
        (Vatistas, 0.03174158142819854, 0.03174158142819780418),
        (Offset, 0.01586230555830498, 0.01586230555830497280),
    ];
    for (reg, published, exact) in values {
        let u = segment(reg, Part::Regularized, [0.05, 0.0, -0.5], [0.0, 0.0, -1.0], [0.0, 0.0, 1.0], 1.0, 0.5);
        let got = u.velocity[1] / (4.0 * PI);
        assert!((got / published - 1.0).abs() < 4e-14, "{reg:?} {got}");
        assert!((got / exact - 1.0).abs() < 1e-15, "{reg:?} {got}");
        assert_eq!((u.velocity[0], u.velocity[2]), (0.0, 0.0));
    }
}

#[test]
fn particle_is_the_sum_of_its_formula() {
    // physics: u = a × d S(r), written out once more.
    let (x, p, a, c) = ([0.3, -0.2, 0.9], [0.1, 0.4, 0.2], [0.7, -1.1, 0.4], 0.8);
    let d = sub(x, p);
    let r = norm(d);
    for (reg, s) in [
        (None, r.powi(-3)),
        (Exponential, (1.0 - (-(r / c).powi(3)).exp()) / r.powi(3)),
        (Compact, 1.0 / (r.powi(6) + c.powi(6)).sqrt()),
        (Rosenhead, (r * r + c * c).powf(-1.5)),
        (Winckelmans, (r * r + 2.5 * c * c) * (r * r + c * c).powf(-2.5)),
        (Polynomial, if r <= c { (r / c).powi(2) / r.powi(3) } else { r.powi(-3) }),
    ] {
        let u = particle(reg, Part::Regularized, x, p, a, c).velocity;
        let want = cross(a, d).map(|v| v * s);
        assert!(distance(u, want) < 1e-15 * norm(want) * 4.0, "{reg:?}");
    }
}

#[test]
fn no_value_is_exactly_zero() {
    for part in PARTS {
        for core in [0.0, 0.2] {
            for reg in PARTICLES {
                let p = [0.1, 0.7, -0.3];
                assert_eq!(particle(reg, part, p, p, [1.0, 2.0, 3.0], core), Induced::default());
            }
            for reg in SEGMENTS {
                let (p1, p2) = ([0.25, 0.5, -1.0], [1.25, 2.5, 3.0]);
                // End points, middle, extensions; and no length.
                for k in [0.0, 1.0, 0.5, -1.0, 2.0] {
                    let x = std::array::from_fn(|i| p1[i] + k * (p2[i] - p1[i]));
                    let beyond = !(0.0..=1.0).contains(&k);
                    if part == Part::Correction && beyond && core > 0.0 && reg != None {
                        continue; // the next test
                    }
                    assert_eq!(segment(reg, part, x, p1, p2, 3.0, core), Induced::default());
                }
                assert_eq!(segment(reg, part, [1.0, 2.0, 3.0], p1, p1, 3.0, core), Induced::default());
            }
        }
    }
    let mut seq = Sequence(9);
    for _ in 0..200 {
        let (p1, p2) = (seq.vector(), seq.vector());
        assert_eq!(segment(None, Part::Regularized, p1, p1, p2, 1.0, 0.0), Induced::default());
        assert_eq!(segment(None, Part::Regularized, p2, p1, p2, 1.0, 0.0), Induced::default());
    }
    assert_eq!(charge([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 5.0), Attraction::default());
}

/// The middle of two points is on their line however it is rounded; three last digits beside it is not.
#[test]
fn a_rounded_middle_is_on_the_line() {
    let mut seq = Sequence(11);
    for k in 0..1000 {
        let offset = [0.0, 1.0, -1e3, 1e6][k % 4];
        let (p1, p2) = (seq.vector().map(|x| x + offset), seq.vector().map(|x| x + offset));
        let x: [f64; 3] = std::array::from_fn(|i| 0.5 * (p1[i] + p2[i]));
        for core in [0.0, 0.2] {
            for reg in SEGMENTS {
                assert_eq!(segment(reg, Part::Regularized, x, p1, p2, 1.0, core), Induced::default(), "{reg:?}");
            }
        }
        let l = sub(p2, p1);
        let across = cross(l, [l[1], l[2], -l[0]]);
        let off = 3.0 * rounding_beside(x, dot(l, l)).sqrt() / norm(across);
        let beside = std::array::from_fn(|i| x[i] + off * across[i]);
        assert!(norm(segment(None, Part::Regularized, beside, p1, p2, 1.0, 0.0).velocity) > 1e6 / (1.0 + offset.abs()));
    }
    // A segment of sixteen last digits has targets beside it.
    let (p1, p2, x) = ([1.0; 3], [1.0 + 2f64.powi(-48), 1.0, 1.0], [1.0 + 2f64.powi(-49), 1.0 + 2f64.powi(-52), 1.0]);
    assert!(norm(segment(None, Part::Regularized, x, p1, p2, 1.0, 0.0).velocity) > 1e15);
}

/// An expansion has no gap where the line of a segment goes on beyond its ends, nor has what a core takes from it.
#[test]
fn corrections_go_on_across_the_extension_of_a_segment() {
    let (p1, p2) = ([0.25, 0.5, -1.0], [1.25, 2.5, 3.0]);
    for reg in SEGMENTS.into_iter().filter(|reg| *reg != None) {
        for k in [-1.0, 2.0, 5.0] {
            let x = std::array::from_fn(|i| p1[i] + k * (p2[i] - p1[i]));
            let on = segment(reg, Part::Correction, x, p1, p2, 3.0, 0.2);
            let beside = segment(reg, Part::Correction, [x[0] + 1e-6, x[1], x[2]], p1, p2, 3.0, 0.2);
            assert_eq!(on.velocity, [0.0; 3]);
            same_matrix(&on.gradient, &beside.gradient, 1e-4, &format!("{reg:?} {k}"));
        }
    }
}

/// ∂u_i/∂x_j by an eighth-order difference.
fn difference(f: &dyn Fn(Vec3) -> Vec3, x: Vec3, h: f64) -> Mat3 {
    let mut g = [[0.0; 3]; 3];
    for j in 0..3 {
        for (k, w) in [(1.0, 0.8), (2.0, -0.2), (3.0, 4.0 / 105.0), (4.0, -1.0 / 280.0)] {
            let (mut a, mut b) = (x, x);
            a[j] += k * h;
            b[j] -= k * h;
            let (ua, ub) = (f(a), f(b));
            for i in 0..3 {
                g[i][j] += w * (ua[i] - ub[i]) / h;
            }
        }
    }
    g
}

#[track_caller]
fn same_matrix(got: &Mat3, want: &Mat3, tol: f64, what: &str) {
    let scale = largest(want);
    for i in 0..3 {
        for j in 0..3 {
            assert!((got[i][j] - want[i][j]).abs() <= tol * scale, "{what}: [{i}][{j}] {got:?} {want:?}");
        }
    }
}

#[test]
fn gradients_are_derivatives() {
    let mut seq = Sequence(1);
    for trial in 0..60 {
        let (x, p1, p2, a) = (seq.vector(), seq.vector(), seq.vector(), seq.vector());
        let core = 0.05 + 0.6 * seq.next().abs();
        for part in PARTS {
            for reg in PARTICLES {
                let r = distance(x, p1);
                if reg == Polynomial && (r / core - 1.0).abs() < 0.1 {
                    continue; // its kink
                }
                let f = |x| particle(reg, part, x, p1, a, core).velocity;
                if largest(&particle(reg, part, x, p1, a, core).gradient) < 1e-200 {
                    // No core, beyond it, or e^(-q³) below any normal number.
                    assert!(part == Part::Correction && (reg == None || r > core));
                    continue;
                }
                let g = particle(reg, part, x, p1, a, core).gradient;
                let h = 4e-3 * r.min(core);
                let noise = 1e-15 * norm(particle(reg, Part::Singular, x, p1, a, core).velocity) / h;
                let want = difference(&f, x, h);
                same_matrix(&g, &want, 1e-9 + 10.0 * noise / largest(&want), &format!("{reg:?} {part:?} {trial}"));
            }
            for reg in SEGMENTS {
                let rho = norm(cross(sub(p2, p1), sub(x, p1))) / distance(p1, p2);
                if reg == Rankine && (rho / core - 1.0).abs() < 0.1 {
                    continue;
                }
                if largest(&segment(reg, part, x, p1, p2, 1.3, core).gradient) < 1e-200 {
                    assert!(part == Part::Correction && (reg == None || rho > core));
                    continue;
                }
                let f = |x| segment(reg, part, x, p1, p2, 1.3, core).velocity;
                let g = segment(reg, part, x, p1, p2, 1.3, core).gradient;
                let h = 4e-3 * rho.min(core);
                let noise = 1e-15 * norm(segment(reg, Part::Singular, x, p1, p2, 1.3, core).velocity) / h;
                let want = difference(&f, x, h);
                same_matrix(&g, &want, 1e-9 + 10.0 * noise / largest(&want), &format!("{reg:?} {part:?} {trial}"));
            }
        }
        let h = 4e-3 * distance(x, p1);
        let g = charge(x, p1, 1.7).gradient;
        let d = difference(&|x| [charge(x, p1, 1.7).potential, 0.0, 0.0], x, h)[0];
        assert!(distance(g, d) < 1e-9 * norm(g));
    }
}

#[test]
fn velocities_have_no_divergence() {
    let mut seq = Sequence(2);
    for _ in 0..300 {
        let (x, p1, p2, a) = (seq.vector(), seq.vector(), seq.vector(), seq.vector());
        let core = 0.02 + seq.next().abs();
        for part in PARTS {
            for reg in PARTICLES {
                let g = particle(reg, part, x, p1, a, core).gradient;
                assert!((g[0][0] + g[1][1] + g[2][2]).abs() <= 1e-14 * largest(&g), "{reg:?} {part:?}");
            }
            for reg in SEGMENTS {
                let g = segment(reg, part, x, p1, p2, 1.0, core).gradient;
                assert!((g[0][0] + g[1][1] + g[2][2]).abs() <= 1e-13 * largest(&g), "{reg:?} {part:?}");
            }
        }
    }
}

#[test]
fn results_scale_with_lengths() {
    let mut seq = Sequence(3);
    let scaled = |v: Vec3, k: f64| v.map(|v| v * k);
    // Corrections fall like e^(-q²/2): those below any normal number tell nothing.
    for _ in 0..50 {
        let (x, p1, p2, a) = (seq.vector(), seq.vector(), seq.vector(), seq.vector());
        let core = 0.3 * seq.next().abs();
        for k in [1e-6, 1e6] {
            for part in PARTS {
                for reg in PARTICLES {
                    let u = particle(reg, part, x, p1, a, core);
                    let v = particle(reg, part, scaled(x, k), scaled(p1, k), a, core * k);
                    if largest(&u.gradient) < 1e-200 {
                        continue;
                    }
                    let back = scaled(v.velocity, k * k);
                    assert!(distance(u.velocity, back) <= 1e-12 * norm(u.velocity), "{reg:?} {part:?}");
                    same_matrix(&v.gradient.map(|r| scaled(r, k * k * k)), &u.gradient, 1e-11, "particle");
                }
                for reg in SEGMENTS {
                    let u = segment(reg, part, x, p1, p2, 1.0, core);
                    let v = segment(reg, part, scaled(x, k), scaled(p1, k), scaled(p2, k), 1.0, core * k);
                    if largest(&u.gradient) < 1e-200 {
                        continue;
                    }
                    assert!(distance(u.velocity, scaled(v.velocity, k)) <= 1e-12 * norm(u.velocity), "{reg:?}");
                    same_matrix(&v.gradient.map(|r| scaled(r, k * k)), &u.gradient, 1e-11, "segment");
                }
            }
        }
    }
}

/// The formula of physics for NONE in 32 digits. Between the points 32 digits do not suffice at ρ/ℓ = 1e-10 as it stands;
/// there D/(|r1||r2|) = |C|²/(|r1||r2| - r1·r2).
fn reference(x: Vec3, p1: Vec3, p2: Vec3) -> Vec3 {
    let (r1, r2) = (dd::sub(x, p1), dd::sub(x, p2));
    let c = dd::cross(r1, r2);
    let (a, b) = (dd::dot(r1, r1).sqrt(), dd::dot(r2, r2).sqrt());
    let inner = dd::dot(r1, r2);
    let e = if inner.hi < 0.0 { dd::dot(c, c) / (a * b - inner) } else { a * b + inner };
    let h = (a + b) / (a * b * e);
    c.map(|c: DD| (c * h).hi)
}

#[test]
fn digits_are_kept_near_the_line_and_its_extension() {
    let mut seq = Sequence(4);
    for trial in 0..400 {
        let (p1, p2, side) = (seq.vector(), seq.vector(), seq.vector());
        let offset = 10f64.powf(-5.0 + 5.0 * seq.next().min(0.2));
        let along = sub(p2, p1);
        // Between the points, near the ends, and out on both extensions up to five lengths.
        let k = 0.5 + if trial % 2 == 0 { 0.5 * seq.next() } else { 5.0 * seq.next() };
        let x: Vec3 = std::array::from_fn(|i| p1[i] + k * along[i] + offset * side[i]);
        let u = segment(None, Part::Regularized, x, p1, p2, 1.0, 0.0).velocity;
        let want = reference(x, p1, p2);
        assert!(distance(u, want) <= 4e-15 * norm(want), "{trial}: {k} {offset:e} {u:?} {want:?}");
    }
}

#[test]
fn gradient_keeps_its_digits_near_the_line() {
    // Infinitely long for a target at 1e-6: the gradient is that of Γ/(2πρ) across, to order ρ².
    let rho = 1e-6;
    let g = segment(None, Part::Regularized, [rho, 0.0, 0.1], [0.0, 0.0, -1.0], [0.0, 0.0, 1.0], 1.0, 0.0).gradient;
    let want = -2.0 / (rho * rho);
    assert!((g[1][0] / want - 1.0).abs() < 1e-11 && (g[0][1] / want - 1.0).abs() < 1e-11, "{g:?}");
    // ∂u_y/∂z = (1/r1³ - 1/r2³) ρ, here with |z1| = 1.1, |z2| = 0.9.
    let along = rho * (1.1f64.powi(-3) - 0.9f64.powi(-3));
    assert!((g[1][2] / along - 1.0).abs() < 1e-9, "{g:?} {along}");
}

#[test]
fn a_ring_of_segments_has_the_axis_velocity() {
    // u_z = Γ R²/(2 (R²+z²)^(3/2)); chords converge with n⁻².
    let n = 4000;
    let node = |i: usize| {
        let a = 2.0 * PI * i as f64 / n as f64;
        [2.0 * a.cos(), 2.0 * a.sin(), 0.0]
    };
    let z = 0.7;
    let u: f64 = (0..n)
        .map(|i| segment(None, Part::Regularized, [0.0, 0.0, z], node(i), node(i + 1), 1.5, 0.0).velocity[2])
        .sum::<f64>()
        / (4.0 * PI);
    let want = 1.5 * 4.0 / (2.0 * (4.0 + z * z).powf(1.5));
    assert!((u / want - 1.0).abs() < 1e-6, "{u} {want}");
}

#[test]
fn the_ground_image_cancels_the_normal_velocity() {
    let mut seq = Sequence(5);
    for _ in 0..50 {
        let (p1, p2, a, mut x) = (seq.vector(), seq.vector(), seq.vector(), seq.vector());
        x[2] = 0.0;
        let down = |p: Vec3| [p[0], p[1], -p[2]];
        let u = segment(Vatistas, Part::Regularized, x, p1, p2, 1.0, 0.1).velocity[2];
        let v = segment(Vatistas, Part::Regularized, x, down(p1), down(p2), -1.0, 0.1).velocity[2];
        assert!((u + v).abs() <= 1e-14 * u.abs());
        let u = particle(GaussErf, Part::Regularized, x, p1, a, 0.1).velocity[2];
        let v = particle(GaussErf, Part::Regularized, x, down(p1), [-a[0], -a[1], a[2]], 0.1).velocity[2];
        assert!((u + v).abs() <= 1e-14 * u.abs());
    }
}
