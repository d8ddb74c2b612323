#!/bin/sh
# Compiles every kernels/*.cu to one fat binary. Enters: a compiler. Leaves: DIR/<unit>.fatbin, DIR/<unit>.resources.txt (registers,
# spills) and DIR/SOURCES, the digests of what was compiled, so that a stale fat binary is seen without a compiler.
#
#   compile.sh PYTHON DIR [UNIT...]  the targets of images.py; PYTHON is what toolchain.sh prints. Units whose sources did not change are
#                                    left alone
#   compile.sh NVCC DIR [UNIT...]    the same with an nvcc of your own: PTX for compute_75 (any newer GPU translates it) and machine code
#                                    for sm_80 and sm_90, for drivers as new as that nvcc
#   compile.sh --stale DIR           exit 1 and name the units whose sources changed since DIR was made by PYTHON
set -eu
here=$(cd "$(dirname "$0")" && pwd)
flags="-std=c++17 -O3 -Xfatbin -compress-all -Xptxas -v"
targets="-gencode arch=compute_75,code=compute_75 -gencode arch=compute_80,code=sm_80"
# M2L hands registers from warp to warp, which only the architecture's own target can.
hopper() { if [ "$1" = fmm_m2l ]; then echo "-gencode arch=compute_90a,code=sm_90a"; else echo "-gencode arch=compute_90,code=sm_90"; fi; }

pinned=""
case "${1##*/}" in python* | --stale) pinned=1 ;; esac

# The unit and the headers that it includes, followed by the flags: one digest.
digest() {
    cd "$here"
    seen=" "; todo="$1.cu"
    while [ -n "$todo" ]; do
        next=""
        for file in $todo; do
            case "$seen" in *" $file "*) continue ;; esac
            seen="$seen$file "
            next="$next $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file" | tr '\n' ' ')"
        done
        todo=$(echo $next)
    done
    { for file in $(echo $seen | tr ' ' '\n' | sort); do cat "$file"; done
      if [ -n "$pinned" ]; then cat images.py; else echo "$flags $targets $(hopper "$1")"; fi; } | sha256sum | cut -d' ' -f1
}

recorded() { sed -n "s/^$2 //p" "$1/SOURCES" 2>/dev/null || true; }

units() { cd "$here" && ls *.cu | sed 's/\.cu$//'; }

if [ "$1" = "--stale" ]; then
    stale=0
    for unit in $(units); do
        if [ "$(digest "$unit")" != "$(recorded "$2" "$unit")" ] || [ ! -f "$2/$unit.fatbin" ]; then
            echo "$unit: its fat binary is older than its sources; run make kernels"; stale=1
        fi
    done
    exit $stale
fi

compiler=$1; out=$2; shift 2
mkdir -p "$out"
[ $# -gt 0 ] || set -- $(units)

translated() {
    if [ -n "$pinned" ]; then
        "$compiler" images.py "$unit.cu" "$out/$unit.fatbin"
    else
        "$compiler" $flags $targets $(hopper "$unit") --fatbin -o "$out/$unit.fatbin" "$unit.cu"
    fi
}

compile() {
    unit=$1
    wanted=$(digest "$unit")
    if [ "$wanted" = "$(recorded "$out" "$unit")" ] && [ -f "$out/$unit.fatbin" ]; then return 0; fi
    # From a folder that is called the same on every machine: names of what is static in a unit are made from it.
    if ! (cd "$stage" && translated) >"$out/$unit.log" 2>&1; then
        cat "$out/$unit.log" >&2; rm -f "$out/$unit.log"; return 1
    fi
    sh "$here/resources.sh" <"$out/$unit.log" >"$out/$unit.resources.txt"
    grep -i 'warning' "$out/$unit.log" >&2 || true
    rm -f "$out/$unit.log"
    echo "$unit $wanted" >"$out/.$unit.digest"
}

out=$(cd "$out" && pwd)
stage=/tmp/libwakefmm-kernels
tries=0
until mkdir "$stage" 2>/dev/null; do # another compilation
    tries=$((tries + 1)); sleep 1
    [ $tries -lt 900 ] || { echo "$stage is there: remove it if nothing compiles" >&2; exit 1; }
done
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' INT TERM
cp "$here"/*.cu "$here"/*.cuh "$here"/images.py "$stage"
failed=0; running=""
for unit in "$@"; do
    compile "$unit" & running="$running $!"
    set -- $running
    if [ $# -ge "${WAKEFMM_JOBS:-2}" ]; then wait "$1" || failed=1; shift; running="$*"; fi
done
for job in $running; do wait "$job" || failed=1; done
for unit in $(units); do
    if [ -f "$out/.$unit.digest" ]; then cat "$out/.$unit.digest"; rm "$out/.$unit.digest"
    else line=$(recorded "$out" "$unit"); [ -z "$line" ] || echo "$unit $line"; fi
done >"$out/.SOURCES" && mv "$out/.SOURCES" "$out/SOURCES"
exit $failed
