"""The plots of docs/verification.md: errors of random problems against the tolerance. Needs matplotlib.

make campaign SEED=1001 PROBLEMS=4000 MORE="maxn=5000 file=build/campaign.csv"
python3 docs/plots/errors.py cpu build/campaign.csv    takes what is drawn into docs/plots/errors-cpu.csv; gpu: into errors-gpu.csv
python3 docs/plots/errors.py                           writes docs/pictures/verification-errors-{cpu,gpu}.svg
"""

import csv
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = Path(__file__).resolve().parent
BACK_ENDS = {"cpu": "CPU", "gpu": "GPU (H100)"}
COLUMNS = ("tolerance", "velocity", "gradient", "one_target")
FMM = "2"  # WFMM_METHOD_FMM
PAIRS = 1e6  # smaller problems have few or no expansions
WIDTH = 0.5  # of a bin, in decades of the tolerance
FEWEST = 10  # problems of a bin
LEAST = 1e-4  # smaller errors are drawn here
PANELS = (
    ("velocity", "relative L2 error of the velocity / tolerance"),
    ("gradient", "relative L2 error of the gradient / (30 tolerances)"),
    ("one_target", "largest error at a target / (tolerance × RMS velocity)"),
)
CURVES = (("largest", 1.0, "o-"), ("99 %", 0.99, "^-"), ("90 %", 0.9, "s-"), ("median", 0.5, "D-"))


def data(back_end: str) -> Path:
    return HERE / f"errors-{back_end}.csv"


def reduce(back_end: str, campaign: str) -> None:
    """The problems by FMM of more than PAIRS pairs, with the columns that are drawn."""
    with open(campaign, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == FMM and int(row["sources"]) * int(row["targets"]) > PAIRS]
    with open(data(back_end), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            # Beyond this the largest error is that of a target that the campaign leaves out, on the line of a bare segment.
            if float(row["one_target"]) > 1.01 * float(row["velocity"]) * math.sqrt(int(row["targets"])):
                row["one_target"] = "nan"
            writer.writerow([f"{float(row[column]):.3g}" for column in COLUMNS])


def percentile(values: list[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def draw(back_end: str) -> None:
    picture = HERE.parent / "pictures" / f"verification-errors-{back_end}.svg"
    with open(data(back_end), newline="", encoding="utf-8") as file:
        rows = [{column: float(value) for column, value in row.items()} for row in csv.DictReader(file)]
    figure, panels = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
    for axes, (column, label) in zip(panels, PANELS):
        bins: dict[int, list[float]] = {}
        for row in rows:
            # A gradient of 0 was not asked for.
            if not math.isnan(row[column]) and (column != "gradient" or row[column] > 0):
                bins.setdefault(math.floor(math.log10(row["tolerance"]) / WIDTH), []).append(max(row[column], LEAST))
        kept = [k for k in sorted(bins) if len(bins[k]) >= FEWEST]
        middles = [10 ** (WIDTH * (k + 0.5)) for k in kept]
        for name, share, style in CURVES:
            axes.plot(middles, [percentile(bins[k], share) for k in kept], style, markersize=3, label=name)
        if column != "one_target":
            axes.axhline(1, color="black", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="tolerance", ylabel=label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.suptitle(f"{len(rows)} random problems by FMM, more than {PAIRS:.0e} pairs each, {BACK_ENDS[back_end]}".replace("1e+06", "10⁶"))
    figure.savefig(picture, metadata={"Date": None})
    print(f"{len(rows)} problems: {picture}")


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "wakefmm"
    if len(sys.argv) > 1:
        reduce(*sys.argv[1:3])
    for name in BACK_ENDS:
        draw(name)
