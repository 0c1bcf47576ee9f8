"""Moreau's midpoint rule on smooth and bilaterally constrained motion: closed forms, DOP853."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import System, schemes
from tests.references import slope
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


def test_auto_takes_the_forecast_exactly_where_positions_are_not_a_vector_space():
    p = {"mass": 1.0, "damping": 1.0}

    def end(system, choice):
        scheme = schemes.moreau(force_velocity=choice)
        return run(system, p, [2.0], [0.5], 1e-2, 100, every=100, scheme=scheme).v[-1, 0]

    assert end(PENDULUM, "auto") == end(PENDULUM, "start")
    assert end(TURNED, "auto") == end(TURNED, "midpoint")
    assert abs(end(PENDULUM, "start") - end(PENDULUM, "midpoint")) > 1e-4
    assert end(TURNED, "midpoint") == pytest.approx(end(PENDULUM, "midpoint"), abs=1e-14)


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
