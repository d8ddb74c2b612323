"""Life of handles, threads, constants, log, arrays of other libraries."""

import gc
import sys
import threading
import weakref
from importlib import metadata

import numpy as np
import pytest
import wakefmm
from wakefmm import Plan, PlanOptions, Session, SessionOptions, _dlpack, codes
from wakefmm._native import ffi, lib
from wakefmm.options import Camera, FlowOptions, defaults

X = np.random.default_rng(3).random((2000, 3))

FAMILIES = {
    "REG": codes.Regularization,
    "METHOD": codes.Method,
    "PRECISION": codes.Precision,
    "BACKEND": codes.Backend,
    "EXPANSION": codes.Expansion,
    "FLAG": codes.Flag,
    "LOG": codes.LogLevel,
    "PASS": codes.Pass,
    "KIND": codes.Kind,
    "QUANTITY": codes.Quantity,
    "INTEGRATOR": codes.Integrator,
    "STRETCHING": codes.Stretching,
    "SPREADING": codes.Spreading,
    "REASON": codes.Reason,
    "PROJECTION": codes.Projection,
    "COLOR": codes.Color,
    "BLENDING": codes.Blending,
    "ERR": codes.Status,
}
#: Constants that the package's users do not need: arrays tell where they are, a length, the version of the interface.
NOT_THERE = {"WFMM_PASS_COUNT", "WFMM_OK", "WFMM_ABI_VERSION", "WFMM_VERSION_MAJOR", "WFMM_VERSION_MINOR", "WFMM_VERSION_PATCH"} | {
    f"WFMM_MEMORY_{name}" for name in ("HOST", "DEVICE", "AUTO")
}

#: Structs of the header, their classes and what has no field there: sizes, what must be 0, lengths of arrays, addresses.
STRUCTS = {
    "wfmm_session_options": (SessionOptions, {"struct_size", "flags", "n_devices", "reserved"}),
    "wfmm_plan_options": (PlanOptions, {"struct_size"}),
    "wfmm_flow_options": (FlowOptions, {"struct_size", "flags", "reserved"}),
    "wfmm_camera": (Camera, {"struct_size"}),
    "wfmm_report": (wakefmm.Report, {"struct_size"}),
    "wfmm_diagnostics": (wakefmm.Diagnostics, {"struct_size"}),
    "wfmm_communicator": (wakefmm.Communicator, {"struct_size", "user", "release"}),
}
HANDLES = {"wfmm_session", "wfmm_plan", "wfmm_flow"}


@pytest.mark.parametrize("family", FAMILIES)
def test_constants_are_those_of_the_header(family):
    prefix = f"WFMM_{family}_"
    header = {n[len(prefix) :]: getattr(lib, n) for n in dir(lib) if n.startswith(prefix) and n not in NOT_THERE}
    members = {m.name: int(m) for m in FAMILIES[family] if int(m) or family != "FLAG"}
    assert members == header and header


def test_no_constant_of_the_header_is_missing():
    there = {f"WFMM_{family}_{member.name}" for family, members in FAMILIES.items() for member in members} | {"WFMM_ORDER_MAX"}
    assert {n for n in dir(lib) if n.startswith("WFMM_")} - NOT_THERE <= there
    # Axes have no names in the header, and FLAG_NONE is Python's.
    assert wakefmm.ORDER_MAX == lib.WFMM_ORDER_MAX


def test_tolerances_are_those_of_the_library():
    arrays = X[:9].astype(np.float32)

    def computes(tolerance, precision, of):
        plan = Plan(PlanOptions(tolerance=tolerance, precision=precision, core_radius=0.1))
        plan.set_particles(of, of)
        plan.set_targets(of)
        return plan.evaluate().dtype == of.dtype

    assert computes(wakefmm.TOLERANCE_MIN_F32, codes.Precision.ARRAYS, arrays)
    assert computes(wakefmm.TOLERANCE_MIN_F64, codes.Precision.F64, arrays)
    assert computes(wakefmm.TOLERANCE_MIN_F64, codes.Precision.ARRAYS, X[:9])
    for tolerance, precision, of in [
        (0.99 * wakefmm.TOLERANCE_MIN_F32, codes.Precision.ARRAYS, arrays),
        (0.99 * wakefmm.TOLERANCE_MIN_F32, codes.Precision.F32, X[:9]),
        (0.99 * wakefmm.TOLERANCE_MIN_F64, codes.Precision.F64, X[:9]),
    ]:
        with pytest.raises(wakefmm.CallError) as caught:
            computes(tolerance, precision, of)
        assert caught.value.status == wakefmm.Status.TOLERANCE


def test_every_struct_of_the_header_has_a_class():
    typedefs, structs, unions = ffi.list_types()
    found = {name for name in (*typedefs, *structs, *unions) if ffi.typeof(_type_of(name)).kind in ("struct", "union")}
    assert found == set(STRUCTS) | HANDLES


def _type_of(name):
    typedefs, structs, _ = ffi.list_types()
    return name if name in typedefs else f"struct {name}" if name in structs else f"union {name}"


@pytest.mark.parametrize("name", STRUCTS)
def test_fields_are_those_of_the_header(name):
    kind, not_there = STRUCTS[name]
    fields = {n for n in (*getattr(kind, "__annotations__", ()), *vars(kind)) if not n.startswith("_")}
    header = {n for n, _ in ffi.typeof(name).fields}
    assert not_there <= header and fields == header - not_there


@pytest.mark.parametrize("kind", [SessionOptions, PlanOptions, FlowOptions, Camera])
def test_defaults_are_those_of_the_library(kind):
    struct = defaults(kind)
    for name, value in vars(kind()).items():
        if name == "devices":
            assert value == () and struct.n_devices == 0 and not struct.devices
            continue
        there = getattr(struct, name)
        assert (tuple(there) if isinstance(value, tuple) else there) == value, name


def test_plans_end_with_their_objects():
    ended = []
    plan = Plan()
    plan.set_particles(X, X)
    plan.set_targets(X)
    plan.evaluate_async()
    weakref.finalize(plan, ended.append, 1)
    del plan
    gc.collect()
    assert ended == [1]


def test_memory_stays_with_many_plans():
    import resource

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def some(n):
        for _ in range(n):
            plan = Plan(session=Session(SessionOptions(threads=1)))
            plan.set_particles(X, X)
            plan.set_targets(X[:10])
            plan.evaluate()

    some(20)
    before = peak()
    some(200)
    # 200 plans hold some 20 MB of arrays; a leak of all of them would show.
    assert peak() - before < 8192


def test_a_plan_outlives_its_session():
    session = Session(SessionOptions(threads=1))
    plan = Plan(session=session)
    session.close()
    plan.set_particles(X, X)
    plan.set_targets(X[:5])
    assert plan.evaluate().shape == (5, 3)
    with pytest.raises(ValueError, match="session is closed"):
        session.describe()


def test_a_plan_that_evaluates_stays_open():
    plan = Plan()
    plan.set_particles(X, X)
    plan.set_targets(X)
    seen = []

    def close(level, message):
        try:
            plan.close()
        except wakefmm.CallError as error:
            seen.append((error.status, plan.closed, repr(plan)))

    # The log function is called inside of evaluate.
    wakefmm.set_log(wakefmm.LogLevel.INFO, close)
    plan.evaluate()
    wakefmm.set_log(wakefmm.LogLevel.OFF)
    assert seen and set(seen) == {(wakefmm.Status.BUSY, False, "Plan(busy)")}
    handle = plan._address
    plan.close()
    assert plan.closed and handle[0] == ffi.NULL


def test_a_flow_that_its_velocity_function_closes_still_ends_with_its_object():
    flow = wakefmm.Flow(PlanOptions(core_radius=0.1))
    flow.set_tracers(X[:3])
    seen = []

    def close(time, position, velocity):
        with pytest.raises(wakefmm.CallError, match="using this flow"):
            flow.close()
        seen.append((flow.closed, repr(flow)))

    flow.set_velocity_function(close)
    flow.advance(0.1)
    assert set(seen) == {(False, "Flow(busy)")} and flow.step == 1
    handle = flow._address
    del flow
    gc.collect()
    assert handle[0] == ffi.NULL


def test_a_plan_that_evaluates_meanwhile_is_busy():
    plan = Plan()
    plan.set_particles(X, X)
    plan.set_targets(X[:5])
    go_on = threading.Event()
    # The evaluation waits where it logs.
    wakefmm.set_log(wakefmm.LogLevel.INFO, lambda level, message: go_on.wait(60))
    plan.evaluate_async()
    seen = repr(plan)
    go_on.set()
    plan.wait()
    wakefmm.set_log(wakefmm.LogLevel.OFF)
    assert seen == "Plan(busy)"
    assert repr(plan) == "Plan(0 segments, 2000 particles, 0 charges, 5 targets)"


def test_threads_have_plans_of_their_own():
    expected = wakefmm.induce_particles(X, X, X[:50])
    errors = []

    def work(seed):
        plan = Plan()
        for _ in range(5):
            plan.set_particles(X, X)
            plan.set_targets(X[:50])
            errors.append(np.abs(plan.evaluate() - expected).max())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(errors) == 20 and max(errors) < 1e-10 * np.abs(expected).max()


def test_the_interpreter_goes_on_during_a_sum():
    plan = Plan(PlanOptions(method=wakefmm.Method.DIRECT), session=Session(SessionOptions(threads=1)))
    plan.set_particles(np.tile(X, (5, 1)), np.tile(X, (5, 1)))
    plan.set_targets(np.tile(X, (5, 1)))
    busy, begun = [], threading.Event()

    def other():
        begun.wait()
        while not busy and thread.is_alive():
            try:
                plan.counts()
            except wakefmm.CallError as error:
                busy.append(error.name)

    def work():
        begun.set()
        for _ in range(20):
            if not busy:
                plan.evaluate()

    thread = threading.Thread(target=work)
    watcher = threading.Thread(target=other)
    thread.start(), watcher.start()
    thread.join(), watcher.join()
    assert busy == ["WFMM_ERR_BUSY"]


def test_log():
    lines = []
    wakefmm.set_log(wakefmm.LogLevel.INFO, lambda level, message: lines.append((level, message)))
    plan = Plan()
    plan.set_particles(X, X)
    plan.set_targets(X)
    plan.evaluate()
    wakefmm.set_log(wakefmm.LogLevel.OFF)
    assert any(level == wakefmm.LogLevel.WARN and "singular" in message for level, message in lines)
    assert any(level == wakefmm.LogLevel.INFO for level, _ in lines)


class OnlyDlpack:
    """An array of another library in host memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_in_host_memory():
    expected = wakefmm.induce_particles(X, X, X[:9])
    assert np.array_equal(wakefmm.induce_particles(OnlyDlpack(X), OnlyDlpack(X), OnlyDlpack(X[:9])), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_a_capsule_is_read_without_a_copy(dtype):
    array = np.arange(24, dtype=dtype).reshape(8, 3)
    view = _dlpack.borrow(OnlyDlpack(array[2:]), "array")
    assert (view.address, view.shape, view.dtype) == (array[2:].ctypes.data, (6, 3), array.dtype)
    assert not view.on_device
    before = sys.getrefcount(array)
    del view
    assert sys.getrefcount(array) <= before
    with pytest.raises(ValueError, match="C-contiguous"):
        _dlpack.borrow(OnlyDlpack(array[:, :2]), "array")


class FakeDeviceArray:
    """Says that a host array is in device memory."""

    def __init__(self, array, **changes):
        data = (array.ctypes.data, False)
        self.shape, self.ndim = array.shape, array.ndim
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "data": data, "version": 3}
        self.__cuda_array_interface__.update(changes)


def test_the_cuda_array_interface_is_read():
    view = _dlpack.borrow(FakeDeviceArray(X, strides=X.strides, stream=7), "array")
    assert (view.address, view.shape, view.dtype, view.stream) == (X.ctypes.data, X.shape, X.dtype, 7)
    assert view.on_device and view.owner is not None
    with pytest.raises(ValueError, match="C-contiguous"):
        _dlpack.borrow(FakeDeviceArray(X, strides=(8, 8 * len(X))), "array")


def test_device_arrays_are_kept_together():
    with pytest.raises(ValueError, match="position: in host memory"):
        Plan().set_particles(X, FakeDeviceArray(X))
    with pytest.raises(TypeError, match="float32"):
        Plan().set_particles(FakeDeviceArray(X), FakeDeviceArray(X.astype(np.float32)))
    with pytest.raises(ValueError, match="host arrays"):
        wakefmm.induce_particles(*[FakeDeviceArray(X)] * 3)


def test_a_session_without_a_gpu_refuses_device_arrays():
    plan = Plan(session=Session(SessionOptions(backend=wakefmm.Backend.CPU)))
    with pytest.raises(wakefmm.Error) as caught:
        plan.set_particles(FakeDeviceArray(X), FakeDeviceArray(X))
    assert caught.value.name == "WFMM_ERR_MEMORY"


def test_describe_and_version():
    with Session(SessionOptions(threads=1)) as session:
        assert "1 thread" in session.describe()
        session.register(X)
        session.unregister(X)
    assert session.closed and wakefmm.version() >= (0, 1, 0)


def test_the_package_has_its_licenses_and_a_library_of_its_own_name():
    files = metadata.files("wakefmm") or []
    names = {file.name for file in files}
    assert {"LICENSE", "LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"} <= names
    # A loader takes two libraries of one soname for the same: an installed libwakefmm may be in the process, too.
    library = next(file for file in files if file.suffix == ".so" and "_native" in file.parts)
    if sys.platform == "linux":
        assert b"\0libwakefmm.so.1\0" not in library.read_binary()
    # The crate of the package says the version of the library beside it.
    assert metadata.version("wakefmm") == ".".join(map(str, wakefmm.version()))
