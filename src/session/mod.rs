//! What machine: back end, device and threads, shared by any number of plans and threads.
//!
//! Enters: checked `SessionOptions`. Leaves: a `Session` that makes engines. A session made before `fork()` has no threads
//! in the child; it says so instead of waiting for them for ever.

mod engines;

use std::sync::Arc;

use log::info;
use parking_lot::Mutex;

use crate::error::{Error, Result, WFMM_ERR_FORKED, WFMM_ERR_MEMORY, WFMM_ERR_NO_DEVICE, WFMM_ERR_THREADS};
use crate::logging;
use crate::options::{BackendKind, Memory, SessionOptions};

pub use engines::make_engine;

/// What does the work. The CUDA variant comes with that back end.
#[derive(Debug)]
pub enum Device {
    Cpu,
}

/// Where the arrays of one call are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Host,
    Device,
}

/// Back end, device and threads.
#[derive(Debug)]
pub struct Session {
    device: Device,
    pool: Option<Arc<rayon::ThreadPool>>,
    /// The process whose threads these are.
    process: u32,
}

static DEFAULT: Mutex<Option<Arc<Session>>> = Mutex::new(None);

impl Session {
    pub fn new(options: &SessionOptions) -> Result<Arc<Self>> {
        logging::start();
        let device = choose_device(options)?;
        let pool = start_threads(options.threads)?;
        let session = Self { device, pool: Some(Arc::new(pool)), process: std::process::id() };
        info!("session: {}", session.describe());
        Ok(Arc::new(session))
    }

    /// The session of plans that were made without one; a child of `fork()` gets its own.
    pub fn default_session() -> Result<Arc<Self>> {
        let mut default = DEFAULT.lock();
        if let Some(session) = default.as_ref().filter(|s| s.alive().is_ok()) {
            return Ok(session.clone());
        }
        let options = SessionOptions { backend: BackendKind::Auto, device: None, threads: 0 };
        let session = Self::new(&options)?;
        *default = Some(session.clone());
        Ok(session)
    }

    /// Fails in a child of `fork()`, where this session's threads do not exist.
    pub fn alive(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Error::fail(
            WFMM_ERR_FORKED,
            "this session was made before fork(); the child process must create its own session and plans",
        )
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    pub fn pool(&self) -> &Arc<rayon::ThreadPool> {
        self.pool.as_ref().expect("a session has its pool until it is dropped")
    }

    /// Says where the array at `address` is that a caller declared to be in `memory`.
    pub fn place(&self, memory: Memory, _address: u64) -> Result<Place> {
        match (&self.device, memory) {
            (Device::Cpu, Memory::Host | Memory::Auto) => Ok(Place::Host),
            (Device::Cpu, Memory::Device) => Error::fail(
                WFMM_ERR_MEMORY,
                "memory = WFMM_MEMORY_DEVICE (1), but this session computes on the CPU; accepted: WFMM_MEMORY_HOST or _AUTO",
            ),
        }
    }

    pub fn describe(&self) -> String {
        let threads = self.pool().current_num_threads();
        match &self.device {
            Device::Cpu => format!("CPU, {threads} threads, {}", crate::simd::isa_name()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.alive().is_err() {
            // The child of a fork() has the pool's locks but not its threads: stopping them could wait for ever.
            std::mem::forget(self.pool.take());
        }
    }
}

fn choose_device(options: &SessionOptions) -> Result<Device> {
    match options.backend {
        BackendKind::Auto | BackendKind::Cpu => Ok(Device::Cpu),
        BackendKind::Cuda => Error::fail(
            WFMM_ERR_NO_DEVICE,
            "backend = WFMM_BACKEND_CUDA (2), but no CUDA device was found; WFMM_BACKEND_AUTO or _CPU would use the CPU",
        ),
    }
}

fn start_threads(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("wakefmm-{i}"))
        .build()
        .map_err(|e| Error::new(WFMM_ERR_THREADS, format!("threads = {threads}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_sessions_refuse_device_memory_and_take_auto_for_host() {
        let options = SessionOptions { backend: BackendKind::Cpu, device: None, threads: 1 };
        let session = Session::new(&options).unwrap();
        assert_eq!(session.place(Memory::Auto, 8).unwrap(), Place::Host);
        assert_eq!(session.place(Memory::Device, 8).unwrap_err().status, WFMM_ERR_MEMORY);
        assert!(session.describe().contains("1 threads"));
    }

    #[test]
    fn the_default_session_is_shared() {
        let (a, b) = (Session::default_session().unwrap(), Session::default_session().unwrap());
        assert!(Arc::ptr_eq(&a, &b));
    }
}
