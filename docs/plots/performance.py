"""The plots of docs/performance.md, drawn from the tables on that page. Needs matplotlib.

python3 docs/plots/performance.py        writes docs/pictures/performance-*.svg
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DOCS = Path(__file__).resolve().parent.parent


def table(begin: str) -> list[list[str]]:
    """The rows of the table whose head begins with `begin`."""
    lines = (DOCS / "performance.md").read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(begin))
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def save(figure, name: str) -> None:
    figure.savefig(DOCS / "pictures" / name, metadata={"Date": None})


def wakes() -> None:
    rows = table("| case | core | tolerance")
    labels = [" ".join(row[:3]) for row in rows]
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axes.barh(labels[::-1], [float(row[4]) for row in rows[::-1]])
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xlabel="time of the direct sum / time of one FMM call, CPU, 2 cores", ylabel="wake, core, tolerance")
    save(figure, "performance-wakes.svg")


def crossover() -> None:
    rows = table("| points | FMM, s | direct, s")
    points = [int(row[0]) for row in rows]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.loglog(points, [float(row[1]) for row in rows], "o-", label="FMM, tolerance 1e-3")
    axes.loglog(points, [float(row[2]) for row in rows], "s-", label="direct sum")
    axes.set(xlabel="sources, and as many targets", ylabel="time, s (CPU, 2 cores, double arrays)")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    save(figure, "performance-crossover.svg")


def linear() -> None:
    rows = table("| points | seconds | microseconds a point")
    points, seconds = [int(row[0]) for row in rows], [float(row[1]) for row in rows]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.loglog(points, seconds, "o-", label="FMM, tolerance 1e-3")
    axes.loglog(points, [seconds[0] * n / points[0] for n in points], "--", color="gray", label="linear in the number of points")
    axes.set(xlabel="sources, and as many targets", ylabel="time of one call, s (CPU, 2 cores, f64)")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    save(figure, "performance-linear.svg")


def treecode() -> None:
    """As many targets as sources at 1e-4 (beside Fig. 5 of Yokota and Barba 2011), and few targets of 1e6 sources at 1e-2."""
    rows = table("| sources | targets | tolerance | treecode, s")
    even = [row for row in rows if row[0] == row[1] and row[2] == "1e-4"]
    few = [row for row in rows if row[0] == "1000000" and row[0] != row[1] and row[2] == "1e-2"]
    figure, both = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axes, part, label in ((both[0], even, "sources, and as many targets"), (both[1], few, "targets of 1e6 sources")):
        points = [int(row[1]) for row in part]
        for column, style, name in ((3, "o-", "treecode"), (4, "^-", "FMM"), (5, "s--", "direct sum, scaled from 32,000 targets on")):
            axes.loglog(points, [float(row[column]) for row in part], style, label=name)
        axes.set(xlabel=label, ylabel="processor time, s (CPU, f64)", title=f"tolerance {part[0][2]}")
        axes.grid(alpha=0.3, which="both")
        axes.legend()
    save(figure, "performance-treecode.svg")


def gpu() -> None:
    rows = table("| points | f64, 1e-6 | error | ns a point")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for column, label in ((1, "FMM, f64, 1e-6"), (4, "FMM, f32, 1e-4"), (7, "direct sum, f64"), (8, "direct sum, f32")):
        known = [(float(row[0]), float(row[column])) for row in rows if row[column]]
        axes.loglog(*zip(*known), "o-" if column < 7 else "s--", label=label)
    axes.set(xlabel="sources, and as many targets", ylabel="time of the kernels, ms (one H200)")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    save(figure, "performance-gpu.svg")


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "wakefmm"
    wakes()
    crossover()
    linear()
    treecode()
    gpu()
