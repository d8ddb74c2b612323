//! What an integrator moves: all integrated quantities of a flow as one vector in seven parts, in host memory.
//!
//! Enters and leaves: vectors of the same shape. Lengths are those of the parts' rows: particles, filament points, filament
//! segments, tracers, dust parcels. A device holds the same parts in its own memory: device.rs.

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::memory;

/// The parts of a vector, with numbers a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Three a particle.
    ParticlePosition = 0,
    /// Three a particle: its strength.
    ParticleStrength = 1,
    /// One a particle: its core radius squared.
    ParticleCore2 = 2,
    /// Three a point of the filaments.
    PointPosition = 3,
    /// One a segment of the filaments: core radius squared times length, which strain does not change.
    SegmentVolume = 4,
    /// Three a tracer.
    TracerPosition = 5,
    /// Three a dust parcel: where the fluid around it went since the step began.
    DustDrift = 6,
}

pub const PARTS: [(Part, usize); 7] = [
    (Part::ParticlePosition, 3),
    (Part::ParticleStrength, 3),
    (Part::ParticleCore2, 1),
    (Part::PointPosition, 3),
    (Part::SegmentVolume, 1),
    (Part::TracerPosition, 3),
    (Part::DustDrift, 3),
];

/// The parts of particles.
pub const PARTICLES: [Part; 3] = [Part::ParticlePosition, Part::ParticleStrength, Part::ParticleCore2];

/// Numbers from which the threads of the session share a sweep.
const SHARED_FROM: usize = 1 << 16;
/// Numbers that one thread takes at a time.
const SHARE: usize = 1 << 14;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vector {
    parts: [Vec<f64>; PARTS.len()],
}

impl Vector {
    pub fn part(&self, part: Part) -> &[f64] {
        &self.parts[part as usize]
    }

    pub fn part_mut(&mut self, part: Part) -> &mut Vec<f64> {
        &mut self.parts[part as usize]
    }

    pub fn copy(&self) -> Self {
        Self { parts: std::array::from_fn(|k| memory::copy(&self.parts[k])) }
    }

    /// self = a self + b x.
    pub fn combine(&mut self, pool: &ThreadPool, a: f64, b: f64, x: &Self) {
        self.zip(pool, x, |y, x| *y = a * *y + b * x);
    }

    /// self + b x, as a new vector.
    pub fn plus(&self, pool: &ThreadPool, b: f64, x: &Self) -> Self {
        let mut sum = self.copy();
        sum.combine(pool, 1.0, b, x);
        sum
    }

    /// Runs `work` on every number and its partner in `x`.
    pub fn zip(&mut self, pool: &ThreadPool, x: &Self, work: impl Fn(&mut f64, f64) + Sync) {
        for (to, from) in self.parts.iter_mut().zip(&x.parts) {
            let sweep = |(to, from): (&mut [f64], &[f64])| to.iter_mut().zip(from).for_each(|(y, &x)| work(y, x));
            if to.len() < SHARED_FROM {
                sweep((to, from));
            } else {
                pool.install(|| to.par_chunks_mut(SHARE).zip(from.par_chunks(SHARE)).for_each(sweep));
            }
        }
    }

    /// Whether every number is one.
    pub fn is_finite(&self) -> bool {
        self.parts.iter().all(|part| part.iter().all(|x| x.is_finite()))
    }

    /// Whether one of them is none: the mark of what has no history.
    pub fn has_nan(&self) -> bool {
        self.parts.iter().any(|part| part.iter().any(|x| x.is_nan()))
    }
}
