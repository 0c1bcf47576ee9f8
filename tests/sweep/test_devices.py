"""Several devices and several processes give the bits of one: results, status and sentences."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from experiments.sweeps import processes

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
