//! Which blocks of degrees of every M2L operator are kept, from the tolerance.
//!
//! Enters: the error that the far field may have, relative to a unit of strength in a cell. Leaves: for every operator and
//! every tile of eight rows of its matrix, the steps of eight columns that are multiplied. A block (degrees a of the local,
//! b of the multipole expansion) at distance d contributes on average over sources and targets in their cubes
//! e² = a ((a+b)!)² Σ_m 1/((a+m)!(a-m)!(b+m)!(b-m)!) μ_{a-1} μ_b / (2b+1) / d^{2(a+b+1)}, μ_l the mean of |t|^{2l}: the
//! dearest blocks for the least are dropped until the budget is spent, so near offsets keep many and far ones few.

/// Degrees considered.
const DEGREES: usize = 24;
/// M2L offsets -5..=5 each way, as in kernels/fmm.cuh.
pub const OFFSETS: usize = 1331;
pub const OPERATORS: usize = OFFSETS + 16;

/// The kept parts of all operators. Mirrors `Fmm::op` of kernels/fmm.cuh.
#[derive(Debug, Clone, PartialEq)]
pub struct Staircase {
    pub order: usize,
    /// Tiles of eight coefficients.
    pub tiles: usize,
    /// `[operator][tile]`: first fragment; steps, begin | end << 16.
    pub kept: Vec<[u32; 2]>,
    /// Fragments of 8 × 8 numbers in the table.
    pub fragments: usize,
    /// Most coefficients of a multipole that an M2L operator reads.
    pub columns: usize,
    /// Whether orders up to the highest meet the budget.
    pub reached: bool,
}

/// Offsets in use: number, squared distance, and which part of the octants of targets has them.
struct Offset {
    operator: usize,
    distance2: f64,
    share: f64,
}

impl Staircase {
    /// For an error `budget` (root of the summed squares over all offsets) with orders up to `most`, at least `least`.
    pub fn new(budget: f64, least: usize, most: usize) -> Self {
        let gains = gains();
        let offsets = offsets();
        // Only distances matter: shells of offsets at the same one.
        let mut shells: Vec<(f64, f64)> = Vec::new();
        for offset in &offsets {
            match shells.iter_mut().find(|shell| shell.0 == offset.distance2) {
                Some(shell) => shell.1 += offset.share,
                None => shells.push((offset.distance2, offset.share)),
            }
        }
        let powers_of =
            |distance2: f64| (0..2 * DEGREES).map(|k| distance2.powi(-(k as i32 + 1))).collect::<Vec<f64>>();
        let powers: Vec<Vec<f64>> = shells.iter().map(|shell| powers_of(shell.0)).collect();
        let keep = |tau: f64, a: usize, b: usize, power: &[f64]| {
            (b == 0 && a <= 1) || gains[a][b] * power[a + b] > tau * ((2 * a + 1) * (2 * b + 1)) as f64
        };
        let lost = |tau: f64| {
            let mut sum = 0.0;
            for (shell, power) in shells.iter().zip(&powers) {
                for a in 0..DEGREES {
                    for b in 0..DEGREES {
                        if a >= most || b >= most || !keep(tau, a, b, power) {
                            sum += shell.1 * gains[a][b] * power[a + b];
                        }
                    }
                }
            }
            2.0 * sum // the coarser levels together lose as much again
        };
        let (mut low, mut high) = (1e-40f64, 1.0f64);
        let reached = lost(low) <= budget * budget;
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
            |i: usize| shells.iter().position(|shell| shell.0 == offsets[i].distance2).expect("made from them");
        let shell: Vec<usize> = (0..offsets.len()).map(shell_of).collect();
        Self { reached, ..Self::tabulate(order, &offsets, |a, b, i| kept(a, b, &powers[shell[i]])) }
    }

    fn tabulate(order: usize, offsets: &[Offset], keep: impl Fn(usize, usize, usize) -> bool) -> Self {
        let tiles = (order * order).div_ceil(8);
        let mut s =
            Self { order, tiles, kept: vec![[0, 0]; OPERATORS * tiles], fragments: 0, columns: 0, reached: true };
        for (i, offset) in offsets.iter().enumerate() {
            // Never fewer than a later tile: the first one says how much of a row is read.
            let mut rows = 0;
            for tile in (0..tiles).rev() {
                for k in 8 * tile..(8 * tile + 8).min(order * order) {
                    for b in 0..order {
                        if keep(k.isqrt(), b, i) {
                            rows = rows.max((b + 1) * (b + 1));
                        }
                    }
                }
                s.set(offset.operator, tile, 0, rows.div_ceil(8));
            }
            s.columns = s.columns.max(8 * rows.div_ceil(8));
        }
        for octant in 0..8 {
            for tile in 0..tiles {
                let (first, last) = ((8 * tile).isqrt(), (8 * tile + 7).min(order * order - 1).isqrt());
                s.set(OFFSETS + octant, tile, 0, ((last + 1) * (last + 1)).div_ceil(8));
                s.set(OFFSETS + 8 + octant, tile, first * first / 8, tiles);
            }
        }
        s
    }

    fn set(&mut self, operator: usize, tile: usize, begin: usize, end: usize) {
        self.kept[operator * self.tiles + tile] = [self.fragments as u32, (begin | end << 16) as u32];
        self.fragments += end - begin;
    }
}

/// e² of every block at distance 1.
fn gains() -> Vec<Vec<f64>> {
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

/// The offsets between cells that are far from each other while their parents are near (at most 2 sides apart).
fn offsets() -> Vec<Offset> {
    let mut uses = vec![0; OFFSETS];
    let near = |d: [i32; 3]| d.iter().map(|x| x * x).sum::<i32>() <= 4;
    let bit = |octant: i32, axis: usize| octant >> axis & 1;
    for place in 0..125 {
        let parent = [place % 5 - 2, place / 5 % 5 - 2, place / 25 - 2];
        if !near(parent) {
            continue;
        }
        for pair in 0..64 {
            let d: [i32; 3] = std::array::from_fn(|k| bit(pair % 8, k) - 2 * parent[k] - bit(pair / 8, k));
            if !near(d) {
                uses[((d[0] + 5) * 121 + (d[1] + 5) * 11 + d[2] + 5) as usize] += 1;
            }
        }
    }
    let of = |operator: usize| {
        let d = [operator / 121, operator / 11 % 11, operator % 11].map(|x| x as f64 - 5.0);
        Offset { operator, distance2: d.iter().map(|x| x * x).sum(), share: f64::from(uses[operator]) / 8.0 }
    };
    (0..OFFSETS).filter(|o| uses[*o] > 0).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 33 neighbours of the parent have 264 children, 33 of which are near: 231 operators act on a cell.
    #[test]
    fn a_cell_has_231_offsets() {
        assert_eq!(offsets().iter().map(|o| o.share).sum::<f64>(), 231.0);
        assert!(offsets().iter().all(|o| o.distance2 >= 5.0));
    }

    /// Tighter tolerances keep more; a single source at the centre (b = 0) and the field's constant (a = 1) are always kept.
    #[test]
    fn tighter_budgets_keep_more() {
        let (mut order, mut fragments) = (0, 0);
        for budget in [1e-1, 1e-2, 1e-3, 1e-4] {
            let s = Staircase::new(budget, 2, 16);
            assert!(s.order > order && s.fragments > fragments, "{budget}: order {}", s.order);
            (order, fragments) = (s.order, s.fragments);
        }
        assert!((12..=15).contains(&order), "{order}");
    }

    /// Every fragment belongs to one tile, in steps that a row has.
    #[test]
    fn fragments_do_not_overlap() {
        let s = Staircase::new(1e-2, 2, 16);
        let mut owned = vec![false; s.fragments];
        for [start, range] in &s.kept {
            let (begin, end) = ((range & 0xffff) as usize, (range >> 16) as usize);
            assert!(end <= s.tiles);
            for k in 0..end - begin {
                assert!(!std::mem::replace(&mut owned[*start as usize + k], true));
            }
        }
        assert!(owned.iter().all(|o| *o));
    }
}
