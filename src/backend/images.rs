//! Sources with their images in a ground plane: which arrays are mirrored, and how (docs/theory.md, "A ground plane").
//!
//! Enters: inputs of a plan, and what doubles an array where it lies. Leaves: inputs with twice the sources, elements first and their
//! images after them in the same order, and the same targets.

use rayon::prelude::*;

use crate::error::Result;
use crate::inputs::{ArrayReal, ChargeInput, HostArray, Inputs, Ints, ParticleInput, Reals, SegmentInput};
use crate::memory;
use crate::options::Plane;

/// Arrays of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Points,
    Circulation,
    SegmentCore,
    Position,
    Strength,
    Core,
    ChargePosition,
    Charge,
}

pub const SLOTS: usize = 8;

/// What becomes of an array of sources in the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    Positions,
    /// Strengths of vortices, -R a: positions are mirrored, the sense of rotation is kept.
    PseudoVectors,
    Numbers {
        sign: i32,
    },
}

impl Image {
    /// Numbers of an element.
    pub fn width(self) -> usize {
        if matches!(self, Self::Numbers { .. }) { 1 } else { 3 }
    }

    /// Whether single precision rounds images, so that fields which an image nearly takes away would be lost: those of positions, unless
    /// the plane goes through zero.
    pub fn needs_double(self, plane: Plane) -> bool {
        self == Self::Positions && plane.position != 0.0
    }

    /// Number `component` of an element's image.
    fn of(self, plane: Plane, component: usize, x: f64) -> f64 {
        match self {
            Self::Positions if component == plane.axis => plane.image(x),
            Self::Positions => x,
            Self::PseudoVectors => -plane.sign(component) * x,
            Self::Numbers { sign } => f64::from(sign) * x,
        }
    }
}

/// Doubles arrays in host or in device memory; nothing where an array is in the other, or an image leaves the range of numbers.
pub trait Doubling {
    /// An array of n elements and after them their images. `change` counts the changes of the caller's array.
    fn reals(&mut self, slot: Slot, image: Image, from: &Reals, n: usize, change: u64) -> Result<Option<Reals>>;

    /// Ends of segments, `[2n][2]`; those of the images are `shift` points later.
    fn ends(&mut self, s: &SegmentInput, shift: i32, change: u64) -> Result<Option<Ints>>;
}

/// The value, or "no images" to the caller.
macro_rules! some_or_none {
    ($value:expr) => {
        match $value? {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}

/// The inputs with images of all sources.
pub fn with_images(inputs: &Inputs, by: &mut impl Doubling) -> Result<Option<Inputs>> {
    let mut with = inputs.clone();
    if let Some(s) = with.segments.as_mut().filter(|s| s.n > 0) {
        *s = some_or_none!(segments(s, inputs, by));
    }
    if let Some(p) = with.particles.as_mut().filter(|p| p.n > 0) {
        *p = some_or_none!(particles(p, inputs, by));
    }
    if let Some(c) = with.charges.as_mut().filter(|c| c.n > 0) {
        *c = some_or_none!(charges(c, inputs, by));
    }
    Ok(Some(with))
}

/// Circulations change their sign, since the ends of a segment keep their order.
fn segments(s: &SegmentInput, inputs: &Inputs, by: &mut impl Doubling) -> Result<Option<SegmentInput>> {
    let (positions, strengths) = (inputs.vortex_positions, inputs.vortex_strengths);
    let n_points = s.points.numbers() / 3;
    let Ok(shift) = i32::try_from(n_points) else { return Ok(None) };
    if i64::from(s.index_base) + 2 * i64::from(shift) > i64::from(i32::MAX) {
        return Ok(None);
    }
    let core = match &s.core {
        Some(core) => {
            Some(some_or_none!(by.reals(Slot::SegmentCore, Image::Numbers { sign: 1 }, core, s.n, positions)))
        }
        None => None,
    };
    Ok(Some(SegmentInput {
        n: 2 * s.n,
        points: some_or_none!(by.reals(Slot::Points, Image::Positions, &s.points, n_points, positions)),
        connectivity: some_or_none!(by.ends(s, shift, positions)),
        ld: 2,
        circulation: some_or_none!(by.reals(
            Slot::Circulation,
            Image::Numbers { sign: -1 },
            &s.circulation,
            s.n,
            strengths
        )),
        core,
        ..s.clone()
    }))
}

fn particles(p: &ParticleInput, inputs: &Inputs, by: &mut impl Doubling) -> Result<Option<ParticleInput>> {
    let (positions, strengths) = (inputs.vortex_positions, inputs.vortex_strengths);
    let core = match &p.core {
        Some(core) => Some(some_or_none!(by.reals(Slot::Core, Image::Numbers { sign: 1 }, core, p.n, positions))),
        None => None,
    };
    Ok(Some(ParticleInput {
        n: 2 * p.n,
        position: some_or_none!(by.reals(Slot::Position, Image::Positions, &p.position, p.n, positions)),
        strength: some_or_none!(by.reals(Slot::Strength, Image::PseudoVectors, &p.strength, p.n, strengths)),
        core,
        ..p.clone()
    }))
}

/// Images of charges have the same sign: nothing flows through the plane.
fn charges(c: &ChargeInput, inputs: &Inputs, by: &mut impl Doubling) -> Result<Option<ChargeInput>> {
    let (positions, strengths) = (inputs.charge_positions, inputs.charge_strengths);
    Ok(Some(ChargeInput {
        n: 2 * c.n,
        position: some_or_none!(by.reals(Slot::ChargePosition, Image::Positions, &c.position, c.n, positions)),
        charge: some_or_none!(by.reals(Slot::Charge, Image::Numbers { sign: 1 }, &c.charge, c.n, strengths)),
    }))
}

/// A doubled array, the change counter and the address of what it was made of.
type Kept<T> = Option<(u64, usize, T)>;

/// Arrays in host memory with images, made again where the caller's array changed.
#[derive(Debug, Default)]
pub struct OnHost {
    reals: [Kept<Reals>; SLOTS],
    ends: Kept<Ints>,
}

impl OnHost {
    pub fn bytes(&self) -> u64 {
        let reals = self.reals.iter().flatten().map(|(.., reals)| reals.host_bytes()).sum::<u64>();
        reals + self.ends.as_ref().map_or(0, |(.., ends)| ends.host_bytes())
    }

    /// Doubles with this plane; a plan keeps its plane.
    pub fn about(&mut self, plane: Plane) -> impl Doubling {
        AtPlane { plane, kept: self }
    }
}

struct AtPlane<'a> {
    plane: Plane,
    kept: &'a mut OnHost,
}

impl Doubling for AtPlane<'_> {
    fn reals(&mut self, slot: Slot, image: Image, from: &Reals, _: usize, change: u64) -> Result<Option<Reals>> {
        let Some(address) = from.host_address() else { return Ok(None) };
        let plane = self.plane;
        Ok(current(&mut self.kept.reals[slot as usize], (change, address), || {
            doubled(plane, image, from, image.needs_double(plane))
        }))
    }

    fn ends(&mut self, s: &SegmentInput, shift: i32, change: u64) -> Result<Option<Ints>> {
        let Ints::Host(ends) = &s.connectivity else { return Ok(None) };
        Ok(current(&mut self.kept.ends, (change, ends.as_ptr() as usize), || {
            let mut both: Vec<i32> = memory::with_room(4 * s.n);
            for shift in [0, shift] {
                both.extend(ends.chunks(s.ld).flat_map(|row| [row[0] + shift, row[1] + shift]));
            }
            Some(Ints::Host(both.into()))
        }))
    }
}

/// What is kept, made again where it is of another array.
fn current<T: Clone>(kept: &mut Kept<T>, of: (u64, usize), make: impl FnOnce() -> Option<T>) -> Option<T> {
    if kept.as_ref().is_none_or(|(change, address, _)| (*change, *address) != of) {
        *kept = None;
        *kept = make().map(|made| (of.0, of.1, made));
    }
    kept.as_ref().map(|(.., made)| made.clone())
}

/// An array in host memory and after it that of the images; nothing where one of these leaves the range of numbers. The threads of the
/// pool that it is called in share the work. `widens`: a single array becomes one in double precision.
pub fn doubled(plane: Plane, image: Image, from: &Reals, widens: bool) -> Option<Reals> {
    match from {
        Reals::HostF32(v) if widens => doubled_numbers::<f32, f64>(plane, image, v).map(f64::host),
        Reals::HostF32(v) => doubled_numbers::<f32, f32>(plane, image, v).map(f32::host),
        Reals::HostF64(v) => doubled_numbers::<f64, f64>(plane, image, v).map(f64::host),
        Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => None,
    }
}

fn doubled_numbers<T: ArrayReal, U: ArrayReal>(plane: Plane, image: Image, from: &[T]) -> Option<HostArray<U>> {
    let (n, width) = (from.len(), image.width());
    let number = |at: usize| match at {
        at if at < n => U::from_f64(from[at].to_f64()),
        at => U::from_f64(image.of(plane, at % width, from[at - n].to_f64())),
    };
    // Outside of a session's pool threads of everybody would be started.
    let both: Vec<U> = match rayon::current_thread_index() {
        Some(_) => memory::par_collect((0..2 * n).into_par_iter().with_min_len(1 << 14).map(number)),
        None => memory::collect((0..2 * n).map(number)),
    };
    both[n..].iter().fold(true, |all, x| all & x.is_finite()).then(|| both.into())
}
