"""Incompressible flow in a box of period 2 pi by vortex particles: a flow of libwakefmm between remeshings."""

from time import perf_counter

import numpy as np
import wakefmm
from spectral import Box, Waves, on_host


class Particles:
    """Gaussian vortex particles that start on the lattice, move, stretch and spread, and are put back on it.

    As the library narrows the cores of particles (`core_limit`) in open domains only, this is done here: at the end of each
    `advance` the velocity of the particles is evaluated on the lattice, and particles with the first core radius are placed there
    whose vorticity is the curl of that velocity. The vorticity of particles on a lattice is a convolution, which the Fourier
    transform inverts: no iterations. The inverse grows as exp(k^2 core^2/2) and is cut off at |k| = n/2.
    """

    def __init__(
        self,
        box: Box,
        waves: Waves,
        viscosity: float,
        *,
        overlap: float = 0.7,
        tolerance: float = 1e-4,
        precision: int = wakefmm.Precision.F32,
        stretching: int = wakefmm.Stretching.TRANSPOSE,
        threads: int = 0,
        backend: int = wakefmm.Backend.CPU,
    ) -> None:
        self.box, self.core = box, overlap * box.spacing
        self.points = box.points()
        session = wakefmm.Session(wakefmm.SessionOptions(backend=backend, threads=threads))
        sums = wakefmm.PlanOptions(period=(2 * np.pi,) * 3, tolerance=tolerance, precision=precision, core_radius=self.core)
        motion = wakefmm.FlowOptions(
            integrator=wakefmm.Integrator.AB2,
            stretching=stretching,
            spreading=wakefmm.Spreading.CORES,
            viscosity=viscosity,
        )
        self.flow = wakefmm.Flow(sums, motion, session=session)
        self.machine = session.describe()
        self.evaluations, self.steps, self.step_seconds = 0, 0, 0.0
        # The vorticity of particles on the lattice is their strengths per volume times exp(-k^2 core^2/2).
        self._inverse = box.xp.where(box.k2 < (box.n / 2) ** 2, box.xp.exp(0.5 * self.core**2 * box.k2), 0.0)
        self._place(waves)

    def _place(self, waves: Waves) -> None:
        """Particles on the lattice whose vorticity is the curl of this velocity."""
        strength = on_host(self.box.to_space(self.box.curl(waves) * self._inverse)) * self.box.spacing**3
        self.flow.set_particles(self.points, strength.reshape(3, -1).T)
        self.waves = waves

    def velocity(self) -> Waves:
        """The velocity of the particles on the lattice, by its Fourier coefficients."""
        self.evaluations += 1
        velocity = self.flow.velocity(self.points).T.reshape(3, *[self.box.n] * 3)
        return self.box.to_waves(self.box.array(np.ascontiguousarray(velocity)))

    def advance(self, time: float, strain: float = 0.4) -> None:
        """In equal steps, each at most `strain` over the root mean square of the vorticity, then back to the lattice."""
        vorticity = np.sqrt(self.box.dissipation(self.waves, 1.0))
        steps = int(np.ceil(time * vorticity / strain))
        began = perf_counter()
        self.flow.advance(time / steps, steps)
        self.step_seconds += perf_counter() - began
        self.steps += steps
        # The first step of AB2 takes two evaluations.
        self.evaluations += steps + 1
        self._place(self.velocity())
