"""Direct sums in plain NumPy, float64, from the formulas of docs/theory.md."""

import math

import numpy as np

from wakefmm import Regularization as R

_erf = np.vectorize(math.erf)


def _particle_factor(regularization, r, c):
    """S(r)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        q = r / c
        singular = 1 / r**3
        if regularization == R.NONE:
            return singular
        if regularization == R.GAUSS_ERF:
            s = (_erf(q / math.sqrt(2)) - math.sqrt(2 / math.pi) * q * np.exp(-(q**2) / 2)) * singular
        elif regularization == R.EXPONENTIAL:
            s = -np.expm1(-(q**3)) * singular
        elif regularization == R.COMPACT:
            s = 1 / np.sqrt(r**6 + c**6)
        elif regularization == R.ROSENHEAD:
            s = (r**2 + c**2) ** -1.5
        elif regularization == R.WINCKELMANS:
            s = (r**2 + 2.5 * c**2) * (r**2 + c**2) ** -2.5
        else:
            s = np.where(r <= c, q**2, 1) * singular
        return np.where(c > 0, s, singular)


def particles(x, position, strength, core, regularization, normalization=1 / (4 * math.pi)):
    """Velocity of vortex particles at x."""
    d = x[:, None] - position
    r = np.linalg.norm(d, axis=2)
    s = np.where(r > 0, _particle_factor(regularization, r, np.asarray(core)[None]), 0)
    return normalization * np.sum(np.cross(strength[None], d) * s[..., None], axis=1)


def _segment_factor(regularization, rho, c):
    """F(rho / c)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (rho / c) ** 2
        f = {
            R.NONE: lambda: np.ones_like(rho),
            R.RANKINE: lambda: np.minimum(1, t),
            R.LAMB_OSEEN: lambda: -np.expm1(-1.25643 * t),
            R.VATISTAS: lambda: rho**2 / np.sqrt(c**4 + rho**4),
            R.SCULLY: lambda: rho**2 / (c**2 + rho**2),
            R.OFFSET: lambda: np.ones_like(rho),
        }[regularization]()
        return np.where(c > 0, f, 1)


def segments(x, points, ends, circulation, core, regularization, normalization=1 / (4 * math.pi)):
    """Velocity of straight vortex segments at x."""
    a, b = points[ends[:, 0]], points[ends[:, 1]]
    r1, r2 = x[:, None] - a, x[:, None] - b
    n1, n2 = np.linalg.norm(r1, axis=2), np.linalg.norm(r2, axis=2)
    cross = np.cross(r1, r2)
    length = np.linalg.norm(b - a, axis=1)
    rho = np.linalg.norm(cross, axis=2) / length
    d = n1 * n2 * (n1 * n2 + np.sum(r1 * r2, axis=2))
    if regularization == R.OFFSET:
        d = d + (core * length) ** 2
    f = _segment_factor(regularization, rho, np.asarray(core)[None])
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(rho > 0, circulation * f * (n1 + n2) / d, 0)
    return normalization * np.sum(cross * weight[..., None], axis=1)


def potential(x, position, charge, normalization=1 / (4 * math.pi)):
    """Potential of charges at x and its gradient."""
    d = x[:, None] - position
    r = np.linalg.norm(d, axis=2)
    with np.errstate(divide="ignore"):
        inverse = np.where(r > 0, 1 / r, 0)
    gradient = -np.sum(charge[None, :, None] * d * inverse[..., None] ** 3, axis=1)
    return normalization * inverse @ charge, normalization * gradient


def gradient_of(field, x, h=1e-5):
    """du_i/dx_j by central differences."""
    steps = h * np.eye(3)
    return np.stack([(field(x + e) - field(x - e)) / (2 * h) for e in steps], axis=2)


def error(computed, exact):
    """Relative L2 difference."""
    return float(np.linalg.norm(computed - exact) / np.linalg.norm(exact))
