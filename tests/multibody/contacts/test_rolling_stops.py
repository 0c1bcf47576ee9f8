"""Derivatives of where a disc stops that rolling resistance brakes, at every part of a step in which it
stops.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from tests.multibody.contacts.test_turning_friction import (
    DISC,
    MASS,
    RADIUS,
    SCHEMES,
    G,
    moving,
    rolling_at,
    rolling_body,
    with_number,
)

ARM, DT, STEPS = 0.05, 0.02, 30
BRAKE = G * ARM / (RADIUS * (1.0 + DISC / (MASS * RADIUS**2)))
"""It slows down by so much [m/s^2]."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme", ["theta", *(pytest.param(x, marks=pytest.mark.slow) for x in SCHEMES if x != "theta")]
)
def test_the_derivative_does_not_hang_on_the_part_of_a_step(scheme: str) -> None:
    """It stops after ``v^2 / 2 a`` at the time ``T = v / a``. The stop is an event: the step that ends the
    rolling is shifted by its time, which leaves ``((T - t_k) / T)^2`` of the derivative by the coefficient,
    with the time t_k of the grid at which it is last seen to roll; without the shift ``dt / T`` is left.
    """
    problem = rolling_body(2, "joint")

    def end(x: jax.Array) -> jax.Array:
        own = moving(with_number(problem, "rolling", x[0]), rolling_at(2, x[1]))
        return nsjax.simulate(*own, SCHEMES[scheme], dt=DT, steps=STEPS, save=[]).q[-1, 0]

    slopes = jax.jit(jax.jacfwd(end))
    for steps in (25.0, 25.25, 25.5, 25.75):
        speed = BRAKE * DT * steps
        found = slopes(jnp.array([ARM, speed])) / np.array([-(speed**2) / ARM, 2.0 * speed])
        relative = np.asarray(found) * 2.0 * BRAKE - 1.0
        assert abs(relative[0]) < 1.001 / steps**2, (steps, relative)
        assert abs(relative[1]) < 1e-9, (steps, relative)
