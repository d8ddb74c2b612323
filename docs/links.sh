#!/bin/sh
# Every relative link of the manual and the README leads to a file. Statuses on the page of errors are those of the header. The
# programs on the pages are those of examples/quickstart, which the tests run.
cd "$(dirname "$0")/.." || exit 1
failed=0
for page in README.md docs/*.md docs/dev/*.md; do
    for link in $(grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^[a-z]*://'); do
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: $link leads nowhere"; failed=1; }
    done
done
sed -n 's/^#define \(WFMM_ERR_[A-Z_]*\) .*/\1/p' include/wakefmm.h | while read -r name; do
    grep -q "${name#WFMM_ERR}" docs/errors.md || { echo "docs/errors.md: $name is missing"; exit 1; }
done || failed=1
program() { # PAGE LANGUAGE FILE
    sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$1" | cmp -s - "examples/quickstart/quickstart.$3" ||
        { echo "$1: the program in $2 is not examples/quickstart/quickstart.$3"; failed=1; }
}
program README.md fortran f90
program docs/quickstart.md fortran f90
program docs/quickstart.md c c
program docs/quickstart.md cpp cpp
program docs/quickstart.md python py
exit $failed
