"""Mass on a spring with dry friction, down to its rest."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax import schemes
from tests.trajectories.common import SAME, off, run
from tests.trajectories.models_friction_oscillator import friction_oscillator

# The body lies on the table in a gap of rounding size.
TOUCHING = {"gap_tolerance": 1e-12}
# Half circles about -1 and +1 in the plane (x, v): 2 m closer to zero every pi seconds.
FIRST, AMPLITUDE = np.arctan2(6.0, 13.0), np.hypot(13.0, 6.0) - 1.0
TURNS = FIRST + np.pi * np.arange(7)
HEIGHTS = (AMPLITUDE - 2.0 * np.arange(7)) * (-1.0) ** np.arange(7)
REST = 14.0 - AMPLITUDE  # the next one is less than 1 m from zero: no force to leave it


def test_file_is_reproduced_digit_by_digit(recorded):
    data = recorded("friction_oscillator")
    traj = run(friction_oscillator(), schemes.moreau_theta(**TOUCHING), 0.01, 9999)
    np.testing.assert_allclose(traj.t, data[:, 0], rtol=0, atol=1e-12)
    assert off(traj.q[:, 0], data[:, 1]) < SAME
    assert off(traj.v[:, 0], data[:, 2]) < SAME
    # row 0 of the file holds no force
    assert off(traj.impulse_tangential[1:, 0, 0] / 0.01, data[1:, 3]) < SAME
    np.testing.assert_allclose(traj.impulse_normal[1:, 0], 0.01, rtol=1e-12)
    stuck = traj.t >= 22.435
    assert traj.q[-1, 0] == pytest.approx(0.682044, abs=5e-7)  # as printed
    # residual of the contact problem relative to the velocities (13 m/s at the start), over 7800 steps
    np.testing.assert_allclose(traj.q[stuck, 0], traj.q[-1, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("scheme", "dt"),
    [
        (schemes.moreau_theta(**TOUCHING), 1e-2),
        pytest.param(schemes.moreau_theta(**TOUCHING), 2.5e-3, marks=pytest.mark.slow),
        pytest.param(schemes.half_explicit(**TOUCHING), 2.5e-3, marks=pytest.mark.slow),
    ],
)
def test_turning_points_of_the_exact_motion(scheme, dt):
    traj = run(friction_oscillator(), scheme, dt, round(30 / dt))
    x = traj.q[:, 0]
    for k, (time, height) in enumerate(zip(TURNS, HEIGHTS, strict=True)):
        near = np.abs(traj.t - time) < 0.1
        peak = np.argmax(x[near] * np.sign(height))
        # friction turns over up to a step late, 2 m/s^2 for the time dt: an error of dt^2 at most each
        assert abs(x[near][peak] - height) <= (k + 1) * dt**2
        assert abs(traj.t[near][peak] - time) <= 1.5 * dt
    assert np.all(np.abs(traj.v[traj.t > TURNS[-1] + np.pi + 0.1]) < 1e-9)
    assert x[-1] == pytest.approx(REST, abs=8 * dt**2)
