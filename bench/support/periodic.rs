//! Sums over all periodic images, by other means than the library: Ewald's sum with three periods; with one and two, blocks of
//! images whose limit is extrapolated. Images near the box are explicit elements, with their cores, summed by the oracle.

use super::cases::{Case, Kind, Vec3};
use super::random::Random;
use std::f64::consts::PI;
use wakefmm::math::biot_savart::{self, Induced};
use wakefmm::math::regularization::Part;
use wakefmm::options::*;

/// Nodes of Gauss's rule on a segment, for images that are not.
const NODES: usize = 6;

/// Value, gradient and second derivatives of a potential.
#[derive(Clone, Copy, Default)]
pub struct Jet {
    pub value: f64,
    pub first: Vec3,
    pub second: [Vec3; 3],
}

impl Jet {
    /// Adds a function of the distance: f, f'/r and (f'/r)'/r at d.
    fn add_radial(&mut self, d: Vec3, [f, first, second]: [f64; 3]) {
        self.value += f;
        for i in 0..3 {
            self.first[i] += first * d[i];
            self.second[i][i] += first;
            (0..3).for_each(|j| self.second[i][j] += second * d[i] * d[j]);
        }
    }

    fn scaled_add(&mut self, f: f64, o: &Jet) {
        self.value += f * o.value;
        for i in 0..3 {
            self.first[i] += f * o.first[i];
            (0..3).for_each(|j| self.second[i][j] += f * o.second[i][j]);
        }
    }
}

fn minus(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] - b[i])
}

fn square(a: Vec3) -> f64 {
    a.iter().map(|v| v * v).sum()
}

/// 1/r
fn coulomb(d: Vec3) -> [f64; 3] {
    let r2 = square(d);
    let y = 1.0 / r2.sqrt();
    [y, -y / r2, 3.0 * y / (r2 * r2)]
}

/// erfc(αr)/r
fn outer(alpha: f64, d: Vec3) -> [f64; 3] {
    let r2 = square(d);
    let r = r2.sqrt();
    let (e, g) = (libm::erfc(alpha * r), 2.0 * alpha / PI.sqrt() * (-alpha * alpha * r2).exp());
    let first = -(e / r + g) / r2;
    [e / r, first, (3.0 * (e / r + g) / r2 + 2.0 * alpha * alpha * g) / r2]
}

/// erf(αr)/r
fn inner(alpha: f64, d: Vec3) -> [f64; 3] {
    let (r2, a2) = (square(d), alpha * alpha);
    if r2 * a2 > 0.25 {
        let (c, o) = (coulomb(d), outer(alpha, d));
        return std::array::from_fn(|i| c[i] - o[i]);
    }
    // 2α/√π Σ (-1)^n (α²r²)^n/(n! (2n+1)), and its derivatives by r²/2.
    let (mut sums, mut factor) = ([0.0; 3], 2.0 * alpha / PI.sqrt());
    for n in 0..24 {
        let k = f64::from(n);
        let t = factor / (2.0 * k + 1.0);
        let power = |m: i32| if n >= m { r2.powi(n - m) } else { 0.0 };
        sums[0] += t * power(0);
        sums[1] += t * 2.0 * k * power(1);
        sums[2] += t * 4.0 * k * (k - 1.0) * power(2);
        factor *= -a2 / (k + 1.0);
    }
    sums
}

/// The box of a case and everything that its images need.
pub struct Images {
    pub period: Vec3,
    alpha: f64,
    /// Images within so many periods of the box are explicit.
    most: i64,
    explicit: Vec<Vec3>,
    /// The next lattice vectors; wave vectors with what Ewald's sum multiplies their waves by.
    around: Vec<Vec3>,
    waves: Vec<(Vec3, f64)>,
}

impl Images {
    pub fn new(period: Vec3) -> Self {
        Self::with_explicit(period, 2)
    }

    pub fn with_explicit(period: Vec3, most: i64) -> Self {
        let volume: f64 = period.iter().product();
        let alpha = 2.0 / volume.cbrt().max(1e-300);
        let mut new = Self { period, alpha, most, explicit: vec![], around: vec![], waves: vec![] };
        new.explicit = new.shell(-1, most);
        if new.count() == 3 {
            new.around = new.shell(most, 5);
            let wave = Self { period: period.map(|p| 2.0 * PI / p), alpha, ..Self::new([0.0; 3]) };
            let factor = |k: Vec3| 4.0 * PI / volume * (-square(k) / (4.0 * alpha * alpha)).exp() / square(k);
            new.waves = wave.shell(0, 9).into_iter().map(|k| (k, factor(k))).filter(|w| w.1 > 1e-20).collect();
        }
        new
    }

    fn count(&self) -> usize {
        self.period.iter().filter(|&&p| p > 0.0).count()
    }

    /// Lattice vectors of the block of (2n + 1)^d cells that are not in the one of (2m + 1)^d.
    fn shell(&self, m: i64, n: i64) -> Vec<Vec3> {
        let range = |i: usize| if self.period[i] > 0.0 { -n..=n } else { 0..=0 };
        let mut found = vec![];
        for x in range(0) {
            for y in range(1) {
                for z in range(2) {
                    if x.abs().max(y.abs()).max(z.abs()) > m {
                        found.push([x as f64 * self.period[0], y as f64 * self.period[1], z as f64 * self.period[2]]);
                    }
                }
            }
        }
        found
    }

    /// The potential at d of a unit source's images that are not explicit.
    pub fn beyond(&self, d: Vec3) -> Jet {
        if self.count() == 3 { self.ewald(d) } else { self.extrapolated(d) }
    }

    fn ewald(&self, d: Vec3) -> Jet {
        let (alpha, volume) = (self.alpha, self.period.iter().product::<f64>());
        let mut sum = Jet { value: -PI / (alpha * alpha * volume), ..Jet::default() };
        for r in &self.explicit {
            let x = minus(d, *r);
            sum.add_radial(x, inner(alpha, x).map(|v| -v));
        }
        for r in &self.around {
            let x = minus(d, *r);
            sum.add_radial(x, outer(alpha, x));
        }
        for &(k, f) in &self.waves {
            let phase: f64 = (0..3).map(|i| k[i] * d[i]).sum();
            let (s, c) = phase.sin_cos();
            sum.value += f * c;
            for i in 0..3 {
                sum.first[i] -= f * s * k[i];
                (0..3).for_each(|j| sum.second[i][j] -= f * c * k[i] * k[j]);
            }
        }
        sum
    }

    /// Sums over blocks differ from the limit by odd (two periods) or even (one) powers of their inverse width.
    fn extrapolated(&self, d: Vec3) -> Jet {
        let sizes: Vec<i64> = (0..7).map(|k| self.most + 4 + 4 * k).collect();
        let first = 3 - self.count() as i32;
        let (mut sum, mut last) = (Jet::default(), self.most);
        let mut partial = vec![];
        for &n in &sizes {
            for r in self.shell(last, n) {
                let x = minus(d, r);
                sum.add_radial(x, coulomb(x));
                // The value alone diverges.
                sum.value -= 1.0 / square(r).sqrt();
            }
            last = n;
            partial.push(sum);
        }
        let mut limit = Jet::default();
        for (k, w) in weights(&sizes, first).into_iter().enumerate() {
            limit.scaled_add(w, &partial[k]);
        }
        limit
    }
}

/// Weights w with Σ w = 1 and Σ w (2n+1)^-(first + 2j) = 0.
fn weights(sizes: &[i64], first: i32) -> Vec<f64> {
    let count = sizes.len();
    let mut a = vec![vec![0.0; count + 1]; count];
    for (row, a) in a.iter_mut().enumerate() {
        for (k, &n) in sizes.iter().enumerate() {
            let width = (2 * n + 1) as f64 / (2 * sizes[0] + 1) as f64;
            a[k] = if row == 0 { 1.0 } else { width.powi(-(first + 2 * (row as i32 - 1))) };
        }
        a[count] = if row == 0 { 1.0 } else { 0.0 };
    }
    for k in 0..count {
        let pivot = (k..count).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).expect("rows");
        a.swap(k, pivot);
        for row in 0..count {
            if row != k {
                let f = a[row][k] / a[k][k];
                (k..=count).for_each(|c| a[row][c] -= f * a[k][c]);
            }
        }
    }
    (0..count).map(|k| a[k][count] / a[k][k]).collect()
}

/// Nodes and weights on [-1, 1] of degree 11.
const GAUSS: [(f64, f64); NODES] = [
    (-0.932_469_514_203_152, 0.171_324_492_379_170_34),
    (-0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (-0.238_619_186_083_196_9, 0.467_913_934_572_691),
    (0.238_619_186_083_196_9, 0.467_913_934_572_691),
    (0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (0.932_469_514_203_152, 0.171_324_492_379_170_34),
];

/// Velocity and gradient, or potential and gradient, at one point, times 1/(4π).
pub fn field_at(case: &Case, images: &Images, regularizations: (i32, i32), x: Vec3) -> (Vec<f64>, Vec<f64>) {
    let reg = |code| Regularization::from_code(code).expect("a regularization");
    let (explicit, norm) = (&images.explicit, 1.0 / (4.0 * PI));
    if !case.charge.is_empty() {
        let mut sum = Jet::default();
        for (p, &q) in case.charge_position.iter().zip(&case.charge) {
            sum.scaled_add(q, &images.beyond(minus(x, *p)));
            for r in explicit {
                let one = biot_savart::charge(minus(x, *r), *p, q);
                sum.value += one.potential;
                (0..3).for_each(|i| sum.first[i] += one.gradient[i]);
            }
        }
        return (vec![norm * sum.value], sum.first.iter().map(|v| norm * v).collect());
    }
    let (mut u, mut g) = (vec![0.0; 3], vec![0.0; 9]);
    let add = |u: &mut [f64], g: &mut [f64], v: Induced| {
        (0..3).for_each(|i| u[i] += norm * v.velocity[i]);
        (0..9).for_each(|i| g[i] += norm * v.gradient[i / 3][i % 3]);
    };
    let smooth = |a: Vec3, at: Vec3| {
        let jet = images.beyond(minus(x, at));
        let mut v = Induced::default();
        for i in 0..3 {
            // u = ∇G × a
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            v.velocity[i] = jet.first[j] * a[k] - jet.first[k] * a[j];
            (0..3).for_each(|l| v.gradient[i][l] = jet.second[j][l] * a[k] - jet.second[k][l] * a[j]);
        }
        v
    };
    for (k, e) in case.ends.chunks(2).enumerate() {
        let (p1, p2) = (case.points[e[0] as usize], case.points[e[1] as usize]);
        let (circulation, core) = (case.circulation[k], case.segment_core[k]);
        for r in explicit {
            let one = biot_savart::segment(
                reg(regularizations.0),
                Part::Regularized,
                minus(x, *r),
                p1,
                p2,
                circulation,
                core,
            );
            add(&mut u, &mut g, one);
        }
        for (t, w) in GAUSS {
            let at = std::array::from_fn(|i| 0.5 * (p1[i] + p2[i]) + 0.5 * t * (p2[i] - p1[i]));
            let a = std::array::from_fn(|i| 0.5 * w * circulation * (p2[i] - p1[i]));
            add(&mut u, &mut g, smooth(a, at));
        }
    }
    for (k, p) in case.position.iter().enumerate() {
        let (a, core) = (case.strength[k], case.particle_core[k]);
        for r in explicit {
            let one = biot_savart::particle(reg(regularizations.1), Part::Regularized, minus(x, *r), *p, a, core);
            add(&mut u, &mut g, one);
        }
        add(&mut u, &mut g, smooth(a, *p));
    }
    (u, g)
}

/// Elements in a box, and some beyond its sides; targets likewise. Of charges the sum is zero unless `net`. Cores are in units of the
/// shortest period.
pub fn cored(kind: Kind, n: usize, m: usize, period: Vec3, net: bool, core: f64) -> Case {
    let mut r = Random::new(n as u64 + 77);
    let size = period.map(|p| if p > 0.0 { p } else { 1.0 });
    let mut position = |out: f64| -> Vec3 { std::array::from_fn(|i| size[i] * r.between(-out, 1.0 + out)) };
    let positions: Vec<Vec3> = (0..n).map(|k| position(if k % 16 == 0 { 0.7 } else { 0.0 })).collect();
    let targets = (0..m).map(|k| position(if k % 8 == 0 { 1.5 } else { 0.0 })).collect();
    let mut c = Case { targets, ..Case::default() };
    let core = core * size.iter().copied().fold(f64::INFINITY, f64::min);
    for (k, x) in positions.into_iter().enumerate() {
        let a = r.signed();
        match kind {
            Kind::Charges => {
                c.charge_position.push(x);
                c.charge.push(if net { a[0] + 0.3 } else { (1 + k % 2) as f64 - 1.5 });
            }
            Kind::Segments => {
                let at = c.points.len() as i32;
                c.points.extend([x, std::array::from_fn(|i| x[i] + 0.04 * size[i] * a[i])]);
                c.ends.extend([at, at + 1]);
                c.circulation.push(r.between(-1.0, 1.0));
                c.segment_core.push(core);
            }
            _ => {
                c.position.push(x);
                c.strength.push(if net { a.map(|v| v + 0.2) } else { a });
                c.particle_core.push(core);
            }
        }
    }
    c
}
