//! Was the field good enough? All sources on a few targets directly, beside the passes, and what the far field made of them.
//!
//! Enters: the arguments of an evaluation, kind by kind. Leaves: relative errors, which come to the host with the head of the
//! state. What is to be added to the caller's field waits here until it is known to be good.

use super::args::{FmmArg, StateHead};
use super::{Kind, Recipe};
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::direct::{Output, name_of};
use crate::backend::cuda::gather::RealsArg;
use crate::backend::cuda::memory::Buffer;
use crate::backend::cuda::stream::{Event, Stream, launch};
use crate::error::Result;
use std::sync::Arc;

/// Kinds of source that a field can have, sampled targets, numbers at a target, as in kernels/fmm_check.cu.
const KINDS: usize = 2;
const SAMPLES: usize = 32;
const NUMBERS: usize = 12;
/// Most sums of a pair there.
const TERMS: usize = 14;
/// Sources of a block where they are few.
const SOURCES: usize = 128;
/// Sums of L2P's warps at most that give the size that errors are relative to, of three numbers each.
const SIZES: usize = 1024 + 4;
/// A gradient's error counts a thirtieth, as on the CPU.
const GRADIENT: f64 = 30.0;

/// Mirrors `Check` of kernels/fmm_check.cuh, which compares in the last block of L2P.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CheckArg {
    partial: u64,
    exact: u64,
    ticket: u64,
    head: u64,
    size: u64,
    slot: u32,
    /// Kinds of source that make the field; 0: others come after this one.
    kinds: u32,
}

const _: () = assert!(size_of::<CheckArg>() == 48 && size_of::<StateHead>() == 64);
const _: () = assert!(std::mem::offset_of!(StateHead, error) == 48);

/// Place of a kind among those of the field.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub slot: usize,
    pub of: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct CheckKernels {
    sample: Function,
}

impl CheckKernels {
    /// They sum in double precision whatever the field's is.
    pub fn find(context: &Context, recipe: &Recipe) -> Result<Self> {
        let kind = match recipe.kind {
            Kind::Charge => "charges".to_owned(),
            Kind::Particle => format!("particles_{}", name_of(recipe.regularization)),
            Kind::Segment => format!("segments_{}", name_of(recipe.regularization)),
        };
        let gradient = if recipe.gradient { "_gradient" } else { "" };
        let sample = format!("fmm_sample_{kind}{gradient}_f64");
        Ok(Self { sample: context.function("fmm_check", &sample)? })
    }
}

/// What the checks of one engine need.
#[derive(Debug)]
pub struct Check {
    side: Stream,
    fork: Event,
    done: Event,
    partial: Buffer<f64>,
    exact: Buffer<f64>,
    size: Buffer<f64>,
    ticket: Buffer<u32>,
    /// Fields to be added.
    main: Buffer<u8>,
    gradient: Buffer<u8>,
    blocks: usize,
}

impl Check {
    pub fn new(context: &Arc<Context>, stream: &Stream) -> Result<Self> {
        let blocks = context.info.multiprocessors.max(1) as usize;
        let mut check = Self {
            side: Stream::new(context)?,
            fork: Event::new(context)?,
            done: Event::new(context)?,
            partial: Buffer::new(context),
            exact: Buffer::new(context),
            size: Buffer::new(context),
            ticket: Buffer::new(context),
            main: Buffer::new(context),
            gradient: Buffer::new(context),
            blocks,
        };
        check.partial.reserve(blocks * TERMS * SAMPLES)?;
        check.exact.reserve(KINDS * SAMPLES * NUMBERS)?;
        check.size.reserve(3 * SIZES)?;
        check.ticket.clear(2, stream)?;
        Ok(check)
    }

    pub fn bytes(&self) -> u64 {
        self.partial.bytes()
            + self.exact.bytes()
            + self.size.bytes()
            + self.ticket.bytes()
            + self.main.bytes()
            + self.gradient.bytes()
    }

    pub fn arg(&self, place: Place, head: u64) -> CheckArg {
        CheckArg {
            partial: self.partial.address(),
            exact: self.exact.address(),
            ticket: self.ticket.address(),
            head,
            size: self.size.address(),
            slot: place.slot as u32,
            kinds: if place.slot + 1 == place.of { place.of as u32 } else { 0 },
        }
    }

    /// Starts the direct sums beside what `stream` gets from now on; it has the root cube by then.
    pub fn begin(&self, kernels: &CheckKernels, f: &FmmArg, c: &CheckArg, stream: &Stream) -> Result<()> {
        self.fork.record(stream)?;
        self.side.wait(&self.fork)?;
        self.sum(kernels, f, c, &self.side)?;
        self.done.record(&self.side)
    }

    pub fn join(&self, stream: &Stream) -> Result<()> {
        stream.wait(&self.done)
    }

    /// Starts the direct sums on `stream`.
    pub fn sum(&self, kernels: &CheckKernels, f: &FmmArg, c: &CheckArg, stream: &Stream) -> Result<()> {
        let blocks = (f.n_in as usize).div_ceil(SOURCES).min(self.blocks).max(1);
        // SAFETY: arguments as in fmm_check.cu; `partial` has room for that many blocks.
        unsafe { launch!(stream, kernels.sample, [blocks as u32, 1, 1], 256, 0; *f, *c) }
    }

    /// Where a field of so many targets is put that will be added to `output`.
    pub fn hold(&mut self, output: Output, main: usize, n: usize) -> Result<Output> {
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

    /// Starts adding what was held.
    pub fn add(&self, held: Output, output: Output, main: usize, n: usize, stream: &Stream) -> Result<()> {
        let kernel = stream.context().function("fmm_check", "fmm_add")?;
        for (from, to, numbers) in [(held.main, output.main, main * n), (held.gradient, output.gradient, 3 * main * n)]
        {
            if to.address == 0 {
                continue;
            }
            let blocks = numbers.div_ceil(256).min(16 * self.blocks) as u32;
            let is_f64 = u32::from(to.is_f64 != 0);
            // SAFETY: arguments as in fmm_check.cu; both arrays have so many numbers.
            unsafe {
                launch!(stream, kernel, [blocks, 1, 1], 256, 0; to.address, from.address, is_f64, numbers as u64)?
            };
        }
        Ok(())
    }
}

/// What the tolerance is compared with; NaN where nothing could be compared.
pub fn counted(error: [f64; 2]) -> f64 {
    if error[0].is_nan() { error[0] } else { error[0].max(error[1] / GRADIENT) }
}
