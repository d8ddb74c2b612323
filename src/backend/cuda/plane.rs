//! The kernels of kernels/plane.cu: for arrays in device memory images of the sources, or mirrored targets and both halves of a
//! field.
//!
//! Enters: a caller's device arrays, on his stream. Leaves: sources with their images; or the joint arrays that the engine reads
//! and writes, and from them the field. The numbers `kept` comes of are always added in the same order.

use super::args::RealsArg;
use super::context::{Context, Function};
use super::memory::{Buffer, copy_out};
use super::stream::{Stream, launch};
use crate::error::Result;
use crate::inputs::{Inputs, Ints, ParticleInput, Reals, RealsMut, SegmentInput};
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
    combine: [Function; 2],
    kept: [Function; 2],
    turned: [Function; 2],
    again: [Function; 2],
    ends: Function,
}

/// Arrays of sources with their images.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Points,
    Circulation,
    SegmentCore,
    Position,
    Strength,
    Core,
}

/// What becomes of an array of sources in the mirror.
#[derive(Debug, Clone, Copy)]
enum Image {
    Positions,
    PseudoVectors,
    Numbers { sign: i32 },
}

/// A plan's ground plane on a device.
#[derive(Debug)]
pub struct Mirror {
    context: Arc<Context>,
    kernels: Kernels,
    targets: Buffer<u8>,
    main: Buffer<u8>,
    gradient: Buffer<u8>,
    squares: Buffer<f64>,
    sources: [Buffer<u8>; 6],
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
            combine: find("combine")?,
            kept: find("kept")?,
            turned: find("turned")?,
            again: find("again")?,
            ends: context.function("plane", "plane_ends")?,
        })
    }
}

/// An array in device memory and its length.
fn device(reals: &Reals) -> Option<(RealsArg, usize)> {
    match reals {
        Reals::DeviceF32 { address, len } => Some((RealsArg { address: *address, is_f64: 0 }, *len)),
        Reals::DeviceF64 { address, len } => Some((RealsArg { address: *address, is_f64: 1 }, *len)),
        Reals::HostF32(_) | Reals::HostF64(_) => None,
    }
}

fn bytes(is_f64: bool) -> usize {
    if is_f64 { 8 } else { 4 }
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

    /// Starts writing vortex elements and their images, on the caller's stream: the inputs with them in the elements' place, or
    /// nothing where one of their arrays is in host memory.
    pub fn images(&mut self, plane: Plane, inputs: &Inputs, caller: u64) -> Result<Option<Inputs>> {
        let mut with = Inputs { segments: None, particles: None, charges: None, ..inputs.clone() };
        if let Some(s) = inputs.segments.as_ref().filter(|s| s.n > 0) {
            let Some(images) = self.segment_images(plane, s, caller)? else { return Ok(None) };
            with.segments = Some(images);
        }
        if let Some(p) = inputs.particles.as_ref().filter(|p| p.n > 0) {
            let Some(images) = self.particle_images(plane, p, caller)? else { return Ok(None) };
            with.particles = Some(images);
        }
        Ok(Some(with))
    }

    fn segment_images(&mut self, plane: Plane, s: &SegmentInput, caller: u64) -> Result<Option<SegmentInput>> {
        let (Some((points, len)), Some(circulation)) = (device(&s.points), device(&s.circulation)) else {
            return Ok(None);
        };
        let Ints::Device { address: ends, .. } = s.connectivity else { return Ok(None) };
        let core = match &s.core {
            None => None,
            Some(core) => match device(core) {
                None => return Ok(None),
                Some((core, _)) => {
                    Some(self.image(Slot::SegmentCore, Image::Numbers { sign: 1 }, plane, core, s.n, caller)?)
                }
            },
        };
        let n_points = len / 3;
        self.ends.reserve(4 * s.n)?;
        let (stream, to, ld, shift, n) =
            (self.stream(caller), self.ends.address(), s.ld as i64, n_points as i32, s.n as i64);
        // SAFETY: the kernel's arguments; the caller's array has n rows, as he said, the room twice as many of two.
        unsafe { launch!(stream, self.kernels.ends, blocks(s.n), BLOCK, 0; ends, ld, shift, to, n)? };
        Ok(Some(SegmentInput {
            n: 2 * s.n,
            points: self.image(Slot::Points, Image::Positions, plane, points, n_points, caller)?,
            connectivity: Ints::Device { address: self.ends.address(), len: 4 * s.n },
            ld: 2,
            circulation: self.image(
                Slot::Circulation,
                Image::Numbers { sign: -1 },
                plane,
                circulation.0,
                s.n,
                caller,
            )?,
            core,
            ..s.clone()
        }))
    }

    fn particle_images(&mut self, plane: Plane, p: &ParticleInput, caller: u64) -> Result<Option<ParticleInput>> {
        let (Some((position, _)), Some((strength, _))) = (device(&p.position), device(&p.strength)) else {
            return Ok(None);
        };
        let core = match &p.core {
            None => None,
            Some(core) => match device(core) {
                None => return Ok(None),
                Some((core, _)) => {
                    Some(self.image(Slot::Core, Image::Numbers { sign: 1 }, plane, core, p.n, caller)?)
                }
            },
        };
        Ok(Some(ParticleInput {
            n: 2 * p.n,
            position: self.image(Slot::Position, Image::Positions, plane, position, p.n, caller)?,
            strength: self.image(Slot::Strength, Image::PseudoVectors, plane, strength, p.n, caller)?,
            core,
            ..p.clone()
        }))
    }

    /// Starts writing an array of n rows and its image.
    fn image(
        &mut self,
        slot: Slot,
        image: Image,
        plane: Plane,
        from: RealsArg,
        n: usize,
        caller: u64,
    ) -> Result<Reals> {
        let is_f64 = from.is_f64 != 0;
        let len = 2 * n * if matches!(image, Image::Numbers { .. }) { 1 } else { 3 };
        let (stream, kernels, buffer) = (self.stream(caller), &self.kernels, &mut self.sources[slot as usize]);
        buffer.reserve(len * bytes(is_f64))?;
        let (which, grid, address, count) = (usize::from(is_f64), blocks(n), buffer.address(), n as i64);
        let (from, axis, position) = (from.address, plane.axis as i32, plane.position);
        // SAFETY: the kernels' arguments; the caller's array has n rows, as he said, and the room twice as many.
        unsafe {
            match image {
                Image::Positions => {
                    launch!(stream, kernels.joint[which], grid, BLOCK, 0; from, axis, position, address, count)
                }
                Image::PseudoVectors => {
                    launch!(stream, kernels.turned[which], grid, BLOCK, 0; from, axis, address, count)
                }
                Image::Numbers { sign } => {
                    launch!(stream, kernels.again[which], grid, BLOCK, 0; from, sign, address, count)
                }
            }?;
        }
        Ok(if is_f64 { Reals::DeviceF64 { address, len } } else { Reals::DeviceF32 { address, len } })
    }

    fn stream(&self, caller: u64) -> Stream {
        Stream::borrowed(&self.context, caller as *mut c_void)
    }

    /// Room for n targets and their images; where they will be.
    pub fn room(&mut self, n: usize, is_f64: bool) -> Result<Reals> {
        self.targets.reserve(6 * n * bytes(is_f64))?;
        let (address, len) = (self.targets.address(), 6 * n);
        Ok(if is_f64 { Reals::DeviceF64 { address, len } } else { Reals::DeviceF32 { address, len } })
    }

    /// Starts writing targets and images to `room`, on the caller's stream.
    pub fn join(&mut self, plane: Plane, from: RealsArg, n: usize, caller: u64) -> Result<()> {
        assert!(self.targets.capacity() >= 6 * n * bytes(from.is_f64 != 0), "room was made");
        let kernel = self.kernels.joint[usize::from(from.is_f64 != 0)];
        let (axis, position, to, count) = (plane.axis as i32, plane.position, self.targets.address(), n as i64);
        let (stream, from) = (self.stream(caller), from.address);
        // SAFETY: the kernel's arguments; the caller's array has n rows, as he said, and so has the room both times.
        unsafe { launch!(stream, kernel, blocks(n), BLOCK, 0; from, axis, position, to, count) }
    }

    /// Room for both halves of a field.
    pub fn halves(&mut self, which: Half, rows: Rows, is_f64: bool) -> Result<RealsMut<'static>> {
        let len = 2 * rows.n * rows.width;
        let buffer = self.buffer_mut(which);
        buffer.reserve(len * bytes(is_f64))?;
        let address = buffer.address();
        Ok(if is_f64 { RealsMut::DeviceF64 { address, len } } else { RealsMut::DeviceF32 { address, len } })
    }

    fn buffer_mut(&mut self, which: Half) -> &mut Buffer<u8> {
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
        let from = self.checked(which, rows, is_f64);
        let (kernel, axis, width) = (self.kernels.combine[usize::from(is_f64)], plane.axis as i32, rows.width as i32);
        let (to, add, n) = (to.address, i32::from(add), rows.n as i64);
        // SAFETY: the kernel's arguments; the caller's array has n rows, as he said, and the room both halves.
        unsafe { launch!(stream, kernel, blocks(rows.n * rows.width), BLOCK, 0; from, axis, width, to, add, n) }
    }

    fn checked(&mut self, which: Half, rows: Rows, is_f64: bool) -> u64 {
        let buffer = self.buffer_mut(which);
        assert!(buffer.capacity() >= 2 * rows.n * rows.width * bytes(is_f64), "room was made");
        buffer.address()
    }

    /// Norm of the sum of both halves of the main field, relative to that of the halves by themselves. Waits.
    pub fn kept(&mut self, plane: Plane, rows: Rows, is_f64: bool, caller: u64) -> Result<f64> {
        let stream = self.stream(caller);
        let from = self.checked(Half::Main, rows, is_f64);
        self.squares.reserve(2 * BLOCKS)?;
        let (kernel, axis, width) = (self.kernels.kept[usize::from(is_f64)], plane.axis as i32, rows.width as i32);
        let (to, n) = (self.squares.address(), rows.n as i64);
        // SAFETY: as in `combine`; two numbers a block.
        unsafe { launch!(stream, kernel, [BLOCKS as u32, 1, 1], BLOCK, 0; from, axis, width, to, n)? };
        let mut squares = [0.0; 2 * BLOCKS];
        self.squares.download(&mut squares, &stream)?;
        let sum: f64 = squares.iter().step_by(2).sum();
        let parts: f64 = squares.iter().skip(1).step_by(2).sum();
        Ok(if parts > 0.0 && sum.is_finite() { (sum / parts).sqrt() } else { 1.0 })
    }

    /// Waits for what was started on the caller's stream.
    pub fn settle(&self, caller: u64) -> Result<()> {
        self.stream(caller).synchronize()
    }

    /// Joint targets in host memory, in double precision.
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
