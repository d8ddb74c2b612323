#!/bin/sh
# tests/gpu/mpi.c on 1, 2 and 4 ranks, which take the GPUs of the machine in turn.
# Enters: the folder of libwakefmm.so, a folder for programs. Needs mpicc, mpirun and a GPU; no cargo.
set -eu
cd "$(dirname "$0")/../.."
library=$(cd "$1" && pwd)
mkdir -p "$2" && build=$(cd "$2" && pwd)
MPICC=${MPICC:-mpicc} MPIRUN=${MPIRUN:-mpirun}
"$MPICC" -std=gnu11 -Wall -Wextra -O2 -Iinclude -Isrc/mpi -Itests/gpu tests/gpu/mpi.c src/mpi/wakefmm_mpi.c -o "$build/gpu_mpi_test" \
    -L"$library" -lwakefmm -lm -ldl -Wl,-rpath,"$library"
"$MPIRUN" --version 2>/dev/null | grep -q "Open MPI\|OpenRTE" && more="--oversubscribe --allow-run-as-root --bind-to none" || more=
export OMPI_MCA_mpi_yield_when_idle=1
for ranks in ${RANKS:-1 2 4}; do
    timeout 280 "$MPIRUN" $more -n "$ranks" "$build/gpu_mpi_test"
done
