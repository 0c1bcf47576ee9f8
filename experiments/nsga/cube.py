"""The flexible cube of [C section 4.4] on its floor.

Runs begin with the last whole step before contact: the schemes integrate constant accelerations exactly,
and the cube falls without strain. Errors refer to the whole window (0, 0.3) s of the paper, solves per step
to the steps that are run.
"""

from __future__ import annotations

import math

import numpy as np

import nsjax
from nsjax import Problem, models

from . import published

TIME, MASS, GRAVITY, HEIGHT = 0.3, 1e-3, 9.81, 0.3
CONTACT = math.sqrt(2.0 * HEIGHT / GRAVITY)
STEPS = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
CORNER, TOP = 2, -1
"""Heights of a corner of the lower face and of the opposite one of the upper face, in ``q``."""


def steps_before(dt: float) -> int:
    """Steps of the free fall that are not run."""
    return math.floor(CONTACT / dt) - 1


def problem(dt: float) -> Problem:
    """The cube a step and a part of one before contact."""
    t = steps_before(dt) * dt
    return models.flexible_cube(
        height=HEIGHT - 0.5 * GRAVITY * t * t,
        velocity=np.array([0.0, 0.0, -GRAVITY * t]),
        initial_time=t,
    )


def run(name: str, dt: float, end: float = TIME) -> published.Run:
    """One variant, to the time ``end``."""
    return published.run(problem(dt), name, dt, (round(end / dt) - steps_before(dt)) * dt, MASS)


def whole(traj: nsjax.Trajectory, dt: float, part: str, k: int) -> np.ndarray:
    """An entry of ``q`` or ``v`` on the grid from 0 to 0.3 s, the free fall in closed form."""
    t = dt * np.arange(steps_before(dt))
    found = np.asarray(getattr(traj, part))[:, k]
    fallen = -0.5 * GRAVITY * t * t if part == "q" else -GRAVITY * t
    begin = found[0] + 0.5 * GRAVITY * float(traj.t[0]) ** 2 if part == "q" else 0.0
    return np.concatenate([begin + fallen, found])
