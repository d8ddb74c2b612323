#!/bin/sh
# `cargo cinstall` against `make install`: soname, exported symbols, headers, what pkg-config says, and a C program by its
# pkg-config file. Enters: the prefix of `make install`, a folder to install to. Leaves: a line each, the exit status.
set -u
cd "$(dirname "$0")/.."
ours=$1
mkdir -p "$2" && theirs=$(cd "$2" && pwd)
command -v cargo-cinstall >/dev/null || { echo "cargo-c is not installed (cargo install cargo-c): nothing was compared"; exit 0; }
failed=0
same() { if [ "$2" = "$3" ]; then echo "$1: $2"; else echo "FAILED: $1: make install has '$2', cargo cinstall '$3'"; failed=1; fi; }

${CARGO:-cargo} cinstall --release --prefix="$theirs" --libdir=lib || exit 1
soname() { readelf -d "$1/lib/libwakefmm.so" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p'; }
symbols() { nm -D --defined-only "$1/lib/libwakefmm.so" | awk '{ print $3 }' | LC_ALL=C sort | cksum; }
flags() { PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs wakefmm | sed "s|$(cd "$1" && pwd)|PREFIX|g; s|/lib/pkgconfig/\.\./\.\.||g; s/ *$//"; }
number() { PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --modversion wakefmm; }
same soname "$(soname "$ours")" "$(soname "$theirs")"
same "exported symbols" "$(symbols "$ours")" "$(symbols "$theirs")"
same "pkg-config" "$(flags "$ours")" "$(flags "$theirs")"
same "version" "$(number "$ours")" "$(number "$theirs")"
for file in include/wakefmm.h include/wakefmm.hpp include/wakefmm/wakefmm.f90; do
    same "$file" "$(cksum <"$ours/$file")" "$(cksum <"$theirs/$file" 2>/dev/null || echo missing)"
done
PKG_CONFIG_PATH=$theirs/lib/pkgconfig; export PKG_CONFIG_PATH
${CC:-cc} tests/consumers/c/ring.c $(pkg-config --cflags --libs wakefmm) -lm -o "$theirs/ring" &&
    LD_LIBRARY_PATH=$theirs/lib "$theirs/ring" || { echo "FAILED: a C program against cargo cinstall"; failed=1; }
exit $failed
