"""One call from arrays to velocities; nothing is kept."""

from typing import Any

import numpy as np

from ._arrays import Batch, Wanted
from ._native import ffi
from .codes import Flag
from .errors import check
from .options import PlanOptions, to_c
from .plan import Input


def induce_segments(
    points: Input,
    connectivity: Input,
    circulation: Input,
    target: Input,
    *,
    core_radius: Input | None = None,
    options: PlanOptions | None = None,
    gradient: bool = False,
) -> Any:
    """The velocity of straight vortex segments at the targets.

    points: `(n_points, 3)`. connectivity: `(n, ld)` integers, counted from `index_base` of the options (0). circulation:
    `(n,)`, length^2/time. target: `(m, 3)`. core_radius: `(n,)`, or None: that of the options. Returns the velocity `(m, 3)`,
    length/time, and with `gradient=True` also `(m, 3, 3)`, `[k, i, j]` = du_i/dx_j. Any number of threads may call it.
    """
    ld = int(np.shape(connectivity)[1]) if np.ndim(connectivity) == 2 else 2
    batch = _batch(
        points=Wanted(points, ("n_points", 3)),
        connectivity=Wanted(connectivity, ("n", ld), integer=True),
        circulation=Wanted(circulation, ("n",)),
        core_radius=Wanted(core_radius, ("n",)),
        target=Wanted(target, ("m", 3)),
    )
    arrays = [batch.pointer(a) for a in ("connectivity", "circulation", "core_radius")]
    sources = [batch.extent["n_points"], batch.pointer("points"), batch.extent["n"], ld, *arrays]
    return _induce("wfmm_induce_segments", batch, sources, options, gradient)


def induce_particles(
    position: Input,
    strength: Input,
    target: Input,
    *,
    core_radius: Input | None = None,
    options: PlanOptions | None = None,
    gradient: bool = False,
) -> Any:
    """The velocity of vortex particles at the targets.

    position, strength: `(n, 3)`, length and length^3/time. target: `(m, 3)`. core_radius: `(n,)`, or None: that of the
    options. Returns the velocity `(m, 3)`, and with `gradient=True` also `(m, 3, 3)`. Any number of threads may call it.
    """
    batch = _batch(
        position=Wanted(position, ("n", 3)),
        strength=Wanted(strength, ("n", 3)),
        core_radius=Wanted(core_radius, ("n",)),
        target=Wanted(target, ("m", 3)),
    )
    sources = [batch.extent["n"], *(batch.pointer(a) for a in ("position", "strength", "core_radius"))]
    return _induce("wfmm_induce_particles", batch, sources, options, gradient)


def _batch(**wanted: Wanted) -> Batch:
    batch = Batch(wanted)
    if batch.on_device:
        raise ValueError("one-call functions take host arrays; a Plan takes arrays in device memory")
    return batch


def _induce(function: str, batch: Batch, sources: list[Any], options: PlanOptions | None, gradient: bool) -> Any:
    if options is not None and options.flags & Flag.ACCUMULATE:
        raise ValueError("Flag.ACCUMULATE needs the out= of Plan.evaluate")
    m = batch.extent["m"]
    results = [np.empty((m, 3), batch.dtype)] + ([np.empty((m, 3, 3), batch.dtype)] if gradient else [])
    outputs = [ffi.cast("void *", r.ctypes.data) for r in results] + [ffi.NULL]
    check(batch.function(function)(*sources, m, batch.pointer("target"), to_c(options), *outputs[:2]))
    return tuple(results) if gradient else results[0]
