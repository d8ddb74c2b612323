//! What both back ends do alike in periodic domains.

use crate::error::{Error, Result, WFMM_ERR_UNSUPPORTED, WFMM_ERR_VALUE};

/// Distances in mean periods up to which cores of images are looked at, with one, two and three periods.
pub const CORES_LOOKED_AT: [f64; 3] = [400.0, 14.0, 5.5];

/// Where all images leave little of what single ones add, those far away are summed for a tolerance that is smaller by that: down to this
/// part.
pub const LEAST_LEFT: f64 = 1e-9;

/// What rounding leaves of a sum over all images, against what single ones add to it: up to 8e-13 in the problems that were looked at.
const ROUNDING_OF_IMAGES: f64 = 1e-12;

/// How far all targets are beside a slab, on one side of it, of the least and greatest coordinates of sources and of targets along its open
/// axis, `spans`. None: some are not, there is nothing, or the domain is no slab.
pub fn beside_slab(period: [f64; 3], spans: impl FnOnce(usize) -> Option<[[f64; 2]; 2]>) -> Option<f64> {
    let mut open = (0..3).filter(|&i| period[i] == 0.0);
    let (Some(axis), None) = (open.next(), open.next()) else { return None };
    let [sources, targets] = spans(axis)?;
    let beside = (targets[0] - sources[1]).max(sources[0] - targets[1]);
    (beside.is_finite() && beside > 0.0).then_some(beside)
}

/// What all images of a slab leave of the gradient of single ones at targets that are `beside` it: there the flow is uniform but for waves,
/// of which the longest decays with the distance by the factor e each P/2π for the larger period P.
pub fn gradient_left(beside: f64, period: [f64; 3]) -> f64 {
    (-std::f64::consts::TAU * beside / period.into_iter().fold(0.0, f64::max)).exp()
}

/// The part of the gradient there that is rounding, or missing because images beyond those whose cores are looked at have none; `core`: what
/// such a core takes of the field of an image.
pub fn gradient_missing(beside: f64, period: [f64; 3], core: f64) -> f64 {
    (ROUNDING_OF_IMAGES + core) / gradient_left(beside, period)
}

/// Cores of images are looked at where they change a field by more than this part of the tolerance.
pub const CORES_OF_IMAGES: f64 = 0.3;

/// Widest Gaussian core in a box, over its longest period P. What images of wider ones leave of each other is exp(-2π²c²/P²) of the field of
/// one, a part in 140 here and in 15,000 at 0.7, and an error is relative to that.
const WIDEST_GAUSSIAN: f64 = 0.5;

/// Refuses Gaussian particles that fill a box: `core` is the largest radius, `period` in units of `length`.
pub fn check_gaussians(core: f64, period: [f64; 3], length: f64) -> Result<()> {
    let longest = period.iter().fold(0.0, |a, &p| f64::max(a, p));
    if period.contains(&0.0) || core <= WIDEST_GAUSSIAN * longest {
        return Ok(());
    }
    let message = format!(
        "core_radius = {:e} of WFMM_REG_GAUSS_ERF in a box whose longest period is {:e}: the fields of images cancel but for a part of \
         {:.1e}; accepted: up to {WIDEST_GAUSSIAN} of that period",
        core * length,
        longest * length,
        (-2.0 * (std::f64::consts::PI * core / longest).powi(2)).exp()
    );
    Error::fail(WFMM_ERR_UNSUPPORTED, message)
}

/// Steps that a period has at least: positions and periods are rounded to them.
const LEAST_STEPS: f64 = (1u64 << 22) as f64;

/// Refuses periods that the rounding to steps would change: those far shorter than another period or than the extent along an open
/// axis. `step` in the unit of the periods, which are as given.
pub fn check_steps(given: [f64; 3], step: f64) -> Result<()> {
    if given.iter().all(|&p| p == 0.0 || p >= LEAST_STEPS * step) {
        return Ok(());
    }
    let message = format!(
        "period = {given:?}: positions are rounded to {step:.1e} here, a part of the longest period or extent; accepted: periods of at \
         least {LEAST_STEPS:.1e} times that"
    );
    Error::fail(WFMM_ERR_UNSUPPORTED, message)
}

/// Charges whose sum is this part of the sum of their sizes are taken to balance each other.
const NEUTRAL: f64 = 1e-6;

/// Refuses charges that have no potential: those of a tube or a slab that do not balance each other.
pub fn check_net(sum: f64, sizes: f64, period: [f64; 3]) -> Result<()> {
    if period.iter().all(|&p| p > 0.0) || f64::abs(sum) <= NEUTRAL * sizes {
        return Ok(());
    }
    let message = format!(
        "charge: a sum of {sum:e} in a domain that is periodic along one or two axes has no potential, which would be \
         infinite; accepted: charges whose sum is zero, or a third period, whose uniform background balances them"
    );
    Error::fail(WFMM_ERR_VALUE, message)
}

/// `CORES_LOOKED_AT` in the unit of the periods; 0 without any.
pub fn cores_looked_at(period: [f64; 3]) -> f64 {
    let (count, product) = period.iter().filter(|&&p| p > 0.0).fold((0, 1.0), |a, p| (a.0 + 1, a.1 * p));
    if count == 0 { 0.0 } else { CORES_LOOKED_AT[count - 1] * f64::powf(product, 1.0 / count as f64) }
}

/// The part of its field that a target inside the core of a long straight line of segments may miss, since images beyond this
/// distance have no cores.
pub fn missing_on_lines(core: f64, distance: f64) -> f64 {
    0.5 * (core / distance).powi(2)
}

/// Refuses a core that changes the field by the part `missing` at the distance up to which cores are looked at.
pub fn too_wide(core: f64, distance: f64, missing: f64, tolerance: f64) -> Error {
    let message = format!(
        "core_radius = {core:e} in a periodic domain: at a distance of {distance:.3e}, where images begin to count without cores, \
         such a core still changes the field by {missing:.1e} of it; accepted: less than the tolerance, {tolerance:.1e}: smaller \
         cores, or a regularization that ends sooner"
    );
    Error::new(WFMM_ERR_UNSUPPORTED, message)
}
