//! Processor time: what other users of the machine do not change.

fn seconds_of(clock: libc::clockid_t) -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes `t`.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as f64 + 1e-9 * t.tv_nsec as f64
}

/// Of all threads of this process.
pub fn processor_seconds() -> f64 {
    seconds_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Of the calling thread.
pub fn thread_seconds() -> f64 {
    seconds_of(libc::CLOCK_THREAD_CPUTIME_ID)
}
