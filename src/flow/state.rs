//! The state of a flow: every array of every element, in double precision and host memory. Edits are made here; of what a step on
//! a device has changed, `storage` brings the numbers back before they are read.
//!
//! What is integrated lies in `moving`, part by part; what is carried along lies beside it. Identities of a kind ascend with the
//! row, since rows are appended and removed but never moved past each other.

use super::options::ElementKind;
use super::vector::{PARTICLES, PARTS, Part, Vector};
use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_HOST_MEMORY, WFMM_ERR_VALUE};
use crate::math::biot_savart::{Vec3, norm, sub};
use crate::memory;

/// Elements of a kind that are to be removed.
#[derive(Debug, Clone, Copy)]
pub enum Gone<'a> {
    Identities(&'a [i64]),
    /// One byte for each element in the order of its rows; all but 0: removed.
    Masked(&'a [u8]),
}

/// Rows that stay where some are removed: elements and, of segments, points with their new numbers.
#[derive(Debug, Default)]
pub struct Remaining {
    pub elements: Vec<bool>,
    pub points: Vec<bool>,
    numbers: Vec<i32>,
}

/// Straight segments between points that are kept elsewhere.
#[derive(Debug, Default)]
pub struct Lines {
    /// Numbers of the points P1 and P2 of each segment, from 0.
    pub ends: Vec<[i32; 2]>,
    pub circulation: Vec<f64>,
    pub core: Vec<f64>,
    pub id: Vec<i64>,
    /// Identities of the points, which are counted apart.
    pub point_id: Vec<i64>,
}

/// Inertial parcels.
#[derive(Debug, Default)]
pub struct Dust {
    /// `[n][3]`
    pub position: Vec<f64>,
    /// `[n][3]`
    pub velocity: Vec<f64>,
    pub diameter: Vec<f64>,
    pub density: Vec<f64>,
    pub id: Vec<i64>,
}

#[derive(Debug, Default)]
pub struct State {
    pub time: f64,
    pub step: i64,
    /// Without the parts `SegmentVolume` and `DustDrift`, which a step makes for itself.
    pub moving: Vector,
    pub particle_id: Vec<i64>,
    pub filaments: Lines,
    pub bound: Lines,
    /// `[n][3]`
    pub bound_points: Vec<f64>,
    pub tracer_id: Vec<i64>,
    pub dust: Dust,
    /// The next identity of each kind, and of the points of filaments and bound segments.
    next: [i64; 5],
    next_point: [i64; 2],
}

/// Row k of an array of vectors.
pub fn row(x: &[f64], k: usize) -> Vec3 {
    [x[3 * k], x[3 * k + 1], x[3 * k + 2]]
}

/// Elements as a host hands them over, checked, in double precision. Segments: numbers of points count from 0.
#[derive(Debug)]
pub enum Given {
    Particles { position: Vec<f64>, strength: Vec<f64>, core: Vec<f64> },
    Filaments(GivenLines),
    BoundSegments(GivenLines),
    Tracers { position: Vec<f64> },
    Dust { position: Vec<f64>, velocity: Vec<f64>, diameter: Vec<f64>, density: Vec<f64> },
}

#[derive(Debug)]
pub struct GivenLines {
    pub points: Vec<f64>,
    pub ends: Vec<[i32; 2]>,
    pub circulation: Vec<f64>,
    pub core: Vec<f64>,
}

impl State {
    /// Points that move.
    pub fn moving_points(&self) -> usize {
        let of = |kind| self.counts(kind).1;
        of(ElementKind::Particles) + of(ElementKind::Filaments) + of(ElementKind::Tracers) + of(ElementKind::Dust)
    }

    /// Elements that induce.
    pub fn vortices(&self) -> usize {
        self.particle_id.len() + self.filaments.id.len() + self.bound.id.len()
    }

    /// Elements and points of a kind.
    pub fn counts(&self, kind: ElementKind) -> (usize, usize) {
        match kind {
            ElementKind::Particles => (self.particle_id.len(), self.particle_id.len()),
            ElementKind::Filaments => (self.filaments.id.len(), self.filaments.point_id.len()),
            ElementKind::BoundSegments => (self.bound.id.len(), self.bound.point_id.len()),
            ElementKind::Tracers => (self.tracer_id.len(), self.tracer_id.len()),
            ElementKind::Dust => (self.dust.id.len(), self.dust.id.len()),
        }
    }

    /// Appends elements. `make_room` was called, so nothing fails.
    pub fn append(&mut self, given: Given) {
        match given {
            Given::Particles { position, strength, core } => {
                let n = core.len();
                self.moving.part_mut(Part::ParticlePosition).extend_from_slice(&position);
                self.moving.part_mut(Part::ParticleStrength).extend_from_slice(&strength);
                self.moving.part_mut(Part::ParticleCore2).extend(core.iter().map(|c| c * c));
                number(&mut self.particle_id, n, &mut self.next[ElementKind::Particles as usize]);
            }
            Given::Filaments(lines) => {
                self.moving.part_mut(Part::PointPosition).extend_from_slice(&lines.points);
                let kind = ElementKind::Filaments as usize;
                self.filaments.append(lines, &mut self.next[kind], &mut self.next_point[0]);
            }
            Given::BoundSegments(lines) => {
                self.bound_points.extend_from_slice(&lines.points);
                let kind = ElementKind::BoundSegments as usize;
                self.bound.append(lines, &mut self.next[kind], &mut self.next_point[1]);
            }
            Given::Tracers { position } => {
                self.moving.part_mut(Part::TracerPosition).extend_from_slice(&position);
                number(&mut self.tracer_id, position.len() / 3, &mut self.next[ElementKind::Tracers as usize]);
            }
            Given::Dust { position, velocity, diameter, density } => {
                self.dust.position.extend_from_slice(&position);
                self.dust.velocity.extend_from_slice(&velocity);
                self.dust.diameter.extend_from_slice(&diameter);
                self.dust.density.extend_from_slice(&density);
                number(&mut self.dust.id, diameter.len(), &mut self.next[ElementKind::Dust as usize]);
            }
        }
    }

    /// Removes all elements of a kind; capacities stay, identities are not given again.
    pub fn clear(&mut self, kind: ElementKind) {
        match kind {
            ElementKind::Particles => {
                PARTICLES.into_iter().for_each(|part| self.moving.part_mut(part).clear());
                self.particle_id.clear();
            }
            ElementKind::Filaments => {
                self.moving.part_mut(Part::PointPosition).clear();
                self.filaments.clear();
            }
            ElementKind::BoundSegments => {
                self.bound_points.clear();
                self.bound.clear();
            }
            ElementKind::Tracers => {
                self.moving.part_mut(Part::TracerPosition).clear();
                self.tracer_id.clear();
            }
            ElementKind::Dust => {
                let dust = &mut self.dust;
                let arrays = [&mut dust.position, &mut dust.velocity, &mut dust.diameter, &mut dust.density];
                arrays.into_iter().for_each(Vec::clear);
                dust.id.clear();
            }
        }
    }

    /// n particles in the place of those that were there. Their numbers are on a device, and the rows here have no meaning
    /// until they are brought back. Fails before anything changes.
    pub fn renew_particles(&mut self, n: usize) -> Result<()> {
        let ids = &mut self.particle_id;
        room(ids, n.saturating_sub(ids.len()))?;
        let len = |part: Part| PARTS[part as usize].1 * n;
        // Rows that are there serve. Others take no memory before they are written.
        let new = PARTICLES.map(|part| (self.moving.part(part).len() < len(part)).then(|| memory::zeroed(len(part))));
        for (part, new) in PARTICLES.into_iter().zip(new) {
            match new {
                Some(new) => *self.moving.part_mut(part) = new,
                None => self.moving.part_mut(part).truncate(len(part)),
            }
        }
        ids.clear();
        number(ids, n, &mut self.next[ElementKind::Particles as usize]);
        Ok(())
    }

    /// Room for all arrays that will grow, or a status and nothing changed; capacities grow geometrically.
    pub fn make_room(&mut self, given: &Given) -> Result<()> {
        let (moving, dust) = (&mut self.moving, &mut self.dust);
        match given {
            Given::Particles { position, strength, core } => {
                room(&mut self.particle_id, core.len())?;
                room(moving.part_mut(Part::ParticlePosition), position.len())?;
                room(moving.part_mut(Part::ParticleStrength), strength.len())?;
                room(moving.part_mut(Part::ParticleCore2), core.len())
            }
            Given::Filaments(lines) => {
                room(moving.part_mut(Part::PointPosition), lines.points.len())?;
                self.filaments.make_room(lines)
            }
            Given::BoundSegments(lines) => {
                room(&mut self.bound_points, lines.points.len())?;
                self.bound.make_room(lines)
            }
            Given::Tracers { position } => {
                room(&mut self.tracer_id, position.len() / 3)?;
                room(moving.part_mut(Part::TracerPosition), position.len())
            }
            Given::Dust { position, velocity, diameter, density } => {
                room(&mut dust.id, diameter.len())?;
                room(&mut dust.position, position.len())?;
                room(&mut dust.velocity, velocity.len())?;
                room(&mut dust.diameter, diameter.len())?;
                room(&mut dust.density, density.len())
            }
        }
    }

    /// Identities of a kind's elements, which rise.
    pub fn ids(&self, kind: ElementKind) -> &[i64] {
        match kind {
            ElementKind::Particles => &self.particle_id,
            ElementKind::Filaments => &self.filaments.id,
            ElementKind::BoundSegments => &self.bound.id,
            ElementKind::Tracers => &self.tracer_id,
            ElementKind::Dust => &self.dust.id,
        }
    }

    /// Which rows of a kind stay where these go: elements and, of segments, points.
    pub fn remaining(&self, kind: ElementKind, gone: Gone<'_>) -> Result<Remaining> {
        let n = self.ids(kind).len();
        let stays = match gone {
            Gone::Identities(identity) => {
                let mut stays = memory::filled(true, n);
                rows_among(self.ids(kind), identity, kind)?.iter().for_each(|row| stays[*row] = false);
                stays
            }
            Gone::Masked(mask) if mask.len() == n => memory::collect(mask.iter().map(|gone| *gone == 0)),
            Gone::Masked(mask) => {
                let (given, name) = (mask.len(), ElementKind::ALL[kind as usize].1);
                return Error::fail(
                    WFMM_ERR_COUNT,
                    format!("n = {given}; {name} has {n} elements, and mask one byte for each"),
                );
            }
        };
        Ok(match kind {
            ElementKind::Filaments => self.filaments.remaining(stays),
            ElementKind::BoundSegments => self.bound.remaining(stays),
            _ => Remaining { elements: stays, ..Remaining::default() },
        })
    }

    /// Keeps these rows; nothing fails.
    pub fn keep(&mut self, kind: ElementKind, remaining: &Remaining) {
        let (moving, stays) = (&mut self.moving, &remaining.elements);
        match kind {
            ElementKind::Particles => {
                keep(moving.part_mut(Part::ParticlePosition), 3, stays);
                keep(moving.part_mut(Part::ParticleStrength), 3, stays);
                keep(moving.part_mut(Part::ParticleCore2), 1, stays);
                keep(&mut self.particle_id, 1, stays);
            }
            ElementKind::Filaments => self.filaments.keep(moving.part_mut(Part::PointPosition), remaining),
            ElementKind::BoundSegments => self.bound.keep(&mut self.bound_points, remaining),
            ElementKind::Tracers => {
                keep(moving.part_mut(Part::TracerPosition), 3, stays);
                keep(&mut self.tracer_id, 1, stays);
            }
            ElementKind::Dust => {
                keep(&mut self.dust.position, 3, stays);
                keep(&mut self.dust.velocity, 3, stays);
                keep(&mut self.dust.diameter, 1, stays);
                keep(&mut self.dust.density, 1, stays);
                keep(&mut self.dust.id, 1, stays);
            }
        }
    }

    /// Replaces filament segments by pieces: see `filaments::Split`. Room was made.
    pub fn split(&mut self, points: &[f64], first: &[(usize, [i32; 2])], more: GivenLines) {
        self.moving.part_mut(Part::PointPosition).extend_from_slice(points);
        number(&mut self.filaments.point_id, points.len() / 3, &mut self.next_point[0]);
        first.iter().for_each(|&(k, ends)| self.filaments.ends[k] = ends);
        self.filaments.ends.extend_from_slice(&more.ends);
        self.filaments.circulation.extend_from_slice(&more.circulation);
        self.filaments.core.extend_from_slice(&more.core);
        number(&mut self.filaments.id, more.ends.len(), &mut self.next[ElementKind::Filaments as usize]);
    }

    /// The next identities of elements by kind, and of points of filaments and bound segments.
    pub fn next_identities(&self) -> ([i64; 5], [i64; 2]) {
        (self.next, self.next_point)
    }

    /// Leaves out identities of a kind and of its points: on other ranks they have owners.
    pub fn skip_identities(&mut self, kind: ElementKind, elements: usize, points: usize) {
        self.next[kind as usize] += elements as i64;
        match kind {
            ElementKind::Filaments => self.next_point[0] += points as i64,
            ElementKind::BoundSegments => self.next_point[1] += points as i64,
            _ => {}
        }
    }

    pub fn set_next_identities(&mut self, next: [i64; 5], next_point: [i64; 2]) {
        (self.next, self.next_point) = (next, next_point);
    }

    /// What arrays that come from outside contradict, if they do.
    pub fn inconsistency(&self) -> Option<String> {
        let part = |part| self.moving.part(part);
        let (n, dust) = (self.particle_id.len(), self.dust.id.len());
        let lengths = [
            ("particle_position", part(Part::ParticlePosition).len(), 3 * n),
            ("particle_strength", part(Part::ParticleStrength).len(), 3 * n),
            ("particle_core_radius_squared", part(Part::ParticleCore2).len(), n),
            ("tracer_position", part(Part::TracerPosition).len(), 3 * self.tracer_id.len()),
            ("dust_position", self.dust.position.len(), 3 * dust),
            ("dust_velocity", self.dust.velocity.len(), 3 * dust),
            ("dust_diameter", self.dust.diameter.len(), dust),
            ("dust_density", self.dust.density.len(), dust),
        ];
        if let Some((name, have, want)) = lengths.into_iter().find(|(_, have, want)| have != want) {
            return Some(format!("member {name} has {have} numbers; {want} are needed"));
        }
        let numbers = [&self.bound_points, &self.dust.position, &self.dust.velocity];
        let finite = numbers.into_iter().all(|v| v.iter().all(|x| x.is_finite())) && self.moving.is_finite();
        let positive = |v: &[f64]| v.iter().all(|x| *x > 0.0 && x.is_finite());
        if !finite || !positive(&self.dust.diameter) || !positive(&self.dust.density) || !self.time.is_finite() {
            return Some("a number is not finite, or a diameter or density not positive".into());
        }
        if self.step < 0 || part(Part::ParticleCore2).iter().any(|c| *c < 0.0) {
            return Some("the step or a squared core radius is negative".into());
        }
        let ids = [(&self.particle_id, self.next[0]), (&self.tracer_id, self.next[3]), (&self.dust.id, self.next[4])];
        if !ids.into_iter().all(|(ids, next)| ascend(ids, next)) {
            return Some("identities do not ascend".into());
        }
        let filaments = self.filaments.inconsistency(part(Part::PointPosition), self.next[1], self.next_point[0]);
        let bound = || self.bound.inconsistency(&self.bound_points, self.next[2], self.next_point[1]);
        filaments.or_else(bound).map(|why| format!("segments: {why}"))
    }

    /// Bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        let numbers: usize = PARTS.iter().map(|(part, _)| self.moving.part(*part).len()).sum();
        let lines = |l: &Lines| 4 * l.id.len() + l.point_id.len();
        let dust = 9 * self.dust.id.len();
        let ids = self.particle_id.len() + self.tracer_id.len();
        8 * (numbers + self.bound_points.len() + lines(&self.filaments) + lines(&self.bound) + dust + ids) as u64
    }
}

/// Whether identities ascend from 0 or more to less than the next one.
fn ascend(ids: &[i64], next: i64) -> bool {
    ids.is_sorted_by(|a, b| a < b) && *ids.first().unwrap_or(&0) >= 0 && *ids.last().unwrap_or(&-1) < next
}

impl Lines {
    fn inconsistency(&self, points: &[f64], next: i64, next_point: i64) -> Option<&'static str> {
        let (n, n_points) = (self.id.len(), self.point_id.len());
        let good = |v: &[f64]| v.iter().all(|x| x.is_finite());
        if [self.ends.len(), self.circulation.len(), self.core.len()] != [n; 3] || points.len() != 3 * n_points {
            Some("arrays differ in length")
        } else if !self.ends.iter().flatten().all(|e| usize::try_from(*e).is_ok_and(|e| e < n_points)) {
            Some("an end is no point")
        } else if !good(&self.circulation) || !good(&self.core) || self.core.iter().any(|c| *c < 0.0) {
            Some("a number is not finite, or a core radius negative")
        } else if !ascend(&self.id, next) || !ascend(&self.point_id, next_point) {
            Some("identities do not ascend")
        } else {
            None
        }
    }

    fn clear(&mut self) {
        self.ends.clear();
        self.circulation.clear();
        self.core.clear();
        self.id.clear();
        self.point_id.clear();
    }

    fn make_room(&mut self, lines: &GivenLines) -> Result<()> {
        let n = lines.ends.len();
        let points = self.point_id.len() + lines.points.len() / 3;
        if points > i32::MAX as usize {
            return Error::fail(WFMM_ERR_COUNT, format!("{points} points in all; accepted: up to {}", i32::MAX));
        }
        room(&mut self.ends, n)?;
        room(&mut self.circulation, n)?;
        room(&mut self.core, n)?;
        room(&mut self.id, n)?;
        room(&mut self.point_id, lines.points.len() / 3)
    }

    fn append(&mut self, lines: GivenLines, next: &mut i64, next_point: &mut i64) {
        let base = self.point_id.len() as i32;
        self.ends.extend(lines.ends.iter().map(|ends| ends.map(|e| e + base)));
        self.circulation.extend_from_slice(&lines.circulation);
        self.core.extend_from_slice(&lines.core);
        number(&mut self.id, lines.ends.len(), next);
        number(&mut self.point_id, lines.points.len() / 3, next_point);
    }

    /// These segments stay, and the points but those that lose their last one.
    fn remaining(&self, stays: Vec<bool>) -> Remaining {
        let mut point_stays = memory::filled(true, self.point_id.len());
        let ends = |k: usize| self.ends[k].map(|e| e as usize);
        (0..stays.len()).filter(|&k| !stays[k]).for_each(|k| ends(k).into_iter().for_each(|e| point_stays[e] = false));
        (0..stays.len()).filter(|&k| stays[k]).for_each(|k| ends(k).into_iter().for_each(|e| point_stays[e] = true));
        let mut new = memory::filled(0i32, point_stays.len());
        let mut count = 0;
        for (to, stays) in new.iter_mut().zip(&point_stays) {
            *to = count;
            count += i32::from(*stays);
        }
        Remaining { elements: stays, points: point_stays, numbers: new }
    }

    fn keep(&mut self, points: &mut Vec<f64>, remaining: &Remaining) {
        let (stays, point_stays) = (&remaining.elements[..], &remaining.points[..]);
        keep(&mut self.ends, 1, stays);
        keep(&mut self.circulation, 1, stays);
        keep(&mut self.core, 1, stays);
        keep(&mut self.id, 1, stays);
        keep(points, 3, point_stays);
        keep(&mut self.point_id, 1, point_stays);
        self.ends.iter_mut().flatten().for_each(|e| *e = remaining.numbers[*e as usize]);
    }

    /// Length of segment k between these points.
    pub fn length(&self, points: &[f64], k: usize) -> f64 {
        let [a, b] = self.ends[k];
        norm(sub(row(points, b as usize), row(points, a as usize)))
    }
}

/// The next identities, at the end of `ids`.
fn number(ids: &mut Vec<i64>, n: usize, next: &mut i64) {
    ids.extend(*next..*next + n as i64);
    *next += n as i64;
}

/// Rows of these identities among those of all elements (or points) of a kind, which ascend.
pub fn rows_among(ids: &[i64], identity: &[i64], kind: ElementKind) -> Result<Vec<usize>> {
    let mut rows = Vec::new();
    room(&mut rows, identity.len())?;
    for (k, id) in identity.iter().enumerate() {
        let Ok(row) = ids.binary_search(id) else {
            let name = ElementKind::ALL[kind as usize].1;
            return Error::fail(WFMM_ERR_VALUE, format!("identity[{k}] = {id} is no live element of {name}"));
        };
        rows.push(row);
    }
    Ok(rows)
}

/// Keeps rows of `width` entries.
pub fn keep<T: Copy>(values: &mut Vec<T>, width: usize, stays: &[bool]) {
    let mut to = 0;
    for (from, stays) in stays.iter().enumerate() {
        if *stays {
            values.copy_within(from * width..(from + 1) * width, to * width);
            to += 1;
        }
    }
    values.truncate(to * width);
}

/// Room for `more` entries beyond the present ones.
pub fn room<T>(v: &mut Vec<T>, more: usize) -> Result<()> {
    if !memory::is_short() && v.try_reserve(more).is_ok() {
        return Ok(());
    }
    let bytes = more.saturating_mul(size_of::<T>());
    Error::fail(WFMM_ERR_HOST_MEMORY, format!("no host memory for more elements: {bytes} bytes were needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(n: i32) -> Given {
        let points = (0..3 * (n + 1)).map(f64::from).collect();
        let n = n as usize;
        let ends = (0..n as i32).map(|k| [k, k + 1]).collect();
        Given::Filaments(GivenLines { points, ends, circulation: vec![1.0; n], core: vec![0.1; n] })
    }

    #[test]
    fn identities_are_kept_and_points_without_segments_go() {
        let mut state = State::default();
        state.append(lines(3));
        state.append(lines(2));
        assert_eq!(state.counts(ElementKind::Filaments), (5, 7));
        // The middle segment of the first line: its points are still used. The last of the second: its end goes.
        let gone = state.remaining(ElementKind::Filaments, Gone::Identities(&[1, 4])).unwrap();
        assert_eq!((gone.elements.iter().filter(|s| **s).count(), gone.points[6]), (3, false));
        state.keep(ElementKind::Filaments, &gone);
        assert_eq!(state.filaments.id, [0, 2, 3]);
        assert_eq!(state.filaments.point_id, [0, 1, 2, 3, 4, 5]);
        assert_eq!(state.filaments.ends, [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(state.moving.part(Part::PointPosition).len(), 18);
        let refused = |gone| state.remaining(ElementKind::Filaments, gone).unwrap_err().message;
        assert!(refused(Gone::Identities(&[0, 1])).contains("identity[1] = 1"));
        assert!(refused(Gone::Masked(&[0])).contains("n = 1"));
        state.append(lines(1));
        assert_eq!(state.filaments.id, [0, 2, 3, 5]);
    }
}
