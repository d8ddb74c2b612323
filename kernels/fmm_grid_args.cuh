// The struct that kernels of exact sums by grids take, and constants that the host shares with them.
// Generated from src/backend/cuda/fmm/grid_args.rs by `make generate`; do not edit.

#pragma once

#include "pointer.cuh"

namespace fmm {

/// Most nodes of a cell along an axis, and sources of a slice.
constexpr static const unsigned GRID_NODES = 10;

constexpr static const unsigned GRID_SLICE = 4096;

/// What kernels of fmm_check_grids.cu take beside those of fmm_check.cu.
struct Grid {
    /// [cells of levels 1 to `level`][components][nodes³] Strengths of equivalent sources; the first coordinate runs first.
    Pointer<double> strength;
    /// [slices][components][nodes³] The same of some sources of a cell of the deepest level.
    Pointer<double> slices;
    /// [8^level + 1] First sorted source and first slice of the cells of the deepest level.
    Pointer<unsigned> begin;
    Pointer<unsigned> slice;
    unsigned level;
    /// Along an axis.
    unsigned nodes;
    unsigned most_slices;
    /// Level of the largest cells that fill the box, of which all are here; 0: of those in it not all are.
    unsigned box_level;
    /// [8^box_level · nodes³][3] and [..][components] The equivalent sources of these cells, as the host has sources.
    Pointer<double> point;
    Pointer<double> point_strength;
};

}  // namespace fmm
