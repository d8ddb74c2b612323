//! libwakefmm: Biot–Savart sums of vortex wakes by a fast multipole method.
//!
//! One way for the data; arrows go down only:
//!
//! ```text
//!   ffi        the C boundary: checks every pointer and number, catches every panic
//!    │
//!   flow       elements that move: state, integrators, dust; sums through a plan
//!    │
//!   plan       what problem: sources, targets, options; owns an engine and keeps its session alive
//!    │
//!   session    what machine: back end, device, threads; makes engines
//!    │
//!   backend    how: cpu | cuda, the same passes behind one trait, `Engine`
//!    │
//!   math       formulas: regularizations, harmonics, operators       simd   lanes
//!    │
//!   distributed  many processes: their exchanges, and how they agree
//!    │
//!   inputs options report error logging memory  tables and tools that everybody shares
//! ```

#[macro_use]
mod codes;

pub mod backend;
pub mod distributed;
pub mod error;
pub mod ffi;
pub mod flow;
pub mod inputs;
pub mod logging;
pub mod math;
pub mod memory;
pub mod options;
pub mod plan;
pub mod report;
pub mod session;
pub mod simd;

#[cfg(feature = "reserve")]
#[global_allocator]
static ALLOCATOR: memory::reserve::Allocator = memory::reserve::Allocator;
