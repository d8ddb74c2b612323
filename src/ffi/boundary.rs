//! The boundary itself: what every exported function goes through.
//!
//! Enters: raw pointers and numbers of a C caller. Leaves: checked Rust values, a status, and the calling thread's last
//! message. No panic passes; outputs are written by the functions only after everything that can fail.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{
    Error, Result, WFMM_ERR_COUNT, WFMM_ERR_HOST_MEMORY, WFMM_ERR_NULL, WFMM_ERR_OVERLAP, WFMM_ERR_VALUE, WFMM_OK,
    stopped,
};
use crate::memory;
use crate::options::{Memory, code};
use crate::plan::arrays::{Array, ArrayMut};
use crate::session::{Location, Session};

use super::wfmm_status;

/// Counts end where 32-bit point numbers do.
const COUNT_MAX: i64 = i32::MAX as i64;

/// Longest message; longer ones are cut.
const MESSAGE_MAX: usize = 2048;

/// A thread's last message. Without a destructor: registering one allocates, and ends the process where that fails.
struct Message {
    text: [u8; MESSAGE_MAX],
    length: usize,
}

thread_local! {
    static LAST_ERROR: RefCell<Message> = const { RefCell::new(Message { text: [0; MESSAGE_MAX], length: 0 }) };
}

/// Exported functions of one type: `api! { /// doc  fn wfmm_name(arg: type, …) { body: Result<()> } }`.
/// Attributes of arguments (`shape`, `optional`) are for the generator of the Fortran module.
macro_rules! api {
    ($( $(#[$doc:meta])* fn $name:ident($( $(#[$am:meta])* $arg:ident: $ty:ty ),* $(,)?) $body:block )*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers must be NULL or point to as many elements as the description says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::ffi::wfmm_status {
            const { $($crate::ffi::ctypes::allowed::<$ty>();)* }
            $crate::ffi::boundary::guard(stringify!($name), move || $body)
        }
    )* };
}
pub(super) use api;

/// Functions in single and double precision from one body, in which `Real` is the type of the arrays:
/// `twins! { /// doc  fn name_f32 | name_f64(arg: *const Real, …) { body } }`.
macro_rules! twins {
    ($( $(#[$doc:meta])* fn $single:ident | $double:ident($( $(#[$am:meta])* $arg:ident: $ty:ty ),* $(,)?) $body:block )*) => {
        /// Arrays of single precision.
        pub mod single {
            use super::*;
            type Real = f32;
            $crate::ffi::boundary::api! { $( $(#[$doc])* fn $single($($arg: $ty),*) $body )* }
        }
        /// Arrays of double precision.
        pub mod double {
            use super::*;
            type Real = f64;
            $crate::ffi::boundary::api! { $( $(#[$doc])* fn $double($($arg: $ty),*) $body )* }
        }
    };
}
pub(super) use twins;

/// Runs the body of an exported function; its error or panic becomes a status and the thread's message.
pub fn guard(function: &str, body: impl FnOnce() -> Result<()>) -> wfmm_status {
    let _float_mode = super::float_mode::Default::enter();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => WFMM_OK,
        Ok(Err(error)) => {
            set_last_error(&format!("{function}: {}", error.message));
            error.status
        }
        Err(unwound) => {
            let error = stopped(&*unwound, WFMM_ERR_HOST_MEMORY);
            set_last_error(&format!("{function}: {}", error.message));
            error.status
        }
    }
}

/// Nothing new is begun while the system has no memory: what is there may still be finished or destroyed.
pub fn enough_memory() -> Result<()> {
    if !memory::is_short() {
        return Ok(());
    }
    Error::fail(WFMM_ERR_HOST_MEMORY, "the system has no host memory left")
}

pub fn set_last_error(message: &str) {
    let length = (0..=MESSAGE_MAX.min(message.len())).rev().find(|&n| message.is_char_boundary(n)).unwrap_or(0);
    LAST_ERROR.with_borrow_mut(|last| {
        last.text[..length].copy_from_slice(&message.as_bytes()[..length]);
        last.length = length;
    });
}

pub fn last_error() -> String {
    LAST_ERROR.with_borrow(|last| String::from_utf8_lossy(&last.text[..last.length]).into_owned())
}

/// A count of elements or points.
pub fn count(name: &str, n: i64) -> Result<usize> {
    if (0..=COUNT_MAX).contains(&n) {
        return Ok(n as usize);
    }
    Error::fail(WFMM_ERR_COUNT, format!("{name} = {n}; accepted: 0 to {COUNT_MAX}"))
}

/// A size in bytes: no object is larger than `isize::MAX`.
pub fn size(name: &str, bytes: i64) -> Result<usize> {
    let size = usize::try_from(bytes).ok().filter(|&n| n <= isize::MAX as usize);
    size.ok_or_else(|| Error::new(WFMM_ERR_COUNT, format!("{name} = {bytes}; accepted: 0 to {}", isize::MAX)))
}

/// Distance between rows of a connectivity.
pub fn row_length(ld: i64) -> Result<usize> {
    if (2..=COUNT_MAX).contains(&ld) {
        return Ok(ld as usize);
    }
    Error::fail(WFMM_ERR_VALUE, format!("ld = {ld}; a row of the connectivity holds at least 2 point numbers"))
}

pub fn not_null<T>(name: &str, pointer: *const T) -> Result<()> {
    if pointer.is_null() {
        return Error::fail(WFMM_ERR_NULL, format!("{name} is NULL"));
    }
    if !pointer.is_aligned() {
        let wanted = align_of::<T>();
        return Error::fail(
            WFMM_ERR_VALUE,
            format!("{name} = {pointer:?} is not aligned to the {wanted} bytes of its type"),
        );
    }
    Ok(())
}

/// The memory that one result is written to.
///
/// # Safety
/// `pointer` is NULL or may be written to.
pub unsafe fn output<'a, T>(name: &str, pointer: *mut T) -> Result<&'a mut T> {
    not_null(name, pointer)?;
    // Not NULL and aligned; the caller vouches for the rest.
    Ok(unsafe { &mut *pointer })
}

/// Arrays of one call: where its session looks for them.
pub struct Arrays<'s> {
    session: &'s Session,
    memory: Memory,
}

impl<'s> Arrays<'s> {
    pub fn new(session: &'s Session, memory: i32) -> Result<Self> {
        let memory = code("memory", memory, Memory::from_code(memory), "WFMM_MEMORY_HOST, _DEVICE or _AUTO")?;
        if memory == Memory::Device {
            session.location(memory, 0)?;
        }
        Ok(Self { session, memory })
    }

    pub fn on_host(session: &'s Session) -> Self {
        Self { session, memory: Memory::Host }
    }

    /// An input array of `len` elements.
    ///
    /// # Safety
    /// Host memory: `len` elements may be read. Device memory: they stay until the plan lets go of them.
    pub unsafe fn input<'a, T>(&self, name: &str, pointer: *const T, len: usize) -> Result<Array<'a, T>> {
        not_null(name, pointer)?;
        check_bytes::<T>(name, len)?;
        Ok(match self.session.location(self.memory, pointer as u64)? {
            // Not NULL, aligned, no longer than an object can be; the caller vouches for the contents.
            Location::Host => Array::Host(unsafe { std::slice::from_raw_parts(pointer, len) }),
            Location::Device => Array::Device { address: pointer as u64, len },
        })
    }

    /// An input array that may be NULL.
    ///
    /// # Safety
    /// As `input`.
    pub unsafe fn optional<'a, T>(&self, name: &str, pointer: *const T, len: usize) -> Result<Option<Array<'a, T>>> {
        if pointer.is_null() { Ok(None) } else { unsafe { self.input(name, pointer, len) }.map(Some) }
    }

    /// The main output and the gradient, which may be NULL. Nothing is needed where there are no targets.
    ///
    /// # Safety
    /// `main.2` and `gradient.1` elements may be written and are not touched by others during the call.
    pub unsafe fn outputs<'a, T>(
        &self,
        main: (&str, *mut T, usize),
        gradient: (*mut T, usize),
    ) -> Result<(ArrayMut<'a, T>, Option<ArrayMut<'a, T>>)> {
        let ((name, main, len), (gradient, gradient_len)) = (main, gradient);
        if len == 0 {
            return Ok((ArrayMut::Host(&mut []), None));
        }
        not_null(name, main)?;
        let (a, b) = (main as usize, gradient as usize);
        if !gradient.is_null() && a < b + gradient_len * size_of::<T>() && b < a + len * size_of::<T>() {
            return Error::fail(WFMM_ERR_OVERLAP, format!("{name} and gradient overlap; they must be separate arrays"));
        }
        let first = unsafe { self.output_array(name, main, len) }?;
        let second = if gradient.is_null() {
            None
        } else {
            Some(unsafe { self.output_array("gradient", gradient, gradient_len) }?)
        };
        Ok((first, second))
    }

    unsafe fn output_array<'a, T>(&self, name: &str, pointer: *mut T, len: usize) -> Result<ArrayMut<'a, T>> {
        not_null(name, pointer)?;
        check_bytes::<T>(name, len)?;
        Ok(match self.session.location(self.memory, pointer as u64)? {
            // As in `input`; the two outputs of a call were checked not to overlap.
            Location::Host => ArrayMut::Host(unsafe { std::slice::from_raw_parts_mut(pointer, len) }),
            Location::Device => ArrayMut::Device { address: pointer as u64, len },
        })
    }
}

fn check_bytes<T>(name: &str, len: usize) -> Result<()> {
    if len <= isize::MAX as usize / size_of::<T>() {
        return Ok(());
    }
    Error::fail(WFMM_ERR_COUNT, format!("{name} would have {len} elements, more than an address space holds"))
}
