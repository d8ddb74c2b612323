//! Arrays of all ranks of a node, each with its part in page-locked memory of its own, which the others map: nothing is sent.
//!
//! Enters: this rank's parts. Leaves: the parts of all ranks, or none where some rank cannot map those of another: ranks on several nodes, or
//! without permission to open each other's files.

use crate::backend::cuda::context::Context;
use crate::backend::cuda::memory::{Plain, register_host, unregister_host};
use crate::backend::cuda::shared_pages::{Mapping, Place};
use crate::distributed::Communicator;
use crate::error::Result;
use crate::inputs::HostArray;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;
use std::sync::Arc;

/// Exchanges for which memory of another rank stays mapped without use: ranks take turns with a few blocks.
const KEPT_FOR: u64 = 8;

/// A part of an array in page-locked memory.
#[derive(Debug, Clone)]
pub struct Part {
    pub address: usize,
    bytes: usize,
    _keep: Arc<dyn Debug + Send + Sync>,
}

impl Part {
    pub fn of<T: Plain + Sync + Debug>(array: HostArray<T>) -> Self {
        Self { address: array.as_ptr() as usize, bytes: size_of_val(&*array), _keep: Arc::new(array) }
    }

    pub fn as_bytes(&self) -> &[u8] {
        // An empty array has no address.
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: kept, and so many bytes.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }
}

/// Memory of another rank.
#[derive(Debug)]
struct Theirs {
    context: Arc<Context>,
    mapping: Mapping,
}

impl Theirs {
    fn new(place: Place, context: &Arc<Context>) -> Option<Self> {
        let mapping = Mapping::of_place(place)?;
        register_host(context, mapping.address(), mapping.bytes()).ok()?;
        Some(Self { context: context.clone(), mapping })
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = unregister_host(&self.context, self.mapping.address());
    }
}

#[derive(Debug)]
struct Mapped {
    theirs: Arc<Theirs>,
    last_use: u64,
}

/// What this rank has mapped.
#[derive(Debug, Default)]
pub struct Node {
    /// By name.
    mapped: HashMap<u64, Mapped>,
    exchanges: u64,
    /// Some rank could not map another's memory; the same on all ranks.
    apart: bool,
}

impl Node {
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Of each array the parts of all ranks. `bytes` are those of each array and rank, the same on all ranks. What others wrote is read until
    /// the next agreement at the end of an evaluation.
    pub fn share(
        &mut self,
        communicator: &Communicator,
        context: &Arc<Context>,
        own: &[Part],
        bytes: &[Vec<usize>],
    ) -> Result<Option<Vec<Vec<Part>>>> {
        if self.apart || communicator.size() == 1 {
            return Ok(None);
        }
        self.exchanges += 1;
        let place = |part: &Part| context.place_of(part.address).unwrap_or_default().to_f64();
        let mine: Vec<f64> = own.iter().flat_map(place).collect();
        let all = communicator.each(&mine)?;
        let (rank, places) = (communicator.rank(), all.as_chunks::<3>().0);
        let part = |(array, of): (usize, usize)| match bytes[array][of] {
            _ if of == rank => Some(own[array].clone()),
            0 => Some(Part { address: 0, bytes: 0, _keep: Arc::new(()) }),
            bytes => self.part(Place::from_f64(places[of * own.len() + array]), bytes, context),
        };
        let ranks = communicator.size();
        let parts: Option<Vec<Part>> = (0..own.len() * ranks).map(|k| (k / ranks, k % ranks)).map(part).collect();
        let count = communicator.total(&[f64::from(u8::from(parts.is_some()))])?[0];
        if count < ranks as f64 {
            log::info!("rank {rank}: memory is not mapped by all ranks, arrays are sent");
            self.apart = true;
            self.mapped.clear();
            return Ok(None);
        }
        let recent = self.exchanges.saturating_sub(KEPT_FOR);
        self.mapped.retain(|_, mapped| mapped.last_use >= recent);
        Ok(parts.map(|parts| parts.chunks(ranks).map(<[Part]>::to_vec).collect()))
    }

    fn part(&mut self, place: Place, bytes: usize, context: &Arc<Context>) -> Option<Part> {
        let mapped = match self.mapped.entry(place.name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Mapped { theirs: Arc::new(Theirs::new(place, context)?), last_use: 0 }),
        };
        mapped.last_use = self.exchanges;
        let theirs = mapped.theirs.clone();
        let has_all = theirs.mapping.bytes() >= bytes;
        has_all.then(|| Part { address: theirs.mapping.address(), bytes, _keep: theirs })
    }
}
