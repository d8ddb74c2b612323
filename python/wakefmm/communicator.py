"""Distributed sessions: the functions by which their processes (ranks) communicate, mpi4py's or the caller's own."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._native import ffi, lib

_OPERATIONS = ("sum", "min", "max")
_NUMBERS = (np.float64, np.int64)
#: Bytes of one message of MPI.
_PIECE = 1 << 28


class Communicator(Protocol):
    """How the ranks of a distributed session communicate, for transports other than MPI.

    All ranks call each function in the same order, on the thread that calls the library. Arrays are the library's memory, which
    ends with the call. An exception goes to `sys.unraisablehook`, and the library's call is WFMM_ERR_COMMUNICATION; a function
    that fails on some ranks must not leave the others waiting in it. rank: 0 to size - 1. node_rank: number of this process
    among those of its node.
    """

    rank: int
    size: int
    node_rank: int

    def allreduce(self, values: NDArray[Any], operation: str) -> None:
        """Reduces float64 or int64 numbers over all ranks, in place. operation: "sum", "min" or "max"."""

    def allgather(self, mine: NDArray[np.uint8], everyone: NDArray[np.uint8]) -> None:
        """Brings the same number of bytes of each rank to all, `(size, bytes)`."""

    def alltoallv(self, send: Sequence[NDArray[np.uint8]], receive: Sequence[NDArray[np.uint8]]) -> None:
        """Sends `send[r]` to rank r and receives `receive[r]` of it; arrays of rank r may be empty."""

    def barrier(self) -> None:
        """Waits until every rank is there."""


class _Mpi:
    """A communicator of mpi4py. Bytes beyond the range of an int go in pieces."""

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._mpi, self._comm = MPI, comm
        self.rank, self.size = int(comm.Get_rank()), int(comm.Get_size())
        node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.node_rank = int(node.Get_rank())
        node.Free()

    def allreduce(self, values: NDArray[Any], operation: str) -> None:
        operations = dict(zip(_OPERATIONS, (self._mpi.SUM, self._mpi.MIN, self._mpi.MAX)))
        for at in range(0, values.size, _PIECE):
            self._comm.Allreduce(self._mpi.IN_PLACE, values[at : at + _PIECE], operations[operation])

    def allgather(self, mine: NDArray[np.uint8], everyone: NDArray[np.uint8]) -> None:
        self.alltoallv([mine] * self.size, list(everyone))

    def alltoallv(self, send: Sequence[NDArray[np.uint8]], receive: Sequence[NDArray[np.uint8]]) -> None:
        # Only where there is something to send; each begins with the rank after its own.
        requests = []
        for i in range(self.size):
            other = (self.rank + self.size - i) % self.size
            for at in range(0, receive[other].size, _PIECE):
                requests.append(self._comm.Irecv([receive[other][at : at + _PIECE], self._mpi.BYTE], other))
        for i in range(self.size):
            other = (self.rank + i) % self.size
            for at in range(0, send[other].size, _PIECE):
                requests.append(self._comm.Isend([send[other][at : at + _PIECE], self._mpi.BYTE], other))
        self._mpi.Request.Waitall(requests)

    def barrier(self) -> None:
        self._comm.Barrier()


# What the library may still call, by the address of its handle.
_held: dict[int, tuple[Any, Communicator]] = {}


def communicator_to_c(communicator: Any) -> Any:
    """The wfmm_communicator of one of mpi4py or of a `Communicator`, which is held until the library releases it."""
    ranks: Communicator = _Mpi(communicator) if hasattr(communicator, "Allreduce") else communicator
    handle = ffi.new_handle(ranks)
    c = ffi.new("wfmm_communicator *")
    c.struct_size = ffi.sizeof("wfmm_communicator")
    c.rank, c.size, c.node_rank, c.user = ranks.rank, ranks.size, ranks.node_rank, handle
    c.allreduce, c.allgather, c.alltoallv, c.barrier, c.release = _allreduce, _allgather, _alltoallv, _barrier, _release
    _held[_number(handle)] = (handle, ranks)
    return c


def forget_communicator(c: Any) -> None:
    """Forgets a communicator that no session was made of."""
    _held.pop(_number(c.user), None)


def _number(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _of(user: Any) -> Communicator:
    return _held[_number(user)][1]


def _array(pointer: Any, n: int, offset: int = 0, kind: Any = np.uint8) -> NDArray[Any]:
    """`n` numbers of the library's memory; nothing need be there for n = 0."""
    if n == 0:
        return np.empty(0, kind)
    return np.frombuffer(ffi.buffer(ffi.cast("char *", pointer) + offset, n * np.dtype(kind).itemsize), kind)


# One C function each for all sessions: a function of its own could not be freed inside its `release`.


def _call_allreduce(user: Any, values: Any, n: int, kind: int, operation: int) -> int:
    _of(user).allreduce(_array(values, n, kind=_NUMBERS[kind]), _OPERATIONS[operation])
    return 0


def _call_allgather(user: Any, mine: Any, n: int, everyone: Any) -> int:
    ranks = _of(user)
    ranks.allgather(_array(mine, n), _array(everyone, ranks.size * n).reshape(ranks.size, n))
    return 0


def _call_alltoallv(
    user: Any, send: Any, n_sent: Any, sent_at: Any, receive: Any, n_received: Any, received_at: Any, memory: int
) -> int:
    if memory != lib.WFMM_MEMORY_HOST:
        return -1
    ranks = _of(user)
    sent = [_array(send, n_sent[r], sent_at[r]) for r in range(ranks.size)]
    ranks.alltoallv(sent, [_array(receive, n_received[r], received_at[r]) for r in range(ranks.size)])
    return 0


def _call_barrier(user: Any) -> int:
    _of(user).barrier()
    return 0


def _call_release(user: Any) -> None:
    _held.pop(_number(user), None)


_NUMBERS_OF_BYTES = "void *, const int64_t *, const int64_t *"
_allreduce = ffi.callback("int32_t(void *, void *, int64_t, int32_t, int32_t)", _call_allreduce, -1)
_allgather = ffi.callback("int32_t(void *, const void *, int64_t, void *)", _call_allgather, -1)
_alltoallv = ffi.callback(f"int32_t(void *, const {_NUMBERS_OF_BYTES}, {_NUMBERS_OF_BYTES}, int32_t)", _call_alltoallv, -1)
_barrier = ffi.callback("int32_t(void *)", _call_barrier, -1)
_release = ffi.callback("void(void *)", _call_release)
