#!/bin/sh
# `make demo`: builds the release library, the Fortran module and the brownout program, and runs it for about a minute.
# Runs from the project's top folder; options for the program may follow. Leaves picture and VTK files in demo/.
set -e

sh tests/gfortran.sh
target=${CARGO_TARGET_DIR:-$PWD/target}
echo "1/3 the library: ${CARGO:-cargo} build --release"
${CARGO:-cargo} build --release --quiet
echo "2/3 the Fortran module and the program: build/brownout/brownout"
make -s -C examples/fortran/brownout BUILD="$PWD/build/brownout" LIBRARY="$target/release"
echo "3/3 the run, about a minute on two cores: build/brownout/brownout --output demo $*"
exec build/brownout/brownout --output demo "$@"
