//! `set`, `add` and `remove`: elements come and go between steps.
//!
//! Enters: a caller's arrays. Leaves: the state with them, or as it was. Arrays are checked and widened to double precision
//! before anything changes; room is made before anything is appended.

use rayon::prelude::*;

use super::Flow;
use super::device::GivenParticles;
use super::integrate::History;
use super::options::ElementKind;
use super::state::{Given, GivenLines, Gone, Remaining, keep, room};
use super::step::fit_history;
use super::storage::Held;
use super::vector::Part;
use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_STATE, WFMM_ERR_VALUE, number};
use crate::inputs::check_connectivity;
use crate::plan::arrays::{Array, HostReal, SHARED_FROM, check_finite, on_pool};
use crate::plan::sources::{Particles, Segments};
use crate::session::Session;

/// Arrays of dust as a caller hands them over; `None`: at rest.
#[derive(Debug)]
pub struct DustArrays<'a, T> {
    pub position: Array<'a, T>,
    pub velocity: Option<Array<'a, T>>,
    pub diameter: Array<'a, T>,
    pub density: Array<'a, T>,
}

impl Flow {
    /// Replaces (`set`) or appends elements; `None` is none of them. Collective, as all calls that change the elements.
    pub fn put_particles<T: HostReal>(&mut self, particles: Option<Particles<'_, T>>, set: bool) -> Result<()> {
        if let Some(given) = particles.as_ref().filter(|_| set).and_then(|p| self.on_device(p)) {
            let (store, mut tools) = self.tools();
            if store.set_particles(&mut tools, given)? {
                self.changed(ElementKind::Particles, true);
                return Ok(());
            }
        }
        self.put(ElementKind::Particles, set, |flow| {
            let Some(p) = particles else { return Ok(None) };
            let core = flow.radii(p.core, p.n)?;
            let position = numbers(&flow.session, "position", 3, p.position)?;
            let strength = numbers(&flow.session, "strength", 3, p.strength)?;
            Ok(Some(Given::Particles { position, strength, core }))
        })
    }

    /// Particles that a device can take over without the host's memory.
    fn on_device<'a, T: HostReal>(&self, p: &Particles<'a, T>) -> Option<GivenParticles<'a>> {
        if p.core.is_some() || p.n > i32::MAX as usize {
            return None;
        }
        let (position, strength) = (p.position.device_doubles()?, p.strength.device_doubles()?);
        Some(GivenParticles { position, strength, core: self.plan_options.core_radius })
    }

    pub fn put_filaments<T: HostReal>(&mut self, segments: Option<Segments<'_, T>>, set: bool) -> Result<()> {
        let take = |flow: &Self| segments.map(|s| flow.lines(s).map(Given::Filaments)).transpose();
        self.put(ElementKind::Filaments, set, take)
    }

    pub fn set_bound_segments<T: HostReal>(&mut self, segments: Option<Segments<'_, T>>) -> Result<()> {
        let take = |flow: &Self| segments.map(|s| flow.lines(s).map(Given::BoundSegments)).transpose();
        self.put(ElementKind::BoundSegments, true, take)
    }

    pub fn put_tracers<T: HostReal>(&mut self, position: Option<Array<'_, T>>, set: bool) -> Result<()> {
        self.put(ElementKind::Tracers, set, |flow| {
            let Some(position) = position else { return Ok(None) };
            Ok(Some(Given::Tracers { position: numbers(&flow.session, "position", 3, position)? }))
        })
    }

    pub fn put_dust<T: HostReal>(&mut self, dust: Option<DustArrays<'_, T>>, set: bool) -> Result<()> {
        self.put(ElementKind::Dust, set, |flow| {
            let Some(dust) = dust else { return Ok(None) };
            if flow.options.fluid_viscosity == 0.0 {
                let message =
                    "fluid_viscosity = 0 in the options of this flow; dust needs a positive dynamic viscosity";
                return Error::fail(WFMM_ERR_STATE, message);
            }
            let session = &flow.session;
            let position = numbers(session, "position", 3, dust.position)?;
            let velocity = match dust.velocity {
                Some(velocity) => numbers(session, "velocity", 3, velocity)?,
                None => zeros(position.len())?,
            };
            let diameter = positive(session, "diameter", dust.diameter)?;
            let density = positive(session, "density", dust.density)?;
            Ok(Some(Given::Dust { position, velocity, diameter, density }))
        })
    }

    /// Removes elements; of many ranks each names its own.
    pub fn remove(&mut self, kind: ElementKind, gone: Gone<'_>) -> Result<()> {
        let (session, store) = (self.session.clone(), &mut self.store);
        let (remaining, held) = session.together("wfmm_flow_remove", move || {
            let remaining = store.known().remaining(kind, gone)?;
            Ok((remaining, store.edit(kind)?))
        })?;
        let Held { state, history } = held;
        let induced = !matches!(kind, ElementKind::Tracers | ElementKind::Dust) && remaining.elements.contains(&false);
        fit_history(state, history);
        state.keep(kind, &remaining);
        keep_history(history, kind, &remaining);
        self.changed(kind, induced);
        Ok(())
    }

    fn put(&mut self, kind: ElementKind, set: bool, take: impl FnOnce(&Self) -> Result<Option<Given>>) -> Result<()> {
        let session = self.session.clone();
        let call = if set { "wfmm_flow_set_*" } else { "wfmm_flow_add_*" };
        let given = session.together(call, || {
            let given = take(self)?;
            if let Some(given) = &given {
                self.make_room(kind, given, set)?;
            }
            if let Some(Given::Filaments(lines)) = &given {
                self.warn_of_seam(&lines.points);
            }
            Ok(given)
        })?;
        let (n, points) = given.as_ref().map_or((0, 0), |given| (elements(given), points(given)));
        let (first, all) = session.numbered(n)?;
        let (first_point, all_points) = session.numbered(points)?;
        let others_induce = self.others_induce(kind, given.as_ref(), set);
        if set {
            self.clear(kind);
        }
        // Identities in the order of the ranks.
        let Held { state, history } = self.store.append();
        state.skip_identities(kind, first, first_point);
        if let Some(given) = given {
            state.append(given);
        }
        state.skip_identities(kind, all - first - n, all_points - first_point - points);
        fit_history(state, history);
        self.changed(kind, others_induce);
        self.warn_of_sides();
        Ok(())
    }

    /// Whether other vortices induce after a `put` than before. Bound segments between the same points are the same ones, which the
    /// host has moved on: their field is taken to change as smoothly as that of vortices that move by themselves.
    fn others_induce(&self, kind: ElementKind, given: Option<&Given>, set: bool) -> bool {
        let known = self.store.known();
        let more = given.map_or(0, elements);
        match kind {
            ElementKind::Particles | ElementKind::Filaments => more > 0 || (set && known.counts(kind).0 > 0),
            ElementKind::BoundSegments => match given {
                Some(Given::BoundSegments(lines)) => lines.ends != known.bound.ends,
                _ => !known.bound.ends.is_empty(),
            },
            ElementKind::Tracers | ElementKind::Dust => false,
        }
    }

    /// Forgets what was found of other elements of a kind. Rates in the field of other vortices are no history: with them the next
    /// step would be of order 1, with an error in proportion to its length over that of the last one.
    fn changed(&mut self, kind: ElementKind, others_induce: bool) {
        self.velocities = None;
        if others_induce {
            self.store.begin_anew();
        }
        if kind == ElementKind::Particles {
            self.spread.forget_cores();
        }
    }

    /// Room first: afterwards nothing fails. What `set` replaces is still there meanwhile.
    fn make_room(&mut self, kind: ElementKind, given: &Given, set: bool) -> Result<()> {
        let (have, more) = (self.store.known().counts(kind).0, elements(given));
        let total = if set { more } else { have + more };
        if total > i32::MAX as usize {
            return Error::fail(WFMM_ERR_COUNT, format!("{total} elements in all; accepted: up to {}", i32::MAX));
        }
        let Held { state, history } = self.store.append();
        state.make_room(given)?;
        make_history_room(history, given)
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
        let core = numbers(&self.session, "core_radius", 1, core)?;
        match core.iter().position(|c| *c < 0.0) {
            None => Ok(core),
            Some(k) => {
                let message = format!(
                    "core_radius[{k}] = {} (elements counted from 0); 0 or a positive radius is needed",
                    number(core[k])
                );
                Error::fail(WFMM_ERR_VALUE, message)
            }
        }
    }

    fn lines<T: HostReal>(&self, s: Segments<'_, T>) -> Result<GivenLines> {
        let (session, base) = (&self.session, self.plan_options.index_base);
        let connectivity = s.connectivity.on_host(session, "connectivity")?;
        check_connectivity(&connectivity, s.ld, base, s.n_points)?;
        let mut rows: Vec<[i32; 2]> = Vec::new();
        room(&mut rows, s.n)?;
        rows.extend(connectivity.chunks(s.ld).map(|e| [e[0] - base, e[1] - base]));
        Ok(GivenLines {
            points: numbers(session, "points", 3, s.points)?,
            ends: rows,
            circulation: numbers(session, "circulation", 1, s.circulation)?,
            core: self.radii(s.core, s.n)?,
        })
    }
}

/// Room for what the history gets beside new elements; where vortices come it ends.
fn make_history_room(history: &mut Option<History>, given: &Given) -> Result<()> {
    let Some(history) = history else { return Ok(()) };
    match given {
        Given::Tracers { position } => room(history.rate.part_mut(Part::TracerPosition), position.len()),
        Given::Dust { position, .. } => room(history.rate.part_mut(Part::DustDrift), position.len()),
        Given::Particles { .. } | Given::Filaments(_) | Given::BoundSegments(_) => Ok(()),
    }
}

/// Keeps the history of what stays of a kind; where vortices go it ends.
fn keep_history(history: &mut Option<History>, kind: ElementKind, remaining: &Remaining) {
    let Some(history) = history else { return };
    match kind {
        ElementKind::Tracers => keep(history.rate.part_mut(Part::TracerPosition), 3, &remaining.elements),
        ElementKind::Dust => keep(history.rate.part_mut(Part::DustDrift), 3, &remaining.elements),
        ElementKind::Particles | ElementKind::Filaments | ElementKind::BoundSegments => {}
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

/// Points of segments.
fn points(given: &Given) -> usize {
    match given {
        Given::Filaments(lines) | Given::BoundSegments(lines) => lines.points.len() / 3,
        _ => 0,
    }
}

fn zeros(len: usize) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    room(&mut all, len)?;
    all.resize(len, 0.0);
    Ok(all)
}

/// A caller's finite numbers in double precision.
pub fn numbers<T: HostReal>(session: &Session, name: &str, components: usize, array: Array<'_, T>) -> Result<Vec<f64>> {
    let values = array.on_host(session, name)?;
    on_pool(session, values.len(), || {
        check_finite(name, components, &values)?;
        let mut all = Vec::new();
        room(&mut all, values.len())?;
        if values.len() < SHARED_FROM {
            all.extend(values.iter().map(|v| v.to_f64()));
        } else {
            all.par_extend(values.par_iter().with_min_len(1 << 14).map(|v| v.to_f64()));
        }
        Ok(all)
    })
}

fn positive<T: HostReal>(session: &Session, name: &str, array: Array<'_, T>) -> Result<Vec<f64>> {
    let values = numbers(session, name, 1, array)?;
    match values.iter().position(|v| *v <= 0.0) {
        None => Ok(values),
        Some(k) => Error::fail(
            WFMM_ERR_VALUE,
            format!("{name}[{k}] = {} (elements counted from 0); a positive number is needed", number(values[k])),
        ),
    }
}
