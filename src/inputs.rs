//! The arrays of one plan as the host handed them over: copied (host memory) or borrowed (device memory).
//!
//! Enters: checked arrays from `ffi`. Leaves: read by an engine, which converts them to its computing precision while it
//! sorts them into its tree. An engine may be dropped and another made from the same `Inputs` (fall back, new precision).

use crate::error::{Error, Result, WFMM_ERR_INDEX};
use std::fmt::{Debug, Display, LowerExp};
use std::ops::Deref;
use std::sync::Arc;

/// Host memory of a back end's own making, page-locked for example.
pub trait Lent<T>: AsRef<[T]> + Debug + Send + Sync {}
impl<T, M: AsRef<[T]> + Debug + Send + Sync> Lent<T> for M {}

/// A plan's copy of a host array; copies of it share the numbers.
#[derive(Debug, Clone)]
pub enum HostArray<T: 'static> {
    Own(Arc<Vec<T>>),
    /// Shared with the engine while the bus still reads it.
    Lent(Arc<dyn Lent<T>>),
}

impl<T> Deref for HostArray<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Self::Own(values) => values,
            Self::Lent(memory) => (**memory).as_ref(),
        }
    }
}

impl<T> From<Vec<T>> for HostArray<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Own(Arc::new(values))
    }
}

impl<T: PartialEq> PartialEq for HostArray<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// Real numbers in the host's precision, in host memory (a copy) or device memory (borrowed, address and length).
#[derive(Debug, Clone, PartialEq)]
pub enum Reals {
    HostF32(HostArray<f32>),
    HostF64(HostArray<f64>),
    DeviceF32 { address: u64, len: usize },
    DeviceF64 { address: u64, len: usize },
}

impl Reals {
    /// How many numbers.
    pub fn numbers(&self) -> usize {
        match self {
            Self::HostF32(v) => v.len(),
            Self::HostF64(v) => v.len(),
            Self::DeviceF32 { len, .. } | Self::DeviceF64 { len, .. } => *len,
        }
    }

    /// Where an array in host memory is.
    pub fn host_address(&self) -> Option<usize> {
        match self {
            Self::HostF32(v) => Some(v.as_ptr() as usize),
            Self::HostF64(v) => Some(v.as_ptr() as usize),
            Self::DeviceF32 { .. } | Self::DeviceF64 { .. } => None,
        }
    }

    /// Bytes of host memory.
    pub fn host_bytes(&self) -> u64 {
        match self {
            Self::HostF32(v) => size_of_val(&**v) as u64,
            Self::HostF64(v) => size_of_val(&**v) as u64,
            Self::DeviceF32 { .. } | Self::DeviceF64 { .. } => 0,
        }
    }
}

/// Integers, likewise.
#[derive(Debug, Clone, PartialEq)]
pub enum Ints {
    Host(HostArray<i32>),
    Device { address: u64, len: usize },
}

impl Ints {
    /// Bytes of host memory.
    pub fn host_bytes(&self) -> u64 {
        match self {
            Self::Host(v) => size_of_val(&**v) as u64,
            Self::Device { .. } => 0,
        }
    }
}

/// Where results go; the live length is the slice's.
#[derive(Debug)]
pub enum RealsMut<'a> {
    HostF32(&'a mut [f32]),
    HostF64(&'a mut [f64]),
    DeviceF32 { address: u64, len: usize },
    DeviceF64 { address: u64, len: usize },
}

impl RealsMut<'_> {
    /// The same output, borrowed for one attempt.
    pub fn again(&mut self) -> RealsMut<'_> {
        match self {
            RealsMut::HostF32(values) => RealsMut::HostF32(values),
            RealsMut::HostF64(values) => RealsMut::HostF64(values),
            RealsMut::DeviceF32 { address, len } => RealsMut::DeviceF32 { address: *address, len: *len },
            RealsMut::DeviceF64 { address, len } => RealsMut::DeviceF64 { address: *address, len: *len },
        }
    }
}

/// `f32` and `f64` as elements of arrays.
pub trait ArrayReal: Copy + Default + Send + Sync + Debug + Display + LowerExp + Into<f64> + 'static {
    const DOUBLE: bool;
    fn host(values: HostArray<Self>) -> Reals;
    fn device(address: u64, len: usize) -> Reals;
    fn host_mut(values: &mut [Self]) -> RealsMut<'_>;
    fn device_mut<'a>(address: u64, len: usize) -> RealsMut<'a>;
    fn is_finite(self) -> bool;
    fn is_negative(self) -> bool;
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
}

macro_rules! array_real {
    ($t:ident, $double:literal, $host:ident, $device:ident) => {
        impl ArrayReal for $t {
            const DOUBLE: bool = $double;
            fn host(values: HostArray<Self>) -> Reals {
                Reals::$host(values)
            }
            fn device(address: u64, len: usize) -> Reals {
                Reals::$device { address, len }
            }
            fn host_mut(values: &mut [Self]) -> RealsMut<'_> {
                RealsMut::$host(values)
            }
            fn device_mut<'a>(address: u64, len: usize) -> RealsMut<'a> {
                RealsMut::$device { address, len }
            }
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            fn is_negative(self) -> bool {
                self < 0.0
            }
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}
array_real!(f32, false, HostF32, DeviceF32);
array_real!(f64, true, HostF64, DeviceF64);

/// Straight vortex segments; physics: u = s Γ F (|r1|+|r2|)/D r1×r2.
#[derive(Debug, Clone)]
pub struct SegmentInput {
    /// Number of segments.
    pub n: usize,
    /// `[n_points][3]`, end points, length units of the caller.
    pub points: Reals,
    /// `[n][ld]`; the first two of each row are the point numbers of P1 and P2, counted from `index_base`.
    pub connectivity: Ints,
    pub ld: usize,
    pub index_base: i32,
    /// `[n]`, circulation Γ.
    pub circulation: Reals,
    /// `[n]`, core radius c; `None`: `default_core` for all.
    pub core: Option<Reals>,
    pub default_core: f64,
}

/// Vortex particles.
#[derive(Debug, Clone)]
pub struct ParticleInput {
    pub n: usize,
    /// `[n][3]`
    pub position: Reals,
    /// `[n][3]`
    pub strength: Reals,
    pub core: Option<Reals>,
    pub default_core: f64,
}

/// Charges.
#[derive(Debug, Clone)]
pub struct ChargeInput {
    pub n: usize,
    pub position: Reals,
    pub charge: Reals,
}

/// Targets.
#[derive(Debug, Clone)]
pub struct TargetInput {
    pub n: usize,
    pub position: Reals,
}

/// Everything that a plan was given. The counters grow at each change, so that an engine knows what to redo.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    pub segments: Option<SegmentInput>,
    pub particles: Option<ParticleInput>,
    pub charges: Option<ChargeInput>,
    pub targets: Option<TargetInput>,
    /// Positions (and cores) of segments or particles changed.
    pub vortex_positions: u64,
    /// Circulations or strengths changed (also bumped with `vortex_positions`).
    pub vortex_strengths: u64,
    pub charge_positions: u64,
    pub charge_strengths: u64,
    pub target_positions: u64,
}

impl Inputs {
    /// Segments and particles.
    pub fn vortices(&self) -> usize {
        self.segments.as_ref().map_or(0, |s| s.n) + self.particles.as_ref().map_or(0, |p| p.n)
    }

    pub fn points(&self) -> usize {
        self.targets.as_ref().map_or(0, |t| t.n)
    }
}

/// Names the first point number, of the first two of a row, that is none.
pub fn check_connectivity(rows: &[i32], ld: usize, base: i32, n_points: usize) -> Result<()> {
    for (k, row) in rows.chunks(ld).enumerate() {
        let bad = row[..2].iter().position(|&number| !is_point(number, base, n_points));
        if let Some(end) = bad {
            let last = base as i64 + n_points as i64 - 1;
            let range = format!("accepted: {base} to {last} (index_base = {base}, n_points = {n_points})");
            let message = format!("connectivity[{k}][{end}] = {} is no point; {range}", row[end]);
            return Error::fail(WFMM_ERR_INDEX, message);
        }
    }
    Ok(())
}

/// In 64 bits: base + n_points may pass the range of i32, and so may number - base.
pub fn is_point(number: i32, base: i32, n_points: usize) -> bool {
    (0..n_points as i64).contains(&(number as i64 - base as i64))
}
