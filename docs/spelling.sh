#!/bin/sh
# Spelling of pages, comments and names, by typos with the word list of the field in _typos.toml: British, with -ize.
# typos comes from PATH or from PyPI (build/docs-tools). Where it is not to be had nothing is checked: the script says so in capitals,
# leaves build/spelling.unchecked, which .ci/run repeats in its last lines, and ends with 0.
set -u
cd "$(dirname "$0")/.." || exit 1
version=1.52.0
mkdir -p build && rm -f build/spelling.unchecked
typos=$(command -v typos || echo build/docs-tools/bin/typos)
if [ ! -x "$typos" ]; then
    [ -x build/docs-tools/bin/pip ] || python3 -m venv build/docs-tools >/dev/null 2>&1
    timeout 120 build/docs-tools/bin/pip install -q "typos==$version" >build/spelling.log 2>&1
fi
if [ ! -x "$typos" ]; then
    echo "SPELLING NOT CHECKED: typos $version is neither on PATH nor could it be installed from PyPI" | tee build/spelling.unchecked
    exit 0
fi
"$typos" --format brief . || { echo "spelling: a word that is right goes into _typos.toml"; exit 1; }
echo "spelling: no finding in $(git ls-files | wc -l) files"
