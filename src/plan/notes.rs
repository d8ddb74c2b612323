//! What a plan says beside its engine: options that do not mean what they seem to.
//!
//! Enters: options and inputs of a plan. Leaves: sentences of its recipe, and a warning about elements without a core, once a plan.

use log::warn;

use super::Plan;
use crate::backend::verdict::GRADIENT_TOLERANCES;
use crate::backend::{Field, periods};
use crate::inputs::Reals;
use crate::math::regularization::shortfall;
use crate::options::{Regularization, TOLERANCE_MAX};

impl Plan {
    /// Warns once where a regularization was chosen and no element has a core, since the kernel is then singular; and where cores are
    /// too large for a line of segments through all periods.
    pub(super) fn warn_of_cores(&mut self) {
        if self.warned || !log::log_enabled!(log::Level::Warn) {
            return;
        }
        let found = self.singular();
        for (elements, option, name) in &found {
            warn!(
                "{option} = {name}, but no core radius is above 0: the kernel of the {elements} is singular. Give radii (core_radius), or \
                 WFMM_REG_NONE where that is meant"
            );
        }
        let missing = self.missing_on_lines();
        if let Some(missing) = &missing {
            warn!("{missing}");
        }
        self.warned = missing.is_some() || !found.is_empty();
    }

    /// Sentences at the end of the recipe.
    pub(super) fn notes(&self) -> String {
        let mut text = String::new();
        if self.options.plane.is_some() {
            text += match self.mirrored.by_images() {
                true => " The sources and their images in the ground plane are summed together.",
                false => " Targets and their mirror images in the ground plane are evaluated together.",
            };
            if self.mirrored.in_double() || self.mirrored.is_direct() {
                text += " Their fields nearly cancel: single precision or expansions would be too coarse.";
            }
        }
        if self.options.tolerance >= TOLERANCE_MAX {
            text += &format!(" The tolerance is {TOLERANCE_MAX}, the largest that is used.");
        }
        for (elements, _, name) in self.singular() {
            text += &format!(" The kernel of the {elements} is singular: {name} without any core radius.");
        }
        if let Some(missing) = self.missing_on_lines() {
            text += &format!(" {missing}.");
        }
        if let Some(missing) = self.missing_beside_slab() {
            text += &format!(" {missing}.");
        }
        text
    }

    /// What of the gradient may be rounding or miss cores of distant images, where that is more than its tolerance: the last one was asked for
    /// at targets that are all beside a slab, on one side of it. Of one process, with its arrays in host memory.
    fn missing_beside_slab(&self) -> Option<String> {
        let period = self.options.period?;
        let field = self.last_field.filter(|field| field.has_gradient())?;
        if self.kinds_anywhere.is_some() {
            return None;
        }
        let inputs = &self.inputs;
        let (sources, core) = match field {
            Field::Velocity { .. } => (
                [inputs.segments.as_ref().map(|s| &s.points), inputs.particles.as_ref().map(|p| &p.position)],
                self.missing_of_cores(periods::cores_looked_at(period)),
            ),
            Field::Potential { .. } => ([inputs.charges.as_ref().map(|c| &c.position), None], 0.0),
        };
        let targets = [inputs.targets.as_ref().map(|t| &t.position), None];
        let beside = periods::beside_slab(period, |axis| Some([span(sources, axis)?, span(targets, axis)?]))?;
        let missing = periods::gradient_missing(beside, period, core);
        let is_missed = missing > GRADIENT_TOLERANCES * self.options.tolerance;
        is_missed.then(|| {
            format!(
                "All targets are at least {beside:.3e} beside the slab, where the gradients of all images cancel, and the fields of strengths that \
                 add up to nothing: {missing:.1e} of what is left may be rounding, or miss the cores of distant images"
            )
        })
    }

    /// What the largest cores of this process take, at most, of the field at a distance.
    fn missing_of_cores(&self, distance: f64) -> f64 {
        let of = |reg: Regularization, core: f64| match reg {
            // Offset cores act by their segments' lengths, and less than others so far away.
            Regularization::None | Regularization::Offset => 0.0,
            _ if core > 0.0 => shortfall(reg, distance / core),
            _ => 0.0,
        };
        let particles = self.inputs.particles.as_ref().filter(|p| p.n > 0);
        let of_particles = particles.map_or(0.0, |p| largest_core(&p.core, p.default_core));
        f64::max(
            of(self.options.segment_regularization, self.largest_segment_core()),
            of(self.options.particle_regularization, of_particles),
        )
    }

    /// What a line of segments through a periodic domain may miss, where that is more than the tolerance. Radii in device memory are
    /// not read.
    fn missing_on_lines(&self) -> Option<String> {
        let distance = periods::cores_looked_at(self.options.period?);
        if [Regularization::None, Regularization::Offset].contains(&self.options.segment_regularization) {
            return None;
        }
        let core = self.largest_segment_core().max(self.core_anywhere);
        let missing = periods::missing_on_lines(core, distance);
        (missing > self.options.tolerance).then(|| {
            format!(
                "Images beyond {distance:.3e} have no cores: a target inside a core of a straight line of segments that goes through many \
                 periods may miss {missing:.1e} of the field of the line; core_radius is up to {core:.3e}"
            )
        })
    }

    /// The largest radius of this rank's segments.
    pub(super) fn largest_segment_core(&self) -> f64 {
        let segments = self.inputs.segments.as_ref().filter(|s| s.n > 0);
        segments.map_or(0.0, |s| largest_core(&s.core, s.default_core))
    }

    /// Kinds whose kernel is singular, as bits: 1 segments, 2 particles.
    pub(super) fn singular_kinds(&self) -> i64 {
        self.singular().iter().map(|(elements, ..)| if *elements == "segments" { 1 } else { 2 }).sum()
    }

    /// Kinds of elements whose regularization has no radius to act on, the option and its value; of many ranks those of all together.
    fn singular(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let (of_segments, of_particles) = (self.options.segment_regularization, self.options.particle_regularization);
        let kinds = [
            ("segments", "segment_regularization", of_segments),
            ("particles", "particle_regularization", of_particles),
        ];
        let found = kinds.into_iter().zip(self.kinds_anywhere.unwrap_or_else(|| self.kinds()));
        let bare = found.filter(|((.., chosen), k)| k.any && !k.with_radius && *chosen != Regularization::None);
        bare.map(|((elements, option, chosen), _)| (elements, option, chosen.name())).collect()
    }

    /// Segments and particles of this process. Radii in device memory are not read.
    pub(super) fn kinds(&self) -> [KindOfElements; 2] {
        let (s, p) = (self.inputs.segments.as_ref(), self.inputs.particles.as_ref());
        let of = |n: usize, core: &Option<Reals>, default: f64| KindOfElements {
            any: n > 0,
            with_radius: n > 0 && core.as_ref().map_or(default > 0.0, may_be_positive),
        };
        [
            s.map_or_else(KindOfElements::default, |s| of(s.n, &s.core, s.default_core)),
            p.map_or_else(KindOfElements::default, |p| of(p.n, &p.core, p.default_core)),
        ]
    }
}

/// Whether there are elements of a kind, and whether one of them has a core radius.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KindOfElements {
    pub any: bool,
    pub with_radius: bool,
}

/// Whether a radius is above 0, as far as the host can see.
fn may_be_positive(radii: &Reals) -> bool {
    match radii {
        Reals::HostF32(c) => c.iter().any(|&c| c > 0.0),
        Reals::HostF64(c) => c.iter().any(|&c| c > 0.0),
        Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => true,
    }
}

/// The largest radius of elements, whose own ones are optional.
fn largest_core(own: &Option<Reals>, default: f64) -> f64 {
    own.as_ref().map_or(default, largest)
}

/// The largest radius, as far as the host can see.
fn largest(radii: &Reals) -> f64 {
    match radii {
        Reals::HostF32(c) => c.iter().fold(0.0, |a, &c| a.max(c.into())),
        Reals::HostF64(c) => c.iter().fold(0.0, |a, &c| a.max(c)),
        Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => 0.0,
    }
}

/// Least and greatest coordinate of points along an axis; none where the host can not see them.
fn span(points: [Option<&Reals>; 2], axis: usize) -> Option<[f64; 2]> {
    let mut all = [f64::INFINITY, f64::NEG_INFINITY];
    let mut take = |x: f64| all = [all[0].min(x), all[1].max(x)];
    for of in points.into_iter().flatten() {
        match of {
            Reals::HostF32(x) => x.iter().skip(axis).step_by(3).for_each(|&x| take(x.into())),
            Reals::HostF64(x) => x.iter().skip(axis).step_by(3).for_each(|&x| take(x)),
            Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => return None,
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::super::arrays::{Array, ArrayMut};
    use super::super::sources::{Particles, Segments};
    use super::*;
    use crate::options::{
        BackendKind, PlanOptions, SessionOptions, WFMM_REG_GAUSS_ERF, WFMM_REG_NONE, WFMM_REG_ROSENHEAD,
        WFMM_REG_SCULLY, WFMM_REG_VATISTAS, wfmm_plan_options,
    };
    use crate::session::Session;

    fn plan(options: wfmm_plan_options) -> Plan {
        let cpu = SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 1 };
        Plan::new(Session::new(&cpu).unwrap(), PlanOptions::checked(&options).unwrap())
    }

    fn recipe(options: wfmm_plan_options, core: Option<&[f64]>) -> String {
        let mut plan = plan(options);
        let x = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        let (position, strength) = (Array::Host(&x[..]), Array::Host(&x[..]));
        plan.set_particles(Some(Particles { n: 2, position, strength, core: core.map(Array::Host) })).unwrap();
        plan.set_targets(Some((2, Array::Host(&x[..])))).unwrap();
        let mut u = [0.0; 6];
        plan.evaluate(Field::Velocity { gradient: false }, ArrayMut::Host(&mut u[..]), None).unwrap();
        plan.recipe()
    }

    /// A line of segments with wide cores may be wrong: the recipe says so.
    #[test]
    fn wide_cores_of_segments_in_periodic_domains_are_named() {
        let recipe = |core: f64, period: [f64; 3]| {
            let options = wfmm_plan_options {
                segment_regularization: WFMM_REG_VATISTAS,
                tolerance: 1e-3,
                period,
                ..Default::default()
            };
            let mut plan = plan(options);
            let (x, core) = ([0.1, 0.2, 0.3, 0.4, 0.2, 0.3], [0.01, core]);
            let (points, circulation, core) = (Array::Host(&x[..]), Array::Host(&x[..2]), Some(Array::Host(&core[..])));
            let connectivity = Array::Host(&[0, 1, 1, 0][..]);
            plan.set_segments(Some(Segments { n_points: 2, points, n: 2, ld: 2, connectivity, circulation, core }))
                .unwrap();
            plan.set_targets(Some((2, Array::Host(&x[..])))).unwrap();
            let mut u = [0.0; 6];
            plan.evaluate(Field::Velocity { gradient: false }, ArrayMut::Host(&mut u[..]), None).unwrap();
            plan.recipe()
        };
        assert!(
            recipe(0.3, [1.0; 3]).ends_with("may miss 1.5e-3 of the field of the line; core_radius is up to 3.000e-1.")
        );
        assert!(!recipe(0.2, [1.0; 3]).contains("have no cores"));
        assert!(!recipe(0.3, [1.0, 0.0, 1.0]).contains("have no cores"));
    }

    /// Beside a slab the gradient falls by 1/535 each period, rounding does not: the recipe says where that is more than the tolerance.
    #[test]
    fn gradients_that_cancel_beside_a_slab_are_named() {
        let by = |height: f64, period: [f64; 3], gradient: bool, particle_regularization: i32| {
            let options = wfmm_plan_options { particle_regularization, core_radius: 0.01, ..Default::default() };
            let mut plan = plan(wfmm_plan_options { tolerance: 1e-4, period, ..options });
            let (x, at) = ([0.1, 0.2, 0.3, 0.4, 0.2, 0.5], [0.1, 0.2, height, 0.3, 0.1, height + 1.0]);
            let (position, strength) = (Array::Host(&x[..]), Array::Host(&x[..]));
            plan.set_particles(Some(Particles { n: 2, position, strength, core: None })).unwrap();
            plan.set_targets(Some((2, Array::Host(&at[..])))).unwrap();
            let (mut u, mut slopes) = ([0.0; 6], [0.0; 18]);
            let wanted = gradient.then(|| ArrayMut::Host(&mut slopes[..]));
            plan.evaluate(Field::Velocity { gradient }, ArrayMut::Host(&mut u[..]), wanted).unwrap();
            plan.recipe()
        };
        let recipe = |height: f64, period: [f64; 3], gradient: bool| by(height, period, gradient, WFMM_REG_GAUSS_ERF);
        let slab = [1.0, 0.5, 0.0];
        // exp(8π) 1e-12
        assert!(recipe(4.5, slab, true).ends_with(
            " All targets are at least 4.000e0 beside the slab, where the gradients of all images cancel, and the fields of strengths that \
             add up to nothing: 8.2e-2 of what is left may be rounding, or miss the cores of distant images."
        ));
        assert!(recipe(-4.9, slab, true).contains("at least 4.200e0 beside the slab"));
        // Rosenhead cores c change a field by 1.5 (c/r)². At r = 14 mean periods, r² = 14² · 0.5: exp(4π) 1.5 · 1e-4/98 two periods beside.
        assert!(by(2.5, slab, true, WFMM_REG_ROSENHEAD).contains(": 4.4e-1 of what is left may be"));
        for other in
            [recipe(3.5, slab, true), recipe(0.2, slab, true), recipe(4.5, slab, false), recipe(4.5, [1.0; 3], true)]
        {
            assert!(!other.contains("beside the slab"), "{other}");
        }
    }

    #[test]
    fn kernels_without_any_core_are_named() {
        let default = wfmm_plan_options::default();
        let said = "The kernel of the particles is singular: WFMM_REG_GAUSS_ERF without any core radius.";
        assert!(recipe(default, None).ends_with(said));
        assert!(recipe(default, Some(&[0.0, 0.0])).ends_with(said));
        assert!(!recipe(default, Some(&[0.0, 0.1])).contains("singular"));
        assert!(!recipe(wfmm_plan_options { core_radius: 0.1, ..default }, None).contains("singular"));
        assert!(
            !recipe(wfmm_plan_options { particle_regularization: WFMM_REG_NONE, ..default }, None).contains("singular")
        );
        // There are no segments: their regularization is not spoken of.
        assert!(
            !recipe(wfmm_plan_options { segment_regularization: WFMM_REG_SCULLY, ..default }, None)
                .contains("segments")
        );
    }
}
