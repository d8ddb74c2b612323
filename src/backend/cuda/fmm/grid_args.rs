//! The struct that the kernels of `grids` take. kernels/fmm_grid_args.cuh is generated from this file by `make generate`.

use crate::backend::cuda::pointer::Pointer;

/// What kernels of fmm_check_grids.cu take beside those of fmm_check.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GridArg {
    /// [cells of levels 1 to `level`][components][nodes³] Strengths of equivalent sources; the first coordinate runs first.
    pub strength: Pointer<f64>,
    /// [slices][components][nodes³] The same of some sources of a cell of the deepest level.
    pub slices: Pointer<f64>,
    /// [8^level + 1] First sorted source and first slice of the cells of the deepest level.
    pub begin: Pointer<u32>,
    pub slice: Pointer<u32>,
    pub level: u32,
    /// Along an axis.
    pub nodes: u32,
    pub most_slices: u32,
    /// Level of the largest cells that fill the box, of which all are here; 0: of those in it not all are.
    pub box_level: u32,
    /// [8^box_level · nodes³][3] and [..][components] The equivalent sources of these cells, as the host has sources.
    pub point: Pointer<f64>,
    pub point_strength: Pointer<f64>,
}

/// Most nodes of a cell along an axis, and sources of a slice.
pub const GRID_NODES: u32 = 10;
pub const GRID_SLICE: u32 = 4096;
