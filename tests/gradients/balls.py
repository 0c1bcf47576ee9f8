"""Two balls side by side on a floor, which know nothing of each other, and their closed form."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import State, System
from nsjax.contact import ContactLaw
from nsjax.types import Array, record
from tests.points import position


@record()
class Params:
    """Common restitution and gravity."""

    restitution: Array | float
    gravity: Array | float


def mass(q, p):
    """Masses 1 and 3."""
    return jnp.diag(np.array([1.0, 3.0]))


def force(t, q, v, p):
    """Weight."""
    return -p.gravity * np.array([1.0, 3.0])


def law(p):
    """Newton's law."""
    return ContactLaw(restitution=p.restitution)


SYSTEM = System(nq=2, nv=2, nc=2, nt=0, mass=mass, force=force, gap=position, law=law)


def build(p: Array) -> tuple[Params, State]:
    """Parameters and start out of a vector in the order of `NAMES`."""
    return Params(restitution=p[4], gravity=p[5]), State(t=0.0, q=p[:2], v=p[2:4])


@dataclasses.dataclass(frozen=True)
class Case:
    """Heights at the start, from rest, end, and impacts of either ball."""

    name: str
    heights: tuple[float, float]
    time: float
    impacts: tuple[int, int]
    order: float = 0.9

    def vector(self) -> np.ndarray:
        """All parameters."""
        return np.array([*self.heights, 0.0, 0.0, 0.8, 9.81])


CASES = [
    Case("balls, different times", (1.0, 0.63), 1.07, (1, 2)),
    Case("balls, equal times", (1.0, 1.0), 1.07, (1, 1)),
    Case("balls, nearly equal times", (1.0, 1.001), 1.07, (1, 1)),
]


def _fall(z, v, e, g, end: float, impacts: int):
    """Height and velocity of one ball at ``end``."""
    t = (v + jnp.sqrt(v * v + 2 * g * z)) / g
    speed = e * (g * t - v)
    for _ in range(impacts - 1):
        t, speed = t + 2 * speed / g, e * speed
    s = end - t
    assert 0.0 < s < 2 * speed / g
    return speed * s - g * s * s / 2, speed - g * s


@functools.cache
def reference(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Final state (4,) and its Jacobian."""

    def final(p):
        pairs = [_fall(p[k], p[2 + k], p[4], p[5], case.time, case.impacts[k]) for k in (0, 1)]
        x = jnp.stack([pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1]])
        return x, x

    jacobian, x = jax.jacfwd(final, has_aux=True)(jnp.asarray(case.vector()))
    return np.asarray(x), np.asarray(jacobian)
