"""One process-wide configuration, and the data made by others."""

from __future__ import annotations

import os
import pathlib

import jax
import pytest

import nsjax

nsjax.configure()

# One program is asked for by many tests, and by both test processes: compile it once.
CACHE = pathlib.Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

# Notebooks run in kernels of their own that inherit this: a quick size under the test command.
os.environ.setdefault("NSJAX_QUICK", "1")


@pytest.fixture(scope="session")
def reference_data() -> pathlib.Path:
    """Folder of cases computed or measured by others; tests that need it skip without it."""
    beside = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = pathlib.Path(os.environ.get("NSJAX_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"reference data not found in {folder}; set NSJAX_DATA to its folder")
    return folder
