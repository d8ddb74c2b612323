#!/bin/sh
# Recompiles the kernels with the pinned compiler and fails when a committed fat binary differs or a hot kernel spills.
# Enters: what toolchain.sh prints, a scratch folder, units (all where none is named); kernels/SPILLS names the kernels that are known to spill and says why.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
compiler=$1; scratch=$2; shift 2
rm -rf "$scratch"
sh "$here/compile.sh" "$compiler" "$scratch" "$@"
failed=0
for image in "$scratch"/*.fatbin; do
    unit=$(basename "$image" .fatbin)
    if ! cmp -s "$image" "$here/fatbin/$unit.fatbin"; then echo "$unit: the committed fat binary is not what its sources give"; failed=1; fi
done
for image in "$here"/fatbin/*.fatbin; do
    unit=$(basename "$image" .fatbin)
    [ -f "$here/$unit.cu" ] || { echo "$unit: a fat binary without a source"; failed=1; }
done
known=" $(sed 's/#.*//' "$here/SPILLS" | tr '\n' ' ') "
cat "$scratch"/*.resources.txt | grep -v 'spill_stores=0 spill_loads=0' >"$scratch/spills" || true
while read -r line; do
    case "$known" in *" ${line##* } "*) ;; *) echo "a kernel spills: $line"; failed=1 ;; esac
done <"$scratch/spills"
[ $failed = 0 ] && echo "kernels: $(cat "$scratch"/*.resources.txt | wc -l) images of $(ls "$scratch"/*.fatbin | wc -l) units are as committed, $(wc -l <"$scratch/spills") of them spill as known"
exit $failed
