//! The kernels of kernels/plane.cu: images of sources in device memory, or mirrored targets and both halves of a field.
//!
//! Enters: a caller's device arrays, on his stream. Leaves: arrays with their images; or the joint arrays that the engine reads
//! and writes, and from them the field. The numbers `squares` comes of are always added in the same order.

use super::args::RealsArg;
use super::context::{Context, Function};
use super::memory::{Buffer, copy_out};
use super::stream::{Stream, launch};
use crate::backend::images::{Doubling, Image, SLOTS, Slot};
use crate::error::Result;
use crate::inputs::{Ints, Reals, RealsMut, SegmentInput};
use crate::memory;
use crate::options::Plane;
use std::ffi::c_void;
use std::sync::Arc;

const BLOCK: u32 = 256;
/// Blocks that sum squares.
const BLOCKS: usize = 256;

/// Kernels by precision of the array: single, double.
#[derive(Debug)]
struct Kernels {
    joint: [Function; 2],
    joint_widened: Function,
    combine: [Function; 2],
    kept: Function,
    turned: [Function; 2],
    again: [Function; 2],
    ends: Function,
}

/// A plan's ground plane on a device.
#[derive(Debug)]
pub struct Mirror {
    context: Arc<Context>,
    kernels: Kernels,
    targets: Buffer<u8>,
    main: Buffer<f64>,
    gradient: Buffer<f64>,
    squares: Buffer<f64>,
    sources: [Buffer<u8>; SLOTS],
    ends: Buffer<i32>,
}

/// A field of `width` numbers a row at n targets.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    pub n: usize,
    pub width: usize,
}

/// Both halves of a field: velocities or potentials, or with them their gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Main,
    Gradient,
}

impl Kernels {
    fn find(context: &Context) -> Result<Self> {
        let find = |name: &str| -> Result<[Function; 2]> {
            let of = |suffix: &str| context.function("plane", &format!("plane_{name}_{suffix}"));
            Ok([of("f32")?, of("f64")?])
        };
        Ok(Self {
            joint: find("joint")?,
            joint_widened: context.function("plane", "plane_joint_widened")?,
            combine: find("combine")?,
            kept: context.function("plane", "plane_kept")?,
            turned: find("turned")?,
            again: find("again")?,
            ends: context.function("plane", "plane_ends")?,
        })
    }

    /// What writes positions and their images.
    fn joint(&self, from_f64: bool, to_f64: bool) -> Function {
        if to_f64 && !from_f64 { self.joint_widened } else { self.joint[usize::from(from_f64)] }
    }
}

fn bytes(is_f64: bool) -> usize {
    if is_f64 { 8 } else { 4 }
}

fn reals(address: u64, len: usize, is_f64: bool) -> Reals {
    if is_f64 { Reals::DeviceF64 { address, len } } else { Reals::DeviceF32 { address, len } }
}

fn blocks(n: usize) -> [u32; 3] {
    [n.div_ceil(BLOCK as usize) as u32, 1, 1]
}

impl Mirror {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        Ok(Self {
            context: context.clone(),
            kernels: Kernels::find(context)?,
            targets: Buffer::new(context),
            main: Buffer::new(context),
            gradient: Buffer::new(context),
            squares: Buffer::new(context),
            sources: std::array::from_fn(|_| Buffer::new(context)),
            ends: Buffer::new(context),
        })
    }

    pub fn bytes(&self) -> u64 {
        let sources = self.sources.iter().map(Buffer::bytes).sum::<u64>() + self.ends.bytes();
        sources + self.targets.bytes() + self.main.bytes() + self.gradient.bytes() + self.squares.bytes()
    }

    /// What starts doubling arrays, on the caller's stream.
    pub fn about(&mut self, plane: Plane, caller: u64) -> impl Doubling {
        AtPlane { plane, caller, mirror: self }
    }

    fn stream(&self, caller: u64) -> Stream {
        Stream::borrowed(&self.context, caller as *mut c_void)
    }

    /// Starts writing n targets and after them their images, on the caller's stream; where they will be.
    pub fn join(&mut self, plane: Plane, from: RealsArg, n: usize, caller: u64) -> Result<Reals> {
        let given = from.is_f64 != 0;
        let is_f64 = given || Image::Positions.needs_double(plane);
        self.targets.reserve(6 * n * bytes(is_f64))?;
        let kernel = self.kernels.joint(given, is_f64);
        let (axis, position, to, count) = (plane.axis as i32, plane.position, self.targets.address(), n as i64);
        let (stream, from, len) = (self.stream(caller), from.address, 6 * n);
        // SAFETY: the kernel's arguments; the caller's array has n rows, as he said, and the room both times.
        unsafe { launch!(stream, kernel, blocks(n), BLOCK, 0; from, axis, position, to, count)? };
        Ok(reals(to, len, is_f64))
    }

    /// Room for both halves of a field.
    pub fn halves(&mut self, which: Half, rows: Rows) -> Result<RealsMut<'static>> {
        let len = 2 * rows.n * rows.width;
        let buffer = self.buffer_mut(which);
        buffer.reserve(len)?;
        Ok(RealsMut::DeviceF64 { address: buffer.address(), len })
    }

    fn buffer_mut(&mut self, which: Half) -> &mut Buffer<f64> {
        match which {
            Half::Main => &mut self.main,
            Half::Gradient => &mut self.gradient,
        }
    }

    /// The sum of both halves, written or added to `to`.
    pub fn combine(
        &mut self,
        plane: Plane,
        which: Half,
        rows: Rows,
        to: RealsArg,
        add: bool,
        caller: u64,
    ) -> Result<()> {
        let (stream, is_f64) = (self.stream(caller), to.is_f64 != 0);
        let from = self.checked(which, rows);
        let (kernel, axis, width) = (self.kernels.combine[usize::from(is_f64)], plane.axis as i32, rows.width as i32);
        let (to, add, n) = (to.address, i32::from(add), rows.n as i64);
        // SAFETY: the kernel's arguments; the caller's array has n rows, as he said, and the room both halves.
        unsafe { launch!(stream, kernel, blocks(rows.n * rows.width), BLOCK, 0; from, axis, width, to, add, n) }
    }

    fn checked(&mut self, which: Half, rows: Rows) -> u64 {
        let buffer = self.buffer_mut(which);
        assert!(buffer.capacity() >= 2 * rows.n * rows.width, "room was made");
        buffer.address()
    }

    /// Squares of the sum of both halves, and of the halves by themselves. Waits.
    pub fn squares(&mut self, plane: Plane, which: Half, rows: Rows, caller: u64) -> Result<[f64; 2]> {
        let stream = self.stream(caller);
        let from = self.checked(which, rows);
        self.squares.reserve(2 * BLOCKS)?;
        let (kernel, axis, width) = (self.kernels.kept, plane.axis as i32, rows.width as i32);
        let (to, n) = (self.squares.address(), rows.n as i64);
        // SAFETY: as in `combine`; two numbers a block.
        unsafe { launch!(stream, kernel, [BLOCKS as u32, 1, 1], BLOCK, 0; from, axis, width, to, n)? };
        let mut squares = [0.0; 2 * BLOCKS];
        self.squares.download(&mut squares, &stream)?;
        Ok([0, 1].map(|k| squares.iter().skip(k).step_by(2).sum()))
    }

    /// Waits for what was started on the caller's stream.
    pub fn settle(&self, caller: u64) -> Result<()> {
        self.stream(caller).synchronize()
    }

    /// Joint targets in host memory, in double precision; `is_f64`: what they are in device memory.
    pub fn targets(&self, n: usize, is_f64: bool, caller: u64) -> Result<Vec<f64>> {
        assert!(self.targets.capacity() >= 6 * n * bytes(is_f64), "room was made");
        let (stream, from) = (self.stream(caller), self.targets.address());
        if is_f64 {
            let mut x = memory::filled(0f64, 6 * n);
            copy_out(from, &mut x, &stream)?;
            stream.synchronize()?;
            return Ok(x);
        }
        let mut x = memory::filled(0f32, 6 * n);
        copy_out(from, &mut x, &stream)?;
        stream.synchronize()?;
        Ok(memory::collect(x.iter().map(|v| f64::from(*v))))
    }
}

/// Images of arrays in device memory, always made anew: their owner may have changed them in place.
struct AtPlane<'a> {
    plane: Plane,
    caller: u64,
    mirror: &'a mut Mirror,
}

impl Doubling for AtPlane<'_> {
    fn reals(&mut self, slot: Slot, image: Image, from: &Reals, n: usize, _: u64) -> Result<Option<Reals>> {
        let (from, is_f64) = match from {
            Reals::DeviceF32 { address, .. } => (*address, false),
            Reals::DeviceF64 { address, .. } => (*address, true),
            Reals::HostF32(_) | Reals::HostF64(_) => return Ok(None),
        };
        let (len, stream) = (2 * n * image.width(), self.mirror.stream(self.caller));
        let (kernels, buffer) = (&self.mirror.kernels, &mut self.mirror.sources[slot as usize]);
        let images_are_f64 = is_f64 || image.needs_double(self.plane);
        buffer.reserve(len * bytes(images_are_f64))?;
        let (which, grid, address, count) = (usize::from(is_f64), blocks(n), buffer.address(), n as i64);
        let (axis, position) = (self.plane.axis as i32, self.plane.position);
        // SAFETY: the kernels' arguments; the caller's array has n rows, as he said, and the room twice as many.
        unsafe {
            match image {
                Image::Positions => {
                    launch!(stream, kernels.joint(is_f64, images_are_f64), grid, BLOCK, 0; from, axis, position, address, count)
                }
                Image::PseudoVectors => {
                    launch!(stream, kernels.turned[which], grid, BLOCK, 0; from, axis, address, count)
                }
                Image::Numbers { sign } => {
                    launch!(stream, kernels.again[which], grid, BLOCK, 0; from, sign, address, count)
                }
            }?;
        }
        Ok(Some(reals(address, len, images_are_f64)))
    }

    fn ends(&mut self, s: &SegmentInput, shift: i32, _: u64) -> Result<Option<Ints>> {
        let Ints::Device { address: from, .. } = s.connectivity else { return Ok(None) };
        let (len, stream) = (4 * s.n, self.mirror.stream(self.caller));
        self.mirror.ends.reserve(len)?;
        let (to, ld, n) = (self.mirror.ends.address(), s.ld as i64, s.n as i64);
        // SAFETY: the kernel's arguments; the caller's array has n rows, as he said, the room twice as many of two.
        unsafe { launch!(stream, self.mirror.kernels.ends, blocks(s.n), BLOCK, 0; from, ld, shift, to, n)? };
        Ok(Some(Ints::Device { address: to, len }))
    }
}
