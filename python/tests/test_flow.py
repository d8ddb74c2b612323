"""Flows: motion, checkpoints, callbacks, diagnostics."""

import numpy as np
import pytest
import reference
import wakefmm
from wakefmm import Camera, Flow, FlowOptions, Integrator, Kind, PlanOptions, Projection, Quantity, Spreading
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
    assert again.options() == flow.options() == (plan, FlowOptions(integrator=Integrator.AB2, viscosity=1e-3))
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


@pytest.mark.parametrize("identity", [[1.9], np.array([1.0]), ["1"], [None], np.array([2**63], np.uint64)])
def test_identities_are_integers(identity):
    flow = Flow()
    flow.set_tracers(X)
    for call in (flow.remove, lambda kind, i: flow.get_selected(kind, Quantity.POSITION, i)):
        with pytest.raises((TypeError, ValueError), match="identity"):
            call(Kind.TRACERS, identity)
    assert flow.counts(Kind.TRACERS) == (20, 20)


def test_a_mask_is_no_identity():
    flow = Flow()
    flow.set_tracers(X)
    mask = np.arange(20) > 17
    with pytest.raises(TypeError, match="remove_mask takes a mask"):
        flow.remove(Kind.TRACERS, mask)
    with pytest.raises(TypeError, match=r"values\[mask\] of get"):
        flow.get_selected(Kind.TRACERS, Quantity.POSITION, mask)
    for wrong in (np.where(mask, np.nan, 0), mask.astype(float), mask.astype(str)):
        with pytest.raises(TypeError, match="mask"):
            flow.remove_mask(Kind.TRACERS, wrong)
    with pytest.raises(ValueError, match="masked values"):
        flow.remove_mask(Kind.TRACERS, np.ma.masked_array(mask, mask=mask))
    assert flow.counts(Kind.TRACERS) == (20, 20)
    flow.remove_mask(Kind.TRACERS, mask)
    flow.remove_mask(Kind.TRACERS, np.eye(18, dtype=np.int16)[4] * 256)
    assert list(flow.get(Kind.TRACERS, Quantity.POSITION)[1]) == [0, 1, 2, 3, *range(5, 18)]
    for identity, dtype in enumerate((np.uint8, np.int32, np.uint64)):
        flow.remove(Kind.TRACERS, np.array([identity], dtype))
    flow.remove(Kind.TRACERS, [])
    flow.remove_mask(Kind.BOUND_SEGMENTS, [])
    assert flow.get_selected(Kind.TRACERS, Quantity.POSITION, []).shape == (0, 3)
    assert list(flow.get(Kind.TRACERS, Quantity.POSITION)[1]) == [3, *range(5, 18)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_get_writes_into_arrays(dtype):
    flow = Flow()
    flow.set_particles(X, A, core_radius=CORE)
    for quantity, exact in ((Quantity.POSITION, X), (Quantity.STRENGTH, A), (Quantity.CORE_RADIUS, CORE)):
        out = np.full(exact.shape, np.nan, dtype)
        values, identity = flow.get(Kind.PARTICLES, quantity, out=out)
        assert values is out and np.array_equal(out, exact.astype(dtype)) and list(identity) == list(range(20))
        some = np.empty(exact[:2].shape, dtype)
        assert flow.get_selected(Kind.PARTICLES, quantity, [5, 3], out=some) is some
        assert np.array_equal(some, exact[[5, 3]].astype(dtype))
    with pytest.raises(ValueError, match="out has shape"):
        flow.get(Kind.PARTICLES, Quantity.POSITION, out=np.empty(20, dtype))
    with pytest.raises(TypeError, match="int64"):
        flow.get(Kind.PARTICLES, Quantity.POSITION, out=np.empty((20, 3), np.int64))


def test_pictures(tmp_path):
    flow = Flow()
    flow.set_particles(X, A, core_radius=CORE)
    flow.set_bound_segments(X[:2], [[0, 1]], [1.0])
    rgba = flow.picture(64, 48, path=tmp_path / "wake.png")
    assert rgba.shape == (48, 64, 4) and rgba.dtype == np.uint8 and len(np.unique(rgba.reshape(-1, 4), axis=0)) > 10
    assert (tmp_path / "wake.png").read_bytes().startswith(b"\x89PNG")
    assert np.array_equal(flow.picture(64, 48, Camera()), rgba)
    nothing = flow.picture(8, 4, Camera(kinds=1 << Kind.DUST, background=np.array([1, 0, 0, 1])))
    assert (nothing == [255, 0, 0, 255]).all()
    beside = Camera(fit=False, eye=(0.5, -2, 0.5), target=(0.5, 0.5, 0.5), projection=Projection.ORTHOGRAPHIC, view_height=2)
    assert not np.array_equal(flow.picture(64, 48, beside), rgba)
    with pytest.raises(wakefmm.CallError) as caught:
        flow.picture(64, 48, Camera(color=9))
    assert caught.value.status == wakefmm.Status.CONSTANT


def test_diagnostics_of_narrower_cores():
    lattice = np.stack(np.meshgrid(*[np.arange(-3.0, 4)] * 3), -1).reshape(-1, 3)
    strength = np.cross([0, 0, 1], lattice) * np.exp(-(lattice**2).sum(1) / 2.5)[:, None]
    options = FlowOptions(integrator=Integrator.EULER, spreading=Spreading.CORES, viscosity=0.01, core_limit=1.001)
    flow = Flow(PlanOptions(method=wakefmm.Method.DIRECT), options)
    flow.set_particles(lattice, strength, core_radius=np.ones(343))
    # Cores are narrowed before a step that begins with one above the limit.
    flow.advance(0.2)
    assert flow.diagnostics().reinterpolations == 0
    flow.advance(0.2)
    found = flow.diagnostics()
    assert found.reinterpolations == 1 and 0 < found.reinterpolation_residual < 0.3
    assert 0 < found.reinterpolation_strength < 1e-6 and 0 < found.reinterpolation_impulse < 0.3


def test_diagnostics():
    flow = Flow()
    flow.set_particles(X, A, core_radius=CORE)
    found = flow.diagnostics()
    assert np.allclose(found.total_strength, A.sum(0)) and found.reason == wakefmm.Reason.KNOWN
    assert np.allclose(found.linear_impulse, 0.5 * np.cross(X, A).sum(0)) and found.energy > 0
    flow.set_bound_segments(X[:2], [[0, 1]], [1.0])
    assert flow.diagnostics().reason == wakefmm.Reason.SEGMENTS and np.isnan(flow.diagnostics().energy)
