//! The direct sum over all ranks: blocks of sources go round in a ring.
//!
//! Enters: each rank's own sources and targets. Leaves: the field of all sources at the own targets. A rank holds one block of
//! another rank at a time.

use super::elements::Elements;
use crate::backend::cpu::direct::Sum;
use crate::backend::cpu::fmm::{Sink, rows};
use crate::distributed::Peers;
use crate::memory;

/// Numbers at the targets: `[target][row]`, the field and its gradient.
#[derive(Debug, Default, Clone)]
pub struct Values {
    pub main: Vec<f64>,
    /// Empty where it is not wanted.
    pub gradient: Vec<f64>,
}

impl Values {
    /// Zero at so many targets.
    pub fn zero(components: usize, targets: usize, gradient: bool) -> Self {
        let (main, all) = (rows(components, false), rows(components, gradient));
        Self { main: memory::filled(0.0, main * targets), gradient: memory::filled(0.0, (all - main) * targets) }
    }

    /// For sums in the unit of the side.
    pub fn sink(&mut self) -> Sink<'_, f64> {
        let gradient = (!self.gradient.is_empty()).then_some(&mut self.gradient[..]);
        Sink { main: &mut self.main, gradient, main_factor: 1.0, per_length: 1.0, accumulate: true }
    }
}

/// See the head of this file.
pub fn direct<const C: usize, S: Elements<f64, C>>(
    peers: &Peers,
    sources: &S,
    targets: &[[f64; 3]],
    gradient: bool,
) -> Values {
    let (rank, size) = (peers.rank(), peers.size());
    let mut values = Values::zero(C, targets.len(), gradient);
    let mut block = sources.records();
    for step in 0..size {
        if step > 0 {
            let mut to: Vec<Vec<f64>> = vec![vec![]; size];
            to[(rank + 1) % size] = memory::copy(block.as_flattened());
            drop(block);
            let got = peers.share(to);
            block = memory::copy(got[(rank + size - 1) % size].as_chunks::<8>().0);
        }
        if block.is_empty() || targets.is_empty() {
            continue;
        }
        let (mut set, _) = sources.of_records(&block);
        set.keep_order();
        Sum { sources: &set, images: None }.write(targets, gradient, &mut values.sink());
    }
    values
}
