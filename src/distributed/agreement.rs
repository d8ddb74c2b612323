//! Agreement: one outcome of a call for all ranks.
//!
//! Enters: what came of each rank's own part. Leaves: its value on every rank, or the error of the lowest rank that failed,
//! with the rank in its message. A function of the communicator may fail on one rank: the next agreement tells the others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Communicator, Shares};
use crate::error::{Error, Result, WFMM_ERR_OUT_OF_MEMORY, WFMM_ERR_STATE, WFMM_ERR_VALUE, stopped};
use crate::memory;

/// Bytes of a message that travel; longer ones are cut.
const MESSAGE: usize = 768;

impl Communicator {
    /// This rank's part of `call`, and an agreement on it: one small allgather. Ranks that are in different calls are told so.
    pub fn together<R>(&self, call: &str, local: impl FnOnce() -> Result<R>) -> Result<R> {
        let result = catch_unwind(AssertUnwindSafe(local));
        self.agree(call, result.unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY))))
    }

    /// One outcome for all ranks.
    pub fn agree<R>(&self, call: &str, local: Result<R>) -> Result<R> {
        let (value, error) = match local {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        match (self.settle(call, error), value) {
            (None, Some(value)) => Ok(value),
            (Some(error), _) => Err(error),
            // An error is settled with an error.
            (None, None) => Err(Error::new(WFMM_ERR_STATE, call.to_owned())),
        }
    }

    /// What came of a call on this rank, `error` or none, to what came of it on all ranks. An exchange that failed here alone, in an
    /// earlier agreement, is told to the others in this one: so far this rank has gone on with them, and every call ends with the same
    /// status everywhere.
    fn settle(&self, call: &str, error: Option<Error>) -> Option<Error> {
        let untold = self.untold.lock().take();
        let local = error.or(untold);
        let status = local.as_ref().map_or(0, |e| e.status);
        let mut mine = [0; 8];
        mine[..4].copy_from_slice(&status.to_ne_bytes());
        mine[4..].copy_from_slice(&tag(call).to_ne_bytes());
        let all = match (self.gather(&mine), local.is_some()) {
            (Ok(all), _) => all,
            // There is nobody to tell.
            (Err(_), true) => return local.map(|e| Error { agreed: true, ..e }),
            (Err(error), false) => {
                *self.untold.lock() = Some(error);
                return None;
            }
        };
        let word = |rank: usize, at: usize| -> [u8; 4] { std::array::from_fn(|i| all[8 * rank + at + i]) };
        let failed = (0..self.size()).find(|&r| i32::from_ne_bytes(word(r, 0)) != 0);
        let astray = (0..self.size()).find(|&r| word(r, 4) != word(0, 4));
        if failed.is_none() && astray.is_none() {
            return None;
        }
        let text = local.as_ref().map_or_else(|| call.to_owned(), |e| e.message.clone());
        // The status is known without the texts.
        let lost = || memory::filled(0, MESSAGE * self.size());
        let texts = self.gather(&padded(&text)).unwrap_or_else(|_| lost());
        let text = |rank: usize| unpadded(&texts[rank * MESSAGE..(rank + 1) * MESSAGE]);
        Some(match (failed, astray) {
            (Some(rank), _) => {
                let status = i32::from_ne_bytes(word(rank, 0));
                let written = local.is_some_and(|e| e.partly_written);
                let said = text(rank);
                let message = if said.starts_with("rank ") { said } else { format!("rank {rank}: {said}") };
                Error { partly_written: written, agreed: true, ..Error::new(status, message) }
            }
            (None, other) => {
                let rank = other.unwrap_or(0);
                let (first, second) = (text(0), text(rank));
                let message =
                    format!("rank {rank} is in another call ({second}) than rank 0 ({first}): calls are collective");
                Error { agreed: true, ..Error::new(WFMM_ERR_STATE, message) }
            }
        })
    }

    /// Whether named numbers are the same on all ranks; the first that differs is named with its rank.
    pub fn same(&self, what: &str, fields: &[(&str, f64)]) -> Result<()> {
        let mine: Vec<u8> = fields.iter().flat_map(|(_, v)| v.to_ne_bytes()).collect();
        let all = super::f64_of_bytes(&self.gather_all("a comparison of options", &mine)?);
        for (rank, theirs) in all.chunks_exact(fields.len()).enumerate() {
            let differs = (0..fields.len()).find(|&k| theirs[k].to_bits() != all[k].to_bits());
            if let Some(k) = differs {
                let (name, own, first) = (fields[k].0, theirs[k], all[k]);
                let message =
                    format!("rank {rank}: {what}{name} = {own}, but {first} on rank 0; all ranks must say the same");
                return Err(Error { agreed: true, ..Error::new(WFMM_ERR_VALUE, message) });
            }
        }
        Ok(())
    }

    /// The largest of each number over the ranks.
    pub fn largest(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.folded("a largest number", mine, f64::NEG_INFINITY, f64::max)
    }

    /// The sum of each number over the ranks, in their order: the same bits everywhere.
    pub fn total(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.folded("a sum", mine, 0.0, |a, b| a + b)
    }

    /// As many numbers of each rank, in their order.
    pub fn each(&self, mine: &[f64]) -> Result<Vec<f64>> {
        Ok(super::f64_of_bytes(&self.gather_all("numbers of each rank", &super::bytes_of_f64(mine))?))
    }

    /// Numbers of all ranks, one rank after the other; every rank has room for all.
    pub fn joined(&self, mine: &[f64]) -> Result<Vec<f64>> {
        let call = "numbers of all ranks";
        let counts: Vec<i64> = self.each(&[mine.len() as f64])?.iter().map(|&n| 8 * n as i64).collect();
        let total = counts.iter().sum::<i64>() as usize;
        let (send, mut all) = self.together(call, || {
            let mut send = memory::with_room(8 * mine.len());
            send.extend(mine.iter().flat_map(|v| v.to_ne_bytes()));
            Ok((send, memory::filled(0u8, total)))
        })?;
        // The same bytes to every rank.
        let (bytes, first) = (vec![send.len() as i64; self.size()], vec![0; self.size()]);
        let offsets = super::peers::offsets(&counts);
        let sent = Shares { bytes: &bytes, offsets: &first };
        let received = Shares { bytes: &counts, offsets: &offsets };
        let code = self.exchange.alltoallv(&send, sent, &mut all, received);
        self.agree(call, self.passed("alltoallv", code))?;
        self.together(call, || Ok(memory::collect(all.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)))))
    }

    /// Work that exchanges and may fail in between, on any rank: one outcome for all ranks. What failed here before an exchange
    /// is told to the others in their next agreement, which is the one at the end at the latest.
    pub fn collective<R>(&self, call: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let result = catch_unwind(AssertUnwindSafe(work));
        match result.unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY))) {
            Err(error) if error.agreed => Err(error),
            result => self.agree(call, result),
        }
    }

    fn folded(&self, what: &str, mine: &[f64], start: f64, join: impl Fn(f64, f64) -> f64) -> Result<Vec<f64>> {
        let all = super::f64_of_bytes(&self.gather_all(what, &super::bytes_of_f64(mine))?);
        let one = |k: usize| all.iter().skip(k).step_by(mine.len()).fold(start, |a, &b| join(a, b));
        Ok((0..mine.len()).map(one).collect())
    }

    /// A share of each rank, between an agreement that all want them and one that all have them.
    pub fn gather_all(&self, what: &str, mine: &[u8]) -> Result<Vec<u8>> {
        self.agree(what, Ok(()))?;
        self.agree(what, self.gather(mine))
    }
}

/// A number for the name of a call (FNV-1a).
fn tag(call: &str) -> u32 {
    call.bytes().fold(0x811c_9dc5, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

fn padded(text: &str) -> [u8; MESSAGE] {
    let length = (0..=MESSAGE.min(text.len())).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(0);
    let mut bytes = [0; MESSAGE];
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

fn unpadded(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}
