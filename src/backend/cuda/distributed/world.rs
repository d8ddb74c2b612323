//! The sources of all ranks on every rank, and the targets that this rank computes at.
//!
//! Enters: each rank's own inputs. Leaves: `Inputs` with all sources, for an engine that knows of no other ranks. What has not
//! changed since the last call is not exchanged again; what some rank has in device memory always is. The own part of an array goes to the
//! device as soon as it is set, the parts of other ranks when they are exchanged.

use super::deal::Deal;
use super::node::Part;
use super::wire::{Line, Wire};
use crate::backend::Field;
use crate::backend::cuda::gather::Gather;
use crate::backend::cuda::memory::{Buffer, copy_in};
use crate::backend::cuda::stream::Stream;
use crate::backend::images::Slot;
use crate::error::{Error, Result, WFMM_ERR_COUNT};
use crate::inputs::{ChargeInput, Inputs, Ints, ParticleInput, Reals, SegmentInput, TargetInput};
use crate::memory;
use std::collections::HashMap;

/// Numbers that each rank tells all others in every call.
const TOLD: usize = 11;

/// What ranks have, as far as all must know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    rows: Vec<[f64; TOLD]>,
}

/// Columns of the table.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    Points,
    Segments,
    Particles,
    Charges,
    Targets,
    /// Flags: some input array has double precision; sources or targets in device memory; cores of their own.
    Double,
    SourcesOnDevice,
    TargetsOnDevice,
    SegmentCores,
    ParticleCores,
    /// The output is an array in double precision.
    DoubleOutput,
}

/// An array that ranks exchange: its name, what it has `width` numbers for each of.
#[derive(Debug, Clone, Copy)]
struct Column {
    name: &'static str,
    of: Of,
    width: usize,
}

const POINTS: Column = Column { name: "points", of: Of::Points, width: 3 };
const CONNECTIVITY: Column = Column { name: "connectivity", of: Of::Segments, width: 2 };
const CIRCULATION: Column = Column { name: "circulation", of: Of::Segments, width: 1 };
const SEGMENT_CORES: Column = Column { name: "cores of segments", of: Of::Segments, width: 1 };
const PARTICLES: Column = Column { name: "position of particles", of: Of::Particles, width: 3 };
const STRENGTH: Column = Column { name: "strength", of: Of::Particles, width: 3 };
const PARTICLE_CORES: Column = Column { name: "cores of particles", of: Of::Particles, width: 1 };
const CHARGES: Column = Column { name: "position of charges", of: Of::Charges, width: 3 };
const CHARGE: Column = Column { name: "charge", of: Of::Charges, width: 1 };

impl Table {
    /// `shared`: all ranks have the same sources, which count once.
    pub fn gather(line: &Line, inputs: &Inputs, field: Field, double_output: bool, shared: bool) -> Result<Self> {
        let mut mine = row(inputs, field, double_output).map(|n| n as f64);
        if shared && line.communicator.rank() > 0 {
            [Of::Points, Of::Segments, Of::Particles, Of::Charges].into_iter().for_each(|of| mine[of as usize] = 0.0);
        }
        let all = line.communicator.each(&mine)?;
        Ok(Self { rows: all.as_chunks::<TOLD>().0.to_vec() })
    }

    pub fn counts(&self, of: Of) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.rows.iter().map(move |row| row[of as usize] as usize)
    }

    /// Bytes that each rank has of an array of such numbers.
    fn bytes<T>(&self, column: Column) -> Vec<usize> {
        self.counts(column.of).map(|n| column.width * n * size_of::<T>()).collect()
    }

    pub fn total(&self, of: Of) -> usize {
        self.counts(of).sum()
    }

    pub fn any(&self, of: Of) -> bool {
        self.total(of) > 0
    }

    /// Elements of the ranks before this one.
    fn before(&self, of: Of, rank: usize) -> usize {
        self.counts(of).take(rank).sum()
    }

    /// Sources of a field.
    pub fn sources(&self, field: Field) -> usize {
        match field {
            Field::Velocity { .. } => self.total(Of::Segments) + self.total(Of::Particles),
            Field::Potential { .. } => self.total(Of::Charges),
        }
    }
}

fn row(inputs: &Inputs, field: Field, double_output: bool) -> [usize; TOLD] {
    let (s, p, c, t) = (&inputs.segments, &inputs.particles, &inputs.charges, &inputs.targets);
    let vortices = matches!(field, Field::Velocity { .. });
    let mut sources: Vec<&Reals> = vec![];
    let mut on_device = false;
    if let Some(s) = s.as_ref().filter(|_| vortices) {
        sources.extend([&s.points, &s.circulation].into_iter().chain(&s.core));
        on_device |= matches!(s.connectivity, Ints::Device { .. });
    }
    if let Some(p) = p.as_ref().filter(|_| vortices) {
        sources.extend([&p.position, &p.strength].into_iter().chain(&p.core));
    }
    if let Some(c) = c.as_ref().filter(|_| !vortices) {
        sources.extend([&c.position, &c.charge]);
    }
    on_device |= sources.iter().any(|r| is_on_device(r));
    let targets = t.as_ref().map(|t| &t.position);
    let double = sources.iter().copied().chain(targets).any(is_double);
    let flag = |yes: bool| usize::from(yes);
    [
        s.as_ref().map_or(0, |s| s.points.numbers() / 3),
        s.as_ref().map_or(0, |s| s.n),
        p.as_ref().map_or(0, |p| p.n),
        c.as_ref().map_or(0, |c| c.n),
        t.as_ref().map_or(0, |t| t.n),
        flag(double),
        flag(on_device),
        flag(targets.is_some_and(is_on_device)),
        flag(s.as_ref().is_some_and(|s| s.core.is_some())),
        flag(p.as_ref().is_some_and(|p| p.core.is_some())),
        flag(double_output),
    ]
}

/// Whether sources of `field` and targets are in host memory, and there are targets.
pub fn is_on_host(inputs: &Inputs, field: Field) -> bool {
    let row = row(inputs, field, false);
    row[Of::Targets as usize] > 0 && row[Of::SourcesOnDevice as usize] + row[Of::TargetsOnDevice as usize] == 0
}

fn is_on_device(reals: &Reals) -> bool {
    matches!(reals, Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. })
}

fn is_double(reals: &Reals) -> bool {
    matches!(reals, Reals::HostF64(_) | Reals::DeviceF64 { .. })
}

/// What an exchange was made of.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    positions: u64,
    strengths: u64,
    double: bool,
}

/// The own part of an array in device memory: the counter of its changes, where it came from, and its first byte there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Own {
    change: u64,
    from: usize,
    at: usize,
}

/// An array of all ranks in this one's device memory.
#[derive(Debug)]
struct Joined {
    memory: Buffer<u8>,
    /// What is there of the own part, or on its way.
    own: Option<Own>,
    /// Bytes of the ranks before this one, in the last exchange.
    before: usize,
    /// What others may still read.
    held: Option<Part>,
}

/// A part on its way to all ranks, and the counter of its changes.
struct Sent {
    column: Column,
    /// Bytes of each rank.
    bytes: Vec<usize>,
    change: u64,
    part: Part,
}

/// What copies arrays to the device, in the order of the engine's work.
pub type Intake<'a> = (&'a mut Gather, &'a Stream);

impl Joined {
    /// The own part, before the others are known, to where it was the last time.
    fn bring(&mut self, part: Part, change: u64, to: Intake<'_>) -> Result<()> {
        let own = Some(Own { change, from: part.address, at: self.before });
        let end = self.before + part.as_bytes().len();
        if self.own != own && end <= self.memory.capacity() {
            self.own = None;
            copy_in(self.memory.at(self.before), part.as_bytes(), to.1)?;
            to.0.keep(Box::new(part), to.1)?;
            self.own = own;
        }
        Ok(())
    }

    /// All parts, in the order of ranks, or all in one.
    fn arrive(&mut self, sent: &Sent, parts: Vec<Part>, rank: usize, to: &mut Intake<'_>) -> Result<()> {
        self.before = sent.bytes[..rank].iter().sum();
        if self.memory.reserve(sent.bytes.iter().sum())? {
            self.own = None;
        }
        let whole = parts.len() < sent.bytes.len();
        let own = Some(Own { change: sent.change, from: sent.part.address, at: self.before }).filter(|_| !whole);
        let is_here = own.is_some() && self.own == own;
        self.own = None;
        let mut at = 0;
        for (of, part) in parts.iter().enumerate() {
            let bytes = part.as_bytes();
            if of != rank || !is_here {
                copy_in(self.memory.at(at), bytes, to.1)?;
            }
            at += bytes.len();
        }
        to.0.keep(Box::new(parts), to.1)?;
        (self.own, self.held) = (own, Some(sent.part.clone()));
        Ok(())
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub struct World {
    /// The radius of elements without one of their own: an option that all ranks have alike.
    default_core: f64,
    pub inputs: Inputs,
    pub deal: Deal,
    /// Every rank is given the sources of all, and its part of the targets: devices of one process.
    pub shared: bool,
    /// What the last exchange of vortices was made of, and that of charges.
    seen: [Option<Seen>; 2],
    /// Exchanges that brought other positions and other strengths, of each.
    exchanged: [[u64; 2]; 2],
    /// By the names of their columns.
    joined: HashMap<&'static str, Joined>,
    /// Change counter and precision of the targets that were dealt, and `shared`.
    targets: Option<(u64, bool, bool)>,
    /// How often there were targets other than the own ones as they are.
    dealt: u64,
    /// The targets are the own ones, whose changes even numbers count.
    own_targets: bool,
    /// Targets of the rank that has the most.
    pub most_targets: usize,
}

impl World {
    pub fn new(default_core: f64) -> Self {
        Self { default_core, ..Self::default() }
    }

    /// Exchanges what has changed. There are sources of `field` somewhere, and targets.
    pub fn update<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        field: Field,
        keeps: bool,
        to: Intake<'_>,
    ) -> Result<()> {
        if self.shared {
            self.share(own);
        } else {
            self.exchange::<T>(line, call, own, table, field, to)?;
        }
        self.deal_targets::<T>(line, call, own, table, keeps)
    }

    /// Takes the sources that all ranks are given. Even numbers count their changes, odd ones those of sources that are exchanged.
    pub fn share(&mut self, own: &Inputs) {
        self.seen = [None, None];
        let targets = self.inputs.targets.take();
        self.inputs = Inputs {
            targets,
            target_positions: self.inputs.target_positions,
            vortex_positions: shared_change(own.vortex_positions),
            vortex_strengths: shared_change(own.vortex_strengths),
            charge_positions: shared_change(own.charge_positions),
            charge_strengths: shared_change(own.charge_strengths),
            segments: own.segments.clone(),
            particles: own.particles.clone(),
            charges: own.charges.clone(),
        };
    }

    fn exchange<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        field: Field,
        to: Intake<'_>,
    ) -> Result<()> {
        let (which, [positions, strengths]) = match field {
            Field::Velocity { .. } => (0, [own.vortex_positions, own.vortex_strengths]),
            Field::Potential { .. } => (1, [own.charge_positions, own.charge_strengths]),
        };
        let now = Seen { positions, strengths, double: T::IS_F64 };
        // An exchange that fails leaves nothing that could be taken for whole.
        let old = self.seen[which].take().filter(|_| !table.any(Of::SourcesOnDevice));
        let stays = old.as_ref().is_some_and(|old| *old == Seen { strengths: old.strengths, ..now.clone() });
        let all = old.as_ref() == Some(&now);
        match field {
            _ if all => {}
            Field::Velocity { .. } => self.exchange_vortices::<T>(line, call, own, table, stays, to)?,
            Field::Potential { .. } => self.exchange_charges::<T>(line, call, own, table, stays, to)?,
        }
        self.seen[which] = Some(now);
        let changes = [u64::from(!stays), u64::from(!all)];
        let exchanged: [u64; 2] = std::array::from_fn(|k| self.exchanged[which][k] + changes[k]);
        self.exchanged[which] = exchanged;
        let (inputs, counters) = (&mut self.inputs, exchanged.map(|n| 2 * n + 1));
        match field {
            Field::Velocity { .. } => [inputs.vortex_positions, inputs.vortex_strengths] = counters,
            Field::Potential { .. } => [inputs.charge_positions, inputs.charge_strengths] = counters,
        }
        Ok(())
    }

    /// Starts copying what changed of the own arrays to the device, where it can be foreseen how they are exchanged.
    pub fn bring(&mut self, line: &Line, own: &Inputs, to: Intake<'_>) -> Result<()> {
        columns(own)
            .into_iter()
            .try_for_each(|(column, reals, change)| self.bring_column(line, column, reals, change, (to.0, to.1)))
    }

    /// The same for one array.
    pub fn bring_array(&mut self, line: &Line, slot: Slot, array: &Reals, change: u64, to: Intake<'_>) -> Result<()> {
        let column = match slot {
            Slot::Points => POINTS,
            Slot::Circulation => CIRCULATION,
            Slot::SegmentCore => SEGMENT_CORES,
            Slot::Position => PARTICLES,
            Slot::Strength => STRENGTH,
            Slot::Core => PARTICLE_CORES,
            Slot::ChargePosition => CHARGES,
            Slot::Charge => CHARGE,
        };
        self.bring_column(line, column, array, change, to)
    }

    fn bring_column(&mut self, line: &Line, column: Column, array: &Reals, change: u64, to: Intake<'_>) -> Result<()> {
        if self.shared || line.sends() {
            return Ok(());
        }
        match (self.joined.get_mut(column.name), line.found_part(array)) {
            (Some(joined), Some(part)) => joined.bring(part, change, to),
            _ => Ok(()),
        }
    }

    /// The own targets as the engine gets them, where it is known that it gets them.
    pub fn foreseen_targets(&self, own: &Inputs) -> Inputs {
        let targets = own.targets.clone().filter(|_| !self.shared && self.own_targets);
        Inputs { targets, target_positions: 2 * own.target_positions, ..Inputs::default() }
    }

    /// Host and device memory of what was exchanged.
    pub fn bytes(&self) -> [u64; 2] {
        let held = |joined: &Joined| joined.held.as_ref().map_or(0, |part| part.as_bytes().len() as u64);
        [self.joined.values().map(held).sum(), self.joined.values().map(|joined| joined.memory.bytes()).sum()]
    }

    fn exchange_vortices<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        positions_stay: bool,
        to: Intake<'_>,
    ) -> Result<()> {
        let (s, p) = (own.segments.as_ref(), own.particles.as_ref());
        let [positions, strengths] = [own.vortex_positions, own.vortex_strengths];
        let communicator = line.communicator.clone();
        let sent = communicator.together(call, || {
            let mut out = Outgoing { line, table, sent: vec![] };
            if table.any(Of::Segments) {
                out.reals::<T>(CIRCULATION, s.map(|s| &s.circulation), strengths)?;
            }
            if table.any(Of::Particles) {
                out.reals::<T>(STRENGTH, p.map(|p| &p.strength), strengths)?;
            }
            if table.any(Of::Segments) && !positions_stay {
                out.reals::<T>(POINTS, s.map(|s| &s.points), positions)?;
                out.connectivity(s, positions)?;
                if table.any(Of::SegmentCores) {
                    out.cores::<T>(SEGMENT_CORES, s.map(|s| (s.n, s.core.as_ref(), s.default_core)), positions)?;
                }
            }
            if table.any(Of::Particles) && !positions_stay {
                out.reals::<T>(PARTICLES, p.map(|p| &p.position), positions)?;
                if table.any(Of::ParticleCores) {
                    out.cores::<T>(PARTICLE_CORES, p.map(|p| (p.n, p.core.as_ref(), p.default_core)), positions)?;
                }
            }
            Ok(out.sent)
        })?;
        self.join(line, call, sent, to)?;
        let default_core = self.default_core;
        self.inputs.segments = table.any(Of::Segments).then(|| SegmentInput {
            n: table.total(Of::Segments),
            points: self.reals::<T>(POINTS, table),
            connectivity: Ints::Device { address: self.address(CONNECTIVITY), len: 2 * table.total(Of::Segments) },
            ld: 2,
            index_base: 0,
            circulation: self.reals::<T>(CIRCULATION, table),
            core: table.any(Of::SegmentCores).then(|| self.reals::<T>(SEGMENT_CORES, table)),
            default_core,
        });
        self.inputs.particles = table.any(Of::Particles).then(|| ParticleInput {
            n: table.total(Of::Particles),
            position: self.reals::<T>(PARTICLES, table),
            strength: self.reals::<T>(STRENGTH, table),
            core: table.any(Of::ParticleCores).then(|| self.reals::<T>(PARTICLE_CORES, table)),
            default_core,
        });
        Ok(())
    }

    fn exchange_charges<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        positions_stay: bool,
        to: Intake<'_>,
    ) -> Result<()> {
        let c = own.charges.as_ref();
        let communicator = line.communicator.clone();
        let sent = communicator.together(call, || {
            let mut out = Outgoing { line, table, sent: vec![] };
            out.reals::<T>(CHARGE, c.map(|c| &c.charge), own.charge_strengths)?;
            if !positions_stay {
                out.reals::<T>(CHARGES, c.map(|c| &c.position), own.charge_positions)?;
            }
            Ok(out.sent)
        })?;
        self.join(line, call, sent, to)?;
        self.inputs.charges = Some(ChargeInput {
            n: table.total(Of::Charges),
            position: self.reals::<T>(CHARGES, table),
            charge: self.reals::<T>(CHARGE, table),
        });
        Ok(())
    }

    /// Has the parts of all ranks copied to the device.
    fn join(&mut self, line: &mut Line, call: &str, sent: Vec<Sent>, mut to: Intake<'_>) -> Result<()> {
        let own: Vec<Part> = sent.iter().map(|sent| sent.part.clone()).collect();
        let bytes: Vec<Vec<usize>> = sent.iter().map(|sent| sent.bytes.clone()).collect();
        let all = line.all(call, &own, &bytes)?;
        for (sent, parts) in sent.iter().zip(all) {
            let empty = || Joined { memory: Buffer::new(&line.context), own: None, before: 0, held: None };
            let joined = self.joined.entry(sent.column.name).or_insert_with(empty);
            joined.arrive(sent, parts, line.communicator.rank(), &mut to)?;
        }
        Ok(())
    }

    fn address(&self, column: Column) -> u64 {
        self.joined[column.name].memory.address()
    }

    fn reals<T: Wire>(&self, column: Column, table: &Table) -> Reals {
        T::device(self.address(column), column.width * table.total(column.of))
    }

    fn deal_targets<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        keeps: bool,
    ) -> Result<()> {
        let now = (own.target_positions, T::IS_F64, self.shared);
        let old = self.targets.take().filter(|_| self.shared || !table.any(Of::TargetsOnDevice));
        if old == Some(now) {
            self.targets = old;
            return Ok(());
        }
        let counts: Vec<usize> = table.counts(Of::Targets).collect();
        let may_look = !table.any(Of::TargetsOnDevice);
        let (deal, targets) = if keeps || self.shared {
            (Deal::default(), own.targets.clone())
        } else {
            Deal::new::<T>(line, call, own.targets.as_ref(), &counts, may_look)?
        };
        self.inputs.targets = targets;
        self.deal = deal;
        let lent = self.lend_a_target::<T>(line, table)?;
        self.own_targets = self.shared || may_look && !self.deal.is_moved() && !lent;
        self.dealt += 1;
        self.inputs.target_positions = if self.own_targets { 2 * own.target_positions } else { 2 * self.dealt + 1 };
        self.targets = Some(now);
        Ok(())
    }

    /// A rank without targets gets another one's, so that every rank takes part in every decision; nobody asks for the field there. Whether
    /// any rank got one: what is known of targets is counted alike on all ranks.
    fn lend_a_target<T: Wire>(&mut self, line: &mut Line, table: &Table) -> Result<bool> {
        let mine = self.inputs.targets.as_ref().map_or(0, |t| t.n);
        let counts: Vec<usize> = if self.deal.is_moved() {
            line.communicator.each(&[mine as f64])?.iter().map(|&n| n as usize).collect()
        } else {
            table.counts(Of::Targets).collect()
        };
        self.most_targets = counts.iter().copied().max().unwrap_or(0);
        let Some(lender) = counts.iter().position(|&n| n > 0).filter(|_| counts.contains(&0)) else { return Ok(false) };
        let first = match &self.inputs.targets {
            Some(t) if line.communicator.rank() == lender => line.own::<T>(&head(&t.position))?[..3].to_vec(),
            _ => vec![T::default(); 3],
        };
        let mine: Vec<f64> = first.iter().map(|x| x.to_f64()).collect();
        let all = line.communicator.each(&mine)?;
        if self.inputs.targets.as_ref().is_none_or(|t| t.n == 0) {
            let x: Vec<T> = all[3 * lender..3 * lender + 3].iter().map(|&x| T::from_f64(x)).collect();
            self.inputs.targets = Some(TargetInput { n: 1, position: T::host(x.into()) });
        }
        Ok(true)
    }
}

/// What counts a change of sources that all ranks are given.
pub fn shared_change(change: u64) -> u64 {
    2 * change
}

/// Arrays of sources that the own part of a column is taken from as it is, and the counters of their changes.
fn columns(own: &Inputs) -> Vec<(Column, &Reals, u64)> {
    let [positions, strengths] = [own.vortex_positions, own.vortex_strengths];
    let mut all = vec![];
    if let Some(s) = &own.segments {
        all.extend([(POINTS, &s.points, positions), (CIRCULATION, &s.circulation, strengths)]);
        all.extend(s.core.iter().map(|core| (SEGMENT_CORES, core, positions)));
    }
    if let Some(p) = &own.particles {
        all.extend([(PARTICLES, &p.position, positions), (STRENGTH, &p.strength, strengths)]);
        all.extend(p.core.iter().map(|core| (PARTICLE_CORES, core, positions)));
    }
    if let Some(c) = &own.charges {
        all.extend([(CHARGES, &c.position, own.charge_positions), (CHARGE, &c.charge, own.charge_strengths)]);
    }
    all
}

/// This rank's parts of the arrays of an exchange.
struct Outgoing<'a> {
    line: &'a mut Line,
    table: &'a Table,
    sent: Vec<Sent>,
}

impl Outgoing<'_> {
    fn push<T>(&mut self, column: Column, part: Part, change: u64) {
        self.sent.push(Sent { column, bytes: self.table.bytes::<T>(column), change, part });
    }

    /// A rank without such sources has an empty part.
    fn reals<T: Wire>(&mut self, column: Column, own: Option<&Reals>, change: u64) -> Result<()> {
        let part = match own {
            Some(reals) => self.line.part::<T>(reals)?,
            None => self.line.copied::<T>(&[])?,
        };
        self.push::<T>(column, part, change);
        Ok(())
    }

    /// Core radii: number of elements, their own radii, or the one that all have.
    fn cores<T: Wire>(&mut self, column: Column, own: Option<(usize, Option<&Reals>, f64)>, change: u64) -> Result<()> {
        let Some((n, None, default)) = own else {
            return self.reals::<T>(column, own.and_then(|(_, core, _)| core), change);
        };
        let part = self.line.copied(&memory::filled(T::from_f64(default), n))?;
        self.push::<T>(column, part, change);
        Ok(())
    }

    /// End points, numbered through the points of all ranks.
    fn connectivity(&mut self, own: Option<&SegmentInput>, change: u64) -> Result<()> {
        let (rank, all) = (self.line.communicator.rank(), self.table.total(Of::Points));
        if all > i32::MAX as usize {
            let message = format!("{all} points of all ranks; a GPU takes at most 2147483647");
            return Error::fail(WFMM_ERR_COUNT, message);
        }
        let points = [self.table.before(Of::Points, rank), self.table.counts(Of::Points).nth(rank).unwrap_or(0)];
        let part = match own {
            Some(s) => self.line.ends(&s.connectivity, s.n, s.ld, s.index_base, points)?,
            None => self.line.copied::<i32>(&[])?,
        };
        self.push::<i32>(CONNECTIVITY, part, change);
        Ok(())
    }
}

/// The first three numbers, where they would have to be fetched.
fn head(reals: &Reals) -> Reals {
    match reals {
        Reals::DeviceF32 { address, .. } => Reals::DeviceF32 { address: *address, len: 3 },
        Reals::DeviceF64 { address, .. } => Reals::DeviceF64 { address: *address, len: 3 },
        host => host.clone(),
    }
}
