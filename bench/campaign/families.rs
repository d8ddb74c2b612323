//! The families of distributions: points in a box of about one, with the direction, the neighbourhood and the age there.

use crate::support::cases::Vec3;
use crate::support::random::Random;
use std::f64::consts::TAU;
use wakefmm::math::biot_savart::{cross, norm};

pub const FAMILIES: [&str; 20] = [
    "cube",
    "gauss",
    "sphere",
    "plane",
    "flat box",
    "row",
    "helices",
    "rings",
    "clusters",
    "half in a small box",
    "Levy flight",
    "crowding",
    "lattice",
    "coincident",
    "two clouds",
    "sheets",
    "tubes",
    "hover",
    "outliers",
    "uneven rows",
];

/// The position of an element or a target, and what is known of its neighbourhood.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub at: Vec3,
    /// Of the line or surface; where there is none, of chance.
    pub along: Vec3,
    /// Length of the neighbourhood: distance to the next ones, or size of the cluster.
    pub scale: f64,
    /// 0 to 1.
    pub age: f64,
}

/// Points, and the pairs of them that a segment joins where the family knows neighbours.
#[derive(Default)]
pub struct Cloud {
    pub points: Vec<Point>,
    pub edges: Vec<[usize; 2]>,
}

/// A family with what distinguishes its members; clouds of one shape are alike.
#[derive(Debug, Clone)]
pub struct Shape {
    pub family: &'static str,
    /// In [0, 1).
    pub numbers: [f64; 3],
    seed: u64,
    /// Decades towards the point where points crowd.
    decades: f64,
}

fn add(a: Vec3, s: f64, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] + s * b[i])
}

fn unit(v: Vec3) -> Vec3 {
    let l = norm(v);
    if l > 0.0 { v.map(|x| x / l) } else { [1.0, 0.0, 0.0] }
}

fn log(u: f64, a: f64, b: f64) -> f64 {
    (a.ln() + u * (b / a).ln()).exp()
}

/// From one neighbour to the next in each filament; `count` filaments that take turns.
fn filaments(n: usize, count: usize) -> Vec<[usize; 2]> {
    (0..n.saturating_sub(count)).map(|k| [k, k + count]).collect()
}

impl Shape {
    pub fn new(family: &'static str, numbers: [f64; 3], seed: u64, single_arrays: bool) -> Self {
        // Gradients go as the cube of the least distance: more decades leave the range of single precision arrays.
        let decades = 3.0 + numbers[0] * if single_arrays { 4.0 } else { 11.0 };
        Self { family, numbers, seed, decades }
    }

    fn count(&self, least: f64, most: f64) -> usize {
        log(self.numbers[0], least, most) as usize
    }

    /// n points (segments that are joined: about n of them).
    pub fn cloud(&self, n: usize, segments: bool, r: &mut Random) -> Cloud {
        let mut c = Cloud::default();
        match self.family {
            "sheets" => return self.sheets(n, segments, r),
            "Levy flight" => c.points = self.flight(n, r),
            _ => c.points.extend((0..n).map(|k| self.point(k, n, r))),
        }
        let steps = match self.family {
            "helices" | "rings" => self.count(1.0, 12.0).max(1),
            "hover" => 4,
            "Levy flight" => 1,
            _ => return c,
        };
        c.edges = filaments(n, steps);
        c
    }

    fn point(&self, k: usize, n: usize, r: &mut Random) -> Point {
        let [a, b, c] = self.numbers;
        let spacing = 1.0 / (n as f64).cbrt();
        let chance = |at, scale, r: &mut Random| Point { at, along: r.direction(), scale, age: k as f64 / n as f64 };
        let x = r.in_cube();
        match self.family {
            "gauss" => {
                let at = r.normals().map(|v| 0.5 + 0.1 * v);
                chance(at, 0.2 * spacing, r)
            }
            "sphere" => {
                let d = r.direction();
                let along = unit(cross(d, r.direction()));
                Point { along, ..chance(add([0.5; 3], 0.5, d), 2.0 / (n as f64).sqrt(), r) }
            }
            "plane" => {
                let t = TAU * r.unit();
                let along = [t.cos(), t.sin(), 0.0];
                Point { along, ..chance([x[0], x[1], 0.3], 1.0 / (n as f64).sqrt(), r) }
            }
            "flat box" => {
                let (w, h) = (log(a, 1e-3, 0.3), log(b, 1e-6, 1e-2));
                chance([x[0], w * x[1], h * x[2]], (w * h / n as f64).cbrt(), r)
            }
            // Directions of chance: exactly on the line of a bare segment the sum is zero and beside it, it is not.
            "row" => chance([x[0], 0.5, 0.25], 1.0 / n as f64, r),
            "uneven rows" => chance([log(x[0], 1e-5, 1.0), (4.0 * x[1]).floor() / 4.0, 0.25], 1.0 / n as f64, r),
            "helices" => self.helix(k, n, r),
            "rings" => self.ring(k, n, r),
            "clusters" => {
                let (count, radius) = (self.count(2.0, 200.0), log(b, 1e-6, 3e-2));
                let which = r.bits() % count as u64;
                let centre = Random::new(self.seed ^ which.wrapping_mul(0x9e37_79b9)).in_cube();
                chance(add(centre, radius, r.normals()), radius, r)
            }
            "half in a small box" if k % 2 == 1 => {
                let side = if c < 0.5 { 1e-3 } else { log(c, 1e-8, 1e-1) };
                chance(add([0.31; 3], side, x), side * spacing, r)
            }
            "crowding" => {
                let distance = 10f64.powf(-self.decades * r.unit());
                let d = r.direction();
                chance(d.map(|v| v * distance), distance, r)
            }
            "lattice" => {
                let side = (n as f64).cbrt().ceil() as usize;
                let step = if a < 0.5 { 1.0 / side as f64 } else { 1.0 / side.next_power_of_two() as f64 };
                chance([k % side, k / side % side, k / side / side].map(|i| i as f64 * step), step, r)
            }
            "coincident" => {
                let groups = if a < 0.3 { 1 } else { (n as f64).powf(b).ceil() as u64 };
                let which = r.bits() % groups;
                chance(Random::new(self.seed ^ which.wrapping_mul(0x9e37_79b9)).in_cube(), 0.01, r)
            }
            "two clouds" => {
                let far = if k % 2 == 1 { log(a, 5.0, 1e4) } else { 0.0 };
                chance([x[0] + far, x[1] + 0.3 * far, x[2]], spacing, r)
            }
            "tubes" => {
                let radius = log(b, 1e-4, 0.1);
                let p = self.helix(k, n, r);
                Point { at: add(p.at, radius, unit(cross(p.along, r.direction()))), ..p }
            }
            "hover" => self.hover(k, n, r),
            "outliers" if k < 1 + (3.0 * c) as usize => {
                let far = log(a, 5.0, 1e5);
                let d = r.direction();
                chance(d.map(|v| v * far), 0.1, r)
            }
            _ => chance(x, spacing, r),
        }
    }

    fn helix(&self, k: usize, n: usize, r: &mut Random) -> Point {
        let (blades, turns) = (self.count(1.0, 12.0).max(1), log(self.numbers[1], 1.0, 60.0));
        let age = (k / blades) as f64 / (n / blades).max(1) as f64;
        let angle = TAU * (turns * age + (k % blades) as f64 / blades as f64);
        let radius = 0.4 * (0.8 + 0.2 * (-3.0 * age).exp());
        let scatter = if self.numbers[2] < 0.5 { 0.0 } else { log(self.numbers[2], 1e-8, 1e-2) };
        let at = [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin(), 1.0 - age];
        let along = unit([-radius * angle.sin(), radius * angle.cos(), -1.0 / (TAU * turns)]);
        let scale = TAU * turns * radius * (blades as f64 / n as f64).min(1.0);
        Point { at: add(at, scatter, r.normals()), along, scale, age }
    }

    fn ring(&self, k: usize, n: usize, r: &mut Random) -> Point {
        let rings = self.count(1.0, 12.0).max(1);
        let (step, of) = ((k / rings) as f64, (n / rings).max(1) as f64);
        let ring = k % rings;
        let angle = TAU * if self.numbers[1] < 0.5 { step / of } else { r.unit() };
        let radius = 0.5 / (1.0 + self.numbers[2] * ring as f64);
        let scatter = if self.numbers[1] < 0.5 { 0.0 } else { log(self.numbers[1], 1e-8, 0.1) };
        let at = [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin(), ring as f64 / rings as f64];
        let along = [-angle.sin(), angle.cos(), 0.0];
        Point { at: add(at, scatter, r.normals()), along, scale: TAU * radius / of, age: step / of }
    }

    /// Four tip vortices that contract, then spread over the ground at z = 0.
    fn hover(&self, k: usize, n: usize, r: &mut Random) -> Point {
        let age = (k / 4) as f64 / (n / 4).max(1) as f64;
        let turns = log(self.numbers[0], 5.0, 60.0);
        let angle = TAU * (turns * age + (k % 4) as f64 / 4.0);
        let fall = (-4.0 * age).exp();
        let radius = 0.2 * (0.75 + 0.25 * (-8.0 * age).exp()) + 0.3 * (1.0 - fall).powi(4);
        let at = [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin(), 0.3 * fall];
        let scale = TAU * turns * radius * 4.0 / (n as f64).max(4.0);
        let along = unit([-angle.sin(), angle.cos(), -0.1 * fall]);
        Point { at: add(at, 1e-3 * self.numbers[1], r.normals()), along, scale, age }
    }

    /// Steps whose lengths have no mean, in a box of about one.
    fn flight(&self, n: usize, r: &mut Random) -> Vec<Point> {
        let exponent = -1.0 / (0.7 + self.numbers[0]);
        let (mut at, mut points) = ([0.0; 3], Vec::with_capacity(n));
        for k in 0..n {
            let (along, step) = (r.direction(), (1.0 - r.unit()).powf(exponent));
            points.push(Point { at, along, scale: step, age: k as f64 / n as f64 });
            at = add(at, step, along);
        }
        let size = points.iter().flat_map(|p| p.at).fold(1.0, |s: f64, x| s.max(x.abs()));
        for p in &mut points {
            p.at = p.at.map(|x| x / size);
            p.scale /= size;
        }
        points
    }

    /// Rows of nodes behind one to four blades, joined along and across, curved: no three nodes are on one line.
    fn sheets(&self, n: usize, segments: bool, r: &mut Random) -> Cloud {
        let blades = 1 + (4.0 * self.numbers[0]) as usize;
        let nodes = if segments { n / 2 } else { n }.max(1);
        let across = (log(self.numbers[1], 3.0, 60.0) as usize).min(nodes / blades + 1);
        let rows = nodes.div_ceil(blades * across);
        let turns = log(self.numbers[2], 0.1, 20.0);
        let mut c = Cloud::default();
        for k in 0..blades * across * rows {
            let (blade, column, row) = (k % blades, k / blades % across, k / blades / across);
            let (age, span) = (row as f64 / rows as f64, (column as f64 + 0.5) / across as f64);
            let angle = TAU * (turns * age + blade as f64 / blades as f64) + 0.1 * span * span;
            let radius = 0.1 + 0.4 * span;
            let step = (0.4 / across as f64).min(1.0 / rows as f64);
            let bend = 0.05 * (9.0 * span + 14.0 * age).sin();
            let at = [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin(), age + bend];
            let along = unit([-radius * angle.sin(), radius * angle.cos(), 1.0 / (TAU * turns)]);
            c.points.push(Point { at: add(at, 0.02 * step, r.normals()), along, scale: step, age });
            if row + 1 < rows {
                c.edges.push([k, k + blades * across]);
            }
            if column + 1 < across {
                c.edges.push([k, k + blades]);
            }
        }
        c
    }
}
