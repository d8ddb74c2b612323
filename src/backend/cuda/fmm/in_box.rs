//! M2L between the largest cells of a periodic box: the tables of fmm_operators.cu, and fmm_m2l_box.cu which uses them.

use super::args::FmmArg;
use super::layout::in_thirds;
use super::{FmmSum, Kind, Passes, Recipe};
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::direct::CudaReal;
use crate::backend::cuda::stream::{Stream, launch};
use crate::error::Result;
use crate::math::lattice::{LatticeSums, Shape};

/// Offsets between cells of thirds and of halves: blocks of the kernel.
const OFFSETS: usize = 27 + 8;
/// Images at most so many periods away are summed one by one (`kShell`), the harmonics of the others have degrees below twice this order
/// (`kLatticeDegree`).
const SHELL: f64 = 4.0;
const LATTICE_ORDER: usize = 24;
/// Warps of a block, each of a row: `kWarpsOfRows`.
const ROWS: u32 = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct BoxKernels {
    thirds: Function,
    halves: Function,
}

impl BoxKernels {
    pub(super) fn find(context: &Context, t: &str) -> Result<Self> {
        let get = |cells: &str| context.function("fmm_m2l_box", &format!("fmm_m2l_{cells}_{t}"));
        Ok(Self { thirds: get("thirds")?, halves: get("halves")? })
    }
}

impl Recipe {
    /// Whether images that are not near are in the local expansions of the largest cells. Those of charges have a background there, whose
    /// potential no local expansion has.
    pub(super) fn expands_far_images(&self) -> bool {
        self.periodic && self.kind != Kind::Charge
    }
}

impl<T: CudaReal> FmmSum<T> {
    /// Of a periodic box; the caller waits.
    pub(super) fn make_box_operators(&mut self, stream: &Stream) -> Result<()> {
        let order = self.recipe.truncation.order;
        self.box_operators.reserve(OFFSETS * order.pow(4) * self.recipe.real_bytes())?;
        let mut lattice = 0;
        if self.recipe.expands_far_images() {
            let sums = LatticeSums::of(Shape { period: [1.0; 3], near: SHELL }, LATTICE_ORDER);
            self.lattice.upload(&sums.irregular(LATTICE_ORDER, 1.0), stream)?;
            lattice = self.lattice.address();
        }
        let kernel = self.context.function("fmm_operators", &format!("fmm_box_operators_{}", T::SUFFIX))?;
        let (f, to) = (FmmArg { order: order as u32, ..FmmArg::default() }, self.box_operators.address());
        // SAFETY: arguments as in fmm_operators.cu; the tables have room for all offsets.
        unsafe { launch!(stream, kernel, [OFFSETS as u32, 1, 1], 256, 0; f, lattice, to) }
    }
}

impl Passes<'_> {
    /// Between cells of thirds, before M2L of smaller cells.
    pub(super) fn m2l_of_thirds(&self, stream: &Stream) -> Result<()> {
        let kernels = self.kernels.m2l_box.filter(|_| in_thirds(&self.laid.f));
        kernels.map_or(Ok(()), |k| self.m2l_of_box(k.thirds, stream))
    }

    /// Images that are not near, between cells of halves, which M2L has written.
    pub(super) fn m2l_of_halves(&self, stream: &Stream) -> Result<()> {
        let is = self.recipe.expands_far_images() && !in_thirds(&self.laid.f);
        self.kernels.m2l_box.filter(|_| is).map_or(Ok(()), |k| self.m2l_of_box(k.halves, stream))
    }

    fn m2l_of_box(&self, kernel: Function, stream: &Stream) -> Result<()> {
        let f = self.laid.f;
        let blocks = (f.stride * f.components).div_ceil(ROWS);
        // SAFETY: `f` describes arrays of the arenas with the lengths that fmm.cuh asks for; launch shape as in fmm_m2l_box.cu.
        unsafe { launch!(stream, kernel, [blocks, 1, 1], 32 * ROWS, 0; f) }
    }
}
