//! Allocation that can fail without ending the process.
//!
//! Enters: lengths. Leaves: vectors; or an unwinding with `OutOfMemory`, which the boundary turns into a status. It passes
//! through thread pools as a panic does, but prints nothing.
//!
//! Arrays that grow with the problem are allocated here with `try_reserve`, never by `vec!` or `collect`, which abort the
//! process when the system refuses. Small allocations in code that cannot report a failure (the thread pool, texts, tables of
//! handles) are served from a static reserve when the system refuses them. The computation stops at its next `check` once more
//! than `SHORT_FROM` units of the reserve are in use; the rest serves the unwinding.

use rayon::iter::IndexedParallelIterator;

/// Payload of the unwinding: number of bytes that were refused (0: the reserve is in use).
#[derive(Debug, Clone, Copy)]
pub struct OutOfMemory {
    pub bytes: usize,
}

/// Stops the computation.
#[cold]
fn give_up(bytes: usize) -> ! {
    std::panic::resume_unwind(Box::new(OutOfMemory { bytes }))
}

/// Stops the computation where the system has refused small allocations.
#[inline]
pub fn check() {
    if is_short() {
        give_up(0);
    }
}

/// Room for `more` elements beyond the present ones.
pub fn reserve<T>(v: &mut Vec<T>, more: usize) {
    check();
    if v.try_reserve_exact(more).is_err() {
        give_up(more.saturating_mul(size_of::<T>()));
    }
}

/// An empty vector with room for `len` elements.
pub fn with_room<T>(len: usize) -> Vec<T> {
    let mut v = Vec::new();
    reserve(&mut v, len);
    v
}

/// `len` times `value`.
pub fn filled<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut v = with_room(len);
    v.resize(len, value);
    v
}

/// `len` zeros in pages that the system provides when they are first written.
pub fn zeroed(len: usize) -> Vec<f64> {
    check();
    let layout = match std::alloc::Layout::array::<f64>(len) {
        Ok(layout) if layout.size() > 0 => layout,
        Ok(_) => return Vec::new(),
        Err(_) => give_up(usize::MAX),
    };
    // SAFETY: the layout has a size.
    let start = unsafe { std::alloc::alloc_zeroed(layout) };
    if start.is_null() {
        give_up(layout.size());
    }
    // SAFETY: from the global allocator with the layout of so many numbers; zero bytes are zeros.
    unsafe { Vec::from_raw_parts(start.cast(), len, len) }
}

/// Makes `v` as long as `len`; new elements are `value`.
pub fn resize<T: Clone>(v: &mut Vec<T>, len: usize, value: T) {
    reserve(v, len.saturating_sub(v.len()));
    v.resize(len, value);
}

pub fn copy<T: Copy>(from: &[T]) -> Vec<T> {
    let mut v = with_room(from.len());
    v.extend_from_slice(from);
    v
}

/// Adds one element; room grows by doubling.
#[inline]
pub fn push<T>(v: &mut Vec<T>, value: T) {
    if v.len() == v.capacity() {
        check();
        if v.try_reserve(1).is_err() {
            give_up(2 * size_of_val(v.as_slice()));
        }
    }
    v.push(value);
}

/// Appends elements one by one.
pub fn extend<T>(v: &mut Vec<T>, from: impl IntoIterator<Item = T>) {
    from.into_iter().for_each(|x| push(v, x));
}

/// All elements of an iterator that knows its length.
pub fn collect<T>(from: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut v = with_room(from.len());
    v.extend(from);
    v
}

/// Those that satisfy a condition.
pub fn filtered<T>(from: impl Iterator<Item = T>, condition: impl FnMut(&T) -> bool) -> Vec<T> {
    let mut v = Vec::new();
    extend(&mut v, from.filter(condition));
    v
}

/// All elements of an indexed iterator, by all threads of the pool.
pub fn par_collect<T: Send>(from: impl IndexedParallelIterator<Item = T>) -> Vec<T> {
    let mut v = with_room(from.len());
    from.collect_into_vec(&mut v);
    v
}

/// The same for pairs, the parts of which go apart.
pub fn par_unzip<A: Send, B: Send>(from: impl IndexedParallelIterator<Item = (A, B)>) -> (Vec<A>, Vec<B>) {
    let (mut a, mut b) = (with_room(from.len()), with_room(from.len()));
    from.unzip_into_vecs(&mut a, &mut b);
    (a, b)
}

/// Whether more than `SHORT_FROM` units of the reserve are in use. A few may be at any time: they were taken while the system had no
/// memory for a moment, and live as long as their owners.
pub fn is_short() -> bool {
    #[cfg(feature = "reserve")]
    return reserve::RESERVE.is_short();
    #[cfg(not(feature = "reserve"))]
    false
}

/// The library's allocator: the system's, with a static reserve for small requests that it refuses.
#[cfg(feature = "reserve")]
pub mod reserve {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::UnsafeCell;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Bytes of the reserve. Its pages are not touched before the system refuses an allocation.
    const SIZE: usize = 8 << 20;
    /// Bytes of a unit, the granularity of the reserve.
    const UNIT: usize = 64;
    const UNITS: usize = SIZE / UNIT;
    /// Largest request that is served, in bytes: larger ones go through the functions above.
    const LARGEST: usize = 64 << 10;
    /// Units in use from which computations stop; the rest serves the unwinding.
    const SHORT_FROM: usize = UNITS / 8;

    #[repr(C, align(4096))]
    struct Pool(UnsafeCell<[u8; SIZE]>);

    /// First-fit allocator with a bit for each unit. Slow, and rarely used.
    pub struct Reserve {
        pool: Pool,
        taken: UnsafeCell<[u64; UNITS / 64]>,
        lock: AtomicBool,
        in_use: AtomicUsize,
    }

    // `taken` is touched under `lock` only; a block of `pool` belongs to who was given it.
    unsafe impl Sync for Reserve {}

    pub static RESERVE: Reserve = Reserve {
        pool: Pool(UnsafeCell::new([0; SIZE])),
        taken: UnsafeCell::new([0; UNITS / 64]),
        lock: AtomicBool::new(false),
        in_use: AtomicUsize::new(0),
    };

    impl Reserve {
        pub fn is_short(&self) -> bool {
            self.in_use.load(Ordering::Relaxed) > SHORT_FROM
        }

        fn start(&self) -> *mut u8 {
            self.pool.0.get().cast()
        }

        fn holds(&self, block: *mut u8) -> bool {
            (block as usize).wrapping_sub(self.start() as usize) < SIZE
        }

        /// Runs `work` on the map of units.
        fn with_map<R>(&self, work: impl FnOnce(&mut [u64; UNITS / 64]) -> R) -> R {
            while self.lock.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
                std::hint::spin_loop();
            }
            // The lock is ours until the store below.
            let result = work(unsafe { &mut *self.taken.get() });
            self.lock.store(false, Ordering::Release);
            result
        }

        /// A block, or NULL where the request is no small one or nothing is left.
        fn take(&self, layout: Layout) -> *mut u8 {
            let units = layout.size().div_ceil(UNIT).max(1);
            let step = layout.align().div_ceil(UNIT);
            if layout.size() > LARGEST || layout.align() > 4096 {
                return std::ptr::null_mut();
            }
            let found = self.with_map(|map| {
                let mut first = 0;
                while first + units <= UNITS {
                    let Some(used) = (first..first + units).rev().find(|&u| map[u / 64] >> (u % 64) & 1 == 1) else {
                        (first..first + units).for_each(|u| map[u / 64] |= 1 << (u % 64));
                        return Some(first);
                    };
                    first = (used + 1).next_multiple_of(step);
                }
                None
            });
            found.map_or(std::ptr::null_mut(), |first| {
                self.in_use.fetch_add(units, Ordering::Relaxed);
                // Inside the pool: `first + units` units end with it at the latest.
                unsafe { self.start().add(first * UNIT) }
            })
        }

        fn give_back(&self, block: *mut u8, layout: Layout) {
            let units = layout.size().div_ceil(UNIT).max(1);
            let first = (block as usize - self.start() as usize) / UNIT;
            self.with_map(|map| (first..first + units).for_each(|u| map[u / 64] &= !(1 << (u % 64))));
            self.in_use.fetch_sub(units, Ordering::Relaxed);
        }
    }

    /// See `reserve`.
    pub struct Allocator;

    // Every block comes from the system or from the reserve, its address tells which, and each goes back where it came from.
    unsafe impl GlobalAlloc for Allocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let block = unsafe { System.alloc(layout) };
            if block.is_null() { RESERVE.take(layout) } else { block }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            let block = unsafe { System.alloc_zeroed(layout) };
            if !block.is_null() {
                return block;
            }
            let block = RESERVE.take(layout);
            if !block.is_null() {
                // Blocks of the reserve are used again.
                unsafe { block.write_bytes(0, layout.size()) };
            }
            block
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            if RESERVE.holds(block) {
                return RESERVE.give_back(block, layout);
            }
            unsafe { System.dealloc(block, layout) }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if !RESERVE.holds(block) {
                let moved = unsafe { System.realloc(block, layout, size) };
                if !moved.is_null() {
                    return moved;
                }
            }
            // The caller vouches for size and alignment, as for `alloc`; the old block is given back only after the copy.
            unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !new.is_null() {
                    new.copy_from_nonoverlapping(block, size.min(layout.size()));
                    self.dealloc(block, layout);
                }
                new
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_reserve_gives_apart_takes_back_and_ends() {
            static OWN: Reserve = Reserve {
                pool: Pool(UnsafeCell::new([0; SIZE])),
                taken: UnsafeCell::new([0; UNITS / 64]),
                lock: AtomicBool::new(false),
                in_use: AtomicUsize::new(0),
            };
            let small = Layout::from_size_align(1, 1).unwrap();
            let page = Layout::from_size_align(5000, 4096).unwrap();
            let (a, b, c) = (OWN.take(small), OWN.take(page), OWN.take(small));
            assert!(OWN.holds(a) && (b as usize).is_multiple_of(4096) && b as usize >= a as usize + UNIT);
            assert_eq!(c as usize, a as usize + UNIT, "the gap before the page is used");
            OWN.give_back(a, small);
            assert_eq!(OWN.take(small), a);
            let large = Layout::from_size_align(LARGEST, 8).unwrap();
            let blocks: Vec<_> = std::iter::from_fn(|| Some(OWN.take(large)).filter(|b| !b.is_null())).collect();
            assert_eq!(blocks.len(), SIZE / LARGEST - 1);
            assert!(OWN.is_short() && OWN.take(Layout::from_size_align(LARGEST + 1, 8).unwrap()).is_null());
            blocks.into_iter().for_each(|block| OWN.give_back(block, large));
            OWN.give_back(b, page);
            assert_eq!((OWN.in_use.load(Ordering::Relaxed), OWN.is_short()), (2, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn too_much_unwinds_with_the_bytes() {
        let unwound = std::panic::catch_unwind(|| with_room::<u64>(1 << 58)).unwrap_err();
        assert_eq!(unwound.downcast_ref::<OutOfMemory>().unwrap().bytes, 1 << 61);
    }

    #[test]
    fn vectors_are_what_vec_would_have_made() {
        assert_eq!(filled(7, 3), vec![7; 3]);
        assert_eq!((zeroed(3), zeroed(0)), (vec![0.0; 3], vec![]));
        assert_eq!(collect((0..5).map(|k| k * k)), vec![0, 1, 4, 9, 16]);
        assert_eq!(par_collect((0..5000u32).into_par_iter()), (0..5000).collect::<Vec<_>>());
        let mut v = copy(&[1, 2]);
        extend(&mut v, [3, 4]);
        resize(&mut v, 5, 9);
        assert_eq!(v, [1, 2, 3, 4, 9]);
    }
}
