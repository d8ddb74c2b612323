//! How a core softens the singular kernel, and how far it is felt.
//!
//! Enters: a regularization, a distance and a core radius. Leaves: the two radial functions that velocity and gradient
//! need (`particle_profile`, `segment_profile`), what is missing to the singular kernel (`*_shortfall`), and the
//! distance beyond which that may be forgotten (`core_reach`, `segment_deficit`): the FMM lists its corrections by them.
//!
//! Particles: u = a × d S(r), S = g/r³, and S'/r = -3 G/r⁵.
//! Segments: the factor F(ρ) of the singular velocity, ρ being the distance to the line, and H = 2F - ρ F'(ρ).
//! No function subtracts nearly equal numbers: g, G, F, H near the core, and 1-g … far from it, each have their own form.

use crate::options::Regularization;

/// Which kernel a sum takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The kernel of the caller.
    Regularized,
    /// The kernel without a core: what expansions represent.
    Singular,
    /// Regularized minus singular: what the far field must be given back where cores still matter.
    Correction,
}

/// Lamb-Oseen: the velocity of the vortex peaks at one core radius.
pub const LAMB_OSEEN: f64 = 1.25643;

const SQRT_PI: f64 = 1.772_453_850_905_516;
const GAMMA_3_2: f64 = SQRT_PI / 2.0;
const GAMMA_5_2: f64 = 0.75 * SQRT_PI;

/// e^(-x) Σ xⁿ Γ(a+1)/Γ(a+1+n): the incomplete gamma function P(a,x) is `x^a/Γ(a+1)` times this. Terms are positive.
fn lower_gamma_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, a);
    while term > 1e-17 * sum {
        n += 1.0;
        term *= x / n;
        sum += term;
    }
    sum * (-x).exp()
}

/// Γ(a,x) e^x x^(-a), by the continued fraction of Legendre (modified Lentz); for x ≥ a + 1.
fn upper_gamma_fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..300 {
        let n = i as f64;
        let an = -n * (n - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        let step = c * d;
        h *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    h
}

/// P(a,x)/x^a and 1 - P(a,x) of the incomplete gamma function; `gamma_a` is Γ(a).
fn incomplete_gamma(a: f64, gamma_a: f64, x: f64) -> (f64, f64) {
    if x < a + 1.0 {
        let p = lower_gamma_series(a, x) / (a * gamma_a);
        (p, 1.0 - p * x.powf(a))
    } else {
        let q = upper_gamma_fraction(a, x) * (-x).exp() * x.powf(a) / gamma_a;
        ((1.0 - q) / x.powf(a), q)
    }
}

/// 1 - (1+w)^(-n/2) for odd n: `p` holds the coefficients of ((1+w)ⁿ - 1)/w.
fn power_shortfall(w: f64, n: i32, p: &[f64]) -> f64 {
    if w > 1.0 {
        return 1.0 - (1.0 + w).powf(-0.5 * n as f64);
    }
    let root = (1.0 + w).powf(0.5 * n as f64);
    w * horner(w, p) / (root * (root + 1.0))
}

fn horner(x: f64, p: &[f64]) -> f64 {
    p.iter().rev().fold(0.0, |s, &c| s * x + c)
}

/// The radial functions of a particle at distance `r` > 0: S and S'/r, with u = a × d S.
pub fn particle_profile(reg: Regularization, part: Part, r: f64, c: f64) -> (f64, f64) {
    let singular = (1.0 / r.powi(3), -3.0 / r.powi(5));
    if c == 0.0 || reg == Regularization::None {
        return if part == Part::Correction { (0.0, 0.0) } else { singular };
    }
    match part {
        Part::Singular => singular,
        Part::Regularized => regularized_particle(reg, r, c),
        Part::Correction => {
            let (g, slope) = particle_shortfalls(reg, r / c);
            (-g * singular.0, -slope * singular.1)
        }
    }
}

/// S and S'/r in forms that neither cancel nor overflow as r → 0.
fn regularized_particle(reg: Regularization, r: f64, c: f64) -> (f64, f64) {
    let (q, r2, c2) = (r / c, r * r, c * c);
    match reg {
        // g = P(3/2, q²/2), G = P(5/2, q²/2): Yokota et al. 2009 eq. 6 and its derivative.
        Regularization::GaussErf => {
            let x = 0.5 * q * q;
            let (g, _) = incomplete_gamma(1.5, GAMMA_3_2, x);
            let (slope, _) = incomplete_gamma(2.5, GAMMA_5_2, x);
            (g / (2f64.sqrt() * 2.0 * c * c2), -3.0 * slope / (2f64.sqrt() * 4.0 * c * c2 * c2))
        }
        // g = P(1, y), G = P(2, y), y = q³.
        Regularization::Exponential => {
            let y = q * q * q;
            let g = if y < 1e-300 { 1.0 } else { -(-y).exp_m1() / y };
            let (slope, _) = incomplete_gamma(2.0, 1.0, y);
            (g / (c2 * c), -3.0 * slope * r / (c2 * c2 * c2))
        }
        Regularization::Compact => {
            let s = 1.0 / (r2.powi(3) + c2.powi(3)).sqrt();
            (s, -3.0 * r2 * r2 * s.powi(3))
        }
        Regularization::Rosenhead => ((r2 + c2).powf(-1.5), -3.0 * (r2 + c2).powf(-2.5)),
        Regularization::Winckelmans => {
            ((r2 + 2.5 * c2) * (r2 + c2).powf(-2.5), -3.0 * (r2 + 3.5 * c2) * (r2 + c2).powf(-3.5))
        }
        Regularization::Polynomial if r <= c => (1.0 / (r * c2), -1.0 / (r * r2 * c2)),
        Regularization::Polynomial => (1.0 / r.powi(3), -3.0 / r.powi(5)),
        _ => panic!("{reg:?} is not a regularization of particles"),
    }
}

/// 1 - g (velocity) and 1 - G (its slope) of a particle at `q` = r/c > 0.
pub fn particle_shortfalls(reg: Regularization, q: f64) -> (f64, f64) {
    let w = 1.0 / (q * q);
    match reg {
        Regularization::None => (0.0, 0.0),
        Regularization::GaussErf => {
            let x = 0.5 * q * q;
            (incomplete_gamma(1.5, GAMMA_3_2, x).1, incomplete_gamma(2.5, GAMMA_5_2, x).1)
        }
        Regularization::Exponential => {
            let y = q * q * q;
            ((-y).exp(), (1.0 + y) * (-y).exp())
        }
        Regularization::Compact => {
            let t = w * w * w;
            (power_shortfall(t, 1, &[1.0]), power_shortfall(t, 3, &[3.0, 3.0, 1.0]))
        }
        Regularization::Rosenhead => {
            (power_shortfall(w, 3, &[3.0, 3.0, 1.0]), power_shortfall(w, 5, &[5.0, 10.0, 10.0, 5.0, 1.0]))
        }
        Regularization::Winckelmans => {
            let (a, b) = ((1.0 + w).powf(2.5), (1.0 + w).powf(3.5));
            let (na, nb) = (1.0 + 2.5 * w, 1.0 + 3.5 * w);
            if w > 1.0 {
                return (1.0 - na / a, 1.0 - nb / b);
            }
            // (1+w)⁵ - (1+5w/2)² and (1+w)⁷ - (1+7w/2)², divided by the sums of the roots.
            let p = w * w * horner(w, &[3.75, 10.0, 5.0, 1.0]);
            let s = w * w * horner(w, &[8.75, 35.0, 35.0, 21.0, 7.0, 1.0]);
            (p / (a * (a + na)), s / (b * (b + nb)))
        }
        Regularization::Polynomial if q <= 1.0 => (1.0 - q * q, 1.0 - q * q / 3.0),
        Regularization::Polynomial => (0.0, 0.0),
        _ => panic!("{reg:?} is not a regularization of particles"),
    }
}

/// The factors of a segment's velocity at squared distance `rho2` > 0 from its line: F and H = 2F - ρ F'(ρ).
/// `Offset` is no function of ρ and has no place here.
pub fn segment_profile(reg: Regularization, part: Part, rho2: f64, c: f64) -> (f64, f64) {
    if c == 0.0 || reg == Regularization::None {
        return if part == Part::Correction { (0.0, 0.0) } else { (1.0, 2.0) };
    }
    let c2 = c * c;
    match part {
        Part::Singular => (1.0, 2.0),
        Part::Correction => {
            let (f, h) = segment_shortfalls(reg, (rho2 / c2).sqrt());
            (-f, -h)
        }
        Part::Regularized => match reg {
            Regularization::Rankine if rho2 < c2 => (rho2 / c2, 0.0),
            Regularization::Rankine => (1.0, 2.0),
            Regularization::LambOseen => {
                let y = LAMB_OSEEN * rho2 / c2;
                (-(-y).exp_m1(), 2.0 * y * y * incomplete_gamma(2.0, 1.0, y).0)
            }
            Regularization::Vatistas => {
                let f = rho2 / (c2 * c2 + rho2 * rho2).sqrt();
                (f, 2.0 * f.powi(3))
            }
            Regularization::Scully => {
                let f = rho2 / (c2 + rho2);
                (f, 2.0 * f * f)
            }
            _ => panic!("{reg:?} is not a regularization of segments by the distance to the line"),
        },
    }
}

/// 1 - F and 2 - H of a segment at `t` = ρ/c > 0.
pub fn segment_shortfalls(reg: Regularization, t: f64) -> (f64, f64) {
    let w = 1.0 / (t * t);
    match reg {
        Regularization::None => (0.0, 0.0),
        Regularization::Rankine if t < 1.0 => (1.0 - t * t, 2.0),
        Regularization::Rankine => (0.0, 0.0),
        Regularization::LambOseen => {
            let y = LAMB_OSEEN * t * t;
            ((-y).exp(), 2.0 * (1.0 + y) * (-y).exp())
        }
        Regularization::Vatistas => {
            (power_shortfall(w * w, 1, &[1.0]), 2.0 * power_shortfall(w * w, 3, &[3.0, 3.0, 1.0]))
        }
        Regularization::Scully => (1.0 / (1.0 + t * t), 2.0 * (1.0 + 2.0 * t * t) / (1.0 + t * t).powi(2)),
        _ => panic!("{reg:?} is not a regularization of segments by the distance to the line"),
    }
}

/// The relative error of the velocity where a core is left out: 1 - g at r/c, or 1 - F at ρ/c.
pub fn shortfall(reg: Regularization, ratio: f64) -> f64 {
    if reg.is_for_particles() { particle_shortfalls(reg, ratio).0 } else { segment_shortfalls(reg, ratio).0 }
}

/// Smallest κ with `shortfall` ≤ `tol` for every distance beyond κ cores. Grows as `tol` falls.
pub fn core_reach(reg: Regularization, tol: f64) -> f64 {
    reach(tol, |q| shortfall(reg, q))
}

/// The same for the gradient, whose shortfall of the slope (1 - G, 1 - H/2) is the larger one.
pub fn core_reach_gradient(reg: Regularization, tol: f64) -> f64 {
    reach(
        tol,
        |q| {
            if reg.is_for_particles() { particle_shortfalls(reg, q).1 } else { 0.5 * segment_shortfalls(reg, q).1 }
        },
    )
}

/// Bisection of a decreasing function of distance over the logarithm, rounded outwards.
fn reach(tol: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-9f64, 1e12f64);
    if f(low) <= tol {
        return 0.0;
    }
    if f(high) > tol {
        return f64::INFINITY;
    }
    while high > low * (1.0 + 1e-14) {
        let middle = (low * high).sqrt();
        if middle <= low || middle >= high {
            break;
        }
        if f(middle) > tol {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// t (1 - F(t)), and at most its supremum where t lies before the peak: never grows with t = ρ/c.
/// A segment of length ℓ misses about Γ ℓ c/r³ times this (times s) at distance r ≫ ℓ when its core is left out.
pub fn segment_deficit(reg: Regularization, t: f64) -> f64 {
    let t = t.max(deficit_peak(reg));
    t * segment_shortfalls(reg, t).0
}

/// Where t (1 - F(t)) is largest.
fn deficit_peak(reg: Regularization) -> f64 {
    match reg {
        Regularization::None => 1.0,
        Regularization::Rankine => (1.0f64 / 3.0).sqrt(),
        Regularization::LambOseen => (0.5 / LAMB_OSEEN).sqrt(),
        // 1 - F - t F' = 0 with F' = 2t/(1+t⁴)^(3/2).
        Regularization::Vatistas => 0.627_152_208_949_572_8,
        Regularization::Scully => 1.0,
        _ => panic!("{reg:?} is not a regularization of segments by the distance to the line"),
    }
}

/// Upper bound of 1 - F for `Offset` at distance `r` from the middle of a segment of length `length`;
/// sharp on its extension, about c²ℓ²/(2r⁴) far away. One where the bound has nothing to say.
pub fn offset_shortfall(r: f64, c: f64, length: f64) -> f64 {
    let a = r * r - 0.25 * length * length;
    if a <= 0.0 {
        return 1.0;
    }
    let k = (c * length).powi(2);
    k / (k + 2.0 * a * a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Regularization::*;

    const PARTICLES: [Regularization; 6] = [GaussErf, Exponential, Compact, Rosenhead, Winckelmans, Polynomial];
    const SEGMENTS: [Regularization; 4] = [Rankine, LambOseen, Vatistas, Scully];

    #[track_caller]
    fn close(a: f64, b: f64, tol: f64) {
        assert!((a - b).abs() <= tol * b.abs().max(1e-300), "{a:e} against {b:e}: {:e}", (a / b - 1.0).abs());
    }

    #[test]
    fn gauss_erf_has_its_limits_and_values() {
        // q → 0: S = √(2/π)/(3c³), S'/r = -√(2/π)/(5c⁵)
        let k = (2.0 / std::f64::consts::PI).sqrt();
        for c in [1.0, 1e-6, 1e6] {
            for q in [1e-200, 1e-30, 1e-9] {
                let (s, w) = particle_profile(GaussErf, Part::Regularized, q * c, c);
                close(s * c.powi(3), k / 3.0, 4e-16);
                close(w * c.powi(5), -k / 5.0, 4e-16);
            }
        }
        // erf(1/√2) - √(2/π) e^(-1/2) and friends, to 18 digits.
        for (q, g) in [(1.0, 0.198748043098799197), (2.0, 0.738535870050889), (4.0, 0.998866015710214)] {
            let (s, _) = particle_profile(GaussErf, Part::Regularized, q, 1.0);
            close(s * q * q * q, g, 2e-15);
            close(1.0 - shortfall(GaussErf, q), g, 2e-15);
        }
    }

    #[test]
    fn small_distances_do_not_cancel() {
        // Leading terms of the series: g = √(2/π) q³/3 (1 - 3q²/10 + 3q⁴/56), G = √(2/π) q⁵/15 (1 - 5q²/14)
        let q = 1e-3;
        let k = (2.0 / std::f64::consts::PI).sqrt();
        let (s, w) = particle_profile(GaussErf, Part::Regularized, q, 1.0);
        close(s, k / 3.0 * (1.0 - 0.3 * q * q + 3.0 / 56.0 * q.powi(4)), 1e-15);
        close(w, -k / 5.0 * (1.0 - 5.0 / 14.0 * q * q + 5.0 / 72.0 * q.powi(4)), 1e-15);
        let (s, w) = particle_profile(Exponential, Part::Regularized, q, 1.0);
        let y = q * q * q;
        close(s, 1.0 - y / 2.0, 1e-15);
        close(w, -1.5 * q * (1.0 - 2.0 / 3.0 * y), 1e-15);
    }

    #[test]
    fn parts_add_up() {
        for i in 0..200 {
            let q = 10f64.powf(-2.0 + i as f64 / 50.0);
            for reg in PARTICLES {
                let v = |part| particle_profile(reg, part, q * 0.3, 0.3);
                let (r, s, c) = (v(Part::Regularized), v(Part::Singular), v(Part::Correction));
                assert!((r.0 - s.0 - c.0).abs() <= 4e-15 * s.0, "{reg:?} {q}");
                assert!((r.1 - s.1 - c.1).abs() <= 4e-15 * s.1.abs(), "{reg:?} {q}");
            }
            for reg in SEGMENTS {
                let v = |part| segment_profile(reg, part, (q * 0.3).powi(2), 0.3);
                let (r, s, c) = (v(Part::Regularized), v(Part::Singular), v(Part::Correction));
                assert!((r.0 - s.0 - c.0).abs() <= 4e-15, "{reg:?} {q}");
                assert!((r.1 - s.1 - c.1).abs() <= 4e-15, "{reg:?} {q}");
            }
        }
    }

    #[test]
    fn far_shortfalls_keep_their_digits() {
        close(shortfall(Rosenhead, 1e8), 1.5e-16, 1e-12);
        close(shortfall(Compact, 1e4), 0.5e-24, 1e-12);
        close(shortfall(Winckelmans, 1e6), 1.875e-24, 1e-9);
        close(shortfall(Vatistas, 1e5), 0.5e-20, 1e-12);
        close(shortfall(Scully, 1e5), 1e-10, 1e-9);
        // erfc(q/√2) + √(2/π) q e^(-q²/2) at q = 8: 6.6e-14 (asymptotic series to 8 terms).
        let q = 8f64;
        let k = (2.0 / std::f64::consts::PI).sqrt() * (-0.5 * q * q).exp();
        let mut tail = 1.0;
        let mut term = 1.0;
        for n in 0..20 {
            term *= -(2.0 * n as f64 + 1.0) / (q * q);
            tail += term;
        }
        close(shortfall(GaussErf, q), k * (q + tail / q), 1e-10);
    }

    #[test]
    fn slopes_are_derivatives() {
        let d = |f: &dyn Fn(f64) -> f64, x: f64| {
            let h = 1e-2 * x;
            let c = |k: f64| f(x + k * h) - f(x - k * h);
            (0.8 * c(1.0) - 0.2 * c(2.0) + 4.0 / 105.0 * c(3.0) - c(4.0) / 280.0) / h
        };
        for q in [0.05, 0.3, 0.7, 0.9, 1.2, 1.9, 2.5, 4.0, 9.0] {
            for reg in PARTICLES {
                let (s, w) = particle_profile(reg, Part::Regularized, q, 1.0);
                let difference = d(&|r| particle_profile(reg, Part::Regularized, r, 1.0).0, q) / q;
                assert!(
                    (difference - w).abs() < 1e-11 * w.abs() + 1e-13 * s / (q * q),
                    "{reg:?} {q}: {difference} {w}"
                );
            }
            for reg in SEGMENTS {
                let (f, h) = segment_profile(reg, Part::Regularized, q * q, 1.0);
                let slope = q * d(&|r| segment_profile(reg, Part::Regularized, r * r, 1.0).0, q);
                assert!((2.0 * f - slope - h).abs() < 1e-11, "{reg:?} {q}: {} {h}", 2.0 * f - slope);
            }
        }
    }

    #[test]
    fn reach_is_that_of_the_table() {
        // physics: distance in cores at which 1 - F has fallen to 1e-3 / 1e-6
        let table = [
            (LambOseen, 2.3, 3.3),
            (Vatistas, 4.7, 27.0),
            (Scully, 32.0, 1000.0),
            (Exponential, 1.9, 2.4),
            (Compact, 2.8, 8.9),
            (GaussErf, 4.0, 5.5),
            (Winckelmans, 6.5, 37.0),
        ];
        for (reg, a, b) in table {
            assert!((core_reach(reg, 1e-3) / a - 1.0).abs() < 0.03, "{reg:?} {}", core_reach(reg, 1e-3));
            assert!((core_reach(reg, 1e-6) / b - 1.0).abs() < 0.03, "{reg:?} {}", core_reach(reg, 1e-6));
        }
        for reg in PARTICLES.into_iter().chain(SEGMENTS) {
            let mut last = 0.0;
            for i in 0..40 {
                let tol = 10f64.powf(-0.4 * i as f64);
                let k = core_reach(reg, tol);
                assert!(k >= last, "{reg:?} {tol}");
                assert!(k == 0.0 || k.is_infinite() || shortfall(reg, k) <= tol);
                assert!(k < 1e-6 || k.is_infinite() || shortfall(reg, 0.999 * k) > tol, "{reg:?} {tol} {k}");
                last = k;
            }
        }
        assert_eq!(core_reach(None, 1e-12), 0.0);
    }

    #[test]
    fn deficit_bounds_and_never_grows() {
        for reg in SEGMENTS {
            let mut last = f64::INFINITY;
            for i in 0..4000 {
                let t = 10f64.powf(-3.0 + i as f64 / 1000.0);
                let b = segment_deficit(reg, t);
                assert!(b >= t * shortfall(reg, t) * (1.0 - 1e-14), "{reg:?} {t}");
                assert!(b <= last * (1.0 + 1e-14), "{reg:?} {t}");
                last = b;
            }
        }
    }
}
