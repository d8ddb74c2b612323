"""Figures and tables of published papers beside this library's: measures on this machine and writes README.md here.

    pip install ./python matplotlib
    python3 examples/papers/make.py              some ten minutes on one core; needs cargo
    python3 examples/papers/make.py --draw       the page again from the numbers that were measured last (measured/*.csv)
    python3 examples/papers/make.py --largest N  fewer bodies
    python3 examples/papers/make.py --only PART  measures one part: fig5, table1 (bench/papers.rs) or one of measure.py

Seconds are of different machines; what can be compared are slopes, crossovers and errors.
"""

import argparse
import csv
import math
import subprocess
from pathlib import Path

import matplotlib
import sections

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MEASURED = HERE / "measured"

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
#: Measured by bench/papers.rs and, in the Python package, by measure.py.
BENCH = ("fig5", "table1")
PYTHON = ("pseudo", "singular", "orders", "grid", "kernels", "structures", "direct")
NAMES = {"direct": "direct sum", "treecode": "treecode", "fmm": "FMM"}


def measure(part: str, largest: int) -> None:
    MEASURED.mkdir(exist_ok=True)
    path = MEASURED / f"{part}.csv"
    if part in BENCH:
        command = ["cargo", "bench", "--bench", "papers", "--", f"part={part}", f"largest={largest}"]
        text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        path.write_text(text, encoding="utf-8")
        return
    # The package is needed only here, not to draw.
    from measure import PARTS

    with path.open("w", buffering=1, newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        for row in PARTS[part](largest):
            lines.writerow([f"{value:.4g}" if isinstance(value, float) else value for value in row])


def load(part: str) -> tuple[str, list[dict[str, float]]]:
    """The machine, where the file tells it, and the rows."""
    lines = (MEASURED / f"{part}.csv").read_text(encoding="utf-8").splitlines()
    machine = next((line[2:] for line in lines if line.startswith("# ")), "").split("; no CUDA")[0]
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return machine, [{key: float(value) for key, value in row.items()} for row in rows]


def crossing(rows: list[dict[str, float]], faster: str, slower: str) -> str:
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


def slope(rows: list[dict[str, float]], name: str) -> float:
    """Exponent of the growth over the last decade that was measured."""
    last = rows[-1]
    first = next(row for row in rows if row["N"] >= last["N"] / 10)
    return math.log(last[name] / first[name]) / math.log(last["N"] / first["N"])


def figure5(rows: list[dict[str, float]]) -> str:
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    points = [row["N"] for row in rows]
    for (name, label), marker in zip(NAMES.items(), "s^o", strict=True):
        axes.loglog(points, [row[name] for row in rows], marker + "-", label=label + ", here")
    axes.axvline(3e3, color="black", linewidth=0.8, linestyle="--", label="all three cross, Yokota and Barba")
    axes.set(xlabel="bodies", ylabel="processor seconds, one core")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(HERE / "yokota-barba-2011-fig5.png", dpi=110)
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


def gumerov1(rows: list[dict[str, float]]) -> str:
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for column, label, marker in ((1, "potential", "o"), (2, "potential and force", "s")):
        axes.loglog([r[0] for r in GUMEROV], [r[column] for r in GUMEROV], marker + "--", label=label + ", paper")
    for name, label, marker in (("potential", "potential", "o"), ("force", "potential and force", "s")):
        axes.loglog([r["N"] for r in rows], [r[name] for r in rows], marker + "-", label=label + ", here")
    axes.set(xlabel="sources, one more receiver", ylabel="seconds, one core, single precision")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(HERE / "gumerov-2008-table1.png", dpi=110)
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


PAGE = """# Figures and tables of papers

Written by `python3 examples/papers/make.py` ([make.py](make.py)); numbers of the last run: {files}.
Seconds here are processor seconds of one core, those of the papers are of their machines: they are shown beside each other, not compared. Slopes,
crossovers, ratios and errors can be compared.

Machine: {machine}; other work may have shared it.

## Yokota and Barba (2011), Figure 5

Potential and force of N bodies at N targets, uniform in a cube, at an L2 error of the force of 1e-4 for treecode and FMM. The paper:
one core of an Intel Core i7, 2.67 GHz; its text has the crossovers, the curves themselves are only in its figure. Here: `WFMM_METHOD_DIRECT`, `WFMM_METHOD_TREECODE`,
`WFMM_METHOD_FMM` with charges and gradients, f64, tolerance 1e-5 (of the potential; the library promises 30 of it for forces). "Scaled": from as many targets as make 4e9 pairs. The errors are of the force at 300 targets; 5e-16 means that all
pairs were near and summed directly.

![Seconds of direct sum, treecode and FMM](yokota-barba-2011-fig5.png)

{figure5}

## Gumerov and Duraiswami (2008), Table 1

The direct sum on a CPU: N charges in (0, 1), N + 1 receivers, single precision. The paper's CPU code was serial and without vector instructions on purpose; its large times are estimates from N², marked here where a
time is four times that of the row before to all digits. Here:
`WFMM_METHOD_DIRECT`, float arrays, one thread.

![Seconds of the direct sum](gumerov-2008-table1.png)

{table1}

The CPU time of Table 11 and the errors of Table 8 are below, with Figures 10 and 11.

## Yokota et al. (2009), Figures 5, 6 and 10: pseudo-particles

Velocity of N vortex particles at their own positions, at random in [-π, π]³, strengths in (0, 1/N), cores of 2π N^(-1/3), by the FMM with harmonics and with `WFMM_EXPANSION_PSEUDO_PARTICLES`. Their p is the
highest degree, p + 1 terms here; the product rule has 91, 153 and 231 points for p = 6, 8, 10, theirs 84, 144 and 216. The leaves are chosen so that a tree has the paper's level where they
are filled alike; random ones are at times divided once more. The tolerance is 0.5, so that the order decides the error and not the choice of pairs.
Seconds are of new strengths at the same positions: all passes, without the tree. Leaves are the same for both; without `leaf_capacity` pseudo-particles get larger ones.

![Errors of harmonics and pseudo-particles](yokota-2009-fig10.png)

{pseudo}

Without cores, errors of the expansions alone:

{singular}

The curves of Figure 10 are only in the picture; its text can be compared:

| the paper | here |
|---|---|
| error of the FMM below 1e-4 for p = 10 at all N | {pseudo_best} |
| large errors for small N, since cells closer than the cores reach are taken as singular | the same: at a tolerance of 0.5 most cores beyond near cells are left out; at a tighter one they are summed |
| pseudo-particles almost as good for p = 8 as for p = 10, poor for p = 6 | see the table |
| on a CPU pseudo-particles 3.75 times slower, p = 10 | {pseudo_ratio} |

## Hu et al. (2012), Figures 14 and 15; Hu et al. (2013), Figures A.6 and A.7

Errors of the potential by order p, Coulomb kernel, N sources and N + 1 other receivers in the unit cube, 1,000 of which are compared with direct sums in double precision (the papers: 100). The curves of the papers are
only in the pictures. Their text: "the single precision case shows no accuracy improvement from p = 8 to p = 12"; in double precision errors fall with p, and with N.
Here single precision gains from p = 8 to p = 12 too: {single}.

![Errors by order](hu-orders.png)

{orders}

## Gumerov and Duraiswami (2008), Tables 8 and 11, Figure 11

The same runs in single precision; seconds of potential and gradient, from new positions to fields, the tree among them. The paper has N = 1,048,576, and no tree in the total of Table 8.

{gumerov}

![Seconds by order](gumerov-2008-fig11.png)

## Gumerov and Duraiswami (2008), Figure 10

Unit charges on a grid, 729 receivers, single precision; the exact sum in double precision. The text: the error of the direct sum grows with N, and the FMM is better than it for N of more than 50,000 with p = 12 and
1,000,000 with p = 8. Here the error of the direct sum goes from {direct_first} to {direct_last}.

![Errors on a grid](gumerov-2008-fig10.png)

{grid}

## Hu et al. (2012), Table 2; Hu et al. (2013), Table A.2

Coulomb potential and Biot–Savart velocity, single precision, p = 8 here, which the papers do not tell. Milliseconds are of a GTX 480 there and of one core here; the ratio can be compared.

{kernels}

## Hu et al. (2012), Table 1; Hu et al. (2013), Table A.1

Tree and lists of 2^20 sources and as many receivers by level. Different machines: the paper's one core of a Xeon X5560 at 2.8 GHz and a GTX 480. Here `wfmm_plan_prepare` with new positions: tree, lists, and the orders of pairs, which
the paper has not.

{structures}

## Yokota et al. (2009), Figures 2 and 3

Direct sums in double precision, one core; at 4,096 targets, scaled to all. The text: "potential+force" takes 1/5 of "velocity+stretching". The gradient has nine numbers where stretching has three.

{direct}

## Elsewhere or not comparable

| | |
|---|---|
| Yokota et al. (2009), Figures 11–13 | [isotropic turbulence](../turbulence/README.md) |
| Yokota et al. (2009), Figures 4, 7–9, Tables 2–5; Yokota and Barba (2011), Figure 7 | operations per second, scaling and cost of clusters and GPUs of that time: not measured here |
| Yokota and Barba (2011), Figure 6; Hu et al. (2012), Figure 13; (2013), Figure A.4 | shares of the passes on a GPU: not measured here |
| Hu et al. (2012), Figure 6; (2013), Figure A.5 | GPU beside CPU: not measured here; direct sum and FMM on the CPU are in Figure 5 above |
| Hu et al. (2012), Figure 16 | errors of 500 steps of a ring: [flows](../../docs/flow.md#many-steps-with-the-fmm) |
| Gumerov and Duraiswami (2008), Tables 2–7, 9, 10, Figures 6–8 | parts of the FMM on their GPU: not measured here |

## References

- Hu et al. (2012), Hu et al. (2013) and Yokota et al. (2009): [theory](../../docs/theory.md#references).
- Yokota, R., Barba, L. A. (2011). Treecode and fast multipole method for N-body simulation with CUDA. In *GPU Computing Gems, Emerald Edition*, chapter 9.
- Gumerov, N. A., Duraiswami, R. (2008). Fast multipole methods on graphics processors. *Journal of Computational Physics* 227, 8290–8313.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--only", choices=BENCH + PYTHON, help="measure this part only, and draw nothing")
    parser.add_argument("--largest", type=int, default=1_048_576, help="most bodies (default %(default)s)")
    arguments = parser.parse_args()
    for part in () if arguments.draw else (arguments.only,) if arguments.only else BENCH + PYTHON:
        measure(part, arguments.largest)
    if arguments.only:
        return
    machine, rows = load("fig5")
    parts = {part: load(part)[1] for part in PYTHON}
    tenth = [[row for row in parts["pseudo"] if row["p"] == 10 and row["expansion"] == k] for k in (0, 1)]
    largest = max(row["N"] for row in parts["orders"])
    single = [row for row in parts["orders"] if row["N"] == largest and row["bits"] == 32 and row["p"] > 4]
    direct_errors = [row["error"] for row in parts["grid"] if row["p"] == 0]
    best = [row["error"] for row in tenth[0]]
    page = PAGE.format(
        machine=machine,
        files=", ".join(f"[{part}](measured/{part}.csv)" for part in BENCH + PYTHON),
        figure5=figure5(rows),
        table1=gumerov1(load("table1")[1]),
        pseudo=sections.pseudo(parts["pseudo"], HERE),
        singular=sections.singular(parts["singular"]),
        pseudo_best=f"{min(best):.1e} to {max(best):.1e}",
        pseudo_ratio=f"{tenth[1][-1]['seconds'] / tenth[0][-1]['seconds']:.1f} times, N = {tenth[1][-1]['N']:.0f}",
        orders=sections.orders(parts["orders"], HERE),
        single=" to ".join(f"{row['error']:.1e}" for row in single),
        direct_first=f"{direct_errors[0]:.1e}",
        direct_last=f"{direct_errors[-1]:.1e}",
        gumerov=sections.gumerov(parts["orders"]),
        grid=sections.grid(parts["grid"], HERE),
        kernels=sections.kernels(parts["kernels"]),
        structures=sections.structures(parts["structures"]),
        direct=sections.direct(parts["direct"]),
    )
    (HERE / "README.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
