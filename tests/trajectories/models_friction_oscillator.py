"""Mass on a spring with dry friction: a body pressed on a table by a constant weight."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, Labels, Problem, State, System
from nsjax.types import Array, record


@record()
class FrictionOscillator:
    """The friction has the size ``friction * weight``."""

    mass: Array | float = 1.0
    stiffness: Array | float = 1.0
    weight: Array | float = 1.0
    friction: Array | float = 1.0


def mass(q, p):
    return p.mass * np.eye(2)


def force(t, q, v, p):
    return jnp.stack([-p.stiffness * q[0], -1.0 * p.weight])


def potential(t, q, p):
    return 0.5 * p.stiffness * q[0] ** 2 + p.weight * q[1]


def gap(t, q, p):
    return q[1:]


def slip(t, q, v, p):
    return v[None, :1]


def law(p):
    return ContactLaw(friction=p.friction)


SYSTEM = System(
    nq=2, nv=2, nc=1, nt=1, mass=mass, force=force, potential=potential, gap=gap, slip=slip, law=law,
    labels=Labels(q=("x [m]", "y [m]"), v=("vx [m/s]", "vy [m/s]"), contacts=("table",)),
)  # fmt: skip


def friction_oscillator(x: float = 12.0, speed: float = 6.0) -> Problem:
    """Starts at ``x`` with ``speed``, resting on the table."""
    start = State(t=0.0, q=np.array([x, 0.0]), v=np.array([speed, 0.0]))
    return Problem(system=SYSTEM, params=FrictionOscillator(), state=start)
