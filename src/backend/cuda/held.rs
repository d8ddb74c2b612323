//! A field that is kept from the caller until it has passed its check: one that is added cannot be computed again in place.
//!
//! Enters: where the field is to go. Leaves: where it is put meanwhile; then it is added there.

use super::args::RealsArg;
use super::context::Context;
use super::direct::Output;
use super::memory::Buffer;
use super::stream::{Stream, launch};
use crate::error::Result;
use std::sync::Arc;

#[derive(Debug)]
pub struct Held {
    main: Buffer<u8>,
    gradient: Buffer<u8>,
}

impl Held {
    pub fn new(context: &Arc<Context>) -> Self {
        Self { main: Buffer::new(context), gradient: Buffer::new(context) }
    }

    pub fn bytes(&self) -> u64 {
        self.main.bytes() + self.gradient.bytes()
    }

    /// Where a field of `n` targets, `main` numbers each, is put that will be added to `output`.
    pub fn place(&mut self, output: Output, main: usize, n: usize) -> Result<Output> {
        let place = |buffer: &mut Buffer<u8>, arg: RealsArg, numbers: usize| -> Result<RealsArg> {
            if arg.address == 0 {
                return Ok(arg);
            }
            buffer.reserve(numbers * if arg.is_f64 != 0 { 8 } else { 4 })?;
            Ok(RealsArg { address: buffer.address(), ..arg })
        };
        Ok(Output {
            main: place(&mut self.main, output.main, main * n)?,
            gradient: place(&mut self.gradient, output.gradient, 3 * main * n)?,
            add: false,
        })
    }

    /// Starts adding what was put at `held`.
    pub fn add(&self, held: Output, output: Output, main: usize, n: usize, stream: &Stream) -> Result<()> {
        let kernel = stream.context().function("fmm_check", "fmm_add")?;
        let most = 16 * stream.context().info.multiprocessors.max(1) as usize;
        for (from, to, numbers) in [(held.main, output.main, main * n), (held.gradient, output.gradient, 3 * main * n)]
        {
            if to.address == 0 {
                continue;
            }
            let blocks = numbers.div_ceil(256).min(most) as u32;
            let is_f64 = u32::from(to.is_f64 != 0);
            // SAFETY: arguments as in fmm_check.cu; both arrays have so many numbers.
            unsafe {
                launch!(stream, kernel, [blocks, 1, 1], 256, 0; to.address, from.address, is_f64, numbers as u64)?
            };
        }
        Ok(())
    }
}
