//! Order of work on a device: streams, events that time it, graphs that replay it, and the launch of a kernel.

use super::context::{Context, Function};
use super::driver::{check, check_code};
use crate::error::Result;
use cust::sys;
use std::ffi::c_void;
use std::sync::Arc;

/// A queue of work. Our own, or the caller's, which is never destroyed here.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    raw: sys::CUstream,
    owned: bool,
}

// SAFETY: driver handles may be used from any thread; a plan is used by one at a time.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

unsafe extern "C" {
    /// The trampoline of `symbols`, declared with an integer for its status: it is not checked for newer codes.
    #[link_name = "cuLaunchKernel"]
    fn launch_kernel(
        function: sys::CUfunction,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: sys::CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32;
}

impl Stream {
    /// A new queue that does not wait for the default stream.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle; 1 is CU_STREAM_NON_BLOCKING.
        unsafe { check(sys::cuStreamCreate(&mut raw, 1), "cuStreamCreate")? };
        Ok(Self { context: context.clone(), raw, owned: true })
    }

    /// The caller's queue (a `cudaStream_t` or `CUstream` of this context; NULL is the default stream).
    pub fn borrowed(context: &Arc<Context>, raw: *mut c_void) -> Self {
        Self { context: context.clone(), raw: raw.cast(), owned: false }
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// The driver's handle, for others who queue work here.
    pub fn handle(&self) -> u64 {
        self.raw as u64
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits until all work of this queue is done.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the handle is live.
        self.context.note_loss(unsafe { check(sys::cuStreamSynchronize(self.raw), "cuStreamSynchronize") })
    }

    /// Later work of this queue waits for `event`.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: both handles are live.
        unsafe { check(sys::cuStreamWaitEvent(self.raw, event.raw, 0), "cuStreamWaitEvent") }
    }

    /// Starts a kernel. `arguments` are the addresses of its arguments, in order.
    ///
    /// # Safety
    /// Number, order and types of the arguments must be the kernel's, and every device address must be good for what it does.
    pub unsafe fn launch(
        &self,
        function: Function,
        grid: [u32; 3],
        block: u32,
        shared: usize,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let _current = self.context.enter()?;
        let [x, y, z] = grid;
        // SAFETY: the caller's promise.
        let code = unsafe {
            launch_kernel(
                function.raw,
                x,
                y,
                z,
                block,
                1,
                1,
                shared as u32,
                self.raw,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.context.note_loss(check_code(code, "cuLaunchKernel"))
    }
}

/// A queue of ours behind the work that the caller had queued on his at some time. It is an ordinary one where his means another
/// queue on each thread (`cudaStreamPerThread`).
#[derive(Debug)]
pub struct Behind {
    begin: Event,
    stream: Stream,
}

impl Behind {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        Ok(Self { begin: Event::new(context)?, stream: Stream::new(context)? })
    }

    /// Puts it behind all that is queued on the caller's now; its handle.
    pub fn follow(&self, caller: u64) -> Result<u64> {
        self.begin.record(&Stream::borrowed(&self.stream.context, caller as *mut c_void))?;
        self.stream.wait(&self.begin)?;
        Ok(self.stream.handle())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned
            && let Ok(_current) = self.context.enter()
        {
            // SAFETY: created by `new`.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// Starts a kernel on a stream with arguments of any plain type: `launch!(stream, function, grid, block, shared; a, b, c)`.
/// `unsafe` for the reason of `Stream::launch`.
#[macro_export]
#[doc(hidden)]
macro_rules! launch {
    ($stream:expr, $function:expr, $grid:expr, $block:expr, $shared:expr; $($argument:expr),* $(,)?) => {
        $stream.launch($function, $grid, $block, $shared, &mut [$(std::ptr::from_ref(&$argument).cast_mut().cast::<std::ffi::c_void>()),*])
    };
}
pub use launch;

/// A point in a queue, with its time.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Event {}
unsafe impl Sync for Event {}

impl Event {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle.
        unsafe { check(sys::cuEventCreate(&mut raw, 0), "cuEventCreate")? };
        Ok(Self { context: context.clone(), raw })
    }

    /// Marks the end of the work that `stream` has now.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: both handles are live.
        unsafe { check(sys::cuEventRecord(self.raw, stream.raw()), "cuEventRecord") }
    }

    /// The same for work that is being recorded for a graph: the event is marked at every replay.
    pub fn record_in_graph(&self, stream: &Stream) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: both handles are live; 1 is CU_EVENT_RECORD_EXTERNAL.
        unsafe { check(sys::cuEventRecordWithFlags(self.raw, stream.raw(), 1), "cuEventRecordWithFlags") }
    }

    /// Waits until the marked work is done.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the handle is live.
        self.context.note_loss(unsafe { check(sys::cuEventSynchronize(self.raw), "cuEventSynchronize") })
    }

    /// Seconds from `start` to this event; both must be done.
    pub fn seconds_since(&self, start: &Event) -> Result<f64> {
        let _current = self.context.enter()?;
        let mut milliseconds = 0f32;
        // SAFETY: the pointer is to a live number, both handles are live.
        unsafe { check(sys::cuEventElapsedTime(&mut milliseconds, start.raw, self.raw), "cuEventElapsedTime")? };
        Ok(f64::from(milliseconds) * 1e-3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: created by `new`.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// Work of a stream, recorded once and started again with one call.
#[derive(Debug)]
pub struct Graph {
    context: Arc<Context>,
    raw: sys::CUgraphExec,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Graph {}

impl Graph {
    /// Records what `work` starts on `stream`. It must not wait, copy pageable memory or allocate.
    pub fn record(stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let _current = stream.context.enter()?;
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the handle is live.
        unsafe { check(sys::cuStreamBeginCapture_v2(stream.raw, mode), "cuStreamBeginCapture")? };
        let worked = work();
        let mut graph = std::ptr::null_mut();
        // SAFETY: ends the capture begun above, also when `work` failed.
        let ended = unsafe { check(sys::cuStreamEndCapture(stream.raw, &mut graph), "cuStreamEndCapture") };
        if let Err(error) = worked.and(ended) {
            if !graph.is_null() {
                // SAFETY: what was recorded until then; nothing refers to it.
                let _ = unsafe { sys::cuGraphDestroy(graph) };
            }
            return Err(error);
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: the graph is live until it is destroyed below; the executable does not refer to it.
        unsafe {
            let made = check(sys::cuGraphInstantiateWithFlags(&mut raw, graph, 0), "cuGraphInstantiate");
            let _ = sys::cuGraphDestroy(graph);
            made?;
        }
        Ok(Self { context: stream.context.clone(), raw })
    }

    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: both handles are live; what the graph touches is kept by who recorded it.
        self.context.note_loss(unsafe { check(sys::cuGraphLaunch(self.raw, stream.raw), "cuGraphLaunch") })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: made by `record`.
            let _ = unsafe { sys::cuGraphExecDestroy(self.raw) };
        }
    }
}
