//! The cases in which the tolerance must hold: thirteen distributions of sources and targets, each for segments, particles
//! or both, with cores of every size (zero, too), and each multiplied by a unit of length.

use super::random::Random;
use std::f64::consts::TAU;

pub type Vec3 = [f64; 3];

/// Sources and targets as a host would hold them, in double precision.
#[derive(Clone, Default)]
pub struct Case {
    pub points: Vec<Vec3>,
    pub ends: Vec<i32>,
    pub circulation: Vec<f64>,
    pub segment_core: Vec<f64>,
    pub position: Vec<Vec3>,
    pub strength: Vec<Vec3>,
    pub particle_core: Vec<f64>,
    pub charge_position: Vec<Vec3>,
    pub charge: Vec<f64>,
    pub targets: Vec<Vec3>,
}

/// Which elements a case is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Segments,
    Particles,
    Both,
    Charges,
}

pub const DISTRIBUTIONS: [&str; 13] = [
    "cube",
    "coherent cube",
    "two thin rings",
    "helical wake",
    "dust under wake",
    "64 clusters",
    "plane",
    "line",
    "coincident",
    "far source",
    "targets = sources",
    "targets on middles",
    "far targets",
];

/// Middle, direction and core of one element, before it becomes a segment or a particle.
struct Element {
    at: Vec3,
    along: Vec3,
    length: f64,
    core: f64,
    strength: f64,
}

/// A core of every size, now and then none.
fn core(r: &mut Random) -> f64 {
    if r.unit() < 0.1 { 0.0 } else { r.log_between(2e-4, 2e-2) }
}

fn chance(r: &mut Random, at: Vec3, length: f64) -> Element {
    Element { at, along: r.direction(), length, core: core(r), strength: r.between(-1.0, 1.0) }
}

/// Vortex of a rotor with four blades: element k of n on its helices, core growing a hundredfold with its age.
fn helix(k: usize, n: usize, r: &mut Random) -> Element {
    let (blade, turns) = (k % 4, 5.0);
    let age = (k / 4) as f64 / (n / 4).max(1) as f64;
    let angle = TAU * (turns * age + 0.25 * blade as f64);
    let radius = 0.3 * (0.8 + 0.2 * (-3.0 * age).exp());
    let at = [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin(), 0.6 - 0.5 * age];
    let drop = 0.5 / turns / TAU;
    let l = (radius * radius + drop * drop).sqrt();
    let along = [-radius * angle.sin() / l, radius * angle.cos() / l, -drop / l];
    let scatter = r.normals().map(|v| 2e-4 * v);
    Element {
        at: std::array::from_fn(|i| at[i] + scatter[i]),
        along,
        length: TAU * turns * l * 4.0 / n as f64,
        core: 5e-4 * 100f64.powf(age),
        strength: 1.0,
    }
}

fn ring(k: usize, n: usize, r: &mut Random) -> Element {
    let angle = TAU * r.unit();
    let g = r.normals().map(|v| 1e-3 * v);
    let radius = 0.3 + g[0];
    let z = if k.is_multiple_of(2) { 0.45 } else { 0.55 };
    Element {
        at: [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin(), z + g[1]],
        along: [-angle.sin(), angle.cos(), 0.0],
        length: 2.0 * TAU * 0.3 / n as f64,
        core: core(r),
        strength: 1.0,
    }
}

fn cluster_centres() -> Vec<Vec3> {
    let mut r = Random::new(64);
    (0..64).map(|_| r.in_cube()).collect()
}

fn element(name: &str, k: usize, n: usize, r: &mut Random) -> Element {
    let short = 0.5 / (n as f64).cbrt();
    match name {
        "coherent cube" => {
            Element { along: [0.0, 0.6, 0.8], strength: 1.0 + 0.1 * r.unit(), ..chance(r, [0.0; 3], short) }
                .at(r.in_cube())
        }
        "two thin rings" => ring(k, n, r),
        "helical wake" | "dust under wake" => helix(k, n, r),
        "64 clusters" => {
            let c = cluster_centres()[k % 64];
            let g = r.normals().map(|v| 1e-4 * v);
            let e = chance(r, std::array::from_fn(|i| c[i] + g[i]), 5e-5);
            Element { core: 0.1 * e.core, ..e }
        }
        "plane" => {
            let (x, a) = (r.in_cube(), TAU * r.unit());
            chance(r, [x[0], x[1], 0.25], 0.5 * short).along([a.cos(), a.sin(), 0.0])
        }
        "line" => {
            let x = r.unit();
            chance(r, [x, 0.5, 0.25], 0.5 / n as f64)
        }
        "coincident" => chance(r, [0.3, 0.4, 0.5], 0.01),
        "far source" if k == 0 => {
            Element { at: [900.0, -500.0, 300.0], along: [0.0, 0.0, 1.0], length: 0.1, core: 0.1, strength: 10.0 }
        }
        _ => {
            let at = r.in_cube();
            chance(r, at, short)
        }
    }
}

impl Element {
    fn at(self, at: Vec3) -> Self {
        Self { at, ..self }
    }
    fn along(self, along: Vec3) -> Self {
        Self { along, ..self }
    }
}

fn target(name: &str, k: usize, sources: &[Vec3], r: &mut Random) -> Vec3 {
    let near = |r: &mut Random, d: f64| -> Vec3 {
        let s = sources[(r.bits() % sources.len() as u64) as usize];
        let g = r.normals();
        std::array::from_fn(|i| s[i] + d * g[i])
    };
    match name {
        "two thin rings" if k.is_multiple_of(2) => near(r, 2e-3),
        "helical wake" if k.is_multiple_of(2) => near(r, 1e-2),
        "dust under wake" => {
            let x = r.in_cube();
            [x[0], x[1], 0.01 * x[2]]
        }
        "64 clusters" => near(r, 1e-4),
        "plane" => {
            let x = r.in_cube();
            [x[0], x[1], 0.25]
        }
        "line" => [r.unit(), 0.5, 0.25],
        "coincident" if k.is_multiple_of(4) => sources[0],
        "coincident" => near(r, 0.1),
        "far targets" => std::array::from_fn(|i| 5.0 * i as f64 + r.unit()),
        _ => r.in_cube(),
    }
}

/// One distribution with n sources and m targets, lengths multiplied by `unit`.
pub fn case(name: &str, kind: Kind, n: usize, m: usize, unit: f64) -> Case {
    let mut r = Random::new(0x5eed ^ n as u64);
    let mut c = Case::default();
    let mut positions = vec![];
    for k in 0..n {
        let e = element(name, k, n, &mut r);
        positions.push(e.at);
        match kind {
            Kind::Charges => {
                c.charge_position.push(e.at);
                c.charge.push(e.strength);
            }
            Kind::Particles => particle(&mut c, e),
            Kind::Both if k % 3 == 2 => particle(&mut c, e),
            _ => segment(&mut c, e),
        }
    }
    c.targets = (0..m).map(|k| target(name, k, &positions, &mut r)).collect();
    // Nodes are where a wake marches its markers.
    if name == "targets = sources" {
        let nodes: Vec<Vec3> = c.points.iter().chain(&c.position).copied().collect();
        c.targets = if nodes.is_empty() { positions.clone() } else { nodes };
    }
    // The middle of a segment is seldom a number of the precision: such a target is beside the segment by a last bit or two.
    if name == "targets on middles" {
        c.targets.iter_mut().zip(&positions).step_by(2).for_each(|(x, middle)| *x = *middle);
    }
    if let (true, Some(&node)) = (name == "coincident", c.points.first()) {
        c.targets.iter_mut().filter(|x| **x == positions[0]).for_each(|x| *x = node);
    }
    c.scale(unit);
    c
}

/// Short segments, each with a particle at its middle that takes its field away but for a part of a million. All numbers are exact in
/// single precision.
pub fn cancelling(n: usize, m: usize) -> Case {
    let (mut c, mut r, half) = (Case::default(), Random::new(n as u64), 2f64.powi(-10));
    let mut on_grid = |from: f64| -> Vec3 { std::array::from_fn(|_| from + (256.0 * r.unit()).floor() / 256.0) };
    for k in 0..n {
        let along: Vec3 = std::array::from_fn(|i| if i == k % 3 { half } else { 0.0 });
        let at = on_grid(0.0);
        c.points.extend([-1.0, 1.0].map(|side| -> Vec3 { std::array::from_fn(|i| at[i] + side * along[i]) }));
        c.ends.extend([2 * k as i32, 2 * k as i32 + 1]);
        c.circulation.push(1.0);
        c.segment_core.push(0.0);
        c.position.push(at);
        c.strength.push(along.map(|t| -2.0 * t));
        c.particle_core.push(0.0);
    }
    c.targets = (0..m).map(|_| on_grid(2.0)).collect();
    c
}

fn particle(c: &mut Case, e: Element) {
    c.position.push(e.at);
    c.strength.push(e.along.map(|t| t * e.strength * e.length));
    c.particle_core.push(e.core);
}

fn segment(c: &mut Case, e: Element) {
    let k = c.points.len() as i32;
    for side in [-0.5, 0.5] {
        c.points.push(std::array::from_fn(|i| e.at[i] + side * e.length * e.along[i]));
    }
    c.ends.extend([k, k + 1]);
    c.circulation.push(e.strength);
    c.segment_core.push(e.core);
}

impl Case {
    /// The same sources, and after them their images in a plane across an axis. The image of a segment has mirrored points and the opposite
    /// circulation, that of a particle keeps the strength along the axis alone, that of a charge has the same sign.
    pub fn with_images(&self, axis: usize, position: f64) -> Self {
        let (mut both, points) = (self.clone(), self.points.len() as i32);
        let mirrored =
            |x: &Vec3| -> Vec3 { std::array::from_fn(|i| if i == axis { 2.0 * position - x[i] } else { x[i] }) };
        both.points.extend(self.points.iter().map(mirrored));
        both.ends.extend(self.ends.iter().map(|e| e + points));
        both.circulation.extend(self.circulation.iter().map(|g| -g));
        both.segment_core.extend(&self.segment_core);
        both.position.extend(self.position.iter().map(mirrored));
        both.particle_core.extend(&self.particle_core);
        both.strength.extend(
            self.strength.iter().map(|a| -> Vec3 { std::array::from_fn(|i| if i == axis { a[i] } else { -a[i] }) }),
        );
        both.charge_position.extend(self.charge_position.iter().map(mirrored));
        both.charge.extend(&self.charge);
        both
    }

    fn scale(&mut self, unit: f64) {
        for v in
            [&mut self.points, &mut self.position, &mut self.strength, &mut self.charge_position, &mut self.targets]
        {
            v.iter_mut().flatten().for_each(|x| *x *= unit);
        }
        self.segment_core.iter_mut().chain(&mut self.particle_core).for_each(|x| *x *= unit);
    }

    /// All numbers rounded to single precision, so that both precisions are asked about the same problem.
    pub fn rounded(mut self) -> Self {
        let round = |x: &mut f64| *x = *x as f32 as f64;
        for v in
            [&mut self.points, &mut self.position, &mut self.strength, &mut self.charge_position, &mut self.targets]
        {
            v.iter_mut().flatten().for_each(round);
        }
        for v in [&mut self.segment_core, &mut self.particle_core, &mut self.circulation, &mut self.charge] {
            v.iter_mut().for_each(round);
        }
        self
    }
}
