//! Threads of a session, started by POSIX itself.
//!
//! Enters: how many, 0 for what the environment says. Leaves: a pool, or a status. The standard library would end the process where
//! the start of a thread finds no memory for its handle; POSIX says so instead.

use std::ffi::{CString, OsString, c_void};
use std::io;

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result, WFMM_ERR_HOST_MEMORY, WFMM_ERR_THREADS};
use crate::logging::warn_once;
use crate::options::THREADS_MAX;

/// As the standard library gives its threads.
const STACK: usize = 2 << 20;
/// Bytes that must be there before threads are started.
const MEMORY_TO_START: usize = 1 << 20;

/// Threads where the caller asks for none in particular: the first of these that holds a number, else what the process may use.
const OWN: &str = "WAKEFMM_NUM_THREADS";
/// OpenMP's, a list with a number for each level of nesting.
const OPENMP: &str = "OMP_NUM_THREADS";

/// A pool of `threads` threads, 0: as many as `by_default` says.
pub fn start(threads: usize) -> Result<ThreadPool> {
    let threads = if threads == 0 { by_default(|name| std::env::var_os(name)) } else { threads };
    if Vec::<u8>::new().try_reserve_exact(MEMORY_TO_START).is_err() {
        return Error::fail(WFMM_ERR_HOST_MEMORY, "no host memory to start threads");
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("wakefmm-{i}"))
        .spawn_handler(spawn)
        .build()
        .map_err(|e| Error::new(WFMM_ERR_THREADS, format!("threads = {threads}: {e}")))?;
    // What a thread sets up for itself at its first piece of work is set up now, not in an evaluation.
    pool.broadcast(|_| rayon::join(|| (), || ()));
    Ok(pool)
}

/// `WAKEFMM_NUM_THREADS`, else `OMP_NUM_THREADS`, else what affinity and the CPU quota of control groups leave.
fn by_default(value_of: impl Fn(&str) -> Option<OsString>) -> usize {
    let value = |name| value_of(name).map(|value| value.to_string_lossy().trim().to_owned()).unwrap_or_default();
    let (own, openmp) = (value(OWN), value(OPENMP));
    if let Some(threads) = number(&own) {
        return threads;
    }
    if !own.is_empty() {
        warn_once!("{OWN} = {own} is ignored; accepted: 1 to {THREADS_MAX}");
    }
    if let Some(threads) = openmp.split(',').next().and_then(number) {
        return threads;
    }
    if !openmp.is_empty() {
        warn_once!("{OPENMP} = {openmp} is ignored; accepted: 1 to {THREADS_MAX}, or a list that begins so");
    }
    std::thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX as usize))
}

/// A number of threads that may be asked for.
fn number(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|n| (1..=THREADS_MAX as usize).contains(n))
}

/// Starts one thread and lets it go; it ends with its pool.
fn spawn(thread: ThreadBuilder) -> io::Result<()> {
    let stack = thread.stack_size().unwrap_or(STACK);
    let thread = Box::into_raw(Box::new(thread));
    // The attributes live to the end of the block; `thread` belongs to the new thread, or is taken back where there is none.
    let code = unsafe {
        let mut attributes = std::mem::zeroed();
        let mut id = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, stack);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let code = libc::pthread_create(&mut id, &attributes, work, thread.cast());
        libc::pthread_attr_destroy(&mut attributes);
        if code != 0 {
            drop(Box::from_raw(thread));
        }
        code
    };
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// What a thread does: work of its pool. The pool lets no panic out.
extern "C" fn work(thread: *mut c_void) -> *mut c_void {
    // From `spawn`, which gave it away.
    let thread = unsafe { Box::from_raw(thread.cast::<ThreadBuilder>()) };
    #[cfg(target_os = "linux")]
    if let Some(name) = thread.name().and_then(|name| CString::new(name).ok()) {
        // A name too long is refused, and nothing else happens.
        unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
    }
    thread.run();
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(own: Option<&str>, openmp: Option<&str>) -> usize {
        by_default(|name| (if name == OWN { own } else { openmp }).map(OsString::from))
    }

    #[test]
    fn the_environment_says_how_many_threads() {
        assert_eq!(threads(Some("3"), Some("5")), 3);
        assert_eq!(threads(Some(" 4096 "), None), 4096);
        assert_eq!(threads(None, Some("5")), 5);
        assert_eq!(threads(Some(""), Some("6, 2,1")), 6);
    }

    #[test]
    fn what_is_no_number_of_threads_is_ignored() {
        let all = std::thread::available_parallelism().unwrap().get();
        for bad in ["0", "-1", "4097", "many", "2.5", "3x", "99999999999999999999"] {
            assert_eq!(threads(Some(bad), Some("5")), 5, "{bad}");
            assert_eq!(threads(None, Some(bad)), all, "{bad}");
        }
        assert_eq!(threads(None, Some(",4")), all);
        assert_eq!(threads(Some("3,2"), None), all);
        assert_eq!(threads(None, None), all);
    }
}
