//! From a session and a plan's options to an engine in one computing precision.

use crate::backend::Engine;
use crate::backend::cpu::engine::CpuEngine;
use crate::options::{PlanOptions, Precision};

use super::{Device, Session};

/// `precision` is F32 or F64: the plan has already resolved ARRAYS.
pub fn make_engine(session: &Session, options: &PlanOptions, precision: Precision) -> Box<dyn Engine> {
    match (session.device(), precision) {
        (Device::Cpu, Precision::F32) => Box::new(CpuEngine::<f32>::new(options.clone(), session.pool().clone())),
        (Device::Cpu, _) => Box::new(CpuEngine::<f64>::new(options.clone(), session.pool().clone())),
    }
}
