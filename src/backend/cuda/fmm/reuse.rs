//! Which results of the last evaluation the next one keeps: the sources' tree if their positions are unchanged, the multipoles if the
//! strengths are unchanged too, the targets' tree and the lists if the targets are unchanged.
//!
//! Enters: change counters of the inputs. Leaves: which parts are done again. Targets that move get a new tree in the old
//! root cube, so that the sources' tree stays; the device says when the cube does not hold them.

use super::recipe::Kind;
use crate::backend::cuda::gather::DeviceInputs;

/// Number of evaluations that make both trees after new targets were outside of the kept root cube.
const REBUILDS_AFTER_OUTSIDE: u32 = 4;

/// What is done again; a part implies nothing about the others but that a new tree of the sources needs all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub sources: bool,
    pub targets: bool,
    /// Multipoles.
    pub upward: bool,
}

impl Work {
    pub const WHOLE: Self = Self { sources: true, targets: true, upward: true };
}

/// What both trees must agree on, and what kept trees were laid out by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    pub max_level: u32,
    pub stretch: f64,
    pub least_level: u32,
    /// Sources that there is room for: segments and, where they may be cut, their pieces.
    pub room: usize,
}

impl Shape {
    pub fn sort_passes(&self) -> u32 {
        (3 * self.max_level).div_ceil(8)
    }
}

/// The inputs of one kind of source, as far as they can be told apart without looking at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    positions: u64,
    strengths: u64,
    targets: u64,
    counts: [usize; 2],
}

impl Seen {
    fn of(kind: Kind, inputs: &DeviceInputs) -> Self {
        let vortices = |n| (inputs.vortex_positions, inputs.vortex_strengths, n);
        let (positions, strengths, n) = match kind {
            Kind::Charge => (inputs.charge_positions, inputs.charge_strengths, inputs.charges.n),
            Kind::Particle => vortices(inputs.particles.n),
            Kind::Segment => vortices(inputs.segments.n),
        };
        Self { positions, strengths, targets: inputs.target_positions, counts: [n, inputs.targets.n] }
    }
}

/// What is known of the last successful evaluation.
#[derive(Debug, Default)]
pub struct Reusable {
    kept: Option<(Seen, Shape)>,
    rebuilds_left: u32,
}

impl Reusable {
    /// Whether the inputs are those of the last evaluation, as far as they tell.
    pub fn is_of(&self, kind: Kind, inputs: &DeviceInputs) -> bool {
        !inputs.borrowed && self.kept.is_some_and(|(seen, _)| seen == Seen::of(kind, inputs))
    }

    /// The parts that must be computed, and the shape of the trees where it is kept.
    pub fn work(&mut self, kind: Kind, inputs: &DeviceInputs) -> (Work, Option<Shape>) {
        let now = Seen::of(kind, inputs);
        let waiting = self.rebuilds_left > 0;
        self.rebuilds_left = self.rebuilds_left.saturating_sub(1);
        let Some((old, shape)) = self.kept else { return (Work::WHOLE, None) };
        let same_positions = old.positions == now.positions && old.counts[0] == now.counts[0];
        let work = Work { sources: false, targets: old.targets != now.targets, upward: old.strengths != now.strengths };
        // The caller may have changed arrays in device memory without setting them again.
        let unsaid = inputs.borrowed && !work.targets && !work.upward;
        if !same_positions || unsaid || work.targets && waiting { (Work::WHOLE, None) } else { (work, Some(shape)) }
    }

    pub fn keep(&mut self, kind: Kind, inputs: &DeviceInputs, shape: Shape) {
        self.kept = Some((Seen::of(kind, inputs), shape));
    }

    pub fn forget(&mut self) {
        self.kept = None;
    }

    /// As new.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The old cube did not hold the targets.
    pub fn was_outside(&mut self) {
        self.rebuilds_left = REBUILDS_AFTER_OUTSIDE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { max_level: 5, stretch: 1.0, least_level: 2, room: 10 };

    fn inputs(positions: u64, strengths: u64, targets: u64) -> DeviceInputs {
        DeviceInputs {
            vortex_positions: positions,
            vortex_strengths: strengths,
            target_positions: targets,
            ..DeviceInputs::default()
        }
    }

    fn after(old: DeviceInputs, new: DeviceInputs) -> Work {
        let mut reusable = Reusable::default();
        reusable.keep(Kind::Particle, &old, SHAPE);
        let (work, shape) = reusable.work(Kind::Particle, &new);
        assert_eq!(shape, (work != Work::WHOLE).then_some(SHAPE));
        work
    }

    #[test]
    fn only_what_changed_is_done_again() {
        let old = inputs(1, 1, 1);
        assert_eq!(after(old, inputs(1, 2, 1)), Work { sources: false, targets: false, upward: true });
        assert_eq!(after(old, inputs(1, 1, 2)), Work { sources: false, targets: true, upward: false });
        assert_eq!(after(old, inputs(1, 2, 2)), Work { sources: false, targets: true, upward: true });
        assert_eq!(after(old, inputs(2, 2, 1)), Work::WHOLE);
        assert_eq!(after(old, old), Work { sources: false, targets: false, upward: false });
    }

    #[test]
    fn device_arrays_that_nobody_spoke_of_are_read_again() {
        let mut old = inputs(1, 1, 1);
        old.borrowed = true;
        assert_eq!(after(old, old), Work::WHOLE);
        let mut new = inputs(1, 2, 1);
        new.borrowed = true;
        assert!(!after(old, new).sources);
    }

    #[test]
    fn a_failed_evaluation_and_targets_outside_lead_to_whole_ones() {
        let mut reusable = Reusable::default();
        assert_eq!(reusable.work(Kind::Particle, &inputs(1, 1, 1)).0, Work::WHOLE);
        reusable.keep(Kind::Particle, &inputs(1, 1, 1), SHAPE);
        reusable.was_outside();
        for _ in 0..REBUILDS_AFTER_OUTSIDE {
            assert_eq!(reusable.work(Kind::Particle, &inputs(1, 1, 2)).0, Work::WHOLE);
        }
        assert!(!reusable.work(Kind::Particle, &inputs(1, 1, 2)).0.sources);
        reusable.forget();
        assert_eq!(reusable.work(Kind::Particle, &inputs(1, 1, 1)).0, Work::WHOLE);
    }

    #[test]
    fn the_same_inputs_are_known_but_for_device_arrays() {
        let mut reusable = Reusable::default();
        let (old, mut lent) = (inputs(1, 1, 1), inputs(1, 1, 1));
        assert!(!reusable.is_of(Kind::Particle, &old));
        reusable.keep(Kind::Particle, &old, SHAPE);
        assert!(reusable.is_of(Kind::Particle, &old) && !reusable.is_of(Kind::Particle, &inputs(1, 2, 1)));
        lent.borrowed = true;
        assert!(!reusable.is_of(Kind::Particle, &lent));
        reusable.clear();
        assert!(!reusable.is_of(Kind::Particle, &old));
    }
}
