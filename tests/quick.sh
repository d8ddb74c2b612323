#!/bin/sh
# The quick tests, in the unoptimized build: format, clippy, unit tests, generated files, the rules of the house, one test in C and one
# in Fortran. Enters: a folder for programs. Leaves: a line with the seconds of each step; stops at the first that fails.
set -eu
cd "$(dirname "$0")/.."
build=$1
cargo=${CARGO:-cargo}
# The library that the tests were built with; `cargo build` would make another, without what tests depend on.
library=${CARGO_TARGET_DIR:-target}/debug/deps
# Without debug information the build takes two thirds of the time.
export CARGO_PROFILE_DEV_DEBUG=0
mkdir -p "$build/module"
begun=$(date +%s)

step() { # NAME COMMAND…
    name=$1
    shift
    before=$(date +%s)
    printf '==== %s\n' "$name"
    "$@" || { printf '==== FAILED: %s\n' "$name"; exit 1; }
    printf '==== %s: %d s\n' "$name" $(($(date +%s) - before))
}

in_c() {
    library=$(cd "$library" && pwd)
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Iinclude tests/c/objects.c -o "$build/objects" -L"$library" -lwakefmm -lm \
        -Wl,-rpath,"$library" && timeout 120 "$build/objects"
}

in_fortran() {
    gfortran -std=f2018 -Wall -Wextra -Werror -Wno-compare-reals -J"$build/module" fortran/wakefmm.f90 tests/fortran/checks.f90 \
        tests/fortran/objects.f90 -o "$build/f_objects" -L"$library" -lwakefmm -Wl,-rpath,"$library" &&
        timeout 120 "$build/f_objects"
}

step "format" $cargo fmt --check
step "clippy" $cargo clippy --quiet --all-targets -- -D warnings
# Together, so that the processors share them.
step "the library and its tests are built" $cargo test --quiet --no-run --lib --test generated --test house
step "generated files and rules of the house" $cargo test --quiet --test generated --test house
step "unit tests of mathematics, lists, options, plans" $cargo test --quiet --lib -- math:: lists options:: plan:: session::
step "one test in C" in_c
step "one test in Fortran" in_fortran
printf '==== make check passed in %d s; make test is the whole of it\n' $(($(date +%s) - begun))
