#!/bin/sh
# The C and C++ tests under valgrind, which takes one core: a process for each list of programs, all programs where there is no list.
# Enters: the folder of libwakefmm.so, a folder for programs, lists. Leaves: what tests/run.sh prints, list after list.
set -eu
cd "$(dirname "$0")/.."
library=$1 build=$2
shift 2
[ $# -gt 0 ] || set -- ""
export CHECKER="valgrind -q --fair-sched=try --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite"
mkdir -p "$build"
running="" list=0
for programs in "$@"; do
    list=$((list + 1))
    PROGRAMS=$programs sh tests/run.sh "$library" "$build/$list" >"$build/$list.log" 2>&1 &
    running="$running $!"
done
failed=0 list=0
for process in $running; do
    list=$((list + 1))
    wait "$process" || failed=1
    cat "$build/$list.log"
done
exit $failed
