"""Tables and pictures of what bench/papers.rs and measure.py measured, beside what the papers print."""

import math
from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

Rows = list[dict[str, float]]
NAMES = {"direct": "direct sum", "treecode": "treecode", "fmm": "FMM"}
# Gumerov and Duraiswami (2008), Table 1: N, seconds of the potential and of potential and force, one CPU core; True: four times the
# row before to all printed digits, as the paper's estimates from N squared are.
GUMEROV = [
    (1024, 5.015e-2, 0.102, False),
    (2048, 2.017e-1, 0.4095, False),
    (4096, 7.986e-1, 1.633, False),
    (8192, 3.185, 6.541, False),
    (16384, 12.764, 26.155, False),
    (32768, 51.06, 104.6, False),
    (65536, 204.0, 418.5, True),
    (131072, 817.0, 1674.0, True),
    (262144, 3268.0, 6696.0, True),
    (524288, 13070.0, 26783.0, True),
    (1048576, 52281.0, 1.071e5, True),
]
# Yokota and Barba (2011), text on Figure 5: where the methods cross on one core.
CROSSINGS = [("treecode", "direct", 3e3), ("fmm", "direct", 3e3), ("fmm", "treecode", 3e3)]
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


def crossing(rows: Rows, faster: str, slower: str) -> str:
    """Number of bodies from which `faster` stays ahead, between two measurements by their logarithms."""
    if slower != "direct":
        # Where all pairs are near the methods are the same.
        rows = [row for row in rows if row[f"{faster}_error"] > 1e-12 and row[f"{slower}_error"] > 1e-12]
    ahead = [math.log(row[slower] / row[faster]) for row in rows]
    behind = [k for k, value in enumerate(ahead) if value <= 0]
    if not behind:
        return f"ahead from the first far field, {rows[0]['N']:,.0f}"
    last = behind[-1]
    if last + 1 == len(rows):
        return "not in this range"
    share = -ahead[last] / (ahead[last + 1] - ahead[last])
    low, high = math.log(rows[last]["N"]), math.log(rows[last + 1]["N"])
    return f"{float(f'{math.exp(low + share * (high - low)):.1e}'):,.0f} bodies"


def slope(rows: Rows, name: str) -> float:
    """Exponent of the growth over the last decade that was measured."""
    last = rows[-1]
    first = next(row for row in rows if row["N"] >= last["N"] / 10)
    return math.log(last[name] / first[name]) / math.log(last["N"] / first["N"])


def figure5(rows: Rows, folder: Path) -> str:
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    points = [row["N"] for row in rows]
    for (name, label), marker in zip(NAMES.items(), "s^o", strict=True):
        axes.loglog(points, [row[name] for row in rows], marker + "-", label=label + ", here")
    axes.axvline(3e3, color="black", linewidth=0.8, linestyle="--", label="all three cross, Yokota and Barba")
    axes.set(xlabel="bodies", ylabel="processor seconds, one core")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(folder / "yokota-barba-2011-fig5.png", dpi=110)
    lines = ["| bodies | direct, s | treecode, s | FMM, s | error, treecode | error, FMM |", "|---|---|---|---|---|---|"]
    for row in rows:
        direct = f"{row['direct']:.4g}" + (" (scaled)" if row["scaled"] else "")
        errors = f"{row['treecode_error']:.1e} | {row['fmm_error']:.1e}"
        lines.append(f"| {row['N']:.0f} | {direct} | {row['treecode']:.4g} | {row['fmm']:.4g} | {errors} |")
    lines += ["", "| crossover on one core | Yokota and Barba | here |", "|---|---|---|"]
    for faster, slower, theirs in CROSSINGS:
        ours = crossing(rows, faster, slower)
        lines.append(f"| {NAMES[faster]} before {NAMES[slower]} from | {theirs:,.0f} bodies | {ours} |")
    growth = ", ".join(f"{label} N^{slope(rows, name):.2f}" for name, label in NAMES.items())
    lines += ["", f"Growth over the last decade here: {growth}."]
    return "\n".join(lines)


def gumerov1(rows: Rows, folder: Path) -> str:
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for column, label, marker in ((1, "potential", "o"), (2, "potential and force", "s")):
        axes.loglog([r[0] for r in GUMEROV], [r[column] for r in GUMEROV], marker + "--", label=label + ", paper")
    for name, label, marker in (("potential", "potential", "o"), ("force", "potential and force", "s")):
        axes.loglog([r["N"] for r in rows], [r[name] for r in rows], marker + "-", label=label + ", here")
    axes.set(xlabel="sources, one more receiver", ylabel="seconds, one core, single precision")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(folder / "gumerov-2008-table1.png", dpi=110)
    lines = [
        "| N | potential, paper | potential, here | force, paper | force, here | force / potential, paper | here |",
        "|---|---|---|---|---|---|---|",
    ]
    for n, potential, force, estimate in GUMEROV:
        row = next((r for r in rows if r["N"] == n), None)
        if row is None:
            continue
        mark, own = (" (estimate)" if estimate else ""), (" (scaled)" if row["scaled"] else "")
        ratios = f"{force / potential:.2f} | {row['force'] / row['potential']:.2f}"
        ours = [f"{row[name]:.4g}{own}" for name in ("potential", "force")]
        lines.append(f"| {n} | {potential:g}{mark} | {ours[0]} | {force:g}{mark} | {ours[1]} | {ratios} |")
    first = GUMEROV[0], GUMEROV[5]
    theirs = math.log(first[1][1] / first[0][1]) / math.log(first[1][0] / first[0][0])
    lines += ["", f"Growth of the potential: N^{theirs:.2f} in the paper (1,024 to 32,768),"]
    lines[-1] += f" N^{slope(rows, 'potential'):.2f} here over the last decade."
    return "\n".join(lines)


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
