"""What the last evaluation did, and the invariants of a flow."""

from dataclasses import dataclass, fields
from typing import Any

from ._native import ffi
from .codes import Backend, Method, Pass, Precision, Reason
from .errors import check


@dataclass(frozen=True)
class Report:
    """What the last evaluation of a plan or flow did.

    order: highest order of the expansions, 0 for a direct sum. depth: levels of the tree below its root. near_pairs: element
    pairs that were summed one by one, core_pairs of them core corrections. host_bytes, device_bytes: memory. estimated_error:
    relative L2 error found on a sample of targets, of the gradient a thirtieth. retries: times that a field missed its
    tolerance there and was computed again. singular: kinds of elements with a regularization but no core radius, 1 segments,
    2 particles, 3 both. seconds: by `Pass`.
    """

    backend: Backend
    method: Method
    precision: Precision
    order: int
    depth: int
    cells: int
    far_pairs: int
    near_pairs: int
    core_pairs: int
    host_bytes: int
    device_bytes: int
    estimated_error: float
    retries: int
    singular: int
    seconds: dict[Pass, float]


def read_report(function: Any, handle: Any) -> Report:
    """Calls a function that fills a wfmm_report."""
    c = ffi.new("wfmm_report *")
    c.struct_size = ffi.sizeof("wfmm_report")
    check(function(handle, c))
    plain = ("order", "depth", "cells", "far_pairs", "near_pairs", "core_pairs", "host_bytes", "device_bytes", "estimated_error")
    return Report(
        backend=Backend(c.backend),
        method=Method(c.method),
        precision=Precision(c.precision),
        retries=c.retries,
        singular=c.singular,
        seconds={p: float(c.seconds[p]) for p in Pass},
        **{name: getattr(c, name) for name in plain},
    )


@dataclass(frozen=True)
class Diagnostics:
    """Invariants and norms of a flow at its present time; NaN where `reason` says why.

    total_strength, linear_impulse, angular_impulse: three components each. energy: half the integral of u^2 of the particles,
    enstrophy: the integral of |curl u|^2. divergence: share of the carried vorticity that is not free of divergence.
    largest_velocity: the largest speed of what moves. largest_displacement: the longest way in the last step.
    reinterpolations: how often cores above `core_limit` were narrowed; of the last time reinterpolation_residual: the change of
    the vorticity at the particles, root mean square relative to the vorticity, reinterpolation_strength and
    reinterpolation_impulse: what total strength and impulse lacked, relative to sums of magnitudes.
    """

    reason: Reason
    time: float
    total_strength: tuple[float, ...]
    linear_impulse: tuple[float, ...]
    angular_impulse: tuple[float, ...]
    energy: float
    enstrophy: float
    divergence: float
    largest_velocity: float
    largest_displacement: float
    reinterpolations: int
    reinterpolation_residual: float
    reinterpolation_strength: float
    reinterpolation_impulse: float


def to_diagnostics(c: Any) -> Diagnostics:
    """The data class of a filled wfmm_diagnostics."""
    vectors = ("total_strength", "linear_impulse", "angular_impulse")
    found = {f.name: getattr(c, f.name) for f in fields(Diagnostics)}
    found |= {name: tuple(found[name]) for name in vectors} | {"reason": Reason(c.reason)}
    return Diagnostics(**found)
