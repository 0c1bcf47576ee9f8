"""Impacts near the border of sticking and sliding: noted where a step does not resolve which it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nsjax import notes, schemes
from tests.gradients import particle
from tests.gradients.cases import case
from tests.gradients.program import primes_near, sensitivity

COUNTS = primes_near(101, 5, 4).ravel()
"""Twenty step counts."""

SLOPE, FRICTION, RESTITUTION, GRAVITY, END = math.radians(12.0), 0.3, 0.8, 9.81, 0.71
FALL = math.sqrt(2.0 / (GRAVITY * math.cos(SLOPE)))
"""Time from 1 m above the slope; it is hit once until `END`."""

ALONG, DOWN = GRAVITY * math.sin(SLOPE), GRAVITY * math.cos(SLOPE)
GRIP = FRICTION * (1.0 + RESTITUTION)
BORDER = (GRIP * DOWN - ALONG) * FALL
"""Speed along the slope at the start with which the impact just sticks."""

REACH = GRIP * DOWN + ALONG
"""Rate at which the motion before the impact moves it towards the border, at most [m/s^2]."""

OFFSETS = (1e-3, 7e-3, 3e-2, 0.1, 0.5)


LOCATED = "localized"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n == "moreau" else pytest.mark.slow)
        for n in [*schemes.REGISTRY, LOCATED]
    ],
)
def test_an_impact_at_the_border_is_noted(name: str) -> None:
    """Notes wherever the derivative is wrong, none where two steps resolve the impact.

    A scheme knows its margin to the border to a step, and notes it up to a step: what is noted lies
    within two.
    """
    located = schemes.localized(schemes.moreau())
    scheme = located if name == LOCATED else schemes.REGISTRY[name].factory()
    wrong = 0
    for offset in (*OFFSETS, *(-x for x in OFFSETS)):
        kind = "slip floor" if offset > 0.0 else "stick floor"
        motion = case("border", END, kind, vx=BORDER + offset, slope=SLOPE, friction=FRICTION,
                      restitution=RESTITUTION)  # fmt: skip
        exact = particle.reference(motion)[1]
        for n in COUNTS:
            found = sensitivity(particle.SYSTEM, particle.build, scheme, motion.vector(), END, n)
            off = found.jacobian[:, motion.index()] - exact
            error = np.linalg.norm(off) / np.linalg.norm(exact)
            noted = bool(found.notes & notes.KINK)
            wrong += error * n > 10.0
            assert noted or error * n < 10.0, (offset, n, error)
            assert not noted or abs(offset) < 2.0 * REACH * END / n, (offset, n, error)
    # a located impact of a parabola is met as it is
    assert wrong > 5 or name == LOCATED
