//! Which order a pair of cells needs: the error of a truncated far field, from the geometry of the pair.
//!
//! Sources at random in a ball of radius a, targets at random in a ball of radius b, centres d apart, α = a/d, β = b/d.
//! The term of source degree n and target degree l of the velocity, squared and averaged over both balls, relative to
//! the leading one, is C(2n+2l, 2n) l/(2n+1) α^2n β^(2l-2): the sum over m of the squared axial coefficients
//! (n+l)!²/((n-m)!(n+m)!(l-m)!(l+m)!) is a Vandermonde sum. An expansion of order p drops every term with n ≥ p or l ≥ p.

use super::harmonics::MAX_ORDER;
use crate::memory;
use once_cell::sync::OnceCell;

/// Grid of α and β: middles of the bins are (i + 1/2) STEP.
const BINS: usize = 48;
const STEP: f64 = 0.0175;
/// Degrees beyond this are summed as if they were this one; at α + β ≤ 0.95 they are below every tolerance offered.
const DEGREES: usize = 72;
/// Balls must be apart: the series diverges at α + β = 1.
const CLOSEST: f64 = 0.92;

/// log10 of the relative error, [bin of α][bin of β][order]; made once. A cell, because a maker that runs out of memory
/// would spoil a `Lazy` for good.
static ERRORS: OnceCell<Vec<[f32; MAX_ORDER + 1]>> = OnceCell::new();

fn table_of_errors() -> Vec<[f32; MAX_ORDER + 1]> {
    let mut ln_factorial = vec![0.0f64; 4 * DEGREES + 1];
    for k in 1..ln_factorial.len() {
        ln_factorial[k] = ln_factorial[k - 1] + (k as f64).ln();
    }
    // weight[n][l] of α^2n β^(2l-2), as a logarithm
    let ln_weight = |n: usize, l: usize| {
        ln_factorial[2 * n + 2 * l] - ln_factorial[2 * n] - ln_factorial[2 * l] + (l as f64 / (2 * n + 1) as f64).ln()
    };
    // At the closest approach every term is below one, so the scaled weights cannot overflow.
    let scaled: Vec<Vec<f64>> = (0..DEGREES)
        .map(|n| (1..DEGREES).map(|l| (ln_weight(n, l) - (2 * n + 2 * l) as f64 * 2f64.ln()).exp()).collect())
        .collect();
    let mut table = memory::filled([0.0; MAX_ORDER + 1], BINS * BINS);
    for i in 0..BINS {
        let alpha = (i as f64 + 0.5) * STEP;
        for j in 0..BINS {
            let beta = (j as f64 + 0.5) * STEP;
            if alpha + beta > CLOSEST + 2.0 * STEP {
                continue;
            }
            let (a2, b2) = (4.0 * alpha * alpha, 4.0 * beta * beta);
            let mut layer = [0.0; DEGREES];
            let mut a = 1.0;
            for (n, row) in scaled.iter().enumerate() {
                let mut term = a * b2 / (beta * beta);
                for (l, w) in row.iter().enumerate() {
                    layer[n.max(l + 1)] += w * term;
                    term *= b2;
                }
                a *= a2;
            }
            let mut tail = 0.0;
            for k in (0..DEGREES).rev() {
                tail += layer[k];
                if k <= MAX_ORDER {
                    table[i * BINS + j][k] = (0.5 * tail.log10()) as f32;
                }
            }
        }
    }
    table
}

/// For one tolerance: the order that a pair needs.
#[derive(Debug, Clone)]
pub struct OrderTable {
    orders: Vec<u8>,
    highest: u8,
}

impl OrderTable {
    /// `tolerance`: relative error of one pair; `highest`: pairs that need more are not far.
    pub fn new(tolerance: f64, highest: usize) -> Self {
        let limit = tolerance.log10() as f32;
        let errors = ERRORS.get_or_init(table_of_errors);
        let orders = (0..BINS * BINS)
            .map(|k| {
                let (alpha, beta) = ((k / BINS) as f64 * STEP, (k % BINS) as f64 * STEP);
                let row = &errors[k];
                if alpha + beta > CLOSEST {
                    return u8::MAX;
                }
                (2..=MAX_ORDER).find(|&p| row[p] <= limit).map_or(u8::MAX, |p| p as u8)
            })
            .collect();
        Self { orders, highest: highest.min(MAX_ORDER) as u8 }
    }

    /// A fixed order for every pair that `tolerance` would admit at `order`, or at `highest` where that is less: a higher
    /// order is to make pairs more accurate, not to bring them closer.
    pub fn fixed(order: usize, tolerance: f64, highest: usize) -> Self {
        let admitted = Self::new(tolerance, order.min(highest));
        let fix = |&p: &u8| if p <= admitted.highest { order as u8 } else { u8::MAX };
        Self { orders: admitted.orders.iter().map(fix).collect(), highest: order as u8 }
    }

    /// Highest order that any pair may get.
    pub fn highest(&self) -> usize {
        self.highest as usize
    }

    /// Order for effective radii `a`, `b` at distance `d`; `reach`: sum of the true radii. `None`: too close.
    #[inline]
    pub fn order(&self, a: f64, b: f64, d: f64, reach: f64) -> Option<u8> {
        if reach >= 0.98 * d {
            return None;
        }
        let f = 1.0 / (d * STEP);
        let (i, j) = ((a * f) as usize, (b * f) as usize);
        if i >= BINS || j >= BINS {
            return None;
        }
        let p = self.orders[i * BINS + j];
        (p <= self.highest).then_some(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_grows_with_accuracy_and_closeness() {
        let loose = OrderTable::new(1e-3, MAX_ORDER);
        let tight = OrderTable::new(1e-9, MAX_ORDER);
        let far = tight.order(0.5, 0.5, 4.0, 1.0).unwrap();
        assert!(loose.order(0.5, 0.5, 4.0, 1.0).unwrap() < far);
        assert!(tight.order(0.5, 0.5, 2.0, 1.0).unwrap() > far);
        assert_eq!(tight.order(0.5, 0.5, 1.01, 1.0), None);
    }

    #[test]
    fn a_fixed_order_is_every_pairs_and_brings_none_closer() {
        let close = |order| OrderTable::fixed(order, 1e-3, 10).order(0.5, 0.5, 1.1, 1.0);
        let far = |order| OrderTable::fixed(order, 1e-3, 10).order(0.5, 0.5, 4.0, 1.0);
        assert_eq!([close(10), close(40)], [None; 2]);
        assert_eq!([far(2), far(10), far(40)], [None, Some(10), Some(40)]);
    }
}
