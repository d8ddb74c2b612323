//! Handles: what a caller holds is a number that looks like a pointer and is never followed.
//!
//! Numbers are not used twice, so a handle that was destroyed, a copy of it, or no handle at all is recognized.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use once_cell::sync::Lazy;
use parking_lot::{Mutex, RwLock};

use crate::error::{
    Error, Result, WFMM_ERR_BUSY, WFMM_ERR_HANDLE, WFMM_ERR_NULL, WFMM_ERR_OUT_OF_MEMORY, WFMM_ERR_THREADS,
    WFMM_ERR_UNUSABLE, stopped,
};
use crate::plan::Plan;
use crate::session::Session;

use super::{wfmm_plan, wfmm_session};

/// The live objects of one kind.
pub struct Table<Handle, T> {
    name: &'static str,
    live: RwLock<HashMap<usize, Arc<T>>>,
    handle: PhantomData<fn(Handle)>,
}

pub static SESSIONS: Lazy<Table<wfmm_session, Session>> = Lazy::new(|| Table::new("session"));
pub static PLANS: Lazy<Table<wfmm_plan, PlanCell>> = Lazy::new(|| Table::new("plan"));

/// One counter for all kinds, so that a plan is never taken for a session. Steps of 16 look like aligned pointers.
static NEXT: AtomicUsize = AtomicUsize::new(16);

impl<Handle, T> Table<Handle, T> {
    pub fn new(name: &'static str) -> Self {
        Self { name, live: RwLock::default(), handle: PhantomData }
    }

    pub fn insert(&self, object: Arc<T>) -> *mut Handle {
        let number = NEXT.fetch_add(16, Ordering::Relaxed);
        self.live.write().insert(number, object);
        std::ptr::without_provenance_mut(number)
    }

    pub fn get(&self, handle: *const Handle) -> Result<Arc<T>> {
        if handle.is_null() {
            let name = self.name;
            return Error::fail(WFMM_ERR_NULL, format!("{name} is NULL; a handle from wfmm_{name}_create is needed"));
        }
        self.live.read().get(&handle.addr()).cloned().ok_or_else(|| self.no_handle(handle))
    }

    pub fn remove(&self, handle: *const Handle) -> Result<Arc<T>> {
        self.live.write().remove(&handle.addr()).ok_or_else(|| self.no_handle(handle))
    }

    fn no_handle(&self, handle: *const Handle) -> Error {
        let name = self.name;
        Error::new(WFMM_ERR_HANDLE, format!("{name} = {handle:?} is no live {name} (destroyed, or never created)"))
    }
}

/// A plan, the lock that tells a second caller BUSY, and whether a failure has spoilt it.
pub struct PlanCell {
    plan: Mutex<Plan>,
    session: Arc<Session>,
    unusable: AtomicBool,
    /// An evaluation under way on a thread of its own.
    pending: Mutex<Option<JoinHandle<Result<()>>>>,
}

impl PlanCell {
    pub fn new(plan: Plan) -> Arc<Self> {
        let session = plan.session().clone();
        Arc::new(Self { plan: Mutex::new(plan), session, unusable: AtomicBool::new(false), pending: Mutex::default() })
    }

    /// Runs `work` on the plan unless another thread does. A panic or a negative status leaves the plan unusable.
    pub fn with<R>(&self, work: impl FnOnce(&mut Plan) -> Result<R>) -> Result<R> {
        let Some(mut plan) = self.plan.try_lock() else { return Self::busy() };
        if self.unusable.load(Ordering::Acquire) {
            let message = "an earlier failure left this plan unusable; only wfmm_plan_destroy is allowed";
            return Error::fail(WFMM_ERR_UNUSABLE, message);
        }
        plan.session().alive()?;
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut plan)))
            .unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY)));
        if result.as_ref().is_err_and(|e| e.status < 0) {
            self.unusable.store(true, Ordering::Release);
        }
        result
    }

    /// Starts `work` on a thread of its own. The plan is taken before this returns, so that every other call is BUSY
    /// until the work is done.
    pub fn start(self: &Arc<Self>, work: impl FnOnce(&mut Plan) -> Result<()> + Send + 'static) -> Result<()> {
        let mut pending = self.pending.lock();
        if pending.is_some() {
            return Error::fail(WFMM_ERR_BUSY, "an evaluation of this plan is under way; call wfmm_plan_wait first");
        }
        let (taken, is_taken) = sync_channel(1);
        let cell = self.clone();
        let run = move || {
            cell.with(|plan| {
                let _ = taken.send(());
                work(plan)
            })
        };
        let thread = std::thread::Builder::new().name("wakefmm-async".into()).spawn(run);
        let thread = thread.map_err(|e| Error::new(WFMM_ERR_THREADS, format!("no thread for the evaluation: {e}")))?;
        if is_taken.recv().is_err() {
            // The plan was busy or unusable, and the thread has ended.
            return join(thread);
        }
        *pending = Some(thread);
        Ok(())
    }

    /// Waits for the evaluation under way, if there is one; its error is this call's.
    pub fn wait(&self) -> Result<()> {
        let pending = self.pending.lock().take();
        if let Err(forked) = self.session.alive() {
            // The thread is the parent's: here nobody could join it.
            std::mem::forget(pending);
            return Err(forked);
        }
        pending.map_or(Ok(()), join)
    }

    /// Fails while another thread is inside, if it is one of this process.
    pub fn idle(&self) -> Result<()> {
        if self.plan.is_locked() && self.session.alive().is_ok() { Self::busy() } else { Ok(()) }
    }

    fn busy<R>() -> Result<R> {
        let message = "another thread is using this plan; one thread at a time, or one plan per thread";
        Error::fail(WFMM_ERR_BUSY, message)
    }
}

fn join(thread: JoinHandle<Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY)))
}

/// The live plan behind a handle, for one call.
pub fn with_plan<R>(handle: *const wfmm_plan, work: impl FnOnce(&mut Plan) -> Result<R>) -> Result<R> {
    PLANS.get(handle)?.with(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{PlanOptions, wfmm_plan_options};

    fn plan() -> Arc<PlanCell> {
        let options = PlanOptions::checked(&wfmm_plan_options::default()).unwrap();
        PlanCell::new(Plan::new(Session::default_session().unwrap(), options))
    }

    #[test]
    fn a_destroyed_handle_is_recognized_and_not_reused() {
        let old = PLANS.insert(plan());
        PLANS.remove(old).unwrap();
        let new = PLANS.insert(plan());
        assert_ne!(old, new);
        assert_eq!(PLANS.get(old).map(|_| ()).unwrap_err().status, WFMM_ERR_HANDLE);
        assert_eq!(SESSIONS.get(new.cast()).map(|_| ()).unwrap_err().status, WFMM_ERR_HANDLE);
        PLANS.remove(new).unwrap();
    }

    #[test]
    fn a_panic_spoils_the_plan_and_nothing_else() {
        let cell = plan();
        let first = cell.with(|_| -> Result<()> { panic!("forced") }).unwrap_err();
        assert_eq!(first.status, crate::error::WFMM_ERR_INTERNAL);
        assert!(first.message.contains("forced"));
        assert_eq!(cell.with(|_| Ok(())).unwrap_err().status, WFMM_ERR_UNUSABLE);
        assert!(plan().with(|_| Ok(())).is_ok());
    }

    #[test]
    fn a_second_caller_is_told_busy() {
        let cell = plan();
        let inner = cell.clone();
        let status = cell.with(|_| Ok(inner.with(|_| Ok(())).unwrap_err().status)).unwrap();
        assert_eq!(status, WFMM_ERR_BUSY);
        assert!(cell.idle().is_ok());
    }
}
