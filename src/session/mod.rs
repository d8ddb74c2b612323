//! What machine: back end, device and threads, shared by any number of plans and threads.
//!
//! Enters: checked `SessionOptions`. Leaves: a `Session` that makes engines. A session made before `fork()` has no threads
//! in the child; it says so instead of waiting for them for ever.

mod engines;
mod fallback;
mod threads;

use std::sync::Arc;

use log::{info, warn};
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};

use crate::backend::cuda::plane::Mirror;
use crate::backend::cuda::{self, Context, Locked, Plain, Seat, Stream};
use crate::distributed::Communicator;
use crate::error::{
    Error, Result, WFMM_ERR_BUSY, WFMM_ERR_FORKED, WFMM_ERR_HOST_MEMORY, WFMM_ERR_MEMORY, WFMM_ERR_OUT_OF_MEMORY,
    WFMM_ERR_UNSUPPORTED,
};
use crate::logging::{self, warn_once};
use crate::memory;
use crate::options::{BackendKind, Memory, SessionOptions};

pub use engines::make_engine;
pub use fallback::{GivenUp, WORTH_PAIRS, takes_over};

/// What does the work. `auto`: the CPU may take over.
#[derive(Debug)]
pub enum Device {
    Cpu,
    Cuda { context: Arc<Context>, auto: bool },
}

/// Where the arrays of one call are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    Host,
    Device,
}

/// Back end, device and threads.
#[derive(Debug)]
pub struct Session {
    device: Device,
    /// Devices that compute with the first one.
    others: Vec<Seat>,
    /// Why no GPU computes, where one was looked for.
    refusal: Option<String>,
    pool: Option<Arc<rayon::ThreadPool>>,
    /// The process whose threads these are.
    process: u32,
    /// The other processes of a distributed session.
    communicator: Option<Communicator>,
    /// Held by the thread that is in a call of a distributed session.
    turn: ReentrantMutex<()>,
}

/// Bytes from which a copy goes to page-locked memory: less is in the driver's queue sooner than a second copy is made.
const LOCKED_FROM: usize = 64 << 10;

static DEFAULT: Mutex<Option<Arc<Session>>> = Mutex::new(None);

impl Session {
    pub fn new(options: &SessionOptions) -> Result<Arc<Self>> {
        logging::start();
        let chosen = choose_device(options, None)?;
        let pool = Arc::new(threads::start(options.threads)?);
        let Chosen { device, others, refusal } = choose_others(options, chosen, pool.current_num_threads())?;
        let pool = Some(pool);
        let session = Self {
            device,
            others,
            refusal,
            pool,
            process: std::process::id(),
            communicator: None,
            turn: ReentrantMutex::new(()),
        };
        info!("session: {}", session.describe());
        Ok(Arc::new(session))
    }

    /// A session of all ranks of `communicator`; its calls are collective. Ranks compute all on GPUs or all on the CPU.
    pub fn distributed(options: &SessionOptions, communicator: Communicator) -> Result<Arc<Self>> {
        logging::start();
        let call = "wfmm_session_create_distributed";
        let pool = communicator.together(call, || threads::start(options.threads))?;
        communicator.together(call, || match options.devices.len() {
            0 | 1 => Ok(()),
            n => Error::fail(
                WFMM_ERR_UNSUPPORTED,
                format!("n_devices = {n} on a distributed session: start as many processes, each has one device"),
            ),
        })?;
        // Devices and threads are each rank's own. Every option by name: a new one does not compile before it is compared or left out.
        let SessionOptions { backend, device: _, devices: _, threads: _ } = options;
        let fields = [("size", communicator.size() as f64), ("backend", f64::from(*backend as i32))];
        communicator.same("", &fields)?;
        let chosen = communicator.together(call, || choose_device(options, Some(communicator.node_rank())))?;
        let lacks = communicator.largest(&[f64::from(u8::from(matches!(chosen.device, Device::Cpu)))])?[0] > 0.0;
        let Chosen { device, others, refusal } = match chosen.device {
            Device::Cuda { .. } if lacks => {
                info!("another rank has no GPU: all compute on the CPU");
                Chosen::cpu(Some("another rank has no GPU".into()))
            }
            _ => chosen,
        };
        if let (Device::Cuda { context, .. }, true) = (&device, communicator.size() > 1) {
            context.share_pages();
        }
        let (process, pool) = (std::process::id(), Some(Arc::new(pool)));
        let (communicator, turn) = (Some(communicator), ReentrantMutex::new(()));
        let session = Self { device, others, refusal, pool, process, communicator, turn };
        info!("session: {}", session.describe());
        Ok(Arc::new(session))
    }

    /// Whether this is one of many ranks, which compute on their processors.
    pub fn computes_on_ranks_cpus(&self) -> bool {
        self.communicator.is_some() && matches!(self.device, Device::Cpu)
    }

    pub fn communicator(&self) -> Option<&Communicator> {
        self.communicator.as_ref()
    }

    /// For the time of a call: every process has one order of calls, which a second thread would mix up. The same thread may come again,
    /// from a callback.
    pub fn turn(&self) -> Result<Option<ReentrantMutexGuard<'_, ()>>> {
        if self.communicator.is_none() {
            return Ok(None);
        }
        let message = "another thread is in a call of this distributed session; threads that compute at the same time need a session each";
        self.turn.try_lock().map_or_else(|| Error::fail(WFMM_ERR_BUSY, message), |turn| Ok(Some(turn)))
    }

    /// This rank's part of a collective call, and one outcome for all ranks; just the part where there is one process.
    pub fn together<R>(&self, call: &str, part: impl FnOnce() -> Result<R>) -> Result<R> {
        match &self.communicator {
            Some(communicator) => communicator.together(call, part),
            None => part(),
        }
    }

    /// The sum of each number over the ranks.
    pub fn total(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.communicator.as_ref().map_or_else(|| Ok(mine.to_vec()), |c| c.total(mine))
    }

    /// The largest of each number over the ranks.
    pub fn largest(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.communicator.as_ref().map_or_else(|| Ok(mine.to_vec()), |c| c.largest(mine))
    }

    /// Of elements counted through all ranks in their order: the first of this rank, which has `n`, and how many there are.
    pub fn numbered(&self, n: usize) -> Result<(usize, usize)> {
        let Some(c) = &self.communicator else { return Ok((0, n)) };
        let all = c.each(&[n as f64])?;
        let sum = |counts: &[f64]| counts.iter().map(|&n| n as usize).sum();
        Ok((sum(&all[..c.rank()]), sum(&all)))
    }

    /// Whether any rank says so.
    pub fn any(&self, mine: bool) -> Result<bool> {
        Ok(self.largest(&[f64::from(u8::from(mine))])?[0] > 0.0)
    }

    /// Numbers of all ranks, one rank after the other; not for many of them.
    pub fn joined(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.communicator.as_ref().map_or_else(|| Ok(memory::copy(mine)), |c| c.joined(mine))
    }

    /// Whether named numbers are the same on all ranks.
    pub fn same(&self, fields: &[(&str, f64)]) -> Result<()> {
        self.communicator.as_ref().map_or(Ok(()), |c| c.same("", fields))
    }

    /// Work that exchanges and may fail in between: one outcome for all ranks. Memory that ran out spoils nothing.
    pub fn collective<R>(&self, call: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let Some(communicator) = &self.communicator else { return work() };
        communicator.collective(call, work).map_err(|e| match e.status {
            WFMM_ERR_OUT_OF_MEMORY => Error { status: WFMM_ERR_HOST_MEMORY, ..e },
            _ => e,
        })
    }

    /// This rank and how many there are.
    pub fn rank(&self) -> (usize, usize) {
        self.communicator.as_ref().map_or((0, 1), |c| (c.rank(), c.size()))
    }

    /// Refuses what distributed sessions cannot do.
    pub fn not_distributed(&self, what: &str) -> Result<()> {
        if self.communicator.is_none() {
            return Ok(());
        }
        Error::fail(WFMM_ERR_UNSUPPORTED, format!("{what} on a distributed session is not built yet"))
    }

    /// The session of plans that were made without one; a child of `fork()` gets its own.
    pub fn default_session() -> Result<Arc<Self>> {
        let mut default = DEFAULT.lock();
        if let Some(session) = default.as_ref().filter(|s| s.alive().is_ok()) {
            return Ok(session.clone());
        }
        let options = SessionOptions { backend: BackendKind::Auto, device: None, devices: vec![], threads: 0 };
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

    /// Devices that compute with the first one.
    pub fn others(&self) -> &[Seat] {
        &self.others
    }

    pub fn pool(&self) -> &Arc<rayon::ThreadPool> {
        self.pool.as_ref().expect("a session has its pool until it is dropped")
    }

    /// Says where the array at `address` is that a caller declared to be in `memory`.
    pub fn location(&self, memory: Memory, address: u64) -> Result<Location> {
        match (&self.device, memory) {
            (_, Memory::Host) | (Device::Cpu, Memory::Auto) => Ok(Location::Host),
            (Device::Cpu, Memory::Device) => Error::fail(
                WFMM_ERR_MEMORY,
                "memory = WFMM_MEMORY_DEVICE (1), but this session computes on the CPU; accepted: WFMM_MEMORY_HOST or _AUTO",
            ),
            // An array that is not there is nowhere: whether it may be absent is decided by who knows its name.
            (Device::Cuda { .. }, Memory::Device) if address == 0 => Ok(Location::Device),
            (Device::Cuda { context, .. }, Memory::Device) => match cuda::memory_kind_of(address) {
                cuda::MemoryKind::Host => Error::fail(
                    WFMM_ERR_MEMORY,
                    format!(
                        "memory = WFMM_MEMORY_DEVICE (1), but the driver knows {address:#x} as no address of a GPU; accepted: WFMM_MEMORY_HOST or _AUTO"
                    ),
                ),
                location => on_its_device(context, location, address),
            },
            (Device::Cuda { context, .. }, Memory::Auto) => {
                on_its_device(context, cuda::memory_kind_of(address), address)
            }
        }
    }

    /// Page-locked memory for a copy of an array that will cross the bus; none where there is no bus, or little to gain.
    pub fn lock_pages<T: Plain>(&self, len: usize) -> Option<Locked<T>> {
        match &self.device {
            Device::Cuda { context, .. } if len >= LOCKED_FROM / size_of::<T>() => Locked::new(context, len).ok(),
            _ => None,
        }
    }

    /// Whether a GPU computes; under AUTO the CPU may, too.
    pub fn has_device(&self) -> bool {
        matches!(self.device, Device::Cuda { .. })
    }

    /// What mirrors arrays in this session's device memory.
    pub fn mirror(&self) -> Result<Mirror> {
        Mirror::new(self.with_memory()?)
    }

    /// The context of the GPU that computes, if one does.
    pub fn device_context(&self) -> Option<&Arc<Context>> {
        match &self.device {
            Device::Cuda { context, .. } => Some(context),
            Device::Cpu => None,
        }
    }

    /// The context of a session with device memory.
    fn with_memory(&self) -> Result<&Arc<Context>> {
        let message = "this session computes on the CPU and has no device memory";
        self.device_context().ok_or_else(|| Error::new(WFMM_ERR_MEMORY, message))
    }

    /// Copies a caller's array in device memory, once all work on it that was queued on the default stream is done.
    pub fn copy_from_device<T: Plain>(&self, address: u64, to: &mut [T]) -> Result<()> {
        self.on_default_stream(|stream| cuda::copy_out(address, to, stream))
    }

    /// The same to the device.
    pub fn copy_to_device<T: Plain>(&self, address: u64, from: &[T]) -> Result<()> {
        self.on_default_stream(|stream| cuda::copy_in(address, from, stream))
    }

    fn on_default_stream(&self, copy: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
        let stream = Stream::borrowed(self.with_memory()?, std::ptr::null_mut());
        copy(&stream)?;
        stream.synchronize()
    }

    /// Page-locks the caller's memory for copies to and from the device; nothing to do on the CPU.
    pub fn register(&self, address: usize, bytes: usize) -> Result<()> {
        match &self.device {
            Device::Cpu => Ok(()),
            Device::Cuda { context, .. } => cuda::register_host(context, address, bytes),
        }
    }

    pub fn unregister(&self, address: usize) -> Result<()> {
        match &self.device {
            Device::Cpu => Ok(()),
            Device::Cuda { context, .. } => cuda::unregister_host(context, address),
        }
    }

    pub fn describe(&self) -> String {
        let Some(c) = &self.communicator else { return self.describe_one() };
        let each = if matches!(self.device, Device::Cpu) { "each: " } else { "" };
        format!("rank {} of {}; {each}{}", c.rank(), c.size(), self.describe_one())
    }

    fn describe_one(&self) -> String {
        let cpu = format!("CPU, {} threads, {}", self.pool().current_num_threads(), crate::simd::isa_name());
        match &self.device {
            Device::Cpu => {
                // Where no GPU was looked for, what the driver would have said.
                let alone = self.communicator.is_none();
                let of_driver = || cuda::probe().refusal.filter(|_| alone).map(|refusal| refusal.message);
                match self.refusal.clone().or_else(of_driver) {
                    Some(refusal) => format!("{cpu}; no CUDA: {refusal}"),
                    None => cpu,
                }
            }
            Device::Cuda { context, auto } => {
                let (gpu, gib) = (&context.info, context.info.memory as f64 / (1u64 << 30) as f64);
                let (major, minor) = gpu.capability;
                let driver = cuda::probe().driver;
                let role = if *auto { "small problems and failures: " } else { "host side: " };
                let also: String =
                    self.others.iter().map(|seat| format!(" and {}", seat.context.info.ordinal)).collect();
                format!(
                    "CUDA device {}{also}, {}, compute capability {major}.{minor}, {}, {} multiprocessors, {gib:.0} GiB, driver for CUDA {}.{}; {role}{cpu}",
                    gpu.ordinal,
                    gpu.name,
                    cuda::image_for(gpu.capability),
                    gpu.multiprocessors,
                    driver / 1000,
                    driver % 1000 / 10
                )
            }
        }
    }
}

/// Device memory must belong to the session's device; managed memory is reached from everywhere.
fn on_its_device(context: &Context, location: cuda::MemoryKind, address: u64) -> Result<Location> {
    match location {
        cuda::MemoryKind::Host => Ok(Location::Host),
        cuda::MemoryKind::Managed => Ok(Location::Device),
        cuda::MemoryKind::Device(ordinal) if ordinal == context.info.ordinal => Ok(Location::Device),
        cuda::MemoryKind::Device(ordinal) => Error::fail(
            WFMM_ERR_MEMORY,
            format!(
                "the array at {address:#x} is on GPU {ordinal}, this session computes on GPU {}",
                context.info.ordinal
            ),
        ),
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

/// Where a session computes.
struct Chosen {
    device: Device,
    others: Vec<Seat>,
    /// Why no GPU computes, where one was looked for.
    refusal: Option<String>,
}

impl Chosen {
    fn cpu(refusal: Option<String>) -> Self {
        Self { device: Device::Cpu, others: vec![], refusal }
    }
}

/// `node_rank`: of several processes of a machine each takes one of its usable GPUs in turn, unless the options name one.
fn choose_device(options: &SessionOptions, node_rank: Option<usize>) -> Result<Chosen> {
    if options.backend == BackendKind::Cpu {
        return Ok(Chosen::cpu(None));
    }
    let auto = options.backend == BackendKind::Auto;
    let probe = cuda::probe();
    let usable: Vec<i32> = probe.devices.iter().filter(|d| d.refusal.is_none()).map(|d| d.ordinal).collect();
    let in_turn = |rank: usize| if usable.is_empty() { -1 } else { usable[rank % usable.len()] };
    let named = options.devices.first().copied().or(options.device).map(|device| device.min(i32::MAX as u32) as i32);
    let ordinal = named.unwrap_or_else(|| node_rank.map_or(-1, in_turn));
    let opened = probe.choose(ordinal).and_then(Context::open);
    match opened {
        Ok(context) => Ok(Chosen { device: Device::Cuda { context, auto }, others: vec![], refusal: None }),
        Err(refusal) if auto => {
            // A machine without a driver is an ordinary one; a GPU that cannot be used is worth a word, one that was named each time.
            match named {
                Some(number) => warn!("device {number} is not used, the CPU computes: {}", refusal.message),
                None if probe.driver == 0 => info!("no GPU: {}", refusal.message),
                None => warn_once!("the GPU is not used, the CPU takes over: {}", refusal.message),
            }
            Ok(Chosen::cpu(Some(refusal.message)))
        }
        Err(refusal) => {
            let hint = "; WFMM_BACKEND_AUTO or _CPU would use the CPU";
            Error::fail(refusal.status, format!("backend = WFMM_BACKEND_CUDA (2), but {}{hint}", refusal.message))
        }
    }
}

/// Opens the devices that are named after the first one, which is `first`; each gets its part of so many threads.
fn choose_others(options: &SessionOptions, mut first: Chosen, threads: usize) -> Result<Chosen> {
    let (Device::Cuda { .. }, [_, named @ ..]) = (&first.device, options.devices.as_slice()) else {
        return Ok(first);
    };
    for &number in named {
        let one = SessionOptions { device: Some(number), devices: vec![], ..*options };
        // Where this one is missing and the CPU may take over, it does so for all.
        let next = choose_device(&one, None)?;
        let Device::Cuda { context, .. } = next.device else { return Ok(next) };
        let pool = threads::start((threads / options.devices.len()).max(1))?;
        first.others.push(Seat { context, pool: Arc::new(pool) });
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_sessions_refuse_device_memory_and_take_auto_for_host() {
        let options = SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 1 };
        let session = Session::new(&options).unwrap();
        assert_eq!(session.location(Memory::Auto, 8).unwrap(), Location::Host);
        assert_eq!(session.location(Memory::Device, 8).unwrap_err().status, WFMM_ERR_MEMORY);
        assert!(session.describe().contains("1 threads"));
    }

    #[test]
    fn the_default_session_is_shared() {
        let (a, b) = (Session::default_session().unwrap(), Session::default_session().unwrap());
        assert!(Arc::ptr_eq(&a, &b));
    }
}
