//! From a session and a plan's options to an engine in one computing precision.

use crate::backend::Engine;
use crate::backend::cpu::reference::ReferenceEngine;
use crate::options::{PlanOptions, Precision};

use super::{Device, Session};

/// `precision` is F32 or F64: the plan has already resolved ARRAYS.
pub fn make_engine(session: &Session, options: &PlanOptions, _precision: Precision) -> Box<dyn Engine> {
    match session.device() {
        Device::Cpu => Box::new(ReferenceEngine::new(options.clone(), session.pool().clone())),
    }
}
