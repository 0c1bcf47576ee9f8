"""Figures 6 to 12 of [R&S]: every expected number, and the files that the commands leave."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from experiments.mixed_timestepping import spectral
from tests.design import slow_but
from tests.experiments.results import check

FIGURES = [
    "fig06_parameters",
    "fig07_hht",
    "fig08_generalized_alpha",
    "fig09_cusps",
    "fig10_comparison",
    "fig11_ed_alpha_ar",
    "fig12_ed_alpha_rho",
]


@pytest.mark.parametrize("name", slow_but(FIGURES, "fig06_parameters"))
def test_figure(name: str, tmp_path: pathlib.Path) -> None:
    check(f"mixed_timestepping.{name}", tmp_path, True, sizes={".png": 4_000, ".npz": 4_000})
    with np.load(tmp_path / f"{name}.npz") as data:
        for key in data.files:
            # beyond the cusps all roots are real and there is no period
            resolved = data["dt/T"] <= 0.5 if key.startswith("period_error") else slice(None)
            assert np.all(np.isfinite(data[key][resolved])), key


def test_every_experiment_has_its_numbers() -> None:
    file = pathlib.Path(spectral.__file__).with_name("expected_spectral.json")
    recorded = json.loads(file.read_text())
    assert sorted(recorded) == FIGURES
