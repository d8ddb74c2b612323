//! The arguments of the FMM kernels, mirrors of kernels/fmm.cuh, and the arena that their arrays are laid out in.

use super::verdict::SampleSums;

/// Mirrors `Tree`: addresses and sizes of one tree.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TreeArg {
    pub x: u64,
    pub n_device: u64,
    pub key: u64,
    pub key_other: u64,
    pub order: u64,
    pub order_other: u64,
    pub leaf_level: u64,
    pub block_count: u64,
    pub sort_status: u64,
    pub point: u64,
    pub begin: u64,
    pub end: u64,
    pub parent: u64,
    pub child: u64,
    pub info: u64,
    pub cell_key: u64,
    pub n: u32,
    pub capacity: u32,
    pub cell_capacity: u32,
    pub x_is_f64: u32,
}

/// Mirrors `Fmm`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FmmArg {
    pub state: u64,
    pub tree: [TreeArg; 2],
    pub strength_in: u64,
    pub core_in: u64,
    pub connectivity: u64,
    pub points: u64,
    pub piece: u64,
    pub cut_count: u64,
    pub strength: u64,
    pub cell_core: u64,
    pub multipole: u64,
    pub local: u64,
    pub near: u64,
    pub tile_cell: u64,
    pub operators: u64,
    pub op: u64,
    pub m2l: u64,
    pub gauss: u64,
    pub field: u64,
    pub smooth_list: u64,
    pub smooth_count: u64,
    pub smooth_box: u64,
    pub out_main: u64,
    pub out_gradient: u64,
    pub default_core: f64,
    pub normalization: f64,
    pub core_range: f64,
    pub walk_range: f64,
    pub stretch: f64,
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
    pub index_base: i32,
    pub least_level: u32,
    pub m2l_cells: u32,
    pub m2l_stages: u32,
    pub smooth_power: u32,
    pub smooth_targets: u32,
}

const _: () = assert!(size_of::<TreeArg>() == 144 && size_of::<FmmArg>() == 8 + 2 * 144 + 22 * 8 + 9 * 8 + 20 * 4);

/// Room for `State`, of which the host reads the first `StateHead`.
pub const STATE_BYTES: usize = 32768;

/// Where `State` has the number of pieces that segments are cut into.
pub const PIECES: u64 = 52;
/// Segments of a block of fmm_segments.cu, and numbers that it leaves: `kBlock`, `kCuts`.
pub const CUT_BLOCK: usize = 1024;
pub const CUTS: usize = 6;

/// Mirrors the beginning of `State`.
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
