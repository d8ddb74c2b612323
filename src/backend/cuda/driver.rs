//! What is here: the driver, its devices, and why one was refused; statuses of the driver as this crate's errors.
//!
//! Enters: nothing but the machine. Leaves: a `Probe`, which never fails, and `check`, which every driver call passes.

use super::{loader, symbols};
use crate::error::Error;
use cust::device::{Device, DeviceAttribute};
use cust::sys::{self, cudaError_enum};
use std::ffi::CStr;
use std::sync::atomic::Ordering;

/// The oldest driver that loads the embedded images: CUDA 12.0, driver 525.
const OLDEST_DRIVER: i32 = 12000;
/// The oldest GPU that there is an image for.
const OLDEST_CAPABILITY: (i32, i32) = (7, 5);
/// Compute capabilities that the fat binaries have machine code for, as in kernels/images.py.
const MACHINE_CODE: [(i32, i32); 5] = [(7, 5), (8, 0), (9, 0), (10, 0), (12, 0)];

pub use crate::error::{
    WFMM_ERR_DEVICE_LOST as DEVICE_LOST, WFMM_ERR_DEVICE_MEMORY as DEVICE_MEMORY, WFMM_ERR_DRIVER as DRIVER,
    WFMM_ERR_INTERNAL as INTERNAL, WFMM_ERR_NO_DEVICE as NO_DEVICE,
};

/// The image of the kernels that a driver takes for a GPU: machine code of the same major capability with the largest minor one that
/// is not above the GPU's, else PTX, which it translates.
pub fn image_for(capability: (i32, i32)) -> String {
    let fits = |code: &&(i32, i32)| code.0 == capability.0 && code.1 <= capability.1;
    match MACHINE_CODE.iter().rfind(fits) {
        Some((major, minor)) => format!("kernels for {major}.{minor}"),
        None => "kernels translated by the driver".to_owned(),
    }
}

/// One GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceInfo {
    pub ordinal: i32,
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    pub multiprocessors: i32,
    /// Bytes of device memory.
    pub memory: usize,
    /// Bytes of L2 cache.
    pub l2: i32,
    /// Bytes of shared memory that a block may have when it asks for it.
    pub shared_memory: i32,
    /// Operations in double precision for one in single.
    pub double_rate: f64,
    /// Why this library cannot use it.
    pub refusal: Option<String>,
}

/// What was found on this machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Probe {
    /// CUDA version that the driver supports, 1000 major + 10 minor; 0 without a driver.
    pub driver: i32,
    pub devices: Vec<DeviceInfo>,
    /// Why there is no usable driver or device at all.
    pub refusal: Option<Error>,
}

impl Probe {
    /// The device of a number, or with -1 the usable one with the most multiprocessors; else the reason against it.
    pub fn choose(&self, ordinal: i32) -> Result<&DeviceInfo, Error> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        if ordinal >= 0 {
            let device = self.devices.get(ordinal as usize).ok_or_else(|| {
                Error::new(
                    NO_DEVICE,
                    format!("device is {ordinal}; this machine has {} GPU(s), counted from 0", self.devices.len()),
                )
            })?;
            return match &device.refusal {
                Some(refusal) => Err(Error::new(NO_DEVICE, refusal.clone())),
                None => Ok(device),
            };
        }
        let usable = self.devices.iter().filter(|device| device.refusal.is_none());
        usable.max_by_key(|device| (device.multiprocessors, -device.ordinal)).ok_or_else(|| {
            let refusals: Vec<_> = self.devices.iter().filter_map(|device| device.refusal.clone()).collect();
            Error::new(NO_DEVICE, refusals.join("; "))
        })
    }
}

/// Looks for a driver and GPUs. Cheap after the first call, creates no context.
pub fn probe() -> Probe {
    let mut found = Probe::default();
    found.refusal = look(&mut found).err();
    found
}

fn look(found: &mut Probe) -> Result<(), Error> {
    loader::load().map_err(|refusal| Error::new(DRIVER, refusal))?;
    // SAFETY: the pointer is to a live integer; this call is allowed before cuInit.
    unsafe { check(sys::cuDriverGetVersion(&mut found.driver), "cuDriverGetVersion")? };
    let version = |number: i32| format!("CUDA {}.{}", number / 1000, number % 1000 / 10);
    if found.driver < OLDEST_DRIVER {
        let (has, needs) = (version(found.driver), version(OLDEST_DRIVER));
        let refusal =
            format!("the NVIDIA driver supports {has}; this library needs a driver for {needs} or newer (driver 525)");
        return Err(Error::new(DRIVER, refusal));
    }
    found.devices = devices()?;
    if found.devices.is_empty() {
        return Err(Error::new(NO_DEVICE, "the NVIDIA driver shows no GPU"));
    }
    Ok(())
}

fn devices() -> Result<Vec<DeviceInfo>, Error> {
    // SAFETY: the flags must be 0.
    unsafe { check(sys::cuInit(0), "cuInit")? };
    let mut count = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { check(sys::cuDeviceGetCount(&mut count), "cuDeviceGetCount")? };
    (0..count).map(describe).collect()
}

fn describe(ordinal: i32) -> Result<DeviceInfo, Error> {
    let device = Device::get_device(ordinal as u32).map_err(|error| from_cust(error, "cuDeviceGet"))?;
    let get = |attribute| device.get_attribute(attribute).map_err(|error| from_cust(error, "cuDeviceGetAttribute"));
    let capability = (get(DeviceAttribute::ComputeCapabilityMajor)?, get(DeviceAttribute::ComputeCapabilityMinor)?);
    let name = device.name().map_err(|error| from_cust(error, "cuDeviceGetName"))?;
    let refusal = (capability < OLDEST_CAPABILITY).then(|| {
        format!(
            "GPU {ordinal} ({name}) has compute capability {}.{}; this library needs {}.{} or newer",
            capability.0, capability.1, OLDEST_CAPABILITY.0, OLDEST_CAPABILITY.1
        )
    });
    Ok(DeviceInfo {
        ordinal,
        capability,
        multiprocessors: get(DeviceAttribute::MultiprocessorCount)?,
        memory: device.total_memory().map_err(|error| from_cust(error, "cuDeviceTotalMem"))?,
        l2: get(DeviceAttribute::L2CacheSize)?,
        shared_memory: attribute(
            ordinal,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        double_rate: 1.0
            / f64::from(
                attribute(ordinal, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)?
                    .max(1),
            ),
        name,
        refusal,
    })
}

fn attribute(ordinal: i32, which: sys::CUdevice_attribute) -> Result<i32, Error> {
    let mut value = 0;
    // SAFETY: the pointer is to a live integer; an ordinal that was counted is its own device handle.
    unsafe { check(sys::cuDeviceGetAttribute(&mut value, which, ordinal), "cuDeviceGetAttribute")? };
    Ok(value)
}

/// A driver status as a result; `call` names the function for the message.
pub(super) fn check(status: cudaError_enum, call: &str) -> Result<(), Error> {
    check_code(status as u32, call)
}

/// Like `check`, for functions that were declared to return an integer.
pub(super) fn check_code(status: u32, call: &str) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(from_code(status, call)) }
}

/// An error of crate cust. Its own text is never asked for: it panics where the driver does not know a code.
pub(super) fn from_cust(error: cust::error::CudaError, call: &str) -> Error {
    from_code(error as u32, call)
}

fn from_code(mut code: u32, call: &str) -> Error {
    if code == 999 {
        match symbols::LAST_UNKNOWN.swap(0, Ordering::Relaxed) {
            0 => {}
            unlisted => code = unlisted,
        }
    }
    let status = match code {
        2 => DEVICE_MEMORY,
        46 | 100 | 101 => NO_DEVICE,
        // Illegal address, time-out, assert, hardware stack, instruction, address space, launch failed, ECC …: sticky.
        214 | 700 | 702 | 709 | 710 | 714..=719 | 721 => DEVICE_LOST,
        _ => DRIVER,
    };
    let cause = match code {
        2 => "out of device memory".into(),
        46 => "the GPU is busy or unavailable (exclusive compute mode, another process has it)".into(),
        100 => "no GPU is visible to this process".into(),
        3 => "the NVIDIA driver is not initialized".into(),
        _ => text(code),
    };
    Error::new(status, format!("{cause} ({call}, CUDA error {code})"))
}

/// The driver's text for a code.
fn text(code: u32) -> String {
    type GetErrorString = unsafe extern "C" fn(u32, *mut *const libc::c_char) -> u32;
    let Some(address) = loader::symbol("cuGetErrorString") else { return "unknown error".into() };
    let mut text = std::ptr::null();
    // SAFETY: this is the C signature, with the enumeration as the integer that it is; texts are static.
    unsafe {
        let get: GetErrorString = std::mem::transmute(address);
        if get(code, &mut text) != 0 || text.is_null() {
            return "unknown error".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kernels/images.py compiles.
    #[test]
    fn images_are_those_that_are_compiled() {
        let script = include_str!("../../../kernels/images.py");
        let (_, rest) = script.split_once("\nCUBINS = {").unwrap();
        let (codes, _) = rest.split_once('}').unwrap();
        let codes: Vec<_> = codes.split('"').filter(|word| word.parse::<i32>().is_ok()).collect();
        assert_eq!(codes, MACHINE_CODE.map(|(major, minor)| format!("{major}{minor}")));
        let of = [(8, 9), (9, 0), (10, 3), (12, 1), (11, 0), (13, 0)].map(image_for);
        let expected =
            ["for 8.0", "for 9.0", "for 10.0", "for 12.0", "translated by the driver", "translated by the driver"];
        assert_eq!(of, expected.map(|what| format!("kernels {what}")));
    }
}
