"""The plot of docs/verification.md: error over tolerance of random problems. Needs matplotlib.

make campaign SEED=1001 MORE="maxn=5000 file=build/campaign.csv"
python3 docs/plots/errors.py build/campaign.csv        writes docs/pictures/verification-errors.svg
"""

import csv
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

PICTURE = Path(__file__).resolve().parent.parent / "pictures" / "verification-errors.svg"
WIDTH = 0.5  # of a bin, in decades of the tolerance
PAIRS = 1e6  # smaller problems have few or no expansions
LEAST = 1e-6  # errors below are drawn here


def percentile(values: list[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def main() -> None:
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "2"]
    rows = [row for row in rows if int(row["sources"]) * int(row["targets"]) > PAIRS]
    figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    for axes, (column, unit) in zip(panels, [("velocity", "tolerance"), ("gradient", "30 tolerances")]):
        bins: dict[int, list[float]] = {}
        for row in rows:
            error = max(float(row[column]), LEAST)
            if column == "velocity" or error > LEAST:
                bins.setdefault(math.floor(math.log10(float(row["tolerance"])) / WIDTH), []).append(error)
        middles = [10 ** (WIDTH * (k + 0.5)) for k in sorted(bins)]
        for label, share in [("largest", 1.0), ("99 %", 0.99), ("90 %", 0.9), ("median", 0.5)]:
            axes.plot(middles, [percentile(bins[k], share) for k in sorted(bins)], "o-", markersize=3, label=label)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="tolerance", ylabel=f"error of the {column} / {unit}")
        axes.legend()
    figure.savefig(PICTURE, metadata={"Date": None})
    print(f"{len(rows)} problems by FMM of more than {PAIRS:.0e} pairs: {PICTURE}")


if __name__ == "__main__":
    main()
