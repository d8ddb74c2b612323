#!/bin/sh
# The manual as pages by MkDocs; a link or an anchor that leads nowhere, or a page that the menu lacks, is an error.
# MkDocs comes from PATH or from PyPI; where it is not to be had, the script says so and leaves 0 (links.sh still checks).
# Enters: nothing. Leaves: build/site.
set -u
cd "$(dirname "$0")/.."
mkdocs=$(command -v mkdocs || echo build/docs-tools/bin/mkdocs)
if [ ! -x "$mkdocs" ]; then
    python3 -m venv build/docs-tools >/dev/null 2>&1 && timeout 120 build/docs-tools/bin/pip install -q mkdocs==1.6.1 >/dev/null 2>&1
fi
if [ ! -x "$mkdocs" ]; then
    echo "manual: MkDocs is not to be had, no pages were made"
    exit 0
fi
# Pages keep their relative paths, so that links to headers and examples hold.
rm -rf build/manual && mkdir -p build/manual
for file in $(git ls-files README.md CHANGELOG.md CONTRIBUTING.md CITATION.cff LICENSE 'LICENSE-*' docs include fortran examples packaging tests/consumers); do
    mkdir -p "build/manual/$(dirname "$file")" && cp "$file" "build/manual/$file"
done
# Not --quiet: what is not logged is not counted as an error.
"$mkdocs" build --strict --config-file packaging/mkdocs.yml >build/docs.log 2>&1 || { cat build/docs.log; exit 1; }
echo "manual: build/site/index.html"
