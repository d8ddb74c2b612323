"""The plot of docs/flow.md: flows whose motion is known. Needs matplotlib.

python3 docs/plots/flows.py        writes docs/pictures/flows.svg

Drawn from what the programs of examples/c print, kept in docs/plots/flows: thin_ring 0.05, vortex_tube, leapfrog_rings 1000 0.02 and
ring_and_plane.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DOCS = Path(__file__).resolve().parent.parent


def rows(name: str) -> list[list[float]]:
    """The lines of numbers in the output of an example."""
    numbers = []
    for line in (DOCS / "plots" / "flows" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        try:
            numbers.append([float(word) for word in line.split()])
        except ValueError:
            continue
    return numbers


def thin_ring(axes) -> None:
    core, _, _, way, saffman, _ = zip(*rows("thin_ring"))
    axes.semilogx(core, saffman, "-", color="black", label="Saffman")
    axes.semilogx(core, way, "o", label="flow")
    axes.set(title="Thin ring", xlabel="core radius a / R", ylabel="speed, Γ/R")
    axes.set_xticks([0.05, 0.1, 0.2, 0.4], ["0.05", "0.1", "0.2", "0.4"])
    axes.minorticks_off()


def vortex_tube(axes) -> None:
    all_rows = rows("vortex_tube")
    for time in sorted({row[0] for row in all_rows}):
        part = [row for row in all_rows if row[0] == time]
        (line,) = axes.plot([row[1] for row in part], [row[2] for row in part], "o", markersize=4, label=f"t = {time:.0f}")
        axes.plot([row[1] for row in part], [row[3] for row in part], "-", color=line.get_color())
    axes.set(title="Vortex tube, lines: Lamb and Oseen", xlabel="radius", ylabel="swirl velocity")


def leapfrog(axes) -> None:
    time, r1, _, r2, *_ = zip(*rows("leapfrog_rings"))
    axes.plot(time, r1, label="first ring")
    axes.plot(time, r2, label="second ring")
    axes.set(title="Leapfrogging rings", xlabel="time, R²/Γ", ylabel="radius, R")


def ring_and_plane(axes) -> None:
    _, height, radius, _ = zip(*rows("ring_and_plane"))
    axes.plot(radius, height, "-", label="above the plane, and colliding with its mirror image")
    axes.set(title="Ring against a plane", xlabel="radius, R", ylabel="height, R", ylim=(0, 1.05))


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "wakefmm"
    figure, panels = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for panel, draw in zip(panels.flat, (thin_ring, vortex_tube, leapfrog, ring_and_plane)):
        draw(panel)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, loc="upper right")
    figure.savefig(DOCS / "pictures" / "flows.svg", metadata={"Date": None})
