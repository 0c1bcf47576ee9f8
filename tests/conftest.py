"""One process-wide configuration, and the data made by others."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest

import nsjax
from nsjax.jaxtools import cache, machine_key
from nsjax.jaxtools.compilation import EMITTERS, OPTIMISATION, unoptimised

# One program is asked for by many tests, by both test processes, and by the kernels of notebooks, which
# inherit the environment: compile it once.
CACHE = pathlib.Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla"
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
nsjax.configure(cache=CACHE, announce=False)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / machine_key()))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

# Notebooks run in a quick size under the test command.
os.environ.setdefault("NSJAX_QUICK", "1")

MOST_RESIDENT = 2**31
"""Bytes of a process beyond which a file of tests forgets its programs: few are used by the next one."""

LEVEL = "--xla_backend_optimization_level"
QUICK = " ".join(f"--{name}={str(value).lower()}" for name, value in unoptimised().items())
"""Options of the programs of tests: a quarter of the time to compile, ten times as long to run."""

OPTIMISED = ("experiments", "test_landing", "test_heaps")
"""Folder and files of the full-size tests, beside notebooks, whose programs run for longer than they
compile. Elsewhere, in runs of many steps as well, ``QUICK`` programs take half of the time.
"""
USERS = {key: x for key, x in {OPTIMISATION: 3, EMITTERS: True}.items() if key in unoptimised()}
"""Options of the programs of users."""

KEEP_LOWERED = "jaxtools"
"""Folder of the tests whose processes keep lowered programs: few programs serve a second test, and to
export a program and to read the package for its name costs a fifth of a test's time.
"""


FLAGS = "NSJAX_TEST_XLA_FLAGS"
"""Variable that holds the ``XLA_FLAGS`` of the caller, also for the processes of pytest-xdist."""


def pytest_configure() -> None:
    """Tests compile under ``QUICK``: most of their time is compiling and tracing.

    Full-size experiments and notebooks take the users' programs, as everything does under
    ``NSJAX_TEST_OPTIMISED=1`` or with a level in ``XLA_FLAGS``. JAX's key of a kept program holds the
    flags, so that one cache serves both levels.
    """
    flags = os.environ.setdefault(FLAGS, os.environ.get("XLA_FLAGS", ""))
    if LEVEL in flags or os.environ.get("NSJAX_TEST_OPTIMISED", "0") != "0":
        return
    os.environ["XLA_FLAGS"] = f"{flags} {QUICK}".strip()
    # a trace makes millions of objects and few cycles: looking for these takes a tenth of the time
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _full_size(config: pytest.Config) -> bool:
    """Whether slow tests are among the chosen ones: any choice that does not exclude them."""
    return "not slow" not in config.option.markexpr


QUICK_NOTEBOOK = "01_first_impact.ipynb"
"""Runs in the test command; kernels of the others, tens of seconds each, start with ``-m slow`` alone."""


def left_out(path: pathlib.Path) -> bool:
    """Whether a collected file is a notebook that the test command leaves out."""
    return path.suffix == ".ipynb" and path.name != QUICK_NOTEBOOK


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks come first: pytest-xdist hands out files with many tests, then those with one, in order."""
    items.sort(key=lambda item: item.path.suffix != ".ipynb")
    for item in items:
        if left_out(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Kernels of full-size notebooks take the users' programs."""
    with pytest.MonkeyPatch.context() as patch:
        if left_out(item.path):
            patch.setenv("XLA_FLAGS", os.environ[FLAGS])
        return (yield)


@pytest.fixture(scope="session")
def reference_data() -> pathlib.Path:
    """Folder of cases computed or measured by others; tests that need it skip without it."""
    beside = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = pathlib.Path(os.environ.get("NSJAX_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"reference data not found in {folder}; set NSJAX_DATA to its folder")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _trace_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Traces programs of tests, outside `KEEP_LOWERED`, as where none is kept; compiles those of full-size
    tests in `OPTIMISED` as users do.
    """
    folder = request.path.parent.name
    with pytest.MonkeyPatch.context() as patch:
        if {folder, request.path.stem} & {*OPTIMISED} and _full_size(request.config):
            jax.clear_caches()
            compiler = importlib.import_module("jax._src.compiler")
            patch.setattr(compiler, "get_compile_options", _as_users(compiler.get_compile_options))
            patch.setenv("XLA_FLAGS", os.environ[FLAGS])
        elif folder != KEEP_LOWERED:
            patch.setattr(cache, "_folder", lambda: None)
        yield


def _as_users(options: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's options of a program, to which those of users are added."""

    def added(*given: Any, env_options_overrides: Any = None, **named: Any) -> Any:
        return options(*given, env_options_overrides=USERS | dict(env_options_overrides or {}), **named)

    return added


@pytest.fixture(scope="module", autouse=True)
def _forget_programs() -> Iterator[None]:
    """Keeps a worker small; what a later file asks for again is read from the folder of programs."""
    yield
    if _resident() > MOST_RESIDENT:
        jax.clear_caches()
        gc.collect()
        # the compiler's memory is free by now, but stays with the process unless asked for
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int:
    """Bytes of memory that the process holds; zero where the system does not say."""
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
