"""The velocity of a helical wake with growing cores at its own nodes."""

import numpy as np
import wakefmm

n = 20000
i = np.arange(n + 1)
points = np.stack([np.cos(0.02 * i), np.sin(0.02 * i), 0.001 * i], axis=1)
ends = np.stack([i[:-1], i[1:]], axis=1)  # numbers of first and last point, counted from 0
core = 0.02 * np.sqrt(1 + 0.01 * i[:-1])

options = wakefmm.PlanOptions(
    tolerance=1e-4,  # relative L2 error of u over all targets
    segment_regularization=wakefmm.Regularization.VATISTAS,
)
with wakefmm.Plan(options) as plan:
    plan.set_segments(points, ends, np.ones(n), core_radius=core)
    plan.set_targets(points)
    u = plan.evaluate()  # u[k] is the velocity at points[k]
    error = plan.check(1000, seed=1)  # against direct sums at 1000 targets
print("u in the middle:", u[n // 2], f"error {error:.1e}")
assert error < options.tolerance
