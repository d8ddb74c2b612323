#!/bin/sh
# The recipes by their own tools: fpm builds a host project on the manifest and runs it, rattler-build renders the conda
# recipe, Spack reads its package (without Spack: Python reads it, against stand-ins for Spack's directives).
# Enters: the prefix of an installation, a folder to work in. Tools that are missing are taken from PyPI, or named as missing.
# Leaves: a line each, the exit status.
set -u
cd "$(dirname "$0")/.."
prefix=$(cd "$1" && pwd)
mkdir -p "$2" && work=$(cd "$2" && pwd)
passed=0
failed=0
skipped=0
verdict() { if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "$1: right"; else failed=$((failed + 1)); echo "FAILED: packaging, $1"; fi; }
skip() { skipped=$((skipped + 1)); echo "$1: not to be had, skipped"; }

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | sed -n 1p)
grep -q "^version = \"$version\"" packaging/fpm.toml && grep -q "version: \"$version\"" packaging/conda/recipe.yaml &&
    grep -q "version(\"$version\")" packaging/spack/package.py && grep -q "^version: $version$" CITATION.cff
verdict "the version of Cargo.toml in every recipe" $?

tools=$work/tools
if [ ! -x "$tools/bin/python" ]; then python3 -m venv "$tools" >/dev/null 2>&1; fi
want() { "$tools/bin/python" -c "import $2" 2>/dev/null || timeout 120 "$tools/bin/pip" install -q "$1" >/dev/null 2>&1; }

want fpm==0.12.0 fpm
fpm=$(command -v fpm || { [ -x "$tools/bin/fpm" ] && echo "$tools/bin/fpm"; })
if [ -n "$fpm" ] && command -v gfortran >/dev/null; then
    rm -rf "$work/host" "$work/packaging" "$work/fortran"
    mkdir -p "$work/host/app"
    cp -r packaging fortran "$work"
    cat >"$work/host/fpm.toml" <<'END'
name = "host"
[dependencies]
wakefmm_fortran = { path = "../packaging" }
END
    cat >"$work/host/app/main.f90" <<'END'
program host
    use, intrinsic :: iso_fortran_env, only: real64
    use wakefmm
    implicit none
    real(real64) :: u(3, 1)
    call wfmm_induce_particles(reshape([0._real64, 0._real64, 0._real64], [3, 1]), &
        reshape([0._real64, 0._real64, 1._real64], [3, 1]), reshape([2._real64, 0._real64, 0._real64], [3, 1]), u)
    if (abs(u(2, 1) - 0.25_real64 / (4 * acos(-1._real64))) > 1e-15_real64) stop 1
    print '(a)', 'a host project by fpm'
end program host
END
    (cd "$work/host" && LIBRARY_PATH="$prefix/lib" LD_LIBRARY_PATH="$prefix/lib" timeout 300 "$fpm" run) >"$work/fpm.log" 2>&1 &&
        grep -q "a host project by fpm" "$work/fpm.log" || { tail -20 "$work/fpm.log"; false; }
    verdict "fpm $("$fpm" --version | sed -n 's/^Version: *\([0-9.]*\).*/\1/p')" $?
else
    skip fpm
fi

if want py-rattler-build==0.73.0 rattler_build; then
    "$tools/bin/python" - packaging/conda/recipe.yaml >"$work/conda.log" 2>&1 <<'END'
import sys
from rattler_build import RenderConfig, Stage0Recipe, VariantConfig
variants = VariantConfig({"c_compiler": ["gcc"], "fortran_compiler": ["gfortran"], "rust_compiler": ["rust"]})
rendered = list(Stage0Recipe.from_file(sys.argv[1]).render(variants, RenderConfig()))
print(rendered[0].recipe)
assert len(rendered) == 1
END
    [ $? = 0 ] || { cat "$work/conda.log"; false; }
    verdict "conda (rattler-build)" $?
else
    skip rattler-build
fi

if command -v spack >/dev/null; then
    export SPACK_USER_CONFIG_PATH="$work/spack" SPACK_DISABLE_LOCAL_CONFIG=
    rm -rf "$work/repo" "$work/spack" && spack repo create "$work/repo" wakefmm_local && spack repo add "$work/repo" &&
        mkdir -p "$work/repo/packages/wakefmm" && cp packaging/spack/package.py "$work/repo/packages/wakefmm" && spack info wakefmm
    verdict "Spack" $?
else
    python3 - packaging/spack/package.py "$prefix" <<'END'
import os, sys, types
calls, made = [], []
spack = types.ModuleType("spack.package")
for name in ("license", "version", "depends_on"):
    setattr(spack, name, lambda *a, _name=name, **k: calls.append((_name, a, k)))
spack.MakefilePackage = object
spack.make = lambda *targets: made.append(targets)
sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), spack
scope = {}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), scope)
package = scope["Wakefmm"]()
package.build(None, sys.argv[2])
package.install(None, sys.argv[2])
assert [c[0] for c in calls].count("version") == 1 and ("rust@1.90:",) in [c[1] for c in calls], calls
targets = {t for call in made for t in call if "=" not in t}
missing = [t for t in targets if os.system(f'grep -q "^{t}:" Makefile packaging/*.mk')]
assert not missing, f"no such targets: {missing}"
END
    verdict "Spack recipe by Python (Spack itself is not to be had)" $?
fi
echo "packaging: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
