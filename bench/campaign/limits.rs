//! The limits of periodic sums that docs/periodic.md states. A problem that is over at one of them is counted apart, if the recipe says what may be
//! missing.

use crate::support::accuracy::Field;
use crate::support::cases::Case;
use wakefmm::options::{WFMM_REG_NONE, WFMM_REG_OFFSET};

use super::draw::Problem;
use super::exact::Exact;
use super::measure::{Outcome, exceeds};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Cores of segments reach along their lines beyond the images whose cores count.
    Cores,
    /// All images cancel at targets beside a slab, and what is left is rounding, or misses the cores of distant images.
    BesideSlab,
}

/// Mean periods up to which cores of images count, with one, two and three periods.
const CORES_LOOKED_AT: [f64; 3] = [400.0, 14.0, 5.5];
/// Largest error of a sum over all images beside a slab, over the sizes of what single elements without images add at the same place.
const LEFT: f64 = 1e-10;

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

impl Limit {
    /// Whether (c/r)²/2, what a target inside the core of a long line of segments may miss, is more than the tolerance.
    pub fn of_cores(p: &Problem, case: &Case, recipe: &str) -> Option<Self> {
        let lines = ![WFMM_REG_NONE, WFMM_REG_OFFSET].contains(&p.segment_regularization);
        if p.periods() == 0 || !lines || !recipe.contains("have no cores") {
            return None;
        }
        let core = case.segment_core.iter().copied().fold(0.0, f64::max);
        let product: f64 = p.period.into_iter().filter(|&v| v > 0.0).product();
        let reach = CORES_LOOKED_AT[p.periods() - 1] * p.unit * product.powf(1.0 / p.periods() as f64);
        (0.5 * (core / reach).powi(2) > p.tolerance).then_some(Self::Cores)
    }

    /// Whether errors above the tolerance are no larger than `LEFT`.
    pub fn beside_slab(exact: &Exact, outcome: &Outcome, want: &Field) -> Option<Self> {
        let p = exact.p;
        if p.periods() != 2 || !outcome.missed() || !outcome.recipe.contains("beside the slab") {
            return None;
        }
        let sizes: Vec<[f64; 2]> = exact.case.targets.iter().map(|&x| exact.sizes(x)).collect();
        let is_small = |of: usize, error: f64, allowed: f64, want: &[f64]| {
            let wrong = error * allowed * norm(want.iter().copied());
            !exceeds(error, 1.0) || wrong <= LEFT * norm(sizes.iter().map(|s| s[of]))
        };
        let both = is_small(0, outcome.velocity, p.tolerance, &want.main)
            && is_small(1, outcome.gradient, 30.0 * p.tolerance, &want.gradient);
        both.then_some(Self::BesideSlab)
    }
}
