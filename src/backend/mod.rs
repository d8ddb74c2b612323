//! How: an engine takes a plan's inputs and returns fields. One trait, two back ends.

use crate::error::Result;
use crate::inputs::{Inputs, Reals, RealsMut};
use crate::report::Report;

pub mod cpu;
pub mod cuda;
pub mod curve;
pub mod draw;
pub mod images;
pub mod periods;
pub mod precision;
pub mod verdict;

/// Which sum is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Velocity of segments and particles, with its gradient when asked.
    Velocity { gradient: bool },
    /// Potential of the charges, with its gradient when asked.
    Potential { gradient: bool },
}

impl Field {
    /// Numbers of the field at one target, and of its gradient.
    pub fn widths(self) -> (usize, usize) {
        match self {
            Self::Velocity { .. } => (3, 9),
            Self::Potential { .. } => (1, 3),
        }
    }

    pub fn has_gradient(self) -> bool {
        let (Self::Velocity { gradient } | Self::Potential { gradient }) = self;
        gradient
    }

    pub fn without_gradient(self) -> Self {
        match self {
            Self::Velocity { .. } => Self::Velocity { gradient: false },
            Self::Potential { .. } => Self::Potential { gradient: false },
        }
    }
}

/// One plan's state on one back end, in one computing precision. Engines are made by `plan` with checked options.
pub trait Engine: Send {
    /// What of an evaluation needs no output (CPU: trees, lists, orders; GPU: the copy of the arrays) for `field`; repeated
    /// calls without a change are free.
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()>;

    /// Writes (or adds, see the options) the field at the targets: `main` is `[n][3]` velocity or `[n]` potential,
    /// `gradient` is `[n][3][3]` with `g[k][i][j] = ∂u_i/∂x_j`, or `[n][3]` for the potential.
    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()>;

    /// Relative L2 error of `field` without its gradient, computed again, on `samples` targets (all, where there are no more)
    /// against the direct, regularized sum in double precision.
    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64>;

    /// Starts moving arrays that changed to where they will be summed, if that needs no waiting.
    fn bring(&mut self, _inputs: &Inputs) {}

    /// The same for one array, before the others of its kind are known; `change` is what its counter of `Inputs` will be.
    fn bring_array(&mut self, _slot: images::Slot, _array: &Reals, _change: u64) {}

    /// Later work begins after what the caller has queued on this CUDA stream by then; 0 is the default stream.
    fn order_after(&mut self, _stream: u64) {}

    /// A paragraph: what was chosen and why.
    fn recipe(&self) -> String;

    fn report(&self) -> Report;
}
