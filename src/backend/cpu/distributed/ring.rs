//! The direct sum over all ranks: blocks of targets go round in a ring.
//!
//! Enters: each rank's own sources, with their periodic images, and targets. Leaves: the field of all sources at the own targets. A
//! rank holds one block of targets at a time, with what the ranks before it have summed there, and adds what its own sources do.

use super::elements::Elements;
use crate::backend::cpu::direct::{Remote, Sum};
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

/// Targets of one rank on their way.
struct Block {
    points: Vec<[f64; 3]>,
    values: Values,
}

impl Block {
    fn into_numbers(self) -> Vec<f64> {
        let Self { points, values } = self;
        let mut all = memory::with_room(3 * points.len() + values.main.len() + values.gradient.len());
        all.extend_from_slice(points.as_flattened());
        all.extend_from_slice(&values.main);
        all.extend_from_slice(&values.gradient);
        all
    }

    fn of_numbers(all: &[f64], components: usize, gradient: bool) -> Self {
        let count = all.len() / (3 + rows(components, gradient));
        let (points, values) = all.split_at(3 * count);
        let (main, gradient) = values.split_at(rows(components, false) * count);
        let values = Values { main: memory::copy(main), gradient: memory::copy(gradient) };
        Self { points: memory::copy(points.as_chunks::<3>().0), values }
    }
}

/// See the head of this file; the sources are in the order of their images, or in their own where there are none.
pub fn direct<const C: usize, S: Elements<f64, C>>(
    peers: &Peers,
    sources: &S,
    images: Option<&Remote>,
    targets: &[[f64; 3]],
    gradient: bool,
) -> Values {
    let (rank, size) = (peers.rank(), peers.size());
    let mut block = Block { points: memory::copy(targets), values: Values::zero(C, targets.len(), gradient) };
    for _ in 0..size {
        if !sources.is_empty() && !block.points.is_empty() {
            Sum { sources, images }.write(&block.points, gradient, &mut block.values.sink());
        }
        let mut to: Vec<Vec<f64>> = vec![vec![]; size];
        to[(rank + 1) % size] = block.into_numbers();
        block = Block::of_numbers(&peers.share(to)[(rank + size - 1) % size], C, gradient);
    }
    // Once round, the own ones are here again.
    block.values
}
