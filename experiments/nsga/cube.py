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
from nsjax.models.flexible_cube import Brick

from . import published

TIME, MASS, GRAVITY, HEIGHT = 0.3, 1e-3, 9.81, 0.3
CONTACT = math.sqrt(2.0 * HEIGHT / GRAVITY)
STEPS = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
CORNER, TOP = 2, -1
"""Indices in ``q`` of the heights of a corner of the lower face and of the opposite upper corner."""


def steps_before(dt: float) -> int:
    """Number of steps of the free fall that are skipped."""
    return math.floor(CONTACT / dt) - 1


def problem(dt: float) -> Problem:
    """The cube between one and two steps before contact, with the elements of the paper."""
    t = steps_before(dt) * dt
    return models.flexible_cube(
        element="displacement",
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


def bounce(r: published.Run) -> dict[str, float]:
    """Numbers of the bounce that the specification gives."""
    traj = r.traj
    impulse = np.asarray(traj.impulse_normal).sum(axis=1)
    speed, energy = float(traj["centre_dz"][-1]), np.asarray(traj["energy"])
    return {
        "last contact [s]": float(traj.t[np.flatnonzero(impulse > 0)[-1]]),
        "height of the centroid [m]": float(traj["centre_z"][-1]),
        "speed of the centroid [m/s]": speed,
        "least height of the top [m]": float(np.asarray(traj.q)[:, TOP].min()),
        "impulse [N s]": float(impulse.sum()),
        "momentum minus impulses [N s]": MASS * (speed + GRAVITY * TIME) - float(impulse.sum()),
        "energy above that of the start, at most [J]": float(energy.max() - energy[0]),
        "change of energy [J]": float(energy[-1] - energy[0]),
        "least gap [m]": float(np.asarray(traj.gap).min()),
    }


def solid(traj: nsjax.Trajectory, time: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Row nearest to ``time``: its time, positions of the nodes (6, 6, 6, 3), mean equivalent stress of the
    elements (5, 5, 5) [N/m^2].
    """
    row = int(np.argmin(np.abs(np.asarray(traj.t) - time)))
    brick, q = Brick((5, 5, 5), "displacement"), traj.q[row]
    stress = np.asarray(brick.stress(q, traj.params)).mean(axis=0).reshape(brick.elements)
    return float(traj.t[row]), np.asarray(q).reshape(*brick.grid, 3), stress


def faces(places: np.ndarray, stress: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners (quads, 4, 3) of the faces seen from the front, the right and above, and the stress of their
    elements.
    """
    quads, colours = [], []
    for axis, last in ((1, False), (0, True), (2, True)):
        layer = np.take(places, -1 if last else 0, axis=axis)
        ring = [layer[:-1, :-1], layer[1:, :-1], layer[1:, 1:], layer[:-1, 1:]]
        quads.append(np.stack(ring, axis=2).reshape(-1, 4, 3))
        colours.append(np.take(stress, -1 if last else 0, axis=axis).reshape(-1))
    return np.concatenate(quads), np.concatenate(colours)
