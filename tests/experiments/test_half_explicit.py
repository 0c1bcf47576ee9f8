"""Examples of the half-explicit scheme: every expected number, the files, and where they come from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments import common
from experiments.half_explicit import fig_bouncing_ball, fig_impacting_bar, fig_slider_crank
from experiments.references import one_contact
from experiments.references.slider_crank import Data, event_driven
from nsjax import models
from nsjax.core.step import mass_matrix


def test_exact_ball_bounces_where_it_should() -> None:
    t = np.linspace(0.0, 2.0, 200_001)
    height = fig_bouncing_ball.exact(t)
    assert height.min() > -1e-9  # rounding of parabolas that start at the table
    lowest = t[1:-1][(height[1:-1] < height[:-2]) & (height[1:-1] <= height[2:]) & (height[1:-1] < 1e-4)]
    first = math.sqrt(2 / 9.81)
    hits = first * np.array([1.0, 2.0, 2.5, 2.75])  # flights halve with the velocities
    np.testing.assert_allclose(lowest[: len(hits)], hits, atol=1e-5)
    assert np.all(height[t > 3 * first] == 0.0)
    assert height.max() == 1.0
    second_hop = height[(t > first) & (t < 2 * first)].max()
    assert second_hop == pytest.approx(0.25, abs=1e-9)


def test_bar_has_the_frequencies_and_the_inertia_of_a_free_bar() -> None:
    problem = models.elastic_bar(**{**models.STEEL_BAR, "elements": 40})
    system, p, state = problem
    mass = np.asarray(mass_matrix(system, state.q, p))
    assert mass.sum() == pytest.approx(7800 * 3.14e-4 * 1.0)
    place = np.linspace(0.0, 1.0, 41)
    assert place @ mass @ place == pytest.approx(7800 * 3.14e-4 / 3)  # linear fields are exact
    np.testing.assert_allclose(system.force(0.0, state.q, 0 * state.q, p), 0.0, atol=1e-6)
    stretched = np.asarray(system.force(0.0, 1e-3 * place, 0 * place, p))
    tension = 2.1e11 * 3.14e-4 * 1e-3
    np.testing.assert_allclose(stretched, tension * np.eye(41)[0] - tension * np.eye(41)[-1], atol=1e-6)
    assert float(system.potential(0.0, 1e-3 * place, p)) == pytest.approx(tension * 1e-3 / 2)
    # the highest mode of consistent linear elements: neighbours move against each other
    wave = math.sqrt(2.1e11 / 7800)
    found = fig_impacting_bar.largest_frequency(problem)
    assert found == pytest.approx(math.sqrt(12) * wave * 40, rel=1e-9)
    damped = problem.replace(damping=5e-8).params
    np.testing.assert_allclose(
        system.force(0.0, 0 * place, 1e-3 * place, damped), 5e-8 * stretched, rtol=1e-12, atol=1e-9
    )


def test_recorded_angles_are_those_of_the_event_driven_motion() -> None:
    rubbing = event_driven(Data(), (0.01, 0.02, 0.03, 0.04, 0.05, 0.1)).x[:, 1]
    # six printed digits, of a reference certain to 5e-7
    np.testing.assert_allclose(fig_slider_crank.TABLE_6, rubbing[:5], atol=1e-6)
    expected = common.load_expected(fig_slider_crank.__file__)
    assert expected["MBSim, 1e-04: theta2(0.1) [rad]"]["value"] == pytest.approx(rubbing[5], abs=1e-8)
    times = (0.05, 0.1, 0.15, 0.2)
    smooth = event_driven(Data(friction=0.0), times).x[:, 1]
    for time, angle in zip(times, smooth, strict=True):
        recorded = expected[f"Siconos: theta2({time:g}) [rad]"]["value"]
        assert recorded == pytest.approx(angle, abs=1e-8)


def test_reference_with_one_contact_is_exact() -> None:
    """A ball thrown along the table that bounces with friction: parabolas, and a slip that an impulse of
    ``mu`` times the normal one slows; then a body without rebound that rests until it is pulled off.
    """
    e, mu, gravity = 0.5, 0.1, 9.81
    ball = one_contact.Mechanics(
        mass=lambda q: np.eye(2), force=lambda q, v: np.array([0.0, -gravity]), gap=lambda q: float(q[1]),
        normal=lambda q: np.array([0.0, 1.0]), tangent=lambda q: np.array([1.0, 0.0]),
        restitution=e, friction=mu, holds=False,
    )  # fmt: skip
    fall = math.sqrt(2 / gravity)
    speed, after = gravity * fall, 2.0 - mu * (1 + e) * gravity * fall
    q, v, impacts = one_contact.motion(
        ball, np.array([0.0, 1.0]), np.array([2.0, 0.0]), np.array([0.0, fall + 0.1])
    )
    assert impacts == 1
    rise = e * speed * 0.1 - gravity / 2 * 0.01
    np.testing.assert_allclose(q[-1], [2.0 * fall + after * 0.1, rise], atol=1e-12)
    np.testing.assert_allclose(v[-1], [after, e * speed - gravity * 0.1], atol=1e-12)
    spring = one_contact.Mechanics(  # falls, rests where the spring pulls down, q'' = -(q - 0.1)
        mass=lambda q: np.eye(2), force=lambda q, v: np.array([q[1] - q[0], -q[1]]),
        gap=lambda q: float(q[0]), normal=lambda q: np.array([1.0, 0.0]), tangent=None,
        restitution=0.0, friction=0.0, holds=True,
    )  # fmt: skip
    # the second mass swings by itself as cos(t) from -1: the first rests until pi / 2 and follows then
    q, v, impacts = one_contact.motion(
        spring, np.array([1e-9, -1.0]), np.array([-1.0, 0.0]), np.array([0.0, math.pi / 2 + 0.5])
    )
    assert impacts == 1
    late = 0.5  # q0'' + q0 = sin(s): q0 = (sin(s) - s cos(s)) / 2
    np.testing.assert_allclose(q[-1, 0], (math.sin(late) - late * math.cos(late)) / 2, atol=1e-8)
