"""Incompressible flow in a box of period 2 pi by vortex particles: a flow of libwakefmm between remeshings."""

from time import perf_counter

import numpy as np
import wakefmm
from spectral import Array, Box, Waves


class Particles:
    """Gaussian vortex particles that start on the lattice, move, stretch and spread, and are put back on it.

    As the library narrows the cores of particles (`core_limit`) in open domains only, this is done here: at the end of each
    cycle the velocity of the particles is evaluated on the lattice, and particles with the first core radius are placed there
    whose vorticity is the curl of that velocity. The vorticity of particles on a lattice is a convolution, which the Fourier
    transform inverts: no iterations. The inverse grows as exp(k^2 core^2/2) and is cut off at |k| = n/2.

    A cycle is at most `strain` over the root mean square of the vorticity, so that cores grow in proportion to the square of
    Taylor's scale: the error of round cores follows their ratio. It has `steps` equal steps of AB2, of which the first takes two
    evaluations. Positions, strengths and velocities stay in the memory of the box.
    """

    def __init__(
        self,
        box: Box,
        waves: Waves,
        viscosity: float,
        *,
        overlap: float = 0.7,
        strain: float = 0.2,
        steps: int = 2,
        tolerance: float = 1e-4,
        precision: int = wakefmm.Precision.F32,
        stretching: int = wakefmm.Stretching.TRANSPOSE,
        threads: int = 0,
        backend: int = wakefmm.Backend.CPU,
    ) -> None:
        self.box, self.core, self._strain, self._steps = box, overlap * box.spacing, strain, steps
        self.points = box.array(box.points())
        session = wakefmm.Session(wakefmm.SessionOptions(backend=backend, threads=threads, device=0))
        sums = wakefmm.PlanOptions(period=(2 * np.pi,) * 3, tolerance=tolerance, precision=precision, core_radius=self.core)
        motion = wakefmm.FlowOptions(
            integrator=wakefmm.Integrator.AB2,
            stretching=stretching,
            spreading=wakefmm.Spreading.CORES,
            viscosity=viscosity,
        )
        self.flow = wakefmm.Flow(sums, motion, session=session)
        self.machine = session.describe()
        self.evaluations, self.steps, self.remeshings, self.step_seconds = 0, 0, 0, 0.0
        # The vorticity of particles on the lattice is their strengths per volume times exp(-k^2 core^2/2).
        self._inverse = box.xp.where(box.k2 < (box.n / 2) ** 2, box.xp.exp(0.5 * self.core**2 * box.k2), 0.0)
        self._place(waves)

    def _place(self, waves: Waves) -> None:
        """Particles on the lattice whose vorticity is the curl of this velocity."""
        strength = self.box.to_space(self.box.curl(waves) * self._inverse) * self.box.spacing**3
        self.flow.set_particles(self.points, self._rows(strength))
        self.waves = waves

    def _rows(self, field: Array) -> Array:
        """Three numbers a point, (n^3, 3), of a field (3, n, n, n)."""
        return self.box.xp.reshape(self.box.xp.stack([field[i] for i in range(3)], axis=-1), (-1, 3))

    def velocity(self) -> Waves:
        """The velocity of the particles on the lattice, by its Fourier coefficients."""
        self.evaluations += 1
        rows = self.flow.velocity(self.points, out=self.box.xp.empty_like(self.points))
        return self.box.to_waves(self.box.xp.moveaxis(self.box.xp.reshape(rows, (*[self.box.n] * 3, 3)), -1, 0))

    def advance(self, time: float) -> None:
        """In equal cycles."""
        vorticity = np.sqrt(self.box.dissipation(self.waves, 1.0))
        cycles = int(np.ceil(time * vorticity / self._strain))
        for _ in range(cycles):
            began = perf_counter()
            self.flow.advance(time / (cycles * self._steps), self._steps)
            self.step_seconds += perf_counter() - began
            self._place(self.velocity())
        self.steps += cycles * self._steps
        self.evaluations += cycles * (self._steps + 1)
        self.remeshings += cycles
