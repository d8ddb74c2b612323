//! `set`, `add` and `remove`: elements come and go between steps.
//!
//! Enters: a caller's arrays. Leaves: the state with them, or as it was. Arrays are checked and widened to double precision
//! before anything changes; room is made before anything is appended.

use super::Flow;
use super::integrate::History;
use super::options::ElementKind;
use super::state::{Given, GivenLines, keep, room};
use super::step::fit_history;
use super::storage::Held;
use super::vector::Part;
use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_STATE, WFMM_ERR_UNSUPPORTED, WFMM_ERR_VALUE};
use crate::inputs::Ints;
use crate::plan::arrays::{Array, ArrayMut, HostReal, check_finite, take_connectivity};
use crate::plan::sources::{Particles, Segments};

/// Arrays of dust as a caller hands them over; `None`: at rest.
#[derive(Debug)]
pub struct DustArrays<'a, T> {
    pub position: Array<'a, T>,
    pub velocity: Option<Array<'a, T>>,
    pub diameter: Array<'a, T>,
    pub density: Array<'a, T>,
}

impl Flow {
    /// Replaces (`set`) or appends elements; `None` is none of them.
    pub fn put_particles<T: HostReal>(&mut self, particles: Option<Particles<'_, T>>, set: bool) -> Result<()> {
        let Some(p) = particles else { return self.put_nothing(ElementKind::Particles, set) };
        let core = self.radii(p.core, p.n)?;
        let (position, strength) = (numbers("position", 3, p.position)?, numbers("strength", 3, p.strength)?);
        self.put(ElementKind::Particles, Given::Particles { position, strength, core }, set)
    }

    pub fn put_filaments<T: HostReal>(&mut self, segments: Option<Segments<'_, T>>, set: bool) -> Result<()> {
        let Some(s) = segments else { return self.put_nothing(ElementKind::Filaments, set) };
        let lines = self.lines(s)?;
        self.put(ElementKind::Filaments, Given::Filaments(lines), set)
    }

    pub fn set_bound_segments<T: HostReal>(&mut self, segments: Option<Segments<'_, T>>) -> Result<()> {
        let Some(s) = segments else { return self.put_nothing(ElementKind::BoundSegments, true) };
        let lines = self.lines(s)?;
        self.put(ElementKind::BoundSegments, Given::BoundSegments(lines), true)
    }

    pub fn put_tracers<T: HostReal>(&mut self, position: Option<Array<'_, T>>, set: bool) -> Result<()> {
        let Some(position) = position else { return self.put_nothing(ElementKind::Tracers, set) };
        let position = numbers("position", 3, position)?;
        self.put(ElementKind::Tracers, Given::Tracers { position }, set)
    }

    pub fn put_dust<T: HostReal>(&mut self, dust: Option<DustArrays<'_, T>>, set: bool) -> Result<()> {
        let Some(dust) = dust else { return self.put_nothing(ElementKind::Dust, set) };
        if self.options.fluid_viscosity == 0.0 {
            let message = "fluid_viscosity = 0 in the options of this flow; dust needs a positive dynamic viscosity";
            return Error::fail(WFMM_ERR_STATE, message);
        }
        let position = numbers("position", 3, dust.position)?;
        let velocity = match dust.velocity {
            Some(velocity) => numbers("velocity", 3, velocity)?,
            None => zeros(position.len())?,
        };
        let (diameter, density) = (positive("diameter", dust.diameter)?, positive("density", dust.density)?);
        self.put(ElementKind::Dust, Given::Dust { position, velocity, diameter, density }, set)
    }

    /// Removes elements by identity.
    pub fn remove(&mut self, kind: ElementKind, identity: &[i64]) -> Result<()> {
        let stays = self.store.known().stays(kind, identity)?;
        let Held { state, history } = self.store.edit(kind)?;
        fit_history(state, history);
        let point_stays = state.compact(kind, &stays);
        keep_history(history, kind, &stays, &point_stays);
        self.velocities = None;
        Ok(())
    }

    fn put_nothing(&mut self, kind: ElementKind, set: bool) -> Result<()> {
        if set {
            self.clear(kind);
        }
        Ok(())
    }

    fn put(&mut self, kind: ElementKind, given: Given, set: bool) -> Result<()> {
        // Room first: afterwards nothing fails. What `set` replaces is still there meanwhile.
        let (have, more) = (self.store.known().counts(kind).0, elements(&given));
        let total = if set { more } else { have + more };
        if total > i32::MAX as usize {
            return Error::fail(WFMM_ERR_COUNT, format!("{total} elements in all; accepted: up to {}", i32::MAX));
        }
        let Held { state, history } = self.store.append();
        state.make_room(&given)?;
        make_history_room(history, &given)?;
        if set {
            self.clear(kind);
        }
        let Held { state, history } = self.store.append();
        state.append(given);
        fit_history(state, history);
        self.velocities = None;
        Ok(())
    }

    fn clear(&mut self, kind: ElementKind) {
        let Held { state, history } = self.store.replace(kind);
        state.clear(kind);
        fit_history(state, history);
        self.velocities = None;
    }

    /// Radii, or the default one for all.
    fn radii<T: HostReal>(&self, core: Option<Array<'_, T>>, n: usize) -> Result<Vec<f64>> {
        let Some(core) = core else {
            let mut all = Vec::new();
            room(&mut all, n)?;
            all.resize(n, self.plan_options.core_radius);
            return Ok(all);
        };
        let core = numbers("core_radius", 1, core)?;
        match core.iter().position(|c| *c < 0.0) {
            None => Ok(core),
            Some(k) => {
                let message = format!(
                    "core_radius[{k}] = {} (elements counted from 0); 0 or a positive radius is needed",
                    core[k]
                );
                Error::fail(WFMM_ERR_VALUE, message)
            }
        }
    }

    fn lines<T: HostReal>(&self, s: Segments<'_, T>) -> Result<GivenLines> {
        let base = self.plan_options.index_base;
        on_host(&s.connectivity, "connectivity")?;
        let (ends, _) = take_connectivity(&self.session, s.connectivity, s.n, s.ld, base, s.n_points)?;
        let Ints::Host(ends) = ends else { return device("connectivity") };
        let mut rows: Vec<[i32; 2]> = Vec::new();
        room(&mut rows, s.n)?;
        rows.extend(ends.chunks_exact(2).map(|e| [e[0] - base, e[1] - base]));
        Ok(GivenLines {
            points: numbers("points", 3, s.points)?,
            ends: rows,
            circulation: numbers("circulation", 1, s.circulation)?,
            core: self.radii(s.core, s.n)?,
        })
    }
}

/// Room for what the history gets beside new elements.
fn make_history_room(history: &mut Option<History>, given: &Given) -> Result<()> {
    let Some(history) = history else { return Ok(()) };
    let n = elements(given);
    let grows: &[(Part, usize)] = match given {
        Given::Particles { .. } => {
            &[(Part::ParticlePosition, 3 * n), (Part::ParticleStrength, 3 * n), (Part::ParticleCore2, n)]
        }
        Given::Filaments(lines) => &[(Part::PointPosition, lines.points.len()), (Part::SegmentVolume, n)],
        Given::BoundSegments(_) => &[],
        Given::Tracers { .. } => &[(Part::TracerPosition, 3 * n)],
        Given::Dust { .. } => &[(Part::DustDrift, 3 * n)],
    };
    grows.iter().try_for_each(|(part, more)| room(history.rate.part_mut(*part), *more))
}

/// Keeps the history of what stays of a kind.
fn keep_history(history: &mut Option<History>, kind: ElementKind, stays: &[bool], point_stays: &[bool]) {
    let Some(history) = history else { return };
    let mut one = |part: Part, width: usize, stays: &[bool]| keep(history.rate.part_mut(part), width, stays);
    match kind {
        ElementKind::Particles => {
            one(Part::ParticlePosition, 3, stays);
            one(Part::ParticleStrength, 3, stays);
            one(Part::ParticleCore2, 1, stays);
        }
        ElementKind::Filaments => {
            one(Part::PointPosition, 3, point_stays);
            one(Part::SegmentVolume, 1, stays);
        }
        ElementKind::BoundSegments => {}
        ElementKind::Tracers => one(Part::TracerPosition, 3, stays),
        ElementKind::Dust => one(Part::DustDrift, 3, stays),
    }
}

fn elements(given: &Given) -> usize {
    match given {
        Given::Particles { core, .. } => core.len(),
        Given::Filaments(lines) | Given::BoundSegments(lines) => lines.ends.len(),
        Given::Tracers { position } => position.len() / 3,
        Given::Dust { diameter, .. } => diameter.len(),
    }
}

fn device<R>(name: &str) -> Result<R> {
    let message = format!("{name} is in device memory; elements of a flow are set and read through host arrays");
    Error::fail(WFMM_ERR_UNSUPPORTED, message)
}

/// An output that is where the state is.
pub fn host_mut<'a, T>(name: &str, array: ArrayMut<'a, T>) -> Result<&'a mut [T]> {
    match array {
        ArrayMut::Host(values) => Ok(values),
        ArrayMut::Device { .. } => device(name),
    }
}

fn on_host<T>(array: &Array<'_, T>, name: &str) -> Result<()> {
    if matches!(array, Array::Host(_)) { Ok(()) } else { device(name) }
}

fn zeros(len: usize) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    room(&mut all, len)?;
    all.resize(len, 0.0);
    Ok(all)
}

/// A caller's finite numbers in double precision.
pub fn numbers<T: HostReal>(name: &str, components: usize, array: Array<'_, T>) -> Result<Vec<f64>> {
    let Array::Host(values) = array else { return device(name) };
    check_finite(name, components, values)?;
    let mut all = Vec::new();
    room(&mut all, values.len())?;
    all.extend(values.iter().map(|v| v.to_f64()));
    Ok(all)
}

fn positive<T: HostReal>(name: &str, array: Array<'_, T>) -> Result<Vec<f64>> {
    let values = numbers(name, 1, array)?;
    match values.iter().position(|v| *v <= 0.0) {
        None => Ok(values),
        Some(k) => Error::fail(
            WFMM_ERR_VALUE,
            format!("{name}[{k}] = {} (elements counted from 0); a positive number is needed", values[k]),
        ),
    }
}
