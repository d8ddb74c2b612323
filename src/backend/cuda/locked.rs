//! Page-locked host memory: the bus reads and writes it at full speed and beside the processor's work.
//!
//! Enters: lengths. Leaves: arrays that go back to their context's store when they are dropped, since locking pages costs
//! more than copying them; the store keeps no more than is in use.

use super::context::Context;
use super::driver::{INTERNAL, check};
use super::memory::Plain;
use crate::error::{Error, Result};
use cust::sys;
use std::sync::Arc;

/// Bytes that may lie idle in any case.
const IDLE: usize = 256 << 20;
/// Small requests share sizes, so that they find each other's blocks.
const LEAST: usize = 64 << 10;

/// A block of the store: address and bytes.
#[derive(Debug, Clone, Copy)]
struct Block {
    start: usize,
    bytes: usize,
}

/// The idle blocks of a context.
#[derive(Debug, Default)]
pub struct Store {
    idle: Vec<Block>,
    used: usize,
}

impl Store {
    /// The smallest idle block that holds `bytes` and is not three times as large.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let fits = |b: &Block| b.bytes >= bytes && b.bytes <= (3 * bytes).max(LEAST);
        let (at, _) = self.idle.iter().enumerate().filter(|(_, b)| fits(b)).min_by_key(|(_, b)| b.bytes)?;
        let block = self.idle.remove(at);
        self.used += block.bytes;
        Some(block)
    }

    /// Takes a block back; those to free, the oldest first.
    fn give(&mut self, block: Block) -> Vec<Block> {
        self.used -= block.bytes;
        self.idle.push(block);
        let (mut idle, most) = (self.idle.iter().map(|b| b.bytes).sum::<usize>(), self.used.max(IDLE));
        let mut old = 0;
        while idle > most {
            idle -= self.idle[old].bytes;
            old += 1;
        }
        self.idle.drain(..old).collect()
    }
}

impl Context {
    fn lock_pages(&self, bytes: usize) -> Result<Block> {
        if let Some(block) = self.locked.lock().take(bytes) {
            return Ok(block);
        }
        let _current = self.enter()?;
        // An eighth more, so that a slowly growing wake does not lock pages at every step.
        let bytes = (bytes + bytes / 8).max(LEAST).next_multiple_of(4096);
        let mut start = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { check(sys::cuMemHostAlloc(&mut start, bytes, sys::CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc")? };
        // SAFETY: freshly allocated with that many bytes; zero is a value of every plain type.
        unsafe { std::ptr::write_bytes(start.cast::<u8>(), 0, bytes) };
        self.locked.lock().used += bytes;
        Ok(Block { start: start as usize, bytes })
    }

    /// Frees the store, before the context goes.
    pub(super) fn unlock_all(&self) {
        let idle = std::mem::take(&mut self.locked.lock().idle);
        self.unlock(&idle);
    }

    fn unlock(&self, blocks: &[Block]) {
        if blocks.is_empty() {
            return;
        }
        if let Ok(_current) = self.enter() {
            for block in blocks {
                // SAFETY: allocated by `lock_pages`, and nobody's any more.
                let _ = unsafe { sys::cuMemFreeHost(block.start as *mut _) };
            }
        }
    }
}

/// `len` values in page-locked memory; at first whatever was left there.
#[derive(Debug)]
pub struct Locked<T> {
    context: Arc<Context>,
    block: Block,
    start: *mut T,
    len: usize,
}

// SAFETY: owned memory of plain values.
unsafe impl<T: Plain> Send for Locked<T> {}
// SAFETY: shared references only read.
unsafe impl<T: Plain + Sync> Sync for Locked<T> {}

impl<T: Plain> Locked<T> {
    pub fn new(context: &Arc<Context>, len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| Error::new(INTERNAL, "length overflow"))?;
        let block = context.lock_pages(bytes)?;
        Ok(Self { context: context.clone(), block, start: block.start as *mut T, len })
    }

    pub fn bytes(&self) -> u64 {
        self.block.bytes as u64
    }

    pub fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: the block holds `len` values, was initialized as a whole, and is this one's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl<T: Plain> AsRef<[T]> for Locked<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: as in `slice_mut`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        let spare = self.context.locked.lock().give(self.block);
        self.context.unlock(&spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_gives_back_what_fits_and_keeps_no_more_than_is_used() {
        let block = |start, mib: usize| Block { start, bytes: mib << 20 };
        let mut store = Store { idle: Vec::new(), used: 1000 << 20 };
        assert!(store.give(block(1, 200)).is_empty() && store.give(block(2, 300)).is_empty());
        assert_eq!(store.used, 500 << 20);
        assert_eq!(store.take(250 << 20).unwrap().start, 2);
        // Three times too large, or too small.
        assert!(store.take(50 << 20).is_none() && store.take(201 << 20).is_none());
        assert_eq!(store.used, 800 << 20);
        // With 300 MiB in use, 300 may lie idle: the oldest goes.
        let freed: Vec<usize> = store.give(block(3, 500)).iter().map(|b| b.start).collect();
        assert_eq!((freed, store.used), (vec![1, 3], 300 << 20));
    }
}
