#!/bin/sh
# One rank against two (RANKS=: other numbers): CUBE of 1e6 and 1e7 sources and targets in single precision, BOX, CUBE in a periodic
# cube, of 1e6 and 4e6, VPM of 1e6 (CASES=: others), as a table with the times and how many times as fast more ranks are, by steps with
# new positions and by evaluations alone.
# Enters: the folder of libwakefmm.so, a folder for programs. Needs mpicc, mpirun and a GPU (two, to be faster); no cargo.
set -eu
cd "$(dirname "$0")/.."
library=$(cd "$1" && pwd)
mkdir -p "$2" && build=$(cd "$2" && pwd)
MPICC=${MPICC:-mpicc} MPIRUN=${MPIRUN:-mpirun}
"$MPICC" -std=gnu11 -Wall -Wextra -O2 -Iinclude -Isrc/mpi bench/gpu_mpi.c src/mpi/wakefmm_mpi.c -o "$build/gpu_mpi" \
    -L"$library" -lwakefmm -lm -Wl,-rpath,"$library"
"$MPIRUN" --version 2>/dev/null | grep -q "Open MPI\|OpenRTE" && more="--oversubscribe --allow-run-as-root --bind-to none" || more=
tolerance=${TOLERANCE:-1e-3}
cores=$(nproc)
run() { WAKEFMM_NUM_THREADS=$((cores / $1 > 0 ? cores / $1 : 1)) timeout 280 "$MPIRUN" $more -n "$1" "$build/gpu_mpi" "$2" "$3" "$tolerance" "${REPETITIONS:-7}"; }
echo "| case | sources | ranks | step, s | evaluation, s | error | step, ratio | evaluation, ratio |"
echo "|---|---|---|---|---|---|---|---|"
for what in ${CASES:-cube:1000000 cube:10000000 box:1000000 box:4000000 vpm:1000000}; do
    case=${what%:*} n=${what#*:}
    one=$(run 1 "$case" "$n")
    echo "$case $n $one" | awk '{ printf "| %s | %d | 1 | %s | %s | %s | 1 | 1 |\n", toupper($1), $2, $3, $4, $5 }'
    for ranks in ${RANKS:-2}; do
        more_ranks=$(run "$ranks" "$case" "$n")
        echo "$case $n $ranks $one $more_ranks" | awk '{ printf "| %s | %d | %d | %s | %s | %s | %.2f | %.2f |\n", toupper($1), $2, $3, $7, $8, $9, $4 / $7, $5 / $8 }'
    done
done
