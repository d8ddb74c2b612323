//! From the sources of a periodic domain to the field of all images that are not near, as rows of kernels/periodic.cuh: the kernels of
//! kernels/periodic.cu that sum multipoles about the middle and apply the lattice operator to them.

use super::args::RealsArg;
use super::memory::copy_out;
use super::periodic::{BLOCK, grid};
use super::stream::{Stream, launch};
use crate::error::Result;
use crate::memory;

/// Highest order of the kernels: `kMostOrder` of kernels/periodic.cu.
pub const MOST_ORDER: usize = 32;
/// Blocks of the multipoles a multiprocessor, threads of a block; threads of a block of the rows.
const MOMENT_BLOCKS: usize = 4;
const MOMENT_THREADS: usize = 128;
const ROW_THREADS: usize = 128;
/// Numbers before the pairs (l, m) of rows: `kFarHead`.
const HEAD: usize = 2;

/// Sources of one kind: kernel, how many, where they are and how strong, nodes of each.
#[derive(Debug, Clone, Copy)]
pub struct Strong {
    pub kernel: &'static str,
    pub n: usize,
    pub position: u64,
    pub strength: RealsArg,
    pub nodes: usize,
}

/// Two factors of the recurrence of the harmonics for each pair (l, m), column by column.
pub fn steps(order: usize) -> Vec<f64> {
    let step = |l: usize, m: usize| {
        let per = 1.0 / (((l + 1) * (l + 1) - m * m) as f64);
        [(2 * l + 1) as f64 * per, per]
    };
    let mut steps = vec![];
    memory::extend(&mut steps, (0..order).flat_map(|m| (m..order).flat_map(move |l| step(l, m))));
    steps
}

/// Blocks of the multipoles of some sources.
fn blocks(sources: &Strong, multiprocessors: usize) -> usize {
    (sources.n * sources.nodes).div_ceil(MOMENT_THREADS).clamp(1, MOMENT_BLOCKS * multiprocessors.max(1))
}

/// What the kernels take, and where they leave it: arrays of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FarRows {
    pub order: usize,
    /// Of length.
    pub unit: f64,
    /// The background's potential is this times |x|² and the net strength.
    pub background: f64,
    pub charges: bool,
    pub gradient: bool,
    /// Nodes along segments; `steps`; lattice sums of complex harmonics in the unit.
    pub gauss: u64,
    pub steps: u64,
    pub lattice: u64,
    pub partial: u64,
    pub moments: u64,
    pub rows: u64,
}

impl FarRows {
    fn components(&self) -> usize {
        if self.charges { 1 } else { 3 }
    }

    /// Numbers of the multipoles about the middle, [pair][cos, sin][component], and behind them of charges their second moment and the sum of
    /// their sizes.
    fn numbers(&self) -> usize {
        2 * self.pairs() * self.components() + 2
    }

    /// Pairs (l, m).
    fn pairs(&self) -> usize {
        self.order * (self.order + 1) / 2
    }

    /// Numbers at a target.
    fn fields(&self) -> usize {
        match (self.charges, self.gradient) {
            (false, false) => 3,
            (false, true) => 12,
            (true, false) => 1,
            (true, true) => 4,
        }
    }

    /// Numbers of the multipoles, of the expansion behind them and of the rows.
    pub fn room(&self) -> [usize; 2] {
        [self.numbers() + 2 * self.pairs() * self.components(), HEAD + self.pairs() * (2 + 2 * self.fields())]
    }

    /// Numbers that `partial` must have.
    pub fn partial_numbers(&self, sources: &[Strong], multiprocessors: usize) -> usize {
        sources.iter().map(|s| blocks(s, multiprocessors)).sum::<usize>() * self.numbers()
    }

    /// Starts the sums over the sources, of which `partial` has room for all.
    pub fn sum(&self, sources: &[Strong], stream: &Stream) -> Result<()> {
        let (context, numbers) = (stream.context(), self.numbers());
        let (mut row, per_unit) = (0, 1.0 / self.unit);
        for s in sources {
            let kernel = context.function("periodic", &format!("periodic_moments_{}", s.kernel))?;
            let blocks = blocks(s, context.info.multiprocessors as usize);
            let to = self.partial + (size_of::<f64>() * row * numbers) as u64;
            // SAFETY: arguments as in periodic.cu; `partial` has a row for each block.
            unsafe {
                launch!(stream, kernel, [blocks as u32, 1, 1], MOMENT_THREADS as u32, 0; s.position, s.strength, self.gauss, s.nodes as i32, s.n as i64, self.order as i32, per_unit, self.steps, to)?
            };
            row += blocks;
        }
        let add = context.function("periodic", "periodic_add_rows")?;
        // SAFETY: as above.
        unsafe {
            launch!(stream, add, grid(numbers), BLOCK as u32, 0; self.partial, row as i32, numbers as i32, self.moments)
        }
    }

    /// Starts the rows of what was summed.
    fn expand(&self, stream: &Stream) -> Result<()> {
        let get = |name: &str| stream.context().function("periodic", name);
        let Self { order, unit, background: f, moments, lattice, steps, rows, .. } = *self;
        let (charges, gradient, order) = (i32::from(self.charges), i32::from(self.gradient), order as i32);
        let local = moments + (size_of::<f64>() * self.numbers()) as u64;
        let pairs = self.pairs();
        let blocks = |n: usize| [n.div_ceil(ROW_THREADS) as u32, 1, 1];
        // SAFETY: as above; there is room for the expansion behind the multipoles, and in the rows for all pairs.
        unsafe {
            launch!(stream, get("periodic_local")?, blocks(pairs * self.components()), ROW_THREADS as u32, 0; moments, order, lattice, unit, f, charges, local)?;
            launch!(stream, get("periodic_rows")?, blocks(pairs * (1 + self.fields())), ROW_THREADS as u32, 0; moments, local, order, steps, unit, f, charges, gradient, rows)
        }
    }

    /// Starts the rows of these sources.
    pub fn make(&self, sources: &[Strong], stream: &Stream) -> Result<()> {
        self.sum(sources, stream)?;
        self.expand(stream)
    }

    /// Net charge and the sum of sizes; waits. Of charges that were summed.
    pub fn net(&self, stream: &Stream) -> Result<[f64; 2]> {
        let mut moments = memory::filled(0.0, self.numbers());
        copy_out(self.moments, &mut moments, stream)?;
        stream.synchronize()?;
        Ok([moments[0], moments[moments.len() - 1]])
    }
}
