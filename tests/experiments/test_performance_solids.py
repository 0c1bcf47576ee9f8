"""The runs whose cost is measured are those that are meant. Timings are no tests."""

from __future__ import annotations

import pathlib

import pytest

from experiments.performance import solids


@pytest.mark.slow
def test_quick(tmp_path: pathlib.Path) -> None:
    numbers = solids.main(quick=True, folder=tmp_path)
    assert [numbers[key] for key in numbers if key.endswith("fails")] == [0.0] * 3
    assert numbers["beam, 100: unknowns"] == 301.0
    assert numbers["cube, 2: unknowns"] == 81.0
    # Newton needs two solves at least in a step of contact, smooth motion one
    assert numbers["cube, 2: solves per step"] > 1.0
    assert (tmp_path / "solids.png").stat().st_size > 10_000


def test_slope_is_that_of_the_cost() -> None:
    sizes = (10, 100, 1000)
    numbers = {f"beam, {n}: unknowns": 3.0 * n for n in sizes}
    numbers |= {f"beam, {n}: CPU time [ms/step]": 0.2 * n for n in sizes}
    assert solids.slope(numbers, sizes) == pytest.approx(1.0)


def test_large_cubes_are_iterated() -> None:
    system = solids.cube(6).system
    assert system.structure.tolerance == solids.RESIDUAL
    assert not hasattr(solids.cube(2).system.structure, "tolerance")
