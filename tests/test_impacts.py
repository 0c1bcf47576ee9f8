"""Instants of impacts inside their steps, and what is no impact."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.analysis import impact_table

FALL = np.sqrt(2.0 / 9.81)
"""Time of a fall of one metre [s]."""


@pytest.mark.parametrize("name", ["moreau", pytest.param("generalized_alpha", marks=pytest.mark.slow)])
def test_the_first_impact_of_a_ball_to_second_order(name: str) -> None:
    """The end of the step is off by up to 1e-2 s; the instant by ``h^2 a / r``, 1e-4 s, at most."""
    ball = models.bouncing_ball(height=1.0, restitution=0.6)
    traj = nsjax.simulate(*ball, getattr(schemes, name)(), dt=1e-2, steps=60, events=2)
    assert int(traj.events.count) == 1
    assert abs(float(traj.events.time[0]) - FALL) < 1e-2**2 * 9.81 / (9.81 * FALL)
    assert abs(float(traj.t[np.argmax(traj.impacts[:, 0])]) - FALL) > 1e-3  # the end of the step


@pytest.mark.slow
def test_impacts_of_one_step_are_listed_by_their_instants() -> None:
    """A tilted block that falls flat within one step: the lower corner, last in the model, strikes
    first.
    """
    tilt, height, step = 1e-3, 0.1, 1e-2
    block = models.block(dimension=2, initial_q=np.array([0.0, height + 0.05, tilt]))
    traj = nsjax.simulate(*block, schemes.moreau(), dt=step, steps=20, events=2)
    contacts = [block.system.labels.contacts[k] for k in np.asarray(traj.events.contact)]
    assert contacts == ["corner --", "corner +-"]
    times = np.asarray(traj.events.time)
    # its corners lie 0.2 sin(tilt) apart, and fall with sqrt(2 g h); the step's polygon is off by h a / v
    apart = 0.2 * np.sin(tilt) / np.sqrt(2.0 * 9.81 * height)
    assert times[1] - times[0] == pytest.approx(apart, rel=step * 9.81 / np.sqrt(2.0 * 9.81 * height))
    assert np.ceil(times[0] / step) == np.ceil(times[1] / step)


@pytest.mark.parametrize("speed", [-1.0, 0.0])
def test_time_zero_is_no_impact(speed: float) -> None:
    """A ball that lies on the table, and one that starts on it with a blow: neither was ever open."""
    ball = models.bouncing_ball(height=0.0, restitution=0.5)
    start = nsjax.State(t=0.0, q=ball.state.q, v=np.array([speed]))
    traj = nsjax.simulate(ball.system, ball.params, start, schemes.moreau(), dt=1e-3, steps=150, events=4)
    if speed:  # it has bounced, once at the start and once after its flight of 2 e v / g = 0.102 s
        assert traj.v[1, 0] == pytest.approx(0.5, abs=2e-2)
        assert float(impact_table(traj).records[0].time) == pytest.approx(1.0 / 9.81, abs=3e-3)
    assert int(traj.events.count) == int(traj.impacts.sum()) == (1 if speed else 0)
