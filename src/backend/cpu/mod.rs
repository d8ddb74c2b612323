//! The CPU back end.

pub mod operators;
