"""The runs whose cost is measured are those that are meant. Timings are no tests."""

from __future__ import annotations

import pytest

from experiments.performance import solids


def test_slope_is_that_of_the_cost() -> None:
    sizes = (10, 100, 1000)
    numbers = {f"beam, {n}: unknowns": 3.0 * n for n in sizes}
    numbers |= {f"beam, {n}: CPU time [ms/step]": 0.2 * n for n in sizes}
    assert solids.slope(numbers, sizes) == pytest.approx(1.0)


def test_large_cubes_are_iterated() -> None:
    system = solids.cube(6).system
    assert system.structure.tolerance == solids.RESIDUAL
    assert not hasattr(solids.cube(2).system.structure, "tolerance")
