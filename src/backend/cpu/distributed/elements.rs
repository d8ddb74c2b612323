//! Elements that travel: a record of eight numbers each.
//!
//! Enters: a set of sources. Leaves: its records, in the order of its combined numbers; and back.

use crate::backend::cpu::intake::Intake;
use crate::backend::cpu::near::Digits;
use crate::backend::cpu::sources::{ChargeSources, Particle, Segment, VortexSources};
use crate::memory;
use crate::simd::Real;

/// A segment: both ends, circulation, core. A particle: position, strength, core, `PARTICLE`. A charge: position, charge.
pub type Record = [f64; 8];
/// No core is negative.
const PARTICLE: f64 = -1.0;

/// Sources whose elements can travel.
pub trait Elements<T: Real, const C: usize>: Intake<T, C> + Sized {
    /// The same for sums in single precision.
    type Single: Elements<f32, C>;
    /// A set without elements.
    fn single(&self) -> Self::Single;
    fn records(&self) -> Vec<Record>;
    /// Positions whose distance from a target decides whether single precision has the digits.
    fn ends(&self) -> Vec<[f64; 3]>;
    /// A set of these elements, and the combined number of each record.
    fn of_records(&self, records: &[Record]) -> (Self, Vec<u32>);
    /// Where the curve meets an element.
    fn position(record: &Record) -> [f64; 3];
}

fn triple(r: &Record, at: usize) -> [f64; 3] {
    std::array::from_fn(|i| r[at + i])
}

/// Of positions in double precision, which are multiples of `step` if it is not zero.
fn digits<T: Real>(step: f64) -> Digits {
    Digits { splits: !T::IS_F64, step }
}

impl<T: Real> Elements<T, 3> for VortexSources<T> {
    type Single = VortexSources<f32>;

    fn single(&self) -> Self::Single {
        let [of_segments, of_particles] = self.regularizations();
        VortexSources::new(of_segments, of_particles)
    }

    fn ends(&self) -> Vec<[f64; 3]> {
        let mut ends = memory::with_room(2 * self.segments.len() + self.particles.len());
        ends.extend(self.segments.iter().flat_map(|s| [s.p1, s.p2]));
        ends.extend(self.particles.iter().map(|p| p.x));
        ends
    }

    fn records(&self) -> Vec<Record> {
        let segment = |s: &Segment| {
            let ([a, b, c], [d, e, f]) = (s.p1, s.p2);
            [a, b, c, d, e, f, s.circulation, s.core]
        };
        let particle = |p: &Particle| {
            let ([a, b, c], [d, e, f]) = (p.x, p.strength);
            [a, b, c, d, e, f, p.core, PARTICLE]
        };
        let mut records = memory::with_room(self.segments.len() + self.particles.len());
        records.extend(self.segments.iter().map(segment));
        records.extend(self.particles.iter().map(particle));
        records
    }

    fn of_records(&self, records: &[Record]) -> (Self, Vec<u32>) {
        let [of_segments, of_particles] = self.regularizations();
        let count = records.iter().filter(|r| r[7] != PARTICLE).count();
        let mut segments = memory::with_room(count);
        let mut particles = memory::with_room(records.len() - count);
        let mut numbers = memory::with_room(records.len());
        for r in records {
            if r[7] == PARTICLE {
                numbers.push((count + particles.len()) as u32);
                particles.push(Particle { x: triple(r, 0), strength: triple(r, 3), core: r[6] });
            } else {
                numbers.push(segments.len() as u32);
                segments.push(Segment { p1: triple(r, 0), p2: triple(r, 3), circulation: r[6], core: r[7] });
            }
        }
        let mut set = Self::new(of_segments, of_particles);
        VortexSources::set_elements(&mut set, segments, particles, digits::<T>(self.digits.step));
        (set, numbers)
    }

    fn position(record: &Record) -> [f64; 3] {
        if record[7] == PARTICLE {
            return triple(record, 0);
        }
        std::array::from_fn(|i| 0.5 * (record[i] + record[3 + i]))
    }
}

impl<T: Real> Elements<T, 1> for ChargeSources<T> {
    type Single = ChargeSources<f32>;

    fn single(&self) -> Self::Single {
        ChargeSources::default()
    }

    fn ends(&self) -> Vec<[f64; 3]> {
        memory::copy(&self.positions)
    }

    fn records(&self) -> Vec<Record> {
        let record = |(x, q): (&[f64; 3], &f64)| [x[0], x[1], x[2], *q, 0.0, 0.0, 0.0, 0.0];
        memory::collect(self.positions.iter().zip(&self.charge).map(record))
    }

    fn of_records(&self, records: &[Record]) -> (Self, Vec<u32>) {
        let mut set = Self::default();
        let positions = memory::collect(records.iter().map(|r| triple(r, 0)));
        ChargeSources::set_elements(
            &mut set,
            positions,
            memory::collect(records.iter().map(|r| r[3])),
            digits::<T>(0.0).splits,
        );
        (set, memory::collect(0..records.len() as u32))
    }

    fn position(record: &Record) -> [f64; 3] {
        triple(record, 0)
    }
}
