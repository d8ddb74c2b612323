//! A group of threads of one process: for tests, for studies of many ranks, and for several devices of one host.
//!
//! Enters: a number of ranks. Leaves: as many ends, one for a thread each. A rank that is dropped leaves the group: who waits
//! for it then is told so instead of waiting for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Exchange, Reduction, Shares};

/// What a function returns where a rank has left, and where ranks have called different functions.
pub const LEFT: i32 = 1;
pub const ASTRAY: i32 = 2;
pub const LATE: i32 = 3;
/// Nobody is waited for longer.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Before a thread sleeps it looks so long whether the others have come: waking it takes longer than most of them are late.
const AWAKE: Duration = Duration::from_micros(50);

#[derive(Default)]
struct Round {
    /// What each rank has brought.
    brought: Vec<Option<Arc<Vec<u8>>>>,
    /// The function that the first one called.
    function: &'static str,
    arrived: usize,
    taken: usize,
    astray: bool,
    left: bool,
}

struct Group {
    round: Mutex<Round>,
    changed: Condvar,
    /// Counts what `changed` tells.
    changes: AtomicU64,
}

impl Group {
    /// With the lock held.
    fn tell(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }
}

/// One rank's end.
pub struct ThreadExchange {
    rank: usize,
    size: usize,
    group: Arc<Group>,
}

/// The ends of a group of `size` ranks.
pub fn group(size: usize) -> Vec<Arc<ThreadExchange>> {
    let round = Round { brought: vec![None; size], ..Round::default() };
    let group = Arc::new(Group { round: Mutex::new(round), changed: Condvar::new(), changes: AtomicU64::new(0) });
    (0..size).map(|rank| Arc::new(ThreadExchange { rank, size, group: group.clone() })).collect()
}

impl Drop for ThreadExchange {
    fn drop(&mut self) {
        let mut round = self.group.round.lock();
        round.left = true;
        self.group.tell();
    }
}

impl ThreadExchange {
    /// Every rank brings bytes and sees those of all.
    fn meet(&self, function: &'static str, mine: Vec<u8>) -> Result<Vec<Arc<Vec<u8>>>, i32> {
        let until = Instant::now() + LONGEST_WAIT;
        let mut round = self.group.round.lock();
        // The round before is over when everybody has seen it.
        while round.taken > 0 {
            self.wait(&mut round, until)?;
        }
        if round.left {
            return Err(LEFT);
        }
        if round.arrived == 0 {
            (round.function, round.astray) = (function, false);
        }
        round.astray |= round.function != function;
        round.brought[self.rank] = Some(Arc::new(mine));
        round.arrived += 1;
        if round.arrived == self.size {
            round.taken = self.size;
            self.group.tell();
        }
        while round.taken == 0 {
            if let Err(code) = self.wait(&mut round, until) {
                // Another attempt begins anew.
                round.brought[self.rank] = None;
                round.arrived -= 1;
                return Err(code);
            }
        }
        let all = if round.astray { Err(ASTRAY) } else { Ok(round.brought.iter().flatten().cloned().collect()) };
        round.taken -= 1;
        if round.taken == 0 {
            round.arrived = 0;
            round.brought.iter_mut().for_each(|b| *b = None);
            self.group.tell();
        }
        all
    }

    /// Waits for a change, awake at first.
    fn wait(&self, round: &mut MutexGuard<'_, Round>, until: Instant) -> Result<(), i32> {
        if round.left && round.taken == 0 {
            return Err(LEFT);
        }
        let seen = self.group.changes.load(Ordering::Acquire);
        let is_new = || self.group.changes.load(Ordering::Acquire) != seen;
        MutexGuard::unlocked(round, || {
            let begin = Instant::now();
            while !is_new() && begin.elapsed() < AWAKE {
                std::thread::yield_now();
            }
        });
        if is_new() {
            return Ok(());
        }
        if self.group.changed.wait_until(round, until).timed_out() { Err(LATE) } else { Ok(()) }
    }

    fn reduce<const N: usize, T: Copy>(
        &self,
        function: &'static str,
        values: &mut [T],
        to: impl Fn(T) -> [u8; N],
        from: impl Fn([u8; N]) -> T,
        join: impl Fn(T, T) -> T,
    ) -> i32 {
        match self.meet(function, values.iter().flat_map(|&v| to(v)).collect()) {
            Ok(all) if all.iter().any(|b| b.len() != N * values.len()) => ASTRAY,
            Ok(all) => {
                for (k, v) in values.iter_mut().enumerate() {
                    let of = |b: &Arc<Vec<u8>>| from(std::array::from_fn(|i| b[N * k + i]));
                    *v = all[1..].iter().map(of).fold(of(&all[0]), &join);
                }
                0
            }
            Err(code) => code,
        }
    }
}

impl Exchange for ThreadExchange {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    /// All threads are of one machine.
    fn node_rank(&self) -> usize {
        self.rank
    }

    fn allreduce_f64(&self, values: &mut [f64], reduction: Reduction) -> i32 {
        let join = |a: f64, b: f64| match reduction {
            Reduction::Sum => a + b,
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
        };
        self.reduce("allreduce of reals", values, f64::to_ne_bytes, f64::from_ne_bytes, join)
    }

    fn allreduce_i64(&self, values: &mut [i64], reduction: Reduction) -> i32 {
        let join = |a: i64, b: i64| match reduction {
            Reduction::Sum => a + b,
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
        };
        self.reduce("allreduce of integers", values, i64::to_ne_bytes, i64::from_ne_bytes, join)
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> i32 {
        match self.meet("allgather", mine.to_vec()) {
            Ok(brought) if brought.iter().any(|b| b.len() != mine.len()) => ASTRAY,
            Ok(brought) => {
                all.chunks_exact_mut(mine.len().max(1)).zip(&brought).for_each(|(to, from)| to.copy_from_slice(from));
                0
            }
            Err(code) => code,
        }
    }

    fn alltoallv(&self, send: &[u8], sent: Shares<'_>, receive: &mut [u8], received: Shares<'_>) -> i32 {
        // A table of (offset, length) in front of the bytes.
        let table = sent.offsets.iter().zip(sent.bytes).flat_map(|(o, b)| [*o, *b]);
        let mut mine: Vec<u8> = table.flat_map(i64::to_ne_bytes).collect();
        let head = mine.len();
        mine.extend_from_slice(send);
        let brought = match self.meet("alltoallv", mine) {
            Ok(brought) => brought,
            Err(code) => return code,
        };
        for (rank, from) in brought.iter().enumerate() {
            let word = |k: usize| i64::from_ne_bytes(std::array::from_fn(|i| from[8 * k + i])) as usize;
            let (at, bytes) = (head + word(2 * self.rank), word(2 * self.rank + 1));
            if bytes as i64 != received.bytes[rank] {
                return ASTRAY;
            }
            let to = received.offsets[rank] as usize;
            receive[to..to + bytes].copy_from_slice(&from[at..at + bytes]);
        }
        0
    }

    fn barrier(&self) -> i32 {
        self.meet("barrier", vec![]).map_or_else(|code| code, |_| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_all<R: Send>(size: usize, work: impl Fn(&ThreadExchange) -> R + Sync) -> Vec<R> {
        std::thread::scope(|s| {
            let work = &work;
            let ends: Vec<_> = group(size).into_iter().map(|end| s.spawn(move || work(&end))).collect();
            ends.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn sums_shares_and_barriers() {
        for size in [1, 2, 3, 8] {
            let got = on_all(size, |end| {
                let mut x = [end.rank() as f64, -1.0];
                assert_eq!(end.allreduce_f64(&mut x, Reduction::Sum), 0);
                let mut all = vec![0; 2 * size];
                assert_eq!(end.allgather(&[end.rank() as u8, 7], &mut all), 0);
                // To rank r go r + 1 bytes with the sender's number.
                let bytes: Vec<i64> = (0..size as i64).map(|r| r + 1).collect();
                let offsets: Vec<i64> = (0..size as i64).map(|r| r * (r + 1) / 2).collect();
                let send = vec![end.rank() as u8; size * (size + 1) / 2];
                let mine = vec![end.rank() as i64 + 1; size];
                let to: Vec<i64> = (0..size as i64).map(|r| r * (end.rank() as i64 + 1)).collect();
                let mut receive = vec![255; size * (end.rank() + 1)];
                let (sent, received) =
                    (Shares { bytes: &bytes, offsets: &offsets }, Shares { bytes: &mine, offsets: &to });
                assert_eq!(end.alltoallv(&send, sent, &mut receive, received), 0);
                assert_eq!(end.barrier(), 0);
                (x[0], all, receive)
            });
            for (rank, (sum, all, receive)) in got.into_iter().enumerate() {
                assert_eq!(sum, (size * (size - 1) / 2) as f64);
                assert!((0..size).all(|r| all[2 * r] == r as u8 && all[2 * r + 1] == 7));
                assert!(receive.chunks(rank + 1).enumerate().all(|(r, b)| b.iter().all(|&b| b == r as u8)));
            }
        }
    }

    #[test]
    fn a_rank_that_leaves_and_one_in_another_call_are_noticed() {
        let codes = on_all(3, |end| if end.rank() == 1 { 0 } else { end.barrier() });
        assert_eq!(codes, [LEFT, 0, LEFT]);
        let codes = on_all(2, |end| {
            let mut x = [0.0];
            if end.rank() == 1 { end.allreduce_f64(&mut x, Reduction::Max) } else { end.barrier() }
        });
        assert_eq!(codes, [ASTRAY; 2]);
    }
}
