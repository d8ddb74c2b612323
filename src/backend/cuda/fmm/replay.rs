//! Small evaluations are limited by the host's launches: one that is repeated with the same arguments is recorded as a CUDA graph and
//! started with one call. In both forms the near field may run beside the far field, on a stream of its own.

use super::args::{CheckArg, FmmArg};
use super::reuse::Work;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::far_rows::FarRows;
use crate::backend::cuda::stream::{Event, Graph, Stream};
use crate::error::Result;
use std::sync::Arc;

/// Sources and targets together up to which recording pays, and up to which neither field fills the chip by itself.
const SMALL: u32 = 400_000;

pub fn is_small(f: &FmmArg) -> bool {
    f.tree[0].n + f.tree[1].n <= SMALL
}

/// What one evaluation queues: for this kind of source, for one before it, and for images that are not near.
type Queued = (FmmArg, Option<FmmArg>, Work, CheckArg, Option<FarRows>);

/// The last evaluation, and its graphs once it was repeated: without and with notes of the passes.
#[derive(Debug)]
pub struct Replay {
    last: Option<Queued>,
    graphs: [Option<Graph>; 2],
    side: Stream,
    second: Stream,
    noted: Event,
    fork: Event,
    join: Event,
}

impl Replay {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        Ok(Self {
            last: None,
            graphs: [None, None],
            side: Stream::new(context)?,
            second: Stream::new(context)?,
            noted: Event::new(context)?,
            fork: Event::new(context)?,
            join: Event::new(context)?,
        })
    }

    /// Discards the recorded graphs.
    pub fn forget(&mut self) {
        (self.last, self.graphs) = (None, [None, None]);
    }

    /// Whether the same was queued last.
    pub fn is_last(&self, queued: &Queued) -> bool {
        self.last.as_ref() == Some(queued)
    }

    /// Runs `enqueue` on `stream`, or replays what it queued before; its argument says whether it is being recorded. `noted`:
    /// with notes of the passes.
    pub fn run(
        &mut self,
        queued: Queued,
        noted: bool,
        stream: &Stream,
        enqueue: impl Fn(&Self, bool) -> Result<()>,
    ) -> Result<()> {
        let again = self.is_last(&queued);
        if !again {
            (self.last, self.graphs) = (Some(queued), [None, None]);
        }
        if !again || !is_small(&queued.0) {
            return enqueue(self, false);
        }
        let which = usize::from(noted);
        if self.graphs[which].is_none() {
            self.graphs[which] = Graph::record(stream, || enqueue(self, true)).ok();
        }
        // A driver that does not record this gets the work by itself.
        self.graphs[which].as_ref().map_or_else(|| enqueue(self, false), |graph| graph.launch(stream))
    }

    /// Notes when what is being recorded on `stream` is done, on a branch: in the line of the passes a note would take 2 µs of
    /// them. `end_notes` brings the branch back.
    pub fn note(&self, event: &Event, stream: &Stream) -> Result<()> {
        self.noted.record(stream)?;
        self.second.wait(&self.noted)?;
        event.record_in_graph(&self.second)
    }

    pub fn end_notes(&self, stream: &Stream) -> Result<()> {
        self.noted.record(&self.second)?;
        stream.wait(&self.noted)
    }

    /// What `beside` starts waits for what `stream` has now.
    pub fn fork(&self, stream: &Stream) -> Result<()> {
        self.fork.record(stream)
    }

    /// Starts `work` beside what the forked stream gets; `join` waits for it.
    pub fn beside(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
        self.side.wait(&self.fork)?;
        work(&self.side)?;
        self.join.record(&self.side)
    }

    pub fn join(&self, stream: &Stream) -> Result<()> {
        stream.wait(&self.join)
    }
}
