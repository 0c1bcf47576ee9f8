"""The woodpecker toy: stick, slip and impacts of three contacts, two strokes of the beak."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import nsjax
from experiments.contact.woodpecker import woodpecker
from nsjax import schemes
from tests.trajectories.common import SAME, impacts, off

H = 2e-5


@functools.partial(jax.jit, static_argnames=("steps", "every"))
def _run(problem, scheme, dt, steps: int, every: int) -> nsjax.Trajectory:
    return nsjax.simulate(*problem, scheme, dt=dt, steps=steps, every=every, events=40)


def run(scheme, refine: int = 1) -> nsjax.Trajectory:
    """Rows of the file, by one program for all step sizes."""
    traj = _run(woodpecker(), scheme, H / refine, 14_995 * refine, 5 * refine)
    traj.raise_for_status()
    return traj


@pytest.mark.slow
def test_the_start_of_the_file_penetrates():
    """By what a step of the file's size may leave at its speeds, and one of a thousandth may not."""
    nsjax.simulate(*woodpecker(), schemes.moreau_theta(), dt=H, steps=5).raise_for_status()
    with pytest.raises(nsjax.InputError, match=r"lower edge\) = -8.8e-07 m at the start"):
        nsjax.simulate(*woodpecker(), schemes.moreau_theta(), dt=1e-3 * H, steps=5)


@pytest.mark.slow
def test_file_is_reproduced_digit_by_digit(recorded):
    data = recorded("woodpecker")
    traj = run(schemes.moreau_theta())
    np.testing.assert_allclose(traj.t, data[:, 0], rtol=0, atol=1e-12)
    for k in range(3):
        assert off(traj.q[:, k], data[:, 1 + 2 * k]) < SAME
        assert off(traj.v[:, k], data[:, 2 + 2 * k]) < SAME
    assert traj.impacts.sum(axis=0).tolist() == [2, 4, 4]
    assert traj.q[-1, 0] == pytest.approx(-0.0413, abs=5e-5)  # as printed


OTHERS = [schemes.half_explicit(), schemes.moreau()]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", OTHERS, ids=lambda s: s.name)
def test_other_schemes(recorded, scheme):
    data = recorded("woodpecker")
    traj = run(scheme)
    error = np.abs(traj.q[:, 1:] - data[:, 3::2])
    beak = impacts(traj, 0)["time"]
    assert len(beak) == 2
    # before the first stroke the upper edge is hit, at 15 rad/s, and up to a step earlier or later
    assert np.all(error[data[:, 0] < beak[0] - H] < 15.0 * H)
    # Up to the second stroke to the README's bound. There the file itself is 8e-3 rad from the limit of
    # its own scheme (next test): the sleeve comes off 2.4e-4 s late and turns at 32 rad/s.
    assert np.all(error[data[:, 0] < 0.2] < 5e-3)
    assert np.all(error < [9e-3, 5.1e-3])
    assert traj.q[-1, 0] == pytest.approx(data[-1, 1], rel=0.05)
