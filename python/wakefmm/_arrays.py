"""From array-likes to the pointers of one call: one type, one kind of memory, shapes checked."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._dlpack import View, borrow, is_on_device
from ._native import ffi, lib

#: None in a shape: any extent. A name: equal to the others of that name.
Shape = tuple[int | str, ...]

_SUFFIXES = {np.dtype(np.float32): ("_f32", "float *"), np.dtype(np.float64): ("_f64", "double *")}


class Wanted(NamedTuple):
    """An argument: its array or None, and its shape; connectivity holds integers."""

    value: Any
    shape: Shape
    integer: bool = False


class Batch:
    """The arrays of one call. `extent` has the counts, `keep` what must outlive the call when it is borrowed."""

    def __init__(self, wanted: Mapping[str, Wanted], dtype: "np.dtype[Any] | None" = None, stream: int | None = None):
        given = {name: w for name, w in wanted.items() if w.value is not None}
        on_device = {name: is_on_device(w.value) for name, w in given.items()}
        self.on_device = any(on_device.values())
        if self.on_device and not all(on_device.values()):
            host = [name for name, is_there in on_device.items() if not is_there]
            raise ValueError(f"{', '.join(host)}: in host memory, other arrays of the call in device memory")
        if self.on_device:
            self._views = {name: _device(w, name, stream) for name, w in given.items()}
        else:
            self._views = _host(given, dtype)
        self._wanted = wanted
        self.memory = int(lib.WFMM_MEMORY_DEVICE if self.on_device else lib.WFMM_MEMORY_HOST)
        self.dtype = self._real_type()
        self.suffix, self._pointer = _SUFFIXES[self.dtype]
        self.extent: dict[str, int] = {}
        self._extent_of: dict[str, str] = {}
        for name, view in self._views.items():
            self._check_shape(name, view)
        self.keep = {name: view.owner for name, view in self._views.items()} if self.on_device else {}
        self.stream = next((v.stream for v in self._views.values() if v.stream is not None), None)

    def _real_type(self) -> "np.dtype[Any]":
        types = {v.dtype for name, v in self._views.items() if not self._wanted[name].integer}
        if len(types) > 1 or not types <= set(_SUFFIXES):
            raise TypeError(f"arrays of types {', '.join(sorted(map(str, types)))}: all float32 or all float64 are needed")
        return types.pop() if types else np.dtype(np.float64)

    def _check_shape(self, name: str, view: View) -> None:
        shape = self._wanted[name].shape
        say = ", ".join(str(s) for s in shape) + ("," if len(shape) == 1 else "")
        if len(view.shape) != len(shape):
            raise ValueError(f"{name} has shape {view.shape}; ({say}) is needed")
        for extent, symbol in zip(view.shape, shape):
            if isinstance(symbol, int):
                if extent != symbol:
                    raise ValueError(f"{name} has shape {view.shape}; ({say}) is needed")
            elif extent != self.extent.setdefault(symbol, extent):
                known = f"{symbol} = {self.extent[symbol]} of {self._extent_of[symbol]}"
                raise ValueError(f"{name} has shape {view.shape}; ({say}) is needed, with {known}")
            else:
                self._extent_of.setdefault(symbol, name)

    def pointer(self, name: str) -> Any:
        """The address for C; NULL where nothing was given."""
        view = self._views.get(name)
        if view is None:
            return ffi.NULL
        return ffi.cast("int32_t *" if self._wanted[name].integer else self._pointer, view.address)

    def function(self, name: str) -> Any:
        """The twin of a function for the type of these arrays."""
        return getattr(lib, name + self.suffix)


def _device(wanted: Wanted, name: str, stream: int | None) -> View:
    view = borrow(wanted.value, name, stream)
    if wanted.integer and view.dtype != np.dtype(np.int32):
        raise TypeError(f"{name} has type {view.dtype}; int32 is needed in device memory")
    return view


def _host(given: Mapping[str, Wanted], dtype: "np.dtype[Any] | None") -> dict[str, View]:
    arrays = {name: _as_numpy(w.value, name) for name, w in given.items()}
    reals = [a.dtype for name, a in arrays.items() if not given[name].integer]
    single = bool(reals) and all(t == np.float32 for t in reals)
    real = dtype or np.dtype(np.float32 if single else np.float64)
    return {name: _view(_converted(a, given[name].integer, real, name)) for name, a in arrays.items()}


def _refuse_masked(value: Any, name: str) -> None:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked values; an array without them is needed")


def _as_numpy(value: Any, name: str) -> "np.ndarray[Any, Any]":
    _refuse_masked(value, name)
    if not isinstance(value, np.ndarray) and not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def _converted(array: "np.ndarray[Any, Any]", integer: bool, real: "np.dtype[Any]", name: str) -> "np.ndarray[Any, Any]":
    if integer:
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError(f"{name} has type {array.dtype}; integers are needed")
        limits = np.iinfo(np.int32)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise ValueError(f"{name}: point numbers beyond {limits.max}")
        return np.ascontiguousarray(array, dtype=np.int32)
    _require_real(array, name)
    return np.ascontiguousarray(array, dtype=real)


def _require_real(array: "np.ndarray[Any, Any]", name: str) -> None:
    if array.dtype.kind not in "iuf" and array.size:
        raise TypeError(f"{name} has type {array.dtype}; real numbers are needed")


def components(value: Any, name: str, n: int = 3) -> tuple[float, ...]:
    """`n` real numbers as a tuple."""
    array = _as_numpy(value, name)
    _require_real(array, name)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; ({n},) is needed")
    return tuple(float(number) for number in array)


def identities(value: Any, name: str, takes_a_mask: str) -> NDArray[np.int64]:
    """Identities of elements, `(n,)`. A boolean array would be read as the numbers 0 and 1: `takes_a_mask` says what it is for."""
    array = _as_numpy(value, name)
    if array.dtype.kind == "b":
        raise TypeError(f"{name} has type bool; integers are needed. {takes_a_mask} takes a mask")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} has type {array.dtype}; integers are needed")
    limit = np.iinfo(np.int64).max
    if array.size and array.max() > limit:
        raise ValueError(f"{name}: numbers beyond {limit}")
    return np.ascontiguousarray(array, dtype=np.int64).ravel()


def mask_bytes(value: Any, name: str) -> NDArray[np.uint8]:
    """A mask, `(n,)` booleans or integers, as bytes 0 and 1."""
    array = _as_numpy(value, name)
    if array.dtype.kind not in "biu" and array.size:
        raise TypeError(f"{name} has type {array.dtype}; booleans or integers are needed")
    return np.ascontiguousarray(array.ravel() != 0, dtype=np.uint8)


def _view(array: "np.ndarray[Any, Any]") -> View:
    return View(array.ctypes.data, array.shape, array.dtype, False, array)


def output(value: Any, name: str, shape: tuple[int, ...], stream: int | None = None) -> View:
    """A view of an array that the library writes: of the right type and shape already, and not read-only."""
    if is_on_device(value):
        view = borrow(value, name, stream)
        read_only = view.read_only
    else:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{name}: a NumPy array or an array in device memory is needed, not {type(value).__name__}")
        _refuse_masked(value, name)
        if not value.flags.c_contiguous:
            raise ValueError(f"{name}: a C-contiguous array is needed")
        view, read_only = _view(value), not value.flags.writeable
    if view.dtype not in _SUFFIXES:
        raise TypeError(f"{name} has type {view.dtype}; float32 or float64 is needed")
    if view.shape != shape:
        raise ValueError(f"{name} has shape {view.shape}; {shape} is needed")
    if read_only:
        raise ValueError(f"{name}: the array is read-only")
    return view


def suffix_of(view: View) -> tuple[str, str]:
    """The ending of the function's twin and the type of the pointer."""
    return _SUFFIXES[view.dtype]
