//! The structs that the kernels of the FMM take, and the arena that their arrays are laid out in. kernels/fmm_args.cuh is generated
//! from this file by `make generate`.

use crate::backend::cuda::pointer::{ConstPointer, Pointer, Squares, State};
use std::ffi::c_void;

/// One tree: 0 the sources', 1 the targets'. n points, `cell_capacity` cells at most.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TreeArg {
    /// [n][3] the caller's positions (f32 or f64).
    pub x: ConstPointer<c_void>,
    /// Live count on the device, or null.
    pub n_device: ConstPointer<u32>,
    /// [n] Morton keys of `max_level` levels, sorted; the other buffer of the sort.
    pub key: Pointer<u64>,
    pub key_other: Pointer<u64>,
    /// [n] Index in the caller's array of the sorted point.
    pub order: Pointer<u32>,
    pub order_other: Pointer<u32>,
    /// [n] Level of the leaf that holds the sorted point.
    pub leaf_level: Pointer<u8>,
    /// [blocks of 1024 points][kLevels] First cell of each level that starts in the block.
    pub block_count: Pointer<u32>,
    /// [passes][tiles][256] Look-back state of the sort, cleared before.
    pub sort_status: Pointer<u32>,
    /// [n] Vec4<T>: sorted position (see SortedPoint) and core radius (or charge); f32: then [n] Vec4<T>, its low digits.
    pub point: Pointer<c_void>,
    /// [cells] Sorted points of the cell.
    pub begin: Pointer<u32>,
    pub end: Pointer<u32>,
    /// [cells] Parent, first child.
    pub parent: Pointer<u32>,
    pub child: Pointer<u32>,
    /// [cells] level | leaf << 5 | octant << 6 | mask of children << 16.
    pub info: Pointer<u32>,
    /// [cells] Key at the cell's own level.
    pub cell_key: Pointer<u64>,
    pub n: u32,
    pub capacity: u32,
    pub cell_capacity: u32,
    pub x_is_f64: u32,
}

/// What every kernel of the FMM takes. `T`: float or double, the precision of the computation.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FmmArg {
    pub state: Pointer<State>,
    pub tree: [TreeArg; 2],
    /// [n][3] or [n], the caller's.
    pub strength_in: ConstPointer<c_void>,
    /// [n] or null.
    pub core_in: ConstPointer<c_void>,
    /// [n][ld] End points of segments.
    pub connectivity: ConstPointer<i32>,
    /// [points][3]
    pub points: ConstPointer<c_void>,
    /// [pieces] Piece.
    pub piece: Pointer<c_void>,
    /// [blocks of `CUT_BLOCK` segments][`CUTS`] What cut_pieces has of each.
    pub cut_count: Pointer<u32>,
    /// [n] Vec4<T>, sorted: strength; or half vector and circulation of a segment.
    pub strength: Pointer<c_void>,
    /// [2][source cells] Largest core below the cell; of segments the largest product of circulation, length and core.
    pub cell_core: Pointer<f64>,
    /// [source cells][components][stride] T.
    pub multipole: Pointer<c_void>,
    /// [target cells][components][stride] T.
    pub local: Pointer<c_void>,
    /// [target cells][kBeside] Source cell at the same level beside the target cell, or kNone.
    pub near: Pointer<u32>,
    /// [target cells] Sorted by (level, octant).
    pub tile_cell: Pointer<u32>,
    /// Operator tables in fragment order, see fmm_operators.cu.
    pub operators: ConstPointer<c_void>,
    /// M2M and L2L: their fragments and the order of their columns: layout in fmm_mma.cuh.
    pub op: ConstPointer<u32>,
    /// Orbits of M2L, their fragments and the order of their columns: layout in fmm_mma.cuh.
    pub m2l: ConstPointer<u32>,
    /// [2][16] Nodes and weights of P2M along a segment.
    pub gauss: ConstPointer<f64>,
    /// [targets][fields] T: sorted near field; behind it the sums of parts of the near sources, as many each.
    pub field: Pointer<c_void>,
    /// [4][targets] Source numbers: where a group of leaves begins, those that its leaves correct one by one.
    pub smooth_list: Pointer<u32>,
    /// [target cells] Length of a group's list; kNone: not a group.
    pub smooth_count: Pointer<u32>,
    /// [target cells][8] Box of a group's targets, and its nodes along each axis.
    pub smooth_box: Pointer<f64>,
    /// The caller's arrays (f32 or f64); out_gradient may be null.
    pub out_main: Pointer<c_void>,
    pub out_gradient: Pointer<c_void>,
    pub default_core: f64,
    pub normalization: f64,
    pub core_range: f64,
    pub walk_range: f64,
    pub stretch: f64,
    /// Least side of the root cube: Real::extent of common.cuh.
    pub box_side: f64,
    pub smooth_limit: f64,
    pub cull: f64,
    pub smooth_share: f64,
    pub max_level: u32,
    pub sort_passes: u32,
    pub order: u32,
    pub stride: u32,
    pub components: u32,
    pub kind: u32,
    pub regularization: u32,
    /// Bit 0: strengths, 1: cores, 2: points of segments.
    pub inputs_are_f64: u32,
    pub out_is_f64: u32,
    pub accumulate: u32,
    pub fields: u32,
    pub gauss_points: u32,
    pub n_in: u32,
    pub ld: u32,
    pub index_base: u32,
    pub least_level: u32,
    pub m2l_cells: u32,
    pub m2l_stages: u32,
    pub smooth_power: u32,
    pub smooth_targets: u32,
    /// The field of all images but the near ones, as kernels/periodic.cuh evaluates it, or null.
    pub far_rows: ConstPointer<f64>,
    /// Of a periodic box: M2L between its largest cells, see fmm_operators.cu.
    pub box_operators: ConstPointer<c_void>,
    /// Period of the box around zero, in the caller's unit; 0: open.
    pub period: f64,
    /// In a periodic domain targets are on a line to within multiples of it (kernels/on_line.cuh), in the caller's unit; 0: open.
    pub step: f64,
    /// Degrees that `far_rows` has, and those that a target of the field takes.
    pub far_order: u32,
    pub far_used: u32,
    /// The sources and their near images: 1 or `kBeside`.
    pub images: u32,
    /// Level of the largest cells that have expansions.
    pub top: u32,
}

/// What kernels of fmm_check.cu take beside.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CheckArg {
    /// [rows][terms][samples] Sums of some sources.
    pub partial: Pointer<f64>,
    /// [kinds][samples][12] Velocity and gradient, or potential and its gradient.
    pub exact: Pointer<f64>,
    /// [samples] The sampled targets in the caller's array.
    pub at: Pointer<u32>,
    /// Blocks of the verdict that are done; zero between launches.
    pub ticket: Pointer<u32>,
    /// Host memory: the first 48 bytes of State, then SampleSums.
    pub head: Pointer<u32>,
    /// [blocks of the verdict] Of `size`.
    pub sum: Pointer<Squares>,
    /// Of what L2P wrote, sums of a warp's batch each.
    pub size: Pointer<Squares>,
    /// A multiple of 32, or all targets.
    pub samples: u32,
    /// Index of this kind of source.
    pub slot: u32,
    /// How many kinds there are; 0: others come after this one.
    pub kinds: u32,
    /// So many of the samples are in `at` already: kCertain or 0.
    pub certain: u32,
    pub seed: u32,
    pub pad: u32,
}

/// What the host judges by: of field and gradient, where there are two.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SampleSums {
    /// Sums over the sampled targets of the squared differences and of their squares.
    pub wrong: [f64; 2],
    pub fourth: [f64; 2],
    /// Of the squared differences at the targets of the largest fields.
    pub certain: [f64; 2],
    /// Of the squared exact field at the sampled targets.
    pub exact: [f64; 2],
    /// Of the squared field over all targets.
    pub written: [f64; 2],
    /// Targets that have numbers, and those that have none.
    pub targets: f64,
    pub bad: f64,
    /// Sampled targets that were compared, and those of the largest fields.
    pub n: f64,
    pub n_certain: f64,
    /// Compared targets without numbers that should have some.
    pub lost: f64,
    /// Largest velocity at `core_range` core radii from one source of this kind, from a segment that of an infinite line of its
    /// circulation; 0 without cores. Of all kinds and ranks together: what `Recipe::left_of_cores` makes of it.
    pub strongest: f64,
}

/// Room for `State`, of which the host reads the first `StateHead`.
pub const STATE_BYTES: usize = 32768;

/// Where `State` has the number of pieces that segments are cut into.
pub const PIECES: u64 = 52;
/// Segments of a block of fmm_segments.cu, and numbers that it leaves.
pub const CUT_BLOCK: usize = 1024;
/// Widths of leaves that segments may be cut for, each half of the one before; levels of leaves.
pub const CUTS: usize = 6;

/// What the host reads of `State`: its beginning, and behind it what the verdict found.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StateHead {
    pub flags: u32,
    pub deepest: [u32; 2],
    pub cells: [u32; 2],
    pub parts: u32,
    pub near_pairs: u64,
    pub core_pairs: u64,
    pub far_pairs: u64,
    /// At sampled targets, from fmm_check.cu.
    pub found: SampleSums,
}

const _: () = assert!(std::mem::offset_of!(StateHead, found) == 48);

/// `StateHead::flags`.
pub const CELLS_OVERFLOW: u32 = 1;
pub const DEPTH_OVERFLOW: u32 = 2;
/// Of fmm_reuse.cu: a target outside of the kept root cube.
pub const OUTSIDE: u32 = 8;
/// A leaf has more pairs than a direct sum is worth.
pub const DENSE: u32 = 16;

/// Hands out parts of one allocation; twice over the same sequence, first to learn the size, then with the address.
#[derive(Debug, Default)]
pub struct Arena {
    pub base: u64,
    pub used: usize,
}

impl Arena {
    pub fn take(&mut self, numbers: usize, bytes_each: usize) -> u64 {
        let at = self.base + self.used as u64;
        self.used += (numbers.max(1) * bytes_each).next_multiple_of(256);
        at
    }
}
