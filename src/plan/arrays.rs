//! The caller's arrays, checked and taken over.
//!
//! Enters: borrowed host slices or device addresses. Leaves: `Reals`/`Ints` of a plan (copies of host arrays, addresses of
//! device arrays), or an error that names the array, the first offending index and its value. Values in device memory
//! are not looked at here.

use rayon::prelude::*;

use crate::error::{Error, Result, WFMM_ERR_HOST_MEMORY, WFMM_ERR_INDEX, WFMM_ERR_NOT_FINITE, WFMM_ERR_VALUE};
use crate::inputs::{Ints, Reals, RealsMut};

/// Numbers from which an array is copied and checked by several threads.
const SHARED_FROM: usize = 1 << 17;

/// An input array of one call.
#[derive(Debug, Clone, Copy)]
pub enum Array<'a, T> {
    Host(&'a [T]),
    Device { address: u64, len: usize },
}

/// An output array of one call.
#[derive(Debug)]
pub enum ArrayMut<'a, T> {
    Host(&'a mut [T]),
    Device { address: u64, len: usize },
}

/// `f32` and `f64` as element types of the caller's arrays.
pub trait HostReal: Copy + Default + Send + Sync + std::fmt::Display + 'static {
    const DOUBLE: bool;
    fn host(values: Vec<Self>) -> Reals;
    fn device(address: u64, len: usize) -> Reals;
    fn host_mut(values: &mut [Self]) -> RealsMut<'_>;
    fn device_mut<'a>(address: u64, len: usize) -> RealsMut<'a>;
    fn is_finite(self) -> bool;
    fn is_negative(self) -> bool;
    fn from_f64(x: f64) -> Self;
}

macro_rules! host_real {
    ($t:ident, $double:literal, $host:ident, $device:ident) => {
        impl HostReal for $t {
            const DOUBLE: bool = $double;
            fn host(values: Vec<Self>) -> Reals {
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
        }
    };
}
host_real!(f32, false, HostF32, DeviceF32);
host_real!(f64, true, HostF64, DeviceF64);

impl<'a, T: HostReal> ArrayMut<'a, T> {
    pub fn into_reals(self) -> RealsMut<'a> {
        match self {
            Self::Host(values) => T::host_mut(values),
            Self::Device { address, len } => T::device_mut(address, len),
        }
    }

    /// Zeroes a host array; says whether it was one.
    pub fn zero_on_host(&mut self) -> bool {
        match self {
            Self::Host(values) => {
                values.fill(T::default());
                true
            }
            Self::Device { .. } => false,
        }
    }
}

/// Copies (host) or borrows (device) an array of finite numbers, `components` to an element.
pub fn take_finite<T: HostReal>(name: &str, components: usize, array: Array<'_, T>) -> Result<Reals> {
    match array {
        Array::Host(values) => {
            if let Some(at) = first(values, |x| !x.is_finite()) {
                return Error::fail(
                    WFMM_ERR_NOT_FINITE,
                    describe(name, components, at, values[at], "finite numbers are needed"),
                );
            }
            Ok(T::host(copy(name, values)?))
        }
        Array::Device { address, len } => Ok(T::device(address, len)),
    }
}

/// The same for core radii, which may be 0 but not negative.
pub fn take_radii<T: HostReal>(array: Array<'_, T>) -> Result<Reals> {
    if let Array::Host(values) = array
        && let Some(at) = first(values, HostReal::is_negative)
    {
        return Error::fail(
            WFMM_ERR_VALUE,
            describe("core_radius", 1, at, values[at], "0 or a positive radius is needed"),
        );
    }
    take_finite("core_radius", 1, array)
}

/// Keeps the first two columns of a connectivity of `n` rows, `ld` apart, after checking the point numbers.
pub fn take_connectivity(
    array: Array<'_, i32>,
    n: usize,
    ld: usize,
    base: i32,
    n_points: usize,
) -> Result<(Ints, usize)> {
    let rows = match array {
        Array::Device { address, len } => return Ok((Ints::Device { address, len }, ld)),
        Array::Host(rows) => rows,
    };
    let mut ends = reserve("connectivity", 2 * n)?;
    for (k, row) in rows.chunks(ld).enumerate() {
        for (end, &number) in row[..2].iter().enumerate() {
            // In 64 bits: base + n_points may pass the range of i32, and so may number - base.
            if !(0..n_points as i64).contains(&(number as i64 - base as i64)) {
                let last = base as i64 + n_points as i64 - 1;
                let range = format!("accepted: {base} to {last} (index_base = {base}, n_points = {n_points})");
                return Error::fail(
                    WFMM_ERR_INDEX,
                    format!("connectivity[{k}][{end}] = {number} is no point; {range}"),
                );
            }
            ends.push(number);
        }
    }
    Ok((Ints::Host(ends), 2))
}

/// The first element with a property. Blocks are scanned without a branch, so that good arrays pass at memory speed; long
/// arrays by all threads of the caller's pool.
fn first<T: Copy + Sync>(values: &[T], bad: impl Fn(T) -> bool + Sync) -> Option<usize> {
    const BLOCK: usize = 1024;
    let in_block = |b: usize, block: &[T]| {
        let any = block.iter().fold(false, |any, &x| any | bad(x));
        any.then(|| block.iter().position(|&x| bad(x)).map(|i| b * BLOCK + i)).flatten()
    };
    if values.len() < SHARED_FROM {
        return values.chunks(BLOCK).enumerate().find_map(|(b, block)| in_block(b, block));
    }
    let blocks = values.par_chunks(BLOCK).enumerate().with_min_len(16);
    blocks.filter_map(|(b, block)| in_block(b, block)).min()
}

/// `name[element][component] = value; …` in C's order, elements counted from 0.
fn describe(name: &str, components: usize, at: usize, value: impl std::fmt::Display, wanted: &str) -> String {
    if components == 1 {
        format!("{name}[{at}] = {value} (elements counted from 0); {wanted}")
    } else {
        format!("{name}[{}][{}] = {value} (elements counted from 0); {wanted}", at / components, at % components)
    }
}

fn copy<T: Copy + Send + Sync>(name: &str, values: &[T]) -> Result<Vec<T>> {
    let mut copy = reserve(name, values.len())?;
    if values.len() < SHARED_FROM {
        copy.extend_from_slice(values);
    } else {
        // Touching fresh pages costs more than the copy: that too is shared.
        copy.par_extend(values.par_iter().with_min_len(1 << 14).copied());
    }
    Ok(copy)
}

fn reserve<T>(name: &str, len: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    v.try_reserve_exact(len).map_err(|_| {
        let bytes = len as u128 * size_of::<T>() as u128;
        Error::new(WFMM_ERR_HOST_MEMORY, format!("no memory for a copy of {name}: {bytes} bytes"))
    })?;
    Ok(v)
}

/// Bytes of host memory that an array of a plan holds.
pub fn host_bytes(array: &Reals) -> u64 {
    match array {
        Reals::HostF32(v) => (v.capacity() * size_of::<f32>()) as u64,
        Reals::HostF64(v) => (v.capacity() * size_of::<f64>()) as u64,
        Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. } => 0,
    }
}

pub fn is_double(array: &Reals) -> bool {
    matches!(array, Reals::HostF64(_) | Reals::DeviceF64 { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_offender_is_named() {
        let mut x = vec![0.0f64; 5000];
        x[4000] = f64::NAN;
        x[4500] = f64::INFINITY;
        let e = take_finite("position", 3, Array::Host(&x)).unwrap_err();
        assert_eq!(e.status, WFMM_ERR_NOT_FINITE);
        assert!(e.message.starts_with("position[1333][1] = NaN"), "{}", e.message);
    }

    #[test]
    fn indices_are_checked_without_overflow() {
        let bad = [i32::MIN, 0];
        let e = take_connectivity(Array::Host(&bad), 1, 2, 1, 3).unwrap_err();
        assert_eq!(e.status, WFMM_ERR_INDEX);
        assert!(e.message.contains("connectivity[0][0]") && e.message.contains("1 to 3"), "{}", e.message);
    }

    #[test]
    fn only_end_points_are_kept() {
        // The last row of a wide connectivity ends after its second column.
        let wide = [0, 1, 77, 78, 1, 2];
        let (kept, ld) = take_connectivity(Array::Host(&wide), 2, 4, 0, 3).unwrap();
        assert_eq!((kept, ld), (Ints::Host(vec![0, 1, 1, 2]), 2));
    }
}
