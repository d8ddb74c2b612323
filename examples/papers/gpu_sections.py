"""Tables and pictures of what measure_gpu.py measured, beside what the papers print. What was not measured is left out."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

import sections
from sections import table

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

Row = dict[str, Any]
PASSES = {"tree": "tree", "lists": "lists", **{name: name.upper() for name in ("p2m", "m2m", "m2l", "l2l", "l2p", "m2p", "p2p")}}
#: Operations of a pair as the papers count them: Yokota and Barba (2011), Section 5.1; Yokota et al. (2009), Tables 2 and 3.
FORCE, VELOCITY, STRETCHING = 19, 70, 133
# Yokota and Barba (2011), text on Figure 5: how many times as fast on the GPU; from where the methods are faster than the direct sum there.
SPEEDUPS = {"direct": 300, "treecode": 100, "fmm": 30}
GPU_CROSSINGS = {"treecode": 2e4, "fmm": 4e4}
# The same, conclusions: the direct sum over the faster of the two, on the GPU.
GAINS = {10**6: 15, 10**7: 150}
# Gumerov and Duraiswami (2008), Table 1: seconds of the potential and of potential and force on the GPU.
GUMEROV_DIRECT = {
    1024: (3.246e-4, 4.86e-4),
    2048: (7.959e-4, 9.53e-4),
    4096: (2.201e-3, 2.99e-3),
    8192: (6.851e-3, 9.86e-3),
    16384: (2.424e-2, 3.49e-2),
    32768: (7.947e-2, 0.138),
    65536: (0.3452, 0.502),
    131072: (1.361, 1.986),
    262144: (5.361, 7.892),
    524288: (21.345, 31.41),
    1048576: (85.205, 125.36),
}
# Tables 8 and 11, 2^20 points: p, tolerance here; seconds of S expansions, up, down, R evaluation, sparse, total; with the gradient.
GUMEROV_PARTS = {
    4: (2.3e-4, (0.011, 0.00046, 0.061, 0.011, 0.60, 0.6835), 0.979),
    8: (8.3e-6, (0.020, 0.00218, 0.265, 0.021, 0.60, 0.9082), 1.227),
    12: (9.5e-7, (0.040, 0.00562, 0.72, 0.030, 0.59, 1.395), 1.761),
}
GUMEROV_BREAK_EVEN = {4: 1e4, 8: 3e4, 12: 7e4}
# Table 2: seconds of the sparse product at best settings; Table 3: of S expansions, p = 12, the better of two settings.
GUMEROV_SPARSE = {32768: 0.0151, 65536: 0.0275, 131072: 0.0713, 262144: 0.120, 524288: 0.221, 1048576: 0.596}
GUMEROV_EXPANSIONS = {16384: 4.22e-3, 131072: 5.93e-3, 262144: 1.05e-2, 1048576: 3.81e-2}
# Tables 4 and 6: level, p, seconds of the upward translations and of the downward pass.
GUMEROV_LEVELS = {
    (3, 4): (1.44e-4, 1.46e-2),
    (3, 8): (9.26e-4, 7.71e-2),
    (3, 12): (2.49e-3, 0.233),
    (4, 4): (4.57e-4, 6.14e-2),
    (4, 8): (2.18e-3, 0.265),
    (4, 12): (5.62e-3, 0.718),
    (5, 4): (2.34e-3, 0.359),
    (5, 8): (1.16e-2, 1.80),
    (5, 12): (3.09e-2, 4.84),
    (6, 4): (1.89e-2, None),
    (6, 8): (9.39e-2, None),
    (6, 12): (0.255, None),
}
# Yokota et al. (2009): text on Figures 4, 8 and 9 and Section 4.2. Pairs per second of the direct sums on one GPU.
YOKOTA_PAIRS = {"velocity": 225e9 / VELOCITY, "gradient": 500_000**2 / 150, "force": 1_048_576**2 / 110}
# Seconds for 10^7 particles on 64 GPUs, and the parallel efficiency there.
YOKOTA_64 = {"harmonics": (2.5, 0.60), "pseudo_particles": (3.0, 0.71)}


# Sources and targets up to which the near field runs beside the other passes.
BESIDE = 400_000


class Part(NamedTuple):
    gpu: str
    core: str
    rows: list[Row]
    remarks: list[str]

    def pick(self, **wanted: Any) -> list[Row]:
        return sorted((row for row in self.rows if all(row[key] == value for key, value in wanted.items())), key=lambda row: row["N"])


def load(lines: Iterable[str]) -> Part:
    """A file of measure_gpu.py."""
    lines = list(lines)
    remarks = [line[2:] for line in lines if line.startswith("# ")]
    machines = [next((r.split(": ", 1)[1] for r in remarks if r.startswith(name)), "") for name in ("GPU: ", "one core: ")]
    rows = []
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        if None not in row.values():  # a run that was cut off ends in half a line
            rows.append({key: number(value) for key, value in row.items()})
    left_out = [r.removeprefix("left out: ") for r in remarks if r.startswith("left out: ")]
    return Part(machines[0].split("; host side")[0], machines[1].split("; no CUDA")[0], rows, left_out)


def number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def short(value: float) -> str:
    """Three digits, without a power of ten where the number is large."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def near_field(row: Row | None) -> str:
    """Milliseconds of P2P, where it does not run beside other passes."""
    return ms(row if row and row["N"] + row["targets"] > BESIDE else None, "p2p")


def ms(row: Row | None, column: str = "seconds") -> str:
    if row is None:
        return "–"
    return short(1000 * row[column]) + (" (scaled)" if column == "seconds" and row["scaled"] else "")


def error(row: Row | None) -> str:
    return "–" if row is None else "summed directly" if row["used"] == "direct" else f"{row['error']:.1e}"


def at(rows: Iterable[Row], n: float) -> Row | None:
    return next((row for row in rows if row["N"] == n), None)


def sizes(*many: Iterable[Row]) -> list[float]:
    return sorted({row["N"] for rows in many for row in rows})


def work(row: Row) -> float:
    """Seconds of the passes, without copies."""
    return float(sum(row[p] for p in PASSES))


def expanded(rows: Iterable[Row]) -> list[Row]:
    """Those whose far field was expanded."""
    return [row for row in rows if row["used"] != "direct"]


def ratio(above: Row | None, below: Row | None) -> str:
    return "–" if above is None or below is None else short(above["seconds"] / below["seconds"])


def crossing(fast: list[Row], slow: list[Row]) -> str:
    """From how many points `fast` stays ahead of `slow`."""
    both = [
        {"N": row["N"], "fast": row["seconds"], "direct": other["seconds"]}
        for row in expanded(fast)
        if (other := at(slow, row["N"])) is not None
    ]
    return sections.crossing(both, "fast", "direct").replace("bodies", "points") if both else "–"


def share(value: float, whole: float) -> str:
    """Percent."""
    return f"{100 * value / whole:.1f}" if whole else "–"


def quotient(above: float, below: float) -> str:
    return f"{above / below:.2f}" if below else "–"


def column(name: str) -> Callable[[Row], float]:
    return lambda row: float(row[name])


def growth(rows: list[Row]) -> str:
    return f"N^{sections.slope(rows, 'seconds'):.2f}" if len(rows) > 1 else "–"


def curves(path: Path, lines: Iterable[tuple[list[Row], Callable[[Row], float], str, str]], xlabel: str, ylabel: str) -> None:
    """Lines of (rows, value, style, label) over N; what is 0 is left out."""
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for rows, value, style, label in lines:
        points = [(row["N"], 1000 * value(row)) for row in rows if value(row) > 0]
        if points:
            axes.loglog(*zip(*points, strict=True), style, label=label)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def seconds(row: Row) -> float:
    return float(row["seconds"])


def bars(path: Path, columns: dict[str, Row]) -> None:
    """Passes stacked, as in Figure 6 of Yokota and Barba (2011)."""
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    base = [0.0] * len(columns)
    names = [name.replace(", ", "\n") for name in columns]
    for name, label in {**PASSES, "transfer": "copies"}.items():
        values = [1000 * row[name] for row in columns.values()]
        if any(values):
            axes.bar(names, values, 0.5, bottom=base, label=label)
            base = [b + v for b, v in zip(base, values, strict=True)]
    axes.set(ylabel="milliseconds", xlim=(-0.5, len(columns) + 0.5))
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def blocks(*texts: str) -> str:
    """Paragraphs, tables and pictures; what is empty is left out."""
    return "\n\n".join(text for text in texts if text)


def compared(lines: list[list[str]], paper: str = "the paper") -> str:
    return table(["", paper, "here"], lines) if lines else ""


YOKOTA_BARBA = """### Yokota and Barba (2011), Figures 5 to 7

Potential and force of N bodies at their own positions, float arrays, tolerance 1e-5 as in Figure 5 above; errors of the force on the
GPU. The paper: an NVIDIA 295GTX and one core of an Intel Core i7, 2.67 GHz. Milliseconds here.

![Direct sum, treecode and FMM on a GPU and on one core](yokota-barba-2011-gpu.png)"""
FIGURE_6 = """**Figure 6**, passes of the evaluation on the GPU, N = {n:,.0f} (the paper: 10,000,000), milliseconds and shares. In the
paper sorting, tree and lists are of the CPU.

![Passes of treecode and FMM](yokota-barba-2011-fig6.png)"""
FIGURE_7 = """**Figure 7**, rates of P2P: pairs of the report over the seconds of the pass, and operations at {operations} a pair, the
paper's count of its own kernel; the library's is another. The paper: some 300 Gflop/s for the larger N. Its counts of M2L and M2P are
not printed."""


def yokota_barba(part: Part, folder: Path) -> str:
    names = sections.NAMES
    rows = {(d, m): part.pick(series="fig5", device=d, method=m) for d in ("gpu", "cpu") for m in names}
    if not rows["gpu", "fmm"] or not rows["gpu", "direct"]:
        return ""
    lines = [
        (rows[d, m], seconds, f"C{k}{style}", f"{names[m]}, {where}")
        for k, m in enumerate(names)
        for d, style, where in (("gpu", "o-", "GPU"), ("cpu", "s--", "one core"))
    ]
    curves(folder / "yokota-barba-2011-gpu.png", lines, "bodies", "milliseconds")
    points = sizes(*rows.values())
    body = []
    for n in points:
        cells = [ms(at(rows[d, m], n)) for d in ("gpu", "cpu") for m in names]
        body.append([f"{n:.0f}", *cells, *(error(at(rows["gpu", m], n)) for m in ("treecode", "fmm"))])
    kinds = [f"{name}, {where}" for where in ("GPU", "core") for name in names.values()]
    facts = []
    for m, times in SPEEDUPS.items():
        common = [n for n in points if at(rows["gpu", m], n) and at(rows["cpu", m], n)]
        if common:
            here = f"{ratio(at(rows['cpu', m], common[-1]), at(rows['gpu', m], common[-1]))} times, N = {common[-1]:,.0f}"
            facts.append([f"GPU over one core, {names[m]}", f"{times} times", here])
    for m, crossed in GPU_CROSSINGS.items():
        here = crossing(rows["gpu", m], rows["gpu", "direct"])
        facts.append([f"GPU: {names[m]} before direct sum from", f"{crossed:,.0f} points", here])
    for size, times in GAINS.items():
        found = [row for m in ("treecode", "fmm") if (row := at(rows["gpu", m], size))]
        if found and at(rows["gpu", "direct"], size):
            here = f"{ratio(at(rows['gpu', 'direct'], size), min(found, key=seconds))} times"
            facts.append([f"GPU: direct sum over the faster of treecode and FMM, N = {size:,}", f"{times} times", here])
    main = table(["N", *kinds, "error, treecode", "error, FMM"], body)
    return blocks(YOKOTA_BARBA, main, compared(facts), figure6(part, rows, folder), figure7(rows))


def figure6(part: Part, rows: dict[tuple[str, str], list[Row]], folder: Path) -> str:
    """Shares of the passes at the largest size."""
    trees, fmms = (expanded(rows["gpu", m]) for m in ("treecode", "fmm"))
    both = [n for n in sizes(fmms) if at(trees, n)]
    if not both:
        return ""
    n = both[-1]
    tree, fmm = (next(row for row in some if row["N"] == n) for some in (trees, fmms))
    columns = {f"treecode, N = {n:,.0f}": tree, f"FMM, N = {n:,.0f}": fmm}
    pseudo = expanded(part.pick(series="fig6", expansion="pseudo_particles"))
    if pseudo:
        columns[f"pseudo-particles, N = {pseudo[-1]['N']:,.0f}"] = pseudo[-1]
    bars(folder / "yokota-barba-2011-fig6.png", columns)
    body = []
    for name, label in PASSES.items():
        if any(row[name] for row in columns.values()):
            body.append([label, *(f"{ms(row, name)} ({share(row[name], work(row))} %)" for row in columns.values())])
    body.append(["together", *(short(1000 * work(row)) for row in columns.values())])
    body.append(["copies and the rest of the evaluation", *(ms(row, "transfer") for row in columns.values())])
    body.append(["error of the force", *(error(row) for row in columns.values())])
    facts = [
        ["P2P, treecode over FMM", "the same lists, the same time", quotient(tree["p2p"], fmm["p2p"])],
        ["P2M, FMM over treecode", "above 1: the FMM needs a higher order", quotient(fmm["p2m"], tree["p2m"])],
        ["M2P of the treecode over M2L of the FMM", "similar times", quotient(tree["m2p"], fmm["m2l"])],
    ]
    return blocks(FIGURE_6.format(n=n), table(["pass", *columns], body), compared(facts, "the paper's text"))


def figure7(rows: dict[tuple[str, str], list[Row]]) -> str:
    """Rates of the near field."""
    body = []
    for row in expanded(rows["gpu", "fmm"]):
        if row["N"] + row["targets"] <= BESIDE:
            continue
        cells = []
        for one in (row, at(rows["gpu", "direct"], row["N"])):
            rate = one["near_pairs"] / one["p2p"] / 1e9 if one and one["p2p"] else None
            cells += [short(rate), f"{FORCE * rate:,.0f}"] if rate else ["–", "–"]
        body.append([f"{row['N']:.0f}", f"{row['near_pairs']:.3g}", ms(row, "p2p"), *cells])
    head = ["N", "near pairs, FMM", "P2P, ms", "P2P, 1e9 pairs/s", "Gflop/s", "direct sum, 1e9 pairs/s", "Gflop/s"]
    return blocks(FIGURE_7.format(operations=FORCE), table(head, body)) if body else ""


HU = """### Hu et al. (2012), Figure 13 and Table 2; Hu et al. (2013), Figures A.4, A.5 and Table A.2

N sources and N other receivers in the unit cube; single precision with a tolerance of 1e-5, double precision with 1e-6. The papers:
NVIDIA GTX 480; the order of these runs is not printed.

**Figures 13 (a) and A.4**: passes of the FMM, Biot–Savart kernel, milliseconds together and shares in percent.

![Passes by N](hu-gpu-passes.png)"""
DUST = """### Hu et al. (2012), Figure 6

Direct sums of {n:,.0f} vortex segments (the paper: thousands) at dust particles, milliseconds. The paper's gains are of whole
simulations of brownout over the CPU: 250 in single and 25 in double precision; here of the sums alone, over one core in double
precision."""
Sums = dict[tuple[str, str, str, int], list[Row]]


def hu(part: Part, folder: Path) -> str:
    some: Sums = {
        (kernel, device, method, bits): part.pick(
            series="sums", kernel=kernel, device=device, method=method, bits=bits, expansion="harmonics"
        )
        for kernel in ("velocity", "potential")
        for device in ("gpu", "cpu")
        for method in ("fmm", "direct")
        for bits in (32, 64)
    }
    single, double = (expanded(some["velocity", "gpu", "fmm", bits]) for bits in (32, 64))
    if not single:
        return ""
    pseudo = expanded(part.pick(series="sums", kernel="velocity", expansion="pseudo_particles"))
    lines = [(single, column(p), f"C{k}o-", label) for k, (p, label) in enumerate(PASSES.items())]
    lines.append((single, work, "k--", "together"))
    curves(folder / "hu-gpu-passes.png", lines, "sources, as many receivers", "milliseconds, single precision")
    shown = [p for p in PASSES if any(row[p] for row in single + double + pseudo)]
    body = []
    for name, rows in (("single", single), ("double", double), ("single, pseudo-particles", pseudo)):
        for row in rows:
            shares = [share(row[p], work(row)) for p in shown]
            body.append([f"{row['N']:.0f}", name, short(1000 * work(row)), *shares, ms(row, "transfer"), error(row)])
    last = single[-1]
    size = f"N = {last['N']:,.0f}"
    most = max(PASSES, key=lambda p: float(last[p]))
    growing = growth([{"N": row["N"], "seconds": work(row)} for row in single])
    parts = [
        ["the most expensive part", "translations of the downward pass", f"{PASSES[most]}, {size}"],
        ["tree and lists", "small enough to be neglected", f"{share(last['tree'] + last['lists'], work(last))} % of the passes, {size}"],
        ["growth of all parts", "linear", f"{growing} together, over the last decade"],
    ]
    facts = []
    for bits, precision in ((32, "single"), (64, "double")):
        here = crossing(some["potential", "gpu", "fmm", bits], some["potential", "gpu", "direct", bits])
        facts.append([f"Coulomb: FMM before direct sum on the GPU from, {precision}", "65,536 points", here])
    for bits, precision, theirs in ((32, "single", 7), (64, "double", 16)):
        for row in some["velocity", "gpu", "fmm", bits]:
            if row["N"] == 1e7:
                here = f"{row['seconds']:.3g} s, error {error(row)}"
                facts.append([f"Biot–Savart, FMM, 10,000,000 points, {precision}", f"about {theirs} s", here])
    return blocks(
        HU,
        table(["N", "precision", "together, ms", *(f"{PASSES[p]}, %" for p in shown), "copies and rest, ms", "error"], body),
        compared(parts, "the papers' text"),
        methods(some, "potential", "Coulomb kernel", "Figure A.5", folder),
        methods(some, "velocity", "Biot–Savart kernel", "Figure 13 (b)", folder),
        compared(facts, "the papers"),
        dust(part),
    )


def methods(some: Sums, kernel: str, name: str, figure: str, folder: Path) -> str:
    """Milliseconds of direct sums and FMM by N, one kernel."""
    kinds = {
        "direct, one core, double": ("cpu", "direct", 64, "k^--"),
        "direct, GPU, double": ("gpu", "direct", 64, "C0s-"),
        "direct, GPU, single": ("gpu", "direct", 32, "C0s--"),
        "FMM, GPU, double": ("gpu", "fmm", 64, "C1o-"),
        "FMM, GPU, single": ("gpu", "fmm", 32, "C1o--"),
    }
    rows = {label: some[kernel, d, m, b] for label, (d, m, b, _) in kinds.items()}
    png = f"hu-gpu-{kernel}.png"
    curves(folder / png, [(rows[k], seconds, kinds[k][3], k) for k in kinds], "sources, as many receivers", f"milliseconds, {name}")
    body = []
    for n in sizes(*rows.values()):
        theirs = sections.HU_KERNELS.get(int(n))
        paper = short(theirs[kernel == "velocity"]) if theirs else "–"
        errors = [error(at(rows[k], n)) for k in ("FMM, GPU, single", "FMM, GPU, double")]
        body.append([f"{n:.0f}", *(ms(at(rows[k], n)) for k in kinds), paper, *errors])
    text = f"**{figure}**, {name}, milliseconds; beside the paper's single precision (Table A.2).\n\n![{name}]({png})"
    return blocks(text, table(["N", *kinds, "FMM, GTX 480, single", "error, single", "error, double"], body))


def dust(part: Part) -> str:
    """Hu et al. (2012), Figure 6."""
    rows = part.pick(series="dust")
    body = []
    for targets in sorted({row["targets"] for row in rows}):
        here = {(row["device"], row["bits"]): row for row in rows if row["targets"] == targets}
        core, single, double = (here.get(key) for key in (("cpu", 64), ("gpu", 32), ("gpu", 64)))
        body.append([f"{targets:.0f}", *map(ms, (core, single, double)), ratio(core, single), ratio(core, double)])
    head = ["particles", "one core, double", "GPU, single", "GPU, double", "gain, single", "gain, double"]
    return blocks(DUST.format(n=rows[0]["N"]), table(head, body)) if body else ""


GUMEROV = """### Gumerov and Duraiswami (2008), Tables 1 to 8 and 11, Figures 6 to 8 and 11

N charges in (0, 1), N + 1 receivers. The paper: NVIDIA GeForce 8800 GTX, single precision. Here the FMM has the errors of its GPU as
tolerances: 2.3e-4 (p = 4) and 8.3e-6 (p = 8) with float arrays, 9.5e-7 (p = 12) in double precision."""
TABLE_8 = "**Table 8**: passes of the FMM, potential, N = 1,048,576, milliseconds and shares; the paper's total has no tree."
TABLE_11 = """**Table 11, Figure 11**: potential and gradient on the GPU, N = 1,048,576, and from where the FMM is before the direct sum
in single precision.

![Potential and gradient on a GPU](gumerov-2008-gpu.png)"""
TABLES_2_3 = (
    """**Tables 2 and 3**: near field (p = 8) and P2M (p = 12), milliseconds. Of the paper's two settings of Table 3 the faster one."""
)
TABLES_4_7 = """**Tables 4 to 7**: translations up and down by level, N = 1,048,576, milliseconds. Leaves here have the size that gives
the paper's level. Tables 5 and 7 are the same numbers at the levels that are best."""
FIGURES_7_8 = """**Figures 7 and 8**: near field with leaves of at most 60 and 320 points, milliseconds. The text: on that GPU the
larger ones are somewhat faster."""


def gumerov(part: Part, folder: Path) -> str:
    texts = [gumerov_direct(part), gumerov_passes(part), gumerov_force(part, folder), gumerov_ends(part), gumerov_levels(part)]
    leaves = [expanded(part.pick(series="leaf", leaf=leaf)) for leaf in (60, 320)]
    body = [[f"{n:.0f}", *(near_field(at(rows, n)) for rows in leaves)] for n in sizes(*leaves) if 2 * n > BESIDE]
    if body:
        texts += [FIGURES_7_8, table(["N", "P2P, leaves of 60", "P2P, leaves of 320"], body)]
    return blocks(GUMEROV, *texts) if any(texts) else ""


def gumerov_direct(part: Part) -> str:
    rows = {kernel: part.pick(series="direct", kernel=kernel) for kernel in ("potential", "force")}
    body = []
    for n in sizes(*rows.values()):
        theirs = [short(1000 * value) for value in GUMEROV_DIRECT[int(n)]]
        here = [ms(at(rows[k], n)) for k in rows]
        body.append([f"{n:.0f}", theirs[0], here[0], theirs[1], here[1]])
    head = ["N", "potential, paper", "potential, here", "potential and force, paper", "here"]
    return blocks("**Table 1, Figure 6**: direct sums on the GPU, milliseconds.", table(head, body)) if body else ""


def gumerov_passes(part: Part) -> str:
    body = []
    for p, (tolerance, theirs, _) in GUMEROV_PARTS.items():
        row = at(expanded(part.pick(series="potential", tolerance=tolerance)), 2**20)
        if row:
            structure = row["tree"] + row["lists"]
            ours = (row["p2m"], row["m2m"], row["m2l"] + row["l2l"], row["l2p"], row["p2p"], work(row) - structure)
            for who, values, rest in (("paper", theirs, ["–", "–"]), ("here", ours, [short(1000 * structure), error(row)])):
                shares = [f"{short(1000 * value)} ({share(value, values[-1])} %)" for value in values[:-1]]
                body.append([f"{p}", who, *shares, short(1000 * values[-1]), *rest])
    head = ["p", "", "P2M", "M2M", "M2L and L2L", "L2P", "P2P", "total", "tree and lists", "error"]
    return blocks(TABLE_8, table(head, body)) if body else ""


def gumerov_force(part: Part, folder: Path) -> str:
    direct = part.pick(series="direct", kernel="force")
    force = {p: part.pick(series="force", tolerance=tolerance) for p, (tolerance, _, _) in GUMEROV_PARTS.items()}
    body = []
    for p, (_, _, theirs) in GUMEROV_PARTS.items():
        row = at(force[p], 2**20)
        if row:
            even = f"{GUMEROV_BREAK_EVEN[p]:,.0f} points", crossing(force[p], direct)
            body.append([f"{p}", f"{1000 * theirs:,.0f}", ms(row), error(row), *even])
    if not body:
        return ""
    lines = [(force[p], seconds, f"C{k}o-", f"FMM at the error of p = {p}") for k, p in enumerate(force)]
    lines.append((direct, seconds, "ks--", "direct sum"))
    curves(folder / "gumerov-2008-gpu.png", lines, "sources, one more receiver", "milliseconds, potential and gradient")
    head = ["p", "paper, ms", "here, ms", "error of the gradient here", "FMM before direct sum from, paper", "here"]
    return blocks(TABLE_11, table(head, body))


def gumerov_ends(part: Part) -> str:
    """Near field and P2M by N."""
    near, far = (expanded(part.pick(series="potential", tolerance=GUMEROV_PARTS[p][0])) for p in (8, 12))
    body = []
    for n in sizes(near, far):
        theirs = [short(1000 * some[int(n)]) if int(n) in some else "–" for some in (GUMEROV_SPARSE, GUMEROV_EXPANSIONS)]
        body.append([f"{n:.0f}", theirs[0], near_field(at(near, n)), theirs[1], ms(at(far, n), "p2m")])
    return blocks(TABLES_2_3, table(["N", "near field, paper", "P2P, here", "P2M, paper", "here"], body)) if body else ""


def gumerov_levels(part: Part) -> str:
    body = []
    for (level, p), (up, down) in GUMEROV_LEVELS.items():
        for row in expanded(part.pick(series="level", tolerance=GUMEROV_PARTS[p][0], level=level)):
            cells = [short(1000 * up), ms(row, "m2m"), short(1000 * down) if down else "–", short(1000 * (row["m2l"] + row["l2l"]))]
            body.append([f"{level}", f"{p}", f"{row['depth']:.0f}", *cells, error(row)])
    head = ["level", "p", "depth here", "M2M, paper", "here", "downward, paper", "M2L and L2L, here", "error here"]
    return blocks(TABLES_4_7, table(head, body)) if body else ""


YOKOTA = """### Yokota et al. (2009), Figures 2 to 9 and Table 5

N vortex particles at their own positions with cores of 2π N^(-1/3), float arrays; the FMM at a tolerance of 1e-4, which the paper
reaches with p = 10. The paper: one NVIDIA GeForce 8800 GT, or 64 of them."""
FIGURES_2_4 = """**Figures 2 to 4**: direct sums, milliseconds; 1e9 pairs per second, and in brackets Gflop/s by the paper's counts,
weighted by clock cycles, of 70 for velocity and 133 for velocity and stretching (Tables 2 and 3). Its rates are from its text: 225
Gflop/s for velocity; 150 s for velocity and stretching of 500,000 particles; 110 s for potential and force of 1,048,576. Here velocity
and gradient take the place of velocity and stretching."""
FIGURES_5_9 = """**Figures 5, 6, 8 and 9**: velocity by the FMM, milliseconds, copies and tree among them.

![Velocity by the FMM on a GPU](yokota-2009-gpu.png)"""
TABLE_5 = """**Table 5**: 1,000 steps of 256³ particles in 4,120 s on 64 GPUs; the same case here, with its times: [isotropic
turbulence](../turbulence/README.md)."""


def yokota(part: Part, folder: Path) -> str:
    texts = [yokota_direct(part), yokota_fmm(part, folder)]
    return blocks(YOKOTA, *texts, TABLE_5) if any(texts) else ""


def yokota_direct(part: Part) -> str:
    rows = {kernel: part.pick(series="direct", kernel=kernel) for kernel in ("velocity", "gradient", "force")}
    operations = {"velocity": VELOCITY, "gradient": STRETCHING}

    def rate(kernel: str, pairs: float) -> str:
        return short(pairs / 1e9) + (f" ({operations[kernel] * pairs / 1e9:,.0f})" if kernel in operations else "")

    body = []
    for n in sizes(*rows.values()):
        found = {kernel: at(some, n) for kernel, some in rows.items()}
        rates = [rate(kernel, row["N"] * row["targets"] / row["seconds"]) if row else "–" for kernel, row in found.items()]
        body.append([f"{n:.0f}", *map(ms, found.values()), *rates])
    if not body:
        return ""
    body.append(["the paper", "–", "–", "–", *(rate(kernel, pairs) for kernel, pairs in YOKOTA_PAIRS.items())])
    names = ["velocity", "velocity and gradient", "potential and force"]
    return blocks(FIGURES_2_4, table(["N", *(f"{name}, ms" for name in names), *(f"{name}, 1e9 pairs/s" for name in names)], body))


def yokota_fmm(part: Part, folder: Path) -> str:
    harmonics, pseudo = (part.pick(series="fmm", device="gpu", expansion=expansion) for expansion in YOKOTA_64)
    core = part.pick(series="fmm", device="cpu")
    if not harmonics:
        return ""
    lines = [(harmonics, seconds, "C0o-", "harmonics, GPU"), (pseudo, seconds, "C1s-", "pseudo-particles, GPU")]
    lines.append((core, seconds, "k^--", "harmonics, one core"))
    curves(folder / "yokota-2009-gpu.png", lines, "particles and targets", "milliseconds, velocity")
    body = []
    for n in sizes(harmonics, pseudo):
        one, other, slow = at(harmonics, n), at(pseudo, n), at(core, n)
        more = [ms(other), error(other), ratio(other, one)] if pseudo else []
        body.append([f"{n:.0f}", ms(one), error(one), ms(slow), ratio(slow, one), *more])
    facts = []
    for above, name, theirs in (
        (core, "FMM, one core over GPU (the paper: both cores)", "80"),
        (pseudo, "pseudo-particles over harmonics, GPU", "1.5"),
    ):
        common = [n for n in sizes(above) if at(harmonics, n)]
        if common:
            facts.append([name, theirs, f"{ratio(at(above, common[-1]), at(harmonics, common[-1]))}, N = {common[-1]:,.0f}"])
    for rows, name, (total, efficiency) in zip((harmonics, pseudo), ("harmonics", "pseudo-particles"), YOKOTA_64.values(), strict=True):
        if rows:
            facts.append([f"growth, {name}", "N^1.15", f"{growth(rows)} over the last decade"])
        for row in rows:
            if row["N"] == 1e7:
                paper = f"{total:g} s on 64 GPUs; {64 * total * efficiency:.0f} s on one, by their efficiency of {100 * efficiency:.0f} %"
                facts.append([f"10,000,000 particles, {name}", paper, f"{row['seconds']:.3g} s on one"])
    head = ["N", "harmonics, GPU", "error", "one core", "core over GPU"]
    more = ["pseudo-particles, GPU", "error", "over harmonics"] if pseudo else []
    return blocks(FIGURES_5_9, table([*head, *more], body), compared(facts, "the paper's text"))


SECTIONS: dict[str, Callable[[Part, Path], str]] = {
    "gpu_yokota_barba": yokota_barba,
    "gpu_hu": hu,
    "gpu_gumerov": gumerov,
    "gpu_yokota": yokota,
}
CHAPTER = """## On a GPU

Written by `make.py --gpu` ([measure_gpu.py](measure_gpu.py)). {machines}

Milliseconds are host wall clock of one evaluation by a kept plan, from host arrays with new positions to a field on the host, copies
included; medians. "Scaled": a direct sum that was measured at fewer targets. Errors are relative L2 errors at 300 targets against
direct sums in double precision. On a GPU each pair of cells has the terms that the tolerance needs, so cases are set beside the papers
by error and not by order. Seconds of passes are of the plan's report; up to 400,000 sources and targets
their shares are [sampled](../../docs/gpu.md#what-runs-there), and the near field runs beside the other passes: P2P is what is left of
it after them, and its rates are left out."""


def write(parts: dict[str, Part], folder: Path) -> dict[str, str]:
    """The sections of what was measured, and their pictures."""
    texts = {name: SECTIONS[name](part, folder) for name, part in parts.items()}
    return {name: text for name, text in texts.items() if text}


def chapter(parts: dict[str, Part], texts: dict[str, str]) -> str:
    """The chapter of the page; empty where nothing was measured."""
    shown = [parts[name] for name in texts]
    if not shown:
        return ""
    rows = [row for part in shown for row in part.rows]
    machines = dict.fromkeys(f"GPU: {part.gpu}. One core: {part.core}." for part in shown)
    doubled: dict[str, set[float]] = {}
    for row in rows:
        if row["device"] == "gpu" and row["bits"] == 32 and row["precision"] == 64:
            doubled.setdefault(f"{sections.NAMES[row['used']]}, {row['kernel']}", set()).add(row["N"])
    pseudo = sorted({row["tolerance"] for row in rows if row["expansion"] == "pseudo_particles"})
    left_out = dict.fromkeys(remark for part in shown for remark in part.remarks)
    remarks = []
    if doubled:
        cases = "; ".join(f"{name}, N = {', '.join(f'{n:.0f}' for n in sorted(some))}" for name, some in doubled.items())
        remarks.append(f"Float arrays that the GPU computed in double precision, since single was not enough: {cases}.")
    if pseudo:
        tolerances = " or ".join(f"{t:g}" for t in pseudo)
        remarks.append(f"Pseudo-particles have 11 degrees and a tolerance of {tolerances}: that of harmonics where they meet it.")
    if left_out:
        remarks.append("\n".join(["Left out:", "", *(f"- {remark}" for remark in left_out)]))
    return blocks(CHAPTER.format(machines=" ".join(machines)), *remarks, *texts.values()) + "\n\n"


TURBULENCE = ("Yokota et al. (2009), Figures 11–13", "[isotropic turbulence](../turbulence/README.md)")
RING = ("Hu et al. (2012), Figure 16", "errors of 500 steps of a ring: [flows](../../docs/flow.md#many-steps-with-the-fmm)")
#: By part: lines where it was measured, and where it was not.
ELSEWHERE = {
    "gpu_yokota": (
        [
            (
                "Yokota et al. (2009), Figures 7–9",
                "times on 2 to 64 CPUs and GPUs of a cluster of 2008: not comparable; here one GPU, above, and "
                "[several](../../docs/performance.md#several-gpus)",
            ),
            (
                "Yokota et al. (2009), Tables 2–5",
                "operations of their kernels and prices of 2008: not comparable; rates of pairs and seconds are above",
            ),
        ],
        [
            (
                "Yokota et al. (2009), Figures 4, 7–9, Tables 2–5",
                "operations per second, scaling and cost of clusters and GPUs of that time: not measured here",
            )
        ],
    ),
    "gpu_yokota_barba": (
        [("Yokota and Barba (2011), Figure 7", "operations per second of M2L and M2P: those of other algorithms, not comparable")],
        [("Yokota and Barba (2011), Figures 6 and 7", "passes on a GPU and their operations per second: not measured here")],
    ),
    "gpu_hu": (
        [],
        [
            ("Hu et al. (2012), Figure 13; (2013), Figure A.4", "shares of the passes on a GPU: not measured here"),
            (
                "Hu et al. (2012), Figure 6; (2013), Figure A.5",
                "GPU beside CPU: not measured here; direct sum and FMM on the CPU are in Figure 5 above",
            ),
        ],
    ),
    "gpu_gumerov": (
        [("Gumerov and Duraiswami (2008), Tables 9 and 10", "not measured here")],
        [("Gumerov and Duraiswami (2008), Tables 2–7, 9, 10, Figures 6–8", "parts of the FMM on their GPU: not measured here")],
    ),
}


def elsewhere(texts: dict[str, str]) -> str:
    """What is on other pages, what cannot be compared, and what was not measured."""
    lines = [TURBULENCE, RING]
    for name, (measured, missing) in ELSEWHERE.items():
        lines += measured if name in texts else missing
    return "\n".join(["| | |", "|---|---|", *(f"| {a} | {b} |" for a, b in lines)])
