//! The treecode: multipoles evaluated at the targets, kernels/fmm_m2p.cu. Degrees of the multipoles by distance, and launches.
//!
//! Only degrees of sources are truncated. A degree b of a cell at distance d loses at the targets of a cell what M2L would lose in
//! all degrees of their local expansion together: the sum of the blocks (a, b) of `truncation` over a. A distance keeps degrees up to
//! the last that is worth its pairs of coefficients.

use super::Passes;
use super::recipe::{Kind, Recipe};
use super::truncation::{Truncation, gains, orbits};
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::stream::{Stream, launch};
use crate::error::Result;

/// Squared distances of far cells in cell widths are below.
pub const DISTANCES: usize = 32;

/// Degrees of the multipoles that targets take, by the squared distance of the cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Degrees {
    pub of: [u32; DISTANCES],
    /// Pairs of coefficients (a degree l has l + 1) that all cells far at one level have together, on average over the octants.
    pub pairs: f64,
}

/// What the degrees from each on lose, by squared distance: the squared error of all offsets at that distance.
struct Losses {
    share: [f64; DISTANCES],
    of: Vec<[f64; DISTANCES]>,
}

impl Losses {
    fn new() -> Self {
        let (gains, mut share) = (gains(), [0.0; DISTANCES]);
        for orbit in orbits() {
            share[orbit.distance2() as usize] += orbit.share;
        }
        let at = |b: usize, distance2: usize| {
            let power = |a: usize| (distance2 as f64).powi(-((a + b + 1) as i32));
            gains.iter().enumerate().map(|(a, gains)| gains[b] * power(a)).sum::<f64>()
        };
        let of = (0..gains.len())
            .map(|b| std::array::from_fn(|d| if share[d] > 0.0 { share[d] * at(b, d) } else { 0.0 }))
            .collect();
        Self { share, of }
    }

    /// The degrees up to the last that loses more than `tau` for a pair of coefficients, none beyond `most`.
    fn keep(&self, tau: f64, most: usize) -> [u32; DISTANCES] {
        std::array::from_fn(|d| {
            let worth = |b: &usize| self.of[*b][d] > tau * self.share[d] * (b + 1) as f64;
            let kept = (0..most).rev().find(worth).map_or(1, |b| b + 1);
            if self.share[d] > 0.0 { kept as u32 } else { 0 }
        })
    }

    /// The error of all levels; the coarser ones together lose as much as the finest.
    fn lost(&self, degrees: &[u32; DISTANCES]) -> f64 {
        let at = |d: usize| self.of[degrees[d] as usize..].iter().map(|of| of[d]).sum::<f64>();
        (2.0 * (0..DISTANCES).map(at).sum::<f64>()).sqrt()
    }
}

impl Degrees {
    /// For an error `budget` as in `Truncation::new`, with degrees below `most`; the operators of M2M for these.
    pub fn new(budget: f64, least: usize, most: usize) -> (Truncation, Self) {
        let losses = Losses::new();
        let (mut low, mut high) = (1e-40f64, 1.0f64);
        let floor = losses.lost(&losses.keep(low, most));
        for _ in 0..100 {
            let tau = (low * high).sqrt();
            if losses.lost(&losses.keep(tau, most)) > budget { high = tau } else { low = tau }
        }
        let of = losses.keep(low, most);
        let order = of.iter().map(|degrees| *degrees as usize).fold(least.max(2), usize::max);
        let pairs = (0..DISTANCES).map(|d| losses.share[d] * f64::from(of[d] * (of[d] + 1)) / 2.0).sum();
        (Truncation { reached: floor <= budget, floor, ..Truncation::shifts_alone(order) }, Self { of, pairs })
    }

    /// Points of a leaf for which M2P, a level more of which the next smaller leaves would need, and the near field take least
    /// together. Operations counted in the kernels' inner loops, not measured: M2P has five for a pair of coefficients and two for each
    /// field, the near field `pair` for each of the 33 cells' elements.
    pub fn best_leaf(&self, kind: Kind, gradient: bool) -> f64 {
        let pair = match kind {
            Kind::Charge => 10.0,
            Kind::Particle => 16.0,
            Kind::Segment => 40.0,
        } * if gradient { 2.0 } else { 1.0 };
        let level = self.pairs * (5 + 2 * kind.results(gradient)) as f64;
        (level / (33.0 * pair * 8f64.ln())).clamp(24.0, 120.0)
    }

    pub fn describe(&self) -> String {
        let (first, last) = (self.of[5], self.of[27]);
        format!("multipoles of {first} degrees for the nearest cells, of {last} for the farthest,")
    }
}

impl Recipe {
    /// Degrees of the expansions of the fields, which are derivatives of the potentials.
    pub fn field_degrees(&self) -> usize {
        let derivatives = usize::from(self.kind != Kind::Charge) + usize::from(self.gradient);
        self.truncation.order + derivatives
    }

    /// Numbers of one cell's expansions of the fields.
    pub fn field_coefficients(&self) -> usize {
        let n = self.field_degrees();
        n * (n + 1) * self.kind.results(self.gradient)
    }
}

/// Adds the near field to the far field at the targets, and writes it.
pub fn write_kernel(context: &Context, far: &str, t: &str) -> Result<Function> {
    context.function("fmm_m2p", &format!("fmm_m2p_write_{far}_{t}"))
}

/// In place of those of M2L, L2L and L2P.
#[derive(Debug, Clone, Copy)]
pub struct M2pKernels {
    fields: Function,
    sum: Function,
    pub write: Function,
}

impl M2pKernels {
    /// `far`: what the expansions are of; `t`: suffix of the precision.
    pub fn find(context: &Context, far: &str, t: &str) -> Result<Self> {
        let get = |name: &str| context.function("fmm_m2p", &format!("fmm_m2p_{name}{far}_{t}"));
        Ok(Self { fields: get("fields_")?, sum: get("")?, write: write_kernel(context, far, t)? })
    }
}

/// Blocks a multiprocessor: of the expansions, of the sums (more than run at a time, since they take tickets), of the last kernel,
/// whose warps leave a sum of squares each.
const FIELD_BLOCKS: u32 = 8;
const SUM_BLOCKS: u32 = 12;
const WRITE_BLOCKS: u32 = 4;

impl Passes<'_> {
    /// The far field at the targets, to rows of `FmmArg::local`.
    pub(super) fn at_targets(&self, k: &M2pKernels, cells: u32, stream: &Stream) -> Result<()> {
        let (f, laid) = (self.laid.f, self.laid);
        let sms = self.context.info.multiprocessors as u32;
        let n = self.recipe.field_degrees() as u32;
        // SAFETY: `f` describes arrays of the arenas with the lengths that fmm.cuh asks for, `laid.fields` has room for the expansions
        // of all cells; launch shapes as in fmm_m2p.cu.
        unsafe {
            if self.work.upward {
                launch!(stream, k.fields, [cells.min(FIELD_BLOCKS * sms), 1, 1], 128, 0; f, laid.fields, n)?;
            }
            launch!(stream, k.sum, [cells.min(SUM_BLOCKS * sms), 1, 1], 128, 0; f, laid.fields, laid.degrees, n)
        }
    }

    /// Near and far field together to the caller's arrays.
    pub(super) fn write(&self, kernel: Function, stream: &Stream) -> Result<()> {
        let sms = self.context.info.multiprocessors as u32;
        // SAFETY: as above; the check has room for more sums of squares.
        unsafe { launch!(stream, kernel, [WRITE_BLOCKS * sms, 1, 1], 128, 0; self.laid.f, self.check.1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Farther cells need fewer degrees, smaller budgets more.
    #[test]
    fn degrees_fall_with_the_distance() {
        let mut before = [0; DISTANCES];
        for budget in [1e-1, 1e-2, 1e-3, 1e-4] {
            let (truncation, degrees) = Degrees::new(budget, 2, 16);
            let of: Vec<u32> = degrees.of.into_iter().filter(|degrees| *degrees > 0).collect();
            assert!(truncation.reached && of.is_sorted_by(|a, b| a >= b), "{budget}: {of:?}");
            assert!((0..DISTANCES).all(|d| degrees.of[d] >= before[d]) && degrees.of != before);
            assert_eq!(truncation.order, of[0] as usize);
            before = degrees.of;
        }
        assert!(!Degrees::new(1e-9, 2, 11).0.reached);
        assert_eq!(Degrees::new(1e-2, 14, 16).0.order, 14);
    }

    /// What is left out is within the budget, and one degree less everywhere is not.
    #[test]
    fn the_budget_is_spent() {
        let losses = Losses::new();
        assert_eq!(losses.share.iter().sum::<f64>(), 231.0);
        for budget in [1e-1, 1e-2, 1e-3] {
            let (_, degrees) = Degrees::new(budget, 2, 16);
            assert!(losses.lost(&degrees.of) <= budget);
            assert!(losses.lost(&degrees.of.map(|degrees| degrees.saturating_sub(1))) > budget);
        }
    }
}
