"""What make.py measures through the Python package: each function yields a row of names first, then rows of numbers.

One thread; processor seconds from arrays to fields, the least of the calls after one that calibrates. Relative L2 errors against direct sums in double precision.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from wakefmm import Backend, Expansion, Method, Plan, PlanOptions, Precision, Session, SessionOptions

SESSION = Session(SessionOptions(backend=Backend.CPU, threads=1))
#: With a tolerance as loose as this a given order decides the error: no pair of cells needs more than it.
LOOSE = 0.5
RANDOM = np.random.default_rng(1)
Rows = Iterator[tuple[Any, ...]]


def plan(**options: Any) -> Plan:
    return Plan(PlanOptions(**options), session=SESSION)


def seconds(call: Callable[[], Any], repeat: int = 2) -> float:
    """The first call finds what the recipe needs and is not counted."""
    call()
    least = np.inf
    for _ in range(repeat):
        began = time.process_time()
        call()
        least = min(least, time.process_time() - began)
    return least


def vortices(p: Plan, n: int) -> Callable[[], None]:
    """Sets vortices and targets as in Yokota et al. (2009), Section 4.2: strengths in (0, 1/n), cores of one mean distance.

    What it returns sets the strengths again, so that all passes are done anew; tree, lists and operators of the positions are kept.
    """
    x, strength = RANDOM.uniform(-np.pi, np.pi, (n, 3)), RANDOM.uniform(0, 1 / n, (n, 3))
    p.set_particles(x, strength, core_radius=np.full(n, 2 * np.pi / np.cbrt(n)))
    p.set_targets(x)
    return lambda: p.set_strengths(strength=strength)


def charges(p: Plan, n: int, dtype: Any = np.float64, m: int | None = None) -> Callable[[], None]:
    """Sets charges in (0, 1) and other targets in the unit cube."""
    x, q, y = RANDOM.random((n, 3)), RANDOM.random(n), RANDOM.random((m or n, 3))
    x, q, y = (a.astype(dtype) for a in (x, q, y))

    def again() -> None:
        p.set_charges(x, q)
        p.set_targets(y)

    return again


def pseudo_particles(largest: int) -> Rows:
    """Yokota et al. (2009), Figures 5, 6 and 10: their p is the highest degree, one less than the order here."""
    yield "N", "level", "depth", "p", "expansion", "seconds", "error"
    for n, level in ((1000, 2), (3000, 2), (10_000, 2), (10_000, 3)):
        for degree in (6, 8, 10):
            for expansion in Expansion:
                if n <= largest:
                    capacity = 3 * n // 8**level
                    p = plan(method=Method.FMM, order=degree + 1, tolerance=LOOSE, leaf_capacity=capacity, expansion=expansion)
                    again = vortices(p, n)
                    least = seconds(lambda p=p, again=again: (again(), p.evaluate()), 1)
                    yield n, level, p.report().depth, degree, int(expansion), least, p.check(1000)


def singular(largest: int) -> Rows:
    """As pseudo_particles, errors without cores: those of the expansions alone. All orders have the same particles."""
    yield "N", "level", "p", "expansion", "error"
    for n, level in ((1000, 2), (3000, 2), (10_000, 2)):
        if n <= largest:
            x, strength = RANDOM.uniform(-np.pi, np.pi, (n, 3)), RANDOM.uniform(0, 1 / n, (n, 3))
            for degree in (6, 8, 10):
                for expansion in Expansion:
                    capacity = 3 * n // 8**level
                    p = plan(method=Method.FMM, order=degree + 1, tolerance=LOOSE, leaf_capacity=capacity, expansion=expansion)
                    p.set_particles(x, strength)
                    p.set_targets(x)
                    p.evaluate()
                    yield n, level, degree, int(expansion), p.check(1000)


def orders(largest: int) -> Rows:
    """Hu et al. (2012), Figures 14 and 15; (2013), A.6 and A.7; Gumerov and Duraiswami (2008), Tables 8 and 11, Figure 11."""
    yield "N", "p", "bits", "seconds", "error"
    for n in (2**k for k in (10, 12, 14, 16, 18, 20)):
        for dtype, bits in ((np.float32, 32), (np.float64, 64)):
            for order in (4, 8, 12):
                if n <= min(largest, 2**20 if bits == 32 else 2**18):
                    p = plan(method=Method.FMM, order=order, tolerance=LOOSE)
                    again = charges(p, n, dtype, n + 1)
                    least = seconds(lambda p=p, again=again: (again(), p.evaluate_potential(gradient=True)))
                    yield n, order, bits, least, p.check(1000)


def grid(largest: int) -> Rows:
    """Gumerov and Duraiswami (2008), Figure 10: unit charges on a grid, 729 targets, single precision; p = 0: direct sum."""
    yield "N", "p", "error"
    middle = (np.arange(9) + 0.5) / 9
    targets = np.stack(np.meshgrid(*[middle] * 3), axis=-1).reshape(-1, 3)
    for side in (8, 16, 32, 64, 100):
        if side**3 <= largest:
            along = (np.arange(side) + 0.5) / side
            sources = np.stack(np.meshgrid(*[along] * 3), axis=-1).reshape(-1, 3)

            def potential(sources: Any, targets: Any, **options: Any) -> Any:
                p = plan(**options)
                p.set_charges(sources, np.ones(len(sources), dtype=sources.dtype))
                p.set_targets(targets)
                return p.evaluate_potential()

            # The positions as single precision has them: only the sums differ.
            single = sources.astype(np.float32), targets.astype(np.float32)
            exact = potential(*(a.astype(np.float64) for a in single), method=Method.DIRECT)
            for order in (0, 4, 8, 12):
                method = Method.FMM if order else Method.DIRECT
                got = potential(*single, method=method, order=order, tolerance=LOOSE, precision=Precision.F32)
                yield side**3, order, np.linalg.norm(got - exact) / np.linalg.norm(exact)


def kernels(largest: int) -> Rows:
    """Hu et al. (2012), Table 2; (2013), Table A.2: Coulomb and Biot-Savart kernels, single precision."""
    yield "N", "coulomb", "biot_savart"
    for n in (2**k for k in (10, 12, 14, 16, 18, 20)):
        if n <= largest:
            p, q = (plan(method=Method.FMM, order=8, tolerance=LOOSE) for _ in range(2))
            again = charges(p, n, np.float32)
            x, strength, y = (RANDOM.random((n, 3)).astype(np.float32) for _ in range(3))

            def biot_savart(q: Plan = q, x: Any = x, strength: Any = strength, y: Any = y) -> None:
                q.set_particles(x, strength)
                q.set_targets(y)
                q.evaluate()

            yield n, seconds(lambda p=p, again=again: (again(), p.evaluate_potential())), seconds(biot_savart)


def structures(largest: int) -> Rows:
    """Hu et al. (2013), Table A.1; (2012), Table 1: seconds of the tree and the lists of new positions."""
    yield "level", "seconds"
    n = min(largest, 2**20)
    for level in (3, 4, 5, 6):
        p = plan(method=Method.FMM, order=4, tolerance=LOOSE, leaf_capacity=max(1, 2 * n // 8**level))
        for _ in range(2):
            charges(p, n, np.float32)()
            began = time.process_time()
            p.prepare()
        yield level, time.process_time() - began


def direct_sums(largest: int) -> Rows:
    """Yokota et al. (2009), Figures 2 and 3: direct sums by kernel, at 4096 targets and scaled to all."""
    yield "N", "velocity", "velocity_and_gradient", "potential_and_force"
    for n in (1000, 10_000, 100_000):
        if n <= largest:
            m = min(n, 4096)
            x = RANDOM.uniform(-np.pi, np.pi, (n, 3))
            p, q = plan(method=Method.DIRECT), plan(method=Method.DIRECT)
            p.set_particles(x, RANDOM.uniform(0, 1 / n, (n, 3)), core_radius=np.full(n, 2 * np.pi / np.cbrt(n)))
            q.set_charges(x, RANDOM.random(n))
            for one in (p, q):
                one.set_targets(x[:m])
            calls = (p.evaluate, lambda p=p: p.evaluate(gradient=True), lambda q=q: q.evaluate_potential(gradient=True))
            yield n, *(seconds(call, 1) * n / m for call in calls)


PARTS = {
    "pseudo": pseudo_particles,
    "singular": singular,
    "orders": orders,
    "grid": grid,
    "kernels": kernels,
    "structures": structures,
    "direct": direct_sums,
}
