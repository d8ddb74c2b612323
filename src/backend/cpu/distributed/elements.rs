//! Elements that travel: a record of eight numbers each.
//!
//! Enters: a set of sources. Leaves: its records, in the order of its combined numbers; and back.

use crate::backend::cpu::intake::Intake;
use crate::backend::cpu::near::Digits;
use crate::backend::cpu::sources::{ChargeSources, Particle, Segment, VortexSources};
use crate::memory;

/// A segment: both ends, circulation, core. A particle: place, strength, core, `PARTICLE`. A charge: place, charge.
pub type Record = [f64; 8];
/// No core is negative.
const PARTICLE: f64 = -1.0;

/// Sources whose elements can travel.
pub trait Elements<const C: usize>: Intake<f64, C> + Sized {
    fn records(&self) -> Vec<Record>;
    /// A set of these elements, and the combined number of each record.
    fn of_records(&self, records: &[Record]) -> (Self, Vec<u32>);
    /// Where the curve meets an element.
    fn place(record: &Record) -> [f64; 3];
}

fn triple(r: &Record, at: usize) -> [f64; 3] {
    std::array::from_fn(|i| r[at + i])
}

impl Elements<3> for VortexSources<f64> {
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
        VortexSources::place(&mut set, segments, particles, Digits::default());
        (set, numbers)
    }

    fn place(record: &Record) -> [f64; 3] {
        if record[7] == PARTICLE {
            return triple(record, 0);
        }
        std::array::from_fn(|i| 0.5 * (record[i] + record[3 + i]))
    }
}

impl Elements<1> for ChargeSources<f64> {
    fn records(&self) -> Vec<Record> {
        let record = |(x, q): (&[f64; 3], &f64)| [x[0], x[1], x[2], *q, 0.0, 0.0, 0.0, 0.0];
        memory::collect(self.places.iter().zip(&self.charge).map(record))
    }

    fn of_records(&self, records: &[Record]) -> (Self, Vec<u32>) {
        let mut set = Self::default();
        let places = memory::collect(records.iter().map(|r| triple(r, 0)));
        ChargeSources::place(&mut set, places, memory::collect(records.iter().map(|r| r[3])), false);
        (set, memory::collect(0..records.len() as u32))
    }

    fn place(record: &Record) -> [f64; 3] {
        triple(record, 0)
    }
}
