//! Times of the passes. Each note between two passes takes a microsecond of an evaluation, in a small one together as much as a
//! pass: of these one in `PERIOD` is noted, and the others' time is shared out as that one's was.

use super::reuse::Work;

const PERIOD: u32 = 16;
pub const PASSES: usize = 8;

/// What an evaluation was, as far as its passes' shares depend on it.
#[derive(Debug, Clone, Copy)]
struct Noted {
    work: Work,
    counts: [usize; 2],
    /// As a graph: kernels started one by one wait more for the host than for one another.
    replayed: bool,
    seconds: [f64; PASSES],
}

#[derive(Debug, Default)]
pub struct Times {
    last: Option<Noted>,
    /// Evaluations since then; 0: the present one is noted.
    since: u32,
}

impl Times {
    /// Whether the passes of an evaluation are to be noted; `replayed` says how it will be started.
    pub fn wants(&mut self, work: Work, counts: [usize; 2], small: bool, replayed: bool) -> bool {
        let alike = |a: usize, b: usize| 8 * a.abs_diff(b) <= a;
        let known = self.last.is_some_and(|last| {
            last.seconds != [0.0; PASSES]
                && (last.work, last.replayed) == (work, replayed)
                && (0..2).all(|k| alike(last.counts[k], counts[k]))
                && self.since + 1 < PERIOD
        });
        if small && known {
            self.since += 1;
            return false;
        }
        (self.last, self.since) = (Some(Noted { work, counts, replayed, seconds: [0.0; PASSES] }), 0);
        true
    }

    pub fn is_noted(&self) -> bool {
        self.since == 0
    }

    /// Takes what was noted.
    pub fn keep(&mut self, seconds: [f64; PASSES]) {
        if let Some(last) = &mut self.last {
            last.seconds = seconds;
        }
    }

    /// What was noted last.
    pub fn seconds(&self) -> [f64; PASSES] {
        self.last.map_or([0.0; PASSES], |last| last.seconds)
    }
}

/// The passes of an evaluation that took `whole`, in the parts of what was noted.
pub fn share(seconds: [f64; PASSES], whole: f64) -> [f64; PASSES] {
    let sum: f64 = seconds.iter().sum();
    if sum > 0.0 { seconds.map(|s| whole * s / sum) } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_sixteen_is_noted_and_others_are_shared_out() {
        let (mut times, part) = (Times::default(), Work { sources: false, ..Work::WHOLE });
        assert!(times.wants(Work::WHOLE, [5000, 5000], true, true) && times.is_noted());
        times.keep([1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        for n in 1..16 {
            assert!(!times.wants(Work::WHOLE, [5000 + n, 5000], true, true) && !times.is_noted());
        }
        let shared = share(times.seconds(), 8.0);
        assert_eq!((shared[0], shared[1], shared[7]), (2.0, 4.0, 2.0));
        assert!(times.wants(Work::WHOLE, [5000, 5000], true, true), "the sixteenth");
        assert!(times.wants(part, [5000, 5000], true, true), "other passes");
        assert!(times.wants(part, [5000, 5000], true, true), "the last one failed");
        times.keep([1.0; PASSES]);
        assert!(
            !times.wants(part, [5000, 5000], true, true) && times.wants(part, [7000, 5000], true, true),
            "other numbers"
        );
        times.keep([1.0; PASSES]);
        assert!(times.wants(part, [7000, 5000], true, false), "started one by one");
        times.keep([1.0; PASSES]);
        assert!(!times.wants(part, [7000, 5000], true, false));
        assert!(times.wants(part, [7000, 5000], false, false), "a large one");
    }
}
