"""Workers of an executor compute the lanes of a sweep: bits, failures, deaths of workers."""

from __future__ import annotations

import pathlib
import sys
from concurrent import futures

import jax
import numpy as np
import pytest

import nsjax
from nsjax import models, reductions, schemes
from nsjax.sweep import lanes

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
    with pytest.raises(
        nsjax.InputError,
        match=r"executor = 3; give a concurrent.futures.Executor: a ProcessPoolExecutor, or client",
    ):
        _sweep(3)
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
