//! Real solid harmonics: layout, recurrences, derivatives, the y↔z swap, and translation along z.
//!
//! R_n^m(x) = r^n √((2-δ_m0)(n-m)!/(n+m)!) P_n^m(cos θ) {cos mφ, sin mφ}, without the Condon–Shortley sign, so that
//! Σ_m R_n^m(x) R_n^m(y) = |x|^n |y|^n P_n(cos γ) and every rotation is orthogonal within a degree.
//! The basis is that of Gumerov & Duraiswami 2008 §2 (real basis) up to its normalization.
//!
//! Layout of an expansion of order p (degrees 0 .. p-1, p² numbers): degree after degree; inside a degree four classes,
//! cos even m | cos odd m | sin even m | sin odd m, each by rising m. A lower order is a prefix, and the swap of y and z
//! maps class to class (it exchanges the parities in y and z), so that it is four small square matrices a degree.

use crate::memory;
use once_cell::sync::OnceCell;

/// Highest order that can be asked for.
pub const MAX_ORDER: usize = 40;

/// Position of (n, m, cos|sin) in an expansion.
#[inline]
pub const fn index(n: usize, m: usize, sin: bool) -> usize {
    let (even, odd) = (n / 2 + 1, n.div_ceil(2));
    let k = match (sin, m % 2) {
        (false, 0) => m / 2,
        (false, _) => even + m / 2,
        (true, 0) => even + odd + m / 2 - 1,
        (true, _) => even + odd + n / 2 + m / 2,
    };
    n * n + k
}

/// One square block of the swap: rows `to .. to+size`, columns `from .. from+size`, `entries[row][column]`.
#[derive(Debug, Clone)]
pub struct SwapBlock {
    pub from: usize,
    pub to: usize,
    pub size: usize,
    /// Row after row.
    pub entries: Vec<f64>,
}

/// The four classes of a degree: (start inside the degree, count).
fn classes(n: usize) -> [(usize, usize); 4] {
    let (even, odd, sin_even) = (n / 2 + 1, n.div_ceil(2), n / 2);
    [(0, even), (even, odd), (even + odd, sin_even), (even + odd + sin_even, odd)]
}

/// All R of degrees 0 .. order-1 at one point, in the layout above: oracle and table maker, f64.
pub fn regular(order: usize, x: [f64; 3], out: &mut [f64]) {
    let [x, y, z] = x;
    let r2 = x * x + y * y + z * z;
    let (mut c, mut s) = (1.0, 0.0);
    for m in 0..order {
        if m > 0 {
            let f = diagonal(m);
            (c, s) = (f * (x * c - y * s), f * (x * s + y * c));
        }
        for (sin, first) in [(false, c), (true, s)] {
            if sin && m == 0 {
                continue;
            }
            let (mut before, mut last) = (0.0, first);
            out[index(m, m, sin)] = first;
            for n in m + 1..order {
                let (a, b) = vertical(n, m);
                (before, last) = (last, a * z * last - b * r2 * before);
                out[index(n, m, sin)] = last;
            }
        }
    }
}

/// R_m^m = diagonal(m) (x + i y) R_{m-1}^{m-1}.
pub fn diagonal(m: usize) -> f64 {
    if m <= 1 { 1.0 } else { ((2 * m - 1) as f64 / (2 * m) as f64).sqrt() }
}

/// R_n^m = a z R_{n-1}^m - b r² R_{n-2}^m, n > m.
pub fn vertical(n: usize, m: usize) -> (f64, f64) {
    let d = (n * n - m * m) as f64;
    let e = ((n - 1) * (n - 1)) as f64 - (m * m) as f64;
    ((2 * n - 1) as f64 / d.sqrt(), (e.max(0.0) / d).sqrt())
}

/// ∂R_n^m/∂x_axis = Σ weight · R at index: the derivative of basis function `(n, m, sin)`.
pub fn derivative(n: usize, m: usize, sin: bool, axis: usize) -> Vec<(usize, f64)> {
    if n == 0 {
        return vec![];
    }
    // Ratio of the normalizations of (n,m) and (n-1,k), each √(2-δ) √((n-m)!(n+m)!).
    let ratio = |k: usize| -> f64 {
        let two = |m: usize| -> f64 { if m == 0 { 1.0 } else { 2.0 } };
        let l = n - 1;
        let lg = ln_factorial(n - m) + ln_factorial(n + m) - ln_factorial(l - k) - ln_factorial(l + k);
        (two(m) / two(k)).sqrt() * (0.5 * lg).exp()
    };
    let mut out = vec![];
    let mut add = |k: i64, s: bool, w: f64| {
        // Negative order: C_{-1} = -C_1, S_{-1} = S_1 of the unnormalized functions (only k = -1 occurs).
        let (k, w) = if k < 0 { ((-k) as usize, if s { w } else { -w }) } else { (k as usize, w) };
        if k < n && !(s && k == 0) {
            let i = index(n - 1, k, s);
            let w = w * ratio(k);
            match out.iter_mut().find(|(j, _): &&mut (usize, f64)| *j == i) {
                Some((_, v)) => *v += w,
                None => out.push((i, w)),
            }
        }
    };
    let mi = m as i64;
    match (axis, sin) {
        (0, _) => {
            add(mi - 1, sin, 0.5);
            add(mi + 1, sin, -0.5);
        }
        (1, false) => {
            add(mi - 1, true, -0.5);
            add(mi + 1, true, -0.5);
        }
        (1, true) => {
            add(mi - 1, false, 0.5);
            add(mi + 1, false, 0.5);
        }
        _ => add(mi, sin, 1.0),
    }
    out
}

fn ln_factorial(n: usize) -> f64 {
    (2..=n).map(|k| (k as f64).ln()).sum()
}

fn factorial_root(n: usize, m: usize) -> f64 {
    0.5 * (ln_factorial(n - m) + ln_factorial(n + m))
}

/// Singular to regular along z: S_n^m(x + d ẑ) = Σ_l m2l(n,l,m) d^-(n+l+1) R_l^m(x), S_n^m = R_n^m/r^(2n+1).
pub fn m2l_axial(n: usize, l: usize, m: usize) -> f64 {
    let sign = if (l + m).is_multiple_of(2) { 1.0 } else { -1.0 };
    sign * (ln_factorial(n + l) - factorial_root(n, m) - factorial_root(l, m)).exp()
}

/// Regular to regular along z: R_n^m(x + t ẑ) = Σ_{l≤n} shift(n,l,m) t^(n-l) R_l^m(x).
pub fn shift_axial(n: usize, l: usize, m: usize) -> f64 {
    (factorial_root(n, m) - factorial_root(l, m) - ln_factorial(n - l)).exp()
}

/// The class that the swap of degree n makes of each class; twice is no change, so also the one that each comes from.
pub fn swap_classes(n: usize) -> [usize; 4] {
    if n.is_multiple_of(2) { [0, 2, 1, 3] } else { [3, 1, 2, 0] }
}

/// The swap of y and z for one degree: R_i(x,y,z) = Σ_j B_ij R_j(x,z,y), by a quadrature that is exact for the degree.
fn swap_degree(n: usize) -> [SwapBlock; 4] {
    let order = n + 1;
    let (nodes, weights) = gauss_legendre(n + 1);
    let n_phi = 2 * n + 2;
    let size = 2 * n + 1;
    let mut b = memory::filled(0.0, size * size);
    let (mut f, mut g) = (vec![0.0; order * order], vec![0.0; order * order]);
    for (&z, &w) in nodes.iter().zip(&weights) {
        let rho = (1.0 - z * z).sqrt();
        for k in 0..n_phi {
            let phi = std::f64::consts::TAU * (k as f64 + 0.25) / n_phi as f64;
            let (x, y) = (rho * phi.cos(), rho * phi.sin());
            regular(order, [x, y, z], &mut f);
            regular(order, [x, z, y], &mut g);
            // ∫ R_i R_j dΩ = 4π/(2n+1) δ_ij
            let w = w * 0.5 * size as f64 / n_phi as f64;
            for i in 0..size {
                let fi = f[n * n + i] * w;
                for j in 0..size {
                    b[i * size + j] += fi * g[n * n + j];
                }
            }
        }
    }
    let class = classes(n);
    let partner = swap_classes(n);
    std::array::from_fn(|k| {
        let ((from, size_in), (to, size_out)) = (class[k], class[partner[k]]);
        assert_eq!(size_in, size_out);
        let entries = (0..size_out)
            .flat_map(|j| (0..size_in).map(move |i| (i, j)))
            .map(|(i, j)| b[(from + i) * size + to + j])
            .collect();
        SwapBlock { from: n * n + from, to: n * n + to, size: size_in, entries }
    })
}

/// The swap blocks of one degree, computed once.
pub fn swap(n: usize) -> &'static [SwapBlock; 4] {
    static TABLE: [OnceCell<[SwapBlock; 4]>; MAX_ORDER] = [const { OnceCell::new() }; MAX_ORDER];
    TABLE[n].get_or_init(|| swap_degree(n))
}

/// Nodes on [-1, 1] and weights of the rule that is exact to degree 2 count - 1 (Newton on P_n).
pub fn gauss_legendre(count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut nodes = vec![0.0; count];
    let mut weights = vec![0.0; count];
    for i in 0..count {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (count as f64 + 0.5)).cos();
        let mut slope = 0.0;
        for _ in 0..100 {
            let (mut a, mut b) = (1.0, x);
            for k in 2..=count {
                let kf = k as f64;
                (a, b) = (b, ((2.0 * kf - 1.0) * x * b - (kf - 1.0) * a) / kf);
            }
            slope = count as f64 * (x * b - a) / (x * x - 1.0);
            let step = b / slope;
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        nodes[i] = x;
        weights[i] = 2.0 / ((1.0 - x * x) * slope * slope);
    }
    (nodes, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: [f64; 3] = [0.3, -0.7, 0.4];

    #[test]
    fn layout_is_a_permutation() {
        for n in 0..MAX_ORDER {
            let mut seen = vec![false; 2 * n + 1];
            for m in 0..=n {
                seen[index(n, m, false) - n * n] = true;
                if m > 0 {
                    seen[index(n, m, true) - n * n] = true;
                }
            }
            assert!(seen.into_iter().all(|s| s), "degree {n}");
        }
    }

    #[test]
    fn addition_theorem_gives_the_coulomb_kernel() {
        let (x, y) = ([0.1, -0.2, 0.15], [1.0, 0.7, -1.2]);
        let p = 30;
        let (mut a, mut b) = (vec![0.0; p * p], vec![0.0; p * p]);
        regular(p, x, &mut a);
        regular(p, y, &mut b);
        let r2: f64 = y.iter().map(|v| v * v).sum();
        let sum: f64 = (0..p)
            .map(|n| (n * n..(n + 1) * (n + 1)).map(|i| a[i] * b[i]).sum::<f64>() / r2.powf(n as f64 + 0.5))
            .sum();
        let d: f64 = (0..3).map(|i| (x[i] - y[i]).powi(2)).sum();
        assert!((sum * d.sqrt() - 1.0).abs() < 1e-14, "{}", sum * d.sqrt());
    }

    #[test]
    fn swap_exchanges_y_and_z() {
        let p = 32;
        let (mut f, mut g) = (vec![0.0; p * p], vec![0.0; p * p]);
        regular(p, X, &mut f);
        regular(p, [X[0], X[2], X[1]], &mut g);
        for n in 0..p {
            for block in swap(n) {
                for j in 0..block.size {
                    let v: f64 = (0..block.size).map(|i| block.entries[j * block.size + i] * f[block.from + i]).sum();
                    assert!((v - g[block.to + j]).abs() < 2e-14, "degree {n}: {v} {}", g[block.to + j]);
                }
            }
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let p = 9;
        let mut r = vec![0.0; p * p];
        regular(p, X, &mut r);
        for axis in 0..3 {
            let h = 1e-5;
            let at = |k: f64| {
                let mut x = X;
                x[axis] += k * h;
                let mut v = vec![0.0; p * p];
                regular(p, x, &mut v);
                v
            };
            let (a, b) = (at(1.0), at(-1.0));
            for n in 0..p {
                for m in 0..=n {
                    for sin in [false, true] {
                        if sin && m == 0 {
                            continue;
                        }
                        let i = index(n, m, sin);
                        let d: f64 = derivative(n, m, sin, axis).iter().map(|&(j, w)| w * r[j]).sum();
                        let e = (a[i] - b[i]) / (2.0 * h);
                        assert!((d - e).abs() < 1e-8, "{n} {m} {sin} {axis}: {d} {e}");
                    }
                }
            }
        }
    }

    #[test]
    fn axial_translations_are_exact() {
        let (p, t) = (12, 0.37);
        let (mut a, mut b) = (vec![0.0; p * p], vec![0.0; p * p]);
        regular(p, X, &mut a);
        regular(p, [X[0], X[1], X[2] + t], &mut b);
        for n in 0..p {
            for m in 0..=n {
                let v: f64 =
                    (m..=n).map(|l| shift_axial(n, l, m) * t.powi((n - l) as i32) * a[index(l, m, false)]).sum();
                assert!((v - b[index(n, m, false)]).abs() < 1e-13);
            }
        }
        // singular functions seen from d ẑ
        let (p, d, x) = (34, 3.0, [0.2, 0.3, -0.25]);
        let mut r = vec![0.0; p * p];
        regular(p, x, &mut r);
        let y = [x[0], x[1], x[2] + d];
        let mut s = vec![0.0; p * p];
        regular(p, y, &mut s);
        let r2: f64 = y.iter().map(|v| v * v).sum();
        for n in 0..6 {
            for m in 0..=n {
                let v: f64 =
                    (m..p).map(|l| m2l_axial(n, l, m) * d.powi(-((n + l + 1) as i32)) * r[index(l, m, false)]).sum();
                let e = s[index(n, m, false)] / r2.powf(n as f64 + 0.5);
                assert!((v - e).abs() < 1e-13 * e.abs().max(1e-3), "{n} {m}: {v} {e}");
            }
        }
    }

    #[test]
    fn gauss_rule_is_exact_to_its_degree() {
        for count in 1..=20 {
            let (x, w) = gauss_legendre(count);
            for k in 0..2 * count {
                let v: f64 = x.iter().zip(&w).map(|(x, w)| w * x.powi(k as i32)).sum();
                let e = if k % 2 == 0 { 2.0 / (k as f64 + 1.0) } else { 0.0 };
                assert!((v - e).abs() < 1e-14, "{count} {k}: {v} {e}");
            }
        }
    }
}
