//! The direct sum on the device.
//!
//! Enters: inputs in device memory. Leaves: the field, written or added in the caller's precision. The frame that scales lengths stays
//! on the device. In single precision the host reads, before the sums end, whether the precision is enough.

use super::args::{CallerPositionsArg, Frame, ProbeArg, RealsArg};
use super::context::{Context, Function};
use super::expanded::Expanded;
use super::fmm::{Ranks, recipe};
use super::gather::{DeviceInputs, check_counts};
use super::held::Held;
use super::memory::{Buffer, Plain};
use super::periodic::add_far;
use super::precision_probe::PrecisionProbe;
use super::stream::{Stream, launch};
use crate::backend::Field;
use crate::backend::draw::stratified;
use crate::backend::precision::PrecisionFallback;
use crate::backend::verdict::{self, Squares};
use crate::error::Result;
use crate::memory;
use crate::options::{PlanOptions, Regularization};
use std::ops::Range;
use std::sync::Arc;

/// Sources of a tile and threads of a block, as in kernels/direct.cuh.
const TILE: usize = 128;
/// Targets of one launch: bounds the memory of partial sums.
const MOST_TARGETS: usize = 1 << 21;
/// Rows of extents, that is blocks, an array, and numbers of each.
const EXTENT_ROWS: usize = 128;
const EXTENT: usize = 7;
/// Cells of the grid by which targets are ordered.
const CELLS: usize = 32768;
/// Fewer targets are not worth ordering.
const ORDERED_FROM: usize = 4096;
/// Number of targets at which a sum in single precision is compared with double precision, and from what they are chosen.
const SAMPLES: usize = 64;
const SEED: u64 = 0xbb67_ae85_84ca_a73b;

/// Which targets a sum is for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Given,
    /// All, as `order` has them: along a coarse Z curve.
    Sorted,
    /// Those whose numbers `order` begins with; the field is written in that order.
    Picked,
}

/// A computing precision of the device.
pub trait CudaReal: Plain + Default + PartialEq + std::fmt::Debug {
    const UNIT: &'static str;
    const SUFFIX: &'static str;
    /// Width of the scaled domain, `Real::extent` of kernels/common.cuh.
    const BOX: f64;
    const IS_F64: bool;
}
impl CudaReal for f32 {
    const UNIT: &'static str = "direct_f32";
    const SUFFIX: &'static str = "f32";
    const BOX: f64 = 16384.0;
    const IS_F64: bool = false;
}
impl CudaReal for f64 {
    const UNIT: &'static str = "direct_f64";
    const SUFFIX: &'static str = "f64";
    const BOX: f64 = 1.0;
    const IS_F64: bool = true;
}

/// Where a field goes, in device memory and the caller's precision.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub main: RealsArg,
    /// Address 0: not wanted.
    pub gradient: RealsArg,
    /// Add instead of overwrite.
    pub add: bool,
}

/// A field that is to be made on `stream`.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    pub context: &'a Arc<Context>,
    pub inputs: &'a DeviceInputs,
    pub options: &'a PlanOptions,
    pub field: Field,
    pub output: Output,
    pub stream: &'a Stream,
    pub ranks: &'a Ranks,
}

impl CallerPositionsArg {
    fn new(inputs: &DeviceInputs, order: u64, frame: u64, first: usize) -> Self {
        let s = &inputs.segments;
        Self {
            points: s.points,
            position: inputs.targets.position,
            connectivity: s.connectivity,
            order,
            frame,
            ld: s.ld as i64,
            base: i64::from(s.index_base),
            first: first as i64,
            step: inputs.step,
        }
    }
}

/// Device memory of direct sums; grows with the problem and stays.
#[derive(Debug)]
pub struct DirectSum<T: CudaReal> {
    context: Arc<Context>,
    rows: Buffer<f64>,
    frame: Buffer<Frame>,
    /// Element records, 8 numbers (4 for charges).
    sources: Buffer<T>,
    targets: Buffer<T>,
    counts: Buffer<u32>,
    order: Buffer<u32>,
    partial: Buffer<T>,
    /// Field and gradient at sampled targets.
    sampled: Buffer<f64>,
    held: Held,
    /// In a cube.
    expanded: Expanded,
    /// Of single precision.
    probe: Option<PrecisionProbe>,
}

// SAFETY: plain numbers without padding.
unsafe impl Plain for Frame {}

/// Squared errors and squared values, a target each.
struct Compared {
    errors: Vec<f64>,
    values: Vec<f64>,
}

impl Compared {
    /// `range` of both, `rows` numbers a target.
    fn new(got: &[f64], want: &[f64], range: Range<usize>, rows: usize) -> Self {
        let (got, want) = (&got[range.clone()], &want[range]);
        let unit = verdict::unit_of(want.iter().fold(0.0, |a, v| f64::max(a, v.abs())));
        let square = |v: f64| (v / unit).powi(2);
        let pairs = || got.chunks(rows).zip(want.chunks(rows));
        let errors = memory::collect(pairs().map(|(a, b)| a.iter().zip(b).map(|(a, b)| square(a - b)).sum()));
        let values = memory::collect(pairs().map(|(_, b)| b.iter().map(|b| square(*b)).sum()));
        Self { errors, values }
    }

    /// The first `sampled`, taken by chance, and the others.
    fn split(&self, sampled: usize) -> Squares<'_> {
        let at = sampled.min(self.errors.len());
        let ((errors, largest_errors), (values, largest_values)) = (self.errors.split_at(at), self.values.split_at(at));
        Squares { errors, values, largest_errors, largest_values }
    }
}

/// One kind of source with what its kernels need.
struct Kind {
    /// Beginning of the kernels' names.
    name: &'static str,
    regularization: &'static str,
    n: usize,
    /// Powers of the scale in the main field.
    power: i32,
    /// Numbers a partial sum, without and with gradient.
    terms: [usize; 2],
    main: usize,
}

/// `n` targets from `begin` on, by so many blocks for each part of the sources.
struct Launch {
    begin: usize,
    n: usize,
    blocks: usize,
    splits: usize,
}

impl Kind {
    /// Numbers of an element's record.
    fn reals(&self) -> usize {
        if self.name == "charges" { 4 } else { 8 }
    }

    fn tiles(&self) -> usize {
        self.n.div_ceil(TILE)
    }

    /// The launches that sum over all targets.
    fn launches(&self, n_targets: usize, slopes: bool, multiprocessors: usize) -> impl Iterator<Item = Launch> {
        let (tiles, per_block) = (self.tiles(), TILE * per_thread(self, slopes));
        (0..n_targets).step_by(MOST_TARGETS).map(move |begin| {
            let n = (n_targets - begin).min(MOST_TARGETS);
            let blocks = n.div_ceil(per_block);
            Launch { begin, n, blocks, splits: splits(blocks, tiles, multiprocessors) }
        })
    }
}

impl<T: CudaReal> DirectSum<T> {
    pub fn new(context: &Arc<Context>) -> Self {
        Self {
            context: context.clone(),
            rows: Buffer::new(context),
            frame: Buffer::new(context),
            sources: Buffer::new(context),
            targets: Buffer::new(context),
            counts: Buffer::new(context),
            order: Buffer::new(context),
            partial: Buffer::new(context),
            sampled: Buffer::new(context),
            held: Held::new(context),
            expanded: Expanded::new(context),
            probe: None,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.rows.bytes()
            + self.frame.bytes()
            + self.sources.bytes()
            + self.targets.bytes()
            + self.counts.bytes()
            + self.order.bytes()
            + self.partial.bytes()
            + self.sampled.bytes()
            + self.held.bytes()
            + self.expanded.bytes()
    }

    /// Starts the whole sum. A result means that this precision is not enough, and why; nothing is written or added then.
    /// `exact`: what a sum in single precision is compared with at sampled targets.
    pub fn evaluate(
        &mut self,
        task: Task<'_>,
        exact: Option<&mut DirectSum<f64>>,
    ) -> Result<Option<PrecisionFallback>> {
        let Task { inputs, options, field, output, stream, .. } = task;
        let (n, main) = (inputs.targets.n, field.widths().0);
        let parts = kinds(inputs, options, field).len() + usize::from(inputs.far.is_some());
        let held = exact.is_some() && output.add || Held::keeps_parts(output, parts);
        let place = if held { self.held.place(output, main, n)? } else { output };
        let fallback = self.sum_all(Task { output: place, ..task }, exact)?;
        if held && fallback.is_none() {
            self.held.hand_over(output, main, n, stream)?;
        }
        Ok(fallback)
    }

    /// The sum in one place, of sources and of periodic images.
    fn sum_all(&mut self, task: Task<'_>, exact: Option<&mut DirectSum<f64>>) -> Result<Option<PrecisionFallback>> {
        let Some(far) = task.inputs.far else { return self.sum_sources(task, exact) };
        far.make_rows(task.stream)?;
        let with_images = match far.images {
            Some(images) => self.expanded.make(task.inputs, &images.vectors(), task.stream)?,
            None => *task.inputs,
        };
        let fallback = self.sum_sources(Task { inputs: &with_images, ..task }, exact)?;
        if fallback.is_none() {
            add_far(task, far, None)?;
        }
        Ok(fallback)
    }

    /// The sum over all sources, without images that are not among them.
    fn sum_sources(&mut self, task: Task<'_>, exact: Option<&mut DirectSum<f64>>) -> Result<Option<PrecisionFallback>> {
        let Task { inputs, options, field, mut output, stream, .. } = task;
        let kinds = self.begin(task)?;
        if let Some(fallback) = self.probed()? {
            return Ok(Some(fallback));
        }
        let slopes = output.gradient.address != 0;
        if exact.is_some() && kinds.iter().any(jumps) {
            return Ok(Some(PrecisionFallback::Jump));
        }
        let n = inputs.targets.n;
        let ordered = kinds.iter().any(|kind| has_cut(kind.regularization)) && inputs.targets.n >= ORDERED_FROM;
        let order = if ordered { Order::Sorted } else { Order::Given };
        self.reserve(&kinds, n, slopes)?;
        self.scatter_targets(inputs, n, order, stream)?;
        for kind in &kinds {
            self.gather(kind, inputs, options, stream)?;
            self.sum(kind, inputs, (n, order), options, output, stream)?;
            output.add = true;
        }
        if kinds.is_empty() && !output.add {
            self.clear(n, field, output, stream)?;
        }
        if let Some(exact) = exact
            && !kinds.is_empty()
            && n > 0
            && !self.holds(&kinds, task, output, exact)?
        {
            return Ok(Some(PrecisionFallback::Tolerance));
        }
        Ok(None)
    }

    /// Makes the frame. Leaves: what is to be summed.
    fn begin(&mut self, task: Task<'_>) -> Result<Vec<Kind>> {
        let Task { inputs, options, field, stream, .. } = task;
        check_counts(inputs, 1)?;
        self.make_frame(inputs, options, field, stream)?;
        Ok(kinds(inputs, options, field))
    }

    /// Whether the field in `output` keeps the tolerance: at targets of chance, and at those of the largest fields, where few pairs
    /// that are very close can have most of the norm. The error is rounding alone.
    fn holds(&mut self, kinds: &[Kind], task: Task<'_>, output: Output, exact: &mut DirectSum<f64>) -> Result<bool> {
        let (n, main) = (task.inputs.targets.n, kinds[0].main);
        let mut picked = memory::collect(stratified(n, SAMPLES, SEED).into_iter().map(|k| k as u32));
        let sampled = picked.len();
        memory::extend(&mut picked, self.largest(output.main, main, n, task.stream)?);
        if output.gradient.address != 0 {
            memory::extend(&mut picked, self.largest(output.gradient, 3 * main, n, task.stream)?);
        }
        exact.begin(task)?;
        let (got, want) = (self.at_picked(kinds, task, &picked)?, exact.at_picked(kinds, task, &picked)?);
        let (field, gradient) = (0..main * picked.len(), main * picked.len()..want.len());
        let parts = [Compared::new(&got, &want, field, main), Compared::new(&got, &want, gradient, 3 * main)];
        Ok(verdict::with_largest(parts.each_ref().map(|p| p.split(sampled)), n)
            <= verdict::ROUNDING * recipe::tolerance(task.options, T::IS_F64))
    }

    /// Numbers of the targets with the largest field in each of as many equal runs as are sampled.
    fn largest(&mut self, field: RealsArg, numbers: usize, n: usize, stream: &Stream) -> Result<Vec<u32>> {
        let runs = SAMPLES.min(n);
        self.counts.reserve(runs)?;
        let largest = self.kernel("gather", "largest")?;
        // SAFETY: arguments as in gather.cu; `counts` has room for a number a block.
        unsafe {
            launch!(stream, largest, [runs as u32, 1, 1], 256, 0; field, n as i64, numbers as i32, self.counts.address())?
        };
        let mut found = memory::filled(0, runs);
        self.counts.download(&mut found, stream)?;
        Ok(found)
    }

    /// Field and, behind it, gradient at picked targets, once the frame was queued.
    fn at_picked(&mut self, kinds: &[Kind], task: Task<'_>, picked: &[u32]) -> Result<Vec<f64>> {
        let Task { inputs, options, output, stream, .. } = task;
        let (n, main, slopes) = (picked.len(), kinds[0].main, output.gradient.address != 0);
        let numbers = n * main * if slopes { 4 } else { 1 };
        self.sampled.reserve(numbers)?;
        self.reserve(kinds, n, slopes)?;
        self.order.upload(picked, stream)?;
        self.scatter_targets(inputs, n, Order::Picked, stream)?;
        let reals = |address| RealsArg { address, is_f64: 1 };
        let gradient = if slopes { reals(self.sampled.at(n * main)) } else { RealsArg::default() };
        let mut output = Output { main: reals(self.sampled.address()), gradient, add: false };
        for kind in kinds {
            self.gather(kind, inputs, options, stream)?;
            self.sum(kind, inputs, (n, Order::Picked), options, output, stream)?;
            output.add = true;
        }
        // The error is compared with the whole field.
        if let Some(far) = inputs.far {
            add_far(Task { output, ..task }, far, Some((self.order.address(), n)))?;
        }
        let mut values = memory::filled(0.0, numbers);
        self.sampled.download(&mut values, stream)?;
        Ok(values)
    }

    /// The probe's answer for this sum; once the frame was queued.
    fn probed(&self) -> Result<Option<PrecisionFallback>> {
        self.probe.as_ref().map_or(Ok(None), PrecisionProbe::answer)
    }

    fn kernel(&self, unit: &'static str, name: &str) -> Result<Function> {
        self.context.function(unit, name)
    }

    fn gather_kernel(&self, name: &str) -> Result<Function> {
        self.kernel("gather", &format!("{name}_{}", T::SUFFIX))
    }

    /// The bounding box of sources and targets, and from it the frame.
    fn make_frame(
        &mut self,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        field: Field,
        stream: &Stream,
    ) -> Result<()> {
        // Sources first; of the segments' points those that a segment has.
        let ends = (inputs.segments.connectivity, inputs.segments.ld as i64, inputs.segments.index_base);
        let none = (0u64, 0i64, 0i32);
        let no_core = (RealsArg::default(), 0.0);
        let mut clouds = match field {
            Field::Velocity { .. } => {
                let (s, p) = (&inputs.segments, &inputs.particles);
                let core = |reg, core, default| if reg == Regularization::None { no_core } else { (core, default) };
                vec![
                    (s.points, s.n, ends, core(options.segment_regularization, s.core, s.default_core)),
                    (p.position, p.n, none, core(options.particle_regularization, p.core, p.default_core)),
                ]
            }
            Field::Potential { .. } => vec![(inputs.charges.position, inputs.charges.n, none, no_core)],
        };
        clouds.push((inputs.targets.position, inputs.targets.n, none, no_core));
        clouds.retain(|(_, n, ..)| *n > 0);
        // Differences of coordinates that single precision holds are exact where nothing was subtracted from them.
        let single = clouds.iter().all(|(position, ..)| position.is_f64 == 0);
        let center = i32::from(!T::IS_F64 && !single);
        self.rows.reserve(EXTENT * EXTENT_ROWS * 3)?;
        self.frame.reserve(1)?;
        let extent = self.kernel("gather", "extent")?;
        let (mut rows, mut source_rows) = (0, 0);
        for (position, n, (connectivity, ld, base), (core, default)) in clouds {
            source_rows = rows;
            let blocks = n.div_ceil(1024).min(EXTENT_ROWS);
            let (out, default) = (self.rows.at(EXTENT * rows), if core.address == 0 { default } else { 0.0 });
            // SAFETY: arguments as in gather.cu; `rows` has room for EXTENT_ROWS rows of each of three clouds.
            unsafe {
                launch!(stream, extent, [blocks as u32, 1, 1], 256, 0; position, n as i64, out, connectivity, ld, base, core, default)?
            };
            rows += blocks;
        }
        let (begin, out) = (self.rows.address(), self.frame.address());
        let frame = self.kernel("gather", "frame")?;
        let mut probe = ProbeArg::default();
        if !T::IS_F64 {
            if self.probe.is_none() {
                self.probe = Some(PrecisionProbe::new(&self.context)?);
            }
            probe = self.probe.as_mut().map_or(probe, |p| p.ask(inputs, options, field, single));
        }
        // SAFETY: arguments as in gather.cu; `rows` rows were written by the launches before.
        unsafe {
            launch!(stream, frame, [1, 1, 1], 32 * EXTENT as u32, 0; begin, rows as i32, source_rows as i32, center, T::BOX, out, probe)?
        };
        self.probe.as_ref().map_or(Ok(()), |p| p.asked(stream))
    }

    /// `n` targets in the frame, ordered along a coarse Z curve where kernels choose by distance.
    fn scatter_targets(&mut self, inputs: &DeviceInputs, n: usize, order: Order, stream: &Stream) -> Result<()> {
        let position = inputs.targets.position;
        self.targets.reserve(3 * n)?;
        let (frame, grid) = (self.frame.address(), [n.div_ceil(256) as u32, 1, 1]);
        if order == Order::Sorted {
            self.order.reserve(n)?;
            self.counts.clear(CELLS, stream)?;
            let (order, counts) = (self.order.address(), self.counts.address());
            let (count, scan, scatter) = (
                self.kernel("gather", "cell_count")?,
                self.kernel("gather", "cell_scan")?,
                self.kernel("gather", "cell_slot")?,
            );
            // SAFETY: arguments as in gather.cu; counts has CELLS numbers, order n.
            unsafe {
                launch!(stream, count, grid, 256, 0; position, n as i64, frame, counts)?;
                launch!(stream, scan, [1, 1, 1], 1024, 0; counts)?;
                launch!(stream, scatter, grid, 256, 0; position, n as i64, frame, counts, order)?;
            }
        }
        let targets = self.gather_kernel("targets")?;
        let order = if order == Order::Given { 0 } else { self.order.address() };
        // SAFETY: arguments as in gather.cu; targets has 3n numbers.
        unsafe { launch!(stream, targets, grid, 256, 0; position, order, n as i64, frame, self.targets.address()) }
    }

    /// Room for what every kind and every launch needs, before the first of them writes: memory that is refused later would leave
    /// the field of one kind alone.
    fn reserve(&mut self, kinds: &[Kind], n_targets: usize, slopes: bool) -> Result<()> {
        let multiprocessors = self.context.info.multiprocessors as usize;
        for kind in kinds {
            self.sources.reserve(kind.reals() * kind.tiles() * TILE)?;
            for launch in kind.launches(n_targets, slopes, multiprocessors) {
                self.partial.reserve(launch.splits * kind.terms[slopes as usize] * launch.n)?;
            }
        }
        Ok(())
    }

    /// Element records of one kind, padded to whole tiles.
    fn gather(&self, kind: &Kind, inputs: &DeviceInputs, options: &PlanOptions, stream: &Stream) -> Result<()> {
        let padded = kind.tiles() * TILE;
        let gather = self.gather_kernel(kind.name)?;
        let (grid, frame, out) = ([padded.div_ceil(256) as u32, 1, 1], self.frame.address(), self.sources.address());
        let (n, padded) = (kind.n as i64, padded as i64);
        // SAFETY: arguments as in gather.cu; `reserve` made room in `sources` for the padded records.
        unsafe {
            match kind.name {
                "segments" => {
                    let (s, reg) = (inputs.segments, options.segment_regularization as i32);
                    launch!(stream, gather, grid, 256, 0; reg, s.points, s.connectivity, s.ld as i64, s.index_base, s.circulation, s.core, s.default_core, n, padded, frame, out)?;
                }
                "particles" => {
                    let (p, reg) = (inputs.particles, options.particle_regularization as i32);
                    launch!(stream, gather, grid, 256, 0; reg, p.position, p.strength, p.core, p.default_core, n, padded, frame, out)?;
                }
                _ => {
                    launch!(stream, gather, grid, 256, 0; inputs.charges.position, inputs.charges.charge, n, padded, frame, out)?
                }
            }
        }
        Ok(())
    }

    fn sum(
        &self,
        kind: &Kind,
        inputs: &DeviceInputs,
        (n_targets, targets): (usize, Order),
        options: &PlanOptions,
        output: Output,
        stream: &Stream,
    ) -> Result<()> {
        let slopes = output.gradient.address != 0;
        let grad = if slopes { "_grad" } else { "" };
        let separator = if kind.regularization.is_empty() { "" } else { "_" };
        let direct = self.kernel(T::UNIT, &format!("{}{separator}{}{grad}", kind.name, kind.regularization))?;
        let to = if output.main.is_f64 != 0 { "f64" } else { "f32" };
        let finish = self.kernel(T::UNIT, &format!("finish_{}{grad}_to_{to}", kind.name))?;
        let element = if output.main.is_f64 != 0 { 8 } else { 4 };
        let frame = self.frame.address();
        let (tiles, multiprocessors) = (kind.tiles() as i32, self.context.info.multiprocessors as usize);
        for Launch { begin, n, blocks, splits } in kind.launches(n_targets, slopes, multiprocessors) {
            let (partial, target) = (self.partial.address(), self.targets.at(3 * begin));
            // Where the numbers of the caller's targets are, and where those of the positions in the output.
            let order = if targets == Order::Given { 0 } else { self.order.at(begin) };
            let to_slot = if targets == Order::Sorted { order } else { 0 };
            // Without an order, target i of this launch is target begin + i.
            let shift = if targets == Order::Sorted { 0 } else { (begin * element) as u64 };
            let main = output.main.address + shift * kind.main as u64;
            let gradient = if slopes { output.gradient.address + shift * 3 * kind.main as u64 } else { 0 };
            // SAFETY: arguments as in direct.cuh; partial has room for [splits][terms][n] (`reserve`), targets and outputs for n.
            unsafe {
                let (grid, sources) = ([blocks as u32, splits as u32, 1], self.sources.address());
                if kind.name == "segments" {
                    let positions = CallerPositionsArg::new(inputs, order, frame, begin);
                    launch!(stream, direct, grid, TILE as u32, 0; sources, tiles, target, n as i32, partial, positions)?;
                } else {
                    launch!(stream, direct, grid, TILE as u32, 0; sources, tiles, target, n as i32, partial)?;
                }
                launch!(stream, finish, [n.div_ceil(128) as u32, 1, 1], 128, 0; partial, splits as i32, n as i32, to_slot, frame, options.normalization, kind.power, output.add as i32, main, gradient)?;
            }
        }
        Ok(())
    }

    /// The field of no sources.
    fn clear(&self, n: usize, field: Field, output: Output, stream: &Stream) -> Result<()> {
        let main = field.widths().0;
        let bytes = |arg: RealsArg, numbers: usize| numbers * if arg.is_f64 != 0 { 8 } else { 4 };
        super::memory::clear_at(output.main.address, bytes(output.main, main * n), stream)?;
        if output.gradient.address != 0 {
            super::memory::clear_at(output.gradient.address, bytes(output.gradient, 3 * main * n), stream)?;
        }
        Ok(())
    }
}

fn kinds(inputs: &DeviceInputs, options: &PlanOptions, field: Field) -> Vec<Kind> {
    let kind = |name, regularization, n, power, terms, main| Kind { name, regularization, n, power, terms, main };
    let mut kinds = match field {
        Field::Velocity { .. } => vec![
            kind("segments", name_of(options.segment_regularization), inputs.segments.n, 1, [3, 12], 3),
            kind("particles", name_of(options.particle_regularization), inputs.particles.n, 2, [3, 14], 3),
        ],
        Field::Potential { .. } => vec![kind("charges", "", inputs.charges.n, 1, [1, 4], 1)],
    };
    kinds.retain(|kind| kind.n > 0);
    kinds
}

/// Names in kernels/direct.cuh.
pub(super) fn name_of(regularization: Regularization) -> &'static str {
    match regularization {
        Regularization::None => "none",
        Regularization::Rankine => "rankine",
        Regularization::LambOseen => "lamb_oseen",
        Regularization::Vatistas => "vatistas",
        Regularization::Scully => "scully",
        Regularization::Offset => "offset",
        Regularization::GaussErf => "gauss_erf",
        Regularization::Exponential => "exponential",
        Regularization::Compact => "compact",
        Regularization::Rosenhead => "rosenhead",
        Regularization::Winckelmans => "winckelmans",
        Regularization::Polynomial => "polynomial",
    }
}

/// Kernels that take the singular formula beyond some cores: neighbouring targets should share a warp.
fn has_cut(regularization: &str) -> bool {
    matches!(regularization, "gauss_erf" | "exponential" | "compact" | "polynomial" | "lamb_oseen")
}

/// Whether distances that single precision does not have decide over a field: that of a polynomial core keeps its size and changes its
/// direction at the particle, however near, and its gradient jumps at the edge. No sample has the one target that this matters at.
fn jumps(kind: &Kind) -> bool {
    kind.regularization == "polynomial" && kind.n > 0
}

/// Targets a thread, as instantiated at the end of kernels/direct.cuh.
fn per_thread(kind: &Kind, slopes: bool) -> usize {
    match (kind.name, kind.regularization, slopes) {
        (_, _, false) | ("charges", ..) | ("particles", "none" | "gauss_erf", true) => 2,
        _ => 1,
    }
}

/// Into how many parts the sources are split, so that few targets fill the chip too. Depends on sizes and device only, so
/// the same inputs give the same bits.
fn splits(blocks: usize, tiles: usize, multiprocessors: usize) -> usize {
    let wanted = 24 * multiprocessors;
    wanted.div_ceil(blocks).min(tiles).clamp(1, 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_targets_are_split_and_many_are_not() {
        assert_eq!(splits(10_000, 10_000, 132), 1);
        assert_eq!(splits(1, 10_000, 132), 24 * 132);
        assert_eq!(splits(1, 3, 132), 3);
        assert_eq!(splits(1, 0, 132), 1);
    }
}
