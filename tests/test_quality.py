"""Formatter, linter, type checker and the README's promises, as part of the test command."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest

import nsjax

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_static(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


MODULES = [m.name for m in pkgutil.walk_packages(nsjax.__path__, "nsjax.") if "__main__" not in m.name]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "ipywidgets", None
    )  # which shows pictures as text outside of notebooks
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def undocumented(name: str) -> list[str]:
    """Public functions, classes and methods of a module that say nothing of their own."""
    module, found = importlib.import_module(name), []
    for key, thing in vars(module).items():
        if key.startswith("_") or getattr(thing, "__module__", None) != name:
            continue
        if not (inspect.isfunction(thing) or inspect.isclass(thing)):
            continue
        said = thing.__doc__ or ""
        if not said or said.startswith(f"{thing.__name__}("):  # what dataclasses write themselves
            found.append(f"{name}.{key}")
        methods = vars(thing).items() if inspect.isclass(thing) else ()
        found += [
            f"{name}.{key}.{k}" for k, f in methods
            if not k.startswith("_") and inspect.isfunction(f) and not inspect.getdoc(getattr(thing, k))
        ]  # fmt: skip
    return found


def test_every_public_name_has_a_docstring() -> None:
    assert not [name for module in ["nsjax", *MODULES] for name in undocumented(module)]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_readme_examples_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks("python")
    assert len(examples) >= 2
    for example in examples:
        exec(compile(example, "README.md", "exec"), {"__name__": "readme"})


def test_ci_runs_the_readme_test_command() -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines() if "pytest" in line]
    assert len(commands) == 1
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    assert commands[0] in script


def test_importing_changes_nothing() -> None:
    code = (
        "import os, jax; before = dict(os.environ); import nsjax; "
        "assert dict(os.environ) == before; assert not jax.config.jax_enable_x64; "
        "from jax._src import xla_bridge; assert not xla_bridge.backends_are_initialized()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
