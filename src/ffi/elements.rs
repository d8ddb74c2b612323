//! Arrays of one kind of element as the caller hands them over, for plans, one-call functions and flows.
//!
//! Enters: counts and pointers of a call. Leaves: checked arrays, or `None` where there are no elements.

use crate::error::Result;
use crate::flow::edit::DustArrays;
use crate::plan::arrays::{Array, HostReal};
use crate::plan::sources::{Particles, Segments};

use super::boundary::{Arrays, count, row_length};

/// The arguments n_points, points, n, ld, connectivity, circulation, core_radius in this order.
pub type SegmentArguments<T> = (i64, *const T, i64, i64, *const i32, *const T, *const T);

/// # Safety
/// As `Arrays::input` for each array, with the lengths that the counts say. Of the last row of the connectivity only the
/// first two numbers are read.
pub unsafe fn segments<'a, T: HostReal>(
    arrays: &Arrays<'_>,
    given: SegmentArguments<T>,
) -> Result<Option<Segments<'a, T>>> {
    let (n_points, points, n, ld, connectivity, circulation, core) = given;
    let (n_points, n) = (count("n_points", n_points)?, count("n", n)?);
    if n == 0 {
        return Ok(None);
    }
    let ld = row_length(ld)?;
    Ok(Some(unsafe {
        Segments {
            n_points,
            points: arrays.input("points", points, 3 * n_points)?,
            n,
            ld,
            connectivity: arrays.input("connectivity", connectivity, (n - 1) * ld + 2)?,
            circulation: arrays.input("circulation", circulation, n)?,
            core: arrays.optional("core_radius", core, n)?,
        }
    }))
}

/// # Safety
/// As `Arrays::input` for each array: 3n numbers of `position` and `strength`, n of `core`, which may be NULL.
pub unsafe fn particles<'a, T: HostReal>(
    arrays: &Arrays<'_>,
    (n, position, strength, core): (i64, *const T, *const T, *const T),
) -> Result<Option<Particles<'a, T>>> {
    let n = count("n", n)?;
    if n == 0 {
        return Ok(None);
    }
    Ok(Some(unsafe {
        Particles {
            n,
            position: arrays.input("position", position, 3 * n)?,
            strength: arrays.input("strength", strength, 3 * n)?,
            core: arrays.optional("core_radius", core, n)?,
        }
    }))
}

/// # Safety
/// As `Arrays::input`: 3n numbers.
pub unsafe fn points<'a, T: HostReal>(arrays: &Arrays<'_>, n: i64, position: *const T) -> Result<Option<Array<'a, T>>> {
    let n = count("n", n)?;
    if n == 0 {
        return Ok(None);
    }
    unsafe { arrays.input("position", position, 3 * n) }.map(Some)
}

/// # Safety
/// As `Arrays::input` for each array: 3n numbers of `position` and `velocity`, which may be NULL, n of the others.
pub unsafe fn dust<'a, T: HostReal>(
    arrays: &Arrays<'_>,
    (n, position, velocity, diameter, density): (i64, *const T, *const T, *const T, *const T),
) -> Result<Option<DustArrays<'a, T>>> {
    let n = count("n", n)?;
    if n == 0 {
        return Ok(None);
    }
    Ok(Some(unsafe {
        DustArrays {
            position: arrays.input("position", position, 3 * n)?,
            velocity: arrays.optional("velocity", velocity, 3 * n)?,
            diameter: arrays.input("diameter", diameter, n)?,
            density: arrays.input("density", density, n)?,
        }
    }))
}
