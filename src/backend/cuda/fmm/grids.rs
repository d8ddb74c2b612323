//! Exact sums at sampled targets in a periodic box with many sources: equivalent sources on the Chebyshev nodes of cells stand for what
//! is far away (kernels/fmm_check_grids.cu).
//!
//! Enters: sorted sources. Leaves: rows of sums as those of the kernels that take pair by pair.

use super::args::{Arena, CheckArg, FmmArg};
use super::grid_args::{GRID_NODES, GRID_SLICE, GridArg};
use super::layout::largest_cells;
use super::{Kind, Recipe};
use crate::backend::cuda::args::RealsArg;
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::direct::name_of;
use crate::backend::cuda::far_rows::{FarRows, Strong};
use crate::backend::cuda::stream::{Stream, launch};
use crate::error::Result;
use crate::options::Regularization;

/// Error of a cell's field with q nodes, of the next cells that are not summed pair by pair: this to the power of -q.
const DECAY: f64 = 9.9;
/// Error in tolerances that this may have.
const SHARE: f64 = 0.02;
/// More nodes of charges: the potentials of a net charge in all images, which the background balances, are larger than what is left.
const MORE_FOR_CHARGES: u32 = 3;
/// Sources of a cell of the deepest level, in nodes.
const SOURCES_A_NODE: usize = 1;
/// Fewest sources of a multiprocessor: the launches, one after another, take longer than all pairs otherwise. Measured on one H200,
/// 2026-11-23, periodic CUBE in f32 at 1e-4, ms with all pairs and with cells: 1e4 0.51 and 1.05, 1e5 1.04 and 1.29, 1e6 7.63 and 6.00.
const LEAST_SOURCES: usize = 3000;
/// Deepest level of the cells.
const DEEPEST: u32 = 4;
/// Nodes along an axis that there are kernels for.
const MOST_NODES: [u32; 3] = [6, 8, GRID_NODES];
/// Rows of sums: blocks of a target.
pub const ROWS: u32 = 16;

/// Nodes along an axis that a recipe's check needs; none where it takes all pairs: outside of periodic boxes, and of cores that reach
/// far or along lines.
pub fn nodes(kind: Kind, regularization: Regularization, tolerance: f64) -> Option<u32> {
    let short = match kind {
        Kind::Charge => true,
        Kind::Particle => matches!(
            regularization,
            Regularization::None | Regularization::GaussErf | Regularization::Exponential | Regularization::Polynomial
        ),
        Kind::Segment => regularization == Regularization::None,
    };
    let more = if kind == Kind::Charge { MORE_FOR_CHARGES } else { 0 };
    let nodes = (-(SHARE * tolerance).ln() / DECAY.ln()).ceil() as u32 + more;
    (short && nodes <= GRID_NODES).then_some(nodes)
}

/// Level of the smallest cells; none where sources are too few, or in a tree without levels. The box is the part `1 / stretch` of each side
/// of the root cube.
fn level(sources: usize, least: usize, nodes: u32, max_level: u32, stretch: f64) -> Option<u32> {
    let full = SOURCES_A_NODE * (nodes as usize).pow(3);
    let in_root = sources as f64 * stretch.powi(3);
    let level = (in_root / full as f64).max(1.0).log(8.0) as u32;
    Some(level.min(DEEPEST).min(max_level)).filter(|level| *level > 0 && sources >= least)
}

/// Cells of the levels 1 to `level`.
fn cells(level: u32) -> usize {
    ((8 << (3 * level)) - 8) / 7
}

impl Recipe {
    /// The cells of a check and their arrays, in the arena.
    pub(super) fn place_grids(
        &self,
        arena: &mut Arena,
        sources: usize,
        (max_level, stretch): (u32, f64),
        multiprocessors: usize,
    ) -> Option<GridArg> {
        let nodes = self.grid_nodes?;
        let level = level(sources, LEAST_SOURCES * multiprocessors, nodes, max_level, stretch)?;
        let numbers = self.components() * (nodes as usize).pow(3);
        let deepest = 1usize << (3 * level);
        let slices = deepest + sources / GRID_SLICE as usize;
        let filled = largest_cells(stretch);
        // Segments may be in pieces, which are not in the cells.
        let box_level = if level >= filled && self.kind != Kind::Segment { filled } else { 0 };
        let points = if box_level > 0 { (nodes as usize).pow(3) << (3 * box_level) } else { 0 };
        Some(GridArg {
            strength: arena.take(cells(level) * numbers, 8),
            slices: arena.take(slices * numbers, 8),
            begin: arena.take(deepest + 1, 4),
            slice: arena.take(deepest + 1, 4),
            level,
            nodes,
            most_slices: slices as u32,
            box_level,
            point: arena.take(3 * points, 8),
            point_strength: arena.take(self.components() * points, 8),
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub struct GridKernels {
    cells: Function,
    slices: Function,
    sum: Function,
    up: Function,
    sample: Function,
    points: Function,
}

impl GridKernels {
    pub fn find(context: &Context, recipe: &Recipe, nodes: u32) -> Result<Self> {
        let most = MOST_NODES.into_iter().find(|most| *most >= nodes).unwrap_or(GRID_NODES);
        let get = |name: String| context.function("fmm_check_grids", &format!("fmm_grid_{name}"));
        let elements = if recipe.kind == Kind::Charge { "charges" } else { "vortices" };
        let sources = match recipe.kind {
            Kind::Charge => "charges".to_owned(),
            Kind::Particle => format!("particles_{}", name_of(recipe.regularization)),
            Kind::Segment => format!("segments_{}", name_of(recipe.regularization)),
        };
        let gradient = if recipe.gradient { "_gradient" } else { "" };
        Ok(Self {
            cells: get("cells".to_owned())?,
            slices: get(format!("slices_{elements}_{most}"))?,
            sum: get("sum".to_owned())?,
            up: get("up".to_owned())?,
            sample: get(format!("sample_{sources}{gradient}_f64"))?,
            points: get("points".to_owned())?,
        })
    }

    /// Starts the rows of the images that are not near, from the equivalent sources of the cells that fill the box.
    pub fn make_rows(&self, f: &FmmArg, g: &GridArg, rows: &FarRows, stream: &Stream) -> Result<()> {
        let n = (g.nodes as usize).pow(3) << (3 * g.box_level);
        // SAFETY: as in `sum`, whose kernels were queued.
        unsafe { launch!(stream, self.points, [n.div_ceil(256) as u32, 1, 1], 256, 0; *f, *g)? };
        let kernel = if rows.charges { "charges" } else { "particles" };
        let strength = RealsArg { address: g.point_strength, is_f64: 1 };
        rows.make(&[Strong { kernel, n, position: g.point, strength, nodes: 1 }], stream)
    }

    /// Starts the sums at the targets of a check, `ROWS` rows.
    pub fn sum(&self, f: &FmmArg, c: &CheckArg, g: &GridArg, stream: &Stream) -> Result<()> {
        let components = f.components as i32;
        // SAFETY: arguments and shapes as in fmm_check_grids.cu; the arrays were laid out for these sources.
        unsafe {
            launch!(stream, self.cells, [1, 1, 1], 1024, 0; *f, *g)?;
            launch!(stream, self.slices, [g.most_slices, 1, 1], 128, 0; *f, *g)?;
            launch!(stream, self.sum, [1 << (3 * g.level), 1, 1], 256, 0; *g, components)?;
            for level in (1..g.level).rev() {
                launch!(stream, self.up, [1 << (3 * level), f.components, 1], 256, 0; *f, *g, level as i32)?;
            }
            launch!(stream, self.sample, [c.samples, ROWS, 1], 256, 0; *f, *c, *g)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tighter_tolerances_take_more_nodes_until_all_pairs_are_summed() {
        let of = |kind, tolerance| nodes(kind, Regularization::None, tolerance);
        assert_eq!([1e-3, 1e-4, 1e-6].map(|t| of(Kind::Particle, t)), [Some(5), Some(6), Some(8)]);
        assert_eq!([1e-3, 1e-4, 1e-6].map(|t| of(Kind::Charge, t)), [Some(8), Some(9), None]);
        assert_eq!(of(Kind::Segment, 1e-10), None);
        assert_eq!(nodes(Kind::Particle, Regularization::Rosenhead, 1e-3), None);
        assert_eq!(nodes(Kind::Segment, Regularization::Vatistas, 1e-3), None);
    }

    #[test]
    fn cells_have_more_sources_than_nodes() {
        let of = |sources, max_level| level(sources, 1, 7, max_level, 1.0);
        assert_eq!([of(2_700, 9), of(3_000, 9), of(1_000_000, 9)], [None, Some(1), Some(3)]);
        assert_eq!(level(1_000_000, 1, 7, 9, 4.0 / 3.0), Some(4));
        assert_eq!([of(1_000_000, 2), of(1 << 30, 9)], [Some(2), Some(4)]);
        assert_eq!(level(100_000, 132 * LEAST_SOURCES, 7, 9, 1.0), None);
        assert_eq!([cells(1), cells(2), cells(3)], [8, 72, 584]);
    }
}
