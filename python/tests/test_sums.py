"""Fields against plain NumPy direct sums."""

import numpy as np
import pytest
import reference
import wakefmm
from wakefmm import Flag, Method, Plan, PlanOptions, Precision, Regularization

SEGMENT_CORES = [Regularization(i) for i in range(0, 6)]
PARTICLE_CORES = [Regularization.NONE, *(Regularization(i) for i in range(6, 12))]


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def wake(rng, n):
    points = rng.random((n + 1, 3))
    ends = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    return points, ends, rng.normal(size=n), 0.05 * rng.random(n)


def cloud(rng, n):
    return rng.random((n, 3)), rng.normal(size=(n, 3)), 0.1 * rng.random(n)


@pytest.mark.parametrize("core", PARTICLE_CORES)
def test_particles(rng, core):
    position, strength, radius = cloud(rng, 60)
    x = rng.random((40, 3))
    plan = Plan(PlanOptions(particle_regularization=core, method=Method.DIRECT))
    plan.set_particles(position, strength, core_radius=radius)
    plan.set_targets(x)
    velocity, gradient = plan.evaluate(gradient=True)
    exact = lambda y: reference.particles(y, position, strength, radius, core)
    assert reference.error(velocity, exact(x)) < 1e-12
    assert reference.error(gradient, reference.gradient_of(exact, x)) < 1e-6
    one_call = wakefmm.induce_particles(position, strength, x, core_radius=radius, options=plan.options)
    assert np.array_equal(one_call, velocity)


@pytest.mark.parametrize("core", SEGMENT_CORES)
def test_segments(rng, core):
    points, ends, circulation, radius = wake(rng, 50)
    x = rng.random((40, 3))
    plan = Plan(PlanOptions(segment_regularization=core, method=Method.DIRECT))
    plan.set_segments(points, ends, circulation, core_radius=radius)
    plan.set_targets(x)
    velocity, gradient = plan.evaluate(gradient=True)
    exact = lambda y: reference.segments(y, points, ends, circulation, radius, core)
    assert reference.error(velocity, exact(x)) < 1e-12
    assert reference.error(gradient, reference.gradient_of(exact, x, 1e-6)) < 1e-4
    one_call = wakefmm.induce_segments(
        points, ends, circulation, x, core_radius=radius, options=plan.options, gradient=True
    )
    assert np.array_equal(one_call[0], velocity) and np.array_equal(one_call[1], gradient)


def test_charges(rng):
    position, charge, x = rng.random((50, 3)), rng.normal(size=50), rng.random((30, 3))
    plan = Plan()
    plan.set_charges(position, charge)
    plan.set_targets(x)
    potential, gradient = plan.evaluate_potential(gradient=True)
    exact, exact_gradient = reference.potential(x, position, charge)
    assert reference.error(potential, exact) < 1e-12
    assert reference.error(gradient, exact_gradient) < 1e-12


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_fmm_keeps_the_tolerance(rng, tolerance):
    position, strength, radius = cloud(rng, 3000)
    x = rng.random((500, 3))
    plan = Plan(PlanOptions(method=Method.FMM, tolerance=tolerance))
    plan.set_particles(position, strength, core_radius=0.1 * radius)
    plan.set_targets(x)
    velocity = plan.evaluate()
    exact = reference.particles(x, position, strength, 0.1 * radius, Regularization.GAUSS_ERF)
    assert reference.error(velocity, exact) < tolerance
    assert plan.check(200) < tolerance
    report = plan.report()
    assert report.method == Method.FMM and report.precision == Precision.F64
    assert report.far_pairs > 0 or tolerance < 1e-4
    assert report.seconds[wakefmm.Pass.TOTAL] > 0 and report.estimated_error < tolerance
    assert "order" in plan.recipe()


def test_sources_add_up_and_accumulate(rng):
    position, strength, radius = cloud(rng, 30)
    points, ends, circulation, cores = wake(rng, 30)
    x = rng.random((20, 3))
    plan = Plan(PlanOptions(flags=Flag.ACCUMULATE))
    plan.set_particles(position, strength, core_radius=radius)
    plan.set_segments(points, ends, circulation, core_radius=cores)
    plan.set_targets(x)
    exact = reference.particles(x, position, strength, radius, Regularization.GAUSS_ERF)
    exact += reference.segments(x, points, ends, circulation, cores, Regularization.VATISTAS)
    out = np.ones((20, 3))
    assert plan.evaluate(out=out) is out
    assert reference.error(out - 1, exact) < 1e-10
    assert reference.error(plan.evaluate(), exact) < 1e-12


def test_ground_plane(rng):
    position, strength, radius = cloud(rng, 30)
    x = rng.random((20, 3))
    mirror = np.array([1, 1, -1])
    images = position * mirror - [0, 0, 1.0]
    plan = Plan(PlanOptions(plane_axis=wakefmm.Plane.Z, plane_position=-0.5, method=Method.DIRECT))
    plan.set_particles(position, strength, core_radius=radius)
    plan.set_targets(x)
    both = np.concatenate([position, images]), np.concatenate([strength, -strength * mirror]), np.tile(radius, 2)
    assert reference.error(plan.evaluate(), reference.particles(x, *both, Regularization.GAUSS_ERF)) < 1e-11


def test_period_makes_an_infinite_line(rng):
    x = rng.random((20, 3)) + [0.5, 0.5, -3]
    plan = Plan(PlanOptions(period=(0.0, 0.0, 2.0), tolerance=1e-9))
    plan.set_segments(np.array([[0, 0, 0], [0, 0, 2.0]]), np.array([[0, 1]]), np.array([3.0]))
    plan.set_targets(x)
    around = np.stack([-x[:, 1], x[:, 0], 0 * x[:, 0]], axis=1)
    exact = 3 / (2 * np.pi) * around / (x[:, 0] ** 2 + x[:, 1] ** 2)[:, None]
    assert reference.error(plan.evaluate(), exact) < 1e-9


def test_reproducible_bits(rng):
    position, strength, radius = cloud(rng, 2000)
    fields = []
    for threads in (1, 2):
        session = wakefmm.Session(wakefmm.SessionOptions(threads=threads))
        plan = Plan(PlanOptions(flags=Flag.REPRODUCIBLE, method=Method.FMM), session=session)
        plan.set_particles(position, strength, core_radius=0.1 * radius)
        plan.set_targets(position)
        fields.append(plan.evaluate())
    assert np.array_equal(*fields)


def test_single_precision(rng):
    arrays = [a.astype(np.float32) for a in cloud(rng, 100)]
    plan = Plan()
    plan.set_particles(arrays[0], arrays[1], core_radius=arrays[2])
    plan.set_targets(arrays[0])
    velocity = plan.evaluate()
    assert velocity.dtype == np.float32 and plan.report().precision == Precision.F32
    exact = reference.particles(*[a.astype(float) for a in (arrays[0], *arrays)], Regularization.GAUSS_ERF)
    assert reference.error(velocity, exact) < 1e-4
    out = np.empty((100, 3))
    plan.evaluate(out=out)
    assert plan.report().precision == Precision.F64 and reference.error(out, exact) < 1e-10


def test_new_strengths(rng):
    position, strength, radius = cloud(rng, 40)
    plan = Plan()
    plan.set_particles(position, strength, core_radius=radius)
    plan.set_targets(position)
    first = plan.evaluate()
    plan.set_strengths(strength=2 * strength)
    assert reference.error(plan.evaluate(), 2 * first) < 1e-12


def test_index_base_and_wide_rows(rng):
    points, ends, circulation, cores = wake(rng, 30)
    x = rng.random((10, 3))
    rows = np.concatenate([ends + 1, np.full((30, 2), -7)], axis=1).astype(np.int64)
    options = PlanOptions(index_base=1, core_radius=0.03)
    velocity = wakefmm.induce_segments(points, rows, circulation, x, options=options)
    exact = reference.segments(x, points, ends, circulation, np.full(30, 0.03), Regularization.VATISTAS)
    assert reference.error(velocity, exact) < 1e-12


def test_empty_arrays():
    assert np.array_equal(wakefmm.induce_particles(np.empty((0, 3)), np.empty((0, 3)), [[0, 0, 0]]), [[0, 0, 0]])
    assert wakefmm.induce_particles([[0, 0, 0]], [[0, 0, 1]], np.empty((0, 3))).shape == (0, 3)


def test_asynchronous(rng):
    position, strength, radius = cloud(rng, 2000)
    plan = Plan()
    plan.set_particles(position, strength, core_radius=radius)
    plan.set_targets(position)
    expected = plan.evaluate()
    assert plan.wait() is None
    plan.evaluate_async()
    assert reference.error(plan.wait(), expected) < 1e-4
