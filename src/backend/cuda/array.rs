//! Arrays in device memory that know their length, views of parts of them, and vectors whose memory goes round.
//!
//! Enters: lengths. Leaves: spans, which kernels and copies take; a span lives no longer than the memory that it is of.

use super::context::Context;
use super::memory::{Buffer, Plain, copy_on_device};
use super::stream::Stream;
use crate::error::Result;
use parking_lot::Mutex;
use std::marker::PhantomData;
use std::sync::Arc;

/// Where `len` of the `whole` values at `address` begin, from value `from` on.
fn begin<T>(address: u64, whole: usize, from: usize, len: usize) -> u64 {
    assert!(from + len <= whole, "a part from {from} of {len} in {whole}");
    address + (from * size_of::<T>()) as u64
}

/// A part of an array, to be read.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a, T> {
    address: u64,
    len: usize,
    of: PhantomData<&'a [T]>,
}

/// A part of an array, to be written.
#[derive(Debug)]
pub struct SpanMut<'a, T> {
    address: u64,
    len: usize,
    of: PhantomData<&'a mut [T]>,
}

impl<'a, T> Span<'a, T> {
    /// A caller's array.
    pub fn of_caller(address: u64, len: usize) -> Self {
        Self { address, len, of: PhantomData }
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `len` values from `from` on.
    pub fn part(self, from: usize, len: usize) -> Span<'a, T> {
        Span { address: begin::<T>(self.address, self.len, from, len), len, of: PhantomData }
    }
}

impl<T> SpanMut<'_, T> {
    /// A caller's array.
    pub fn of_caller(address: u64, len: usize) -> Self {
        Self { address, len, of: PhantomData }
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `len` values from `from` on.
    pub fn part(&mut self, from: usize, len: usize) -> SpanMut<'_, T> {
        SpanMut { address: begin::<T>(self.address, self.len, from, len), len, of: PhantomData }
    }

    /// Starts a copy of `from`, of the same length.
    pub fn copy_from(&mut self, from: Span<'_, T>, stream: &Stream) -> Result<()> {
        assert_eq!(self.len, from.len, "lengths of a copy");
        copy_on_device(self.address, from.address, self.len * size_of::<T>(), stream)
    }
}

/// An array in device memory. Contents are lost when it grows, but for `grow`.
#[derive(Debug)]
pub struct DeviceArray<T: Plain> {
    context: Arc<Context>,
    memory: Buffer<T>,
    len: usize,
}

impl<T: Plain> DeviceArray<T> {
    pub fn new(context: &Arc<Context>) -> Self {
        Self { context: context.clone(), memory: Buffer::new(context), len: 0 }
    }

    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    pub fn span(&self) -> Span<'_, T> {
        Span { address: self.memory.address(), len: self.len, of: PhantomData }
    }

    pub fn span_mut(&mut self) -> SpanMut<'_, T> {
        SpanMut { address: self.memory.address(), len: self.len, of: PhantomData }
    }

    /// Makes it `len` long; on failure it is empty.
    pub fn resize(&mut self, len: usize) -> Result<()> {
        self.len = 0;
        self.memory.reserve(len)?;
        self.len = len;
        Ok(())
    }

    /// Makes it `len` long and keeps its first `held` values; on failure it is as it was.
    pub fn grow(&mut self, len: usize, held: usize, stream: &Stream) -> Result<()> {
        assert!(held <= self.len && held <= len);
        if len > self.memory.capacity() {
            let mut larger = Self::new(&self.context);
            // An eighth more, as `Buffer` takes, where it grows.
            larger.resize(if held > 0 { len + len / 8 } else { len })?;
            larger.span_mut().part(0, held).copy_from(self.span().part(0, held), stream)?;
            self.memory = larger.memory;
        }
        self.len = len;
        Ok(())
    }

    /// Gives its memory back.
    pub fn release(&mut self) {
        *self = Self::new(&self.context);
    }
}

/// Memory of vectors between two uses: those of one flow are equally long and come and go at every stage.
#[derive(Debug)]
pub struct Vectors {
    context: Arc<Context>,
    idle: Mutex<Vec<DeviceArray<f64>>>,
}

/// A vector; its memory goes back to where it came from. What is queued with it must be on one stream with all other use.
#[derive(Debug)]
pub struct DeviceVector {
    array: DeviceArray<f64>,
    home: Arc<Vectors>,
}

impl Vectors {
    pub fn new(context: &Arc<Context>) -> Arc<Self> {
        Arc::new(Self { context: context.clone(), idle: Mutex::default() })
    }

    pub fn take(self: &Arc<Self>, len: usize) -> Result<DeviceVector> {
        let idle = self.idle.lock().pop();
        let mut array = idle.unwrap_or_else(|| DeviceArray::new(&self.context));
        array.resize(len)?;
        Ok(DeviceVector { array, home: self.clone() })
    }

    /// Gives idle memory back.
    pub fn release(&self) {
        self.idle.lock().clear();
    }

    pub fn bytes(&self) -> u64 {
        self.idle.lock().iter().map(DeviceArray::bytes).sum()
    }
}

impl DeviceVector {
    pub fn span(&self) -> Span<'_, f64> {
        self.array.span()
    }

    pub fn span_mut(&mut self) -> SpanMut<'_, f64> {
        self.array.span_mut()
    }

    /// The first `at` values to read, the others to write.
    pub fn split(&mut self, at: usize) -> (Span<'_, f64>, SpanMut<'_, f64>) {
        let (all, len) = (self.array.span(), self.array.span().len());
        let (head, tail) = (all.part(0, at), all.part(at, len - at));
        let tail = SpanMut { address: tail.address, len: tail.len, of: PhantomData };
        (Span { address: head.address, len: head.len, of: PhantomData }, tail)
    }

    pub fn bytes(&self) -> u64 {
        self.array.bytes()
    }
}

impl Drop for DeviceVector {
    fn drop(&mut self) {
        let empty = DeviceArray::new(&self.home.context);
        let array = std::mem::replace(&mut self.array, empty);
        if array.bytes() > 0 {
            self.home.idle.lock().push(array);
        }
    }
}
