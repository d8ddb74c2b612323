//! Threads of a session, started by POSIX itself.
//!
//! Enters: how many. Leaves: a pool, or a status. The standard library would end the process where the start of a thread finds
//! no memory for its handle; POSIX says so instead.

use std::ffi::{CString, c_void};
use std::io;

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result, WFMM_ERR_HOST_MEMORY, WFMM_ERR_THREADS};

/// As the standard library gives its threads.
const STACK: usize = 2 << 20;
/// Bytes that must be there before threads are started.
const MEMORY_TO_START: usize = 1 << 20;

/// A pool of `threads` threads, 0: as many as the machine has.
pub fn start(threads: usize) -> Result<ThreadPool> {
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
