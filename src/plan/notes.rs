//! What a plan says beside its engine: options that do not mean what they seem to.
//!
//! Enters: options and inputs of a plan. Leaves: sentences of its recipe, and a warning about elements without a core, once a plan.

use log::warn;

use super::Plan;
use crate::inputs::Reals;
use crate::options::{Regularization, TOLERANCE_MAX};

impl Plan {
    /// Warns once where a regularization was chosen and no element has a core: the kernel is then singular.
    pub(super) fn warn_of_singular(&mut self) {
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
        self.warned = !found.is_empty();
    }

    /// Sentences at the end of the recipe.
    pub(super) fn notes(&self) -> String {
        let mut text = String::new();
        if self.options.plane.is_some() {
            text += " Targets and their mirror images in the ground plane are evaluated together.";
        }
        if self.options.tolerance >= TOLERANCE_MAX {
            text += &format!(" The tolerance is {TOLERANCE_MAX}, the largest that is used.");
        }
        for (elements, _, name) in self.singular() {
            text += &format!(" The kernel of the {elements} is singular: {name} without any core radius.");
        }
        text
    }

    /// Kinds of elements whose regularization has no radius to act on, the option and its value. Radii in device memory are not read.
    fn singular(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let (s, p) = (self.inputs.segments.as_ref(), self.inputs.particles.as_ref());
        let segments = s.map(|s| (s.n, s.core.as_ref(), s.default_core));
        let particles = p.map(|p| (p.n, p.core.as_ref(), p.default_core));
        let (of_segments, of_particles) = (self.options.segment_regularization, self.options.particle_regularization);
        let kinds = [
            ("segments", "segment_regularization", of_segments, segments),
            ("particles", "particle_regularization", of_particles, particles),
        ];
        let bare = |(elements, option, chosen, given): (_, _, Regularization, Option<(usize, Option<&Reals>, f64)>)| {
            let (n, core, default) = given?;
            let any = n == 0 || core.map_or(default > 0.0, may_be_positive);
            (!any && chosen != Regularization::None).then(|| (elements, option, chosen.name()))
        };
        kinds.into_iter().filter_map(bare).collect()
    }
}

/// Whether a radius is above 0, as far as the host can see.
fn may_be_positive(radii: &Reals) -> bool {
    match radii {
        Reals::HostF32(c) => c.iter().any(|&c| c > 0.0),
        Reals::HostF64(c) => c.iter().any(|&c| c > 0.0),
        Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::arrays::{Array, ArrayMut};
    use super::super::sources::Particles;
    use super::*;
    use crate::backend::Field;
    use crate::options::{BackendKind, PlanOptions, SessionOptions, WFMM_REG_NONE, WFMM_REG_SCULLY, wfmm_plan_options};
    use crate::session::Session;

    fn recipe(options: wfmm_plan_options, core: Option<&[f64]>) -> String {
        let session =
            Session::new(&SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 1 })
                .unwrap();
        let mut plan = Plan::new(session, PlanOptions::checked(&options).unwrap());
        let x = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        let (position, strength) = (Array::Host(&x[..]), Array::Host(&x[..]));
        plan.set_particles(Some(Particles { n: 2, position, strength, core: core.map(Array::Host) })).unwrap();
        plan.set_targets(Some((2, Array::Host(&x[..])))).unwrap();
        let mut u = [0.0; 6];
        plan.evaluate(Field::Velocity { gradient: false }, ArrayMut::Host(&mut u[..]), None).unwrap();
        plan.recipe()
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
