//! What an engine sees of the other ranks, from inside its thread pool.
//!
//! Enters: requests of code that runs on a pool. Leaves: their answers. The functions of the communicator are called on the
//! thread that called the library, so that MPI needs no more than MPI_THREAD_FUNNELED: a request crosses to it by a channel.
//! A request that fails unwinds with its error; `run` ends the work with one status on all ranks.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;

use super::{Communicator, Reduction, Shares};
use crate::error::{Error, Result, WFMM_ERR_INTERNAL, WFMM_ERR_OUT_OF_MEMORY, stopped};
use crate::memory;

enum Request {
    Reduce(Vec<f64>, Reduction),
    Gather(Vec<u8>),
    /// What goes to all ranks.
    Join(Vec<f64>),
    /// What goes to each rank, one after the other, and how many bytes it is.
    Share(Vec<u8>, Vec<i64>),
    Done,
}

enum Answer {
    Numbers(Vec<f64>),
    /// Bytes of all ranks, and how many of each.
    Bytes(Vec<u8>, Vec<i64>),
}

type Line = (Sender<Request>, Receiver<Result<Answer>>);

/// See the head of this file. Alone, nothing is exchanged.
#[derive(Clone, Default)]
pub struct Peers {
    many: Option<Many>,
}

#[derive(Clone)]
struct Many {
    rank: usize,
    size: usize,
    line: Arc<Mutex<Option<Line>>>,
}

impl Peers {
    /// Of a group: requests are answered while `Communicator::run` is under way with this object.
    pub fn of(communicator: &Communicator) -> Self {
        let (rank, size) = (communicator.rank(), communicator.size());
        Self { many: Some(Many { rank, size, line: Arc::default() }) }
    }

    pub fn rank(&self) -> usize {
        self.many.as_ref().map_or(0, |m| m.rank)
    }

    pub fn size(&self) -> usize {
        self.many.as_ref().map_or(1, |m| m.size)
    }

    /// A group, even of one rank: all of the exchange takes place.
    pub fn are_many(&self) -> bool {
        self.many.is_some()
    }

    fn ask(&self, request: Request) -> Answer {
        let many = self.many.as_ref().expect("only a group is asked");
        let line = many.line.lock();
        let answer = line.as_ref().and_then(|(ask, answered)| {
            ask.send(request).ok()?;
            answered.recv().ok()
        });
        match answer {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => give_up(error),
            None => give_up(Error::new(WFMM_ERR_INTERNAL, "an exchange outside of a collective call")),
        }
    }

    fn reduce(&self, values: &mut [f64], reduction: Reduction) {
        if self.are_many()
            && let Answer::Numbers(all) = self.ask(Request::Reduce(memory::copy(values), reduction))
        {
            values.copy_from_slice(&all);
        }
    }

    /// Sums over the ranks, the same bits on all: what follows from them is decided alike.
    pub fn sum(&self, values: &mut [f64]) {
        if !self.are_many() {
            return;
        }
        self.reduce(values, Reduction::Sum);
        // A sum may differ in its last bits from rank to rank, and what is no number compares with nothing.
        values.iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = f64::INFINITY);
        self.reduce(values, Reduction::Max);
    }

    /// The largest of each number.
    pub fn largest(&self, values: &mut [f64]) {
        self.reduce(values, Reduction::Max);
    }

    pub fn max(&self, value: f64) -> f64 {
        let mut values = [value];
        self.reduce(&mut values, Reduction::Max);
        values[0]
    }

    pub fn min(&self, value: f64) -> f64 {
        let mut values = [value];
        self.reduce(&mut values, Reduction::Min);
        values[0]
    }

    pub fn total(&self, value: f64) -> f64 {
        let mut values = [value];
        self.sum(&mut values);
        values[0]
    }

    pub fn any(&self, yes: bool) -> bool {
        self.max(f64::from(u8::from(yes))) > 0.0
    }

    /// Whether all ranks have the same number.
    pub fn have_same(&self, value: f64) -> bool {
        self.max(value) == self.min(value)
    }

    /// Numbers of all ranks in the order of ranks, and how many each has.
    pub fn gather(&self, mine: &[f64]) -> (Vec<f64>, Vec<usize>) {
        if !self.are_many() {
            return (memory::copy(mine), vec![mine.len()]);
        }
        let most = self.max(mine.len() as f64) as usize;
        // Equal shares: a length and as many numbers as the longest has.
        let mut share = memory::filled(0.0, most + 1);
        share[0] = mine.len() as f64;
        share[1..=mine.len()].copy_from_slice(mine);
        let Answer::Bytes(bytes, _) = self.ask(Request::Gather(super::bytes_of_f64(&share))) else {
            return (vec![], vec![]);
        };
        let all = super::f64_of_bytes(&bytes);
        let (mut numbers, mut counts) = (vec![], vec![]);
        for share in all.chunks_exact(most + 1) {
            let count = share[0] as usize;
            counts.push(count);
            memory::extend(&mut numbers, share[1..=count].iter().copied());
        }
        (numbers, counts)
    }

    /// As `gather`, without room for the longest of each.
    pub fn join(&self, mine: Vec<f64>) -> Vec<f64> {
        if !self.are_many() {
            return mine;
        }
        if let Answer::Numbers(all) = self.ask(Request::Join(mine)) { all } else { vec![] }
    }

    /// Numbers for each rank; returned are those of each rank for this one.
    pub fn share(&self, to: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        if !self.are_many() {
            return to;
        }
        let counts: Vec<i64> = to.iter().map(|v| 8 * v.len() as i64).collect();
        let mut bytes = memory::with_room(8 * to.iter().map(Vec::len).sum::<usize>());
        to.into_iter().for_each(|v| bytes.extend(v.iter().flat_map(|x| x.to_ne_bytes())));
        let Answer::Bytes(all, counts) = self.ask(Request::Share(bytes, counts)) else { return vec![] };
        let mut at = 0;
        let mut of_rank = |count: &i64| {
            let from = at;
            at += *count as usize;
            memory::collect(all[from..at].as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)))
        };
        counts.iter().map(&mut of_rank).collect()
    }
}

fn give_up(error: Error) -> ! {
    resume_unwind(Box::new(error))
}

impl Communicator {
    /// Runs `work` on the pool and its exchanges on this thread. All ranks return alike: with their values, or with the
    /// error of the rank that failed first.
    pub fn run<R: Send>(
        &self,
        pool: &rayon::ThreadPool,
        peers: &Peers,
        call: &str,
        work: impl FnOnce() -> Result<R> + Send,
    ) -> Result<R> {
        let many = peers.many.as_ref().expect("the peers of this communicator");
        let (ask, asked) = channel();
        let (answer, answered) = channel();
        *many.line.lock() = Some((ask.clone(), answered));
        let mut result = None;
        let mut known: Option<Error> = None;
        pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                let outcome = catch_unwind(AssertUnwindSafe(work));
                result = Some(outcome.unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY))));
                let _ = ask.send(Request::Done);
            });
            while let Ok(request) = asked.recv() {
                if matches!(request, Request::Done) {
                    break;
                }
                let reply = match &known {
                    Some(error) => Err(error.clone()),
                    None => self.serve(call, request),
                };
                if let Err(error) = &reply {
                    known = Some(error.clone());
                }
                if answer.send(reply).is_err() {
                    break;
                }
            }
        });
        *many.line.lock() = None;
        if let Some(error) = known {
            return Err(error);
        }
        self.agree(call, result.unwrap_or_else(|| Error::fail(WFMM_ERR_INTERNAL, "the work returned nothing")))
    }

    fn serve(&self, call: &str, request: Request) -> Result<Answer> {
        match request {
            Request::Reduce(mut values, reduction) => {
                self.agree(call, Ok(()))?;
                let code = self.exchange.allreduce_f64(&mut values, reduction);
                self.tell(call, self.passed("allreduce", code)).map(|()| Answer::Numbers(values))
            }
            Request::Gather(mine) => {
                let mut all = self.together(call, || Ok(memory::filled(0u8, mine.len() * self.size())))?;
                let code = self.exchange.allgather(&mine, &mut all);
                self.tell(call, self.passed("allgather", code)).map(|()| Answer::Bytes(all, vec![]))
            }
            Request::Join(mine) => self.joined(&mine).map(Answer::Numbers),
            Request::Share(bytes, counts) => self.serve_share(call, &bytes, &counts),
            Request::Done => Error::fail(WFMM_ERR_INTERNAL, "not a request"),
        }
    }

    fn serve_share(&self, call: &str, bytes: &[u8], counts: &[i64]) -> Result<Answer> {
        self.share(call, bytes, counts).map(|(all, incoming)| Answer::Bytes(all, incoming))
    }

    /// Bytes for each rank, one after the other; returned are those of each rank for this one, and how many.
    pub fn share(&self, call: &str, bytes: &[u8], counts: &[i64]) -> Result<(Vec<u8>, Vec<i64>)> {
        let incoming = self.incoming(call, counts)?;
        let mut all = self.together(call, || Ok(memory::filled(0u8, incoming.iter().sum::<i64>() as usize)))?;
        let (to, from) = (offsets(counts), offsets(&incoming));
        let sent = Shares { bytes: counts, offsets: &to };
        let received = Shares { bytes: &incoming, offsets: &from };
        let code = self.exchange.alltoallv(bytes, sent, &mut all, received);
        self.tell(call, self.passed("alltoallv", code)).map(|()| (all, incoming))
    }

    /// Bytes of all ranks, one rank after the other, into `all`; every rank knows how many each has.
    pub fn spread(&self, call: &str, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<()> {
        let (sent, first) = (vec![mine.len() as i64; self.size()], vec![0; self.size()]);
        let counts: Vec<i64> = counts.iter().map(|&n| n as i64).collect();
        let at = offsets(&counts);
        self.agree(call, Ok(()))?;
        let sent = Shares { bytes: &sent, offsets: &first };
        let received = Shares { bytes: &counts, offsets: &at };
        let code = self.exchange.alltoallv(mine, sent, all, received);
        self.tell(call, self.passed("alltoallv", code))
    }

    /// How many bytes each rank has for this one.
    fn incoming(&self, call: &str, counts: &[i64]) -> Result<Vec<i64>> {
        self.agree(call, Ok(()))?;
        let (each, at) = (vec![8; self.size()], offsets(&vec![8; self.size()]));
        let even = Shares { bytes: &each, offsets: &at };
        let table: Vec<u8> = counts.iter().flat_map(|c| c.to_ne_bytes()).collect();
        let mut theirs = vec![0; table.len()];
        let code = self.exchange.alltoallv(&table, even, &mut theirs, even);
        self.tell(call, self.passed("alltoallv", code))?;
        Ok(theirs.as_chunks::<8>().0.iter().map(|b| i64::from_ne_bytes(*b)).collect())
    }

    /// A function that failed here may have passed elsewhere: those ranks hear of it in their next agreement.
    fn tell<R>(&self, call: &str, result: Result<R>) -> Result<R> {
        match result {
            Err(error) => self.agree(call, Err(error)),
            good => good,
        }
    }
}

pub fn offsets(counts: &[i64]) -> Vec<i64> {
    let before = |total: &mut i64, count: &i64| {
        *total += count;
        Some(*total - count)
    };
    counts.iter().scan(0, before).collect()
}
