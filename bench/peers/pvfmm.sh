#!/bin/sh
# This library beside PVFMM in one process: builds bench/peers/pvfmm.cpp in build/peers and runs it; its head says what is measured.
# Enters: the folder in which PVFMM is installed, the folder of libwakefmm.so (target/release), key=value arguments of the program.
# Leaves: a table with times, errors and ratios. PVFMM's operator tables stay in build/peers/tables; the first run computes them.
# PVFMM_VERSION= is printed as PVFMM's version (else the number of its CMake file), PVFMM_LIBS= are other FFT and BLAS libraries.
#
# PVFMM (LGPL, commit 07a67a6) and SCTL (f6a9260): git clone --recursive https://github.com/dmalhotra/pvfmm; needs MPI, FFTW, OpenBLAS.
# In CMakeLists.txt set CMAKE_CXX_STANDARD 17, which SCTL needs, then
# cmake -B b -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-O3 -march=native" -DCMAKE_INSTALL_PREFIX=FOLDER && cmake --build b -t install
set -eu
peer=$(cd "$1" && pwd) library=$(cd "$2" && pwd)
shift 2
cd "$(dirname "$0")/../.."
mkdir -p build/peers/tables && build=$(cd build/peers && pwd)
MPICXX=${MPICXX:-mpicxx}
lib=$(dirname "$(find "$peer" -name 'libpvfmm.so' | head -n 1)")
version=$(sed -n 's/.*set *(PACKAGE_VERSION "\(.*\)").*/\1/p' "$peer/share/pvfmm/pvfmmConfigVersion.cmake" | head -n 1)
flags="-std=c++17 -O3 -march=native -fopenmp -DNDEBUG" # also for PVFMM, which is mostly templates
# As PVFMM's own build defines them.
defines="-DHAVE_CONFIG_H -DSCTL_QUAD_T=__float128 -DSCTL_HAVE_BLAS -DSCTL_HAVE_LAPACK -DSCTL_HAVE_FFTW -DOMPI_SKIP_MPICXX"
program=$build/pvfmm
if [ ! "$program" -nt bench/peers/pvfmm.cpp ] || [ ! "$program" -nt "$lib/libpvfmm.so" ] || [ ! "$program" -nt include/wakefmm.h ]; then
    "$MPICXX" $flags -Wall -Wextra $defines "-DFLAGS=\"$flags\"" -Iinclude \
        -isystem "$peer/include/pvfmm" bench/peers/pvfmm.cpp -o "$program" -L"$lib" -L"$library" -lpvfmm -lwakefmm \
        ${PVFMM_LIBS:--lfftw3 -lfftw3f -lopenblas} -Wl,-rpath,"$lib:$library"
fi
# As many threads for both libraries (threads=, 2); BLAS is called from PVFMM's own threads.
threads=2
for argument; do case $argument in threads=*) threads=${argument#threads=} ;; esac; done
export OMP_NUM_THREADS="$threads" OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PVFMM_DIR="$build/tables" PVFMM_VERSION="${PVFMM_VERSION:-$version}"
exec "$program" "$@"
