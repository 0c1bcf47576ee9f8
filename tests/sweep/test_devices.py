"""Several devices and several processes give the bits of one: results, status and sentences."""

from __future__ import annotations

import os
import pathlib

import jax
import numpy as np
import pytest

from experiments.sweeps import processes

CASES = [
    ("bouncing_ball", 2, 2),
    *(
        pytest.param(model, of, devices, marks=pytest.mark.slow)
        for model in processes.MODELS
        for of, devices in ((1, 2), (2, 1))
    ),
]


@pytest.mark.parametrize(("model", "of", "devices"), CASES)
def test_bits(model: str, of: int, devices: int, tmp_path: pathlib.Path, monkeypatch) -> None:
    here = processes.lanes(model)  # first: flags are read with the first computation
    assert len(jax.local_devices()) == 1
    assert int(here.ok.sum()) == 10
    cache = jax.config.jax_compilation_cache_dir
    if cache:  # compiled once, here or there
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache))
    # what is of this process alone goes; the level of optimisation decides about bits
    flags = os.environ.get("XLA_FLAGS", "").split()
    monkeypatch.setenv("XLA_FLAGS", " ".join(f for f in flags if "optimization_level" in f))
    said = processes.start(model, of, devices, tmp_path / "run.npz")
    assert f"{of} processes, {of * devices} devices, lanes done: 10" in said
    with np.load(tmp_path / "run.npz") as there:
        arrays = here.arrays()
        assert set(there.files) == set(arrays)
        for name in arrays:
            np.testing.assert_array_equal(there[name], arrays[name])
    assert len(set(here["impacts"].sum(-1).tolist())) > 3  # the lanes differ
    assert "lane 3" in said
    assert "must be finite" in said
