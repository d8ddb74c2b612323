//! Distributed sessions: a table of functions of the host that joins processes.

use std::ffi::c_void;
use std::sync::Arc;

use crate::distributed::{Communicator, Exchange, Reduction, Shares};
use crate::error::{Error, Result, WFMM_ERR_NULL, WFMM_ERR_VALUE};
use crate::options::{WFMM_MEMORY_HOST, wfmm_session_options};
use crate::session::Session;

use super::boundary::{api, enough_memory, not_null, output};
use super::handles::SESSIONS;
use super::session::session_options;
use super::{structs, wfmm_session};

/// Functions by which the processes (ranks) of a distributed session communicate; libwakefmm_mpi has those for MPI. Set it to zero,
/// then `struct_size` to `sizeof`. Each function but `release` is called on all ranks in the same order, on the thread that calls the
/// library, and returns 0. Another number is WFMM_ERR_COMMUNICATION on every rank that can still be reached, in this call of the
/// library or the next. A function that fails on some ranks must not leave the others waiting in it. Functions and `user` must stay
/// until the session and its last plan or flow have ended.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct wfmm_communicator {
    /// Size of this struct as the caller knows it.
    pub struct_size: u32,
    /// This process, 0 to size - 1.
    pub rank: i32,
    /// Number of processes.
    pub size: i32,
    /// Number of this process among those of its node: processes take the node's GPUs in turn.
    pub node_rank: i32,
    /// Handed to every function.
    pub user: *mut c_void,
    /// Reduces n values over all ranks, in place. kind: 0 double, 1 int64_t; operation: 0 sum, 1 least, 2 largest.
    pub allreduce:
        Option<unsafe extern "C" fn(user: *mut c_void, values: *mut c_void, n: i64, kind: i32, operation: i32) -> i32>,
    /// Brings the same number of bytes of each rank to all; all gets size times bytes, in the order of ranks.
    pub allgather:
        Option<unsafe extern "C" fn(user: *mut c_void, mine: *const c_void, bytes: i64, all: *mut c_void) -> i32>,
    /// Sends bytes to each rank and receives bytes of each. Numbers of bytes and offsets, in bytes too, are arrays of size
    /// numbers. memory is WFMM_MEMORY_HOST.
    pub alltoallv: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            send: *const c_void,
            send_bytes: *const i64,
            send_offsets: *const i64,
            receive: *mut c_void,
            receive_bytes: *const i64,
            receive_offsets: *const i64,
            memory: i32,
        ) -> i32,
    >,
    /// Waits until every rank is there.
    pub barrier: Option<unsafe extern "C" fn(user: *mut c_void) -> i32>,
    /// Told once on each rank that the session and its plans and flows have ended, or that the session was not made; or NULL. Ranks
    /// are told at different times, on any thread: it must not communicate. Not called for a communicator that is refused itself.
    pub release: Option<unsafe extern "C" fn(user: *mut c_void)>,
}

impl Default for wfmm_communicator {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            rank: 0,
            size: 0,
            node_rank: 0,
            user: std::ptr::null_mut(),
            allreduce: None,
            allgather: None,
            alltoallv: None,
            barrier: None,
            release: None,
        }
    }
}

/// The host's functions, all of them there.
struct Table {
    rank: usize,
    size: usize,
    node_rank: usize,
    user: *mut c_void,
    allreduce: unsafe extern "C" fn(*mut c_void, *mut c_void, i64, i32, i32) -> i32,
    allgather: unsafe extern "C" fn(*mut c_void, *const c_void, i64, *mut c_void) -> i32,
    alltoallv: unsafe extern "C" fn(
        *mut c_void,
        *const c_void,
        *const i64,
        *const i64,
        *mut c_void,
        *const i64,
        *const i64,
        i32,
    ) -> i32,
    barrier: unsafe extern "C" fn(*mut c_void) -> i32,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

// The host vouches for `user` on every thread that calls the library; a plan serves one thread at a time.
unsafe impl Send for Table {}
unsafe impl Sync for Table {}

impl Table {
    fn checked(c: &wfmm_communicator) -> Result<Self> {
        if c.size < 1 {
            return Error::fail(WFMM_ERR_VALUE, format!("communicator: size = {}; at least 1 is needed", c.size));
        }
        if !(0..c.size).contains(&c.rank) {
            let range = format!("0 to {} (size = {})", c.size - 1, c.size);
            return Error::fail(WFMM_ERR_VALUE, format!("communicator: rank = {}; accepted: {range}", c.rank));
        }
        let missing = |name: &str| Error::new(WFMM_ERR_NULL, format!("communicator: the function {name} is NULL"));
        Ok(Self {
            rank: c.rank as usize,
            size: c.size as usize,
            node_rank: c.node_rank.max(0) as usize,
            user: c.user,
            allreduce: c.allreduce.ok_or_else(|| missing("allreduce"))?,
            allgather: c.allgather.ok_or_else(|| missing("allgather"))?,
            alltoallv: c.alltoallv.ok_or_else(|| missing("alltoallv"))?,
            barrier: c.barrier.ok_or_else(|| missing("barrier"))?,
            release: c.release,
        })
    }

    fn reduce<T>(&self, values: &mut [T], kind: i32, reduction: Reduction) -> i32 {
        let (pointer, n) = (values.as_mut_ptr().cast(), values.len() as i64);
        // n values of the type that `kind` says; the host vouches for its function.
        unsafe { (self.allreduce)(self.user, pointer, n, kind, reduction as i32) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // The host vouches for its function; nobody else has the table any more.
            unsafe { release(self.user) }
        }
    }
}

impl Exchange for Table {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn node_rank(&self) -> usize {
        self.node_rank
    }

    fn allreduce_f64(&self, values: &mut [f64], reduction: Reduction) -> i32 {
        self.reduce(values, 0, reduction)
    }

    fn allreduce_i64(&self, values: &mut [i64], reduction: Reduction) -> i32 {
        self.reduce(values, 1, reduction)
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> i32 {
        assert_eq!(all.len(), mine.len() * self.size);
        // Lengths as the function wants them; the host vouches for it.
        unsafe { (self.allgather)(self.user, mine.as_ptr().cast(), mine.len() as i64, all.as_mut_ptr().cast()) }
    }

    fn alltoallv(&self, send: &[u8], sent: Shares<'_>, receive: &mut [u8], received: Shares<'_>) -> i32 {
        let fits = |s: Shares<'_>, len: usize| {
            let inside = |(&b, &o): (&i64, &i64)| b >= 0 && o >= 0 && b + o <= len as i64;
            s.bytes.len() == self.size && s.offsets.len() == self.size && s.bytes.iter().zip(s.offsets).all(inside)
        };
        assert!(fits(sent, send.len()) && fits(received, receive.len()));
        // All shares are inside of the two arrays; the host vouches for its function.
        unsafe {
            (self.alltoallv)(
                self.user,
                send.as_ptr().cast(),
                sent.bytes.as_ptr(),
                sent.offsets.as_ptr(),
                receive.as_mut_ptr().cast(),
                received.bytes.as_ptr(),
                received.offsets.as_ptr(),
                WFMM_MEMORY_HOST,
            )
        }
    }

    fn barrier(&self) -> i32 {
        unsafe { (self.barrier)(self.user) }
    }
}

api! {
    /// Makes a session that spans processes. All ranks of `communicator` make it together. Calls with its plans are collective, but for
    /// recipe, report, counts, workspace, set_stream and destroy: each rank hands over its own sources and targets, however many and
    /// wherever they are, and gets the velocities of its own targets. An error on one rank is the same status on all, with the rank in the message. `options` may be NULL.
    /// With GPUs each rank takes one of its node, `node_rank` modulo their number, unless `device` names one; with
    /// WFMM_BACKEND_AUTO all ranks compute on the CPU where one of them has none. WFMM_ERR_UNSUPPORTED: asynchronous
    /// evaluations, several devices of a rank.
    /// Thread rule: one thread at a time, and one thread at a time for all plans and flows of the session, since each process has one
    /// order of calls: threads that sum at the same time need a session each.
    /// Errors: as of `wfmm_session_create`; WFMM_ERR_NULL (a function), _VALUE (rank, size);
    /// WFMM_ERR_COMMUNICATION where a function of the communicator fails.
    /// Example: `wfmm_session *s = NULL; if (wfmm_session_create_distributed(NULL, &ranks, &s)) return 1;`
    fn wfmm_session_create_distributed(
        #[optional] options: *const wfmm_session_options, communicator: *const wfmm_communicator, out: *mut *mut wfmm_session,
    ) {
        not_null("communicator", communicator)?;
        let table = Table::checked(&unsafe { structs::read("communicator", communicator) }?)?;
        let communicator = Communicator::new(Arc::new(table));
        let (out, options) = communicator.together("wfmm_session_create_distributed", || {
            let out = unsafe { output("out", out) }?;
            let options = unsafe { session_options(options) }?;
            enough_memory()?;
            Ok((out, options))
        })?;
        *out = SESSIONS.insert(Session::distributed(&options, communicator)?);
        Ok(())
    }
}
