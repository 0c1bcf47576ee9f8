"""Mechanisms with contacts: every expected number, the files."""

from __future__ import annotations

import importlib
import pathlib

import numpy as np
import pytest

from experiments import common
from experiments.contact import fig_crossed_cylinders, fig_journal_bearing, fig_row_of_spheres

FIGURES = [
    "fig_box_stack", "fig_crossed_cylinders", "fig_dominoes", "fig_journal_bearing",
    "fig_rolling_sphere", "fig_row_of_spheres",
]  # fmt: skip


def check(name: str, folder: pathlib.Path, quick: bool) -> None:
    module = importlib.import_module(f"experiments.contact.{name}")
    numbers = module.main(quick=quick, folder=folder)
    expected = common.load_expected(module.__file__, name)
    rows = common.compare(numbers, {k: x for k, x in expected.items() if not quick or k in numbers})
    assert rows
    assert not [row.name for row in rows if not row.passed]
    for suffix, size in ((".png", 8_000), (".npz", 400)):
        assert (folder / name).with_suffix(suffix).stat().st_size > size


@pytest.mark.parametrize("name", FIGURES)
def test_quick(name: str, tmp_path: pathlib.Path) -> None:
    check(name, tmp_path, quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_full(name: str, tmp_path: pathlib.Path) -> None:
    check(name, tmp_path, quick=False)


def test_closed_forms() -> None:
    """Two spheres exchange their velocities; the impulse stops two equal points, and less where rods turn;
    the lean is that of a body on a slope of the angle of friction.
    """
    x, v = np.array([0.0, 1.0]), np.array([2.0, -1.0])
    np.testing.assert_allclose(fig_row_of_spheres.collided(x, v, 0.2, 1.0, 1.0), [-1.0, 2.0])
    np.testing.assert_allclose(fig_row_of_spheres.collided(x, v, 0.2, 0.0, 1.0), [0.5, 0.5])
    assert fig_crossed_cylinders.impulse(0.0) == pytest.approx(2.0 / 3.0)
    assert 0.0 < fig_crossed_cylinders.impulse(0.15) < 2.0 / 3.0
    assert np.tan(fig_journal_bearing.LEAN) == pytest.approx(fig_journal_bearing.FRICTION)
