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
use parking_lot::{ArcMutexGuard, Mutex, RawMutex, RwLock};

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
    /// Locked by the thread that is inside, and by an evaluation on a thread of its own until it has been waited for.
    plan: Arc<Mutex<Plan>>,
    session: Arc<Session>,
    unusable: AtomicBool,
    /// An evaluation on a thread of its own. Locked while a thread waits for it.
    pending: Mutex<Option<JoinHandle<Evaluated>>>,
}

type Entered = ArcMutexGuard<RawMutex, Plan>;
/// What the thread of an evaluation gives back to the one that waits: the plan, still locked, and the outcome.
type Evaluated = (Entered, Result<()>);

impl PlanCell {
    pub fn new(plan: Plan) -> Arc<Self> {
        let (session, unusable) = (plan.session().clone(), AtomicBool::new(false));
        Arc::new(Self { plan: Arc::new(Mutex::new(plan)), session, unusable, pending: Mutex::default() })
    }

    /// Runs `work` on the plan unless another thread does. A panic or a negative status leaves the plan unusable.
    pub fn with<R>(&self, work: impl FnOnce(&mut Plan) -> Result<R>) -> Result<R> {
        let mut plan = self.enter()?;
        let _turn = self.session.turn()?;
        self.run(&mut plan, work)
    }

    /// Starts `work` on a thread of its own. Every other call is BUSY until it has been waited for.
    pub fn start(self: &Arc<Self>, work: impl FnOnce(&mut Plan) -> Result<()> + Send + 'static) -> Result<()> {
        let mut plan = self.enter()?;
        let (cell, (begun, has_begun)) = (self.clone(), sync_channel(1));
        let run = move || {
            // There is room for it, and the other end waits.
            let _ = begun.send(());
            let result = cell.run(&mut plan, work);
            (plan, result)
        };
        let thread = std::thread::Builder::new().name("wakefmm-async".into()).spawn(run);
        let thread = thread.map_err(|e| Error::new(WFMM_ERR_THREADS, format!("no thread for the evaluation: {e}")))?;
        *self.pending.lock() = Some(thread);
        // A thread that is starting holds locks (of a sanitizer, for one), and nobody would release them in the child of a fork().
        let _ = has_begun.recv();
        Ok(())
    }

    /// Waits for the evaluation under way, if there is one; its error is this call's. A second thread that waits is told BUSY.
    pub fn wait(&self) -> Result<()> {
        self.session.alive()?;
        let Some(mut pending) = self.pending.try_lock() else { return self.busy() };
        let Some(thread) = pending.take() else { return Ok(()) };
        thread.join().map_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY)), |(_plan, result)| result)
    }

    /// Fails while another thread is inside, if it is one of this process, or an evaluation has not been waited for.
    pub fn idle(&self) -> Result<()> {
        if self.session.alive().is_ok() && self.plan.is_locked() { self.busy() } else { Ok(()) }
    }

    /// The plan for one caller. In the child of a `fork()` the lock may be that of a thread which is not there.
    fn enter(&self) -> Result<Entered> {
        self.session.alive()?;
        let Some(plan) = self.plan.try_lock_arc() else { return self.busy() };
        if self.unusable.load(Ordering::Acquire) {
            let message = "an earlier failure left this plan unusable; only wfmm_plan_destroy is allowed";
            return Error::fail(WFMM_ERR_UNUSABLE, message);
        }
        Ok(plan)
    }

    fn run<R>(&self, plan: &mut Plan, work: impl FnOnce(&mut Plan) -> Result<R>) -> Result<R> {
        let result = catch_unwind(AssertUnwindSafe(|| work(plan)))
            .unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY)));
        if result.as_ref().is_err_and(|e| e.status < 0) {
            self.unusable.store(true, Ordering::Release);
        }
        result
    }

    fn busy<R>(&self) -> Result<R> {
        let waits = self.pending.try_lock().is_none_or(|pending| pending.is_some());
        let message = if waits {
            "an evaluation of this plan is under way; no other call before wfmm_plan_wait has returned"
        } else {
            "another thread is using this plan; one thread at a time, or one plan per thread"
        };
        Error::fail(WFMM_ERR_BUSY, message)
    }
}

impl Drop for PlanCell {
    fn drop(&mut self) {
        if self.session.alive().is_err() {
            // The thread is the parent's: in the child of a fork() nobody could join it, or let it go.
            std::mem::forget(self.pending.get_mut().take());
        }
    }
}

/// The live plan behind a handle, for one call.
pub fn with_plan<R>(handle: *const wfmm_plan, work: impl FnOnce(&mut Plan) -> Result<R>) -> Result<R> {
    PLANS.get(handle)?.with(work)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::distributed::{Communicator, threads};
    use crate::options::{PlanOptions, SessionOptions, WFMM_BACKEND_CPU, wfmm_plan_options, wfmm_session_options};

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

    #[test]
    fn threads_take_turns_with_a_distributed_session() {
        let options =
            SessionOptions::checked(&wfmm_session_options { backend: WFMM_BACKEND_CPU, ..Default::default() }, &[])
                .unwrap();
        let session = Session::distributed(&options, Communicator::new(threads::group(1).remove(0))).unwrap();
        let of = |session: &Arc<Session>| {
            PlanCell::new(Plan::new(session.clone(), PlanOptions::checked(&wfmm_plan_options::default()).unwrap()))
        };
        let (first, second) = (of(&session), of(&session));
        let elsewhere = || std::thread::scope(|s| s.spawn(|| second.with(|_| Ok(()))).join().unwrap());
        let (busy, nested) = first.with(|_| Ok((elsewhere(), second.with(|_| Ok(()))))).unwrap();
        assert!(
            busy.unwrap_err().message.contains("this distributed session") && nested.is_ok() && elsewhere().is_ok()
        );
    }

    #[test]
    fn of_two_threads_that_wait_the_second_is_told_busy() {
        let (cell, (end, is_to_end)) = (plan(), channel());
        cell.start(move |_| is_to_end.recv().map_err(|e| Error::new(WFMM_ERR_THREADS, e.to_string()))).unwrap();
        let waits = cell.clone();
        let first = std::thread::spawn(move || waits.wait());
        while !cell.pending.is_locked() {
            std::thread::yield_now();
        }
        assert_eq!(cell.wait().unwrap_err().status, WFMM_ERR_BUSY);
        end.send(()).unwrap();
        assert_eq!(first.join().unwrap(), Ok(()));
        assert_eq!(cell.wait(), Ok(()));
    }

    #[test]
    fn an_evaluation_that_is_done_is_busy_until_it_is_waited_for() {
        let cell = plan();
        cell.start(|_| Error::fail(WFMM_ERR_THREADS, "its own")).unwrap();
        while !cell.pending.lock().as_ref().unwrap().is_finished() {
            std::thread::yield_now();
        }
        for busy in [cell.with(|_| Ok(())), cell.start(|_| Ok(())), cell.idle()] {
            let error = busy.unwrap_err();
            assert_eq!(error.status, WFMM_ERR_BUSY);
            assert!(error.message.contains("wfmm_plan_wait"));
        }
        assert_eq!(cell.wait().unwrap_err().message, "its own");
        assert!(cell.with(|_| Ok(())).is_ok() && cell.idle().is_ok() && cell.wait().is_ok());
    }
}
