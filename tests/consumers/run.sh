#!/bin/sh
# Strangers' projects against a fresh install: C by pkg-config, C++17 and Fortran by CMake, Fortran alone by CMake, a package that
# is found twice, Fortran by a plain line, static linking, the drop-in routines in both kinds, the hello and the rings.
# Enters: a folder to work in; the library is built. Leaves: a line for each, the exit status.
set -u
cd "$(dirname "$0")/../.."
root=$(pwd)
mkdir -p "$1" && work=$(cd "$1" && pwd)
prefix=$work/prefix
rm -rf "$prefix" "$work/build" "$work/shared" "$work/static"
mkdir -p "$work/build"
passed=0
failed=0
verdict() { if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: consumer, $1"; fi; }
run() { LD_LIBRARY_PATH=$prefix/lib timeout 300 "$@"; }

make -s --no-print-directory install-files install-fortran PREFIX="$prefix"
verdict "install" $?
missing=
for tool in cmake pkg-config; do command -v $tool >/dev/null || missing="$missing $tool"; done
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >/dev/null 2>&1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
fi

cd "$work/build" || exit 1
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
consumers=$root/tests/consumers
if command -v pkg-config >/dev/null; then
    flags=$(pkg-config --cflags --libs wakefmm)
    cc -std=c11 -Wall -Wextra -Werror "$consumers/c/ring.c" $flags -lm -o ring && run ./ring
    verdict "C by pkg-config" $?
    quick=$root/examples/quickstart/quickstart
    cc -std=c11 -Wall -Wextra -Werror "$quick.c" $flags -lm -o quickstart_c && run ./quickstart_c
    verdict "quick start in C" $?
    c++ -std=c++17 -Wall -Wextra -Werror "$quick.cpp" $flags -o quickstart_cpp && run ./quickstart_cpp
    verdict "quick start in C++" $?
    cc -Wall -Wextra "$root/examples/c/hello.c" $flags -lm -o hello && run ./hello
    verdict "hello in C" $?
    c++ -std=c++17 -O2 -Wall -Wextra -Werror "$root/examples/cpp/leapfrog/leapfrog.cpp" $flags -o leapfrog &&
        run ./leapfrog --steps 4 --layers 1 --around 40 --every 4 --vtk rings >leapfrog.log && [ -s rings_4.vtk ]
    verdict "leapfrogging rings" $?
    run ./leapfrog --help >leapfrog.log 2>&1
    [ $? = 2 ] && grep -q -- "--steps" leapfrog.log
    verdict "leapfrogging rings say what they take" $?
else
    verdict "pkg-config is missing" 1
fi
cc -std=c11 "$consumers/c/ring.c" -I"$prefix/include" "$prefix/lib/libwakefmm.a" -lgcc_s -lpthread -ldl -lm -o ring_static &&
    ./ring_static
verdict "C, static" $?

module=$(echo "$prefix"/include/wakefmm/*/wakefmm.mod)
module=$(dirname "$module")
strict="-std=f2018 -Wall -Wextra -Werror"
gfortran $strict -I"$module" "$root/examples/quickstart/quickstart.f90" -L"$module" -lwakefmm_fortran -L"$prefix/lib" -lwakefmm \
    -o quickstart_f && run ./quickstart_f
verdict "quick start in Fortran" $?
gfortran $strict -I"$module" "$root/examples/fortran/two_cores.f90" -L"$module" -lwakefmm_fortran -L"$prefix/lib" -lwakefmm \
    -o two_cores && run ./two_cores
verdict "two core models in Fortran" $?
for kind in 4 8; do
    gfortran $strict -DREAL_KIND=$kind -I"$module" "$consumers/fortran/wake.F90" -L"$module" -lwakefmm_fortran \
        -L"$prefix/lib" -lwakefmm -o wake_$kind && run ./wake_$kind
    verdict "Fortran by a plain line, real($kind)" $?
    mkdir -p olaf_$kind
    olaf=$root/examples/fortran/olaf
    gfortran $strict -O2 -fopenmp -DREAL_KIND=$kind -I"$module" -J olaf_$kind "$olaf/drop_in.F90" "$olaf/plain_loop.F90" \
        "$olaf/check.F90" -L"$module" -lwakefmm_fortran -L"$prefix/lib" -lwakefmm -o olaf_$kind/check && run olaf_$kind/check
    verdict "drop-in routines, real($kind)" $?
done
gfortran $strict -DREAL_KIND=8 -I"$module" "$consumers/fortran/wake.F90" "$module/libwakefmm_fortran.a" \
    "$prefix/lib/libwakefmm.a" -lgcc_s -lpthread -ldl -lm -o wake_static && ./wake_static
verdict "Fortran, static" $?

if command -v cmake >/dev/null; then
    for static in OFF ON; do
        folder=$work/cmake_$static
        rm -rf "$folder"
        cmake -S "$consumers/cmake" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" -DWAKEFMM_USE_STATIC=$static >cmake.log 2>&1 &&
            cmake --build "$folder" >>cmake.log 2>&1 || { tail -30 cmake.log; false; }
        verdict "CMake, static $static" $?
        for program in ring_c particles wake_r4 wake_r8; do
            "$folder/$program" >"$folder/$program.log" 2>&1 || { cat "$folder/$program.log"; false; }
            verdict "CMake, static $static, $program" $?
        done
        for project in cmake_fortran cmake_twice; do
            folder=$work/${project}_$static
            rm -rf "$folder"
            cmake -S "$consumers/$project" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" -DWAKEFMM_USE_STATIC=$static >cmake.log 2>&1 &&
                cmake --build "$folder" >>cmake.log 2>&1 && "$folder/wake" >>cmake.log 2>&1 || { tail -30 cmake.log; false; }
            verdict "CMake, static $static, $project" $?
        done
    done
else
    verdict "cmake is missing" 1
fi
echo "consumers: $passed passed, $failed failed"
[ $failed = 0 ]
