"""Flows: vortex elements, tracers and dust that move step by step."""

import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from . import _arrays
from ._arrays import Batch, Wanted, output, suffix_of
from ._native import ffi, lib
from .codes import Kind, Quantity
from .errors import check
from .options import Camera, FlowOptions, PlanOptions, defaults, from_c, to_c
from .plan import Input
from .report import Diagnostics, Report, read_report, to_diagnostics
from .session import Handle, Session, handle_of

#: `function(time, position, velocity)`: adds its own velocity to `velocity`, `(n, 3)`, at `position`, `(n, 3)`, which is read-only.
#: NumPy arrays, or `DeviceRows` where the session was made for CUDA.
VelocityFunction = Callable[[float, Any, Any], None]

_THREE_A_ROW = (Quantity.POSITION, Quantity.STRENGTH, Quantity.VELOCITY)
_A_ROW_A_POINT = (Quantity.POSITION, Quantity.VELOCITY)

Real = TypeVar("Real", np.float32, np.float64)


def _destroy(handle: Any) -> int:
    return int(lib.wfmm_flow_destroy(handle))


class DeviceRows:
    """float64 numbers `(n, 3)` of a flow in device memory, during a call of the velocity function.

    `cupy.asarray(rows)` or `torch.as_tensor(rows, device="cuda")` is a view. Work on it belongs on `stream`, a `cudaStream_t`.
    After the call no more views can be made, and those that were made must not be used: copy what is to be kept.
    """

    def __init__(self, address: int, n: int, stream: int) -> None:
        self.stream = stream
        self._interface: dict[str, Any] | None = {
            "shape": (n, 3),
            "typestr": "<f8",
            "data": (address, False),
            "version": 3,
            "stream": stream,
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._interface is None:
            raise ValueError("the call of the velocity function is over, and its arrays with it; copy what is to be kept")
        return self._interface

    def _end(self) -> None:
        self._interface = None


def _add_on_device(add: VelocityFunction, time: float, n: int, position: Any, velocity: Any, stream: Any) -> None:
    number = int(ffi.cast("uintptr_t", stream))
    both = [DeviceRows(int(ffi.cast("uintptr_t", a)), n, number) for a in (position, velocity)]
    try:
        add(time, *both)
    finally:
        for rows in both:
            rows._end()


def _add_on_host(add: VelocityFunction, time: float, n: int, position: Any, velocity: Any) -> None:
    """The library's memory ends with the flow: the function gets copies, which it may keep."""
    x, u = (np.frombuffer(ffi.buffer(a, 24 * n), np.float64).reshape(n, 3) for a in (position, velocity))
    copy_of_x, copy_of_u = x.copy(), u.copy()
    copy_of_x.flags.writeable = False
    add(time, copy_of_x, copy_of_u)
    u[:] = copy_of_u


def _values(out: Any, n: int, quantity: int) -> tuple[Any, str, Any]:
    """The array of a quantity, the ending of the function that writes it and its address."""
    shape = (n, 3) if quantity in _THREE_A_ROW else (n,)
    values = np.empty(shape) if out is None else out
    view = output(values, "out", shape)
    if view.on_device:
        raise ValueError("out: an array in host memory is needed")
    suffix, pointer = suffix_of(view)
    return values, suffix, ffi.cast(pointer, view.address)


class Flow(Handle):
    """Vortex elements, tracers and dust that move step by step; the state is float64 where the session computes.

    One thread at a time. plan_options are those of the sums, options those of the motion. Positions are lengths, `(n, 3)`.
    """

    def __init__(
        self,
        plan_options: PlanOptions | None = None,
        options: FlowOptions | None = None,
        *,
        session: Session | None = None,
    ) -> None:
        handle = ffi.new("wfmm_flow **")
        check(lib.wfmm_flow_create(handle_of(session), to_c(plan_options), to_c(options), handle))
        self._begin(handle)

    def _begin(self, handle: Any) -> None:
        super().__init__(handle, _destroy)
        self._callback: Any = None
        self._raised: BaseException | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, session: Session | None = None) -> "Flow":
        """A flow from a file of `save`, which goes on where that one was; the velocity function is set again by the caller."""
        handle = ffi.new("wfmm_flow **")
        check(lib.wfmm_flow_load(handle_of(session), os.fsencode(path), handle))
        flow = cls.__new__(cls)
        flow._begin(handle)
        return flow

    def __enter__(self) -> "Flow":
        return self

    def _summary(self) -> str:
        return f"time={self.time}, step={self.step}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole flow to an .npz file of NumPy arrays, which `load` reads."""
        check(lib.wfmm_flow_save(self._c, os.fsencode(path)))

    def set_particles(self, position: Input, strength: Input, *, core_radius: Input | None = None) -> None:
        """Sets the vortex particles. position, strength: `(n, 3)`. core_radius: `(n,)`, or None: that of the plan options."""
        self._particles("set", position, strength, core_radius)

    def add_particles(self, position: Input, strength: Input, *, core_radius: Input | None = None) -> None:
        """Appends vortex particles; as `set_particles`."""
        self._particles("add", position, strength, core_radius)

    def set_filaments(
        self, points: Input, connectivity: Input, circulation: Input, *, core_radius: Input | None = None
    ) -> None:
        """Sets the segments whose points move; arrays as in `Plan.set_segments`."""
        self._segments("set_filaments", points, connectivity, circulation, core_radius)

    def add_filaments(
        self, points: Input, connectivity: Input, circulation: Input, *, core_radius: Input | None = None
    ) -> None:
        """Appends filaments with points of their own; as `set_filaments`."""
        self._segments("add_filaments", points, connectivity, circulation, core_radius)

    def set_bound_segments(
        self, points: Input, connectivity: Input, circulation: Input, *, core_radius: Input | None = None
    ) -> None:
        """Sets the segments that induce and do not move; arrays as in `Plan.set_segments`."""
        self._segments("set_bound_segments", points, connectivity, circulation, core_radius)

    def set_tracers(self, position: Input) -> None:
        """Sets the points that move with the fluid, `(n, 3)`."""
        self._call("set_tracers", "position", position=Wanted(position, ("n", 3)))

    def add_tracers(self, position: Input) -> None:
        """Appends points that move with the fluid, `(n, 3)`."""
        self._call("add_tracers", "position", position=Wanted(position, ("n", 3)))

    def set_dust(self, position: Input, diameter: Input, density: Input, *, velocity: Input | None = None) -> None:
        """Sets the dust. position: `(n, 3)`, length. diameter: `(n,)`, length, > 0. density: `(n,)`, mass/length^3, > 0. velocity:
        `(n, 3)`, length/time, or None: at rest."""
        self._dust("set", position, velocity, diameter, density)

    def add_dust(self, position: Input, diameter: Input, density: Input, *, velocity: Input | None = None) -> None:
        """Appends dust; as `set_dust`."""
        self._dust("add", position, velocity, diameter, density)

    def remove(self, kind: int, identity: Input) -> None:
        """Removes elements of a kind by identity, `(n,)` integers as `get` returns them."""
        numbers = _arrays.identities(identity, "identity", "remove_mask")
        pointer = ffi.cast("int64_t *", numbers.ctypes.data)
        check(lib.wfmm_flow_remove(self._c, kind, numbers.size, pointer, lib.WFMM_MEMORY_HOST))

    def remove_mask(self, kind: int, mask: Input) -> None:
        """Removes the elements of a kind where mask, `(n,)` booleans or integers in the order of `get`, is true or not 0."""
        flags = _arrays.mask_bytes(mask, "mask")
        pointer = ffi.cast("uint8_t *", flags.ctypes.data)
        check(lib.wfmm_flow_remove_mask(self._c, kind, flags.size, pointer, lib.WFMM_MEMORY_HOST))

    def set_free_stream(self, velocity: Input) -> None:
        """Sets the velocity far away, three components, length/time."""
        vector = ffi.new("double[3]", _arrays.components(velocity, "velocity"))
        check(lib.wfmm_flow_set_free_stream(self._c, vector))

    def set_velocity_function(self, function: VelocityFunction | None) -> None:
        """Sets a function that adds its own velocity at all points of every evaluation; None removes it.

        An exception in it stops the step, which is then as if it had not begun, and is raised by the call that moved the flow.
        On a session made for CUDA both arrays are `DeviceRows`, which end with the call. Else they are NumPy arrays that the
        function may keep: position a read-only copy, velocity a copy that is read when the function returns.
        """
        if function is None:
            check(lib.wfmm_flow_set_velocity_callback(self._c, ffi.NULL, ffi.NULL))
            self._callback = None
            return
        add = function

        def forward(time: float, n: int, position: Any, velocity: Any, memory: int, stream: Any, _user: Any) -> int:
            try:
                if memory == lib.WFMM_MEMORY_DEVICE:
                    _add_on_device(add, time, n, position, velocity, stream)
                else:
                    _add_on_host(add, time, n, position, velocity)
            except BaseException as error:
                self._raised = error
                return int(lib.WFMM_ERR_CALLBACK)
            return 0

        callback = ffi.callback("wfmm_velocity_fn", forward)
        check(lib.wfmm_flow_set_velocity_callback(self._c, callback, ffi.NULL))
        self._callback = callback

    def advance(self, dt: float, steps: int = 1) -> None:
        """Moves everything by `steps` steps of `dt`; a step that fails leaves the flow as it was before that step."""
        self._check(lib.wfmm_flow_advance(self._c, dt, steps))

    @property
    def time(self) -> float:
        """The time that has passed."""
        return float(self._time()[0])

    @property
    def step(self) -> int:
        """The number of steps that were made."""
        return int(self._time()[1])

    def counts(self, kind: int) -> tuple[int, int]:
        """Numbers of elements of a kind and of their points."""
        n = ffi.new("int64_t[2]")
        check(lib.wfmm_flow_counts(self._c, kind, n, n + 1))
        return n[0], n[1]

    @overload
    def get(self, kind: int, quantity: int, *, out: None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...
    @overload
    def get(self, kind: int, quantity: int, *, out: NDArray[Real]) -> tuple[NDArray[Real], NDArray[np.int64]]: ...
    def get(self, kind: int, quantity: int, *, out: Any = None) -> tuple[Any, NDArray[np.int64]]:
        """A quantity of all elements of a kind, `(n, 3)` or `(n,)`, and their identities, `(n,)`.

        Positions and velocities of filaments and bound segments have a row a point, all else a row an element. out: a NumPy array
        of float32 or float64 to write instead of a new one.
        """
        elements, points = self.counts(kind)
        n = points if quantity in _A_ROW_A_POINT else elements
        values, suffix, pointer = _values(out, n, quantity)
        identity = np.empty(n, dtype=np.int64)
        pointers = pointer, ffi.cast("int64_t *", identity.ctypes.data)
        function = getattr(lib, "wfmm_flow_get" + suffix)
        self._check(function(self._c, kind, quantity, n, *pointers, lib.WFMM_MEMORY_HOST))
        return values, identity

    @overload
    def get_selected(self, kind: int, quantity: int, identity: Input, *, out: None = None) -> NDArray[np.float64]: ...
    @overload
    def get_selected(self, kind: int, quantity: int, identity: Input, *, out: NDArray[Real]) -> NDArray[Real]: ...
    def get_selected(self, kind: int, quantity: int, identity: Input, *, out: Any = None) -> Any:
        """A quantity of the elements (or points) of a kind with these identities, `(n,)` integers: `(n, 3)` or `(n,)`.

        out: as in `get`. Rows that a mask names are `values[mask]` of what `get` returns.
        """
        numbers = _arrays.identities(identity, "identity", "values[mask] of get")
        values, suffix, pointer = _values(out, numbers.size, quantity)
        pointers = ffi.cast("int64_t *", numbers.ctypes.data), pointer
        function = getattr(lib, "wfmm_flow_get_selected" + suffix)
        self._check(function(self._c, kind, quantity, numbers.size, *pointers, lib.WFMM_MEMORY_HOST))
        return values

    def connectivity(self, kind: int) -> NDArray[np.int32]:
        """The point numbers of filaments or bound segments, `(n, 2)`, counted from `index_base` of the plan options."""
        n = self.counts(kind)[0]
        ends = np.empty((n, 2), dtype=np.int32)
        pointer = ffi.cast("int32_t *", ends.ctypes.data)
        check(lib.wfmm_flow_get_connectivity(self._c, kind, n, pointer, lib.WFMM_MEMORY_HOST))
        return ends

    def velocity(self, target: Input, *, gradient: bool = False, out: Any = None, out_gradient: Any = None) -> Any:
        """The velocity of the fluid at any points, `(m, 3)`: induced, free stream, and what the velocity function adds.

        With `gradient=True` also the gradient of the induced part, `(m, 3, 3)`, `[k, i, j]` = du_i/dx_j. out, out_gradient: arrays
        of the targets' type to write instead of new ones, in host or device memory.
        """
        host_type = None if out is not None or out_gradient is not None else np.dtype(np.float64)
        batch = Batch({"target": Wanted(target, ("m", 3))}, host_type)
        m = batch.extent["m"]
        given = {"out": (out, (m, 3))} | ({"out_gradient": (out_gradient, (m, 3, 3))} if gradient else {})
        if out_gradient is not None and not gradient:
            raise ValueError("out_gradient is given: gradient=True is needed")
        results = [np.empty(shape, batch.dtype) if array is None else array for array, shape in given.values()]
        views = [output(r, name, shape) for r, (name, (_, shape)) in zip(results, given.items())]
        if any(view.dtype != batch.dtype for view in views):
            raise TypeError(f"target has type {batch.dtype}, outputs {', '.join(str(v.dtype) for v in views)}: the same is needed")
        pointers = [ffi.cast(suffix_of(view)[1], view.address) for view in views] + [ffi.NULL]
        # Targets and results may be in different memory: the driver knows where each is.
        anywhere = batch.on_device or any(view.on_device for view in views)
        memory = lib.WFMM_MEMORY_AUTO if anywhere else lib.WFMM_MEMORY_HOST
        self._check(batch.function("wfmm_flow_velocity")(self._c, m, batch.pointer("target"), *pointers[:2], memory))
        return tuple(results) if gradient else results[0]

    def options(self) -> tuple[PlanOptions, FlowOptions]:
        """The options that the flow was made with; of a loaded one those of the file."""
        plan, motion = defaults(PlanOptions), defaults(FlowOptions)
        self._check(lib.wfmm_flow_get_options(self._c, plan, motion))
        return from_c(PlanOptions, plan), from_c(FlowOptions, motion)

    def diagnostics(self) -> Diagnostics:
        """Invariants and norms of the present state."""
        c = ffi.new("wfmm_diagnostics *")
        check(lib.wfmm_diagnostics_init(c, ffi.sizeof("wfmm_diagnostics")))
        self._check(lib.wfmm_flow_diagnostics(self._c, c))
        return to_diagnostics(c)

    def picture(
        self, width: int, height: int, camera: Camera | None = None, *, path: str | os.PathLike[str] | None = None
    ) -> NDArray[np.uint8]:
        """What a camera sees, `(height, width, 4)`: red, green, blue, alpha, rows from the top. path: a PNG file to write, too.

        camera: None shows everything from the side. On a distributed session every rank gets the picture of all elements.
        """
        rgba = np.empty((height, width, 4), dtype=np.uint8)
        name = ffi.NULL if path is None else os.fsencode(path)
        pixels = ffi.cast("uint8_t *", rgba.ctypes.data)
        self._check(lib.wfmm_flow_picture(self._c, to_c(camera), width, height, pixels, name))
        return rgba

    def report(self) -> Report:
        """What the last evaluation of the flow's sums did."""
        return read_report(lib.wfmm_flow_report, self._c)

    def _time(self) -> tuple[Any, Any]:
        time, step = ffi.new("double *"), ffi.new("int64_t *")
        check(lib.wfmm_flow_time(self._c, time, step))
        return time[0], step[0]

    def _check(self, status: int) -> None:
        """As `check`; an exception of the velocity function comes first."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        check(status)

    def _call(self, function: str, *order: str, **wanted: Wanted) -> None:
        batch = Batch(wanted)
        pointers = [batch.pointer(name) for name in order]
        check(batch.function(f"wfmm_flow_{function}")(self._c, batch.extent["n"], *pointers, batch.memory))

    def _particles(self, verb: str, position: Input, strength: Input, core_radius: Input | None) -> None:
        self._call(
            f"{verb}_particles",
            "position",
            "strength",
            "core_radius",
            position=Wanted(position, ("n", 3)),
            strength=Wanted(strength, ("n", 3)),
            core_radius=Wanted(core_radius, ("n",)),
        )

    def _dust(self, verb: str, position: Input, velocity: Input | None, diameter: Input, density: Input) -> None:
        self._call(
            f"{verb}_dust",
            "position",
            "velocity",
            "diameter",
            "density",
            position=Wanted(position, ("n", 3)),
            velocity=Wanted(velocity, ("n", 3)),
            diameter=Wanted(diameter, ("n",)),
            density=Wanted(density, ("n",)),
        )

    def _segments(
        self, function: str, points: Input, connectivity: Input, circulation: Input, core_radius: Input | None
    ) -> None:
        ld = int(np.shape(connectivity)[1]) if np.ndim(connectivity) == 2 else 2
        wanted = {
            "points": Wanted(points, ("n_points", 3)),
            "connectivity": Wanted(connectivity, ("n", ld), integer=True),
            "circulation": Wanted(circulation, ("n",)),
            "core_radius": Wanted(core_radius, ("n",)),
        }
        batch = Batch(wanted)
        arrays = [batch.pointer(a) for a in ("connectivity", "circulation", "core_radius")]
        counts = batch.extent["n_points"], batch.pointer("points"), batch.extent["n"], ld
        check(batch.function(f"wfmm_flow_{function}")(self._c, *counts, *arrays, batch.memory))
