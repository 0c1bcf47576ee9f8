"""The expected numbers themselves: one line a number, each from somewhere else, each can be missed."""

from __future__ import annotations

import json
import math
import pathlib
import re

import numpy as np
import pytest

from experiments import common
from tests.references import spectral

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
    # two more for each experiment and file: 1,999 of 1,834 numbers when ten parts were there
    experiments = sum(len(json.loads(file.read_text())) for file in FILES)
    assert len(lines) <= len(ENTRIES) + 2 * (experiments + len(FILES))


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
