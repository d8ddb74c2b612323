//! Times of the passes. An event between two passes costs a microsecond, in a small evaluation together as much as a pass. So one small
//! evaluation in `PERIOD` is timed pass by pass, and the times of the others are divided in its proportions.

use super::reuse::Work;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::stream::Event;
use crate::error::Result;
use crate::report::Pass;
use std::sync::Arc;

const PERIOD: u32 = 16;
const PASSES: usize = 8;

/// The passes that are timed, in their order; each ends where its event is.
pub const TIMED: [Pass; PASSES] =
    [Pass::Tree, Pass::Lists, Pass::P2m, Pass::M2m, Pass::M2l, Pass::L2l, Pass::P2p, Pass::L2p];

/// Seconds of the passes in `TIMED`.
pub type Seconds = [f64; PASSES];

/// The events of one kind of source.
#[derive(Debug)]
pub struct Clock {
    pub begin: Event,
    pub end: Event,
    /// Ends of the passes.
    pub marks: Vec<(Pass, Event)>,
    pub times: Times,
}

impl Clock {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let mark = |pass| Ok((pass, Event::new(context)?));
        Ok(Self {
            begin: Event::new(context)?,
            end: Event::new(context)?,
            marks: TIMED.into_iter().map(mark).collect::<Result<_>>()?,
            times: Times::default(),
        })
    }

    /// Seconds from `begin` to `end`, and of the passes if they were noted; the device is done.
    pub fn read(&mut self) -> Result<f64> {
        if self.times.is_noted() {
            let (mut seconds, mut before) = ([0.0; PASSES], &self.begin);
            for ((_, event), seconds) in self.marks.iter().zip(&mut seconds) {
                *seconds = event.seconds_since(before)?;
                before = event;
            }
            self.times.keep(seconds);
        }
        self.end.seconds_since(&self.begin)
    }
}

/// What an evaluation was, as far as its passes' shares depend on it.
#[derive(Debug, Clone, Copy)]
struct Noted {
    work: Work,
    counts: [usize; 2],
    /// As a graph: kernels started one by one wait more for the host than for one another.
    replayed: bool,
    seconds: Seconds,
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
    pub fn keep(&mut self, seconds: Seconds) {
        if let Some(last) = &mut self.last {
            last.seconds = seconds;
        }
    }

    /// The passes of an evaluation that took `whole`.
    pub fn share(&self, whole: f64) -> Seconds {
        let seconds = self.last.map_or([0.0; PASSES], |last| last.seconds);
        let sum: f64 = seconds.iter().sum();
        if sum > 0.0 { seconds.map(|s| whole * s / sum) } else { seconds }
    }
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
        let shared = times.share(8.0);
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
