//! Collective calls: what all ranks must agree on before an engine begins.
//!
//! Enters: one rank's options, inputs and outputs. Leaves: a field that all ranks want, or one error for all of them. Sources
//! and targets are each rank's own; options, the kind of the field and whether a gradient is wanted are the same everywhere.

use std::sync::Arc;

use super::Plan;
use super::arrays::{ArrayMut, HostReal};
use super::notes::KindOfElements;
use super::plane::side;
use crate::backend::Field;
use crate::distributed::Communicator;
use crate::error::{Error, Result, WFMM_ERR_STATE, WFMM_ERR_VALUE};
use crate::options::PlanOptions;
use crate::session::Session;

/// What a rank wants of a gradient that has no targets.
const NO_TARGETS: f64 = -1.0;

impl Plan {
    /// A plan, on a distributed session together with the other ranks.
    pub fn create(session: Arc<Session>, options: PlanOptions) -> Result<Self> {
        if let Some(communicator) = session.communicator() {
            communicator.same("", &fields(&options))?;
        }
        Ok(Self::new(session, options))
    }

    /// Whether any rank says so, of vortices and of charges.
    pub(super) fn anywhere(&self, vortices: bool, charges: bool) -> Result<(bool, bool)> {
        let Some(communicator) = self.session.communicator() else { return Ok((vortices, charges)) };
        let all = communicator.largest(&[vortices, charges].map(|yes| f64::from(u8::from(yes))))?;
        Ok((all[0] > 0.0, all[1] > 0.0))
    }

    pub(super) fn prepare_distributed(&mut self) -> Result<()> {
        let communicator = self.collective()?;
        let fields = communicator.together("wfmm_plan_prepare", || {
            if !(self.given.vortices || self.given.charges) || !self.given.targets {
                return Error::fail(WFMM_ERR_STATE, "prepare before sources and targets were set");
            }
            Ok([self.given.vortices, self.given.charges].map(|yes| f64::from(u8::from(yes))))
        })?;
        let wanted = communicator.largest(&fields)?;
        self.agree_on_precision(None)?;
        let inputs = communicator.together("wfmm_plan_prepare", || self.for_engine())?;
        if wanted[0] > 0.0 {
            self.run(|engine| engine.prepare(&inputs, Field::Velocity { gradient: false }))?;
        }
        if wanted[1] > 0.0 {
            self.run(|engine| engine.prepare(&inputs, Field::Potential { gradient: false }))?;
        }
        Ok(())
    }

    pub(super) fn evaluate_distributed<T: HostReal>(
        &mut self,
        field: Field,
        main: ArrayMut<'_, T>,
        gradient: Option<ArrayMut<'_, T>>,
    ) -> Result<()> {
        let communicator = self.collective()?;
        communicator.together("wfmm_plan_evaluate", || self.ready(field))?;
        let field = common(&communicator, field, self.counts().targets)?;
        self.agree_on_precision(Some(T::DOUBLE && self.counts().targets > 0))?;
        if let Some(plane) = self.options.plane {
            let (main, gradient) = communicator.together("wfmm_plan_evaluate", || side(main, gradient)?.on_host())?;
            self.halves_into_host(plane, field, main, gradient)?;
        } else {
            let (main, gradient) = (main.into_reals(), gradient.map(ArrayMut::into_reals));
            self.with_engine(|engine, inputs| engine.evaluate(inputs, field, main, gradient))?;
        }
        self.last_field = Some(field);
        self.log_once();
        Ok(())
    }

    pub(super) fn check_distributed(&mut self, field: Field, samples: usize, seed: u64) -> Result<f64> {
        let communicator = self.collective()?;
        communicator.together("wfmm_plan_check", || self.ready(field))?;
        let halves = [(seed >> 32) as f64, (seed & 0xffff_ffff) as f64];
        communicator
            .same("", &[("n_samples", samples as f64), ("seed / 2^32", halves[0]), ("seed modulo 2^32", halves[1])])?;
        self.agree_on_precision(None)?;
        if let Some(plane) = self.options.plane {
            return self.check_mirrored(plane, field, samples, seed);
        }
        self.with_engine(|engine, inputs| engine.check(inputs, field, samples, seed))
    }

    /// Whether some rank has arrays in double precision, so that all compute in the same one; which elements have cores, and how wide
    /// they are, which recipe and report name. `double_output`: of an evaluation.
    fn agree_on_precision(&mut self, double_output: Option<bool>) -> Result<()> {
        let flag = |is_so: bool| f64::from(u8::from(is_so));
        let [s, p] = self.kinds();
        let core = if self.options.period.is_some() { self.largest_segment_core() } else { 0.0 };
        let most = self.session.largest(&[core, flag(s.any), flag(s.with_radius), flag(p.any), flag(p.with_radius)])?;
        let kind = |at: usize| KindOfElements { any: most[at] > 0.0, with_radius: most[at + 1] > 0.0 };
        (self.core_anywhere, self.kinds_anywhere) = (most[0], Some([kind(1), kind(3)]));
        self.warn_of_cores();
        if let Some(double) = double_output {
            self.note_output(double);
        }
        if !self.session.computes_on_ranks_cpus() {
            self.double_anywhere = self.session.any(self.double_output || self.inputs_are_double())?;
        }
        Ok(())
    }

    fn collective(&self) -> Result<Communicator> {
        let communicator = self.session.communicator().cloned();
        communicator.ok_or_else(|| Error::new(WFMM_ERR_STATE, "the session is not distributed"))
    }
}

/// The field that all ranks want; one without targets wants what the others do.
fn common(communicator: &Communicator, field: Field, targets: usize) -> Result<Field> {
    let (potential, gradient) = match field {
        Field::Velocity { gradient } => (0.0, gradient),
        Field::Potential { gradient } => (1.0, gradient),
    };
    communicator.same("the field (0 velocity, 1 potential)", &[("", potential)])?;
    let requested = if targets == 0 { NO_TARGETS } else { f64::from(u8::from(gradient)) };
    let most = communicator.largest(&[requested, if targets == 0 { NO_TARGETS } else { -requested }])?;
    if most[0] == 1.0 && most[1] == 0.0 {
        return Error::fail(
            WFMM_ERR_VALUE,
            "some ranks with targets want a gradient and others do not: all or none of them",
        );
    }
    let gradient = most[0] == 1.0;
    Ok(if potential == 0.0 { Field::Velocity { gradient } } else { Field::Potential { gradient } })
}

/// Options by name, as numbers. Point numbers are each rank's own: `index_base` may differ.
fn fields(o: &PlanOptions) -> Vec<(&'static str, f64)> {
    // Every field by name: a new one does not compile before it is compared or left out on purpose.
    let PlanOptions {
        method,
        precision,
        order,
        leaf_capacity,
        segment_regularization,
        particle_regularization,
        index_base: _,
        tolerance,
        normalization,
        core_radius,
        accumulate,
        reproducible,
        host_partition,
        plane,
        expansion,
        period,
    } = *o;
    let yes = |b: bool| f64::from(u8::from(b));
    vec![
        ("method", f64::from(method as i32)),
        ("precision", f64::from(precision as i32)),
        ("order", f64::from(order)),
        ("leaf_capacity", f64::from(leaf_capacity)),
        ("segment_regularization", f64::from(segment_regularization as i32)),
        ("particle_regularization", f64::from(particle_regularization as i32)),
        ("tolerance", tolerance),
        ("normalization", normalization),
        ("core_radius", core_radius),
        ("WFMM_FLAG_ACCUMULATE", yes(accumulate)),
        ("WFMM_FLAG_REPRODUCIBLE", yes(reproducible)),
        ("WFMM_FLAG_HOST_PARTITION", yes(host_partition)),
        ("plane_axis", plane.map_or(0.0, |p| p.axis as f64 + 1.0)),
        ("plane_position", plane.map_or(0.0, |p| p.position)),
        ("expansion", f64::from(expansion as i32)),
        ("period[0]", period.map_or(0.0, |p| p[0])),
        ("period[1]", period.map_or(0.0, |p| p[1])),
        ("period[2]", period.map_or(0.0, |p| p[2])),
    ]
}
