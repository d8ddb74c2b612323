#!/bin/sh
# Installs the pinned CUDA compiler from PyPI into DIR (default build/cuda12) and prints the path of its Python, which compile.sh takes:
# NVRTC, ptxas and nvFatbin of CUDA 12.9, called by images.py. Drivers from 525 on load what they make.
# The committed fat binaries are made with exactly these versions, so CI can compare them byte by byte.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$here/build/cuda12}
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
