//! Page-locked host memory: the bus reads and writes it at full speed and beside the processor's work.
//!
//! Enters: lengths. Leaves: arrays that go back to their context's store when they are dropped, since locking pages costs
//! more than copying them; the store keeps no more than is in use. Of a distributed session the pages are such that the other processes of
//! the node can map them.

use super::context::Context;
use super::driver::{INTERNAL, check};
use super::memory::{Plain, register_host, unregister_host};
use super::shared_pages::{Place, SharedPages};
use crate::error::{Error, Result};
use cust::sys;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes that may lie idle in any case.
const IDLE: usize = 256 << 20;
/// Small requests share sizes, so that they find each other's blocks.
const LEAST: usize = 64 << 10;

/// A block of the store: address and bytes, and what it consists of unless the driver has made it.
#[derive(Debug)]
struct Block {
    start: usize,
    bytes: usize,
    pages: Option<SharedPages>,
}

/// The idle blocks of a context.
#[derive(Debug, Default)]
pub struct Store {
    idle: Vec<Block>,
    used: usize,
    /// New blocks are such that others can map them.
    shares: bool,
    /// Where others find those, by address.
    places: HashMap<usize, Place>,
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
        if self.shares && block.pages.is_none() {
            return vec![block];
        }
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
    /// From now on pages are locked that other processes of the node can map, where the system has such.
    pub fn share_pages(&self) {
        let mut store = self.locked.lock();
        if !store.shares {
            store.shares = true;
            let idle = std::mem::take(&mut store.idle);
            drop(store);
            self.unlock(idle);
        }
    }

    /// Where other processes find page-locked memory that begins at this address.
    pub fn place_of(&self, address: usize) -> Option<Place> {
        self.locked.lock().places.get(&address).copied()
    }

    fn lock_pages(&self, bytes: usize) -> Result<Block> {
        let shares = {
            let mut store = self.locked.lock();
            if let Some(block) = store.take(bytes) {
                return Ok(block);
            }
            store.shares
        };
        // An eighth more, so that a slowly growing wake does not lock pages at every step.
        let bytes = (bytes + bytes / 8).max(LEAST).next_multiple_of(4096);
        let block = match if shares { self.lock_shared(bytes) } else { self.lock_own(bytes) } {
            Err(error) if shares => {
                log::info!("{}", error.message);
                self.locked.lock().shares = false;
                self.lock_own(bytes)?
            }
            block => block?,
        };
        let mut store = self.locked.lock();
        store.used += block.bytes;
        if let Some(pages) = &block.pages {
            store.places.insert(block.start, pages.place);
        }
        Ok(block)
    }

    fn lock_shared(&self, bytes: usize) -> Result<Block> {
        let pages = SharedPages::new(bytes)?;
        let start = pages.mapping.address();
        register_host(self, start, bytes)?;
        Ok(Block { start, bytes, pages: Some(pages) })
    }

    fn lock_own(&self, bytes: usize) -> Result<Block> {
        let _current = self.enter()?;
        let mut start = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { check(sys::cuMemHostAlloc(&mut start, bytes, sys::CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc")? };
        // SAFETY: freshly allocated with that many bytes; zero is a value of every plain type.
        unsafe { std::ptr::write_bytes(start.cast::<u8>(), 0, bytes) };
        Ok(Block { start: start as usize, bytes, pages: None })
    }

    /// Frees the store, before the context goes.
    pub(super) fn unlock_all(&self) {
        let idle = std::mem::take(&mut self.locked.lock().idle);
        self.unlock(idle);
    }

    fn unlock(&self, blocks: Vec<Block>) {
        if blocks.is_empty() {
            return;
        }
        if let Ok(_current) = self.enter() {
            for block in blocks {
                if block.pages.is_some() {
                    self.locked.lock().places.remove(&block.start);
                    let _ = unregister_host(self, block.start);
                } else {
                    // SAFETY: allocated by `lock_own`, and nobody's any more.
                    let _ = unsafe { sys::cuMemFreeHost(block.start as *mut _) };
                }
            }
        }
    }
}

/// `len` values in page-locked memory; at first whatever was left there.
#[derive(Debug)]
pub struct Locked<T> {
    context: Arc<Context>,
    /// There until this is dropped.
    block: Option<Block>,
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
        Ok(Self { context: context.clone(), start: block.start as *mut T, block: Some(block), len })
    }

    pub fn bytes(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.bytes as u64)
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
        if let Some(block) = self.block.take() {
            let spare = self.context.locked.lock().give(block);
            self.context.unlock(spare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_gives_back_what_fits_and_keeps_no_more_than_is_used() {
        let block = |start, mib: usize| Block { start, bytes: mib << 20, pages: None };
        let mut store = Store { used: 1000 << 20, ..Store::default() };
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
