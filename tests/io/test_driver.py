"""Long runs: in pieces, after a stop, a crash or a full disk, the file is that of a run without a break."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import nsjax
from nsjax import InputError, cli, io, models, schemes
from nsjax.io.archive import read_unfinished
from tests.io.runs import assert_same

BALL = models.bouncing_ball(height=0.1, restitution=0.7)
MOREAU = schemes.moreau()
LENGTH = {"dt": 1e-3, "steps": 400, "every": 4, "events": 5}


class Full:
    """A disk with next to no room."""

    free = 1000


class CrashError(Exception):
    """Instead of what ends a process without asking."""


def crashing(steps: int):
    """Progress that ends the run after so many steps."""

    def progress(done: int, total: int) -> None:
        if done >= steps:
            raise CrashError

    return progress


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """The file of a run without a break."""
    path = tmp_path_factory.mktemp("whole") / "run.npz"
    nsjax.simulate_to_file(BALL, MOREAU, path, **LENGTH, note="first")
    return path.read_bytes()


def test_a_run_into_a_file_is_the_run(tmp_path: pathlib.Path, whole: bytes) -> None:
    said = []
    path = tmp_path / "run.npz"
    traj = nsjax.simulate_to_file(
        BALL, MOREAU, path, **LENGTH, note="first", period=0.0,
        progress=lambda done, total: said.append((done, total)),
    )  # fmt: skip
    assert_same(traj, nsjax.simulate(*BALL, MOREAU, **LENGTH))
    assert path.read_bytes() == whole  # however often checkpoints came in between
    assert said[0] == (0, 400)
    assert said[-1] == (400, 400)
    assert len(said) > 3
    assert read_unfinished(path) is None
    assert_same(nsjax.resume(path), io.load(path).traj)  # nothing is left to do
    assert io.load(path).metadata == {"note": "first"}


def test_after_a_crash_the_file_is_whole_and_resume_ends_it(tmp_path: pathlib.Path, whole: bytes) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(CrashError):
        nsjax.simulate_to_file(
            BALL, MOREAU, path, **LENGTH, note="first", period=0.0, progress=crashing(300)
        )
    rows = len(io.load(path).traj.t)
    assert 1 <= rows < 101
    with pytest.raises(InputError, match="holds an unfinished run"):
        nsjax.simulate_to_file(BALL, MOREAU, path, **LENGTH)
    with pytest.raises(CrashError):  # and once more
        nsjax.resume(path, progress=crashing(320))
    traj = nsjax.resume(path)
    assert path.read_bytes() == whole
    assert_same(traj, nsjax.simulate(*BALL, MOREAU, **LENGTH))
    assert os.listdir(tmp_path) == ["run.npz"]


CHILD = textwrap.dedent("""
    import sys, time
    import nsjax
    from nsjax import models, schemes
    nsjax.configure(announce=False)
    def progress(done, total):
        print(done, flush=True)
        if done > 100:
            time.sleep(60)
    nsjax.simulate_to_file(
        models.bouncing_ball(height=0.1, restitution=0.7), schemes.moreau(), sys.argv[1], dt=1e-3,
        steps=400, every=4, events=5, note="first", period=0.0, progress=progress,
    )
""")


def started(path: pathlib.Path) -> subprocess.Popen:
    """A process that runs into a file, in the middle of its run."""
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while int(process.stdout.readline()) <= 100:
        pass
    return process


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_was_written(tmp_path: pathlib.Path, whole: bytes) -> None:
    path = tmp_path / "run.npz"
    process = started(path)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    rows = len(io.load(path).traj.t)
    assert 1 < rows < 101
    nsjax.resume(path)
    assert path.read_bytes() == whole


def test_an_interruption_ends_in_order(tmp_path: pathlib.Path, whole: bytes) -> None:
    """The signal comes in the middle of a piece, which is finished and kept."""
    path = tmp_path / "run.npz"

    def interrupt(done: int, total: int) -> None:
        if 100 < done < total:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(
        nsjax.Stopped, match=r"stopped after (\d+) of 400 steps; all of them are in"
    ) as stop:
        nsjax.simulate_to_file(BALL, MOREAU, path, **LENGTH, note="first", progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    done = int(str(stop.value).split()[2])
    assert len(io.load(path).traj.t) == done // 4 + 1
    nsjax.resume(path)
    assert path.read_bytes() == whole


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: pathlib.Path, whole: bytes) -> None:
    """A limit on the size of files stands for the disk."""
    resource = pytest.importorskip("resource", reason="limits of file sizes are those of Unix")
    path = tmp_path / "run.npz"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(done: int, total: int) -> None:
        if done > 200:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))

    try:
        with pytest.raises(OSError, match=r"could not be written \(File too large\)") as fault:
            nsjax.simulate_to_file(BALL, MOREAU, path, **LENGTH, note="first", period=0.0, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    last = io.load(path).traj.t[-1]
    assert f"the one at t = {last:.6g} s is whole: make room, then resume" in str(fault.value)
    assert os.listdir(tmp_path) == ["run.npz"]
    nsjax.resume(path)
    assert path.read_bytes() == whole


def test_what_cannot_work_is_refused_before_it_begins(tmp_path: pathlib.Path, monkeypatch) -> None:
    path = tmp_path / "run.npz"
    refused = [
        (tmp_path / "none" / "run.npz", {}, "does not exist; create it first"),
        (path, {"period": -1.0}, "period = -1.0"),
        (path, {"save": ["nonsense"]}, "nonsense"),
    ]
    for place, given, sentence in refused:
        with pytest.raises(InputError, match=sentence):
            nsjax.simulate_to_file(BALL, MOREAU, place, **LENGTH, **given)
    monkeypatch.setattr("shutil.disk_usage", lambda _: Full())
    with pytest.raises(InputError, match="MiB are free; raise every"):
        nsjax.simulate_to_file(BALL, MOREAU, path, **LENGTH)
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_of_another_program_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(CrashError):
        nsjax.simulate_to_file(BALL, MOREAU, path, **LENGTH, period=0.0, progress=crashing(100))
    saved, unfinished = io.load(path), read_unfinished(path)
    unfinished["run"] = unfinished["run"][1:]
    io.archive.write_run(path, saved.problem, saved.traj, saved.scheme, {}, unfinished)
    with pytest.raises(InputError, match="a checkpoint of another version or system"):
        nsjax.resume(path)


def test_the_command_line_stops_and_resumes(tmp_path: pathlib.Path, capsys, monkeypatch) -> None:
    path, straight = tmp_path / "run.npz", tmp_path / "straight.npz"
    given = ["simulate", "bouncing-ball", "--dt", "1e-3", "--steps", "400", "--every", "4", "--quiet"]
    assert cli.main([*given, "--checkpoint", str(straight)]) == 0

    def interrupt(self, done: int, total: int) -> None:
        if 100 < done < total:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("nsjax.cli.report.Progress.__call__", interrupt)
        assert cli.main([*given, "--checkpoint", str(path)]) == 130
    assert f"nsjax resume {path}, goes on" in capsys.readouterr().err
    assert cli.main(["resume", str(path)]) == 0
    assert f"wrote            {path}" in capsys.readouterr().out
    assert path.read_bytes() == straight.read_bytes()
    assert np.array_equal(io.load(path).traj.t, 4e-3 * np.arange(101))
