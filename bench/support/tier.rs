//! How long the sweeps of tests are: `WAKEFMM_TESTS=full` takes every combination, otherwise some of each kind are taken, which are the
//! same in every run (docs/verification.md).

pub fn full() -> bool {
    std::env::var_os("WAKEFMM_TESTS").is_some_and(|tier| tier == "full")
}

/// Whether a sweep takes combination `number`: all of them, or one in `one_in`.
pub fn takes(number: usize, one_in: usize) -> bool {
    full() || number.is_multiple_of(one_in)
}

/// The values that a sweep takes.
pub fn values<'a, T>(short: &'a [T], all: &'a [T]) -> &'a [T] {
    if full() { all } else { short }
}
