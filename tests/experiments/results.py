"""What every test of an experiment asks: its numbers, and the files that it leaves."""

from __future__ import annotations

import importlib
import pathlib
import re
from collections.abc import Mapping

import numpy as np

from experiments import common


def missed(numbers: Mapping, expected: Mapping) -> list[common.Row]:
    """Rows of the numbers that are not as expected; a number that is not there is one."""
    return [row for row in common.compare(numbers, expected) if not row.passed]


def check(
    name: str,
    folder: pathlib.Path,
    quick: bool,
    *,
    file: str = "expected*.json",
    without: str | None = None,
    some: bool = False,
    least: int = 1,
    sizes: Mapping[str, int],
    finite: bool = False,
) -> common.Numbers:
    """Runs an experiment and checks what it leaves; returns its numbers.

    Args:
        name: ``paper.experiment``.
        file: name of the file of expected numbers.
        without: pattern of expected numbers that this form leaves out.
        some: whether numbers that are not there are left out, too.
        least: how many numbers are compared at least.
        sizes: bytes that the file of each suffix has at least.
        finite: whether all saved arrays are finite.
    """
    module = importlib.import_module(f"experiments.{name}")
    numbers = module.main(quick=quick, folder=folder)
    expected = common.load_expected(module.__file__, file=file)
    asked = {key: x for key, x in expected.items() if without is None or not re.search(without, key)}
    asked = {key: x for key, x in asked.items() if not some or key in numbers}
    assert len(asked) >= least
    assert missed(numbers, asked) == []
    path = folder / name.split(".")[1]
    for suffix, size in sizes.items():
        assert path.with_suffix(suffix).stat().st_size > size
    if finite:
        with np.load(path.with_suffix(".npz")) as data:
            assert all(np.all(np.isfinite(data[key])) for key in data.files)
    return numbers
