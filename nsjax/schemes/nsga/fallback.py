"""Solution by the contact solver of velocity jumps for which the family's Newton iteration fails."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactProblem
from nsjax.contact import solve as solve_contacts
from nsjax.contact.at_nodes import without_responses
from nsjax.linalg import matvec
from nsjax.schemes.nsga.levels import Level, VelocityLevel
from nsjax.schemes.nsga.linear import linearised
from nsjax.types import Array, PyTree


def has_fallback(level: Level) -> bool:
    """Whether a subproblem is a velocity jump with friction. Its corrections may cycle between branches,
    sliding forth and back; without friction they do not.
    """
    system = level.system
    return (
        isinstance(level, VelocityLevel)
        and system.nc > 0
        and system.nt > 0
        and not without_responses(system)
    )


def by_contact_solver(level: Level, d: PyTree, w: Array) -> tuple[Array, Array]:
    """``(w, x)`` that fulfil all laws with the dynamics linearised at ``w`` (nv,)::

        J dw - W pi = -r,     u = y + Y dw = F + G pi,     G = Y J^-1 W

    which is the answer itself if the dynamics are linear. The contact problem is solved by way of compliant
    contacts if Newton's iteration fails on it, too.
    """
    data: Any = d
    w = jnp.where(jnp.all(jnp.isfinite(w)), w, 0.0)  # corrections may have diverged
    system, (k, p) = level.system, (jnp.broadcast_to(x, (level.rows,)) for x in level.factors(d))
    bilateral = np.arange(level.rows) >= level.rows - level.bilateral

    def dynamics(w: Array) -> Array:
        return functools.reduce(jnp.add, level.terms(d, w, jnp.zeros(level.rows)))

    directions, speed = level.directions(d, w)
    a = linearised(system.structure, dynamics, w, (directions, speed), (p, bilateral))
    y, r = level.values(d, w), dynamics(w)
    if system.structure.dense:  # the tangent holds the bilateral rows, whose speeds vanish
        r = r + matvec(directions, jnp.where(bilateral, p * y, 0.0))
    free = a.dynamics.solve(r)
    problem = ContactProblem(
        nc=system.nc, nt=system.nt, nb=level.bilateral, delassus=a.delassus,
        free=y - matvec(a.speed, free), friction=data[0].friction, mask=data[2].active,
        given=data[0].given,
    )  # fmt: skip
    pi = solve_contacts(problem, method="auto_rare").x
    return w + matvec(a.response, pi) - free, pi / k
