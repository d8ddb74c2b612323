//! Near images of a periodic domain as sources of their own: for a direct sum, and outside of cubes for every sum.
//!
//! Enters: inputs in the domain (`periodic`), the images' vectors. Leaves: inputs with so many times the sources, and the same targets.

use super::args::RealsArg;
use super::context::Context;
use super::gather::{DeviceInputs, check_counts};
use super::memory::Buffer;
use super::periodic::{BLOCK, grid};
use super::stream::{Stream, launch};
use crate::error::Result;
use crate::memory;
use std::sync::Arc;

/// See the head of this file.
#[derive(Debug)]
pub struct Expanded {
    context: Arc<Context>,
    shifts: Buffer<f64>,
    numbers: [Buffer<f64>; 8],
    ends: Buffer<i32>,
}

impl Expanded {
    pub fn new(context: &Arc<Context>) -> Self {
        let new = || Buffer::new(context);
        let numbers = [new(), new(), new(), new(), new(), new(), new(), new()];
        Self { context: context.clone(), shifts: new(), numbers, ends: Buffer::new(context) }
    }

    pub fn bytes(&self) -> u64 {
        self.shifts.bytes() + self.ends.bytes() + self.numbers.iter().map(Buffer::bytes).sum::<u64>()
    }

    /// Sources moved by each of these vectors, the first of which is zero; the same targets.
    pub fn make(&mut self, inputs: &DeviceInputs, shifts: &[[f64; 3]], stream: &Stream) -> Result<DeviceInputs> {
        let images = shifts.len();
        check_counts(inputs, images)?;
        let mut flat = vec![];
        memory::extend(&mut flat, shifts.iter().flatten().copied());
        self.shifts.upload(&flat, stream)?;
        let mut with = *inputs;
        if let Some(far) = &mut with.far {
            (far.images, far.copies) = (None, images);
        }
        let s = &mut with.segments;
        if s.n > 0 {
            s.points = self.positions(0, s.points.address, 2 * s.n, images, stream)?;
            s.circulation = self.again(1, s.circulation, s.n, images, stream)?;
            s.core = self.again(2, s.core, s.n, images, stream)?;
            s.n *= images;
            self.ends.reserve(2 * s.n)?;
            let (kernel, to) = (self.context.function("periodic", "periodic_ends")?, self.ends.address());
            // SAFETY: arguments as in periodic.cu; there is room for two points a segment.
            unsafe { launch!(stream, kernel, grid(2 * s.n), BLOCK as u32, 0; to, 2 * s.n as i64)? };
            s.connectivity = to;
        }
        let p = &mut with.particles;
        p.position = self.positions(3, p.position.address, p.n, images, stream)?;
        p.strength = self.again(4, p.strength, 3 * p.n, images, stream)?;
        p.core = self.again(5, p.core, p.n, images, stream)?;
        p.n *= images;
        let c = &mut with.charges;
        c.position = self.positions(6, c.position.address, c.n, images, stream)?;
        c.charge = self.again(7, c.charge, c.n, images, stream)?;
        c.n *= images;
        Ok(with)
    }

    fn positions(&mut self, slot: usize, from: u64, n: usize, images: usize, stream: &Stream) -> Result<RealsArg> {
        if n == 0 {
            return Ok(RealsArg::default());
        }
        self.numbers[slot].reserve(3 * n * images)?;
        let kernel = self.context.function("periodic", "periodic_image_positions")?;
        let (shifts, to) = (self.shifts.address(), self.numbers[slot].address());
        // SAFETY: arguments as in periodic.cu; positions were brought in, and there is room for all images.
        unsafe { launch!(stream, kernel, grid(3 * n), BLOCK as u32, 0; from, n as i64, shifts, images as i32, to)? };
        Ok(RealsArg { address: to, is_f64: 1 })
    }

    fn again(&mut self, slot: usize, from: RealsArg, n: usize, images: usize, stream: &Stream) -> Result<RealsArg> {
        if n == 0 || from.address == 0 {
            return Ok(from);
        }
        self.numbers[slot].reserve(n * images)?;
        let kernel = self.context.function("periodic", "periodic_image_numbers")?;
        let to = self.numbers[slot].address();
        // SAFETY: arguments as in periodic.cu; the caller's array has n numbers, as he said, the room those of all images.
        unsafe { launch!(stream, kernel, grid(n), BLOCK as u32, 0; from, n as i64, images as i32, to)? };
        Ok(RealsArg { address: to, is_f64: 1 })
    }
}
