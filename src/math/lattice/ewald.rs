//! Sums of singular harmonics over all images that are not near, by Ewald's splitting.
//!
//! Enters: a `Shape`, degrees. Leaves: λ_lm = Σ_R S_lm(R) over the lattice vectors R that are not near, at `slot(l, m)`.
//!
//! With the direction e of R, S_lm(R) = R_lm(e)/|R|^(l+1). On a lattice of d dimensions R_lm(e) is a sum of harmonic polynomials Y_h of
//! degree h of the d coordinates: R_lm itself with three periods (h = l), cosines of h times the angle in the plane with two (`Angles`), a
//! constant with one (h = 0). With s = (l + h + 1)/2 each term is Y_h(R)/|R|^2s, and 1/|R|^2s = ∫ t^(s-1) exp(-t R²) dt / Γ(s). The integral
//! is split at t = α², and what is below it is summed by Poisson's formula over the wave vectors k of the lattice. With P and Q = 1 - P the
//! incomplete gamma functions, V the volume of a cell in d dimensions, κ = k²/4α², E_p the exponential integral (Epstein 1903; Nijboer and
//! De Wette 1957):
//!
//! Σ_R Y(R)/|R|^2s = Σ_far Y(R)/|R|^2s Q(s, α²R²) - Σ_near Y(R)/|R|^2s P(s, α²R²)
//!     + (-1)^(h/2) π^(d/2) α^(l+1-d)/(V Γ(s)) Σ_k Y(k/|k|) κ^(h/2) E_(1+s-h-d/2)(κ)
//!     + for h = 0: π^(d/2) α^(2s-d)/(V Γ(s)(s - d/2)) - α^2s/(s Γ(s))
//!
//! Near vectors other than zero are those of the second sum. All sums converge as exp(-α²R²) and exp(-κ), whatever the ratios of the
//! periods. With three periods, degree 0 has the uniform background that makes the mean of its potential zero, and degree 2 is Ewald's sum
//! without a surface term: k = 0 is left out.

use super::gamma::{exponential_integrals, half_gammas, lower_gammas, upper_gammas};
use super::{Shape, mirrors, slot, square};
use crate::math::harmonics::{diagonal, index, regular, vertical};
use crate::memory;
use std::f64::consts::PI;
use std::ops::Range;

/// Degrees at which groups with an α of their own begin.
const GROUPS: [usize; 7] = [0, 2, 4, 8, 16, 32, 64];
/// Terms smaller than this part of that of the nearest image are left out.
const NEGLIGIBLE: f64 = 1e-19;
/// Largest α: the best one of a cube of edge 1 is √π, and other lattices have smaller ones.
const LARGEST_ALPHA: f64 = 2.0;
/// Trial values of α are so far apart.
const ALPHA_STEP: f64 = 0.8;

/// All sums of degrees below `degrees`; the shortest period is 1. Degree 0 is zero unless there are three periods.
pub fn far_sums(shape: Shape, degrees: usize) -> Vec<f64> {
    let nearest = shape.nearest_left_out();
    split_sums(shape, degrees, |group| Split::best(shape, group, nearest))
}

fn split_sums(shape: Shape, degrees: usize, split: impl Fn(Range<usize>) -> Split) -> Vec<f64> {
    let mut sums = memory::filled(0.0, slot(degrees + 1, 0) + degrees);
    let mut angles = Angles::new(shape.period, degrees);
    for (k, &begin) in GROUPS.iter().enumerate() {
        let end = GROUPS.get(k + 1).map_or(degrees, |&next| next.min(degrees));
        if begin < end && (begin > 0 || shape.dimensions() == 3) {
            split(begin..end).add(&mut angles, &mut sums);
        }
    }
    angles.turn(sums, degrees)
}

/// The polynomials Y_h of a direction.
struct Angles {
    dimensions: usize,
    /// Periodic axes, then the others.
    axes: [usize; 3],
    /// Factors of the recurrence of harmonics, of degree n and m = 2j at n · `width` + j.
    factors: Vec<[f64; 2]>,
    width: usize,
    /// Of the last two degrees, by j.
    last: Vec<[f64; 2]>,
    /// Of a direction, at `slot(l, m)` with three periods, at `slot(0, 0)` + h/2 with fewer.
    values: Vec<f64>,
}

impl Angles {
    fn new(period: [f64; 3], degrees: usize) -> Self {
        let mut axes = [0, 1, 2];
        axes.sort_by_key(|&i| period[i] == 0.0);
        let dimensions = period.iter().filter(|&&p| p > 0.0).count();
        let width = degrees.div_ceil(2);
        let factor = |i: usize| {
            let (n, m) = (i / width, i % width * 2);
            let (a, b) = if m < n { vertical(n, m) } else { (0.0, 0.0) };
            [a, b]
        };
        Self {
            dimensions,
            axes,
            factors: memory::collect((0..degrees * width).map(factor)),
            width,
            last: memory::filled([0.0; 2], width),
            values: memory::filled(0.0, slot(degrees + 1, 0) + degrees),
        }
    }

    /// Degree of Y for an l and the number j of a function of it, m = 2j or h = 2j.
    fn degree(&self, l: usize, j: usize) -> usize {
        match self.dimensions {
            3 => l,
            _ => 2 * j,
        }
    }

    /// How many functions an l has.
    fn count(&self, l: usize) -> usize {
        if self.dimensions == 1 { 1 } else { l / 2 + 1 }
    }

    fn value(&self, l: usize, j: usize) -> f64 {
        self.values[if self.dimensions == 3 { slot(l, 2 * j) } else { j }]
    }

    /// Takes the values of a direction, of degrees below `end`.
    fn look(&mut self, e: [f64; 3], end: usize) {
        match self.dimensions {
            1 => self.values[0] = 1.0,
            2 => self.look_in_plane(e[self.axes[0]], e[self.axes[1]], end),
            _ => self.look_in_space(e, end),
        }
    }

    /// Cosines of even multiples of the angle from the first axis.
    fn look_in_plane(&mut self, x: f64, y: f64, end: usize) {
        let (cos, sin) = (x * x - y * y, 2.0 * x * y);
        let (mut c, mut s) = (1.0, 0.0);
        for v in &mut self.values[..end.div_ceil(2)] {
            *v = c;
            (c, s) = (cos * c - sin * s, cos * s + sin * c);
        }
    }

    /// As `harmonics::regular` at a distance of one, of cosines with even m only and with all m of a degree together.
    fn look_in_space(&mut self, [x, y, z]: [f64; 3], end: usize) {
        let (mut c, mut s) = (1.0, 0.0);
        for n in 0..end {
            let below = n.div_ceil(2);
            let factors = &self.factors[n * self.width..][..below];
            for (last, [a, b]) in self.last[..below].iter_mut().zip(factors) {
                *last = [a * z * last[0] - b * last[1], last[0]];
            }
            if n > 0 {
                let f = diagonal(n);
                (c, s) = (f * (x * c - y * s), f * (x * s + y * c));
            }
            if n % 2 == 0 {
                self.last[n / 2] = [c, 0.0];
                let to = &mut self.values[slot(n, 0)..][..n / 2 + 1];
                to.iter_mut().zip(&self.last).for_each(|(v, last)| *v = last[0]);
            }
        }
    }

    /// Sums of harmonics from those of the functions Y. In a plane, and on a line, R_lm(e) is a sum of cosines of multiples of the angle:
    /// its Fourier series, from as many directions as make it exact.
    fn turn(&mut self, sums: Vec<f64>, degrees: usize) -> Vec<f64> {
        if self.dimensions == 3 {
            return sums;
        }
        let directions = if self.dimensions == 1 { 1 } else { degrees };
        let mut turned = memory::filled(0.0, sums.len());
        let mut harmonics = memory::filled(0.0, degrees * degrees);
        for k in 0..directions {
            let angle = PI * k as f64 / directions as f64;
            let mut e = [0.0; 3];
            (e[self.axes[0]], e[self.axes[1]]) = (angle.cos(), angle.sin());
            regular(degrees, e, &mut harmonics);
            self.look(e, degrees);
            for l in (0..degrees).step_by(2) {
                let term = |j: usize| if j > 0 { 2.0 } else { 1.0 } * self.value(l, j) * sums[slot(l, 2 * j)];
                let seen = (0..self.count(l)).map(term).sum::<f64>() / directions as f64;
                for m in (0..=l).step_by(2) {
                    turned[slot(l, m)] += seen * harmonics[index(l, m, false)];
                }
            }
        }
        turned
    }
}

/// A group of degrees and where its integral is split.
struct Split {
    shape: Shape,
    degrees: Range<usize>,
    alpha: f64,
    /// Largest α²R² and κ.
    most: f64,
}

impl Split {
    /// That of the fewest terms. Near vectors must not have larger terms than far ones, or their digits would be lost. The sum of the far
    /// ones is 1/ρ^(l+1), with ρ their shortest. A near term is P(s, x) (α/√x)^(l+1) with x = α²R². For h = l it is at most (α √(e/2l))^l or so,
    /// at x = l/2; for h = 0 α^(l+1)/Γ((l + 3)/2), (α √(2e/l))^l or so, at x = 0. The sum of degree 0 is not small beside its near terms.
    fn best(shape: Shape, degrees: Range<usize>, nearest: f64) -> Self {
        let half = if shape.dimensions() == 3 { 1.0 } else { 0.5 };
        let limit = half * (2.0 * degrees.start as f64 / std::f64::consts::E).sqrt() / nearest;
        let alpha = if degrees.start > 0 { limit.min(LARGEST_ALPHA) } else { LARGEST_ALPHA };
        let mut best = Self::new(shape, degrees.clone(), nearest, alpha);
        // The number of terms is convex in ln α.
        loop {
            let next = Self::new(shape, degrees.clone(), nearest, best.alpha * ALPHA_STEP);
            if next.terms() >= best.terms() {
                return best;
            }
            best = next;
        }
    }

    fn new(shape: Shape, degrees: Range<usize>, nearest: f64, alpha: f64) -> Self {
        let most = reach(&degrees, alpha * nearest);
        Self { shape, degrees, alpha, most }
    }

    /// Lattice and wave vectors of an octant.
    fn terms(&self) -> f64 {
        let [far, waves] = self.radii();
        let count =
            |radius: f64, step: [f64; 3]| step.iter().filter(|&&s| s > 0.0).map(|s| radius / s + 1.0).product::<f64>();
        count(far, self.shape.period) + count(waves, waves_of(self.shape))
    }

    /// Of lattice vectors and of wave vectors.
    fn radii(&self) -> [f64; 2] {
        [self.most.sqrt() / self.alpha, 2.0 * self.alpha * self.most.sqrt()]
    }

    fn add(&self, angles: &mut Angles, sums: &mut [f64]) {
        let shape = self.shape;
        let [far, waves] = self.radii();
        let end = self.degrees.end;
        let mut table = memory::filled(0.0, end);
        for_ball(shape.period, shape.most_length(), |n, r| {
            if shape.is_near(r) {
                lower_gammas(self.alpha.powi(2) * square(r), &mut table);
                self.add_image(r, -mirrors(n), &table, angles, sums);
            }
        });
        for_ball(shape.period, far, |n, r| {
            if !shape.is_near(r) {
                upper_gammas(self.alpha.powi(2) * square(r), &mut table);
                self.add_image(r, mirrors(n), &table, angles, sums);
            }
        });
        let mut radial = Waves::new(self);
        for_ball(waves_of(shape), waves, |n, k| self.add_wave(k, mirrors(n), &mut radial, angles, sums));
        self.add_zero(angles, sums);
    }

    /// `gammas`: by s - 1/2.
    fn add_image(&self, r: [f64; 3], weight: f64, gammas: &[f64], angles: &mut Angles, sums: &mut [f64]) {
        let length = square(r).sqrt();
        angles.look(r.map(|v| v / length), self.degrees.end);
        let mut power = weight * length.powi(-(self.degrees.start as i32) - 1);
        for l in self.degrees.clone().step_by(2) {
            self.add_degree(l, angles, sums, |h| power * gammas[(l + h) / 2]);
            power /= length * length;
        }
    }

    fn add_wave(&self, k: [f64; 3], weight: f64, radial: &mut Waves, angles: &mut Angles, sums: &mut [f64]) {
        let length = square(k).sqrt();
        angles.look(k.map(|v| v / length), self.degrees.end);
        radial.look((0.5 * length / self.alpha).powi(2));
        for l in self.degrees.clone().step_by(2) {
            self.add_degree(l, angles, sums, |h| weight * radial.value(l, h));
        }
    }

    /// What the zero vectors of both lattices leave.
    fn add_zero(&self, angles: &Angles, sums: &mut [f64]) {
        let d = self.shape.dimensions() as f64;
        let gammas = half_gammas(self.degrees.end);
        for l in self.degrees.clone().step_by(2).filter(|&l| angles.degree(l, 0) == 0) {
            let s = 0.5 * (l + 1) as f64;
            let wave = (PI.sqrt() / self.alpha).powf(d) / (self.shape.volume() * (s - 0.5 * d));
            sums[slot(l, 0)] += self.alpha.powi(l as i32 + 1) / gammas[l / 2] * (wave - 1.0 / s);
        }
    }

    /// Adds the functions of one l times `factor` of their h.
    fn add_degree(&self, l: usize, angles: &Angles, sums: &mut [f64], factor: impl Fn(usize) -> f64) {
        let to = &mut sums[slot(l, 0)..][..angles.count(l)];
        if angles.dimensions == 3 {
            let f = factor(l);
            to.iter_mut().zip(&angles.values[slot(l, 0)..]).for_each(|(sum, v)| *sum += f * v);
        } else {
            to.iter_mut().enumerate().for_each(|(j, sum)| *sum += factor(2 * j) * angles.value(l, j));
        }
    }
}

/// What depends on the length of wave vectors.
struct Waves {
    /// (-1)^(h/2) π^(d/2) α^(l+1-d)/(V Γ(s)), at l/2 · `width` + h/2.
    factors: Vec<f64>,
    width: usize,
    /// First p of the exponential integrals.
    first: f64,
    /// Of a κ: E_p, and κ^(h/2) at h/2.
    integrals: Vec<f64>,
    powers: Vec<f64>,
}

impl Waves {
    fn new(split: &Split) -> Self {
        let (d, end) = (split.shape.dimensions(), split.degrees.end);
        let (width, gammas) = (end.div_ceil(2), half_gammas(end));
        let scale = PI.powf(0.5 * d as f64) / split.shape.volume();
        let factor = |i: usize| {
            let (l, half) = (i / width * 2, i % width);
            let sign = if half % 2 == 0 { 1.0 } else { -1.0 };
            let power = split.alpha.powi(l as i32 + 1 - d as i32);
            gammas.get(l / 2 + half).map_or(0.0, |gamma| sign * scale * power / gamma)
        };
        Self {
            factors: memory::collect((0..width * width).map(factor)),
            width,
            first: 0.5 * (3 - d) as f64,
            // With three periods h = l, and E_0 is the only one.
            integrals: memory::filled(0.0, if d == 3 { 1 } else { width }),
            powers: memory::filled(1.0, width),
        }
    }

    fn look(&mut self, kappa: f64) {
        exponential_integrals(self.first, kappa, &mut self.integrals);
        (1..self.width).for_each(|i| self.powers[i] = self.powers[i - 1] * kappa);
    }

    fn value(&self, l: usize, h: usize) -> f64 {
        self.factors[l / 2 * self.width + h / 2] * self.powers[h / 2] * self.integrals[(l - h) / 2]
    }
}

/// The largest α²R² and κ of terms that are not negligible beside 1/ρ^(l+1), for `near` = αρ.
fn reach(degrees: &Range<usize>, near: f64) -> f64 {
    let is_seen = |x: f64| degrees.clone().step_by(2).any(|l| largest_term(l, x, near) > NEGLIGIBLE.ln());
    let mut x = 200.0;
    while x > 2.0 && !is_seen(x) {
        x -= 2.0;
    }
    x + 2.0
}

/// Logarithm of a bound of the terms of α²R² = x and of κ = x, relative to 1/ρ^(l+1), for all h.
fn largest_term(l: usize, x: f64, near: f64) -> f64 {
    let power = (l + 1) as f64;
    let (least, most) = (0.5 * power, l as f64 + 0.5);
    // x^(s-1) exp(-x)/Γ(s), which is largest for s near x.
    let peak = |s: f64| (s - 1.0) * x.ln() - x - libm::lgamma(s);
    let waves = peak(x.clamp(least, most));
    let far = if x > most { (peak(most) + (x / (x - most + 1.0)).ln()).min(0.0) } else { 0.0 };
    power * near.ln() - 0.5 * power * x.ln() + waves.max(far)
}

fn waves_of(shape: Shape) -> [f64; 3] {
    shape.period.map(|p| if p > 0.0 { 2.0 * PI / p } else { 0.0 })
}

/// All vectors of an octant within a radius, and their numbers of steps, but the origin.
fn for_ball(step: [f64; 3], radius: f64, mut f: impl FnMut([i64; 3], [f64; 3])) {
    let most =
        |axis: usize, square: f64| if step[axis] > 0.0 { (square.max(0.0).sqrt() / step[axis]) as i64 } else { 0 };
    let left = |square: f64, axis: usize, n: i64| square - (n as f64 * step[axis]).powi(2);
    let all = radius * radius;
    for x in 0..=most(0, all) {
        let plane = left(all, 0, x);
        for y in 0..=most(1, plane) {
            for z in 0..=most(2, left(plane, 1, y)) {
                if x + y + z > 0 {
                    let n = [x, y, z];
                    f(n, std::array::from_fn(|i| n[i] as f64 * step[i]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::difference;
    use super::*;

    /// Both parts change with α, their sum does not: for ratios of periods far beyond those of `blocks`, too.
    #[test]
    fn the_split_does_not_matter() {
        for (period, near) in [
            ([0.0, 1.0, 0.0], 40.0),
            ([0.0, 3.0, 1.0], 7.0),
            ([1.0, 0.0, 1e6], 0.0),
            ([1.0, 0.0, 1e3], 80.0),
            ([1.0, 1.0, 1.0], 2.6),
            ([1.0, 1.0, 100.0], 6.0),
            ([1e4, 1.0, 1.0], 6.0),
            ([1.0, 100.0, 100.0], 6.0),
            ([1e6, 1.0, 1e3], 0.0),
            ([1e6, 1.0, 1e6], 2.0),
        ] {
            let shape = Shape { period, near };
            let nearest = shape.nearest_left_out();
            let other = |group: Range<usize>| {
                let alpha = 0.7 * Split::best(shape, group.clone(), nearest).alpha;
                Split::new(shape, group, nearest, alpha)
            };
            let error = difference(shape, 0..79, &far_sums(shape, 79), &split_sums(shape, 79, other));
            assert!(error < 1e-13, "{period:?} {near}: {error:.1e}");
        }
    }

    /// Of a box whose third period is long: other layers of images act as uniform sheets, up to exp(-2πR), and with the background of the
    /// box they are a potential (2π/V) z². Of it (2π/3V) d² is the background of the sums, 4π/3V times the harmonic of degree 2 is left.
    #[test]
    fn a_box_with_layers_far_away_is_a_slab() {
        for (long, near) in [(10.0, 0.0), (30.0, 6.0), (1e3, 6.0), (1e5, 2.0), (1e6, 0.0)] {
            let degrees = 47;
            let shape = Shape { period: [1.0, 1.3, long], near };
            let slab = Shape { period: [1.0, 1.3, 0.0], near };
            let (mut of_box, mut of_slab) = (far_sums(shape, degrees), far_sums(slab, degrees));
            of_slab[slot(2, 0)] += 4.0 * PI / (3.0 * shape.volume());
            (of_box[0], of_slab[0]) = (0.0, 0.0);
            let error = difference(slab, 0..degrees, &of_slab, &of_box);
            assert!(error < 2e-13, "{long} {near}: {error:.1e}");
        }
    }

    /// The number of terms grows more slowly than the ratio of periods.
    #[test]
    fn elongated_cells_take_few_terms() {
        for (period, most) in [
            ([1.0, 1.0, 1.0], 2e3),
            ([1.0, 1.0, 10.0], 2e3),
            ([1.0, 1.0, 1e3], 1e4),
            ([1.0, 1e3, 1e3], 1e4),
            ([1.0, 1e4, 0.0], 3e3),
            ([1.0, 1e6, 0.0], 3e4),
            ([1.0, 1.0, 1e6], 4e5),
            ([1.0, 1e3, 1e6], 4e5),
            ([1.0, 1e6, 1e6], 4e5),
        ] {
            let shape = Shape { period, near: 0.0 };
            let terms: f64 = GROUPS.iter().map(|&k| Split::best(shape, k..2 * k + 1, 1.0).terms()).sum();
            assert!(terms < most, "{period:?}: {terms}");
        }
    }
}
