"""What experiments share: comparison, expected numbers, and what figures say beside their curves."""

from __future__ import annotations

import importlib
import json
import math
import pathlib
import re

import numpy as np
import pytest

from experiments import common
from experiments.gear_gupta_leimkuhler import fig06_drift
from nsjax.cli.commands import available
from tests.references import spectral


# Figures of the papers: every expected number, and the files that the command leaves.
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


# What figures say beside their curves: that a form is reduced, and which runs failed.
def test_every_experiment_names_its_quick_form() -> None:
    for name in available():
        main = importlib.import_module(f"experiments.{name.replace('/', '.')}").main
        assert hasattr(main, "__wrapped__"), f"{name}: main is not decorated with common.experiment"
        assert "``quick``" in main.__doc__, name
        said = common.reduced_form(main)
        assert said == "" or 20 < len(said) < 160, (name, said)


# The expected numbers themselves: one line a number, each from somewhere else, each can be missed.
FILES = sorted(pathlib.Path(common.__file__).parent.rglob("expected*.json"))
ENTRIES = [
    pytest.param(name, entry, id=f"{file.parent.name}/{experiment}: {name}")
    for file in FILES
    for experiment, entries in json.loads(file.read_text()).items()
    for name, entry in entries.items()
]


def passed(name: str, number: float, entry: dict) -> bool:
    return all(row.passed for row in common.compare({name: number}, {name: entry}))


def test_one_line_a_number() -> None:
    assert len(ENTRIES) > 1600
    lines = [line for file in FILES for line in file.read_text().splitlines()]
    assert sum('"source"' in line for line in lines) == len(ENTRIES)
    experiments = sum(len(json.loads(file.read_text())) for file in FILES)
    # besides numbers, braces alone: two lines an experiment, two a file
    assert len(lines) == len(ENTRIES) + 2 * experiments + 2 * len(FILES)


def test_every_number_has_a_source_and_can_be_missed() -> None:
    fields = {"print", "factor", "value", "tolerance", "range", "kind", "source"}
    for parameter in ENTRIES:
        name, entry = parameter.values
        assert set(entry) <= fields, parameter.id
        assert ("range" in entry) != ("value" in entry and "tolerance" in entry), parameter.id
        assert entry["kind"] in common.KINDS, parameter.id
        assert entry["source"], parameter.id
        assert "recorded when" not in entry["source"], parameter.id
        assert not passed(name, math.nan, entry), parameter.id
        assert not passed(name, math.inf, entry) or not passed(name, -math.inf, entry), parameter.id
        if "factor" in entry:
            assert 1.0 < entry["factor"] <= 5.0, parameter.id
            assert not passed(name, 6.0 * entry["print"], entry), parameter.id
        if "range" in entry:
            low, high = entry["range"]
            assert not (low is None and high is None), parameter.id
            beyond = [x + s * (1e-9 + 1e-6 * abs(x)) for x, s in ((low, -1), (high, 1)) if x is not None]
        else:
            value, tolerance = entry["value"], entry["tolerance"]
            assert tolerance < 1.0, parameter.id  # nothing at all would pass for the number
            step = 1.01 * tolerance * (abs(value) or 1.0) + 1e-12 * (1.0 + abs(value))
            beyond = [value - step, value + step]
        assert not any(passed(name, x, entry) for x in beyond), parameter.id


PAPER = re.compile(r"\[(R&S|S&U&S|C|SRKA|GN)(\]| Fig\.| Table| section| \()")


def test_kinds_are_those_of_the_sources() -> None:
    """A number is as strong as what its source names first, no stronger."""
    wrong = []
    for parameter in ENTRIES:
        _, entry = parameter.values
        kind, source = entry["kind"], entry["source"]
        if kind in ("print", "words") and not PAPER.match(source):
            wrong.append(f"{parameter.id}: {kind} without a place in a paper: {source}")
        if kind in ("theory", "independent") and source.startswith(("[P]", "recorded")):
            wrong.append(f"{parameter.id}: {kind} of a program: {source}")
        if kind == "prototype" and "[P]" not in source:
            wrong.append(f"{parameter.id}: a prototype that is not named: {source}")
        if "factor" in entry and not (PAPER.match(source) or re.search(r"(print|paper): \[", source)):
            wrong.append(f"{parameter.id}: a print without its place: {source}")
    assert not wrong, "\n".join(wrong)


def test_spectral_numbers_are_those_of_the_closed_forms() -> None:
    (file,) = [file for file in FILES if "spectral" in file.name]
    checked = 0
    for figure, entries in json.loads(file.read_text()).items():
        for name, entry in entries.items():
            part = re.fullmatch(r"(.+): (radius|period error) at dt/T = (\S+)", name)
            if part is None or figure == "fig06_parameters":
                continue
            form = spectral.radius if part[2] == "radius" else spectral.period_error
            exact = form(part[1], float(part[3]), figure)
            np.testing.assert_allclose(entry["value"], exact, rtol=1e-6 if float(part[3]) > 100 else 1e-9)
            checked += 1
    assert checked == 189


def test_shapes_of_drift() -> None:
    """Figure 6 of [S&U&S] says in words, and its expected numbers in wide ranges, how drift grows."""
    t = np.linspace(0.0, 2.0, 101)
    assert fig06_drift.curvature(t, 3.0 * t) == pytest.approx((1.0, 0.0), abs=1e-12)
    assert fig06_drift.curvature(t, -(t**2)) == pytest.approx((3.0, 0.0), abs=1e-12)
    assert fig06_drift.curvature(t, t**2 + np.sin(20 * t))[1] > 0.1
