//! Many processes that compute one sum together: how they exchange bytes, and how they agree.
//!
//! Enters: an `Exchange`, a table of functions of the host (MPI, as a rule) or threads of one process. Leaves: a
//! `Communicator`, whose calls end with the same status on every rank, and `Peers`, what an engine sees of the other ranks.
//!
//! Every exchange is preceded by an agreement: each rank says whether its own work up to there went well. Where one did not,
//! all stop there with its status and its message, and nobody waits for a rank that has left.

mod agreement;
mod peers;
pub mod threads;

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Result, WFMM_ERR_COMMUNICATION};

pub use peers::Peers;

/// What an allreduce does with the numbers of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Reduction {
    Sum = 0,
    Min = 1,
    Max = 2,
}

/// Bytes to or from each rank: rank r's are `bytes[r]` from `offsets[r]` on.
#[derive(Debug, Clone, Copy)]
pub struct Shares<'a> {
    pub bytes: &'a [i64],
    pub offsets: &'a [i64],
}

/// Collective functions of a group of ranks; each returns 0, or the number of its failure. The arrays of `allgather` are one
/// share and all shares in the order of ranks. One that fails on some ranks must not leave the others waiting in it. Called by
/// one thread at a time, the one that calls the library.
pub trait Exchange: Send + Sync {
    fn rank(&self) -> usize;
    fn size(&self) -> usize;
    /// This rank's number among those of its machine, which chooses its device.
    fn node_rank(&self) -> usize;
    fn allreduce_f64(&self, values: &mut [f64], reduction: Reduction) -> i32;
    fn allreduce_i64(&self, values: &mut [i64], reduction: Reduction) -> i32;
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> i32;
    fn alltoallv(&self, send: &[u8], sent: Shares<'_>, receive: &mut [u8], received: Shares<'_>) -> i32;
    fn barrier(&self) -> i32;
}

/// One rank's end of a group; see the head of this file.
#[derive(Clone)]
pub struct Communicator {
    exchange: Arc<dyn Exchange>,
    /// A failure of this rank's last agreement, of which the others do not know yet.
    untold: Arc<Mutex<Option<Error>>>,
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}

impl Communicator {
    pub fn new(exchange: Arc<dyn Exchange>) -> Self {
        Self { exchange, untold: Arc::default() }
    }

    pub fn rank(&self) -> usize {
        self.exchange.rank()
    }

    pub fn size(&self) -> usize {
        self.exchange.size()
    }

    pub fn node_rank(&self) -> usize {
        self.exchange.node_rank()
    }

    /// One share of bytes of each rank, of equal lengths.
    fn gather(&self, mine: &[u8]) -> Result<Vec<u8>> {
        let mut all = vec![0; mine.len() * self.size()];
        self.passed("allgather", self.exchange.allgather(mine, &mut all)).map(|()| all)
    }

    fn passed(&self, function: &str, code: i32) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let rank = self.rank();
        Error::fail(
            WFMM_ERR_COMMUNICATION,
            format!("{function} of the communicator returned {code} on rank {rank}: other ranks may be gone"),
        )
    }
}

/// Numbers as bytes, in this machine's order: all ranks are of one kind.
pub fn bytes_of_f64(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

pub fn f64_of_bytes(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
}
