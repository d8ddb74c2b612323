//! The CPU's engine: from a plan's inputs to fields, by the FMM, the treecode or the direct sum.
//!
//! Enters: `Inputs` in the caller's unit and precision. Leaves: fields in the caller's arrays. `intake` brings the inputs
//! into the unit of the problem; here the field is scaled back at the end.

use super::account::Account;
use super::direct::{Remote, Sum};
use super::fmm::{Changes, Fmm, Request, Sink, SourceSet, rows};
use super::images::Periods;
use super::intake::{Intake, Unit, device_memory, targets_of};
use super::sources::{ChargeSources, VortexSources, largest};
use super::tree::bounds;
use crate::backend::draw::drawn;
use crate::backend::periods;
use crate::backend::verdict::{missed_by_pseudo_particles, relative, squares, unit_of};
use crate::backend::{Engine, Field};
use crate::error::Result;
use crate::inputs::{Inputs, RealsMut};
use crate::logging::warn_once;
use crate::memory;
use crate::options::{Method, PlanOptions, WFMM_PRECISION_F32, WFMM_PRECISION_F64};
use crate::report::Report;
use crate::simd::{Real, isa_name};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Instant;

/// One kind of sum with all that is kept between calls.
struct Side<T: Real, const C: usize, S> {
    sources: S,
    targets: Vec<[f64; 3]>,
    fmm: Fmm<T, C>,
    /// Counters of the inputs that `sources` and `targets` were made of.
    seen: Option<[u64; 3]>,
    unit: Unit,
    /// What was decided last.
    direct: bool,
    /// The direct sum was in double, because single precision has too few digits for it.
    in_double: bool,
    request: Option<Request>,
    /// Periodic images, where the sum is direct.
    images: Option<Remote>,
}

impl<T: Real, const C: usize, S> Side<T, C, S> {
    fn new(sources: S) -> Self {
        Self {
            sources,
            targets: vec![],
            fmm: Fmm::default(),
            seen: None,
            unit: Unit::default(),
            direct: false,
            in_double: false,
            request: None,
            images: None,
        }
    }
}

/// Periodic images in a check are summed for this part of the tolerance.
pub const CHECK_SHARE: f64 = 0.1;

/// What became of a field by FMM or treecode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByFmm {
    Done,
    /// A direct sum is asked for or expected to be faster.
    Declined,
    /// Its error is above the tolerance at a sample of targets.
    Missed,
}

/// See the head of this file.
pub struct CpuEngine<T: Real> {
    options: PlanOptions,
    /// See `Request::for_double`.
    for_double: bool,
    pool: Arc<rayon::ThreadPool>,
    vortex: Side<T, 3, VortexSources<T>>,
    coulomb: Side<T, 1, ChargeSources<T>>,
    report: Report,
    recipe: String,
}

impl<T: Real> CpuEngine<T> {
    pub fn new(options: PlanOptions, pool: Arc<rayon::ThreadPool>) -> Self {
        let vortex = VortexSources::new(options.segment_regularization, options.particle_regularization);
        let (vortex, coulomb) = (Side::new(vortex), Side::new(ChargeSources::default()));
        Self { options, for_double: false, pool, vortex, coulomb, report: Report::default(), recipe: String::new() }
    }

    /// For double arrays whose other sums are in double precision.
    pub fn for_double(self) -> Self {
        Self { for_double: true, ..self }
    }

    /// From now on.
    pub fn use_method(&mut self, method: Method) {
        self.options.method = method;
    }

    /// Whether the next field of this kind is a direct sum, by what `prepare` found.
    pub fn is_direct(&self, field: Field) -> bool {
        match field {
            Field::Velocity { .. } => self.vortex.direct,
            Field::Potential { .. } => self.coulomb.direct,
        }
    }

    fn request(&self, gradient: bool, unit: Unit) -> Request {
        Request { for_double: self.for_double, ..Request::of(&self.options, gradient, unit.periods()) }
    }

    /// Trees, lists and choices for a field.
    fn ready(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        let pool = self.pool.clone();
        pool.install(|| {
            let method = self.options.method;
            match field {
                Field::Velocity { gradient } => {
                    let changes = self.vortex.update(inputs, &self.options, gradient)?;
                    let request = self.request(gradient, self.vortex.unit);
                    self.vortex.prepare(changes, request, method);
                }
                Field::Potential { gradient } => {
                    let changes = self.coulomb.update(inputs, &self.options, gradient)?;
                    let request = self.request(gradient, self.coulomb.unit);
                    self.coulomb.prepare(changes, request, method);
                }
            }
            Ok(())
        })
    }

    /// Whether the field is in the arrays; else double precision takes over.
    fn is_written(&self, by_fmm: ByFmm) -> bool {
        !self.for_double || by_fmm == ByFmm::Done
    }

    /// The recipe, and after an evaluation of so many seconds the report.
    fn tell(&mut self, field: Field, evaluation: Option<f64>) {
        let account = match field {
            Field::Velocity { .. } => account(&self.vortex),
            Field::Potential { .. } => account(&self.coulomb),
        };
        let in_double = T::IS_F64 || account.in_double;
        let (name, precision) = if in_double { ("f64", WFMM_PRECISION_F64) } else { ("f32", WFMM_PRECISION_F32) };
        let kind = format!("{name} on {} threads ({})", self.pool.current_num_threads(), isa_name());
        self.recipe = account.in_words(&kind, self.options.tolerance, evaluation.is_some());
        if let Some(seconds) = evaluation {
            self.report = account.numbers(precision, seconds);
        }
    }

    /// The field, and what became of the FMM. With `for_double` no other sum takes its place: unless it is done, nothing is added to any
    /// array, and arrays that are not added to hold anything.
    pub fn compute(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<ByFmm> {
        let start = Instant::now();
        // A pass that is skipped takes no time, whatever it took before.
        match field {
            Field::Velocity { .. } => self.vortex.fmm.seconds = Default::default(),
            Field::Potential { .. } => self.coulomb.fmm.seconds = Default::default(),
        }
        self.ready(inputs, field)?;
        let unit = if matches!(field, Field::Velocity { .. }) { self.vortex.unit } else { self.coulomb.unit };
        let (norm, tolerance, accumulate) =
            (self.options.normalization, self.options.tolerance, self.options.accumulate);
        let pool = self.pool.clone();
        let by_fmm = pool.install(|| {
            let (mut main, mut gradient) = (Output::<T>::new(main)?, gradient.map(Output::<T>::new).transpose()?);
            let mut sink = Sink {
                main: main.numbers(),
                gradient: gradient.as_mut().map(Output::numbers),
                main_factor: norm * unit.scale,
                per_length: unit.scale,
                accumulate,
            };
            let by_fmm = match field {
                Field::Velocity { gradient } => self.vortex.evaluate(gradient, tolerance, &mut sink)?,
                Field::Potential { gradient } => self.coulomb.evaluate(gradient, tolerance, &mut sink)?,
            };
            if self.is_written(by_fmm) {
                main.store(accumulate);
                if let Some(g) = gradient {
                    g.store(accumulate);
                }
            }
            Ok(by_fmm)
        })?;
        if self.is_written(by_fmm) {
            self.tell(field, Some(start.elapsed().as_secs_f64()));
        }
        Ok(by_fmm)
    }
}

impl<T: Real, const C: usize, S: Intake<T, C>> Side<T, C, S> {
    /// Takes over what changed in the inputs since the last call; where reproducible, any change makes everything anew, of what is asked
    /// for too.
    fn update(&mut self, inputs: &Inputs, options: &PlanOptions, gradient: bool) -> Result<Changes> {
        let [positions, strengths] = S::counters(inputs);
        let seen = [positions, strengths, inputs.target_positions];
        let arrays = S::arrays(inputs)?;
        let differs = |k: usize| self.seen.is_none_or(|old| old[k] != seen[k]);
        let mut changes = Changes { sources: differs(0), strengths: differs(1), targets: differs(2) };
        let asked_otherwise = self.request.is_some_and(|request| request.gradient != gradient);
        if options.reproducible && (asked_otherwise || changes != Changes::default()) {
            changes = Changes { sources: true, strengths: true, targets: true };
        }
        if changes.targets || changes.sources {
            let mut unit = Unit::of::<T, C, S>(inputs, &arrays, options.period);
            // A new scale would cost the upward pass: the old one serves while it is near.
            if !changes.sources && self.unit.serves::<T>(unit) {
                unit = self.unit;
            }
            if changes.sources || unit != self.unit {
                changes = Changes { sources: true, strengths: true, targets: true };
            }
            self.unit = unit;
            self.targets = targets_of(inputs, unit);
        }
        if changes.sources {
            self.sources.take_positions(inputs, self.unit);
        } else if changes.strengths {
            self.sources.take_strengths(inputs, self.unit);
        }
        self.seen = Some(seen);
        if let Some(periods) = self.unit.periods().filter(|_| changes != Changes::default()) {
            self.seen = None;
            self.check_periods(periods, options)?;
            self.seen = Some(seen);
        }
        Ok(changes)
    }

    /// Refuses what has no sum over all images, or none that could be made.
    fn check_periods(&self, periods: Periods, options: &PlanOptions) -> Result<()> {
        if self.sources.is_empty() || self.targets.is_empty() {
            return Ok(());
        }
        self.unit.check_periods()?;
        let (positions, half) = self.sources.positions();
        let radii = [bounds(positions, half), bounds(&self.targets, &[])].map(|b| periods.radius(b));
        periods.check(radii, 1.0 / self.unit.scale)?;
        self.sources.check_cores(&periods, options.tolerance, 1.0 / self.unit.scale)?;
        let [sum, sizes] = self.sources.net();
        periods::check_net(sum, sizes, periods.period)
    }

    fn prepare(&mut self, changes: Changes, request: Request, method: Method) {
        let again = changes != Changes::default() || self.request != Some(request);
        let nothing = self.sources.is_empty() || self.targets.is_empty();
        // What a far field is not told of it must not keep: a later sum may have the plan's method again.
        if again && (nothing || method == Method::Direct) {
            self.fmm.forget();
        }
        if nothing {
            self.direct = true;
            return;
        }
        self.request = Some(request);
        self.images = self.images.take().filter(|_| !again);
        match method {
            Method::Direct => self.direct = true,
            _ if again => {
                let auto = method == Method::Auto;
                self.direct = !self.fmm.prepare(&mut self.sources, &self.targets, changes, request, auto);
            }
            _ => {}
        }
        // Where double precision takes over, this sum is none.
        if !self.direct || request.for_double {
            return;
        }
        if self.images.is_none() {
            self.make_images(request);
        }
        if self.images.is_none() {
            self.sources.keep_order();
        }
    }

    /// Periodic images for the direct sum; they sort the sources anew.
    fn make_images(&mut self, request: Request) {
        if request.periods.is_some() {
            self.fmm.forget();
            self.images = Remote::new(&mut self.sources, &self.targets, request);
        }
    }

    /// What the FMM says of its field; nothing is written unless it serves.
    fn by_fmm(&mut self, sink: &mut Sink<'_, T>) -> ByFmm {
        match self.direct {
            true => ByFmm::Declined,
            false if self.fmm.evaluate(&mut self.sources, sink) => ByFmm::Done,
            false => ByFmm::Missed,
        }
    }

    fn evaluate(&mut self, gradient: bool, tolerance: f64, sink: &mut Sink<'_, T>) -> Result<ByFmm> {
        let by_fmm = self.by_fmm(sink);
        if self.request.is_some_and(|r| r.for_double) {
            return Ok(by_fmm);
        }
        if by_fmm == ByFmm::Missed {
            if self.request.is_some_and(|r| r.is_pseudo()) {
                return Err(missed_by_pseudo_particles(tolerance, self.fmm.recipe.sampled_error));
            }
            warn_once!("the far field missed its tolerance on a sample of targets after two retries: summing directly");
            self.direct = true;
        }
        self.in_double = false;
        if self.direct {
            if let Some(request) = self.request.filter(|_| self.images.is_none()) {
                self.make_images(request);
            }
            self.in_double = self.lacks_digits(gradient, tolerance);
            self.sum(&self.targets, gradient, sink);
        }
        Ok(by_fmm)
    }
}

impl<T: Real, const C: usize, S: SourceSet<T, C>> Side<T, C, S> {
    /// Whether the direct sum in this precision has too few digits.
    fn lacks_digits(&self, gradient: bool, tolerance: f64) -> bool {
        let sum = Sum { sources: &self.sources, images: self.images.as_ref() };
        sum.lacks_digits(&self.targets, gradient, tolerance)
    }

    /// The direct sum in the precision that `in_double` says.
    fn sum(&self, targets: &[[f64; 3]], gradient: bool, sink: &mut Sink<'_, T>) {
        let sum = Sum { sources: &self.sources, images: self.images.as_ref() };
        if self.in_double { sum.write_in_double(targets, gradient, sink) } else { sum.write(targets, gradient, sink) }
    }
}

/// An output array in the computing precision: the caller's own, or one beside it that `store` converts. Made and stored in the session's
/// pool.
pub enum Output<'a, T> {
    Own(&'a mut [T]),
    Beside(Vec<T>, RealsMut<'a>),
}

impl<'a, T: Real> Output<'a, T> {
    pub fn new(array: RealsMut<'a>) -> Result<Self> {
        let zeros = |n| memory::par_collect(rayon::iter::repeat_n(T::ZERO, n).with_min_len(STORED_TOGETHER));
        match T::own(array) {
            Ok(own) => Ok(Output::Own(own)),
            Err(RealsMut::HostF32(v)) => Ok(Output::Beside(zeros(v.len()), RealsMut::HostF32(v))),
            Err(RealsMut::HostF64(v)) => Ok(Output::Beside(zeros(v.len()), RealsMut::HostF64(v))),
            Err(_) => Err(device_memory()),
        }
    }
    pub fn numbers(&mut self) -> &mut [T] {
        match self {
            Output::Own(v) => v,
            Output::Beside(v, _) => v,
        }
    }
    /// What is added to is added to in the array's precision.
    pub fn store(self, add: bool) {
        fn each<A: Send, T: Real>(to: &mut [A], from: &[T], store: impl Fn(&mut A, f64) + Sync) {
            let pairs = to.par_iter_mut().zip(from).with_min_len(STORED_TOGETHER);
            pairs.for_each(|(to, v)| store(to, v.f64()));
        }
        let Output::Beside(v, to) = self else { return };
        match to {
            RealsMut::HostF32(to) => each(to, &v, |t, v| *t = (if add { *t as f64 } else { 0.0 } + v) as f32),
            RealsMut::HostF64(to) => each(to, &v, |t, v| *t = if add { *t } else { 0.0 } + v),
            _ => {}
        }
    }
}

/// Numbers that a thread stores at least.
pub const STORED_TOGETHER: usize = 1 << 14;

impl<T: Real> Engine for CpuEngine<T> {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        self.ready(inputs, field)?;
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
        self.compute(inputs, field, main, gradient).map(drop)
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        self.ready(inputs, field)?;
        let pool = self.pool.clone();
        Ok(pool.install(|| match field {
            Field::Velocity { .. } => {
                let mut exact = VortexSources::<f64>::new(
                    self.options.segment_regularization,
                    self.options.particle_regularization,
                );
                let vortices = &self.vortex.sources;
                exact.set_elements(
                    memory::copy(&vortices.segments),
                    memory::copy(&vortices.particles),
                    vortices.digits,
                );
                check::<T, 3, _, _>(&mut self.vortex, &mut exact, samples, seed)
            }
            Field::Potential { .. } => {
                let mut exact = ChargeSources::<f64>::default();
                let charges = &self.coulomb.sources;
                exact.set_elements(memory::copy(&charges.positions), memory::copy(&charges.charge), false);
                check::<T, 1, _, _>(&mut self.coulomb, &mut exact, samples, seed)
            }
        }))
    }

    fn recipe(&self) -> String {
        self.recipe.clone()
    }

    fn report(&self) -> Report {
        Report { host_bytes: bytes(&self.vortex) + bytes(&self.coulomb), ..self.report.clone() }
    }
}

/// Relative L2 error at `samples` targets drawn by `seed` (all of them, where there are no more), against the direct sum in
/// double precision.
fn check<T: Real, const C: usize, S: SourceSet<T, C>, X: SourceSet<f64, C>>(
    side: &mut Side<T, C, S>,
    exact: &mut X,
    samples: usize,
    seed: u64,
) -> f64 {
    let m = side.targets.len();
    if m == 0 || samples == 0 || side.sources.is_empty() {
        return 0.0;
    }
    let picked: Vec<u32> = memory::collect(drawn(m, samples, seed).map(|k| k as u32));
    let count = picked.len();
    let by_fmm = if side.direct { None } else { side.fmm.at(&mut side.sources, &picked) };
    let (points, got): (Vec<[f64; 3]>, Vec<f64>) = match by_fmm {
        Some((points, field)) => (points, memory::collect(field.iter().map(|v| v.f64()))),
        None => {
            if let Some(request) = side.request {
                side.in_double = side.lacks_digits(request.gradient, request.tolerance);
            }
            let points = memory::collect(picked.iter().map(|&k| side.targets[k as usize]));
            let mut out = memory::filled(T::ZERO, rows(C, false) * count);
            let mut sink =
                Sink { main: &mut out, gradient: None, main_factor: 1.0, per_length: 1.0, accumulate: false };
            side.sum(&points, false, &mut sink);
            let r = rows(C, false);
            (points, memory::collect((0..r * count).map(|i| out[(i % count) * r + i / count].f64())))
        }
    };
    let mut want = memory::filled(0.0, rows(C, false) * count);
    let mut sink = Sink { main: &mut want, gradient: None, main_factor: 1.0, per_length: 1.0, accumulate: false };
    let request = side.request.expect("ready");
    // Images more exactly than any sum of the engine's own.
    let request = Request { tolerance: CHECK_SHARE * request.tolerance, gradient: false, ..request };
    let images = Remote::new(exact, &points, request);
    if images.is_none() {
        exact.keep_order();
    }
    Sum { sources: exact, images: images.as_ref() }.write(&points, false, &mut sink);
    let r = rows(C, false);
    let unit = unit_of(largest(&want));
    relative(squares((0..r * count).map(|at| (got[at % r * count + at / r], want[at])), unit))
}

fn account<T: Real, const C: usize, S: SourceSet<T, C>>(side: &Side<T, C, S>) -> Account {
    Account {
        direct: side.direct,
        in_double: side.in_double,
        recipe: side.fmm.recipe.clone(),
        seconds: side.fmm.seconds,
        pairs: side.sources.positions().0.len() as u64 * side.targets.len() as u64,
    }
}

/// What a side holds, whatever was evaluated last.
fn bytes<T: Real, const C: usize, S: SourceSet<T, C>>(side: &Side<T, C, S>) -> u64 {
    let images = side.images.as_ref().map_or(0, Remote::bytes) as u64;
    side.sources.bytes() + side.targets.capacity() as u64 * 24 + side.fmm.bytes() + images
}
