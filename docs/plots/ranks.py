"""The table and the plot of many ranks in docs/mpi.md, from docs/plots/ranks.csv. Needs matplotlib.

cargo bench --bench ranks -- case=cube n=1000000 ranks=16,64,256,1024,4096 weigh=64 some=32 file=docs/plots/ranks.csv
python3 docs/plots/ranks.py        writes docs/pictures/ranks.svg and prints the table

The model: a rank is one core. Its time is that of the busiest rank's work, a latency for each message to or from a neighbour in
two exchanges (cells and sources, then multipoles), its bytes over its bandwidth, the boxes of all ranks, and small collective calls of a
latency times the binary logarithm of the ranks each. Nothing overlaps.
"""

import csv
import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DOCS = Path(__file__).resolve().parent.parent
#: Seconds of a message; bytes a second and core of a node with 64 cores and 200 Gbit/s.
LATENCY, BANDWIDTH = 2e-6, 25e9 / 64
#: Small collective calls of one evaluation by the FMM: agreements, reductions, counts; about so many by its stages.
COLLECTIVES = 150
#: A colour a case, a dash pattern a size.
COLOURS = {"cube": "C0", "lattice": "C1", "wake": "C2"}
DASHES = [(0, (1, 3)), ":", "-.", "--", "-"]
NAMES = ["sent", "received", "sent_to", "received_from", "guests", "multipoles", "cells", "seconds"]


def rows() -> list[dict]:
    found = []
    with open(DOCS / "plots" / "ranks.csv", encoding="utf-8") as file:
        for line in csv.reader(file):
            row = {"case": line[0], "sources": int(line[1]), "targets": int(line[2]), "ranks": int(line[4])}
            row |= {"shares": line[5], "some": int(line[6]), "one": float(line[7]), "boxes": float(line[8])}
            for k, name in enumerate(NAMES):
                row[name], row["most_" + name] = float(line[9 + 2 * k]), float(line[10 + 2 * k])
            found.append(row | model(row))
    return found


def model(row: dict) -> dict:
    messages = 2 * (row["most_sent_to"] + row["most_received_from"])
    data = (row["most_sent"] + row["most_received"] + row["boxes"] * row["ranks"]) / BANDWIDTH
    collective = COLLECTIVES * LATENCY * math.log2(row["ranks"])
    work, wait = row["most_seconds"], messages * LATENCY + collective
    total = work + wait + data
    ideal = row["one"] / row["ranks"]
    parts = {"imbalance": work / row["seconds"], "extra": row["seconds"] / ideal, "data": data / total, "wait": wait / total}
    return parts | {"efficiency": ideal / total, "total": total}


def table(all_rows: list[dict]) -> None:
    print("| case | sources | ranks | sources a rank | sent, MB | received, MB | neighbours | sources of others | multipoles | imbalance |"
          " work beside one rank's | efficiency |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for r in sorted(all_rows, key=lambda r: (r["case"], r["sources"], r["ranks"])):
        pair = lambda name, unit=1.0, digits=0: f"{r[name] / unit:,.{digits}f} ({r['most_' + name] / unit:,.{digits}f})"  # noqa: E731
        print(f"| {r['case'].upper()} | {r['sources']:,} | {r['ranks']:,} | {r['sources'] // r['ranks']:,} | {pair('sent', 1e6, 2)} |"
              f" {pair('received', 1e6, 2)} | {pair('received_from')} | {pair('guests')} | {pair('multipoles')} | {r['imbalance']:.2f} |"
              f" {r['extra']:.2f} | {100 * r['efficiency']:.0f} % |")


def plot(all_rows: list[dict]) -> None:
    figure, (strong, weak) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    sizes = sorted({(r["case"], r["sources"]) for r in all_rows})
    for case, n in sizes:
        line = sorted((r["ranks"], 100 * r["efficiency"]) for r in all_rows if (r["case"], r["sources"]) == (case, n))
        dashes = DASHES[[m for c, m in sizes if c == case].index(n) - sum(c == case for c, _ in sizes)]
        strong.plot(*zip(*line), marker=".", color=COLOURS[case], linestyle=dashes, label=f"{case.upper()} {n:,}")
    for case in sorted({c for c, _ in sizes}):
        # Sources a rank within a factor of 1.5 of a power of four.
        for share, dashes in ((4096, "--"), (16384, "-")):
            near = [r for r in all_rows if r["case"] == case and 1 / 1.5 < r["sources"] / r["ranks"] / share < 1.5]
            line = sorted((r["ranks"], 100 * r["efficiency"]) for r in near)
            if len(line) > 1:
                weak.plot(*zip(*line), marker=".", color=COLOURS[case], linestyle=dashes, label=f"{case.upper()}, {share:,} a rank")
    strong.set(xscale="log", xlabel="ranks", ylabel="modelled efficiency, %", title="fixed size")
    weak.set(xscale="log", xlabel="ranks", title="fixed size a rank", ylim=(0, 105))
    for axes in (strong, weak):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    figure.savefig(DOCS / "pictures" / "ranks.svg", metadata={"Date": None})


if __name__ == "__main__":
    everything = rows()
    table(everything)
    plot(everything)
