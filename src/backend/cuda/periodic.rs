//! Boxes with three equal periods on the device: inputs in the box, and the field of all images that are not near.
//!
//! Enters: inputs in device memory. Leaves: inputs whose positions are in the box around zero, with `Far`: which images are near
//! (summed as sources, by the direct sum or the tree), and the expansions of all others about the middle of the box, from the
//! multipoles of all sources there by the lattice operator (`math::lattice`). With them comes the uniform background that
//! balances a net strength. Two words, and the multipoles, cross to the host and back before a sum begins.

use super::args::RealsArg;
use super::context::Context;
use super::direct::Output;
use super::far_rows::{Factors, MOST_ORDER};
use super::fmm::recipe;
use super::gather::DeviceInputs;
use super::memory::{Buffer, copy_out};
use super::stream::{Stream, launch};
use crate::backend::{Field, periods};
use crate::error::{Error, Result, WFMM_ERR_UNSUPPORTED};
use crate::math::lattice::Shape;
use crate::math::regularization::{core_reach, is_for_particles, offset_shortfall, shortfall};
use crate::memory;
use crate::options::{PlanOptions, Regularization};
use std::sync::Arc;

/// Positions and periods are multiples of the power of two above the period times this.
const STEP: f64 = 1.0 / (1u64 << 49) as f64;
/// Near images, in periods from the box: those of the tree's cells; what the direct sum takes where cores or segments are larger.
const NEAR: [f64; 7] = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
/// Largest ratio of the radii of two boxes to the distance of the nearest image that is not near.
const WIDEST: f64 = 0.83;
/// Effective radii of sources and of targets that fill a box, together, in periods. Random ones, whose near field is most of the whole, have
/// errors of 3e-8 at order 17 and 1e-10 at 24 beside images √5 periods away; smooth ones need four degrees more.
const EFFECTIVE_RADII: f64 = 1.01;
/// Errors in tolerances of the expansions of a check, of those of a field, and the largest that a box may have.
const SHARES: [f64; 3] = [0.02, 0.2, 0.1];
/// Distance in periods up to which cores of images are looked at.
const CORES_LOOKED_AT: f64 = periods::CORES_LOOKED_AT[2];
/// What cores of segments far away add to the mean square of a field, in (c/r)².
const LINE: f64 = 0.15;
/// Blocks of the multipoles, threads of a block.
const MOMENT_BLOCKS: usize = 4;
const MOMENT_THREADS: usize = 128;
pub const BLOCK: usize = 256;

/// What sums need to know of a periodic box.
#[derive(Debug, Clone, Copy)]
pub struct Far {
    /// Of the box around zero, a multiple of the step.
    pub period: f64,
    /// Near images, in periods.
    pub near: f64,
    /// Rows of kernels/periodic.cuh: address, degrees, degrees that are enough for the tolerance.
    pub rows: u64,
    pub order: u32,
    pub used: u32,
}

impl Far {
    /// Whether the near images are those of the tree's cells.
    pub fn has_tree(&self) -> bool {
        self.near <= NEAR[0]
    }
}

/// Whether a domain is one that this back end computes.
pub fn takes(period: [f64; 3]) -> bool {
    period[0] > 0.0 && period == [period[0]; 3]
}

/// Order of expansions of the whole box that leaves such an error, for a `ratio` of the effective radii of sources and targets to
/// the distance of the nearest image that is not near.
fn order_for(error: f64, ratio: f64) -> f64 {
    error.log10() / ratio.log10() - 1.0
}

/// The same as a number of degrees that there are.
fn degrees_for(error: f64, ratio: f64) -> usize {
    (order_for(error, ratio).ceil() as usize).clamp(8, MOST_ORDER)
}

/// Near images, in periods, the ratio of `order_for`, and the longest segment, in periods.
#[derive(Debug, Clone, Copy)]
struct Reach {
    near: f64,
    ratio: f64,
    longest: f64,
}

impl Reach {
    /// With segments up to `longest` periods.
    fn of(near: f64, longest: f64) -> Self {
        let shape = Shape { period: [1.0; 3], near };
        Self { near, ratio: (EFFECTIVE_RADII + 0.5 * longest) / shape.nearest_left_out(), longest }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub struct Periodic {
    context: Arc<Context>,
    /// Positions of segments, particles, charges and targets.
    positions: [Buffer<f64>; 4],
    ends: Buffer<i32>,
    extremes: Buffer<u64>,
    gauss: Buffer<f64>,
    steps: Buffer<f64>,
    partial: Buffer<f64>,
    moments: Buffer<f64>,
    rows: Buffer<f64>,
    factors: Option<Factors>,
}

/// Sources of one kind: kernel, where they are and how strong, nodes of each.
struct Strong {
    kernel: &'static str,
    n: usize,
    position: u64,
    strength: RealsArg,
    nodes: usize,
}

pub fn grid(n: usize) -> [u32; 3] {
    [n.div_ceil(BLOCK).max(1) as u32, 1, 1]
}

impl Periodic {
    pub fn new(context: &Arc<Context>) -> Self {
        let new = || Buffer::new(context);
        Self {
            context: context.clone(),
            positions: [new(), new(), new(), new()],
            ends: Buffer::new(context),
            extremes: Buffer::new(context),
            gauss: new(),
            steps: new(),
            partial: new(),
            moments: new(),
            rows: new(),
            factors: None,
        }
    }

    pub fn bytes(&self) -> u64 {
        let numbers = [&self.gauss, &self.steps, &self.partial, &self.moments, &self.rows];
        let positions = self.positions.iter().chain(numbers).map(Buffer::bytes).sum::<u64>();
        positions + self.ends.bytes() + self.extremes.bytes()
    }

    /// The inputs of a field in the box, with its images.
    pub fn enter(
        &mut self,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        field: Field,
        is_f64: bool,
        stream: &Stream,
    ) -> Result<DeviceInputs> {
        let Some([given, ..]) = options.period else { return Ok(*inputs) };
        let step = STEP * given.log2().floor().exp2() * 2.0;
        let period = (given / step).round() * step;
        let mut inside = DeviceInputs { step, ..*inputs };
        self.extremes.clear(3, stream)?;
        self.bring_in(&mut inside, field, [period, step, given - period], stream)?;
        let tolerance = recipe::tolerance(options, is_f64);
        let Reach { near, ratio, longest } = self.reach(&inside, options, field, tolerance, period, stream)?;
        let [order, used, _] = SHARES.map(|share| degrees_for(share * tolerance, ratio));
        let sources = self.sources(&inside, field, nodes_for(longest, order, tolerance), stream)?;
        let moments = self.multipoles(&sources, order, period, stream)?;
        let shape = Shape { period: [period; 3], near: near * period };
        let charges = matches!(field, Field::Potential { .. });
        let gradient = matches!(field, Field::Velocity { gradient: true } | Field::Potential { gradient: true });
        let factors = self.factors.as_ref().expect("made by `multipoles`");
        let rows = factors.rows(shape.canonical(), &moments, charges, gradient);
        self.rows.upload(&rows, stream)?;
        inside.far = Some(Far { period, near, rows: self.rows.address(), order: order as u32, used: used as u32 });
        Ok(inside)
    }

    /// Positions of what the field is of, in the box; nothing of the other kinds.
    fn bring_in(&mut self, inside: &mut DeviceInputs, field: Field, box_of: [f64; 3], stream: &Stream) -> Result<()> {
        if let Field::Velocity { .. } = field {
            inside.charges = Default::default();
            self.segments(inside, box_of, stream)?;
            let p = &mut inside.particles;
            p.position = self.points(1, p.position, p.n, box_of, stream)?;
            self.note_core(p.core, p.default_core, p.n, 2, stream)?;
        } else {
            (inside.segments, inside.particles) = (Default::default(), Default::default());
            inside.charges.position = self.points(2, inside.charges.position, inside.charges.n, box_of, stream)?;
        }
        inside.targets.position = self.points(3, inside.targets.position, inside.targets.n, box_of, stream)?;
        Ok(())
    }

    fn points(
        &mut self,
        slot: usize,
        from: RealsArg,
        n: usize,
        [period, step, rounding]: [f64; 3],
        stream: &Stream,
    ) -> Result<RealsArg> {
        if n == 0 {
            return Ok(from);
        }
        self.positions[slot].reserve(3 * n)?;
        let to = self.positions[slot].address();
        let kernel = self.context.function("periodic", "periodic_positions")?;
        // SAFETY: arguments as in periodic.cu; the caller's array has n rows, as he said, and so has the room.
        unsafe {
            launch!(stream, kernel, grid(3 * n), BLOCK as u32, 0; from, to, 3 * n as i64, period, step, rounding)?
        };
        Ok(RealsArg { address: to, is_f64: 1 })
    }

    fn segments(
        &mut self,
        inside: &mut DeviceInputs,
        [period, step, rounding]: [f64; 3],
        stream: &Stream,
    ) -> Result<()> {
        let s = &mut inside.segments;
        if s.n == 0 {
            return Ok(());
        }
        self.positions[0].reserve(6 * s.n)?;
        self.ends.reserve(2 * s.n)?;
        let kernel = self.context.function("periodic", "periodic_segments")?;
        let (to, ends, longest) = (self.positions[0].address(), self.ends.address(), self.extremes.address());
        // SAFETY: arguments as in periodic.cu; the caller's arrays have n segments, as he said, and so has the room.
        unsafe {
            launch!(stream, kernel, grid(s.n), BLOCK as u32, 0; s.points, s.connectivity, s.ld as i64, s.index_base, to, ends, s.n as i64, period, step, rounding, longest)?
        };
        s.points = RealsArg { address: to, is_f64: 1 };
        (s.connectivity, s.ld, s.index_base) = (ends, 2, 0);
        let (core, default, n) = (s.core, s.default_core, s.n);
        self.note_core(core, default, n, 1, stream)
    }

    /// The largest core of a kind goes to index `at` of the extremes.
    fn note_core(&mut self, core: RealsArg, default: f64, n: usize, at: usize, stream: &Stream) -> Result<()> {
        let to = self.extremes.at(at);
        if n == 0 || core.address == 0 {
            let bits = if n == 0 { 0 } else { default.max(0.0).to_bits() };
            return super::memory::copy_in(to, &[bits], stream);
        }
        let kernel = self.context.function("periodic", "periodic_largest")?;
        // SAFETY: arguments as in periodic.cu; the caller's array has n numbers, as he said.
        unsafe { launch!(stream, kernel, [64, 1, 1], BLOCK as u32, 0; core, n as i64, to) }
    }

    /// How far near images go, in periods, or why there are too many of them. Waits.
    fn reach(
        &self,
        inside: &DeviceInputs,
        options: &PlanOptions,
        field: Field,
        tolerance: f64,
        period: f64,
        stream: &Stream,
    ) -> Result<Reach> {
        let mut bits = [0u64; 3];
        if matches!(field, Field::Velocity { .. }) {
            self.extremes.download(&mut bits, stream)?;
        }
        let [longest, of_segments, of_particles] = bits.map(|b| f64::from_bits(b) / period);
        if options.particle_regularization == Regularization::GaussErf && inside.particles.n > 0 {
            periods::check_gaussians(of_particles, [1.0; 3], period)?;
        }
        let mut reach = 0.0;
        for (reg, n, core) in [
            (options.segment_regularization, inside.segments.n, of_segments),
            (options.particle_regularization, inside.particles.n, of_particles),
        ] {
            if n == 0 || reg == Regularization::None || core == 0.0 {
                continue;
            }
            let missing = core_shortfall(reg, core, longest);
            if missing > tolerance {
                return Err(periods::too_wide(core * period, CORES_LOOKED_AT * period, missing, tolerance));
            }
            let farther = if is_for_particles(reg) { 1.0 } else { recipe::range_factor(n) };
            reach = (farther * core_extent(reg, core, longest, tolerance)).min(CORES_LOOKED_AT).max(reach);
        }
        let needed = reach + 0.5 * longest;
        let serves = |reach: &Reach| {
            let shape = Shape { period: [1.0; 3], near: reach.near };
            let converges = 3f64.sqrt() + 0.5 * longest <= WIDEST * shape.nearest_left_out();
            let is_reached = order_for(SHARES[2] * tolerance, reach.ratio) <= MOST_ORDER as f64;
            separation(reach.near) >= needed && converges && is_reached
        };
        let mut reaches = NEAR.into_iter().map(|near| Reach::of(near, longest));
        reaches.find(serves).ok_or_else(|| too_long(longest * period, period))
    }

    /// What multipoles are of, segments at so many nodes each, which go to the device.
    fn sources(&mut self, inside: &DeviceInputs, field: Field, nodes: usize, stream: &Stream) -> Result<Vec<Strong>> {
        let mut sources = vec![];
        if let Field::Potential { .. } = field {
            let c = &inside.charges;
            let (position, strength) = (c.position.address, c.charge);
            sources.push(Strong { kernel: "charges", n: c.n, position, strength, nodes: 1 });
        } else {
            let (s, p) = (&inside.segments, &inside.particles);
            self.gauss.upload(&recipe::gauss_legendre(nodes), stream)?;
            let position = s.points.address;
            sources.push(Strong { kernel: "segments", n: s.n, position, strength: s.circulation, nodes });
            let (position, strength) = (p.position.address, p.strength);
            sources.push(Strong { kernel: "particles", n: p.n, position, strength, nodes: 1 });
        }
        sources.retain(|s| s.n > 0);
        Ok(sources)
    }

    /// Multipoles of all sources about zero, in units of the period; waits.
    fn multipoles(&mut self, sources: &[Strong], order: usize, period: f64, stream: &Stream) -> Result<Vec<f64>> {
        if self.factors.as_ref().is_none_or(|f| f.order != order) {
            let factors = Factors::new(order);
            self.steps.upload(&factors.steps, stream)?;
            self.factors = Some(factors);
        }
        let components = if sources.iter().any(|s| s.kernel == "charges") { 1 } else { 3 };
        let numbers = order * (order + 1) * components + 1;
        let most = MOMENT_BLOCKS * self.context.info.multiprocessors.max(1) as usize;
        let blocks = |s: &Strong| (s.n * s.nodes).div_ceil(MOMENT_THREADS).clamp(1, most);
        let rows: usize = sources.iter().map(blocks).sum();
        self.partial.reserve(rows * numbers)?;
        self.moments.reserve(numbers)?;
        let (mut row, per_period) = (0, 1.0 / period);
        let (gauss, steps) = (self.gauss.address(), self.steps.address());
        for s in sources {
            let kernel = self.context.function("periodic", &format!("periodic_moments_{}", s.kernel))?;
            let (to, grid) = (self.partial.at(row * numbers), [blocks(s) as u32, 1, 1]);
            // SAFETY: arguments as in periodic.cu; `partial` has a row for each block.
            unsafe {
                launch!(stream, kernel, grid, MOMENT_THREADS as u32, 0; s.position, s.strength, gauss, s.nodes as i32, s.n as i64, order as i32, per_period, steps, to)?
            };
            row += blocks(s);
        }
        let add = self.context.function("periodic", "periodic_add_rows")?;
        let (from, to) = (self.partial.address(), self.moments.address());
        // SAFETY: as above.
        unsafe { launch!(stream, add, grid(numbers), BLOCK as u32, 0; from, rows as i32, numbers as i32, to)? };
        let mut moments = memory::filled(0.0, numbers);
        copy_out(to, &mut moments, stream)?;
        stream.synchronize()?;
        Ok(moments)
    }
}

/// Adds what images that are not near do to a field that has been written.
pub fn add_far(
    inputs: &DeviceInputs,
    far: Far,
    options: &PlanOptions,
    output: Output,
    field: Field,
    stream: &Stream,
) -> Result<()> {
    let (n, position) = (inputs.targets.n, inputs.targets.position.address);
    if n == 0 {
        return Ok(());
    }
    let kernel = stream.context().function("periodic", &format!("periodic_add_{}", field_name(field)))?;
    let (per_period, factor, order) = (1.0 / far.period, options.normalization, far.order as i32);
    // SAFETY: arguments as in periodic.cu; positions were brought in, and the outputs have n rows, as the caller said.
    unsafe {
        launch!(stream, kernel, [n.div_ceil(128) as u32, 1, 1], 128, 0; far.rows, order, position, n as i64, per_period, factor, output.main, output.gradient)
    }
}

/// Names of kernels/periodic.cu.
pub fn field_name(field: Field) -> &'static str {
    match field {
        Field::Velocity { gradient: false } => "velocity",
        Field::Velocity { gradient: true } => "gradient",
        Field::Potential { gradient: false } => "potential",
        Field::Potential { gradient: true } => "force",
    }
}

/// What a core takes of a field where cores are looked at no more; lengths in periods.
fn core_shortfall(reg: Regularization, core: f64, longest: f64) -> f64 {
    match reg {
        Regularization::Offset => offset_shortfall(CORES_LOOKED_AT, core, longest),
        _ => shortfall(reg, CORES_LOOKED_AT / core),
    }
}

/// Distance up to which a core counts. That of a segment acts along its whole line: in the mean square half of (c/r)². Cores that decay
/// as slowly at right angles to it (Scully) add up over the images of strengths that do not cancel.
fn core_extent(reg: Regularization, core: f64, longest: f64, tolerance: f64) -> f64 {
    match reg {
        Regularization::Offset => (core * longest).sqrt() / (2.0 * tolerance).sqrt().sqrt(),
        _ if is_for_particles(reg) => core * core_reach(reg, periods::CORES_OF_IMAGES * tolerance),
        _ => core * core_reach(reg, tolerance).max((LINE / tolerance).sqrt()),
    }
}

/// Least distance in periods between two boxes of which one is not near.
fn separation(near: f64) -> f64 {
    let most = near as i64 + 1;
    let mut least = f64::INFINITY;
    for x in 0..=most {
        for y in 0..=x {
            for z in 0..=y {
                if (x * x + y * y + z * z) as f64 > near * near {
                    let apart: f64 = [x, y, z].iter().map(|v| ((v - 1).max(0) as f64).powi(2)).sum();
                    least = least.min(apart.sqrt());
                }
            }
        }
    }
    least
}

/// Gauss–Legendre nodes along segments of at most this length, in periods, for harmonics below `order`.
fn nodes_for(longest: f64, order: usize, tolerance: f64) -> usize {
    let all = order.div_ceil(2);
    let x = 0.5 * longest * order as f64 / 0.8;
    let mut left = 1.0;
    for nodes in 1..all {
        let k = nodes as f64;
        left *= x * x / ((2.0 * k) * (2.0 * k - 1.0));
        if left < 1e-3 * tolerance {
            return nodes;
        }
    }
    all
}

fn too_long(longest: f64, period: f64) -> Error {
    Error::new(
        WFMM_ERR_UNSUPPORTED,
        format!(
            "segments of a length of {longest:.3e} in a periodic domain, period = {period:e}: too many images are near; accepted on \
             CUDA: segments of a few periods, or a session with WFMM_BACKEND_CPU"
        ),
    )
}
