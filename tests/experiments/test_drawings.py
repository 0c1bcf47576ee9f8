"""Figures 13, 33, 40 and 41 of [R&S], drawn from schemes and models: what is drawn is what they do."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from experiments import common
from experiments.mixed_timestepping import (
    fig13_time_grids,
    fig40_corner_scenarios,
    fig41_gaps,
)
from tests.experiments.results import check

FIGURES = ["fig13_time_grids", "fig33_bathe_in_time", "fig40_corner_scenarios", "fig41_gaps"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_drawing(name, tmp_path):
    check(f"mixed_timestepping.{name}", tmp_path, True, sizes={".png": 20_000}, finite=True)


def test_every_experiment_has_its_numbers():
    file = pathlib.Path(fig13_time_grids.__file__).with_name("expected_drawings.json")
    recorded = json.loads(file.read_text())
    assert sorted(recorded) == FIGURES


def test_every_scheme_of_the_paper_has_its_grid():
    expected = common.load_expected(fig13_time_grids.__file__)
    for name in ("generalized_alpha", "bathe", "ed_alpha", "half_explicit", "moreau"):
        assert f"{name}: stages" in expected


@pytest.mark.parametrize("corners", [(1,), (2,), (3,), (4,), (2, 3), (3, 4)])
def test_a_scenario_closes_its_corners_alone_and_none_penetrates_but_by_the_tilt(corners):
    problem = fig40_corner_scenarios.mechanism()
    found = fig40_corner_scenarios.find(problem, corners)
    closed = tuple(int(k) + 1 for k in np.flatnonzero(found.closed))
    assert closed == corners
    # tilted counter-clockwise, corners 2 and 3 stand out; 1 or 4 alone at a wall would push them through
    assert (found.gaps.min() > -1e-12) == (corners not in ((1,), (4,)))
    drawn = fig40_corner_scenarios.drawn_distances(problem, found)
    np.testing.assert_allclose(found.gaps, drawn, rtol=0, atol=1e-15)


def test_jam_angle_is_that_of_the_closed_form():
    for clearance in (1e-4, 1e-3, 1e-2):
        problem = fig40_corner_scenarios.mechanism(clearance)
        found = fig40_corner_scenarios.find(problem, (2, 3))
        assert found.q[2] == pytest.approx(fig40_corner_scenarios.jam_angle(problem), rel=1e-11)


def test_arrows_end_on_walls_and_corners():
    problem = fig40_corner_scenarios.mechanism()
    found = fig40_corner_scenarios.pose(problem, 0.002, -0.05)
    arrows = fig41_gaps.normal_arrows(problem, found)
    wall = fig40_corner_scenarios.wall_height(problem)
    np.testing.assert_allclose(np.abs(arrows[:, 0, 1]), wall, rtol=1e-15)
    np.testing.assert_array_equal(arrows[:, 1], found.corners)
    np.testing.assert_array_equal(arrows[:, 0, 0], arrows[:, 1, 0])
    np.testing.assert_allclose(np.abs(arrows[:, 0, 1] - arrows[:, 1, 1]), found.gaps, rtol=0, atol=1e-15)
    # the rod's end carries the slider: its centre from the chain of crank and rod
    p = problem.params
    chain = p.crank_length * np.exp(1j * found.q[0]) + p.rod_length * np.exp(1j * found.q[1])
    np.testing.assert_allclose(found.centre, [chain.real, chain.imag], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.centre[1], 0.002, rtol=0, atol=1e-15)
