//! The numbers of a problem: elements with strengths and cores, targets, in the problem's unit and beside its origin.

use crate::support::cases::{Case, Kind, Vec3};
use crate::support::random::Random;

use super::draw::Problem;
use super::families::{Cloud, Point};

/// What is drawn once for all elements of a problem.
struct Rules<'a> {
    p: &'a Problem,
    /// Of the cloud, without those of its points that are far outside.
    size: f64,
    /// Length to which strengths of particles are proportional.
    spacing: f64,
    /// Of strengths that are coherent.
    direction: Vec3,
}

/// Largest side of the box around some points; 1 where they all coincide.
fn extent(points: &[Point]) -> f64 {
    let side = |i: usize| {
        let (low, high) = points.iter().fold((f64::MAX, f64::MIN), |(l, h), p| (l.min(p.at[i]), h.max(p.at[i])));
        high - low
    };
    let longest = (0..3).map(side).fold(0.0, f64::max);
    if longest > 0.0 { longest } else { 1.0 }
}

impl Rules<'_> {
    fn core(&self, point: &Point, r: &mut Random) -> f64 {
        let core = self.p.core * self.size;
        match self.p.core_rule {
            "zero" => 0.0,
            "2 decades" => core * r.log_between(0.1, 10.0),
            "4 decades" => core * r.log_between(1e-2, 1e2),
            "4 decades and zeros" if r.unit() < 0.2 => 0.0,
            "4 decades and zeros" => core * r.log_between(1e-2, 1e2),
            "as the cloud" => self.size * r.log_between(0.2, 3.0),
            "few large" if r.unit() < 0.01 => self.size * r.log_between(0.1, 1.0),
            "by age" => core * 100f64.powf(point.age - 0.5),
            "local" => point.scale * (self.p.core / 0.3).sqrt() * r.log_between(0.3, 10.0),
            _ => core,
        }
    }

    /// Number with a sign, without its direction.
    fn strength(&self, point: &Point, r: &mut Random) -> f64 {
        match self.p.strength_rule {
            "coherent" | "tangential" => 1.0 + 0.1 * r.unit(),
            "6 decades" => r.log_between(1e-6, 1.0) * if r.unit() < 0.5 { -1.0 } else { 1.0 },
            "few strong" => r.between(-1.0, 1.0) * if r.unit() < 0.01 { 1e3 } else { 1.0 },
            "local" => point.scale / self.size * r.between(-1.0, 1.0),
            _ => r.between(-1.0, 1.0),
        }
    }

    fn direction(&self, point: &Point, r: &mut Random) -> Vec3 {
        match self.p.strength_rule {
            "coherent" => self.direction,
            "tangential" => point.along,
            _ => r.direction(),
        }
    }

    fn length(&self, point: &Point, r: &mut Random) -> f64 {
        match self.p.length_rule {
            "2 decades" => point.scale * r.log_between(0.05, 5.0),
            "4 decades" => 0.7 * self.size * r.log_between(1e-4, 1.0),
            "few long" if r.unit() < 0.01 => self.size * r.log_between(0.1, 2.0),
            _ => point.scale * r.between(0.3, 1.0),
        }
    }

    fn particles(&self, points: &[Point], c: &mut Case, r: &mut Random) {
        for p in points {
            let s = self.strength(p, r) * if self.p.strength_rule == "local" { p.scale } else { self.spacing };
            c.position.push(p.at);
            c.strength.push(self.direction(p, r).map(|d| d * s));
            c.particle_core.push(self.core(p, r));
        }
    }

    fn charges(&self, points: &[Point], c: &mut Case, r: &mut Random) {
        c.charge_position = points.iter().map(|p| p.at).collect();
        c.charge = points.iter().map(|p| self.strength(p, r)).collect();
        if matches!(self.p.periods(), 1 | 2) {
            // A net charge has no sum. Charges that are alike keep a rest of the mean's rounding, which the second turn takes.
            for _ in 0..2 {
                let mean = c.charge.iter().sum::<f64>() / c.charge.len() as f64;
                c.charge.iter_mut().for_each(|q| *q -= mean);
            }
            // With all charges at one point, there is no field but what rounding leaves.
            if points.iter().all(|p| p.at == points[0].at) {
                c.charge_position[0] = std::array::from_fn(|i| points[0].at[i] + self.size * self.direction[i]);
            }
        }
    }

    fn segments(&self, cloud: &Cloud, c: &mut Case, r: &mut Random) {
        let joined = self.p.joined && !cloud.edges.is_empty();
        if joined {
            c.points = cloud.points.iter().map(|p| p.at).collect();
            c.ends = cloud.edges.iter().flatten().map(|&k| k as i32).collect();
        } else {
            for p in &cloud.points {
                let (along, length) = (self.direction(p, r), self.length(p, r));
                let k = c.points.len() as i32;
                c.points.extend([-0.5, 0.5].map(|s| std::array::from_fn(|i| p.at[i] + s * length * along[i])));
                c.ends.extend([k, k + 1]);
            }
        }
        for k in 0..c.ends.len() / 2 {
            let p = &cloud.points[if joined { cloud.edges[k][0] } else { k }];
            c.circulation.push(self.strength(p, r));
            c.segment_core.push(self.core(p, r));
        }
    }
}

/// Every second element gets the place of the one before it, `apart` from it, and the opposite strength; of segments and particles each
/// particle is so paired with a segment.
fn pair_off(c: &mut Case, apart: f64, r: &mut Random) {
    let mut beside = |x: Vec3| -> Vec3 {
        let along = r.direction();
        std::array::from_fn(|i| x[i] + apart * along[i])
    };
    let both = !c.ends.is_empty() && !c.position.is_empty();
    for k in (1..c.ends.len() / 2).step_by(2).filter(|_| !both) {
        let (from, to) = (c.points[2 * k - 2], c.points[2 * k - 1]);
        c.points[2 * k] = beside(from);
        let moved: Vec3 = std::array::from_fn(|i| c.points[2 * k][i] - from[i]);
        c.points[2 * k + 1] = std::array::from_fn(|i| to[i] + moved[i]);
        (c.circulation[k], c.segment_core[k]) = (-c.circulation[k - 1], c.segment_core[k - 1]);
    }
    let pairs = if both { c.position.len().min(c.circulation.len()) } else { c.position.len() };
    for k in (0..pairs).filter(|k| both || k % 2 == 1) {
        if both {
            let (from, to, g) = (c.points[2 * k], c.points[2 * k + 1], c.circulation[k]);
            c.position[k] = beside(std::array::from_fn(|i| 0.5 * (from[i] + to[i])));
            c.strength[k] = std::array::from_fn(|i| -g * (to[i] - from[i]));
        } else {
            c.position[k] = beside(c.position[k - 1]);
            (c.strength[k], c.particle_core[k]) = (c.strength[k - 1].map(|a| -a), c.particle_core[k - 1]);
        }
    }
    if c.charge.len() > 1 {
        // One without a partner would be a net charge, which has no sum in periods.
        let even = c.charge.len() / 2 * 2;
        c.charge.truncate(even);
        c.charge_position.truncate(even);
    }
    for k in (1..c.charge.len()).step_by(2) {
        c.charge_position[k] = beside(c.charge_position[k - 1]);
        c.charge[k] = -c.charge[k - 1];
    }
}

/// Axis and position of the ground plane of a problem: below all sources.
pub fn plane(p: &Problem, c: &Case) -> Option<(usize, f64)> {
    let (axis, gap) = p.plane?;
    let along = || c.points.iter().chain(&c.position).chain(&c.charge_position).map(|x| x[axis]);
    let (low, high) = along().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    let extent = if high > low { high - low } else { p.unit };
    let position = low - gap * extent;
    Some((axis, if p.rounded() { f64::from(position as f32) } else { position }))
}

/// All numbers of a problem. `stream` other than 0: another problem of the same kind and size.
pub fn build(p: &Problem, stream: u64) -> Case {
    let mut r = Random::new(p.seed ^ stream.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let r = &mut r;
    let mut c = Case::default();
    let n = p.sources;
    let count = if p.kind == Kind::Both { n.div_ceil(2) } else { n };
    let cloud = p.shape.cloud(count, p.kind != Kind::Particles && p.kind != Kind::Charges, r);
    let extent = extent(&cloud.points);
    let size = extent.min(1.0);
    let rules = Rules { p, size, spacing: size / (n as f64).cbrt(), direction: r.direction() };
    match p.kind {
        Kind::Particles => rules.particles(&cloud.points, &mut c, r),
        Kind::Charges => rules.charges(&cloud.points, &mut c, r),
        _ => rules.segments(&cloud, &mut c, r),
    }
    if p.kind == Kind::Both {
        let more = p.shape.cloud(n / 2, false, r);
        rules.particles(&more.points, &mut c, r);
    }
    if p.pair > 0.0 {
        pair_off(&mut c, p.pair * size, r);
    }
    c.targets = targets(&rules, &c, &cloud.points, r);
    to_world(&mut c, p.unit, p.offset * extent * p.unit, r.direction());
    if p.rounded() { c.rounded() } else { c }
}

fn targets(rules: &Rules, c: &Case, points: &[Point], r: &mut Random) -> Vec<Vec3> {
    let (p, e) = (rules.p, rules.size);
    let point = |r: &mut Random| points[(r.bits() % points.len() as u64) as usize];
    let far = 10f64.powf(1.0 + 2.0 * p.shape.numbers[2]);
    let (spot, first) = (point(r).at, points[0].at);
    let one = |k: usize, r: &mut Random| -> Vec3 {
        let (x, q) = (r.in_cube(), point(r));
        match p.target_rule {
            "near" => {
                let (d, along) = (q.scale * r.log_between(1e-3, 3.0), r.direction());
                std::array::from_fn(|i| q.at[i] + d * along[i])
            }
            "middles" if k.is_multiple_of(2) => q.at,
            "ground" if k.is_multiple_of(3) => q.at,
            "ground" => [e * x[0], e * x[1], 0.003 * e * x[2] * x[2]],
            "beside" => std::array::from_fn(|i| first[i] + e * (x[i] + [1.5, 0.0, -0.5][i])),
            "far" => std::array::from_fn(|i| e * (x[i] + [far, -0.4 * far, 0.0][i])),
            "one spot" => std::array::from_fn(|i| spot[i] + e * 10f64.powf(-1.0 - 6.0 * p.shape.numbers[2]) * x[i]),
            _ => x.map(|x| e * x),
        }
    };
    let nodes = || -> Vec<Vec3> { c.points.iter().chain(&c.position).chain(&c.charge_position).copied().collect() };
    match p.target_rule {
        "sources" => nodes(),
        "sources and far" => {
            let mut t = nodes();
            t.extend((0..t.len() / 10 + 1).map(|_| r.normals().map(|v| 30.0 * e * v)));
            t
        }
        "alike" => p.shape.cloud(p.targets, false, r).points.into_iter().map(|q| q.at).collect(),
        _ => (0..p.targets).map(|k| one(k, r)).collect(),
    }
}

/// Lengths times `unit`, then `offset` away. Velocities stay as they are.
fn to_world(c: &mut Case, unit: f64, offset: f64, direction: Vec3) {
    let shift = direction.map(|d| d * offset);
    for v in [&mut c.points, &mut c.position, &mut c.charge_position, &mut c.targets] {
        v.iter_mut().for_each(|x| *x = std::array::from_fn(|i| x[i] * unit + shift[i]));
    }
    c.strength.iter_mut().flatten().for_each(|a| *a *= unit * unit);
    for v in [&mut c.circulation, &mut c.charge, &mut c.segment_core, &mut c.particle_core] {
        v.iter_mut().for_each(|x| *x *= unit);
    }
}
