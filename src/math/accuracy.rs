//! The truncation error of a pair of cells, from its geometry.
//!
//! Sources at random in a ball of radius a, targets at random in a ball of radius b, centres d apart, α = a/d, β = b/d. The
//! term of source degree n and target degree l of the potential of a unit charge, squared and averaged over both balls, is
//! C(2n+2l, 2n) α^2n β^2l / ((2n+1)(2l+1)) in units of 1/d²: the sum over m of the squared axial coefficients
//! (n+l)!²/((n-m)!(n+m)!(l-m)!(l+m)!) is a Vandermonde sum. A derivative multiplies the mean square of a harmonic function
//! of degree k by k(2k+1)/b² and lowers k by one. A translated expansion of order p (M2L) drops every term with n ≥ p or
//! l ≥ p; multipoles that are evaluated at the targets (M2P) drop those with n ≥ p only.
//! Gumerov and Duraiswami 2008 give the worst case of the same series; here it is the mean square.

use super::harmonics::MAX_ORDER;
use crate::memory;
use once_cell::sync::OnceCell;

/// Grid of α and β: middles of the bins are (i + 1/2) STEP.
const BINS: usize = 48;
const STEP: f64 = 0.0175;
/// Terms beyond this degree are left out; at α + β ≤ 0.95 they are below every tolerance offered.
const DEGREES: usize = 72;
/// Balls must be apart: the series diverges at α + β = 1.
const CLOSEST: f64 = 0.92;
/// Balls that touch have no expansion, whatever their effective radii.
const LARGEST_REACH: f64 = 0.98;

/// Root mean square of what order p leaves out, [bin of α][bin of β][p], in units of 1/d^(1 + derivatives).
type Errors = Vec<[f32; MAX_ORDER + 1]>;

/// Which terms order p leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Source or target degrees from p on: an M2L.
    Both = 0,
    /// Source degrees from p on: an M2P.
    Sources = 1,
}

/// The error table for the potential of a charge or one of its first two derivatives.
#[derive(Clone, Copy)]
pub struct ErrorTable(&'static Errors);

/// A pair of balls as the table sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry(usize);

impl Geometry {
    /// Effective radii `a` (sources) and `b` (targets) at distance `d`; `reach`: sum of the true radii. `None`: too close.
    #[inline]
    pub fn of(a: f64, b: f64, d: f64, reach: f64) -> Option<Self> {
        if reach >= LARGEST_REACH * d {
            return None;
        }
        let f = 1.0 / (d * STEP);
        let (i, j) = ((a * f) as usize, (b * f) as usize);
        (i + j < (CLOSEST / STEP) as usize && i < BINS && j < BINS).then_some(Self(i * BINS + j))
    }
}

impl ErrorTable {
    /// For derivative 0 (potential), 1 (velocity) or 2 (velocity gradient). Made once a process.
    pub fn of_derivative(k: usize, cut: Cut) -> Self {
        // Cells, because a maker that runs out of memory would spoil a `Lazy` for good.
        static TABLES: [[OnceCell<Errors>; 3]; 2] = [const { [const { OnceCell::new() }; 3] }; 2];
        Self(TABLES[cut as usize][k].get_or_init(|| table(k, cut)))
    }

    /// Root mean square error of order `p` in units of strength/d^(1 + derivatives).
    #[inline]
    pub fn error(&self, g: Geometry, p: usize) -> f32 {
        self.0[g.0][p]
    }

    /// Smallest order from 2 on with at most this error; `MAX_ORDER + 1` if there is none.
    #[inline]
    pub fn order(&self, g: Geometry, error: f32) -> usize {
        2 + self.0[g.0][2..].partition_point(|&e| e > error)
    }

    /// Smallest order p from 2 on with at most the error `of_ten` (p/10)^1.5; `MAX_ORDER + 1` if there is none.
    ///
    /// A sum of squares of errors costs least where every pair gains as much for one order more: de²/dp ~ dp³/dp. With errors
    /// like exp(-cp) and p like 1/c they then grow as p^1.5: close pairs may have larger ones than far pairs.
    #[inline]
    pub fn balanced_order(&self, g: Geometry, of_ten: f32) -> usize {
        // Errors fall with p, so that counting finds the first: no branch that depends on the pair.
        let above = self.0[g.0].iter().zip(&BALANCE).skip(2).map(|(&e, &b)| u32::from(e > of_ten * b));
        2 + above.sum::<u32>() as usize
    }
}

/// (p/10)^1.5
const BALANCE: [f32; MAX_ORDER + 1] = {
    let mut of = [0.0; MAX_ORDER + 1];
    let mut p = 1;
    while p <= MAX_ORDER {
        let x = p as f64 / 10.0;
        // Newton's iteration for the square root, which constants do not have.
        let (mut root, mut k) = (1.0, 0);
        while k < 20 {
            root = 0.5 * (root + x / root);
            k += 1;
        }
        of[p] = (x * root) as f32;
        p += 1;
    }
    of
};

/// Weight of degrees n and l as a logarithm, without the powers of α and β.
fn ln_weight(ln_factorial: &[f64], n: usize, l: usize, derivative: usize) -> f64 {
    let derivatives: f64 = (0..derivative).map(|k| (((l - k) * (2 * (l - k) + 1)) as f64).ln()).sum();
    ln_factorial[2 * n + 2 * l]
        - ln_factorial[2 * n]
        - ln_factorial[2 * l]
        - ((2 * n + 1) as f64).ln()
        - ((2 * l + 1) as f64).ln()
        + derivatives
}

fn table(derivative: usize, cut: Cut) -> Errors {
    let mut ln_factorial = vec![0.0f64; 4 * DEGREES + 1];
    for k in 1..ln_factorial.len() {
        ln_factorial[k] = ln_factorial[k - 1] + (k as f64).ln();
    }
    // With α and β doubled every weighted term is below one, so that nothing overflows.
    let scaled: Vec<Vec<f64>> = (0..DEGREES)
        .map(|n| {
            let weight = |l| (ln_weight(&ln_factorial, n, l, derivative) - (2 * n + 2 * l) as f64 * 2f64.ln()).exp();
            (derivative..DEGREES).map(weight).collect()
        })
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
                let mut term = a * 4f64.powi(derivative as i32);
                for (k, w) in row.iter().enumerate() {
                    let degree = if cut == Cut::Both { n.max(k + derivative) } else { n };
                    layer[degree] += w * term;
                    term *= b2;
                    // Far below single precision's smallest number.
                    if term < 1e-60 {
                        break;
                    }
                }
                a *= a2;
            }
            let mut tail = 0.0;
            for k in (0..DEGREES).rev() {
                tail += layer[k];
                if k <= MAX_ORDER {
                    table[i * BINS + j][k] = tail.sqrt() as f32;
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_grows_with_accuracy_and_closeness() {
        let table = ErrorTable::of_derivative(1, Cut::Both);
        let far = Geometry::of(0.5, 0.5, 4.0, 1.0).unwrap();
        let near = Geometry::of(0.5, 0.5, 2.0, 1.0).unwrap();
        assert!(table.order(far, 1e-3) < table.order(far, 1e-9));
        assert!(table.order(far, 1e-6) < table.order(near, 1e-6));
        assert_eq!(Geometry::of(0.5, 0.5, 1.01, 1.0), None);
        let p = table.order(near, 1e-6);
        assert!(table.error(near, p) <= 1e-6 && table.error(near, p - 1) > 1e-6);
    }

    /// The table against expansions summed in closed form: the field of a charge at random in one ball, at a random position
    /// in another, less its terms below order p by Legendre's addition theorem, averaged over many pairs.
    #[test]
    fn errors_are_those_of_random_pairs() {
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            2.0 * ((state >> 11) as f64 / (1u64 << 53) as f64) - 1.0
        };
        // On spheres: the radii of the table are effective radii.
        let mut on_sphere = |r: f64| loop {
            let v = [next(), next(), next()];
            let n: f64 = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            if (0.1..1.0).contains(&n) {
                return v.map(|x| x * r / n);
            }
        };
        let (alpha, beta) = (14.5 * STEP, 0.5 * STEP);
        let geometry = Geometry::of(alpha, beta, 1.0, alpha + beta).unwrap();
        // Targets all but at the centre of their ball: only the source series is cut, 1/|x - X| = Σ |X|^n P_n / |x|^(n+1).
        for p in [3, 6, 9] {
            let (mut sum, count) = (0.0, 20_000);
            for _ in 0..count {
                let (s, t) = (on_sphere(alpha), on_sphere(beta));
                let x = [1.0 + t[0], t[1], t[2]];
                let (r, d) = (dot(x, x).sqrt(), std::array::from_fn::<f64, 3, _>(|i| x[i] - s[i]));
                let c = dot(x, s) / (r * alpha);
                let (mut before, mut now, mut series) = (0.0, 1.0, 0.0);
                for n in 0..p {
                    series += now * alpha.powi(n) / r.powi(n + 1);
                    let k = n as f64;
                    (before, now) = (now, ((2.0 * k + 1.0) * c * now - k * before) / (k + 1.0));
                }
                sum += (1.0 / dot(d, d).sqrt() - series).powi(2);
            }
            let (got, want) = (
                (sum / count as f64).sqrt(),
                ErrorTable::of_derivative(0, Cut::Both).error(geometry, p as usize) as f64,
            );
            assert!((got / want - 1.0).abs() < 0.1, "order {p}: {got:e} against {want:e}");
        }
    }

    fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
        (0..3).map(|i| a[i] * b[i]).sum()
    }
}
