"""Plans: sources, targets, tree and results of one sum."""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from . import _arrays
from ._arrays import Batch, Wanted
from ._dlpack import LEGACY_STREAM, View
from ._native import ffi, lib
from .codes import Flag
from .errors import check, text
from .options import PlanOptions, to_c
from .report import Report, read_report
from .session import Handle, Session, handle_of

#: A NumPy array, anything that becomes one, or an array in device memory (DLPack or CUDA array interface).
Input = ArrayLike | Any

_STRENGTH_OF = {"circulation": "segments", "strength": "particles", "charge": "charges"}


def _destroy(handle: Any) -> int:
    lib.wfmm_plan_wait(handle[0])
    return int(lib.wfmm_plan_destroy(handle))


class Plan(Handle):
    """Sources, targets, tree and results of one sum. One thread at a time; a second one gets a `CallError`, WFMM_ERR_BUSY.

    Positions are lengths of any unit, `(n, 3)`; circulations length^2/time; strengths length^3/time. Host arrays are copied;
    float32 arrays go to the library as they are, all else becomes float64. Arrays in device memory are read where they are,
    and the plan keeps them alive until they are set again.
    """

    def __init__(self, options: PlanOptions | None = None, *, session: Session | None = None) -> None:
        handle = ffi.new("wfmm_plan **")
        self.options = options or PlanOptions()
        self.session = session
        check(lib.wfmm_plan_create(handle_of(session), to_c(self.options), handle))
        super().__init__(handle, _destroy)
        self._types: dict[str, np.dtype[Any]] = {}
        self._borrowed: dict[str, dict[str, object]] = {}
        self._results: tuple[Any, ...] | None = None
        self._stream: int | None = None

    def __enter__(self) -> "Plan":
        return self

    def _summary(self) -> str:
        return ", ".join(f"{n} {what}" for what, n in self.counts().items())

    def set_segments(
        self, points: Input, connectivity: Input, circulation: Input, *, core_radius: Input | None = None
    ) -> None:
        """Sets the straight vortex segments.

        points: `(n_points, 3)`. connectivity: `(n, ld)` integers, ld >= 2, the first two of a row are the points P1 and P2,
        counted from `index_base` of the options; positive circulation runs from P1 to P2. circulation: `(n,)`.
        core_radius: `(n,)`, >= 0, or None: that of the options.
        """
        ld = int(np.shape(connectivity)[1]) if np.ndim(connectivity) == 2 else 2
        batch = self._batch(
            points=Wanted(points, ("n_points", 3)),
            connectivity=Wanted(connectivity, ("n", ld), integer=True),
            circulation=Wanted(circulation, ("n",)),
            core_radius=Wanted(core_radius, ("n",)),
        )
        arrays = [batch.pointer(a) for a in ("connectivity", "circulation", "core_radius")]
        counts = batch.extent["n"], ld
        self._set("segments", batch, batch.extent["n_points"], batch.pointer("points"), *counts, *arrays)

    def set_particles(self, position: Input, strength: Input, *, core_radius: Input | None = None) -> None:
        """Sets the vortex particles. position, strength: `(n, 3)`. core_radius: `(n,)`, or None: that of the options."""
        batch = self._batch(
            position=Wanted(position, ("n", 3)),
            strength=Wanted(strength, ("n", 3)),
            core_radius=Wanted(core_radius, ("n",)),
        )
        arrays = [batch.pointer(a) for a in ("position", "strength", "core_radius")]
        self._set("particles", batch, batch.extent["n"], *arrays)

    def set_charges(self, position: Input, charge: Input) -> None:
        """Sets the charges of the potential s sum(q/r), s the normalization. position: `(n, 3)`. charge: `(n,)`."""
        batch = self._batch(position=Wanted(position, ("n", 3)), charge=Wanted(charge, ("n",)))
        self._set("charges", batch, batch.extent["n"], batch.pointer("position"), batch.pointer("charge"))

    def set_targets(self, position: Input) -> None:
        """Sets the targets, `(n, 3)`; what was computed of the sources is kept."""
        batch = self._batch(position=Wanted(position, ("n", 3)))
        self._set("targets", batch, batch.extent["n"], batch.pointer("position"))

    def set_strengths(
        self, *, circulation: Input | None = None, strength: Input | None = None, charge: Input | None = None
    ) -> None:
        """Sets new circulations `(n_segments,)`, strengths `(n_particles, 3)` or charges `(n_charges,)` at the same positions;
        what is None stays, and so do trees and lists.
        """
        batch = self._batch(
            circulation=Wanted(circulation, ("n_segments",)),
            strength=Wanted(strength, ("n_particles", 3)),
            charge=Wanted(charge, ("n_charges",)),
        )
        arguments: list[Any] = []
        for count, name in (("n_segments", "circulation"), ("n_particles", "strength"), ("n_charges", "charge")):
            arguments += [batch.extent.get(count, 0), batch.pointer(name)]
        self._set("strengths", batch, *arguments)

    def set_stream(self, stream: int | None) -> None:
        """Names the CUDA stream on which the caller makes this plan's device arrays, by its address; None: the default."""
        check(lib.wfmm_plan_set_stream(self._c, ffi.cast("void *", stream or 0)))
        self._stream = stream

    def prepare(self) -> None:
        """Does ahead of the first evaluation what needs no output."""
        check(lib.wfmm_plan_prepare(self._c))

    @overload
    def evaluate(self, *, gradient: Literal[False] = False, out: Any = None) -> Any: ...
    @overload
    def evaluate(self, *, gradient: Literal[True], out: Any = None, out_gradient: Any = None) -> tuple[Any, Any]: ...
    def evaluate(self, *, gradient: bool = False, out: Any = None, out_gradient: Any = None) -> Any:
        """The velocity at the targets, `(m, 3)`, length/time; with `gradient=True` velocity and gradient.

        gradient: `(m, 3, 3)`, `gradient[k, i, j]` = du_i/dx_j at target k. out, out_gradient: arrays to write instead of new
        ones, in host or device memory; with `Flag.ACCUMULATE` the results are added to them.
        """
        return self._evaluate("wfmm_plan_evaluate", (3,), gradient, out, out_gradient)

    @overload
    def evaluate_potential(self, *, gradient: Literal[False] = False, out: Any = None) -> Any: ...
    @overload
    def evaluate_potential(self, *, gradient: Literal[True], out: Any = None, out_gradient: Any = None) -> tuple[Any, Any]: ...
    def evaluate_potential(self, *, gradient: bool = False, out: Any = None, out_gradient: Any = None) -> Any:
        """The potential of the charges at the targets, `(m,)`; with `gradient=True` also d(potential)/dx_j, `(m, 3)`."""
        return self._evaluate("wfmm_plan_evaluate_potential", (), gradient, out, out_gradient)

    def evaluate_async(self, *, gradient: bool = False, out: Any = None, out_gradient: Any = None) -> None:
        """Starts what `evaluate` does and returns; `wait` returns its result. Until then the plan is busy."""
        started = self._results
        results, arguments, suffix = self._outputs((3,), gradient, out, out_gradient)
        check(getattr(lib, "wfmm_plan_evaluate_async" + suffix)(self._c, *arguments))
        assert started is None, "the library refuses a second evaluation"
        self._results = results

    def wait(self) -> Any:
        """Waits for `evaluate_async` and returns what `evaluate` would; None where nothing was started."""
        results, self._results = self._results, None
        check(lib.wfmm_plan_wait(self._c))
        return results[0] if results is not None and len(results) == 1 else results

    def check(self, samples: int = 1000, seed: int = 1) -> float:
        """The relative L2 error of the field that was evaluated last, at `samples` targets, against direct sums in double."""
        error = ffi.new("double *")
        check(lib.wfmm_plan_check_f64(self._c, samples, seed, error))
        return float(error[0])

    def recipe(self) -> str:
        """What was chosen (method, order, leaf size, precision) and why."""
        return text(lib.wfmm_plan_recipe, self._c)

    def report(self) -> Report:
        """What the last evaluation did."""
        return read_report(lib.wfmm_plan_report, self._c)

    def counts(self) -> dict[str, int]:
        """Numbers of segments, particles, charges and targets."""
        n = ffi.new("int64_t[4]")
        check(lib.wfmm_plan_counts(self._c, n, n + 1, n + 2, n + 3))
        return dict(zip(("segments", "particles", "charges", "targets"), n))

    def workspace(self) -> tuple[int, int]:
        """Memory that the plan holds, in bytes: on the host and on the device."""
        n = ffi.new("uint64_t[2]")
        check(lib.wfmm_plan_workspace(self._c, n, n + 1))
        return n[0], n[1]

    def _batch(self, **wanted: Wanted) -> Batch:
        return Batch(wanted, stream=self._stream)

    def _set(self, what: str, batch: Batch, *arguments: Any) -> None:
        if batch.stream is not None and self._stream is None:
            # The default stream has the address NULL here and the number 1 in the CUDA array interface.
            address = 0 if batch.stream == LEGACY_STREAM else batch.stream
            check(lib.wfmm_plan_set_stream(self._c, ffi.cast("void *", address)))
        check(batch.function(f"wfmm_plan_set_{what}")(self._c, *arguments, batch.memory))
        if what == "strengths":
            for array, owner in batch.keep.items():
                self._borrowed.setdefault(_STRENGTH_OF[array], {})[array] = owner
        else:
            self._types[what] = batch.dtype
            self._borrowed[what] = batch.keep

    def _outputs(
        self, row: tuple[int, ...], gradient: bool, out: Any, out_gradient: Any
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], str]:
        m = self.counts()["targets"]
        single = bool(self._types) and all(t == np.float32 for t in self._types.values())
        given = next((_arrays.output(a, "out", np.shape(a)).dtype for a in (out, out_gradient) if a is not None), None)
        dtype = given or np.dtype(np.float32 if single else np.float64)
        shapes = {"out": (m, *row), "out_gradient": (m, *row, 3)}
        make = np.zeros if self.options.flags & Flag.ACCUMULATE else np.empty
        results = [make(shapes["out"], dtype) if out is None else out]
        if gradient:
            results.append(make(shapes["out_gradient"], dtype) if out_gradient is None else out_gradient)
        elif out_gradient is not None:
            raise ValueError("out_gradient is given: gradient=True is needed")
        views = [_arrays.output(a, name, shapes[name], self._stream) for a, name in zip(results, shapes)]
        self._require_alike(views)
        suffix, pointer = _arrays.suffix_of(views[0])
        pointers = [ffi.cast(pointer, view.address) for view in views] + [ffi.NULL]
        memory = lib.WFMM_MEMORY_DEVICE if views[0].on_device else lib.WFMM_MEMORY_HOST
        return tuple(results), (*pointers[:2], memory), suffix

    @staticmethod
    def _require_alike(views: list[View]) -> None:
        if len({v.dtype for v in views}) > 1:
            raise TypeError(f"out has type {views[0].dtype}, out_gradient {views[1].dtype}: the same is needed")
        if len({v.on_device for v in views}) > 1:
            raise ValueError("out and out_gradient: both in host memory or both in device memory")

    def _evaluate(self, function: str, row: tuple[int, ...], gradient: bool, out: Any, out_gradient: Any) -> Any:
        results, arguments, suffix = self._outputs(row, gradient, out, out_gradient)
        check(getattr(lib, function + suffix)(self._c, *arguments))
        return results if gradient else results[0]
