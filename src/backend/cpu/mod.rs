//! The CPU back end.

mod account;
mod cores;
pub mod cost;
mod direct;
pub mod distributed;
pub mod engine;
pub mod fmm;
pub mod images;
mod intake;
pub mod lines;
pub mod lists;
pub mod m2p;
pub mod near;
pub mod operators;
pub mod passes;
pub mod precision;
pub mod pseudo;
mod range;
pub mod reference;
pub mod sources;
pub mod tree;
