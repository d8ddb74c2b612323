#!/bin/sh
# Installs the pinned CUDA compiler from PyPI into DIR (default build/nvcc) and prints the path of its nvcc.
# The committed fat binaries are made with exactly these versions, so CI can compare them byte by byte.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
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
