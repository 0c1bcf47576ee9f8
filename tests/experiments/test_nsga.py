"""Examples of the nonsmooth generalized-alpha: every expected number, the files, the references."""

from __future__ import annotations

import importlib
import pathlib

import numpy as np
import pytest

from experiments import common
from experiments.nsga import bar, block_motion, fig06_bar_contact, published

FIGURES = [
    "fig02_block",
    "fig03_block_solves",
    "fig04_bar_solves",
    "fig05_bar_errors",
    "fig06_bar_contact",
    "fig07_pendulum",
    "fig08_pendulum_solves",
    "fig09_cube",
    "fig10_cube_solves",
    "table_schemes",
    "table_splittings",
]


def check(name: str, quick: bool, folder: pathlib.Path) -> None:
    module = importlib.import_module(f"experiments.nsga.{name}")
    numbers = module.main(quick=quick, folder=folder)
    expected = common.load_expected(module.__file__, name)
    asked = {key: entry for key, entry in expected.items() if not quick or key in numbers}
    assert len(asked) >= 5
    assert [row for row in common.compare(numbers, asked) if not row.passed] == []
    for suffix, size in ((".png", 10_000), (".npz", 400)):  # some data are a table of three rows
        assert (folder / name).with_suffix(suffix).stat().st_size > size


@pytest.mark.parametrize(
    "name", ["fig04_bar_solves", "fig08_pendulum_solves", "table_schemes", "table_splittings"]
)
def test_quick(name: str, tmp_path: pathlib.Path) -> None:
    check(name, True, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_full(name: str, tmp_path: pathlib.Path) -> None:
    check(name, False, tmp_path)


def test_resolved_block_keeps_energy_and_angular_momentum_in_flight() -> None:
    z, dz, impacts = block_motion.motion(np.array([0.1, 0.4, 0.41]), h=1e-4)
    assert impacts == []
    # the rate is that of the height: a difference over a hundredth of a turn
    near, _, _ = block_motion.motion(np.array([0.4 - 1e-4, 0.4 + 1e-4]), h=1e-4)
    assert (near[1] - near[0]) / 2e-4 == pytest.approx(dz[1], rel=1e-4)
    # the free symmetric centre falls with gravity: 0.19 m at most lie between centre and corner
    assert abs(z[0] - (1.0 - 0.5 * 9.81 * 0.01)) < 0.19


def test_exact_wave() -> None:
    t = np.linspace(0.0, 1.5, 301)
    for x in (0.0, 0.45, 5.0):
        u, v = fig06_bar_contact.exact(t, x)
        assert np.all(u <= bar.DISTANCE + x + 1e-12)  # nothing passes the wall
        steady = np.abs(np.diff(v)) == 0
        np.testing.assert_allclose(np.diff(u)[steady] / 0.005, v[1:][steady], atol=1e-9)
    assert fig06_bar_contact.exact(np.array([1.5]), 0.0)[1][0] == -10.0


def test_error_norm() -> None:
    assert published.error(np.array([1.0, -1.0]), np.array([2.0, -2.0])) == pytest.approx(0.5)
    assert published.slope([1e-1, 1e-2], [1e-2, 1e-4]) == pytest.approx(2.0)
