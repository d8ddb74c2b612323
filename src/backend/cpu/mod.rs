//! The CPU back end.

mod account;
mod cores;
pub mod cost;
mod direct;
pub mod distributed;
pub mod engine;
pub mod fmm;
pub mod images;
mod intake;
pub mod lines;
pub mod lists;
pub mod m2p;
pub mod near;
pub mod operators;
pub mod passes;
pub mod precision;
pub mod pseudo;
mod range;
mod sort;
pub mod sources;
pub mod tree;

use rayon::iter::{IndexedParallelIterator, MaxLen};

/// Tasks that each thread gets of items whose work differs.
const TASKS_A_THREAD: usize = 16;

/// Items whose work differs, in tasks of equal numbers. Left to itself rayon cuts a range in two for each thread, and
/// further only for a thread that steals: the last task that a thread is busy with may be a quarter of all work.
fn shared<I: IndexedParallelIterator>(items: I) -> MaxLen<I> {
    let tasks = match rayon::current_num_threads() {
        1 => 1,
        threads => TASKS_A_THREAD * threads,
    };
    let most = items.len().div_ceil(tasks).max(1);
    items.with_max_len(most)
}
