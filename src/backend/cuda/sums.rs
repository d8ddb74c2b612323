//! The sum that computes a field: FMM or direct, in the requested precision, in double where single precision is not enough, and of
//! double arrays in single precision where that serves the tolerance and is faster.
//!
//! Enters: inputs in device memory. Leaves: a field on its way to the output, and what made it, for report and recipe.

use super::context::Context;
use super::direct::{CudaReal, DirectSum, Task};
use super::fmm::recipe::TWO_FLOATS;
use super::fmm::{FmmSet, Outcome};
use super::gather::check_counts;
use crate::backend::Field;
use crate::backend::precision::{PrecisionFallback, PrecisionHistory, single_serves_on_gpu};
use crate::error::Result;
use crate::options::{Regularization, WFMM_METHOD_DIRECT, WFMM_PRECISION_F32, WFMM_PRECISION_F64};
use crate::report::{Pass, Report};
use std::sync::Arc;

/// Number of pairs up to which a direct sum in double precision takes about as long as one in single precision, on devices that
/// do at least `FAST_DOUBLE` operations in double for one in single precision (bench/gpu_scaling crossover: 4,096 squared).
const SHORT: f64 = (1u64 << 24) as f64;
const FAST_DOUBLE: f64 = 0.5;
/// Sources and targets from which single precision is faster where double precision is fast, without cores and with them. One H200, ms in double and
/// single precision at 1e-4 (docs/performance.md): segments, 37,000 on 19,000 0.69 and 0.78, with cores 1.24 and 0.96; 35,000 on
/// 55,000 0.72 and 0.59, with cores 1.77 and 1.17; particles with cores and gradients at 1e-3, 10,000 on themselves 0.58 and 0.36.
const SINGLE_FROM: [usize; 2] = [80_000, 20_000];
/// The same below 1e-4, where pairs have positions of two floats and M2L takes as long as in double precision: velocities of particles without
/// cores, of segments with them. One H200, 2026-11-24, bench/gpu_fmm tight and bench/gpu_wakes tight, ms in single and double precision:
/// particles without cores at 1e-5 and 1e-6, 200,000 points 0.73 and 0.80, 1.02 and 1.01, 632,000 2.18 and 2.34, 3.00 and 3.16, 2,000,000
/// 5.85 and 6.80, 7.88 and 8.73; with cores 2,000,000 25.9 and 23.8. Segments at 1e-5, 558,000 points 19.1 and 22.0 (Vatistas), 16.9 and 17.2
/// (Lamb-Oseen), 1,190,000 196 and 226, 130 and 149, 89,000 2.86 and 2.92, 2.48 and 2.49; without cores 6.2 and 5.4, 6.8 and 6.6.
const TWO_FLOATS_FROM: usize = 500_000;

/// Both methods in one precision.
#[derive(Debug)]
struct Methods<T: CudaReal> {
    fmm: FmmSet<T>,
    direct: DirectSum<T>,
    /// Whether the last field came from `fmm`.
    by_fmm: bool,
}

impl<T: CudaReal> Methods<T> {
    fn new(context: &Arc<Context>) -> Self {
        Self { fmm: FmmSet::default(), direct: DirectSum::new(context), by_fmm: false }
    }

    /// Starts a field. A result means that this precision is not enough, and why; nothing was added then. `double`: what single
    /// precision is compared with and replaced by.
    fn start(&mut self, task: Task<'_>, double: Option<&mut Methods<f64>>) -> Result<Option<PrecisionFallback>> {
        let outcome = self.fmm.evaluate(task)?;
        self.by_fmm = matches!(outcome, Outcome::Done);
        match outcome {
            Outcome::Done => Ok(None),
            Outcome::NotInSingle => Ok(Some(PrecisionFallback::Tolerance)),
            Outcome::Direct if double.is_some() && is_short(&task) => Ok(Some(PrecisionFallback::Short)),
            Outcome::Direct => self.direct.evaluate(task, double.map(|double| &mut double.direct)),
        }
    }

    fn bytes(&self) -> u64 {
        self.direct.bytes() + self.fmm.bytes()
    }

    fn note(&self, report: &mut Report, computed: f64) {
        report.precision = if T::IS_F64 { WFMM_PRECISION_F64 } else { WFMM_PRECISION_F32 };
        if self.by_fmm {
            self.fmm.note(report, computed);
            return;
        }
        report.seconds[Pass::P2p as usize] = computed;
        (report.method, report.order, report.depth, report.cells) = (WFMM_METHOD_DIRECT, 0, 0, 0);
        report.estimated_error = 0.0;
    }

    fn describe(&self, device: &str) -> String {
        if let Some(text) = self.fmm.describe().filter(|_| self.by_fmm) {
            return format!("{text} On {device}.");
        }
        let precision = if T::IS_F64 { "double" } else { "single" };
        format!("Direct sum of every pair in {precision} precision on {device}.")
    }
}

/// Whether double precision costs no more than comparing single precision with it would.
fn is_short(task: &Task<'_>) -> bool {
    let inputs = task.inputs;
    let sources = match task.field {
        Field::Velocity { .. } => inputs.segments.n + inputs.particles.n,
        Field::Potential { .. } => inputs.charges.n,
    };
    task.context.info.double_rate >= FAST_DOUBLE && sources as f64 * inputs.targets.n as f64 <= SHORT
}

/// What decides whether single precision is faster on a device that is fast in both.
#[derive(Debug, Clone, Copy)]
struct Elements {
    /// Sources and targets.
    points: usize,
    /// Of segments and particles: whether there are any, and whether they have cores.
    are: [bool; 2],
    have_cores: [bool; 2],
    gradient: bool,
}

impl Elements {
    fn new(task: &Task<'_>) -> Self {
        let (options, inputs) = (task.options, task.inputs);
        let are = [inputs.segments.n > 0, inputs.particles.n > 0];
        let cores = [options.segment_regularization, options.particle_regularization];
        Self {
            points: inputs.segments.n + inputs.particles.n + task.ranks.most_targets(inputs.targets.n),
            are,
            have_cores: std::array::from_fn(|k| are[k] && cores[k] != Regularization::None),
            gradient: matches!(task.field, Field::Velocity { gradient: true }),
        }
    }

    /// Whether an FMM in single precision is expected to be faster than one in double.
    fn single_pays(&self, tolerance: f64) -> bool {
        if tolerance >= TWO_FLOATS {
            return self.points >= SINGLE_FROM[usize::from(self.have_cores.contains(&true))];
        }
        let of_kind =
            self.are == [true, false] && self.have_cores[0] || self.are == [false, true] && !self.have_cores[1];
        of_kind && !self.gradient && self.points >= TWO_FLOATS_FROM
    }
}

/// Whether an FMM of double arrays is tried in single precision first: on all ranks, or on none.
fn may_be_single(task: &Task<'_>) -> Result<bool> {
    let [is_slow] = task.ranks.any([task.context.info.double_rate < FAST_DOUBLE])?;
    let pays = is_slow || Elements::new(task).single_pays(task.options.tolerance);
    Ok(single_serves_on_gpu(task.options, task.field) && pays)
}

/// See the head of this file.
#[derive(Debug)]
pub struct Sums<T: CudaReal> {
    asked: Methods<T>,
    /// In place of double precision that nobody asked for; made when first needed.
    single: Option<Box<Methods<f32>>>,
    /// Whether the last field came from `single`.
    by_single: bool,
    /// In place of single precision; made when first needed.
    double: Option<Box<Methods<f64>>>,
    vortex: PrecisionHistory,
    coulomb: PrecisionHistory,
    /// Of the last field.
    fallback: Option<PrecisionFallback>,
}

impl<T: CudaReal> Sums<T> {
    pub fn new(context: &Arc<Context>) -> Self {
        let (vortex, coulomb) = (PrecisionHistory::default(), PrecisionHistory::default());
        let asked = Methods::new(context);
        Self { asked, single: None, by_single: false, double: None, vortex, coulomb, fallback: None }
    }

    /// Starts a field.
    pub fn start(&mut self, task: Task<'_>) -> Result<()> {
        let (found, sources) = match task.field {
            Field::Velocity { .. } => (&mut self.vortex, task.inputs.vortex_positions),
            Field::Potential { .. } => (&mut self.coulomb, task.inputs.charge_positions),
        };
        if task.options.reproducible {
            *found = PrecisionHistory::default();
        }
        let known = found.before([sources, task.inputs.target_positions]);
        // Sorted positions have 30 bits for their numbers.
        check_counts(task.inputs, 1)?;
        self.by_single = false;
        if T::IS_F64 {
            if let Some(single) = &mut self.single {
                single.fmm.begin();
            }
            if known.is_none() && may_be_single(&task)? {
                self.asked.fmm.begin();
                let single = self.single.get_or_insert_with(|| Box::new(Methods::new(task.context)));
                let outcome = single.fmm.evaluate(task)?;
                found.keep(matches!(outcome, Outcome::NotInSingle).then_some(PrecisionFallback::Tolerance));
                self.by_single = matches!(outcome, Outcome::Done);
                single.by_fmm = self.by_single;
                if self.by_single {
                    return Ok(());
                }
            }
            return self.asked.start(task, None).map(drop);
        }
        self.fallback = known;
        let made = || Box::new(Methods::new(task.context));
        if self.fallback.is_none() {
            let exact = &mut **self.double.get_or_insert_with(made);
            self.fallback = task.ranks.worst(self.asked.start(task, Some(exact))?)?;
            found.keep(self.fallback);
        } else {
            self.asked.fmm.begin();
        }
        let Some(fallback) = self.fallback else { return Ok(()) };
        fallback.warn();
        self.double.get_or_insert_with(made).start(task, None).map(drop)
    }

    /// The direct sum in the requested precision, whether it is enough or not.
    pub fn start_direct(&mut self, task: Task<'_>) -> Result<()> {
        self.asked.direct.evaluate(task, None).map(drop)
    }

    pub fn bytes(&self) -> u64 {
        let (single, double) = (self.single.as_ref(), self.double.as_ref());
        self.asked.bytes() + single.map_or(0, |single| single.bytes()) + double.map_or(0, |double| double.bytes())
    }

    /// Fills the report of the last field; to be called after the stream was waited for. `computed`: seconds on the device.
    pub fn note(&self, report: &mut Report, computed: f64) {
        let missed = |fmm: &FmmSet<f32>| i64::from(fmm.missed());
        let retries = i64::from(self.asked.fmm.missed()) + self.single.as_ref().map_or(0, |single| missed(&single.fmm));
        match (&self.single, &self.double) {
            (Some(single), _) if self.by_single => single.note(report, computed),
            (_, Some(double)) if self.fallback.is_some() => {
                double.note(report, computed);
                report.retries = retries + i64::from(double.fmm.missed());
                return;
            }
            _ => self.asked.note(report, computed),
        }
        report.retries = retries;
    }

    /// What was chosen on this device, and why.
    pub fn describe(&self, device: &str) -> String {
        if let Some(single) = self.single.as_ref().filter(|_| self.by_single) {
            return format!("{} Of double arrays: single precision serves the tolerance.", single.describe(device));
        }
        match (&self.double, self.fallback) {
            (Some(double), Some(fallback)) => format!("{} In double precision: {fallback}.", double.describe(device)),
            _ => self.asked.describe(device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(points: usize, kinds: [Option<bool>; 2]) -> Elements {
        let (are, have_cores) = (kinds.map(|kind| kind.is_some()), kinds.map(|kind| kind == Some(true)));
        Elements { points, are, have_cores, gradient: false }
    }

    #[test]
    fn single_precision_pays_for_many_points() {
        for (points, cores, pays) in
            [(19_999, true, false), (20_000, true, true), (79_999, false, false), (80_000, false, true)]
        {
            assert_eq!(elements(points, [None, Some(cores)]).single_pays(1e-4), pays, "{points} {cores}");
        }
    }

    /// Below 1e-4 for particles without cores and segments with them.
    #[test]
    fn two_floats_pay_for_more() {
        let (with, without) = (Some(true), Some(false));
        for (kinds, pays) in [
            ([None, without], true),
            ([with, None], true),
            ([None, with], false),
            ([without, None], false),
            ([with, with], false),
        ] {
            assert_eq!(elements(500_000, kinds).single_pays(1e-5), pays, "{kinds:?}");
            assert!(!elements(499_999, kinds).single_pays(1e-5));
            assert!(!Elements { gradient: true, ..elements(1 << 30, kinds) }.single_pays(1e-5));
        }
    }
}
