//! The kernels of kernels/picture.cu as functions that cannot be called wrongly: pictures of elements in device memory.
//!
//! Enters: spans, whose lengths are checked against each other, and how a picture looks. Leaves: an image in device memory; only
//! `found` and `sums_fit` wait. All of a picture is queued on one stream.

pub mod args;

use super::array::{DeviceArray, Span};
use super::context::{Context, Function};
use super::memory::{Buffer, Plain, clear_at};
use super::stream::{Stream, launch};
use crate::error::Result;
use std::sync::Arc;

use args::{CanvasArg, LayerArg, PictureBits, StyleArg, ViewArg};

const BLOCK: u32 = 256;
const WARP: usize = 32;
/// Blocks of sweeps over elements and pixels, and of those that end in a few numbers.
const SWEEP: usize = 4096;
const SUMMED: usize = 512;

// SAFETY: twelve numbers of 64 bits.
unsafe impl Plain for PictureBits {}

/// What the color of an element says.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    Kind,
    /// Velocities of its points.
    Speed(Span<'a, f64>),
    /// Identities, where they are not one after the other.
    Age {
        first: i64,
        id: Option<Span<'a, i64>>,
    },
}

/// Elements of a kind in device memory.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    pub n: usize,
    pub position: Span<'a, f64>,
    /// Of segments: numbers of points, the first of which is `base`.
    pub ends: Option<Span<'a, i32>>,
    pub base: usize,
    /// Squares of core radii, of particles.
    pub core2: Option<Span<'a, f64>>,
    pub shown: Shown<'a>,
    /// Values at the ends of the color scale.
    pub range: [f64; 2],
    /// Red, green, blue from the third byte down.
    pub color: u32,
    /// The kind's index among those of points.
    pub channel: usize,
}

impl Layer<'_> {
    fn argument(&self) -> LayerArg {
        let n_points = self.position.len() / 3;
        assert!(self.ends.is_none_or(|ends| ends.len() == 2 * self.n) && (self.ends.is_some() || n_points == self.n));
        assert!(self.core2.is_none_or(|core2| core2.len() == self.n));
        let (value, velocity, first_id, id) = match self.shown {
            Shown::Kind => (0, 0, 0, 0),
            Shown::Speed(velocity) => {
                assert_eq!(velocity.len(), self.position.len());
                (1, velocity.address(), 0, 0)
            }
            Shown::Age { first, id } => {
                assert!(id.is_none_or(|id| id.len() == self.n));
                (2, 0, first, id.map_or(0, |id| id.address()))
            }
        };
        LayerArg {
            position: self.position.address(),
            velocity,
            ends: self.ends.map_or(0, |ends| ends.address()),
            core2: self.core2.map_or(0, |core2| core2.address()),
            id,
            n: self.n as i64,
            n_points: n_points as i64,
            base: self.base as i64,
            first_id,
            value,
            low: self.range[0],
            high: self.range[1],
            color: self.color,
            channel: self.channel as u32,
        }
    }
}

/// What was found of all layers since `look_anew`: the largest of each number, -infinity without any.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    pub bounds: [f64; 6],
    /// Minus the speed, and the speed.
    pub speed: [f64; 2],
}

/// What the canvas has of the points of a pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sums {
    /// A weight for each of so many kinds.
    OfKinds(usize),
    /// Red, green, blue and weight in words of 64 bits.
    Wide,
    /// The same in half of the memory, 32 bits each: half of the atomic operations' bytes, which are what takes the time. `sums_fit`
    /// says whether they were enough.
    Packed,
}

impl Sums {
    fn channels(self) -> usize {
        match self {
            Self::OfKinds(kinds) => kinds.max(1),
            Self::Wide => 4,
            Self::Packed => 2,
        }
    }

    /// `Canvas::sums`, and the kernel's index.
    fn number(self) -> usize {
        match self {
            Self::OfKinds(_) => 0,
            Self::Wide => 1,
            Self::Packed => 2,
        }
    }
}

/// The largest weight of which 255 fit into 32 bits.
const PACKED_MAX: u64 = u32::MAX as u64 / 255;

/// Whether packed sums are right. `found.weight` is what the pixels' weights add up to: all that was drawn, a one for each sum of blues
/// that ran over into a weight, less 2^32 for each weight that ran over. The former are fewer than 2^32 where all weights are below 2^56,
/// so with both sums the same nothing ran over into weights and out of them; and 255 of the largest weight bound the colors' sums.
fn fit(found: &PictureBits) -> bool {
    found.drawn == found.weight && found.drawn < 1 << 56 && found.most <= PACKED_MAX
}

#[derive(Debug)]
struct Kernels {
    extent: Function,
    lines: Function,
    /// By `Sums::number`.
    points: [Function; 3],
    weight: Function,
    develop: Function,
}

/// What is drawn, pixel by pixel, and the memory for it.
#[derive(Debug)]
pub struct Drawing {
    kernels: Kernels,
    found: Buffer<PictureBits>,
    lines: DeviceArray<u64>,
    front: DeviceArray<u64>,
    behind: DeviceArray<u64>,
    picture: DeviceArray<u8>,
    width: usize,
    height: usize,
    sums: Sums,
    /// The last picture with colors had so many points in a pixel that packed sums could be too small for the next.
    crowded: bool,
    /// `weight` has run.
    weighed: bool,
}

fn sweep(n: usize, most: usize) -> [u32; 3] {
    [n.div_ceil(BLOCK as usize).min(most) as u32, 1, 1]
}

/// The inverse of `ordered` in kernels/picture.cu.
fn number(bits: u64) -> f64 {
    match bits {
        0 => f64::NEG_INFINITY,
        _ if bits >> 63 == 1 => f64::from_bits(bits & !(1 << 63)),
        _ => f64::from_bits(!bits),
    }
}

impl Drawing {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let find = |name: &str| context.function("picture", &format!("picture_{name}"));
        let kernels = Kernels {
            extent: find("extent")?,
            lines: find("lines")?,
            points: [find("points_kinds")?, find("points_wide")?, find("points_packed")?],
            weight: find("weight")?,
            develop: find("develop")?,
        };
        let mut found = Buffer::new(context);
        found.reserve(1)?;
        let cells = || DeviceArray::new(context);
        let (lines, front, behind, picture) = (cells(), cells(), cells(), DeviceArray::new(context));
        let (sums, crowded, weighed) = (Sums::Wide, false, false);
        Ok(Self { kernels, found, lines, front, behind, picture, width: 0, height: 0, sums, crowded, weighed })
    }

    pub fn bytes(&self) -> u64 {
        self.lines.bytes() + self.front.bytes() + self.behind.bytes() + self.picture.bytes()
    }

    /// Forgets what was found.
    pub fn look_anew(&mut self, stream: &Stream) -> Result<()> {
        self.found.clear(1, stream)
    }

    /// Looks at the bounds of a layer's points, and at its speeds where it shows them. `slopes`: tangents of half angles.
    pub fn look(&self, layer: &Layer<'_>, view: ViewArg, [a, b]: [f64; 2], stream: &Stream) -> Result<()> {
        let (of, found) = (layer.argument(), self.found.address());
        let grid = sweep(layer.n.max(of.n_points as usize), SUMMED);
        // SAFETY: the kernel's arguments; lengths as checked; numbers of points were checked when they were taken over.
        unsafe { launch!(stream, self.kernels.extent, grid, BLOCK, 0; of, view, a, b, found) }
    }

    /// Waits; what was found.
    pub fn found(&self, stream: &Stream) -> Result<Extent> {
        let mut bits = PictureBits::default();
        self.found.download(std::slice::from_mut(&mut bits), stream)?;
        Ok(Extent { bounds: bits.bounds.map(number), speed: bits.speed.map(number) })
    }

    /// Sums for points of many colors.
    pub fn of_colors(&self) -> Sums {
        if self.crowded { Sums::Wide } else { Sums::Packed }
    }

    /// An empty canvas.
    pub fn begin(&mut self, [width, height]: [usize; 2], lines: bool, sums: Sums, stream: &Stream) -> Result<()> {
        let (n, channels) = (width * height, sums.channels());
        (self.width, self.height, self.sums, self.weighed) = (width, height, sums, false);
        self.lines.resize(if lines { n } else { 0 })?;
        self.front.resize(channels * n)?;
        self.behind.resize(if lines { channels * n } else { 0 })?;
        self.picture.resize(4 * n)?;
        for cells in [&self.lines, &self.front, &self.behind] {
            clear_at(cells.span().address(), 8 * cells.span().len(), stream)?;
        }
        Ok(())
    }

    fn canvas(&self) -> CanvasArg {
        let address = |cells: &DeviceArray<u64>| if cells.span().is_empty() { 0 } else { cells.span().address() };
        CanvasArg {
            lines: address(&self.lines),
            front: address(&self.front),
            behind: address(&self.behind),
            width: self.width as i64,
            height: self.height as i64,
            channels: self.sums.channels() as i64,
            sums: self.sums.number() as i64,
        }
    }

    /// Draws segments; before all points.
    pub fn lines(&mut self, layer: &Layer<'_>, view: ViewArg, style: StyleArg, stream: &Stream) -> Result<()> {
        let (of, canvas) = (layer.argument(), self.canvas());
        assert!(of.ends != 0 && canvas.lines != 0);
        let grid = sweep(WARP * layer.n, SWEEP);
        // SAFETY: as in `look`; the canvas has its pixels.
        unsafe { launch!(stream, self.kernels.lines, grid, BLOCK, 0; of, view, style, canvas) }
    }

    /// Draws points. What `found` has of weights is from `look_anew` on.
    pub fn points(&mut self, layer: &Layer<'_>, view: ViewArg, style: StyleArg, stream: &Stream) -> Result<()> {
        let (of, canvas, found) = (layer.argument(), self.canvas(), self.found.address());
        assert!(of.ends == 0 && (!matches!(self.sums, Sums::OfKinds(_)) || layer.channel < self.sums.channels()));
        let (kernel, grid) = (self.kernels.points[self.sums.number()], sweep(layer.n, SWEEP));
        // SAFETY: as in `lines`; `found` is one.
        unsafe { launch!(stream, kernel, grid, BLOCK, 0; of, view, style, canvas, found) }
    }

    fn weigh(&mut self, style: StyleArg, stream: &Stream) -> Result<()> {
        let (canvas, found, n) = (self.canvas(), self.found.address(), self.width * self.height);
        self.weighed = true;
        // SAFETY: the kernel's arguments; `found` is one.
        unsafe { launch!(stream, self.kernels.weight, sweep(n, SUMMED), BLOCK, 0; style, canvas, found) }
    }

    /// Waits, where points have many colors; whether sums were wide enough for all points that were drawn. If not, `of_colors` are other
    /// ones for the next attempt.
    pub fn sums_fit(&mut self, style: StyleArg, stream: &Stream) -> Result<bool> {
        if matches!(self.sums, Sums::OfKinds(_)) {
            return Ok(true);
        }
        self.weigh(style, stream)?;
        let mut bits = PictureBits::default();
        self.found.download(std::slice::from_mut(&mut bits), stream)?;
        let right = self.sums == Sums::Wide || fit(&bits);
        self.crowded = !right || bits.most > PACKED_MAX / 2;
        Ok(right)
    }

    /// Makes colors of what was drawn: rows from the top, four bytes a pixel.
    pub fn develop(&mut self, view: ViewArg, style: StyleArg, stream: &Stream) -> Result<Span<'_, u8>> {
        if style.opacity <= 0.0 && !self.weighed {
            self.weigh(style, stream)?;
        }
        let (canvas, found, n) = (self.canvas(), self.found.address(), self.width * self.height);
        let picture = self.picture.span().address();
        // SAFETY: as above; the picture has four bytes for each pixel.
        unsafe {
            launch!(stream, self.kernels.develop, sweep(n, SWEEP), BLOCK, 0; view, style, canvas, found, picture)?;
        }
        Ok(self.picture.span())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_sums_that_ran_over_are_seen() {
        let of = |drawn, weight, most| fit(&PictureBits { drawn, weight, most, ..Default::default() });
        assert!(of(0, 0, 0) && of(5 << 24, 5 << 24, 1 << 24));
        // A pixel whose colors ran over, or may have.
        assert!(!of(5 << 24, 5 << 24, PACKED_MAX + 1));
        // One whose weight ran over and is small again; one more, of blues.
        assert!(!of(5 << 32, 4 << 32, 9) && !of(1 << 32, 255, 255));
        assert!(!of(1 << 56, 1 << 56, 9));
    }
}
