"""What is refused, by which exception, and that the plan is as it was."""

import pickle

import numpy as np
import pytest
import wakefmm
from wakefmm import Camera, CallError, FlowOptions, Plan, PlanOptions

X = np.random.default_rng(2).random((10, 3))


def filled():
    plan = Plan()
    plan.set_particles(X, X)
    plan.set_targets(X)
    return plan


@pytest.mark.parametrize(
    "options, name",
    [
        (PlanOptions(tolerance=0), "WFMM_ERR_VALUE"),
        (PlanOptions(method=9), "WFMM_ERR_CONSTANT"),
        (PlanOptions(tolerance=1e-15), "WFMM_ERR_TOLERANCE"),
        (PlanOptions(core_radius=float("nan")), "WFMM_ERR_NOT_FINITE"),
    ],
)
def test_options(options, name):
    with pytest.raises(CallError) as caught:
        Plan(options)
    assert caught.value.name == name and isinstance(caught.value, ValueError) and caught.value.message
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.status, again.name) == (caught.value.status, name)


def test_options_of_another_type():
    with pytest.raises(TypeError, match="order"):
        Plan(PlanOptions(order="six"))


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: PlanOptions(period=(1.0,)), r"period has shape \(1,\); \(3,\)"),
        (lambda: PlanOptions(period=np.ones(4)), "period"),
        (lambda: PlanOptions(period=("x", "y", "z")), "period has type"),
        (lambda: FlowOptions(gravity=-9.81), r"gravity has shape \(\); \(3,\)"),
        (lambda: FlowOptions(gravity=[0, -9.81]), "gravity"),
        (lambda: Camera(background=(0, 0, 0)), r"background has shape \(3,\); \(4,\)"),
    ],
)
def test_lengths_of_options(make, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make()


def test_options_from_arrays():
    options = PlanOptions(period=np.array([1, 2, 4], np.float32))
    assert options == PlanOptions(period=(1.0, 2.0, 4.0)) and hash(options) and Plan(options)
    assert FlowOptions(gravity=[0, 0, -9.81]).gravity == (0, 0, -9.81)


def test_a_nan_is_named_and_changes_nothing():
    plan = filled()
    before = plan.evaluate()
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(CallError, match="3"):
        plan.set_targets(bad)
    assert np.array_equal(plan.evaluate(), before)


def test_evaluate_before_sources():
    with pytest.raises(CallError) as caught:
        Plan().evaluate()
    assert caught.value.name == "WFMM_ERR_STATE"


def test_point_numbers():
    with pytest.raises(CallError) as caught:
        wakefmm.induce_segments(X, [[0, 10]], [1.0], X)
    assert caught.value.name == "WFMM_ERR_INDEX"
    with pytest.raises(ValueError, match="connectivity"):
        wakefmm.induce_segments(X, [[0, 2**40]], [1.0], X)
    with pytest.raises(TypeError, match="connectivity"):
        wakefmm.induce_segments(X, [[0.0, 1.0]], [1.0], X)


@pytest.mark.parametrize(
    "arrays, match",
    [
        ((X, X[:5]), "strength"),
        ((X[:, :2], X), "position"),
        ((X.ravel(), X), "position"),
        ((X.astype(complex), X), "position"),
    ],
)
def test_shapes_and_types(arrays, match):
    with pytest.raises((ValueError, TypeError), match=match):
        Plan().set_particles(*arrays)


@pytest.mark.parametrize(
    "arrays, message",
    [
        ((X, X[:5]), "strength has shape (5, 3); (n, 3) is needed, with n = 10 of position"),
        ((X.T, X.T), "position has shape (3, 10); (n, 3) is needed"),
        ((X.ravel(), X), "position has shape (30,); (n, 3) is needed"),
    ],
)
def test_a_shape_is_explained(arrays, message):
    with pytest.raises(ValueError) as caught:
        Plan().set_particles(*arrays)
    assert str(caught.value) == message


def test_masked_values_are_refused():
    masked = np.ma.masked_greater(X, 0.5)
    plan = filled()
    with pytest.raises(ValueError, match="strength has masked values"):
        plan.set_particles(X, masked)
    with pytest.raises(ValueError, match="out has masked values"):
        plan.evaluate(out=masked)
    with pytest.raises(ValueError, match="target has masked values"):
        wakefmm.induce_particles(X, X, masked)
    # Nothing is lost without a mask, or where none of it is set.
    plan.set_particles(X, np.ma.masked_array(X))
    plan.set_particles(X, np.ma.masked_array(X, mask=np.zeros(X.shape, bool)))
    assert np.array_equal(plan.evaluate(), filled().evaluate())


def test_outputs():
    plan = filled()
    with pytest.raises(ValueError, match="out has shape"):
        plan.evaluate(out=np.empty((9, 3)))
    with pytest.raises(TypeError, match="int64"):
        plan.evaluate(out=np.empty((10, 3), dtype=np.int64))
    with pytest.raises(ValueError, match="C-contiguous"):
        plan.evaluate(out=np.empty((3, 10)).T)
    read_only = np.empty((10, 3))
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        plan.evaluate(out=read_only)
    with pytest.raises(TypeError, match="same"):
        plan.evaluate(gradient=True, out=np.empty((10, 3)), out_gradient=np.empty((10, 3, 3), dtype=np.float32))
    with pytest.raises(ValueError, match="gradient=True"):
        plan.evaluate(out_gradient=np.empty((10, 3, 3)))
    block = np.empty(90)
    with pytest.raises(CallError) as caught:
        plan.evaluate(gradient=True, out=block[:30].reshape(10, 3), out_gradient=block.reshape(10, 3, 3))
    assert caught.value.name == "WFMM_ERR_OVERLAP"


def test_closed():
    plan = filled()
    plan.close()
    plan.close()
    assert plan.closed and repr(plan) == "Plan(closed)"
    with pytest.raises(ValueError, match="closed"):
        plan.evaluate()


def test_devices():
    with pytest.raises(ValueError, match=r"devices\[1\] = -3"):
        wakefmm.Session(wakefmm.SessionOptions(devices=(0, -3)))
    with pytest.raises(TypeError, match="devices"):
        wakefmm.Session(wakefmm.SessionOptions(devices=("first",)))
    session = wakefmm.Session(wakefmm.SessionOptions(backend=wakefmm.Backend.CPU, devices=(0, 1)))
    assert session.describe().startswith("CPU")


def test_no_device():
    options = wakefmm.SessionOptions(backend=wakefmm.Backend.CUDA, device=99)
    with pytest.raises(wakefmm.ResourceError) as caught:
        wakefmm.Session(options)
    assert 100 <= caught.value.status < 200
