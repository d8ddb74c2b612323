#!/bin/sh
# The C thread tests with library, crates and standard library under ThreadSanitizer; needs a nightly compiler with rust-src
# (rustup toolchain install nightly --component rust-src). Enters: a folder to work in. Leaves: 0 where no race was seen.
set -u
cd "$(dirname "$0")/.."
mkdir -p "$1" && work=$(cd "$1" && pwd)
triple=$(rustc -vV | sed -n 's/^host: //p')
if ! [ -d "$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src" ]; then
    echo "tsan: no nightly compiler with rust-src, nothing was run"
    exit 0
fi
target=${CARGO_TARGET_DIR:-$work}/tsan
RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR=$target cargo +nightly build -Zbuild-std --release --lib --target "$triple" || exit 1
library=$target/$triple/release
runtime=$(ls "$(rustc +nightly --print sysroot)/lib/rustlib/$triple/lib/"librustc*_rt.tsan.a)
for test in threads overlap logging; do
    # The runtime of the sanitizer must be that of the compiler, so everything is linked statically.
    ${CC:-cc} -std=c11 -g -O1 -DUNDER_CHECKER -Iinclude tests/c/$test.c "$library/libwakefmm.a" -Wl,--whole-archive \
        "$runtime" -Wl,--no-whole-archive -rdynamic -lstdc++ -lm -lpthread -ldl -lrt -lgcc_s \
        -o "$work/$test" || exit 1
    TSAN_OPTIONS="halt_on_error=1 exitcode=66" timeout 600 "$work/$test" || { echo "FAILED: $test under ThreadSanitizer"; exit 1; }
done
echo "tsan: no race in threads, overlap, logging"
