"""One process-wide configuration, and the data made by others."""

from __future__ import annotations

import os
import pathlib

import jax
import pytest

import nsjax
from nsjax.startup import machine_key

# One program is asked for by many tests, by both test processes, and by the kernels of notebooks, which
# inherit the environment: compile it once.
CACHE = pathlib.Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla"
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
nsjax.configure(cache=CACHE, announce=False)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / machine_key()))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

# Notebooks run in a quick size under the test command.
os.environ.setdefault("NSJAX_QUICK", "1")


@pytest.fixture(scope="session")
def reference_data() -> pathlib.Path:
    """Folder of cases computed or measured by others; tests that need it skip without it."""
    beside = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = pathlib.Path(os.environ.get("NSJAX_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"reference data not found in {folder}; set NSJAX_DATA to its folder")
    return folder
