"""Runs tell that a body passed a wall within a step, and only then."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes, status
from nsjax.stability import passed


@pytest.mark.parametrize("scheme", [schemes.moreau(), schemes.ggl_decoupled()], ids=lambda x: x.name)
def test_a_ball_that_falls_through_its_table_is_told(scheme) -> None:
    """A step of 0.5 s after a fall from 1 m, which lasts 0.45 s: 1.5 to 2.9 m below."""
    ball = models.bouncing_ball(height=1.0, radius=0.05)
    traj = nsjax.simulate(*ball, scheme, dt=0.5, steps=6)
    assert int(traj.status) == status.WALL_PASSED
    assert float(np.min(traj.gap_min)) < -1.05
    with pytest.raises(nsjax.RunError, match=r"passed a wall within a step.*take a smaller dt"):
        traj.raise_for_status()
    # 2 m/s at a twentieth of the fall: 0.2 m deep, an error of the step as any other
    nsjax.simulate(*ball, scheme, dt=0.02, steps=100).raise_for_status()


def test_a_run_into_a_file_tells_it(tmp_path: pathlib.Path) -> None:
    ball = models.bouncing_ball(height=1.0, radius=0.05)
    traj = nsjax.simulate_to_file(ball, schemes.moreau(), tmp_path / "run.npz", dt=0.5, steps=6)
    assert int(traj.status) == status.WALL_PASSED
    assert int(nsjax.load(tmp_path / "run.npz").traj.status) == status.WALL_PASSED


def test_depths_are_compared_with_the_start() -> None:
    """The row and the contact; gaps in radians, gaps that are no number and small depths are none."""
    rows = {
        "q": np.array([[0.02, 0.0], [0.02, 0.0], [5.0, 5.0]]),
        "gap": np.array([[0.03, 0.01, np.inf]] * 3),
        "gap_min": np.array([[0.03, 0.01, np.inf], [-0.029, -9.0, np.nan], [0.0, -9.0, -0.031]]),
    }
    assert passed(rows, ("m", "rad", "m")) == (2, 2)
    assert passed(rows, ("m", "rad", "rad")) is None
    assert passed(rows, ("rad", "m", "rad")) == (1, 1)
    # a start without length: at the origin, on its walls
    alone = {"q": np.zeros((3, 2)), "gap": np.zeros((3, 2)), "gap_min": np.full((3, 2), -9.0)}
    assert passed(alone, ("m", "m")) is None
    assert passed({**alone, "q": np.full((3, 2), 1.01e-2)}, ("m", "m")) == (0, 0)
