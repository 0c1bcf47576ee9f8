"""Moments of contacts that a step chooses among many: friction against turning beside a capacity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes
from nsjax.multibody import assemble, body, contact_group, hinge, plane, sphere

SLOW = pytest.mark.slow
MASS, BALL, G = 2.0, 0.2, 9.0


def row_of_balls(dimension: int, coordinates: str, capacity: int | None, friction: Any) -> Problem:
    """Balls in a row on the ground, of which the first rolls into the others, and an arm with dry friction
    that falls onto the last one.
    """
    up = (0.0,) * (dimension - 2)
    names = [f"ball{k}" for k in range(dimension + 2)]
    inertia: Any = BALL if dimension == 2 else (BALL,) * 3
    balls = [body(x, mass=MASS, inertia=inertia) for x in names]
    own: Any = 0.02 if dimension == 2 else (0.01, 0.02, 0.03)
    axis = {} if dimension == 2 else {"axis": (0.0, 1.0, 0.0)}
    arm = body("arm", mass=1.0, inertia=own, com=(0.2, *up, 0.0))
    last = 0.205 * (len(names) - 1)
    pin = hinge("pin", "ground", "arm", at=(last - 0.3, *up, 0.4), friction=0.01, **axis)
    shapes = [*(sphere(x, 0.1) for x in names), sphere("arm", 0.05, at=(0.4, *up, 0.0)), plane()]
    group = contact_group("all", shapes, friction=friction, restitution=0.1, capacity=capacity)
    start: dict = {
        x: (0.205 * k + 0.05 * (k > 0), *(0.001 * k for _ in up), 0.1, *((0.0,) if dimension == 2 else ()))
        for k, x in enumerate(names)
    }
    moving = (1.0, 0.0, -10.0) if dimension == 2 else (1.0, 0.0, 0.0, 0.0, 10.0, 3.0)
    start["ball0"] = start["ball0"], moving
    gravity = (0.0, *up, -G)
    return assemble(*balls, arm, pin, group, gravity=gravity, coordinates=coordinates, start=start)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "coordinates", "friction"),
    [
        (2, "joint", (0.3, 0.0, 0.002)), pytest.param(2, "absolute", (0.3, 0.0, 0.002), marks=SLOW),
        pytest.param(3, "joint", (0.3, 0.01, 0.002), marks=SLOW),
        pytest.param(3, "absolute", (0.3, 0.01, 0.002), marks=SLOW),
        pytest.param(3, "joint", (0.3, 0.01, 0.0), marks=SLOW),
    ],
)  # fmt: skip
def test_chosen_contacts(dimension, coordinates, friction) -> None:
    """A step that evaluates the near pairs alone finds the motion, the moments and the impacts of a step
    with all of them.
    """
    found = []
    for capacity in (dimension + 3, None):
        problem = row_of_balls(dimension, coordinates, capacity, friction)
        found.append(nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=200, every=20, events=20))
        found[-1].raise_for_status()
    few, every = found
    assert few.system.chosen.system.nd < few.system.nd == every.system.nd
    assert few.system.labels == every.system.labels
    assert np.max(np.abs(every.drag_impulse)) > 1e-4
    assert int(np.sum(every.impacts)) > 1
    names = ("q", "v", "impulse_normal", "impulse_tangential", "drag_impulse", "drag_force", "closed_time")
    for name in names:
        # the same rows, solved together with others in another order
        np.testing.assert_allclose(getattr(few, name), getattr(every, name), atol=1e-9, err_msg=name)
