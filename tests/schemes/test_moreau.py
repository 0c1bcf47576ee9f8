"""Moreau's midpoint rule on smooth and bilaterally constrained motion: closed forms, DOP853."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import System, models, schemes
from tests.references import slope
from tests.references.slider_crank import Data, event_driven
from tests.schemes.small_systems import LIFT, G, run, unit_mass

# --------------------------------------------------------------------------- smooth motion


def pendulum_force(t, q, v, p):
    return -G * jnp.sin(q) - p["damping"] * v


def shift(q, xi):
    """Addition that the scheme cannot know to be addition: it must assume rotations."""
    return q + xi


PENDULUM = System(nq=1, nv=1, mass=unit_mass, force=pendulum_force)
TURNED = System(nq=1, nv=1, mass=unit_mass, force=pendulum_force, retract=shift)
DIVISIONS = (97, 137, 193, 271, 383, 541, 769, 1087, 1531, 2161)  # steps per second, not nested


@functools.cache
def pendulum_reference(damping: float) -> np.ndarray:
    rate = lambda t, x: [x[1], -G * np.sin(x[0]) - damping * x[1]]  # noqa: E731
    answer = solve_ivp(rate, (0, 2), [2.0, 0.5], method="DOP853", rtol=1e-13, atol=1e-13, t_eval=[1.0, 2.0])
    return answer.y.T


def pendulum_errors(system, damping, scheme):
    errors = []
    for n in DIVISIONS:
        traj = run(
            system, {"mass": 1.0, "damping": damping}, [2.0], [0.5], 1 / n, 2 * n, every=n, scheme=scheme
        )
        found = np.concatenate([traj.q, traj.v], axis=1)[1:]
        errors.append(np.abs(found - pendulum_reference(damping)).max())
    return np.array(errors)


# A force that depends on the velocity is taken at the old one by "start": first order. Otherwise both
# are the explicit midpoint rule in q and v: second order.
@pytest.mark.parametrize(
    ("damping", "choice", "order"),
    [(0.0, "start", 2), (0.0, "midpoint", 2), (0.5, "start", 1), (0.5, "midpoint", 2), (1.0, "start", 1),
     (1.0, "midpoint", 2)],
)  # fmt: skip
def test_order_on_a_pendulum(damping, choice, order):
    errors = pendulum_errors(PENDULUM, damping, schemes.moreau(force_velocity=choice))
    assert slope(1 / np.array(DIVISIONS), errors) == pytest.approx(order, abs=0.1)


@pytest.mark.slow
def test_order_on_a_double_pendulum_with_gyroscopic_forces():
    # The slider-crank in a guide so wide that it never touches: mass matrix and gyroscopic forces.
    wide = 10.0
    x = event_driven(Data(clearance=wide), (0.025, 0.05)).x
    for choice, order in (("start", 1), ("midpoint", 2)):
        errors = []
        for n in 8 * np.array(DIVISIONS):  # 150 rad/s
            problem = models.slider_crank(clearance=wide)
            scheme = schemes.moreau(force_velocity=choice)
            traj = nsjax.simulate(*problem, scheme, dt=0.025 / n, steps=2 * n, every=n, save=[])
            angles = np.abs(traj.q[1:, :2] - x[:, :2]).max()
            errors.append([angles, np.abs(traj.v[1:, :2] - x[:, 2:]).max()])
        errors = np.array(errors)
        for column in range(2):
            assert slope(1 / np.array(DIVISIONS), errors[:, column]) == pytest.approx(order, abs=0.1)


def test_auto_takes_the_forecast_exactly_where_positions_are_not_a_vector_space():
    p = {"mass": 1.0, "damping": 1.0}

    def end(system, choice):
        scheme = schemes.moreau(force_velocity=choice)
        return run(system, p, [2.0], [0.5], 1e-2, 100, every=100, scheme=scheme).v[-1, 0]

    assert end(PENDULUM, "auto") == end(PENDULUM, "start")
    assert end(TURNED, "auto") == end(TURNED, "midpoint")
    assert abs(end(PENDULUM, "start") - end(PENDULUM, "midpoint")) > 1e-4
    assert end(TURNED, "midpoint") == pytest.approx(end(PENDULUM, "midpoint"), abs=1e-14)


def driven_force(t, q, v, p):
    return jnp.cos(p["frequency"] * t)[None]


DRIVEN = System(nq=1, nv=1, mass=unit_mass, force=driven_force)


def test_force_is_taken_at_the_middle_of_the_step():
    w = 7.0
    errors = []
    for n in DIVISIONS:
        traj = run(DRIVEN, {"mass": 2.0, "frequency": w}, [0.0], [0.0], 1 / n, n, every=n, t=0.3)
        errors.append(abs(traj.v[-1, 0] - (np.sin(w * 1.3) - np.sin(w * 0.3)) / (2.0 * w)))
    assert slope(1 / np.array(DIVISIONS), errors) == pytest.approx(2, abs=0.02)


# ------------------------------------------------------------------- bilateral constraints


def test_constraint_that_depends_on_time():
    # A mass on a lift s = A sin(w t): position follows with the lag of first order that the velocity
    # v(t_i) = s'(t_i - dt/2) implies, the force is m (g + s'').
    a, w, m = 0.2, 9.0, 1.7
    p = {"mass": m, "amplitude": a, "frequency": w}
    errors = []
    for n in DIVISIONS:
        traj = run(LIFT, p, [0.0], [a * w], 1 / n, n)
        t = traj.t
        errors.append(np.abs(traj.q[:, 0] - a * np.sin(w * t)).max())
        assert errors[-1] <= a * w / n * 1.01
        np.testing.assert_allclose(traj.v[1:, 0], a * w * np.cos(w * (t[1:] - 0.5 / n)), atol=1e-12)
        # The first step, which starts at the true velocity, has half of the change.
        force = m * (G - a * w**2 * np.sin(w * t[1:-1]))
        np.testing.assert_allclose(traj.constraint_force[2:, 0], force, atol=m * a * w**4 / 24 / n**2 * 1.1)
    assert slope(1 / np.array(DIVISIONS), errors) == pytest.approx(1, abs=0.02)
