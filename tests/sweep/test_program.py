"""Programs of sweeps on devices, in processes and for accelerators."""

from __future__ import annotations

import collections
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from experiments.sweeps import processes
from nsjax import State, models, reductions, schemes
from nsjax.sweep import lanes
from tests.design import slow_but

# Several devices and several processes give the bits of one: results, status and sentences.
CASES = [
    ("bouncing_ball", 2, 2),
    *(
        pytest.param(model, of, devices, marks=pytest.mark.slow)
        for model in processes.MODELS
        for of, devices in ((1, 2), (2, 1))
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "of", "devices"), CASES)
def test_bits(model: str, of: int, devices: int, tmp_path: pathlib.Path, monkeypatch) -> None:
    here = processes.lanes(model)  # first: flags are read with the first computation
    assert len(jax.local_devices()) == 1
    assert int(here.ok.sum()) == 10
    cache = jax.config.jax_compilation_cache_dir
    if cache:  # compiled once, here or there
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache))
    # what is of this process alone goes; the level of optimisation decides about bits
    flags = os.environ.get("XLA_FLAGS", "").split()
    monkeypatch.setenv("XLA_FLAGS", " ".join(f for f in flags if "optimization_level" in f))
    said = processes.start(model, of, devices, tmp_path / "run.npz")
    assert f"{of} processes, {of * devices} devices, lanes done: 10" in said
    with np.load(tmp_path / "run.npz") as there:
        arrays = here.arrays()
        assert set(there.files) == set(arrays)
        for name in arrays:
            np.testing.assert_array_equal(there[name], arrays[name])
    assert len(set(here["impacts"].sum(-1).tolist())) > 3  # the lanes differ
    assert "lane 3" in said
    assert "must be finite" in said


BLOCK = 104
"""Bytes of a lane in the file: count, lane, velocity, impacts, status, four numbers of a failure, check."""

KILLED = """
import os, signal, sys
from experiments.sweeps import processes
from nsjax.sweep import run
run.CALL_STEPS = 1000  # a lane a call
import jax, nsjax
nsjax.configure()
at, process, checkpoint = sys.argv[1], int(sys.argv[2]), sys.argv[3]
jax.distributed.initialize(coordinator_address=at, num_processes=4, process_id=process)

def tell(done, total):
    if process == 2 and done == 1:
        os.kill(os.getpid(), signal.SIGKILL)

processes.lanes("bouncing_ball", checkpoint, tell)
"""


@pytest.mark.slow
def test_killed_of_four(tmp_path: pathlib.Path) -> None:
    """One of four processes is killed after its first lane and the others with it, as schedulers do; four
    new ones go on with what all of them have kept.
    """
    file = tmp_path / "lanes"
    with socket.socket() as free:
        free.bind(("localhost", 0))
        at = f"localhost:{free.getsockname()[1]}"
    root = pathlib.Path(__file__).parents[2]
    running = [
        subprocess.Popen([sys.executable, "-c", KILLED, at, str(k), str(file)], cwd=root) for k in range(4)
    ]
    assert running[2].wait(timeout=200) == -9
    written = [pathlib.Path(f"{file}.{k}") for k in range(4)]

    def sizes() -> list[int]:
        return [x.stat().st_size if x.exists() else 0 for x in written]

    def done() -> list[int]:
        return [(size - sizes()[2]) // BLOCK + 1 for size in sizes()]

    until = time.monotonic() + 100
    while done() != [3, 3, 1, 2] and time.monotonic() < until:  # the others have no lanes left
        time.sleep(0.1)
    for process in running:
        process.kill()
        process.wait()
    before = sizes()
    assert done() == [3, 3, 1, 2]
    processes.start("bouncing_ball", 4, 1, tmp_path / "run.npz", file)
    here = processes.lanes("bouncing_ball").arrays()
    with np.load(tmp_path / "run.npz") as there:
        for name in there.files:
            np.testing.assert_array_equal(there[name], here[name])
    assert sum(sizes()) == sum(before) + BLOCK  # the lane that was lost ran, no other


# Workers of an executor compute the lanes of a sweep: bits, failures, deaths of workers.
LANES = 12
STEPS = 200


def _peak(traj: nsjax.Trajectory) -> jax.Array:
    """A reduction of a user's own, which no worker can import."""
    return jax.numpy.max(traj.v[:, 0]) + traj.t[-1]


def _sweep(executor=None, problem=None, **other):
    restitution = np.linspace(0.0, 0.9, LANES)
    restitution[5] = np.nan  # cannot start
    return nsjax.sweep(
        models.bouncing_ball(height=0.01) if problem is None else problem, schemes.moreau(),
        {"params.restitution": restitution}, reduce={"q": reductions.last, "own": _peak}, dt=1e-3,
        steps=STEPS, every=20, executor=executor, **other,
    )  # fmt: skip


def _same(one: nsjax.SweepResult, other: nsjax.SweepResult) -> None:
    assert set(one.arrays()) == set(other.arrays())
    for name, value in one.arrays().items():
        np.testing.assert_array_equal(value, other.arrays()[name])


class _AtOnce(futures.Executor):
    """Computes a task when it is submitted."""

    def __init__(self) -> None:
        self.tasks = 0

    def submit(self, function, /, *args, **kwargs):
        self.tasks += 1
        task: futures.Future = futures.Future()
        try:
            task.set_result(function(*args, **kwargs))
        except Exception as error:
            task.set_exception(error)
        return task


def test_bits_failures_and_progress_are_those_of_a_sweep(monkeypatch) -> None:
    pieces = 256
    monkeypatch.setattr(lanes, "PIECES", pieces)
    said, here = [], _AtOnce()
    found = _sweep(here, progress=lambda done, total: said.append((done, total)))
    _same(found, _sweep())
    assert here.tasks == min(pieces, LANES - 1)
    assert said[-1] == (LANES - 1, LANES - 1)
    assert "must be finite" in found.failures()[5]
    assert list(found.failures()) == [5]


def test_lanes_before_a_worker_fails_are_kept(tmp_path: pathlib.Path) -> None:
    class Breaks(_AtOnce):
        def submit(self, function, /, *args, **kwargs):
            if self.tasks == 4:
                raise futures.BrokenExecutor("a worker has died")
            return super().submit(function, *args, **kwargs)

    file = tmp_path / "lanes.part"
    with pytest.raises(futures.BrokenExecutor):
        _sweep(Breaks(), checkpoint=file, memory_bytes=10**5)  # a task in flight
    again = _AtOnce()
    _same(_sweep(again, checkpoint=file, memory_bytes=10**5), _sweep())
    assert again.tasks == LANES - 1 - 4


def test_sentences() -> None:
    other = lanes.releases() | {"jax": "0.0.1"}
    with pytest.raises(
        nsjax.InputError,
        match=r"a worker of the executor has .*, the calling process .*; install the same releases on all "
        r"workers, and start them with the same",
    ):
        lanes.compute(b"", other, [], 0)

    def end(restitution):
        ball, scheme = models.bouncing_ball(height=0.01), schemes.moreau()
        over = {"params.restitution": restitution[None]}
        found = nsjax.sweep(ball, scheme, over, dt=1e-3, steps=20, every=20, executor=_AtOnce())
        return found["q"][0, 0]

    with pytest.raises(
        nsjax.InputError, match="inside jit or grad, where no worker is asked; leave it out"
    ):
        jax.grad(end)(0.5)


def test_without_flatbuffers(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    with pytest.raises(
        nsjax.InputError,
        match="an executor gets the program as a file, which needs flatbuffers; install it with: pip",
    ):
        _sweep(_AtOnce())


def test_dask_in_this_process() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:
        _same(_sweep(client.get_executor()), _sweep())


# What an accelerator would be given: a batch of runs lowered for CUDA on a CPU, and its operations.
MANY = 1_000
FOUND = {  # loops, gathers
    "moreau": (6, 20), "half_explicit": (12, 46), "ggl_decoupled": (12, 32), "moreau_theta": (6, 6),
    "generalized_alpha": (10, 18), "bathe": (14, 24), "ggl_unified": (6, 6), "nsga_decoupled": (7, 6),
    "nsga_coupled": (5, 6),
}  # fmt: skip
"""Loops of a batch of slider-cranks (rows, steps, iterations: the host waits in each) and gathers (rows by
lane), as counted when this was written; a program that needs more is to be looked at.
"""


def operations(text: str) -> dict[str, int]:
    """How often a program has operations that accelerators pay for beyond arithmetic."""
    found = re.findall(r"stablehlo\.(while|gather|scatter|sort|dot_general|custom_call)\b", text)
    return dict(collections.Counter(found))


def lane(name: str, problem: nsjax.Problem) -> Callable[[Any, Any], Any]:
    """The end of 100 steps over start values."""
    scheme = schemes.REGISTRY[name].factory()

    def end(q: Any, v: Any) -> Any:
        state = State(t=jnp.zeros(()), q=q, v=v)
        return nsjax.simulate(
            problem.system, problem.params, state, scheme, dt=1e-5, steps=100, every=100
        ).q[-1]

    return end


@pytest.mark.parametrize("name", slow_but(FOUND, "moreau"))
def test_batches_for_cuda(name: str) -> None:
    """No call of a library, no scatter, no sort: the lanes of a batch are arithmetic in a few loops."""
    start = jax.ShapeDtypeStruct((MANY, 3), float)
    batch = jax.jit(jax.vmap(lane(name, models.slider_crank())))
    found = operations(jax.export.export(batch, platforms=["cuda"])(start, start).mlir_module())
    assert set(found) <= {"while", "gather"}
    assert (found["while"], found["gather"]) <= FOUND[name]
    assert found["gather"] <= FOUND[name][1]


@pytest.mark.slow
def test_derivatives_of_a_batch_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through impacts, forward and in reverse, as on a GPU: those of the lanes one after the other."""
    ball, heights = models.bouncing_ball(), jnp.linspace(0.01, 0.1, 40)[:, None]

    def total(q: Any) -> Any:
        found = nsjax.sweep(
            ball, schemes.moreau(), {"state.q": q}, reduce=at_end, dt=1e-3, steps=200, every=200
        )
        return jnp.sum(found.values[0]), found.values[1]

    made = []
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        # a function of its own for each, which traces anew
        back, hits = jax.jit(jax.grad(lambda q: total(q), has_aux=True))(heights)
        along = jax.jit(lambda q: jax.jvp(lambda q: total(q)[0], (q,), (jnp.ones_like(q),))[1])(heights)
        made.append((back, along))
        assert np.sum(hits) > len(heights)
    (back, along), (there, along_there) = made
    # rounding of 200 steps, which impacts amplify
    np.testing.assert_allclose(there, back, rtol=1e-9)
    np.testing.assert_allclose([along, along_there, np.sum(there)], np.sum(back), rtol=1e-9)


def at_end(run: nsjax.Trajectory) -> Any:
    """Velocity at the end, and all impacts."""
    return run.v[-1], jnp.sum(run.impacts)
