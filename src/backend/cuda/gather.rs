//! A plan's inputs in device memory, as the kernels take them.
//!
//! Enters: `Inputs`, arrays in host or device memory. Leaves: `DeviceInputs`, addresses; host arrays are copied once a
//! change, device arrays are used where they are. A page-locked array crosses the bus by itself and is kept until it has.

use super::args::RealsArg;
use super::context::Context;
use super::memory::{Buffer, Plain, copy_between, copy_in};
use super::periodic::Far;
use super::staging::Staging;
use super::stream::{Event, Stream};
use crate::backend::images::Slot;
use crate::error::{Error, Result, WFMM_ERR_UNSUPPORTED};
use crate::inputs::{HostArray, Inputs, Ints, Reals};
use std::ops::Range;
use std::sync::Arc;

/// Segments in device memory, lengths as in `SegmentInput`.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceSegments {
    pub n: usize,
    pub points: RealsArg,
    /// Address of `[n][ld]` point numbers.
    pub connectivity: u64,
    pub ld: usize,
    pub index_base: i32,
    pub circulation: RealsArg,
    pub core: RealsArg,
    pub default_core: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceParticles {
    pub n: usize,
    pub position: RealsArg,
    pub strength: RealsArg,
    pub core: RealsArg,
    pub default_core: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceCharges {
    pub n: usize,
    pub position: RealsArg,
    pub charge: RealsArg,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceTargets {
    pub n: usize,
    pub position: RealsArg,
}

/// Everything that a plan was given, in device memory. n = 0: there is none of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceInputs {
    pub segments: DeviceSegments,
    pub particles: DeviceParticles,
    pub charges: DeviceCharges,
    pub targets: DeviceTargets,
    /// The change counters of `Inputs`.
    pub vortex_positions: u64,
    pub vortex_strengths: u64,
    pub charge_positions: u64,
    pub charge_strengths: u64,
    pub target_positions: u64,
    /// Some array is the caller's own, in device memory.
    pub borrowed: bool,
    /// Of a periodic domain, in which the arrays' positions are then.
    pub far: Option<Far>,
    /// Up to two of them from the line of a segment a target is on it, in a periodic domain; zero in an open one.
    pub step: f64,
}

/// A device copy of one host array.
#[derive(Debug)]
struct Copied {
    memory: Buffer<u8>,
    /// Change counter and address of what it holds.
    holds: Option<(u64, usize)>,
}

/// Arrays that the bus may still be reading.
type InFlight = Vec<Box<dyn std::fmt::Debug + Send>>;

/// Device copies of a plan's host arrays.
#[derive(Debug)]
pub struct Gather {
    context: Arc<Context>,
    slots: [Copied; SLOTS],
    in_flight: InFlight,
}

/// Arrays of `Inputs`.
const SLOTS: usize = 10;

/// Where an array of sources is among them.
fn place_of(slot: Slot) -> usize {
    match slot {
        Slot::Points => 0,
        Slot::Circulation => 2,
        Slot::SegmentCore => 3,
        Slot::Position => 4,
        Slot::Strength => 5,
        Slot::Core => 6,
        Slot::ChargePosition => 7,
        Slot::Charge => 8,
    }
}

/// Arrays in flight from which an update waits: a caller who sets again and again without an evaluation must not fill the memory.
const MOST_IN_FLIGHT: usize = 12;
/// Arrays of fewer bytes cross the bus to each of several devices: waiting for one another would take longer.
const WORTH_SHARING: usize = 1 << 20;

/// One of several devices that are given the same arrays, and the end of its own part of an array.
pub struct Reader<'a> {
    pub gather: &'a mut Gather,
    pub stream: &'a Stream,
    pub arrived: &'a Event,
}

/// A page-locked array.
struct PageLocked {
    address: usize,
    bytes: usize,
    change: u64,
    keep: Box<dyn Fn() -> Box<dyn std::fmt::Debug + Send>>,
}

impl PageLocked {
    fn of<T: Plain>(values: &HostArray<T>, change: u64) -> Option<Self> {
        let HostArray::Lent(memory) = values else { return None };
        let (memory, address, bytes) = (memory.clone(), values.as_ptr() as usize, size_of_val(&**values));
        Some(Self { address, bytes, change, keep: Box::new(move || Box::new(memory.clone())) })
    }

    fn of_reals(reals: &Reals, change: u64) -> Option<Self> {
        match reals {
            Reals::HostF32(values) => Self::of(values, change),
            Reals::HostF64(values) => Self::of(values, change),
            Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => None,
        }
    }

    /// Those of the inputs, in the order of the slots.
    fn all(inputs: &Inputs) -> [Option<Self>; SLOTS] {
        let (s, p, c, t) = (&inputs.segments, &inputs.particles, &inputs.charges, &inputs.targets);
        let (vortices, strengths) = (inputs.vortex_positions, inputs.vortex_strengths);
        let real = |reals: Option<&Reals>, change: u64| reals.and_then(|reals| Self::of_reals(reals, change));
        let ends = s.as_ref().and_then(|s| match &s.connectivity {
            Ints::Host(values) => Self::of(values, vortices),
            Ints::Device { .. } => None,
        });
        [
            real(s.as_ref().map(|s| &s.points), vortices),
            ends,
            real(s.as_ref().map(|s| &s.circulation), strengths),
            real(s.as_ref().and_then(|s| s.core.as_ref()), vortices),
            real(p.as_ref().map(|p| &p.position), vortices),
            real(p.as_ref().map(|p| &p.strength), strengths),
            real(p.as_ref().and_then(|p| p.core.as_ref()), vortices),
            real(c.as_ref().map(|c| &c.position), inputs.charge_positions),
            real(c.as_ref().map(|c| &c.charge), inputs.charge_strengths),
            real(t.as_ref().map(|t| &t.position), inputs.target_positions),
        ]
    }

    fn slice(&self, part: &Range<usize>) -> &[u8] {
        // SAFETY: `keep` holds the array, which has so many bytes.
        unsafe { std::slice::from_raw_parts((self.address + part.start) as *const u8, part.len()) }
    }
}

/// Starts copying what changed of page-locked arrays to all devices: each reads a part of an array from the host's memory, and the other
/// parts from the other devices. What is not copied here is copied by `Gather::update`.
pub fn bring_together(readers: &mut [Reader<'_>], inputs: &Inputs) -> Result<()> {
    PageLocked::all(inputs).iter().enumerate().try_for_each(|(slot, array)| bring_to_all(readers, slot, array.as_ref()))
}

/// The same for one array of sources; `change` is what its counter will be.
pub fn bring_array_together(readers: &mut [Reader<'_>], slot: Slot, array: &Reals, change: u64) -> Result<()> {
    bring_to_all(readers, place_of(slot), PageLocked::of_reals(array, change).as_ref())
}

fn bring_to_all(readers: &mut [Reader<'_>], slot: usize, array: Option<&PageLocked>) -> Result<()> {
    let Some(array) = array.filter(|array| array.bytes >= WORTH_SHARING) else { return Ok(()) };
    let holds = Some((array.change, array.address));
    if readers.iter().all(|reader| reader.gather.slots[slot].holds != holds) {
        bring_parts(readers, slot, array)?;
        readers.iter_mut().for_each(|reader| reader.gather.slots[slot].holds = holds);
    }
    Ok(())
}

fn bring_parts(readers: &mut [Reader<'_>], slot: usize, array: &PageLocked) -> Result<()> {
    let n = readers.len();
    // Whole 256 bytes each but for the last.
    let begin = |k: usize| if k == n { array.bytes } else { array.bytes * k / n / 256 * 256 };
    let part = |k: usize| begin(k)..begin(k + 1);
    // Others may still read what an earlier call has left in memory that is given back.
    if readers.iter().any(|reader| reader.gather.slots[slot].memory.capacity() < array.bytes) {
        readers.iter().try_for_each(|reader| reader.stream.synchronize())?;
    }
    for (k, reader) in readers.iter_mut().enumerate() {
        let Copied { memory, holds } = &mut reader.gather.slots[slot];
        *holds = None;
        memory.reserve(array.bytes)?;
        let to = memory.at(part(k).start);
        reader.gather.keep((array.keep)(), reader.stream)?;
        copy_in(to, array.slice(&part(k)), reader.stream)?;
        reader.arrived.record(reader.stream)?;
    }
    for (k, reader) in readers.iter().enumerate() {
        let to = &reader.gather.slots[slot].memory;
        for other in (1..n).map(|by| (k + by) % n) {
            let Reader { gather, arrived, .. } = &readers[other];
            reader.stream.wait(arrived)?;
            let (at, len) = (part(other).start, part(other).len());
            copy_between(to.at(at), gather.slots[slot].memory.at(at), &gather.context, len, reader.stream)?;
        }
    }
    Ok(())
}

impl Gather {
    pub fn new(context: &Arc<Context>) -> Self {
        let slot = || Copied { memory: Buffer::new(context), holds: None };
        Self { context: context.clone(), slots: std::array::from_fn(|_| slot()), in_flight: Vec::new() }
    }

    /// Waits where many arrays are in flight.
    fn make_room(&mut self, stream: &Stream) -> Result<()> {
        if self.in_flight.len() >= MOST_IN_FLIGHT {
            stream.synchronize()?;
            self.in_flight.clear();
        }
        Ok(())
    }

    /// Keeps an array that is to be read from the stream.
    pub fn keep(&mut self, array: Box<dyn std::fmt::Debug + Send>, stream: &Stream) -> Result<()> {
        self.make_room(stream)?;
        self.in_flight.push(array);
        Ok(())
    }

    /// To be called when the stream of the updates was waited for.
    pub fn settled(&mut self) {
        self.in_flight.clear();
    }

    pub fn bytes(&self) -> u64 {
        self.slots.iter().map(|slot| slot.memory.bytes()).sum()
    }

    /// Starts copying one page-locked array; `change` is what its counter will be.
    pub fn bring(
        &mut self,
        slot: Slot,
        array: &Reals,
        change: u64,
        staging: &mut Staging,
        stream: &Stream,
    ) -> Result<()> {
        if PageLocked::of_reals(array, change).is_none() {
            return Ok(());
        }
        self.make_room(stream)?;
        let mut up = Upload { staging, stream, in_flight: &mut self.in_flight, borrowed: false };
        up.reals(&mut self.slots[place_of(slot)], array, change).map(drop)
    }

    /// The inputs on the device; copies what changed since the last call.
    pub fn update(&mut self, inputs: &Inputs, staging: &mut Staging, stream: &Stream) -> Result<DeviceInputs> {
        let mut found = DeviceInputs {
            vortex_positions: inputs.vortex_positions,
            vortex_strengths: inputs.vortex_strengths,
            charge_positions: inputs.charge_positions,
            charge_strengths: inputs.charge_strengths,
            target_positions: inputs.target_positions,
            ..DeviceInputs::default()
        };
        self.make_room(stream)?;
        let [points, ends, circulation, segment_core, position, strength, core, charge_position, charge, target] =
            &mut self.slots;
        let mut up = Upload { staging, stream, in_flight: &mut self.in_flight, borrowed: false };
        if let Some(s) = inputs.segments.as_ref().filter(|s| s.n > 0) {
            let (positions, strengths) = (inputs.vortex_positions, inputs.vortex_strengths);
            found.segments = DeviceSegments {
                n: s.n,
                points: up.reals(points, &s.points, positions)?,
                connectivity: up.ints(ends, &s.connectivity, positions)?,
                ld: s.ld,
                index_base: s.index_base,
                circulation: up.reals(circulation, &s.circulation, strengths)?,
                core: up.optional(segment_core, s.core.as_ref(), positions)?,
                default_core: s.default_core,
            };
        }
        if let Some(p) = inputs.particles.as_ref().filter(|p| p.n > 0) {
            found.particles = DeviceParticles {
                n: p.n,
                position: up.reals(position, &p.position, inputs.vortex_positions)?,
                strength: up.reals(strength, &p.strength, inputs.vortex_strengths)?,
                core: up.optional(core, p.core.as_ref(), inputs.vortex_positions)?,
                default_core: p.default_core,
            };
        }
        if let Some(c) = inputs.charges.as_ref().filter(|c| c.n > 0) {
            found.charges = DeviceCharges {
                n: c.n,
                position: up.reals(charge_position, &c.position, inputs.charge_positions)?,
                charge: up.reals(charge, &c.charge, inputs.charge_strengths)?,
            };
        }
        if let Some(t) = inputs.targets.as_ref().filter(|t| t.n > 0) {
            found.targets = DeviceTargets { n: t.n, position: up.reals(target, &t.position, inputs.target_positions)? };
        }
        found.borrowed = up.borrowed;
        Ok(found)
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        // Memory that is given back while the bus reads it would be filled with another's numbers.
        if !self.in_flight.is_empty() {
            let _ = self.context.synchronize();
        }
    }
}

struct Upload<'a> {
    staging: &'a mut Staging,
    stream: &'a Stream,
    in_flight: &'a mut InFlight,
    borrowed: bool,
}

impl Upload<'_> {
    fn reals(&mut self, slot: &mut Copied, reals: &Reals, change: u64) -> Result<RealsArg> {
        self.borrowed |= matches!(reals, Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. });
        Ok(match reals {
            Reals::DeviceF32 { address, .. } => RealsArg { address: *address, is_f64: 0 },
            Reals::DeviceF64 { address, .. } => RealsArg { address: *address, is_f64: 1 },
            Reals::HostF32(v) => RealsArg { address: self.copy(slot, v, change)?, is_f64: 0 },
            Reals::HostF64(v) => RealsArg { address: self.copy(slot, v, change)?, is_f64: 1 },
        })
    }

    fn optional(&mut self, slot: &mut Copied, reals: Option<&Reals>, change: u64) -> Result<RealsArg> {
        reals.map_or(Ok(RealsArg::default()), |reals| self.reals(slot, reals, change))
    }

    fn ints(&mut self, slot: &mut Copied, ints: &Ints, change: u64) -> Result<u64> {
        match ints {
            Ints::Device { address, .. } => {
                self.borrowed = true;
                Ok(*address)
            }
            Ints::Host(v) => self.copy(slot, v, change),
        }
    }

    /// Copies an array unless the slot holds it; the address guards against another array under the same count.
    fn copy<T: Plain>(&mut self, slot: &mut Copied, values: &HostArray<T>, change: u64) -> Result<u64> {
        let holds = Some((change, values.as_ptr() as usize));
        if slot.holds != holds {
            slot.holds = None;
            slot.memory.reserve(size_of_val(&**values))?;
            let to = slot.memory.address();
            match values {
                HostArray::Own(values) => self.staging.upload(to, values, self.stream)?,
                HostArray::Lent(memory) => {
                    self.in_flight.push(Box::new(memory.clone()));
                    copy_in(to, values, self.stream)?;
                }
            }
            slot.holds = holds;
        }
        Ok(slot.memory.address())
    }
}

/// Refuses more targets, or elements of a kind with `images` of each, than the direct sum numbers.
pub fn check_counts(inputs: &DeviceInputs, images: usize) -> Result<()> {
    const MOST: usize = i32::MAX as usize / 4;
    let counts = [
        ("targets", inputs.targets.n),
        ("segments", inputs.segments.n.saturating_mul(images)),
        ("particles", inputs.particles.n.saturating_mul(images)),
        ("charges", inputs.charges.n.saturating_mul(images)),
    ];
    let Some((what, n)) = counts.into_iter().find(|(_, n)| *n > MOST) else { return Ok(()) };
    let with = if images > 1 { " with their images" } else { "" };
    Error::fail(WFMM_ERR_UNSUPPORTED, format!("{n} {what}{with}; a sum on CUDA takes at most {MOST}"))
}
