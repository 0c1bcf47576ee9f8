"""Compiled programs outlive the process, and nothing breaks where they cannot be kept."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import warnings

import jax
import pytest

import nsjax
from nsjax.jaxtools import cache, machine_key, use_cache

RUN = """
import jax, nsjax, sys
from nsjax import models, schemes
counts = {"hit": 0, "miss": 0}
def listen(event, **_):
    counts["hit"] += event.endswith("compilation_cache/cache_hits")
    counts["miss"] += event.endswith("compilation_cache/cache_misses")
jax.monitoring.register_event_listener(listen)
nsjax.configure(%s)
traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=10)
traj.raise_for_status()
print(counts["hit"], counts["miss"], jax.config.jax_compilation_cache_dir)
"""


def start(home: pathlib.Path, options: str = "", **extra: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **extra}
    return subprocess.Popen(
        [sys.executable, "-c", RUN % options], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


HALF_WRITTEN = r"(?m)^.*Error reading persistent compilation cache entry.*\n.*warnings\.warn\(\n"
"""JAX's warning of a file that it could not read, after which it compiles."""


def finish(process: subprocess.Popen[str], beside: bool = False) -> list[str]:
    """What a process printed; ``beside`` another one, whose files JAX may read while it writes them."""
    out, err = process.communicate(timeout=300)
    assert (process.returncode, re.sub(HALF_WRITTEN, "", err) if beside else err) == (0, "")
    return out.split(maxsplit=2)


@pytest.fixture
def settings():
    """Puts JAX's settings back."""
    names = (
        "jax_compilation_cache_dir",
        "jax_enable_compilation_cache",
        "jax_persistent_cache_min_compile_time_secs",
    )
    before = {name: getattr(jax.config, name) for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    from jax.experimental.compilation_cache import compilation_cache

    compilation_cache.reset_cache()


def test_a_second_process_compiles_nothing_and_two_may_start_at_once(tmp_path: pathlib.Path) -> None:
    both = [start(tmp_path), start(tmp_path)]
    found = [finish(process, beside=True) for process in both]
    assert all(int(hits) + int(misses) > 0 for hits, misses, _ in found)
    hits, misses, folder = finish(start(tmp_path))
    assert int(hits) > 0
    assert int(misses) == 0
    assert folder.strip() == str(tmp_path / "cache" / "nsjax" / machine_key())


@pytest.mark.slow
def test_a_damaged_program_is_compiled_again(tmp_path: pathlib.Path) -> None:
    finish(start(tmp_path))
    for file in (tmp_path / "cache").rglob("*-cache"):
        file.write_bytes(b"" if "advance" in file.name else file.read_bytes()[:100])
    process = start(tmp_path)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "Error reading persistent compilation cache" in err  # JAX says so, and goes on
    assert any("advance" in f.name and f.stat().st_size > 0 for f in (tmp_path / "cache").rglob("*-cache"))


@pytest.mark.slow
def test_it_can_be_switched_off_and_respects_the_environment(tmp_path: pathlib.Path) -> None:
    assert finish(start(tmp_path, "cache=False"))[:2] == ["0", "0"]
    assert not (tmp_path / "cache").exists()
    chosen = finish(start(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine")))
    assert chosen[2].strip() == str(tmp_path / "mine")
    assert not (tmp_path / "cache").exists()


def test_a_chosen_folder_is_divided_by_machine(
    tmp_path: pathlib.Path, settings: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = use_cache(tmp_path)
    assert here == tmp_path / machine_key()
    assert use_cache() == here  # it stays
    assert jax.config.jax_compilation_cache_dir == str(here)
    monkeypatch.setattr(cache, "_instructions", lambda: "fma avx512f")
    there = use_cache(tmp_path)
    assert there is not None
    assert there != here
    assert there.parent == here.parent


def test_a_chosen_folder_that_cannot_be_written_is_told(tmp_path: pathlib.Path, settings: None) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match=r"cache = .*file' cannot be written.*choose another folder"):
        nsjax.configure(cache=tmp_path / "file")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsjax.configure(cache=False)
        nsjax.configure()  # does not switch on again what was switched off
    assert not jax.config.jax_enable_compilation_cache


def test_instructions_are_read_where_the_system_says_them(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x86").write_text("processor : 0\nflags\t\t: sse4 avx2 \n")
    (tmp_path / "arm").write_text("Features : neon asimd\n")
    assert cache._instructions(str(tmp_path / "x86")) == "avx2 sse4"
    assert cache._instructions(str(tmp_path / "arm")) == "asimd neon"
    assert cache._instructions(str(tmp_path / "none"))


def test_a_grown_cache_is_thinned_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / "key").mkdir()
    for k in range(10):
        file = tmp_path / "key" / f"program{k}-cache"
        file.write_bytes(bytes(100))
        os.utime(file, (1000 + k, 1000 + k))
    cache._thin_out(tmp_path, most=1000)
    assert len(list(tmp_path.rglob("*-cache"))) == 10
    cache._thin_out(tmp_path, most=999)
    assert sorted(f.name for f in tmp_path.rglob("*-cache")) == [f"program{k}-cache" for k in range(6, 10)]


def test_nobody_without_a_home_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> pathlib.Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pathlib.Path, "home", nowhere)
    assert cache.user_folder() is None
