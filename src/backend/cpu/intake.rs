//! From a plan's inputs to the sources and targets of the CPU's engine.
//!
//! Enters: `Inputs` in the caller's unit, precision and order. Leaves: elements in double precision and in the unit of the
//! problem. Lengths are multiplied by a power of two that brings the box of sources and targets near one (exact, so results
//! do not depend on the unit), particle strengths by the same. With periods all positions are moved by whole periods into the box
//! around the middle of the sources; a segment is moved as a whole, by its middle.

use super::fmm::SourceSet;
use super::images::Periods;
use super::near::Digits;
use super::sources::{ChargeSources, Particle, Segment, VortexSources};
use super::tree::{Corners, bounds_of, joined};
use crate::backend::periods;
use crate::error::{Error, Result, WFMM_ERR_MEMORY};
use crate::inputs::{Inputs, Ints, Reals, SegmentInput};
use crate::memory;
use crate::simd::Real;
use rayon::prelude::*;

/// A set of sources that knows its part of the inputs.
pub trait Intake<T: Real, const C: usize>: SourceSet<T, C> {
    /// Counters of positions and of strengths.
    fn counters(inputs: &Inputs) -> [u64; 2];
    /// Its arrays and the targets', all of them on the host.
    fn arrays(inputs: &Inputs) -> Result<Vec<&Reals>>;
    /// Corners of the boxes around its positions; nothing where there are none.
    fn boxes(inputs: &Inputs) -> Vec<Corners>;
    /// New positions, with their strengths.
    fn take_positions(&mut self, inputs: &Inputs, unit: Unit);
    /// New strengths, old positions.
    fn take_strengths(&mut self, inputs: &Inputs, unit: Unit);
    /// Refuses cores that still matter at the distance up to which images have cores; `length`: the caller's unit in this one.
    fn check_cores(&self, _periods: &Periods, _tolerance: f64, _length: f64) -> Result<()> {
        Ok(())
    }
    /// The sum of the strengths and that of their sizes, which decide whether there is a sum over all images; zero where there is one
    /// for any strengths.
    fn net(&self) -> [f64; 2] {
        [0.0; 2]
    }
}

impl<T: Real> Intake<T, 3> for VortexSources<T> {
    fn counters(inputs: &Inputs) -> [u64; 2] {
        [inputs.vortex_positions, inputs.vortex_strengths]
    }

    fn arrays(inputs: &Inputs) -> Result<Vec<&Reals>> {
        let mut arrays: Vec<&Reals> = inputs.targets.iter().map(|t| &t.position).collect();
        if let Some(s) = &inputs.segments {
            arrays.extend([&s.points, &s.circulation].into_iter().chain(&s.core));
            if matches!(s.connectivity, Ints::Device { .. }) {
                return Err(device_memory());
            }
        }
        if let Some(p) = &inputs.particles {
            arrays.extend([&p.position, &p.strength].into_iter().chain(&p.core));
        }
        on_host(arrays)
    }

    fn boxes(inputs: &Inputs) -> Vec<Corners> {
        let segments = inputs.segments.iter().filter(|s| s.n > 0).map(|s| {
            // Only points that a segment uses count: the rest of the array may hold anything finite.
            bounds_of(s.n, |k| {
                let [p1, p2] = ends_of(s, k).map(|e| triple(&s.points, e));
                (std::array::from_fn(|i| p1[i].min(p2[i])), std::array::from_fn(|i| p1[i].max(p2[i])))
            })
        });
        let particles = inputs.particles.iter().filter(|p| p.n > 0).map(|p| boxed(&p.position, p.n));
        segments.chain(particles).collect()
    }

    fn take_positions(&mut self, inputs: &Inputs, unit: Unit) {
        let (segments, particles) = vortices(inputs, unit);
        self.set_elements(segments, particles, unit.digits());
    }

    fn take_strengths(&mut self, inputs: &Inputs, unit: Unit) {
        let (segments, particles) = vortices(inputs, unit);
        self.set_strengths(segments, particles);
        self.refresh();
    }

    fn check_cores(&self, periods: &Periods, tolerance: f64, length: f64) -> Result<()> {
        periods::check_gaussians(self.largest_gaussian(), periods.period, length)?;
        let distance = periods.cores_looked_at();
        let (core, missing) = self.largest_core(distance);
        if missing <= tolerance {
            return Ok(());
        }
        Err(periods::too_wide(core * length, distance * length, missing, tolerance))
    }
}

impl<T: Real> Intake<T, 1> for ChargeSources<T> {
    fn counters(inputs: &Inputs) -> [u64; 2] {
        [inputs.charge_positions, inputs.charge_strengths]
    }

    fn arrays(inputs: &Inputs) -> Result<Vec<&Reals>> {
        let targets = inputs.targets.iter().map(|t| &t.position);
        on_host(targets.chain(inputs.charges.iter().flat_map(|c| [&c.position, &c.charge])).collect())
    }

    fn boxes(inputs: &Inputs) -> Vec<Corners> {
        inputs.charges.iter().filter(|c| c.n > 0).map(|c| boxed(&c.position, c.n)).collect()
    }

    fn take_positions(&mut self, inputs: &Inputs, unit: Unit) {
        let positions = inputs.charges.as_ref().map_or(vec![], |c| positions_of(&c.position, c.n, unit));
        self.set_elements(positions, charges(inputs), unit.splits);
    }

    fn take_strengths(&mut self, inputs: &Inputs, _: Unit) {
        self.charge = charges(inputs);
        self.refresh();
    }

    fn net(&self) -> [f64; 2] {
        self.charge.iter().fold([0.0; 2], |[sum, size], q| [sum + q, size + q.abs()])
    }
}

/// Steps of positions and periods in a periodic domain of size one, in double precision and in pairs of single precision
/// numbers. Sums of multiples of a step are exact: a target on an image of a source, or on an end of a segment that leaves
/// the box, is at distance zero.
const STEPS: [f64; 2] = [1.0 / (1u64 << 50) as f64, 1.0 / (1u64 << 44) as f64];
/// From so many periods on, the shift into the box is corrected for the rounding of the period to steps.
const MANY_PERIODS: f64 = 64.0;

/// Inner length = (length - origin) · scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    pub scale: f64,
    origin: [f64; 3],
    /// The caller's periods and the middle of their box.
    periods: Option<Periods>,
    /// Positions and periods are multiples of this, if not zero.
    step: f64,
    /// Double precision arrays, computed in single precision: positions have more digits than one number holds.
    splits: bool,
}

impl Default for Unit {
    fn default() -> Self {
        Self { scale: 1.0, origin: [0.0; 3], periods: None, step: 0.0, splits: false }
    }
}

impl Unit {
    /// A power of two that brings everything near one, and, where positions are split and all of them far from zero, an origin
    /// in their middle.
    pub fn of<T: Real, const C: usize, S: Intake<T, C>>(
        inputs: &Inputs,
        arrays: &[&Reals],
        period: Option<[f64; 3]>,
    ) -> Self {
        let splits = !T::IS_F64 && arrays.iter().any(|a| matches!(a, Reals::HostF64(_)));
        let all = corners::<T, C, S>(inputs);
        let Some(period) = period else { return Self::around(all, splits) };
        // Images are not at positions of the caller: in single precision all positions are sums of two numbers.
        let sources = corners_of_sources::<T, C, S>(inputs);
        if T::IS_F64 { Self::in_box(period, sources, all, STEPS[0]) } else { Self::in_single(period, sources, all) }
    }

    /// For a periodic box around the middle of the sources, in single precision; corners are of the sources, and of sources and targets.
    pub fn in_single(period: [f64; 3], sources: Corners, all: Corners) -> Self {
        Self { splits: true, ..Self::in_box(period, sources, all, STEPS[1]) }
    }

    /// The same; positions are multiples of `step`.
    fn in_box(period: [f64; 3], sources: Corners, (mut low, mut high): Corners, step: f64) -> Self {
        let middle = |(low, high): (f64, f64)| if low <= high { 0.5 * low + 0.5 * high } else { 0.0 };
        let center = std::array::from_fn(|i| middle((sources.0[i], sources.1[i])));
        for i in (0..3).filter(|&i| period[i] > 0.0) {
            (low[i], high[i]) = (center[i] - 0.5 * period[i], center[i] + 0.5 * period[i]);
        }
        // With an origin in the middle, in double precision too: rounded to steps, coordinates far from zero would lose digits.
        let unit = Self::around((low, high), true);
        // Coordinates far from zero have fewer digits after the point.
        let reach = (0..3).flat_map(|i| [low[i] - unit.origin[i], high[i] - unit.origin[i]]).map(f64::abs);
        let reach = (reach.fold(0.0, f64::max) * unit.scale).max(1.0);
        let step = step * reach.log2().ceil().exp2();
        Self { periods: Some(Periods { period, center }), step, ..unit }
    }

    /// Refuses periods that are not kept by the steps of positions.
    pub fn check_periods(&self) -> Result<()> {
        self.periods.map_or(Ok(()), |p| periods::check_steps(p.period, self.step / self.scale))
    }

    /// The periods in this unit.
    pub fn periods(&self) -> Option<Periods> {
        let inside = |x: [f64; 3]| std::array::from_fn(|i| (x[i] - self.origin[i]) * self.scale);
        self.periods
            .map(|p| Periods { period: p.period.map(|v| self.stepped(v * self.scale)), center: inside(p.center) })
    }

    /// For everything between these corners.
    pub fn around((low, high): Corners, splits: bool) -> Self {
        let size = (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max);
        // Sizes below 1e-307 would need a power that is no number.
        let exponent = -size.log2().ceil().clamp(-1022.0, 1022.0);
        let scale = if size > 0.0 && size.is_finite() { 2f64.powi(exponent as i32) } else { 1.0 };
        let middle: [f64; 3] = std::array::from_fn(|i| 0.5 * low[i] + 0.5 * high[i]);
        // Only where that is an exact subtraction: beside one far point a shift would take the others' digits.
        let origin = middle.map(|m| if splits && m.abs() > size { m } else { 0.0 });
        Unit { scale, origin, periods: None, step: 0.0, splits }
    }

    /// For ranks whose positions travel in double precision: sets in single precision split them. Corners are those of all ranks, of
    /// the sources, and of sources and targets. Where `reproducible`, no set is in single precision, and the unit is that of one process.
    pub fn of_ranks([sources, all]: [Corners; 2], period: Option<[f64; 3]>, reproducible: bool) -> Self {
        let unit = match period {
            None => Self::around(all, !reproducible),
            Some(period) => Self::in_box(period, sources, all, STEPS[0]),
        };
        Self { splits: false, ..unit }
    }

    /// Whether this one serves as well as `new`, which would cost the upward pass. In single precision the segments' kernels
    /// use all of the range: the box must stay within one, and fill half of the unit, because `range` has seen distances
    /// down to 2^-24 of the box.
    pub fn serves<T: Real>(&self, new: Unit) -> bool {
        let shift = (0..3).map(|i| (self.origin[i] - new.origin[i]).abs()).fold(0.0, f64::max);
        let widest = if T::IS_F64 { 4.0 } else { 1.0 };
        self.splits == new.splits
            && self.periods == new.periods
            && shift * new.scale <= 0.5
            && (0.5..=widest).contains(&(self.scale / new.scale))
    }

    /// What is known of positions in this unit: those relative to an origin were rounded where they were far from zero.
    pub fn digits(&self) -> Digits {
        let far = self.origin.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        Digits { splits: self.splits, step: self.step.max(0.5 * f64::EPSILON * far * self.scale) }
    }

    pub fn inside(&self, x: [f64; 3]) -> [f64; 3] {
        self.moved(x, self.way_to_box(x))
    }

    /// Both ends of a segment, which stays whole.
    fn ends_inside(&self, ends: [[f64; 3]; 2]) -> [[f64; 3]; 2] {
        let by = self.way_to_box(std::array::from_fn(|i| 0.5 * ends[0][i] + 0.5 * ends[1][i]));
        ends.map(|x| self.moved(x, by))
    }

    /// A position in this unit, so many periods farther.
    fn moved(&self, x: [f64; 3], periods: [f64; 3]) -> [f64; 3] {
        let inside: [f64; 3] = std::array::from_fn(|i| (x[i] - self.origin[i]) * self.scale);
        let Some(Periods { period, .. }) = self.periods else { return inside };
        let own = self.way_to_box(x);
        std::array::from_fn(|i| {
            let (exact, stepped) = (period[i] * self.scale, self.stepped(period[i] * self.scale));
            // The error of the rounded period adds up over many periods. The correction follows from the point's own position, so
            // that a target at an end of a segment stays whole periods apart from it wherever the segment is moved.
            let correction = if own[i].abs() < MANY_PERIODS { 0.0 } else { self.stepped(own[i] * (exact - stepped)) };
            self.stepped(inside[i]) + periods[i] * stepped + correction
        })
    }

    /// The nearest multiple of the step.
    fn stepped(&self, v: f64) -> f64 {
        if self.step > 0.0 { (v / self.step).round() * self.step } else { v }
    }

    /// The shift in periods that brings a position into the box.
    fn way_to_box(&self, x: [f64; 3]) -> [f64; 3] {
        let Some(Periods { period, center }) = self.periods else { return [0.0; 3] };
        std::array::from_fn(|i| {
            let from = x[i] - center[i];
            if period[i] == 0.0 || from.abs() <= 0.5 * period[i] { 0.0 } else { -(from / period[i]).round() }
        })
    }
}

/// Corners of the box around a side's sources; of nothing, infinities.
pub fn corners_of_sources<T: Real, const C: usize, S: Intake<T, C>>(inputs: &Inputs) -> Corners {
    joined(S::boxes(inputs))
}

/// The same around sources and targets.
pub fn corners<T: Real, const C: usize, S: Intake<T, C>>(inputs: &Inputs) -> Corners {
    let mut boxes = S::boxes(inputs);
    boxes.extend(inputs.targets.iter().filter(|t| t.n > 0).map(|t| boxed(&t.position, t.n)));
    joined(boxes)
}

/// The targets, in the caller's order.
pub fn targets_of(inputs: &Inputs, unit: Unit) -> Vec<[f64; 3]> {
    inputs.targets.as_ref().map_or(vec![], |t| positions_of(&t.position, t.n, unit))
}

/// The CPU cannot read device memory.
pub fn device_memory() -> Error {
    Error::new(
        WFMM_ERR_MEMORY,
        "an array is in device memory, and this plan runs on the CPU: hand over host arrays or use a CUDA session",
    )
}

fn on_host(arrays: Vec<&Reals>) -> Result<Vec<&Reals>> {
    let host = |a: &&Reals| matches!(a, Reals::HostF32(_) | Reals::HostF64(_));
    if arrays.iter().all(host) { Ok(arrays) } else { Err(device_memory()) }
}

/// Three numbers of a flat array of triples.
fn triple(a: &Reals, k: usize) -> [f64; 3] {
    match a {
        Reals::HostF32(v) => std::array::from_fn(|i| v[3 * k + i] as f64),
        Reals::HostF64(v) => std::array::from_fn(|i| v[3 * k + i]),
        _ => unreachable!("checked by on_host"),
    }
}

pub fn number(a: &Reals, k: usize) -> f64 {
    match a {
        Reals::HostF32(v) => v[k] as f64,
        Reals::HostF64(v) => v[k],
        _ => unreachable!("checked by on_host"),
    }
}

fn boxed(a: &Reals, n: usize) -> Corners {
    bounds_of(n, |k| [triple(a, k); 2].into())
}

fn positions_of(a: &Reals, n: usize, unit: Unit) -> Vec<[f64; 3]> {
    memory::par_collect((0..n).into_par_iter().map(|k| unit.inside(triple(a, k))))
}

/// Point numbers, from zero, of segment k.
pub fn ends_of(s: &SegmentInput, k: usize) -> [usize; 2] {
    let Ints::Host(c) = &s.connectivity else { unreachable!("checked by arrays") };
    [0, 1].map(|e| (c[k * s.ld + e] - s.index_base) as usize)
}

fn charges(inputs: &Inputs) -> Vec<f64> {
    inputs
        .charges
        .as_ref()
        .map_or(vec![], |c| memory::par_collect((0..c.n).into_par_iter().map(|k| number(&c.charge, k))))
}

fn vortices(inputs: &Inputs, unit: Unit) -> (Vec<Segment>, Vec<Particle>) {
    let segments = inputs.segments.as_ref().map_or(vec![], |s| {
        memory::par_collect((0..s.n).into_par_iter().map(|k| {
            let [p1, p2] = unit.ends_inside(ends_of(s, k).map(|end| triple(&s.points, end)));
            Segment {
                p1,
                p2,
                circulation: number(&s.circulation, k),
                core: s.core.as_ref().map_or(s.default_core, |c| number(c, k)) * unit.scale,
            }
        }))
    });
    let particles = inputs.particles.as_ref().map_or(vec![], |p| {
        memory::par_collect((0..p.n).into_par_iter().map(|k| Particle {
            x: unit.inside(triple(&p.position, k)),
            strength: triple(&p.strength, k).map(|v| v * unit.scale),
            core: p.core.as_ref().map_or(p.default_core, |c| number(c, k)) * unit.scale,
        }))
    });
    (segments, particles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{ParticleInput, TargetInput};

    fn inputs(positions: Vec<f64>) -> Inputs {
        let (n, array) = (positions.len() / 3, Reals::HostF64(positions.into()));
        let particles =
            ParticleInput { n, position: array.clone(), strength: array.clone(), core: None, default_core: 0.0 };
        let targets = TargetInput { n, position: array };
        Inputs { particles: Some(particles), targets: Some(targets), ..Inputs::default() }
    }

    /// A target at an end of a segment is at distance zero from an image of it, wherever the segment leaves the box.
    #[test]
    fn positions_that_are_periods_apart_stay_so() {
        for (splits, step) in [(false, STEPS[0]), (true, STEPS[1])] {
            let periods = Some(Periods { period: [0.7, 0.3, 0.0], center: [0.1, 0.2, 0.3] });
            let unit = Unit { periods, step, ..Unit::around(([-0.3, 0.0, 0.1], [0.5, 0.4, 0.9]), splits) };
            let period = unit.periods().unwrap().period;
            for k in 1..200 {
                let ends = [0.0, 0.17].map(|d| [1, 2, 3].map(|c| 3.0 * ((k * c) as f64 / 7.1).fract() - 1.0 + d));
                for (end, alone) in unit.ends_inside(ends).into_iter().zip(ends.map(|x| unit.inside(x))) {
                    for i in 0..3 {
                        let apart = end[i] - alone[i];
                        let whole = if period[i] > 0.0 { (apart / period[i]).round() * period[i] } else { 0.0 };
                        assert_eq!(alone[i] + whole, end[i], "{ends:?} {i}");
                        assert_eq!(end[i] - whole, alone[i], "{ends:?} {i}");
                        let digits = if splits { end[i] as f32 as f64 } else { end[i] };
                        assert_eq!((end[i] - digits) as f32 as f64, end[i] - digits, "two numbers");
                    }
                }
            }
        }
    }

    /// The check sums the positions of the unit: they must be the caller's own.
    #[test]
    fn no_digit_of_a_position_is_lost_on_the_way_into_the_unit() {
        let box_at = |at: f64| (1..40).map(|k| at + (k as f64 / 3.0).fract()).collect::<Vec<_>>();
        let far = |mut v: Vec<f64>, x: f64| {
            v.extend([x; 3]);
            v
        };
        for positions in [box_at(0.0), box_at(-0.5), box_at(1e6), far(box_at(0.0), 1e7), far(box_at(1.0), -1e30)] {
            let inputs = inputs(positions.clone());
            let arrays = <VortexSources<f32> as Intake<f32, 3>>::arrays(&inputs).unwrap();
            let unit = Unit::of::<f32, 3, VortexSources<f32>>(&inputs, &arrays, None);
            for x in positions.as_chunks::<3>().0 {
                let inside = unit.inside(*x);
                assert_eq!(std::array::from_fn(|i| inside[i] / unit.scale + unit.origin[i]), *x, "{unit:?}");
            }
        }
    }
}
