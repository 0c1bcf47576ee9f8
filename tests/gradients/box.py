"""A box in the plane on two corners of a rough, tilted floor that is shaken: it bounces, slides, sticks,
rocks. Its event-driven motion stands beside it.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import State, System
from nsjax.contact import ContactLaw
from tests.gradients.hybrid import Mechanics, Motion, secants

NAMES = ("width", "height", "mu", "rebound", "tilt", "drive", "omega", "low", "angle", "u", "w", "spin")
GRAVITY, MASS = 9.81, 1.0


def _corners(p):
    return jnp.stack([-0.5 * p["width"], 0.5 * p["width"]]), -0.5 * p["height"]


def _mass(q, p):
    turn = (p["width"] ** 2 + p["height"] ** 2) / 12.0
    return jnp.diag(MASS * jnp.stack([1.0 + 0.0 * turn, 1.0 + 0.0 * turn, turn]))


def _force(t, q, v, p):
    along = GRAVITY * jnp.sin(p["tilt"]) + p["drive"] * jnp.sin(p["omega"] * t)
    return MASS * jnp.stack([along, -GRAVITY * jnp.cos(p["tilt"]), 0.0 * along])


def _gap(t, q, p):
    x, y = _corners(p)
    return q[1] + x * jnp.sin(q[2]) + y * jnp.cos(q[2])


def _slip(t, q, v, p):
    x, y = _corners(p)
    return (v[0] - (x * jnp.sin(q[2]) + y * jnp.cos(q[2])) * v[2])[:, None]


def _law(p):
    return ContactLaw(friction=p["mu"], restitution=p["rebound"])


SYSTEM = System(nq=3, nv=3, nc=2, nt=1, mass=_mass, force=_force, gap=_gap, slip=_slip, law=_law)


def build(p):
    """Parameters and start out of a vector in the order of `NAMES`; ``low`` is the height of the lower
    corner.
    """
    numbers = dict(zip(NAMES, p, strict=True))
    lower = 0.5 * (numbers["width"] * jnp.sin(jnp.abs(p[8])) + numbers["height"] * jnp.cos(p[8]))
    return numbers, State(t=0.0, q=jnp.stack([0.0 * p[7], p[7] + lower, p[8]]), v=p[9:12])


class _Box(Mechanics):
    def __init__(self, p) -> None:
        p = dict(zip(NAMES, map(float, p), strict=True))
        self.p, self.mu, self.e = p, (p["mu"],) * 2, (p["rebound"],) * 2
        self.x = 0.5 * np.array([-p["width"], p["width"]])
        self.y = -0.5 * p["height"]
        self.m = MASS * np.diag([1.0, 1.0, (p["width"] ** 2 + p["height"] ** 2) / 12.0])

    def mass(self, q):
        return self.m

    def force(self, t, q, v):
        p = self.p
        along = GRAVITY * np.sin(p["tilt"]) + p["drive"] * np.sin(p["omega"] * t)
        return MASS * np.array([along, -GRAVITY * np.cos(p["tilt"]), 0.0])

    def up(self, q):
        return self.x * np.sin(q[2]) + self.y * np.cos(q[2])

    def aside(self, q):
        return self.x * np.cos(q[2]) - self.y * np.sin(q[2])

    def gaps(self, t, q):
        return q[1] + self.up(q)

    def rows(self, q):
        one, none = np.ones(2), np.zeros(2)
        return np.stack([none, one, self.aside(q)], axis=1), np.stack([one, none, -self.up(q)], axis=1)

    def drift(self, t, q, v):
        return -(v[2] ** 2) * np.stack([self.up(q), self.aside(q)])


def _motion(p) -> Motion:
    box = _Box(p)
    p = np.asarray(p, float)
    q = np.array([0.0, p[7] - np.min(box.up([0.0, 0.0, p[8]])), p[8]])
    closed = tuple(np.flatnonzero(box.gaps(0.0, q) < 1e-12))
    if not closed:
        return Motion(box, q, p[9:12])
    return Motion(box, q, p[9:12], closed)


def motion(p, end: float) -> tuple[np.ndarray, list[tuple[float, str, int]]]:
    """State at the end, and the events."""
    run = _motion(p)
    return run.run(end), run.events


def columns(p) -> list[int]:
    """Parameters that can change to both sides: not a rebound of zero, nor a start at rest on the floor."""
    fixed = (["rebound"] if p[3] == 0.0 else []) + (["low", "u", "w", "spin"] if p[7] == 0.0 else [])
    return [i for i, name in enumerate(NAMES) if name not in fixed]


def reference(p, end: float) -> np.ndarray:
    """Derivatives (6, columns)."""
    return secants(lambda x: motion(x, end)[0], p, columns(p))


def draw(seed: int) -> tuple[np.ndarray, float, list[tuple[float, str, int]]]:
    """Numbers, end and events of a motion with four events at least that are 4 ms apart; a box that lies
    flat is left out, since its friction is not unique.
    """
    rng = np.random.default_rng([42, seed])
    while True:
        p = np.array([rng.uniform(0.1, 0.4), rng.uniform(0.1, 0.4), rng.uniform(0.1, 0.6),
                      rng.choice([0.0, rng.uniform(0.2, 0.6)]), rng.uniform(-0.2, 0.2),
                      rng.uniform(0.0, 8.0), rng.uniform(5.0, 20.0), rng.uniform(0.005, 0.05),
                      rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5),
                      rng.uniform(-0.3, 0.3), rng.uniform(-2.0, 2.0)])  # fmt: skip
        end = rng.uniform(0.25, 0.4)
        try:
            x, events = motion(p, end)
        except (AssertionError, np.linalg.LinAlgError):
            continue
        times = np.array([0.0, *[t for t, _, _ in events], end])
        if len(events) >= 4 and np.min(np.diff(times)) > 4e-3 and 1e-3 < abs(x[2]) < 1.2:
            return p, end, events
