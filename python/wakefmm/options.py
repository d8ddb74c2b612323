"""Options of sessions, plans and flows: the C structs with their defaults as data classes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any
from weakref import WeakKeyDictionary

from numpy.typing import NDArray

from ._arrays import components
from ._native import ffi, lib
from .codes import (
    Backend,
    Blending,
    Color,
    Expansion,
    Flag,
    Integrator,
    Method,
    Plane,
    Precision,
    Projection,
    Regularization,
    Spreading,
    Stretching,
)
from .errors import check

#: A few real numbers, which the options keep as a tuple.
Components = Sequence[float] | NDArray[Any]


def _to_tuples(options: object, **lengths: int) -> None:
    for name, n in lengths.items():
        object.__setattr__(options, name, components(getattr(options, name), name, n))


@dataclass(frozen=True)
class SessionOptions:
    """What a session computes on.

    backend: `Backend`. device: number of the CUDA device, -1: the best one. threads: number of host threads; 0: the
    environment variable WAKEFMM_NUM_THREADS, else OMP_NUM_THREADS, else all that the process may use. devices: numbers of
    the CUDA devices that compute together, empty: `device` alone.
    """

    backend: int = Backend.AUTO
    device: int = -1
    threads: int = 0
    devices: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlanOptions:
    """How the sums of a plan are computed.

    method: `Method`. precision: `Precision` of the computation. order: of the expansions, 0: from the tolerance.
    leaf_capacity: most elements in a leaf of the tree, 0: chosen. segment_regularization, particle_regularization:
    `Regularization`. index_base: number of the first point in connectivities, 0 or 1. tolerance: relative L2 error of the
    velocity (or potential) over the targets; gradients are held to 30 tolerances of their own norm. normalization: factor
    of all sums. core_radius: where no array of radii is given, a length. flags: `Flag`. plane_axis: `Plane`, normal of an
    impermeable ground plane; plane_position: where it is, a length. period: lengths along x, y and z after which everything
    repeats, 0: open. expansion: `Expansion`.
    """

    method: int = Method.AUTO
    precision: int = Precision.ARRAYS
    order: int = 0
    leaf_capacity: int = 0
    segment_regularization: int = Regularization.VATISTAS
    particle_regularization: int = Regularization.GAUSS_ERF
    index_base: int = 0
    tolerance: float = 1e-4
    normalization: float = 1 / (4 * math.pi)
    core_radius: float = 0.0
    flags: int = Flag.NONE
    plane_axis: int = Plane.NONE
    plane_position: float = 0.0
    period: Components = (0.0, 0.0, 0.0)
    expansion: int = Expansion.HARMONICS

    def __post_init__(self) -> None:
        _to_tuples(self, period=3)


@dataclass(frozen=True)
class FlowOptions:
    """How a flow moves its elements.

    integrator: `Integrator`. stretching: `Stretching`. spreading: `Spreading`. viscosity: kinematic, length^2/time.
    squire: Squire's factor of |circulation| in the growth of filament cores. split_length: longer filament segments
    are split, 0: never. core_limit: particles that spread beyond it get narrower cores, 0: never. gravity:
    length/time^2. fluid_density and fluid_viscosity (dynamic): of the fluid around the dust. restitution, friction:
    what of its normal velocity dust keeps, and of its tangential velocity loses, at the ground plane, 0 to 1.
    """

    integrator: int = Integrator.RK4
    stretching: int = Stretching.NONE
    spreading: int = Spreading.NONE
    viscosity: float = 0.0
    squire: float = 0.0
    split_length: float = 0.0
    gravity: Components = (0.0, 0.0, 0.0)
    fluid_density: float = 0.0
    fluid_viscosity: float = 0.0
    restitution: float = 0.0
    friction: float = 0.0
    core_limit: float = 0.0

    def __post_init__(self) -> None:
        _to_tuples(self, gravity=3)


@dataclass(frozen=True)
class Camera:
    """Where a picture of a flow is taken from and how its elements look.

    projection: `Projection`. color: `Color`. blending: `Blending` of points. kinds: what is drawn, the sum of `1 << Kind`. fit:
    eye and target give the direction only, and the camera stands where all that is drawn fits in. eye: where it is. target: the
    point in the middle. up: a direction that points upwards in the picture. field_of_view: of a perspective, degrees between
    the lower and the upper edge. view_height: of an orthographic picture without fit, the length between them. near_distance:
    what is closer is not drawn, 0: a thousandth of the way to the target. point_size, line_width: pixels. opacity: of a point,
    0: chosen. color_range: speeds at the ends of the scale, equal: those that are drawn. background: red, green, blue, alpha, 0
    to 1. grid: distance of the lines on the ground plane, 0: none.
    """

    projection: int = Projection.PERSPECTIVE
    color: int = Color.KIND
    blending: int = Blending.OPACITY
    kinds: int = 31
    fit: bool = True
    eye: Components = (2.0, -3.0, 1.5)
    target: Components = (0.0, 0.0, 0.0)
    up: Components = (0.0, 0.0, 1.0)
    field_of_view: float = 40.0
    view_height: float = 1.0
    near_distance: float = 0.0
    point_size: float = 1.5
    line_width: float = 2.0
    opacity: float = 0.0
    color_range: Components = (0.0, 0.0)
    background: Components = (0.04, 0.06, 0.1, 1.0)
    grid: float = 0.0

    def __post_init__(self) -> None:
        _to_tuples(self, eye=3, target=3, up=3, color_range=2, background=4)


# Arrays that structs of options point to, as long as these are alive.
_pointed_to: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

_STRUCTS = {
    SessionOptions: ("wfmm_session_options", "wfmm_session_options_init"),
    PlanOptions: ("wfmm_plan_options", "wfmm_plan_options_init"),
    FlowOptions: ("wfmm_flow_options", "wfmm_flow_options_init"),
    Camera: ("wfmm_camera", "wfmm_camera_init"),
}


def defaults(kind: type[Any]) -> Any:
    """The C struct with the library's defaults."""
    struct, init = _STRUCTS[kind]
    filled = ffi.new(f"{struct} *")
    check(getattr(lib, init)(filled, ffi.sizeof(struct)))
    return filled


def to_c(options: SessionOptions | PlanOptions | FlowOptions | Camera | None) -> Any:
    """The C struct of `options`; NULL, the defaults, for None."""
    if options is None:
        return ffi.NULL
    filled = defaults(type(options))
    for field in fields(options):
        value = getattr(options, field.name)
        try:
            if field.name == "devices":
                _pointed_to[filled] = ffi.new("int32_t[]", value)
                filled.n_devices = len(value)
                filled.devices = _pointed_to[filled] if value else ffi.NULL
                continue
            setattr(filled, field.name, list(value) if isinstance(value, tuple) else value)
        except (TypeError, OverflowError, IndexError) as error:
            raise TypeError(f"{field.name} = {value!r}: {error}") from error
    return filled


def from_c(kind: type[PlanOptions] | type[FlowOptions], c: Any) -> Any:
    """The data class of a filled struct."""
    numbers: dict[str, Any] = {f.name: getattr(c, f.name) for f in fields(kind)}
    for name, value in numbers.items():
        numbers[name] = value if isinstance(value, (int, float)) else tuple(value)
    return kind(**numbers)
