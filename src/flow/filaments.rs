//! Filaments: how cores grow and follow strain, and how long segments are split.
//!
//! d(c²)/dt = 4·1.25643 (nu + a1 |Gamma|) - c² (dl/dt)/l: growth by Squire's law (delta = 1 + a1 |Gamma|/nu), strain at constant
//! volume. Written for q = c² l it is dq/dt = 4·1.25643 (nu + a1 |Gamma|) l, which keeps q where nothing grows and never
//! makes it negative.

use super::options::FlowOptions;
use super::state::{GivenLines, Lines, row};
use super::vector::{Part, Vector};
use crate::error::{Error, Result, WFMM_ERR_COUNT, number};
use crate::math::biot_savart::{Vec3, sub};
use crate::memory;

/// The factor of Lamb and Oseen's vortex that puts the largest velocity at the core radius.
pub const LAMB: f64 = 1.25643;

/// Of the length of a segment after a step: one that was shorter before it had no length, and gets it in this step.
const BORN: f64 = 1e-9;

/// c² l of each segment.
pub fn volumes(lines: &Lines, points: &[f64]) -> Vec<f64> {
    memory::collect((0..lines.id.len()).map(|k| lines.core[k] * lines.core[k] * lines.length(points, k)))
}

/// dq/dt of each segment.
pub fn growth(lines: &Lines, options: &FlowOptions, points: &[f64]) -> Vec<f64> {
    let rate = |k: usize| 4.0 * LAMB * (options.viscosity + options.squire * lines.circulation[k].abs());
    memory::collect((0..lines.id.len()).map(|k| match rate(k) {
        0.0 => 0.0,
        rate => rate * lines.length(points, k),
    }))
}

/// Core radii at a stage `y` of a step that began at `start`. What neither grew nor was strained keeps its bits; a segment
/// without length its core. One that had none but rounding at the start has no strain in this step: its core only grows.
pub fn cores(lines: &Lines, start: &Vector, y: &Vector) -> Vec<f64> {
    let (before, after) = (start.part(Part::PointPosition), y.part(Part::PointPosition));
    let (q0, q) = (start.part(Part::SegmentVolume), y.part(Part::SegmentVolume));
    memory::collect((0..lines.id.len()).map(|k| {
        let (l0, l) = (lines.length(before, k), lines.length(after, k));
        let core = lines.core[k];
        if (l == l0 && q[k] == q0[k]) || l == 0.0 {
            return core;
        }
        if l0 > BORN * l { (q[k] / l).sqrt() } else { (core * core + (q[k] - q0[k]) / l).sqrt() }
    }))
}

/// Pieces of segments that grew too long: points between, and what becomes of the segments.
pub struct Split {
    /// New points.
    pub points: Vec<f64>,
    /// Segments that end earlier now.
    pub first: Vec<(usize, [i32; 2])>,
    /// Their other pieces; numbers of points are final.
    pub more: GivenLines,
}

/// Splits segments longer than `limit` into equal pieces; nothing where none is. An error where there would be more segments or points
/// than an i32 counts.
pub fn split(lines: &Lines, core: &[f64], points: &[f64], limit: f64) -> Result<Option<Split>> {
    if limit <= 0.0 {
        return Ok(None);
    }
    let pieces = |k: usize| (lines.length(points, k) / limit).ceil().max(1.0);
    let more: f64 = (0..lines.id.len()).map(|k| pieces(k) - 1.0).sum();
    if more == 0.0 {
        return Ok(None);
    }
    let all = more + lines.id.len().max(points.len() / 3) as f64;
    if all > f64::from(i32::MAX) {
        let most = i32::MAX;
        let message = format!("split_length = {} cuts segments into", number(limit));
        return Error::fail(WFMM_ERR_COUNT, format!("{message} {} in all; accepted: up to {most}", number(all)));
    }
    let more = GivenLines { points: vec![], ends: vec![], circulation: vec![], core: vec![] };
    let mut split = Split { points: vec![], first: vec![], more };
    for k in 0..lines.id.len() {
        let pieces = pieces(k);
        if pieces > 1.0 {
            split.cut(lines, core, points, k, pieces as usize);
        }
    }
    Ok(Some(split))
}

/// Whether points of lines in a periodic domain are whole periods apart: where a line goes on in the next image, its ends are two
/// points, which move by themselves. To a millionth of the longest period.
pub fn has_seam(points: &[f64], period: Vec3) -> bool {
    /// Cells of this part of a period hold one place. Places that were meant to be one lie at its middle rather than on its bound.
    const SAME: f64 = 1e6;
    let longest = period.into_iter().fold(0.0, f64::max);
    let cell = |x: f64, period: f64| match period {
        0.0 => (x / longest * SAME + 0.5).floor(),
        period => (x / period * SAME + 0.5).floor().rem_euclid(SAME),
    };
    let place = |k: usize| {
        let x = row(points, k);
        (std::array::from_fn::<i64, 3, _>(|i| cell(x[i], period[i]) as i64), k)
    };
    let mut places = memory::collect((0..points.len() / 3).map(place));
    places.sort_unstable();
    let apart = |a: usize, b: usize| {
        let way = sub(row(points, a), row(points, b));
        way.iter().zip(period).any(|(way, period)| period > 0.0 && way.abs() > 0.5 * period)
    };
    places.chunk_by(|a, b| a.0 == b.0).any(|at| at.iter().any(|other| apart(at[0].1, other.1)))
}

impl Split {
    fn cut(&mut self, lines: &Lines, core: &[f64], points: &[f64], k: usize, pieces: usize) {
        let [from, to] = lines.ends[k];
        let (a, b) = (row(points, from as usize), row(points, to as usize));
        let base = (points.len() + self.points.len()) / 3;
        for piece in 1..pieces {
            let part = piece as f64 / pieces as f64;
            memory::extend(&mut self.points, (0..3).map(|i| a[i] + part * (b[i] - a[i])));
            let here = (base + piece - 1) as i32;
            memory::push(&mut self.more.ends, [here, if piece + 1 == pieces { to } else { here + 1 }]);
            memory::push(&mut self.more.circulation, lines.circulation[k]);
            memory::push(&mut self.more.core, core[k]);
        }
        memory::push(&mut self.first, (k, [from, base as i32]));
    }
}
