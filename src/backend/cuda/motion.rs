//! The kernels of kernels/flow.cu as functions that cannot be called wrongly: what a step of a flow does to arrays in device memory.
//!
//! Enters: spans, whose lengths are checked against each other. Leaves: work on one stream; `found` waits for it. Vectors hold all
//! integrated quantities of a flow; which, is the flow's business.

use super::args::{MediumArg, StepBits};
use super::array::{Span, SpanMut};
use super::context::{Context, Function};
use super::memory::{Buffer, Plain, clear_at};
use super::staging::Staging;
use super::stream::{Event, Stream, launch};
use crate::error::Result;
use std::sync::Arc;

const BLOCK: u32 = 256;
/// Blocks of a sweep in which threads take many numbers.
const SWEEP: usize = 2048;

// SAFETY: five numbers of 64 bits.
unsafe impl Plain for StepBits {}

/// What was found since `look_anew`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepSummary {
    pub displacement: f64,
    /// Of the longest segment.
    pub length: f64,
    /// A number was none, or infinite.
    pub infinite: bool,
    /// A number was none.
    pub gaps: bool,
    /// Index of the first number that was not finite.
    pub first: Option<usize>,
}

/// Parcels in device memory.
#[derive(Debug, Clone, Copy)]
pub struct Parcels<'a> {
    pub position: Span<'a, f64>,
    pub velocity: Span<'a, f64>,
    pub diameter: Span<'a, f64>,
    pub density: Span<'a, f64>,
}

/// Filament segments at one instant.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// Numbers of two points, counted from 0.
    pub ends: Span<'a, i32>,
    pub points: Span<'a, f64>,
}

#[derive(Debug)]
struct Kernels {
    combine: Function,
    plus: Function,
    plus_both: Function,
    fill_gaps: Function,
    fill: Function,
    look: Function,
    displacement: Function,
    add_stream: Function,
    particle_cores: Function,
    stretching: Function,
    volumes: Function,
    growth: Function,
    cores: Function,
    dust: Function,
}

#[derive(Debug)]
pub struct Motion {
    stream: Stream,
    kernels: Kernels,
    found: Buffer<StepBits>,
    staging: Staging,
}

fn rows(n: usize) -> [u32; 3] {
    [n.div_ceil(BLOCK as usize) as u32, 1, 1]
}

fn sweep(n: usize) -> [u32; 3] {
    [n.div_ceil(BLOCK as usize).min(SWEEP) as u32, 1, 1]
}

impl Kernels {
    fn find(context: &Context) -> Result<Self> {
        let find = |name: &str| context.function("flow", &format!("flow_{name}"));
        Ok(Self {
            combine: find("combine")?,
            plus: find("plus")?,
            plus_both: find("plus_both")?,
            fill_gaps: find("fill_gaps")?,
            fill: find("fill")?,
            look: find("look")?,
            displacement: find("displacement")?,
            add_stream: find("add_stream")?,
            particle_cores: find("particle_cores")?,
            stretching: find("stretching")?,
            volumes: find("volumes")?,
            growth: find("growth")?,
            cores: find("cores")?,
            dust: find("dust")?,
        })
    }
}

impl Motion {
    pub fn new(context: &Arc<Context>, pool: Arc<rayon::ThreadPool>) -> Result<Self> {
        let mut found = Buffer::new(context);
        found.reserve(1)?;
        let (stream, kernels) = (Stream::new(context)?, Kernels::find(context)?);
        Ok(Self { stream, kernels, found, staging: Staging::new(context, pool) })
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Later work begins after what a caller has queued on the default stream by now.
    pub fn after_default_stream(&self) -> Result<()> {
        let (context, event) = (self.stream.context(), Event::new(self.stream.context())?);
        event.record(&Stream::borrowed(context, std::ptr::null_mut()))?;
        self.stream.wait(&event)
    }

    /// Page-locked memory that copies go through.
    pub fn host_bytes(&self) -> u64 {
        self.staging.bytes()
    }

    /// Starts a copy from host memory, which was read when this returns.
    pub fn upload<T: Plain>(&mut self, to: SpanMut<'_, T>, values: &[T]) -> Result<()> {
        assert_eq!(to.len(), values.len());
        if values.is_empty() { Ok(()) } else { self.staging.upload(to.address(), values, &self.stream) }
    }

    /// Copies to host memory and waits.
    pub fn download<T: Plain + std::ops::AddAssign + Sync>(&mut self, from: Span<'_, T>, to: &mut [T]) -> Result<()> {
        assert_eq!(from.len(), to.len());
        if to.is_empty() { Ok(()) } else { self.staging.download(from.address(), to, false, &self.stream) }
    }

    pub fn clear<T>(&self, to: SpanMut<'_, T>) -> Result<()> {
        clear_at(to.address(), to.len() * size_of::<T>(), &self.stream)
    }

    /// y = a y + b x.
    pub fn combine(&self, y: SpanMut<'_, f64>, a: f64, b: f64, x: Span<'_, f64>) -> Result<()> {
        assert_eq!(y.len(), x.len());
        let (to, from, n) = (y.address(), x.address(), y.len() as i64);
        // SAFETY: the kernel's arguments; lengths as checked.
        unsafe { launch!(self.stream, self.kernels.combine, sweep(y.len()), BLOCK, 0; to, a, b, from, n) }
    }

    /// sum = y + b x.
    pub fn plus(&self, sum: SpanMut<'_, f64>, y: Span<'_, f64>, b: f64, x: Span<'_, f64>) -> Result<()> {
        assert!(sum.len() == y.len() && y.len() == x.len());
        let (to, y, x, n) = (sum.address(), y.address(), x.address(), y.len() as i64);
        // SAFETY: as in `combine`.
        unsafe { launch!(self.stream, self.kernels.plus, sweep(sum.len()), BLOCK, 0; to, y, b, x, n) }
    }

    /// sum = y + a f + b g.
    pub fn plus_both(
        &self,
        sum: SpanMut<'_, f64>,
        y: Span<'_, f64>,
        [a, b]: [f64; 2],
        [f, g]: [Span<'_, f64>; 2],
    ) -> Result<()> {
        assert!(sum.len() == y.len() && y.len() == f.len() && y.len() == g.len());
        let (to, y, f, g, n) = (sum.address(), y.address(), f.address(), g.address(), sum.len() as i64);
        // SAFETY: as in `combine`.
        unsafe { launch!(self.stream, self.kernels.plus_both, sweep(sum.len()), BLOCK, 0; to, y, a, f, b, g, n) }
    }

    /// y = x where y is no number.
    pub fn fill_gaps(&self, y: SpanMut<'_, f64>, x: Span<'_, f64>) -> Result<()> {
        assert_eq!(y.len(), x.len());
        let (to, x, n) = (y.address(), x.address(), y.len() as i64);
        // SAFETY: as in `combine`.
        unsafe { launch!(self.stream, self.kernels.fill_gaps, sweep(y.len()), BLOCK, 0; to, x, n) }
    }

    pub fn fill(&self, y: SpanMut<'_, f64>, value: f64) -> Result<()> {
        let (to, n) = (y.address(), y.len() as i64);
        // SAFETY: as in `combine`.
        unsafe { launch!(self.stream, self.kernels.fill, sweep(y.len()), BLOCK, 0; to, value, n) }
    }

    /// Forgets what was found.
    pub fn look_anew(&mut self) -> Result<()> {
        self.found.clear(1, &self.stream)
    }

    /// Notes whether numbers are none or infinite.
    pub fn look(&self, y: Span<'_, f64>) -> Result<()> {
        let (from, n, found) = (y.address(), y.len() as i64, self.found.address());
        // SAFETY: the kernel's arguments; `found` is one.
        unsafe { launch!(self.stream, self.kernels.look, sweep(y.len()), BLOCK, 0; from, n, found) }
    }

    /// Notes the longest way of points.
    pub fn displacement(&self, before: Span<'_, f64>, after: Span<'_, f64>) -> Result<()> {
        assert_eq!(before.len(), after.len());
        let (n, found) = ((before.len() / 3) as i64, self.found.address());
        let (before, after, grid) = (before.address(), after.address(), sweep(n as usize));
        // SAFETY: as in `look`.
        unsafe { launch!(self.stream, self.kernels.displacement, grid, BLOCK, 0; before, after, n, found) }
    }

    /// Waits; what was found.
    pub fn found(&self) -> Result<StepSummary> {
        let mut bits = StepBits::default();
        self.found.download(std::slice::from_mut(&mut bits), &self.stream)?;
        Ok(StepSummary {
            displacement: f64::from_bits(bits.displacement),
            length: f64::from_bits(bits.length),
            infinite: bits.infinite != 0,
            gaps: bits.gaps != 0,
            first: (bits.first != 0).then_some(!bits.first as usize),
        })
    }

    /// Adds one velocity to all.
    pub fn add_stream(&self, u: SpanMut<'_, f64>, [x, y, z]: [f64; 3]) -> Result<()> {
        let (to, n) = (u.address(), u.len() / 3);
        let (grid, n) = (rows(n), n as i64);
        // SAFETY: as in `combine`.
        unsafe { launch!(self.stream, self.kernels.add_stream, grid, BLOCK, 0; to, x, y, z, n) }
    }

    /// Core radii from their squares.
    pub fn particle_cores(&self, square: Span<'_, f64>, core: SpanMut<'_, f64>) -> Result<()> {
        assert_eq!(square.len(), core.len());
        let (from, to, grid, n) = (square.address(), core.address(), rows(core.len()), core.len() as i64);
        // SAFETY: as in `combine`.
        unsafe { launch!(self.stream, self.kernels.particle_cores, grid, BLOCK, 0; from, to, n) }
    }

    /// Rates of strengths: (classical J + transpose Jᵀ) a. `gradient` begins with those of the particles.
    pub fn stretching(
        &self,
        [classical, transpose]: [f64; 2],
        strength: Span<'_, f64>,
        gradient: Span<'_, f64>,
        rate: SpanMut<'_, f64>,
    ) -> Result<()> {
        let n = strength.len() / 3;
        assert!(rate.len() == 3 * n && gradient.len() >= 9 * n);
        let (a, g, to, grid, n) = (strength.address(), gradient.address(), rate.address(), rows(n), n as i64);
        // SAFETY: as in `combine`.
        unsafe { launch!(self.stream, self.kernels.stretching, grid, BLOCK, 0; classical, transpose, a, g, to, n) }
    }

    /// c² l of segments.
    pub fn volumes(&self, lines: Lines<'_>, core: Span<'_, f64>, volume: SpanMut<'_, f64>) -> Result<()> {
        let n = volume.len();
        assert!(lines.ends.len() >= 2 * n && core.len() >= n);
        let (ends, core, points, to) = (lines.ends.address(), core.address(), lines.points.address(), volume.address());
        let (grid, n) = (rows(n), n as i64);
        // SAFETY: as in `combine`; the numbers of points were checked when they were taken over.
        unsafe { launch!(self.stream, self.kernels.volumes, grid, BLOCK, 0; ends, core, points, to, n) }
    }

    /// Rates of c² l by Squire's law: 4 lamb (viscosity + squire |circulation|) l.
    pub fn growth(
        &self,
        lines: Lines<'_>,
        circulation: Span<'_, f64>,
        [lamb, viscosity, squire]: [f64; 3],
        rate: SpanMut<'_, f64>,
    ) -> Result<()> {
        let n = rate.len();
        assert!(lines.ends.len() >= 2 * n && circulation.len() >= n);
        let (ends, points, strength) = (lines.ends.address(), lines.points.address(), circulation.address());
        let (to, grid, n) = (rate.address(), rows(n), n as i64);
        // SAFETY: as in `volumes`.
        unsafe {
            launch!(self.stream, self.kernels.growth, grid, BLOCK, 0; ends, strength, points, lamb, viscosity, squire, to, n)
        }
    }

    /// Core radii of segments at a stage, which began with `core` on `lines` and `volume0`; `note`: also the longest segment.
    pub fn cores(
        &self,
        lines: Lines<'_>,
        core: Span<'_, f64>,
        volume0: Span<'_, f64>,
        points: Span<'_, f64>,
        volume: Span<'_, f64>,
        to: SpanMut<'_, f64>,
        note: bool,
    ) -> Result<()> {
        let n = to.len();
        assert!(lines.ends.len() >= 2 * n && core.len() >= n && volume0.len() == n && volume.len() == n);
        assert_eq!(points.len(), lines.points.len());
        let (ends, core, points0, q0) =
            (lines.ends.address(), core.address(), lines.points.address(), volume0.address());
        let (points, q, to, grid, n) = (points.address(), volume.address(), to.address(), rows(n), n as i64);
        let found = if note { self.found.address() } else { 0 };
        // SAFETY: as in `volumes`.
        unsafe {
            launch!(self.stream, self.kernels.cores, grid, BLOCK, 0; ends, core, points0, q0, points, q, to, n, found)
        }
    }

    /// Positions of dust after a time h of a step in which the fluid around it moved by `drift`.
    pub fn dust_positions(
        &self,
        dust: Parcels<'_>,
        drift: Span<'_, f64>,
        h: f64,
        medium: MediumArg,
        to: SpanMut<'_, f64>,
    ) -> Result<()> {
        self.dust(dust, drift, h, medium, to, None)
    }

    /// Dust at the end of a step of dt: positions and velocities after contact with the ground. Notes what is not finite and the
    /// longest way.
    pub fn dust_lands(
        &self,
        dust: Parcels<'_>,
        drift: Span<'_, f64>,
        dt: f64,
        medium: MediumArg,
        to: [SpanMut<'_, f64>; 2],
    ) -> Result<()> {
        let [position, velocity] = to;
        self.dust(dust, drift, dt, medium, position, Some(velocity))
    }

    fn dust(
        &self,
        dust: Parcels<'_>,
        drift: Span<'_, f64>,
        h: f64,
        medium: MediumArg,
        position: SpanMut<'_, f64>,
        velocity: Option<SpanMut<'_, f64>>,
    ) -> Result<()> {
        let n = dust.diameter.len();
        let vectors = [dust.position.len(), dust.velocity.len(), drift.len(), position.len()];
        assert!(vectors == [3 * n; 4] && dust.density.len() == n);
        assert!(velocity.as_ref().is_none_or(|v| v.len() == 3 * n));
        let (x, v, d, density) =
            (dust.position.address(), dust.velocity.address(), dust.diameter.address(), dust.density.address());
        let (drift, to, to_v) = (drift.address(), position.address(), velocity.map_or(0, |v| v.address()));
        let (grid, n, found) = (rows(n), n as i64, self.found.address());
        // SAFETY: as in `look`.
        unsafe {
            launch!(self.stream, self.kernels.dust, grid, BLOCK, 0; x, v, d, density, drift, h, medium, to, to_v, n, found)
        }
    }
}
