//! Periodic domains on the device: inputs in the domain, near images, and the field of all images that are not near.
//!
//! Enters: inputs in device memory. Leaves: inputs whose positions are in the domain around zero, with `Far`: the expansions of all images
//! that are not near about the middle of the domain (`far_rows`), from the multipoles of all sources there by the lattice operator
//! (`math::lattice`). With them comes the uniform background that balances a net strength in a box. Near images of a box with three equal
//! periods are left to the sum: the tree, or the direct sum. In all other domains (`domain`) they are sources of their own among the
//! inputs that leave, so that any sum of an open domain serves. A few words, the extents, and the multipoles cross to the host and back
//! before a sum begins.

use super::args::RealsArg;
use super::context::Context;
use super::direct::Task;
use super::domain::{Contents, Corners, Domain, Extents, Nearness, is_cube};
use super::expanded::Expanded;
use super::far_rows::{self, FarRows, Strong};
use super::fmm::recipe;
use super::gather::DeviceInputs;
use super::memory::Buffer;
use super::stream::{Stream, launch};
use crate::backend::{Field, periods};
use crate::error::Result;
use crate::math::lattice::{LatticeSums, Shape};
use crate::math::regularization::{core_reach, offset_shortfall, shortfall};
use crate::memory;
use crate::options::{PlanOptions, Regularization};
use std::sync::Arc;

/// What cores of segments far away add to the mean square of a field, in (c/r)².
const LINE: f64 = 0.15;
pub const BLOCK: usize = 256;
/// Numbers of `Periodic::extremes`.
const EXTREMES: usize = 5;

/// Rows of extents, that is blocks, an array, and numbers of each: kernels/gather.cu.
const EXTENT_ROWS: usize = 128;
const EXTENT: usize = 7;

/// What sums need to know of a periodic domain.
#[derive(Debug, Clone, Copy)]
pub struct Far {
    /// The rows of kernels/periodic.cuh, and degrees of them that are enough for the tolerance.
    pub rows: FarRows,
    pub used: u32,
    /// What they are of.
    sources: [Option<Strong>; 2],
    /// Near images that are not among the sources: those of a cube.
    pub images: Option<Images>,
    /// How many times the sources are there: themselves and their near images.
    pub copies: usize,
    /// Whether the near field may be summed by a tree.
    pub has_tree: bool,
}

impl Far {
    /// Starts the rows of all sources.
    pub fn make_rows(&self, stream: &Stream) -> Result<()> {
        let sources: Vec<_> = self.sources.iter().flatten().copied().collect();
        self.rows.make(&sources, stream)
    }
}

/// Near images of a box with three equal periods around zero.
#[derive(Debug, Clone, Copy)]
pub struct Images {
    /// A multiple of the step.
    pub period: f64,
    /// How far they go.
    near: f64,
    /// Whether a third of the period is wide enough for a cell: twice the longest segment.
    pub may_be_thirds: bool,
}

impl Images {
    /// All of them, the sources themselves first.
    pub fn vectors(&self) -> Vec<[f64; 3]> {
        Shape { period: [self.period; 3], near: self.near }.near_vectors()
    }
}

/// What the kernels that bring the inputs in find, lengths of the caller's; cores of segments and of particles.
#[derive(Debug, Default)]
struct Found {
    longest: f64,
    largest_cores: [f64; 2],
    least_cores: [f64; 2],
}

/// What the last field took.
#[derive(Debug, Clone, Copy)]
struct Taken {
    images: usize,
    order: usize,
}

/// See the head of this file.
#[derive(Debug)]
pub struct Periodic {
    context: Arc<Context>,
    /// Positions of segments, particles, charges and targets.
    positions: [Buffer<f64>; 4],
    ends: Buffer<i32>,
    /// Bits of the longest segment; of the cores of segments and of particles the largest and the complement of the least.
    extremes: Buffer<u64>,
    extents: Buffer<f64>,
    /// Near images, where they are sources.
    expanded: Expanded,
    gauss: Buffer<f64>,
    steps: Buffer<f64>,
    lattice: Buffer<f64>,
    partial: Buffer<f64>,
    moments: Buffer<f64>,
    rows: Buffer<f64>,
    /// Order, images and unit that `steps` and `lattice` are of.
    expanded_by: Option<(usize, Shape, f64)>,
    taken: Option<Taken>,
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
            extents: new(),
            expanded: Expanded::new(context),
            gauss: new(),
            steps: new(),
            lattice: new(),
            partial: new(),
            moments: new(),
            rows: new(),
            expanded_by: None,
            taken: None,
        }
    }

    pub fn bytes(&self) -> u64 {
        let numbers =
            [&self.extents, &self.gauss, &self.steps, &self.lattice, &self.partial, &self.moments, &self.rows];
        let positions = self.positions.iter().chain(numbers).map(Buffer::bytes).sum::<u64>();
        positions + self.ends.bytes() + self.extremes.bytes() + self.expanded.bytes()
    }

    /// The inputs of a field in the domain, with its images. What is chosen depends on the sources and on the box around the targets of
    /// all ranks: it is the same on each of them.
    pub fn enter(&mut self, task: Task<'_>, is_f64: bool) -> Result<DeviceInputs> {
        let Task { inputs, options, field, stream, ranks, .. } = task;
        let Some(given) = options.period else { return Ok(*inputs) };
        let is_cube = is_cube(given);
        // Of segments it counts how far from zero everything is.
        let has_segments = matches!(field, Field::Velocity { .. }) && inputs.segments.n > 0;
        let extents = match is_cube && !has_segments {
            true => None,
            false => {
                let found = self.extents(inputs, field, stream)?;
                Some(Extents { targets: ranks.around(found.targets)?, ..found })
            }
        };
        let around = extents.as_ref().filter(|_| !is_cube);
        let domain = around.map_or_else(|| Domain::cube(given[0]), |e| Domain::around(given, &e.sources));
        periods::check_steps(given, domain.step)?;
        let step = extents.as_ref().map_or(domain.step, |e| domain.step.max(e.step()));
        let mut inside = DeviceInputs { step, ..*inputs };
        self.extremes.clear(EXTREMES, stream)?;
        self.bring_in(&mut inside, field, &domain, stream)?;
        let tolerance = recipe::tolerance(options, is_f64);
        let contents = self.contents(&inside, options, field, tolerance, &domain, stream)?;
        let (nearness, tolerance) = match around {
            None => (Nearness::in_cube(domain.period[0], &contents, tolerance)?, tolerance),
            Some(extents) => Nearness::for_field(&domain, extents, &contents, tolerance, field.has_gradient())?,
        };
        let [order, used] = nearness.orders(tolerance);
        let sources = self.sources(&inside, field, nodes_for(nearness.longest, order, tolerance), stream)?;
        let rows = self.rows(&sources, field, order, &nearness, stream)?;
        if rows.charges && nearness.shape.dimensions() < 3 {
            rows.sum(&sources, stream)?;
            let [net, sizes] = rows.net(stream)?;
            periods::check_net(net, sizes, domain.period)?;
        }
        let (period, near) = (domain.period[0], nearness.shape.near);
        let images = Images { period, near, may_be_thirds: 6.0 * contents.longest_segment <= period };
        inside.far = Some(Far {
            rows,
            used: used as u32,
            sources: std::array::from_fn(|k| sources.get(k).copied()),
            images: is_cube.then_some(images),
            copies: 1,
            has_tree: nearness.has_tree,
        });
        self.taken = None;
        if !is_cube {
            let vectors = nearness.shape.near_vectors();
            self.taken = Some(Taken { images: vectors.len(), order });
            return self.expanded.make(&inside, &vectors, stream);
        }
        Ok(inside)
    }

    /// What the recipe says of a domain whose near images are sources.
    pub fn describe(&self) -> Option<String> {
        let Taken { images, order } = self.taken?;
        Some(format!(
            "Sources and near images: {images} times the sources; all other images by expansions of order {order}."
        ))
    }

    /// Boxes around the sources of a field and around the targets; waits.
    fn extents(&mut self, inputs: &DeviceInputs, field: Field, stream: &Stream) -> Result<Extents> {
        let (s, p, c, t) = (&inputs.segments, &inputs.particles, &inputs.charges, &inputs.targets);
        let none = (0u64, 0i64, 0i32);
        let targets = (t.position, t.n, none);
        let clouds = match field {
            Field::Velocity { .. } => {
                let ends = (s.connectivity, s.ld as i64, s.index_base);
                [targets, (s.points, s.n, ends), (p.position, p.n, none)]
            }
            Field::Potential { .. } => [targets, (c.position, c.n, none), (RealsArg::default(), 0, none)],
        };
        self.extents.reserve(clouds.len() * EXTENT_ROWS * EXTENT)?;
        let kernel = self.context.function("gather", "extent")?;
        let (mut rows, mut of_targets) = (0, 0);
        for (k, (position, n, (connectivity, ld, base))) in clouds.into_iter().enumerate() {
            let blocks = n.div_ceil(1024).min(EXTENT_ROWS);
            if blocks > 0 {
                let (out, no_core) = (self.extents.at(EXTENT * rows), (RealsArg::default(), 0.0));
                // SAFETY: arguments as in gather.cu; there is room for EXTENT_ROWS rows of each of the clouds.
                unsafe {
                    launch!(stream, kernel, [blocks as u32, 1, 1], 256, 0; position, n as i64, out, connectivity, ld, base, no_core.0, no_core.1)?
                };
            }
            rows += blocks;
            of_targets = if k == 0 { blocks } else { of_targets };
        }
        let mut found = memory::filled(0.0, EXTENT * rows);
        self.extents.download(&mut found, stream)?;
        let mut extents = Extents { sources: Corners::NONE, targets: Corners::NONE };
        for (k, row) in found.chunks(EXTENT).enumerate() {
            let to = if k < of_targets { &mut extents.targets } else { &mut extents.sources };
            to.join(&row[..3], &row[3..6]);
        }
        Ok(extents)
    }

    /// Positions of what the field is of, in the domain; nothing of the other kinds.
    fn bring_in(&mut self, inside: &mut DeviceInputs, field: Field, domain: &Domain, stream: &Stream) -> Result<()> {
        if let Field::Velocity { .. } = field {
            inside.charges = Default::default();
            self.segments(inside, domain, stream)?;
            let p = &mut inside.particles;
            p.position = self.points(1, p.position, p.n, domain, stream)?;
            self.note_cores(p.core, p.default_core, p.n, 3, stream)?;
        } else {
            (inside.segments, inside.particles) = (Default::default(), Default::default());
            inside.charges.position = self.points(2, inside.charges.position, inside.charges.n, domain, stream)?;
        }
        inside.targets.position = self.points(3, inside.targets.position, inside.targets.n, domain, stream)?;
        Ok(())
    }

    fn points(&mut self, slot: usize, from: RealsArg, n: usize, domain: &Domain, stream: &Stream) -> Result<RealsArg> {
        if n == 0 {
            return Ok(from);
        }
        self.positions[slot].reserve(3 * n)?;
        let to = self.positions[slot].address();
        let kernel = self.context.function("periodic", "periodic_positions")?;
        // SAFETY: arguments as in periodic.cu; the caller's array has n rows, as he said, and so has the room.
        unsafe { launch!(stream, kernel, grid(3 * n), BLOCK as u32, 0; from, to, 3 * n as i64, *domain)? };
        Ok(RealsArg { address: to, is_f64: 1 })
    }

    fn segments(&mut self, inside: &mut DeviceInputs, domain: &Domain, stream: &Stream) -> Result<()> {
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
            launch!(stream, kernel, grid(s.n), BLOCK as u32, 0; s.points, s.connectivity, s.ld as i64, s.index_base, to, ends, s.n as i64, *domain, longest)?
        };
        s.points = RealsArg { address: to, is_f64: 1 };
        (s.connectivity, s.ld, s.index_base) = (ends, 2, 0);
        let (core, default, n) = (s.core, s.default_core, s.n);
        self.note_cores(core, default, n, 1, stream)
    }

    /// The largest core of a kind goes to index `at` of the extremes, and what says the least behind it.
    fn note_cores(&mut self, core: RealsArg, default: f64, n: usize, at: usize, stream: &Stream) -> Result<()> {
        let to = self.extremes.at(at);
        if n == 0 || core.address == 0 {
            let bits = if n == 0 { 0 } else { default.max(0.0).to_bits() };
            return super::memory::copy_in(to, &[bits, !bits], stream);
        }
        let kernel = self.context.function("periodic", "periodic_extremes")?;
        // SAFETY: arguments as in periodic.cu; the caller's array has n numbers, as he said.
        unsafe { launch!(stream, kernel, [64, 1, 1], BLOCK as u32, 0; core, n as i64, to) }
    }

    /// What the kernels found; waits where they looked.
    fn found(&self, field: Field, stream: &Stream) -> Result<Found> {
        if let Field::Potential { .. } = field {
            return Ok(Found::default());
        }
        let mut bits = [0u64; EXTREMES];
        self.extremes.download(&mut bits, stream)?;
        let [longest, of_segments, least_of_segments, of_particles, least_of_particles] = bits;
        let largest_cores = [of_segments, of_particles].map(f64::from_bits);
        let least_cores = [least_of_segments, least_of_particles].map(|bits| f64::from_bits(!bits));
        Ok(Found { longest: f64::from_bits(longest), largest_cores, least_cores })
    }

    /// What decides which images are near, or why cores are too wide for any. Waits.
    fn contents(
        &self,
        inside: &DeviceInputs,
        options: &PlanOptions,
        field: Field,
        tolerance: f64,
        domain: &Domain,
        stream: &Stream,
    ) -> Result<Contents> {
        let Found { longest, largest_cores: [of_segments, of_particles], least_cores: [least_of_segments, least] } =
            self.found(field, stream)?;
        if options.particle_regularization == Regularization::GaussErf && inside.particles.n > 0 {
            periods::check_gaussians(of_particles, domain.period, 1.0)?;
        }
        let looked_at = periods::cores_looked_at(domain.period);
        let (mut reach, mut widest_leaf) = (0.0, if inside.segments.n > 0 { 2.0 * longest } else { 0.0 });
        for (reg, n, core, least) in [
            (options.segment_regularization, inside.segments.n, of_segments, least_of_segments),
            (options.particle_regularization, inside.particles.n, of_particles, least),
        ] {
            if n == 0 || reg == Regularization::None || core == 0.0 {
                continue;
            }
            let missing = core_shortfall(reg, core, longest, looked_at);
            if missing > tolerance {
                return Err(periods::too_wide(core, looked_at, missing, tolerance));
            }
            let farther = if reg.is_for_particles() { 1.0 } else { recipe::range_factor(n) };
            reach = (farther * core_extent(reg, core, longest, tolerance)).min(looked_at).max(reach);
            // As `width_of_cores` of kernels/fmm_tree.cuh.
            widest_leaf = (4.0 * least).min((least * core).sqrt()).max(widest_leaf);
        }
        let (segments, others) = (inside.segments.n, inside.particles.n + inside.charges.n);
        // Segments may be cut in two, on average.
        let (sources, numbered) = (segments + others, 2 * segments + others);
        Ok(Contents { sources, numbered, longest_segment: longest, reach, widest_leaf })
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

    /// Rows of the images that are not near, and what their kernels take.
    fn rows(
        &mut self,
        sources: &[Strong],
        field: Field,
        order: usize,
        nearness: &Nearness,
        stream: &Stream,
    ) -> Result<FarRows> {
        let (shape, unit) = (nearness.shape.canonical(), nearness.unit);
        if self.expanded_by != Some((order, shape, unit)) {
            self.expanded_by = None;
            self.steps.upload(&far_rows::steps(order), stream)?;
            self.lattice.upload(&LatticeSums::of(shape, order).irregular(order, unit), stream)?;
            self.expanded_by = Some((order, shape, unit));
        }
        let mut rows = FarRows {
            order,
            unit,
            // Of a box; tubes and slabs have none.
            background: if shape.dimensions() == 3 { shape.background() } else { 0.0 },
            charges: matches!(field, Field::Potential { .. }),
            gradient: matches!(field, Field::Velocity { gradient: true } | Field::Potential { gradient: true }),
            gauss: self.gauss.address(),
            steps: self.steps.address(),
            lattice: self.lattice.address(),
            partial: 0,
            moments: 0,
            rows: 0,
        };
        self.partial.reserve(rows.partial_numbers(sources, self.context.info.multiprocessors as usize))?;
        let [moments, of_rows] = rows.room();
        self.moments.reserve(moments)?;
        self.rows.reserve(of_rows)?;
        (rows.partial, rows.moments, rows.rows) = (self.partial.address(), self.moments.address(), self.rows.address());
        Ok(rows)
    }
}

/// Adds what images that are not near do to a field that has been written, at all targets or at those with the numbers `picked`.
pub fn add_far(task: Task<'_>, far: Far, picked: Option<(u64, usize)>) -> Result<()> {
    let Task { inputs, options, field, output, stream, .. } = task;
    let (numbers, n) = picked.unwrap_or((0, inputs.targets.n));
    if n == 0 {
        return Ok(());
    }
    let kernel = stream.context().function("periodic", &format!("periodic_add_{}", field_name(field)))?;
    let (position, factor, order) = (inputs.targets.position.address, options.normalization, far.rows.order as i32);
    // SAFETY: arguments as in periodic.cu; positions were brought in, and the outputs have n rows, as the caller said.
    unsafe {
        launch!(stream, kernel, [n.div_ceil(128) as u32, 1, 1], 128, 0; far.rows.rows, order, position, numbers, n as i64, factor, output.main, output.gradient)
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

/// What a core takes of a field at the distance up to which cores are looked at.
fn core_shortfall(reg: Regularization, core: f64, longest: f64, looked_at: f64) -> f64 {
    match reg {
        Regularization::Offset => offset_shortfall(looked_at, core, longest),
        _ => shortfall(reg, looked_at / core),
    }
}

/// Distance up to which a core counts. That of a segment acts along its whole line: in the mean square half of (c/r)². Cores that decay
/// as slowly at right angles to it (Scully) add up over the images of strengths that do not cancel.
fn core_extent(reg: Regularization, core: f64, longest: f64, tolerance: f64) -> f64 {
    match reg {
        Regularization::Offset => (core * longest).sqrt() / (2.0 * tolerance).sqrt().sqrt(),
        _ if reg.is_for_particles() => core * core_reach(reg, periods::CORES_OF_IMAGES * tolerance),
        _ => core * core_reach(reg, tolerance).max((LINE / tolerance).sqrt()),
    }
}

/// Gauss–Legendre nodes along segments of at most this length, in sides of a cube of sources, for harmonics below `order`.
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
