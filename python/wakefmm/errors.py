"""Exceptions by the class of the library's status."""

from typing import Any

from ._native import ffi, lib


class Error(Exception):
    """A call of the library failed. `status` is its number, `name` is the number's name, for example ``WFMM_ERR_INDEX``."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.status = status
        self.name = name
        self.message = message

    def __reduce__(self) -> tuple[type["Error"], tuple[int, str, str]]:
        return type(self), (self.status, self.name, self.message)


class CallError(Error, ValueError):
    """The call was wrong, statuses 1 to 99; nothing was changed."""


class ResourceError(Error, RuntimeError):
    """A resource is missing, statuses 100 to 199; the same call may succeed later."""


class UnusableError(Error, RuntimeError):
    """The object can no longer be used, negative statuses; close it."""


def last_message() -> str:
    """The calling thread's last message of the library."""
    return text(lib.wfmm_last_error)


def text(function: Any, *handle: Any) -> str:
    """What a function with a buffer writes; asked for its length first."""
    length = ffi.new("size_t *")
    check(function(*handle, ffi.NULL, 0, length))
    buffer = ffi.new("char[]", length[0] + 1)
    check(function(*handle, buffer, length[0] + 1, ffi.NULL))
    return str(ffi.string(buffer).decode("utf-8", "replace"))


def check(status: int) -> None:
    """Raises where `status` is not 0."""
    if status == 0:
        return
    kind = UnusableError if status < 0 else CallError if status < 100 else ResourceError
    buffer = ffi.new("char[2048]")
    lib.wfmm_last_error(buffer, 2048, ffi.NULL)
    name = ffi.string(lib.wfmm_status_name(status)).decode()
    raise kind(status, name, ffi.string(buffer).decode("utf-8", "replace"))
