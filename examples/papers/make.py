"""Figures and tables of published papers beside this library's: measures on this machine and writes README.md here.

    pip install ./python matplotlib
    python3 examples/papers/make.py              some ten minutes on one core; needs cargo
    python3 examples/papers/make.py --draw       the page again from the numbers that were measured last (measured/*.csv)
    python3 examples/papers/make.py --largest N  fewer bodies
    python3 examples/papers/make.py --only PART  measures one part: fig5, table1 (bench/papers.rs), of measure.py or measure_gpu.py
    python3 examples/papers/make.py --gpu        measures the parts of measure_gpu.py in some minutes; needs NumPy and the package, not matplotlib
                                    --minutes M  at most so long; what is left then is left out
                                    --into DIR   writes the numbers there in place of measured/
                                    --library F  takes the package from this checkout, with this libwakefmm.so; needs cffi

Seconds are of different machines; what can be compared are slopes, crossovers and errors.
"""

import argparse
import csv
import itertools
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MEASURED = HERE / "measured"

#: Measured by bench/papers.rs and, in the Python package, by measure.py and, on a GPU, by measure_gpu.py.
BENCH = ("fig5", "table1")
PYTHON = ("pseudo", "singular", "orders", "grid", "kernels", "structures", "direct")
GPU = ("gpu_yokota_barba", "gpu_hu", "gpu_gumerov", "gpu_yokota")


def measure(part: str, largest: int, into: Path, minutes: float) -> None:
    path = into / f"{part}.csv"
    if part in BENCH:
        command = ["cargo", "bench", "--bench", "papers", "--", f"part={part}", f"largest={largest}"]
        text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        path.write_text(text, encoding="utf-8")
        return
    # The package is needed only here, not to draw.
    if part in GPU:
        import measure_gpu

        rows: Iterable[tuple[Any, ...]] = measure_gpu.rows(part, largest, minutes)
    else:
        from measure import PARTS

        rows = PARTS[part](largest)
    rows = iter(rows)
    # The numbers of the last run stay where not even the first row can be had.
    first = next(rows)
    with path.open("w", buffering=1, newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        for row in itertools.chain([first], rows):
            if str(row[0]).startswith("#"):
                file.write(f"{row[0]}\n")
                print(row[0], flush=True)
            else:
                lines.writerow([f"{value:.4g}" if isinstance(value, float) else value for value in row])


def measure_gpu_parts(arguments: argparse.Namespace) -> int:
    """Each part in a process of its own: what breaks one leaves the others. Returns how many broke."""
    end = time.monotonic() + 60 * arguments.minutes
    broken = 0
    for k, part in enumerate(GPU):
        # What is left to a part is at most twice its even share.
        left = (end - time.monotonic()) / 60
        minutes = max(0.0, min(left, 2 * left / (len(GPU) - k)))
        command = [sys.executable, __file__, "--only", part, "--largest", str(arguments.largest), "--minutes", f"{minutes:.2f}"]
        command += ["--into", str(arguments.into)] + (["--library", arguments.library] if arguments.library else [])
        began = time.monotonic()
        try:
            code = subprocess.run(command, timeout=60 * minutes + 30).returncode
        except subprocess.TimeoutExpired:
            code = -1
        broken += code != 0
        print(f"{part}: {time.monotonic() - began:.0f} s" + (f", BROKE OFF ({code})" if code else ""), flush=True)
    return broken


def lines_of(part: str) -> list[str]:
    return (MEASURED / f"{part}.csv").read_text(encoding="utf-8").splitlines()


def load(part: str) -> tuple[str, list[dict[str, float]]]:
    """The machine, where the file tells it, and the rows."""
    lines = lines_of(part)
    machine = next((line[2:] for line in lines if line.startswith("# ")), "").split("; no CUDA")[0]
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return machine, [{key: float(value) for key, value in row.items()} for row in rows]


PAGE = """# Figures and tables of papers

Written by `python3 examples/papers/make.py` ([make.py](make.py)), which needs `pip install ./python matplotlib` and cargo; numbers of the last run: {files}.
Seconds here are processor seconds of one core where nothing else is said, those of the papers are of their machines: they are shown beside each other, not compared. Slopes,
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

{gpu}## Elsewhere or not comparable

{elsewhere}

## References

- Hu et al. (2012), Hu et al. (2013) and Yokota et al. (2009): [theory](../../docs/theory.md#references).
- Yokota, R., Barba, L. A. (2011). Treecode and fast multipole method for N-body simulation with CUDA. In *GPU Computing Gems, Emerald Edition*, chapter 9.
- Gumerov, N. A., Duraiswami, R. (2008). Fast multipole methods on graphics processors. *Journal of Computational Physics* 227, 8290–8313.
"""


def draw() -> None:
    import gpu_sections
    import sections

    machine, rows = load("fig5")
    parts = {part: load(part)[1] for part in PYTHON}
    tenth = [[row for row in parts["pseudo"] if row["p"] == 10 and row["expansion"] == k] for k in (0, 1)]
    largest = max(row["N"] for row in parts["orders"])
    single = [row for row in parts["orders"] if row["N"] == largest and row["bits"] == 32 and row["p"] > 4]
    direct_errors = [row["error"] for row in parts["grid"] if row["p"] == 0]
    best = [row["error"] for row in tenth[0]]
    on_gpu = {part: gpu_sections.load(lines_of(part)) for part in GPU if (MEASURED / f"{part}.csv").is_file()}
    texts = gpu_sections.write(on_gpu, HERE)
    page = PAGE.format(
        machine=machine,
        files=", ".join(f"[{part}](measured/{part}.csv)" for part in (*BENCH, *PYTHON, *texts)),
        figure5=sections.figure5(rows, HERE),
        table1=sections.gumerov1(load("table1")[1], HERE),
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
        gpu=gpu_sections.chapter(on_gpu, texts),
        elsewhere=gpu_sections.elsewhere(texts),
    )
    (HERE / "README.md").write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--gpu", action="store_true", help="measure the parts of the GPU only, and draw nothing")
    parser.add_argument("--only", choices=BENCH + PYTHON + GPU, help="measure this part only, and draw nothing")
    parser.add_argument("--largest", type=int, help="most bodies (default 1,048,576, on a GPU 10,000,000)")
    parser.add_argument("--minutes", type=float, default=4.0, help="most minutes on a GPU (default %(default)s)")
    parser.add_argument("--into", type=Path, default=MEASURED, help="folder of the numbers")
    parser.add_argument("--library", help="libwakefmm.so for the package of this checkout")
    arguments = parser.parse_args()
    if not arguments.draw:
        arguments.into.mkdir(parents=True, exist_ok=True)
    on_gpu = arguments.gpu or arguments.only in GPU
    arguments.largest = arguments.largest or (10**7 if on_gpu else 2**20)
    if arguments.gpu:
        sys.exit(measure_gpu_parts(arguments))
    if arguments.library:
        import checkout

        checkout.load(arguments.library)
    for part in () if arguments.draw else (arguments.only,) if arguments.only else BENCH + PYTHON:
        measure(part, arguments.largest, arguments.into, arguments.minutes)
    if not arguments.only:
        draw()


if __name__ == "__main__":
    main()
