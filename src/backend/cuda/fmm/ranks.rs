//! One decision of all ranks of a distributed session, each of which sums all sources at targets of its own.
//!
//! Enters: what one rank has found at its sampled targets. Leaves: what the verdict on the targets of all ranks needs, the same
//! numbers everywhere. A rank samples as many targets as another, whatever it has of them: each of its samples stands for
//! as many targets as there are for one. Alone, nothing is exchanged.

use super::args::SampleSums;
use crate::backend::cuda::domain::Corners;
use crate::backend::precision::PrecisionFallback;
use crate::distributed::Communicator;
use crate::error::Result;

/// Numbers that a rank tells the others of its samples.
const TOLD: usize = 18;
/// In the order of their weight: what one rank finds all ranks take for theirs.
const FALLBACKS: [PrecisionFallback; 5] = [
    PrecisionFallback::Short,
    PrecisionFallback::Jump,
    PrecisionFallback::Tolerance,
    PrecisionFallback::Core,
    PrecisionFallback::Distance,
];

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub struct Ranks {
    /// The group, and the targets of the rank that has the most.
    many: Option<(Communicator, usize)>,
}

impl Ranks {
    pub fn of(communicator: &Communicator, most_targets: usize) -> Self {
        Self { many: Some((communicator.clone(), most_targets)) }
    }

    pub fn size(&self) -> usize {
        self.many.as_ref().map_or(1, |(communicator, _)| communicator.size())
    }

    /// Targets of the rank that has the most.
    pub fn most_targets(&self, own: usize) -> usize {
        self.many.as_ref().map_or(own, |(_, most)| *most)
    }

    /// Whether any rank says so, of each question.
    pub fn any<const N: usize>(&self, mine: [bool; N]) -> Result<[bool; N]> {
        let Some((communicator, _)) = &self.many else { return Ok(mine) };
        let all = communicator.largest(&mine.map(|yes| f64::from(u8::from(yes))))?;
        Ok(std::array::from_fn(|k| all[k] > 0.0))
    }

    /// The box around those of all ranks.
    pub fn around(&self, mine: Corners) -> Result<Corners> {
        let Some((communicator, _)) = &self.many else { return Ok(mine) };
        let [low, high] = [mine.low.map(|v| -v), mine.high];
        let all = communicator.largest(&[low, high].concat())?;
        Ok(Corners { low: std::array::from_fn(|i| -all[i]), high: std::array::from_fn(|i| all[3 + i]) })
    }

    /// Why single precision serves not all ranks.
    pub fn worst(&self, mine: Option<PrecisionFallback>) -> Result<Option<PrecisionFallback>> {
        let Some((communicator, _)) = &self.many else { return Ok(mine) };
        let index = |fallback: PrecisionFallback| FALLBACKS.iter().position(|f| *f == fallback).map_or(0, |k| k + 1);
        let all = communicator.largest(&[mine.map_or(0, index) as f64])?[0] as usize;
        Ok(all.checked_sub(1).map(|k| FALLBACKS[k]))
    }

    /// What was found at the samples of all ranks, and how many targets were sampled out of how many.
    pub fn found(&self, mine: &SampleSums, sampled: [usize; 2]) -> Result<(SampleSums, [usize; 2])> {
        let Some((communicator, _)) = &self.many else { return Ok((*mine, sampled)) };
        let all = communicator.each(&told(mine, sampled))?;
        Ok(joined(all.as_chunks::<TOLD>().0))
    }
}

fn told(f: &SampleSums, sampled: [usize; 2]) -> [f64; TOLD] {
    let [a, b] = sampled.map(|n| n as f64);
    let ([w, x], [y, z], [c, d], [e, g], [h, i]) = (f.wrong, f.fourth, f.certain, f.exact, f.written);
    [w, x, y, z, c, d, e, g, h, i, f.targets, f.bad, f.n, f.n_certain, f.lost, f.strongest, a, b]
}

fn untold(t: &[f64; TOLD]) -> (SampleSums, [f64; 2]) {
    let [w, x, y, z, c, d, e, g, h, i, targets, bad, n, n_certain, lost, strongest, a, b] = *t;
    let (wrong, fourth, certain, exact, written) = ([w, x], [y, z], [c, d], [e, g], [h, i]);
    (SampleSums { wrong, fourth, certain, exact, written, targets, bad, n, n_certain, lost, strongest }, [a, b])
}

/// One sample for those of all ranks: its mean is the mean over all targets, and the variance of the mean the sum of the
/// ranks' variances by the squares of their shares.
fn joined(all: &[[f64; TOLD]]) -> (SampleSums, [usize; 2]) {
    let ranks: Vec<_> = all.iter().map(untold).collect();
    let sum = |of: &dyn Fn(&SampleSums, [f64; 2]) -> f64| ranks.iter().map(|(f, s)| of(f, *s)).sum::<f64>();
    // Targets that the samples of a rank stand for: those of the largest fields are known.
    let weight = |f: &SampleSums| (f.targets + f.bad - f.n_certain).max(0.0);
    let (n, whole) = (sum(&|f, _| f.n), sum(&|f, _| weight(f)));
    let share = |f: &SampleSums| if whole > 0.0 { weight(f) / whole } else { f.n / n };
    let part = |f: &SampleSums, of: f64| if share(f) == 0.0 { 0.0 } else { share(f) * of / f.n };
    let mut found = SampleSums {
        targets: sum(&|f, _| f.targets),
        bad: sum(&|f, _| f.bad),
        n_certain: sum(&|f, _| f.n_certain),
        lost: sum(&|f, _| f.lost),
        strongest: ranks.iter().map(|(f, _)| f.strongest).fold(0.0, f64::max),
        n,
        ..SampleSums::default()
    };
    for k in 0..2 {
        let mean = sum(&|f, _| part(f, f.wrong[k]));
        let spread = sum(&|f, [sampled, all]| {
            let own = f.wrong[k] / f.n;
            let variance = (f.fourth[k] / f.n - own * own).max(0.0) / (f.n - 1.0).max(1.0);
            if sampled >= all || share(f) == 0.0 { 0.0 } else { share(f).powi(2) * variance }
        });
        (found.wrong[k], found.exact[k]) = (n * mean, n * sum(&|f, _| part(f, f.exact[k])));
        found.fourth[k] = n * (spread * (n - 1.0).max(1.0) + mean * mean);
        (found.certain[k], found.written[k]) = (sum(&|f, _| f.certain[k]), sum(&|f, _| f.written[k]));
    }
    (found, [sum(&|_, s| s[0]) as usize, sum(&|_, s| s[1]) as usize])
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Verdict;
    use super::*;

    /// `n` of `targets` targets with differences `wrong` of a field of size one, and as many squares.
    fn found(n: usize, targets: usize, wrong: impl Fn(usize) -> f64) -> [f64; TOLD] {
        let squares: Vec<f64> = (0..n).map(|k| wrong(k).powi(2)).collect();
        let found = SampleSums {
            wrong: [squares.iter().sum(), 0.0],
            fourth: [squares.iter().map(|s| s * s).sum(), 0.0],
            exact: [n as f64, 0.0],
            written: [targets as f64, 0.0],
            targets: targets as f64,
            n: n as f64,
            ..SampleSums::default()
        };
        told(&found, [n, targets])
    }

    fn verdict(all: &[[f64; TOLD]], tolerance: f64) -> Verdict {
        let (found, [sampled, of]) = joined(all);
        Verdict::new(&found, sampled, of, tolerance, false)
    }

    #[test]
    fn one_rank_is_what_it_is_alone() {
        let uneven = |k: usize| 1e-4 * (1.0 + (k % 7) as f64);
        let alone = found(256, 1000, uneven);
        let (own, [sampled, of]) = untold(&alone);
        let want = Verdict::new(&own, sampled as usize, of as usize, 1e-4, false);
        let got = verdict(&[alone], 1e-4);
        assert!((got.error / want.error - 1.0).abs() < 1e-12 && got.inconclusive == want.inconclusive);
    }

    /// A hundredth of the targets, with most of the error: the error over all of them is a tenth of theirs.
    #[test]
    fn a_rank_counts_by_its_targets_and_not_by_its_samples() {
        let all = [found(256, 99_000, |_| 0.0), found(256, 1_000, |_| 1e-3)];
        assert!((verdict(&all, 1.001e-4).error / 1e-4 - 1.0).abs() < 1e-9, "{:?}", verdict(&all, 1e-4));
        assert!(verdict(&all, 0.99e-4).error > 0.99e-4);
    }

    /// Sixty ranks with few targets each do not make the sample of the one that has nearly all of them larger.
    #[test]
    fn samples_of_small_ranks_hide_no_uncertainty() {
        let uneven = |k: usize| if k == 0 { 1e-2 } else { 1e-5 };
        let alone = verdict(&[found(128, 1_000_000, uneven)], 1e-3).error;
        let mut all = vec![found(128, 1_000_000, uneven)];
        all.extend((0..60).map(|_| found(128, 130, |_| 1e-5)));
        let together = verdict(&all, 1e-3).error;
        assert!(together > 0.98 * alone, "{together:e} beside {alone:e}");
    }

    #[test]
    fn numbers_that_one_rank_lacks_are_missed_by_all() {
        let none = found(0, 1000, |_| 0.0);
        assert!(verdict(&[found(256, 1000, |_| 1e-6), none], 1e-4).error.is_nan());
        let mut lost = found(256, 1000, |_| 1e-6);
        lost[14] = 1.0;
        assert_eq!(verdict(&[found(256, 1000, |_| 1e-6), lost], 1e-4).error, f64::INFINITY);
    }

    /// A rank whose targets were all compared leaves nothing open.
    #[test]
    fn ranks_that_were_compared_as_a_whole_have_no_spread() {
        let uneven = |k: usize| if k == 0 { 1e-3 } else { 1e-5 };
        let all = [found(100, 100, uneven), found(100, 100, uneven)];
        let (one, both) = (verdict(&all[..1], 1e-3), verdict(&all, 1e-3));
        assert!((one.error / both.error - 1.0).abs() < 1e-12 && !both.inconclusive, "{one:?} {both:?}");
    }
}
