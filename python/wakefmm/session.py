"""Sessions: back end, device and threads."""

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from ._native import ffi, lib
from .codes import Status
from .communicator import communicator_to_c, forget_communicator
from .errors import Error, check, text
from .options import SessionOptions, to_c


class Handle:
    """A handle of the library that ends with its object, with `close` or at the end of a `with` block.

    destroy: ends what a handle's address holds, and returns a status.
    """

    def __init__(self, handle: Any, destroy: Callable[[Any], int]) -> None:
        self._address = handle
        self._destroy = destroy
        self._finalizer = weakref.finalize(self, destroy, handle)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._finalizer.alive

    @property
    def _c(self) -> Any:
        if self.closed:
            raise ValueError(f"the {type(self).__name__.lower()} is closed")
        return self._address[0]

    def close(self) -> None:
        """Frees what the object holds; a second call does nothing.

        While another thread or a velocity function uses the object this is a `CallError`, WFMM_ERR_BUSY, and it stays open.
        """
        # Of two threads that close at the same time only one gets something here.
        if self._finalizer.detach() is None:
            return
        status = self._destroy(self._address)
        if status != 0:
            self._finalizer = weakref.finalize(self, self._destroy, self._address)
        check(status)

    def __repr__(self) -> str:
        name = type(self).__name__
        if self.closed:
            return f"{name}(closed)"
        try:
            return f"{name}({self._summary()})"
        except Error as error:
            return f"{name}({'busy' if error.status == Status.BUSY else error.name})"

    def _summary(self) -> str:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Session(Handle):
    """Back end, device and threads; any number of plans, flows and threads may share one.

    Plans and flows without a session share a default one.
    """

    def __init__(self, options: SessionOptions | None = None) -> None:
        handle = ffi.new("wfmm_session **")
        check(lib.wfmm_session_create(to_c(options), handle))
        self._begin(handle, options)

    def _begin(self, handle: Any, options: SessionOptions | None) -> None:
        super().__init__(handle, lib.wfmm_session_destroy)
        self.options = options or SessionOptions()

    @classmethod
    def distributed(cls, communicator: Any, options: SessionOptions | None = None) -> "Session":
        """A session of several processes (ranks): each hands over its own sources and targets, and gets fields at its targets.

        communicator: one of mpi4py, or a `Communicator`. All ranks make the session together, and calls of its plans and flows are
        collective. Messages go through the communicator itself: hand over a duplicate, `comm.Dup()`, where others use it, too, and
        free it after the session and its last plan or flow.
        """
        handle = ffi.new("wfmm_session **")
        ranks = communicator_to_c(communicator)
        status = lib.wfmm_session_create_distributed(to_c(options), ranks, handle)
        if status != 0:
            forget_communicator(ranks)
        check(status)
        session = cls.__new__(cls)
        session._begin(handle, options)
        return session

    def __enter__(self) -> "Session":
        return self

    def _summary(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """What the session computes on, in one line."""
        return text(lib.wfmm_session_describe, self._c)

    def register(self, array: "np.ndarray[Any, Any]") -> None:
        """Page-locks an array of results, so that fields cross the bus straight into it; without a GPU nothing happens.

        `unregister` must come before the array is freed.
        """
        check(lib.wfmm_session_register(self._c, ffi.cast("void *", array.ctypes.data), array.nbytes))

    def unregister(self, array: "np.ndarray[Any, Any]") -> None:
        """Ends what `register` began."""
        check(lib.wfmm_session_unregister(self._c, ffi.cast("void *", array.ctypes.data)))


def handle_of(session: Session | None) -> Any:
    """The session's handle; NULL, the default session, for None."""
    return ffi.NULL if session is None else session._c
