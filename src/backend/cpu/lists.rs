//! Who meets whom: for every target cell the far sources with their orders, for every target leaf the near ones.
//!
//! Enters: both trees, the table of orders, the cost of a pair. Leaves: four lists a target cell.
//! A pair of cells is far when an order exists that reaches the tolerance for its geometry (a dual traversal, Yokota &
//! Barba 2011's of the adaptive kind): a leaf takes as direct whatever is cheaper that way. The core never changes what is
//! far: where it still matters in a far pair, the pair also enters `correction`, which adds (F - 1) times the singular field.

use super::tree::{Cell, Tree};
use crate::math::accuracy::OrderTable;
use crate::memory;
use rayon::prelude::*;
use std::ops::Range;

/// Seconds (any unit): what decides between a multipole and a direct sum.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    /// One pair of elements, summed directly.
    pub pair: f64,
    /// One M2L of order p, all components.
    pub m2l: Vec<f64>,
}

/// The lists of one target cell.
#[derive(Debug, Clone, Default)]
pub struct CellLists {
    /// (order, source cell), by falling order.
    pub far: Vec<(u8, u32)>,
    /// Sorted sources, summed with their cores.
    pub near: Vec<Range<u32>>,
    /// Sorted sources, near but out of reach of their cores: summed without.
    pub plain: Vec<Range<u32>>,
    /// Sorted sources that are far and whose cores still matter.
    pub correction: Vec<Range<u32>>,
}

impl CellLists {
    /// Sources summed directly, and those of the correction.
    pub fn elements(&self) -> (u64, u64) {
        let count = |r: &[Range<u32>]| r.iter().map(|r| r.len() as u64).sum::<u64>();
        (count(&self.near) + count(&self.plain), count(&self.correction))
    }
}

/// Target cells that lists or a downward pass are for; none named: all.
#[derive(Clone, Copy)]
pub struct Only<'a>(pub Option<&'a [bool]>);

impl Only<'_> {
    pub fn has(&self, cell: usize) -> bool {
        self.0.is_none_or(|marked| marked[cell])
    }
}

/// What the traversal needs to know.
pub struct Rules<'a> {
    pub sources: &'a Tree,
    pub targets: &'a Tree,
    pub orders: &'a OrderTable,
    pub cost: &'a Cost,
    /// Source and target cells of at most so many elements are taken for leaves, whatever hangs below them.
    pub leaves: [usize; 2],
    pub only: Only<'a>,
    /// Whether a core in the source cell changes the field in the target cell by more than its share of the tolerance.
    pub core_matters: &'a (dyn Fn(u32, &Cell) -> bool + Sync),
}

/// What a cell leaves to its children.
#[derive(Default, Clone)]
struct Pending {
    /// Too close for this cell.
    close: Vec<u32>,
    /// Far, cores to be looked at.
    cores: Vec<u32>,
}

/// Lists of all target cells, level by level; the order of every list is unique.
pub fn build(rules: &Rules) -> Vec<CellLists> {
    let mut lists = memory::with_room(rules.targets.cells.len());
    if rules.sources.cells.is_empty() {
        lists.resize_with(rules.targets.cells.len(), CellLists::default);
        return lists;
    }
    let mut above: Vec<Pending> = vec![];
    for level in 0..rules.targets.depth() {
        let range = rules.targets.level(level);
        let start_above = if level == 0 { 0 } else { rules.targets.level(level - 1).start };
        let done: Vec<(CellLists, Pending)> = memory::par_collect(range.into_par_iter().with_min_len(8).map(|t| {
            let cell = &rules.targets.cells[t];
            if !rules.only.has(t) {
                return Default::default();
            }
            if level == 0 {
                return visit(rules, cell, &Pending { close: vec![0], cores: vec![] });
            }
            visit(rules, cell, &above[cell.parent as usize - start_above])
        }));
        above = memory::with_room(done.len());
        for (l, p) in done {
            lists.push(l);
            above.push(p);
        }
    }
    lists
}

/// Decides everything that target cell `t` can decide.
fn visit(rules: &Rules, t: &Cell, given: &Pending) -> (CellLists, Pending) {
    let t_leaf = t.is_leaf() || t.len() <= rules.leaves[1];
    let leaf = |c: &Cell| c.is_leaf() || c.len() <= rules.leaves[0];
    let mut lists = CellLists::default();
    let mut left = Pending::default();
    let mut cores = memory::copy(&given.cores);
    let mut stack = memory::copy(&given.close);
    while let Some(s) = stack.pop() {
        let c = &rules.sources.cells[s as usize];
        let direct = c.len() as f64 * t.len() as f64 * rules.cost.pair;
        let order = rules.orders.order(c.spread, t.spread, distance(c, t), c.radius + t.radius);
        match order {
            Some(p) if !(t_leaf && direct < rules.cost.m2l[p as usize]) => {
                memory::push(&mut lists.far, (p, s));
                memory::push(&mut cores, s);
            }
            _ if t_leaf && (leaf(c) || direct < rules.cost.m2l[rules.cost.m2l.len() - 1]) => {
                let list = if (rules.core_matters)(s, t) { &mut lists.near } else { &mut lists.plain };
                memory::push(list, c.begin..c.end);
            }
            _ if !leaf(c) && (t_leaf || c.radius >= t.radius) => {
                memory::extend(&mut stack, c.first_child..c.first_child + c.children);
            }
            _ => memory::push(&mut left.close, s),
        }
    }
    while let Some(s) = cores.pop() {
        if !(rules.core_matters)(s, t) {
            continue;
        }
        let c = &rules.sources.cells[s as usize];
        if !leaf(c) && (t_leaf || c.radius >= t.radius) {
            memory::extend(&mut cores, c.first_child..c.first_child + c.children);
        } else if t_leaf {
            memory::push(&mut lists.correction, c.begin..c.end);
        } else {
            memory::push(&mut left.cores, s);
        }
    }
    lists.far.sort_unstable_by_key(|&(p, s)| (std::cmp::Reverse(p), s));
    merge(&mut lists.near);
    merge(&mut lists.plain);
    merge(&mut lists.correction);
    (lists, left)
}

fn distance(a: &Cell, b: &Cell) -> f64 {
    (0..3).map(|i| (a.center[i] - b.center[i]).powi(2)).sum::<f64>().sqrt()
}

/// Sorts ranges and joins neighbours: long runs of sources keep the pair kernels busy.
fn merge(ranges: &mut Vec<Range<u32>>) {
    ranges.sort_unstable_by_key(|r| r.start);
    let mut out: Vec<Range<u32>> = memory::with_room(ranges.len());
    for r in ranges.drain(..) {
        match out.last_mut() {
            Some(last) if last.end == r.start => last.end = r.end,
            _ => out.push(r),
        }
    }
    *ranges = out;
}

/// Numbers for the report: far pairs of cells, near and correction pairs of elements.
pub fn count(targets: &Tree, lists: &[CellLists]) -> (u64, u64, u64) {
    lists
        .par_iter()
        .zip(&targets.cells)
        .map(|(l, t)| {
            let (n, (near, correction)) = (t.len() as u64, l.elements());
            (l.far.len() as u64, near * n, correction * n)
        })
        .reduce(|| (0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
}
