//! The error of a field, estimated from the comparison at sampled targets: pure numbers, by the rules of `backend::verdict`, from sums
//! that a kernel made.
//!
//! Enters: sums of squares from kernels/fmm_check.cu. Leaves: an error with its statistical uncertainty, and whether a larger
//! sample could change the result.

use super::args::SampleSums;
use crate::backend::verdict::{GRADIENT_TOLERANCES, LARGEST_NORM, STANDARD_ERRORS};

/// Bytes of `Squares` of kernels/fmm_check.cuh.
pub const SQUARES: usize = 40;

impl SampleSums {
    /// Whether all fields are zero, or so small that their squares are.
    pub fn is_of_nothing(&self) -> bool {
        self.n > 0.0 && self.exact == [0.0; 2] && self.written == [0.0; 2]
    }

    /// With the samples of another look at the same field.
    pub fn with_samples_of(self, other: &Self) -> Self {
        let sum = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        Self {
            wrong: sum(self.wrong, other.wrong),
            fourth: sum(self.fourth, other.fourth),
            exact: sum(self.exact, other.exact),
            n: self.n + other.n,
            lost: self.lost + other.lost,
            strongest: self.strongest.max(other.strongest),
            ..self
        }
    }
}

/// The answer for one field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Relative error with three standard errors in it; infinite or NaN where numbers are missing.
    pub error: f64,
    /// A larger sample, with the targets of the largest fields, may find an error within the tolerance.
    pub inconclusive: bool,
}

impl Verdict {
    /// `sampled`: number of targets that were compared, of `all`. `again`: the targets of the largest fields are among those whose
    /// errors are known.
    pub fn new(found: &SampleSums, sampled: usize, all: usize, tolerance: f64, again: bool) -> Self {
        let parts = [0, 1].map(|k| Part::new(found, k, sampled >= all, again));
        let scaled = |of: fn(&Part) -> f64| largest(of(&parts[0]), of(&parts[1]) / GRADIENT_TOLERANCES);
        let lost = if found.lost > 0.0 { f64::INFINITY } else { 0.0 };
        let error = largest(scaled(|part| part.error), lost);
        let hopeful = within(scaled(|part| part.least), tolerance) && lost == 0.0;
        let inconclusive = !again && hopeful && (!within(error, tolerance) || found.bad > 0.0);
        Self { error, inconclusive }
    }
}

/// One of field and gradient.
#[derive(Debug, Clone, Copy)]
struct Part {
    error: f64,
    /// With three standard errors less.
    least: f64,
}

impl Part {
    fn new(found: &SampleSums, k: usize, whole: bool, again: bool) -> Self {
        let n = found.n;
        if n == 0.0 {
            return Self { error: f64::NAN, least: f64::NAN };
        }
        let mean = found.wrong[k] / n;
        let variance = positive(found.fourth[k] / n - mean * mean) / (n - 1.0).max(1.0);
        let spread = if whole { 0.0 } else { STANDARD_ERRORS * variance.sqrt() };
        let (written, exact) = (found.written[k] / found.targets.max(1.0), found.exact[k] / n);
        // Errors that are known and not estimated, and the part of all targets that the sample stands for.
        let all = (found.targets + found.bad).max(1.0);
        let (sure, rest) = (found.certain[k] / all, 1.0 - found.n_certain / all);
        let size = match (whole, again) {
            (true, _) => exact,
            (_, true) => written,
            _ => written.min(LARGEST_NORM * exact),
        };
        let least = relative(sure + rest * positive(mean - spread), if whole { exact } else { written });
        Self { error: relative(sure + rest * (mean + spread), size), least }
    }
}

/// Zero in place of what is less; NaN stays.
fn positive(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// NaN is not.
fn within(error: f64, tolerance: f64) -> bool {
    error <= tolerance
}

/// Zero where nothing is wrong, whatever the size.
fn relative(wrong: f64, size: f64) -> f64 {
    if wrong == 0.0 { 0.0 } else { (wrong / size).sqrt() }
}

/// The larger one; NaN is larger than any number.
fn largest(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` of 1000 targets with differences `wrong` of a field of size one, and as many squares.
    fn found(n: usize, wrong: impl Fn(usize) -> f64) -> SampleSums {
        let squares: Vec<f64> = (0..n).map(|k| wrong(k).powi(2)).collect();
        SampleSums {
            wrong: [squares.iter().sum(), 0.0],
            fourth: [squares.iter().map(|s| s * s).sum(), 0.0],
            exact: [n as f64, 0.0],
            written: [1000.0, 0.0],
            targets: 1000.0,
            n: n as f64,
            ..SampleSums::default()
        }
    }

    /// Looks at one field are one look at as many targets.
    #[test]
    fn samples_add_up() {
        let (some, others) = (found(100, |k| 1e-5 * k as f64), found(28, |k| 1e-5 * (100 + k) as f64));
        let [both, all] = [some.with_samples_of(&others), found(128, |k| 1e-5 * k as f64)];
        let error = |found: &SampleSums| Verdict::new(found, 128, 1000, 1.0, true).error;
        assert!((error(&both) / error(&all) - 1.0).abs() < 1e-12 && both.targets == all.targets);
        assert_eq!(some.with_samples_of(&SampleSums::default()).wrong, some.wrong);
    }

    #[test]
    fn an_even_error_is_what_it_is() {
        let verdict = Verdict::new(&found(256, |_| 1e-4), 256, 1000, 1.001e-4, false);
        assert!((verdict.error / 1e-4 - 1.0).abs() < 1e-6 && !verdict.inconclusive, "{verdict:?}");
        assert!(!Verdict::new(&found(256, |_| 1e-4), 256, 1000, 0.9e-4, false).inconclusive);
    }

    #[test]
    fn an_error_at_one_target_is_inconclusive() {
        for wrong in [1e-3, 1e-1] {
            let lonely = found(256, |k| if k == 3 { wrong } else { 1e-6 });
            assert!(Verdict::new(&lonely, 256, 1000, 1e-4, false).inconclusive, "{wrong}");
        }
        let lonely = found(256, |k| if k == 3 { 1e-3 } else { 1e-6 });
        let verdict = Verdict::new(&lonely, 256, 1000, 1e-4, false);
        assert!(verdict.error > 1e-4 && verdict.inconclusive, "{verdict:?}");
        // All targets were compared: the result is conclusive.
        let all = Verdict::new(&SampleSums { written: [256.0, 0.0], targets: 256.0, ..lonely }, 256, 256, 1e-4, false);
        assert!((all.error - 1e-3 / 16.0).abs() < 1e-7 && !all.inconclusive, "{all:?}");
    }

    #[test]
    fn a_size_that_the_sample_does_not_have_is_looked_at_again() {
        let large = SampleSums { written: [1e9, 0.0], ..found(256, |_| 1e-3) };
        assert!(Verdict::new(&large, 256, 1000, 1e-4, false).inconclusive);
        // Found right at the targets of the largest fields.
        let right = SampleSums { n_certain: 64.0, certain: [1e-3, 0.0], ..large };
        let verdict = Verdict::new(&right, 320, 1000, 1e-4, true);
        assert!(verdict.error < 2e-6 && !verdict.inconclusive, "{verdict:?}");
        let wrong = SampleSums { n_certain: 64.0, certain: [1e9, 0.0], ..large };
        assert!(Verdict::new(&wrong, 320, 1000, 1e-4, true).error >= 1.0);
    }

    /// Errors at the targets of the largest far fields are known: they count once each, and no larger sample is asked for.
    #[test]
    fn largest_far_fields_count_as_they_are() {
        let known = |wrong: f64| SampleSums { n_certain: 64.0, certain: [wrong * wrong, 0.0], ..found(256, |_| 3e-5) };
        let verdict = Verdict::new(&known(1e-3), 256, 1000, 1e-4, false);
        let want = (1e-6f64 / 1000.0 + (1.0 - 0.064) * 9e-10).sqrt();
        assert!((verdict.error / want - 1.0).abs() < 1e-6 && !verdict.inconclusive, "{verdict:?}");
        let verdict = Verdict::new(&known(1e-2), 256, 1000, 1e-4, false);
        assert!(verdict.error > 3e-4 && !verdict.inconclusive, "{verdict:?}");
        // The norm of a field that is far larger than the sample's is still looked at.
        let large = SampleSums { written: [1e9, 0.0], ..known(1e-2) };
        assert!(Verdict::new(&large, 256, 1000, 1e-4, false).inconclusive);
    }

    #[test]
    fn missing_numbers_are_no_answer() {
        for bad in [
            SampleSums { wrong: [f64::NAN, 0.0], ..found(256, |_| 0.0) },
            SampleSums { n: 0.0, ..found(256, |_| 0.0) },
            SampleSums { lost: 1.0, ..found(256, |_| 0.0) },
            SampleSums { written: [f64::NAN, 0.0], exact: [f64::NAN, 0.0], ..found(256, |_| 1e-9) },
        ] {
            let verdict = Verdict::new(&bad, 256, 1000, 1e-4, false);
            assert!(!within(verdict.error, 1e-4) && !verdict.inconclusive, "{verdict:?}");
        }
        let somewhere = SampleSums { bad: 1.0, ..found(256, |_| 1e-9) };
        assert!(Verdict::new(&somewhere, 256, 1000, 1e-4, false).inconclusive);
    }

    #[test]
    fn gradients_count_a_thirtieth() {
        let steep = SampleSums {
            wrong: [0.0, 256.0],
            fourth: [0.0, 256.0],
            exact: [256.0; 2],
            written: [1000.0; 2],
            ..found(256, |_| 0.0)
        };
        assert!((Verdict::new(&steep, 256, 1000, 1.0, false).error - 1.0 / 30.0).abs() < 1e-9);
    }
}
