//! `set_*`: sources, strengths and targets of a plan, replaced as a whole after everything was checked.

use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_MEMORY, WFMM_ERR_VALUE};
use crate::inputs::{ChargeInput, ParticleInput, Reals, SegmentInput, TargetInput};
use crate::options::PlanOptions;
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

impl Plan {
    /// `None` removes the segments.
    pub fn set_segments<T: HostReal>(&mut self, segments: Option<Segments<'_, T>>) -> Result<()> {
        let (session, options) = (&self.session, &self.options);
        let numbers = segments.as_ref().map_or(0, |s| 3 * s.n_points.max(s.n));
        let segments = session.together("wfmm_plan_set_segments", || {
            on_pool(&self.session, numbers, || segments.map(|s| take_segments(session, options, s)).transpose())
        })?;
        self.inputs.segments = segments;
        self.vortices_changed();
        Ok(())
    }

    pub fn set_particles<T: HostReal>(&mut self, particles: Option<Particles<'_, T>>) -> Result<()> {
        let (session, default_core) = (&*self.session, self.options.core_radius);
        let take = |p: Particles<'_, T>| -> Result<ParticleInput> {
            Ok(ParticleInput {
                n: p.n,
                position: take_finite(session, "position", 3, p.position)?,
                strength: take_finite(session, "strength", 3, p.strength)?,
                core: p.core.map(|core| take_radii(session, core)).transpose()?,
                default_core,
            })
        };
        let numbers = particles.as_ref().map_or(0, |p| 3 * p.n);
        self.inputs.particles = session.together("wfmm_plan_set_particles", || {
            on_pool(&self.session, numbers, || particles.map(take).transpose())
        })?;
        self.vortices_changed();
        Ok(())
    }

    pub fn set_charges<T: HostReal>(&mut self, charges: Option<(usize, Array<'_, T>, Array<'_, T>)>) -> Result<()> {
        let session = &*self.session;
        let take = |(n, position, charge)| -> Result<ChargeInput> {
            Ok(ChargeInput {
                n,
                position: take_finite(session, "position", 3, position)?,
                charge: take_finite(session, "charge", 1, charge)?,
            })
        };
        let numbers = charges.as_ref().map_or(0, |(n, ..)| 3 * n);
        self.inputs.charges = session
            .together("wfmm_plan_set_charges", || on_pool(&self.session, numbers, || charges.map(take).transpose()))?;
        self.inputs.charge_positions += 1;
        self.inputs.charge_strengths += 1;
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

    fn vortices_changed(&mut self) {
        self.inputs.vortex_positions += 1;
        self.inputs.vortex_strengths += 1;
        self.given.vortices = true;
        self.warn_of_cores();
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

fn take_segments<T: HostReal>(session: &Session, options: &PlanOptions, s: Segments<'_, T>) -> Result<SegmentInput> {
    if s.ld < 2 {
        return Error::fail(
            WFMM_ERR_VALUE,
            format!("ld = {}; a row of the connectivity holds at least 2 point numbers", s.ld),
        );
    }
    let base = options.index_base;
    let (connectivity, ld) = take_connectivity(session, s.connectivity, s.n, s.ld, base, s.n_points)?;
    Ok(SegmentInput {
        n: s.n,
        points: take_finite(session, "points", 3, s.points)?,
        connectivity,
        ld,
        index_base: base,
        circulation: take_finite(session, "circulation", 1, s.circulation)?,
        core: s.core.map(|core| take_radii(session, core)).transpose()?,
        default_core: options.core_radius,
    })
}
