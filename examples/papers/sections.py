"""Tables and pictures of what measure.py measured, beside what the papers print."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

Rows = list[dict[str, float]]
# Hu et al. (2013), Table A.2, also (2012), Table 2: N, ms of the Coulomb and the Biot-Savart kernel, GPU, single precision.
HU_KERNELS = {1024: (89.8, 136.1), 4096: (97.8, 153.1), 16384: (129.1, 215.7), 65536: (418.3, 669.6), 262144: (565.7, 975.4), 1048576: (1074.1, 2159.1)}
# Hu et al. (2013), Table A.1: level, ms of the CPU by sorting, of the improved CPU, of the GPU; 2^20 sources and receivers.
HU_STRUCTURES = {3: (1293, 223, 7.7), 4: (1387, 272, 13.9), 5: (2137, 431, 13.0), 6: (8973, 1808, 34.6)}
# Gumerov and Duraiswami (2008): p, error of the potential in Table 8 on CPU and GPU, CPU seconds with gradient in Table 11; N = 2^20.
GUMEROV_ORDERS = {4: (2.3e-4, 2.3e-4, 28.37), 8: (8.8e-6, 8.3e-6, 88.09), 12: (1.3e-6, 9.5e-7, 116.1)}
# Yokota et al. (2009), Table 1: p, points on the sphere; the product rule of this library has p' (2 p' - 1), p' = p + 1.
POINTS = {6: 84, 8: 144, 10: 216}


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def pick(rows: Rows, **wanted: float) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def chart(path: Path, curves: Iterable[tuple[Rows, str, str, str]], **labels: str) -> None:
    """Curves of (rows, column, style, label) over N."""
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for rows, column, style, label in curves:
        axes.loglog([row["N"] for row in rows], [row[column] for row in rows], style, label=label)
    axes.set(**labels)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def pseudo(rows: Rows, folder: Path) -> str:
    curves = []
    for expansion, name, line in ((0, "harmonics", "o-"), (1, "pseudo-particles", "s--")):
        for color, degree in enumerate((6, 8, 10)):
            for level in (2, 3):
                some = pick(rows, expansion=expansion, p=degree, level=level)
                curves.append((some, "error", f"C{color}{line}", f"{name}, p = {degree}" if level == 2 else ""))
    chart(folder / "yokota-2009-fig10.png", curves, xlabel="particles and targets", ylabel="relative L2 error of the velocity")
    lines = []
    for harmonics in pick(rows, expansion=0):
        n, level, p = harmonics["N"], harmonics["level"], harmonics["p"]
        for other in pick(rows, expansion=1, N=n, level=level, p=p):
            ratio = other["seconds"] / harmonics["seconds"]
            errors = f"{harmonics['error']:.1e} | {other['error']:.1e}"
            times = f"{harmonics['seconds']:.3g} | {other['seconds']:.3g} | {ratio:.1f}"
            lines.append([f"{n:.0f}", f"{level:.0f}", f"{p:.0f}", errors, times])
    head = ["N", "level", "p", "error, harmonics", "error, pseudo-particles", "s, harmonics", "s, pseudo-particles", "ratio"]
    return table(head, lines)


def singular(rows: Rows) -> str:
    names = {0: "harmonics", 1: "pseudo-particles"}
    lines = []
    for n in sorted({row["N"] for row in rows}):
        found = [pick(rows, N=n, p=p, expansion=expansion) for expansion in names for p in (6, 8, 10)]
        lines.append([f"{n:.0f}", *(f"{some[0]['error']:.1e}" if some else "–" for some in found)])
    return table(["N", *(f"{name}, p = {p}" for name in names.values() for p in (6, 8, 10))], lines)


def orders(rows: Rows, folder: Path) -> str:
    styles = {32: "o--", 64: "s-"}
    for column, name, label in (
        ("error", "hu-orders.png", "relative L2 error of the potential"),
        ("seconds", "gumerov-2008-fig11.png", "processor seconds, one core"),
    ):
        curves = [
            (pick(rows, p=p, bits=bits), column, f"C{k}{style}", f"p = {p}, {'single' if bits == 32 else 'double'}")
            for k, p in enumerate((4, 8, 12))
            for bits, style in styles.items()
        ]
        chart(folder / name, curves, xlabel="sources, one more receiver", ylabel=label)
    lines = []
    for n in sorted({row["N"] for row in rows}):
        found = [pick(rows, N=n, p=p, bits=bits) for bits in styles for p in (4, 8, 12)]
        cells = [f"{some[0]['error']:.1e}" if some else "–" for some in found]
        lines.append([f"{n:.0f}", *cells])
    return table(["N", *(f"{kind}, p = {p}" for kind in ("single", "double") for p in (4, 8, 12))], lines)


def gumerov(rows: Rows) -> str:
    largest = max(row["N"] for row in rows)
    lines = []
    for p, (cpu, gpu, seconds) in GUMEROV_ORDERS.items():
        here = pick(rows, N=largest, p=p, bits=32)[0]
        lines.append([p, f"{cpu:.1e}", f"{gpu:.1e}", f"{here['error']:.1e}", f"{seconds:g}", f"{here['seconds']:.3g}"])
    head = ["p", "error, paper's CPU", "error, paper's GPU", f"error here, N = {largest:.0f}", "s with gradient, paper's CPU", "s here"]
    return table(head, lines)


def grid(rows: Rows, folder: Path) -> str:
    names = {0: "direct sum", 4: "FMM, p = 4", 8: "FMM, p = 8", 12: "FMM, p = 12"}
    curves = [(pick(rows, p=p), "error", f"C{k}o-", name) for k, (p, name) in enumerate(names.items())]
    chart(folder / "gumerov-2008-fig10.png", curves, xlabel="sources on a grid", ylabel="relative L2 error of the potential")
    sizes = sorted({row["N"] for row in rows})
    lines = [[f"{n:.0f}", *(f"{pick(rows, N=n, p=p)[0]['error']:.1e}" for p in names)] for n in sizes]
    return table(["N", *names.values()], lines)


def kernels(rows: Rows) -> str:
    lines = []
    for row in rows:
        coulomb, biot_savart = HU_KERNELS[int(row["N"])]
        theirs = [f"{coulomb:g}", f"{biot_savart:g}", f"{biot_savart / coulomb:.2f}"]
        ours = [f"{1000 * row['coulomb']:.3g}", f"{1000 * row['biot_savart']:.3g}", f"{row['biot_savart'] / row['coulomb']:.2f}"]
        lines.append([f"{row['N']:.0f}", *theirs, *ours])
    return table(["N", "Coulomb, paper, ms", "Biot–Savart, paper, ms", "ratio", "Coulomb, here, ms", "Biot–Savart, here, ms", "ratio"], lines)


def structures(rows: Rows) -> str:
    lines = []
    for row in rows:
        theirs = [f"{value:g}" for value in HU_STRUCTURES[int(row["level"])]]
        lines.append([f"{row['level']:.0f}", *theirs, f"{1000 * row['seconds']:.3g}"])
    return table(["level", "CPU, ms", "improved CPU, ms", "GPU, ms", "here, ms"], lines)


def direct(rows: Rows) -> str:
    columns = ("velocity", "velocity_and_gradient", "potential_and_force")
    lines = []
    for row in rows:
        times = [f"{row[name]:.3g}" for name in columns]
        lines.append([f"{row['N']:.0f}", *times, f"{row['potential_and_force'] / row['velocity_and_gradient']:.2f}"])
    return table(["N", "velocity, s", "velocity and gradient, s", "potential and force, s", "last over the one before"], lines)
