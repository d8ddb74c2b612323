//! Status codes and the one error type of the crate.

use std::any::Any;
use std::fmt;

use crate::memory::OutOfMemory;

codes! {
    /// What a function of the C API returns. 1..=99: the caller's error, nothing changed; 100..=199: a resource is missing,
    /// may be retried; negative: the object is unusable, only `destroy` is allowed. Numbers are never reused.
    enum Status {
        /// Success.
        Ok = 0 => WFMM_OK,
        /// A pointer is NULL where an array or an output is needed.
        Null = 1 => WFMM_ERR_NULL,
        /// A handle that is not, or no longer, a live session, plan or flow.
        Handle = 2 => WFMM_ERR_HANDLE,
        /// A count or size that is negative, too large or not the expected one.
        Count = 3 => WFMM_ERR_COUNT,
        /// A number that is not a constant of this enumeration, or a flag that does not exist.
        Constant = 4 => WFMM_ERR_CONSTANT,
        /// A number outside of its range.
        Value = 5 => WFMM_ERR_VALUE,
        /// NaN or infinity.
        NotFinite = 6 => WFMM_ERR_NOT_FINITE,
        /// A point number outside `index_base .. index_base+n_points-1`.
        Index = 7 => WFMM_ERR_INDEX,
        /// Called too early: sources or targets have not been set, or dust was given to a flow without fluid_viscosity.
        State = 8 => WFMM_ERR_STATE,
        /// Another thread is using this plan or flow.
        Busy = 9 => WFMM_ERR_BUSY,
        /// An option struct is newer than this library and uses what it does not know.
        TooNew = 10 => WFMM_ERR_TOO_NEW,
        /// `struct_size` is not that of an initialized struct.
        StructSize = 11 => WFMM_ERR_STRUCT_SIZE,
        /// A tolerance below what the computing precision can give.
        Tolerance = 12 => WFMM_ERR_TOLERANCE,
        /// Output arrays overlap.
        Overlap = 13 => WFMM_ERR_OVERLAP,
        /// Arrays are not where `memory` says, or are where this session cannot reach them.
        Memory = 14 => WFMM_ERR_MEMORY,
        /// An array of Fortran or C++ is smaller than the count it goes with.
        Shape = 15 => WFMM_ERR_SHAPE,
        /// The host's velocity callback of a flow returned a number that is not a status from 1 to 199; the step was
        /// stopped.
        Callback = 16 => WFMM_ERR_CALLBACK,
        /// A file that cannot be read or written, or is not a complete checkpoint of a flow.
        File = 17 => WFMM_ERR_FILE,
        /// There is a driver, but no usable GPU, or no GPU with the requested number.
        NoDevice = 100 => WFMM_ERR_NO_DEVICE,
        /// Out of host memory.
        HostMemory = 101 => WFMM_ERR_HOST_MEMORY,
        /// Out of device memory.
        DeviceMemory = 102 => WFMM_ERR_DEVICE_MEMORY,
        /// Threads could not be started.
        Threads = 103 => WFMM_ERR_THREADS,
        /// The driver is missing, too old, or refused.
        Driver = 104 => WFMM_ERR_DRIVER,
        /// Not implemented: the message says what, and what to use instead.
        Unsupported = 105 => WFMM_ERR_UNSUPPORTED,
        /// A function of the communicator failed: other ranks may be gone.
        Communication = 106 => WFMM_ERR_COMMUNICATION,
        /// An internal error was stopped at the boundary.
        Internal = -1 => WFMM_ERR_INTERNAL,
        /// An earlier failure left the object unusable.
        Unusable = -2 => WFMM_ERR_UNUSABLE,
        /// The device was lost; after a fault in a kernel this process cannot use that GPU any more.
        DeviceLost = -3 => WFMM_ERR_DEVICE_LOST,
        /// The object was made before `fork()`; the child must make its own.
        Forked = -4 => WFMM_ERR_FORKED,
        /// Host memory ran out inside a computation; the plan is unusable, the next one may find more.
        OutOfMemory = -5 => WFMM_ERR_OUT_OF_MEMORY,
    }
}

/// A status of the C API and the message that `wfmm_last_error` returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub status: i32,
    pub message: String,
    /// Outputs may have been written in part: another engine must not compute the field again.
    pub partly_written: bool,
    /// All ranks of a distributed session have it.
    pub agreed: bool,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(status: i32, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), partly_written: false, agreed: false }
    }

    /// The error of a call that had begun to write: its status is negative, as the C API says of such calls.
    pub fn after_writing(self) -> Self {
        let status = if self.status < 0 { self.status } else { WFMM_ERR_INTERNAL };
        Self { status, partly_written: true, ..self }
    }

    /// `Err` of a status and a message.
    pub fn fail<T>(status: i32, message: impl Into<String>) -> Result<T> {
        Err(Self::new(status, message))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.message, self.status)
    }
}

impl std::error::Error for Error {}

/// The error of work that unwound: one that was thrown, out of memory, which the caller of this gives a status, or a panic.
pub fn stopped(unwound: &(dyn Any + Send), out_of_memory: i32) -> Error {
    if let Some(error) = unwound.downcast_ref::<Error>() {
        return error.clone();
    }
    match unwound.downcast_ref::<OutOfMemory>() {
        Some(OutOfMemory { bytes: 0 }) => Error::new(out_of_memory, "the system has no host memory left"),
        Some(OutOfMemory { bytes }) => Error::new(out_of_memory, format!("no host memory: {bytes} bytes were needed")),
        None => Error::new(WFMM_ERR_INTERNAL, format!("internal error: {}", panic_text(unwound))),
    }
}

/// A real number in a message: the very large and the very small with an exponent, in place of hundreds of digits.
pub fn number<T: Copy + Into<f64> + fmt::Display + fmt::LowerExp>(x: T) -> String {
    let size = x.into().abs();
    if size == 0.0 || (1e-4..1e6).contains(&size) { format!("{x}") } else { format!("{x:e}") }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_messages_are_short() {
        let short = [-1e300, 1e-300, 1e6, 9.99e-5, 0.0, 1e-4, -2.5, 999_999.5, f64::NAN, f64::NEG_INFINITY].map(number);
        assert_eq!(short, ["-1e300", "1e-300", "1e6", "9.99e-5", "0", "0.0001", "-2.5", "999999.5", "NaN", "-inf"]);
        assert_eq!([number(0.1f32), number(1e30f32)], ["0.1", "1e30"]);
    }
}
