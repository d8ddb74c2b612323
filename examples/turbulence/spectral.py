"""Incompressible flow in a box of period 2 pi: a pseudo-spectral code, and what is read from fields on a lattice.

Arrays are NumPy's, or PyTorch's on a GPU: `Box(n, "cuda")`. The functions are those of the Python array API, which both have (array-api-compat).
"""

from typing import Any

import numpy as np
from array_api_compat import numpy as numpy_api
from numpy.typing import NDArray

#: An array of the box's library, in the memory of its device.
Array = Any
#: Fourier coefficients of a real vector field, (3, n, n, n/2 + 1), divided by the number of points.
Waves = Any


def library(device: str) -> Any:
    """The functions on arrays of this device."""
    if device == "cpu":
        return numpy_api
    from array_api_compat import torch

    return torch


def on_host(array: Array) -> NDArray[Any]:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


class Box:
    """The lattice of n^3 points x = -pi + 2 pi i/n, and its wave numbers. Components at |k| = n/2 along an axis are zero."""

    def __init__(self, n: int, device: str = "cpu") -> None:
        self.n, self.spacing = n, 2 * np.pi / n
        self.xp, self.device = library(device), device
        xp = self.xp
        whole = np.fft.fftfreq(n, 1 / n)
        self.k = self.array(np.stack(np.meshgrid(whole, whole, np.arange(n // 2 + 1.0), indexing="ij")))
        self.k2 = xp.sum(self.k**2, axis=0)
        self.inside = xp.all(xp.abs(self.k) < n / 2, axis=0)
        # The coefficients at -k, which are not stored, count with those at k.
        self.weight = xp.where(self.k[2] > 0, 2.0, 1.0) * self.inside
        self.shell = on_host(xp.round(xp.sqrt(self.k2))).astype(int)
        # Indices of the coefficients in an array with half as many points more along each axis (the 3/2 rule).
        self._fine = 3 * n // 2
        halves = (slice(0, n // 2), slice(0, n // 2)), (slice(n // 2, n), slice(self._fine - n // 2, self._fine))
        self._blocks = [((x, y), (fine_x, fine_y)) for x, fine_x in halves for y, fine_y in halves]

    def array(self, values: NDArray[Any]) -> Array:
        return self.xp.asarray(values, device=self.device)

    def points(self) -> NDArray[np.float64]:
        """The lattice, (n^3, 3), in the host's memory."""
        x = -np.pi + self.spacing * np.arange(self.n)
        return np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)

    def to_space(self, waves: Array) -> Array:
        return self.xp.fft.irfftn(waves, s=(self.n,) * 3, axes=(-3, -2, -1), norm="forward")

    def to_waves(self, field: Array) -> Array:
        return self.xp.fft.rfftn(field, axes=(-3, -2, -1), norm="forward") * self.inside

    def to_fine(self, waves: Waves) -> Array:
        xp, fine = self.xp, self._fine
        padded = xp.zeros((3, fine, fine, fine // 2 + 1), dtype=xp.complex128, device=self.device)
        for (x, y), (fine_x, fine_y) in self._blocks:
            padded[:, fine_x, fine_y, : self.n // 2 + 1] = waves[:, x, y]
        return xp.fft.irfftn(padded, s=(fine,) * 3, axes=(1, 2, 3), norm="forward")

    def from_fine(self, field: Array) -> Waves:
        xp = self.xp
        padded = xp.fft.rfftn(field, axes=(1, 2, 3), norm="forward")
        waves = xp.zeros((3, self.n, self.n, self.n // 2 + 1), dtype=xp.complex128, device=self.device)
        for (x, y), (fine_x, fine_y) in self._blocks:
            waves[:, x, y] = padded[:, fine_x, fine_y, : self.n // 2 + 1]
        return waves * self.inside

    def cross(self, a: Array, b: Array) -> Array:
        return self.xp.stack([a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)])

    def curl(self, waves: Waves) -> Waves:
        return 1j * self.cross(self.k, waves)

    def solenoidal(self, waves: Waves) -> Waves:
        """The part without divergence; the mean stays."""
        along = self.xp.sum(self.k * waves, axis=0) / self.xp.where(self.k2 > 0, self.k2, 1.0)
        return waves - self.k * along

    def square(self, waves: Waves) -> Array:
        """|u|^2 of every wave number, with its weight."""
        return self.weight * self.xp.sum(self.xp.abs(waves) ** 2, axis=0)

    def spectrum(self, waves: Waves) -> NDArray[np.float64]:
        """Energy per volume in shells of width one around |k| = 0, 1, 2, ...; the sum is the energy."""
        return np.bincount(self.shell.ravel(), 0.5 * on_host(self.square(waves)).ravel())

    def energy(self, waves: Waves) -> float:
        return float(self.spectrum(waves).sum())

    def dissipation(self, waves: Waves, viscosity: float) -> float:
        return viscosity * float(self.xp.sum(self.k2 * self.square(waves)))

    def second_invariant(self, waves: Waves) -> NDArray[np.float64]:
        """du_i/dx_j du_j/dx_i on the lattice, (n, n, n), as Yokota et al. (2009) define II; in the host's memory."""
        gradient = [[self.to_space(1j * self.k[j] * waves[i]) for j in range(3)] for i in range(3)]
        return on_host(sum(gradient[i][j] * gradient[j][i] for i in range(3) for j in range(3)))


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
    waves = box.solenoidal(box.to_waves(box.array(noise)))
    has = box.spectrum(waves)
    k = np.arange(len(has))
    wanted = np.where(k < box.n / 2, k**4 * np.exp(-2 * (k / peak) ** 2), 0.0)
    wanted *= 1.5 * speed**2 / wanted.sum()
    factor = np.sqrt(np.divide(wanted, has, out=np.zeros_like(wanted), where=wanted > 0))
    return waves * box.array(factor[box.shell])


class Spectral:
    """Velocity by the pseudo-spectral method: rotational form, 3/2 rule, RK4 with the viscous term integrated exactly."""

    def __init__(self, box: Box, waves: Waves, viscosity: float) -> None:
        self.box, self.waves, self.viscosity = box, waves, viscosity

    def _rate(self, waves: Waves) -> Waves:
        velocity, vorticity = self.box.to_fine(waves), self.box.to_fine(self.box.curl(waves))
        return self.box.solenoidal(self.box.from_fine(self.box.cross(velocity, vorticity)))

    def _step(self, dt: float) -> None:
        u, half = self.waves, self.box.xp.exp(-0.5 * self.viscosity * dt * self.box.k2)
        k1 = self._rate(u)
        k2 = self._rate(half * (u + 0.5 * dt * k1))
        k3 = self._rate(half * u + 0.5 * dt * k2)
        k4 = self._rate(half**2 * u + dt * half * k3)
        self.waves = half**2 * (u + dt / 6 * k1) + dt / 6 * (2 * half * (k2 + k3) + k4)

    def advance(self, time: float, courant: float = 0.8) -> None:
        """In equal steps, each at most `courant` spacings over the largest |u| + |v| + |w|."""
        xp = self.box.xp
        speed = float(xp.max(xp.sum(xp.abs(self.box.to_space(self.waves)), axis=0)))
        steps = int(np.ceil(time * speed / (courant * self.box.spacing)))
        for _ in range(steps):
            self._step(time / steps)
