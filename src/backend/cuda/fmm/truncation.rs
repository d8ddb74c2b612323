//! Which blocks of degrees of every M2L operator are kept, from the tolerance; and how the kernel takes its columns.
//!
//! Enters: the error that the far field may have, relative to a unit of strength in a cell. Leaves: for every orbit (offsets up
//! to signs) and every tile of eight rows of its matrix, the steps of eight columns that are multiplied. A block (degrees a of
//! the local, b of the multipole expansion) at distance d contributes on average over sources and targets in their cubes
//! e² = a ((a+b)!)² Σ_m 1/((a+m)!(a-m)!(b+m)!(b-m)!) μ_{a-1} μ_b / (2b+1) / d^{2(a+b+1)}, μ_l the mean of |t|^{2l}: the
//! dearest blocks for the least are dropped until the budget is spent, so near offsets keep many and far ones few.

use super::shifts;

/// Degrees considered.
const DEGREES: usize = 24;
/// Layout of `m2l` in words, as in kernels/fmm_mma.cuh.
pub const MAX_ORBITS: usize = 80;
const SLOTS: usize = 126;
const ORBIT_COUNT: usize = 127;
const HEADS: usize = 128;
const COLUMNS: usize = HEADS + 16 * MAX_ORBITS;
const SLOT_CLASS: usize = COLUMNS + 512;
const CLASS: usize = SLOT_CLASS + 64;
/// The coarser levels together lose as much as the finest.
const COARSER: f64 = 2.0;
/// Those of M2L, M2M and L2L.
pub const OPERATORS: usize = MAX_ORBITS + 2;
/// Of the steps of a warp's tiles in a head: bits of each, and what is added to it.
const HEAD_BITS: usize = 6;
const HEAD_BIAS: usize = 31;

/// The kept parts of all operators.
#[derive(Debug, Clone, PartialEq)]
pub struct Truncation {
    pub order: usize,
    /// Tiles of eight coefficients.
    pub tiles: usize,
    /// M2M and L2L, mirrors `Fmm::op`.
    pub shifts: Vec<u32>,
    /// Mirrors `Fmm::m2l`.
    pub m2l: Vec<u32>,
    /// Tiles of columns a warp of M2L has.
    pub slots: usize,
    /// Fragments of 8 × 8 numbers in the table, some of M2L's unused; those of M2L that a target cell is multiplied with.
    pub fragments: usize,
    pub far_fragments: usize,
    /// Those of all operators that are used.
    pub products: usize,
    /// Whether orders up to the highest meet the budget; what these lose with nothing dropped.
    pub reached: bool,
    pub floor: f64,
}

/// Offsets up to signs: the lengths along each axis, and how many of them a target has on average.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orbit {
    offset: [usize; 3],
    pub share: f64,
}

impl Orbit {
    pub fn distance2(&self) -> f64 {
        self.offset.iter().map(|x| x * x).sum::<usize>() as f64
    }
}

/// Only distances matter: squared ones, how many offsets a target has at each, and their powers.
fn shells(orbits: &[Orbit]) -> (Vec<(f64, f64)>, Vec<Vec<f64>>) {
    let mut shells: Vec<(f64, f64)> = Vec::new();
    for orbit in orbits {
        match shells.iter_mut().find(|shell| shell.0 == orbit.distance2()) {
            Some(shell) => shell.1 += orbit.share,
            None => shells.push((orbit.distance2(), orbit.share)),
        }
    }
    let powers_of = |distance2: f64| (0..2 * DEGREES).map(|k| distance2.powi(-(k as i32 + 1))).collect();
    let powers = shells.iter().map(|shell| powers_of(shell.0)).collect();
    (shells, powers)
}

/// The squared error of all levels where blocks are left out that `is_kept` has not, at the distance with these powers.
fn lost(
    gains: &[Vec<f64>],
    (shells, powers): (&[(f64, f64)], &[Vec<f64>]),
    is_kept: impl Fn(usize, usize, &[f64]) -> bool,
) -> f64 {
    let mut sum = 0.0;
    for (shell, power) in shells.iter().zip(powers) {
        for a in 0..DEGREES {
            for b in 0..DEGREES {
                if !is_kept(a, b, power) {
                    sum += shell.1 * gains[a][b] * power[a + b];
                }
            }
        }
    }
    COARSER * sum
}

/// The error of an order of which all blocks are kept at all distances, in the unit of a budget.
pub fn left_out(order: usize) -> f64 {
    let (gains, (shells, powers)) = (gains(), shells(&orbits()));
    lost(&gains, (&shells, &powers), |a, b, _| a < order && b < order).sqrt()
}

impl Truncation {
    /// For an error `budget` (root of the summed squares over all offsets) with orders up to `most`, at least `least`.
    pub fn new(budget: f64, least: usize, most: usize) -> Self {
        let gains = gains();
        let orbits = orbits();
        let (shells, powers) = shells(&orbits);
        let keep = |tau: f64, a: usize, b: usize, power: &[f64]| {
            (b == 0 && a <= 1) || gains[a][b] * power[a + b] > tau * ((2 * a + 1) * (2 * b + 1)) as f64
        };
        let lost =
            |tau: f64| lost(&gains, (&shells, &powers), |a, b, power| a < most && b < most && keep(tau, a, b, power));
        let (mut low, mut high) = (1e-40f64, 1.0f64);
        let floor = lost(low).sqrt();
        for _ in 0..100 {
            let tau = (low * high).sqrt();
            if lost(tau) > budget * budget { high = tau } else { low = tau }
        }
        let kept = |a: usize, b: usize, power: &[f64]| keep(low, a, b, power);
        let mut order = least.max(2);
        for power in &powers {
            for a in 0..most {
                for b in 0..most {
                    if kept(a, b, power) {
                        order = order.max(a.max(b) + 1);
                    }
                }
            }
        }
        let shell_of =
            |i: usize| shells.iter().position(|shell| shell.0 == orbits[i].distance2()).expect("made from them");
        let shell: Vec<usize> = (0..orbits.len()).map(shell_of).collect();
        Self {
            reached: floor <= budget,
            floor,
            ..Self::tabulate(order, &orbits, |a, b, i| kept(a, b, &powers[shell[i]]))
        }
    }

    /// M2M and L2L of an order; nothing is kept of M2L.
    pub fn shifts_alone(order: usize) -> Self {
        Self::tabulate(order, &[], |_, _, _| false)
    }

    fn tabulate(order: usize, orbits: &[Orbit], keep: impl Fn(usize, usize, usize) -> bool) -> Self {
        let tiles = (order * order).div_ceil(8);
        let mut s = Self {
            order,
            tiles,
            shifts: Vec::new(),
            m2l: vec![0; CLASS + 256],
            slots: 0,
            fragments: 0,
            far_fragments: 0,
            products: 0,
            reached: true,
            floor: 0.0,
        };
        s.lay_out_columns();
        // Steps of columns that a tile of rows needs of an orbit.
        let steps = |s: &Self, orbit: usize, slot: usize| {
            let rows = s.m2l[COLUMNS + 8 * slot..][..8].iter().filter(|k| (**k as usize) < order * order);
            // A potential's constant is as good as its slopes.
            let last =
                |k: &u32| (0..order).rev().find(|b| keep(k.isqrt().max(1) as usize, *b, orbit)).map_or(0, |b| b + 1);
            let degrees = rows.map(last).max().unwrap_or(0);
            (degrees * degrees).div_ceil(8)
        };
        let cost = |s: &Self, orbit: usize| (0..64).map(|slot| steps(s, orbit, slot)).sum::<usize>();
        let mut dearest: Vec<usize> = (0..orbits.len()).collect();
        dearest.sort_by_key(|o| std::cmp::Reverse(cost(&s, *o)));
        for (number, orbit) in dearest.into_iter().enumerate() {
            let mut most = 0;
            for warp in 0..8 {
                // A step that a tile has, those before it have too.
                let (mut deepest, mut head) = (0, 0);
                for slot in (0..s.slots).rev() {
                    deepest = deepest.max(steps(&s, orbit, 8 * warp + slot));
                    head |= (deepest + HEAD_BIAS) << (HEAD_BITS * slot);
                    s.far_fragments += deepest;
                }
                let at = HEADS + 16 * number + 2 * warp;
                (s.m2l[at], s.m2l[at + 1]) = (s.fragments as u32, head as u32);
                s.fragments += deepest * s.slots;
                most = most.max(deepest);
            }
            let [x, y, z] = orbits[orbit].offset;
            s.m2l[number] = (x | y << 4 | z << 8 | most << 12) as u32;
        }
        (s.m2l[SLOTS], s.m2l[ORBIT_COUNT]) = (s.slots as u32, orbits.len() as u32);
        let table = s.fragments;
        s.shifts = shifts::table(&classes(order), tiles, &mut s.fragments);
        s.products = s.far_fragments + s.fragments - table;
        s
    }

    #[cfg(test)]
    pub(super) fn lends_no_slot(&self) -> bool {
        (0..64).all(|slot| self.m2l[SLOT_CLASS + slot] as usize == slot / 8)
    }

    /// A warp has the coefficients of one class, by degree, eight a tile; what does not fit into its slots goes to the last slot of
    /// another. Columns that are left over stand for the padding of an expansion, or for nothing.
    fn lay_out_columns(&mut self) {
        let count = self.order * self.order;
        let classes = classes(self.order);
        let need: Vec<usize> = classes.iter().map(|class| class.len().div_ceil(8)).collect();
        let over = |slots: usize| need.iter().map(|n| n.saturating_sub(slots)).sum::<usize>();
        let free = |slots: usize| need.iter().filter(|n| **n < slots).count();
        self.slots = (1..8).find(|slots| over(*slots) <= free(*slots)).expect("orders below 20");
        let mut padding = count as u32..8 * self.tiles as u32;
        self.m2l[COLUMNS..SLOT_CLASS].fill(u32::MAX);
        let mut lent: Vec<usize> = (0..8).filter(|warp| need[*warp] < self.slots).collect();
        for slot in 0..64 {
            self.m2l[SLOT_CLASS + slot] = slot as u32 / 8;
        }
        for (class, members) in classes.iter().enumerate() {
            for (j, tile) in members.chunks(8).enumerate() {
                let slot = if j < self.slots { 8 * class + j } else { 8 * lent.pop().expect("free") + self.slots - 1 };
                self.m2l[SLOT_CLASS + slot] = class as u32;
                for k in 0..8 {
                    self.m2l[COLUMNS + 8 * slot + k] =
                        tile.get(k).copied().or_else(|| padding.next()).unwrap_or(u32::MAX);
                }
            }
        }
        for k in 0..256 {
            self.m2l[CLASS + k] = class_of(k) as u32;
        }
    }
}

/// e² of every block at distance 1.
pub(super) fn gains() -> Vec<Vec<f64>> {
    let moments = moments();
    let mut factorial = vec![1.0f64; 2 * DEGREES + 2];
    for k in 1..factorial.len() {
        factorial[k] = factorial[k - 1] * k as f64;
    }
    let gain = |a: usize, b: usize| {
        if a == 0 {
            return 0.0;
        }
        let m0 = a.min(b);
        let term = |m: usize| 1.0 / (factorial[a + m] * factorial[a - m] * factorial[b + m] * factorial[b - m]);
        let sum = term(0) + 2.0 * (1..=m0).map(term).sum::<f64>();
        factorial[a + b].powi(2) * sum * moments[b] / (2 * b + 1) as f64 * a as f64 * moments[a - 1]
    };
    (0..DEGREES).map(|a| (0..DEGREES).map(|b| gain(a, b)).collect()).collect()
}

/// Mean of |t|^{2l} over the unit cube around zero.
fn moments() -> Vec<f64> {
    const POINTS: usize = 24;
    let mut moments = vec![0.0; DEGREES + 1];
    let x = |i: usize| ((i as f64 + 0.5) / (2 * POINTS) as f64).powi(2);
    for i in 0..POINTS {
        for j in 0..POINTS {
            for k in 0..POINTS {
                let r2 = x(i) + x(j) + x(k);
                let mut power = 1.0 / (POINTS * POINTS * POINTS) as f64;
                for moment in &mut moments {
                    *moment += power;
                    power *= r2;
                }
            }
        }
    }
    moments
}

/// Which reflections (bit 0: of x, 1: of y, 2: of z) change the sign of coefficient `k`.
fn class_of(k: usize) -> usize {
    let l = k.isqrt();
    let (m, sine) = ((k - l * l).div_ceil(2), usize::from(k > l * l && (k - l * l).is_multiple_of(2)));
    ((m + sine) % 2) | (sine << 1) | (((l + m) % 2) << 2)
}

/// The coefficients of an expansion by class, in each by degree.
pub(super) fn classes(order: usize) -> [Vec<u32>; 8] {
    let mut classes: [Vec<u32>; 8] = Default::default();
    for k in 0..order * order {
        classes[class_of(k)].push(k as u32);
    }
    classes
}

/// The offsets between cells that are far from each other while their parents are near (at most 2 sides apart).
pub(super) fn orbits() -> Vec<Orbit> {
    let mut orbits: Vec<Orbit> = Vec::new();
    let near = |d: [i32; 3]| d.iter().map(|x| x * x).sum::<i32>() <= 4;
    let bit = |octant: i32, axis: usize| octant >> axis & 1;
    for index in 0..125 {
        let parent = [index % 5 - 2, index / 5 % 5 - 2, index / 25 - 2];
        if !near(parent) {
            continue;
        }
        for pair in 0..64 {
            let d: [i32; 3] = std::array::from_fn(|k| bit(pair % 8, k) - 2 * parent[k] - bit(pair / 8, k));
            if near(d) {
                continue;
            }
            let offset = d.map(|x| x.unsigned_abs() as usize);
            match orbits.iter_mut().find(|orbit| orbit.offset == offset) {
                Some(orbit) => orbit.share += 0.125,
                None => orbits.push(Orbit { offset, share: 0.125 }),
            }
        }
    }
    orbits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 33 neighbours of the parent have 264 children, 33 of which are near: 231 operators act on a cell.
    #[test]
    fn a_cell_has_231_offsets() {
        let orbits = orbits();
        assert_eq!(orbits.iter().map(|o| o.share).sum::<f64>(), 231.0);
        assert!(orbits.iter().all(|o| o.distance2() >= 5.0));
        assert!(orbits.len() <= MAX_ORBITS);
    }

    /// Tighter tolerances keep more; a single source at the centre (b = 0) and the field's constant (a = 1) are always kept.
    #[test]
    fn tighter_budgets_keep_more() {
        let (mut order, mut fragments) = (0, 0);
        for budget in [1e-1, 1e-2, 1e-3, 1e-4] {
            let s = Truncation::new(budget, 2, 16);
            assert!(s.order > order && s.fragments > fragments, "{budget}: order {}", s.order);
            (order, fragments) = (s.order, s.fragments);
        }
        assert!((12..=15).contains(&order), "{order}");
    }

    /// A fragment belongs to one tile and step at most; the tiles of a warp have fewer and fewer steps.
    #[test]
    fn fragments_do_not_overlap() {
        let s = Truncation::new(1e-2, 2, 16);
        let mut owned = vec![false; s.fragments];
        let mut own = |k: usize| assert!(!std::mem::replace(&mut owned[k], true));
        for head in &s.shifts[shifts::UP_HEAD..] {
            (0..head & 63).for_each(|k| own(((head >> 6) + k) as usize));
        }
        let mut far = 0;
        for head in s.m2l[HEADS..COLUMNS].chunks(2).filter(|head| head[1] != 0) {
            let steps = |slot: usize| (head[1] as usize >> (HEAD_BITS * slot) & ((1 << HEAD_BITS) - 1)) - HEAD_BIAS;
            assert!((1..s.slots).all(|slot| steps(slot) <= steps(slot - 1)) && steps(0) <= s.tiles);
            for slot in 0..s.slots {
                (0..steps(slot)).for_each(|step| own(head[0] as usize + step * s.slots + slot));
                far += steps(slot);
            }
        }
        assert_eq!(far, s.far_fragments);
    }

    /// Every coefficient, and every number of an expansion's padding, is a column once, with the others of its class.
    #[test]
    fn every_coefficient_is_a_column() {
        for order in 2..=16 {
            let s = Truncation::tabulate(order, &orbits(), |a, b, _| a + b < order);
            let columns: Vec<(usize, u32)> =
                s.m2l[COLUMNS..SLOT_CLASS].iter().copied().enumerate().filter(|(_, k)| *k != u32::MAX).collect();
            let mut numbers: Vec<u32> = columns.iter().map(|(_, k)| *k).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..8 * s.tiles as u32), "order {order}");
            for (column, k) in columns {
                let (warp, slot) = (column / 64, column / 8 % 8);
                let class = s.m2l[SLOT_CLASS + column / 8] as usize;
                assert!(slot < s.slots && (class == warp || slot + 1 == s.slots));
                assert!(k as usize >= order * order || class_of(k as usize) == class);
            }
        }
    }
}
