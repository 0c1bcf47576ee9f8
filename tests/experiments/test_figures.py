"""Figures of the papers: every expected number, and the files that the command leaves."""

from __future__ import annotations

import pathlib

import pytest

from experiments import common
from tests.experiments.results import check

FIGURES = ["gear_gupta_leimkuhler.fig03_moreau_path", "gear_gupta_leimkuhler.fig04_moreau_gaps"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figure(name: str, tmp_path: pathlib.Path) -> None:
    check(name, tmp_path, True, sizes={".png": 10_000, ".npz": 10_000})


def test_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "near": {"value": 2.0, "tolerance": 0.01, "source": "a"},
        "far": {"value": 2.0, "tolerance": 0.01, "source": "a"},
        "zero": {"value": 0.0, "tolerance": 1e-3, "source": "a"},
        "inside": {"range": [-1.0, 0.0], "source": "a"},
        "outside": {"range": [-1.0, 0.0], "source": "a"},
        "absent": {"value": 1.0, "tolerance": 1.0, "source": "a"},
        "not a number": {"range": [-1.0, 0.0], "source": "a"},
    }
    found = {"near": 2.01, "far": 2.03, "zero": -5e-4, "inside": -0.5, "outside": 0.25}
    rows = common.compare({**found, "not a number": float("nan")}, expected)
    assert [row.passed for row in rows] == [True, False, True, True, False, False, False]
    assert rows[0].difference == pytest.approx(0.005)
    assert rows[4].difference == 0.25
    assert common.report(rows).count("MISSED") == 4
    assert "outside" in capsys.readouterr().out
