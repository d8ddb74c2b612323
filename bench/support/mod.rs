//! What the accuracy and speed programs and their tests share: the library by its C functions, and fixed cases.

#![allow(dead_code)]

pub mod accuracy;
pub mod api;
pub mod arguments;
pub mod cases;
pub mod clock;
pub mod flows;
pub mod periodic;
pub mod random;
pub mod tier;
pub mod wakes;
pub mod workloads;
