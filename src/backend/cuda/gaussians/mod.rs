//! The kernels of kernels/gaussians.cu as functions that cannot be called wrongly: sums of Gaussians over particles in device memory,
//! and what narrower cores need beside them.
//!
//! Enters: spans, whose lengths are checked against each other, and cells. Leaves: work on one stream; what returns numbers waits
//! for them. The numbers do not depend on the device: how many blocks add up follows from lengths alone.

pub mod args;

use super::array::{DeviceArray, Span, SpanMut};
use super::context::{Context, Function};
use super::memory::copy_out;
use super::stream::{Stream, launch};
use crate::error::Result;
use std::sync::Arc;

use args::CellsArg;

const BLOCK: usize = 256;
const WARP: usize = 32;
/// Blocks of sweeps, and of those that end in a few numbers.
const SWEEP: usize = 4096;
const SUMMED: usize = 512;
/// Threads of a block in which each adds up the neighbours of one particle.
const SUMS: usize = 128;
/// Blocks of a pass of the sort, digits and bits of a pass.
const SORTED: usize = 128;
const DIGITS: usize = 256;
const DIGIT_BITS: i64 = 8;
/// The most numbers that a sum over all particles has.
const MOST: usize = 36;

/// A source as `gaussians_sources` writes it.
type Source = [f64; 8];

/// Gaussians in device memory. Those whose squared core is not positive take no part.
#[derive(Debug, Clone, Copy)]
pub struct Blobs<'a> {
    pub position: Span<'a, f64>,
    pub core2: Span<'a, f64>,
}

/// Of all Gaussians that take part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub low: [f64; 3],
    pub high: [f64; 3],
    /// The largest squared core; not above zero where there are none.
    pub core2: f64,
}

#[derive(Debug)]
struct Kernels {
    total: Function,
    bounds: Function,
    product: Function,
    middle: Function,
    lost: Function,
    moments: Function,
    give_back: Function,
    narrow: Function,
    adopt: Function,
    keys: Function,
    count: Function,
    scan: Function,
    scatter: Function,
    sources: Function,
    sum: Function,
}

impl Kernels {
    fn find(context: &Context) -> Result<Self> {
        let find = |name: &str| context.function("gaussians", &format!("gaussians_{name}"));
        Ok(Self {
            total: find("total")?,
            bounds: find("bounds")?,
            product: find("product")?,
            middle: find("middle")?,
            lost: find("lost")?,
            moments: find("moments")?,
            give_back: find("give_back")?,
            narrow: find("narrow")?,
            adopt: find("adopt")?,
            keys: find("keys")?,
            count: find("count")?,
            scan: find("scan")?,
            scatter: find("scatter")?,
            sources: find("sources")?,
            sum: find("sum")?,
        })
    }
}

/// Cells of Gaussians and the memory for sums over them.
#[derive(Debug)]
pub struct Gaussians {
    kernels: Kernels,
    /// Keys of the sources and their numbers, sorted; and where the sort puts them meanwhile.
    key: DeviceArray<u64>,
    order: DeviceArray<u32>,
    other_key: DeviceArray<u64>,
    other_order: DeviceArray<u32>,
    counts: DeviceArray<u32>,
    sources: DeviceArray<Source>,
    partial: DeviceArray<f64>,
    total: DeviceArray<f64>,
    cells: CellsArg,
}

fn blocks(n: usize, most: usize) -> usize {
    n.div_ceil(BLOCK).min(most)
}

fn sweep(n: usize) -> [u32; 3] {
    [blocks(n, SWEEP) as u32, 1, 1]
}

fn summed(n: usize) -> [u32; 3] {
    [blocks(n, SUMMED) as u32, 1, 1]
}

impl Gaussians {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let (mut partial, mut total) = (DeviceArray::new(context), DeviceArray::new(context));
        partial.resize(MOST * SUMMED)?;
        total.resize(MOST)?;
        Ok(Self {
            kernels: Kernels::find(context)?,
            key: DeviceArray::new(context),
            order: DeviceArray::new(context),
            other_key: DeviceArray::new(context),
            other_order: DeviceArray::new(context),
            counts: DeviceArray::new(context),
            sources: DeviceArray::new(context),
            partial,
            total,
            cells: CellsArg::default(),
        })
    }

    /// Waits; the sums of what the blocks of a sweep over `n` have left, or the largest.
    fn joined<const N: usize>(&mut self, n: usize, is_sum: bool, stream: &Stream) -> Result<[f64; N]> {
        const { assert!(N <= MOST) };
        let (partial, total) = (self.partial.span().address(), self.total.span().address());
        let (rows, width, is_sum) = (blocks(n, SUMMED) as i32, N as i32, i32::from(is_sum));
        // SAFETY: the kernel's arguments; each block has written its row.
        unsafe {
            launch!(stream, self.kernels.total, [1, 1, 1], BLOCK as u32, 0; partial, rows, width, is_sum, total)?
        };
        let mut found = [0.0; N];
        let copied = copy_out(total, &mut found, stream);
        stream.synchronize()?;
        copied.map(|()| found)
    }

    /// Bounds of the positions, and the largest core.
    pub fn bounds(&mut self, of: Blobs<'_>, stream: &Stream) -> Result<Bounds> {
        let n = of.count();
        let (x, core2, partial) = (of.position.address(), of.core2.address(), self.partial.span().address());
        let (grid, len) = (summed(n), n as i64);
        // SAFETY: the kernel's arguments; lengths as checked.
        unsafe { launch!(stream, self.kernels.bounds, grid, BLOCK as u32, 0; x, core2, len, partial)? };
        let [hx, hy, hz, lx, ly, lz, core2] = self.joined(n, false, stream)?;
        Ok(Bounds { low: [-lx, -ly, -lz], high: [hx, hy, hz], core2 })
    }

    /// Σ a b.
    pub fn product(&mut self, a: Span<'_, f64>, b: Span<'_, f64>, stream: &Stream) -> Result<f64> {
        assert_eq!(a.len(), b.len());
        let (n, partial) = (a.len(), self.partial.span().address());
        let (grid, a, b, len) = (summed(n), a.address(), b.address(), n as i64);
        // SAFETY: as in `bounds`.
        unsafe { launch!(stream, self.kernels.product, grid, BLOCK as u32, 0; a, b, len, partial)? };
        let [sum] = self.joined(n, true, stream)?;
        Ok(sum)
    }

    /// Σ x, and how many take part.
    pub fn middle(&mut self, of: Blobs<'_>, stream: &Stream) -> Result<[f64; 4]> {
        let n = of.count();
        let (x, core2, partial) = (of.position.address(), of.core2.address(), self.partial.span().address());
        let (grid, len) = (summed(n), n as i64);
        // SAFETY: as in `bounds`.
        unsafe { launch!(stream, self.kernels.middle, grid, BLOCK as u32, 0; x, core2, len, partial)? };
        self.joined(n, true, stream)
    }

    /// Σ a - b, Σ x × (a - b), Σ |a|, Σ |x||a|, x around `middle`.
    pub fn lost(
        &mut self,
        of: Blobs<'_>,
        [a, b]: [Span<'_, f64>; 2],
        [mx, my, mz]: [f64; 3],
        stream: &Stream,
    ) -> Result<[f64; 8]> {
        let n = of.count();
        assert!(a.len() == 3 * n && b.len() == 3 * n);
        let (x, core2, a, b) = (of.position.address(), of.core2.address(), a.address(), b.address());
        let (grid, len, partial) = (summed(n), n as i64, self.partial.span().address());
        // SAFETY: as in `bounds`.
        unsafe { launch!(stream, self.kernels.lost, grid, BLOCK as u32, 0; x, core2, a, b, len, mx, my, mz, partial)? };
        self.joined(n, true, stream)
    }

    /// Σ and Σ x × of the changes |a| (f + g × x), in columns for each of the six unit factors.
    pub fn moments(
        &mut self,
        of: Blobs<'_>,
        a: Span<'_, f64>,
        [mx, my, mz]: [f64; 3],
        stream: &Stream,
    ) -> Result<[f64; 36]> {
        let n = of.count();
        assert_eq!(a.len(), 3 * n);
        let (x, core2, a) = (of.position.address(), of.core2.address(), a.address());
        let (grid, len, partial) = (summed(n), n as i64, self.partial.span().address());
        // SAFETY: as in `bounds`.
        unsafe { launch!(stream, self.kernels.moments, grid, BLOCK as u32, 0; x, core2, a, len, mx, my, mz, partial)? };
        self.joined(n, true, stream)
    }

    /// Adds such a change to a.
    pub fn give_back(
        &self,
        of: Blobs<'_>,
        a: SpanMut<'_, f64>,
        [mx, my, mz]: [f64; 3],
        [f0, f1, f2, f3, f4, f5]: [f64; 6],
        stream: &Stream,
    ) -> Result<()> {
        let n = of.count();
        assert_eq!(a.len(), 3 * n);
        let (x, core2, a) = (of.position.address(), of.core2.address(), a.address());
        let (grid, len) = (sweep(n), n as i64);
        // SAFETY: as in `bounds`.
        unsafe {
            launch!(stream, self.kernels.give_back, grid, BLOCK as u32, 0; x, core2, a, len, mx, my, mz, f0, f1, f2, f3, f4, f5)
        }
    }

    /// Squared cores of which those above `close` become `narrow`.
    pub fn narrow(
        &self,
        core2: Span<'_, f64>,
        [close, narrow]: [f64; 2],
        to: SpanMut<'_, f64>,
        stream: &Stream,
    ) -> Result<()> {
        assert_eq!(core2.len(), to.len());
        let (from, to, grid, n) = (core2.address(), to.address(), sweep(core2.len()), core2.len() as i64);
        // SAFETY: as in `bounds`.
        unsafe { launch!(stream, self.kernels.narrow, grid, BLOCK as u32, 0; from, close, narrow, to, n) }
    }

    /// New strengths of those that take part.
    pub fn adopt(
        &self,
        core2: Span<'_, f64>,
        from: Span<'_, f64>,
        strength: SpanMut<'_, f64>,
        stream: &Stream,
    ) -> Result<()> {
        let n = core2.len();
        assert!(from.len() == 3 * n && strength.len() == 3 * n);
        let (core2, from, to, grid, n) = (core2.address(), from.address(), strength.address(), sweep(n), n as i64);
        // SAFETY: as in `bounds`.
        unsafe { launch!(stream, self.kernels.adopt, grid, BLOCK as u32, 0; core2, from, to, n) }
    }

    /// Sorts Gaussians, and their images in a plane, into cells.
    pub fn sort(&mut self, of: Blobs<'_>, cells: CellsArg, stream: &Stream) -> Result<()> {
        let n = of.count() * if cells.axis < 0 { 1 } else { 2 };
        assert!(cells.axis < 3 && (1..=21).contains(&cells.bits) && n < u32::MAX as usize);
        let warps = (n.div_ceil(BLOCK)).clamp(1, SORTED) * (BLOCK / WARP);
        self.cells = cells;
        self.key.resize(n)?;
        self.order.resize(n)?;
        self.other_key.resize(n)?;
        self.other_order.resize(n)?;
        self.sources.resize(n)?;
        self.counts.resize(DIGITS * warps)?;
        let (x, core2, len) = (of.position.address(), of.core2.address(), n as i64);
        let (key, order) = (self.key.span().address(), self.order.span().address());
        // SAFETY: as in `bounds`; keys and numbers have room for all sources.
        unsafe { launch!(stream, self.kernels.keys, sweep(n), BLOCK as u32, 0; x, core2, cells, len, key, order)? };
        // One bit above the cells is that of what is no source.
        (0..3 * cells.bits + 1).step_by(DIGIT_BITS as usize).try_for_each(|shift| self.pass(warps, shift, stream))
    }

    /// A pass of the sort.
    fn pass(&mut self, warps: usize, shift: i64, stream: &Stream) -> Result<()> {
        let n = self.key.span().len();
        let (len, share, shift) = (n as i64, n.div_ceil(warps) as i64, shift as i32);
        let (grid, counts) = ([(warps * WARP / BLOCK) as u32, 1, 1], self.counts.span().address());
        let (key, order) = (self.key.span().address(), self.order.span().address());
        let (to_key, to_order) = (self.other_key.span().address(), self.other_order.span().address());
        let (kernels, all) = (&self.kernels, (DIGITS * warps) as i32);
        // SAFETY: as in `sort`; there is a count for each digit and warp of the grid.
        unsafe {
            launch!(stream, kernels.count, grid, BLOCK as u32, 0; key, len, shift, share, counts)?;
            launch!(stream, kernels.scan, [1, 1, 1], 1024, 0; counts, all)?;
            launch!(stream, kernels.scatter, grid, BLOCK as u32, 0; key, order, len, shift, share, counts, to_key, to_order)?;
        }
        std::mem::swap(&mut self.key, &mut self.other_key);
        std::mem::swap(&mut self.order, &mut self.other_order);
        Ok(())
    }

    /// Sums of the sorted Gaussians at their positions, for these strengths.
    pub fn sum(&mut self, of: Blobs<'_>, strength: Span<'_, f64>, to: SpanMut<'_, f64>, stream: &Stream) -> Result<()> {
        let (n, cells) = (self.key.span().len(), self.cells);
        let sorted = of.count() * if cells.axis < 0 { 1 } else { 2 };
        assert!(sorted == n && strength.len() == 3 * of.count() && to.len() == strength.len());
        let (x, core2, a) = (of.position.address(), of.core2.address(), strength.address());
        let (key, order) = (self.key.span().address(), self.order.span().address());
        let (sources, len, count, to) = (self.sources.span().address(), n as i64, n as u32, to.address());
        let grid = [n.div_ceil(SUMS) as u32, 1, 1];
        // SAFETY: as in `sort`; numbers of sources are those that `sort` gave.
        unsafe {
            launch!(stream, self.kernels.sources, sweep(n), BLOCK as u32, 0; x, core2, a, key, order, cells, len, sources)?;
            launch!(stream, self.kernels.sum, grid, SUMS as u32, 0; sources, key, order, cells, count, to)
        }
    }
}

impl Blobs<'_> {
    fn count(&self) -> usize {
        assert_eq!(self.position.len(), 3 * self.core2.len());
        self.core2.len()
    }
}
