// The structs that kernels of the FMM take, and constants that the host shares with them.
// Generated from src/backend/cuda/fmm/args.rs by `make generate`; do not edit.

#pragma once

#include "pointer.cuh"

namespace fmm {

/// Room for `State`, of which the host reads the first `StateHead`.
constexpr static const uintptr_t STATE_BYTES = 32768;

/// Where `State` has the number of pieces that segments are cut into.
constexpr static const unsigned long long PIECES = 52;

/// Segments of a block of fmm_segments.cu, and numbers that it leaves.
constexpr static const uintptr_t CUT_BLOCK = 1024;

/// Widths of leaves that segments may be cut for, each half of the one before; levels of leaves.
constexpr static const uintptr_t CUTS = 6;

/// `StateHead::flags`.
constexpr static const unsigned CELLS_OVERFLOW = 1;

constexpr static const unsigned DEPTH_OVERFLOW = 2;

/// Of fmm_reuse.cu: a target outside of the kept root cube.
constexpr static const unsigned OUTSIDE = 8;

/// A leaf has more pairs than a direct sum is worth.
constexpr static const unsigned DENSE = 16;

/// One tree: 0 the sources', 1 the targets'. n points, `cell_capacity` cells at most.
struct Tree {
    /// [n][3] the caller's positions (f32 or f64).
    ConstPointer<void> x;
    /// Live count on the device, or null.
    ConstPointer<unsigned> n_device;
    /// [n] Morton keys of `max_level` levels, sorted; the other buffer of the sort.
    Pointer<unsigned long long> key;
    Pointer<unsigned long long> key_other;
    /// [n] Index in the caller's array of the sorted point.
    Pointer<unsigned> order;
    Pointer<unsigned> order_other;
    /// [n] Level of the leaf that holds the sorted point.
    Pointer<unsigned char> leaf_level;
    /// [blocks of 1024 points][kLevels] First cell of each level that starts in the block.
    Pointer<unsigned> block_count;
    /// [passes][tiles][256] Look-back state of the sort, cleared before.
    Pointer<unsigned> sort_status;
    /// [n] Vec4<T>: sorted position (see SortedPoint) and core radius (or charge); f32: then [n] Vec4<T>, its low digits.
    Pointer<void> point;
    /// [cells] Sorted points of the cell.
    Pointer<unsigned> begin;
    Pointer<unsigned> end;
    /// [cells] Parent, first child.
    Pointer<unsigned> parent;
    Pointer<unsigned> child;
    /// [cells] level | leaf << 5 | octant << 6 | mask of children << 16.
    Pointer<unsigned> info;
    /// [cells] Key at the cell's own level.
    Pointer<unsigned long long> cell_key;
    unsigned n;
    unsigned capacity;
    unsigned cell_capacity;
    unsigned x_is_f64;
};

/// What every kernel of the FMM takes. `T`: float or double, the precision of the computation.
struct Fmm {
    Pointer<State> state;
    Tree tree[2];
    /// [n][3] or [n], the caller's.
    ConstPointer<void> strength_in;
    /// [n] or null.
    ConstPointer<void> core_in;
    /// [n][ld] End points of segments.
    ConstPointer<int> connectivity;
    /// [points][3]
    ConstPointer<void> points;
    /// [pieces] Piece.
    Pointer<void> piece;
    /// [blocks of `CUT_BLOCK` segments][`CUTS`] What cut_pieces has of each.
    Pointer<unsigned> cut_count;
    /// [n] Vec4<T>, sorted: strength; or half vector and circulation of a segment.
    Pointer<void> strength;
    /// [2][source cells] Largest core below the cell; of segments the largest product of circulation, length and core.
    Pointer<double> cell_core;
    /// [source cells][components][stride] T.
    Pointer<void> multipole;
    /// [target cells][components][stride] T.
    Pointer<void> local;
    /// [target cells][kBeside] Source cell at the same level beside the target cell, or kNone.
    Pointer<unsigned> near;
    /// [target cells] Sorted by (level, octant).
    Pointer<unsigned> tile_cell;
    /// Operator tables in fragment order, see fmm_operators.cu.
    ConstPointer<void> operators;
    /// M2M and L2L: their fragments and the order of their columns: layout in fmm_mma.cuh.
    ConstPointer<unsigned> op;
    /// Orbits of M2L, their fragments and the order of their columns: layout in fmm_mma.cuh.
    ConstPointer<unsigned> m2l;
    /// [2][16] Nodes and weights of P2M along a segment.
    ConstPointer<double> gauss;
    /// [targets][fields] T: sorted near field; behind it the sums of parts of the near sources, as many each.
    Pointer<void> field;
    /// [4][targets] Source numbers: where a group of leaves begins, those that its leaves correct one by one.
    Pointer<unsigned> smooth_list;
    /// [target cells] Length of a group's list; kNone: not a group.
    Pointer<unsigned> smooth_count;
    /// [target cells][8] Box of a group's targets, and its nodes along each axis.
    Pointer<double> smooth_box;
    /// The caller's arrays (f32 or f64); out_gradient may be null.
    Pointer<void> out_main;
    Pointer<void> out_gradient;
    double default_core;
    double normalization;
    double core_range;
    double walk_range;
    double stretch;
    /// Least side of the root cube: Real::extent of common.cuh.
    double box_side;
    double smooth_limit;
    double cull;
    double smooth_share;
    unsigned max_level;
    unsigned sort_passes;
    unsigned order;
    unsigned stride;
    unsigned components;
    unsigned kind;
    unsigned regularization;
    /// Bit 0: strengths, 1: cores, 2: points of segments.
    unsigned inputs_are_f64;
    unsigned out_is_f64;
    unsigned accumulate;
    unsigned fields;
    unsigned gauss_points;
    unsigned n_in;
    unsigned ld;
    unsigned index_base;
    unsigned least_level;
    unsigned m2l_cells;
    unsigned m2l_stages;
    unsigned smooth_power;
    unsigned smooth_targets;
    /// The field of all images but the near ones, as kernels/periodic.cuh evaluates it, or null.
    ConstPointer<double> far_rows;
    /// Of a periodic box: M2L between its largest cells, see fmm_operators.cu.
    ConstPointer<void> box_operators;
    /// Period of the box around zero, in the caller's unit; 0: open.
    double period;
    /// In a periodic domain targets are on a line to within multiples of it (kernels/on_line.cuh), in the caller's unit; 0: open.
    double step;
    /// Degrees that `far_rows` has, and those that a target of the field takes.
    unsigned far_order;
    unsigned far_used;
    /// The sources and their near images: 1 or `kBeside`.
    unsigned images;
    /// Level of the largest cells that have expansions.
    unsigned top;
};

/// What kernels of fmm_check.cu take beside.
struct Check {
    /// [rows][terms][samples] Sums of some sources.
    Pointer<double> partial;
    /// [kinds][samples][12] Velocity and gradient, or potential and its gradient.
    Pointer<double> exact;
    /// [samples] The sampled targets in the caller's array.
    Pointer<unsigned> at;
    /// Blocks of the verdict that are done; zero between launches.
    Pointer<unsigned> ticket;
    /// Host memory: the first 48 bytes of State, then SampleSums.
    Pointer<unsigned> head;
    /// [blocks of the verdict] Of `size`.
    Pointer<Squares> sum;
    /// Of what L2P wrote, sums of a warp's batch each.
    Pointer<Squares> size;
    /// A multiple of 32, or all targets.
    unsigned samples;
    /// Index of this kind of source.
    unsigned slot;
    /// How many kinds there are; 0: others come after this one.
    unsigned kinds;
    /// So many of the samples are in `at` already: kCertain or 0.
    unsigned certain;
    unsigned seed;
    unsigned pad;
};

/// What the host judges by: of field and gradient, where there are two.
struct SampleSums {
    /// Sums over the sampled targets of the squared differences and of their squares.
    double wrong[2];
    double fourth[2];
    /// Of the squared differences at the targets of the largest fields.
    double certain[2];
    /// Of the squared exact field at the sampled targets.
    double exact[2];
    /// Of the squared field over all targets.
    double written[2];
    /// Targets that have numbers, and those that have none.
    double targets;
    double bad;
    /// Sampled targets that were compared, and those of the largest fields.
    double n;
    double n_certain;
    /// Compared targets without numbers that should have some.
    double lost;
    /// Largest velocity at `core_range` core radii from one source of this kind, from a segment that of an infinite line of its
    /// circulation; 0 without cores. Of all kinds and ranks together: what `Recipe::left_of_cores` makes of it.
    double strongest;
};

/// What the host reads of `State`: its beginning, and behind it what the verdict found.
struct StateHead {
    unsigned flags;
    unsigned deepest[2];
    unsigned cells[2];
    unsigned parts;
    unsigned long long near_pairs;
    unsigned long long core_pairs;
    unsigned long long far_pairs;
    /// At sampled targets, from fmm_check.cu.
    SampleSums found;
};

}  // namespace fmm
