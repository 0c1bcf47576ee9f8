"""Formatter, linter, type checker and what README and guide promise, as part of the test command."""

from __future__ import annotations

import collections
import doctest
import importlib
import inspect
import pathlib
import pkgutil
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

import nsjax
from nsjax.cli import main
from nsjax.multibody import couplings, joints, loads

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_static(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


MODULES = [m.name for m in pkgutil.walk_packages(nsjax.__path__, "nsjax.") if "__main__" not in m.name]
LONG = (
    "nsjax.analysis.energy", "nsjax.analysis.events", "nsjax.analysis.lyapunov", "nsjax.analysis.rows",
    "nsjax.check_gradient", "nsjax.contact.jump", "nsjax.contact.solvers", "nsjax.environment",
    "nsjax.fem.spatial_beams", "nsjax.identify.run", "nsjax.io.archive", "nsjax.io.program",
    "nsjax.jaxtools.precision", "nsjax.linalg.block_structures", "nsjax.linalg.blocks",
    "nsjax.linalg.elimination", "nsjax.linalg.iterative", "nsjax.linalg.structure",
    "nsjax.multibody.changes", "nsjax.multibody.contacts.spheres",
    "nsjax.multibody.couplings.coupling_kind", "nsjax.multibody.joints.friction_laws",
    "nsjax.multibody.joints.rolling", "nsjax.part_rows", "nsjax.plot.sliders",
    "nsjax.schemes.amplification", "nsjax.schemes.building", "nsjax.schemes.impulses.ggl_unified",
    "nsjax.schemes.impulses.moreau", "nsjax.schemes.impulses.moreau_theta",
    "nsjax.schemes.locating.localized", "nsjax.schemes.mixed.bathe", "nsjax.schemes.mixed.ed_alpha",
    "nsjax.schemes.mixed.generalized_alpha", "nsjax.schemes.mixed.half_explicit",
    "nsjax.schemes.nsga.variants", "nsjax.shapes", "nsjax.statics", "nsjax.stepper",
    "nsjax.sweep.accuracy", "nsjax.sweep.lyapunov", "nsjax.sweep.mechanisms", "nsjax.sweep.run",
    "nsjax.sweep.work_precision",
)  # fmt: skip
"""Modules whose examples compile for a second or more."""


def part(module: str) -> str:
    """Package that holds a module, or "nsjax" for the modules beside the packages."""
    name = module.split(".")[1]
    return f"nsjax.{name}" if (ROOT / "nsjax" / name).is_dir() else "nsjax"


def failed(modules: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Examples of these modules that do not print what they say, by module."""
    monkeypatch.setitem(
        sys.modules, "ipywidgets", None
    )  # which shows pictures as text outside of notebooks
    found = {name: doctest.testmod(importlib.import_module(name)).failed for name in modules}
    return {name: count for name, count in found.items() if count}


TWICE = {"Contacts", "Modes", "Places", "Shape", "Solid", "Stepper"}
"""Names that several classes of the package still have; the list gets shorter, never longer."""


def test_a_class_has_a_name_of_its_own() -> None:
    names: collections.Counter[str] = collections.Counter()
    for file in (ROOT / "nsjax").rglob("*.py"):
        names.update(re.findall(r"^ *class (\w+)", file.read_text(), re.M))
    assert {name for name, count in names.items() if count > 1} <= TWICE


@pytest.mark.parametrize("package", sorted({part(name) for name in MODULES}))
def test_docstring_examples(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [name for name in MODULES if part(name) == package and name not in LONG]
    assert not failed(mine, monkeypatch)


@pytest.mark.slow
def test_long_docstring_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(LONG) <= set(MODULES)
    assert not failed(list(LONG), monkeypatch)


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


GUIDE = ROOT / "nsjax" / "documentation" / "guide"
WRITING = ("--output", "--plot", "--animate")
"""Options of the command line that name a file."""

PAGES = [ROOT / "README.md", *sorted(GUIDE.glob("*.md"))]
"""Documents whose code runs."""


def blocks(page: pathlib.Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


LONG_PAGES = (
    "control", "examples", "gallery", "gradients", "identification", "mechanisms", "own_models", "programs",
    "sweeps",
)  # fmt: skip
"""Pages with many programs, which run with the full-size checks."""


def runs(page: pathlib.Path) -> object:
    """A case; those with many programs run with the full-size checks."""
    marks = [pytest.mark.slow] if page.stem in LONG_PAGES else []
    return pytest.param(page, id=page.stem, marks=marks)


@pytest.fixture
def own_kinds() -> Iterator[None]:
    """Kinds that a page adds to registries are gone after it."""
    homes = (joints.KINDS, loads.KINDS, couplings.KINDS)
    before = [dict(home) for home in homes]
    yield
    for home, kinds in zip(homes, before, strict=True):
        home.clear()
        home.update(kinds)


@pytest.mark.usefixtures("own_kinds")
@pytest.mark.parametrize("page", [runs(page) for page in PAGES if blocks(page, "python")])
def test_examples_of_documents_run(
    page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a page shows a run that diverges
        made: dict = {}
        for example in blocks(page, "python"):
            if re.search(r"^(import|from) .*\bnsjax", example, re.M):
                made = {"__name__": page.stem}  # other blocks go on from the one before
            exec(compile(example, page.name, "exec"), made)
            assert page.stem not in ("examples", "gallery") or int(made["traj"].status) == 0, example


def commands(page: pathlib.Path) -> list[list[str]]:
    """Arguments of ``nsjax`` in the shell blocks of a document."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    found = [re.search(r"(?:^|\.venv/bin/)nsjax (\w.*)$", line) for line in lines]
    return [shlex.split(x[1]) for x in found if x]


@pytest.mark.parametrize("page", [runs(page) for page in PAGES if commands(page)])
def test_commands_of_documents_run(
    page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As printed, but for sweeps of fifty values, of which four are taken."""
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        assert main([word.removesuffix(":50") + ":4" * word.endswith(":50") for word in words]) == 0
        written = [x for x, before in zip(words[1:], words, strict=False) if before in WRITING]
        assert written
        assert all((tmp_path / name).stat().st_size > 1_000 for name in written)


def test_the_readme_is_a_page_and_a_half() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert len(blocks(ROOT / "README.md", "python")) >= 4
    for command in commands(ROOT / "README.md"):
        assert set(WRITING) & set(command), "the first commands draw"


def test_ci_runs_the_readme_test_command() -> None:
    shown = [line for block in blocks(ROOT / "README.md", "sh") for line in block.splitlines()]
    tests = [line for line in shown if "pytest" in line]
    assert len(tests) == 1
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    assert tests[0] in script


def test_importing_changes_nothing() -> None:
    code = (
        "import os, jax; before = dict(os.environ); import nsjax; "
        "assert dict(os.environ) == before; assert not jax.config.jax_enable_x64; "
        "from jax._src import xla_bridge; assert not xla_bridge.backends_are_initialized()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
