"""Velocities that vortex segments and particles induce, and potentials of charges, by a fast multipole method.

NumPy arrays go in and come out; arrays of PyTorch or CuPy in the memory of a CUDA device are used where they are.

    import numpy as np, wakefmm
    with wakefmm.Plan(wakefmm.PlanOptions(tolerance=1e-5)) as plan:
        plan.set_segments(points, connectivity, circulation, core_radius=core)
        plan.set_targets(x)
        u = plan.evaluate()                     # u[k] is the velocity at x[k]
"""

from .codes import (
    ORDER_MAX,
    TOLERANCE_MIN_F32,
    TOLERANCE_MIN_F64,
    Backend,
    Blending,
    Color,
    Expansion,
    Flag,
    Integrator,
    Kind,
    LogLevel,
    Method,
    Pass,
    Plane,
    Precision,
    Projection,
    Quantity,
    Reason,
    Regularization,
    Spreading,
    Status,
    Stretching,
)
from .communicator import Communicator
from .errors import CallError, Error, ResourceError, UnusableError
from .flow import DeviceRows, Flow, VelocityFunction
from .induce import induce_particles, induce_segments
from .library import set_log, version
from .options import Camera, FlowOptions, PlanOptions, SessionOptions
from .plan import Plan
from .report import Diagnostics, Report
from .session import Session

__version__ = ".".join(map(str, version()))

__all__ = [
    "ORDER_MAX",
    "TOLERANCE_MIN_F32",
    "TOLERANCE_MIN_F64",
    "Backend",
    "Blending",
    "CallError",
    "Camera",
    "Color",
    "Communicator",
    "DeviceRows",
    "Diagnostics",
    "Error",
    "Expansion",
    "Flag",
    "Flow",
    "FlowOptions",
    "Integrator",
    "Kind",
    "LogLevel",
    "Method",
    "Pass",
    "Plan",
    "PlanOptions",
    "Plane",
    "Precision",
    "Projection",
    "Quantity",
    "Reason",
    "Regularization",
    "Report",
    "ResourceError",
    "Session",
    "SessionOptions",
    "Spreading",
    "Status",
    "Stretching",
    "UnusableError",
    "VelocityFunction",
    "induce_particles",
    "induce_segments",
    "set_log",
    "version",
]
