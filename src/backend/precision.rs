//! Why single precision does not serve a field: what both back ends say when they take double in its place.

use crate::logging::warn_once;
use std::fmt;

/// What single precision cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecisionFallback {
    Distance,
    Core,
    /// Found in a field that was computed.
    Tolerance,
    /// Double precision takes no longer.
    Short,
}

impl PrecisionFallback {
    /// Says so in the log, once for each cause.
    pub fn warn(self) {
        match self {
            Self::Distance => warn_once!("double precision in place of single: {self}"),
            Self::Core => warn_once!("double precision in place of single: {self}"),
            Self::Tolerance => warn_once!("double precision in place of single: {self}"),
            Self::Short => {}
        }
    }
}

impl fmt::Display for PrecisionFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distance => "a target and a source are too near for the extent of all of them (is a point far away?)",
            Self::Core => "core radii are too large or too small for the extent of sources and targets",
            Self::Tolerance => "single precision misses the tolerance at a sample of targets (is a point far away?)",
            Self::Short => "so few pairs take about as long in double as in single precision",
        })
    }
}
