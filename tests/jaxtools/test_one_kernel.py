"""A release of jaxlib that was not tried with the package is tried once, in a child process."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from nsjax.jaxtools import compilation


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "TESTED_JAXLIB", ())


def test_the_answer_is_found_and_remembered(
    untried: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compilation.one_kernel_works(tmp_path)
    (record,) = tmp_path.iterdir()
    assert json.loads(record.read_text())["works"] is True
    monkeypatch.setattr(compilation, "_try", lambda: pytest.fail("tried a second time"))
    assert compilation.one_kernel_works(tmp_path)
    record.write_text(record.read_text().replace("true", "false"))
    assert not compilation.one_kernel_works(tmp_path)  # it is the record that answers


def test_an_unknown_option_is_no(untried: None, tmp_path: pathlib.Path, monkeypatch) -> None:
    monkeypatch.setattr(compilation, "ONE_KERNEL_OPTION", "no_such_option")
    assert not compilation.one_kernel_works(tmp_path)  # the child was ended by the compiler
    assert json.loads(next(tmp_path.iterdir()).read_text())["works"] is False


def test_the_trial_tells_the_option_from_the_default(untried: None, monkeypatch) -> None:
    monkeypatch.setattr(compilation, "ONE_KERNEL_BYTES", 1024)
    assert not compilation.one_kernel_works(None)


def test_no_answer_is_not_remembered(untried: None, tmp_path: pathlib.Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", None)
    assert not compilation.one_kernel_works(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_configure_uses_the_answer(tmp_path: pathlib.Path) -> None:
    code = """
import importlib, os, nsjax
module = importlib.import_module("nsjax.jaxtools.compilation")
module.TESTED_JAXLIB = ()
module._try = lambda: %s
nsjax.configure(cache=%r)
print("small_while" in os.environ.get("XLA_FLAGS", ""))
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | {"XLA_FLAGS": ""}
    for answer, words in (("True", ""), ("False", "does not make one-kernel loops")):
        done = subprocess.run(
            [sys.executable, "-c", code % (answer, str(tmp_path / answer))], capture_output=True, text=True,
            env=environment,
        )  # fmt: skip
        assert done.stdout.strip() == answer, done.stderr
        assert words in done.stderr


LOOP = """
import jax
from nsjax.linalg import solve
jax.config.update("jax_enable_x64", True)
a = jax.numpy.eye(18) + 0.1
jax.jit(lambda a: jax.lax.fori_loop(0, 3, lambda _, b: b + solve(a, b), a)).lower(a).compile()
"""


@pytest.mark.parametrize("bounded", [True, False])
def test_eliminations_have_vector_instructions(bounded: bool, tmp_path: pathlib.Path) -> None:
    """Rows of 18 entries are subtracted four entries at once; without the bound one by one."""
    kernel = compilation.option() if bounded else compilation.option().split(",")[0]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment |= {"XLA_FLAGS": f"{kernel} --xla_dump_to={tmp_path}", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", LOOP], env=environment, check=True)
    if not any(tmp_path.glob("*.ll")):
        pytest.skip("this release of jaxlib writes no instructions of LLVM")
    (kernel,) = tmp_path.glob("*call*_kernel_module.ir-with-opt.ll")
    assert ("fmul <4 x double>" in kernel.read_text()) == bounded


SUMS = """
import jax
jax.config.update("jax_enable_x64", True)
a = jax.numpy.ones((91, 91))
run = jax.jit(lambda a, x: jax.lax.fori_loop(0, 3, lambda _, x: jax.numpy.sum(a * x, axis=1), x))
text = run.lower(a, a[0]).compile().as_text()
print('xla_cpu_small_call="true"' in text, "__ynn_fusion" in text)
"""


def test_sums_over_large_arrays_stay_in_the_loop() -> None:
    """As of Newton's matrix of 91 rows; without the option the compiler hands them to a library."""
    found = []
    for flags in (compilation.option(), " ".join(compilation.options())):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        environment |= {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", SUMS], env=environment, capture_output=True, text=True)
        found.append(done.stdout.split())
    assert found == [["False", "True"], ["True", "False"]]


def test_loops_are_written_out_for_other_devices_and_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of GPUs need them, and a release that was not tried may not know the bound."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(compilation.metadata, "entry_points", lambda group: ())
    assert "unroll-full-max-count" in compilation.option()
    monkeypatch.setattr(compilation.metadata, "entry_points", lambda group: ("xla_cuda12",))
    assert "unroll-full-max-count" not in compilation.option()
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert "unroll-full-max-count" in compilation.option()
    monkeypatch.setattr(compilation, "TESTED_JAXLIB", ())
    assert "unroll-full-max-count" not in compilation.option()
