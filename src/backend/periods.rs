//! What both back ends do alike in periodic domains.

use crate::error::{Error, WFMM_ERR_UNSUPPORTED};

/// Distances in mean periods up to which cores of images are looked at, with one, two and three periods.
pub const CORES_LOOKED_AT: [f64; 3] = [400.0, 14.0, 5.5];

/// Cores of images are looked at where they change a field by more than this part of the tolerance.
pub const CORES_OF_IMAGES: f64 = 0.3;

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
