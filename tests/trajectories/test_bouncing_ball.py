"""A bouncing ball, computed by two schemes of the other program."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax import models, schemes
from tests.trajectories.common import SAME, impacts, off, rows_hit, run

# the files count the height from the ball's lowest point
BALL = models.bouncing_ball(radius=0.0, restitution=0.9, height=1.0)


def exact_impacts(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Times and speeds of arrival of a ball dropped from rest at 1 m."""
    first, powers = np.sqrt(2 / 9.81), 0.9 ** np.arange(count)
    flights = first * np.where(np.arange(count) == 0, 1.0, 2.0 * powers)
    return np.cumsum(flights), 9.81 * first * powers


@pytest.mark.parametrize("scheme", [schemes.moreau()], ids=lambda s: s.name)
def test_moreau_jean_is_reproduced_digit_by_digit(recorded, scheme):
    # constant force, gap linear in q: the decision at the midpoint is g(q) + h/2 g' <= 0 of the file
    data = recorded("bouncing_ball_moreau")
    traj = run(BALL, scheme, 0.005, 2000)
    np.testing.assert_allclose(traj.t, data[:, 0], rtol=0, atol=1e-12)
    assert off(traj.q[:, 0], data[:, 1]) < SAME
    assert off(traj.v[:, 0], data[:, 2]) < SAME
    assert off(traj.impulse_normal[:, 0], data[:, 3]) < SAME
    np.testing.assert_allclose(rows_hit(traj)[:4], [0.455, 1.270, 2.005, 2.670], rtol=0, atol=1e-12)
    rest = traj.t > 8.4775  # bounces of g dt^2 = 2e-4 m end in the row before
    assert np.ptp(traj.q[rest, 0]) < 1e-6
    assert traj.q[-1, 0] == pytest.approx(-2.3e-5, abs=5e-7)  # as printed
    assert traj.q[:, 0].min() == pytest.approx(-7.4e-3, abs=5e-5)


def same_impacts(traj) -> None:
    """The motion itself: an impact is noticed up to a step late, and the ball, a step deeper, takes 1/e
    steps more to come out again.
    """
    times, speeds = exact_impacts(12)
    found = impacts(traj)
    late = 5e-4 * (1 + (1 + 1 / 0.9) * np.arange(12))
    assert np.all(np.abs(found["time"][:12] - times) <= late)
    assert np.all(np.abs(found["rate_before"][:12] + speeds) <= 9.81 * late)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [schemes.generalized_alpha(0.8)], ids=lambda s: s.name)
def test_d1_minus_is_reproduced_digit_by_digit(recorded, scheme):
    # An impulse at the end of the step that has closed the gap, after a flight that every scheme of
    # second order integrates exactly. From 8.534 s on a bounce is shorter than a step: the mixed
    # framework closes the contact, the other code has one more impact and a switching rule of its own.
    data = recorded("bouncing_ball_d1minus")
    traj = run(BALL, scheme, 5e-4, 20_000)
    before = data[:, 0] < 8.53
    assert off(traj.q[before, 0], data[before, 1]) < SAME
    assert off(traj.v[before, 0], data[before, 2]) < SAME
    assert off(traj.impulse_normal[before, 0], data[before, 3]) < SAME
    same_impacts(traj)
    # at rest it stays where the last impact has left it, at most one step of that fall too deep
    rest = traj.t >= 8.6
    assert np.ptp(traj.q[rest, 0]) < 1e-9
    assert -9.81 * 5e-4**2 < traj.q[-1, 0] <= 0.0
    np.testing.assert_allclose(traj.force_normal[rest, 0], 9.81, rtol=1e-9)
