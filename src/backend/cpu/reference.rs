//! The oracle: every pair, one at a time, in double precision, in the caller's order.
//!
//! Enters: a plan's inputs in host memory. Leaves: fields at chosen targets. Slow and plain on purpose: the fast engines
//! are held against it, and it runs where nothing else does.

use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use crate::backend::{Engine, Field};
use crate::error::{Error, Result, WFMM_ERR_MEMORY, WFMM_ERR_STATE};
use crate::inputs::{Inputs, Ints, Reals, RealsMut};
use crate::math::biot_savart::{Attraction, Induced, Mat3, Vec3, charge, particle, segment};
use crate::math::regularization::Part;
use crate::options::{PlanOptions, WFMM_BACKEND_CPU, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64};
use crate::report::{Pass, Report};

struct Segment {
    ends: [Vec3; 2],
    circulation: f64,
    core: f64,
}

struct Particle {
    position: Vec3,
    strength: Vec3,
    core: f64,
}

/// The sources of a plan, converted once.
pub struct Reference {
    options: PlanOptions,
    segments: Vec<Segment>,
    particles: Vec<Particle>,
    charges: Vec<(Vec3, f64)>,
}

impl Reference {
    pub fn new(options: &PlanOptions, inputs: &Inputs) -> Result<Self> {
        Ok(Self {
            options: options.clone(),
            segments: segments(inputs)?,
            particles: particles(inputs)?,
            charges: charges(inputs)?,
        })
    }

    /// Velocity and gradient at `x`, normalized.
    pub fn velocity(&self, x: Vec3) -> Induced {
        let mut sum = Induced::default();
        for s in &self.segments {
            let reg = self.options.segment_regularization;
            add(&mut sum, &segment(reg, Part::Regularized, x, s.ends[0], s.ends[1], s.circulation, s.core));
        }
        for p in &self.particles {
            let reg = self.options.particle_regularization;
            add(&mut sum, &particle(reg, Part::Regularized, x, p.position, p.strength, p.core));
        }
        let scale = self.options.normalization;
        Induced { velocity: sum.velocity.map(|u| scale * u), gradient: sum.gradient.map(|row| row.map(|g| scale * g)) }
    }

    /// Potential of the charges and its gradient at `x`, normalized.
    pub fn potential(&self, x: Vec3) -> Attraction {
        let mut sum = Attraction::default();
        for (position, q) in &self.charges {
            let one = charge(x, *position, *q);
            sum.potential += one.potential;
            (0..3).for_each(|i| sum.gradient[i] += one.gradient[i]);
        }
        let scale = self.options.normalization;
        Attraction { potential: scale * sum.potential, gradient: sum.gradient.map(|g| scale * g) }
    }

    fn pairs_per_target(&self, field: Field) -> usize {
        match field {
            Field::Velocity { .. } => self.segments.len() + self.particles.len(),
            Field::Potential { .. } => self.charges.len(),
        }
    }
}

fn add(sum: &mut Induced, one: &Induced) {
    for i in 0..3 {
        sum.velocity[i] += one.velocity[i];
        (0..3).for_each(|j| sum.gradient[i][j] += one.gradient[i][j]);
    }
}

/// The oracle as an engine.
pub struct ReferenceEngine {
    options: PlanOptions,
    pool: Arc<rayon::ThreadPool>,
    report: Report,
}

impl ReferenceEngine {
    pub fn new(options: PlanOptions, pool: Arc<rayon::ThreadPool>) -> Self {
        let report = Report {
            backend: WFMM_BACKEND_CPU,
            method: WFMM_METHOD_DIRECT,
            precision: WFMM_PRECISION_F64,
            ..Report::default()
        };
        Self { options, pool, report }
    }

    /// `components` of the main field and of the gradient for each target.
    fn rows(&self, inputs: &Inputs, field: Field) -> Result<Vec<([f64; 3], Mat3)>> {
        let reference = Reference::new(&self.options, inputs)?;
        let targets = inputs.targets.as_ref().ok_or_else(|| Error::new(WFMM_ERR_STATE, "no targets"))?;
        let x = vectors(&targets.position, targets.n)?;
        let row = |x: &Vec3| match field {
            Field::Velocity { .. } => {
                let u = reference.velocity(*x);
                (u.velocity, u.gradient)
            }
            Field::Potential { .. } => {
                let p = reference.potential(*x);
                ([p.potential, 0.0, 0.0], [p.gradient, [0.0; 3], [0.0; 3]])
            }
        };
        Ok(self.pool.install(|| x.par_iter().map(row).collect()))
    }
}

impl Engine for ReferenceEngine {
    fn prepare(&mut self, inputs: &Inputs, _field: Field) -> Result<()> {
        Reference::new(&self.options, inputs).map(|_| ())
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        let start = Instant::now();
        let rows = self.rows(inputs, field)?;
        let (width, slopes) = field.widths();
        let add = self.options.accumulate;
        put(main, rows.iter().flat_map(|(u, _)| u.iter().copied().take(width)), add)?;
        if let Some(gradient) = gradient {
            put(gradient, rows.iter().flat_map(|(_, g)| g.as_flattened().iter().copied().take(slopes)), add)?;
        }
        let per_target = Reference::new(&self.options, inputs)?.pairs_per_target(field);
        self.report.near_pairs = (rows.len() * per_target) as i64;
        self.report.seconds[Pass::P2p as usize] = start.elapsed().as_secs_f64();
        self.report.seconds[Pass::Total as usize] = start.elapsed().as_secs_f64();
        Ok(())
    }

    /// The oracle is what the others are held against.
    fn check(&mut self, _inputs: &Inputs, _field: Field, _samples: usize, _seed: u64) -> Result<f64> {
        Ok(0.0)
    }

    fn recipe(&self) -> String {
        "Direct sum of every pair in double precision by the reference engine.".into()
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}

fn put(out: RealsMut<'_>, values: impl Iterator<Item = f64>, add: bool) -> Result<()> {
    match out {
        RealsMut::HostF32(out) => {
            out.iter_mut().zip(values).for_each(|(o, v)| *o = if add { *o + v as f32 } else { v as f32 });
        }
        RealsMut::HostF64(out) => out.iter_mut().zip(values).for_each(|(o, v)| *o = if add { *o + v } else { v }),
        RealsMut::DeviceF32 { .. } | RealsMut::DeviceF64 { .. } => return device_error(),
    }
    Ok(())
}

fn device_error<T>() -> Result<T> {
    Error::fail(WFMM_ERR_MEMORY, "the reference engine reads and writes host memory only")
}

fn numbers(array: &Reals) -> Result<Vec<f64>> {
    match array {
        Reals::HostF32(v) => Ok(v.iter().map(|&x| f64::from(x)).collect()),
        Reals::HostF64(v) => Ok(v.to_vec()),
        Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => device_error(),
    }
}

fn vectors(array: &Reals, n: usize) -> Result<Vec<Vec3>> {
    Ok(numbers(array)?.chunks_exact(3).take(n).map(|v| [v[0], v[1], v[2]]).collect())
}

fn cores(core: &Option<Reals>, n: usize, default: f64) -> Result<Vec<f64>> {
    core.as_ref().map_or_else(|| Ok(vec![default; n]), numbers)
}

fn segments(inputs: &Inputs) -> Result<Vec<Segment>> {
    let Some(s) = &inputs.segments else { return Ok(Vec::new()) };
    let Ints::Host(ends) = &s.connectivity else { return device_error() };
    let points = numbers(&s.points)?;
    let point = |number: i32| -> Vec3 {
        let at = 3 * (number - s.index_base) as usize;
        [points[at], points[at + 1], points[at + 2]]
    };
    let (circulation, core) = (numbers(&s.circulation)?, cores(&s.core, s.n, s.default_core)?);
    let one = |k: usize| Segment {
        ends: [point(ends[k * s.ld]), point(ends[k * s.ld + 1])],
        circulation: circulation[k],
        core: core[k],
    };
    Ok((0..s.n).map(one).collect())
}

fn particles(inputs: &Inputs) -> Result<Vec<Particle>> {
    let Some(p) = &inputs.particles else { return Ok(Vec::new()) };
    let (position, strength) = (vectors(&p.position, p.n)?, vectors(&p.strength, p.n)?);
    let core = cores(&p.core, p.n, p.default_core)?;
    Ok((0..p.n).map(|k| Particle { position: position[k], strength: strength[k], core: core[k] }).collect())
}

fn charges(inputs: &Inputs) -> Result<Vec<(Vec3, f64)>> {
    let Some(c) = &inputs.charges else { return Ok(Vec::new()) };
    Ok(vectors(&c.position, c.n)?.into_iter().zip(numbers(&c.charge)?).collect())
}
