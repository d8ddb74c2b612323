//! Whether single precision is enough for a direct sum: a kernel compares distances of some sources and targets, and the widest core, with
//! the extent of all points while the frame is made.
//!
//! Enters: inputs in device memory. Leaves: the argument of kernel `frame`, and what it found.

use super::args::ProbeArg;
use super::context::Context;
use super::fmm::recipe;
use super::gather::DeviceInputs;
use super::locked::Locked;
use super::stream::{Event, Stream};
use crate::backend::Field;
use crate::backend::precision::PrecisionFallback;
use crate::error::Result;
use crate::options::PlanOptions;
use std::sync::Arc;

/// Number of sampled sources, as in kernels/precision_probe.cuh.
const SOURCES: f64 = 64.0;
/// Rounding of a position, by its distance from the origin: the root mean square, of both ends of a distance, is a little more.
const ROUNDING: f64 = 1.0 / (1u64 << 25) as f64;
/// Least distance in the frame's lengths, of which the box has 2^14: squares stay far above what is added to them, 2^-48
/// (`Real::tiny` of kernels/common.cuh). Of a segment as long as it is far away |r1 × r2|² is one.
const LEAST: f64 = 1.0 / (1u64 << 18) as f64;
const LEAST_SEGMENT: f64 = 1.0 / (1u64 << 8) as f64;

/// The kernel's answer, in page-locked memory, and the event after which it is there.
#[derive(Debug)]
pub struct PrecisionProbe {
    found: Locked<u32>,
    /// The frame is made: long before the sums are.
    framed: Event,
}

impl PrecisionProbe {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        Ok(Self { found: Locked::new(context, 1)?, framed: Event::new(context)? })
    }

    /// The kernel's argument for this field; the last sum has ended. `single`: all coordinates are in single precision, so that
    /// no distance loses digits.
    pub fn ask(&mut self, inputs: &DeviceInputs, options: &PlanOptions, field: Field, single: bool) -> ProbeArg {
        self.found.slice_mut()[0] = 0;
        let (s, t) = (&inputs.segments, &inputs.targets);
        let (n_segments, position, n_points) = match field {
            Field::Velocity { .. } => (s.n, inputs.particles.position, inputs.particles.n),
            Field::Potential { .. } => (0, inputs.charges.position, inputs.charges.n),
        };
        let nearer = nearer(n_segments + n_points);
        ProbeArg {
            points: s.points,
            position,
            target: t.position,
            connectivity: s.connectivity,
            ld: s.ld as i64,
            base: i64::from(s.index_base),
            n_segments: n_segments as i64,
            n_points: n_points as i64,
            n_targets: t.n as i64,
            most: if single { f64::MAX } else { (recipe::tolerance(options, false) / ROUNDING / nearer).powi(2) },
            least: (if n_segments > 0 { LEAST_SEGMENT } else { LEAST } * nearer).powi(2),
            fallback: self.found.as_ref().as_ptr() as u64,
        }
    }

    /// To be called after the kernel was queued.
    pub fn asked(&self, stream: &Stream) -> Result<()> {
        self.framed.record(stream)
    }

    /// Waits for the answer.
    pub fn answer(&self) -> Result<Option<PrecisionFallback>> {
        self.framed.synchronize()?;
        Ok(match self.found.as_ref()[0] {
            0 => None,
            2 => Some(PrecisionFallback::Core),
            _ => Some(PrecisionFallback::Distance),
        })
    }
}

/// Estimated ratio of the smallest distance among the sampled sources to the smallest among all.
fn nearer(sources: usize) -> f64 {
    (sources as f64 / SOURCES).max(1.0).cbrt()
}
