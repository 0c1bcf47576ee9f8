"""Uniform rod that hits the ground with one end."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, Labels, Problem, State, System
from nsjax.types import Array, record


@record()
class Stick:
    """Length [m], mass [kg], gravity [m/s^2] and the contact law."""

    length: Array | float = 1.0
    weight: Array | float = 1.0
    gravity: Array | float = 10.0
    restitution: Array | float = 1.0
    friction: Array | float = 0.01


def mass(q, p):
    one = jnp.asarray(p.weight)
    return jnp.stack([one, one, one * p.length**2 / 12])[:, None] * np.eye(3)


def force(t, q, v, p):
    return -p.weight * p.gravity * np.array([0.0, 1.0, 0.0])


def potential(t, q, p):
    return p.weight * p.gravity * q[1]


def gap(t, q, p):
    return (q[1] - p.length / 2 * jnp.cos(q[2]))[None]


def slip(t, q, v, p):
    return (-v[0] - p.length / 2 * jnp.cos(q[2]) * v[2])[None, None]


def law(p):
    return ContactLaw(restitution=p.restitution, friction=p.friction)


SYSTEM = System(
    nq=3, nv=3, nc=1, nt=1, mass=mass, force=force, potential=potential, gap=gap, slip=slip, law=law,
    labels=Labels(
        q=("x [m]", "y [m]", "phi [rad]"), v=("vx [m/s]", "vy [m/s]", "omega [rad/s]"), contacts=("tip",)
    ),
)  # fmt: skip


def impacting_stick() -> Problem:
    """The start of the file."""
    phi = np.pi / 4
    q = np.array([np.sin(phi) / 2, np.cos(phi) / 2 + 0.01, phi])
    return Problem(system=SYSTEM, params=Stick(), state=State(t=0.0, q=q, v=np.array([-0.5, 0.1, 0.1])))
