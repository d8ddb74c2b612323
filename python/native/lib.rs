//! Nothing of its own: a `cdylib` exports the C functions of the crates that it links.

extern crate wakefmm as _;
