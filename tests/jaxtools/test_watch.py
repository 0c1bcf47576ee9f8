"""Long compilations are named, and the compiler's alarm is not heard."""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from nsjax.core.memory import meter
from nsjax.jaxtools import compilation
from nsjax.jaxtools.compilation import COMPILE, CompileListener

TRACE = "/jax/core/compile/jaxpr_trace_duration"


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(compilation, "set_log_level", found.append)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", compilation.JAX_LEVEL)
    return found


def part(listener: CompileListener, event: str, name: str, seconds: float) -> None:
    listener.begin(event, 0.0, fun_name=name)
    time.sleep(seconds)
    listener.end(event, seconds, fun_name=name)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """Of the times that programs took."""
    monkeypatch.setattr(compilation, "_times_file", lambda: tmp_path / "times.json")
    return tmp_path


def test_a_long_program_has_one_line_with_its_times_and_a_short_one_has_none(
    levels: list[int], folder: pathlib.Path
) -> None:
    said: list[tuple[str, bool]] = []
    listener = CompileListener(lambda *x: said.append(x), patience=0.3)
    part(listener, COMPILE, "jit(short)", 0.01)
    assert said == []
    part(listener, TRACE, "_advance", 0.2)
    part(listener, COMPILE, "jit(_advance)", 1.4)  # together longer than the patience
    running, again, done = said
    assert running == (f"nsjax: compiling the time loop: 0 s; {compilation.USUAL_TIMES}", False)
    assert again == (f"nsjax: compiling the time loop: 1 s; {compilation.USUAL_TIMES}", False)
    assert done == ("nsjax: compiled the time loop in 2 s", True)
    said.clear()
    part(listener, COMPILE, "jit(_private)", 0.5)
    part(listener, COMPILE, "jit(_other)", 0.5)
    assert [line for line, last in said if not last] == [
        f"nsjax: compiling a part: 0 s; {compilation.USUAL_TIMES}"
    ] * 2
    said.clear()
    part(CompileListener(lambda *x: said.append(x), patience=0.3), COMPILE, "jit(_advance)", 0.5)
    assert said[0] == ("nsjax: compiling the time loop: 0 s; last time on this machine 2 s", False)


def test_the_line_is_written_over_where_a_person_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for reads, written in ((True, "\rfirst line\rshort     \rlast      \n"), (False, "\rfirst line\n")):
        monkeypatch.setattr(compilation, "interactive", lambda reads=reads: reads)
        for line in ("first line", "short", "last"):
            compilation._print(line, line == "last")
        assert capsys.readouterr().err == written
    compilation._print("x" * 100, True)
    assert capsys.readouterr().err == f"\r{39 * 'x'}\n"


def test_many_short_programs_are_not_taken_for_a_long_one(levels: list[int]) -> None:
    said: list[tuple[str, bool]] = []
    listener = CompileListener(lambda *x: said.append(x), patience=0.2)
    for k in range(6):
        part(listener, COMPILE, f"jit(f{k})", 0.06)
    assert said == []


def test_the_compiler_is_silent_while_it_works(levels: list[int]) -> None:
    listener = CompileListener(None)
    listener.begin(COMPILE, 0.0, fun_name="outer")
    listener.begin(COMPILE, 0.0, fun_name="inner")
    assert levels == [compilation.SILENT]
    listener.end(COMPILE, 0.0, fun_name="inner")
    listener.end(COMPILE, 0.0, fun_name="outer")
    assert levels == [compilation.SILENT, compilation.USUAL]
    part(listener, TRACE, "f", 0.0)
    assert len(levels) == 2


def test_a_chosen_level_stays(levels: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    part(CompileListener(None), COMPILE, "f", 0.0)
    assert levels == []


@pytest.mark.slow
def test_model_and_scheme_are_named() -> None:
    code = """
import importlib, jax, nsjax
from nsjax import models, schemes
nsjax.configure(cache=False, announce=True)
nsjax.configure(announce=True)
watch = importlib.import_module("nsjax.jaxtools.compilation")
watch._watch.patience, set_level, levels = 0.0, watch.set_log_level, []
watch.set_log_level = lambda level: (levels.append(level), set_level(level))
watch.interactive = lambda: True
ball = models.bouncing_ball()
nsjax.simulate(*ball, schemes.moreau(), dt=1e-3, steps=1)
def fall(h):
    return nsjax.simulate(*ball.replace(initial_q=[h]), schemes.moreau(), dt=1e-3, steps=1).q
jax.jvp(fall, (1.0,), (1.0,))
assert {watch.SILENT, watch.USUAL} == set(levels), levels
assert levels[-1] == watch.USUAL
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "TF_CPP"))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    for inside in ("", " inside a transformation"):
        said = f"nsjax: compiling the time loop{inside} of bouncing_ball with moreau: 0 s; "
        assert said + compilation.USUAL_TIMES in done.stderr, (inside, done.stderr)


def test_nobody_watches_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not compilation.interactive()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert compilation.interactive()


@pytest.mark.parametrize("given", [(700, 10, 10), (60_000, 10, 10), (0, 10, 10)])
def test_garbage_is_looked_for_less_often_while_programs_are_made(given: tuple[int, int, int]) -> None:
    """Not less often than the user wants it, and as before once the last program of all threads is made."""
    listener, before, found = CompileListener(None), gc.get_threshold(), []
    most = given[0] if given[0] in (0, 60_000) else 50_000

    def inner() -> None:
        listener.begin(TRACE, 0.0, fun_name="inner")
        listener.end(TRACE, 0.0, fun_name="inner")
        found.append(gc.get_threshold())

    try:
        gc.set_threshold(*given)
        listener.begin(TRACE, 0.0, fun_name="outer")
        inner()  # of the same thread, then of another
        thread = threading.Thread(target=inner)
        thread.start()
        thread.join()
        listener.end(TRACE, 0.0, fun_name="outer")
        assert [*found, gc.get_threshold()] == [(most, 10, 10), (most, 10, 10), given]
        listener.begin(TRACE, 0.0, fun_name="one in which the user sets it")
        gc.set_threshold(900, 5, 5)
        listener.end(TRACE, 0.0, fun_name="one in which the user sets it")
        assert gc.get_threshold() == (900, 5, 5)
    finally:
        gc.set_threshold(*before)


def test_a_bar_says_what_compiles(
    monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where nobody was seen to read stderr: who asks for a bar reads it."""
    pytest.importorskip("tqdm")
    watch = CompileListener(None, patience=0.2)
    monkeypatch.setattr(compilation, "_watch", watch)
    with meter(True, 10, "step") as tell:
        part(watch, COMPILE, "jit(_advance)", 0.5)
        tell(10)
    assert watch.say is None
    said = capsys.readouterr().err
    assert f"nsjax: compiling the time loop: 0 s; {compilation.USUAL_TIMES}" in said
    last = said.rstrip().rsplit("\r", 1)[-1]
    assert "10.0/10.0" in last, last
    assert "compiling" not in last, last
