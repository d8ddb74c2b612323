//! The CUDA back end: the driver is found at run time, the kernels are embedded.
//!
//! ```text
//!   loader → symbols   the driver's functions, or why there are none
//!   driver             what devices there are; statuses as errors
//!   context            one open device and its kernels
//!   memory locked      device memory that grows, page-locked host memory
//!   shared_pages       memory that other processes of the node can map
//!   stream             queues, events, graphs, launches
//!   staging gather     the caller's arrays to the device and back
//!   held               a field until it has passed its check
//!   domain             periodic domains: their middle, which images are near
//!   periodic far_rows  positions brought in, images that are not near
//!   expanded           near images as sources: of cubes for the direct sum, of other domains for all sums
//!   direct             every pair
//!   precision_probe    whether single precision is enough for it
//!   fmm                the fast multipole method
//!   sums               which of them, and in which precision
//!   engine             the back end's `Engine`
//!   distributed        the same for one rank of many
//!   array motion       arrays that know their length; what steps of a flow do to them
//!   gaussians          sums of Gaussians over particles: narrower cores of a flow
//!   picture            pictures of a flow's elements
//!   plane              the ground plane for arrays in device memory
//! ```

pub mod args;
pub mod array;
mod context;
pub mod direct;
pub mod distributed;
mod domain;
mod driver;
pub mod engine;
mod expanded;
mod far_rows;
pub mod fmm;
pub mod gather;
pub mod gaussians;
mod held;
mod loader;
mod locked;
mod memory;
pub mod motion;
pub mod periodic;
pub mod picture;
pub mod plane;
pub mod pointer;
mod precision_probe;
mod shared_pages;
pub mod staging;
mod stream;
mod sums;
mod symbols;

pub use args::RealsArg;
pub use context::{Context, Current, Function};
pub use distributed::{DevicesEngine, RanksEngine, Seat};
pub use driver::{DeviceInfo, Probe, image_for, probe};
pub use engine::CudaEngine;
pub use locked::Locked;
pub use memory::{
    Buffer, MemoryKind, Plain, clear_at, copy_in, copy_on_device, copy_out, memory_kind_of, register_host,
    unregister_host,
};
pub use stream::{Behind, Event, Graph, Stream, launch};

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine without a driver the library must load, probe and say why; with one the probe must find the devices.
    #[test]
    fn the_probe_never_fails() {
        let found = probe();
        match &found.refusal {
            Some(refusal) => {
                assert!(!refusal.message.is_empty());
                let error = found.choose(-1).unwrap_err();
                assert!((100..200).contains(&error.status), "{error}");
                assert_eq!(memory_kind_of(0x1000), MemoryKind::Host);
            }
            None => assert!(!found.devices.is_empty()),
        }
    }

    /// Without a driver every call of crate cust must return, not fault.
    #[test]
    fn cust_without_a_driver_reports_an_error() {
        if probe().driver == 0 {
            assert!(cust::init(cust::CudaFlags::empty()).is_err());
            assert!(cust::device::Device::num_devices().is_err());
        }
    }
}
