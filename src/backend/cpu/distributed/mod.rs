//! The CPU's engine of a distributed session: each rank has its own sources and targets, the field is of all sources.
//!
//! ```text
//!   elements    records that travel between ranks
//!   ring        the direct sum: blocks of sources go round
//! ```
//!
//! Enters: `Inputs` of this rank. Leaves: the field at this rank's targets, in double precision; recipe and report of all
//! ranks together. All functions run on all ranks alike; what decides is the same number everywhere.

mod elements;
mod ring;

use super::account::Facts;
use super::engine::Output;
use super::intake::{Unit, corners, targets_of};
use super::sources::{ChargeSources, VortexSources};
use crate::backend::{Engine, Field};
use crate::distributed::{Communicator, Peers};
use crate::error::Result;
use crate::inputs::{Inputs, RealsMut};
use crate::memory;
use crate::options::PlanOptions;
use crate::report::Report;
use crate::simd::isa_name;
use elements::Elements;
use ring::Values;
use std::sync::Arc;
use std::time::Instant;

/// One kind of sum with all that is kept between calls.
struct Side<const C: usize, S> {
    /// This rank's own, in its caller's order and in the unit of all ranks.
    sources: S,
    targets: Vec<[f64; 3]>,
    unit: Unit,
    /// Sources and targets of all ranks.
    counts: [f64; 2],
    seen: Option<[u64; 3]>,
    direct: bool,
}

impl<const C: usize, S: Elements<C>> Side<C, S> {
    fn new(sources: S) -> Self {
        Self { sources, targets: vec![], unit: Unit::default(), counts: [0.0; 2], seen: None, direct: true }
    }

    /// Takes over the inputs where they have changed on any rank: sets are collective, so the counters agree.
    fn update(&mut self, peers: &Peers, inputs: &Inputs) -> Result<()> {
        let [places, strengths] = S::counters(inputs);
        let seen = [places, strengths, inputs.target_places];
        if self.seen == Some(seen) {
            return Ok(());
        }
        self.seen = None;
        S::arrays(inputs)?;
        let (low, high) = corners::<f64, C, S>(inputs);
        let mut extent = [-low[0], -low[1], -low[2], high[0], high[1], high[2]];
        peers.largest(&mut extent);
        let [x, y, z, ..] = extent;
        self.unit = Unit::around(([-x, -y, -z], [extent[3], extent[4], extent[5]]), false);
        self.targets = targets_of(inputs, self.unit);
        self.sources.take_places(inputs, self.unit);
        let mut counts = [self.sources.places().0.len() as f64, self.targets.len() as f64];
        peers.sum(&mut counts);
        (self.counts, self.seen) = (counts, Some(seen));
        Ok(())
    }

    /// The field at this rank's targets, in the unit of the side.
    fn field(&mut self, peers: &Peers, gradient: bool) -> Values {
        if self.counts.contains(&0.0) {
            self.direct = true;
            return Values::zero(C, self.targets.len(), gradient);
        }
        self.direct = true;
        ring::direct(peers, &self.sources, &self.targets, gradient)
    }

    /// Squares of the differences from the direct sum, and of that sum, at `samples` targets of all ranks.
    fn compare(&self, peers: &Peers, values: &Values, samples: usize, seed: u64) -> f64 {
        let (k, m) = (values.main.len() / self.targets.len().max(1), self.targets.len());
        let first: usize = peers.gather(&[m as f64]).0[..peers.rank()].iter().map(|&n| n as usize).sum();
        let mine: Vec<usize> = drawn(self.counts[1] as usize, samples, seed)
            .filter_map(|t| t.checked_sub(first).filter(|&t| t < m))
            .collect();
        let places: Vec<f64> = mine.iter().flat_map(|&t| self.targets[t]).collect();
        let (all, counts) = peers.gather(&places);
        let before: usize = counts[..peers.rank()].iter().sum::<usize>() / 3;
        let points = all.as_chunks::<3>().0;
        let mut exact = self.sources.exact(points, false);
        memory::resize(&mut exact, points.len() * super::fmm::rows(C, false), 0.0);
        peers.sum(&mut exact);
        let unit = super::fmm::unit_of(exact.iter().fold(0.0, |a, v| f64::max(a, v.abs())));
        let mut sums = [0.0; 2];
        for (at, &t) in mine.iter().enumerate() {
            for row in 0..k {
                let want = exact[row * points.len() + before + at] / unit;
                sums[0] += (values.main[t * k + row] / unit - want).powi(2);
                sums[1] += want * want;
            }
        }
        peers.sum(&mut sums);
        if sums[0] == 0.0 { 0.0 } else { (sums[0] / sums[1]).sqrt() }
    }
}

/// Numbers of `samples` out of `n` targets; all of them, where there are no more.
fn drawn(n: usize, samples: usize, seed: u64) -> Box<dyn Iterator<Item = usize>> {
    if samples >= n {
        return Box::new(0..n);
    }
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    Box::new((0..samples).map(move |_| {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }))
}

/// See the head of this file.
pub struct DistributedEngine {
    options: PlanOptions,
    pool: Arc<rayon::ThreadPool>,
    communicator: Communicator,
    peers: Peers,
    vortex: Side<3, VortexSources<f64>>,
    coulomb: Side<1, ChargeSources<f64>>,
    report: Report,
    recipe: String,
}

impl DistributedEngine {
    pub fn new(options: PlanOptions, pool: Arc<rayon::ThreadPool>, communicator: Communicator) -> Self {
        let vortex = VortexSources::new(options.segment_regularization, options.particle_regularization);
        let (vortex, coulomb) = (Side::new(vortex), Side::new(ChargeSources::default()));
        let peers = Peers::of(&communicator);
        Self { options, pool, communicator, peers, vortex, coulomb, report: Report::default(), recipe: String::new() }
    }

    /// The field at this rank's targets in the caller's unit.
    fn field(&mut self, inputs: &Inputs, field: Field) -> Result<Values> {
        let (pool, communicator, peers) = (self.pool.clone(), self.communicator.clone(), self.peers.clone());
        let (vortex, coulomb) = (&mut self.vortex, &mut self.coulomb);
        let (mut values, scale) = communicator.run(&pool, &peers, "wfmm_plan_evaluate", || match field {
            Field::Velocity { gradient } => {
                vortex.update(&peers, inputs)?;
                Ok((vortex.field(&peers, gradient), vortex.unit.scale))
            }
            Field::Potential { gradient } => {
                coulomb.update(&peers, inputs)?;
                Ok((coulomb.field(&peers, gradient), coulomb.unit.scale))
            }
        })?;
        let factor = self.options.normalization * scale;
        values.main.iter_mut().for_each(|v| *v *= factor);
        values.gradient.iter_mut().for_each(|v| *v = *v * factor * scale);
        Ok(values)
    }

    fn tell(&mut self, field: Field, seconds: f64) {
        let (direct, counts) = match field {
            Field::Velocity { .. } => (self.vortex.direct, self.vortex.counts),
            Field::Potential { .. } => (self.coulomb.direct, self.coulomb.counts),
        };
        let facts = Facts {
            direct,
            recipe: super::fmm::Recipe::default(),
            seconds: Default::default(),
            pairs: (counts[0] * counts[1]) as u64,
        };
        let ranks = self.communicator.size();
        let kind = format!("f64 on {ranks} ranks of {} threads ({})", self.pool.current_num_threads(), isa_name());
        self.recipe = facts.in_words(&kind, self.options.tolerance, true);
        self.report = facts.numbers(2, seconds);
    }
}

impl Engine for DistributedEngine {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        let (pool, communicator, peers) = (self.pool.clone(), self.communicator.clone(), self.peers.clone());
        let (vortex, coulomb) = (&mut self.vortex, &mut self.coulomb);
        communicator.run(&pool, &peers, "wfmm_plan_prepare", || match field {
            Field::Velocity { .. } => vortex.update(&peers, inputs),
            Field::Potential { .. } => coulomb.update(&peers, inputs),
        })
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        let start = Instant::now();
        let (mut main, mut gradient) = self.communicator.together("wfmm_plan_evaluate", || {
            Ok((Output::<f64>::new(main)?, gradient.map(Output::<f64>::new).transpose()?))
        })?;
        let values = self.field(inputs, field)?;
        // Written only when all ranks have their fields.
        let add = self.options.accumulate;
        write(&mut main, &values.main, add);
        main.store(add);
        if let Some(mut gradient) = gradient.take() {
            write(&mut gradient, &values.gradient, add);
            gradient.store(add);
        }
        self.tell(field, start.elapsed().as_secs_f64());
        Ok(())
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        let (pool, communicator, peers) = (self.pool.clone(), self.communicator.clone(), self.peers.clone());
        let (vortex, coulomb) = (&mut self.vortex, &mut self.coulomb);
        communicator.run(&pool, &peers, "wfmm_plan_check", || match field {
            Field::Velocity { .. } => {
                vortex.update(&peers, inputs)?;
                let values = vortex.field(&peers, false);
                Ok(vortex.compare(&peers, &values, samples, seed))
            }
            Field::Potential { .. } => {
                coulomb.update(&peers, inputs)?;
                let values = coulomb.field(&peers, false);
                Ok(coulomb.compare(&peers, &values, samples, seed))
            }
        })
    }

    fn recipe(&self) -> String {
        self.recipe.clone()
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}

fn write(to: &mut Output<'_, f64>, values: &[f64], add: bool) {
    let add = add && matches!(to, Output::Own(_));
    to.numbers().iter_mut().zip(values).for_each(|(t, v)| *t = if add { *t + v } else { *v });
}
