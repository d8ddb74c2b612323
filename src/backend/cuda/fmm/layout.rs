//! The device memory of one FMM: arrays of the state, the sources and the targets are in separate allocations, so that one can be kept
//! while another is replaced.

use super::args::{Arena, CUT_BLOCK, CUTS, FmmArg, PIECES, STATE_BYTES, TreeArg};
use super::grid_args::GridArg;
use super::recipe::{Far, SMOOTH_TARGETS};
use super::reuse::Shape;
use super::verdict::SQUARES;
use super::{FmmSum, Kind, Recipe, Sources, m2l_small, pseudo};
use crate::backend::cuda::direct::{CudaReal, Output};
use crate::backend::cuda::far_rows::FarRows;
use crate::backend::cuda::gather::DeviceInputs;
use crate::error::Result;
use crate::options::PlanOptions;

/// The arenas; the contents of `status` are valid during an evaluation only.
#[derive(Debug, Default)]
struct Arenas {
    status: Arena,
    sources: Arena,
    targets: Arena,
}

/// Parts at most that near sources are summed in, and the sums of all targets that there is room for: `kMostParts`, `kPartRows`.
const MOST_PARTS: usize = 16;
const PART_ROWS: usize = 163_840;

impl Recipe {
    /// Parts of the near sources whose sums at `targets` targets lie behind the field; one part alone goes to the field itself.
    pub(super) fn near_parts(&self, targets: usize) -> usize {
        let parts = MOST_PARTS.min(PART_ROWS / targets.max(1));
        if self.has_cores() || self.periodic || parts < 2 { 0 } else { parts }
    }
}

/// Cells of the parts that a tile's sums of M2L are taken in, at most: `kSplitCells`.
const SPLIT_CELLS: usize = 32_768;

/// Most targets that share nodes: fewer where the groups would be too few for the chip.
fn smooth_targets(targets: usize) -> u32 {
    SMOOTH_TARGETS.min((targets / 256).max(500) as u32)
}

/// Whether three of the largest cells are as wide as the periodic box: `in_thirds` of kernels/fmm.cuh.
pub(super) fn in_thirds(f: &FmmArg) -> bool {
    f.period > 0.0 && f.stretch > 1.0
}

/// Level of the largest cells that fill a periodic box, by the side of its root cube over its own.
pub(super) fn largest_cells(stretch: f64) -> u32 {
    if stretch > 1.0 { 2 } else { 1 }
}

/// The sources and their near images in a periodic box: `kBeside`.
pub(super) const NEAR_IMAGES: u32 = 33;

/// What `lay_out` found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Laid {
    pub f: FmmArg,
    /// Ranges to clear before an evaluation that begins with the sources: state, status.
    pub state: (u64, usize),
    pub status: (u64, usize),
    /// What lay in the arenas of sources (with the state) and of targets is lost.
    pub lost: [bool; 2],
    /// Where L2P leaves sums of squares.
    pub size: u64,
    /// [2][source cells] How far corrections count, and the products, in place of `FmmArg::cell_core`: see `reach`; 0: not asked.
    pub reach: u64,
    /// Of a treecode: [source cells] expansions of the fields; degrees by distance.
    pub fields: u64,
    pub degrees: u64,
    /// Pseudo-particles of source and of target cells, and the points of the sphere.
    pub pseudo: [u64; 2],
    pub sphere: u64,
    /// Of a periodic box.
    pub grids: Option<GridArg>,
    /// Rows of images that are not near which are made of the grids.
    pub rows: Option<FarRows>,
}

/// Warps of a block of L2P, and its blocks a multiprocessor.
const L2P_WARPS: usize = 4;
pub(super) const L2P_BLOCKS: u32 = 8;

impl<T: CudaReal> FmmSum<T> {
    /// Memory for these sizes and the kernels' arguments.
    pub(super) fn lay_out(
        &mut self,
        sources: &Sources,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        output: Output,
        shape: &Shape,
    ) -> Result<Laid> {
        let multiprocessors = self.context.info.multiprocessors as usize;
        let mut measure = Arenas::default();
        self.place(&mut measure, sources, inputs, shape);
        self.place_fields(&mut measure.sources);
        self.place_pseudo(&mut measure);
        self.place_reach(&mut measure.sources);
        self.recipe.place_grids(&mut measure.sources, sources.n, (shape.max_level, shape.stretch), multiprocessors);
        self.place_sizes(&mut measure.targets);
        self.memory.status.reserve(measure.status.used)?;
        let lost = [
            self.memory.state.reserve(2 * STATE_BYTES)? | self.memory.sources.reserve(measure.sources.used)?,
            self.memory.targets.reserve(measure.targets.used)?,
        ];
        let arena = |base: u64| Arena { base, used: 0 };
        let mut arenas = Arenas {
            status: arena(self.memory.status.address()),
            sources: arena(self.memory.sources.address()),
            targets: arena(self.memory.targets.address()),
        };
        let mut f = self.place(&mut arenas, sources, inputs, shape);
        let fields = self.place_fields(&mut arenas.sources);
        let pseudo = self.place_pseudo(&mut arenas);
        let reach = self.place_reach(&mut arenas.sources);
        let grids =
            self.recipe.place_grids(&mut arenas.sources, sources.n, (shape.max_level, shape.stretch), multiprocessors);
        let size = self.place_sizes(&mut arenas.targets);
        self.fill(&mut f, sources, inputs, options, output, shape);
        Ok(Laid {
            state: (f.state, STATE_BYTES),
            status: (self.memory.status.address(), arenas.status.used),
            f,
            lost,
            size,
            reach,
            fields,
            grids,
            rows: None,
            degrees: self.degrees.address(),
            pseudo,
            sphere: self.sphere.address(),
        })
    }

    /// Sums of squares of every batch's warps: a batch has some leaves, fewer where the blocks would not all have four batches. The
    /// last kernels of treecode and pseudo-particles have fewer warps.
    fn place_sizes(&self, arena: &mut Arena) -> u64 {
        let leaves = self.recipe.l2p(self.context.info.shared_memory as usize).0 as usize;
        let blocks = L2P_BLOCKS as usize * self.context.info.multiprocessors as usize;
        let batches = self.cell_capacity[1].div_ceil(leaves).max(4 * blocks);
        arena.take(L2P_WARPS * batches, SQUARES)
    }

    /// Numbers of the local expansions: of all cells, or where few tiles of M2L do not fill the chip, of the parts of their sums,
    /// which follow one another, with the cells above level 2.
    fn local_numbers(&self, max_level: u32) -> usize {
        let info = &self.context.info;
        let expansion = self.recipe.components() * self.recipe.stride();
        let tile = self.recipe.m2l(info.shared_memory as usize, self.kernels.small.is_hopper()).cells;
        let parts = (info.multiprocessors as usize * tile).min(SPLIT_CELLS) + 1024;
        let cells = self.cell_capacity[1].max(parts);
        (cells * expansion).max(m2l_small::numbers(&self.recipe, max_level, expansion))
    }

    fn place_reach(&self, arena: &mut Arena) -> u64 {
        if self.recipe.has_reach() { arena.take(2 * self.cell_capacity[0], 8) } else { 0 }
    }

    /// Expansions of the fields that a treecode evaluates at the targets.
    fn place_fields(&self, arena: &mut Arena) -> u64 {
        let each = if let Far::AtTargets(_) = self.recipe.far { self.recipe.field_coefficients() } else { 0 };
        arena.take(self.cell_capacity[0] * each, self.recipe.real_bytes())
    }

    /// Strengths of pseudo-particles, of source and of target cells.
    fn place_pseudo(&self, arenas: &mut Arenas) -> [u64; 2] {
        let terms = if let Far::Pseudo(order) = self.recipe.far { pseudo::count(order) } else { 0 };
        let (each, real) = (terms * self.recipe.components(), self.recipe.real_bytes());
        let [sources, targets] = self.cell_capacity;
        [arenas.sources.take(sources * each, real), arenas.targets.take(targets * each, real)]
    }

    /// Everything of the arguments that is no array of the arenas.
    fn fill(
        &self,
        f: &mut FmmArg,
        sources: &Sources,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        output: Output,
        shape: &Shape,
    ) {
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
        f.box_operators = self.box_operators.address();
        f.op = self.op.address();
        f.m2l = self.m2l.address();
        f.gauss = self.gauss.address();
        f.out_main = output.main.address;
        f.out_gradient = output.gradient.address;
        f.default_core = sources.default_core;
        f.normalization = options.normalization;
        // Images do not cancel each other as other elements do.
        let own = sources.n / inputs.far.map_or(1, |far| far.copies);
        [f.core_range, f.walk_range] = recipe.ranges(own);
        (f.stretch, f.least_level) = (shape.stretch, shape.least_level);
        f.box_side = T::BOX;
        (f.images, f.top) = (1, 2);
        f.step = inputs.step;
        if let Some(far) = inputs.far {
            (f.far_order, f.far_used) = (far.rows.order as u32, far.used);
            if let Some(images) = far.images {
                (f.period, f.images) = (images.period, NEAR_IMAGES);
                // Of a box in thirds those that three are side by side of.
                f.top = largest_cells(f.stretch);
            }
        }
        f.max_level = shape.max_level;
        f.sort_passes = shape.sort_passes();
        (f.order, f.stride) = (recipe.truncation.order as u32, recipe.stride() as u32);
        f.components = recipe.components() as u32;
        (f.kind, f.regularization) = (recipe.kind as u32, recipe.regularization as u32);
        f.inputs_are_f64 = strengths | cores << 1 | points << 2;
        f.out_is_f64 = u32::from(output.main.is_f64 != 0);
        f.accumulate = u32::from(output.add);
        f.fields = recipe.fields() as u32;
        f.gauss_points = recipe.order().div_ceil(2) as u32;
        let m2l = recipe.m2l(shared, self.kernels.small.is_hopper());
        (f.m2l_cells, f.m2l_stages) = (m2l.cells as u32, m2l.stages as u32);
        if let Some(smooth) = recipe.smooth {
            (f.smooth_power, f.smooth_limit, f.smooth_targets) =
                (smooth.power, smooth.limit, smooth_targets(inputs.targets.n));
        }
        (f.cull, f.smooth_share) = (recipe.cull / (sources.n.max(1) as f64).sqrt(), recipe.smooth_share);
        (f.n_in, f.ld, f.index_base) = (sources.n as u32, inputs.segments.ld as u32, inputs.segments.index_base as u32);
    }

    /// Lays the arrays out; with arenas at address 0 only their sizes are of use.
    fn place(&self, arenas: &mut Arenas, sources: &Sources, inputs: &DeviceInputs, shape: &Shape) -> FmmArg {
        let (recipe, real) = (&self.recipe, self.recipe.real_bytes());
        let expansion = recipe.components() * recipe.stride();
        let mut f = FmmArg { state: self.memory.state.address(), ..FmmArg::default() };
        let capacities = recipe.capacities(sources.n, inputs.targets.n);
        for (k, n) in [shape.room, inputs.targets.n].into_iter().enumerate() {
            let sort_status = arenas.status.take(shape.sort_passes() as usize * n.div_ceil(2048) * 256, 4);
            let arena = if k == 0 { &mut arenas.sources } else { &mut arenas.targets };
            let cells = self.cell_capacity[k];
            let tree = TreeArg {
                sort_status,
                key: arena.take(n, 8),
                key_other: arena.take(n, 8),
                order: arena.take(n, 4),
                order_other: arena.take(n, 4),
                leaf_level: arena.take(n, 1),
                block_count: arena.take(22 * n.div_ceil(1024), 4),
                point: arena.take(4 * n * if recipe.is_f64 { 1 } else { 2 }, real),
                begin: arena.take(cells, 4),
                end: arena.take(cells, 4),
                parent: arena.take(cells, 4),
                child: arena.take(cells, 4),
                info: arena.take(cells, 4),
                cell_key: arena.take(cells, 8),
                n: n as u32,
                capacity: capacities[k] as u32,
                cell_capacity: cells as u32,
                ..TreeArg::default()
            };
            f.tree[k] = tree;
        }
        (f.tree[0].x, f.tree[0].x_is_f64) = (sources.position.address, u32::from(sources.position.is_f64 != 0));
        (f.tree[1].x, f.tree[1].x_is_f64) =
            (inputs.targets.position.address, u32::from(inputs.targets.position.is_f64 != 0));
        let arena = &mut arenas.sources;
        if recipe.kind == Kind::Segment {
            f.piece = arena.take(7 * shape.room, 8);
            (f.tree[0].x, f.tree[0].x_is_f64) = (arena.take(3 * shape.room, 8), 1);
            if shape.room > sources.n {
                f.cut_count = arena.take(CUTS * sources.n.div_ceil(CUT_BLOCK), 4);
                f.tree[0].n_device = f.state + PIECES;
            }
        }
        f.strength = arena.take(4 * shape.room, real);
        f.cell_core = arena.take(2 * self.cell_capacity[0], 8);
        f.multipole = arena.take(self.cell_capacity[0] * expansion, real);
        let arena = &mut arenas.targets;
        // Beside local expansions of harmonics there is the far field at each target.
        let local = match recipe.far {
            Far::AtTargets(_) | Far::Pseudo(_) => inputs.targets.n * recipe.kind.results(recipe.gradient),
            Far::Harmonics => self.local_numbers(shape.max_level),
        };
        f.local = arena.take(local, real);
        f.near = arena.take(self.cell_capacity[1] * 33, 4);
        f.tile_cell = arena.take(self.cell_capacity[1], 4);
        let n = inputs.targets.n;
        f.field = arena.take((1 + recipe.near_parts(n)) * n * recipe.fields(), real);
        if recipe.smooth.is_some() {
            f.smooth_list = arena.take(4 * inputs.targets.n, 4);
            f.smooth_count = arena.take(self.cell_capacity[1], 4);
            f.smooth_box = arena.take(8 * self.cell_capacity[1], 8);
        }
        f
    }
}
