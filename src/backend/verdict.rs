//! Whether a field keeps its tolerance, from squared errors at sampled targets: the same for every back end.
//!
//! Enters: squared errors at targets that had no part in any choice, mean squares of the field. Leaves: the relative error
//! found, an upper value for it, and whether that is within the tolerance. The derivation is in docs/theory.md.

use crate::error::{Error, WFMM_ERR_UNSUPPORTED};

/// Gradients are promised to so many tolerances.
pub const GRADIENT_TOLERANCES: f64 = 30.0;
/// Standard errors that the upper value lies above the mean.
pub const STANDARD_ERRORS: f64 = 3.0;
/// The mean square of the written field counts at most this many times that of the exact field at the sample. A larger one means that
/// the written field is wrong somewhere, or that a few targets outside the sample dominate it.
pub const LARGEST_NORM: f64 = 4.0;

/// Where rounding is much of the error, a few pairs have most of it: a sample must find no more than this part of the tolerance.
pub const ROUNDING: f64 = 0.25;

/// What numbers are divided by before they are squared: squares of 1e160 would overflow, those of 1e-170 vanish.
pub fn unit_of(largest: f64) -> f64 {
    if largest > 0.0 { largest } else { 1.0 }
}

/// Sums of the squares of differences and of exact values, both divided by `unit`, over pairs of what was found and what is exact.
pub fn squares(pairs: impl Iterator<Item = (f64, f64)>, unit: f64) -> [f64; 2] {
    pairs.fold([0.0; 2], |[wrong, size], (found, exact)| {
        let (found, exact) = (found / unit, exact / unit);
        [wrong + (found - exact).powi(2), size + exact * exact]
    })
}

/// The relative L2 error that these sums are of; infinity where a value is no number, or where the exact values are zero and others were
/// found.
pub fn relative([wrong, size]: [f64; 2]) -> f64 {
    if wrong == 0.0 {
        return 0.0;
    }
    let error = (wrong / size).sqrt();
    if error.is_nan() { f64::INFINITY } else { error }
}

/// Pseudo-particles are asked for to be compared: no other sum takes their place.
pub fn missed_by_pseudo_particles(tolerance: f64, found: f64) -> Error {
    let message = format!(
        "expansion = WFMM_EXPANSION_PSEUDO_PARTICLES with tolerance = {tolerance:e}: an error of {found:.1e} is left; accepted: a \
         larger tolerance, or WFMM_EXPANSION_HARMONICS"
    );
    Error::new(WFMM_ERR_UNSUPPORTED, message)
}

/// See the head of this file. Errors are relative; the gradient's is divided by `GRADIENT_TOLERANCES`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    pub error: f64,
    pub upper: f64,
}

impl Verdict {
    /// `squares`: squared errors of field and gradient at the sampled targets (the gradient's empty where it was not asked),
    /// `norms`: mean squares of both over all targets; `all`: every target was compared, so nothing is left open.
    pub fn of(squares: [&[f64]; 2], norms: [f64; 2], all: bool) -> Self {
        let one = |squares: &[f64], norm: f64, share: f64| {
            if squares.is_empty() {
                return (0.0, 0.0);
            }
            let n = squares.len() as f64;
            let mean = squares.iter().sum::<f64>() / n;
            if mean == 0.0 {
                return (0.0, 0.0);
            }
            let variance = squares.iter().map(|s| (s / mean - 1.0).powi(2)).sum::<f64>() / n;
            let upper = if all { 1.0 } else { 1.0 + STANDARD_ERRORS * (variance / n).sqrt() };
            let relative = |square: f64| share * (square / norm.max(f64::MIN_POSITIVE)).sqrt();
            (relative(mean), relative(mean * upper))
        };
        let (a, b) = (one(squares[0], norms[0], 1.0), one(squares[1], norms[1], 1.0 / GRADIENT_TOLERANCES));
        // `max` would drop a NaN, which is a miss.
        let larger = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) };
        Self { error: larger(a.0, b.0), upper: larger(a.1, b.1) }
    }

    pub fn holds(&self, tolerance: f64) -> bool {
        self.upper <= tolerance
    }

    /// More targets may still show that the tolerance is kept.
    pub fn is_inconclusive(&self, tolerance: f64) -> bool {
        self.error <= tolerance && !self.holds(tolerance)
    }
}

/// Squared errors and values of one field: at sampled targets, and at those where the field is largest.
#[derive(Debug, Clone, Copy)]
pub struct Squares<'a> {
    pub errors: &'a [f64],
    pub values: &'a [f64],
    pub largest_errors: &'a [f64],
    pub largest_values: &'a [f64],
}

/// Upper value for the relative error over `n` targets of field and gradient (empty where it was not asked), from a sample and from
/// the targets of the largest fields, whose errors are known and not estimated.
pub fn with_largest(parts: [Squares<'_>; 2], n: usize) -> f64 {
    let n = n as f64;
    let norm = |s: &Squares<'_>| {
        let sampled = s.values.iter().sum::<f64>() / s.values.len().max(1) as f64;
        sampled + s.largest_values.iter().sum::<f64>() / n
    };
    let norms = [norm(&parts[0]), norm(&parts[1])];
    let sampled = Verdict::of([parts[0].errors, parts[1].errors], norms, parts[0].errors.len() as f64 == n).upper;
    let largest = |k: usize| {
        let wrong: f64 = parts[k].largest_errors.iter().sum();
        let share = if k == 0 { 1.0 } else { 1.0 / GRADIENT_TOLERANCES };
        if wrong == 0.0 { 0.0 } else { share * (wrong / n / norms[k].max(f64::MIN_POSITIVE)).sqrt() }
    };
    let (a, b) = (largest(0), largest(1));
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { sampled.hypot(a.max(b)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_errors_of_any_size_and_of_no_number() {
        for scale in [1.0, 1e-200, 1e200] {
            let pairs = [(1.01, 1.0), (2.0, 2.0)].map(|(found, exact)| (found * scale, exact * scale));
            let error = relative(squares(pairs.into_iter(), unit_of(2.0 * scale)));
            assert!((error / (0.01 / 5f64.sqrt()) - 1.0).abs() < 1e-9, "{error}");
        }
        let of = |found: f64, exact: f64| relative(squares([(found, exact)].into_iter(), unit_of(exact)));
        assert_eq!((of(0.0, 0.0), of(1.0, 0.0)), (0.0, f64::INFINITY));
        assert_eq!((of(f64::NAN, 1.0), of(f64::INFINITY, 1.0)), (f64::INFINITY, f64::INFINITY));
    }

    #[test]
    fn the_error_is_that_of_the_mean_square() {
        let v = Verdict::of([&[4e-6; 10], &[]], [4.0, 0.0], false);
        assert!((v.error - 1e-3).abs() < 1e-12 && (v.error - v.upper).abs() < 1e-12);
        assert!(v.holds(1.1e-3) && !v.holds(0.9e-3));
        let v = Verdict::of([&[0.0; 3], &[9e-4 * 900.0; 3]], [1.0, 9.0], true);
        assert!((v.error - 1e-2).abs() < 1e-12);
    }

    #[test]
    fn errors_at_few_targets_raise_the_upper_value() {
        let mut squares = [1e-8; 100];
        squares[7] = 1e-2;
        let v = Verdict::of([&squares, &[]], [1.0, 0.0], false);
        assert!(v.upper > 1.8 * v.error && v.is_inconclusive(1.5 * v.error));
        assert_eq!(Verdict::of([&squares, &[]], [1.0, 0.0], true).upper, v.error);
    }

    #[test]
    fn the_largest_fields_count_once_each() {
        let none = Squares { errors: &[], values: &[], largest_errors: &[], largest_values: &[] };
        // One target of a million has a field a thousand times the others', and a tenth of it is wrong.
        let field = Squares { errors: &[0.0; 64], values: &[1.0; 64], largest_errors: &[1e4], largest_values: &[1e6] };
        let error = with_largest([field, none], 1_000_000);
        assert!((error - (0.01f64 / 2.0).sqrt()).abs() < 1e-12, "{error}");
        assert_eq!(with_largest([Squares { largest_errors: &[f64::NAN], ..field }, none], 10), f64::INFINITY);
        let gradient = with_largest([none, field], 1_000_000);
        assert!((gradient * 30.0 - error).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_number_is_a_miss() {
        for bad in [f64::NAN, f64::INFINITY] {
            assert!(!Verdict::of([&[1e-20, bad], &[]], [1.0, 0.0], false).holds(0.1));
            assert!(!Verdict::of([&[1e-20], &[bad]], [1.0, 1.0], true).holds(0.1));
            assert!(!Verdict::of([&[1e-20], &[]], [f64::NAN, 1.0], true).holds(0.1) || bad.is_infinite());
        }
        assert!(!Verdict::of([&[1e-20], &[]], [0.0, 0.0], true).holds(0.1));
        assert!(Verdict::of([&[0.0], &[]], [0.0, 0.0], true).holds(1e-12));
    }
}
