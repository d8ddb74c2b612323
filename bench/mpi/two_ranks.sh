#!/bin/sh
# Two processes of one thread against one process of two threads: CUBE, RINGS, LATTICE of 1e5 and 1e6 sources, as a table.
# Enters: the folder of libwakefmm.so (target/release), a folder for programs; FLAGS=2: WFMM_FLAG_REPRODUCIBLE. Give the machine nothing
# else to do.
set -eu
cd "$(dirname "$0")/../.."
library=$(cd "$1" && pwd)
mkdir -p "$2" && build=$(cd "$2" && pwd)
MPICC=${MPICC:-mpicc} MPIRUN=${MPIRUN:-mpirun}
make -s --no-print-directory mpi RELEASE="$library" MPI_BUILD="$build"
"$MPICC" -std=c11 -Wall -Wextra -O2 -Iinclude -Isrc/mpi bench/mpi/two_ranks.c -o "$build/two_ranks" -L"$build" -L"$library" \
    -lwakefmm_mpi -lwakefmm -lm -Wl,-rpath,"$build:$library"
"$MPIRUN" --version 2>/dev/null | grep -q "Open MPI\|OpenRTE" && more="--oversubscribe --allow-run-as-root" || more=
tolerance=${TOLERANCE:-1e-4}
echo "| case | sources | 1 process, 2 threads, s | 2 processes, 1 thread, s | part reached | errors |"
echo "|---|---|---|---|---|---|"
for n in ${SIZES:-100000 1000000}; do
    [ "$n" -gt 300000 ] && repetitions=3 || repetitions=7
    for case in ${CASES:-cube rings lattice}; do
        one=$("$MPIRUN" $more --bind-to none -n 1 "$build/two_ranks" $case "$n" 2 "$tolerance" $repetitions "${FLAGS:-0}")
        two=$("$MPIRUN" $more --bind-to core -n 2 "$build/two_ranks" $case "$n" 1 "$tolerance" $repetitions "${FLAGS:-0}")
        echo "$case $n $one $two" | awk '{ printf "| %s | %d | %s | %s | %.0f %% | %s, %s |\n", toupper($1), $2, $3, $5, 100 * $3 / $5, $4, $6 }'
    done
done
