//! Agreement: one outcome of a call for all ranks.
//!
//! Enters: what came of each rank's own part. Leaves: its value on every rank, or the error of the lowest rank that failed,
//! with the rank in its message.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Communicator;
use crate::error::{Error, Result, WFMM_ERR_OUT_OF_MEMORY, WFMM_ERR_STATE, WFMM_ERR_VALUE, stopped};

/// Bytes of a message that travel; longer ones are cut.
const MESSAGE: usize = 768;

impl Communicator {
    /// This rank's part of `call`, and an agreement on it: one small allgather. Ranks that are in different calls are told so.
    pub fn together<R>(&self, call: &str, local: impl FnOnce() -> Result<R>) -> Result<R> {
        let result = catch_unwind(AssertUnwindSafe(local));
        self.agree(call, result.unwrap_or_else(|unwound| Err(stopped(&*unwound, WFMM_ERR_OUT_OF_MEMORY))))
    }

    pub fn agree<R>(&self, call: &str, local: Result<R>) -> Result<R> {
        let status = local.as_ref().map_or_else(|e| e.status, |_| 0);
        let mut mine = [0; 8];
        mine[..4].copy_from_slice(&status.to_ne_bytes());
        mine[4..].copy_from_slice(&tag(call).to_ne_bytes());
        let all = self.gather(&mine)?;
        let word = |rank: usize, at: usize| -> [u8; 4] { std::array::from_fn(|i| all[8 * rank + at + i]) };
        let failed = (0..self.size()).find(|&r| i32::from_ne_bytes(word(r, 0)) != 0);
        let astray = (0..self.size()).find(|&r| word(r, 4) != word(0, 4));
        if failed.is_none() && astray.is_none() {
            return local;
        }
        let text = local.as_ref().map_or_else(|e| e.message.clone(), |_| call.to_owned());
        let texts = self.gather(&padded(&text))?;
        let text = |rank: usize| unpadded(&texts[rank * MESSAGE..(rank + 1) * MESSAGE]);
        match (failed, astray) {
            (Some(rank), _) => {
                let status = i32::from_ne_bytes(word(rank, 0));
                let written = local.err().is_some_and(|e| e.partly_written);
                let said = text(rank);
                let message = if said.starts_with("rank ") { said } else { format!("rank {rank}: {said}") };
                Err(Error { partly_written: written, ..Error::new(status, message) })
            }
            (None, other) => {
                let rank = other.unwrap_or(0);
                let (first, second) = (text(0), text(rank));
                Error::fail(
                    WFMM_ERR_STATE,
                    format!("rank {rank} is in another call ({second}) than rank 0 ({first}): calls are collective"),
                )
            }
        }
    }

    /// Whether named numbers are the same on all ranks; the first that differs is named with its rank.
    pub fn same(&self, what: &str, fields: &[(&str, f64)]) -> Result<()> {
        let mine: Vec<u8> = fields.iter().flat_map(|(_, v)| v.to_ne_bytes()).collect();
        let all = super::f64_of_bytes(&self.gather(&mine)?);
        for (rank, theirs) in all.chunks_exact(fields.len()).enumerate() {
            let differs = (0..fields.len()).find(|&k| theirs[k].to_bits() != all[k].to_bits());
            if let Some(k) = differs {
                let (name, own, first) = (fields[k].0, theirs[k], all[k]);
                let message =
                    format!("rank {rank}: {what}{name} = {own}, but {first} on rank 0; all ranks must say the same");
                return Error::fail(WFMM_ERR_VALUE, message);
            }
        }
        Ok(())
    }

    /// The largest of each number over the ranks.
    pub fn largest(&self, mine: &[f64]) -> Result<Vec<f64>> {
        let all = super::f64_of_bytes(&self.gather(&super::bytes_of_f64(mine))?);
        let largest = |k: usize| all.iter().skip(k).step_by(mine.len()).fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        Ok((0..mine.len()).map(largest).collect())
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
