//! What the pair kernels read: targets by component, sources one record each.
//!
//! Enters: positions, strengths, core radii, in units in which the whole problem is of
//! size one. Leaves: records that hold, beside these, what depends on the source alone. A source is broadcast to all lanes,
//! so one record in one or two cache lines is better than one array per component.

use crate::math::regularization::LAMB_OSEEN;
use crate::memory;
use crate::options::Regularization;
use crate::simd::Real;

/// Targets, by component; all of one length.
#[derive(Debug, Clone, Default)]
pub struct Points<T> {
    pub x: Vec<T>,
    pub y: Vec<T>,
    pub z: Vec<T>,
}

impl<T: Real> Points<T> {
    pub fn with_capacity(n: usize) -> Self {
        Self { x: memory::with_room(n), y: memory::with_room(n), z: memory::with_room(n) }
    }
    pub fn push(&mut self, p: [f64; 3]) {
        self.x.push(T::of(p[0]));
        self.y.push(T::of(p[1]));
        self.z.push(T::of(p[2]));
    }
    pub fn len(&self) -> usize {
        self.x.len()
    }
    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }
}

/// What a core parameter is at most, so that no product of the kernels overflows; far beyond any real ratio.
fn largest<T: Real>() -> f64 {
    if T::IS_F64 { 1e60 } else { 1e14 }
}

/// One vortex particle.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Particle<T> {
    pub position: [T; 3],
    pub strength: [T; 3],
    pub core: T,
    /// What the regularization needs of the core radius.
    pub k: T,
}

/// One straight segment. ℓ = P2 - P1 is kept as `along` = ℓ/2^n, with a length in [1, 2): exact, and neither |C|² nor
/// c⁴ underflows in single precision.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Segment<T> {
    pub p1: [T; 3],
    pub p2: [T; 3],
    pub along: [T; 3],
    /// Γ 2^n, and zero for a segment without length.
    pub gamma: T,
    pub k: T,
    /// 1/|along|²
    pub inverse: T,
    /// 2^(-n)
    pub unit: T,
    pub core: T,
    pub circulation: T,
    /// Vatistas in f32: what |C|² is multiplied by so that its square stays a number.
    pub lift: T,
}

/// One charge.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Charge<T> {
    pub position: [T; 3],
    pub charge: T,
}

/// Vortex particles of one regularization.
#[derive(Debug, Clone)]
pub struct ParticleSources<T> {
    pub list: Vec<Particle<T>>,
    reg: Regularization,
    cored: bool,
}

impl<T: Real> ParticleSources<T> {
    pub fn new(reg: Regularization) -> Self {
        Self { list: vec![], reg, cored: false }
    }

    pub fn push(&mut self, position: [f64; 3], strength: [f64; 3], core: f64) {
        use Regularization::*;
        let inverse = (1.0 / core).min(largest::<T>());
        let k = match self.reg {
            GaussErf | Exponential => inverse,
            Polynomial => inverse * inverse,
            Compact if T::IS_F64 => core.powi(6),
            _ => core * core,
        };
        self.cored |= core > 0.0 && self.reg != None;
        self.list.push(Particle {
            position: position.map(T::of),
            strength: strength.map(T::of),
            core: T::of(core),
            k: T::of(k),
        });
    }

    pub fn set_strength(&mut self, i: usize, strength: [f64; 3]) {
        self.list[i].strength = strength.map(T::of);
    }

    /// `None` where no source has a core.
    pub fn regularization(&self) -> Regularization {
        if self.cored { self.reg } else { Regularization::None }
    }
}

/// Segments of one regularization.
#[derive(Debug, Clone)]
pub struct SegmentSources<T> {
    pub list: Vec<Segment<T>>,
    reg: Regularization,
    cored: bool,
}

impl<T: Real> SegmentSources<T> {
    pub fn new(reg: Regularization) -> Self {
        Self { list: vec![], reg, cored: false }
    }

    pub fn push(&mut self, p1: [f64; 3], p2: [f64; 3], circulation: f64, core: f64) {
        use Regularization::*;
        let (p1, p2) = (p1.map(T::of), p2.map(T::of));
        // In T, so that a target on an end point or on a line along an axis is so for the kernel, too.
        let l: [f64; 3] = std::array::from_fn(|i| (p2[i] - p1[i]).f64());
        let size = l.iter().map(|l| l * l).sum::<f64>().sqrt();
        let unit = if size > 0.0 { (-size.log2().floor()).exp2() } else { 0.0 };
        let l = l.map(|l| l * unit);
        let square = l.iter().map(|l| l * l).sum::<f64>();
        let c2 = core * core;
        // |C|² lies between 1e-35 and 12; see `segments::Vatistas`.
        let lift = if c2 * square < 1e-10 && !T::IS_F64 { 2f64.powi(60) } else { 1.0 };
        let k = match self.reg {
            None => 0.0,
            // Without a core F must be one at the least |C|² of `segments::least`.
            LambOseen => (LAMB_OSEEN / (c2 * square)).min(if T::IS_F64 { 1e202 } else { 1e37 }),
            Vatistas => (c2 * square * lift).powi(2),
            Offset => c2 * size * size,
            _ => c2 * square,
        };
        self.cored |= core > 0.0 && self.reg != None;
        self.list.push(Segment {
            p1,
            p2,
            along: l.map(T::of),
            gamma: T::of(if size > 0.0 { circulation / unit } else { 0.0 }),
            k: T::of(if size > 0.0 { k } else { 0.0 }),
            inverse: T::of(if size > 0.0 { 1.0 / square } else { 0.0 }),
            unit: T::of(unit),
            core: T::of(core),
            circulation: T::of(circulation),
            lift: T::of(lift),
        });
    }

    pub fn set_circulation(&mut self, i: usize, circulation: f64) {
        let s = &mut self.list[i];
        s.circulation = T::of(circulation);
        s.gamma = if s.unit > T::ZERO { T::of(circulation / s.unit.f64()) } else { T::ZERO };
    }

    /// `None` where no source has a core.
    pub fn regularization(&self) -> Regularization {
        if self.cored { self.reg } else { Regularization::None }
    }
}

/// Charges.
#[derive(Debug, Clone, Default)]
pub struct ChargeSources<T> {
    pub list: Vec<Charge<T>>,
}

impl<T: Real> ChargeSources<T> {
    pub fn push(&mut self, position: [f64; 3], charge: f64) {
        self.list.push(Charge { position: position.map(T::of), charge: T::of(charge) });
    }
}
