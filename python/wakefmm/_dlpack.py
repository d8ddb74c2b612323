"""Arrays of other libraries without a copy: DLPack and the CUDA array interface.

Both describe an array by address, shape, strides and type. What is borrowed stays alive as long as the `owner` of the view
does: an unconsumed DLPack capsule frees its tensor when the capsule itself is freed.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_ON_DEVICE = (CUDA, CUDA_MANAGED)
#: The legacy default stream in DLPack and in the CUDA array interface.
LEGACY_STREAM = 1


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """`DLTensor`, the first member of `DLManagedTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]

_CODES = {0: "i", 1: "u", 2: "f"}


@dataclass(frozen=True)
class View:
    """An array that belongs to someone else. `stream` orders work on it, None: it is ready."""

    address: int
    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    on_device: bool
    owner: object
    stream: int | None = None
    read_only: bool = False


def is_on_device(value: object) -> bool:
    """Whether an array is in the memory of a CUDA device, managed memory included."""
    if hasattr(value, "__dlpack_device__"):
        return int(value.__dlpack_device__()[0]) in _ON_DEVICE
    return hasattr(value, "__cuda_array_interface__")


def borrow(value: Any, name: str, stream: int | None = None) -> View:
    """A view of an array that has `__dlpack__` or `__cuda_array_interface__`; rows must follow one another.

    A producer of DLPack is told the consumer's stream (None: the legacy default stream) and makes the array ready on it.
    """
    if hasattr(value, "__dlpack__"):
        on_device = is_on_device(value)
        capsule = value.__dlpack__(stream=stream or LEGACY_STREAM) if on_device else value.__dlpack__()
        return _of_capsule(capsule, name)
    return _of_interface(value.__cuda_array_interface__, value, name)


def _of_capsule(capsule: object, name: str) -> View:
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    code = _CODES.get(tensor.dtype.code)
    if code is None or tensor.dtype.lanes != 1:
        raise TypeError(f"{name}: neither real nor integer numbers")
    dtype = np.dtype(f"{code}{tensor.dtype.bits // 8}")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        _require_rows(shape, tuple(tensor.strides[i] for i in range(tensor.ndim)), name)
    address = (tensor.data or 0) + tensor.byte_offset
    return View(address, shape, dtype, tensor.device.kind in _ON_DEVICE, capsule)


def _of_interface(interface: dict[str, Any], owner: object, name: str) -> View:
    address, read_only = interface["data"]
    dtype = np.dtype(interface["typestr"])
    shape = tuple(int(n) for n in interface["shape"])
    strides = interface.get("strides")
    if strides is not None:
        if any(s % dtype.itemsize for s in strides):
            raise ValueError(f"{name}: strides {strides} are not multiples of {dtype.itemsize} bytes")
        _require_rows(shape, tuple(s // dtype.itemsize for s in strides), name)
    if interface.get("mask") is not None:
        raise ValueError(f"{name}: masked arrays are not accepted")
    return View(int(address or 0), shape, dtype, True, owner, interface.get("stream"), bool(read_only))


def _require_rows(shape: tuple[int, ...], strides: tuple[int, ...], name: str) -> None:
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected and 0 not in shape:
            raise ValueError(f"{name}: strides {strides} of shape {shape} are not those of a C-contiguous array")
        expected *= extent
