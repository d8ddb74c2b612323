#!/bin/sh
# Installs the package into a fresh environment by pip, checks its types and runs its tests.
# Enters: the path of a folder to work in. Leaves: lines of pip, mypy and pytest; a line and 0 where Python or PyPI is not to be had.
set -u
cd "$(dirname "$0")" || exit 1
here=$(pwd)
mkdir -p "$1" && work=$(cd "$1" && pwd)
python=${PYTHON:-python3}
skip() { echo "test-python: SKIPPED, $1"; exit 0; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "Python 3.10 or newer is missing"
rm -rf "$work/venv"
"$python" -m venv "$work/venv" >"$work/venv.log" 2>&1 || skip "python3-venv is missing"
bin=$work/venv/bin
timeout 300 "$bin/pip" install -q --disable-pip-version-check -r requirements-test.txt >"$work/requirements.log" 2>&1 || {
    tail -2 "$work/requirements.log"
    skip "PyPI cannot be reached, or lacks a wheel for this Python"
}
# The pinned tools of above build the package: nothing else is fetched. The library that other tests have is linked, not compiled again.
PATH=$bin:$PATH timeout 900 "$bin/pip" install -q --disable-pip-version-check --no-build-isolation . >"$work/install.log" 2>&1 || {
    tail -20 "$work/install.log"
    exit 1
}
# The installed package is tested, not the sources beside this script.
mkdir -p "$work/tests" || exit 1
(cd ../examples/turbulence && cp spectral.py particles.py test_turbulence.py "$work/tests") || exit 1
cp tests/*.py "$work/tests" && cd "$work" || exit 1
"$bin/mypy" --config-file "$here/pyproject.toml" -p wakefmm && timeout 600 "$bin/python" -m pytest -q tests &&
    "$bin/python" "$here/../examples/quickstart/quickstart.py"
