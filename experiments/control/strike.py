"""A slider-crank that strikes its guide at a wanted time and speed: run, and the motion by other means."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import models, schemes

from ..references.slider_crank import Data, event_driven

NAMES = ("first torque [N m]", "second torque [N m]")
SWITCH, END = 4e-3, 8e-3
"""Instant at which the torque on the crank changes, in flight after the first strike, and end [s]."""

STRIKE = 2
"""The strike that is aimed at, counted from zero: two lie before it, one of them before the change."""

CORNERS = 2
"""Corners of the slider that strike a wall at one instant; the list of impacts holds both."""

MOST = 320
"""Steps that the program takes."""

SCHEME = schemes.localized(schemes.half_explicit(), changes=True)


def run(numbers: Any, dt: Any, steps: int, every: int) -> nsjax.Trajectory:
    """The motion with the first torque until `SWITCH`, then with the second one."""
    torque = nsjax.table(jnp.array([0.0, SWITCH]), jnp.stack([numbers[0], numbers[1]]), kind="held")
    problem = models.slider_crank()
    return nsjax.simulate(
        problem.system, problem.params, problem.state, SCHEME, dt=dt, steps=steps, every=every,
        events=CORNERS * (STRIKE + 1), inputs={"torque": torque},
    )  # fmt: skip


def strike(numbers: Any, steps: Any) -> jax.Array:
    """Time [s] and speed [m/s] of the strike (2,), not a number if it does not come.

    Args:
        numbers: in the order of `NAMES`.
        steps: until `END`, at most `MOST`. So many are always made, and one program serves all numbers of
            steps; what comes after the strike does not move it.
    """
    found: Any = run(numbers, END / steps, MOST, MOST).events
    return jnp.stack([found.time[-1], -found.rate_before[-1]])


def motion_strike(numbers: Any) -> np.ndarray:
    """The same by the event-driven reference: two angles, corners of a wall as one contact."""
    first, second = (Data(torque=float(torque)) for torque in numbers)
    # the first strike lies before the change
    turned = tuple(float(x) for x in event_driven(first, (SWITCH,)).x[-1])
    found = event_driven(second, (END - SWITCH,), start=turned).events[STRIKE - 1]
    return np.array([SWITCH + found.time, -found.before])
