//! Structs that know their own size: old callers with short ones, newer callers with long ones.

use crate::error::{Error, Result, WFMM_ERR_STRUCT_SIZE, WFMM_ERR_TOO_NEW};
use crate::flow::diagnostics::wfmm_diagnostics;
use crate::flow::options::wfmm_flow_options;
use crate::flow::picture::camera::wfmm_camera;
use crate::options::{wfmm_plan_options, wfmm_session_options};
use crate::report::wfmm_report;

use super::boundary::not_null;
use super::communicator::wfmm_communicator;

/// A plain struct of the API: `repr(C)`, numbers (or, in a communicator, functions) only, `struct_size: u32` first, then other fields of 4 bytes, then
/// fields of 8 or pairs of fields of 4.
///
/// # Safety
/// Every bit pattern is a value, and there is no padding.
pub unsafe trait SelfSized: Copy + Default {
    /// Where the fields of 8 bytes begin.
    const WIDE_FROM: usize;
    fn set_size(&mut self, size: u32);
}

macro_rules! self_sized { ($($t:ty, $wide:ident;)*) => { $(
    // `repr(C)` structs of numbers without gaps: see the layout tests.
    unsafe impl SelfSized for $t {
        const WIDE_FROM: usize = std::mem::offset_of!($t, $wide);
        fn set_size(&mut self, size: u32) {
            self.struct_size = size;
        }
    }
)* }; }
self_sized!(
    wfmm_session_options, flags;
    wfmm_plan_options, tolerance;
    wfmm_report, cells;
    wfmm_flow_options, viscosity;
    wfmm_diagnostics, time;
    wfmm_camera, eye;
    wfmm_communicator, user;
);

/// The size word and one field.
const LEAST: usize = 8;

/// The caller's struct, or the defaults where it is NULL. Fields beyond the caller's size keep their defaults; a tail
/// beyond ours must be zero, because this library does not know what it asks for.
///
/// # Safety
/// `pointer` is NULL or its `struct_size` bytes may be read.
pub unsafe fn read<T: SelfSized>(name: &str, pointer: *const T) -> Result<T> {
    let mut value = T::default();
    if pointer.is_null() {
        return Ok(value);
    }
    not_null(name, pointer)?;
    // `struct_size` comes first in every struct; the caller vouches for as many bytes as it says.
    let theirs = unsafe { pointer.cast::<u32>().read() } as usize;
    check_size(name, theirs)?;
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), theirs) };
    let ours = size_of::<T>();
    if let Some(at) = bytes.iter().skip(ours).position(|&b| b != 0) {
        let known = format!("this library knows {ours} bytes of this struct; the caller needs a newer library");
        return Error::fail(WFMM_ERR_TOO_NEW, format!("{name}: byte {} of {theirs} is set, but {known}", ours + at));
    }
    let len = whole_fields::<T>(theirs.min(ours));
    // Any bytes are a value of T, and `len` is at most its size.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut value).cast::<u8>(), len) };
    value.set_size(ours as u32);
    Ok(value)
}

/// Writes a struct as far as the caller knows it and zeroes what only the caller knows.
///
/// # Safety
/// `size` bytes may be written.
pub unsafe fn write<T: SelfSized>(name: &str, pointer: *mut T, size: usize, mut value: T) -> Result<()> {
    not_null(name, pointer)?;
    check_size(name, size)?;
    value.set_size(size as u32);
    let len = size.min(size_of::<T>());
    // Source and destination are different objects; both lengths were checked.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), pointer.cast::<u8>(), len);
        pointer.cast::<u8>().add(len).write_bytes(0, size - len);
    }
    Ok(())
}

/// Writes a struct of whose bytes the caller has set the size only.
///
/// # Safety
/// `pointer` is NULL, or its first word may be read and as many bytes as it says may be written.
pub unsafe fn fill<T: SelfSized>(name: &str, pointer: *mut T, value: T) -> Result<()> {
    unsafe { write(name, pointer, size_of_callers(name, pointer)?, value) }
}

/// The size that the caller has set.
///
/// # Safety
/// `pointer` is NULL, or its first word may be read.
pub unsafe fn size_of_callers<T: SelfSized>(name: &str, pointer: *const T) -> Result<usize> {
    not_null(name, pointer)?;
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    check_size(name, size).map(|()| size)
}

pub fn check_size(name: &str, size: usize) -> Result<()> {
    // No struct of any version comes near 64 KiB; a larger number is memory that was never initialized.
    if (LEAST..=65536).contains(&size) {
        return Ok(());
    }
    let hint = "fill options with their _options_init function, or set struct_size to sizeof";
    Error::fail(WFMM_ERR_STRUCT_SIZE, format!("{name}: struct_size = {size}; {hint}"))
}

/// A field is taken as a whole or not at all.
fn whole_fields<T: SelfSized>(len: usize) -> usize {
    if len < T::WIDE_FROM { len & !3 } else { T::WIDE_FROM + ((len - T::WIDE_FROM) & !7) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_padding_and_wide_fields_aligned() {
        assert_eq!((size_of::<wfmm_session_options>(), wfmm_session_options::WIDE_FROM), (40, 16));
        assert_eq!((size_of::<wfmm_plan_options>(), wfmm_plan_options::WIDE_FROM), (104, 32));
        assert_eq!((size_of::<wfmm_flow_options>(), wfmm_flow_options::WIDE_FROM), (16 + 8 * 16, 16));
        assert_eq!((size_of::<wfmm_diagnostics>(), wfmm_diagnostics::WIDE_FROM), (8 + 8 * 19, 8));
        assert_eq!((size_of::<wfmm_camera>(), wfmm_camera::WIDE_FROM), (24 + 8 * 22, 24));
        assert_eq!((size_of::<wfmm_communicator>(), wfmm_communicator::WIDE_FROM), (16 + 8 * 6, 16));
        assert_eq!((size_of::<wfmm_report>(), wfmm_report::WIDE_FROM), (24 + 8 * (6 + 16 + 3), 24));
    }

    #[test]
    fn a_short_struct_keeps_defaults_for_the_rest() {
        // 36: up to index_base, and half of the tolerance.
        for size in [32, 36] {
            let o = wfmm_plan_options { struct_size: size, method: 2, tolerance: 0.5, ..Default::default() };
            let read = unsafe { read("options", &o) }.unwrap();
            assert_eq!((read.method, read.tolerance), (2, 1e-4));
        }
        // Callers from before there were several devices.
        let o = wfmm_session_options { struct_size: 24, threads: 3, n_devices: 9, ..Default::default() };
        let read = unsafe { read("options", &o) }.unwrap();
        assert_eq!((read.threads, read.n_devices, read.devices.is_null()), (3, 0, true));
    }

    #[test]
    fn a_long_struct_may_only_be_zero_beyond_our_end() {
        let long = |last: u64| {
            const WORDS: usize = size_of::<wfmm_plan_options>() / 8;
            let mut bytes = [0u64; WORDS + 2];
            let o = wfmm_plan_options { struct_size: size_of_val(&bytes) as u32, ..Default::default() };
            unsafe { std::ptr::copy_nonoverlapping((&raw const o).cast::<u64>(), bytes.as_mut_ptr(), WORDS) };
            bytes[WORDS + 1] = last;
            unsafe { read::<wfmm_plan_options>("options", bytes.as_ptr().cast()) }.map_err(|e| e.status)
        };
        assert!(long(0).is_ok());
        assert_eq!(long(1).unwrap_err(), WFMM_ERR_TOO_NEW);
    }

    #[test]
    fn a_size_of_zero_is_a_struct_that_was_not_initialized() {
        let o = wfmm_plan_options { struct_size: 0, ..Default::default() };
        assert_eq!(unsafe { read("options", &o) }.unwrap_err().status, WFMM_ERR_STRUCT_SIZE);
    }
}
