//! Narrower cores in device memory: what `Interpolation` asks for, by kernels.
//!
//! Enters: the arrays of `Resident`. Leaves: a vector with new strengths and cores in the place of the state's, which stays until the
//! step is done. The bus carries launches and sums over all particles. Memory that the solver needs is given back.

use std::sync::Arc;

use super::device::{Resident, Shape};
use super::gaussians::Cells;
use super::narrow;
use super::options::ElementKind;
use super::reinterpolate::{Carried, Cores, Interpolation, Narrowed, narrower, set_back};
use super::storage::{Held, Tools};
use super::vector::Part;
use crate::backend::cuda::array::{DeviceVector, Span, Vectors};
use crate::backend::cuda::gaussians::{Blobs, Gaussians};
use crate::backend::cuda::motion::Motion;
use crate::error::Result;
use crate::math::biot_savart::Vec3;
use crate::memory;
use crate::options::Plane;

/// The state and its rates as they were.
pub struct Before {
    y: Arc<DeviceVector>,
    history: Option<Arc<DeviceVector>>,
    shape: Shape,
}

impl Resident {
    /// The largest squared core of a particle.
    pub(super) fn largest_core(&mut self, held: Held<'_>) -> Result<f64> {
        self.bring(held.state, held.history.as_ref())?;
        let (shape, y, stream) = (self.shape, self.y.span(), self.motion.stream());
        let mut gaussians = Gaussians::new(stream.context())?;
        Ok(gaussians.bounds(blobs(shape, y), stream)?.core2.max(0.0))
    }

    /// Narrower cores; nothing where they do not fit.
    pub(super) fn narrowed(&mut self, held: Held<'_>, tools: &Tools<'_>, limit2: f64) -> Result<Option<Narrowed>> {
        self.bring(held.state, held.history.as_ref())?;
        let (shape, y) = (self.shape, self.y.clone());
        let mut members = Members::new(&self.motion, shape, y.span(), tools.plane, set_back(limit2))?;
        let Some((found, fit)) = narrower(&mut members, tools.plane.is_some())? else { return Ok(None) };
        let mut new = self.vectors.take(shape.total())?;
        let (mut to, stream) = (new.span_mut(), self.motion.stream());
        to.copy_from(y.span(), stream)?;
        let core2 = shape.part(y.span(), Part::ParticleCore2);
        let strength = shape.part_mut(&mut to, Part::ParticleStrength);
        members.gaussians.adopt(core2, found.span(), strength, stream)?;
        shape.part_mut(&mut to, Part::ParticleCore2).copy_from(members.narrow2.span(), stream)?;
        let largest = members.gaussians.bounds(blobs(shape, new.span()), stream)?.core2;
        let history = self.history.clone();
        let forgotten = history.as_ref().map(|rate| self.without_strengths(rate)).transpose()?;
        (self.y, self.history) = (Arc::new(new), forgotten.map(Arc::new));
        self.changed(ElementKind::Particles);
        let before = Carried::OnDevice(Before { y, history, shape });
        Ok(Some(Narrowed { before, fit, largest }))
    }

    /// Rates without those of strengths: rates of the old ones are none of the new ones'.
    fn without_strengths(&self, rate: &DeviceVector) -> Result<DeviceVector> {
        let mut copy = self.vectors.take(rate.span().len())?;
        let mut to = copy.span_mut();
        to.copy_from(rate.span(), self.motion.stream())?;
        self.motion.fill(self.shape.part_mut(&mut to, Part::ParticleStrength), f64::NAN)?;
        Ok(copy)
    }

    /// What was there before in the place of what is. False, and nothing is done: the device has given its arrays back.
    pub(super) fn put_back(&mut self, before: &Before) -> bool {
        let is_here = self.shape == before.shape && self.holds(ElementKind::Particles);
        if is_here {
            (self.y, self.history) = (before.y.clone(), before.history.clone());
            self.changed(ElementKind::Particles);
        }
        is_here
    }

    /// What was there before, in host memory.
    pub(super) fn brought_back(&mut self, before: &Before) -> Result<narrow::Before> {
        let mut take = |of: &DeviceVector, part: Part| {
            let from = before.shape.part(of.span(), part);
            let mut to = memory::filled(0.0, from.len());
            self.motion.download(from, &mut to).map(|()| to)
        };
        Ok(narrow::Before {
            strength: take(&before.y, Part::ParticleStrength)?,
            core2: take(&before.y, Part::ParticleCore2)?,
            rate: before.history.as_ref().map(|rate| take(rate, Part::ParticleStrength)).transpose()?,
        })
    }
}

/// The particles of a vector.
fn blobs(shape: Shape, y: Span<'_, f64>) -> Blobs<'_> {
    Blobs { position: shape.part(y, Part::ParticlePosition), core2: shape.part(y, Part::ParticleCore2) }
}

/// The particles of a state in device memory. Rows of those that have no core are zero, or without meaning.
struct Members<'a> {
    motion: &'a Motion,
    vectors: Arc<Vectors>,
    present: Blobs<'a>,
    strength: Span<'a, f64>,
    /// Narrower cores, squared.
    narrow2: DeviceVector,
    plane: Option<Plane>,
    gaussians: Gaussians,
    /// The cores whose cells there are.
    sorted: Option<Cores>,
}

impl<'a> Members<'a> {
    fn new(motion: &'a Motion, shape: Shape, y: Span<'a, f64>, plane: Option<Plane>, cores: [f64; 2]) -> Result<Self> {
        let (context, present) = (motion.stream().context(), blobs(shape, y));
        let (vectors, gaussians) = (Vectors::new(context), Gaussians::new(context)?);
        let mut narrow2 = vectors.take(present.core2.len())?;
        gaussians.narrow(present.core2, cores, narrow2.span_mut(), motion.stream())?;
        let strength = shape.part(y, Part::ParticleStrength);
        Ok(Self { motion, vectors, present, strength, narrow2, plane, gaussians, sorted: None })
    }
}

impl Interpolation for Members<'_> {
    type Vector = DeviceVector;

    fn strength(&mut self) -> Result<DeviceVector> {
        let mut copy = self.vectors.take(self.strength.len())?;
        copy.span_mut().copy_from(self.strength, self.motion.stream())?;
        Ok(copy)
    }

    fn vorticity(&mut self, cores: Cores, a: &DeviceVector) -> Result<DeviceVector> {
        let stream = self.motion.stream();
        let of = match cores {
            Cores::Present => self.present,
            Cores::Narrow => Blobs { core2: self.narrow2.span(), ..self.present },
        };
        if self.sorted != Some(cores) {
            let bounds = self.gaussians.bounds(of, stream)?;
            let cells = Cells::new(bounds.low, bounds.high, bounds.core2, self.plane);
            self.gaussians.sort(of, cells.argument(), stream)?;
            self.sorted = Some(cores);
        }
        let mut sums = self.vectors.take(a.span().len())?;
        self.gaussians.sum(of, a.span(), sums.span_mut(), stream)?;
        Ok(sums)
    }

    fn zero(&mut self) -> Result<DeviceVector> {
        let mut zero = self.vectors.take(self.strength.len())?;
        self.motion.fill(zero.span_mut(), 0.0)?;
        Ok(zero)
    }

    fn copy(&mut self, a: &DeviceVector) -> Result<DeviceVector> {
        let mut copy = self.vectors.take(a.span().len())?;
        copy.span_mut().copy_from(a.span(), self.motion.stream())?;
        Ok(copy)
    }

    fn combine(&mut self, y: &mut DeviceVector, f: f64, g: f64, x: &DeviceVector) -> Result<()> {
        self.motion.combine(y.span_mut(), f, g, x.span())
    }

    fn product(&mut self, a: &DeviceVector, b: &DeviceVector) -> Result<f64> {
        self.gaussians.product(a.span(), b.span(), self.motion.stream())
    }

    fn middle(&mut self) -> Result<(Vec3, usize)> {
        let [x, y, z, n] = self.gaussians.middle(self.present, self.motion.stream())?;
        Ok(([x, y, z].map(|sum| sum / n.max(1.0)), n as usize))
    }

    fn lost(&mut self, a: &DeviceVector, middle: Vec3) -> Result<[f64; 8]> {
        self.gaussians.lost(self.present, [self.strength, a.span()], middle, self.motion.stream())
    }

    fn moments(&mut self, a: &DeviceVector, middle: Vec3) -> Result<[[f64; 6]; 6]> {
        let all = self.gaussians.moments(self.present, a.span(), middle, self.motion.stream())?;
        Ok(std::array::from_fn(|i| std::array::from_fn(|j| all[6 * i + j])))
    }

    fn give_back(&mut self, a: &mut DeviceVector, middle: Vec3, factors: [f64; 6]) -> Result<()> {
        self.gaussians.give_back(self.present, a.span_mut(), middle, factors, self.motion.stream())
    }
}
