#!/bin/sh
# Installs the pinned CUDA compiler from PyPI into DIR (default build/nvcc) and prints the path of its nvcc.
# The committed fat binaries are made with exactly these versions, so CI can compare them byte by byte.
#
#   toolchain.sh --cuda12 [DIR]   CUDA 12 in DIR (default build/nvcc12): NVRTC, ptxas and nvFatbin; prints the path of a Python, which
#                                 compile.sh takes in place of an nvcc (images.py). Drivers from 525 on load its images.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
if [ "${1:-}" = --cuda12 ]; then
    dir=${2:-$here/build/nvcc12}
    stamp="$dir/.wakefmm-cuda-12.9.86"
    if [ ! -f "$stamp" ]; then
        python3 -m venv "$dir" >&2
        "$dir/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-nvrtc-cu12==12.9.86 \
            nvidia-nvfatbin-cu12==12.9.82 >&2
        # PTX that the oldest drivers of CUDA 12 can translate comes from the oldest NVRTC of CUDA 12.
        "$dir/bin/pip" install -q --disable-pip-version-check --target "$dir/ptx" nvidia-cuda-nvrtc-cu12==12.0.140 >&2
        touch "$stamp"
    fi
    echo "$dir/bin/python"
    exit 0
fi
dir=${1:-$here/build/nvcc}
find_nvcc() { ls "$dir"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc 2>/dev/null | head -1; }
stamp="$dir/.wakefmm-cuda-13.0.88"
if [ ! -f "$stamp" ]; then
    python3 -m venv "$dir" >&2
    "$dir/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
        nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 >&2
    touch "$stamp"
fi
find_nvcc
