//! Incomplete gamma functions of half-integers and exponential integrals, tables of which Ewald's splitting takes for each vector. DLMF: NIST Digital
//! Library of Mathematical Functions, chapter 8.

use crate::memory;
use std::f64::consts::PI;

/// Γ(j + 1/2).
pub fn half_gammas(count: usize) -> Vec<f64> {
    let mut gammas = memory::filled(PI.sqrt(), count);
    (1..count).for_each(|j| gammas[j] = gammas[j - 1] * (j as f64 - 0.5));
    gammas
}

/// x^s exp(-x)/Γ(s + 1) for s = 1/2, the first of those that the recurrences of P and Q add.
fn first_step(x: f64) -> f64 {
    2.0 * (x / PI).sqrt() * (-x).exp()
}

/// Q(j + 1/2, x), x > 0: Q(s + 1) = Q(s) + x^s exp(-x)/Γ(s + 1) (DLMF 8.8.6).
pub fn upper_gammas(x: f64, out: &mut [f64]) {
    let (mut q, mut step) = (libm::erfc(x.sqrt()), first_step(x));
    for (j, v) in out.iter_mut().enumerate() {
        *v = q;
        q += step;
        step *= x / (j as f64 + 1.5);
    }
}

/// P(j + 1/2, x), x > 0, all digits of small ones too: the last by its series (DLMF 8.7.1), the others by P(s) = P(s + 1) + x^s exp(-x)/Γ(s + 1)
/// (8.8.5).
pub fn lower_gammas(x: f64, out: &mut [f64]) {
    // Q is below 1e-16 here for the s that occur, and exp(-x) might underflow.
    if x > 2.0 * out.len() as f64 + 100.0 {
        return out.fill(1.0);
    }
    let mut step = first_step(x);
    for (j, v) in out.iter_mut().enumerate() {
        *v = step;
        step *= x / (j as f64 + 1.5);
    }
    // The sum of all steps from the last s on.
    let (mut tail, mut s) = (0.0, out.len() as f64 + 0.5);
    while step > f64::EPSILON * 0.1 * tail {
        tail += step;
        s += 1.0;
        step *= x / s;
    }
    for v in out.iter_mut().rev() {
        tail += *v;
        *v = tail;
    }
}

/// E_p(x) for p = first, first + 1, …; x ≥ 1 where `first` is 1. p E_(p+1) = exp(-x) - x E_p (DLMF 8.19.12) keeps its digits away from p = x.
pub fn exponential_integrals(first: f64, x: f64, out: &mut [f64]) {
    let e = (-x).exp();
    let last = out.len() - 1;
    let start = ((x - first).round().max(0.0) as usize).min(last);
    let p = |i: usize| first + i as f64;
    out[start] = match first {
        0.0 => e / x,
        0.5 if x < 1.0 => (PI / x).sqrt() * libm::erfc(x.sqrt()),
        _ => e * exponential_fraction(p(start), x),
    };
    for i in (0..start).rev() {
        out[i] = (e - p(i) * out[i + 1]) / x;
    }
    for i in start..last {
        out[i + 1] = (e - x * out[i]) / p(i);
    }
}

/// exp(x) E_p(x), x ≥ 1, by its continued fraction (DLMF 8.19.17 contracted), with the algorithm of Lentz.
fn exponential_fraction(p: f64, x: f64) -> f64 {
    let mut b = x + p;
    let (mut d, mut c) = (1.0 / b, 1.0 / f64::MIN_POSITIVE);
    let mut value = d;
    for i in 1..1000 {
        let a = -(i as f64) * (p - 1.0 + i as f64);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        value *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_functions_keep_their_digits() {
        for x in [1e-6, 0.3, 1.0, 7.5, 40.0, 150.0] {
            let (mut p, mut q) = ([0.0; 79], [0.0; 79]);
            lower_gammas(x, &mut p);
            upper_gammas(x, &mut q);
            for j in 0..79 {
                assert!((p[j] + q[j] - 1.0).abs() < 1e-14, "{x} {j}: {} {}", p[j], q[j]);
            }
            // The first term of the series, for small x.
            let first = x.powf(40.5) * (-x).exp() / libm::tgamma(41.5);
            assert!(x > 1.0 || (p[40] / first - 1.0).abs() < 1.1 * x / 42.5 + 1e-13, "{x}: {} {first}", p[40]);
        }
    }

    #[test]
    fn exponential_integrals_are_those_of_tables() {
        // E_1(1), E_1(2), E_2(1): Abramowitz and Stegun, tables 5.1 and 5.4.
        let mut out = [0.0; 40];
        for (x, i, want) in [(1.0, 0, 0.219383934395520), (2.0, 0, 0.048900510708061), (1.0, 1, 0.148495506775922)] {
            exponential_integrals(1.0, x, &mut out);
            assert!((out[i] - want).abs() < 1e-15, "E_{}({x}) = {}", i + 1, out[i]);
        }
        for x in [1e-8, 0.4, 0.99, 1.01, 5.0, 35.0, 90.0] {
            exponential_integrals(0.5, x, &mut out);
            let half = (PI / x).sqrt() * libm::erfc(x.sqrt());
            assert!((out[0] / half - 1.0).abs() < 1e-13, "{x}: {} {half}", out[0]);
            for (i, v) in out.iter().enumerate() {
                // DLMF 8.19.21
                let p = i as f64 + 0.5;
                let scaled = v * x.exp();
                let least = if p > 1.0 { 1.0 / (x + p) } else { 0.0 };
                assert!(scaled > least && (p < 1.0 || scaled <= 1.0 / (x + p - 1.0)), "E_{p}({x}) = {v}");
            }
        }
    }
}
