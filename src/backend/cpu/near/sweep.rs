//! The loop around every pair kernel: lanes are targets, sources are broadcast.
//!
//! Enters: records of sources, ranges of them, a range of targets, a kernel of N components. Leaves: its sums added to
//! `out`. Targets go by blocks whose sums are kept in f64, sources by batches that stay in the first cache; registers are
//! emptied into the sums after each batch, so that single precision loses no digits in long sums.

use std::marker::PhantomData;
use std::ops::Range;

use super::sources::Points;
use crate::simd::{self, Kernel, Lane, Real, Simd};

/// One law of interaction of `N` components.
pub trait PairKernel<T: Real, const N: usize>: 'static {
    type Source: Copy + Sync;
    /// Adds what `source` does at the targets `x`; must be `#[inline(always)]`.
    fn add<S: Simd>(s: S, source: &Self::Source, x: [Lane<S, T>; 3], sums: &mut [Lane<S, T>; N]);
}

/// Targets whose sums are kept at a time; a multiple of every register group.
const BLOCK: usize = 128;
/// Sources between two emptyings of the registers.
const BATCH: usize = 256;
/// Pieces of ranges in a batch, at most.
const PIECES: usize = 64;

/// `K` over `ranges` of `sources` at targets `t`, with `U` registers of targets at once.
struct Sweep<'a, 'b, T: Real, K: PairKernel<T, N>, const N: usize, const U: usize> {
    sources: &'a [K::Source],
    ranges: &'a [Range<u32>],
    targets: &'a Points<T>,
    t: Range<usize>,
    out: &'a mut [&'b mut [T]],
    kernel: PhantomData<K>,
}

/// Runs a sweep with instruction set `arch`. `out`: `N` components, each as long as `t`.
pub fn sweep<T: Real, K: PairKernel<T, N>, const N: usize, const U: usize>(
    arch: pulp::Arch,
    sources: &[K::Source],
    ranges: &[Range<u32>],
    targets: &Points<T>,
    t: Range<usize>,
    out: &mut [&mut [T]],
) {
    assert_eq!(out.len(), N);
    assert!(out.iter().all(|o| o.len() == t.len()));
    simd::dispatch_with(arch, Sweep::<T, K, N, U> { sources, ranges, targets, t, out, kernel: PhantomData });
}

/// Padded coordinates of a block of targets and their sums.
struct Block<T, const N: usize> {
    n: usize,
    x: [[T; BLOCK]; 3],
    sums: [[f64; BLOCK]; N],
}

impl<T: Real, K: PairKernel<T, N>, const N: usize, const U: usize> Kernel for Sweep<'_, '_, T, K, N, U> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut begin = self.t.start;
        while begin < self.t.end {
            let n = (self.t.end - begin).min(BLOCK);
            let mut block = Block { n, x: [[T::ZERO; BLOCK]; 3], sums: [[0.0; BLOCK]; N] };
            for (x, y) in block.x.iter_mut().zip([&self.targets.x, &self.targets.y, &self.targets.z]) {
                x[..n].copy_from_slice(&y[begin..begin + n]);
                // Padding repeats a target: finite, and not a place of its own.
                let last = x[n - 1];
                x[n..].fill(last);
            }
            all_batches::<S, T, K, N, U>(s, self.sources, self.ranges, &mut block);
            let offset = begin - self.t.start;
            for (out, sums) in self.out.iter_mut().zip(&block.sums) {
                for (o, sum) in out[offset..offset + n].iter_mut().zip(sums) {
                    *o += T::of(*sum);
                }
            }
            begin += n;
        }
    }
}

/// Cuts the ranges into batches.
#[inline(always)]
fn all_batches<S: Simd, T: Real, K: PairKernel<T, N>, const N: usize, const U: usize>(
    s: S,
    sources: &[K::Source],
    ranges: &[Range<u32>],
    block: &mut Block<T, N>,
) {
    let empty: &[K::Source] = &[];
    let mut pieces = [empty; PIECES];
    let (mut count, mut total) = (0, 0);
    let mut ranges = ranges.iter();
    let mut rest = empty;
    loop {
        // One place that runs a batch: the kernel is compiled once.
        let mut done = false;
        while count < PIECES && total < BATCH {
            if rest.is_empty() {
                match ranges.next() {
                    Some(r) => rest = &sources[r.start as usize..r.end as usize],
                    None => {
                        done = true;
                        break;
                    }
                }
            }
            let (piece, after) = rest.split_at(rest.len().min(BATCH - total));
            pieces[count] = piece;
            count += 1;
            total += piece.len();
            rest = after;
        }
        one_batch::<S, T, K, N, U>(s, &pieces[..count], block);
        if done {
            return;
        }
        (count, total) = (0, 0);
    }
}

#[inline(always)]
fn one_batch<S: Simd, T: Real, K: PairKernel<T, N>, const N: usize, const U: usize>(
    s: S,
    pieces: &[&[K::Source]],
    block: &mut Block<T, N>,
) {
    let lanes = Lane::<S, T>::LANES;
    let mut at = 0;
    while at + lanes < block.n {
        group::<S, T, K, N, U>(s, pieces, block, at);
        at += U * lanes;
    }
    if at < block.n {
        group::<S, T, K, N, 1>(s, pieces, block, at);
    }
}

/// `V` registers of targets from `at` on against one batch.
#[inline(always)]
fn group<S: Simd, T: Real, K: PairKernel<T, N>, const N: usize, const V: usize>(
    s: S,
    pieces: &[&[K::Source]],
    block: &mut Block<T, N>,
    at: usize,
) {
    let lanes = Lane::<S, T>::LANES;
    let mut x = [[Lane::<S, T>::zero(s); 3]; V];
    for (v, x) in x.iter_mut().enumerate() {
        for (i, x) in x.iter_mut().enumerate() {
            *x = Lane::load(s, &block.x[i][at + v * lanes..]);
        }
    }
    let mut sums = [[Lane::<S, T>::zero(s); N]; V];
    for piece in pieces {
        for source in *piece {
            for v in 0..V {
                K::add(s, source, x[v], &mut sums[v]);
            }
        }
    }
    for (v, sums) in sums.iter().enumerate() {
        for (i, sum) in sums.iter().enumerate() {
            let mut now = [T::ZERO; 16];
            sum.store(&mut now);
            for (total, now) in block.sums[i][at + v * lanes..][..lanes].iter_mut().zip(&now) {
                *total += now.f64();
            }
        }
    }
}
