"""Figures 6 to 12 of [R&S]: every expected number, and the files that the commands leave."""

from __future__ import annotations

import importlib
import json
import pathlib

import numpy as np
import pytest

from experiments import common
from experiments.mixed_timestepping import spectral

FIGURES = [
    "fig06_parameters",
    "fig07_hht",
    "fig08_generalized_alpha",
    "fig09_cusps",
    "fig10_comparison",
    "fig11_ed_alpha_ar",
    "fig12_ed_alpha_rho",
]


@pytest.mark.parametrize("name", FIGURES)
def test_figure(name: str, tmp_path: pathlib.Path) -> None:
    module = importlib.import_module(f"experiments.mixed_timestepping.{name}")
    numbers = module.main(quick=True, folder=tmp_path)
    expected = common.load_expected(module.__file__)
    missed = [row for row in common.compare(numbers, expected) if not row.passed]
    assert expected
    assert missed == []
    for suffix in (".png", ".npz"):
        assert (tmp_path / name).with_suffix(suffix).stat().st_size > 4_000
    with np.load(tmp_path / f"{name}.npz") as data:
        for key in data.files:
            # beyond the cusps all roots are real and there is no period
            resolved = data["dt/T"] <= 0.5 if key.startswith("period_error") else slice(None)
            assert np.all(np.isfinite(data[key][resolved])), key


def test_every_experiment_has_its_numbers() -> None:
    file = pathlib.Path(spectral.__file__).with_name("expected_spectral.json")
    recorded = json.loads(file.read_text())
    assert sorted(recorded) == FIGURES
