//! The caller's arrays, checked and taken over.
//!
//! Enters: borrowed host slices or device addresses. Leaves: `Reals`/`Ints` of a plan (copies of host arrays, addresses of
//! device arrays), or an error that names the array, the first offending index and its value. Values in device memory
//! are not looked at here.

use rayon::prelude::*;
use std::borrow::Cow;

use crate::backend::cuda::Plain;
use crate::backend::cuda::array::{Span, SpanMut};
use crate::backend::cuda::staging::past_caches;
use crate::error::{Error, Result, WFMM_ERR_HOST_MEMORY, WFMM_ERR_NOT_FINITE, WFMM_ERR_VALUE, number};
use crate::inputs::{ArrayReal, HostArray, Ints, Reals, RealsMut, check_connectivity, is_point};
use crate::memory;
use crate::session::Session;

/// Numbers from which an array is copied and checked by several threads; waking them takes as long as half of that.
pub const SHARED_FROM: usize = 1 << 17;
/// Numbers that one thread takes at a time.
const SHARE: usize = 1 << 15;

/// Runs `work` where arrays of so many numbers are shared by the session's threads, if they are long.
pub fn on_pool<R: Send>(session: &Session, numbers: usize, work: impl FnOnce() -> R + Send) -> R {
    if numbers < SHARED_FROM { work() } else { session.pool().install(work) }
}

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
pub trait HostReal: ArrayReal + Plain {}
impl<T: ArrayReal + Plain> HostReal for T {}

impl<'a, T: Plain + Default> Array<'a, T> {
    /// The values; a copy where they are in device memory.
    pub fn on_host(self, session: &Session, name: &str) -> Result<Cow<'a, [T]>> {
        match self {
            Self::Host(values) => Ok(Cow::Borrowed(values)),
            Self::Device { address, len } => {
                let mut copy = reserve(name, len)?;
                copy.resize(len, T::default());
                session.copy_from_device(address, &mut copy)?;
                Ok(Cow::Owned(copy))
            }
        }
    }
}

impl<T: Plain> ArrayMut<'_, T> {
    /// Has it filled from its beginning; where it is in device memory by way of a copy.
    pub fn fill(self, session: &Session, name: &str, values: impl Iterator<Item = T>) -> Result<()> {
        match self {
            Self::Host(to) => to.iter_mut().zip(values).for_each(|(to, v)| *to = v),
            Self::Device { address, len } => {
                let mut copy = reserve(name, len)?;
                copy.extend(values.take(len));
                session.copy_to_device(address, &copy)?;
            }
        }
        Ok(())
    }
}

impl<'a, T: HostReal> Array<'a, T> {
    /// The array where it is in device memory and in double precision.
    pub fn device_doubles(self) -> Option<Span<'a, f64>> {
        let Self::Device { address, len } = self else { return None };
        is_double(&T::device(address, len)).then(|| Span::of_caller(address, len))
    }
}

impl<'a, T: HostReal> ArrayMut<'a, T> {
    /// The array where it is in device memory and in double precision.
    pub fn device_doubles(&mut self) -> Option<SpanMut<'_, f64>> {
        let Self::Device { address, len } = *self else { return None };
        is_double(&T::device(address, len)).then(|| SpanMut::of_caller(address, len))
    }

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
pub fn take_finite<T: HostReal>(
    session: &Session,
    name: &str,
    components: usize,
    array: Array<'_, T>,
) -> Result<Reals> {
    match array {
        Array::Host(values) => {
            if let Some(copy) = take_locked(session, values, ArrayReal::is_finite) {
                return Ok(T::host(copy));
            }
            check_finite(name, components, values)?;
            Ok(T::host(copy(name, values)?.into()))
        }
        Array::Device { address, len } => Ok(T::device(address, len)),
    }
}

/// Names the first number of an array that is none.
pub fn check_finite<T: HostReal>(name: &str, components: usize, values: &[T]) -> Result<()> {
    let Some(at) = first(values, |x| !x.is_finite()) else { return Ok(()) };
    Error::fail(WFMM_ERR_NOT_FINITE, describe(name, components, at, values[at], "finite numbers are needed"))
}

/// The same for core radii, which may be 0 but not negative.
pub fn take_radii<T: HostReal>(session: &Session, array: Array<'_, T>) -> Result<Reals> {
    if let Array::Host(values) = array {
        if let Some(copy) = take_locked(session, values, |x| x.is_finite() && !x.is_negative()) {
            return Ok(T::host(copy));
        }
        if let Some(at) = first(values, ArrayReal::is_negative) {
            return Error::fail(
                WFMM_ERR_VALUE,
                describe("core_radius", 1, at, values[at], "0 or a positive radius is needed"),
            );
        }
    }
    take_finite(session, "core_radius", 1, array)
}

/// A copy in page-locked memory where the session has such, made in the same sweep in which every value is looked at;
/// nothing where there is none or a value is not `good`.
fn take_locked<T: HostReal>(session: &Session, values: &[T], good: impl Fn(T) -> bool + Sync) -> Option<HostArray<T>> {
    let mut room = session.lock_pages::<T>(values.len())?;
    let sweep = |(to, from): (&mut [T], &[T])| {
        past_caches(to, from);
        from.iter().fold(true, |all, &x| all & good(x))
    };
    let good = if values.len() < SHARED_FROM {
        sweep((room.slice_mut(), values))
    } else {
        let shares = room.slice_mut().par_chunks_mut(SHARE).zip(values.par_chunks(SHARE));
        shares.map(sweep).reduce(|| true, |a, b| a & b)
    };
    good.then(|| HostArray::Lent(std::sync::Arc::new(room)))
}

/// Keeps the first two columns of a connectivity of `n` rows, `ld` apart, after checking the point numbers.
pub fn take_connectivity(
    session: &Session,
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
    let good = |number: i32| is_point(number, base, n_points);
    if let Some(mut room) = session.lock_pages::<i32>(2 * n) {
        let sweep = |(to, from): (&mut [i32], &[i32])| {
            to.chunks_exact_mut(2).zip(from.chunks(ld)).fold(true, |all, (to, row)| {
                to.copy_from_slice(&row[..2]);
                all & good(row[0]) & good(row[1])
            })
        };
        let good = if 2 * n < SHARED_FROM {
            sweep((room.slice_mut(), rows))
        } else {
            let shares = room.slice_mut().par_chunks_mut(2 * SHARE).zip(rows.par_chunks(ld * SHARE));
            shares.map(sweep).reduce(|| true, |a, b| a & b)
        };
        if good {
            return Ok((Ints::Host(HostArray::Lent(std::sync::Arc::new(room))), 2));
        }
    }
    check_connectivity(rows, ld, base, n_points)?;
    let mut ends = reserve("connectivity", 2 * n)?;
    rows.chunks(ld).for_each(|row| ends.extend_from_slice(&row[..2]));
    Ok((Ints::Host(ends.into()), 2))
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
fn describe<T: HostReal>(name: &str, components: usize, at: usize, value: T, wanted: &str) -> String {
    let value = number(value);
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

pub fn reserve<T>(name: &str, len: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    if memory::is_short() || v.try_reserve_exact(len).is_err() {
        let bytes = len as u128 * size_of::<T>() as u128;
        return Error::fail(WFMM_ERR_HOST_MEMORY, format!("no memory for a copy of {name}: {bytes} bytes"));
    }
    Ok(v)
}

pub fn is_double(array: &Reals) -> bool {
    matches!(array, Reals::HostF64(_) | Reals::DeviceF64 { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::WFMM_ERR_INDEX;
    use crate::options::{BackendKind, SessionOptions};

    fn session() -> std::sync::Arc<Session> {
        Session::new(&SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 1 }).unwrap()
    }

    #[test]
    fn the_first_offender_is_named() {
        let mut x = vec![0.0f64; 5000];
        x[4000] = f64::NAN;
        x[4500] = f64::INFINITY;
        let e = take_finite(&session(), "position", 3, Array::Host(&x)).unwrap_err();
        assert_eq!(e.status, WFMM_ERR_NOT_FINITE);
        assert!(e.message.starts_with("position[1333][1] = NaN"), "{}", e.message);
    }

    #[test]
    fn indices_are_checked_without_overflow() {
        let bad = [i32::MIN, 0];
        let e = take_connectivity(&session(), Array::Host(&bad), 1, 2, 1, 3).unwrap_err();
        assert_eq!(e.status, WFMM_ERR_INDEX);
        assert!(e.message.contains("connectivity[0][0]") && e.message.contains("1 to 3"), "{}", e.message);
    }

    #[test]
    fn only_end_points_are_kept() {
        // The last row of a wide connectivity ends after its second column.
        let wide = [0, 1, 77, 78, 1, 2];
        let (kept, ld) = take_connectivity(&session(), Array::Host(&wide), 2, 4, 0, 3).unwrap();
        assert_eq!((kept, ld), (Ints::Host(vec![0, 1, 1, 2].into()), 2));
    }
}
