"""Flows: motion, checkpoints, callbacks, diagnostics."""

import numpy as np
import pytest
import reference
import wakefmm
from wakefmm import Flow, FlowOptions, Integrator, Kind, PlanOptions, Quantity
from wakefmm._native import ffi, lib

RNG = np.random.default_rng(4)
X, A = RNG.random((20, 3)), RNG.normal(size=(20, 3))
CORE = np.full(20, 0.3)


def exact(x):
    return reference.particles(x, X, A, CORE, wakefmm.Regularization.GAUSS_ERF)


def test_a_euler_step():
    flow = Flow(options=FlowOptions(integrator=Integrator.EULER))
    flow.set_particles(X, A, core_radius=CORE)
    flow.set_tracers(X[:4] + 0.1)
    flow.set_free_stream([1, 2, 3])
    flow.advance(0.01)
    wind = np.array([1, 2, 3])
    assert reference.error(flow.get(Kind.PARTICLES, Quantity.POSITION)[0], X + 0.01 * (exact(X) + wind)) < 1e-13
    tracers, identity = flow.get(Kind.TRACERS, Quantity.POSITION)
    assert reference.error(tracers, X[:4] + 0.1 + 0.01 * (exact(X[:4] + 0.1) + wind)) < 1e-13
    assert list(identity) == [0, 1, 2, 3] and flow.step == 1 and flow.time == 0.01
    assert flow.report().near_pairs > 0


def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path):
    plan = PlanOptions(method=wakefmm.Method.DIRECT)
    flow = Flow(plan, FlowOptions(integrator=Integrator.AB2, viscosity=1e-3))
    flow.set_filaments(X, np.stack([np.arange(19), np.arange(1, 20)], 1), np.ones(19), core_radius=CORE[:19])
    flow.advance(0.01, 3)
    flow.save(tmp_path / "state.npz")
    again = Flow.load(tmp_path / "state.npz")
    assert np.load(tmp_path / "state.npz")["filament_point"].shape == (20, 3)
    for f in (flow, again):
        f.advance(0.01, 2)
    points = [f.get(Kind.FILAMENTS, Quantity.POSITION)[0] for f in (flow, again)]
    assert np.array_equal(*points) and again.step == 5
    assert np.array_equal(again.connectivity(Kind.FILAMENTS)[:, 1], np.arange(1, 20))
    with pytest.raises(wakefmm.CallError) as caught:
        Flow.load(tmp_path / "nothing.npz")
    assert caught.value.name == "WFMM_ERR_FILE"


def test_the_velocity_function():
    flow = Flow(options=FlowOptions(integrator=Integrator.EULER))
    flow.set_tracers(X)

    def shear(time, position, velocity):
        velocity[:, 0] += position[:, 2]

    flow.set_velocity_function(shear)
    flow.advance(0.1)
    moved = flow.get(Kind.TRACERS, Quantity.POSITION)[0]
    assert np.allclose(moved[:, 0], X[:, 0] + 0.1 * X[:, 2]) and np.array_equal(moved[:, 1:], X[:, 1:])
    assert np.allclose(flow.velocity([[0, 0, 2.0]]), [[2, 0, 0]])

    def fails(time, position, velocity):
        raise KeyError("gust")

    flow.set_velocity_function(fails)
    with pytest.raises(KeyError, match="gust"):
        flow.advance(0.1)
    assert np.array_equal(flow.get(Kind.TRACERS, Quantity.POSITION)[0], moved) and flow.step == 1
    flow.set_velocity_function(None)
    flow.advance(0.1)
    assert np.array_equal(flow.get(Kind.TRACERS, Quantity.POSITION)[0], moved)


def test_a_velocity_function_may_keep_its_arrays():
    flow = Flow(options=FlowOptions(integrator=Integrator.EULER))
    flow.set_tracers(X)
    flow.set_free_stream([1, 0, 0])
    kept = []

    def gust(time, position, velocity):
        velocity[:, 1] += 2
        kept.append((position, velocity))

    flow.set_velocity_function(gust)
    flow.advance(0.1, 2)
    position, velocity = kept[0]
    kept[1][1][:] = 100
    assert np.array_equal(position, X) and not position.flags.writeable
    assert np.array_equal(velocity, np.tile([1.0, 2, 0], (20, 1)))
    assert np.array_equal(kept[1][0], X + 0.1 * velocity)
    assert np.allclose(flow.get(Kind.TRACERS, Quantity.POSITION)[0], X + 0.2 * velocity)
    assert position.flags.owndata and velocity.flags.owndata, "a view of the library's memory"

    def moves(time, position, velocity):
        position *= 0.5

    again = Flow()
    again.set_tracers(X)
    again.set_velocity_function(moves)
    with pytest.raises(ValueError, match="read-only"):
        again.advance(0.1)


def test_device_arrays_of_a_velocity_function_end_with_it():
    flow = Flow()
    kept = []

    def gust(time, position, velocity):
        kept.append((position, velocity))
        assert velocity.__cuda_array_interface__["shape"] == (20, 3) and velocity.stream == 7
        if time > 0:
            raise KeyError("gust")

    flow.set_velocity_function(gust)
    # As the library calls it on a GPU. Nothing is read at these addresses.
    address = [ffi.cast("double *", 8), ffi.cast("double *", 16)]
    for time in (0, 1):
        status = flow._callback(time, 20, *address, lib.WFMM_MEMORY_DEVICE, ffi.cast("void *", 7), ffi.NULL)
        assert status == (lib.WFMM_ERR_CALLBACK if time else 0)
    for rows in (*kept[0], *kept[1]):
        with pytest.raises(ValueError, match="is over"):
            rows.__cuda_array_interface__
        with pytest.raises(ValueError, match="is over"):
            flow.set_tracers(rows)


def test_velocity_and_gradient():
    flow = Flow()
    flow.set_particles(X, A, core_radius=CORE)
    y = RNG.random((7, 3))
    velocity, gradient = flow.velocity(y, gradient=True)
    assert reference.error(velocity, exact(y)) < 1e-12
    assert reference.error(gradient, reference.gradient_of(exact, y)) < 1e-6
    out, slopes = np.empty((7, 3), np.float32), np.empty((7, 3, 3), np.float32)
    assert flow.velocity(y.astype(np.float32), gradient=True, out=out, out_gradient=slopes)[0] is out
    assert reference.error(out, velocity) < 1e-6 and reference.error(slopes, gradient) < 1e-5
    with pytest.raises(TypeError, match="the same is needed"):
        flow.velocity(y, out=out)
    with pytest.raises(ValueError, match="gradient=True"):
        flow.velocity(y, out_gradient=slopes)


def test_elements_come_and_go():
    flow = Flow(options=FlowOptions(fluid_viscosity=1.8e-5, fluid_density=1.2, gravity=(0, 0, -9.81)))
    flow.set_dust(X, np.full(20, 1e-4), np.full(20, 2500.0))
    flow.add_dust(X[:5], np.full(5, 1e-4), np.full(5, 2500.0), velocity=A[:5])
    flow.remove(Kind.DUST, [3, 24])
    values, identity = flow.get(Kind.DUST, Quantity.DIAMETER)
    assert flow.counts(Kind.DUST) == (23, 23) and values.shape == (23,)
    assert set(range(25)) - set(identity) == {3, 24}
    with pytest.raises(wakefmm.CallError) as caught:
        flow.remove(Kind.DUST, [3])
    assert caught.value.name == "WFMM_ERR_VALUE"
    some = flow.get_selected(Kind.DUST, Quantity.POSITION, [20, 4])
    assert (some == X[[0, 4]]).all() and flow.get_selected(Kind.DUST, Quantity.DENSITY, [2]).shape == (1,)
    flow.remove_mask(Kind.DUST, identity == 22)
    assert 22 not in flow.get(Kind.DUST, Quantity.DENSITY)[1] and flow.counts(Kind.DUST) == (22, 22)
    flow.advance(0.01)
    assert (flow.get(Kind.DUST, Quantity.VELOCITY)[0][:19, 2] < 0).all()


def test_diagnostics():
    flow = Flow()
    flow.set_particles(X, A, core_radius=CORE)
    found = flow.diagnostics()
    assert np.allclose(found.total_strength, A.sum(0)) and found.reason == wakefmm.Reason.KNOWN
    assert np.allclose(found.linear_impulse, 0.5 * np.cross(X, A).sum(0)) and found.energy > 0
    flow.set_bound_segments(X[:2], [[0, 1]], [1.0])
    assert flow.diagnostics().reason == wakefmm.Reason.SEGMENTS and np.isnan(flow.diagnostics().energy)
