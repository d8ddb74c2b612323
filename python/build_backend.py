"""Build backend of the package: maturin, which is handed the declarations of include/wakefmm.h first.

maturin makes the cffi declarations from a file `header.h` in Cargo's target folder. cffi understands declarations and
`#define NAME integer`, but no other directive of the preprocessor, so those are left out here.

The library of the package is that of the crate in `native`, which links what other builds have compiled. It has a soname of its own: a
loader takes a second library of the same soname for the first, and a process may load an installed libwakefmm, of another version, beside
the package.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import maturin
from declarations import declarations
from maturin import *  # noqa: F403  (the hooks of PEP 517 that need no header)

ROOT = Path(__file__).resolve().parent.parent
# What rustc is handed for the library alone: the linker that sets the soname.
RUSTC_ARGS = ["--", "-Clinker-flavor=gcc", f"-Clinker={ROOT}/python/native/link.sh"]
HAS_SONAME = sys.platform.startswith(("linux", "freebsd"))


def target_folder() -> Path:
    """Cargo's target folder for the crate."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "metadata", "--no-deps", "--format-version", "1"]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return Path(json.loads(found.stdout)["target_directory"])


def make_header() -> None:
    """The header of a build by maturin."""
    folder = target_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "header.h").write_text(declarations(), encoding="utf-8")


def settings(given):  # type: ignore[no-untyped-def]
    """Settings of a build: maturin's arguments, those that the caller gave first; maturin reads no other setting."""
    return {"build-args": maturin.get_maturin_pep517_args(given) + (RUSTC_ARGS if HAS_SONAME else [])}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    make_header()
    return maturin.build_wheel(wheel_directory, settings(config_settings), metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    make_header()
    return maturin.build_editable(wheel_directory, settings(config_settings), metadata_directory)


def build_sdist(sdist_directory, config_settings=None):  # type: ignore[no-untyped-def]
    raise NotImplementedError("make dist writes the source archive of the whole library; the package is built inside it")
