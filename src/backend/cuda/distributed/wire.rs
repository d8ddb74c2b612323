//! Numbers on their way between ranks: arrays of all ranks as one, in page-locked memory.
//!
//! Enters: each rank's array, in host or device memory, in the caller's precision. Leaves: the arrays of all ranks one after
//! the other, in one precision for all. What is in device memory comes to the host first. Ranks of one node write into memory that they
//! have in common; others send.

use super::node::Node;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::direct::CudaReal;
use crate::backend::cuda::locked::Locked;
use crate::backend::cuda::memory::{Plain, copy_in};
use crate::backend::cuda::staging::{Staging, copy_by_threads};
use crate::backend::cuda::stream::{Event, Stream};
use crate::distributed::Communicator;
use crate::error::{Error, Result, WFMM_ERR_INDEX};
use crate::inputs::{ArrayReal, HostArray, Ints, Reals, RealsMut};
use crate::memory;
use std::borrow::Cow;
use std::ops::AddAssign;
use std::sync::Arc;

/// `f32` and `f64` as numbers that travel.
pub trait Wire: CudaReal + ArrayReal + AddAssign {
    /// The array itself, where it is one of these in host memory.
    fn same(reals: &Reals) -> Option<&[Self]>;
}

macro_rules! wire {
    ($t:ident, $host:ident) => {
        impl Wire for $t {
            fn same(reals: &Reals) -> Option<&[Self]> {
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
    context: Arc<Context>,
    stream: Stream,
    staging: Staging,
    begin: Event,
    node: Node,
}

impl Line {
    pub fn new(context: &Arc<Context>, pool: &Arc<rayon::ThreadPool>, communicator: &Communicator) -> Result<Self> {
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
            return Ok(Cow::Borrowed(values));
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
    pub fn ends(&mut self, ints: &Ints, n: usize, ld: usize, base: i32, points: [usize; 2]) -> Result<Vec<i32>> {
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
        let mut ends = memory::with_room(2 * n);
        for (k, row) in rows.chunks(ld).take(n).enumerate() {
            for (end, &number) in row[..2].iter().enumerate() {
                let point = i64::from(number) - i64::from(base);
                if !(0..points as i64).contains(&point) {
                    let message = format!(
                        "connectivity[{k}][{end}] = {number} is no point (index_base = {base}, n_points = {points})"
                    );
                    return Error::fail(WFMM_ERR_INDEX, message);
                }
                ends.push((point + before as i64) as i32);
            }
        }
        Ok(ends)
    }

    /// The arrays `name` of all ranks as one; `counts` are their numbers. Until the next call of that name.
    pub fn all<T: Plain + Send + Sync + std::fmt::Debug>(
        &mut self,
        call: &str,
        name: &'static str,
        mine: &[T],
        counts: impl Iterator<Item = usize>,
    ) -> Result<HostArray<T>> {
        let counts: Vec<usize> = counts.collect();
        let total = counts.iter().sum();
        if let Some(mut room) = self.node.array(&self.communicator, &self.context, name, total)? {
            let rank = self.communicator.rank();
            let (first, mine) = (counts[..rank].iter().sum(), &mine[..counts[rank]]);
            // SAFETY: each rank has a part of its own of what all have, and all agree below before anybody reads.
            let part = unsafe { room.part_mut(first, mine.len()) };
            copy_by_threads(&self.pool, part, mine);
            self.communicator.agree(call, Ok(()))?;
            return Ok(HostArray::Lent(Arc::new(room)));
        }
        let mut room = Locked::new(&self.context, total)?;
        let bytes: Vec<usize> = counts.iter().map(|n| n * size_of::<T>()).collect();
        self.communicator.spread(call, bytes_of(mine), &bytes, bytes_of_mut(room.slice_mut()))?;
        Ok(HostArray::Lent(Arc::new(room)))
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
