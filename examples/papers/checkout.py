"""Makes the Python package importable from this checkout and a library that is built already, where it is not installed. Needs cffi."""

import sys
import types
from pathlib import Path


def load(library: str) -> None:
    """`library`: path of libwakefmm.so. Afterwards `import wakefmm` takes the sources of this checkout with it."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    from cffi import FFI
    from declarations import declarations

    native = types.ModuleType("wakefmm._native")
    ffi = FFI()
    ffi.cdef(declarations())
    native.ffi, native.lib = ffi, ffi.dlopen(str(Path(library).resolve()))  # type: ignore[attr-defined]
    sys.modules["wakefmm._native"] = native
