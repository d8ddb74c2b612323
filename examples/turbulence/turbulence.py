"""Decaying isotropic turbulence by vortex particles and by a pseudo-spectral code, as in Yokota et al. (2009), Section 5.

    pip install ./python matplotlib array-api-compat
    python3 examples/turbulence/turbulence.py                   64^3, measured numbers, pictures and README.md here
    python3 examples/turbulence/turbulence.py --lattice 32 --output /tmp/32
    python3 examples/turbulence/turbulence.py --lattice 256 --device cuda      both codes on a GPU; needs PyTorch
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
from spectral import Box, Spectral, random_field, scales

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


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Both codes from the same field, at once, to the same times; energies are written as they come."""
    import wakefmm
    from particles import Particles

    box = Box(arguments.lattice, arguments.device)
    start = random_field(box, arguments.peak, seed=arguments.seed)
    first = scales(box, start, arguments.viscosity)
    spectral = Spectral(box, start, arguments.viscosity)
    backend = wakefmm.Backend.CPU if arguments.device == "cpu" else wakefmm.Backend.CUDA
    how = {"overlap": arguments.overlap, "tolerance": arguments.tolerance, "threads": arguments.threads, "backend": backend}
    particles = Particles(box, start, arguments.viscosity, **how)
    codes, seconds, energy = (spectral, particles), np.zeros(2), []
    began = time.perf_counter()
    cycles = round(arguments.until / arguments.cycle)
    for cycle in range(cycles + 1):
        if cycle > 0:
            # A GPU is for one of them at a time.
            with ThreadPoolExecutor(max_workers=2 if arguments.device == "cpu" else 1) as pool:
                seconds += list(pool.map(lambda code: timed(code, arguments.cycle * first["turnover"]), codes))
        a, b = (box.energy(code.waves) for code in codes)
        apart = np.sqrt(box.energy(particles.waves - spectral.waves) / a)
        so_far = particles.evaluations, particles.steps, particles.step_seconds
        energy.append([cycle * arguments.cycle, a, b, 100 * (b / a - 1), 100 * apart, *seconds, *so_far])
        print(*(f"{value:.5g}" for value in energy[-1]), flush=True)
        names = ["turnovers", "spectral", "particles", "difference_percent", "velocity_difference_percent"]
        names += ["spectral_seconds", "particle_seconds", "evaluations", "steps", "step_seconds"]
        write(folder / "energy.csv", names, energy)
        if time.perf_counter() - began > 60 * arguments.minutes:
            break
    fields = start, spectral.waves, particles.waves
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
    last = {f"last_{name}": value for name, value in scales(box, spectral.waves, arguments.viscosity).items()}
    kept = {name: value for name, value in vars(arguments).items() if isinstance(value, int | float | str)}
    said = {"width": width, "machine": particles.machine}
    (folder / "run.json").write_text(json.dumps(kept | first | last | said, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lattice", type=int, default=64, help="points and particles along a side (default %(default)s)")
    parser.add_argument("--peak", type=float, default=1.5, help="wave number of the largest energy (default %(default)s)")
    parser.add_argument("--viscosity", type=float, default=0.02, help="(default %(default)s)")
    parser.add_argument("--until", type=float, default=10, help="in turnover times of the start (default %(default)s)")
    parser.add_argument("--cycle", type=float, default=0.1, help="turnover times between remeshings (default %(default)s)")
    parser.add_argument("--overlap", type=float, default=0.7, help="core radius over spacing after remeshing (default %(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the sums (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the phases (default %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of both codes (default %(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="of the particle code, 0: all (default %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="ends earlier after so many (default %(default)s)")
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
