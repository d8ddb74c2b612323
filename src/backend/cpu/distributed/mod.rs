//! The CPU's engine of a distributed session: each rank has its own sources and targets, the field is of all sources.
//!
//! ```text
//!   elements    records that travel between ranks
//!   ring        the direct sum: blocks of targets go round
//!   partition   sources and targets along a space-filling curve, and the way back
//!   shares      how much of the curve each rank gets: by number, or by the work of the evaluation before
//!   study       what many ranks would exchange and do, one after the other in one process
//!   sources     a part's own sources, joined with what it needs of other ranks (fmm/essential)
//!   whole       all sources and targets on every rank, for fields that do not depend on the number of ranks
//! ```
//!
//! Enters: `Inputs` of this rank. Leaves: the field at this rank's targets, in double precision, or by an FMM or a treecode in single
//! precision where that serves the tolerance; recipe and report of all ranks together. All functions run on all ranks alike; what decides is the
//! same number everywhere.

mod elements;
mod partition;
mod ring;
mod shares;
mod sources;
pub mod study;
mod whole;

use super::account::Account;
use super::direct::{Remote, Sum};
use super::engine::{CHECK_SHARE, Output, STORED_TOGETHER};
use super::fmm::{Fmm, Recipe, Request, Sink, SourceSet, rows};
use super::images::Periods;
use super::intake::{Unit, corners, corners_of_sources, targets_of};
use super::precision::TRIED_FROM;
use super::range;
use super::sources::{ChargeSources, VortexSources};
use super::tree::{Root, bounds, bounds_of};
use crate::backend::curve::around_all;
use crate::backend::draw::drawn;
use crate::backend::precision::{PrecisionFallback, PrecisionHistory, single_serves_on_ranks};
use crate::backend::verdict::{missed_by_pseudo_particles, relative, squares, unit_of};
use crate::backend::{self, Engine, Field};
use crate::distributed::{Communicator, Peers};
use crate::error::Result;
use crate::inputs::{Inputs, RealsMut};
use crate::logging::warn_once;
use crate::memory;
use crate::options::{Expansion, Method, PlanOptions, Precision, WFMM_PRECISION_F32, WFMM_PRECISION_F64};
use crate::report::{PASS_COUNT, Report};
use crate::simd::{Real, isa_name};
use elements::Elements;
use partition::Partition;
use rayon::prelude::*;
use ring::Values;
use shares::{Costs, Shares};
use sources::Shared;
use std::sync::Arc;
use std::time::Instant;
use whole::Whole;

/// One kind of sum with all that is kept between calls.
struct Side<const C: usize, S: Elements<f64, C>> {
    /// This rank's own, in its caller's order and in the unit of all ranks.
    sources: S,
    targets: Vec<[f64; 3]>,
    unit: Unit,
    /// Lower corner and size of the box around all ranks' elements and targets, in this unit.
    low: [f64; 3],
    size: f64,
    /// Sources and targets of all ranks.
    counts: [f64; 2],
    seen: Option<[u64; 3]>,
    direct: bool,
    /// What the far field keeps while nothing changes, in double and in single precision.
    double: Option<(Request, Double<C, S>)>,
    single: Option<(Request, Part<f32, C, S::Single>)>,
    /// The field that is next, or was last, is of `single`; and why others were not.
    by_single: bool,
    history: PrecisionHistory,
    /// What the direct sum keeps: the request that the periodic images are for; none where there are no periods, or no own sources.
    images: Option<(Request, Option<Remote>)>,
    /// The request that the direct sum was found faster for.
    declined: Option<Request>,
    /// Elements stay on the ranks that their callers have them on.
    keeps_host: bool,
    /// What the last field by expansions has cost.
    costs: Option<Costs>,
}

/// What makes a field in double precision: `Whole` where it is to be reproducible.
enum Double<const C: usize, S> {
    Part(Part<f64, C, S>),
    Whole(Whole<C, S>),
}

/// This rank's range of the curve, ready to be evaluated.
struct Part<T: Real, const C: usize, S> {
    root: Root,
    partition: Partition,
    sources: Shared<S>,
    fmm: Fmm<T, C>,
}

impl<const C: usize, S: Elements<f64, C>> Side<C, S> {
    fn new(sources: S, keeps_host: bool) -> Self {
        Self {
            sources,
            targets: vec![],
            unit: Unit::default(),
            low: [0.0; 3],
            size: 0.0,
            counts: [0.0; 2],
            seen: None,
            direct: true,
            double: None,
            single: None,
            by_single: false,
            history: PrecisionHistory::default(),
            images: None,
            declined: None,
            keeps_host,
            costs: None,
        }
    }

    /// Takes over the inputs where they have changed on any rank: sets are collective, so the counters agree.
    fn update(&mut self, peers: &Peers, inputs: &Inputs, options: &PlanOptions) -> Result<()> {
        let [positions, strengths] = S::counters(inputs);
        let seen = [positions, strengths, inputs.target_positions];
        if self.seen == Some(seen) {
            return Ok(());
        }
        (self.seen, self.double, self.single, self.declined, self.images) = (None, None, None, None, None);
        S::arrays(inputs)?;
        let boxes = [corners_of_sources::<f64, C, S>(inputs), corners::<f64, C, S>(inputs)];
        let boxes = boxes.map(|own| around_all(peers, own));
        self.unit = Unit::of_ranks(boxes, options.period, options.reproducible);
        let (low, high) = boxes[1];
        let size = (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max);
        (self.low, self.size) = (self.unit.inside(low), size * self.unit.scale);
        self.targets = targets_of(inputs, self.unit);
        self.sources.take_positions(inputs, self.unit);
        let mut counts = [self.sources.positions().0.len() as f64, self.targets.len() as f64];
        peers.sum(&mut counts);
        self.counts = counts;
        if let Some(periods) = self.unit.periods().filter(|_| !counts.contains(&0.0)) {
            self.check_periods(peers, periods, options.tolerance)?;
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// Refuses what has no sum over all images, or none that could be made, of all ranks' sources and targets.
    fn check_periods(&self, peers: &Peers, periods: Periods, tolerance: f64) -> Result<()> {
        let (positions, half) = self.sources.positions();
        let radius = |x: &[[f64; 3]], half: &[[f64; 3]]| match x.is_empty() {
            true => 0.0,
            false => periods.radius(bounds(x, half)),
        };
        let mut radii = [radius(positions, half), radius(&self.targets, &[])];
        peers.largest(&mut radii);
        let mut net = self.sources.net();
        peers.sum(&mut net);
        let length = 1.0 / self.unit.scale;
        self.unit.check_periods()?;
        periods.check(radii, length)?;
        backend::periods::check_net(net[0], net[1], periods.period)?;
        self.sources.check_cores(&periods, tolerance, length)
    }

    fn request(&self, options: &PlanOptions, gradient: bool) -> Request {
        Request::of(options, gradient, self.unit.periods())
    }

    /// Everything that is made before an evaluation.
    fn make_ready(&mut self, peers: &Peers, method: Method, request: Request, inputs: Option<(&Inputs, &PlanOptions)>) {
        self.prepare(peers, method, request, inputs);
        if self.direct {
            self.make_images(peers, request);
        }
    }

    /// Periodic images for the direct sum, or the caller's order where there are none, unless they are current.
    fn make_images(&mut self, peers: &Peers, request: Request) {
        if self.counts.contains(&0.0) || self.images.as_ref().is_some_and(|(of, _)| *of == request) {
            return;
        }
        let images = Remote::of_ranks(peers, &mut self.sources, &self.targets, request);
        if images.is_none() {
            self.sources.keep_order();
        }
        self.images = Some((request, images));
    }

    /// Partition, trees and lists for the FMM, unless they are current or the sum is to be direct. `inputs`: where single precision
    /// may be tried.
    fn prepare(&mut self, peers: &Peers, method: Method, request: Request, inputs: Option<(&Inputs, &PlanOptions)>) {
        self.by_single = false;
        self.direct = self.counts.contains(&0.0) || method == Method::Direct;
        if self.direct {
            return;
        }
        let auto = method == Method::Auto;
        if let Some((inputs, options)) = inputs.filter(|_| self.counts[0] * self.counts[1] >= TRIED_FROM) {
            let request = Request { for_double: true, ..request };
            let fallback = self.prepare_single(peers, auto, request, inputs, options);
            self.by_single = fallback.is_none();
            // Where expansions in single precision do not pay, those in double do not either.
            self.direct = fallback == Some(PrecisionFallback::Short);
            if self.by_single || self.direct {
                return;
            }
        }
        self.direct = auto && self.declined == Some(request);
        if self.direct || self.double.as_ref().is_some_and(|(of, _)| *of == request) {
            return;
        }
        let is_possible = request.reproducible && Whole::<C, S>::is_possible(peers, self.counts);
        let whole = is_possible.then(|| Whole::new(peers, &self.sources, &self.targets, request, auto));
        let double = match whole.filter(|whole| whole.is_common(peers)) {
            Some(whole) => whole.serves().then_some(Double::Whole(whole)),
            None => self.part_of(&self.sources, peers, request, auto).map(Double::Part),
        };
        self.direct = double.is_none();
        self.declined = self.direct.then_some(request);
        self.double = double.map(|double| (request, double));
    }

    /// The same in single precision, or why that does not serve.
    fn prepare_single(
        &mut self,
        peers: &Peers,
        auto: bool,
        request: Request,
        inputs: &Inputs,
        options: &PlanOptions,
    ) -> Option<PrecisionFallback> {
        let positions = self.seen.map_or([0; 2], |[sources, _, targets]| [sources, targets]);
        let known = self.history.before(positions);
        if known.is_some() || self.single.as_ref().is_some_and(|(of, _)| *of == request) {
            return known;
        }
        let unit = self.unit.scale / self.size;
        let fallback = match self.size > 0.0 && range::cores_need_double(inputs, options, unit) {
            core if peers.any(core) => Some(PrecisionFallback::Core),
            _ => match self.part_of(&self.sources.single(), peers, request, auto) {
                None => Some(PrecisionFallback::Short),
                Some(part) if peers.any(part.is_too_near(self.low, self.size)) => Some(PrecisionFallback::Distance),
                Some(part) => {
                    self.single = Some((request, part));
                    None
                }
            },
        };
        self.history.keep(fallback);
        fallback
    }

    /// This rank's part; nothing where a direct sum is expected to be faster.
    fn part_of<T: Real, X: Elements<T, C>>(
        &self,
        like: &X,
        peers: &Peers,
        request: Request,
        auto: bool,
    ) -> Option<Part<T, C, X>> {
        let all = [self.sources.positions().0, &self.targets];
        let root = Root::around(&[around_all(peers, bounds_of(2, |k| bounds(all[k], &[])))]);
        let shares = match &self.costs {
            _ if self.keeps_host => Shares::Host,
            // Nothing that was kept from other inputs may decide.
            Some(costs) if !request.reproducible => Shares::Costs(costs),
            _ => Shares::Counts,
        };
        let partition = Partition::new(peers, root, &self.sources, &self.targets, shares, self.unit.scale);
        let mut sources = Shared::new::<T, C>(like, memory::copy(&partition.records));
        let mut fmm = Fmm::default();
        let serves = fmm.prepare_shared(peers, &mut sources, &partition.targets, request, auto);
        serves.then_some(Part { root, partition, sources, fmm })
    }

    /// The field at this rank's targets, in the unit of the side.
    fn field(
        &mut self,
        peers: &Peers,
        method: Method,
        request: Request,
        inputs: Option<(&Inputs, &PlanOptions)>,
    ) -> Result<Values> {
        // A pass whose result was kept takes no time, whatever it took before.
        self.single.iter_mut().for_each(|(_, part)| part.fmm.seconds = Default::default());
        self.double.iter_mut().for_each(|(_, double)| *double.seconds() = Default::default());
        self.prepare(peers, method, request, inputs);
        if self.counts.contains(&0.0) {
            return Ok(Values::zero(C, self.targets.len(), request.gradient));
        }
        if self.by_single {
            if let Some(values) = self.by_fmm(peers, request.gradient) {
                return Ok(values);
            }
            self.single = None;
            self.history.keep(Some(PrecisionFallback::Tolerance));
            self.prepare(peers, method, request, None);
        }
        if !self.direct {
            if let Some(values) = self.by_fmm(peers, request.gradient) {
                return Ok(values);
            }
            if request.is_pseudo() {
                return Err(missed_by_pseudo_particles(request.tolerance, self.account().recipe.sampled_error));
            }
            warn_once!("the far field missed its tolerance on a sample of targets after two retries: summing directly");
            (self.direct, self.declined, self.double) = (true, Some(request), None);
        }
        self.make_images(peers, request);
        let images = self.images.as_ref().and_then(|(_, images)| images.as_ref());
        Ok(ring::direct(peers, &self.sources, images, &self.targets, request.gradient))
    }

    /// The field of the part that was prepared; nothing where it misses its tolerance.
    fn by_fmm(&mut self, peers: &Peers, gradient: bool) -> Option<Values> {
        let scale = self.unit.scale;
        let (values, costs) = match (self.by_single, &mut self.single, &mut self.double) {
            (true, Some((_, part)), _) => part.field(peers, gradient, scale)?,
            (false, _, Some((_, Double::Part(part)))) => part.field(peers, gradient, scale)?,
            (false, _, Some((_, Double::Whole(whole)))) => return whole.field(peers, gradient),
            _ => return None,
        };
        self.costs = Some(costs);
        Some(values)
    }

    fn account(&self) -> Account {
        let fmm = match self.by_single {
            true => self.single.as_ref().map(|(_, part)| part.told()),
            false => self.double.as_ref().map(|(_, double)| double.told()),
        };
        let direct = self.direct || fmm.is_none();
        let (recipe, seconds) = fmm.unwrap_or_default();
        Account { direct, in_double: false, recipe, seconds, pairs: (self.counts[0] * self.counts[1]) as u64 }
    }

    /// Whether every rank has everything for the field in double precision.
    fn is_whole(&self) -> bool {
        matches!(self.double, Some((_, Double::Whole(_))))
    }

    /// Memory of this rank.
    fn bytes(&self) -> u64 {
        let double = self.double.as_ref().map_or(0, |(_, double)| double.bytes());
        let single = self.single.as_ref().map_or(0, |(_, part)| part.bytes());
        let images = self.images.iter().filter_map(|(_, images)| images.as_ref()).map(Remote::bytes).sum::<usize>();
        self.sources.bytes() + self.targets.capacity() as u64 * 24 + double + single + images as u64
    }

    /// Squares of the differences from the direct sum, and of that sum, at `samples` targets of all ranks.
    fn compare(&mut self, peers: &Peers, values: &Values, request: Request, samples: usize, seed: u64) -> f64 {
        let (k, m) = (values.main.len() / self.targets.len().max(1), self.targets.len());
        let first: usize = peers.gather(&[m as f64]).0[..peers.rank()].iter().map(|&n| n as usize).sum();
        let mine: Vec<usize> = drawn(self.counts[1] as usize, samples, seed)
            .filter_map(|t| t.checked_sub(first).filter(|&t| t < m))
            .collect();
        let positions: Vec<[f64; 3]> = mine.iter().map(|&t| self.targets[t]).collect();
        let (all, counts) = peers.gather(positions.as_flattened());
        let before: usize = counts[..peers.rank()].iter().sum::<usize>() / 3;
        let points = all.as_chunks::<3>().0;
        // Images more exactly than any sum of the engine's own. They sort the sources as those do.
        let request = Request { tolerance: CHECK_SHARE * request.tolerance, gradient: false, ..request };
        let images = Remote::of_ranks(peers, &mut self.sources, &positions, request);
        let mut exact = Sum { sources: &self.sources, images: images.as_ref() }.exact(points, false);
        memory::resize(&mut exact, points.len() * rows(C, false), 0.0);
        peers.sum(&mut exact);
        let unit = unit_of(exact.iter().fold(0.0, |a, v| f64::max(a, v.abs())));
        let row = |(at, &t): (usize, &usize)| (0..k).map(move |row| (t * k + row, row * points.len() + before + at));
        let pairs = mine.iter().enumerate().flat_map(row);
        let mut sums = squares(pairs.map(|(got, want)| (values.main[got], exact[want])), unit);
        peers.sum(&mut sums);
        relative(sums)
    }
}

impl<const C: usize, S: Elements<f64, C>> Double<C, S> {
    /// Recipe and seconds of its passes.
    fn told(&self) -> (Recipe, [f64; PASS_COUNT]) {
        match self {
            Self::Part(part) => part.told(),
            Self::Whole(whole) => whole.told(),
        }
    }

    fn seconds(&mut self) -> &mut [f64; PASS_COUNT] {
        match self {
            Self::Part(part) => &mut part.fmm.seconds,
            Self::Whole(whole) => whole.seconds(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Part(part) => part.bytes(),
            Self::Whole(whole) => whole.bytes(),
        }
    }
}

impl<T: Real, const C: usize, S: Elements<T, C>> Part<T, C, S> {
    /// The field at the targets that this rank's caller has, and what it has cost, lengths times `scale`; nothing where it misses its
    /// tolerance.
    fn field(&mut self, peers: &Peers, gradient: bool, scale: f64) -> Option<(Values, Costs)> {
        let (main, all, m) = (rows(C, false), rows(C, gradient), self.partition.targets.len());
        let (mut u, mut g) = (memory::filled(T::ZERO, main * m), memory::filled(T::ZERO, (all - main) * m));
        let to_gradient = gradient.then_some(&mut g[..]);
        let mut sink =
            Sink { main: &mut u, gradient: to_gradient, main_factor: 1.0, per_length: 1.0, accumulate: false };
        let good = self.fmm.evaluate(&mut self.sources, &mut sink);
        let wide = |v: Vec<T>| -> Vec<f64> { memory::collect(v.into_iter().map(T::f64)) };
        if !good {
            return None;
        }
        let values = Values {
            main: self.partition.back(peers, &wide(u), main),
            gradient: if gradient { self.partition.back(peers, &wide(g), all - main) } else { vec![] },
        };
        Some((values, Costs::gather(peers, self.root, scale, &self.fmm.work())))
    }

    /// Recipe and seconds of its passes.
    fn told(&self) -> (Recipe, [f64; PASS_COUNT]) {
        (self.fmm.recipe.clone(), self.fmm.seconds)
    }

    /// Whether single precision cannot tell a source that is here from a target: every source near a target is.
    fn is_too_near(&self, low: [f64; 3], size: f64) -> bool {
        range::too_near(&self.sources.joined().ends(), &self.partition.targets, low, size)
    }

    fn bytes(&self) -> u64 {
        SourceSet::<T, C>::bytes(&self.sources) + self.fmm.bytes()
    }
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
        let keeps = options.host_partition;
        let (vortex, coulomb) = (Side::new(vortex, keeps), Side::new(ChargeSources::default(), keeps));
        let peers = Peers::of(&communicator);
        Self { options, pool, communicator, peers, vortex, coulomb, report: Report::default(), recipe: String::new() }
    }

    /// The field at this rank's targets in the caller's unit.
    fn field(&mut self, inputs: &Inputs, field: Field) -> Result<Values> {
        let (pool, communicator, peers) = (self.pool.clone(), self.communicator.clone(), self.peers.clone());
        let (options, gradient) = (self.options.clone(), field.has_gradient());
        let single = for_single(&options, inputs, field);
        let (vortex, coulomb) = (&mut self.vortex, &mut self.coulomb);
        let (mut values, scale) = communicator.run(&pool, &peers, "wfmm_plan_evaluate", || match field {
            Field::Velocity { .. } => {
                vortex.update(&peers, inputs, &options)?;
                let request = vortex.request(&options, gradient);
                Ok((vortex.field(&peers, options.method, request, single)?, vortex.unit.scale))
            }
            Field::Potential { .. } => {
                coulomb.update(&peers, inputs, &options)?;
                let request = coulomb.request(&options, gradient);
                Ok((coulomb.field(&peers, options.method, request, single)?, coulomb.unit.scale))
            }
        })?;
        let factor = self.options.normalization * scale;
        values.main.iter_mut().for_each(|v| *v *= factor);
        values.gradient.iter_mut().for_each(|v| *v = *v * factor * scale);
        Ok(values)
    }

    /// The recipe, and after an evaluation of so many seconds the report; of the numbers those of all ranks.
    fn tell(&mut self, field: Field, evaluation: Option<f64>) {
        let (account, by_single, is_whole) = match field {
            Field::Velocity { .. } => (self.vortex.account(), self.vortex.by_single, self.vortex.is_whole()),
            Field::Potential { .. } => (self.coulomb.account(), self.coulomb.by_single, self.coulomb.is_whole()),
        };
        let ranks = self.communicator.size();
        let (name, precision) = if by_single { ("f32", WFMM_PRECISION_F32) } else { ("f64", WFMM_PRECISION_F64) };
        let kind = format!("{name} on {ranks} ranks ({})", isa_name());
        self.recipe = account.in_words(&kind, self.options.tolerance, evaluation.is_some());
        if by_single {
            self.recipe += " Single precision serves the tolerance.";
        } else if self.options.precision == Precision::F32 {
            warn_once!(
                "double precision in place of single: ranks on CPUs use single precision for velocities of 4e6 pairs and more by an FMM or a treecode, where it keeps the tolerance"
            );
            self.recipe += " Single precision was asked for; ranks on CPUs use it for velocities of 4e6 pairs and more by an FMM or a treecode, where it keeps the tolerance.";
        }
        if !account.direct && ranks > 1 {
            let imbalance = account.recipe.imbalance;
            let has = match is_whole {
                true => {
                    "Every rank has all sources, and evaluates a part of the targets as one process would".to_string()
                }
                false => {
                    let [sources, cells] = account.recipe.guests;
                    let own =
                        if self.options.host_partition { "what its caller has" } else { "a range of a Morton curve" };
                    format!(
                        "A rank has {own}, and beside its own sources at most {sources} sources of others and {cells} multipoles of theirs"
                    )
                }
            };
            self.recipe += &format!(" {has}; the busiest has {imbalance:.2} times the mean work.");
        }
        if let Some(seconds) = evaluation {
            self.report = account.numbers(precision, seconds);
        }
    }
}

impl Engine for DistributedEngine {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        let (pool, communicator, peers) = (self.pool.clone(), self.communicator.clone(), self.peers.clone());
        let (options, gradient) = (self.options.clone(), field.has_gradient());
        let single = for_single(&options, inputs, field);
        let (vortex, coulomb) = (&mut self.vortex, &mut self.coulomb);
        communicator.run(&pool, &peers, "wfmm_plan_prepare", || match field {
            Field::Velocity { .. } => {
                vortex.update(&peers, inputs, &options)?;
                let request = vortex.request(&options, gradient);
                vortex.make_ready(&peers, options.method, request, single);
                Ok(())
            }
            Field::Potential { .. } => {
                coulomb.update(&peers, inputs, &options)?;
                let request = coulomb.request(&options, gradient);
                coulomb.make_ready(&peers, options.method, request, single);
                Ok(())
            }
        })?;
        self.tell(field, None);
        Ok(())
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        let start = Instant::now();
        let pool = self.pool.clone();
        let (main, gradient) = self.communicator.together("wfmm_plan_evaluate", || {
            pool.install(|| Ok((Output::<f64>::new(main)?, gradient.map(Output::<f64>::new).transpose()?)))
        })?;
        let values = self.field(inputs, field)?;
        // Written only when all ranks have their fields.
        let add = self.options.accumulate;
        pool.install(|| {
            write(main, &values.main, add);
            if let Some(gradient) = gradient {
                write(gradient, &values.gradient, add);
            }
        });
        self.tell(field, Some(start.elapsed().as_secs_f64()));
        Ok(())
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        let (pool, communicator, peers) = (self.pool.clone(), self.communicator.clone(), self.peers.clone());
        let options = self.options.clone();
        let single = for_single(&options, inputs, field);
        let (vortex, coulomb) = (&mut self.vortex, &mut self.coulomb);
        communicator.run(&pool, &peers, "wfmm_plan_check", || match field {
            Field::Velocity { .. } => {
                vortex.update(&peers, inputs, &options)?;
                let request = vortex.request(&options, false);
                let values = vortex.field(&peers, options.method, request, single)?;
                Ok(vortex.compare(&peers, &values, request, samples, seed))
            }
            Field::Potential { .. } => {
                coulomb.update(&peers, inputs, &options)?;
                let request = coulomb.request(&options, false);
                let values = coulomb.field(&peers, options.method, request, single)?;
                Ok(coulomb.compare(&peers, &values, request, samples, seed))
            }
        })
    }

    fn recipe(&self) -> String {
        self.recipe.clone()
    }

    fn report(&self) -> Report {
        Report { host_bytes: self.vortex.bytes() + self.coulomb.bytes(), ..self.report.clone() }
    }
}

/// Inputs for a trial of single precision. Not by pseudo-particles, and not with periods: `range` looks at no pair through a face of
/// the domain.
fn for_single<'a>(options: &'a PlanOptions, inputs: &'a Inputs, field: Field) -> Option<(&'a Inputs, &'a PlanOptions)> {
    let is_open = options.period.is_none() && options.expansion == Expansion::Harmonics;
    (is_open && single_serves_on_ranks(options, field)).then_some((inputs, options))
}

fn write(mut to: Output<'_, f64>, values: &[f64], add: bool) {
    let adds = add && matches!(to, Output::Own(_));
    let pairs = to.numbers().par_iter_mut().zip(values).with_min_len(STORED_TOGETHER);
    pairs.for_each(|(t, v)| *t = if adds { *t + v } else { *v });
    to.store(add);
}
