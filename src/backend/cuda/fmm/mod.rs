//! The fast multipole method on the device: the order of the passes, their buffers, and what happens when one was too small.
//!
//! ```text
//!   recipe      orders, leaf sizes, core ranges        staircase   which operator blocks are kept
//!   args        the kernels' arguments and the arena   mod         FmmSum: buffers, launches, retries
//!   set         FMM or direct, all kinds of source
//! ```
//!
//! Enters: inputs in device memory. Leaves: the field, written or added in the caller's precision. Counts stay on the
//! device; the host bounds cells and depth and reads afterwards whether they were enough: if not, nothing was written, and
//! the evaluation is done again with more.

mod args;
pub mod recipe;
mod set;
mod staircase;

use super::context::{Context, Function};
use super::direct::{CudaReal, Output};
use super::gather::{DeviceInputs, RealsArg};
use super::memory::{Buffer, Plain, clear_at, copy_out};
use super::stream::{Event, Stream, launch};
use crate::error::{Error, Result};
use crate::options::{PlanOptions, Regularization};
use crate::report::Pass;
use args::{Arena, CELLS_OVERFLOW, DEPTH_OVERFLOW, FmmArg, STATE_BYTES, StateHead, TreeArg};
pub use recipe::{Kind, Recipe};
pub use set::FmmSet;
use std::sync::Arc;

// SAFETY: plain numbers without padding.
unsafe impl Plain for StateHead {}

/// Levels that a key holds.
const DEEPEST: u32 = 21;
/// Retries of one evaluation: cells and depth of two trees, each enlarged to what the device said it needs.
const RETRIES: usize = 12;

/// What the last evaluation was, for the report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    pub order: usize,
    pub depth: u32,
    pub cells: u64,
    pub near_pairs: u64,
}

/// One FMM of one kind of source on one device.
#[derive(Debug)]
pub struct FmmSum<T: CudaReal> {
    context: Arc<Context>,
    pub recipe: Recipe,
    kernels: Kernels,
    op: Buffer<[u32; 2]>,
    operators: Buffer<u8>,
    gauss: Buffer<f64>,
    arena: Buffer<u8>,
    /// Bounds that the host keeps: cells of each tree, and levels.
    cell_capacity: [usize; 2],
    max_level: u32,
    pub account: Account,
    of: std::marker::PhantomData<T>,
}

#[derive(Debug, Clone, Copy)]
struct Kernels {
    segments: Function,
    bounds: Function,
    keys: Function,
    sort: Function,
    leaves: Function,
    scan: Function,
    cells: Function,
    links: Function,
    lists: Function,
    gather: Function,
    p2m: Function,
    translate: Function,
    add_parts: Function,
    p2p: Function,
    l2p: Function,
}

/// Where the caller's arrays of one kind are.
struct Sources {
    n: usize,
    position: RealsArg,
    strength: RealsArg,
    core: RealsArg,
    default_core: f64,
}

impl<T: CudaReal> FmmSum<T> {
    pub fn new(context: &Arc<Context>, recipe: Recipe, stream: &Stream) -> Result<Self> {
        let shared = context.info.shared_memory as usize;
        let kernels = Kernels::find::<T>(context, &recipe)?;
        context.allow_shared_memory(kernels.translate, recipe.translate_shared(shared).1)?;
        context.allow_shared_memory(kernels.p2p, p2p_shared(&recipe))?;
        context.allow_shared_memory(kernels.l2p, l2p_shared(&recipe))?;
        let mut sum = Self {
            context: context.clone(),
            kernels,
            op: Buffer::new(context),
            operators: Buffer::new(context),
            gauss: Buffer::new(context),
            arena: Buffer::new(context),
            cell_capacity: [0; 2],
            max_level: 0,
            account: Account::default(),
            recipe,
            of: std::marker::PhantomData,
        };
        sum.make_operators(stream)?;
        Ok(sum)
    }

    pub fn bytes(&self) -> u64 {
        self.op.bytes() + self.operators.bytes() + self.gauss.bytes() + self.arena.bytes()
    }

    /// The translation matrices, computed on the device.
    fn make_operators(&mut self, stream: &Stream) -> Result<()> {
        let staircase = &self.recipe.staircase;
        self.op.upload(&staircase.kept, stream)?;
        let points = staircase.order.div_ceil(2);
        self.gauss.upload(&recipe::gauss_legendre(points), stream)?;
        let bytes = 64 * if self.recipe.is_f64 || self.recipe.two_parts { 8 } else { 4 };
        self.operators.reserve(staircase.fragments * bytes)?;
        let parts: u32 = if self.recipe.is_f64 { 0 } else { 1 + u32::from(self.recipe.two_parts) };
        let f = FmmArg { order: staircase.order as u32, op: self.op.address(), ..FmmArg::default() };
        let kernel = self.context.function("fmm_operators", "fmm_operators")?;
        let (to, tiles) = (self.operators.address(), staircase.tiles as u32);
        // SAFETY: arguments as in fmm_operators.cu; the table has room for all fragments.
        unsafe { launch!(stream, kernel, [staircase::OPERATORS as u32, 1, 1], 256, 0; f, to, tiles, parts)? };
        stream.synchronize()
    }

    /// Evaluates on `stream` and waits: the field, or an error and nothing written. `marks` are the ends of the passes.
    pub fn evaluate(
        &mut self,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        output: Output,
        stream: &Stream,
        marks: &[(Pass, Event)],
    ) -> Result<()> {
        let sources = self.sources(inputs);
        self.bound(sources.n, inputs.targets.n);
        for _ in 0..RETRIES {
            let (f, clear) = self.lay_out(&sources, inputs, options, output)?;
            clear_at(clear.0, clear.1, stream)?;
            self.enqueue(&f, stream, marks)?;
            let mut head = [StateHead::default()];
            copy_out(f.state, &mut head, stream)?;
            stream.synchronize()?;
            if self.learn(&head[0]) {
                return Ok(());
            }
        }
        Err(Error::new(crate::error::WFMM_ERR_INTERNAL, "the tree on the device did not settle"))
    }

    fn sources(&self, inputs: &DeviceInputs) -> Sources {
        let none = RealsArg::default();
        match self.recipe.kind {
            Kind::Charge => Sources {
                n: inputs.charges.n,
                position: inputs.charges.position,
                strength: inputs.charges.charge,
                core: none,
                default_core: 0.0,
            },
            Kind::Particle => {
                let p = &inputs.particles;
                Sources {
                    n: p.n,
                    position: p.position,
                    strength: p.strength,
                    core: p.core,
                    default_core: p.default_core,
                }
            }
            Kind::Segment => {
                let s = &inputs.segments;
                Sources {
                    n: s.n,
                    position: s.points,
                    strength: s.circulation,
                    core: s.core,
                    default_core: s.default_core,
                }
            }
        }
    }

    /// First guesses of the bounds: cells of a cloud that fills its box, and two levels more than it needs.
    fn bound(&mut self, n_sources: usize, n_targets: usize) {
        for (k, n) in [n_sources, n_targets].into_iter().enumerate() {
            self.cell_capacity[k] = self.cell_capacity[k].max(n / 10 + 4 * 8192 + 4096);
        }
        let leaf = self.recipe.capacity[0].min(self.recipe.capacity[1]);
        let full = (n_sources.max(n_targets) as f64 / leaf as f64).max(1.0).log(8.0).ceil() as u32;
        self.max_level = self.max_level.max(full + 2).clamp(3, DEEPEST);
    }

    /// Takes what the device found out; true if the bounds were enough.
    fn learn(&mut self, head: &StateHead) -> bool {
        if head.flags == 0 {
            self.account = Account {
                order: self.recipe.staircase.order,
                depth: head.deepest[0].max(head.deepest[1]),
                cells: u64::from(head.cells[0]) + u64::from(head.cells[1]),
                near_pairs: head.near_pairs + head.core_pairs,
            };
            return true;
        }
        if head.flags & DEPTH_OVERFLOW != 0 {
            self.max_level = (self.max_level + 3).min(DEEPEST);
        }
        if head.flags & CELLS_OVERFLOW != 0 {
            for k in 0..2 {
                let needs = head.cells[k] as usize;
                if needs > self.cell_capacity[k] {
                    self.cell_capacity[k] = needs + needs / 4;
                }
            }
        }
        false
    }

    /// The arena for these sizes, the kernels' arguments, and the range to clear before each evaluation.
    fn lay_out(
        &mut self,
        sources: &Sources,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        output: Output,
    ) -> Result<(FmmArg, (u64, usize))> {
        let mut measure = Arena::default();
        self.place(&mut measure, sources, inputs);
        self.arena.reserve(measure.used)?;
        let mut arena = Arena { base: self.arena.address(), used: 0 };
        let (mut f, clear) = self.place(&mut arena, sources, inputs);
        let recipe = &self.recipe;
        let strengths = u32::from(sources.strength.is_f64 != 0);
        let cores = u32::from(sources.core.is_f64 != 0);
        let points = u32::from(sources.position.is_f64 != 0);
        let shared = self.context.info.shared_memory as usize;
        f.strength_in = sources.strength.address;
        f.core_in = sources.core.address;
        f.connectivity = inputs.segments.connectivity;
        f.points = inputs.segments.points.address;
        f.operators = self.operators.address();
        f.op = self.op.address();
        f.gauss = self.gauss.address();
        f.out_main = output.main.address;
        f.out_gradient = output.gradient.address;
        f.default_core = sources.default_core;
        f.normalization = options.normalization;
        (f.core_range, f.walk_range) = (recipe.core_range, recipe.walk_range);
        (f.stretch, f.least_level) = recipe.stretch(sources.n.max(inputs.targets.n));
        f.box_side = T::BOX;
        f.max_level = self.max_level;
        f.sort_passes = self.sort_passes();
        (f.order, f.stride) = (recipe.staircase.order as u32, recipe.stride() as u32);
        f.components = recipe.components() as u32;
        (f.kind, f.regularization) = (recipe.kind as u32, recipe.regularization as u32);
        f.inputs_are_f64 = strengths | cores << 1 | points << 2;
        f.out_is_f64 = u32::from(output.main.is_f64 != 0);
        f.accumulate = u32::from(output.add);
        f.fields = recipe.fields() as u32;
        f.gauss_points = recipe.staircase.order.div_ceil(2) as u32;
        f.arena = recipe.translate_shared(shared).0 as u32;
        (f.n_in, f.ld, f.index_base) = (sources.n as u32, inputs.segments.ld as u32, inputs.segments.index_base);
        f.rows = recipe.rows() as u32;
        Ok((f, clear))
    }

    fn sort_passes(&self) -> u32 {
        (3 * self.max_level).div_ceil(8)
    }

    fn place(&self, arena: &mut Arena, sources: &Sources, inputs: &DeviceInputs) -> (FmmArg, (u64, usize)) {
        let (recipe, real) = (&self.recipe, self.recipe.real_bytes());
        let expansion = recipe.components() * recipe.stride();
        let mut f = FmmArg { state: arena.take(STATE_BYTES, 1), ..FmmArg::default() };
        let counts = [sources.n, inputs.targets.n];
        // Cleared with the state: they follow it.
        for (tree, n) in f.tree.iter_mut().zip(counts) {
            tree.sort_status = arena.take(self.sort_passes() as usize * n.div_ceil(2048) * 256, 4);
        }
        let clear = (f.state, arena.used);
        for (k, n) in counts.into_iter().enumerate() {
            let cells = self.cell_capacity[k];
            let tree = TreeArg {
                sort_status: f.tree[k].sort_status,
                key: arena.take(n, 8),
                key_other: arena.take(n, 8),
                order: arena.take(n, 4),
                order_other: arena.take(n, 4),
                leaf_level: arena.take(n, 1),
                block_count: arena.take(22 * n.div_ceil(1024), 4),
                point: arena.take(4 * n, real),
                begin: arena.take(cells, 4),
                end: arena.take(cells, 4),
                parent: arena.take(cells, 4),
                child: arena.take(cells, 4),
                info: arena.take(cells, 4),
                cell_key: arena.take(cells, 8),
                n: n as u32,
                capacity: recipe.capacity[k] as u32,
                cell_capacity: cells as u32,
                ..TreeArg::default()
            };
            f.tree[k] = tree;
        }
        (f.tree[0].x, f.tree[0].x_is_f64) = (sources.position.address, u32::from(sources.position.is_f64 != 0));
        (f.tree[1].x, f.tree[1].x_is_f64) =
            (inputs.targets.position.address, u32::from(inputs.targets.position.is_f64 != 0));
        if recipe.kind == Kind::Segment {
            f.piece = arena.take(5 * sources.n, 8);
            (f.tree[0].x, f.tree[0].x_is_f64) = (arena.take(3 * sources.n, 8), 1);
        }
        f.strength = arena.take(4 * sources.n, real);
        f.cell_core = arena.take(self.cell_capacity[0], 8);
        f.multipole = arena.take(self.cell_capacity[0] * expansion, real);
        f.local = arena.take(self.cell_capacity[1] * expansion, real);
        f.near = arena.take(self.cell_capacity[1] * 33, 4);
        f.tile_cell = arena.take(self.cell_capacity[1], 4);
        f.field = arena.take(inputs.targets.n * recipe.fields(), real);
        (f, clear)
    }

    /// All passes, in order.
    fn enqueue(&self, f: &FmmArg, stream: &Stream, marks: &[(Pass, Event)]) -> Result<()> {
        let (k, f) = (&self.kernels, *f);
        let sms = self.context.info.multiprocessors as u32;
        let most = f.tree[0].n.max(f.tree[1].n);
        let shared = self.context.info.shared_memory as usize;
        let translate_shared = self.recipe.translate_shared(shared).1;
        let translate = |mode: i32, level: u32| {
            // SAFETY: arguments as in fmm_translate.cu.
            unsafe { launch!(stream, k.translate, [3 * sms, 1, 1], 256, translate_shared; f, mode, level as i32) }
        };
        let mark =
            |pass: Pass| marks.iter().find(|(p, _)| *p == pass).map_or(Ok(()), |(_, event)| event.record(stream));
        // SAFETY: `f` describes arrays of the arena with the lengths that fmm.cuh asks for; launch shapes as stated there.
        unsafe {
            if self.recipe.kind == Kind::Segment {
                launch!(stream, k.segments, [4 * sms, 1, 1], 256, 0; f)?;
            }
            let some = [(most / 1024 + 1).min(4 * sms), 2, 1];
            launch!(stream, k.bounds, some, 256, 0; f)?;
            launch!(stream, k.keys, some, 256, 0; f)?;
            for pass in 0..f.sort_passes {
                launch!(stream, k.sort, [most.div_ceil(2048), 2, 1], 256, 0; f, pass)?;
            }
            launch!(stream, k.leaves, [most.div_ceil(1024), 2, 1], 1024, 0; f)?;
            launch!(stream, k.scan, [1, 2, 1], 32 * 22, 0; f)?;
            launch!(stream, k.cells, [most.div_ceil(1024), 2, 1], 1024, 0; f)?;
            launch!(stream, k.links, [2 * sms, 2, 1], 256, 0; f)?;
            launch!(stream, k.gather, [8 * sms, 2, 1], 256, 0; f)?;
            mark(Pass::Tree)?;
            launch!(stream, k.lists, [8 * sms, 1, 1], 256, 0; f)?;
            mark(Pass::Lists)?;
            launch!(stream, k.p2m, [16 * sms, 1, 1], 128, 0; f)?;
        }
        mark(Pass::P2m)?;
        for level in (2..f.max_level).rev() {
            translate(0, level)?;
        }
        mark(Pass::M2m)?;
        translate(1, 0)?;
        // SAFETY: as above.
        unsafe { launch!(stream, k.add_parts, [2 * sms, 1, 1], 256, 0; f)? };
        mark(Pass::M2l)?;
        for level in 3..=f.max_level {
            translate(2, level)?;
        }
        mark(Pass::L2l)?;
        // SAFETY: as above.
        unsafe { launch!(stream, k.p2p, [8 * sms, 1, 1], 128, p2p_shared(&self.recipe); f)? };
        mark(Pass::P2p)?;
        // SAFETY: as above.
        unsafe { launch!(stream, k.l2p, [8 * sms, 1, 1], 128, l2p_shared(&self.recipe); f)? };
        mark(Pass::L2p)
    }
}

/// Bytes of two queues of 256 sources (one for charges).
fn p2p_shared(recipe: &Recipe) -> usize {
    recipe.real_bytes() * if recipe.kind == Kind::Charge { 256 * 4 } else { 2 * 256 * 8 }
}

/// Bytes for four leaves: potentials and the fields made from them.
fn l2p_shared(recipe: &Recipe) -> usize {
    let order = recipe.staircase.order;
    4 * recipe.real_bytes() * ((order + 1) * (order + 1) * recipe.components() + order * order * recipe.fields())
}

impl Kernels {
    fn find<T: CudaReal>(context: &Context, recipe: &Recipe) -> Result<Self> {
        let t = T::SUFFIX;
        let tree = |name: &str| context.function("fmm_tree", &format!("fmm_{name}"));
        let parts = if recipe.two_parts { "x3" } else { "" };
        let gradient = if recipe.gradient { "_gradient" } else { "" };
        let near = match (recipe.kind, recipe.regularization) {
            (Kind::Charge, _) => "charge".to_owned(),
            (Kind::Particle, Regularization::None) => format!("particle{gradient}"),
            (Kind::Particle, _) => format!("particle_core{gradient}"),
            (Kind::Segment, _) => format!("segment{gradient}"),
        };
        let far = match (recipe.kind, recipe.gradient) {
            (Kind::Charge, false) => "potential",
            (Kind::Charge, true) => "force",
            (_, false) => "velocity",
            (_, true) => "gradient",
        };
        Ok(Self {
            segments: context.function("fmm_segments", "fmm_segments")?,
            bounds: tree("bounds")?,
            keys: tree("keys")?,
            sort: tree("sort")?,
            leaves: tree("leaves")?,
            scan: tree("scan")?,
            cells: tree("cells")?,
            links: tree("links")?,
            lists: tree("lists")?,
            gather: tree(&format!("gather_{t}"))?,
            p2m: context.function("fmm_p2m", &format!("fmm_p2m_{t}"))?,
            translate: context
                .function("fmm_translate", &format!("fmm_translate_{t}{parts}_{}", recipe.tiles_per_warp()))?,
            add_parts: context.function("fmm_translate", &format!("fmm_add_parts_{t}"))?,
            p2p: context.function("fmm_p2p", &format!("fmm_p2p_{near}_{t}"))?,
            l2p: context.function("fmm_l2p", &format!("fmm_l2p_{far}_{t}"))?,
        })
    }
}
