//! What a problem's field is: the direct sum of the library in double precision, and a plain loop that knows nothing of it.

use crate::support::accuracy::{Field, fill};
use crate::support::api::{Plan, Session};
use crate::support::cases::{Case, Vec3};
use std::borrow::Cow;
use wakefmm::math::biot_savart::{charge, cross, norm, particle, segment, sub};
use wakefmm::math::regularization::Part;
use wakefmm::options::*;

use super::build::plane;
use super::draw::Problem;
use super::evaluate::options;
use super::ewald::Ewald;

/// Sum that carries its rounding errors along (Neumaier).
#[derive(Clone, Copy, Default)]
struct Sum {
    value: f64,
    rest: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let s = self.value + x;
        self.rest += if self.value.abs() >= x.abs() { (self.value - s) + x } else { (x - s) + self.value };
        self.value = s;
    }

    fn total(self) -> f64 {
        self.value + self.rest
    }
}

/// Numbers a target: of the field, of its gradient.
pub fn rows(case: &Case) -> (usize, usize) {
    if case.charge.is_empty() { (3, 9) } else { (1, 3) }
}

/// Number of sources.
pub fn elements(case: &Case) -> usize {
    case.circulation.len() + case.position.len() + case.charge.len()
}

fn regularization(code: i32) -> Regularization {
    Regularization::from_code(code).expect("a regularization")
}

fn distance(a: Vec3, b: Vec3) -> f64 {
    norm(sub(a, b))
}

/// Distance from the line through two points.
fn distance_from_line(x: Vec3, p1: Vec3, p2: Vec3) -> f64 {
    norm(cross(sub(p2, p1), sub(x, p1))) / distance(p2, p1)
}

/// The exact field of a problem: every pair one after the other, with periods Ewald's sum.
pub struct Exact<'a> {
    pub p: &'a Problem,
    pub case: &'a Case,
    /// The case, with the images of a ground plane.
    pub all: Cow<'a, Case>,
    ewald: Option<Ewald<'a>>,
}

impl<'a> Exact<'a> {
    pub fn new(p: &'a Problem, case: &'a Case) -> Self {
        let period = options(p, case).period;
        let codes = [p.segment_regularization, p.particle_regularization];
        let ewald = (p.periods() > 0).then(|| Ewald::new(case, period, codes.map(regularization), p.tolerance));
        let all = match plane(p, case) {
            Some((axis, position)) => Cow::Owned(case.with_images(axis, position)),
            None => Cow::Borrowed(case),
        };
        Self { p, case, all, ewald }
    }

    /// Field and gradient at one point. Sources that have the point within `near` of their line, or of themselves, count as if
    /// it were on them: not at all.
    pub fn at(&self, x: Vec3, near: f64) -> Vec<f64> {
        let (main, gradient) = rows(self.case);
        let mut all = match &self.ewald {
            Some(ewald) => ewald.at(x, near),
            None => self.pairs(x, near),
        };
        all.truncate(main + gradient);
        all.iter_mut().for_each(|v| *v /= 4.0 * std::f64::consts::PI);
        all
    }

    fn pairs(&self, x: Vec3, near: f64) -> Vec<f64> {
        let mut sums = [Sum::default(); 12];
        self.each_pair(x, near, |main, gradient| {
            sums.iter_mut().zip(main.iter().chain(gradient)).for_each(|(s, v)| s.add(*v));
        });
        sums.iter().map(|s| s.total()).collect()
    }

    /// The sizes of what single elements without images add at one point, summed: of field and of gradient.
    pub fn sizes(&self, x: Vec3) -> [f64; 2] {
        let mut sizes = [0.0; 2];
        let size = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt() / (4.0 * std::f64::consts::PI);
        self.each_pair(x, 0.0, |main, gradient| {
            sizes[0] += size(main);
            sizes[1] += size(gradient);
        });
        sizes
    }

    /// Hands over field and gradient of each element, times 4π, one after the other.
    fn each_pair(&self, x: Vec3, near: f64, mut take: impl FnMut(&[f64], &[f64])) {
        let (p, case) = (self.p, &self.all);
        let (segments, particles) =
            (regularization(p.segment_regularization), regularization(p.particle_regularization));
        for (k, e) in case.ends.chunks(2).enumerate() {
            let (p1, p2) = (case.points[e[0] as usize], case.points[e[1] as usize]);
            if near > 0.0 && distance_from_line(x, p1, p2) <= near {
                continue;
            }
            let v = segment(segments, Part::Regularized, x, p1, p2, case.circulation[k], case.segment_core[k]);
            take(&v.velocity, v.gradient.as_flattened());
        }
        for (k, &position) in case.position.iter().enumerate() {
            if near > 0.0 && distance(x, position) <= near {
                continue;
            }
            let v = particle(particles, Part::Regularized, x, position, case.strength[k], case.particle_core[k]);
            take(&v.velocity, v.gradient.as_flattened());
        }
        for (&position, &q) in case.charge_position.iter().zip(&case.charge) {
            let v = charge(x, position, q);
            take(&[v.potential], &v.gradient);
        }
    }

    /// The field at some targets.
    pub fn field(&self, targets: &[usize]) -> Field {
        let (mut field, main) = (Field { main: vec![], gradient: vec![] }, rows(self.case).0);
        for &k in targets {
            let all = self.at(self.case.targets[k], 0.0);
            field.main.extend_from_slice(&all[..main]);
            field.gradient.extend_from_slice(&all[main..]);
        }
        field
    }

    pub fn is_periodic(&self) -> bool {
        self.ewald.is_some()
    }
}

/// The direct sum of the library, in double precision from double arrays.
pub fn direct(session: &Session, p: &Problem, case: &Case) -> Field {
    let o = wfmm_plan_options {
        method: WFMM_METHOD_DIRECT,
        precision: WFMM_PRECISION_F64,
        tolerance: WFMM_TOLERANCE_MIN_F64,
        segment_regularization: p.segment_regularization,
        particle_regularization: p.particle_regularization,
        ..Default::default()
    };
    let mut plan = Plan::<f64>::new(session, &o);
    fill(&mut plan, case);
    let (main, gradient) = rows(case);
    let m = case.targets.len();
    let mut field = Field { main: vec![0.0; main * m], gradient: vec![0.0; if p.gradient { gradient * m } else { 0 }] };
    let wanted = p.gradient.then_some(&mut field.gradient[..]);
    if case.charge.is_empty() {
        plan.velocity(&mut field.main, wanted)
    } else {
        plan.potential(&mut field.main, wanted)
    }
    field
}
