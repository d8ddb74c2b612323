//! libFuzzer's way into `calls.c`. Enters: bytes. Leaves: nothing; a panic anywhere ends the process, also one that the
//! boundary of the library would have caught.
#![no_main]

// The library is linked for its C functions.
use wakefmm as _;

unsafe extern "C" {
    fn wakefmm_fuzz_one(data: *const u8, size: usize);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The bytes are borrowed for the call.
    unsafe { wakefmm_fuzz_one(data.as_ptr(), data.len()) };
});
