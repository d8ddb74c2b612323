"""Pictures and README.md of the turbulence from the numbers that were measured."""

import csv
import json
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = Path(__file__).resolve().parent
LINES = {"spectral": ("k-", "spectral code"), "particles": ("C1--", "vortex particles")}
TIMES = (0, 0.2, 0.4, 0.6, 0.8, 1, 1.4, 2, 3, 4, 5, 6, 7, 8, 9, 10)


def load(path: Path) -> dict[str, np.ndarray]:
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def energy_picture(path: Path, energy: dict[str, np.ndarray]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    after = energy["turnovers"] > 0
    for name, (style, label) in LINES.items():
        left.loglog(energy["turnovers"][after], energy[name][after] / energy[name][0], style, label=label)
    left.set(xlabel="time t/T (turnover times of the start)", ylabel="kinetic energy K/K(0)")
    left.grid(alpha=0.3, which="both")
    left.legend()
    right.plot(energy["turnovers"], energy["difference_percent"], "C1-")
    right.axhspan(-2, 2, color="C2", alpha=0.15, label="within 2 %")
    right.set(xlabel="time t/T (turnover times of the start)", ylabel="energy of particles over spectral code - 1 (%)")
    right.grid(alpha=0.3)
    right.legend()
    figure.savefig(path, dpi=110)


def spectrum_picture(path: Path, spectrum: dict[str, np.ndarray], when: str) -> None:
    figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
    axes.loglog(spectrum["k"], spectrum["start"], "k:", label="start, both codes")
    for name, (style, label) in LINES.items():
        axes.loglog(spectrum["k"], spectrum[name], style, label=f"{label}, t/T = {when}")
    least, most = spectrum["spectral"].min(), max(spectrum["spectral"].max(), spectrum["start"].max())
    axes.set(xlabel="wave number k (1/length)", ylabel="energy E(k) (length$^3$/time$^2$)", ylim=(least / 10, most * 3))
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=110)


def invariant_picture(path: Path, invariant: dict[str, np.ndarray], middle: dict[str, np.ndarray], when: str) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.8), layout="constrained")
    for name, (style, label) in LINES.items():
        axes[0].semilogy(invariant["invariant"], invariant[name], style, label=label)
    axes[0].set(xlabel="II over its deviation", ylabel="probability density", title=f"t/T = {when}")
    axes[0].grid(alpha=0.3)
    axes[0].legend()
    n = round(np.sqrt(len(middle["spectral"])))
    difference = middle["particles"] - middle["spectral"]
    for ax, values, title in zip(
        axes[1:],
        (middle["spectral"], middle["particles"], difference),
        ("(a) spectral code", "(b) vortex particles", "(c) difference b - a"),
        strict=True,
    ):
        shown = ax.imshow(
            values.reshape(n, n).T, origin="lower", extent=(-np.pi, np.pi) * 2, vmin=-3, vmax=3, cmap="RdBu_r", interpolation="nearest"
        )
        ax.set(xlabel="x (length)", ylabel="y (length)", title=title + ", z = 0")
    figure.colorbar(shown, ax=axes[1:], label="II over its deviation")
    figure.savefig(path, dpi=110)


def table(energy: dict[str, np.ndarray]) -> str:
    lines = ["| t/T | K/K(0), spectral | K/K(0), particles | difference of energies | difference of velocities, L2 |", "|---|---|---|---|---|"]
    for k, turnovers in enumerate(energy["turnovers"]):
        if any(abs(turnovers - t) < 1e-6 for t in TIMES) or k + 1 == len(energy["turnovers"]):
            ratios = [energy[name][k] / energy[name][0] for name in LINES]
            differences = f"{energy['difference_percent'][k]:+.2f} % | {energy['velocity_difference_percent'][k]:.1f} %"
            lines.append(f"| {turnovers:g} | {ratios[0]:.4f} | {ratios[1]:.4f} | {differences} |")
    return "\n".join(lines)


PAGE = """# Decaying isotropic turbulence

Written by `python3 examples/turbulence/turbulence.py{command}` ([turbulence.py]({up}turbulence.py)); needs `pip install ./python matplotlib array-api-compat`,
with `--device cuda` PyTorch too.{gpus} Numbers of the last run:
[energy.csv](measured/energy.csv), [spectrum.csv](measured/spectrum.csv), [invariant.csv](measured/invariant.csv), [slice.csv](measured/slice.csv), [run.json](measured/run.json).

The case is that of Yokota et al. (2009), Section 5, who had 256³ particles and Re_λ ≈ 100 on 64 GPUs. Here {lattice}³ particles in [-π, π]³ with three periods, at the Reynolds number that
this lattice resolves: Re_λ = {reynolds:.0f} at the start, {last_reynolds:.0f} at t/T = {when}.

| | vortex particles ([particles.py]({up}particles.py)) | spectral code ([spectral.py]({up}spectral.py)) |
|---|---|---|
| unknowns | {lattice}³ Gaussian particles, cores of {overlap:g} spacings after each remeshing | velocity, wave numbers below {half} along each axis |
| velocity, stretching | a flow of libwakefmm with `period`, FMM, tolerance {tolerance:g}, computed in single precision; `TRANSPOSE`, ∇u·α | pseudo-spectral, 3/2 rule |
| viscosity | cores spread, σ² grows by 2νt; back to the lattice with the first cores after at most {strain:g} over the rms of the vorticity | exact factor |
| in time | AB2, {steps} steps between remeshings | RK4, steps of at most 0.8 spacings over the largest speed |

Start: solenoidal, random phases, E(k) ~ k⁴ exp(-2 (k/{peak:g})²), u' = 1; ν = {viscosity:g}, integral scale L = {length:.3f}, T = L/u' = {turnover:.3f}, Taylor's scale {taylor:.3f}, Kolmogorov's scale
times the largest wave number {resolution:.2f}. The paper does not print its spectrum, so its curves cannot be laid over these.

Remeshing takes the place of the radial basis functions of the paper (and of the flow's `core_limit`, which is not built for periodic domains): the velocity of the particles is evaluated on the
lattice, and particles are placed there whose vorticity is its curl. The convolution with the core is inverted by the Fourier transform, cut off at |k| = {half}. Strengths at the start are made in the same way.

## Energy

{table}

The paper, of Figure 11: "The results of the two methods agree perfectly until t/T = 10, where the kinetic energy drops an order of magnitude from the initial value." {verdict}
A particle moves with the velocity at its middle and its core stays round: an error of the order of (kσ)². Small scales get less energy than they should, and dissipate less.

![Kinetic energy in time](energy.png)

Wall time ({machine}): spectral code {spectral_seconds:.0f} s; particles {particle_seconds:.0f} s for {evaluations:.0f} evaluations of velocity or velocity and stretching, the copies to and from the lattice
and {remeshings:.0f} remeshings among them. A step of AB2 takes {step:.3f} s, a sum of velocity and gradient {sum:.3f} s. {comparison}

## Spectrum at t/T = {when} (Figure 12)

{spectrum}

What lies below some 1e-10 is rounding of single precision and the error of the sums.

![Energy spectrum](spectrum.png)

## Second invariant at t/T = {when} (Figure 13)

II = ∂u_i/∂x_j ∂u_j/∂x_i. The paper shows isosurfaces of both codes and of the difference; here its probability density, and the plane z = 0. The large structures are the same and the small ones differ,
as in the paper: correlation of the two fields in the plane {correlation:.3f}.

![Second invariant](invariant.png)

## Tests

[test_turbulence.py]({up}test_turbulence.py), run by `make test-python`: the spectral code against an exact solution of the Navier–Stokes equations and for its energy without viscosity; the particles on a lattice of 16³
against the spectral code.

## References

- Yokota, R., Narumi, T., Sakamaki, R., Kameoka, S., Obi, S., Yasuoka, K. (2009). Fast multipole methods on a cluster of GPUs for the meshless simulation of turbulence. *Computer Physics Communications* 180, 2066–2078.
- Barba, L. A., Leonard, A., Allen, C. B. (2005). Advances in viscous vortex methods – meshless spatial adaption based on radial basis function interpolation. *International Journal for Numerical Methods in Fluids* 47, 387–421.
"""
ENDED = """The run was ended there after its {minutes:g} minutes; `--minutes` and `--until` go on to t/T = {until:g}."""
PAPER = "The paper's 1,000 steps of 256³ particles took 4,120 s on 64 GPUs of 2008"


def spectrum_words(spectrum: dict[str, np.ndarray]) -> str:
    lines = ["| k | E, spectral | E, particles | ratio |", "|---|---|---|---|"]
    for k in (1, 2, 4, 8, 12, 16, 20, 24, 28):
        if k <= len(spectrum["k"]):
            a, b = spectrum["spectral"][k - 1], spectrum["particles"][k - 1]
            lines.append(f"| {k} | {a:.3e} | {b:.3e} | {b / a:.3f} |")
    return "\n".join(lines)


def draw(folder: Path) -> None:
    measured = folder / "measured"
    energy, spectrum, invariant, middle = (load(measured / f"{name}.csv") for name in ("energy", "spectrum", "invariant", "slice"))
    numbers = json.loads((measured / "run.json").read_text(encoding="utf-8"))
    when = f"{energy['turnovers'][-1]:g}"
    energy_picture(folder / "energy.png", energy)
    spectrum_picture(folder / "spectrum.png", spectrum, when)
    invariant_picture(folder / "invariant.png", invariant, middle, when)
    unfinished = energy["turnovers"][-1] < numbers["until"] - 1e-6
    most = np.abs(energy["difference_percent"]).max()
    last = {name: energy[name][-1] for name in ("spectral_seconds", "particle_seconds", "evaluations", "remeshings")}
    step = energy["step_seconds"][-1] / energy["steps"][-1]
    ours = "; not comparable with this size."
    if numbers["lattice"] == 256:
        steps, seconds = energy["steps"][-1], energy["particle_seconds"][-1]
        ours = f". Here {steps:.0f} steps took {seconds:.0f} s with their remeshings, which is {1000 * seconds / steps:.0f} s for 1,000."
    command = f" --lattice {numbers['lattice']} --viscosity {numbers['viscosity']:g} --strain {numbers['strain']:g} --steps {numbers['steps']}"
    command += f" --overlap {numbers['overlap']:g} --tolerance {numbers['tolerance']:g} --every {numbers['every']:g}"
    command += "" if numbers["device"] == "cpu" else f" --device {numbers['device']}"
    command += f" --spectral-device {numbers['spectral_device']}" if numbers.get("spectral_device") else ""
    numbers |= last | {
        "when": when,
        "up": "" if folder.resolve() == HERE else "../",
        "command": command,
        "step": step,
        "sum": energy["step_seconds"][-1] / (last["evaluations"] - last["remeshings"]),
        "comparison": PAPER + ours,
        "half": numbers["lattice"] // 2,
        "gpus": " This run had two GPUs; without `--spectral-device` one is enough." if numbers.get("spectral_device") else "",
        "correlation": np.corrcoef(middle["spectral"], middle["particles"])[0, 1],
        "table": table(energy),
        "spectrum": spectrum_words(spectrum),
        "verdict": f"Here energies differ by {most:.2f} % at most up to t/T = {when}. {ENDED.format(**numbers) if unfinished else ''}".rstrip(),
    }
    (folder / "README.md").write_text(PAGE.format(**numbers), encoding="utf-8")
