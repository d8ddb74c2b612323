//! Numbers on their way between ranks, in page-locked memory.
//!
//! Enters: each rank's part of an array, in host or device memory, in the caller's precision. Leaves: the parts of all ranks, in one
//! precision for all. What is in device memory comes to the host first. Ranks of one node map each other's memory; others send.

use super::node::{Node, Part};
use crate::backend::cuda::context::Context;
use crate::backend::cuda::direct::CudaReal;
use crate::backend::cuda::locked::Locked;
use crate::backend::cuda::memory::{Plain, copy_in};
use crate::backend::cuda::staging::{Staging, copy_by_threads};
use crate::backend::cuda::stream::{Event, Stream};
use crate::distributed::Communicator;
use crate::error::Result;
use crate::inputs::{ArrayReal, HostArray, Ints, Reals, RealsMut, check_connectivity, is_point};
use crate::memory;
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::AddAssign;
use std::sync::Arc;

/// Segments that one thread takes at a time.
const SHARE: usize = 1 << 14;

/// `f32` and `f64` as numbers that travel.
pub trait Wire: CudaReal + ArrayReal + AddAssign {
    /// The array itself, where it is one of these in host memory.
    fn same(reals: &Reals) -> Option<&HostArray<Self>>;
}

macro_rules! wire {
    ($t:ident, $host:ident) => {
        impl Wire for $t {
            fn same(reals: &Reals) -> Option<&HostArray<Self>> {
                if let Reals::$host(values) = reals { Some(values) } else { None }
            }
        }
    };
}
wire!(f32, HostF32);
wire!(f64, HostF64);

pub fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain values have no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and every pattern of bits is a value.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Values from bytes that another rank has sent.
pub fn values_of<T: Plain + Default>(bytes: &[u8]) -> Vec<T> {
    let mut values = memory::filled(T::default(), bytes.len() / size_of::<T>());
    bytes_of_mut(&mut values).copy_from_slice(bytes);
    values
}

/// One rank's end: what brings arrays from and to its device, and to the others.
#[derive(Debug)]
pub struct Line {
    pub communicator: Communicator,
    pub pool: Arc<rayon::ThreadPool>,
    pub context: Arc<Context>,
    stream: Stream,
    staging: Staging,
    begin: Event,
    node: Node,
}

impl Line {
    pub fn new(context: &Arc<Context>, pool: &Arc<rayon::ThreadPool>, communicator: &Communicator) -> Result<Self> {
        if communicator.size() > 1 {
            context.share_pages();
        }
        Ok(Self {
            communicator: communicator.clone(),
            pool: pool.clone(),
            context: context.clone(),
            stream: Stream::new(context)?,
            staging: Staging::new(context, pool.clone()),
            begin: Event::new(context)?,
            node: Node::default(),
        })
    }

    pub fn bytes(&self) -> u64 {
        self.staging.bytes()
    }

    /// What is copied from now on comes after what the caller has queued on his stream.
    pub fn follow(&mut self, caller: u64) -> Result<()> {
        let caller = Stream::borrowed(&self.context, caller as *mut std::ffi::c_void);
        self.begin.record(&caller)?;
        self.stream.wait(&self.begin)
    }

    fn fetch<T: Wire>(&mut self, address: u64, len: usize) -> Result<Vec<T>> {
        let mut values = memory::filled(T::default(), len);
        self.staging.download(address, &mut values, false, &self.stream)?;
        Ok(values)
    }

    /// An array of this rank in host memory.
    pub fn own<'a, T: Wire>(&mut self, reals: &'a Reals) -> Result<Cow<'a, [T]>> {
        if let Some(values) = T::same(reals) {
            return Ok(Cow::Borrowed(&values[..]));
        }
        fn wide<T: Wire, U: Wire>(values: &[U]) -> Vec<T> {
            memory::collect(values.iter().map(|x| T::from_f64(x.to_f64())))
        }
        Ok(Cow::Owned(match reals {
            Reals::HostF32(v) => wide(v),
            Reals::HostF64(v) => wide(v),
            Reals::DeviceF32 { address, len } => wide(&self.fetch::<f32>(*address, *len)?),
            Reals::DeviceF64 { address, len } => wide(&self.fetch::<f64>(*address, *len)?),
        }))
    }

    /// The end points of `n` segments out of `points` points, which come behind `before` others.
    pub fn ends(&mut self, ints: &Ints, n: usize, ld: usize, base: i32, points: [usize; 2]) -> Result<Part> {
        let [before, points] = points;
        let fetched;
        let rows: &[i32] = match ints {
            Ints::Host(v) => v,
            Ints::Device { address, len } => {
                // Bits travel as bits.
                let bits: Vec<f32> = self.fetch(*address, *len)?;
                fetched = values_of::<i32>(bytes_of(&bits));
                &fetched
            }
        };
        let is_point = |number: i32| is_point(number, base, points);
        let mut room = Locked::new(&self.context, 2 * n)?;
        let number = |(to, row): (&mut [i32], &[i32])| {
            let end = |number: i32| (i64::from(number) - i64::from(base) + before as i64) as i32;
            to.copy_from_slice(&[end(row[0]), end(row[1])]);
            is_point(row[0]) && is_point(row[1])
        };
        let good = self.pool.install(|| {
            let pairs = room.slice_mut().par_chunks_exact_mut(2).zip(rows.par_chunks(ld));
            pairs.with_min_len(SHARE).map(number).reduce(|| true, |a, b| a & b)
        });
        if !good {
            check_connectivity(&rows[..(n - 1) * ld + 2], ld, base, points)?;
        }
        Ok(Part::of(HostArray::Lent(Arc::new(room))))
    }

    /// This rank's part of an array in page-locked memory, that of the array itself where others can map it.
    pub fn part<T: Wire>(&mut self, reals: &Reals) -> Result<Part> {
        if let Some(part) = self.found_part(reals).filter(|_| T::same(reals).is_some()) {
            return Ok(part);
        }
        let values = self.own::<T>(reals)?;
        self.copied(&values)
    }

    /// A copy of values that others can map.
    pub fn copied<T: Plain + Sync + Debug>(&self, values: &[T]) -> Result<Part> {
        let mut room = Locked::new(&self.context, values.len())?;
        copy_by_threads(&self.pool, room.slice_mut(), values);
        Ok(Part::of(HostArray::Lent(Arc::new(room))))
    }

    /// The array itself, where others can map it.
    pub fn found_part(&self, reals: &Reals) -> Option<Part> {
        let address = reals.host_address()?;
        self.context.place_of(address)?;
        match reals {
            Reals::HostF32(values) => Some(Part::of(values.clone())),
            Reals::HostF64(values) => Some(Part::of(values.clone())),
            Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => None,
        }
    }

    /// Whether arrays are sent, since some rank could not map another's memory.
    pub fn sends(&self) -> bool {
        self.node.is_apart()
    }

    /// Of each array its parts in the order of ranks, or all in one part that was sent; `bytes` are those of each array and rank.
    pub fn all(&mut self, call: &str, own: &[Part], bytes: &[Vec<usize>]) -> Result<Vec<Vec<Part>>> {
        if let Some(parts) = self.node.share(&self.communicator, &self.context, own, bytes)? {
            return Ok(parts);
        }
        let send = |(own, bytes): (&Part, &Vec<usize>)| -> Result<Vec<Part>> {
            let room = Locked::new(&self.context, bytes.iter().sum());
            let mut room = self.communicator.agree(call, room)?;
            self.communicator.spread(call, own.as_bytes(), bytes, room.slice_mut())?;
            Ok(vec![Part::of::<u8>(HostArray::Lent(Arc::new(room)))])
        };
        own.iter().zip(bytes).map(send).collect()
    }

    /// Writes a field, or adds it, to where the caller wants it.
    pub fn put<T: Wire>(&mut self, values: &[T], to: RealsMut<'_>, add: bool) -> Result<()> {
        match to {
            RealsMut::HostF32(to) => write(to, values, add),
            RealsMut::HostF64(to) => write(to, values, add),
            RealsMut::DeviceF32 { address, len } => self.send::<f32, T>(values, address, len, add)?,
            RealsMut::DeviceF64 { address, len } => self.send::<f64, T>(values, address, len, add)?,
        }
        Ok(())
    }

    fn send<U: Wire, T: Wire>(&mut self, values: &[T], address: u64, len: usize, add: bool) -> Result<()> {
        let mut here = if add { self.fetch::<U>(address, len)? } else { memory::filled(U::default(), len) };
        write(&mut here, values, add);
        copy_in(address, &here, &self.stream)?;
        self.stream.synchronize()
    }
}

fn write<U: Wire, T: Wire>(to: &mut [U], values: &[T], add: bool) {
    for (to, x) in to.iter_mut().zip(values) {
        *to = U::from_f64(if add { to.to_f64() + x.to_f64() } else { x.to_f64() });
    }
}
