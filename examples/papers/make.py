"""Figures and tables of published papers beside this library's: measures on this machine and writes README.md here.

    python3 examples/papers/make.py              some minutes on one core; needs cargo and matplotlib
    python3 examples/papers/make.py --draw       the page again from the numbers that were measured last (measured/*.csv)
    python3 examples/papers/make.py --largest N  fewer bodies

Seconds are of different machines; what can be compared are slopes, crossovers and errors.
"""

import argparse
import csv
import math
import subprocess
from pathlib import Path

import matplotlib

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
NAMES = {"direct": "direct sum", "treecode": "treecode", "fmm": "FMM"}


def measure(part: str, largest: int) -> None:
    command = ["cargo", "bench", "--bench", "papers", "--", f"part={part}", f"largest={largest}"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    MEASURED.mkdir(exist_ok=True)
    (MEASURED / f"{part}.csv").write_text(text, encoding="utf-8")


def load(part: str) -> tuple[str, list[dict[str, float]]]:
    """The machine, and the rows."""
    lines = (MEASURED / f"{part}.csv").read_text(encoding="utf-8").splitlines()
    machine = next(line[2:] for line in lines if line.startswith("# ")).split("; no CUDA")[0]
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

Written by `python3 examples/papers/make.py` ([make.py](make.py)); numbers of the last run: [fig5.csv](measured/fig5.csv), [table1.csv](measured/table1.csv).
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

## Not here yet

The other figures and tables of these papers, and those of Hu et al. and of Yokota et al. (2009); Figure 10 of the last needs `WFMM_EXPANSION_PSEUDO_PARTICLES`, which is not built.

## References

- Yokota, R., Barba, L. A. (2011). Treecode and fast multipole method for N-body simulation with CUDA. In *GPU Computing Gems, Emerald Edition*, chapter 9.
- Gumerov, N. A., Duraiswami, R. (2008). Fast multipole methods on graphics processors. *Journal of Computational Physics* 227, 8290–8313.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--largest", type=int, default=1_048_576, help="most bodies (default %(default)s)")
    arguments = parser.parse_args()
    if not arguments.draw:
        for part in ("fig5", "table1"):
            measure(part, arguments.largest)
    machine, rows = load("fig5")
    page = PAGE.format(machine=machine, figure5=figure5(rows), table1=gumerov1(load("table1")[1]))
    (HERE / "README.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
