"""Experiments of contacts: what they write, count and compare with closed forms. Timings are no tests."""

from __future__ import annotations

import csv
import functools

import numpy as np
import pytest

import nsjax
from experiments.contact import (
    fclib,
    iterations,
    table_spheres,
)
from nsjax import schemes

# The contact experiments run, write what they promise and count what they say. Timings are no tests.
NAMES = ["Rover4144", "Rover4493"]
PNG = b"\x89PNG"


@pytest.fixture
def folder(reference_data):
    path = reference_data / "fclib"
    if not path.is_dir():
        pytest.skip(f"contact problems not found in {path}")
    return path


@pytest.mark.slow
def test_fclib_writes_its_comparison(folder, tmp_path) -> None:
    methods = ("auto", "newton")
    outcomes = fclib.run(folder, NAMES, methods, budget=0.05)
    numbers = fclib.write(tmp_path, outcomes)
    assert numbers["problems"] == len(NAMES)
    assert numbers["solved_auto"] == numbers["solved_fclib_auto"] == len(NAMES)
    assert numbers["solved_newton"] == 0  # cycles, which is why "auto" has a fallback
    assert all(o.rounds > 0 for o in outcomes if o.method == "auto")
    with open(tmp_path / "fclib.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["problem"], row["method"]) for row in rows] == [(n, m) for n in NAMES for m in methods]
    assert all(name in (tmp_path / "fclib.md").read_text(encoding="utf-8") for name in NAMES)
    assert (tmp_path / "fclib_profile.png").read_bytes().startswith(PNG)


def test_index_and_data(folder) -> None:
    names = fclib.index(folder)
    assert len(names) == 28
    assert set(fclib.HARD) <= set(names)
    assert len(fclib.index(folder, fclib.QUICK_CONTACTS)) < len(names)
    problem = fclib.load(folder, "Rover1039")
    assert problem.matrix.shape == (problem.nc * 3, problem.nc * 3)
    # a problem is its data: zero impulses leave the relative residual at the size of approach
    assert 0.0 < fclib.readme_residual(problem, np.zeros(12)) <= 1.0


@pytest.mark.slow
def test_iteration_counts(tmp_path) -> None:
    numbers = iterations.main(quick=True, folder=tmp_path)
    assert numbers["exact_most"] <= 3
    assert numbers["count_error"] == 0
    assert numbers["rate_error"] < 1e-5
    assert numbers["auto_solved"] == numbers["rows"]
    assert numbers["simplified_solved_from_1"] < numbers["rows"] / 7 * 2
    assert (tmp_path / "iterations.png").read_bytes().startswith(PNG)
    assert (tmp_path / "iterations.csv").read_text(encoding="utf-8").count("\n") == numbers["rows"] + 1


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, 1000])
def test_spheres_that_come_to_rest_are_certified(count: int) -> None:
    """Steps 300 to 350 at the default tolerance: some ten of them need Newton's method."""
    system, params, state = table_spheres.box(count)
    run = functools.partial(nsjax.simulate, system, params, state, dt=table_spheres.DT, save=("residual",))
    carry = run(schemes.moreau(contact_tolerance=1e-3), steps=300, every=300).carry
    traj = run(schemes.moreau(), steps=50, carry=carry)
    traj.raise_for_status()
    assert float(np.max(np.asarray(traj.residual))) <= 1e-11
