//! What a core takes from the singular field at most, by the distance in cores.

use super::{CoreElement, Largest};
use crate::math::regularization;
use crate::memory;
use crate::options::Regularization;

/// Bins an octave of the distance, and the octaves that the tables span.
const BINS_LOG2: u32 = 4;
const LEAST: i32 = -10;
const OCTAVES: i32 = 42;

/// Upper bounds over the distance in cores, of the field and of its gradient; they never grow with the distance.
struct Bounds {
    values: Vec<[f32; 2]>,
}

impl Bounds {
    fn new(f: impl Fn(f64) -> [f64; 2]) -> Self {
        let bins = (OCTAVES << BINS_LOG2) as usize;
        let mut values = memory::filled([0.0f32; 2], bins);
        let mut most = [0.0f64; 2];
        for k in (0..bins).rev() {
            // The lower edge of the bin, where a falling function is largest.
            let q = f64::from(f32::from_bits(Self::first() + ((k as u32) << (23 - BINS_LOG2))));
            let now = f(q);
            most = [most[0].max(now[0]), most[1].max(now[1])];
            values[k] = most.map(|v| (v * (1.0 + 1e-6)) as f32);
        }
        Self { values }
    }

    const fn first() -> u32 {
        ((127 + LEAST) as u32) << 23
    }

    #[inline]
    fn at(&self, q: f32) -> [f64; 2] {
        let k = q.to_bits().saturating_sub(Self::first()) >> (23 - BINS_LOG2);
        let [u, g] = self.values[(k as usize).min(self.values.len() - 1)];
        [f64::from(u), f64::from(g)]
    }
}

/// See the head of this file; for the regularizations of one plan.
pub struct CoreBounds {
    particle: Option<Bounds>,
    segment: Option<Bounds>,
    /// Segments are of the kind OFFSET, whose field depends on the distance from the middle.
    pub offset: bool,
}

impl CoreBounds {
    pub fn new(segment: Regularization, particle: Regularization) -> Self {
        debug_assert!(particle.is_for_particles());
        let none = Regularization::None;
        Self {
            particle: (particle != none).then(|| {
                Bounds::new(|q| {
                    let (g, slope) = regularization::particle_shortfalls(particle, q);
                    [g, 2.0 * g + 3.0 * slope]
                })
            }),
            segment: (segment != none && segment != Regularization::Offset).then(|| {
                Bounds::new(|t| {
                    let (f, h) = regularization::segment_shortfalls(segment, t);
                    [regularization::segment_deficit(segment, t), 3.0 * f + h]
                })
            }),
            offset: segment == Regularization::Offset,
        }
    }

    pub(super) fn of_particle(&self, l: Largest, r: f64) -> [f64; 2] {
        match &self.particle {
            Some(b) if l.core > 0.0 => {
                let [u, g] = b.at((r / l.core) as f32);
                [l.strength * u / (r * r), l.strength * g / (r * r * r)]
            }
            _ => [0.0; 2],
        }
    }

    /// `r`: distance to the segment (OFFSET: to its middle), whatever that to its line.
    pub(super) fn of_segment(&self, l: Largest, r: f64) -> [f64; 2] {
        self.of_segment_beside(l, r, 0.0)
    }

    /// The same at least `line` away from its line (OFFSET: wherever that is).
    pub(super) fn of_segment_beside(&self, l: Largest, r: f64, line: f64) -> [f64; 2] {
        if l.core == 0.0 {
            return [0.0; 2];
        }
        if self.offset {
            let u = l.strength * regularization::offset_shortfall(r, l.core, l.length) / (r * r);
            return [u, 6.0 * u / r];
        }
        match &self.segment {
            Some(b) => {
                let ([u, g], r3) = (b.at((line / l.core) as f32), r * r * r);
                [l.strength * l.core * u / r3, l.strength * g / r3]
            }
            None => [0.0; 2],
        }
    }

    /// The same of one element from 1/r and the distance `q` to its line in cores; NaN or infinite where r is zero.
    #[inline(always)]
    pub fn of_element(&self, of: &Weights, inverse: f64, q: f32) -> [f64; 2] {
        match (of.kind, &self.segment, &self.particle) {
            (Kind::Segment { core }, Some(bounds), _) => {
                let (cube, [u, g]) = (of.strength * inverse * inverse * inverse, bounds.at(q));
                [cube * core * u, cube * g]
            }
            (Kind::Particle, _, Some(bounds)) => {
                let (square, [u, g]) = (of.strength * inverse * inverse, bounds.at(q));
                [square * u, square * inverse * g]
            }
            (Kind::Offset { core, length }, ..) => {
                self.of_segment(Largest { strength: of.strength, sum: 0.0, core, length }, 1.0 / inverse)
            }
            _ => [0.0; 2],
        }
    }

    /// What `of_element` needs of an element.
    pub fn weights(&self, e: &CoreElement) -> Weights {
        let kind = match e.is_segment {
            _ if e.core == 0.0 => Kind::Bare,
            false => Kind::Particle,
            true if self.offset => Kind::Offset { core: e.core, length: 2.0 * norm(e.half) },
            true => Kind::Segment { core: e.core },
        };
        Weights { strength: e.strength, kind }
    }
}

/// The strength of an element and what decides over its bound.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    strength: f64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Without a core.
    Bare,
    Particle,
    Segment {
        core: f64,
    },
    Offset {
        core: f64,
        length: f64,
    },
}

fn norm(a: [f64; 3]) -> f64 {
    (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt()
}
