//! `set_*`: sources, strengths and targets of a plan, replaced as a whole after everything was checked.

use crate::backend::Engine;
use crate::backend::images::Slot;
use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_MEMORY, WFMM_ERR_VALUE};
use crate::inputs::{ChargeInput, ParticleInput, Reals, SegmentInput, TargetInput};
use crate::session::Session;

use super::Plan;
use super::arrays::{Array, HostReal, is_double, on_pool, take_connectivity, take_finite, take_radii};
use super::plane::check_images;

/// Arrays of segments as a caller hands them over.
#[derive(Debug)]
pub struct Segments<'a, T> {
    pub n_points: usize,
    pub points: Array<'a, T>,
    pub n: usize,
    pub ld: usize,
    pub connectivity: Array<'a, i32>,
    pub circulation: Array<'a, T>,
    pub core: Option<Array<'a, T>>,
}

/// Arrays of particles.
#[derive(Debug)]
pub struct Particles<'a, T> {
    pub n: usize,
    pub position: Array<'a, T>,
    pub strength: Array<'a, T>,
    pub core: Option<Array<'a, T>>,
}

/// New strengths with the counts that the caller believes in; `None` keeps the old ones.
#[derive(Debug)]
pub struct Strengths<'a, T> {
    pub circulation: Option<(usize, Array<'a, T>)>,
    pub strength: Option<(usize, Array<'a, T>)>,
    pub charge: Option<(usize, Array<'a, T>)>,
}

/// Takes over the arrays of one call, and has each brought to where it will be summed while the next one is copied.
struct Taker<'a> {
    session: &'a Session,
    engine: Option<&'a mut (dyn Engine + 'static)>,
    /// What the counters of positions and of strengths will be.
    changes: [u64; 2],
}

impl Taker<'_> {
    fn finite<T: HostReal>(&mut self, slot: Slot, name: &str, width: usize, array: Array<'_, T>) -> Result<Reals> {
        let taken = take_finite(self.session, name, width, array)?;
        self.bring(slot, &taken);
        Ok(taken)
    }

    fn radii<T: HostReal>(&mut self, slot: Slot, array: Array<'_, T>) -> Result<Reals> {
        let taken = take_radii(self.session, array)?;
        self.bring(slot, &taken);
        Ok(taken)
    }

    fn bring(&mut self, slot: Slot, array: &Reals) {
        let [positions, strengths] = self.changes;
        let change =
            if matches!(slot, Slot::Circulation | Slot::Strength | Slot::Charge) { strengths } else { positions };
        if let Some(engine) = &mut self.engine {
            engine.bring_array(slot, array, change);
        }
    }
}

impl Plan {
    /// For arrays after which the counters will be these.
    fn taker(&mut self, changes: [u64; 2]) -> Taker<'_> {
        // Images are made in the evaluation.
        let engine = self.engine.as_mut().filter(|_| self.options.plane.is_none());
        Taker { session: &self.session, engine: engine.map(|(_, engine)| engine.as_mut()), changes }
    }

    fn vortex_taker(&mut self) -> Taker<'_> {
        self.taker([self.inputs.vortex_positions + 1, self.inputs.vortex_strengths + 1])
    }

    /// `None` removes the segments.
    pub fn set_segments<T: HostReal>(&mut self, segments: Option<Segments<'_, T>>) -> Result<()> {
        let (session, base, core) = (self.session.clone(), self.options.index_base, self.options.core_radius);
        let numbers = segments.as_ref().map_or(0, |s| 3 * s.n_points.max(s.n));
        let mut taker = self.vortex_taker();
        let take = |s| take_segments(&mut taker, base, core, s);
        let taken = session
            .together("wfmm_plan_set_segments", || on_pool(&session, numbers, || segments.map(take).transpose()));
        self.inputs.segments = self.vortices_taken(taken)?;
        self.vortices_changed();
        Ok(())
    }

    pub fn set_particles<T: HostReal>(&mut self, particles: Option<Particles<'_, T>>) -> Result<()> {
        let (session, default_core) = (self.session.clone(), self.options.core_radius);
        let mut taker = self.vortex_taker();
        let take = |p: Particles<'_, T>| -> Result<ParticleInput> {
            Ok(ParticleInput {
                n: p.n,
                position: taker.finite(Slot::Position, "position", 3, p.position)?,
                strength: taker.finite(Slot::Strength, "strength", 3, p.strength)?,
                core: p.core.map(|core| taker.radii(Slot::Core, core)).transpose()?,
                default_core,
            })
        };
        let numbers = particles.as_ref().map_or(0, |p| 3 * p.n);
        let taken = session
            .together("wfmm_plan_set_particles", || on_pool(&session, numbers, || particles.map(take).transpose()));
        self.inputs.particles = self.vortices_taken(taken)?;
        self.vortices_changed();
        Ok(())
    }

    pub fn set_charges<T: HostReal>(&mut self, charges: Option<(usize, Array<'_, T>, Array<'_, T>)>) -> Result<()> {
        let session = self.session.clone();
        let mut taker = self.taker([self.inputs.charge_positions + 1, self.inputs.charge_strengths + 1]);
        let take = |(n, position, charge)| -> Result<ChargeInput> {
            Ok(ChargeInput {
                n,
                position: taker.finite(Slot::ChargePosition, "position", 3, position)?,
                charge: taker.finite(Slot::Charge, "charge", 1, charge)?,
            })
        };
        let numbers = charges.as_ref().map_or(0, |(n, ..)| 3 * n);
        let taken =
            session.together("wfmm_plan_set_charges", || on_pool(&session, numbers, || charges.map(take).transpose()));
        self.inputs.charge_positions += 1;
        self.inputs.charge_strengths += 1;
        self.inputs.charges = taken?;
        self.given.charges = true;
        self.inputs_changed();
        Ok(())
    }

    pub fn set_targets<T: HostReal>(&mut self, targets: Option<(usize, Array<'_, T>)>) -> Result<()> {
        let (session, plane) = (&*self.session, self.options.plane);
        let take = |(n, position)| -> Result<TargetInput> {
            match (plane, position) {
                (Some(plane), Array::Host(x)) => check_images(plane, x)?,
                (Some(_), Array::Device { .. }) if session.communicator().is_some() => Error::fail(
                    WFMM_ERR_MEMORY,
                    "targets of a distributed session with a ground plane must be in host memory",
                )?,
                _ => {}
            }
            Ok(TargetInput { n, position: take_finite(session, "position", 3, position)? })
        };
        let numbers = targets.as_ref().map_or(0, |(n, _)| 3 * n);
        self.inputs.targets = session
            .together("wfmm_plan_set_targets", || on_pool(&self.session, numbers, || targets.map(take).transpose()))?;
        self.inputs.target_positions += 1;
        self.given.targets = true;
        self.inputs_changed();
        Ok(())
    }

    /// New strengths at the same positions: trees and lists are kept.
    pub fn set_strengths<T: HostReal>(&mut self, new: Strengths<'_, T>) -> Result<()> {
        let (session, counts) = (&*self.session, self.counts());
        let take = |name: &str, components, have: usize, new: Option<(usize, Array<'_, T>)>| match new {
            None => Ok(None),
            Some((n, _)) if n != have => Error::fail(
                WFMM_ERR_COUNT,
                format!("{n} values of {name}, but the plan has {have} elements of that kind"),
            ),
            Some((_, array)) => take_finite(session, name, components, array).map(Some),
        };
        let numbers = 3 * counts.segments.max(counts.particles).max(counts.charges);
        let (circulation, strength, charge) = session.together("wfmm_plan_set_strengths", || {
            on_pool(&self.session, numbers, || -> Result<_> {
                Ok((
                    take("circulation", 1, counts.segments, new.circulation)?,
                    take("strength", 3, counts.particles, new.strength)?,
                    take("charge", 1, counts.charges, new.charge)?,
                ))
            })
        })?;
        let (vortices, charges) = self.anywhere(circulation.is_some() || strength.is_some(), charge.is_some())?;
        self.inputs.vortex_strengths += u64::from(vortices);
        self.inputs.charge_strengths += u64::from(charges);
        if let (Some(s), Some(circulation)) = (&mut self.inputs.segments, circulation) {
            s.circulation = circulation;
        }
        if let (Some(p), Some(strength)) = (&mut self.inputs.particles, strength) {
            p.strength = strength;
        }
        if let (Some(c), Some(charge)) = (&mut self.inputs.charges, charge) {
            c.charge = charge;
        }
        self.inputs_changed();
        Ok(())
    }

    /// Counts a change, even where some array is refused: the arrays before it were brought under that number, which no others may have.
    fn vortices_taken<R>(&mut self, taken: Result<R>) -> Result<R> {
        self.inputs.vortex_positions += 1;
        self.inputs.vortex_strengths += 1;
        taken
    }

    fn vortices_changed(&mut self) {
        self.given.vortices = true;
        // Of many ranks once they know of each other's.
        if self.session.communicator().is_none() {
            self.warn_of_cores();
        }
        self.inputs_changed();
    }

    fn inputs_changed(&mut self) {
        self.double_output = false;
        self.last_field = None;
        // What goes wrong here goes wrong in the evaluation again, and is reported there. Images are made there, too: memory may be
        // refused, and what a plan was given stays.
        if self.options.plane.is_none()
            && let Some((_, engine)) = &mut self.engine
        {
            engine.bring(&self.inputs);
        }
    }

    fn reals(&self) -> impl Iterator<Item = &Reals> {
        self.sources().chain(self.inputs.targets.iter().map(|t| &t.position))
    }

    /// Real arrays of sources.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Reals> {
        let s = self.inputs.segments.iter().flat_map(|s| [Some(&s.points), Some(&s.circulation), s.core.as_ref()]);
        let p = self.inputs.particles.iter().flat_map(|p| [Some(&p.position), Some(&p.strength), p.core.as_ref()]);
        let c = self.inputs.charges.iter().flat_map(|c| [Some(&c.position), Some(&c.charge), None]);
        s.chain(p).chain(c).flatten()
    }

    pub(super) fn inputs_are_double(&self) -> bool {
        self.reals().any(is_double)
    }

    /// Host memory that the copies of the caller's arrays hold.
    pub(super) fn input_bytes(&self) -> u64 {
        let ends = self.inputs.segments.as_ref().map_or(0, |s| s.connectivity.host_bytes());
        ends + self.reals().map(Reals::host_bytes).sum::<u64>()
    }
}

/// `base`: number of the first point; `default_core`: the radius of those without one of their own.
fn take_segments<T: HostReal>(
    taker: &mut Taker<'_>,
    base: i32,
    default_core: f64,
    s: Segments<'_, T>,
) -> Result<SegmentInput> {
    if s.ld < 2 {
        return Error::fail(
            WFMM_ERR_VALUE,
            format!("ld = {}; a row of the connectivity holds at least 2 point numbers", s.ld),
        );
    }
    let (connectivity, ld) = take_connectivity(taker.session, s.connectivity, s.n, s.ld, base, s.n_points)?;
    Ok(SegmentInput {
        n: s.n,
        points: taker.finite(Slot::Points, "points", 3, s.points)?,
        connectivity,
        ld,
        index_base: base,
        circulation: taker.finite(Slot::Circulation, "circulation", 1, s.circulation)?,
        core: s.core.map(|core| taker.radii(Slot::SegmentCore, core)).transpose()?,
        default_core,
    })
}
