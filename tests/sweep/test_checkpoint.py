"""A sweep that is stopped goes on with the lanes that are missing, bit for bit."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, reductions, schemes
from nsjax.sweep import lanes as checkpoint
from nsjax.sweep import run as sweeps

LANES = 24

pytestmark = pytest.mark.usefixtures("_short_calls")


@pytest.fixture
def _short_calls(monkeypatch) -> None:
    """Four lanes a call, so that a sweep of a few lanes has several."""
    monkeypatch.setattr(sweeps, "CALL_STEPS", 800)


def _longest(traj: nsjax.Trajectory) -> jax.Array:
    """A reduction of a user's own."""
    return jax.numpy.max(traj.v[:, 0]) + traj.t[-1]


def _ball(path: pathlib.Path | None, progress=False, steps: int = 200, **other):
    restitution = np.linspace(0.0, 0.9, LANES)
    restitution[5] = np.nan  # cannot start
    given = {
        "over": {"params.restitution": restitution},
        "reduce": {"q": reductions.last, "own": _longest},
    } | other  # fmt: skip
    return nsjax.sweep(
        models.bouncing_ball(height=0.01), schemes.moreau(), given.pop("over"), **given, dt=1e-3,
        steps=steps, every=20, progress=progress, checkpoint=path,
    )  # fmt: skip


def _same(one: nsjax.SweepResult, other: nsjax.SweepResult) -> None:
    for name, value in one.arrays().items():
        np.testing.assert_array_equal(value, other.arrays()[name])


class _StopError(Exception):
    pass


def _stop_at(lanes: int):
    def tell(done: int, _: int) -> None:
        if done >= lanes:
            raise _StopError

    return tell


def test_goes_on(tmp_path: pathlib.Path) -> None:
    file, told = tmp_path / "lanes", []
    with pytest.raises(_StopError):
        _ball(file, _stop_at(8))
    found = _ball(file, lambda done, total: told.append((done, total)))
    assert told[0] == (8, LANES - 1)  # what the file held
    assert told[-1] == (LANES - 1, LANES - 1)
    _same(found, _ball(None))
    assert "lane 5" in found.failures()[5]
    told.clear()
    _same(_ball(file, lambda done, _: told.append(done)), found)
    assert told == [LANES - 1]  # nothing ran
    assert not any(x.name != "lanes" for x in tmp_path.iterdir())


def test_torn_file(tmp_path: pathlib.Path) -> None:
    """One that ends within a block, wherever, loses that block alone; one that ends in its head was written
    by a process that has run no lanes. A changed byte is found: its block and those after it run again.
    """
    file, first = tmp_path / "lanes", len(checkpoint.MARK)
    whole = _ball(file)
    data = file.read_bytes()
    for end in (8, first, first + 3, first + 50, -3000, -40, -1):
        file.write_bytes(data[:end])
        _same(_ball(file), whole)
        assert file.read_bytes() == data, end
    file.write_bytes(data[:-300] + bytes([data[-300] ^ 1]) + data[-299:])
    _same(_ball(file), whole)


def _heads(data: bytes) -> dict[str, bytes]:
    """Files with other heads, by what is wrong with them."""
    first = len(checkpoint.MARK)
    size = int(np.frombuffer(data[first : first + 8], checkpoint.NUMBER)[0])
    head, lanes = data[first + 8 : first + 8 + size], data[first + 8 + size :]
    known = json.loads(head)

    def with_head(text: bytes, count: int | None = None) -> bytes:
        count = len(text) if count is None else count
        return checkpoint.MARK + np.asarray(count, checkpoint.NUMBER).tobytes() + text + lanes

    return {
        "huge": with_head(head, 2**62), "negative": with_head(head, -5), "none": with_head(b""),
        "list": with_head(b"[]"), "number": with_head(b"3"), "deep": with_head(b"[" * size),
        "no text": with_head(b"\xff" * size), "fewer": with_head(json.dumps({"program": "a"}).encode()),
        "more": with_head(json.dumps({**known, "weather": "fair"}).encode()),
    }  # fmt: skip


def test_damaged_heads(tmp_path: pathlib.Path) -> None:
    """Whatever stands there is said to be damaged, and the file is left as it is."""
    file = tmp_path / "lanes"
    _ball(file)
    for kind, damaged in _heads(file.read_bytes()).items():
        file.write_bytes(damaged)
        with pytest.raises(InputError, match="is damaged: its head does not tell which sweep"):
            _ball(file)
        assert file.read_bytes() == damaged, kind


@pytest.mark.slow
def test_killed(tmp_path: pathlib.Path) -> None:
    """A process that is killed in the middle of a sweep; another one goes on."""
    script = f"""
        import os, signal
        from tests.sweep import test_checkpoint as t
        t.sweeps.CALL_STEPS = 800
        def tell(done, total):
            if done >= 12:
                os.kill(os.getpid(), signal.SIGKILL)
        t._ball({str(tmp_path / "lanes")!r}, tell)
    """
    root = pathlib.Path(__file__).parents[2]
    code = "import nsjax\nnsjax.configure()\n" + textwrap.dedent(script)
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=False)
    assert ended.returncode == -9, ended.stderr.decode()[-2000:]
    told = []
    found = _ball(tmp_path / "lanes", lambda done, _: told.append(done))
    assert told[0] == 12
    _same(found, _ball(None))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"steps": 220}, "step sizes or numbers of steps"),
        ({"reduce": reductions.last}, "reduction or code"),
        ({"over": {"params.restitution": np.linspace(0.0, 0.8, LANES)}}, "other keys or values"),
    ],
)
def test_other_sweep(other, said: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "lanes"
    _ball(file)
    data = file.read_bytes()
    with pytest.raises(nsjax.InputError, match=f"lanes holds lanes of another sweep, made .*{said}"):
        _ball(file, **other)
    assert file.read_bytes() == data


def test_other_options(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of the compiler decide about bits; the number of devices does not."""
    file = tmp_path / "lanes"
    _ball(file)
    flags = os.environ.get("XLA_FLAGS", "")
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_force_host_platform_device_count=2")
    _ball(file)
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_cpu_enable_fast_math=true")
    with pytest.raises(nsjax.InputError, match="on another device, or with other options of XLA"):
        _ball(file)


def test_refusals(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "lanes"
    file.write_text("something of somebody's")
    with pytest.raises(nsjax.InputError, match="no file of finished lanes"):
        _ball(file)
    assert file.read_text() == "something of somebody's"
    with pytest.raises(nsjax.InputError, match="does not exist"):
        _ball(tmp_path / "none" / "lanes")
    with pytest.raises(nsjax.InputError, match="inside jit or grad"):
        jax.grad(lambda x: _ball(file, over={"params.restitution": x[None]})["own"][0])(0.5)


def test_one_writer(tmp_path: pathlib.Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / "lanes", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(nsjax.InputError, match="another process writes"):
            _ball(tmp_path / "lanes")


def test_full_disk(tmp_path: pathlib.Path) -> None:
    """What a limit on the size of files lets through is whole."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    file, before = tmp_path / "lanes", resource.getrlimit(resource.RLIMIT_FSIZE)
    caught = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _ball(file)
    size = file.stat().st_size
    file.unlink()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * size // 3, before[1]))
        with pytest.raises(OSError, match="make room"):
            _ball(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, caught)
    told = []
    _same(_ball(file, lambda done, _: told.append(done)), _ball(None))
    assert 0 < told[0] < LANES - 1
