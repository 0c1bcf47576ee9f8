"""Derivatives of a box that rocks without rebound, against motions integrated from event to event."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import gradient_notes, models, schemes
from tests.design import each_family
from tests.gradients import rocking
from tests.gradients.program import sensitivity

COUNTS = (
    250, 283, 331, 389, 449, 521, 607, 701, 809, 947, 1097, 1277, 1481, 1723, 2003, 2333, 2503, 2711, 3163,
    3673, 5261, 5981,
)  # fmt: skip
STARTS = {
    "falls flat": ((0.02, 0.25, 0.5, 9.81, 0.2, 0.1), 0.25),
    "rocks twice": ((0.02, 0.25, 0.0, 9.81, 0.1, 0.3), 0.25),
    "rocks three times": ((0.005, 0.2, 0.0, 9.81, 0.1, 0.3), 0.25),
    "turns into the plane": ((0.01, 0.1, -1.0, 9.81, 0.12, 0.3), 0.1),
    "its mirror image": ((0.01, -0.1, 1.0, 9.81, 0.12, 0.3), 0.1),
}
LENGTH = STARTS["falls flat"][0][5]
CHATTERS = "ggl_decoupled", "ggl_unified"
"""After a flat fall these hop from corner to corner for good, at speeds of the order of the step, as each
correction of one corner lifts the other."""


@pytest.mark.parametrize("start", STARTS)
@each_family("name")
def test_no_step_count_stands_out(name: str, start: str) -> None:
    """Errors over step size within five times their median, without a note; what chatters is noted, and
    right where it is not.
    """
    x, time = STARTS[start]
    _, exact = rocking.reference(x, time)
    size = np.linalg.norm(exact[:, :6])
    chatters = start == "falls flat" and name in CHATTERS
    trend = []
    for n in COUNTS:
        found = sensitivity(
            rocking.SYSTEM, rocking.build, schemes.REGISTRY[name].factory(), np.asarray(x), time, n
        )
        assert found.notes in ((0, gradient_notes.COUPLED) if chatters else (0,))
        error = found.jacobian[[1, 2, 4, 5]] - exact[:, :6]
        if chatters:
            # velocities are those of the chatter, and so are their derivatives; where a note is set, those
            # of positions may be wrong (ggl_decoupled at 389 steps: five times the derivative)
            least = np.linalg.norm(found.x[4:]) / LENGTH
            assert np.linalg.norm(error[2:]) <= least + 1e-8
            error = error[:2]
        if found.notes == 0:
            trend.append(n * np.linalg.norm(error) / size)
    # solvers are exact to 1e-11 of the velocities, and over a step of 4e-5 s: below 1e-8 there is no trend
    assert np.max(trend) <= max(5.0 * np.median(trend), 1e-8 * COUNTS[-1])
    assert np.max(trend) <= 50.0  # in steps: first order, not a constant error with a flat trend


SPATIAL = models.block().system


def tilted(x):
    """A box in space above a rough plane, tilted about its second axis: lowest edge, tilt, spin."""
    height, angle, spin = x
    none, size = 0.0 * height, np.array([0.2, 0.15, 0.1])
    lowest = height + 0.5 * (size[0] * jnp.sin(angle) + size[2] * jnp.cos(angle))
    turn = [jnp.cos(0.5 * angle), none, jnp.sin(0.5 * angle), none]
    problem = models.block(
        size=size, initial_q=jnp.stack([none, none, lowest, *turn]),
        initial_v=jnp.stack([none, none, none, none, spin, none]),
    )  # fmt: skip
    return problem.params, problem.state


@pytest.mark.slow
def test_a_box_in_space_that_has_fallen_flat_does_not_move() -> None:
    """By an edge and a face, or by its face at once: velocities are zero whatever the start."""
    for start in ((0.02, 0.25, 0.5), (0.02, 0.0, 0.0)):
        for n in (250, 500, 1000):
            found = sensitivity(
                SPATIAL, tilted, schemes.nsga_decoupled(), np.array(start), 0.25, n
            )  # fmt: skip
            assert not found.notes & gradient_notes.SERIOUS
            assert np.max(np.abs(found.x[7:])) < 1e-11
            assert np.max(np.abs(found.jacobian[7:])) < 1e-11  # of the contact solver
