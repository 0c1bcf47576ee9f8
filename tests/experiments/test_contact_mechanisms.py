"""Mechanisms with contacts: every expected number, the files."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from experiments.contact import cam, fig_crossed_cylinders, fig_journal_bearing, fig_row_of_spheres
from tests.experiments.results import check

FIGURES = [
    "fig_box_stack", "fig_cam_follower", "fig_crossed_cylinders", "fig_dominoes", "fig_journal_bearing",
    "fig_rolling_sphere", "fig_row_of_spheres", "fig_woodpecker",
]  # fmt: skip

COMPILED_LONG = ["fig_flexible_cam", "fig_flexible_stem"]
"""Whose programs compile for minutes."""


SIZES = {".png": 8_000, ".npz": 400}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES + COMPILED_LONG)
def test_full(name: str, tmp_path: pathlib.Path) -> None:
    check(f"contact.{name}", tmp_path, False, sizes=SIZES)


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


def test_closed_forms_of_the_cam() -> None:
    """The force of the specification at 50 rad/s; none at top dead centre at the speeds of lift-off; in the
    air the follower is above the cam.
    """
    theta = np.linspace(0.0, 2.0 * np.pi, 361)
    force = cam.axial(cam.lift, theta, 50.0)
    assert [np.min(force), np.max(force)] == pytest.approx([36.305, 54.305], abs=1e-3)
    weight = cam.MASS * cam.GRAVITY + cam.PRELOAD
    for height, speed in ((cam.lift, cam.LIFT_OFF), (cam.flat_lift, cam.FLAT_LIFT_OFF)):
        assert abs(cam.axial(height, np.zeros(1), speed)[0]) <= 1e-4 * weight
        leave, meet, highest = cam.flight(height, 120.0)
        assert -np.pi / 2 < leave < 0.0 < meet
        assert 0.0 < highest < 2.0 * cam.ECCENTRICITY
