//! The sources of all ranks on every rank, and the targets that this rank computes at.
//!
//! Enters: each rank's own inputs. Leaves: `Inputs` with all sources, for an engine that knows of no other ranks. What has not
//! changed since the last call is not exchanged again; what some rank has in device memory always is.

use super::deal::Deal;
use super::wire::{Line, Wire};
use crate::backend::Field;
use crate::error::{Error, Result, WFMM_ERR_COUNT};
use crate::inputs::{ChargeInput, Inputs, Ints, ParticleInput, Reals, SegmentInput, TargetInput};
use crate::memory;

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

    /// Numbers that each rank has of an array.
    fn numbers(&self, column: Column) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.counts(column.of).map(move |n| column.width * n)
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

/// See the head of this file.
#[derive(Debug, Default)]
pub struct World {
    pub inputs: Inputs,
    pub deal: Deal,
    /// Every rank is given the sources of all, and its part of the targets: devices of one process.
    pub shared: bool,
    /// What the last exchange of vortices was made of, and that of charges.
    seen: [Option<Seen>; 2],
    /// Exchanges that brought other positions and other strengths, of each.
    exchanged: [[u64; 2]; 2],
    /// Change counter and precision of the targets that were dealt, and `shared`.
    targets: Option<(u64, bool, bool)>,
    /// Targets of the rank that has the most.
    pub most_targets: usize,
}

impl World {
    /// Exchanges what has changed. There are sources of `field` somewhere, and targets.
    pub fn update<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        field: Field,
        keeps: bool,
    ) -> Result<()> {
        if self.shared {
            self.share(own);
        } else {
            self.exchange::<T>(line, call, own, table, field)?;
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
            vortex_positions: 2 * own.vortex_positions,
            vortex_strengths: 2 * own.vortex_strengths,
            charge_positions: 2 * own.charge_positions,
            charge_strengths: 2 * own.charge_strengths,
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
            Field::Velocity { .. } => self.exchange_vortices::<T>(line, call, own, table, stays)?,
            Field::Potential { .. } => self.exchange_charges::<T>(line, call, own, table, stays)?,
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

    /// Host memory of what was exchanged.
    pub fn bytes(&self) -> u64 {
        if self.shared {
            return 0;
        }
        let (s, p, c) = (&self.inputs.segments, &self.inputs.particles, &self.inputs.charges);
        let mut arrays: Vec<&Reals> = vec![];
        arrays.extend(s.iter().flat_map(|s| [&s.points, &s.circulation].into_iter().chain(&s.core)));
        arrays.extend(p.iter().flat_map(|p| [&p.position, &p.strength].into_iter().chain(&p.core)));
        arrays.extend(c.iter().flat_map(|c| [&c.position, &c.charge]));
        let ends = s.as_ref().map_or(0, |s| 2 * s.n * size_of::<i32>());
        let bytes = |r: &&Reals| r.numbers() * if is_double(r) { 8 } else { 4 };
        (ends + arrays.iter().map(bytes).sum::<usize>()) as u64
    }

    fn exchange_vortices<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        positions_stay: bool,
    ) -> Result<()> {
        let all = &mut self.inputs;
        if table.any(Of::Segments) {
            let s = own.segments.as_ref();
            let circulation = gather::<T>(line, call, table, CIRCULATION, s.map(|s| &s.circulation))?;
            match &mut all.segments {
                Some(segments) if positions_stay => segments.circulation = circulation,
                slot => *slot = Some(exchange_segments::<T>(line, call, s, table, circulation)?),
            }
        } else {
            all.segments = None;
        }
        if table.any(Of::Particles) {
            let p = own.particles.as_ref();
            let n = table.total(Of::Particles);
            let strength = gather::<T>(line, call, table, STRENGTH, p.map(|p| &p.strength))?;
            match &mut all.particles {
                Some(particles) if positions_stay => particles.strength = strength,
                slot => {
                    let position = gather::<T>(line, call, table, PARTICLES, p.map(|p| &p.position))?;
                    let cores = p.map(|p| (p.n, p.core.as_ref(), p.default_core));
                    let core = gather_cores::<T>(line, call, table, PARTICLE_CORES, Of::ParticleCores, cores)?;
                    let default_core = first_core(line, p.map(|p| p.default_core))?;
                    *slot = Some(ParticleInput { n, position, strength, core, default_core });
                }
            }
        } else {
            all.particles = None;
        }
        Ok(())
    }

    fn exchange_charges<T: Wire>(
        &mut self,
        line: &mut Line,
        call: &str,
        own: &Inputs,
        table: &Table,
        positions_stay: bool,
    ) -> Result<()> {
        let (c, n) = (own.charges.as_ref(), table.total(Of::Charges));
        let charge = gather::<T>(line, call, table, CHARGE, c.map(|c| &c.charge))?;
        match &mut self.inputs.charges {
            Some(charges) if positions_stay => charges.charge = charge,
            slot => {
                let position = gather::<T>(line, call, table, CHARGES, c.map(|c| &c.position))?;
                *slot = Some(ChargeInput { n, position, charge });
            }
        }
        Ok(())
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
        self.lend_a_target::<T>(line)?;
        self.inputs.target_positions += 1;
        self.targets = Some(now);
        Ok(())
    }

    /// A rank without targets gets another one's, so that every rank takes part in every decision; nobody asks for the field there.
    fn lend_a_target<T: Wire>(&mut self, line: &mut Line) -> Result<()> {
        let mine = self.inputs.targets.as_ref().map_or(0, |t| t.n);
        let counts: Vec<usize> = line.communicator.each(&[mine as f64])?.iter().map(|&n| n as usize).collect();
        self.most_targets = counts.iter().copied().max().unwrap_or(0);
        let Some(lender) = counts.iter().position(|&n| n > 0).filter(|_| counts.contains(&0)) else { return Ok(()) };
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

/// An array of all ranks.
fn gather<T: Wire>(line: &mut Line, call: &str, table: &Table, column: Column, own: Option<&Reals>) -> Result<Reals> {
    let none = Reals::HostF32(vec![].into());
    let mine = line.own::<T>(own.unwrap_or(&none))?;
    Ok(T::host(line.all(call, column.name, &mine, table.numbers(column))?))
}

/// Core radii of all ranks: none where no rank has any of its own.
fn gather_cores<T: Wire>(
    line: &mut Line,
    call: &str,
    table: &Table,
    column: Column,
    cores: Of,
    own: Option<(usize, Option<&Reals>, f64)>,
) -> Result<Option<Reals>> {
    if !table.any(cores) {
        return Ok(None);
    }
    let filled;
    let own = match own {
        Some((n, None, default)) => {
            filled = T::host(memory::filled(T::from_f64(default), n).into());
            Some(&filled)
        }
        Some((_, core, _)) => core,
        None => None,
    };
    gather::<T>(line, call, table, column, own).map(Some)
}

/// The radius of elements without one of their own, an option that all ranks have alike; a rank without elements asks the others.
fn first_core(line: &Line, own: Option<f64>) -> Result<f64> {
    Ok(line.communicator.largest(&[own.unwrap_or(0.0)])?[0])
}

fn exchange_segments<T: Wire>(
    line: &mut Line,
    call: &str,
    s: Option<&SegmentInput>,
    table: &Table,
    circulation: Reals,
) -> Result<SegmentInput> {
    let rank = line.communicator.rank();
    let (n, all_points) = (table.total(Of::Segments), table.total(Of::Points));
    if all_points > i32::MAX as usize {
        return Err(Error::new(
            WFMM_ERR_COUNT,
            format!("{all_points} points of all ranks; a GPU takes at most 2147483647"),
        ));
    }
    let points = gather::<T>(line, call, table, POINTS, s.map(|s| &s.points))?;
    let (before, own) = (table.before(Of::Points, rank), table.counts(Of::Points).nth(rank).unwrap_or(0));
    let ends = match s {
        Some(s) => line.ends(&s.connectivity, s.n, s.ld, s.index_base, [before, own])?,
        None => vec![],
    };
    let connectivity = Ints::Host(line.all(call, CONNECTIVITY.name, &ends, table.numbers(CONNECTIVITY))?);
    let cores = s.map(|s| (s.n, s.core.as_ref(), s.default_core));
    let core = gather_cores::<T>(line, call, table, SEGMENT_CORES, Of::SegmentCores, cores)?;
    let default_core = first_core(line, s.map(|s| s.default_core))?;
    Ok(SegmentInput { n, points, connectivity, ld: 2, index_base: 0, circulation, core, default_core })
}
