//! Formulas, each with its source; nothing here knows about trees or threads.

pub mod accuracy;
pub mod biot_savart;
pub mod harmonics;
pub mod lattice;
pub mod morton;
pub mod regularization;
pub mod sphere;

#[cfg(test)]
pub(crate) mod double_double;
