#!/bin/sh
# The binary interface of this ABI version is written down in tests/abi/v{N}: exported symbols, prototypes, constants, sizes
# and offsets. A change without a new WFMM_ABI_VERSION fails; what was only added is written down by `--write`.
# Enters: the folder of libwakefmm.so, a folder to work in, and --write where the dump is to be renewed.
set -u
cd "$(dirname "$0")/../.."
library=$1
work=$2
mkdir -p "$work"
abi=$(sed -n 's/^#define WFMM_ABI_VERSION //p' include/wakefmm.h)
dump=tests/abi/v$abi
failed=0
fail() { echo "FAILED: ABI: $1"; failed=1; }

soname=$(readelf -d "$library/libwakefmm.so" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
[ "$soname" = "libwakefmm.so.$abi" ] || fail "soname $soname, but WFMM_ABI_VERSION is $abi (Cargo.toml, metadata.capi.library)"
nm -D --defined-only "$library/libwakefmm.so" | awk '{ print $3 }' | LC_ALL=C sort >"$work/symbols"
${CC:-cc} -Iinclude tests/abi/layout.c -o "$work/layout" && "$work/layout" >"$work/layout.txt" || fail "layout.c"
# Prototypes and constants as the compiler sees them, one a line, comments gone; the version of the sources may change.
${CC:-cc} -E -P -Iinclude include/wakefmm.h | tr '\n' ' ' | tr ';' '\n' | sed 's/  */ /g' | grep -o '\(const \)\?[a-z0-9_]* \**wfmm_[a-z0-9_]*(.*' |
    LC_ALL=C sort >"$work/prototypes"
sed -n 's/^#define \(WFMM_[A-Z0-9_]* [-0-9.e]*\)$/\1/p' include/wakefmm.h | grep -v '^WFMM_VERSION_' | LC_ALL=C sort >"$work/constants"

if [ "${3:-}" = --write ]; then
    mkdir -p "$dump" && cp "$work/symbols" "$work/layout.txt" "$work/prototypes" "$work/constants" "$dump"
fi
for part in symbols layout.txt prototypes constants; do
    [ -s "$work/$part" ] || fail "$part is empty"
    diff "$dump/$part" "$work/$part" >"$work/$part.diff" && continue
    cat "$work/$part.diff"
    if grep -q '^<' "$work/$part.diff"; then
        fail "$part: what callers were compiled against is gone or changed: a new WFMM_ABI_VERSION is needed"
    else
        fail "$part: something was added: write it down (make abi)"
    fi
done
# The same in libabigail's terms, where it is installed: a library of empty functions made from the header carries every
# type, the real one the symbols.
if command -v abidw >/dev/null; then
    { echo '#include "wakefmm.h"'; sed 's/$/ { __builtin_trap(); }/' "$work/prototypes"; } >"$work/header.c"
    ${CC:-cc} -g -w -Iinclude -shared -fPIC -Wl,-soname,"$soname" "$work/header.c" -o "$work/header.so" || fail "the header as a library"
    describe() { abidw --no-show-locs --no-comp-dir-path --no-corpus-path --no-elf-needed "$1" | sed "s/ comp-dir-path='[^']*'//; s/ path='[^']*'/ path='header.c'/"; }
    if [ "${3:-}" = --write ]; then
        describe "$work/header.so" >"$dump/header.abi" && describe "$library/libwakefmm.so" >"$dump/library.abi"
    fi
    abidiff "$dump/header.abi" "$work/header.so" || fail "abidiff: types of the header"
    abidiff "$dump/library.abi" "$library/libwakefmm.so" || fail "abidiff: symbols of the library"
else
    echo "abidw and abidiff are not installed: compared without libabigail"
fi
[ $failed = 0 ] && echo "ABI $abi: $(wc -l <"$work/symbols") symbols, layouts, prototypes and constants unchanged"
[ $failed = 0 ]
