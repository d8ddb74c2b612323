"""Distributed sessions: ranks that are threads of this process, and MPI where there is one."""

import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import reference
import wakefmm
from wakefmm import Backend, Flow, FlowOptions, Kind, Plan, PlanOptions, Quantity, Session, SessionOptions, communicator

RNG = np.random.default_rng(6)
X, A = RNG.random((300, 3)), RNG.normal(size=(300, 3))
CORE = np.full(300, 0.1)
OPTIONS = SessionOptions(backend=Backend.CPU, threads=1)


class Threads:
    """A rank that is a thread: all put what they have on a table and read what the others have put there."""

    def __init__(self, rank, size, table, gate):
        self.rank, self.size, self.node_rank = rank, size, rank
        self.table, self.gate = table, gate

    def exchange(self, mine):
        self.table[self.rank] = mine
        self.gate.wait()
        found = [np.copy(x) if isinstance(x, np.ndarray) else [np.copy(y) for y in x] for x in self.table]
        self.gate.wait()
        return found

    def allreduce(self, values, operation):
        values[:] = {"sum": np.sum, "min": np.min, "max": np.max}[operation](self.exchange(values), axis=0)

    def allgather(self, mine, everyone):
        everyone[:] = self.exchange(mine)

    def alltoallv(self, send, receive):
        for array, sent in zip(receive, self.exchange(send)):
            array[:] = sent[self.rank]

    def barrier(self):
        self.gate.wait()


def on_ranks(work, size=2, kind=Threads):
    """Calls `work(rank, session)` on each rank and returns what they return, or raises what the first one raised."""
    table, gate, results = [None] * size, threading.Barrier(size, timeout=60), [None] * size

    def run(rank):
        try:
            with Session.distributed(kind(rank, size, table, gate), OPTIONS) as session:
                results[rank] = work(rank, session)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


def share(array, rank, size):
    return array[rank::size]


def field(rank, session, size=2):
    """The velocity at the rank's share of the particles, under all of them."""
    with Plan(PlanOptions(tolerance=1e-6), session=session) as plan:
        plan.set_particles(share(X, rank, size), share(A, rank, size), core_radius=share(CORE, rank, size))
        plan.set_targets(share(X, rank, size))
        return plan.evaluate()


def test_a_field_of_ranks():
    for rank, velocity in enumerate(on_ranks(field)):
        exact = reference.particles(share(X, rank, 2), X, A, CORE, wakefmm.Regularization.GAUSS_ERF)
        assert reference.error(velocity, exact) < 1e-6
    assert not communicator._held, "a communicator is held after its session has ended"


def test_a_flow_of_ranks():
    def move(rank, session):
        with Flow(PlanOptions(tolerance=1e-6), FlowOptions(), session=session) as flow:
            flow.set_particles(share(X, rank, 2), share(A, rank, 2), core_radius=share(CORE, rank, 2))
            flow.advance(0.001, 2)
            return flow.get(Kind.PARTICLES, Quantity.POSITION)[0], flow.diagnostics().total_strength

    alone = Flow()
    alone.set_particles(X, A, core_radius=CORE)
    alone.advance(0.001, 2)
    expected = alone.get(Kind.PARTICLES, Quantity.POSITION)[0]
    for rank, (position, strength) in enumerate(on_ranks(move)):
        assert reference.error(position - share(X, rank, 2), share(expected - X, rank, 2)) < 1e-5
        assert np.allclose(strength, A.sum(0))


def test_a_function_that_fails(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))

    class Fails(Threads):
        def allgather(self, mine, everyone):
            raise OSError("the cable is out")

    with pytest.raises(wakefmm.ResourceError) as caught:
        on_ranks(field, kind=Fails)
    assert caught.value.status == wakefmm.Status.COMMUNICATION and OSError in seen
    assert not communicator._held


def test_a_communicator_that_is_refused():
    with pytest.raises(wakefmm.CallError) as caught:
        Session.distributed(Threads(2, 2, [None] * 2, threading.Barrier(2)), OPTIONS)
    assert caught.value.name == "WFMM_ERR_VALUE" and not communicator._held


def test_mpi(tmp_path):
    pytest.importorskip("mpi4py")
    launcher = shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("mpiexec is missing")
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "import test_distributed as t\n"
        "comm = MPI.COMM_WORLD.Dup()\n"
        "with t.Session.distributed(comm, t.OPTIONS) as session:\n"
        "    velocity = t.field(comm.rank, session, comm.size)\n"
        "x = t.share(t.X, comm.rank, comm.size)\n"
        "exact = t.reference.particles(x, t.X, t.A, t.CORE, t.wakefmm.Regularization.GAUSS_ERF)\n"
        "assert t.reference.error(velocity, exact) < 1e-6 and comm.size == 2\n"
        "comm.Free()\n"
        "print('right')\n"
    )
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    path = {"PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *filter(None, sys.path)])}
    command = [launcher, "-n", "2", sys.executable, str(program)]
    done = subprocess.run(command, env=os.environ | root | path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.count("right") == 2, done.stderr
