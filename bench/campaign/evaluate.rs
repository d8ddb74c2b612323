//! The library's answer to a problem: sessions, the plan with what it did before, the calls.

use crate::support::accuracy::Field;
use crate::support::api::{Plan, Scalar, Session, flat, list};
use crate::support::cases::Case;
use std::sync::Arc;
use wakefmm::options::*;
use wakefmm::report::wfmm_report;

use super::build::{build, plane};
use super::draw::Problem;
use super::exact::{elements, rows};

/// A direct sum on a GPU costs a call; the CPU is as fast up to so many pairs.
const FOR_CPU: usize = 3_000_000;

/// Sessions of one worker.
pub struct Machine {
    cuda: Option<Arc<Session>>,
    cuda_reference: Option<Arc<Session>>,
    /// Of the CPU, by number of threads.
    cpu: Vec<Session>,
}

impl Machine {
    pub fn new(cuda: Option<Arc<Session>>, cuda_reference: Option<Arc<Session>>) -> Self {
        Self { cuda, cuda_reference, cpu: (1..4).map(Session::cpu).collect() }
    }

    pub fn tested(&self, p: &Problem) -> &Session {
        self.cuda.as_deref().unwrap_or(&self.cpu[p.threads as usize - 1])
    }

    /// Of the problems that are dealt out to ranks.
    pub fn backend(&self) -> BackendKind {
        if self.cuda.is_some() { BackendKind::Cuda } else { BackendKind::Cpu }
    }

    pub fn reference(&self, pairs: usize) -> &Session {
        self.cuda_reference.as_deref().filter(|_| pairs > FOR_CPU).unwrap_or(&self.cpu[0])
    }
}

/// The options of a problem's plan; `core` where its radius is one of them.
pub fn options(p: &Problem, case: &Case) -> wfmm_plan_options {
    let core = case.segment_core.first().or(case.particle_core.first());
    let (axis, position) = plane(p, case).map_or((0, 0.0), |(axis, position)| (axis as i32 + 1, position));
    wfmm_plan_options {
        plane_axis: axis,
        plane_position: position,
        method: p.method,
        precision: p.precision,
        tolerance: p.tolerance,
        leaf_capacity: p.leaf_capacity,
        segment_regularization: p.segment_regularization,
        particle_regularization: p.particle_regularization,
        expansion: p.expansion,
        period: p.period.map(|v| v * p.unit),
        core_radius: core.copied().filter(|_| p.core_option()).unwrap_or(0.0),
        ..Default::default()
    }
}

fn set_sources<T: Scalar>(plan: &mut Plan<T>, p: &Problem, case: &Case) {
    if !case.ends.is_empty() {
        let core = list::<T>(&case.segment_core);
        let core = (!p.core_option()).then_some(&core[..]);
        plan.segments(&flat(&case.points), &case.ends, &list(&case.circulation), core);
    }
    if !case.position.is_empty() {
        let core = list::<T>(&case.particle_core);
        plan.particles(&flat(&case.position), &flat(&case.strength), (!p.core_option()).then_some(&core[..]));
    }
    if !case.charge.is_empty() {
        plan.charges(&flat(&case.charge_position), &list(&case.charge));
    }
}

fn field<T: Scalar>(plan: &mut Plan<T>, p: &Problem, case: &Case) -> Field {
    let ((main, gradient), m) = (rows(case), case.targets.len());
    let (mut u, mut g) = (vec![T::default(); main * m], vec![T::default(); if p.gradient { gradient * m } else { 0 }]);
    let wanted = p.gradient.then_some(&mut g[..]);
    if case.charge.is_empty() {
        plan.velocity(&mut u, wanted)
    } else {
        plan.potential(&mut u, wanted)
    }
    let wide = |v: Vec<T>| v.into_iter().map(T::f64).collect();
    Field { main: wide(u), gradient: wide(g) }
}

/// Other strengths at the same positions.
fn other_strengths(case: &Case) -> Case {
    let mut c = case.clone();
    c.circulation.iter_mut().chain(&mut c.charge).enumerate().for_each(|(k, g)| *g *= (1 + k % 5) as f64);
    c.strength.iter_mut().enumerate().for_each(|(k, a)| *a = a.map(|a| a * (1 + k % 5) as f64));
    c
}

/// What the plan does before the problem, and the sources and targets of the problem.
fn set<T: Scalar>(plan: &mut Plan<T>, p: &Problem, case: &Case) {
    let first = match p.history {
        "after another problem" => build(p, 1),
        "after other targets" => Case { targets: build(p, 1).targets, ..case.clone() },
        "after other strengths" => other_strengths(case),
        _ => Case::default(),
    };
    if elements(&first) > 0 {
        set_sources(plan, p, &first);
        plan.targets(&flat(&first.targets));
        field(plan, p, &first);
    }
    match p.history {
        "after other strengths" => plan.strengths(&list(&case.circulation), &flat(&case.strength), &list(&case.charge)),
        "after other targets" => plan.targets(&flat(&case.targets)),
        _ => {
            set_sources(plan, p, case);
            plan.targets(&flat(&case.targets));
        }
    }
}

/// The field, the report and the recipe.
pub fn evaluate<T: Scalar>(session: &Session, p: &Problem, case: &Case) -> (Field, wfmm_report, String) {
    let mut plan = Plan::<T>::new(session, &options(p, case));
    set(&mut plan, p, case);
    let f = field(&mut plan, p, case);
    (f, plan.report(), plan.recipe())
}
