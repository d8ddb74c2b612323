//! libwakefmm: Biot–Savart sums of vortex wakes by a fast multipole method.
//!
//! One way for the data; arrows go down only:
//!
//! ```text
//!   ffi        the C boundary: checks every pointer and number, catches every panic
//!    │
//!   session    what machine: back end, device, threads
//!    │
//!   plan       what problem: sources, targets, options; picks the recipe, owns an engine
//!    │
//!   backend    how: cpu | cuda, the same passes behind one trait, `Engine`
//!    │
//!   math       formulas: regularizations, harmonics, operators       simd   lanes
//!    │
//!   inputs options report error                 tables that everybody shares
//! ```

pub mod backend;
pub mod error;
pub mod inputs;
pub mod math;
pub mod options;
pub mod report;
pub mod simd;
