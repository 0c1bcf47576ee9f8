"""A double pendulum that hits a rough wall, and its event-driven sensitivities."""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np

from nsjax import State, System
from nsjax.contact import ContactLaw
from nsjax.types import Array, record
from tests.gradients.hybrid import Mechanics, Motion, secants

NAMES = ("a", "b", "omega_a", "omega_b", "restitution", "friction", "gravity", "wall", "length", "bob")


@record()
class Params:
    """Point masses 1 and ``bob`` [kg] at lengths 1 and ``length`` [m]; angles from the vertical."""

    restitution: Array | float
    friction: Array | float
    gravity: Array | float
    wall: Array | float
    length: Array | float
    bob: Array | float


def mass(q, p):
    """Mass matrix for absolute angles."""
    off = p.bob * p.length * jnp.cos(q[0] - q[1])
    return jnp.stack([1.0 + p.bob, off, off, p.bob * p.length**2]).reshape(2, 2)


def force(t, q, v, p):
    """Centrifugal terms and weight."""
    s = p.bob * p.length * jnp.sin(q[0] - q[1])
    weight = p.gravity * jnp.stack([(1.0 + p.bob) * jnp.sin(q[0]), p.bob * p.length * jnp.sin(q[1])])
    return jnp.stack([-s * v[1] ** 2, s * v[0] ** 2]) - weight


def gap(t, q, p):
    """Distance of the lower bob from the wall."""
    return (p.wall - jnp.sin(q[0]) - p.length * jnp.sin(q[1]))[None]


def slip(t, q, v, p):
    """Its velocity along the wall."""
    return (jnp.sin(q[0]) * v[0] + p.length * jnp.sin(q[1]) * v[1])[None, None]


def law(p):
    """Newton and Coulomb."""
    return ContactLaw(restitution=p.restitution, friction=p.friction)


SYSTEM = System(nq=2, nv=2, nc=1, nt=1, mass=mass, force=force, gap=gap, slip=slip, law=law)


def build(p: Array) -> tuple[Params, State]:
    """Parameters and start out of a vector in the order of `NAMES`."""
    numbers = dict(zip(NAMES[4:], p[4:], strict=True))
    return Params(**numbers), State(t=0.0, q=p[:2], v=p[2:4])


@dataclasses.dataclass(frozen=True)
class Case:
    """A motion: parameters in the order of `NAMES`, end, kinds of the impacts, expected order."""

    name: str
    values: tuple[float, ...]
    time: float
    events: tuple[str, ...]
    order: float


_START = (-0.9, -0.7, 0.0, 0.0)
SLIP = Case("pendulum, slip impact", (*_START, 0.8, 0.2, 9.81, 0.3, 0.8, 0.6), 0.73, ("slip",), 0.9)
STICK = Case("pendulum, stick impact", (*_START, 0.8, 0.7, 9.81, 0.3, 0.8, 0.6), 0.73, ("stick",), 0.7)


class Pendulum(Mechanics):
    """The same in plain numbers."""

    def __init__(self, p) -> None:
        _, _, _, _, e, mu, *self.p = map(float, p)
        self.mu, self.e = (mu,), (e,)

    def mass(self, q):
        _, _, length, bob = self.p
        off = bob * length * np.cos(q[0] - q[1])
        return np.array([[1.0 + bob, off], [off, bob * length**2]])

    def force(self, t, q, v):
        g, _, length, bob = self.p
        s = bob * length * np.sin(q[0] - q[1])
        weight = g * np.array([(1.0 + bob) * np.sin(q[0]), bob * length * np.sin(q[1])])
        return np.array([-s * v[1] ** 2, s * v[0] ** 2]) - weight

    def gaps(self, t, q):
        return np.array([self.p[1] - np.sin(q[0]) - self.p[2] * np.sin(q[1])])

    def rows(self, q):
        arms = np.array([1.0, self.p[2]])
        return -arms * np.cos(q)[None], arms * np.sin(q)[None]

    def drift(self, t, q, v):
        along = np.array([1.0, self.p[2]]) * v**2
        return np.array([[along @ np.sin(q)], [along @ np.cos(q)]])


def motion(values, time: float) -> tuple[np.ndarray, tuple[str, ...], list[float]]:
    """State at ``time``, kinds and times of the impacts."""
    run = Motion(Pendulum(values), values[:2], values[2:4])
    x = run.run(time)
    kinds = tuple("stick" if kind == ("stick",) else "slip" for kind in run.kinds)
    return x, kinds, [t for t, *_ in run.events]


@functools.cache
def reference(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Final state and its Jacobian by secants of two widths, extrapolated."""
    x, kinds, _ = motion(case.values, case.time)
    assert kinds == case.events, f"{case.name}: {kinds}"
    return x, secants(lambda p: motion(p, case.time)[0], np.array(case.values), width=1e-4)
