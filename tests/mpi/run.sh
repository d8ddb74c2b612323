#!/bin/sh
# libwakefmm_mpi and its Fortran module, and the tests in C and Fortran over 1, 2 and 4 processes.
# Enters: the folder of libwakefmm.so, a folder for programs. Where MPI is missing: one line, and nothing is tested.
set -u
cd "$(dirname "$0")/../.."
library=$(cd "$1" && pwd)
mkdir -p "$2" && build=$(cd "$2" && pwd)
MPICC=${MPICC:-mpicc} MPIFC=${MPIFC:-mpif90} MPICXX=${MPICXX:-mpicxx} MPIRUN=${MPIRUN:-mpirun}
for tool in "$MPICC" "$MPIRUN"; do
    command -v "$tool" >/dev/null || { echo "MPI tests skipped: no $tool on this machine"; exit 0; }
done
passed=0
failed=0
verdict() { if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: MPI, $1"; fi; }
# Open MPI refuses more processes than cores and the superuser unless it is told; others do not know its words.
"$MPIRUN" --version 2>/dev/null | grep -q "Open MPI\|OpenRTE" && more="--oversubscribe --allow-run-as-root" || more=
# Ranks that wait leave the cores to others.
export OMPI_MCA_mpi_yield_when_idle=1
run() { timeout 300 "$MPIRUN" $more "$@"; }

make -s --no-print-directory mpi RELEASE="$library" MPI_BUILD="$build"
verdict "libwakefmm_mpi is built" $?
"$MPICC" -std=c11 -Wall -Wextra -Werror -g -O1 -Iinclude -Isrc/mpi tests/mpi/plan.c -o "$build/plan" -L"$build" -L"$library" \
    -lwakefmm_mpi -lwakefmm -lm -Wl,-rpath,"$build:$library"
verdict "C is compiled" $?
for ranks in 1 2 4; do
    run -n $ranks "$build/plan"
    verdict "C on $ranks ranks" $?
done
run -n 2 "$build/plan" single
verdict "a thread level that is too low" $?
"$MPICC" -std=gnu11 -Wall -Wextra -g -O1 -Iinclude -Isrc/mpi tests/mpi/memory.c -o "$build/memory" -L"$build" -L"$library" \
    -lwakefmm_mpi -lwakefmm -lm -Wl,-rpath,"$build:$library" && run -n 3 "$build/memory"
verdict "memory that runs out on one of 3 ranks" $?
for program in collective sessions; do
    "$MPICC" -std=c11 -Wall -Wextra -Werror -g -O1 -Iinclude -Isrc/mpi tests/mpi/$program.c -o "$build/$program" -L"$build" -L"$library" \
        -lwakefmm_mpi -lwakefmm -lm -lpthread -Wl,-rpath,"$build:$library"
    verdict "$program.c is compiled" $?
    for ranks in 1 3; do
        run -n $ranks "$build/$program"
        verdict "$program on $ranks ranks" $?
    done
done
# Strangers' projects against an installation, by pkg-config and by CMake.
prefix=$build/prefix
rm -rf "$prefix" "$build/cmake"
make -s --no-print-directory install-files install-mpi PREFIX="$prefix" DESTDIR= RELEASE="$library" MPI_BUILD="$build"
verdict "install" $?
if command -v pkg-config >/dev/null; then
    "$MPICC" -std=c11 tests/mpi/plan.c $(PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config --cflags --libs wakefmm-mpi) -lm \
        -o "$build/plan_pc" && LD_LIBRARY_PATH="$prefix/lib" run -n 2 "$build/plan_pc"
    verdict "a consumer by pkg-config" $?
fi
if command -v cmake >/dev/null; then
    { cmake -S tests/mpi -B "$build/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DMPI_C_COMPILER="$MPICC" && cmake --build "$build/cmake"; } \
        >"$build/cmake.log" 2>&1 && run -n 2 "$build/cmake/plan_cmake" || { tail -20 "$build/cmake.log"; false; }
    verdict "a consumer by CMake" $?
fi
# The example in C++, against the installation.
if command -v "$MPICXX" >/dev/null; then
    "$MPICXX" -std=c++17 -Wall -Wextra -Werror -O1 -I"$prefix/include" -I"$prefix/include/wakefmm" examples/cpp/mpi/wake.cpp \
        -o "$build/wake" -L"$prefix/lib" -lwakefmm_mpi -lwakefmm -Wl,-rpath,"$prefix/lib" && run -n 3 "$build/wake" 1000 2
    verdict "the example in C++ on 3 ranks" $?
fi
# The main library knows nothing of MPI.
! ldd "$library/libwakefmm.so" | grep -q "libmpi"
verdict "libwakefmm links no MPI" $?
if command -v "$MPIFC" >/dev/null; then
    strict="-std=f2018 -Wall -Wextra -Werror -g -O1 -J$build -I$build"
    "$MPIFC" $strict fortran/wakefmm.f90 -c -o "$build/wakefmm.o" &&
        "$MPIFC" $strict src/mpi/wakefmm_mpi.F90 -c -o "$build/wakefmm_mpi.o" &&
        "$MPIFC" $strict tests/mpi/plan.f90 "$build/wakefmm.o" "$build/wakefmm_mpi.o" -o "$build/plan_f" -L"$build" -L"$library" \
            -lwakefmm_mpi -lwakefmm -Wl,-rpath,"$build:$library"
    verdict "Fortran is compiled" $?
    mkdir -p "$build/long"
    long() { "$MPIFC" -std=f2018 -Wall -Wextra -Werror -fdefault-integer-8 -J"$build/long" -I"$build/long" -c "$1" -o "$build/long/module.o"; }
    long fortran/wakefmm.f90 && long src/mpi/wakefmm_mpi.F90
    verdict "Fortran is compiled with -fdefault-integer-8" $?
    for ranks in 2 4; do
        run -n $ranks "$build/plan_f"
        verdict "Fortran on $ranks ranks" $?
    done
    "$MPIFC" $strict examples/fortran/mpi/brownout_mpi.f90 "$build/wakefmm.o" "$build/wakefmm_mpi.o" -o "$build/brownout_mpi" \
        -L"$build" -L"$library" -lwakefmm_mpi -lwakefmm -Wl,-rpath,"$build:$library" && run -n 4 "$build/brownout_mpi" 300 3000 5
    verdict "the brownout in Fortran on 4 ranks, against one" $?
else
    echo "no $MPIFC: the Fortran tests over MPI are skipped"
fi
echo "MPI: $passed passed, $failed failed"
[ $failed = 0 ]
