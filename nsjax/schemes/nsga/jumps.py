"""Velocity jumps with friction as contact problems: dynamics linearised, laws by the contact solver."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp

from nsjax.contact import ContactProblem, SolverSettings
from nsjax.contact.at_nodes import without_responses
from nsjax.contact.bordered import StageTangent
from nsjax.linalg import matvec
from nsjax.schemes.nsga.levels import Level, VelocityLevel
from nsjax.schemes.nsga.residual import LevelUnknowns
from nsjax.types import Array, PyTree


def is_contact_problem(level: Level) -> bool:
    """Whether a subproblem is a velocity jump with friction. Corrections of laws and dynamics together may
    cycle between its branches, sliding forth and back; without friction they do not.
    """
    s = level.system
    return isinstance(level, VelocityLevel) and bool(s.nc and s.nt) and not without_responses(s)


def velocity_jump(level: Level, d: PyTree, w: Array, a: StageTangent) -> LevelUnknowns:
    """Unknowns that fulfil all laws with the dynamics ``a`` linearised at ``w`` (nv,)::

        J dw - W pi = -r,     u = y + Y dw = F + G pi,     G = Y J^-1 W

    which is the answer itself if the dynamics are linear. The contact problem is solved by way of compliant
    contacts if Newton's iteration fails on it.
    """
    data: Any = d
    system, k = level.system, level.factors(d)[0]
    y, r = level.values(d, w), functools.reduce(jnp.add, level.terms(d, w, jnp.zeros(level.rows)))
    if system.structure.dense:  # the tangent holds the bilateral rows, whose speeds vanish
        p = jnp.broadcast_to(level.factors(d)[1], (level.rows,))
        r = r + matvec(level.directions(d, w)[0], jnp.where(level.always, p * y, 0.0))
    free = a.dynamics.solve(r)
    problem = ContactProblem(
        nc=system.nc, nt=system.nt, nb=level.bilateral, delassus=a.delassus,
        free=y - matvec(a.speed, free), friction=data[0].friction, mask=data[2].active,
        given=data[0].given,
    )  # fmt: skip
    pi = SolverSettings().solve(problem).x
    return LevelUnknowns(w=w + matvec(a.response, pi) - free, x=pi / k)
