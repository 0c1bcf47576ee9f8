"""A driven two-link arm with a stop between its links, whose tip lands on a rough floor, slides, sticks,
turns and leaves; and its event-driven motion.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import State, System
from nsjax.contact import ContactLaw
from tests.gradients.hybrid import Mechanics, Motion

NAMES = ("tip", "length", "floor", "stop", "mu", "rebound", "torque", "omega", "stiffness", "a0", "b0")
GRAVITY, DAMPING = 9.81, 0.6
"""Damping acts between the links. The elbow has the mass 1, the first link the length 1."""


def _mass(q, p):
    c = p["tip"] * p["length"] * jnp.cos(q[0] - q[1])
    return jnp.stack([1.0 + p["tip"], c, c, p["tip"] * p["length"] ** 2]).reshape(2, 2)


def _force(t, q, v, p):
    m, length = p["tip"], p["length"]
    s = m * length * jnp.sin(q[0] - q[1])
    drive = p["torque"] * jnp.sin(p["omega"] * t)
    between = -p["stiffness"] * (q[0] - q[1]) - DAMPING * (v[0] - v[1])
    weight = GRAVITY * jnp.stack([(1.0 + m) * jnp.cos(q[0]), m * length * jnp.cos(q[1])])
    return jnp.stack([-s * v[1] ** 2 + drive + between, s * v[0] ** 2 - between]) - weight


def _gap(t, q, p):
    return jnp.stack([p["floor"] + jnp.sin(q[0]) + p["length"] * jnp.sin(q[1]), p["stop"] - q[1] + q[0]])


def _slip(t, q, v, p):
    along = -jnp.sin(q[0]) * v[0] - p["length"] * jnp.sin(q[1]) * v[1]
    return jnp.stack([along, 0.0 * along])[:, None]


def _law(p):
    zero = 0.0 * p["mu"]
    return ContactLaw(friction=jnp.stack([p["mu"], zero]), restitution=jnp.stack([zero, p["rebound"]]))


SYSTEM = System(nq=2, nv=2, nc=2, nt=1, mass=_mass, force=_force, gap=_gap, slip=_slip, law=_law)


def build(p):
    """Parameters and start, at rest, out of a vector in the order of `NAMES`."""
    zero = 0.0 * p[0]
    return dict(zip(NAMES, p, strict=True)), State(t=0.0, q=p[9:11], v=jnp.stack([zero, zero]))


class Arm(Mechanics):
    """The same in plain numbers."""

    def __init__(self, p) -> None:
        self.p = dict(zip(NAMES, map(float, p), strict=True))
        self.mu, self.e = (self.p["mu"], 0.0), (0.0, self.p["rebound"])

    def mass(self, q):
        m, n = self.p["tip"], self.p["length"]
        c = m * n * np.cos(q[0] - q[1])
        return np.array([[1.0 + m, c], [c, m * n * n]])

    def force(self, t, q, v):
        p, m, n = self.p, self.p["tip"], self.p["length"]
        s = m * n * np.sin(q[0] - q[1])
        between = -p["stiffness"] * (q[0] - q[1]) - DAMPING * (v[0] - v[1])
        weight = GRAVITY * np.array([(1.0 + m) * np.cos(q[0]), m * n * np.cos(q[1])])
        drive = p["torque"] * np.sin(p["omega"] * t)
        return np.array([-s * v[1] ** 2 + drive + between, s * v[0] ** 2 - between]) - weight

    def gaps(self, t, q):
        p = self.p
        return np.array([p["floor"] + np.sin(q[0]) + p["length"] * np.sin(q[1]), p["stop"] - q[1] + q[0]])

    def rows(self, q):
        arms = np.array([1.0, self.p["length"]])
        normal, tangent = arms * np.cos(q), -arms * np.sin(q)
        return np.array([normal, [1.0, -1.0]]), np.array([tangent, [0.0, 0.0]])

    def drift(self, t, q, v):
        along = np.array([1.0, self.p["length"]]) * v**2
        return -np.array([[along @ np.sin(q), 0.0], [along @ np.cos(q), 0.0]])


def motion(p, end: float) -> tuple[np.ndarray, list[tuple[float, str, int]]]:
    """Angles and their rates at the end, and the events."""
    run = Motion(Arm(p), p[9:11], np.zeros(2))
    return run.run(end), run.events


def draw(seed: int) -> tuple[np.ndarray, float, list[tuple[float, str, int]]]:
    """Numbers, end and events of a motion with four events at least that are 4 ms apart."""
    rng = np.random.default_rng([41, seed])
    while True:
        p = np.array([rng.uniform(0.5, 1.5), rng.uniform(0.6, 0.9), 0.0, rng.uniform(0.2, 0.8),
                      rng.uniform(0.05, 0.35), rng.uniform(0.3, 0.7), rng.uniform(15.0, 45.0),
                      rng.uniform(4.0, 14.0), rng.uniform(2.0, 25.0), rng.uniform(-0.9, -0.4),
                      rng.uniform(-1.3, -0.5)])  # fmt: skip
        p[2] = -np.sin(p[9]) - p[1] * np.sin(p[10]) + rng.uniform(0.01, 0.1)
        end = rng.uniform(0.5, 0.9)
        if p[3] - p[10] + p[9] < 0.02:
            continue
        try:
            events = motion(p, end)[1]
        except (AssertionError, np.linalg.LinAlgError):  # more rows than motion can follow
            continue
        times = np.array([0.0, *[t for t, *_ in events], end])
        if len(events) >= 4 and np.min(np.diff(times)) > 4e-3:
            return p, end, events
