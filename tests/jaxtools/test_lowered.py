"""Lowered programs outlive the process; whatever may have changed is traced anew."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax.jaxtools import cache
from nsjax.jaxtools.cache import CONFIG

RUN = """
import nsjax
from nsjax import models, schemes
from nsjax.jaxtools import cache as lowered
made, make = [], lowered._exported
lowered._exported = lambda *given: made.append(1) or make(*given)
nsjax.configure({options})
system, params, state = models.bouncing_ball(height=0.1)
{change}
traj = nsjax.simulate(system, params, state, schemes.moreau(), dt=1e-3, steps=300, every=50)
traj.raise_for_status()
assert traj.impacts.sum() > 0
print(bool(made), traj.q.tobytes().hex() + traj.v.tobytes().hex())
"""
OWN_FORCE = """
import dataclasses
force = system.force
system = dataclasses.replace(system, force=lambda t, q, v, p: {factor} * force(t, q, v, p))
"""


def run(
    folder: pathlib.Path, package: pathlib.Path | None = None, change: str = "", options: str = ""
) -> tuple[bool, str]:
    """Whether a program was exported, and the bits of the motion."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(options=options, change=change)],
        env=environment, capture_output=True, text=True, cwd=folder.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made, bits = done.stdout.split()
    return made == "True", bits


def kept(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted((folder / "lowered").glob("*")) if (folder / "lowered").exists() else []


@pytest.mark.slow
def test_a_second_process_traces_no_step_and_damaged_files_are_made_anew(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    plain = run(folder, options="cache=False")
    assert not plain[0]
    assert not kept(folder)
    first, second = run(folder), run(folder)
    assert (first[0], second[0]) == (True, False)
    assert plain[1] == first[1] == second[1]
    files = kept(folder)
    assert len(files) == 3  # the checks of the start, the fastest motion, the run
    for k, file in enumerate(files):
        whole = file.read_bytes()
        assert cache._read(file) is not None
        for damaged in (b"", whole[:-1], b"x" + whole, whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
            file.write_bytes(damaged)
            assert cache._read(file) is None
        file.write_bytes((b"", whole[:-1], b"x" + whole)[k])
    assert run(folder) == first
    assert kept(folder) == files
    assert all(cache._read(file) is not None for file in files)


@pytest.mark.slow
def test_functions_of_users_are_always_traced(tmp_path: pathlib.Path) -> None:
    """Numbers in what a function has closed over, its source: nothing of it can go stale."""
    folder = tmp_path / "kept"
    folder.mkdir()
    light, heavy = (run(folder, change=OWN_FORCE.format(factor=x)) for x in (1.0, 2.0))
    assert light[1] != heavy[1]
    assert not light[0]
    assert not kept(folder)


@pytest.mark.slow
def test_a_changed_package_is_traced_anew(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    source = pathlib.Path(nsjax.__file__).parent
    shutil.copytree(
        source, tmp_path / "nsjax", ignore=shutil.ignore_patterns("__pycache__", "documentation")
    )
    first = run(folder, tmp_path)
    assert first[0]
    file = tmp_path / "nsjax" / "models" / "bouncing_ball.py"
    text = file.read_text()
    assert "p.gravity" in text
    file.write_text(text.replace("p.gravity", "(2.0 * p.gravity)"))
    changed = run(folder, tmp_path)
    assert changed[0]
    assert changed[1] != first[1]
    assert len(kept(folder)) == 6
    file.write_text(text)
    assert run(folder, tmp_path) == (False, first[1])


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(cache, "_folder", lambda: tmp_path / "lowered")
    return tmp_path


def double(static, run, more):
    return run, {"b": 2.0 * more["x"], "a": (more["x"], None), "c": {}}


def twice(static, x):
    return [x]


def test_results_keep_their_structure(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "fingerprint", lambda *_: "one")
    run = nsjax.State(t=jnp.zeros(()), q=jnp.ones(2), v=jnp.ones(2))
    asked = double(None, run, {"x": jnp.arange(3.0)})
    for _ in range(2):
        call = jax.jit(lambda run, more: cache.kept_call(double, None, run, more))
        found = call(run, {"x": jnp.arange(3.0)})
        assert jax.tree.structure(found) == jax.tree.structure(asked)
        assert all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (found, asked)), strict=True))
    assert len(kept(folder)) == 1


def test_what_cannot_be_kept_is_traced(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "fingerprint", lambda *_: "two")
    # a list is no argument's structure
    assert jax.jit(lambda x: cache.kept_call(twice, None, x))(1.0) == [1.0]
    # a callback cannot be exported
    calls = []

    def called(_, x):
        jax.debug.callback(lambda x: calls.append(float(x)), x)
        return (x,)

    assert jax.jit(lambda x: cache.kept_call(called, None, x))(3.0) == (3.0,)
    jax.effects_barrier()
    assert calls == [3.0]
    # not traced at all
    assert cache.kept_call(twice, None, 1.0) == [1.0]
    assert not kept(folder)


def test_a_folder_that_cannot_be_written_does_no_harm(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cache, "_folder", lambda: tmp_path / "file" / "lowered")
    monkeypatch.setattr(cache, "fingerprint", lambda *_: "three")
    assert jax.jit(lambda x: cache.kept_call(lambda _, x: (2.0 * x,), None, x))(1.0) == (2.0,)


def test_nothing_is_kept_where_nothing_compiled_is(monkeypatch: pytest.MonkeyPatch) -> None:
    before = CONFIG.jax_compilation_cache_dir, CONFIG.jax_enable_compilation_cache
    try:
        CONFIG.update("jax_enable_compilation_cache", False)
        assert cache._folder() is None
        CONFIG.update("jax_enable_compilation_cache", True)
        CONFIG.update("jax_compilation_cache_dir", "gs://somewhere")
        assert cache._folder() is None
        CONFIG.update("jax_compilation_cache_dir", "here")
        assert cache._folder() == pathlib.Path("here/lowered")
    finally:
        CONFIG.update("jax_compilation_cache_dir", before[0])
        CONFIG.update("jax_enable_compilation_cache", before[1])


def turned(static, angle, size):
    return size * jnp.sin(angle), {"of": angle}


def test_a_batch_of_a_kept_program(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes are single runs, some arguments shared."""
    monkeypatch.setattr(cache, "fingerprint", lambda *_: "three")
    call = jax.jit(lambda angle, size: cache.kept_call(turned, None, angle, size))
    angles, size = jnp.linspace(0.1, 0.5, 5), jnp.asarray(2.0)
    wanted = [call(x, size)[0] for x in angles]
    assert len(kept(folder)) == 1
    found, more = jax.vmap(call, (0, None))(angles, size)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(more["of"], angles)
    np.testing.assert_array_equal(jax.lax.map(lambda x: call(x, size)[0], angles), wanted)
