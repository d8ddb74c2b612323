//! Copies between the caller's ordinary memory and the device, through a ring of page-locked pieces: while one piece
//! crosses the bus, threads fill or empty another. Ordinary memory alone reaches a fifth of the bus.

use super::context::Context;
use super::locked::Locked;
use super::memory::{Plain, copy_in, copy_out, is_page_locked};
use super::stream::{Event, Stream};
use crate::error::Result;
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a piece and number of pieces: the bus needs about 1 MiB at a time to run at full speed.
const PIECE: usize = 2 << 20;
const PIECES: usize = 8;
/// Pieces that the bus fills while threads empty the others.
const AHEAD: usize = PIECES / 2;
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
        to.par_chunks_mut(share).zip(from.par_chunks(share)).for_each(|(to, from)| past_caches(to, from));
    });
}

/// Copies values that the bus reads next: no line of `to` is read for them, nor kept in a cache of this processor.
#[cfg(target_arch = "x86_64")]
pub fn past_caches<T: Plain>(to: &mut [T], from: &[T]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const STORE: usize = size_of::<__m128i>();
    let len = to.len();
    // What comes before the first place that a store may begin at, and after the last whole one.
    let before = to.as_ptr().align_offset(STORE).min(len);
    let stores = (len - before) * size_of::<T>() / STORE;
    let end = before + stores * (STORE / size_of::<T>());
    to[..before].copy_from_slice(&from[..before]);
    to[end..].copy_from_slice(&from[end..len]);
    // SAFETY: `stores` whole stores lie in both slices, from an address in `to` that is a multiple of their size; any bytes are values.
    unsafe {
        let (to, from) = (to.as_mut_ptr().add(before).cast::<__m128i>(), from.as_ptr().add(before).cast::<__m128i>());
        for k in 0..stores {
            _mm_stream_si128(to.add(k), _mm_loadu_si128(from.add(k)));
        }
        _mm_sfence();
    }
}

/// Copies values that the bus reads next.
#[cfg(not(target_arch = "x86_64"))]
pub fn past_caches<T: Plain>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
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

    /// On a thread of the pool: while the bus fills some pieces, all threads empty the others.
    fn by_pieces<T: Plain + std::ops::AddAssign + Sync>(
        &mut self,
        from: u64,
        values: &mut [T],
        add: bool,
        begun: &mut bool,
        stream: &Stream,
    ) -> Result<()> {
        let (per_piece, share) = (PIECE / size_of::<T>(), SHARE / size_of::<T>());
        let count = values.len().div_ceil(per_piece);
        let lengths: Vec<usize> = values.chunks(per_piece).map(<[T]>::len).collect();
        // Shares of each piece that are still to be handed over.
        let left: [AtomicUsize; PIECES] = Default::default();
        let mut rest = values.chunks_mut(per_piece);
        rayon::scope(|scope| {
            for i in 0..count + AHEAD - 1 {
                if i < count {
                    let ring = i % PIECES;
                    while left[ring].load(Ordering::Acquire) > 0 {
                        rayon::yield_now();
                    }
                    let piece = &mut self.pieces[ring].slice_mut()[..lengths[i] * size_of::<T>()];
                    copy_out(from + (i * PIECE) as u64, piece, stream)?;
                    self.done[ring].record(stream)?;
                    self.used[ring] = true;
                }
                let Some(oldest) = (i + 1).checked_sub(AHEAD).filter(|oldest| *oldest < count) else { continue };
                let ring = oldest % PIECES;
                self.done[ring].synchronize()?;
                let to = rest.next().unwrap_or_default();
                // SAFETY: page-locked memory is page-aligned and was filled with so many values of T; it stays as it is until all its
                // shares are handed over.
                let piece =
                    unsafe { std::slice::from_raw_parts(self.pieces[ring].as_ref().as_ptr().cast::<T>(), to.len()) };
                *begun = true;
                if count == 1 && size_of_val(piece) <= ALONE {
                    hand_over(piece, to, add);
                    continue;
                }
                let left = &left[ring];
                left.store(to.len().div_ceil(share), Ordering::Relaxed);
                for (to, piece) in to.chunks_mut(share).zip(piece.chunks(share)) {
                    scope.spawn(move |_| {
                        hand_over(piece, to, add);
                        left.fetch_sub(1, Ordering::Release);
                    });
                }
            }
            Ok(())
        })
    }
}

/// Copies or adds values to the caller's array.
fn hand_over<T: Plain + std::ops::AddAssign>(from: &[T], to: &mut [T], add: bool) {
    if add {
        to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
    } else {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_pass_the_caches_whole() {
        let from: Vec<f32> = (0..100).map(|k| k as f32).collect();
        for begin in 0..5 {
            for len in [0, 1, 3, 4, 5, 8, 31, 64] {
                let mut to = vec![-1.0f32; 100];
                past_caches(&mut to[begin..begin + len], &from[7..7 + len]);
                let want =
                    (0..100).map(|k| if (begin..begin + len).contains(&k) { (k - begin + 7) as f32 } else { -1.0 });
                assert!(to.iter().copied().eq(want), "{begin} {len}");
            }
        }
    }
}
