"""The spectral code against exact solutions, and the vortex particles against the spectral code."""

import numpy as np
import pytest
from particles import Particles
from spectral import Box, Spectral, random_field, scales


def test_a_row_of_vortices_decays_as_the_exact_solution():
    box = Box(16)
    x, y, _ = np.moveaxis(box.points(), 1, 0).reshape(3, 16, 16, 16)
    start = box.to_waves(np.stack([np.sin(2 * x) * np.cos(2 * y), -np.cos(2 * x) * np.sin(2 * y), 0 * x]))
    code = Spectral(box, start, viscosity=0.05)
    code.advance(1.0)
    assert np.abs(code.waves - start * np.exp(-0.05 * 8 * 1.0)).max() < 1e-12


def test_without_viscosity_energy_is_kept_to_the_error_of_the_steps():
    box = Box(16)
    start = random_field(box, peak=3)
    lost = []
    for courant in (0.8, 0.4):
        code = Spectral(box, start, viscosity=0.0)
        code.advance(0.5, courant)
        lost.append(abs(box.energy(code.waves) / 1.5 - 1))
    assert box.energy(start) == pytest.approx(1.5, rel=1e-12)
    assert lost[0] < 2e-4 and lost[1] < lost[0] / 12


def test_particles_on_the_lattice_have_the_velocity_of_the_field():
    box = Box(16)
    start = random_field(box, peak=2)
    code = Particles(box, start, viscosity=0.05, tolerance=1e-6, precision=2)
    assert np.linalg.norm(code.velocity() - start) < 2e-3 * np.linalg.norm(start)


def test_energy_of_particles_decays_as_that_of_the_spectral_code():
    box, viscosity = Box(16), 0.1
    start = random_field(box, peak=1)
    turnover = scales(box, start, viscosity)["turnover"]
    codes = Spectral(box, start, viscosity), Particles(box, start, viscosity)
    for _ in range(4):
        for code in codes:
            code.advance(0.1 * turnover)
    spectral, particles = (box.energy(code.waves) for code in codes)
    # The difference is that of cores of 0.7 spacings; without stretching it would be 15 %.
    assert spectral < 0.9 * 1.5
    assert particles == pytest.approx(spectral, rel=0.03)
