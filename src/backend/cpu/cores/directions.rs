//! Directions of the segments of a cell: a core matters near the line of its segment only, and targets far beside the lines of all
//! segments of a cell need not be compared with each.
//!
//! Enters: the elements of a source tree. Leaves: for every cell up to three groups of segments, by the axis that each is nearest to,
//! with a cone of directions that holds all of a group, and a lower bound of the distance from a ball of targets to the lines of the
//! group.

use super::{CoreElement, Largest, dot};
use crate::backend::cpu::shared;
use crate::backend::cpu::tree::{Cell, Tree};
use crate::memory;
use rayon::prelude::*;

/// Cells of more elements have no cones, since their segments point everywhere.
const MOST_ELEMENTS: usize = 512;
/// What rounding may take from a cosine, and from a distance in units of that of the cells.
pub const MARGIN: f64 = 1e-12;

/// Segments with cores whose directions, up to the sign, are within an angle α of an axis.
#[derive(Debug, Clone, Copy, Default)]
pub struct Group {
    pub largest: Largest,
    /// Of length one; zero: any direction.
    axis: [f64; 3],
    /// Cosine and sine of α.
    cos: f64,
    sin: f64,
}

impl Group {
    /// No more than the distance from any position in the target's ball to the line of any segment of the group; `d`: from the middle
    /// of its cell to that of the target, `square` of this length; `slack`: both radii, and `MARGIN` of the length.
    pub fn distance_from_lines(&self, d: [f64; 3], square: f64, slack: f64) -> f64 {
        let along = dot(d, self.axis).abs();
        // |d| sin(θ - α), with θ between d and the axis.
        let from_line = (square - along * along).max(0.0).sqrt() * self.cos - along * self.sin;
        (from_line - slack).max(0.0)
    }
}

/// The groups of the segments of all cells of a tree, whose elements these are; of large cells one group of all directions.
pub fn groups(tree: &Tree, elements: &[CoreElement]) -> Vec<[Group; 3]> {
    let has_cones = |c: &Cell| c.is_leaf() || c.len() <= MOST_ELEMENTS;
    let of_cell = |c: &Cell| match has_cones(c) {
        true => cones(&elements[c.begin as usize..c.end as usize]),
        false => Default::default(),
    };
    let mut all: Vec<[Group; 3]> = memory::par_collect(shared(tree.cells.par_iter()).map(of_cell));
    tree.gather(&mut all, |cell, groups, children| {
        if !has_cones(cell) {
            groups[0].largest = children.iter().map(largest).fold(groups[0].largest, Largest::join);
        }
    });
    all
}

/// Of all groups of a cell.
pub fn largest(groups: &[Group; 3]) -> Largest {
    groups.iter().map(|g| g.largest).fold(Largest::default(), Largest::join)
}

/// The groups of the segments among these elements of one cell.
fn cones(elements: &[CoreElement]) -> [Group; 3] {
    let mut groups = [Group { cos: 1.0, ..Group::default() }; 3];
    let cored = || elements.iter().filter(|e| e.is_segment && e.core > 0.0);
    for e in cored() {
        let (k, direction) = direction(e);
        let group = &mut groups[k];
        group.largest = group.largest.join(Largest::of(e));
        (0..3).for_each(|i| group.axis[i] += direction[i]);
    }
    for group in &mut groups {
        let length = dot(group.axis, group.axis).sqrt();
        group.axis = if length > 0.0 { group.axis.map(|v| v / length) } else { [0.0; 3] };
    }
    for e in cored() {
        let (k, direction) = direction(e);
        let group = &mut groups[k];
        group.cos = group.cos.min(dot(direction, group.axis));
    }
    for group in &mut groups {
        group.cos = (group.cos - MARGIN).max(0.0);
        group.sin = (1.0 - group.cos * group.cos).sqrt();
    }
    groups
}

/// The axis that a segment is nearest to, and its direction, of length one, with the sign that points along this axis.
fn direction(e: &CoreElement) -> (usize, [f64; 3]) {
    let at = |i: usize| e.half[i].abs();
    let k = (1..3).fold(0, |k, i| if at(i) > at(k) { i } else { k });
    // Divided first by the largest component: squares of lengths may leave the range of numbers.
    let scaled = e.half.map(|h| h / e.half[k]);
    let length = dot(scaled, scaled).sqrt();
    (k, scaled.map(|v| v / length))
}
