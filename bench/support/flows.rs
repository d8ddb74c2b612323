//! What tests read of a flow. Each test uses a part of it.

#![allow(dead_code)]

use wakefmm::flow::Flow;
use wakefmm::flow::options::{ElementKind, Quantity};
use wakefmm::plan::arrays::ArrayMut;

/// A quantity of all elements of a kind.
pub fn get(flow: &mut Flow, kind: ElementKind, quantity: Quantity) -> Vec<f64> {
    let rows = flow.rows(kind, quantity, usize::MAX).unwrap();
    let mut values = vec![0.0; rows * quantity.width()];
    flow.get(kind, quantity, ArrayMut::Host(&mut values), None).unwrap();
    values
}

/// What a checkpoint holds: with the rates of Adams-Bashforth. `name`: of the test, in the name of a file that is gone afterwards.
pub fn saved(flow: &mut Flow, name: &str) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("wakefmm-{name}-{}.npz", std::process::id()));
    flow.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    bytes
}
