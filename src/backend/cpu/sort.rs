//! Sorting by all threads of the pool.
//!
//! Enters: elements with keys, of which no two are equal. Leaves: the same, sorted; the order does not depend on threads. A sample of the
//! elements divides their range into buckets of about equal numbers, as keys are often much denser in some places than in others. Blocks of
//! elements are divided among the buckets; every bucket is collected from all blocks, by equal pieces of its range.

use crate::memory;
use rayon::prelude::*;

/// Fewer elements are sorted by one thread.
const FROM: usize = 20_000;
const BUCKETS_A_THREAD: usize = 8;
const BLOCKS_A_THREAD: usize = 4;
const MOST_BUCKETS: usize = 256;
/// Elements of a bucket that fit into a core's caches.
const CACHED: usize = 1 << 16;
/// Elements of the sample for each bucket.
const SAMPLE: usize = 32;
/// Elements of a piece of a bucket, if they are even.
const OF_PIECE: usize = 2;

/// An element and what comes first in its order.
pub trait Keyed: Ord + Copy + Send + Sync {
    fn key(&self) -> u64;
}

impl Keyed for u64 {
    fn key(&self) -> u64 {
        *self
    }
}

impl Keyed for (u64, u32) {
    fn key(&self) -> u64 {
        self.0
    }
}

/// See the head of this file.
pub fn sort<K: Keyed>(keys: &mut [K]) {
    let threads = rayon::current_num_threads();
    if keys.len() < FROM {
        let from = memory::copy(keys);
        return by_pieces(&[&from], keys);
    }
    let buckets = (BUCKETS_A_THREAD * threads).max(keys.len() / CACHED).min(MOST_BUCKETS);
    let least = least_of_buckets(keys, buckets);
    let block = keys.len().div_ceil(BLOCKS_A_THREAD * threads);
    let mut grouped = memory::par_collect(keys.par_iter().copied());
    let ends: Vec<Vec<u32>> = memory::par_collect(
        grouped.par_chunks_mut(block).zip(keys.par_chunks(block)).map(|(to, from)| group(from, &least, to)),
    );
    let begin = |block: usize, bucket: usize| if bucket == 0 { 0 } else { ends[block][bucket - 1] as usize };
    let mut rest = keys;
    let mut parts = memory::with_room(buckets);
    for bucket in 0..buckets {
        let len = (0..ends.len()).map(|k| ends[k][bucket] as usize - begin(k, bucket)).sum();
        let (part, other) = rest.split_at_mut(len);
        parts.push(part);
        rest = other;
    }
    parts.into_par_iter().enumerate().with_max_len(1).for_each(|(bucket, part)| {
        let mut from = memory::with_room(ends.len());
        from.extend(grouped.chunks(block).enumerate().map(|(k, b)| &b[begin(k, bucket)..ends[k][bucket] as usize]));
        by_pieces(&from, part);
    });
}

/// Collects the elements of all of `from` in `to`, sorted: by pieces of the range of their keys first, about as many as there are
/// elements, which is faster than comparing where they are even.
fn by_pieces<K: Keyed>(from: &[&[K]], to: &mut [K]) {
    let all = || from.iter().copied().flatten();
    let (low, high) = all().fold((u64::MAX, 0), |(low, high), k| (low.min(k.key()), high.max(k.key())));
    let bits = (to.len() / OF_PIECE).max(2).next_power_of_two().trailing_zeros();
    let shift = (u64::BITS - high.saturating_sub(low).leading_zeros()).saturating_sub(bits);
    let piece = |k: &K| ((k.key() - low) >> shift) as usize;
    let mut ends = memory::filled(0u32, 1 << bits);
    all().for_each(|k| ends[piece(k)] += 1);
    let mut total = 0;
    for end in &mut ends {
        (*end, total) = (total, total + *end);
    }
    // Each entry moves from the piece's begin to its end.
    all().for_each(|k| {
        let end = &mut ends[piece(k)];
        to[*end as usize] = *k;
        *end += 1;
    });
    let mut begin = 0;
    for end in ends {
        if end > begin + 1 {
            to[begin as usize..end as usize].sort_unstable();
        }
        begin = end;
    }
}

/// The least element of every bucket but the first.
fn least_of_buckets<K: Ord + Copy>(keys: &[K], buckets: usize) -> Vec<K> {
    let count = SAMPLE * buckets;
    let mut sample = memory::collect((0..count).map(|k| keys[k * keys.len() / count]));
    sample.sort_unstable();
    memory::collect((1..buckets).map(|b| sample[b * SAMPLE]))
}

/// Writes a block to `to`, bucket after bucket. Returns where they end.
fn group<K: Ord + Copy>(from: &[K], least: &[K], to: &mut [K]) -> Vec<u32> {
    let bucket_of = |k: &K| least.partition_point(|l| l <= k);
    let mut bucket = memory::with_room(from.len());
    bucket.extend(from.iter().map(|k| bucket_of(k) as u8));
    let mut ends = memory::filled(0u32, least.len() + 1);
    bucket.iter().for_each(|&b| ends[b as usize] += 1);
    let mut at = 0;
    for end in &mut ends {
        (at, *end) = (at + *end, at);
    }
    // Each entry moves from the bucket's begin to its end.
    for (k, &b) in from.iter().zip(&bucket) {
        to[ends[b as usize] as usize] = *k;
        ends[b as usize] += 1;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_as_by_one_thread() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 20
        };
        let of = |keys: &mut dyn FnMut() -> u64, n: u32| (0..n).map(|k| (keys(), k)).collect::<Vec<_>>();
        let mut problems: Vec<_> = [0, 1, 19_999, 20_000, 100_001].map(|n| of(&mut next, n)).into();
        problems.push(of(&mut || 7, 50_000));
        problems.push(of(&mut || 7, 100));
        problems.push(vec![(u64::MAX, 1), (0, 0)]);
        problems.push(of(&mut || next() % 2 * 0xffff_ffff_ffff_0000 + next() % 256, 50_000));
        problems.push(of(&mut || next() % 3, 50_000));
        problems.push((0..50_000).map(|k| (50_000 - k as u64, k)).collect());
        for threads in [1, 2, 3, 40] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for problem in &problems {
                let (mut found, mut expected) = (problem.clone(), problem.clone());
                pool.install(|| sort(&mut found));
                expected.sort_unstable();
                assert!(found == expected, "{} elements, {threads} threads", problem.len());
            }
        }
    }
}
