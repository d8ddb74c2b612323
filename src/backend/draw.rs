//! Which targets are sampled: the same for every back end, and in every process that is given the same numbers.
//!
//! Enters: how many there are, how many are wanted, a seed. Leaves: their numbers.

use crate::memory;

/// The increment of splitmix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Random bits that depend on `seed` and `k` only (splitmix64).
fn bits(seed: u64, k: u64) -> u64 {
    let z = seed.wrapping_add((k + 1).wrapping_mul(STEP));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number in [0, 1) that depends on `seed` and `k` only.
pub fn jitter(seed: u64, k: u64) -> f64 {
    (bits(seed, k) >> 11) as f64 / (1u64 << 53) as f64
}

/// `samples` of the numbers 0 .. n-1, drawn with replacement; all of them, where there are no more.
pub fn drawn(n: usize, samples: usize, seed: u64) -> impl ExactSizeIterator<Item = usize> {
    let one = move |k: usize| (bits(seed ^ STEP, k as u64) % n as u64) as usize;
    (0..samples.min(n)).map(move |k| if samples < n { one(k) } else { k })
}

/// `count` of the numbers 0 .. m-1, rising, one at random from each of as many equal runs; all of them, where there are no more.
pub fn stratified(m: usize, count: usize, seed: u64) -> Vec<usize> {
    let count = count.min(m);
    let at = |k: usize| ((k as f64 + jitter(seed, k as u64)) * m as f64 / count as f64) as usize;
    if count == m { memory::collect(0..m) } else { memory::collect((0..count).map(|k| at(k).min(m - 1))) }
}
