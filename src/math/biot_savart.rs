//! The sums of the library, one pair at a time, in double precision: the oracle of every kernel, never on a hot path.
//!
//! Enters: a target, one source, its regularization. Leaves: what that source adds before the normalization s:
//! velocity and gradient `g[i][j]` = ∂u_i/∂x_j of particles and segments, potential and gradient of charges.
//! A target on a particle or charge, on the line of a segment, and a segment without length add exactly zero.
//!
//! Segments: with z1, z2 the coordinates of the target along the segment seen from P1, P2 and ρ its distance to the
//! line, C = r1×r2 = ℓ × r1 and u = Γ F h C, h = (|r1|+|r2|)/D. Between the points, where |r1||r2| + r1·r2 cancels, it is
//! |C|²/(|r1||r2| - r1·r2). The gradient is taken along and across the line: ∇h = B t + A ρ, see `SegmentPair`.

use super::regularization::{Part, particle_profile, segment_profile};
use crate::options::Regularization;

pub type Vec3 = [f64; 3];
pub type Mat3 = [[f64; 3]; 3];

/// What one source adds at one target.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Induced {
    pub velocity: Vec3,
    pub gradient: Mat3,
}

/// What one charge adds at one target.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Attraction {
    pub potential: f64,
    pub gradient: Vec3,
}

pub fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub fn norm(a: Vec3) -> f64 {
    dot(a, a).sqrt()
}

/// m[i][j] = (a × e_j)_i: the derivative of a × x.
fn cross_matrix(a: Vec3) -> Mat3 {
    [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
}

/// Vortex particle at `position` with `strength` a and core radius `core`.
pub fn particle(reg: Regularization, part: Part, x: Vec3, position: Vec3, strength: Vec3, core: f64) -> Induced {
    let d = sub(x, position);
    let r = norm(d);
    if r == 0.0 {
        return Induced::default();
    }
    let (s, w) = particle_profile(reg, part, r, core);
    let c = cross(strength, d);
    let e = cross_matrix(strength);
    Induced {
        velocity: c.map(|c| c * s),
        gradient: std::array::from_fn(|i| std::array::from_fn(|j| e[i][j] * s + c[i] * w * d[j])),
    }
}

/// Charge q: φ = q/r and ∇φ.
pub fn charge(x: Vec3, position: Vec3, q: f64) -> Attraction {
    let d = sub(x, position);
    let r = norm(d);
    if r == 0.0 {
        return Attraction::default();
    }
    Attraction { potential: q / r, gradient: d.map(|d| -q * d / r.powi(3)) }
}

/// Straight segment from `p1` to `p2` with circulation Γ and core radius `core`.
pub fn segment(reg: Regularization, part: Part, x: Vec3, p1: Vec3, p2: Vec3, circulation: f64, core: f64) -> Induced {
    let Some(pair) = SegmentPair::new(x, p1, p2) else {
        return on_line(reg, part, [x, p1, p2], circulation, core);
    };
    let (value, slope) = if reg == Regularization::Offset && core > 0.0 {
        pair.offset(part, core)
    } else {
        let reg = if core > 0.0 { reg } else { Regularization::None };
        pair.by_distance_to_line(reg, part, core)
    };
    let e = cross_matrix(pair.along);
    let c = pair.c;
    Induced {
        velocity: c.map(|c| circulation * value * c),
        gradient: std::array::from_fn(|i| std::array::from_fn(|j| circulation * (value * e[i][j] + c[i] * slope[j]))),
    }
}

/// On the line of a segment a pair adds nothing. Beyond the ends the gradient of an expansion is Γ h (ℓ×) there, which a correction
/// takes away where there is a core.
fn on_line(reg: Regularization, part: Part, [x, p1, p2]: [Vec3; 3], circulation: f64, core: f64) -> Induced {
    let (v1, v2) = (sub(x, p1), sub(x, p2));
    let (r1, r2, along) = (norm(v1), norm(v2), sub(p2, p1));
    if part != Part::Correction || reg == Regularization::None || core == 0.0 || dot(v1, v2) <= 0.0 {
        return Induced::default();
    }
    let d = 2.0 * (r1 * r2).powi(2);
    let k = if reg == Regularization::Offset { (core * norm(along)).powi(2) } else { f64::INFINITY };
    let missing = if k.is_finite() { k / (d + k) } else { 1.0 };
    let e = cross_matrix(along);
    let value = -circulation * missing * (r1 + r2) / d;
    Induced { velocity: [0.0; 3], gradient: e.map(|row| row.map(|e| value * e)) }
}

/// The geometry of a target and a segment; lengths as the caller's.
struct SegmentPair {
    /// ℓ = P2 - P1 and C = ℓ × r1 = r1 × r2.
    along: Vec3,
    c: Vec3,
    /// ρ: vector from the line to the target, and its square.
    rho: Vec3,
    rho2: f64,
    /// t = ℓ/|ℓ|; distances to P1, P2; z1/|r1| + z2/|r2|.
    t: Vec3,
    r1: f64,
    r2: f64,
    cosines: f64,
    /// D = |r1||r2| (|r1||r2| + r1·r2) and h = (|r1|+|r2|)/D.
    d: f64,
    h: f64,
    /// ∂h/∂z = B; -ρ ∂h/∂ρ - 2h = m.
    b: f64,
    m: f64,
}

impl SegmentPair {
    /// None where there is no value: on the line, or without length.
    fn new(x: Vec3, p1: Vec3, p2: Vec3) -> Option<Self> {
        let (along, v1, v2) = (sub(p2, p1), sub(x, p1), sub(x, p2));
        let c = cross_of_differences(p1, p2, x);
        let (length2, c2, inner) = (dot(along, along), dot(c, c), dot(v1, v2));
        let is_narrow = inner < 0.0 && c2 < NARROW * dot(v1, v1) * dot(v2, v2);
        let unknown = if is_narrow { rounding_beside(x, length2) * length2 } else { 0.0 };
        if length2 == 0.0 || c2 <= unknown {
            return None;
        }
        let (r1, r2, length) = (norm(v1), norm(v2), length2.sqrt());
        let p = r1 * r2;
        let e = if inner >= 0.0 { p + inner } else { c2 / (p - inner) };
        let d = p * e;
        let t = along.map(|l| l / length);
        let (z1, z2) = (dot(v1, t), dot(v2, t));
        // 1/r1³ - 1/r2³ = ℓ B without the cancellation of short segments: r2² - r1² = -ℓ (z1 + z2).
        let b = -(z1 + z2) / (p * (r1 + r2)) * (1.0 / (r1 * r1) + 1.0 / p + 1.0 / (r2 * r2));
        // (z1/r1³ - z2/r2³)/ℓ: a sum of positive terms between the points, rearranged where short segments are far; near an end
        // the rearranged terms cancel.
        let m = if z1.abs().min(z2.abs()) < length {
            (z1 / r1.powi(3) - z2 / r2.powi(3)) / length
        } else {
            0.5 * (1.0 / r1.powi(3) + 1.0 / r2.powi(3) + (z1 + z2) * b)
        };
        Some(SegmentPair {
            along,
            c,
            rho: cross(c, along).map(|v| v / length2),
            rho2: c2 / length2,
            t,
            r1,
            r2,
            cosines: z1 / r1 + z2 / r2,
            d,
            h: (r1 + r2) / d,
            b,
            m,
        })
    }

    /// F h and its gradient where F is a function of ρ.
    fn by_distance_to_line(&self, reg: Regularization, part: Part, core: f64) -> (f64, Vec3) {
        let (f, big_h) = segment_profile(reg, part, self.rho2, core);
        let across = -(self.h * big_h + f * self.m) / self.rho2;
        (f * self.h, std::array::from_fn(|j| f * self.b * self.t[j] + across * self.rho[j]))
    }

    /// (|r1|+|r2|)/(D + k), k = c²ℓ², and its gradient: with φ = D/(D+k) it is φ h, and
    /// ∇(φ h) = φ² ∇h + k/(D+k)² n, n = ∇(|r1|+|r2|).
    fn offset(&self, part: Part, core: f64) -> (f64, Vec3) {
        let k = core * core * dot(self.along, self.along);
        let (phi, missing) = (self.d / (self.d + k), k / (self.d + k));
        let (value, square, extra) = match part {
            Part::Singular => (1.0, 1.0, 0.0),
            Part::Regularized => (phi, phi * phi, missing / (self.d + k)),
            Part::Correction => (-missing, -missing * (1.0 + phi), missing / (self.d + k)),
        };
        let across = -square * (2.0 * self.h + self.m) / self.rho2 + extra * (1.0 / self.r1 + 1.0 / self.r2);
        let along = square * self.b + extra * self.cosines;
        (value * self.h, std::array::from_fn(|j| along * self.t[j] + across * self.rho[j]))
    }
}

/// Of |C|²/(|r1|²|r2|²), the squared sine of the angle between r1 and r2: below it, between the ends, a target may count as on the line.
/// Segments of a few last digits of their coordinates have targets at any angle.
pub const NARROW: f64 = 1.0 / (1u64 << 24) as f64;

/// Square of the distance from the line of a segment up to which such a target counts as on it: that of a last digit of its coordinates
/// or of the segment's length. The middle of two points, rounded, is no farther off, and a bare segment would give it a field of any
/// size.
pub fn rounding_beside(x: Vec3, length2: f64) -> f64 {
    f64::EPSILON * f64::EPSILON * (length2 + dot(x, x))
}

/// (p2-p1) × (x-p1), exact to the last places even where the three points are nearly on one line:
/// differences and products carry their rounding errors along.
fn cross_of_differences(p1: Vec3, p2: Vec3, x: Vec3) -> Vec3 {
    let a: [(f64, f64); 3] = std::array::from_fn(|i| two_difference(p2[i], p1[i]));
    let b: [(f64, f64); 3] = std::array::from_fn(|i| two_difference(x[i], p1[i]));
    std::array::from_fn(|i| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        difference_of_products(a[j], b[k], a[k], b[j])
    })
}

/// a - b as a rounded value and its rounding error.
fn two_difference(a: f64, b: f64) -> (f64, f64) {
    let s = a - b;
    let t = s - a;
    (s, (a - (s - t)) - (b + t))
}

/// a b - c d of unevaluated sums.
fn difference_of_products(a: (f64, f64), b: (f64, f64), c: (f64, f64), d: (f64, f64)) -> f64 {
    let (p, q) = (a.0 * b.0, c.0 * d.0);
    let errors = a.0.mul_add(b.0, -p) - c.0.mul_add(d.0, -q);
    let (high, low) = two_difference(p, q);
    // Paired so that a = c·(b/d) exactly, as at P2, leaves exactly zero.
    let mixed = (a.0 * b.1 - c.1 * d.0) + (a.1 * b.0 - c.0 * d.1);
    high + (low + errors + mixed)
}

#[cfg(test)]
mod tests;
