//! From a session and a plan's options to an engine in one computing precision.

use std::sync::Arc;

use crate::backend::Engine;
use crate::backend::cpu::distributed::DistributedEngine;
use crate::backend::cpu::precision::PrecisionEngine;
use crate::backend::cuda::{CudaEngine, DevicesEngine, RanksEngine, Seat};
use crate::distributed::Communicator;
use crate::error::Result;
use crate::options::{PlanOptions, Precision};

use super::fallback::Fallback;
use super::{Device, Session};

/// `precision` is F32 or F64: the plan has already resolved ARRAYS.
pub fn make_engine(session: &Session, options: &PlanOptions, precision: Precision) -> Result<Box<dyn Engine>> {
    let pool = session.pool();
    if let Some(communicator) = session.communicator() {
        return ranks_engine(session, communicator, options, precision);
    }
    match session.device() {
        Device::Cpu => Ok(cpu_engine(pool, options, precision)),
        Device::Cuda { context, auto } => {
            let first = Seat { context: context.clone(), pool: pool.clone() };
            let seats: Vec<Seat> = [first].into_iter().chain(session.others().iter().cloned()).collect();
            if !*auto {
                return cuda_engine(&seats, options, precision);
            }
            let (options, cuda_options, pool) = (options.clone(), options.clone(), pool.clone());
            Ok(Box::new(Fallback::new(
                Box::new(move || cuda_engine(&seats, &cuda_options, precision)),
                Box::new(move || cpu_engine(&pool, &options, precision)),
            )))
        }
    }
}

/// One rank's of an engine that all ranks make together.
fn ranks_engine(
    session: &Session,
    communicator: &Communicator,
    options: &PlanOptions,
    precision: Precision,
) -> Result<Box<dyn Engine>> {
    let (pool, options, ranks) = (session.pool().clone(), options.clone(), communicator.clone());
    let (cpu_options, cpu_pool, cpu_ranks) = (options.clone(), pool.clone(), ranks.clone());
    // Double precision holds every tolerance; single is tried where it serves.
    let cpu = move || -> Box<dyn Engine> {
        Box::new(DistributedEngine::new(cpu_options.clone(), cpu_pool.clone(), cpu_ranks.clone()))
    };
    let Device::Cuda { context, auto } = session.device() else { return Ok(cpu()) };
    let context = context.clone();
    let cuda = move || -> Result<Box<dyn Engine>> {
        let (options, context, pool) = (options.clone(), context.clone(), pool.clone());
        Ok(match precision {
            Precision::F32 => Box::new(RanksEngine::<f32>::new(options, context, pool, &ranks)?),
            _ => Box::new(RanksEngine::<f64>::new(options, context, pool, &ranks)?),
        })
    };
    if *auto {
        return Ok(Box::new(Fallback::new(Box::new(cuda), Box::new(cpu)).of_ranks(communicator)));
    }
    cuda()
}

fn cpu_engine(pool: &Arc<rayon::ThreadPool>, options: &PlanOptions, precision: Precision) -> Box<dyn Engine> {
    Box::new(PrecisionEngine::new(options.clone(), pool.clone(), precision))
}

/// Of one device, or of several that compute together.
fn cuda_engine(seats: &[Seat], options: &PlanOptions, precision: Precision) -> Result<Box<dyn Engine>> {
    let options = options.clone();
    let [Seat { context, pool }] = seats else {
        return Ok(match precision {
            Precision::F32 => Box::new(DevicesEngine::<f32>::new(&options, seats)?),
            _ => Box::new(DevicesEngine::<f64>::new(&options, seats)?),
        });
    };
    let (context, pool) = (context.clone(), pool.clone());
    Ok(match precision {
        Precision::F32 => Box::new(CudaEngine::<f32>::new(options, context, pool)?),
        _ => Box::new(CudaEngine::<f64>::new(options, context, pool)?),
    })
}
