//! What comes back: quantities of elements with their identities, velocities at any points.

use super::Flow;
use super::device_step::Places;
use super::edit::numbers;
use super::options::{ElementKind, Quantity};
use super::state::{Lines, row, rows_among};
use super::sums::joined;
use super::vector::Part;
use crate::error::{Error, Result, WFMM_ERR_COUNT, WFMM_ERR_VALUE};
use crate::math::biot_savart::norm;
use crate::memory;
use crate::plan::arrays::{Array, ArrayMut, HostReal};
use std::borrow::Cow;

/// Arrays of a call where all are in device memory and in double precision.
fn places<'a, T: HostReal>(
    target: Array<'a, T>,
    velocity: &'a mut ArrayMut<'_, T>,
    gradient: Option<&'a mut ArrayMut<'_, T>>,
) -> Option<Places<'a>> {
    let gradient = match gradient {
        Some(gradient) => Some(gradient.device_doubles()?),
        None => None,
    };
    Some(Places { target: target.device_doubles()?, velocity: velocity.device_doubles()?, gradient })
}

impl Quantity {
    /// Numbers a row.
    pub fn width(self) -> usize {
        match self {
            Self::Position | Self::Strength | Self::Velocity => 3,
            Self::CoreRadius | Self::Circulation | Self::Diameter | Self::Density => 1,
        }
    }

    /// Whether filaments and bound segments have a row for each point, not for each segment.
    pub fn is_of_points(self) -> bool {
        matches!(self, Self::Position | Self::Velocity)
    }
}

impl Flow {
    /// A quantity of all elements (or points) of a kind; `values` and `identity` have room for `capacity` rows. Of many ranks all ask
    /// for the same.
    pub fn get<T: HostReal>(
        &mut self,
        kind: ElementKind,
        quantity: Quantity,
        values: ArrayMut<'_, T>,
        identity: Option<ArrayMut<'_, i64>>,
    ) -> Result<()> {
        self.all_ask_for(kind, quantity)?;
        self.make_ready(kind, quantity)?;
        let (numbers, ids) = self.quantity(kind, quantity)?;
        values.fill(&self.session, "values", numbers.iter().map(|v| T::from_f64(*v)))?;
        identity.map_or(Ok(()), |to| to.fill(&self.session, "identity", ids.iter().copied()))
    }

    /// A quantity of the elements (or points) of a kind with these identities; `values` has a row for each. As `get`.
    pub fn get_selected<T: HostReal>(
        &mut self,
        kind: ElementKind,
        quantity: Quantity,
        identity: &[i64],
        values: ArrayMut<'_, T>,
    ) -> Result<()> {
        let session = self.session.clone();
        self.all_ask_for(kind, quantity)?;
        self.rows(kind, quantity, usize::MAX)?;
        let rows = session.together("wfmm_flow_get_selected", || {
            let state = self.store.known();
            let lines = if kind == ElementKind::Filaments { &state.filaments } else { &state.bound };
            let ids = if kind.is_lines() && quantity.is_of_points() { &lines.point_id } else { state.ids(kind) };
            rows_among(ids, identity, kind)
        })?;
        self.make_ready(kind, quantity)?;
        let (numbers, _) = self.quantity(kind, quantity)?;
        let width = quantity.width();
        let chosen = rows.iter().flat_map(|row| &numbers[width * row..][..width]);
        values.fill(&self.session, "values", chosen.map(|v| T::from_f64(*v)))
    }

    /// Only some quantities of some kinds are an evaluation, in which all ranks take part or none.
    fn all_ask_for(&self, kind: ElementKind, quantity: Quantity) -> Result<()> {
        self.session.same(&[("kind", f64::from(kind as i32)), ("quantity", f64::from(quantity as i32))])
    }

    /// Brings what `quantity` reads to the host; velocities are computed.
    fn make_ready(&mut self, kind: ElementKind, quantity: Quantity) -> Result<()> {
        self.rows(kind, quantity, usize::MAX)?;
        if quantity == Quantity::Velocity && kind != ElementKind::Dust {
            self.find_velocities("wfmm_flow_get_*")?;
        } else if !matches!(quantity, Quantity::Circulation | Quantity::Diameter | Quantity::Density) {
            self.store.read(&[kind])?;
            self.warn_of_sides();
        }
        Ok(())
    }

    /// Rows of a quantity, or an error where the kind has no such quantity or `capacity` is too small.
    pub fn rows(&self, kind: ElementKind, quantity: Quantity, capacity: usize) -> Result<usize> {
        let (elements, points) = self.counts(kind);
        let has = match quantity {
            Quantity::Position | Quantity::Velocity => true,
            Quantity::Strength => kind == ElementKind::Particles,
            Quantity::CoreRadius => kind == ElementKind::Particles || kind.is_lines(),
            Quantity::Circulation => kind.is_lines(),
            Quantity::Diameter | Quantity::Density => kind == ElementKind::Dust,
        };
        let names = (ElementKind::ALL[kind as usize].1, Quantity::ALL[quantity as usize].1);
        if !has {
            let message = format!("quantity = {} ({}) is none that {} has", quantity as i32, names.1, names.0);
            return Error::fail(WFMM_ERR_VALUE, message);
        }
        let rows = if quantity.is_of_points() { points } else { elements };
        if rows > capacity {
            let message = format!("capacity = {capacity}; {} of {} has {rows} rows", names.1, names.0);
            return Error::fail(WFMM_ERR_COUNT, message);
        }
        Ok(rows)
    }

    fn quantity(&self, kind: ElementKind, quantity: Quantity) -> Result<(Cow<'_, [f64]>, &[i64])> {
        let state = self.store.known();
        let moving = |part| Cow::Borrowed(state.moving.part(part));
        self.rows(kind, quantity, usize::MAX)?;
        let lines = if kind == ElementKind::Filaments { &state.filaments } else { &state.bound };
        Ok(match (kind, quantity) {
            (ElementKind::Particles, Quantity::Position) => (moving(Part::ParticlePosition), &state.particle_id[..]),
            (ElementKind::Particles, Quantity::Strength) => (moving(Part::ParticleStrength), &state.particle_id),
            (ElementKind::Particles, Quantity::CoreRadius) => {
                let squares = state.moving.part(Part::ParticleCore2);
                (Cow::Owned(memory::collect(squares.iter().map(|c| c.sqrt()))), &state.particle_id)
            }
            (ElementKind::Filaments, Quantity::Position) => (moving(Part::PointPosition), &lines.point_id),
            (ElementKind::BoundSegments, Quantity::Position) => {
                (Cow::Borrowed(&state.bound_points[..]), &lines.point_id)
            }
            (_, Quantity::CoreRadius) => (Cow::Borrowed(&lines.core[..]), &lines.id),
            (_, Quantity::Circulation) => (Cow::Borrowed(&lines.circulation[..]), &lines.id),
            (ElementKind::Tracers, Quantity::Position) => (moving(Part::TracerPosition), &state.tracer_id),
            (ElementKind::Dust, Quantity::Position) => (Cow::Borrowed(&state.dust.position[..]), &state.dust.id),
            (ElementKind::Dust, Quantity::Velocity) => (Cow::Borrowed(&state.dust.velocity[..]), &state.dust.id),
            (_, Quantity::Diameter) => (Cow::Borrowed(&state.dust.diameter[..]), &state.dust.id),
            (_, Quantity::Density) => (Cow::Borrowed(&state.dust.density[..]), &state.dust.id),
            (_, Quantity::Velocity | Quantity::Strength) => self.velocity_of(kind),
        })
    }

    /// What `find_velocities` found, of a kind that moves with the fluid or is bound.
    fn velocity_of(&self, kind: ElementKind) -> (Cow<'_, [f64]>, &[i64]) {
        let state = self.store.known();
        let particles = 3 * state.particle_id.len();
        let points = particles + 3 * state.filaments.point_id.len();
        let [moving, bound] = self.velocities.as_ref().map_or([&[][..], &[]], |[m, b]| [&m[..], b]);
        let (values, ids) = match kind {
            ElementKind::Particles => (&moving[..particles], &state.particle_id),
            ElementKind::Filaments => (&moving[particles..points], &state.filaments.point_id),
            ElementKind::BoundSegments => (bound, &state.bound.point_id),
            ElementKind::Tracers | ElementKind::Dust => (&moving[points..], &state.tracer_id),
        };
        (Cow::Borrowed(values), ids)
    }

    /// What `find_velocities` found, as numbers.
    pub(super) fn fluid_velocity_of(&self, kind: ElementKind) -> &[f64] {
        match self.velocity_of(kind).0 {
            Cow::Borrowed(values) => values,
            Cow::Owned(_) => &[],
        }
    }

    /// The fluid's velocity at all moving points but dust, and at bound points, unless the present ones are known.
    pub(super) fn find_velocities(&mut self, call: &str) -> Result<()> {
        let session = self.session.clone();
        let found = session.collective(call, || {
            // Where one rank does not know them all find them. A callback may give other velocities at each call.
            if !session.any(self.velocities.is_none() || self.sums.callback.is_some())? {
                return Ok(None);
            }
            let (state, _) =
                self.store.read(&[ElementKind::Particles, ElementKind::Filaments, ElementKind::Tracers])?;
            let parts = [Part::ParticlePosition, Part::PointPosition, Part::TracerPosition];
            let positions = parts.map(|part| state.moving.part(part));
            let x = joined(&[positions[0], positions[1], positions[2], &state.bound_points]);
            let of_bound = state.bound_points.len();
            let mut u = self.velocity_now(&x, false)?.0;
            let bound = memory::copy(&u[x.len() - of_bound..]);
            u.truncate(x.len() - bound.len());
            Ok(Some([u, bound]))
        })?;
        self.velocities = found.or_else(|| self.velocities.take());
        Ok(())
    }

    /// U at points at the present time, and the gradient of its induced part.
    fn velocity_now(&mut self, x: &[f64], gradient: bool) -> Result<(Vec<f64>, Vec<f64>)> {
        let (store, mut tools) = self.tools();
        store.velocity(&mut tools, x, gradient)
    }

    /// The same at a caller's points.
    pub fn velocity_at<T: HostReal>(
        &mut self,
        target: Array<'_, T>,
        mut velocity: ArrayMut<'_, T>,
        mut gradient: Option<ArrayMut<'_, T>>,
    ) -> Result<()> {
        if let Some(at) = places(target, &mut velocity, gradient.as_mut()) {
            let (store, mut tools) = self.tools();
            if store.velocity_at(&mut tools, at)? {
                return Ok(());
            }
        }
        let session = self.session.clone();
        let (u, g) = session.collective("wfmm_flow_velocity_*", || {
            let x = numbers(&session, "target", 3, target)?;
            // A rank without targets wants nothing, and takes part.
            let slopes = session.any(gradient.is_some())?;
            if session.any(slopes && gradient.is_none() && !x.is_empty())? {
                let message = "some ranks with targets want a gradient and others do not: all or none of them";
                return Error::fail(WFMM_ERR_VALUE, message);
            }
            self.velocity_now(&x, slopes)
        })?;
        velocity.fill(&session, "velocity", u.iter().map(|v| T::from_f64(*v)))?;
        gradient.map_or(Ok(()), |to| to.fill(&session, "gradient", g.iter().map(|v| T::from_f64(*v))))
    }

    /// Point numbers of segments, counted as the options of the plan say.
    pub fn connectivity(&self, kind: ElementKind) -> Result<impl Iterator<Item = i32>> {
        let base = self.plan_options.index_base;
        let lines: &Lines = match kind {
            ElementKind::Filaments => &self.store.known().filaments,
            ElementKind::BoundSegments => &self.store.known().bound,
            _ => {
                let message = format!("kind = {}; accepted: WFMM_KIND_FILAMENTS or _BOUND_SEGMENTS", kind as i32);
                return Error::fail(WFMM_ERR_VALUE, message);
            }
        };
        Ok(lines.ends.as_flattened().iter().map(move |end| end + base))
    }

    /// The largest speed of anything that moves.
    pub(super) fn largest_velocity(&mut self) -> Result<f64> {
        self.find_velocities("wfmm_flow_diagnostics")?;
        let (state, _) = self.store.read(&[ElementKind::Dust])?;
        let dust = &state.dust.velocity;
        let fluid = self.velocities.as_ref().map_or(&[][..], |[moving, _]| moving);
        let largest = |v: &[f64]| (0..v.len() / 3).fold(0.0f64, |m, k| m.max(norm(row(v, k))));
        Ok(largest(fluid).max(largest(dust)))
    }
}
