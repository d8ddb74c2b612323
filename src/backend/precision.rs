//! Which precision computes a field, on both back ends: single for double arrays where that serves the tolerance, double for
//! single where that is not enough, and why.

use super::Field;
use crate::logging::warn_once;
use crate::options::{PlanOptions, Precision, Regularization};
use std::fmt;

/// Smallest tolerance of double arrays at which an FMM in single precision is tried first, where nobody asked for a precision: it has
/// the coordinates' digits, and its field is compared with sums in double precision. Random problems that missed their tolerance in
/// single precision had tolerances below it (docs/verification.md).
pub const SINGLE_SERVES: f64 = 1e-4;
/// The same of a GPU's FMM, which below that has positions of two floats a coordinate and sums without truncation (`Recipe::two_floats`).
/// Emulated, six clouds and wakes of 5,000 and 5,000 points: at 3e-6 and 1e-6 rounding came to 1.8e-7 to 3.7e-7 of the velocities.
const TWO_FLOATS_SERVE: f64 = 1e-6;
/// The same of a CPU's FMM of particles, which below that sums close pairs in double precision (`Statistics::close`).
const PARTICLES_SERVE: f64 = 1e-6;
/// Number of changes of positions for which single precision is not tried again after its FMM missed the tolerance: a trial costs an FMM.
/// (For a direct sum the probe is cheap.)
const RETRY_SINGLE_AFTER: u32 = 8;

/// Whether the CPU sums in single precision at this tolerance, where it is asked for. Below, rounding can exceed the tolerance at targets
/// that no sample has: the field of a segment beside the line of which a target is has a relative error of 2^-24 times the segment's
/// length over the distance.
pub fn single_holds_on_cpu(tolerance: f64) -> bool {
    tolerance >= SINGLE_SERVES
}

/// Whether single precision serves this field of double arrays. Not where bits must not depend on what was tried before.
pub fn single_serves(options: &PlanOptions, field: Field) -> bool {
    options.precision == Precision::Arrays && serves_from(SINGLE_SERVES, options, field)
}

/// The same on ranks that compute on CPUs, where single precision may also have been asked for.
pub fn single_serves_on_ranks(options: &PlanOptions, field: Field) -> bool {
    options.precision != Precision::F64 && serves_from(SINGLE_SERVES, options, field)
}

/// The same of particles alone, in one process, in arrays of any kind and where single precision is asked for. Not where rounding decides
/// on which side of a core's edge a target is.
pub fn single_serves_particles(options: &PlanOptions, field: Field) -> bool {
    let has_edge = options.particle_regularization == Regularization::Polynomial;
    options.precision != Precision::F64 && !has_edge && serves_from(PARTICLES_SERVE, options, field)
}

/// The same of an FMM on a GPU. Images of a periodic box have no positions of two floats.
pub fn single_serves_on_gpu(options: &PlanOptions, field: Field) -> bool {
    let least = if options.period.is_some() { SINGLE_SERVES } else { TWO_FLOATS_SERVE };
    options.precision == Precision::Arrays && serves_from(least, options, field)
}

fn serves_from(tolerance: f64, options: &PlanOptions, field: Field) -> bool {
    !options.reproducible && options.tolerance >= tolerance && matches!(field, Field::Velocity { .. })
}

/// What single precision cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecisionFallback {
    Distance,
    Core,
    Strength,
    /// A tolerance too small for it on a CPU.
    Digits,
    /// Found in a field that was computed.
    Tolerance,
    /// Double precision takes no longer.
    Short,
    /// The last digits decide over the field of one element at a target.
    Jump,
}

impl PrecisionFallback {
    /// Says so in the log, once for each cause.
    pub fn warn(self) {
        match self {
            Self::Distance => warn_once!("double precision in place of single: {self}"),
            Self::Core => warn_once!("double precision in place of single: {self}"),
            Self::Strength => warn_once!("double precision in place of single: {self}"),
            Self::Digits => warn_once!("double precision in place of single: {self}"),
            Self::Tolerance => warn_once!("double precision in place of single: {self}"),
            Self::Jump => warn_once!("double precision in place of single: {self}"),
            Self::Short => {}
        }
    }
}

impl fmt::Display for PrecisionFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distance => "a target and a source are too near for the extent of all of them (is a point far away?)",
            Self::Core => "core radii are too large or too small for the extent of sources and targets",
            Self::Strength => "strengths are too large or too small for the extent of sources and targets",
            Self::Digits => "at a tolerance below 1e-4 rounding in single precision may exceed it",
            Self::Tolerance => "single precision misses the tolerance, or comes close to it, at a sample of targets (is a point far away?)",
            Self::Jump => {
                "the field of WFMM_REG_POLYNOMIAL jumps at a particle, and its gradient at the edge of a core"
            }
            Self::Short => "so few pairs take about as long in double as in single precision",
        })
    }
}

/// Why single precision is not enough, and for which positions this was found (change counters of sources and targets).
#[derive(Debug, Default)]
pub struct PrecisionHistory {
    positions: [u64; 2],
    /// Something was found for them, not for others before.
    is_current: bool,
    fallback: Option<PrecisionFallback>,
    changes_left: u32,
}

impl PrecisionHistory {
    /// What is known of these positions before a trial.
    pub fn before(&mut self, positions: [u64; 2]) -> Option<PrecisionFallback> {
        if self.positions != positions {
            (self.positions, self.is_current) = (positions, false);
            match self.changes_left.checked_sub(1) {
                Some(left) => self.changes_left = left,
                None => self.fallback = None,
            }
        }
        self.fallback
    }

    /// Whether a trial or a look at these positions was kept.
    pub fn is_current(&self) -> bool {
        self.is_current
    }

    pub fn keep(&mut self, fallback: Option<PrecisionFallback>) {
        self.is_current = true;
        (self.fallback, self.changes_left) =
            (fallback, if fallback == Some(PrecisionFallback::Tolerance) { RETRY_SINGLE_AFTER } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{
        WFMM_FLAG_REPRODUCIBLE, WFMM_PRECISION_F32, WFMM_PRECISION_F64, WFMM_REG_GAUSS_ERF, WFMM_REG_POLYNOMIAL,
        wfmm_plan_options,
    };

    #[test]
    fn single_precision_is_tried_again_where_positions_changed() {
        let mut found = PrecisionHistory::default();
        assert_eq!(found.before([1, 1]), None);
        found.keep(Some(PrecisionFallback::Distance));
        assert_eq!([found.before([1, 1]), found.before([1, 1])], [Some(PrecisionFallback::Distance); 2]);
        assert_eq!((found.before([1, 2]), found.is_current()), (None, false));
        found.keep(None);
        assert_eq!((found.before([1, 2]), found.is_current()), (None, true));
    }

    #[test]
    fn an_fmm_is_not_tried_again_at_each_step() {
        let mut found = PrecisionHistory::default();
        found.keep(Some(PrecisionFallback::Tolerance));
        let tried: Vec<_> = (0..20).map(|k| found.before([k + 1, 1]).is_none()).collect();
        assert_eq!(tried.iter().position(|tried| *tried), Some(RETRY_SINGLE_AFTER as usize));
        found.keep(None);
        assert_eq!(found.before([99, 1]), None);
    }

    #[test]
    fn single_precision_serves_velocities_of_double_arrays_at_loose_tolerances() {
        let serves = |tolerance: f64, precision: i32, flags: u64, field: Field| {
            let options = wfmm_plan_options { tolerance, precision, flags, ..Default::default() };
            single_serves(&PlanOptions::checked(&options).unwrap(), field)
        };
        let velocity = Field::Velocity { gradient: true };
        assert!(serves(1e-4, 0, 0, velocity));
        assert!(!serves(9e-5, 0, 0, velocity));
        assert!(!serves(1e-3, WFMM_PRECISION_F64, 0, velocity));
        assert!(!serves(1e-3, 0, WFMM_FLAG_REPRODUCIBLE, velocity));
        assert!(!serves(1e-3, 0, 0, Field::Potential { gradient: false }));
        let particles = |tolerance: f64, precision: i32, particle_regularization: i32| {
            let options = wfmm_plan_options { tolerance, precision, particle_regularization, ..Default::default() };
            single_serves_particles(&PlanOptions::checked(&options).unwrap(), velocity)
        };
        let gaussian = WFMM_REG_GAUSS_ERF;
        assert!(particles(1e-6, 0, gaussian) && particles(1e-5, WFMM_PRECISION_F32, gaussian));
        assert!(!particles(9e-7, 0, gaussian) && !particles(1e-5, WFMM_PRECISION_F64, gaussian));
        assert!(!particles(1e-5, 0, WFMM_REG_POLYNOMIAL));
        let on_gpu = |tolerance: f64, period: [f64; 3]| {
            let options = wfmm_plan_options { tolerance, period, ..Default::default() };
            single_serves_on_gpu(&PlanOptions::checked(&options).unwrap(), velocity)
        };
        assert!(on_gpu(1e-6, [0.0; 3]) && !on_gpu(9e-7, [0.0; 3]) && !on_gpu(9e-5, [1.0; 3]) && on_gpu(1e-4, [1.0; 3]));
    }
}
