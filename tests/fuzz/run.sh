#!/bin/sh
# Coverage-guided fuzzing of sequences of C calls, library and calls under AddressSanitizer. Needs a nightly compiler
# (rustup toolchain install nightly); without one it says so and leaves 0: `replay` then still runs the kept corpus.
# Enters: seconds, a folder for finds and new inputs. Leaves: 0, or the exit status of a crash whose input lies in that folder.
# QUICK=1 builds a fuzzer with little optimization: for a short look, where the compiler takes longer than the fuzzing.
# COMPARES=1 also watches comparisons: finds more, runs at half the speed.
set -u
cd "$(dirname "$0")"
seconds=${1:-60}
mkdir -p "${2:-../../build/fuzz}/corpus"
work=$(cd "${2:-../../build/fuzz}" && pwd)
triple=$(rustc -vV | sed -n 's/^host: //p')
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: no nightly compiler, nothing was run"
    exit 0
fi
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table ${COMPARES:+-Cllvm-args=-sanitizer-coverage-trace-compares}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$work/target}/fuzz"
profile=release
[ -z "${QUICK:-}" ] || profile=quick
RUSTFLAGS="-Zsanitizer=address $coverage --cfg fuzzing -Ccodegen-units=1" \
    cargo +nightly build --profile $profile --locked --target "$triple" || exit 1
# One thread a session; a huge request must be refused by the allocator, not by the sanitizer.
WAKEFMM_NUM_THREADS=1 ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:quarantine_size_mb=64 \
    "$CARGO_TARGET_DIR/$triple/$profile/calls" "$work/corpus" corpus -max_len=160 -len_control=0 -timeout=20 \
    -rss_limit_mb=4096 -malloc_limit_mb=100000 -artifact_prefix="$work/" -max_total_time="$seconds" -print_final_stats=1 \
    >"$work/log" 2>&1
code=$?
grep -E 'stat::number|ERROR|SUMMARY|^calls|status' "$work/log"
[ $code = 0 ] || tail -40 "$work/log"
exit $code
