//! A field that is kept from the caller, in double precision: one that is added, until it has passed its check, since it cannot be
//! computed again in place; and one that single arrays would round part by part, until it is whole, since its parts may cancel.
//!
//! Enters: where the field is to go. Leaves: where it is put meanwhile; then it is put or added there.

use super::args::RealsArg;
use super::context::Context;
use super::direct::Output;
use super::memory::Buffer;
use super::stream::{Stream, launch};
use crate::error::Result;
use std::sync::Arc;

#[derive(Debug)]
pub struct Held {
    main: Buffer<f64>,
    gradient: Buffer<f64>,
}

impl Held {
    pub fn new(context: &Arc<Context>) -> Self {
        Self { main: Buffer::new(context), gradient: Buffer::new(context) }
    }

    pub fn bytes(&self) -> u64 {
        self.main.bytes() + self.gradient.bytes()
    }

    /// Whether single arrays would round a field of so many parts, which are added one after another.
    pub fn keeps_parts(output: Output, parts: usize) -> bool {
        parts > 1 && output.main.is_f64 == 0
    }

    /// Where a field of `n` targets, `main` numbers each, is put that will go to `output`.
    pub fn place(&mut self, output: Output, main: usize, n: usize) -> Result<Output> {
        let place = |buffer: &mut Buffer<f64>, arg: RealsArg, numbers: usize| -> Result<RealsArg> {
            if arg.address == 0 {
                return Ok(arg);
            }
            buffer.reserve(numbers)?;
            Ok(RealsArg { address: buffer.address(), is_f64: 1 })
        };
        Ok(Output {
            main: place(&mut self.main, output.main, main * n)?,
            gradient: place(&mut self.gradient, output.gradient, 3 * main * n)?,
            add: false,
        })
    }

    /// Starts putting what was placed to `output`, or adding it there.
    pub fn hand_over(&self, output: Output, main: usize, n: usize, stream: &Stream) -> Result<()> {
        let kernel = stream.context().function("gather", "hand_over")?;
        let most = 16 * stream.context().info.multiprocessors.max(1) as usize;
        for (from, to, numbers) in
            [(&self.main, output.main, main * n), (&self.gradient, output.gradient, 3 * main * n)]
        {
            if to.address == 0 || numbers == 0 {
                continue;
            }
            let blocks = numbers.div_ceil(256).min(most) as u32;
            // SAFETY: arguments as in gather.cu; both arrays have so many numbers.
            unsafe {
                launch!(stream, kernel, [blocks, 1, 1], 256, 0; to, from.address(), output.add as i32, numbers as i64)?
            };
        }
        Ok(())
    }
}
