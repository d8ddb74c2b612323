//! A flow behind its handle: one thread at a time, and what a failure leaves.
//!
//! The state of a flow changes only after all that can fail, or is put back. So where memory ran out inside a call the flow goes
//! on, with status 101 and new sums; a panic or a negative status leaves it unusable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use once_cell::sync::Lazy;
use parking_lot::Mutex;

use super::handles::Table;
use super::wfmm_flow;
use crate::error::{
    Error, Result, WFMM_ERR_BUSY, WFMM_ERR_HOST_MEMORY, WFMM_ERR_OUT_OF_MEMORY, WFMM_ERR_UNUSABLE, stopped,
};
use crate::flow::Flow;
use crate::session::Session;
use std::sync::Arc;

pub static FLOWS: Lazy<Table<wfmm_flow, FlowCell>> = Lazy::new(|| Table::new("flow"));

/// A flow, the lock that tells a second caller BUSY, and whether a failure has spoilt it.
pub struct FlowCell {
    flow: Mutex<Flow>,
    session: Arc<Session>,
    unusable: AtomicBool,
}

impl FlowCell {
    pub fn new(flow: Flow) -> Arc<Self> {
        let session = flow.session().clone();
        Arc::new(Self { flow: Mutex::new(flow), session, unusable: AtomicBool::new(false) })
    }

    /// Runs `work` on the flow unless another thread does, or this one from inside the velocity callback.
    pub fn with<R>(&self, work: impl FnOnce(&mut Flow) -> Result<R>) -> Result<R> {
        // Before the lock: in the child of a fork() it may be that of a thread which is not there.
        self.session.alive()?;
        let Some(mut flow) = self.flow.try_lock() else { return Self::busy() };
        if self.unusable.load(Ordering::Acquire) {
            let message = "an earlier failure left this flow unusable; only wfmm_flow_destroy is allowed";
            return Error::fail(WFMM_ERR_UNUSABLE, message);
        }
        let _turn = self.session.turn()?;
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut flow)));
        let stopped_midway = done.is_err();
        let mut result = done.unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_HOST_MEMORY)));
        if result.as_ref().is_err_and(|e| e.status == WFMM_ERR_HOST_MEMORY || stopped_midway && e.status > 0) {
            let recovered = catch_unwind(AssertUnwindSafe(|| flow.recover()));
            if let Err(error) = recovered.unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY))) {
                result = Err(error);
            }
        }
        if result.as_ref().is_err_and(|e| e.status < 0) {
            self.unusable.store(true, Ordering::Release);
        }
        result
    }

    /// Fails while another thread is inside, if it is one of this process.
    pub fn idle(&self) -> Result<()> {
        if self.session.alive().is_ok() && self.flow.is_locked() { Self::busy() } else { Ok(()) }
    }

    fn busy<R>() -> Result<R> {
        let message = "another thread, or the velocity callback, is using this flow; one thread at a time";
        Error::fail(WFMM_ERR_BUSY, message)
    }
}

/// The live flow behind a handle, for one call.
pub fn with_flow<R>(handle: *const wfmm_flow, work: impl FnOnce(&mut Flow) -> Result<R>) -> Result<R> {
    FLOWS.get(handle)?.with(work)
}
