#!/bin/sh
# Compiles the bench: build.sh NVCC OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd); nvcc=$1; out=$2; mkdir -p "$out"
for k in fmm_tree fmm_p2m fmm_translate fmm_m2l fmm_smooth fmm_p2p fmm_l2p fmm_operators fmm_segments; do "$nvcc" -std=c++17 -O3 -lineinfo -gencode arch=compute_90a,code=sm_90a -c -o "$out/$k.o" "$here/../../kernels/$k.cu" & done
"$nvcc" -std=c++17 -O3 -arch=sm_90 -c -o "$out/main.o" "$here/fmm.cu"
wait
"$nvcc" -arch=sm_90 -o "$out/fmm" "$out"/*.o
