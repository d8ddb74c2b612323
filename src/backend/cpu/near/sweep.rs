//! The loop around every pair kernel: lanes are targets, sources are broadcast.
//!
//! Enters: records of sources, ranges of them, a range of targets, a kernel of N components. Leaves: its sums added to
//! `out`. Targets go by blocks whose sums are kept in f64, sources by batches that stay in the first cache; registers are
//! emptied into the sums after each batch, so that single precision loses no digits in long sums. In double precision the sums
//! keep what rounding takes from them (Knuth's two-sum): elements that cancel may be far apart in the order of the tree.
//! A kernel in single precision may leave out the pairs of a batch that are nearer than `Call::close`. Where the least distance of a
//! register tells that there are some, they are found again by the same arithmetic and added in double precision.

use std::marker::PhantomData;
use std::ops::Range;

use super::sources::{Points, Record};
use crate::simd::{self, Kernel, Lane, LaneMask, Real, Simd};

/// One register of targets.
#[derive(Clone, Copy)]
pub struct Targets<S: Simd, T: Real> {
    pub x: [Lane<S, T>; 3],
    /// The lower halves, where the source is split; else zero.
    pub low: [Lane<S, T>; 3],
    /// The squared distance from which a kernel that leaves out close pairs adds them, and the least that it has met.
    pub close: Lane<S, T>,
    pub least: Lane<S, T>,
}

impl<S: Simd, T: Real> Targets<S, T> {
    /// Whether pairs at these squared distances are close; keeps the least.
    #[inline(always)]
    pub fn are_close(&mut self, squares: Lane<S, T>) -> LaneMask<S, T> {
        self.least = self.least.min(squares);
        squares.lt(self.close)
    }

    /// x minus position `k` of `source`.
    #[inline(always)]
    pub fn from<P, R: Record<T, P>>(&self, s: S, source: &R, position: [T; 3], k: usize) -> [Lane<S, T>; 3] {
        let x = self.x;
        let d = [
            x[0] - Lane::splat(s, position[0]),
            x[1] - Lane::splat(s, position[1]),
            x[2] - Lane::splat(s, position[2]),
        ];
        if !R::SPLIT {
            return d;
        }
        let (low, x) = (source.low(k), self.low);
        [
            d[0] + (x[0] - Lane::splat(s, low[0])),
            d[1] + (x[1] - Lane::splat(s, low[1])),
            d[2] + (x[2] - Lane::splat(s, low[2])),
        ]
    }
}

/// Numbers of a block in double precision, one for each lane of a register of any size.
pub type Doubles = [f64; 16];

/// One law of interaction of `N` components, of sources `P` in records `R`.
pub trait PairKernel<T: Real, P, R: Record<T, P>, const N: usize>: 'static {
    /// Whether pairs nearer than `Targets::close` are left out, and `Targets::least` is kept.
    const CLOSE_APART: bool = false;
    /// Adds what `source` does at the targets `x`; must be `#[inline(always)]`.
    fn add<S: Simd>(s: S, source: &R, x: &mut Targets<S, T>, sums: &mut [Lane<S, T>; N]);
    /// Squared distances as `add` has them, bit by bit.
    fn squares<S: Simd>(s: S, _source: &R, _x: &Targets<S, T>) -> Lane<S, T> {
        Lane::zero(s)
    }
    /// What `source` does at the targets `at`, `[axis][lane]`, in double precision.
    fn in_double<S: Simd>(_s: S, _source: &R, _at: &[Doubles; 3]) -> [Doubles; N] {
        [[0.0; 16]; N]
    }
}

/// Targets whose sums are kept at a time; a multiple of every register group.
const BLOCK: usize = 128;
/// Sources between two emptyings of the registers: the rounding of a sum of n numbers grows with √n, or with n where they are of one sign.
/// The same for all kernels: a velocity has the same bits with its gradient and without.
const BATCH: usize = 64;
/// Pieces of ranges in a batch, at most.
const PIECES: usize = 64;

/// The arguments of a sweep over records `R`.
pub struct Call<'a, 'b, T, R> {
    pub arch: pulp::Arch,
    pub sources: &'a [R],
    pub ranges: &'a [Range<u32>],
    pub targets: &'a Points<T>,
    pub t: Range<usize>,
    /// Components, each as long as `t`.
    pub out: &'a mut [&'b mut [T]],
}

impl<'a, 'b, T: Real, R> Call<'a, 'b, T, R> {
    /// The same with other records.
    pub fn of<Q>(self, sources: &'a [Q]) -> Call<'a, 'b, T, Q> {
        Call { arch: self.arch, sources, ranges: self.ranges, targets: self.targets, t: self.t, out: self.out }
    }

    /// Runs kernel `K` of `N` components, with `U` registers of targets at once.
    pub fn sweep<P: 'static, K: PairKernel<T, P, R, N>, const N: usize, const U: usize>(self)
    where
        R: Record<T, P>,
    {
        let arch = self.arch;
        self.blocks::<N>(&|pieces, block| {
            simd::dispatch_lanes(arch, Batch::<T, P, R, K, N, U> { pieces, block, kernel: PhantomData });
        });
    }

    /// Block by block; apart from the kernels, so that it is compiled once for all of them.
    fn blocks<const N: usize>(self, batch: &BatchFn<'_, T, R, N>) {
        assert!(self.out.len() == N && self.out.iter().all(|o| o.len() == self.t.len()));
        for begin in self.t.clone().step_by(BLOCK) {
            let n = (self.t.end - begin).min(BLOCK);
            let close = T::of(self.targets.close * self.targets.close);
            let (x, low) = ([[T::ZERO; BLOCK]; 3], [[T::ZERO; BLOCK]; 3]);
            let mut block = Block { n, x, low, close, sums: [[0.0; BLOCK]; N], lost: [[0.0; BLOCK]; N] };
            for (x, y) in block.x.iter_mut().zip([&self.targets.x, &self.targets.y, &self.targets.z]) {
                x[..n].copy_from_slice(&y[begin..begin + n]);
                // Padding repeats a target: finite, and not a position of its own.
                let last = x[n - 1];
                x[n..].fill(last);
            }
            for (x, y) in block.low.iter_mut().zip(&self.targets.low) {
                if let Some(y) = y.get(begin..begin + n) {
                    x[..n].copy_from_slice(y);
                    x[n..].fill(y[n - 1]);
                }
            }
            batches(self.sources, self.ranges, BATCH, |pieces| batch(pieces, &mut block));
            let offset = begin - self.t.start;
            for ((out, sums), lost) in self.out.iter_mut().zip(&block.sums).zip(&block.lost) {
                for ((o, sum), lost) in out[offset..offset + n].iter_mut().zip(sums).zip(lost) {
                    *o += T::of(*sum + *lost);
                }
            }
        }
    }
}

/// One batch of sources against a block of targets.
type BatchFn<'a, T, R, const N: usize> = dyn Fn(&[&[R]], &mut Block<T, N>) + 'a;

/// Padded coordinates of a block of targets and their sums.
struct Block<T, const N: usize> {
    n: usize,
    x: [[T; BLOCK]; 3],
    low: [[T; BLOCK]; 3],
    /// See `Targets::close`.
    close: T,
    sums: [[f64; BLOCK]; N],
    /// What rounding took from the sums of numbers in double precision.
    lost: [[f64; BLOCK]; N],
}

/// Cuts the ranges into batches of pieces, of `most` sources.
fn batches<P>(sources: &[P], ranges: &[Range<u32>], most: usize, mut run: impl FnMut(&[&[P]])) {
    let mut pieces = [&sources[..0]; PIECES];
    let (mut count, mut total) = (0, 0);
    for r in ranges {
        let mut rest = &sources[r.start as usize..r.end as usize];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(most - total));
            pieces[count] = piece;
            count += 1;
            total += piece.len();
            rest = after;
            if count == PIECES || total == most {
                run(&pieces[..count]);
                (count, total) = (0, 0);
            }
        }
    }
    if count > 0 {
        run(&pieces[..count]);
    }
}

struct Batch<'a, 'b, T: Real, P, R: Record<T, P>, K: PairKernel<T, P, R, N>, const N: usize, const U: usize> {
    pieces: &'a [&'b [R]],
    block: &'a mut Block<T, N>,
    kernel: PhantomData<(P, K)>,
}

impl<T: Real, P, R: Record<T, P>, K: PairKernel<T, P, R, N>, const N: usize, const U: usize> Kernel
    for Batch<'_, '_, T, P, R, K, N, U>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let lanes = Lane::<S, T>::LANES;
        let mut at = 0;
        // Sixteen registers do not hold two of targets with two numbers a coordinate.
        if U > 1 && (!R::SPLIT || simd::registers::<S>() > 16) {
            while at + lanes < self.block.n {
                group::<S, T, P, R, K, N, U>(s, self.pieces, self.block, at);
                at += U * lanes;
            }
        }
        while at < self.block.n {
            group::<S, T, P, R, K, N, 1>(s, self.pieces, self.block, at);
            at += lanes;
        }
    }
}

/// `V` registers of targets from `at` on against one batch.
#[inline(always)]
fn group<S: Simd, T: Real, P, R: Record<T, P>, K: PairKernel<T, P, R, N>, const N: usize, const V: usize>(
    s: S,
    pieces: &[&[R]],
    block: &mut Block<T, N>,
    at: usize,
) {
    let lanes = Lane::<S, T>::LANES;
    let none = [Lane::<S, T>::zero(s); 3];
    let (close, far) = (Lane::splat(s, block.close), Lane::splat(s, T::of(FAR)));
    let mut x = [Targets { x: none, low: none, close, least: far }; V];
    for (v, x) in x.iter_mut().enumerate() {
        for i in 0..3 {
            x.x[i] = Lane::load(s, &block.x[i][at + v * lanes..]);
            if R::SPLIT {
                x.low[i] = Lane::load(s, &block.low[i][at + v * lanes..]);
            }
        }
    }
    let mut sums = [[Lane::<S, T>::zero(s); N]; V];
    for piece in pieces {
        for source in *piece {
            for v in 0..V {
                K::add(s, source, &mut x[v], &mut sums[v]);
            }
        }
    }
    for (v, sums) in sums.iter().enumerate() {
        for (i, sum) in sums.iter().enumerate() {
            let (mut now, of) = ([T::ZERO; 16], at + v * lanes..at + (v + 1) * lanes);
            sum.store(&mut now);
            let totals = block.sums[i][of.clone()].iter_mut().zip(&mut block.lost[i][of]);
            for ((total, lost), now) in totals.zip(&now) {
                let (before, now) = (*total, now.f64());
                *total += now;
                if T::IS_F64 {
                    let added = *total - before;
                    *lost += (before - (*total - added)) + (now - added);
                }
            }
        }
    }
    if K::CLOSE_APART {
        for (v, x) in x.iter().enumerate() {
            if x.least.lt(close).any() {
                let kernel = PhantomData::<(P, K)>;
                simd::outline(s, AddClose { pieces, block: &mut *block, at: at + v * lanes, x, kernel });
            }
        }
    }
}

/// Beyond every squared distance.
const FAR: f64 = 1e30;

/// The pairs that `K` left out for the targets `x` from `at` on.
struct AddClose<'a, 'b, S: Simd, T: Real, P, R: Record<T, P>, K: PairKernel<T, P, R, N>, const N: usize> {
    pieces: &'a [&'b [R]],
    block: &'a mut Block<T, N>,
    at: usize,
    x: &'a Targets<S, T>,
    kernel: PhantomData<(P, K)>,
}

impl<Given: Simd, T: Real, P, R: Record<T, P>, K: PairKernel<T, P, R, N>, const N: usize> Kernel
    for AddClose<'_, '_, Given, T, P, R, K, N>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (s, lanes) = (self.x.close.simd(), Lane::<Given, T>::LANES);
        let block = self.block;
        let mut places = [[0.0; 16]; 3];
        for (i, places) in places.iter_mut().enumerate() {
            for (lane, place) in places[..lanes].iter_mut().enumerate() {
                *place = block.x[i][self.at + lane].f64() + block.low[i][self.at + lane].f64();
            }
        }
        let zero = Lane::zero(s);
        for source in self.pieces.iter().copied().flatten() {
            let squares = K::squares(s, source, self.x);
            // A target on the particle has nothing of it.
            let found = squares.lt(self.x.close).select(squares, zero);
            if !zero.lt(found).any() {
                continue;
            }
            let mut is_found = [T::ZERO; 16];
            found.store(&mut is_found);
            let field = K::in_double(s, source, &places);
            for (sums, field) in block.sums.iter_mut().zip(&field) {
                for lane in 0..lanes {
                    if is_found[lane] > T::ZERO {
                        sums[self.at + lane] += field[lane];
                    }
                }
            }
        }
    }
}
