//! What is drawn, pixel by pixel, before it becomes colors: the closest line, and sums over points in front of it and behind it.
//!
//! Enters: spots, line segments, colors. Leaves: for each pixel the closest line's depth, color and coverage, and of points the sum of
//! weights and of weighted colors. Sums are of integers, so that the picture does not depend on the order in which threads
//! come; lines are drawn before points.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::camera::{Spot, View};
use crate::error::Result;
use crate::memory;
use crate::session::Session;

pub type Rgb = [u8; 3];

/// A weight of one.
pub const ONE: f64 = 4096.0;
/// Numbers of a pixel in a sum: red, green, blue, weight.
const CHANNELS: usize = 4;
/// No line.
const NOTHING: u64 = u64::MAX;
/// How much farther, relatively, a line counts where it covers nothing of a pixel: a line's edge does not hide its neighbour's middle.
pub const EDGE: f64 = 0.01;

pub struct Canvas {
    pub width: usize,
    pub height: usize,
    /// Depth in the upper half, then red, green, blue, coverage. Empty without lines.
    lines: Vec<AtomicU64>,
    front: Vec<AtomicU64>,
    /// Empty without lines.
    behind: Vec<AtomicU64>,
}

/// A line at a pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub color: Rgb,
    pub coverage: f64,
}

/// Points at a pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Haze {
    /// In units of `ONE`.
    pub weight: u64,
    pub sums: [u64; 3],
}

fn cells(value: u64, n: usize) -> Vec<AtomicU64> {
    memory::collect((0..n).map(|_| AtomicU64::new(value)))
}

/// Pixels of 0..n between two coordinates.
fn pixels(low: f64, high: f64, n: usize) -> std::ops::Range<usize> {
    let last = n as f64;
    low.floor().clamp(0.0, last) as usize..high.ceil().clamp(0.0, last) as usize
}

impl Canvas {
    pub fn new(width: usize, height: usize, lines: bool) -> Self {
        let n = width * height;
        let of_lines = if lines { n } else { 0 };
        Self {
            width,
            height,
            lines: cells(NOTHING, of_lines),
            front: cells(0, CHANNELS * n),
            behind: cells(0, CHANNELS * of_lines),
        }
    }

    /// A round point of `radius` pixels; `weight` 0 to 1 in its middle. A soft one fades towards its edge.
    pub fn point(&self, spot: Spot, radius: f64, weight: f64, soft: bool, color: Rgb) {
        let (reach, inverse) = (if soft { radius } else { radius + 0.5 }, 1.0 / (radius * radius));
        // Pixels whose middles are closer than the reach.
        for j in pixels(spot.y - reach + 0.5, spot.y + reach - 0.5, self.height) {
            for i in pixels(spot.x - reach + 0.5, spot.x + reach - 0.5, self.width) {
                let (dx, dy) = (i as f64 + 0.5 - spot.x, j as f64 + 0.5 - spot.y);
                let r2 = dx * dx + dy * dy;
                let share = if soft {
                    let q = (1.0 - r2 * inverse).max(0.0);
                    q * q
                } else {
                    (reach - r2.sqrt()).clamp(0.0, 1.0)
                };
                let w = (ONE * share * weight + 0.5) as u64;
                if w > 0 {
                    self.deposit(j * self.width + i, spot.depth, w, color);
                }
            }
        }
    }

    fn deposit(&self, pixel: usize, depth: f64, w: u64, color: Rgb) {
        let hidden = !self.lines.is_empty() && (self.lines[pixel].load(Relaxed) >> 32) < u64::from(key(depth));
        let cells = if hidden { &self.behind } else { &self.front };
        let cells = &cells[CHANNELS * pixel..][..CHANNELS];
        cells.iter().zip(color).for_each(|(cell, c)| _ = cell.fetch_add(w * u64::from(c), Relaxed));
        cells[3].fetch_add(w, Relaxed);
    }

    /// A line between points relative to the eye, `width` pixels wide; what is closer than `near` is cut off. The color is asked
    /// for at a depth.
    pub fn line(&self, view: &View, mut a: [f64; 3], mut b: [f64; 3], width: f64, color: impl Fn(f64) -> Rgb) {
        if a[2] > b[2] {
            std::mem::swap(&mut a, &mut b);
        }
        if b[2] < view.near {
            return;
        }
        if a[2] < view.near {
            let t = (view.near - a[2]) / (b[2] - a[2]);
            a = std::array::from_fn(|i| if i == 2 { view.near } else { a[i] + t * (b[i] - a[i]) });
        }
        let (a, b) = (view.spot(a), view.spot(b));
        let (dx, dy) = (b.x - a.x, b.y - a.y);
        let steep = dy.abs() > dx.abs();
        let [from, to] = [a, b].map(|s| if steep { [s.y, s.x] } else { [s.x, s.y] });
        let sides = if steep { [self.height, self.width] } else { [self.width, self.height] };
        let (long, short) = (to[0] - from[0], to[1] - from[1]);
        let slope = if long == 0.0 { 0.0 } else { short / long };
        let reach = 0.5 * width + 0.5;
        let spread = reach * (1.0 + slope * slope).sqrt();
        let length2 = dx * dx + dy * dy;
        for m in pixels(from[0].min(to[0]) - reach, from[0].max(to[0]) + reach, sides[0]) {
            let t = if long == 0.0 { 0.0 } else { ((m as f64 + 0.5 - from[0]) / long).clamp(0.0, 1.0) };
            let middle = from[1] + t * short;
            for n in pixels(middle - spread - 0.5, middle + spread + 0.5, sides[1]) {
                let (i, j) = if steep { (n, m) } else { (m, n) };
                let (px, py) = (i as f64 + 0.5 - a.x, j as f64 + 0.5 - a.y);
                let t = if length2 > 0.0 { ((px * dx + py * dy) / length2).clamp(0.0, 1.0) } else { 0.0 };
                let (ex, ey) = (px - t * dx, py - t * dy);
                let coverage = (reach - (ex * ex + ey * ey).sqrt()).clamp(0.0, 1.0);
                let depth = if view.parallel {
                    a.depth + t * (b.depth - a.depth)
                } else {
                    1.0 / ((1.0 - t) / a.depth + t / b.depth)
                };
                self.cover(j * self.width + i, depth, coverage, color(depth));
            }
        }
    }

    fn cover(&self, pixel: usize, depth: f64, coverage: f64, [r, g, b]: Rgb) {
        let coverage = (255.0 * coverage + 0.5) as u8;
        if coverage > 0 {
            let depth = depth * (1.0 + EDGE * (1.0 - f64::from(coverage) / 255.0));
            let entry = u64::from(key(depth)) << 32 | u64::from(u32::from_be_bytes([r, g, b, coverage]));
            self.lines[pixel].fetch_min(entry, Relaxed);
        }
    }

    pub fn closest(&self, pixel: usize) -> Option<Line> {
        let entry = self.lines.get(pixel).map_or(NOTHING, |cell| cell.load(Relaxed));
        let [r, g, b, coverage] = (entry as u32).to_be_bytes();
        (entry != NOTHING).then(|| Line { color: [r, g, b], coverage: f64::from(coverage) / 255.0 })
    }

    /// Points behind the line at a pixel and in front of it.
    pub fn points(&self, pixel: usize) -> [Haze; 2] {
        [&self.behind, &self.front].map(|cells| {
            let at = |k: usize| cells.get(CHANNELS * pixel + k).map_or(0, |cell| cell.load(Relaxed));
            Haze { weight: at(3), sums: [at(0), at(1), at(2)] }
        })
    }

    /// The weight of all points in a pixel.
    pub fn weight(&self, pixel: usize) -> u64 {
        self.points(pixel).iter().map(|haze| haze.weight).sum()
    }

    /// The lines of all ranks; each rank calls it before it draws points.
    pub fn join_lines(&self, session: &Session) -> Result<()> {
        if session.rank().1 == 1 || self.lines.is_empty() {
            return Ok(());
        }
        let mine = memory::collect(self.lines.iter().map(|cell| cell.load(Relaxed)));
        // The closest depth first, then the least of what comes with it: both fit into doubles.
        let depth = session.largest(&memory::collect(mine.iter().map(|e| -((e >> 32) as f64))))?;
        let rest = |(e, depth): (&u64, &f64)| if (e >> 32) as f64 == -depth { -((*e as u32) as f64) } else { f64::MIN };
        let rest = session.largest(&memory::collect(mine.iter().zip(&depth).map(rest)))?;
        let all = depth.iter().zip(&rest).map(|(depth, rest)| ((-depth) as u64) << 32 | (-rest) as u64);
        self.lines.iter().zip(all).for_each(|(cell, entry)| cell.store(entry, Relaxed));
        Ok(())
    }

    /// The points of all ranks.
    pub fn join_points(&self, session: &Session) -> Result<()> {
        if session.rank().1 == 1 {
            return Ok(());
        }
        // Nothing is behind lines where no rank has any.
        for cells in [&self.front, &self.behind].into_iter().filter(|cells| !cells.is_empty()) {
            // Sums below 2^53 are exact.
            let all = session.total(&memory::collect(cells.iter().map(|cell| cell.load(Relaxed) as f64)))?;
            cells.iter().zip(all).for_each(|(cell, sum)| cell.store(sum as u64, Relaxed));
        }
        Ok(())
    }
}

/// Depths, 0 and more, as numbers of the same order.
fn key(depth: f64) -> u32 {
    (depth as f32).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(x: f64, y: f64, depth: f64) -> Spot {
        Spot { x, y, depth, scale: 1.0 }
    }

    #[test]
    fn a_point_fills_its_pixel_and_lies_in_front_of_a_line_or_behind_it() {
        let canvas = Canvas::new(8, 4, true);
        canvas.cover(8 + 2, 5.0, 1.0, [9, 8, 7]);
        canvas.cover(8 + 2, 6.0, 1.0, [1, 1, 1]);
        canvas.point(spot(2.5, 1.5, 4.0), 0.5, 1.0, false, [100, 50, 25]);
        canvas.point(spot(2.5, 1.5, 6.0), 0.5, 0.5, false, [100, 50, 25]);
        let [behind, front] = canvas.points(8 + 2);
        assert_eq!((behind.weight, front.weight, front.sums), (2048, 4096, [409600, 204800, 102400]));
        assert_eq!(canvas.closest(8 + 2), Some(Line { color: [9, 8, 7], coverage: 1.0 }));
        assert_eq!((0..32).map(|k| canvas.weight(k)).sum::<u64>(), 2048 + 4096);
        assert_eq!(canvas.closest(0), None);
    }

    #[test]
    fn points_beyond_the_edge_are_cut() {
        let canvas = Canvas::new(4, 4, false);
        canvas.point(spot(0.0, 0.0, 1.0), 2.0, 1.0, true, [1; 3]);
        canvas.point(spot(1e30, -1e30, 1.0), 2.0, 1.0, false, [1; 3]);
        assert!(canvas.weight(0) > 0 && canvas.weight(15) == 0);
    }
}
