//! Structs that kernels of direct sums, gathering and flows take. kernels/args.cuh is generated from this file by `make generate`.

use super::pointer::{ConstPointer, Pointer};
use std::ffi::c_void;

/// An array of the host's in either precision.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RealsArg {
    pub address: ConstPointer<c_void>,
    pub is_f64: i64,
}

/// Lengths near one: x' = (x - origin) * scale; the scale is a power of two. Made and read on the device only.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame {
    pub origin: [f64; 3],
    pub scale: f64,
    pub low: [f64; 3],
    pub side: f64,
    /// Single precision is not enough (precision_probe.cuh), so nothing is written.
    pub needs_double: i64,
}

/// Where segments and targets are to all their digits: what single precision asks for where its own are too few.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
// The comments go into kernels/args.cuh as they are.
#[allow(rustdoc::broken_intra_doc_links)]
pub struct CallerPositionsArg {
    pub points: RealsArg,
    pub position: RealsArg,
    /// [n][ld] numbers of points.
    pub connectivity: ConstPointer<i32>,
    /// Of the targets, or null.
    pub order: ConstPointer<u32>,
    pub frame: ConstPointer<Frame>,
    pub ld: i64,
    pub base: i64,
    /// The first target, where there is no order.
    pub first: i64,
    /// What positions in a periodic box are multiples of; zero in an open domain.
    pub step: f64,
}

/// What kernels/precision_probe.cuh looks at.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ProbeArg {
    /// Of segments.
    pub points: RealsArg,
    /// Of particles or charges.
    pub position: RealsArg,
    /// Of targets.
    pub target: RealsArg,
    pub connectivity: ConstPointer<i32>,
    pub ld: i64,
    pub base: i64,
    pub n_segments: i64,
    pub n_points: i64,
    pub n_targets: i64,
    /// Square of R/r that a pair may have.
    pub most: f64,
    /// Square of r that it may have, in the frame's lengths.
    pub least: f64,
    /// Host memory; null: nobody asks.
    pub fallback: Pointer<u32>,
}

/// What of a flow's options concerns dust.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MediumArg {
    pub gravity: [f64; 3],
    pub density: f64,
    pub viscosity: f64,
    pub restitution: f64,
    pub friction: f64,
    /// Position of the ground plane on its axis.
    pub ground: f64,
    /// -1: there is none.
    pub axis: i64,
}

/// What a flow's kernels find in a step. Lengths are not negative: their bits sort as they do.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StepBits {
    /// Of the longest way of a point.
    pub displacement: u64,
    /// Of the longest segment.
    pub length: u64,
    /// 1: a number is none or infinite.
    pub infinite: u64,
    /// 1: a number is none.
    pub gaps: u64,
    /// Complement of the index of the first number that is not finite; 0: none.
    pub first: u64,
}
