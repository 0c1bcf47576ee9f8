"""The block on a slope, which sticks below the angle of friction and slides above it."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax import models, schemes
from tests.models.block_runs import run
from tests.references.rigid_box import G

SLOPE = 0.3
ON_SLOPE = {2: [0.2, 0.1], 3: [0.3, 0.2, 0.1]}


def slowest(dimension: int, dt: float) -> float:
    """Speed that counts as rest [m/s]: rounding in the plane. In space the impulses of the step before are
    taken again as long as they meet the tolerance of 1e-11, relative to those of single corners. So large
    errors at four corners leave at most four such parts of ``g dt``, possibly in each step.
    """
    return 1e-15 if dimension == 2 else 4e-11 * G * dt


def rest(dimension: int, dt: float, steps: int) -> float:
    """Distance that a block at rest may move [m]."""
    return 1e-14 if dimension == 2 else steps * dt * slowest(dimension, dt)


def motion(traj, dimension: int) -> np.ndarray:
    """Distance from the start that any corner may have moved: translation plus radius times angle."""
    radius = np.linalg.norm(ON_SLOPE[dimension]) / 2
    angle = np.abs(traj.q[:, 2] - traj.q[0, 2]) if dimension == 2 else 2 * np.linalg.norm(
        traj.q[:, 4:] - traj.q[0, 4:], axis=1)  # fmt: skip
    return np.linalg.norm(traj.q[:, :dimension] - traj.q[0, :dimension], axis=1) + radius * angle


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "dimension"), [(20_000, 2), (100_000, 3)])
def test_block_sticks_below_the_angle_of_friction(dimension, steps):
    dt, m = 1e-3, 2.5
    problem = models.block(
        dimension=dimension, size=ON_SLOPE[dimension], slope=SLOPE, friction=1.01 * np.tan(SLOPE), mass=m
    )
    traj = run(problem, dt, steps, every=1000)
    # 2 g dt^2 = 2e-5 m are asked for
    assert motion(traj, dimension).max() <= rest(dimension, dt, steps)
    radius = np.linalg.norm(ON_SLOPE[dimension]) / 2
    speed = np.abs(traj.v) * np.array([1.0] * dimension + [radius] * (traj.v.shape[1] - dimension))
    assert speed.max() <= slowest(dimension, dt)
    force = m * G * np.array([np.cos(SLOPE), -np.sin(SLOPE)])
    np.testing.assert_allclose(traj.force_normal[1:].sum(axis=1), force[0], rtol=1e-9)
    np.testing.assert_allclose(traj.force_tangential[1:, :, 0].sum(axis=1), force[1], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("tilt", "dimension", "steps"), [(1e-14, 2, 20_000), (-1e-14, 3, 100_000)])
def test_block_settles_once_where_rounding_lifts_a_corner(dimension, tilt, steps):
    # Without a tolerance a corner lifted by rounding is left out of a step: the block tilts by g dt^2 over
    # its length, is caught, slides until friction has stopped it, and rests a little below the plane for
    # good. Near the angle of friction, where sliding hardly slows down, it slides farther than 2 g dt^2.
    dt = 1e-3
    numbers = {"size": ON_SLOPE[dimension], "slope": SLOPE, "friction": 1.1 * np.tan(SLOPE), "mass": 2.5}
    start = [0, 0.05, tilt] if dimension == 2 else [0, 0, 0.05, 1, 0.3 * tilt, -0.5 * tilt, 0]
    problem = models.block(dimension=dimension, initial_q=start, **numbers)
    traj = run(problem, dt, steps, every=1000, scheme=schemes.moreau(gap_tolerance=0.0))
    shift = np.linalg.norm((traj.q - traj.q[0])[:, :dimension], axis=1)
    assert G * dt**2 <= shift.max() <= 2 * G * dt**2
    assert traj.gap_min.min() >= -4 * G * dt**2  # a step of at most 2 g dt, twice as fast at a corner
    assert np.abs(traj.q[1:] - traj.q[1]).max() <= max(1e-13, rest(dimension, dt, steps))
    # With the default tolerance such a corner counts as standing, and the block stays, as one that sticks.
    stays = run(problem, dt, steps, every=1000, scheme=schemes.moreau())
    assert motion(stays, dimension).max() <= rest(dimension, dt, steps)


@pytest.mark.parametrize(
    ("restitution", "factor", "dimension"),
    [(0.0, 0.5, 2), (0.7, 0.99, 2)],
)
def test_block_slides_above_the_angle_of_friction(dimension, factor, restitution):
    friction = factor * np.tan(SLOPE)
    problem = models.block(
        dimension=dimension, size=ON_SLOPE[dimension], slope=SLOPE, friction=friction, mass=2.5,
        restitution=restitution,
    )  # fmt: skip
    traj = run(problem, 1e-3, 1000, every=10)
    a = G * (np.sin(SLOPE) - friction * np.cos(SLOPE))
    # Exact up to the tolerance of the contact problems, 1e-11 of the largest velocity.
    np.testing.assert_allclose(traj.v[:, 0], a * traj.t, rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj.q[:, 0], a * traj.t**2 / 2, rtol=0, atol=1e-11)
    others = np.delete(traj.q - traj.q[0], 0, axis=1)
    assert np.abs(others).max() <= 1e-12
