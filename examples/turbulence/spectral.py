"""Incompressible flow in a box of period 2 pi: a pseudo-spectral code, and what is read from fields on a lattice."""

import numpy as np
from numpy.typing import NDArray

#: Fourier coefficients of a real vector field, (3, n, n, n/2 + 1), divided by the number of points.
Waves = NDArray[np.complex128]


class Box:
    """The lattice of n^3 points x = -pi + 2 pi i/n, and its wave numbers. Components at |k| = n/2 along an axis are zero."""

    def __init__(self, n: int) -> None:
        self.n, self.spacing = n, 2 * np.pi / n
        whole = np.fft.fftfreq(n, 1 / n)
        self.k = np.stack(np.meshgrid(whole, whole, np.arange(n // 2 + 1.0), indexing="ij"))
        self.k2 = np.sum(self.k**2, axis=0)
        self.inside = np.all(np.abs(self.k) < n / 2, axis=0)
        # The coefficients at -k, which are not stored, count with those at k.
        self.weight = self.inside * np.where(self.k[2] > 0, 2.0, 1.0)
        self.shell = np.rint(np.sqrt(self.k2)).astype(int)
        # Places of the coefficients in an array with half as many points more along each axis (the 3/2 rule).
        fine = 3 * n // 2
        along = np.concatenate([np.arange(n // 2), np.arange(fine - n // 2, fine)])
        self._fine, self._places = fine, np.ix_(range(3), along, along, range(n // 2 + 1))

    def points(self) -> NDArray[np.float64]:
        """The lattice, (n^3, 3)."""
        x = -np.pi + self.spacing * np.arange(self.n)
        return np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)

    def to_space(self, waves: NDArray[np.complex128]) -> NDArray[np.float64]:
        return np.fft.irfftn(waves, s=(self.n,) * 3, axes=(-3, -2, -1), norm="forward")

    def to_waves(self, field: NDArray[np.float64]) -> NDArray[np.complex128]:
        return np.fft.rfftn(field, axes=(-3, -2, -1), norm="forward") * self.inside

    def to_fine(self, waves: Waves) -> NDArray[np.float64]:
        padded = np.zeros((3, self._fine, self._fine, self._fine // 2 + 1), dtype=complex)
        padded[self._places] = waves
        return np.fft.irfftn(padded, s=(self._fine,) * 3, axes=(1, 2, 3), norm="forward")

    def from_fine(self, field: NDArray[np.float64]) -> Waves:
        return np.fft.rfftn(field, axes=(1, 2, 3), norm="forward")[self._places] * self.inside

    def curl(self, waves: Waves) -> Waves:
        return 1j * np.cross(self.k, waves, axis=0)

    def solenoidal(self, waves: Waves) -> Waves:
        """The part without divergence; the mean stays."""
        along = np.sum(self.k * waves, axis=0) / np.where(self.k2 > 0, self.k2, 1)
        return waves - self.k * along

    def spectrum(self, waves: Waves) -> NDArray[np.float64]:
        """Energy per volume in shells of width one around |k| = 0, 1, 2, ...; the sum is the energy."""
        density = 0.5 * self.weight * np.sum(np.abs(waves) ** 2, axis=0)
        return np.bincount(self.shell.ravel(), density.ravel())

    def energy(self, waves: Waves) -> float:
        return float(self.spectrum(waves).sum())

    def dissipation(self, waves: Waves, viscosity: float) -> float:
        return float(viscosity * np.sum(self.weight * self.k2 * np.sum(np.abs(waves) ** 2, axis=0)))

    def second_invariant(self, waves: Waves) -> NDArray[np.float64]:
        """du_i/dx_j du_j/dx_i on the lattice, (n, n, n), as Yokota et al. (2009) define II."""
        gradient = self.to_space(1j * self.k[None, :] * waves[:, None])
        return np.einsum("ij...,ji...->...", gradient, gradient)


def scales(box: Box, waves: Waves, viscosity: float) -> dict[str, float]:
    """u', integral scale L, turnover time T, Taylor's scale, its Reynolds number, Kolmogorov's scale times the largest wave number."""
    spectrum = box.spectrum(waves)
    speed = np.sqrt(2 / 3 * spectrum.sum())
    length = np.pi / (2 * speed**2) * np.sum(spectrum[1:] / np.arange(1, len(spectrum)))
    dissipation = box.dissipation(waves, viscosity)
    taylor = np.sqrt(15 * viscosity / dissipation) * speed
    kolmogorov = (viscosity**3 / dissipation) ** 0.25
    return {
        "speed": speed,
        "length": length,
        "turnover": length / speed,
        "taylor": taylor,
        "reynolds": speed * taylor / viscosity,
        "resolution": kolmogorov * box.n / 2,
    }


def random_field(box: Box, peak: float, speed: float = 1.0, seed: int = 1) -> Waves:
    """A solenoidal field of random phases with E(k) ~ k^4 exp(-2 (k/peak)^2) below |k| = n/2 and mean square of a component speed^2."""
    noise = np.random.default_rng(seed).standard_normal((3, box.n, box.n, box.n))
    waves = box.solenoidal(box.to_waves(noise))
    has = box.spectrum(waves)
    k = np.arange(len(has))
    wanted = np.where(k < box.n / 2, k**4 * np.exp(-2 * (k / peak) ** 2), 0.0)
    wanted *= 1.5 * speed**2 / wanted.sum()
    factor = np.sqrt(np.divide(wanted, has, out=np.zeros_like(wanted), where=wanted > 0))
    return waves * factor[box.shell]


class Spectral:
    """Velocity by the pseudo-spectral method: rotational form, 3/2 rule, RK4 with the viscous term integrated exactly."""

    def __init__(self, box: Box, waves: Waves, viscosity: float) -> None:
        self.box, self.waves, self.viscosity = box, waves, viscosity

    def _rate(self, waves: Waves) -> Waves:
        velocity, vorticity = self.box.to_fine(waves), self.box.to_fine(self.box.curl(waves))
        return self.box.solenoidal(self.box.from_fine(np.cross(velocity, vorticity, axis=0)))

    def _step(self, dt: float) -> None:
        u, half = self.waves, np.exp(-0.5 * self.viscosity * dt * self.box.k2)
        k1 = self._rate(u)
        k2 = self._rate(half * (u + 0.5 * dt * k1))
        k3 = self._rate(half * u + 0.5 * dt * k2)
        k4 = self._rate(half**2 * u + dt * half * k3)
        self.waves = half**2 * (u + dt / 6 * k1) + dt / 6 * (2 * half * (k2 + k3) + k4)

    def advance(self, time: float, courant: float = 0.8) -> None:
        """In equal steps, each at most `courant` spacings over the largest |u| + |v| + |w|."""
        speed = np.abs(self.box.to_space(self.waves)).sum(axis=0).max()
        steps = int(np.ceil(time * speed / (courant * self.box.spacing)))
        for _ in range(steps):
            self._step(time / steps)
