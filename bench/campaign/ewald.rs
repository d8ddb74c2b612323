//! Sums over all periodic images by Ewald's method, with one, two and three periods: nothing of the library but the kernel of one pair.
//!
//! Enters: a case and its period. Leaves: field and gradient at any point. 1/r is split into erfc(αr)/r, summed over the next
//! images with their cores, and erf(αr)/r, summed over waves. Along open axes the waves have a period so long that what their
//! images add has fallen below rounding (waves with a component along a periodic axis fall off exponentially); waves without
//! one are summed pair by pair in closed form. Segments are nodes of Gauss's rule to the smooth part.

use crate::support::cases::{Case, Vec3};
use std::f64::consts::PI;
use wakefmm::math::biot_savart::{charge, cross, norm, particle, segment, sub};
use wakefmm::math::regularization::Part;
use wakefmm::options::Regularization;

/// erfc(REACH) and exp(-REACH²) are below rounding; a wave along an open axis falls to exp(-GAP).
const REACH: f64 = 6.0;
const GAP: f64 = 34.0;
/// Distances of the next images that are looked at, in mean periods; and nanoseconds of a wave and of a pair with an image.
const NEXT: [f64; 7] = [0.8, 1.1, 1.6, 2.5, 5.0, 10.0, 20.0];
const WAVE: f64 = 20.0;
const PAIR: f64 = 100.0;
/// Distance, in mean periods, up to which cores of images count, with one, two and three periods.
const CORES: [f64; 3] = [400.0, 15.0, 7.0];
/// Share of the tolerance below which the core of an image is left out.
const CORE_SHARE: f64 = 0.01;

/// A source as the pairs take it: its middle, half its length, how far its core reaches.
struct Element {
    middle: Vec3,
    half: f64,
    /// Distance up to which the core matters anywhere, and distance from the line.
    core: [f64; 2],
    nodes: std::ops::Range<usize>,
}

/// See the head of this file.
pub struct Ewald<'a> {
    case: &'a Case,
    regularizations: [Regularization; 2],
    period: Vec3,
    alpha: f64,
    /// Periods of the waves: longer ones along open axes.
    box_: Vec3,
    origin: Vec3,
    /// Sources along open axes with the gap around them: targets outside meet no waves.
    reach: [Vec3; 2],
    elements: Vec<Element>,
    nodes: Vec<(Vec3, Vec3)>,
    /// Numbers of the waves, weight and moments of each.
    waves: Vec<([i32; 3], f64, [[f64; 2]; 3])>,
    most: [i32; 3],
}

/// Smooth part at one point: derivatives of Σ a G by component.
#[derive(Default, Clone, Copy)]
struct Smooth {
    value: Vec3,
    first: [Vec3; 3],
    second: [[Vec3; 3]; 3],
}

impl Smooth {
    /// Adds a times a function of |d|: f, f'/r and (f'/r)'/r.
    fn add_radial(&mut self, a: Vec3, d: Vec3, [f, first, second]: [f64; 3]) {
        for (c, a) in a.into_iter().enumerate() {
            self.value[c] += a * f;
            for i in 0..3 {
                self.first[c][i] += a * first * d[i];
                self.second[c][i][i] += a * first;
                (0..3).for_each(|j| self.second[c][i][j] += a * second * d[i] * d[j]);
            }
        }
    }
}

fn square(v: Vec3) -> f64 {
    v.iter().map(|x| x * x).sum()
}

/// erf(αr)/r with derivatives by r²/2.
fn inner(alpha: f64, d: Vec3) -> [f64; 3] {
    let (r2, a2) = (square(d), alpha * alpha);
    let factor = 2.0 * alpha / PI.sqrt();
    if r2 * a2 > 0.3 {
        let r = r2.sqrt();
        let (f, g) = (libm::erf(alpha * r) / r, factor * (-a2 * r2).exp());
        let first = (g - f) / r2;
        return [f, first, -(3.0 * first + 2.0 * a2 * g) / r2];
    }
    // Σ (-1)^n (α²r²)^n/(n! (2n+1))
    let (mut sums, mut power, x) = ([0.0; 3], factor, a2 * r2);
    for n in 0..20 {
        let k = f64::from(n);
        sums[0] += power / (2.0 * k + 1.0);
        // The next two powers of r² with the factors of their derivatives.
        sums[1] -= power * 2.0 * a2 / (2.0 * k + 3.0);
        sums[2] += power * 4.0 * a2 * a2 / (2.0 * k + 5.0);
        power *= -x / (k + 1.0);
    }
    sums
}

/// ∫ (1 - e^-t)/t dt from 0 to x, with its derivatives.
fn entire_exponential_integral(x: f64) -> [f64; 3] {
    if x < 0.5 {
        // Σ -(-x)^k/(k k!)
        let (mut sums, mut power) = ([0.0; 3], -1.0);
        for k in 1..20 {
            let k = f64::from(k);
            // (-1)^(k+1) x^(k-1)/k!
            power *= if k > 1.0 { -x / k } else { -1.0 };
            sums[0] += power * x / k;
            sums[1] += power;
            // The next term, by its power of x less one.
            sums[2] -= power * k / (k + 1.0);
        }
        return sums;
    }
    let (e, first) = ((-x).exp(), -(-x).exp_m1() / x);
    let value = if x < 8.0 {
        // e^x times it has positive terms: Σ x^k/k! (1 + 1/2 + … + 1/k).
        let (mut sum, mut term, mut harmonic) = (0.0, 1.0, 0.0);
        for k in 1..80 {
            term *= x / f64::from(k);
            harmonic += 1.0 / f64::from(k);
            sum += term * harmonic;
        }
        e * sum
    } else {
        let fraction = (1..60).rev().map(f64::from).fold(0.0, |f, k| k / (1.0 + k / (x + f)));
        x.ln() + 0.577_215_664_901_532_9 + e / (x + fraction)
    };
    [value, first, (e - first) / x]
}

/// Nodes and weights of Gauss's rule with n nodes on [-1, 1].
fn gauss(n: usize) -> Vec<(f64, f64)> {
    let one = |k: usize| {
        let mut x = (PI * (k as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 0.0;
        for _ in 0..50 {
            let (mut p, mut before) = (1.0, 0.0);
            for j in 0..n {
                let j = j as f64;
                (p, before) = (((2.0 * j + 1.0) * x * p - j * before) / (j + 1.0), p);
            }
            slope = n as f64 * (x * p - before) / (x * x - 1.0);
            x -= p / slope;
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..n).map(one).collect()
}

/// Nodes that integrate what is smooth over 1/α along a line of length `l`: number of pieces, nodes in each.
fn pieces(l: f64) -> (usize, usize) {
    let count = (l / 1.4).ceil().max(1.0);
    let x = l / count;
    let nodes = [(0.004, 2), (0.05, 3), (0.12, 4), (0.35, 6), (0.8, 8)].into_iter().find(|(most, _)| x <= *most);
    (count as usize, nodes.map_or(10, |(_, n)| n))
}

/// The distance of the next images that costs least: fewer of them are more waves.
fn next_images(case: &Case, period: Vec3, mean: f64) -> f64 {
    let positions = || case.points.iter().chain(&case.position).chain(&case.charge_position);
    let gap = GAP * period.iter().copied().fold(0.0, f64::max) / PI;
    let side = |i: usize| {
        let (low, high) = positions().fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x[i]), h.max(x[i])));
        if period[i] > 0.0 { period[i] } else { high - low + gap }
    };
    let volume = side(0) * side(1) * side(2) / mean.powi(3);
    let (n, m) = (case.circulation.len() * 4 + case.position.len() + case.charge.len(), case.targets.len());
    let dimensions = period.iter().filter(|&&p| p > 0.0).count() as i32;
    let seconds = |next: f64| {
        // Half of a ball of waves.
        let waves = volume * (2.0 * REACH * REACH / next).powi(3) / (12.0 * PI * PI);
        waves * (n + m) as f64 * WAVE + (n * m) as f64 * (1.0 + (2.0 * next).powi(dimensions)) * PAIR
    };
    NEXT.into_iter().min_by(|&a, &b| seconds(a).total_cmp(&seconds(b))).expect("not empty")
}

impl<'a> Ewald<'a> {
    pub fn new(case: &'a Case, period: Vec3, regularizations: [Regularization; 2], tolerance: f64) -> Self {
        let periods: Vec<f64> = period.into_iter().filter(|&p| p > 0.0).collect();
        let (longest, dimensions) = (periods.iter().copied().fold(0.0, f64::max), periods.len());
        let mean = periods.iter().product::<f64>().powf(1.0 / dimensions as f64);
        let alpha = REACH / (mean * next_images(case, period, mean));
        let mut new = Self {
            case,
            regularizations,
            period,
            alpha,
            box_: period,
            origin: [0.0; 3],
            reach: [[f64::MIN; 3], [f64::MAX; 3]],
            elements: vec![],
            nodes: vec![],
            waves: vec![],
            most: [0; 3],
        };
        new.add_elements(mean, CORES[dimensions - 1] * mean, CORE_SHARE * tolerance);
        let gap = GAP * longest / (2.0 * PI);
        for i in 0..3 {
            let positions = || new.nodes.iter().map(|n| n.0[i]);
            let (low, high) = (positions().fold(f64::MAX, f64::min), positions().fold(f64::MIN, f64::max));
            new.origin[i] = 0.5 * (low + high);
            if period[i] == 0.0 {
                new.box_[i] = high - low + 2.0 * gap;
                (new.reach[0][i], new.reach[1][i]) = (low - gap, high + gap);
            }
        }
        new.add_waves();
        new
    }

    fn add_elements(&mut self, mean: f64, most: f64, share: f64) {
        let reach = |shortfall: &dyn Fn(f64) -> f64| {
            let mut q = 1.0;
            while shortfall(q) > share && q < 1e9 {
                q *= 1.1;
            }
            q
        };
        let of_lines = reach(&|q| norm(segment_difference(self.regularizations[0], q)) * q);
        let of_particles = reach(&|q| norm(particle_difference(self.regularizations[1], q)) * q * q);
        let c = self.case;
        for (k, e) in c.ends.chunks(2).enumerate() {
            let ends = [c.points[e[0] as usize], c.points[e[1] as usize]];
            let along = sub(ends[1], ends[0]);
            let length = norm(along);
            let (count, nodes) = pieces(length * self.alpha);
            let (first, rule) = (self.nodes.len(), gauss(nodes));
            for piece in 0..count {
                for (t, w) in &rule {
                    let s = (piece as f64 + 0.5 + 0.5 * t) / count as f64;
                    let a = 0.5 * w / count as f64 * c.circulation[k];
                    self.nodes.push((std::array::from_fn(|i| ends[0][i] + s * along[i]), along.map(|v| a * v)));
                }
            }
            let core = c.segment_core[k];
            // Far along its line the change of Γℓ/r² by the core is of size c/r, in a cylinder around the line.
            let far = if core > 0.0 { (core * mean * mean / share).cbrt().max(core * of_lines) } else { 0.0 };
            let middle = std::array::from_fn(|i| 0.5 * (ends[0][i] + ends[1][i]));
            let reach = [(far + 0.5 * length).min(most), core * of_lines];
            self.elements.push(Element { middle, half: 0.5 * length, core: reach, nodes: first..self.nodes.len() });
        }
        let points = c.position.iter().zip(&c.strength).zip(&c.particle_core).map(|((x, a), c)| (x, *a, *c));
        let charges = c.charge_position.iter().zip(&c.charge).map(|(x, q)| (x, [*q, 0.0, 0.0], 0.0));
        for (x, a, core) in points.chain(charges) {
            let at = self.nodes.len();
            self.nodes.push((*x, a));
            let reach = (core * of_particles).min(most);
            self.elements.push(Element { middle: *x, half: 0.0, core: [reach, f64::MAX], nodes: at..at + 1 });
        }
    }

    /// Numbers of half of all waves that count; the others are their conjugates.
    fn add_waves(&mut self) {
        let highest = 2.0 * self.alpha * REACH;
        let step = self.box_.map(|b| 2.0 * PI / b);
        let volume: f64 = self.box_.iter().product();
        self.most = step.map(|s| (highest / s) as i32);
        let [a, b, c] = self.most;
        let mut numbers = vec![];
        for n in (0..=a).flat_map(|x| (-b..=b).flat_map(move |y| (-c..=c).map(move |z| [x, y, z]))) {
            let k = square(std::array::from_fn(|i| f64::from(n[i]) * step[i]));
            let is_half = n[0] > 0 || n[1] > 0 || n[1] == 0 && n[2] > 0;
            let along_a_period = (0..3).any(|i| self.period[i] > 0.0 && n[i] != 0);
            if is_half && along_a_period && k <= highest * highest {
                numbers.push((n, 8.0 * PI / volume * (-k / (4.0 * self.alpha * self.alpha)).exp() / k));
            }
        }
        let mut moments = vec![[[0.0; 2]; 3]; numbers.len()];
        for (x, a) in &self.nodes {
            let table = self.table(*x);
            for ((n, _), m) in numbers.iter().zip(&mut moments) {
                let e = self.wave(&table, *n);
                (0..3).for_each(|c| m[c] = [m[c][0] + a[c] * e[0], m[c][1] - a[c] * e[1]]);
            }
        }
        self.waves = numbers.into_iter().zip(moments).map(|((n, f), m)| (n, f, m)).collect();
    }

    /// cos and sin of all multiples along each axis.
    fn table(&self, x: Vec3) -> [Vec<[f64; 2]>; 3] {
        std::array::from_fn(|i| {
            let phase = 2.0 * PI * (x[i] - self.origin[i]) / self.box_[i];
            let one = |n: i32| {
                let (s, c) = (f64::from(n) * phase).sin_cos();
                [c, s]
            };
            (-self.most[i]..=self.most[i]).map(one).collect()
        })
    }

    fn wave(&self, table: &[Vec<[f64; 2]>; 3], n: [i32; 3]) -> [f64; 2] {
        let of = |i: usize| table[i][(n[i] + self.most[i]) as usize];
        let times = |a: [f64; 2], b: [f64; 2]| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
        times(times(of(0), of(1)), of(2))
    }

    /// The potential of erf(αr)/r, summed over all images.
    fn smooth(&self, x: Vec3) -> Smooth {
        let mut sum = Smooth::default();
        self.add_constant_waves(x, &mut sum);
        if (0..3).any(|i| x[i] < self.reach[0][i] || x[i] > self.reach[1][i]) {
            return sum;
        }
        let table = self.table(x);
        for (n, f, m) in &self.waves {
            let e = self.wave(&table, *n);
            let k: Vec3 = std::array::from_fn(|i| 2.0 * PI * f64::from(n[i]) / self.box_[i]);
            for c in 0..3 {
                let cos = f * (m[c][0] * e[0] - m[c][1] * e[1]);
                let sin = f * (m[c][0] * e[1] + m[c][1] * e[0]);
                sum.value[c] += cos;
                for i in 0..3 {
                    sum.first[c][i] -= k[i] * sin;
                    (0..3).for_each(|j| sum.second[c][i][j] -= k[i] * k[j] * cos);
                }
            }
        }
        sum
    }

    /// Waves without a component along a periodic axis, in closed form.
    fn add_constant_waves(&self, x: Vec3, sum: &mut Smooth) {
        let periodic: Vec<f64> = self.period.into_iter().filter(|&p| p > 0.0).collect();
        let (area, a) = (periodic.iter().product::<f64>(), self.alpha);
        for (at, strength) in &self.nodes {
            let d: Vec3 = std::array::from_fn(|i| if self.period[i] > 0.0 { 0.0 } else { x[i] - at[i] });
            let s = square(d);
            let f = match periodic.len() {
                3 => {
                    (0..3).for_each(|c| sum.value[c] -= strength[c] * PI / (a * a * area));
                    continue;
                }
                2 => {
                    // -(2π/A) (exp(-α²z²)/(α√π) + z erf(αz)), z = |d|
                    let (z, f) = (s.sqrt(), -2.0 * PI / area);
                    let g = (-a * a * s).exp();
                    let axis = (0..3).find(|&i| self.period[i] == 0.0).expect("an open axis");
                    let erf = libm::erf(a * d[axis]);
                    for c in 0..3 {
                        sum.value[c] += strength[c] * f * (g / (a * PI.sqrt()) + z * erf.abs());
                        sum.first[c][axis] += strength[c] * f * erf;
                        sum.second[c][axis][axis] += strength[c] * f * 2.0 * a / PI.sqrt() * g;
                    }
                    continue;
                }
                _ => entire_exponential_integral(a * a * s),
            };
            // -(1/L) Ein(α²s), up to a constant; derivatives by s/2 on the open axes only.
            let (first, second) = (-2.0 * a * a / area * f[1], -4.0 * a.powi(4) / area * f[2]);
            for c in 0..3 {
                sum.value[c] -= strength[c] * f[0] / area;
                for i in (0..3).filter(|&i| self.period[i] == 0.0) {
                    sum.first[c][i] += strength[c] * first * d[i];
                    sum.second[c][i][i] += strength[c] * first;
                    (0..3).for_each(|j| sum.second[c][i][j] += strength[c] * second * d[i] * d[j]);
                }
            }
        }
    }

    /// Vectors of the lattice that bring `d` to within `reach`.
    fn for_images(&self, d: Vec3, reach: f64, mut f: impl FnMut(Vec3, Vec3)) {
        let range = |i: usize| {
            let p = self.period[i];
            let least = |by: f64| if p > 0.0 { ((d[i] + by) / p).ceil() as i64 } else { 0 };
            if p > 0.0 { least(-reach)..=((d[i] + reach) / p).floor() as i64 } else { 0..=0 }
        };
        let (a, b, c) = (range(0), range(1), range(2));
        for x in a {
            for y in b.clone() {
                for z in c.clone() {
                    let r = [x as f64 * self.period[0], y as f64 * self.period[1], z as f64 * self.period[2]];
                    let to = sub(d, r);
                    if square(to) <= reach * reach {
                        f(r, to);
                    }
                }
            }
        }
    }

    /// Field and gradient, not normalized. Images that have the point within `near` of themselves count as if it were on them.
    pub fn at(&self, x: Vec3, near: f64) -> Vec<f64> {
        let mut smooth = self.smooth(x);
        let mut exact = [0.0; 12];
        let cut = REACH / self.alpha;
        for (k, e) in self.elements.iter().enumerate() {
            self.for_images(sub(x, e.middle), e.core[0].max(cut + e.half), |r, to| {
                let (at, distance) = (sub(x, r), norm(to));
                if distance > cut + e.half {
                    if self.distance(k, at) <= e.core[1] {
                        self.add_pair(k, at, Part::Correction, &mut exact);
                    }
                    return;
                }
                for (node, a) in &self.nodes[e.nodes.clone()] {
                    let d = sub(at, *node);
                    smooth.add_radial(a.map(|v| -v), d, inner(self.alpha, d));
                }
                if near == 0.0 || self.distance(k, at) > near {
                    self.add_pair(k, at, Part::Regularized, &mut exact);
                }
            });
        }
        self.joined(&smooth, exact)
    }

    fn joined(&self, s: &Smooth, mut exact: [f64; 12]) -> Vec<f64> {
        if !self.case.charge.is_empty() {
            let values = [s.value[0], s.first[0][0], s.first[0][1], s.first[0][2]];
            return (0..4).map(|i| exact[i] + values[i]).collect();
        }
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            exact[i] += s.first[k][j] - s.first[j][k];
            (0..3).for_each(|l| exact[3 + 3 * i + l] += s.second[k][j][l] - s.second[j][k][l]);
        }
        exact.to_vec()
    }

    /// From the line of segment k, or from particle k.
    fn distance(&self, k: usize, x: Vec3) -> f64 {
        match self.case.ends.chunks(2).nth(k) {
            Some(e) => {
                let (p1, p2) = (self.case.points[e[0] as usize], self.case.points[e[1] as usize]);
                norm(cross(sub(p2, p1), sub(x, p1))) / norm(sub(p2, p1))
            }
            None => norm(sub(x, self.elements[k].middle)),
        }
    }

    fn add_pair(&self, k: usize, x: Vec3, part: Part, to: &mut [f64; 12]) {
        let c = self.case;
        if let Some(&q) = c.charge.get(k) {
            if part == Part::Regularized {
                let v = charge(x, c.charge_position[k], q);
                to[0] += v.potential;
                (0..3).for_each(|i| to[1 + i] += v.gradient[i]);
            }
            return;
        }
        let [lines, points] = self.regularizations;
        let v = match k.checked_sub(c.circulation.len()) {
            None => {
                let (p1, p2) = (c.points[c.ends[2 * k] as usize], c.points[c.ends[2 * k + 1] as usize]);
                segment(lines, part, x, p1, p2, c.circulation[k], c.segment_core[k])
            }
            Some(k) => particle(points, part, x, c.position[k], c.strength[k], c.particle_core[k]),
        };
        let numbers = v.velocity.iter().chain(v.gradient.as_flattened());
        to.iter_mut().zip(numbers).for_each(|(t, v)| *t += v);
    }
}

/// What a core of 1 changes of the velocity at distance q, of a particle and beside a short segment.
fn particle_difference(reg: Regularization, q: f64) -> Vec3 {
    particle(reg, Part::Correction, [q, 0.0, 0.0], [0.0; 3], [0.0, 1.0, 0.0], 1.0).velocity
}

fn segment_difference(reg: Regularization, q: f64) -> Vec3 {
    // Far longer than q: F of the distance to the line alone.
    segment(reg, Part::Correction, [q, 0.0, 0.0], [0.0, -q, 0.0], [0.0, q, 0.0], 1.0, 1.0).velocity
}
