//! Sums of singular harmonics over a lattice of images, without the images near the origin.
//!
//! The images of a unit source at the lattice vectors R that are not near have, around the origin, the potential
//! Σ_R 1/|d - R| = Σ λ_i R_i(d), λ_i = Σ_R S_i(R). The lattice is rectangular, so only cosines of even degree and even m are
//! left. With the addition theorem the same numbers turn the multipoles of a box into the local expansion of what all images
//! of the box do in it.
//!
//! Sums are split as Ewald's (`ewald`). Three periods: degree 2 does not converge by itself, and degree 0 diverges; both are those of Ewald's
//! sum, that is with a uniform background that makes the mean of the potential zero. One and two periods: degree 0 diverges and is left out,
//! a constant that no velocity sees.

#[cfg(test)]
mod blocks;
mod ewald;
mod gamma;

use super::harmonics::index;
use crate::memory;
use once_cell::sync::Lazy;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::f64::consts::PI;
use std::sync::Arc;

/// Sums are made for multiples of this order.
const ORDER_STEP: usize = 8;
/// Sums that are kept for later plans.
const KEPT: usize = 16;
/// Lengths that differ by less than this part of them are equal.
const SLACK: f64 = 1e-9;

/// Periods along x, y and z, 0 where open, and how far near images go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    pub period: [f64; 3],
    /// Images at lattice vectors no longer than this are near.
    pub near: f64,
}

impl Shape {
    pub fn dimensions(&self) -> usize {
        self.period.iter().filter(|&&p| p > 0.0).count()
    }

    /// All near lattice vectors, the zero vector first, then by rising length.
    pub fn near_vectors(&self) -> Vec<[f64; 3]> {
        let most = self.most_periods();
        let mut found: Vec<[i64; 3]> = vec![];
        for x in -most[0]..=most[0] {
            for y in -most[1]..=most[1] {
                let z = (-most[2]..=most[2]).map(|z| [x, y, z]).filter(|&n| self.is_near(self.vector(n)));
                memory::extend(&mut found, z);
            }
        }
        found.sort_by(|&a, &b| square(self.vector(a)).total_cmp(&square(self.vector(b))).then(a.cmp(&b)));
        memory::collect(found.into_iter().map(|n| self.vector(n)))
    }

    /// The same near vectors, with the longest of them for the limit: equal for domains that differ in nothing that matters.
    pub fn canonical(self) -> Self {
        let longest = self.near_vectors().last().map_or(0.0, |&r| square(r).sqrt());
        Self { near: longest, ..self }
    }

    /// How many there are at most; without making them.
    pub fn near_count(&self) -> f64 {
        self.period.iter().filter(|&&p| p > 0.0).map(|p| 2.0 * (self.near / p).floor() + 1.0).product()
    }

    /// Whole periods within the limit. A limit that is the length of a vector (`canonical`) has that vector, whatever its last digit.
    fn most_periods(&self) -> [i64; 3] {
        self.period.map(|p| if p > 0.0 { (self.most_length() / p) as i64 } else { 0 })
    }

    fn vector(&self, n: [i64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| n[i] as f64 * self.period[i])
    }

    fn is_near(&self, r: [f64; 3]) -> bool {
        square(r) <= self.near * self.near * (1.0 + SLACK)
    }

    /// Length of the shortest vector that is not near.
    pub fn nearest_left_out(&self) -> f64 {
        let wide = Self { near: self.near + self.shortest(), ..*self };
        let out = wide.near_vectors().into_iter().find(|&r| !self.is_near(r));
        out.map_or(wide.near, |r| square(r).sqrt())
    }

    fn shortest(&self) -> f64 {
        self.period.iter().copied().filter(|&p| p > 0.0).fold(f64::INFINITY, f64::min)
    }

    /// No near vector is longer, whatever its last digit.
    fn most_length(&self) -> f64 {
        self.near * (1.0 + SLACK)
    }

    /// The potential of the uniform background of a unit source is this times d²; three periods only.
    pub fn background(&self) -> f64 {
        2.0 * PI / (3.0 * self.volume())
    }

    /// Of a cell, along the periodic axes.
    fn volume(&self) -> f64 {
        self.period.iter().filter(|&&p| p > 0.0).product()
    }
}

fn square(r: [f64; 3]) -> f64 {
    r.iter().map(|v| v * v).sum()
}

/// See the head of this file.
#[derive(Debug)]
pub struct LatticeSums {
    /// Degrees 0 .. degrees-1.
    degrees: usize,
    /// λ of degree k, cosine of m = 2j, at k/2 (k/2 + 1)/2 + j (k even), in units of the shortest period.
    sums: Vec<f64>,
    unit: f64,
}

fn slot(k: usize, m: usize) -> usize {
    let half = k / 2;
    half * (half + 1) / 2 + m / 2
}

impl LatticeSums {
    /// Enough for expansions of `order`; computed once for a shape.
    pub fn of(shape: Shape, order: usize) -> Arc<Self> {
        type Key = ([u64; 4], usize);
        static CACHE: Lazy<Mutex<HashMap<Key, Arc<LatticeSums>>>> = Lazy::new(Default::default);
        let unit = shape.shortest();
        let order = order.next_multiple_of(ORDER_STEP);
        let Shape { period: [x, y, z], near } = shape;
        // In units of the shortest period, so that a domain of another size has the same sums.
        let key = ([x, y, z, near].map(|v| (v / unit).to_bits()), order);
        if let Some(found) = CACHE.lock().get(&key) {
            return Arc::new(found.scaled(unit));
        }
        let one = Shape { period: shape.period.map(|p| p / unit), near: near / unit };
        let degrees = (2 * order).saturating_sub(1);
        let made = Arc::new(Self { degrees, sums: ewald::far_sums(one, degrees), unit: 1.0 });
        let mut cache = CACHE.lock();
        if cache.len() >= KEPT {
            cache.clear();
        }
        cache.insert(key, made.clone());
        Arc::new(made.scaled(unit))
    }

    /// Of a lattice that is `unit` times as large.
    fn scaled(&self, unit: f64) -> Self {
        Self { degrees: self.degrees, sums: memory::copy(&self.sums), unit }
    }

    /// λ of degree k, cosine of m, both even.
    fn sum(&self, k: usize, m: usize) -> f64 {
        if k < self.degrees { self.sums[slot(k, m)] } else { 0.0 }
    }

    /// The local expansion, in units of `to`, of what the images do, from the multipoles in units of `from` around the
    /// same centre; both of `order`, in the layout of `harmonics`. Overwrites `local`.
    pub fn apply(&self, order: usize, multipole: &[f64], from: f64, local: &mut [f64], to: f64) {
        let norms = Norms::new(2 * order);
        let (from, to) = (from / self.unit, to / self.unit);
        let mut moments = memory::filled([0.0; 2], order * order);
        for n in 0..order {
            let scale = if n % 2 == 0 { 1.0 } else { -1.0 } * from.powi(n as i32);
            for m in 0..=n {
                let f = scale / norms.of(n, m);
                let sin = if m > 0 { multipole[index(n, m, true)] } else { 0.0 };
                let v = [f * multipole[index(n, m, false)], f * sin];
                moments[n * n + n + m] = v;
                // Negative orders: (-1)^m times the conjugate.
                let sign = if m % 2 == 0 { 1.0 } else { -1.0 };
                moments[n * n + n - m] = if m > 0 { [sign * v[0], -sign * v[1]] } else { v };
            }
        }
        let weights = self.weights(order, &norms);
        for l in 0..order {
            let scale = to.powi(l as i32) / self.unit;
            for p in 0..=l {
                let mut b = [0.0; 2];
                for n in (l % 2..order).step_by(2) {
                    let k = n + l;
                    let (row, weight) = (&moments[n * n..(n + 1) * (n + 1)], &weights[k / 2]);
                    // m = p + q must be even.
                    let first = (n + p) % 2;
                    for q in (first..2 * n + 1).step_by(2) {
                        let m = (p + q).abs_diff(n);
                        let w = weight[m / 2];
                        b[0] += w * row[q][0];
                        b[1] += w * row[q][1];
                    }
                }
                let f = scale / norms.of(l, p) * if p > 0 { 2.0 } else { 1.0 };
                local[index(l, p, false)] = f * b[0];
                if p > 0 {
                    local[index(l, p, true)] = -f * b[1];
                }
            }
        }
    }

    /// Sums of the complex irregular harmonics (l-m)! P_lm(cos θ) e^{imφ} / r^(l+1) of even l below 2·order and even m, which are real: that of
    /// l, m at l/2 (l/2 + 1)/2 + m/2. Of a potential between positions that are multiples of `unit`.
    pub fn irregular(&self, order: usize, unit: f64) -> Vec<f64> {
        let mut sums = memory::with_room(order * (order + 1) / 2);
        let rows = self.weights(order, &Norms::new(2 * order));
        for (half, row) in rows.iter().enumerate() {
            let scale = (unit / self.unit).powi(2 * half as i32) / self.unit;
            memory::extend(&mut sums, row.iter().map(|v| scale * v));
        }
        sums
    }

    /// Factors of the complex harmonics of degree 2i, order 2j.
    fn weights(&self, order: usize, norms: &Norms) -> Vec<Vec<f64>> {
        let row = |k: usize| {
            let one = |m: usize| self.sum(k, m) * norms.of(k, m) * if m > 0 { 0.5 } else { 1.0 };
            memory::collect((0..k + 1).step_by(2).map(one))
        };
        memory::collect((0..2 * order).step_by(2).map(row))
    }
}

/// √((2-δ_m0)(n-m)!(n+m)!): real harmonics are this times those that the addition theorem has no factors for.
struct Norms(Vec<f64>);

impl Norms {
    fn new(degrees: usize) -> Self {
        let mut ln = memory::filled(0.0, 2 * degrees + 1);
        (1..ln.len()).for_each(|k| ln[k] = ln[k - 1] + (k as f64).ln());
        let two = |m: usize| if m > 0 { 0.5 * 2f64.ln() } else { 0.0 };
        let one = |n: usize, m: usize| (0.5 * (ln[n - m] + ln[n + m]) + two(m)).exp();
        let mut norms = vec![];
        memory::extend(&mut norms, (0..degrees).flat_map(|n| (0..=n).map(move |m| (n, m))).map(|(n, m)| one(n, m)));
        Self(norms)
    }

    fn of(&self, n: usize, m: usize) -> f64 {
        self.0[n * (n + 1) / 2 + m]
    }
}

/// 2 for every coordinate that is not zero: how many vectors of the lattice differ in signs only.
fn mirrors(n: [i64; 3]) -> f64 {
    n.iter().map(|&v| if v == 0 { 1.0 } else { 2.0 }).product()
}

#[cfg(test)]
mod tests {
    use super::blocks::{block_sums, difference};
    use super::*;
    use crate::math::harmonics::regular;

    /// The limit of a canonical shape is a length that may be rounded down: its vectors are near all the same, or they would be
    /// among neither the near ones nor those beyond.
    #[test]
    fn a_limit_at_a_vector_has_it() {
        for k in 1..400 {
            let p = 0.3 + 0.00137 * k as f64;
            for period in [[p, 0.0, 0.0], [p, 1.3 * p, 0.0], [p, 1.1, 0.9 * p]] {
                let shape = Shape { period, near: 3.4 * p };
                let same = shape.canonical();
                assert_eq!(shape.near_vectors(), same.near_vectors(), "{period:?}");
                assert_eq!(same, same.canonical());
                let nearest = same.nearest_left_out();
                assert!(nearest > same.near * (1.0 + SLACK), "{period:?}: {nearest} {}", same.near);
            }
        }
    }

    /// Blocks of high degrees converge soon. Low ones need six sizes; the weights of their partial sums leave rounding errors of some 1e-15, in
    /// degree 4 up to 3e-12 of a sum without near images.
    #[test]
    fn ewalds_sums_are_those_of_blocks() {
        for (period, near, degrees) in [
            ([0.0, 1.0, 0.0], 0.0, 79),
            ([0.0, 0.0, 1.0], 7.3, 79),
            ([1.0, 0.0, 0.0], 40.0, 79),
            ([1.0, 1.0, 0.0], 0.0, 79),
            ([1.0, 0.0, 2.0], 3.3, 79),
            ([0.0, 3.0, 1.0], 7.0, 47),
            ([10.0, 1.0, 0.0], 2.5, 47),
            ([0.0, 1.0, 10.0], 12.5, 31),
            ([1.0, 1.0, 1.0], 0.0, 47),
            ([1.0, 1.0, 1.0], 2.6, 79),
            ([2.0, 1.0, 1.0], 3.6, 47),
            ([1.0, 3.0, 1.0], 2.0, 31),
            ([3.0, 1.0, 3.0], 5.0, 31),
            ([1.0, 1.0, 10.0], 6.0, 9),
        ] {
            let shape = Shape { period, near };
            let sums = ewald::far_sums(shape, degrees);
            let low = degrees.min(9);
            let error = difference(shape, 0..low, &block_sums(shape, low, 6), &sums);
            assert!(error < 5e-12, "{period:?} {near}: {error:.1e}");
            let error = difference(shape, low..degrees, &block_sums(shape, degrees, 4), &sums);
            assert!(error < 5e-13, "{period:?} {near}: {error:.1e}");
        }
    }

    /// G(d) - 1/|d| of Ewald's sum, with a parameter that does not matter.
    fn ewald_at(period: [f64; 3], d: [f64; 3], alpha: f64) -> f64 {
        let volume: f64 = period.iter().product();
        let mut sum = -PI / (alpha * alpha * volume);
        let all = |most: i64| (-most..=most).flat_map(move |x| (-most..=most).map(move |y| (x, y)));
        for (x, y) in all(9) {
            for z in -9..=9i64 {
                let n = [x, y, z].map(|v| v as f64);
                let r = (0..3).map(|i| (d[i] - n[i] * period[i]).powi(2)).sum::<f64>().sqrt();
                let own = n == [0.0; 3];
                sum += if own { -libm::erf(alpha * r) / r } else { libm::erfc(alpha * r) / r };
                let k: [f64; 3] = std::array::from_fn(|i| 2.0 * PI * n[i] / period[i]);
                let k2: f64 = square(k);
                if !own {
                    let phase: f64 = (0..3).map(|i| k[i] * d[i]).sum();
                    sum += 4.0 * PI / volume * (-k2 / (4.0 * alpha * alpha)).exp() / k2 * phase.cos();
                }
            }
        }
        sum
    }

    /// What the sums say for the same.
    fn expanded(shape: Shape, order: usize, d: [f64; 3]) -> f64 {
        let sums = LatticeSums::of(shape, order);
        let degrees = 2 * order - 1;
        let mut r = vec![0.0; degrees * degrees];
        regular(degrees, d.map(|v| v / sums.unit), &mut r);
        let mut total = 0.0;
        for k in (0..degrees).step_by(2) {
            total += (0..=k).step_by(2).map(|m| sums.sum(k, m) * r[index(k, m, false)]).sum::<f64>();
        }
        total /= sums.unit;
        for v in &shape.near_vectors()[1..] {
            total += 1.0 / (0..3).map(|i| (d[i] - v[i]).powi(2)).sum::<f64>().sqrt();
        }
        total + if shape.dimensions() == 3 { shape.background() * square(d) } else { 0.0 }
    }

    #[test]
    fn three_periods_are_ewalds_sum() {
        for period in [[2.0; 3], [1.0, 1.3, 0.8], [0.7, 1.5, 1.0]] {
            let unit = period.iter().product::<f64>().cbrt();
            let shape = Shape { period, near: 2.6 * unit };
            for d in [[0.1, -0.2, 0.3], [0.4, 0.45, -0.3], [0.02, 0.0, 0.01]] {
                let d = std::array::from_fn(|i| d[i] * period[i]);
                let (a, b) = (ewald_at(period, d, 1.9 / unit), ewald_at(period, d, 2.2 / unit));
                assert!((a - b).abs() * unit < 1e-13, "{period:?}: {a} {b}");
                let got = expanded(shape, 18, d);
                assert!((got - a).abs() * unit < 2e-13, "{period:?} {d:?}: {got} {a}");
            }
        }
        let cubic = expanded(Shape { period: [1.0; 3], near: 2.6 }, 12, [1e-9, 0.0, 0.0]);
        // The self term of a cubic lattice (Nijboer and de Wette).
        assert!((cubic + 2.837297479480620).abs() < 1e-12, "{cubic}");
    }

    /// Along one axis: Σ 1/|x - n| over n ≠ 0, less its value at zero, is -γ - ψ(1-x) … in both directions.
    #[test]
    fn one_period_is_the_digamma_function() {
        let shape = Shape { period: [0.0, 1.5, 0.0], near: 4.0 };
        let (x, y) = (0.31, 0.08);
        let at = |x: f64, y: f64| expanded(shape, 16, [y * 1.5, x * 1.5, 0.0]) * 1.5;
        // Differences of pairs, summed to a million and their tail by its leading terms.
        let far = 1_000_000;
        let mut sum = 0.0;
        for n in (1..=far).rev() {
            let n = n as f64;
            sum += 1.0 / (x - n).hypot(y) + 1.0 / (x + n).hypot(y) - 2.0 / n;
        }
        sum += (2.0 * x * x - y * y) / (far as f64).powi(2) * 0.5;
        assert!((at(x, y) - at(0.0, 0.0) - sum).abs() < 1e-12, "{} {sum}", at(x, y) - at(0.0, 0.0));
    }

    /// Multipoles of a charge, turned by the lattice, are the sums at another point.
    #[test]
    fn multipoles_become_local_expansions() {
        for period in [[1.0, 1.0, 1.0], [1.0, 1.4, 0.0], [0.0, 0.0, 2.0]] {
            let shape = Shape { period, near: 4.5 };
            let (s, t, order) = ([0.2, -0.3, 0.25], [-0.1, 0.35, -0.2], 24);
            let n = order * order;
            let (mut multipole, mut local, mut at) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            let (from, to) = (0.7, 0.9);
            regular(order, s.map(|v| v / from), &mut multipole);
            LatticeSums::of(shape, order).apply(order, &multipole, from, &mut local, to);
            regular(order, t.map(|v| v / to), &mut at);
            let got: f64 = local.iter().zip(&at).map(|(a, b)| a * b).sum();
            let d: [f64; 3] = std::array::from_fn(|i| t[i] - s[i]);
            let near = |d: [f64; 3]| {
                let images = shape.near_vectors();
                images[1..].iter().map(|v| 1.0 / square(std::array::from_fn(|i| d[i] - v[i])).sqrt()).sum::<f64>()
            };
            let background = if shape.dimensions() == 3 { shape.background() * square(d) } else { 0.0 };
            let want = expanded(shape, order, d) - near(d) - background;
            assert!((got - want).abs() < 1e-12, "{period:?}: {got} {want}");
        }
    }
}
