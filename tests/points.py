"""Functions of small systems of points of unit mass, which many tests share."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax import ContactLaw


def unit_mass(q, p):
    """The mass matrix."""
    return jnp.eye(q.shape[0])


def no_force(t, q, v, p):
    """No force at all."""
    return jnp.zeros_like(v)


def spring(t, q, v, p):
    """A spring of the stiffness ``k`` on every point."""
    return -p["k"] * q


def position(t, q, p):
    """Gaps of points above a plane through the origin: their positions."""
    return q


def bouncing(p):
    """Law of contacts without friction."""
    return ContactLaw(restitution=p["restitution"])
