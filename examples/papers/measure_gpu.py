"""What make.py measures on a GPU, and on one core beside it: cases of the papers, a row of the same columns for each.

Seconds are host wall clock of one evaluation of a kept plan from host arrays with new positions, copies included, medians. Seconds of
passes are of the plan's report. Errors are relative L2 errors at 300 targets against direct sums in double precision.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from wakefmm import Backend, Error, Expansion, Method, Pass, Plan, PlanOptions, Precision, Report, Session, SessionOptions

PASSES = [p for p in Pass if p != Pass.TOTAL]
COLUMNS = (
    *("series", "device", "kernel", "method", "expansion", "bits", "N", "targets", "tolerance", "level", "leaf"),
    *("seconds", "scaled", "error"),
    *("used", "precision", "order", "depth", "near_pairs", "far_pairs", "retries"),
    *(p.name.lower() for p in PASSES),
)
#: Most pairs of a direct sum; more are measured at fewer targets and scaled.
PAIRS = {"gpu": 10**11, "cpu": 10**9}
#: Up to so many points a GPU times the passes of one evaluation in 16 only: the first 18 give shares of a warm plan.
SMALL = 400_000
SAMPLE = 300
#: The loosest tolerance that the library uses.
LOOSE = 0.1
Arrays = tuple[Any, ...]
Rows = Iterator[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """kernel: potential, force (and potential) of charges; velocity, gradient (and velocity) of particles; segments: their velocity.

    targets: 0: the sources. cores: as Yokota et al. (2009) have them. level: of leaves that are filled alike.
    """

    series: str
    kernel: str
    n: int
    method: Method = Method.FMM
    bits: int = 32
    device: str = "gpu"
    tolerance: float = 1e-4
    targets: int = 0
    level: int = 0
    leaf: int = 0
    order: int = 0
    expansion: Expansion = Expansion.HARMONICS
    cores: bool = False

    @property
    def gradient(self) -> bool:
        return self.kernel in ("force", "gradient")

    def kind(self) -> tuple[Any, ...]:
        """What cases of other sizes share with it."""
        return self.kernel, self.method, self.bits, self.device, self.expansion, self.tolerance, self.level, self.leaf


def arrays(case: Case) -> tuple[Arrays, Arrays]:
    """Points of sources and targets, and strengths and cores; targets are None where they are the sources."""
    random = np.random.default_rng(case.n)
    dtype = np.float32 if case.bits == 32 else np.float64
    low, high = (-np.pi, np.pi) if case.cores else (0, 1)
    if case.kernel == "segments":
        angle = np.linspace(0, 100, case.n + 1)
        points = np.stack([0.5 + 0.4 * np.cos(angle), 0.5 + 0.4 * np.sin(angle), angle / 100], axis=1)
        strength: Any = random.random(case.n)
    else:
        points = random.uniform(low, high, (case.n, 3))
        strength = random.random(case.n) if case.kernel in ("potential", "force") else random.uniform(0, 1 / case.n, (case.n, 3))
    targets = random.uniform(low, high, (case.targets, 3)).astype(dtype) if case.targets else None
    core = np.full(case.n, 2 * np.pi / np.cbrt(case.n), dtype) if case.cores else None
    return (points.astype(dtype), targets), (strength.astype(dtype), core)


def put(plan: Plan, case: Case, points: Any, targets: Any, strength: Any, core: Any) -> None:
    if case.kernel == "segments":
        ends = np.stack([np.arange(case.n), np.arange(1, case.n + 1)], axis=1).astype(np.int32)
        plan.set_segments(points, ends, strength)
    elif case.kernel in ("potential", "force"):
        plan.set_charges(points, strength)
    else:
        plan.set_particles(points, strength, core_radius=core)
    plan.set_targets(targets)


def field(plan: Plan, case: Case, out: Any = None, out_gradient: Any = None) -> Any:
    """The field that the case is about: the gradient where there is one."""
    evaluate = plan.evaluate_potential if case.kernel in ("potential", "force") else plan.evaluate
    if case.gradient:
        return evaluate(gradient=True, out=out, out_gradient=out_gradient)[1]
    return evaluate(out=out)


def exact(session: Session, case: Case, points: Any, targets: Any, strength: Any, core: Any) -> Any:
    with Plan(PlanOptions(method=Method.DIRECT, precision=Precision.F64, core_radius=0.01), session=session) as plan:
        doubles = [None if a is None else a.astype(np.float64) for a in (points, targets, strength, core)]
        put(plan, case, *doubles)
        return field(plan, case)


def mirrored(case: Case, points: Any) -> Any:
    """As many other positions of the same distribution."""
    return -points if case.cores else 1 - points


class Bench:
    """Sessions on the GPU and on one core, and the time that may be spent."""

    def __init__(self, minutes: float, backend: Backend = Backend.CUDA) -> None:
        self.end = time.monotonic() + 60 * minutes
        self.sessions = {"gpu": Session(SessionOptions(backend=backend)), "cpu": Session(SessionOptions(backend=Backend.CPU, threads=1))}
        self._spent: dict[tuple[Any, ...], tuple[float, int]] = {}

    def expected(self, case: Case) -> float:
        """Seconds of a case, from the last one of its kind."""
        spent, n = self._spent.get(case.kind(), (0.0, 1))
        return spent * max(1.0, case.n / n)

    def run(self, case: Case) -> tuple[Any, ...]:
        began = time.monotonic()
        if began + self.expected(case) > self.end:
            raise TimeoutError("no time is left")
        try:
            return self._run(case)
        finally:
            self._spent[case.kind()] = time.monotonic() - began, case.n

    def _run(self, case: Case) -> tuple[Any, ...]:
        session = self.sessions[case.device]
        (points, targets), (strength, core) = arrays(case)
        all_targets = case.targets or case.n
        m = all_targets
        if case.method == Method.DIRECT:
            m = max(1, min(m, PAIRS[case.device] // case.n))
        sets = []
        for moved in (False, True):
            x = mirrored(case, points) if moved else points
            y = x if targets is None else mirrored(case, targets) if moved else targets
            sets.append((x, y[:m] if m < all_targets else y))
        leaf = case.leaf or (max(1, 2 * case.n // 8**case.level) if case.level else 0)
        options = PlanOptions(
            method=case.method,
            precision=Precision.F64 if case.bits == 64 else Precision.ARRAYS,
            order=case.order,
            leaf_capacity=leaf,
            tolerance=case.tolerance,
            core_radius=0.01,
            expansion=case.expansion,
        )
        with Plan(options, session=session) as plan:
            row = () if case.kernel in ("potential", "force") else (3,)
            out = np.empty((m, *row), points.dtype)
            gradient = np.empty((m, *row, 3), points.dtype) if case.gradient else None
            result: list[Any] = [None]
            turn = 0

            def call() -> float:
                nonlocal turn
                turn += 1
                start = time.perf_counter()
                put(plan, case, *sets[turn % 2], strength, core)
                result[0] = field(plan, case, out, gradient)
                return time.perf_counter() - start

            few = case.device == "cpu"
            small = case.n + m <= SMALL and case.method != Method.DIRECT and not few
            repeat(call, most=1 if few else 18 if small else 2, seconds=0.0 if few else 1.0)
            walls: list[float] = []
            reports: list[Report] = []

            def measured() -> float:
                walls.append(call())
                reports.append(plan.report())
                return walls[-1]

            repeat(measured, least=1 if few else 3, most=5 if few else 11, seconds=0.3)
            used = reports[-1]
            passes = [statistics.median(r.seconds[p] for r in reports) for p in PASSES]
            error: float | str = ""
            if case.method != Method.DIRECT:
                some = np.random.default_rng(2).choice(m, min(m, SAMPLE), replace=False)
                x, y = sets[turn % 2]
                want = exact(self.sessions["gpu"], case, x, y[some], strength, core)
                error = float(np.linalg.norm(result[0][some] - want) / np.linalg.norm(want))
            names = case.series, case.device, case.kernel, case.method.name.lower(), case.expansion.name.lower()
            asked = case.bits, case.n, all_targets, case.tolerance, case.level, case.leaf
            seconds = statistics.median(walls) * all_targets / m
            precision = 64 if used.precision == Precision.F64 else 32
            found = used.method.name.lower(), precision, used.order, used.depth, used.near_pairs, used.far_pairs, used.retries
            return *names, *asked, seconds, int(m < all_targets), error, *found, *passes


def repeat(call: Callable[[], float], *, least: int = 1, most: int, seconds: float) -> None:
    total = 0.0
    for k in range(most):
        total += call()
        if k + 1 >= least and total > seconds:
            return


def decades(first: int, last: int, *, thirds: bool = True) -> list[int]:
    """1, 3, 10, ... times a power of ten."""
    return [f * 10**k for k in range(first, last + 1) for f in ((1, 3) if thirds and k < last else (1,))]


def pseudo(series: str, kernel: str, sizes: list[int], **options: Any) -> list[Case]:
    """With pseudo-particles of the order of Yokota et al. (2009); some back ends refuse them."""
    return [Case(series, kernel, n, order=11, expansion=Expansion.PSEUDO_PARTICLES, **options) for n in sizes]


def yokota_barba() -> list[Case]:
    """Yokota and Barba (2011), Figures 5 to 7: potential and force at the bodies, error of the force 1e-4."""
    cases = []
    for method in (Method.FMM, Method.TREECODE, Method.DIRECT):
        cases += [Case("fig5", "force", n, method, tolerance=1e-5) for n in decades(3, 7)]
    for method, largest in ((Method.DIRECT, 10**6), (Method.FMM, 10**6), (Method.TREECODE, 3 * 10**5)):
        cases += [Case("fig5", "force", n, method, tolerance=1e-5, device="cpu") for n in decades(3, 6) if n <= largest]
    return cases + pseudo("fig6", "force", [10**4, 10**5, 10**6], tolerance=1e-5)


def hu() -> list[Case]:
    """Hu et al. (2012), Figures 6 and 13, (2013), Figures A.4 and A.5: as many other receivers; and direct sums of segments at dust."""
    cases = []
    sizes = [2**k for k in range(10, 23, 2)] + [10**7]
    for kernel in ("velocity", "potential"):
        for bits, tolerance in ((32, 1e-5), (64, 1e-6)):
            for method in (Method.FMM, Method.DIRECT):
                cases += [Case("sums", kernel, n, method, bits, tolerance=tolerance, targets=n) for n in sizes]
        cases += [Case("sums", kernel, n, Method.DIRECT, 64, "cpu", targets=n) for n in sizes if n <= 2**20]
    for targets in (10**4, 10**5, 10**6):
        for device, bits in (("gpu", 32), ("gpu", 64), ("cpu", 64)):
            cases.append(Case("dust", "segments", 5000, Method.DIRECT, bits, device, targets=targets))
    for n in (2**14, 2**17, 2**20):
        cases += pseudo("sums", "velocity", [n], tolerance=1e-5, targets=n)
    return cases


#: Gumerov and Duraiswami (2008), Table 8: errors of their GPU for p = 4, 8, 12, as tolerances; the last is beyond single precision here.
TOLERANCES = ((2.3e-4, 32), (8.3e-6, 32), (9.5e-7, 64))


def gumerov() -> list[Case]:
    """Gumerov and Duraiswami (2008), Tables 1 to 8 and 11, Figures 6 to 8 and 11: one more receiver."""
    cases = []
    largest = 2**20
    for tolerance, bits in TOLERANCES:
        for n in (2**14, 2**15, 2**16, 2**17, 2**18, 2**19, largest):
            cases.append(Case("potential", "potential", n, bits=bits, tolerance=tolerance, targets=n + 1))
        for n in (2**10, 2**12, 2**14, 2**16, 2**18, largest):
            cases.append(Case("force", "force", n, bits=bits, tolerance=tolerance, targets=n + 1))
    for kernel in ("potential", "force"):
        cases += [Case("direct", kernel, 2**k, Method.DIRECT, targets=2**k + 1) for k in range(10, 21)]
    for tolerance, bits in TOLERANCES:
        levels = (3, 4, 5, 6)
        cases += [Case("level", "potential", largest, bits=bits, tolerance=tolerance, targets=largest + 1, level=level) for level in levels]
    for leaf in (60, 320):
        cases += [Case("leaf", "potential", n, tolerance=8.3e-6, targets=n + 1, leaf=leaf) for n in (2**14, 2**16, 2**18, largest)]
    return cases


def yokota() -> list[Case]:
    """Yokota et al. (2009), Figures 2 to 9: vortex particles with cores at their own positions."""
    cases = [Case("fmm", "velocity", n, cores=True) for n in decades(3, 7)]
    for kernel in ("velocity", "gradient"):
        cases += [Case("direct", kernel, n, Method.DIRECT, cores=True) for n in decades(3, 6)]
    cases += [Case("direct", "force", n, Method.DIRECT) for n in decades(3, 6)]
    cases += [Case("fmm", "velocity", n, device="cpu", cores=True) for n in decades(3, 5)]
    return cases + pseudo("fmm", "velocity", [10**3, 10**4, 10**5, 10**6, 10**7], cores=True)


PARTS: dict[str, Callable[[], list[Case]]] = {
    "gpu_yokota_barba": yokota_barba,
    "gpu_hu": hu,
    "gpu_gumerov": gumerov,
    "gpu_yokota": yokota,
}


def attempt(bench: Bench, case: Case) -> tuple[Any, ...]:
    """Pseudo-particles that miss their tolerance are measured at one that is loose, so that the order decides."""
    try:
        return bench.run(case)
    except Error:
        if case.expansion != Expansion.PSEUDO_PARTICLES:
            raise
        return bench.run(replace(case, tolerance=LOOSE))


def refusal(session: Session) -> str:
    """Why the session has no pseudo-particles; empty where it has them."""
    case = pseudo("", "velocity", [3000], tolerance=LOOSE)[0]
    (x, _), (strength, _) = arrays(case)
    try:
        with Plan(PlanOptions(method=Method.FMM, order=4, tolerance=case.tolerance, expansion=case.expansion), session=session) as plan:
            put(plan, case, x, x, strength, None)
            plan.evaluate()
    except Error as error:
        return " ".join(str(error).split())
    return ""


def rows(part: str, largest: int, minutes: float, backend: Backend = Backend.CUDA) -> Rows:
    """Lines of the CSV: the machine, names, then a row, or a remark why there is none, for each case."""
    bench = Bench(minutes, backend)
    for device, what in (("gpu", "GPU"), ("cpu", "one core")):
        yield (f"# {what}: {bench.sessions[device].describe()}",)
    yield COLUMNS
    refused = refusal(bench.sessions["gpu"])
    if refused:
        yield (f"# left out: {refused}",)
    late: list[str] = []
    for case in PARTS[part]():
        if case.n > largest or case.targets > 2 * largest or (refused and case.expansion == Expansion.PSEUDO_PARTICLES):
            continue
        about = f"{case.device}, {case.kernel}, {case.method.name.lower()}, {case.expansion.name.lower()}, N = {case.n:,}, {case.bits} bits"
        try:
            yield attempt(bench, case)
        except TimeoutError:
            late.append(about)
        except (Error, MemoryError, ValueError) as error:
            yield (f"# left out: {about}, tolerance {case.tolerance:g}: {' '.join(str(error).split())}",)
    if late:
        yield (f"# left out: no time for {len(late)} cases: {'; '.join(late)}",)
