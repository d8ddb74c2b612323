//! Corrections of segments far along their lines: which source cells the near field searches for them.
//!
//! Inside of the cylinder that a core makes of a line a field is wrong by as much as it is, at any distance. Enters: the largest
//! product of circulation and length (for velocities times the core) below each source cell, from P2M; the field or its gradient at the
//! sampled targets. Leaves: how far the corrections below each cell count, in place of its largest core (`fmm_reach` of
//! kernels/fmm_check.cu).

use super::args::FmmArg;
use super::{Passes, Recipe};
use crate::backend::cuda::stream::{Stream, launch};
use crate::error::Result;

/// Largest correction that may be left out beyond `walk_range`, in tolerances of the mean velocity (of the mean gradient
/// `GRADIENT_TOLERANCES` times that), where one target of `ONE_OF` has it: few targets are in such a cylinder.
pub const CULL_ALONG_LINES: f64 = 0.3;
const ONE_OF: f64 = 1000.0;
/// Largest corrections in units of product over cubed distance: of a velocity, of a gradient.
const LARGEST: [f64; 2] = [0.5, 5.0];

impl Recipe {
    pub(super) fn has_reach(&self) -> bool {
        self.cull_along_lines > 0.0
    }

    /// What may be left out at so many targets, over their mean field.
    fn left_out(&self, targets: usize) -> f64 {
        self.cull_along_lines * (targets as f64 / ONE_OF).max(1.0).sqrt()
    }
}

impl Passes<'_> {
    /// Whether the near field asks for the size of the field at the sampled targets.
    pub(super) fn waits_for_sample(&self) -> bool {
        self.kernels.reach.is_some()
    }

    /// The arguments of the near field, behind P2M and the sums at the sampled targets.
    pub(super) fn reach(&self, stream: &Stream) -> Result<FmmArg> {
        let (f, to) = (self.laid.f, self.laid.reach);
        let Some(kernel) = self.kernels.reach else { return Ok(f) };
        let (blocks, limit) = (self.context.info.multiprocessors as u32, self.recipe.left_out(f.tree[1].n as usize));
        let most = LARGEST[usize::from(self.recipe.gradient)];
        // SAFETY: `f` describes arrays of the arenas, and `to` has room for two numbers of all source cells.
        unsafe { launch!(stream, kernel, [blocks, 1, 1], 256, 0; f, to, limit, most)? };
        Ok(FmmArg { cell_core: to, ..f })
    }
}
