//! The CPU back end.

pub mod lists;
pub mod operators;
pub mod passes;
pub mod tree;

pub mod reference;
