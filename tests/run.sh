#!/bin/sh
# The C, C++ and Fortran tests and the check of the exported symbols, against a library that was built before.
# Enters: the folder of libwakefmm.so, a folder for programs. Leaves: a line for each program, the sums at the end.
# With CHECKER="valgrind …" the C and C++ programs run under it, and only they do; with PROGRAMS="…" those of these names.
set -u
cd "$(dirname "$0")/.."
library=$(cd "$1" && pwd)
build=$2
mkdir -p "$build"
checker=${CHECKER:-}
passed=0
failed=0

programs=${PROGRAMS:-}
wanted() { case " $programs " in "  " | *" $1 "*) ;; *) return 1 ;; esac; }

verdict() { # NAME CODE
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi
}

for source in tests/c/*.c; do
    name=$(basename "$source" .c)
    wanted "$name" || continue
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -g -O1 ${checker:+-DUNDER_CHECKER} -Iinclude "$source" -o "$build/$name" \
        -L"$library" -lwakefmm -lm -lpthread -Wl,-rpath,"$library" && timeout 600 $checker "$build/$name"
    verdict "C $name" $?
done

# The header by itself, in C and in C++.
for language in c c++; do
    echo '#include "wakefmm.h"' | ${CC:-cc} -x $language -Wall -Wextra -Werror -Iinclude -fsyntax-only - 2>/dev/null ||
        { [ $language = c++ ] && ! command -v c++ >/dev/null; }
    verdict "header in $language" $?
done

# The C++ wrapper, where there is a compiler for it; under a checker in the second tier, since it calls what the C tests call.
if command -v c++ >/dev/null && { [ -z "$checker" ] || [ "${WAKEFMM_TESTS:-short}" = full ]; }; then
    for source in tests/cpp/*.cpp; do
        name=$(basename "$source" .cpp)
        wanted "$name" || continue
        c++ -std=c++17 -Wall -Wextra -Werror -g -O1 -Iinclude "$source" -o "$build/cpp_$name" -L"$library" -lwakefmm \
            -Wl,-rpath,"$library" && timeout 600 $checker "$build/cpp_$name"
        verdict "C++ $name" $?
    done
    if [ -z "$programs" ]; then
        warnings="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror"
        for standard in c++17 c++20; do
            c++ -std=$standard $warnings -Iinclude -fsyntax-only tests/cpp/rows.cpp
            verdict "C++ wrapper in $standard without a warning" $?
        done
        echo '#include "wakefmm.hpp"' | c++ -std=c++14 -x c++ -Iinclude -fsyntax-only - 2>&1 | grep -q "error.*needs C++17"
        verdict "C++ wrapper names the standard that it needs" $?
    fi
fi
# Flows whose motion is known, each of which leaves 1 where it is missed.
example() {
    what=$1 name=$2; shift 2
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -O1 -Iinclude "examples/c/$name.c" -o "$build/$name" -L"$library" -lwakefmm -lm \
        -Wl,-rpath,"$library" && timeout 600 "$build/$name" "$@" >"$build/$name.log"
    verdict "$what" $?
}
if [ -z "$programs" ]; then
    example "leapfrogging rings" leapfrog_rings 20 0.05
    example "a ring and a plane" ring_and_plane 20 0.05
    example "a ring in Euler steps" ring_steps 20 2048
    example "a thin ring" thin_ring 0.2
    example "a vortex tube" vortex_tube
fi

if [ -z "$checker" ]; then
    strict="-std=f2018 -Wall -Wextra -Werror -g -O1 -J$build -I$build"
    # Tests compare reals for equality on purpose.
    tests="$strict -Wno-compare-reals"
    gfortran $strict -c fortran/wakefmm.f90 -o "$build/wakefmm.o" && gfortran $tests -c tests/fortran/checks.f90 -o "$build/checks.o"
    verdict "Fortran module without a warning" $?
    # The lines of use at its head, in a subroutine of their own. Those of the README are examples/quickstart (docs/links.sh).
    sed -n 's/^!>   \(.*\)/\1/; /^use wakefmm/,/wfmm_plan_destroy/p' fortran/wakefmm.f90 >"$build/lines_module"
    { echo "subroutine lines(np, n, m, steps)"
      sed "1a implicit none; integer :: np, n, m, steps, step" "$build/lines_module"
      echo "end subroutine"; } >"$build/lines_module.f90"
    grep -q wfmm_plan_evaluate "$build/lines_module.f90" && gfortran -std=f2018 -fsyntax-only -I"$build" "$build/lines_module.f90"
    verdict "the lines of use are compiled" $?
    for name in values objects bad_input threads overlap flow picture integers handler stops; do
        openmp=
        [ $name = threads ] && openmp=-fopenmp
        gfortran $tests $openmp tests/fortran/$name.f90 "$build/wakefmm.o" "$build/checks.o" -o "$build/f_$name" \
            -L"$library" -lwakefmm -Wl,-rpath,"$library" 2>"$build/f_$name.log" || { cat "$build/f_$name.log"; false; }
        verdict "Fortran $name is compiled" $?
        [ $name = stops ] && continue
        timeout 600 "$build/f_$name" 2>"$build/f_$name.err"
        verdict "Fortran $name" $?
        cat "$build/f_$name.err" >&2
    done
    # The same module for a code whose default integers have 64 bits.
    long="-fdefault-integer-8 -std=f2018 -Wall -Wextra -Werror -Wno-compare-reals -g -O1 -J$build/long -I$build/long"
    mkdir -p "$build/long"
    gfortran $long fortran/wakefmm.f90 tests/fortran/checks.f90 tests/fortran/integers.f90 -o "$build/f_integers_8" \
        -L"$library" -lwakefmm -Wl,-rpath,"$library" && timeout 600 "$build/f_integers_8"
    verdict "Fortran integers with -fdefault-integer-8" $?
    grep -q "the handler ends the program" "$build/f_handler.err"
    verdict "Fortran handler ends the program" $?
    # Without ierr: a message, and a code other than 0.
    ! "$build/f_stops" >"$build/f_stops.log" 2>&1 && grep -q "index_base = 7" "$build/f_stops.log" &&
        ! grep -q "never reached" "$build/f_stops.log"
    verdict "Fortran stops with the message" $?

    # The brownout program: its physics, and the library against the program's own loop.
    make -s -C examples/fortran/brownout BUILD="$(pwd)/$build/brownout" LIBRARY="$library" &&
        timeout 600 "$build/brownout/brownout" --selftest
    verdict "brownout self-test" $?
    sh tests/brownout.sh "$build/brownout/brownout" "$build/brownout_runs"
    verdict "brownout runs from the command line" $?

    # Nothing but wfmm_* leaves the library, and everything that the header declares does.
    nm -D --defined-only "$library/libwakefmm.so" | awk '{ print $3 }' | sed 's/@.*//' | sort >"$build/exported"
    ! grep -v '^wfmm_' "$build/exported"
    verdict "only wfmm_* is exported" $?
    sed -n 's/^[a-z].*[ *]\(wfmm_[a-z0-9_]*\)(.*/\1/p' include/wakefmm.h | grep -v '^wfmm_log_fn$' | sort >"$build/declared"
    [ -s "$build/declared" ] && diff "$build/declared" "$build/exported"
    verdict "the header declares what is exported" $?
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
