//! Targets in host memory divided among the devices of one process: a range of a Morton curve each.
//!
//! Enters: the targets, and the devices' contexts. Leaves: each device's targets in page-locked memory, and of every target the row of its
//! field where the fields of all devices lie one after the other.

use super::deal::Grid;
use super::wire::Wire;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::locked::Locked;
use crate::error::Result;
use crate::inputs::{HostArray, Reals, TargetInput};
use crate::memory;
use rayon::prelude::*;
use std::sync::Arc;

/// Targets that a thread takes at a time, and keys that are sampled for each device.
const CHUNK: usize = 1 << 15;
const SAMPLES: usize = 1 << 12;

#[derive(Debug, Default)]
pub struct Parts {
    /// Of each target the row of its field.
    row: Vec<u32>,
    /// Of each device.
    pub targets: Vec<TargetInput>,
}

impl Parts {
    pub fn of<T: Wire>(x: &[[T; 3]], contexts: &[&Arc<Context>], pool: &rayon::ThreadPool) -> Result<Self> {
        pool.install(|| {
            let grid = Grid::alone(x);
            let ends = ends_of(&grid, x, contexts.len());
            let of = |x: &[T; 3]| ends.partition_point(|end| *end <= grid.key(*x)) as u8;
            let device: Vec<u8> = memory::par_collect(x.par_iter().map(of));
            let counts: Vec<Vec<usize>> = memory::par_collect(device.par_chunks(CHUNK).map(|devices| {
                let mut counts = memory::filled(0, contexts.len());
                devices.iter().for_each(|&d| counts[d as usize] += 1);
                counts
            }));
            let total = |d: usize| counts.iter().map(|counts| counts[d]).sum::<usize>();
            let totals: Vec<usize> = (0..contexts.len()).map(total).collect();
            let mut locked = Vec::new();
            for (context, n) in contexts.iter().zip(&totals) {
                locked.push(Locked::<T>::new(context, 3 * n)?);
            }
            // What each chunk writes, of every device, and the rows there.
            let mut rooms: Vec<Vec<&mut [T]>> = counts.iter().map(|_| Vec::new()).collect();
            let mut starts: Vec<Vec<u32>> = counts.iter().map(|_| Vec::new()).collect();
            let mut before = 0;
            for (d, locked) in locked.iter_mut().enumerate() {
                let mut rest = locked.slice_mut();
                let mut at = before;
                for (chunk, counts) in counts.iter().enumerate() {
                    let (room, more) = rest.split_at_mut(3 * counts[d]);
                    rooms[chunk].push(room);
                    starts[chunk].push(at as u32);
                    (rest, at) = (more, at + counts[d]);
                }
                before += totals[d];
            }
            let mut row = memory::filled(0u32, x.len());
            let chunks = x.par_chunks(CHUNK).zip(device.par_chunks(CHUNK)).zip(row.par_chunks_mut(CHUNK));
            chunks
                .zip(rooms)
                .zip(starts)
                .for_each(|((((x, device), row), rooms), starts)| fill(x, device, row, rooms, starts));
            let part = |(locked, &n): (Locked<T>, &usize)| TargetInput {
                n,
                position: T::host(HostArray::Lent(Arc::new(locked))),
            };
            Ok(Self { row, targets: locked.into_iter().zip(&totals).map(part).collect() })
        })
    }

    pub fn bytes(&self) -> u64 {
        let bytes =
            |t: &TargetInput| t.position.numbers() * if matches!(t.position, Reals::HostF64(_)) { 8 } else { 4 };
        let targets = self.targets.iter().map(bytes).sum::<usize>();
        (targets + size_of_val(&self.row[..])) as u64
    }

    /// Brings fields of `width` numbers a target, in the order of the devices, to where their targets are, or adds them.
    pub fn put<T: Wire>(&self, from: &[T], width: usize, to: &mut [T], add: bool, pool: &rayon::ThreadPool) {
        let rows = to.par_chunks_mut(width).with_min_len(1 << 12).zip(&self.row);
        pool.install(|| {
            rows.for_each(|(to, &row)| {
                let from = &from[row as usize * width..][..width];
                if add {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
                } else {
                    to.copy_from_slice(from);
                }
            });
        });
    }
}

/// The first key of every device but the first: equal parts of a sample of the keys.
fn ends_of<T: Wire>(grid: &Grid, x: &[[T; 3]], devices: usize) -> Vec<u64> {
    let stride = x.len().div_ceil(SAMPLES * devices).max(1);
    let mut keys: Vec<u64> = x.iter().step_by(stride).map(|x| grid.key(*x)).collect();
    keys.sort_unstable();
    (1..devices).map(|d| keys.get(d * keys.len() / devices).map_or(u64::MAX, |key| *key)).collect()
}

/// Copies the targets of a chunk to their devices' rooms.
fn fill<T: Wire>(x: &[[T; 3]], device: &[u8], row: &mut [u32], mut rooms: Vec<&mut [T]>, mut next: Vec<u32>) {
    let mut used = memory::filled(0usize, rooms.len());
    for ((x, &device), row) in x.iter().zip(device).zip(row) {
        let device = device as usize;
        rooms[device][used[device]..used[device] + 3].copy_from_slice(x);
        used[device] += 3;
        *row = next[device];
        next[device] += 1;
    }
}
