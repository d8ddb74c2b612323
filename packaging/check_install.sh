#!/bin/sh
# `make install` under other conditions than the usual ones: many jobs, spaces in names, a narrow umask, LIBDIR of two components,
# compilers that write no module or are missing, an older version in the same place, no cargo.
# Enters: the folder of the built library, a folder to work in. Leaves: a line each, the exit status.
set -u
cd "$(dirname "$0")/.."
release=$(cd "$1" && pwd)
rm -rf "$2"
mkdir -p "$2" && work=$(cd "$2" && pwd)
passed=0
failed=0
verdict() {
    if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "$1: right"; else failed=$((failed + 1)); tail -5 "$work/log"; echo "FAILED: install, $1"; fi
}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | sed -n 1p)
abi=$(sed -n 's/^#define WFMM_ABI_VERSION \([0-9]*\).*/\1/p' include/wakefmm.h)
# Calls of this make would hand their jobs and variables on.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# What stands for cargo here: it takes a second, and the library is there only then. What must not be called ends with an error.
cat >"$work/late" <<END
#!/bin/sh
sleep 1
mkdir -p "\$CARGO_TARGET_DIR/release" && cp "$release/libwakefmm.so" "$release/libwakefmm.a" "\$CARGO_TARGET_DIR/release"
END
printf '#!/bin/sh\nexit 1\n' >"$work/never"
chmod +x "$work/late" "$work/never"
late() { CARGO_TARGET_DIR="$work/a folder" make -s --no-print-directory "$@" CARGO="$work/late" >"$work/log" 2>&1; }
again() { CARGO_TARGET_DIR="$work/a folder" make -s --no-print-directory "$@" CARGO="$work/never" >"$work/log" 2>&1; }

prefix="$work/a prefix"
(umask 077 && late -j8 install PREFIX="$prefix" MPI_BUILD="$work/mpi") && [ -f "$prefix/lib/libwakefmm.so" ]
verdict "many jobs, a build folder and a prefix with spaces" $?
[ -d "$prefix" ] && [ -z "$(find "$prefix" ! -type l ! -perm -044)" ] && [ -z "$(find "$prefix" -type d ! -perm -055)" ]
verdict "files that all may read, with umask 077" $?
[ ! -e "$work/mpi" ]
verdict "nothing is written to the build folder of the MPI layer" $?
differ=0
for text in LICENSE LICENSE-MIT LICENSE-APACHE LICENSE-THIRD-PARTY; do cmp -s $text "$prefix/share/doc/wakefmm/$text" || differ=1; done
verdict "texts of licenses" $differ

# Over an older version of the same ABI, and one of another ABI, which programs may need.
lib=$prefix/lib
mv "$lib/libwakefmm.so.$version" "$lib/libwakefmm.so.0.0.9" && ln -sf libwakefmm.so.0.0.9 "$lib/libwakefmm.so.$abi"
echo another >"$lib/libwakefmm.so.0.0.1" && ln -sf libwakefmm.so.0.0.1 "$lib/libwakefmm.so.0"
mkdir -p "$prefix/include/wakefmm/gfortran-1" && echo old >"$prefix/include/wakefmm/wakefmm.f90"
again install-files install-fortran install-mpi PREFIX="$prefix" MPICC=no-mpicc FC=no-fortran
verdict "a second time, without cargo, MPI and Fortran" $?
[ ! -e "$lib/libwakefmm.so.0.0.9" ] && [ -e "$lib/libwakefmm.so.$abi" ] && [ -e "$lib/libwakefmm.so.0" ] &&
    ! ls "$lib"/libwakefmm_mpi* "$lib/pkgconfig/wakefmm-mpi.pc" "$prefix/include/wakefmm"/*-* >/dev/null 2>&1
verdict "no parts of an older version, and another ABI as it was" $?
again uninstall PREFIX="$prefix" && [ -z "$(find "$prefix" ! -type d)" ]
verdict "uninstall leaves no file" $?

# The options of this compiler are not those of gfortran, and it keeps what a module has to itself.
printf '#!/bin/sh\n[ "$1" != -dumpversion ] || { echo 9; exit; }\nfor file; do :; done\necho >"$file"\n' >"$work/strangeft"
chmod +x "$work/strangeft"
again install-fortran PREFIX="$work/strange" FC="$work/strangeft" && grep -q "source only" "$work/log" && [ ! -e "$work/strange" ]
verdict "a Fortran compiler that writes no module" $?

deep=lib/x86_64-linux-gnu
again install-files PREFIX="$work/deep" LIBDIR=$deep && mv "$work/deep" "$work/moved"
verdict "LIBDIR of two components, moved" $?
moved=$work/moved/$deep
if command -v pkg-config >/dev/null; then
    ${CC:-cc} tests/consumers/c/ring.c $(PKG_CONFIG_PATH="$moved/pkgconfig" pkg-config --cflags --libs wakefmm) -lm -o "$work/ring" \
        >"$work/log" 2>&1 && LD_LIBRARY_PATH="$moved" "$work/ring"
    verdict "LIBDIR of two components, pkg-config" $?
else
    echo "pkg-config: not to be had, skipped"
fi
if command -v cmake >/dev/null; then
    cmake -S tests/consumers/cmake_fortran -B "$work/cmake" -Dwakefmm_DIR="$moved/cmake/wakefmm" >"$work/log" 2>&1 &&
        cmake --build "$work/cmake" >>"$work/log" 2>&1 && "$work/cmake/wake"
    verdict "LIBDIR of two components, CMake" $?
else
    echo "cmake: not to be had, skipped"
fi
! again install-files PREFIX="$work/absolute" LIBDIR=/usr/lib64 && [ ! -e "$work/absolute" ]
verdict "LIBDIR that is no path below the prefix" $?

# A stand-in for ldconfig names the folder of the installation among those of the loader, and says when it is called for its cache.
if [ "$(id -u)" = 0 ]; then
    printf '#!/bin/sh\n[ $# = 0 ] && echo called >>"%s/called" || echo "%s/own/lib: (from here)"\n' "$work" "$work" >"$work/ldconfig"
    chmod +x "$work/ldconfig"
    again install-files PREFIX="$work/own" LDCONFIG="$work/ldconfig" && [ -e "$work/called" ] && rm "$work/called" &&
        again install-files PREFIX="$work/other" LDCONFIG="$work/ldconfig" &&
        again install-files DESTDIR="$work/stage" PREFIX="$work/own" LDCONFIG="$work/ldconfig" && [ ! -e "$work/called" ]
    verdict "ldconfig as root in a folder of the loader, not elsewhere" $?
fi
echo "install: $passed passed, $failed failed"
[ $failed = 0 ]
