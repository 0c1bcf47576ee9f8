"""Motions at walls with their event-driven references: a forced oscillator that strikes a wall, a mass on
a rough, tilted table that swings, and a double pendulum of two points on rods at a rough wall.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import State, System
from nsjax.contact import ContactLaw
from tests.gradients import pendulum
from tests.gradients.hybrid import Mechanics, Motion

GRAVITY = 9.81


class Oscillator(Mechanics):
    """Two masses between springs, the first forced and at a wall without friction."""

    NAMES = ("k", "c", "drive", "omega", "wall", "rebound", "x", "y")
    VALUES = np.array([40.0, 25.0, 12.0, 5.0, 0.15, 0.7, 0.02, -0.1])
    TIME = 1.4
    mu = (0.0,)

    def __init__(self, p) -> None:
        self.p = dict(zip(self.NAMES, map(float, p), strict=True))
        self.e = (self.p["rebound"],)

    def mass(self, q):
        return np.eye(2)

    def force(self, t, q, v):
        p = self.p
        between = p["c"] * (q[0] - q[1])
        return np.array([p["drive"] * np.sin(p["omega"] * t) - p["k"] * q[0] - between, between])

    def gaps(self, t, q):
        return np.array([self.p["wall"] - q[0]])

    def rows(self, q):
        return np.array([[-1.0, 0.0]]), np.zeros((1, 2))

    def drift(self, t, q, v):
        return np.zeros((2, 1))

    @classmethod
    def motion(cls, p, end: float):
        """State at the end, and the events."""
        run = Motion(cls(p), p[6:8], np.zeros(2))
        return run.run(end), run.events

    @staticmethod
    def build(p):
        """Parameters and start."""
        return dict(zip(Oscillator.NAMES, p, strict=True)), State(t=0.0, q=p[6:8], v=0.0 * p[6:8])


def _forced(t, q, v, p):
    between = p["c"] * (q[0] - q[1])
    return jnp.stack([p["drive"] * jnp.sin(p["omega"] * t) - p["k"] * q[0] - between, between])


Oscillator.SYSTEM = System(
    nq=2, nv=2, nc=1, nt=0, mass=lambda q, p: jnp.eye(2), force=_forced,
    gap=lambda t, q, p: (p["wall"] - q[0])[None], law=lambda p: ContactLaw(restitution=p["rebound"]),
)  # fmt: skip


class Ledge(Mechanics):
    """A mass on a rough, tilted table that swings: it slides, sticks, is thrown off, and lands."""

    NAMES = ("swing", "omega", "mu", "tilt", "sway", "beat", "u")
    VALUES = np.array([0.05, 17.0, 0.35, 0.25, 4.0, 11.0, -0.3])
    TIME = 0.83
    e = (0.0,)

    def __init__(self, p) -> None:
        self.p = dict(zip(self.NAMES, map(float, p), strict=True))
        self.mu = (self.p["mu"],)

    def mass(self, q):
        return np.eye(2)

    def force(self, t, q, v):
        p = self.p
        along = GRAVITY * np.sin(p["tilt"]) + p["sway"] * np.sin(p["beat"] * t)
        return np.array([along, -GRAVITY * np.cos(p["tilt"])])

    def gaps(self, t, q):
        return np.array([q[1] - self.p["swing"] * np.sin(self.p["omega"] * t)])

    def rows(self, q):
        return np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])

    def moving(self, t, q):
        p = self.p
        return np.array([[-p["swing"] * p["omega"] * np.cos(p["omega"] * t)], [0.0]])

    def drift(self, t, q, v):
        p = self.p
        return np.array([[p["swing"] * p["omega"] ** 2 * np.sin(p["omega"] * t)], [0.0]])

    @classmethod
    def motion(cls, p, end: float):
        """State at the end, and the events."""
        run = Motion(cls(p), np.zeros(2), [p[6], p[0] * p[1]], (0,))
        return run.run(end), run.events

    @staticmethod
    def build(p):
        """Parameters and start, on the table."""
        numbers = dict(zip(Ledge.NAMES, p, strict=True))
        return numbers, State(t=0.0, q=0.0 * p[:2], v=jnp.stack([p[6], p[0] * p[1]]))


def _pull(t, q, v, p):
    along = GRAVITY * jnp.sin(p["tilt"]) + p["sway"] * jnp.sin(p["beat"] * t)
    return jnp.stack([along, -GRAVITY * jnp.cos(p["tilt"])])


Ledge.SYSTEM = System(
    nq=2, nv=2, nc=1, nt=1, mass=lambda q, p: jnp.eye(2), force=_pull,
    gap=lambda t, q, p: q[1:] - p["swing"] * jnp.sin(p["omega"] * t),
    slip=lambda t, q, v, p: v[:1, None], law=lambda p: ContactLaw(friction=p["mu"]),
)  # fmt: skip


class Rods:
    """The pendulum of `pendulum` as two points on rods, whose lengths are constraints."""

    NAMES = pendulum.NAMES
    VALUES = np.array(pendulum.SLIP.values)
    TIME = pendulum.SLIP.time

    @staticmethod
    def points(q, v, length, sin, cos):
        """Positions and velocities (8,) of the points at angles and their rates."""
        x, z = sin(q[0]), -cos(q[0])
        u, w = cos(q[0]) * v[0], sin(q[0]) * v[0]
        return [
            x, z, x + length * sin(q[1]), z - length * cos(q[1]),
            u, w, u + length * cos(q[1]) * v[1], w + length * sin(q[1]) * v[1],
        ]  # fmt: skip

    @staticmethod
    def motion(p, end: float):
        """State of the points at the end, and the impacts."""
        x, _, times = pendulum.motion(tuple(map(float, p)), end)
        points = Rods.points(x[:2], x[2:], float(p[8]), np.sin, np.cos)
        return np.array(points), [(t, "impact", 0) for t in times]

    @staticmethod
    def build(p):
        """Parameters and start."""
        x = jnp.stack(Rods.points(p[:2], p[2:4], p[8], jnp.sin, jnp.cos))
        return dict(zip(Rods.NAMES[4:], p[4:], strict=True)), State(t=0.0, q=x[:4], v=x[4:])


def _points_mass(q, p):
    one = 1.0 + 0.0 * p["bob"]
    return jnp.diag(jnp.stack([one, one, p["bob"], p["bob"]]))


def _points_force(t, q, v, p):
    none = 0.0 * p["bob"]
    return -p["gravity"] * jnp.stack([none, 1.0 + none, none, p["bob"]])


def _lengths(t, q, p):
    rod = q[2:] - q[:2]
    return 0.5 * jnp.stack([jnp.sum(q[:2] ** 2) - 1.0, jnp.sum(rod * rod) - p["length"] ** 2])


Rods.SYSTEM = System(
    nq=4, nv=4, nc=1, nt=1, nb=2, mass=_points_mass, force=_points_force, constraint=_lengths,
    gap=lambda t, q, p: (p["wall"] - q[2])[None], slip=lambda t, q, v, p: v[3:, None],
    law=lambda p: ContactLaw(restitution=p["restitution"], friction=p["friction"]),
)  # fmt: skip
