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
"""Number of the controlled strike, counted from zero; one of the two earlier strikes is before `SWITCH`."""

CORNERS = 2
"""Number of corners that hit a wall at one instant; the list of impacts contains both."""

MOST = 320
"""Number of steps of the program."""

SCHEME = schemes.localized(schemes.half_explicit(), changes=True)


def run(numbers: Any, dt: Any, steps: int, every: int) -> nsjax.Trajectory:
    """The motion with the first torque until `SWITCH`, then with the second one."""
    torque = nsjax.signal(jnp.array([0.0, SWITCH]), jnp.stack([numbers[0], numbers[1]]), kind="held")
    problem = models.slider_crank()
    return nsjax.simulate(
        problem.system, problem.params, problem.state, SCHEME, dt=dt, steps=steps, every=every,
        events=CORNERS * (STRIKE + 1), inputs={"torque": torque},
    )  # fmt: skip


def strike(numbers: Any, steps: Any) -> jax.Array:
    """Time [s] and speed [m/s] of the strike (2,), not a number without a strike.

    Args:
        numbers: in the order of `NAMES`.
        steps: number of steps until `END`, at most `MOST`. The program always makes `MOST` steps and serves
            all numbers of steps; the motion after the strike does not influence it.
    """
    found: Any = run(numbers, END / steps, MOST, MOST).events
    return jnp.stack([found.time[-1], -found.rate_before[-1]])


def motion_strike(numbers: Any) -> np.ndarray:
    """The strike by the event-driven reference, with two angles and one contact per wall."""
    first, second = (Data(torque=float(torque)) for torque in numbers)
    # the first strike lies before the change
    turned = tuple(float(x) for x in event_driven(first, (SWITCH,)).x[-1])
    found = event_driven(second, (END - SWITCH,), start=turned).events[STRIKE - 1]
    return np.array([SWITCH + found.time, -found.before])
