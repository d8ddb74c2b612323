"""Decaying isotropic turbulence by vortex particles and by a pseudo-spectral code, as in Yokota et al. (2009), Section 5.

    pip install ./python matplotlib array-api-compat
    python3 examples/turbulence/turbulence.py                   64^3, measured numbers, pictures and README.md here
    python3 examples/turbulence/turbulence.py --lattice 32 --output /tmp/32
    python3 examples/turbulence/turbulence.py --lattice 256 --device cuda      both codes on a GPU; needs PyTorch
    ... --minutes 9 --state /tmp/state.npz                      both codes are kept there at the end, and go on from there in the next run
    python3 examples/turbulence/turbulence.py --draw            pictures and page again from measured/*.csv
"""

import argparse
import csv
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from spectral import Box, Spectral, Waves, on_host, random_field, scales

HERE = Path(__file__).resolve().parent


def write(path: Path, names: list[str], rows: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(names)
        lines.writerows([f"{value:.6g}" for value in row] for row in rows)


def density(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.histogram(values, edges)[0] / (values.size * np.diff(edges))


def timed(code: Any, duration: float) -> float:
    began = time.perf_counter()
    code.advance(duration)
    return time.perf_counter() - began


class State:
    """What a run has come to: waves of both codes, rows of energy.csv. Kept in a file, so that a later run goes on from it."""

    def __init__(self, box: Box, start: Waves, path: Path | None) -> None:
        self.waves, self.energy = [start, start], []
        if path is not None and path.exists():
            kept = np.load(path)
            self.waves, self.energy = [box.array(waves) for waves in kept["waves"]], kept["energy"].tolist()

    def keep(self, path: Path) -> None:
        np.savez(path, waves=np.stack([on_host(waves) for waves in self.waves]), energy=self.energy)


NAMES = ["turnovers", "spectral", "particles", "difference_percent", "velocity_difference_percent"]
NAMES += ["spectral_seconds", "particle_seconds", "evaluations", "steps", "remeshings", "step_seconds"]


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Both codes from the same field, at once, to the same times; energies are written as they come."""
    import wakefmm
    from particles import Particles

    began = time.perf_counter()
    box = Box(arguments.lattice, arguments.device)
    start = random_field(box, arguments.peak, seed=arguments.seed)
    first = scales(box, start, arguments.viscosity)
    state = State(box, start, arguments.state)
    other = Box(arguments.lattice, arguments.spectral_device) if arguments.spectral_device else box
    spectral = Spectral(other, other.array(state.waves[0]), arguments.viscosity)
    backend = wakefmm.Backend.CPU if arguments.device == "cpu" else wakefmm.Backend.CUDA
    how = {name: getattr(arguments, name) for name in ("overlap", "strain", "steps", "tolerance", "threads")}
    particles = Particles(box, state.waves[1], arguments.viscosity, backend=backend, **how)
    codes, energy = (spectral, particles), state.energy
    before = np.array(energy[-1][5:]) if energy else np.zeros(6)
    seconds = np.zeros(2)
    for row in range(len(energy), round(arguments.until / arguments.every) + 1):
        if time.perf_counter() - began > 60 * arguments.minutes:
            break
        if row > 0:
            # A GPU is for one of them at a time.
            with ThreadPoolExecutor(max_workers=2 if arguments.device == "cpu" or other is not box else 1) as pool:
                seconds += list(pool.map(lambda code: timed(code, arguments.every * first["turnover"]), codes))
        a, b = (code.box.energy(code.waves) for code in codes)
        apart = np.sqrt(box.energy(particles.waves - box.array(spectral.waves)) / a)
        counted = *seconds, particles.evaluations, particles.steps, particles.remeshings, particles.step_seconds
        energy.append([row * arguments.every, a, b, 100 * (b / a - 1), 100 * apart, *(before + counted)])
        print(*(f"{value:.5g}" for value in energy[-1]), flush=True)
        write(folder / "energy.csv", NAMES, energy)
    if arguments.state is not None:
        state.waves = [code.waves for code in codes]
        state.keep(arguments.state)
    fields = start, box.array(spectral.waves), particles.waves
    spectra = np.array([box.spectrum(waves) for waves in fields])
    shells = range(1, box.n // 2)
    write(folder / "spectrum.csv", ["k", "start", "spectral", "particles"], [(k, *spectra[:, k]) for k in shells])
    invariants = [box.second_invariant(waves) for waves in fields[1:]]
    width = np.std(invariants[0])
    edges = np.linspace(-8, 8, 65)
    columns = [density(values.ravel() / width, edges) for values in invariants]
    write(folder / "invariant.csv", ["invariant", "spectral", "particles"], zip((edges[1:] + edges[:-1]) / 2, *columns, strict=True))
    thin = slice(None, None, max(1, box.n // 128))
    middle = [values[thin, thin, box.n // 2].ravel() / width for values in invariants]
    write(folder / "slice.csv", ["spectral", "particles"], zip(*middle, strict=True))
    last = {f"last_{name}": value for name, value in scales(other, spectral.waves, arguments.viscosity).items()}
    kept = {name: value for name, value in vars(arguments).items() if isinstance(value, int | float | str)}
    said = {"width": width, "machine": particles.machine}
    (folder / "run.json").write_text(json.dumps(kept | first | last | said, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lattice", type=int, default=64, help="points and particles along a side (default %(default)s)")
    parser.add_argument("--peak", type=float, default=1.5, help="wave number of the largest energy (default %(default)s)")
    parser.add_argument("--viscosity", type=float, default=0.02, help="(default %(default)s)")
    parser.add_argument("--until", type=float, default=10, help="in turnover times of the start (default %(default)s)")
    parser.add_argument("--every", type=float, default=0.1, help="turnover times between lines of energy.csv (default %(default)s)")
    parser.add_argument("--strain", type=float, default=0.2, help="time between remeshings times the rms of vorticity, at most (default %(default)s)")
    parser.add_argument("--steps", type=int, default=2, help="of AB2 between remeshings (default %(default)s)")
    parser.add_argument("--overlap", type=float, default=0.7, help="core radius over spacing after remeshing (default %(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the sums (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the phases (default %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of both codes (default %(default)s)")
    parser.add_argument("--spectral-device", help="another one for the spectral code, such as cuda:1 (default: the same)")
    parser.add_argument("--threads", type=int, default=0, help="of the particle code, 0: all (default %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="ends earlier after so many (default %(default)s)")
    parser.add_argument("--state", type=Path, help="file (.npz) from which the run goes on, and in which it is kept at its end")
    parser.add_argument("--output", type=Path, default=HERE, help="folder (default: that of this file)")
    parser.add_argument("--draw", action="store_true", help="compute nothing")
    arguments = parser.parse_args()
    folder = arguments.output / "measured"
    folder.mkdir(parents=True, exist_ok=True)
    if not arguments.draw:
        run(arguments, folder)
    import page

    page.draw(arguments.output)


if __name__ == "__main__":
    main()
