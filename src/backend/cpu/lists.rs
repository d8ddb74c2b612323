//! Interaction lists: for every target cell the far sources with their orders, for every target leaf the near ones.
//!
//! Enters: both trees, what may be expanded (`Admission`), where cores matter, costs, the images that sources are seen
//! through. Leaves: the lists of each target cell. An image of a source cell is the cell itself, seen from a target cell that is
//! moved the other way. A pair of cells is far when an order exists that keeps its error within the budget (a dual traversal, the adaptive kind
//! of Yokota & Barba 2011), unless the direct sum of the pair is cheaper. A core does not change what is far: where it still
//! matters in a far pair, the elements concerned enter `correction`, which adds regularized minus singular.

use super::shared;
use super::tree::{Cell, Tree};
use crate::math::accuracy::{Cut, ErrorTable, Geometry};
use crate::math::harmonics::MAX_ORDER;
use crate::memory;
use rayon::prelude::*;
use std::ops::Range;

/// How far sources act on targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheme {
    /// By local expansions of the target cells: M2L, L2L, L2P.
    #[default]
    Fmm,
    /// By multipoles at the targets of the leaves: M2P.
    Treecode,
}

/// Seconds of one thread (any unit): what decides between a multipole and a direct sum.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    /// One pair of elements, summed directly.
    pub pair: f64,
    /// The same in double precision, as at samples.
    pub exact: f64,
    /// One pair of elements of a core correction.
    pub correction: f64,
    /// One M2L of order p, all components.
    pub m2l: Vec<f64>,
    /// One M2P of order p, all rows, at a register of targets; and how many these are. Empty where no treecode is asked for.
    pub m2p: Vec<f64>,
    pub lanes: usize,
}

impl Cost {
    /// A far pair of order p with so many targets.
    #[inline]
    pub fn far(&self, scheme: Scheme, p: usize, targets: usize) -> f64 {
        match scheme {
            Scheme::Fmm => self.m2l[p],
            Scheme::Treecode => self.m2p[p] * targets.div_ceil(self.lanes) as f64,
        }
    }
}

/// Absolute errors, in units of the strengths, that one interaction may add at a target.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Of a pair of cells of order 10, root mean square (see `ErrorTable::balanced_order`): in the field, and in its gradient (infinite where that is not asked).
    pub pair: [f64; 2],
    /// Of a core that is left out, at most: the same two.
    pub core: [f64; 2],
    /// Of the whole field, root mean square over all targets: the same two.
    pub field: [f64; 2],
}

/// What the cores of a cell may leave together at a target, in units of what the whole field may have.
const CORES_OF_CELL: f64 = 0.6;

impl Budget {
    /// Of all cores of a cell that are left out, at most: they may act together, and so may those of many cells.
    pub fn cores_of_cell(&self) -> [f64; 2] {
        self.field.map(|v| CORES_OF_CELL * v)
    }

    pub fn scaled(&self, pair: f64, core: f64) -> Self {
        // What is loosened in the mean stays bounded at single targets.
        let field = self.field.map(|v| v * pair.min(1.0));
        Self { pair: self.pair.map(|v| v * pair), core: self.core.map(|v| v * core), field }
    }
}

/// What the sources of a cell amount to in a truncation error.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceCell {
    /// Effective strength.
    pub strength: f64,
    /// Effective radius: a power mean of the distances from the centre, weighted with the squares of the strengths.
    pub spread: f64,
    /// Largest strength of an element.
    pub peak: f64,
    /// What all elements are from far away, seen as one: the norm of their sum, or of independent ones.
    pub sum: f64,
    /// Number of elements like the strongest that the cell amounts to, at least 1: the mean square over the pair counts their
    /// errors. 1 where they are of one direction, since their errors may add up.
    pub alike: f64,
}

/// Which pairs of cells may be expanded, and to which order.
pub struct Admission<'a> {
    scheme: Scheme,
    tables: [ErrorTable; 2],
    /// Powers of 1/d of the field and of its gradient.
    power: i32,
    pub budget: Budget,
    pub sources: &'a [SourceCell],
    /// Of the source tree.
    cells: &'a [Cell],
    /// Pairs that need more are divided.
    pub highest: usize,
    /// Relative error of the arithmetic.
    rounding: f32,
    /// Every pair has this order; 0: as the budget says.
    fixed: usize,
    /// Square root of the number of targets.
    root_of_targets: f64,
}

/// Error of the strongest element of a source cell at the worst target of a target cell, in units of what the whole field
/// may have, times the square root of the share of all targets that the cell holds: if all of them had it, the pair would
/// add the square of this to the mean square.
const PEAK_OF_ELEMENT: f64 = 0.2;
/// The same of all sources of a cell together at a single target, times the square root of the number of targets.
const PEAK_OF_CELL: f64 = 0.1;
/// What all cores that are left out may take together at a single target, times the square root of the number of targets.
const PEAK_OF_CORES: f64 = 0.2;
/// The cores of one source cell may take so much of what is left of that.
const CORES_OF_REST: f64 = 0.125;
/// Ratio of radius to distance up to which a source cell counts as compact.
const COMPACT: f64 = 0.25;

impl<'a> Admission<'a> {
    /// `components`: 3 for vortices (velocity and gradient), 1 for charges (potential and gradient).
    pub fn new(
        scheme: Scheme,
        components: usize,
        budget: Budget,
        sources: &'a [SourceCell],
        cells: &'a [Cell],
        highest: usize,
        rounding: f64,
        fixed: usize,
        targets: usize,
    ) -> Self {
        let first = if components == 3 { 1 } else { 0 };
        let cut = if scheme == Scheme::Fmm { Cut::Both } else { Cut::Sources };
        let tables = [first, first + 1].map(|k| ErrorTable::of_derivative(k, cut));
        Self {
            scheme,
            tables,
            power: first as i32 + 1,
            budget,
            sources,
            cells,
            highest,
            rounding: rounding as f32,
            fixed,
            root_of_targets: (targets as f64).sqrt(),
        }
    }

    /// What all cores that are left out may take from the field and from its gradient at the targets of a cell: the square of it, if only
    /// these have it, is a small part of the mean square over all targets.
    pub fn cores_at_single_targets(&self, t: &Cell) -> [f64; 2] {
        self.budget.field.map(|v| PEAK_OF_CORES * v * self.root_of_targets / (t.len() as f64).sqrt())
    }

    /// What the tables may say for this source cell at distance `d`: budget over strength/d^power.
    #[inline]
    fn relative(&self, s: u32, d: f64) -> [f32; 2] {
        let field = if self.power == 1 { d } else { d * d } / self.sources[s as usize].strength.max(1e-290);
        [(self.budget.pair[0] * field) as f32, (self.budget.pair[1] * field * d) as f32]
    }

    /// Order for a pair; `None`: not to be expanded.
    #[inline]
    pub fn order(&self, s: u32, c: &Cell, t: &Cell) -> Option<u8> {
        let d = distance(c, t);
        let g = self.geometry(s, c, t, d)?;
        let p = self.within_peak(s, c, t, d, self.needed(g, self.relative(s, d)), self.highest);
        match self.fixed {
            0 => (p <= self.highest).then_some(p as u8),
            fixed => (p <= fixed.min(self.highest)).then_some(fixed as u8),
        }
    }

    #[inline]
    fn geometry(&self, s: u32, c: &Cell, t: &Cell, d: f64) -> Option<Geometry> {
        Geometry::of(self.sources[s as usize].spread, t.spread, d, c.radius + t.radius)
    }

    #[inline]
    fn needed(&self, g: Geometry, allowed: [f32; 2]) -> usize {
        if allowed[0].min(allowed[1]) < self.rounding {
            return MAX_ORDER + 1;
        }
        let p = self.tables[0].balanced_order(g, allowed[0]);
        if allowed[1].is_finite() { p.max(self.tables[1].balanced_order(g, allowed[1])) } else { p }
    }

    /// Strength of the largest cell above `s` that is compact at distance `d`: a wide target cell truncates the fields
    /// of all sources in it alike, so that dividing them makes no difference to its error.
    #[inline]
    fn compact_sum(&self, s: u32, d: f64) -> f64 {
        let mut cell = s as usize;
        while let Some(above) = self.cells.get(self.cells[cell].parent as usize) {
            if above.radius > COMPACT * d {
                break;
            }
            cell = self.cells[cell].parent as usize;
        }
        self.sources[cell].sum
    }

    /// The first order from `p` on that keeps the errors of the strongest element, and of all together, at the worst target
    /// within what single targets may have.
    #[inline]
    fn within_peak(&self, s: u32, c: &Cell, t: &Cell, d: f64, p: usize, highest: usize) -> usize {
        let SourceCell { peak, alike, spread, strength, .. } = self.sources[s as usize];
        let allowed = PEAK_OF_ELEMENT * self.root_of_targets / (t.len() as f64).sqrt();
        let allowed_to_cell = PEAK_OF_CELL * self.root_of_targets;
        // The sum is compared with a bound of its own.
        let of_cell = self.compact_sum(s, d) * allowed / allowed.max(allowed_to_cell);
        let peak = peak / alike.sqrt();
        // What the target degrees are cut of; multipoles at the targets have none.
        let cut = |strength: f64| if self.scheme == Scheme::Fmm { strength } else { 0.0 };
        let strengths = [peak, cut(peak.max(of_cell))];
        let allowed = self.budget.field.map(|v| v * allowed);
        let p = WorstCase::new(c.radius, t.radius, d).order(p, highest, self.power, strengths, allowed);
        // All elements at the effective radius, on the side of the worst target.
        let allowed = self.budget.field.map(|v| v * allowed_to_cell);
        WorstCase::new(spread, t.radius, d).order(p, highest, self.power, [strength, cut(strength)], allowed)
    }

    /// Order for a pair that is in a far list whatever it needs, at most `limit`.
    pub fn order_of_far(&self, s: u32, c: &Cell, t: &Cell, limit: usize) -> u8 {
        let d = distance(c, t);
        match self.geometry(s, c, t, d) {
            Some(g) if self.fixed == 0 => {
                self.within_peak(s, c, t, d, self.needed(g, self.relative(s, d)), limit).min(limit) as u8
            }
            _ => limit as u8,
        }
    }

    /// Mean squares that order `p` leaves out in a pair: of the field and of its gradient.
    pub fn mean_squares(&self, s: u32, c: &Cell, t: &Cell, p: usize) -> [f64; 2] {
        let d = distance(c, t);
        let Some(g) = self.geometry(s, c, t, d) else { return [0.0; 2] };
        let unit = self.sources[s as usize].strength / d.powi(self.power);
        [self.tables[0].error(g, p) as f64 * unit, self.tables[1].error(g, p) as f64 * unit / d].map(|e| e * e)
    }
}

/// The truncation error of one unit element at the worst position in the source ball, at the worst target of the target ball:
/// the sums Σ (n+1) a^n/ρ^(n+2), ρ = d - b, over source degrees n ≥ p, and Σ l b^(l-1)/ρ^(l+1), ρ = d - a, over target
/// degrees l ≥ p (Greengard and Rokhlin's bound, differentiated).
struct WorstCase {
    /// Ratios of both sums.
    x: f64,
    y: f64,
    /// 1/(d - a - b)
    gap: f64,
}

impl WorstCase {
    #[inline]
    fn new(a: f64, b: f64, d: f64) -> Self {
        Self { x: a / (d - b), y: b / (d - a), gap: 1.0 / (d - a - b) }
    }

    /// The first order from `p` on with errors of at most `allowed`, as far as `highest`.
    #[inline]
    fn order(&self, mut p: usize, highest: usize, power_of: i32, strengths: [f64; 2], allowed: [f64; 2]) -> usize {
        let mut powers = [power(self.x, p), power(self.y, p - 1)];
        while p <= highest {
            let e = self.errors(p, powers, power_of, strengths);
            if e[0] <= allowed[0] && e[1] <= allowed[1] {
                break;
            }
            p += 1;
            powers = [powers[0] * self.x, powers[1] * self.y];
        }
        p
    }

    /// Of the field, which falls with `power`, and its gradient, from x^p and y^(p-1), for the strengths that the source and
    /// the target degrees are cut of.
    #[inline]
    fn errors(&self, p: usize, [xp, yp]: [f64; 2], power: i32, [a, b]: [f64; 2]) -> [f64; 2] {
        let n = p as f64;
        let (xp, yp) = (a * xp, b * yp);
        let first = (xp * (n + 1.0 - n * self.x) + yp * (n - (n - 1.0) * self.y)) * self.gap * self.gap;
        if power == 1 {
            return [(xp + yp * self.y) * self.gap, first];
        }
        [first, first * (n + 2.0) * self.gap]
    }
}

/// Where a core changes the field by more than the budget.
pub trait CoreTest: Sync {
    /// What the cores of all elements of the source cell take at most from the field and from its gradient at any target of the target
    /// cell; `None` where some of them may change it by more than the budget.
    fn left_out(&self, source: u32, cell: &Cell, target: &Cell) -> Option<[f64; 2]>;
    /// For any element of the source cell at any target of the target cell.
    fn matters(&self, source: u32, cell: &Cell, target: &Cell) -> bool {
        self.left_out(source, cell, target).is_none()
    }
    /// Appends those of the sorted elements `among` whose cores matter at any target of the target cell, and as many more as it takes for
    /// the others to change field and gradient by no more than `most` together; returns what these change at most. `scratch` is memory
    /// that calls share.
    fn elements(
        &self,
        among: Range<u32>,
        target: &Cell,
        most: [f64; 2],
        scratch: &mut Vec<[f64; 2]>,
        out: &mut Vec<Range<u32>>,
    ) -> [f64; 2];
}

/// A source cell that is far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Far {
    pub order: u8,
    pub image: Image,
    pub cell: u32,
}

/// Number of an image of the sources; 0: the sources themselves.
pub type Image = u16;

/// What is summed directly of one image of the sources.
#[derive(Debug, Clone, Default)]
pub struct Direct {
    pub image: Image,
    /// Sorted sources, summed with their cores.
    pub near: Vec<Range<u32>>,
    /// Sorted sources, near but out of reach of their cores: summed without.
    pub plain: Vec<Range<u32>>,
    /// Sorted sources that are far and whose cores still matter.
    pub correction: Vec<Range<u32>>,
}

/// The lists of one target cell.
#[derive(Debug, Clone, Default)]
pub struct CellLists {
    /// By falling order.
    pub far: Vec<Far>,
    /// By image.
    pub direct: Vec<Direct>,
    /// What all cores that are left out take at most from the field and from its gradient at a target.
    pub left_out: [f64; 2],
}

impl CellLists {
    /// Sources summed directly, and those of the correction.
    pub fn elements(&self) -> (u64, u64) {
        let count = |r: &[Range<u32>]| r.iter().map(|r| r.len() as u64).sum::<u64>();
        let near = self.direct.iter().map(|d| count(&d.near) + count(&d.plain)).sum();
        (near, self.direct.iter().map(|d| count(&d.correction)).sum())
    }
    /// The M2L interactions are batched by order: highest first.
    pub fn sort_far(&mut self) {
        self.far.sort_unstable_by_key(|f| (std::cmp::Reverse(f.order), f.image, f.cell));
    }
    pub fn bytes(&self) -> usize {
        let ranges = |d: &Direct| d.near.capacity() + d.plain.capacity() + d.correction.capacity();
        let direct = self.direct.iter().map(|d| 8 * ranges(d) + size_of::<Direct>()).sum::<usize>();
        8 * self.far.capacity() + direct + size_of::<CellLists>()
    }

    /// What is summed directly of `image`.
    fn of(&mut self, image: Image) -> &mut Direct {
        let at = self.direct.iter().rposition(|d| d.image == image).unwrap_or_else(|| {
            memory::push(&mut self.direct, Direct { image, ..Direct::default() });
            self.direct.len() - 1
        });
        &mut self.direct[at]
    }

    fn sort(&mut self) {
        self.sort_far();
        self.direct.sort_unstable_by_key(|d| d.image);
        for d in &mut self.direct {
            [&mut d.near, &mut d.plain, &mut d.correction].into_iter().for_each(merge);
        }
    }
}

/// A target cell as it is seen from the sources, each of whose images is moved by a vector.
pub struct Seen {
    cell: Cell,
    home: [f64; 3],
    image: Image,
}

impl Seen {
    pub fn new(cell: &Cell) -> Self {
        Self { cell: *cell, home: cell.center, image: 0 }
    }

    #[inline]
    pub fn through(&mut self, image: Image, shifts: &[[f64; 3]]) -> &Cell {
        if self.image != image {
            let shift = shifts[image as usize];
            self.image = image;
            self.cell.center = std::array::from_fn(|i| self.home[i] - shift[i]);
        }
        &self.cell
    }
}

/// A subset of the target cells; none named: all.
#[derive(Clone, Copy)]
pub struct Subset<'a>(pub Option<&'a [bool]>);

impl Subset<'_> {
    pub const ALL: Subset<'static> = Subset(None);
    pub fn has(&self, cell: usize) -> bool {
        self.0.is_none_or(|marked| marked[cell])
    }
}

/// What the traversal needs to know.
pub struct Rules<'a> {
    pub scheme: Scheme,
    pub sources: &'a Tree,
    pub targets: &'a Tree,
    pub admission: &'a Admission<'a>,
    pub cost: &'a Cost,
    /// Source and target cells of at most so many elements are taken for leaves, whatever hangs below them.
    pub leaves: [usize; 2],
    pub cores: &'a dyn CoreTest,
    /// What all cores together that are left out may take at a target from the field and from its gradient, where single targets may not
    /// have more (`Admission::cores_at_single_targets`); infinite: no limit.
    pub cores_at_target: [f64; 2],
    /// What each image of the sources is moved by; the first by nothing.
    pub shifts: &'a [[f64; 3]],
}

/// What a cell leaves to its children.
#[derive(Default, Clone)]
struct Pending {
    /// Of the cores that are left out at all of its targets (`CellLists::left_out`).
    left_out: [f64; 2],
    /// Too close for this cell.
    close: Vec<(Image, u32)>,
    /// Far, cores to be looked at.
    cores: Vec<(Image, u32)>,
    /// Elements of far leaves whose cores matter somewhere in this cell.
    elements: Vec<(Image, Vec<Range<u32>>)>,
}

/// What the cores take together that are left out at the targets of one cell, of field and gradient, and what they may take.
struct LeftOut {
    sum: [f64; 2],
    most: [f64; 2],
}

impl LeftOut {
    /// What the next source cell may add: a part of the rest, so that those that follow have some too.
    fn next(&self) -> [f64; 2] {
        [0, 1].map(|k| CORES_OF_REST * (self.most[k] - self.sum[k]))
    }

    fn add(&mut self, more: [f64; 2]) {
        self.sum = [0, 1].map(|k| self.sum[k] + more[k]);
    }

    /// Adds what the cores of a cell take, if they may be left out.
    fn takes(&mut self, more: Option<[f64; 2]>) -> bool {
        let next = self.next();
        let fitting = more.filter(|more| more[0] <= next[0] && more[1] <= next[1]);
        fitting.inspect(|&more| self.add(more)).is_some()
    }
}

/// Lists of target cells, given by rising numbers, each with its parent; the order of every list is unique.
pub fn build(rules: &Rules, cells: &[u32]) -> Vec<CellLists> {
    let mut lists = memory::with_room(cells.len());
    if rules.sources.cells.is_empty() {
        lists.resize_with(cells.len(), CellLists::default);
        return lists;
    }
    let (mut parents, mut pending, mut below) = (&cells[..0], vec![], cells);
    for level in 0..rules.targets.depth() {
        let here;
        (here, below) = below.split_at(below.partition_point(|&c| (c as usize) < rules.targets.level(level).end));
        let of_cell = |&c: &u32| {
            let cell = &rules.targets.cells[c as usize];
            if rules.scheme == Scheme::Treecode {
                return (rules.of_leaf(c as usize), Pending::default());
            }
            if level == 0 {
                return visit(rules, cell, &rules.roots());
            }
            visit(rules, cell, &pending[place(parents, cell.parent)])
        };
        let (mut done, left) = memory::par_unzip(shared(here.par_iter().with_min_len(8)).map(of_cell));
        lists.append(&mut done);
        (parents, pending) = (here, left);
    }
    lists
}

/// Where a number stands among rising ones, which hold it.
pub fn place(numbers: &[u32], number: u32) -> usize {
    // Mostly there are no gaps.
    let first_guess = (number - numbers[0]) as usize;
    if numbers.get(first_guess) == Some(&number) { first_guess } else { numbers.partition_point(|&n| n < number) }
}

impl Rules<'_> {
    /// The roots of all images of the source tree.
    fn roots(&self) -> Pending {
        let close = memory::collect((0..self.shifts.len()).map(|image| (image as Image, 0)));
        Pending { close, ..Pending::default() }
    }

    /// What all cores together may take that are left out at the targets of this cell.
    pub fn most_left_out(&self, t: &Cell) -> [f64; 2] {
        let single = self.admission.cores_at_single_targets(t);
        [0, 1].map(|k| single[k].max(self.cores_at_target[k]))
    }

    fn is_target_leaf(&self, t: &Cell) -> bool {
        t.is_leaf() || t.len() <= self.leaves[1]
    }

    /// All lists of a target leaf, from the root of the source tree; none of other cells.
    fn of_leaf(&self, t: usize) -> CellLists {
        let cells = &self.targets.cells;
        let is_below = t > 0 && self.is_target_leaf(&cells[cells[t].parent as usize]);
        if is_below || !self.is_target_leaf(&cells[t]) {
            return CellLists::default();
        }
        visit(self, &cells[t], &self.roots()).0
    }
}

/// Decides everything that target cell `t` can decide.
fn visit(rules: &Rules, t: &Cell, given: &Pending) -> (CellLists, Pending) {
    let t_leaf = rules.is_target_leaf(t);
    let leaf = |c: &Cell| c.is_leaf() || (c.is_whole() && c.len() <= rules.leaves[0]);
    let mut lists = CellLists::default();
    let mut left = Pending::default();
    let mut left_out = LeftOut { most: rules.most_left_out(t), sum: given.left_out };
    let mut cores = memory::copy(&given.cores);
    let mut stack = memory::copy(&given.close);
    let mut seen = Seen::new(t);
    let targets = t.len();
    let far = |p: usize| rules.cost.far(rules.scheme, p, targets);
    let dearest = far(rules.admission.highest.min(rules.cost.m2l.len() - 1));
    while let Some((image, s)) = stack.pop() {
        let c = &rules.sources.cells[s as usize];
        let t = seen.through(image, rules.shifts);
        let direct = c.len() as f64 * t.len() as f64 * rules.cost.pair;
        match rules.admission.order(s, c, t) {
            Some(order) if !(t_leaf && c.is_whole() && direct < far(order as usize)) => {
                memory::push(&mut lists.far, Far { order, image, cell: s });
                memory::push(&mut cores, (image, s));
            }
            _ if t_leaf && c.is_whole() && (leaf(c) || direct < dearest) => {
                let plain = left_out.takes(rules.cores.left_out(s, c, t));
                let of = lists.of(image);
                memory::push(if plain { &mut of.plain } else { &mut of.near }, c.begin..c.end);
            }
            _ if !leaf(c) && (t_leaf || c.radius >= t.radius) => {
                memory::extend(&mut stack, (c.first_child..c.first_child + c.children).map(|c| (image, c)));
            }
            // Multipoles of another rank, which found them good enough for its box around this leaf.
            _ if t_leaf => {
                let order = rules.admission.order_of_far(s, c, t, rules.admission.highest);
                memory::push(&mut lists.far, Far { order, image, cell: s })
            }
            _ => memory::push(&mut left.close, (image, s)),
        }
    }
    let mut scratch = vec![];
    while let Some((image, s)) = cores.pop() {
        let c = &rules.sources.cells[s as usize];
        let t = seen.through(image, rules.shifts);
        if left_out.takes(rules.cores.left_out(s, c, t)) {
            continue;
        }
        if !leaf(c) && (t_leaf || c.radius >= t.radius) {
            memory::extend(&mut cores, (c.first_child..c.first_child + c.children).map(|c| (image, c)));
        } else if leaf(c) {
            let out = corrections(&mut lists, &mut left, t_leaf, image);
            left_out.add(rules.cores.elements(c.begin..c.end, t, left_out.next(), &mut scratch, out));
        } else {
            memory::push(&mut left.cores, (image, s));
        }
    }
    for (image, among) in &given.elements {
        let t = seen.through(*image, rules.shifts);
        let out = corrections(&mut lists, &mut left, t_leaf, *image);
        for among in among {
            left_out.add(rules.cores.elements(among.clone(), t, left_out.next(), &mut scratch, out));
        }
    }
    (lists.left_out, left.left_out) = (left_out.sum, left_out.sum);
    lists.sort();
    (lists, left)
}

/// Where elements of an image go whose cores matter: into a leaf's list, or on to the children.
fn corrections<'a>(
    lists: &'a mut CellLists,
    left: &'a mut Pending,
    is_leaf: bool,
    image: Image,
) -> &'a mut Vec<Range<u32>> {
    if is_leaf {
        return &mut lists.of(image).correction;
    }
    let at = left.elements.iter().rposition(|e| e.0 == image).unwrap_or_else(|| {
        memory::push(&mut left.elements, (image, vec![]));
        left.elements.len() - 1
    });
    &mut left.elements[at].1
}

/// x^n by squaring, n < 64; without branches, since orders of pairs follow no pattern.
#[inline]
pub fn power(mut x: f64, n: usize) -> f64 {
    debug_assert!(n < 64);
    let mut product = 1.0;
    for bit in 0..6 {
        product *= if n >> bit & 1 == 1 { x } else { 1.0 };
        x *= x;
    }
    product
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

/// Numbers for the report, of the target cells that are `counted`: far pairs of cells, near and correction pairs of elements.
pub fn count(targets: &Tree, lists: &[CellLists], counted: impl Fn(&Cell) -> bool + Sync) -> (u64, u64, u64) {
    lists
        .par_iter()
        .zip(&targets.cells)
        .filter(|(_, t)| counted(t))
        .map(|(l, t)| {
            let (n, (near, correction)) = (t.len() as u64, l.elements());
            (l.far.len() as u64, near * n, correction * n)
        })
        .reduce(|| (0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
}
