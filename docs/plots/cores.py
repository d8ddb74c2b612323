"""The plots of docs/concepts.md: velocity beside one element for every core. Needs matplotlib and the Python package.

python3 docs/plots/cores.py        writes docs/pictures/cores-*.svg

The curves are what the library computes (direct sums of one element), not formulas of this script.
"""

from pathlib import Path

import matplotlib
import numpy as np
import wakefmm
from wakefmm import Method, PlanOptions, Regularization

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

PICTURES = Path(__file__).resolve().parent.parent / "pictures"
#: Distances in core radii.
DISTANCE = np.linspace(0.01, 4, 400)
LENGTH = 2000.0


def segment(core: Regularization) -> np.ndarray:
    """Tangential velocity beside the middle of a long segment, circulation 2 pi, core radius 1."""
    points = [[0, 0, -LENGTH / 2], [0, 0, LENGTH / 2]]
    x = np.stack([DISTANCE, 0 * DISTANCE, 0 * DISTANCE], axis=1)
    options = PlanOptions(method=Method.DIRECT, segment_regularization=core)
    return wakefmm.induce_segments(points, [[0, 1]], [2 * np.pi], x, core_radius=[1.0], options=options)[:, 1]


def particle(core: Regularization) -> np.ndarray:
    """Tangential velocity beside a particle of strength 4 pi, core radius 1, in the plane normal to its strength."""
    x = np.stack([DISTANCE, 0 * DISTANCE, 0 * DISTANCE], axis=1)
    options = PlanOptions(method=Method.DIRECT, particle_regularization=core)
    strength = [[0, 0, 4 * np.pi]]
    return wakefmm.induce_particles([[0, 0, 0]], strength, x, core_radius=[1.0], options=options)[:, 1]


def plot(name: str, velocity, cores, axes_titles: tuple[str, str]) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for core in cores:
        style = {"color": "black", "linestyle": ":"} if core == Regularization.NONE else {}
        label = "none (singular)" if core == Regularization.NONE else core.name.lower().replace("_", "-")
        axes.plot(DISTANCE, velocity(core), label=label, **style)
    axes.set(xlabel=axes_titles[0], ylabel=axes_titles[1], xlim=(0, 4), ylim=(0, 1.6))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURES / name, metadata={"Date": None})


def main() -> None:
    plt.rcParams["svg.hashsalt"] = "wakefmm"
    segments = [Regularization(i) for i in range(0, 6)]
    particles = [Regularization.NONE, *(Regularization(i) for i in range(6, 12))]
    plot("cores-segments.svg", segment, segments, ("distance to the segment's line / c", "velocity / (Γ/(2πc))"))
    plot("cores-particles.svg", particle, particles, ("distance to the particle / c", "velocity / (|a|/(4πc²))"))


if __name__ == "__main__":
    main()
