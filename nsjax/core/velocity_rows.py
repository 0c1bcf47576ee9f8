"""Constraints on velocities alone, `System.velocity_constraint`, in checks and corrections of positions."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.core.system import System
from nsjax.startup.owned import kept
from nsjax.types import Array, PyTree


@kept
def positioned(system: System) -> System:
    """The system without its constraints on velocities alone."""
    if not system.nh:
        return system
    labels = dataclasses.replace(system.labels, constraints=system.labels.constraints[: -system.nh])
    return dataclasses.replace(
        system, nb=system.nb - system.nh, nh=0, velocity_constraint=None, labels=labels
    )


def residuals(system: System, t: Array, q: Array, p: PyTree) -> Array:
    """Residuals of all constraints (nb,); zero for constraints on velocities alone."""
    found = [] if system.constraint is None else [system.constraint(t, q, p)]
    found += [jnp.zeros(system.nh)] if system.nh else []
    return found[0] if len(found) == 1 else jnp.concatenate(found)


def slip_of(system: System, t: Array, q: Array, xi: Array, p: PyTree) -> Array:
    """Slip (nh,) [m] of an increment ``xi`` (nv,) of the position along the constraints on velocities
    alone.
    """
    rate: Any = system.velocity_constraint
    found: Array = rate(t, q, xi, p) - rate(t, q, jnp.zeros_like(xi), p)
    return found
