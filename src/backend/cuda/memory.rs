//! Device memory that grows and is used again: no allocation after the first call of a size.
//!
//! Enters: lengths. Leaves: buffers whose addresses kernels take. Contents are lost when a buffer grows.

use super::context::Context;
use super::driver::check;
use super::stream::Stream;
use crate::error::{Error, Result};
use cust::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

/// Types whose every bit pattern is a value, so that they may be copied to and from a device.
///
/// # Safety
/// No references, no padding, no invalid bit patterns.
pub unsafe trait Plain: Copy + Send + 'static {}

macro_rules! plain { ($($t:ty)*) => { $( // SAFETY: plain numbers.
unsafe impl Plain for $t {} )* } }
plain! { f32 f64 i32 u32 i64 u64 u8 u16 }
// SAFETY: an array of plain values has no padding.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Grow-only device memory for `capacity` values.
#[derive(Debug)]
pub struct Buffer<T> {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
    capacity: usize,
    of: PhantomData<T>,
}

// SAFETY: a device address may be used from any thread.
unsafe impl<T> Send for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    /// An empty buffer; nothing is allocated.
    pub fn new(context: &Arc<Context>) -> Self {
        Self { context: context.clone(), address: 0, capacity: 0, of: PhantomData }
    }

    /// Makes room for `len` values; true when the address changed and the contents are lost. On failure the buffer is empty.
    pub fn reserve(&mut self, len: usize) -> Result<bool> {
        if len <= self.capacity {
            return Ok(false);
        }
        // An eighth more than asked, so that a slowly growing wake does not allocate at every step.
        let roomy = if self.capacity == 0 { len } else { len + len / 8 };
        self.free();
        let _current = self.context.enter()?;
        let take = |len: usize| -> Result<sys::CUdeviceptr> {
            let bytes = len
                .checked_mul(size_of::<T>())
                .ok_or_else(|| Error::new(super::driver::DEVICE_MEMORY, "length overflow"))?;
            let mut address = 0;
            // SAFETY: the pointer is to a live address.
            let status = unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
            check(status, &format!("cuMemAlloc of {bytes} bytes"))?;
            Ok(address)
        };
        (self.address, self.capacity) = match take(roomy) {
            Ok(address) => (address, roomy),
            Err(_) if roomy > len => (take(len)?, len),
            Err(error) => return self.context.note_loss(Err(error)),
        };
        Ok(true)
    }

    /// Device address of the first value; 0 while empty.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Device address of value `index`, for a kernel that works on a part.
    pub fn at(&self, index: usize) -> u64 {
        self.address + (index * size_of::<T>()) as u64
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn bytes(&self) -> u64 {
        (self.capacity * size_of::<T>()) as u64
    }

    /// Starts a copy from host memory; pageable memory is read before this returns.
    pub fn upload(&mut self, values: &[T], stream: &Stream) -> Result<()> {
        self.reserve(values.len())?;
        copy_in(self.address, values, stream)
    }

    /// Copies the first values to host memory and waits for them.
    pub fn download(&self, values: &mut [T], stream: &Stream) -> Result<()> {
        assert!(values.len() <= self.capacity);
        copy_out(self.address, values, stream)?;
        stream.synchronize()
    }

    /// Starts filling the first `len` values with zero bytes.
    pub fn clear(&mut self, len: usize, stream: &Stream) -> Result<()> {
        self.reserve(len)?;
        if len == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the range is inside the allocation.
        unsafe { check(sys::cuMemsetD8Async(self.address, 0, len * size_of::<T>(), stream.raw()), "cuMemsetD8Async") }
    }

    fn free(&mut self) {
        if self.address != 0
            && let Ok(_current) = self.context.enter()
        {
            // SAFETY: allocated by `reserve`; cuMemFree waits for work that may still use it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
        (self.address, self.capacity) = (0, 0);
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.address != 0
            && let Ok(_current) = self.context.enter()
        {
            // SAFETY: as in `free`.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// Starts a copy of host values to a device address.
pub fn copy_in<T: Plain>(to: u64, values: &[T], stream: &Stream) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    let _current = stream.context().enter()?;
    let from = values.as_ptr().cast::<c_void>();
    // SAFETY: the caller's slice is live during the call; for page-locked memory `Staging` waits before it is used again.
    let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, size_of_val(values), stream.raw()) };
    stream.context().note_loss(check(status, "cuMemcpyHtoDAsync"))
}

/// Starts a copy of device values to host memory; the caller must wait for the stream before it reads them.
pub fn copy_out<T: Plain>(from: u64, values: &mut [T], stream: &Stream) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    let _current = stream.context().enter()?;
    let to = values.as_mut_ptr().cast::<c_void>();
    // SAFETY: the slice is exclusively borrowed; callers keep it so until the stream has been waited for.
    let status = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, size_of_val(values), stream.raw()) };
    stream.context().note_loss(check(status, "cuMemcpyDtoHAsync"))
}

/// Starts a copy between two device addresses.
pub fn copy_on_device(to: u64, from: u64, bytes: usize, stream: &Stream) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let _current = stream.context().enter()?;
    // SAFETY: both ranges belong to live allocations of the caller.
    let status = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.raw()) };
    stream.context().note_loss(check(status, "cuMemcpyDtoDAsync"))
}

/// Starts a copy to an address of this stream's device from one of the device of `from_context`, directly where it is `within_reach`.
pub fn copy_between(to: u64, from: u64, from_context: &Context, bytes: usize, stream: &Stream) -> Result<()> {
    let (context, theirs) = (stream.context().raw(), from_context.raw());
    if context == theirs {
        return copy_on_device(to, from, bytes, stream);
    }
    if bytes == 0 {
        return Ok(());
    }
    let _current = stream.context().enter()?;
    // SAFETY: both ranges belong to live allocations of the caller, each in its context.
    let status = unsafe { sys::cuMemcpyPeerAsync(to, context, from, theirs, bytes, stream.raw()) };
    stream.context().note_loss(check(status, "cuMemcpyPeerAsync"))
}

/// Where a pointer of the host points, as the driver sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    Host,
    /// Memory of the device with this number.
    Device(i32),
    /// Managed memory: both sides may use it.
    Managed,
}

/// What the driver knows of an address: kind of memory (0: nothing), managed, device. An address that it has never seen is no
/// error for this query, as it is for that of a single attribute.
fn attributes_of(address: u64) -> [u32; 3] {
    use sys::CUpointer_attribute_enum as Attribute;
    let mut which = [
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut found = [0u32; 3];
    let mut to = found.each_mut().map(|value| std::ptr::from_mut(value).cast::<c_void>());
    // SAFETY: these attributes are written as 32-bit integers (the second at most), one to each place.
    let status = unsafe { sys::cuPointerGetAttributes(3, which.as_mut_ptr(), to.as_mut_ptr(), address) };
    if status as u32 == 0 { found } else { [0; 3] }
}

/// Asks the driver about an address (WFMM_MEMORY_AUTO). Without a driver everything is host memory.
pub fn memory_kind_of(address: u64) -> MemoryKind {
    if address == 0 || super::loader::load().is_err() {
        return MemoryKind::Host;
    }
    match attributes_of(address) {
        [2, 1, _] => MemoryKind::Managed,
        [2, _, device] => MemoryKind::Device(device as i32),
        _ => MemoryKind::Host,
    }
}

/// Starts filling device memory with zero bytes.
pub fn clear_at(address: u64, bytes: usize, stream: &Stream) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let _current = stream.context().enter()?;
    // SAFETY: the caller's range, which he has told to be an output of that length.
    unsafe { check(sys::cuMemsetD8Async(address, 0, bytes, stream.raw()), "cuMemsetD8Async") }
}

/// Page-locks memory of the caller's. He keeps it until `unregister_host`.
pub fn register_host(context: &Context, address: usize, bytes: usize) -> Result<()> {
    let _current = context.enter()?;
    // SAFETY: the range is the caller's; the driver checks that it is mapped.
    unsafe {
        check(
            sys::cuMemHostRegister_v2(address as *mut c_void, bytes, sys::CU_MEMHOSTREGISTER_PORTABLE),
            "cuMemHostRegister",
        )
    }
}

pub fn unregister_host(context: &Context, address: usize) -> Result<()> {
    let _current = context.enter()?;
    // SAFETY: the driver refuses an address that is not registered.
    unsafe { check(sys::cuMemHostUnregister(address as *mut c_void), "cuMemHostUnregister") }
}

/// Whether the bus can read and write this host memory directly: the driver knows it, as host memory.
pub fn is_page_locked(address: usize) -> bool {
    attributes_of(address as u64)[0] == 1
}
