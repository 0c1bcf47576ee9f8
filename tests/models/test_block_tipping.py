"""The block that tips, lands and rolls against closed forms and event-driven integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nsjax import models
from tests.models.block_runs import run
from tests.references import slope
from tests.references.rigid_box import G, Reference, angle_between, standing

ROWS = 10
# Numbers of steps that do not nest: the step of an impact is quantised.
COUNTS = ROWS * np.array(
    [41, 53, 71, 97, 127, 163, 211, 277, 359, 467, 607, 787, 1021, 1327, 1723, 2239, 2909, 3779]
)


def convergence(ref: Reference, q, stuck, time: float):
    """Errors of poses (any row) and of the last velocity for all step sizes, and the true impacts."""
    times, qs, vs, impacts = ref.path(q, np.zeros(ref.nv), stuck, time, ROWS)
    numbers = {"dimension": ref.d, "size": ref.size, "friction": ref.friction, "slope": ref.angle}
    poses, rates = [], []
    for n in COUNTS:
        traj = run(models.block(initial_q=q, **numbers), time / n, int(n), every=int(n) // ROWS)
        np.testing.assert_allclose(traj.t, times, rtol=1e-12)
        move = np.linalg.norm(traj.q[:, : ref.d] - qs[:, : ref.d], axis=1)
        space = ref.d == 3
        turn = angle_between(traj.q[:, 3:], qs[:, 3:]) if space else np.abs(traj.q[:, 2] - qs[:, 2])
        poses.append(np.max(move + np.linalg.norm(ref.size) / 2 * turn))
        rates.append(np.abs(traj.v[-1] - vs[-1]).max())
    return time / COUNTS, np.array(poses), np.array(rates), impacts, (qs, vs)


# An impact is noticed up to d = 1.5 steps late. Rocking, with 0.7 of the speed kept, that prolongs the
# next swing by 2 * 0.7 d, so that the delay of the third impact is d + 2.4 (d + 2.4 d) = 9.2 d;
# rolling is alike. The velocity in the smooth motion that follows is off by the acceleration times that.
LATE = 9.2 * 1.5


@pytest.mark.slow
def test_tall_box_tips_about_its_lower_corner():
    # Steeper than width / height = 1 / 3, and rough. Up to 33 degrees past the start it is a pendulum.
    size, angle, time = np.array([0.2, 0.6]), 0.45, 0.5
    ref = Reference(size, 1.0, angle)
    q = standing(ref, 0.0)
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], time)
    # The reference against the textbook's pendulum: psi'' = 3 g / (4 l) sin(psi), psi from the vertical.
    length, start = np.linalg.norm(size) / 2, angle - np.arctan(1 / 3)
    fall = solve_ivp(lambda t, y: [y[1], 0.75 * G / length * np.sin(y[0])], (0, time), [start, 0.0],
                     method="DOP853", rtol=1e-12, atol=1e-13)  # fmt: skip
    np.testing.assert_allclose([-qs[-1, 2], -vs[-1, 2]], [fall.y[0, -1] - start, fall.y[1, -1]], rtol=1e-9)
    assert not impacts
    assert qs[-1, 2] < -0.5
    assert ref.margin > 0.1
    # Smooth motion, but the corner is held on velocity level.
    assert slope(steps, poses) == pytest.approx(1, abs=0.1)
    # The tilt is reached half a step late; centre and far corner are both off by the length times that.
    assert np.all(poses <= 2 * length * np.abs(vs[-1, 2]) * steps / 2)
    # Where drift has lifted the corner off, a step goes without contact and without the torque about it:
    # the angular velocity misses 3 g / (4 l) sin(psi) dt, and as much by the delay.
    assert np.all(rates <= G / length * steps)


def test_box_lands_flat_and_stays():
    # A flat box (height < length / sqrt 2) that lands on its face stops dead: both corners get impulses.
    ref = Reference([0.6, 0.2], 1.5, 0.2)
    q = standing(ref, -0.6)
    stuck = [int(np.argmin(ref.gaps(q)))]
    steps, poses, _, impacts, _ = convergence(ref, q, stuck, 0.6)
    assert [i.active for i in impacts] == [[1, 3]]
    assert ref.margin > 0.2
    for counts in (1234, 6000):
        traj = run(
            models.block(dimension=2, size=ref.size, friction=1.5, slope=0.2, initial_q=q),
            0.6 / counts,
            counts,
        )
        assert np.abs(traj.v[-1]).max() < 1e-12
        held = traj.q[traj.t > impacts[0].time + 0.01]
        assert np.abs(held - held[-1]).max() < 1e-12
    assert 0.85 <= slope(steps, poses) <= 1.15
    # It stops up to a step and a half late, in an attitude off by what it turns in that time.
    far = np.linalg.norm(ref.size) * abs(impacts[0].before[2])
    assert np.all(poses <= 1.5 * far * steps)


@pytest.mark.slow
def test_rocking_box_loses_what_housner_says():
    # A slender box rocks from corner to corner: the corner left gets no impulse, and the angular
    # velocity shrinks by (H^2 / 3 - L^2 / 6) / (H^2 / 3 + L^2 / 3) = 0.7.
    ref = Reference([0.2, 0.4], 1.0)
    q = standing(ref, -0.2)
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], 0.63)
    acceleration = np.abs(ref.acceleration(qs[-1], vs[-1], impacts[-1].stuck)[0]).max()
    assert [i.stuck for i in impacts] == [[3], [1], [3]]
    speeds = [abs(i.after[2]) for i in impacts]
    np.testing.assert_allclose(np.divide(speeds[1:], speeds[:-1]), 0.7, rtol=1e-8)
    assert 0.85 <= slope(steps, poses) <= 1.15
    assert np.all(rates <= LATE * acceleration * steps)
    # Impacts become ever more frequent and accumulate at 0.93 s; then the box stands.
    problem = models.block(dimension=2, size=ref.size, friction=1.0, initial_q=q)
    traj = run(problem, 1e-4, 20_000, every=1000)
    late = traj.t >= 1.0
    assert np.abs(traj.v[late]).max() < 1e-12
    assert np.abs(traj.q[late] - traj.q[late][0]).max() < 1e-12
    assert np.abs(traj.q[-1, 2]) < 3e-4  # upright: nothing of the 0.2 rad is left but a few steps' drift


@pytest.mark.slow
def test_box_rolls_over_its_corners_in_space():
    # Released on one corner it falls onto a second, a third and a fourth; each sticks, the one before
    # lifts off, and between the impacts the box is a heavy top about the corner.
    ref = Reference([0.2, 0.25, 0.4], 1.0)
    q = standing(ref, [-0.2, 0.3, 0.1])
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], 0.45)
    acceleration = np.abs(ref.acceleration(qs[-1], vs[-1], impacts[-1].stuck)[0]).max()
    assert [i.stuck for i in impacts] == [[3], [7], [5]]
    assert ref.margin > 0.3
    assert 0.85 <= slope(steps, poses) <= 1.15
    assert np.all(rates <= LATE * acceleration * steps)
