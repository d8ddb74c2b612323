//! A ground plane: the field of all sources and of their images.
//!
//! Enters: inputs of a plan. Leaves: the field of the sources and of their images. The engine knows of no plane; it gets one of these:
//!
//! On a GPU the sources with their images (`backend::images`) and the caller's targets: cells below the plane only add sources to
//! lists, which are of equal cells.
//!
//! On the CPU, whose lists take mirrored targets in large cells, beside many sources for few targets, of sources partly in host and
//! partly in device memory, and on distributed sessions: each target as it is and mirrored, in one array (`[x; Rx]`), since the field
//! of the images at x is the reflection of the sources' own field at Rx, u(x) + R u(Rx). Gradients: G + R G(Rx) R; potentials (images
//! of the same sign: no flow through the plane): phi + phi(Rx), and their gradients as velocities.

use rayon::prelude::*;

use super::Plan;
use super::arrays::{ArrayMut, HostReal, SHARED_FROM, check_finite, on_pool};
use crate::backend::Field;
use crate::backend::cuda::RealsArg;
use crate::backend::cuda::plane::{Half, Mirror, Rows};
use crate::backend::draw::drawn;
use crate::backend::images::{self, Image};
use crate::backend::verdict::{self, relative, unit_of};
use crate::error::{Error, Result, WFMM_ERR_MEMORY, WFMM_ERR_NOT_FINITE, WFMM_ERR_UNSUPPORTED, number};
use crate::inputs::{ArrayReal, Inputs, Reals, RealsMut, TargetInput};
use crate::memory;
use crate::options::{
    Expansion, Method, PlanOptions, Plane, Precision, WFMM_METHOD_DIRECT, WFMM_TOLERANCE_MIN_F32,
    WFMM_TOLERANCE_MIN_F64,
};
use crate::report::Report;
use crate::session::{Session, make_engine};

/// The engine holds the field of both halves to the tolerance. Where the halves cancel, what remains needs a tighter one, down to this part
/// of it; the halves of what cancels more are summed directly.
const TIGHTEST: f64 = 1.0 / 64.0;
/// A little tighter than the last field needed, so that the next one does not miss again.
const SPARE: f64 = 0.7;
/// Where no more is left of the halves the rounding of single precision shows.
const SMALL: f64 = 0.5;

/// What sums of both halves need so that the tolerance holds for what is left of them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Needs {
    /// Of the tolerance.
    factor: f64,
    in_double: bool,
    direct: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self { factor: 1.0, in_double: false, direct: false }
    }
}

/// What became of a field by both halves.
#[derive(Debug, Clone, Copy)]
struct Halves {
    /// Norm of their sum, relative to that of the halves by themselves.
    kept: f64,
    by_direct_sum: bool,
    in_single: bool,
    /// Estimate of the error of the halves.
    error: f64,
}

impl Needs {
    /// What the next attempt needs; nothing where this one serves.
    fn after(self, found: Halves, tolerance: f64) -> Option<Self> {
        let kept = found.kept;
        let holds = found.by_direct_sum || self.direct || self.factor <= kept || found.error <= tolerance * kept;
        let needed = SPARE * kept * tolerance;
        let rounded = found.in_single && needed < WFMM_TOLERANCE_MIN_F32 && (!holds || kept < SMALL);
        let mut next = Self { in_double: self.in_double || rounded, ..self };
        if !holds {
            next.factor = self.factor.min((SPARE * kept).max(TIGHTEST));
            next.direct = kept < TIGHTEST || needed < WFMM_TOLERANCE_MIN_F64;
        }
        Some(next).filter(|next| *next != self)
    }

    /// Where to begin with other inputs: a factor that was much smaller than this field needed is given up.
    fn for_others(self, kept: f64) -> Self {
        let enough = (SPARE * kept).min(1.0);
        Self { factor: if enough > 2.0 * self.factor { enough } else { self.factor }, ..Self::default() }
    }
}

/// Names the first target whose image is no number.
pub fn check_images<T: HostReal>(plane: Plane, x: &[T]) -> Result<()> {
    check_finite("position", 3, x)?;
    let lost = |row: &[T]| !T::from_f64(plane.image(row[plane.axis].to_f64())).is_finite();
    let Some(k) = x.chunks_exact(3).position(lost) else { return Ok(()) };
    let (axis, value) = (plane.axis, number(x[3 * k + plane.axis]));
    Error::fail(WFMM_ERR_NOT_FINITE, format!("position[{k}][{axis}] = {value}: its image leaves the range of numbers"))
}

/// What a plan with a ground plane keeps.
#[derive(Default)]
pub struct Mirrored {
    /// For arrays in device memory.
    mirror: Option<Mirror>,
    /// Sources in host memory with their images.
    sources: images::OnHost,
    /// The engine was made for images of the sources.
    images: bool,
    needs: Needs,
    /// Of the last field: changes of the inputs and what was asked for, and its `Halves::kept`.
    seen: Option<([u64; 5], Field)>,
    kept: Option<f64>,
}

/// Sources for a target from which mirrored targets cost less than images of the sources.
const MANY_SOURCES: usize = 8;

impl Mirrored {
    fn mirror(&mut self, session: &Session) -> Result<&mut Mirror> {
        if self.mirror.is_none() {
            self.mirror = Some(session.mirror()?);
        }
        Ok(self.mirror.as_mut().expect("made above"))
    }

    pub fn device_bytes(&self) -> u64 {
        self.mirror.as_ref().map_or(0, Mirror::bytes)
    }

    pub fn host_bytes(&self) -> u64 {
        self.sources.bytes()
    }

    /// Whether the engine sums images of the sources.
    pub fn by_images(&self) -> bool {
        self.images
    }

    /// Whether the engine must compute in double precision.
    pub fn in_double(&self) -> bool {
        self.needs.in_double && !self.images
    }

    /// Whether the engine must sum directly.
    pub fn is_direct(&self) -> bool {
        self.needs.direct && !self.images
    }

    /// The error of a field whose halves have this one.
    pub fn error_of(&self, halves: f64) -> f64 {
        self.kept.filter(|&kept| kept > 0.0 && !self.images).map_or(halves, |kept| halves / kept)
    }
}

/// What the mirror multiplies each number of a row by: components of vectors, or of tensors row by row.
fn signs(plane: Plane, width: usize) -> [f64; 9] {
    match width {
        1 => [1.0; 9],
        3 => std::array::from_fn(|i| plane.sign(i % 3)),
        _ => std::array::from_fn(|i| plane.sign(i / 3) * plane.sign(i % 3)),
    }
}

/// The sum of a field `[x; Rx]` and its mirrored half, written or added to `to`.
fn combine<T: HostReal>(signs: [f64; 9], width: usize, joint: &[f64], to: &mut [T], add: bool) {
    let (here, there) = joint.split_at(joint.len() / 2);
    let row = |((to, here), there): ((&mut [T], &[f64]), &[f64])| {
        for i in 0..width {
            let old = if add { to[i].to_f64() } else { 0.0 };
            to[i] = T::from_f64(old + (here[i] + signs[i] * there[i]));
        }
    };
    if to.len() < SHARED_FROM {
        to.chunks_exact_mut(width).zip(here.chunks_exact(width)).zip(there.chunks_exact(width)).for_each(row);
    } else {
        let rows = to.par_chunks_exact_mut(width).zip(here.par_chunks_exact(width));
        rows.zip(there.par_chunks_exact(width)).for_each(row);
    }
}

/// Rows of a field whose squares are added together.
const ROWS_TOGETHER: usize = 4096;

/// Squares of the sum of both halves, and of the halves by themselves, in units; always added in the same order.
fn squares(signs: [f64; 9], width: usize, joint: &[f64], unit: f64) -> [f64; 2] {
    let (here, there) = joint.split_at(joint.len() / 2);
    let many = |(here, there): (&[f64], &[f64])| {
        let (mut sum, mut parts) = (0.0, 0.0);
        for (here, there) in here.chunks_exact(width).zip(there.chunks_exact(width)) {
            for i in 0..width {
                let (a, b) = (here[i] / unit, signs[i] * there[i] / unit);
                sum += (a + b) * (a + b);
                parts += a * a + b * b;
            }
        }
        [sum, parts]
    };
    let numbers = width * ROWS_TOGETHER;
    let all: Vec<[f64; 2]> = memory::par_collect(here.par_chunks(numbers).zip(there.par_chunks(numbers)).map(many));
    all.iter().fold([0.0; 2], |s, v| [s[0] + v[0], s[1] + v[1]])
}

/// Whether squares have left the range of numbers, or nearly.
fn out_of_range([sum, parts]: [f64; 2]) -> bool {
    !(sum.is_finite() && parts.is_finite()) || parts < 1e-200
}

/// Norm of the sum of both halves, relative to that of the halves by themselves: the smaller one of field and gradient.
fn kept(field: [f64; 2], gradient: Option<[f64; 2]>) -> f64 {
    let of = |[sum, parts]: [f64; 2]| if parts > 0.0 && sum.is_finite() { (sum / parts).sqrt() } else { 1.0 };
    of(field).min(gradient.map_or(1.0, of))
}

impl Plan {
    /// Options of the engine. With images of the sources the plane stays in them: it says that half of the sources are images. With
    /// both halves of the targets the engine overwrites, and holds the tolerance of what remains of them.
    pub(super) fn engine_options(&self) -> PlanOptions {
        if self.options.plane.is_none() || self.mirrored.images {
            return self.options.clone();
        }
        let tolerance = (self.options.tolerance * self.mirrored.needs.factor).max(self.least());
        let method = if self.mirrored.needs.direct { Method::Direct } else { self.options.method };
        PlanOptions { accumulate: false, plane: None, tolerance, method, ..self.options.clone() }
    }

    /// The smallest tolerance that the precision holds, but never more than what was asked for.
    fn least(&self) -> f64 {
        let least = if self.precision() == Precision::F32 { WFMM_TOLERANCE_MIN_F32 } else { WFMM_TOLERANCE_MIN_F64 };
        least.min(self.options.tolerance)
    }

    /// `evaluate` with a plane; the outputs have the lengths that `Engine::evaluate` states.
    pub(super) fn evaluate_mirrored<T: HostReal>(
        &mut self,
        plane: Plane,
        field: Field,
        main: ArrayMut<'_, T>,
        gradient: Option<ArrayMut<'_, T>>,
    ) -> Result<()> {
        let side = side(main, gradient)?;
        if let Some(inputs) = self.with_images(plane)? {
            let (main, gradient) = side.into_reals(field, self.counts().targets);
            return self.run(|engine| engine.evaluate(&inputs, field, main, gradient));
        }
        match side {
            Side::Host(main, gradient) => self.halves_into_host(plane, field, main, gradient),
            Side::Device(main, gradient) => self.halves_into_device::<T>(plane, field, main, gradient),
        }
    }

    /// From both halves of the targets, into host memory.
    pub(super) fn halves_into_host<T: HostReal>(
        &mut self,
        plane: Plane,
        field: Field,
        main: &mut [T],
        gradient: Option<&mut [T]>,
    ) -> Result<()> {
        let (width, wide) = field.widths();
        let (u, g) = self.joint_field(plane, field)?;
        let add = self.options.accumulate;
        let pool = self.session.pool().clone();
        pool.install(|| {
            combine(signs(plane, width), width, &u, main, add);
            if let Some(to) = gradient {
                combine(signs(plane, wide), wide, &g, to, add);
            }
        });
        Ok(())
    }

    /// The inputs with images of the sources, where these cost less than mirrored targets. An engine keeps what it made of its inputs:
    /// one that was made for the other is dropped.
    fn with_images(&mut self, plane: Plane) -> Result<Option<Inputs>> {
        let inputs = self.images_of_sources(plane)?;
        if self.mirrored.images != inputs.is_some() {
            self.mirrored.images = inputs.is_some();
            self.engine = None;
        }
        Ok(inputs)
    }

    fn images_of_sources(&mut self, plane: Plane) -> Result<Option<Inputs>> {
        let counts = self.counts();
        let sources = (counts.segments + counts.particles).max(counts.charges);
        let ranks = self.session.communicator().is_some();
        if ranks || !self.session.has_device() || sources > MANY_SOURCES * counts.targets {
            return Ok(None);
        }
        if self.sources().any(|reals| reals.host_address().is_none()) {
            let (inputs, caller) = (self.inputs.clone(), self.stream());
            return images::with_images(&inputs, &mut self.mirrored.mirror(&self.session)?.about(plane, caller));
        }
        let Self { session, inputs, mirrored, .. } = self;
        on_pool(session, 3 * sources, || images::with_images(inputs, &mut mirrored.sources.about(plane)))
    }

    /// What the engine is to sum over: the caller's inputs; with a plane those with images of the sources, or with both halves of the
    /// targets.
    pub(super) fn for_engine(&mut self) -> Result<Inputs> {
        let Some(plane) = self.options.plane else { return Ok(self.inputs.clone()) };
        match self.with_images(plane)? {
            Some(inputs) => Ok(inputs),
            None => self.with_both_halves(plane),
        }
    }

    /// The inputs with each target as it is and mirrored.
    fn with_both_halves(&mut self, plane: Plane) -> Result<Inputs> {
        let mut inputs = self.inputs.clone();
        let Some(targets) = &mut inputs.targets else { return Ok(inputs) };
        let lost = || Error::new(WFMM_ERR_NOT_FINITE, "an image of a target leaves the range of numbers");
        targets.position = match &targets.position {
            x @ (Reals::HostF32(_) | Reals::HostF64(_)) => {
                let wide = Image::Positions.needs_double(plane);
                on_pool(&self.session, x.numbers(), || images::doubled(plane, Image::Positions, x, wide))
                    .ok_or_else(lost)?
            }
            Reals::DeviceF32 { address, .. } => self.joined_on_device(plane, *address, false, targets.n)?,
            Reals::DeviceF64 { address, .. } => self.joined_on_device(plane, *address, true, targets.n)?,
        };
        targets.n *= 2;
        Ok(inputs)
    }

    fn joined_on_device(&mut self, plane: Plane, address: u64, is_f64: bool, n: usize) -> Result<Reals> {
        let (from, caller) = (RealsArg { address, is_f64: i64::from(is_f64) }, self.stream());
        self.mirrored.mirror(&self.session)?.join(plane, from, n, caller)
    }

    /// The same into device memory.
    fn halves_into_device<T: HostReal>(
        &mut self,
        plane: Plane,
        field: Field,
        main: u64,
        gradient: Option<u64>,
    ) -> Result<()> {
        let inputs = self.with_both_halves(plane)?;
        self.mirrored.mirror(&self.session)?;
        let mut mirror = self.mirrored.mirror.take().expect("made above");
        let done = self.halves_on_device::<T>(plane, field, &inputs, &mut mirror, main, gradient);
        self.mirrored.mirror = Some(mirror);
        done
    }

    fn halves_on_device<T: HostReal>(
        &mut self,
        plane: Plane,
        field: Field,
        inputs: &Inputs,
        mirror: &mut Mirror,
        main: u64,
        gradient: Option<u64>,
    ) -> Result<()> {
        let ((width, wide), n) = (field.widths(), self.counts().targets);
        let (rows, slopes) = (Rows { n, width }, Rows { n, width: wide });
        let (add, caller) = (self.options.accumulate, self.stream());
        self.tighten(field, |plan| {
            let main = mirror.halves(Half::Main, rows)?;
            let gradient = match field.has_gradient() {
                true => Some(mirror.halves(Half::Gradient, slopes)?),
                false => None,
            };
            let report = plan.run(|engine| {
                engine.evaluate(inputs, field, main, gradient)?;
                Ok(engine.report())
            })?;
            let of_field = mirror.squares(plane, Half::Main, rows, caller)?;
            let of_gradient = match field.has_gradient() {
                true => Some(mirror.squares(plane, Half::Gradient, slopes, caller)?),
                false => None,
            };
            Ok((report, kept(of_field, of_gradient)))
        })?;
        let to = |address| RealsArg { address, is_f64: i64::from(T::DOUBLE) };
        mirror.combine(plane, Half::Main, rows, to(main), add, caller)?;
        if let Some(gradient) = gradient {
            mirror.combine(plane, Half::Gradient, slopes, to(gradient), add, caller)?;
        }
        mirror.settle(caller)
    }

    /// Evaluates until the tolerance holds for what is left of both halves. Of many ranks all need the same.
    fn tighten(&mut self, field: Field, mut evaluate: impl FnMut(&mut Self) -> Result<(Report, f64)>) -> Result<()> {
        let i = &self.inputs;
        let changes =
            [i.vortex_positions, i.vortex_strengths, i.charge_positions, i.charge_strengths, i.target_positions];
        let now = Some((changes, field));
        let is_new = self.session.any(self.mirrored.seen != now)?;
        let needs = match (is_new, self.options.reproducible) {
            (false, _) => self.mirrored.needs,
            (true, true) => Needs::default(),
            (true, false) => self.mirrored.needs.for_others(self.mirrored.kept.unwrap_or(0.0)),
        };
        self.mirrored.seen = None;
        self.need(needs);
        loop {
            let (report, kept) = evaluate(self)?;
            self.mirrored.kept = Some(kept);
            let found = Halves {
                kept,
                by_direct_sum: report.method == WFMM_METHOD_DIRECT,
                in_single: self.precision() == Precision::F32,
                error: report.estimated_error,
            };
            let Some(next) = self.mirrored.needs.after(found, self.options.tolerance) else {
                self.mirrored.seen = now;
                return Ok(());
            };
            if next.direct && self.options.expansion == Expansion::PseudoParticles {
                return Err(cancelling(kept));
            }
            log::info!("the fields of sources and images leave {kept:.1e} of each: computed again, {next:?}");
            self.need(next);
        }
    }

    /// An engine of other options is made anew.
    fn need(&mut self, needs: Needs) {
        if self.mirrored.needs != needs {
            self.mirrored.needs = needs;
            self.engine = None;
        }
    }

    /// The field and its gradient (empty where it is not wanted) at all targets and their images, in double precision: halves that nearly
    /// cancel must not be rounded before they are added.
    fn joint_field(&mut self, plane: Plane, field: Field) -> Result<(Vec<f64>, Vec<f64>)> {
        let ((width, wide), n) = (field.widths(), self.counts().targets);
        let session = self.session.clone();
        let (inputs, mut u, mut g) = session.together("wfmm_plan_evaluate", || {
            let slopes = if field.has_gradient() { 2 * n * wide } else { 0 };
            let (u, g) = (memory::filled(0.0f64, 2 * n * width), memory::filled(0.0f64, slopes));
            Ok((self.with_both_halves(plane)?, u, g))
        })?;
        self.tighten(field, |plan| {
            let slopes = field.has_gradient().then(|| f64::host_mut(&mut g));
            let main = f64::host_mut(&mut u);
            let report = plan.run(|engine| {
                engine.evaluate(&inputs, field, main, slopes)?;
                Ok(engine.report())
            })?;
            let of_field = plan.squares_of(plane, width, &u)?;
            let of_gradient = field.has_gradient().then(|| plan.squares_of(plane, wide, &g)).transpose()?;
            Ok((report, kept(of_field, of_gradient)))
        })?;
        Ok((u, g))
    }

    /// `squares` over all ranks.
    fn squares_of(&self, plane: Plane, width: usize, joint: &[f64]) -> Result<[f64; 2]> {
        let pool = self.session.pool();
        let of = |unit: f64| {
            let mine = pool.install(|| squares(signs(plane, width), width, joint, unit));
            let all = self.session.total(&mine)?;
            Ok([all[0], all[1]])
        };
        let found = of(1.0)?;
        if !out_of_range(found) {
            return Ok(found);
        }
        let largest = joint.iter().fold(0.0, |m, v| f64::max(m, v.abs()));
        of(unit_of(self.session.largest(&[largest])?[0]))
    }

    /// `check` with a plane: the sum of both halves on a sample, against direct sums in double precision.
    pub(super) fn check_mirrored(&mut self, plane: Plane, field: Field, samples: usize, seed: u64) -> Result<f64> {
        if let Some(inputs) = self.with_images(plane)? {
            return self.run(|engine| engine.check(&inputs, field, samples, seed));
        }
        let (width, n) = (field.widths().0, self.counts().targets);
        let got = self.joint_field(plane, field)?.0;
        // Of the targets of all ranks those that are here.
        let (first, all) = self.session.numbered(n)?;
        let session = self.session.clone();
        let (inputs, got, mut exact) = session.together("wfmm_plan_check", || {
            let here = first..first + n;
            let mut picked = memory::collect(drawn(all, samples, seed));
            picked.retain(|k| here.contains(k));
            let rows = |of: &[f64], width: usize| -> Vec<f64> {
                let halves = picked.iter().map(|k| k - first).chain(picked.iter().map(|k| k - first + n));
                halves.flat_map(|k| of[k * width..(k + 1) * width].iter().copied()).collect()
            };
            let mut inputs = self.with_both_halves(plane)?;
            if let Some(targets) = &mut inputs.targets {
                let position = match &targets.position {
                    Reals::HostF32(x) => rows(&widened(x), 3),
                    Reals::HostF64(x) => rows(x, 3),
                    of @ (Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. }) => {
                        let is_f64 = matches!(of, Reals::DeviceF64 { .. });
                        let stream = self.stream();
                        rows(&self.mirrored.mirror(&self.session)?.targets(n, is_f64, stream)?, 3)
                    }
                };
                *targets = TargetInput { n: 2 * picked.len(), position: Reals::HostF64(position.into()) };
            }
            Ok((inputs, rows(&got, width), memory::filled(0.0, 2 * picked.len() * width)))
        })?;
        let options = PlanOptions { method: Method::Direct, ..self.engine_options() };
        let mut direct = make_engine(&self.session, &options, Precision::F64)?;
        direct.evaluate(&inputs, field.without_gradient(), f64::host_mut(&mut exact), None)?;
        let both = |joint: &[f64]| {
            let mut sum = memory::filled(0.0, joint.len() / 2);
            combine(signs(plane, width), width, joint, &mut sum, false);
            sum
        };
        let (got, exact) = session.together("wfmm_plan_check", || Ok((both(&got), both(&exact))))?;
        self.relative_l2(&got, &exact)
    }

    /// Over all ranks.
    fn relative_l2(&self, got: &[f64], want: &[f64]) -> Result<f64> {
        let largest = want.iter().chain(got).fold(0.0f64, |m, v| m.max(v.abs()));
        let unit = unit_of(self.session.largest(&[largest])?[0]);
        let sums = verdict::squares(got.iter().copied().zip(want.iter().copied()), unit);
        let sums = self.session.total(&sums)?;
        Ok(relative([sums[0], sums[1]]))
    }
}

/// Pseudo-particles give way to no other sum.
fn cancelling(kept: f64) -> Error {
    let message = format!(
        "expansion = WFMM_EXPANSION_PSEUDO_PARTICLES with a ground plane: sources and images leave {kept:.1e} of the field of each; accepted: \
         WFMM_EXPANSION_HARMONICS"
    );
    Error::new(WFMM_ERR_UNSUPPORTED, message)
}

fn widened(x: &[f32]) -> Vec<f64> {
    memory::collect(x.iter().map(|&v| v as f64))
}

/// Outputs of an evaluation with a plane, all on one side of the bus; on the device by their addresses.
pub enum Side<'a, T> {
    Host(&'a mut [T], Option<&'a mut [T]>),
    Device(u64, Option<u64>),
}

pub fn side<'a, T>(main: ArrayMut<'a, T>, gradient: Option<ArrayMut<'a, T>>) -> Result<Side<'a, T>> {
    match (main, gradient) {
        (ArrayMut::Host(main), None) => Ok(Side::Host(main, None)),
        (ArrayMut::Host(main), Some(ArrayMut::Host(gradient))) => Ok(Side::Host(main, Some(gradient))),
        (ArrayMut::Device { address, .. }, None) => Ok(Side::Device(address, None)),
        (ArrayMut::Device { address, .. }, Some(ArrayMut::Device { address: gradient, .. })) => {
            Ok(Side::Device(address, Some(gradient)))
        }
        _ => {
            let message =
                "with a ground plane (plane_axis) both fields must be in host memory, or both in device memory";
            Error::fail(WFMM_ERR_MEMORY, message)
        }
    }
}

impl<'a, T: HostReal> Side<'a, T> {
    /// For an engine; fields at n targets.
    fn into_reals(self, field: Field, n: usize) -> (RealsMut<'a>, Option<RealsMut<'a>>) {
        let (width, wide) = field.widths();
        match self {
            Self::Host(main, gradient) => (T::host_mut(main), gradient.map(|g| T::host_mut(g))),
            Self::Device(main, gradient) => {
                (T::device_mut(main, n * width), gradient.map(|g| T::device_mut(g, n * wide)))
            }
        }
    }

    /// Both fields in host memory, where the ranks of a distributed session join both halves.
    pub fn on_host(self) -> Result<(&'a mut [T], Option<&'a mut [T]>)> {
        match self {
            Self::Host(main, gradient) => Ok((main, gradient)),
            Self::Device(..) => Error::fail(
                WFMM_ERR_MEMORY,
                "outputs of a distributed session with a ground plane must be in host memory",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FMM: Halves = Halves { kept: 1.0, by_direct_sum: false, in_single: false, error: 1e-4 };

    /// What a field needs in the end that keeps so much of its halves, whose error is what was asked for, and attempts.
    fn needed(kept: f64, in_single: bool, tolerance: f64) -> (Needs, usize) {
        let (mut needs, mut attempts) = (Needs::default(), 1);
        let found = |needs: Needs| {
            let error = if needs.direct { 0.0 } else { tolerance * needs.factor };
            Halves { kept, by_direct_sum: needs.direct, in_single: in_single && !needs.in_double, error }
        };
        while let Some(next) = needs.after(found(needs), tolerance) {
            (needs, attempts) = (next, attempts + 1);
        }
        (needs, attempts)
    }

    #[test]
    fn halves_that_cancel_need_more() {
        let of = |factor, in_double, direct| Needs { factor, in_double, direct };
        assert_eq!(needed(1.2, true, 1e-4), (of(1.0, false, false), 1));
        assert_eq!(needed(0.5, true, 1e-4), (of(0.35, false, false), 2));
        assert_eq!(needed(0.1, true, 1e-5), (of(SPARE * 0.1, true, false), 2));
        assert_eq!(needed(1e-3, true, 1e-4), (of(TIGHTEST, true, true), 2));
        assert_eq!(needed(1e-3, false, 1e-4), (of(TIGHTEST, false, true), 2));
        assert_eq!(needed(0.6, false, 1e-13), (of(SPARE * 0.6, false, true), 2));
        assert_eq!(needed(0.0, true, 1e-2), (of(TIGHTEST, true, true), 2));
    }

    #[test]
    fn halves_that_are_right_by_far_need_nothing() {
        let needs = Needs::default();
        assert_eq!(needs.after(Halves { kept: 0.3, error: 1e-5, ..FMM }, 1e-4), None);
        assert!(needs.after(Halves { kept: 0.3, error: 1e-4, ..FMM }, 1e-4).is_some());
        assert_eq!(needs.after(Halves { kept: 1e-9, by_direct_sum: true, error: 0.0, ..FMM }, 1e-4), None);
        // Rounding of a direct sum in single precision.
        let single = Halves { kept: 1e-3, by_direct_sum: true, in_single: true, error: 0.0 };
        assert_eq!(needs.after(single, 1e-4), Some(Needs { in_double: true, ..needs }));
    }

    #[test]
    fn other_inputs_begin_with_what_the_last_ones_needed_but_no_more() {
        let of = |factor| Needs { factor, in_double: true, direct: true };
        assert_eq!(of(0.1).for_others(0.15), Needs { factor: 0.1, ..Needs::default() });
        assert_eq!(of(TIGHTEST).for_others(2.0), Needs::default());
        assert_eq!(of(TIGHTEST).for_others(1e-5), Needs { factor: TIGHTEST, ..Needs::default() });
    }

    #[test]
    fn squares_are_of_both_halves() {
        let signs = [1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        let joint: Vec<f64> = (0..60_000).map(|k| f64::from(k % 7) - 3.0).collect();
        let (here, there) = joint.split_at(30_000);
        let (mut sum, mut parts) = (0.0, 0.0);
        for (k, (a, b)) in here.iter().zip(there).enumerate() {
            let b = signs[k % 3] * b;
            sum += (a + b) * (a + b);
            parts += a * a + b * b;
        }
        assert_eq!(squares(signs, 3, &joint, 1.0), [sum, parts]);
        assert!(out_of_range(squares(signs, 3, &joint.iter().map(|v| v * 1e-170).collect::<Vec<_>>(), 1.0)));
    }
}
