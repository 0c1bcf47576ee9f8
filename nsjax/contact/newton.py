"""Semismooth Newton on the prox equations of the contact problem.

On the branch (open, stick, slip) of the current iterate every prox row is linear; Newton solves
that system and decides the branches anew (an active-set method). The update is written for the
increment, so that the small regularisation of the active rows, which picks one of many answers
when contacts depend on each other, does not move the fixed point.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.branches import REGULARISATION, branch_residual, branches, per_contact, tangent
from nsjax.contact.certificate import LARGEST_RATIO, impulse_scale, relative_residual
from nsjax.contact.factored_rows import factored_tangent, has_rows, rows_of_contacts
from nsjax.contact.paired_rows import eliminates, paired_answer
from nsjax.contact.problem import ContactProblem
from nsjax.core.branches import repeat
from nsjax.linalg import solve_rows, solve_some_rows
from nsjax.linalg.dense import unit_matrix
from nsjax.types import Array, record

# Plain steps decide branches at ``x - s r u`` with `SCALES` scales s = exp(-LESS k) = 1, 0.3, 0.09, 0.03 in
# turn, each for `SAME_SCALE` steps: branches that cycle with one scale do not with another. With s = 1
# alone, the best where rows hardly move each other, every seventh step of a robot on its feet with dry
# friction in all joints cycled. Random problems of that form gain little: 24 of 1,080 cycle with one scale,
# 19 with four.
SCALES, LESS, SAME_SCALE = 4, 1.2, 8


@record()
class Iterate:
    """State of a contact iteration: impulses, their velocity and residual, steps taken."""

    x: Array
    u: Array
    residual: Array
    steps: Array


def beginning(problem: ContactProblem, start: Array | None = None) -> Iterate:
    """First iterate: ``x = 0``, or ``start``, which may be an answer already. Its count of -1 steps says
    that its residual is computed before the first step.
    """
    x = jnp.zeros_like(problem.free) if start is None else start
    return Iterate(
        x=x, u=problem.free, residual=jnp.asarray(jnp.inf),
        steps=jnp.asarray(0 if start is None else -1, int),
    )  # fmt: skip


class ProxRows:
    """The prox rows of a problem around an iterate: certificate and Newton direction.

    With a ``compliance`` (m,) they are those of ``u = F + G x + compliance / r (x - known)``.
    """

    def __init__(self, problem: ContactProblem) -> None:
        self.problem, self.r = problem, problem.scaling()
        self.scale = impulse_scale(problem, self.r)

    def at(
        self, x: Array, steps: Array, compliance: Array | None = None, known: Array | float = 0.0
    ) -> Iterate:
        """The iterate at the impulses ``x``."""
        u, r = self.problem.velocity(x), self.r
        if compliance is not None:
            u, r = u + compliance / r * (x - known), r / (1.0 + compliance)
        size = relative_residual(self.problem, x, u, r, self.scale)
        return Iterate(x=x, u=u, residual=size, steps=steps)

    def huge(self, x: Array) -> Array:
        """Whether impulses are beyond those of an answer."""
        return jnp.max(jnp.abs(x), initial=0.0) > LARGEST_RATIO * self.scale[1]

    def direction(
        self, now: Iterate, compliance: Array | None = None, rigid: Array | bool = True,
        steps: Array | None = None,
    ) -> Array:  # fmt: skip
        """Full Newton step on the branches of ``now``, regularised if ``rigid``; the count of plain
        ``steps`` chooses the scale of the branches.
        """
        problem, r, weight = self.problem, self.r, jnp.where(rigid, REGULARISATION, 0.0)
        soft: Any = 0.0
        if compliance is not None:
            soft, r = compliance / r, r / (1.0 + compliance)
        if steps is not None:
            r = r * _scale(steps)
        b = branches(problem, now.x, now.u, r)
        f = branch_residual(problem, now.x, now.u, r, b)
        if eliminates(problem):
            blocks = rows_of_contacts(problem, now.x, r, b, weight, r * soft)
            return -paired_answer(problem, blocks, r, f)
        some = has_rows(problem)
        if some:
            a = factored_tangent(problem, now.x, r, b, weight, soft)
        else:
            if compliance is not None:
                matrix = problem.matrix + soft[:, None] * unit_matrix(r.shape[0])
                problem = dataclasses.replace(problem, delassus=matrix)
            a = tangent(problem, now.x, r, b, weight)
        # rows of open contacts, and of forces at their bounds, are those of the unit matrix
        closed = jnp.any(problem.contacts(b.use), axis=1)
        if problem.given is not None:
            last = problem.nc if problem.tangents == 2 else problem.rough  # at its bound a disc turns
            closed = closed | (problem.given.on & (np.arange(problem.nc) < last))
        if problem.given is not None and problem.leading:  # their bounds are no constants
            closed = closed | jnp.asarray(problem.given.follows)
        rows = per_contact(problem, closed, jnp.ones(problem.nb, bool))
        return -(solve_some_rows if some else solve_rows)(a, f, rows)


def _scale(steps: Array) -> Array:
    """Part of the scaling with which branches are decided, see `SCALES`."""
    return jnp.exp(-LESS * lax.rem(lax.div(steps, SAME_SCALE), SCALES))


def newton(
    problem: ContactProblem, *, tolerance: Array, max_iterations: Array | int, scaled: bool = True
) -> Iterate:
    """Semismooth Newton from zero: up to ``max_iterations`` plain steps; one or two are enough in most
    contact steps of a simulation. ``scaled``: with the `SCALES` of the branches in turn.
    """
    rows, cap = ProxRows(problem), jnp.asarray(max_iterations, int)

    def step(now: Iterate) -> Iterate:
        turn = now.steps if scaled else None
        return rows.at(now.x + rows.direction(now, steps=turn), now.steps + 1)

    def unsolved(now: Iterate) -> Array:
        return (now.residual > tolerance) & (now.steps < cap)

    return repeat(unsolved, step, beginning(problem), uneven=True)
