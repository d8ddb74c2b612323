"""Version and log of the library."""

import atexit
import sys
from collections.abc import Callable
from typing import Any

from ._native import ffi, lib
from .codes import LogLevel
from .errors import check

_log: Any = None


def version() -> tuple[int, int, int]:
    """Version of the library."""
    parts = ffi.new("int32_t[3]")
    check(lib.wfmm_version(parts, parts + 1, parts + 2))
    return parts[0], parts[1], parts[2]


def set_log(level: int, function: Callable[[LogLevel, str], None] | None = None) -> None:
    """Sets how much is logged, and where: to `function(level, message)`, or to standard error without one.

    The function may be called from any thread and must not call `set_log`. At the start the level is that of the environment
    variable WAKEFMM_LOG.
    """
    global _log
    if function is None:
        check(lib.wfmm_log_set(level, ffi.NULL, ffi.NULL))
        _log = None
        return
    receive = function

    def forward(level: int, message: Any, _user: Any) -> None:
        receive(LogLevel(level), ffi.string(message).decode("utf-8", "replace"))

    callback = ffi.callback("wfmm_log_fn", forward)
    check(lib.wfmm_log_set(level, callback, ffi.NULL))
    _log = callback


def _stop_log() -> None:
    """Before the interpreter ends, nothing calls into it any more."""
    if _log is not None and not sys.is_finalizing():
        set_log(LogLevel.OFF)


atexit.register(_stop_log)
