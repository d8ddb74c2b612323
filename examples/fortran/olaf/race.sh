#!/bin/sh
# The drop-in routine against the plain loop (-O3 -march=native -fopenmp), both with all cores, in both kinds.
# Enters: prefix of an installed libwakefmm, segments, points.   sh race.sh /usr/local 40000 40000
set -e
prefix=$1
here=$(cd "$(dirname "$0")" && pwd)
module=$(dirname "$(echo "$prefix"/include/wakefmm/*/wakefmm.mod)")
work=$(mktemp -d)
for kind in 4 8; do
    gfortran -O3 -march=native -fopenmp -DREAL_KIND=$kind -I"$module" -J"$work" "$here/drop_in.F90" "$here/plain_loop.F90" \
        "$here/check.F90" -L"$module" -lwakefmm_fortran -L"$prefix/lib" -lwakefmm -Wl,-rpath,"$prefix/lib" -o "$work/race"
    "$work/race" "$2" "$3"
done
rm -r "$work"
