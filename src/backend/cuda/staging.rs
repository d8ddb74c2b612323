//! Copies between the caller's ordinary memory and the device, through a ring of page-locked pieces: while one piece
//! crosses the bus, threads fill or empty another. Ordinary memory alone reaches a fifth of the bus.

use super::context::Context;
use super::locked::Locked;
use super::memory::{Plain, copy_in, copy_out, is_page_locked};
use super::stream::{Event, Stream};
use crate::error::Result;
use rayon::prelude::*;
use std::sync::Arc;

/// Bytes of a piece and number of pieces: the bus needs about 1 MiB at a time to run at full speed.
const PIECE: usize = 4 << 20;
const PIECES: usize = 3;
/// Bytes that one thread copies at a time.
const SHARE: usize = 256 << 10;
/// Up to so many bytes the calling thread copies: waking the others takes longer.
const ALONE: usize = 1 << 20;
/// Below this a copy through ordinary memory costs less than the ring.
const SMALL: usize = 64 << 10;

/// Copies values in host memory, as many of both, by all threads of a pool.
pub fn copy_by_threads<T: Plain + Send + Sync>(pool: &rayon::ThreadPool, to: &mut [T], from: &[T]) {
    let share = SHARE / size_of::<T>();
    pool.install(|| {
        to.par_chunks_mut(share).zip(from.par_chunks(share)).for_each(|(to, from)| to.copy_from_slice(from));
    });
}

#[derive(Debug)]
pub struct Staging {
    pool: Arc<rayon::ThreadPool>,
    pieces: Vec<Locked<u8>>,
    /// The last copy of each piece.
    done: Vec<Event>,
    used: [bool; PIECES],
    context: Arc<Context>,
}

impl Staging {
    pub fn new(context: &Arc<Context>, pool: Arc<rayon::ThreadPool>) -> Self {
        Self { pool, pieces: Vec::new(), done: Vec::new(), used: [false; PIECES], context: context.clone() }
    }

    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(Locked::bytes).sum()
    }

    fn ready(&mut self) -> Result<()> {
        while self.pieces.len() < PIECES {
            let piece = Locked::new(&self.context, PIECE)?;
            self.done.push(Event::new(&self.context)?);
            self.pieces.push(piece);
        }
        Ok(())
    }

    /// Starts copying `values` to `to`. They have been read when this returns.
    pub fn upload<T: Plain>(&mut self, to: u64, values: &[T], stream: &Stream) -> Result<()> {
        // SAFETY: plain values have no padding; the bytes are only read.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        if bytes.len() <= SMALL {
            return copy_in(to, bytes, stream);
        }
        self.ready()?;
        for (i, part) in bytes.chunks(PIECE).enumerate() {
            let ring = i % PIECES;
            if self.used[ring] {
                self.done[ring].synchronize()?;
            }
            let piece = &mut self.pieces[ring].slice_mut()[..part.len()];
            copy_by_threads(&self.pool, piece, part);
            copy_in(to + (i * PIECE) as u64, piece, stream)?;
            self.done[ring].record(stream)?;
            self.used[ring] = true;
        }
        Ok(())
    }

    /// Copies device values to `values`, or adds them, and waits. The error tells whether something was added before.
    pub fn download<T: Plain + std::ops::AddAssign + Sync>(
        &mut self,
        from: u64,
        values: &mut [T],
        add: bool,
        stream: &Stream,
    ) -> Result<()> {
        // One query each for both ends: a registered array may end before the output does.
        let last = values.len().saturating_sub(1);
        if !add
            && !values.is_empty()
            && is_page_locked(values.as_ptr() as usize)
            && is_page_locked(&raw const values[last] as usize)
        {
            copy_out(from, values, stream)?;
            return stream.synchronize();
        }
        self.ready()?;
        let mut begun = false;
        let pool = self.pool.clone();
        // On a thread of the pool: the others are woken once, and not for every piece.
        let done = pool.install(|| self.by_pieces(from, values, add, &mut begun, stream));
        done.map_err(|error| if add && begun { error.after_writing() } else { error })
    }

    fn by_pieces<T: Plain + std::ops::AddAssign + Sync>(
        &mut self,
        from: u64,
        values: &mut [T],
        add: bool,
        begun: &mut bool,
        stream: &Stream,
    ) -> Result<()> {
        let per_piece = PIECE / size_of::<T>();
        let count = values.len().div_ceil(per_piece);
        let part = |i: usize| i * per_piece..((i + 1) * per_piece).min(values.len());
        let ranges: Vec<_> = (0..count).map(part).collect();
        for i in 0..count + PIECES - 1 {
            if i < count {
                let bytes = ranges[i].len() * size_of::<T>();
                let start = from + (ranges[i].start * size_of::<T>()) as u64;
                copy_out(start, &mut self.pieces[i % PIECES].slice_mut()[..bytes], stream)?;
                self.done[i % PIECES].record(stream)?;
                self.used[i % PIECES] = true;
            }
            // The oldest piece in flight is emptied while the younger ones cross the bus.
            let Some(oldest) = (i + 1).checked_sub(PIECES - 1).filter(|oldest| *oldest < count) else { continue };
            let ring = oldest % PIECES;
            self.done[ring].synchronize()?;
            let range = ranges[oldest].clone();
            let bytes = self.pieces[ring].as_ref();
            // SAFETY: page-locked memory is page-aligned and was filled with so many values of T.
            let piece = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<T>(), range.len()) };
            *begun = true;
            self.hand_over(piece, &mut values[range], add);
        }
        Ok(())
    }

    /// Copies or adds a piece to the caller's array; a small one on this thread.
    fn hand_over<T: Plain + std::ops::AddAssign + Sync>(&self, piece: &[T], to: &mut [T], add: bool) {
        let put = |to: &mut [T], from: &[T]| {
            if add {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            } else {
                to.copy_from_slice(from);
            }
        };
        let share = SHARE / size_of::<T>();
        if size_of_val(piece) <= ALONE {
            return put(to, piece);
        }
        self.pool.install(|| {
            to.par_chunks_mut(share).zip(piece.par_chunks(share)).for_each(|(to, from)| put(to, from));
        });
    }
}
