"""Derivative of an answer with contacts that slide in space, by rows along and across their sliding."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.contact.branches import REGULARISATION, Branches
from nsjax.contact.dependent import dependent_answer
from nsjax.contact.problem import ContactProblem
from nsjax.math import direction
from nsjax.types import Array


def branch_answer(problem: ContactProblem, a: Array, b: Branches, f: Array) -> Array:
    """Solution ``x`` (m,) of ``a x = f``, where ``a`` is the tangent of a problem on its branches."""
    if problem.nt < 2 or not (problem.rough or problem.tangents == 2):
        return dependent_answer(a, b.use, f)
    way = jnp.where(b.slip[:, None], direction(b.slope), 0.0)
    none = jnp.zeros_like(way)
    first = jnp.stack([none, way, none], axis=1)  # in the row of the first tangent
    rows = [problem.stack(first[:, :, k], jnp.zeros(problem.nb)) for k in (0, 1)]
    return turned_answer(a, b.use, f, jnp.stack(rows, axis=1))


def turned_answer(
    a: Array, use: Array, f: Array, way: Array, weight: Array | float = REGULARISATION
) -> Array:
    """`nsjax.contact.dependent.dependent_answer` of rows along and across sliding.

    The law of a contact that slides in space asks for a force along the sliding, and across it for a speed
    as it stops: see `nsjax.contact.dependent.LEAST_TURN`. In these directions the second row alone may
    depend on others.

    Args:
        a, use, f, weight: see there.
        way: (m, 2) directions of sliding, in the row of the first of the two tangents of each contact that
            slides; zero in all other rows.
    """
    before = jnp.roll(way, 1, axis=0)
    slides, across = (jnp.any(x != 0.0, axis=1) for x in (way, before))
    c = jnp.where(slides, way[:, 0], jnp.where(across, before[:, 0], 1.0))[:, None]

    def turned(x: Array, sign: float = 1.0) -> Array:
        """Rows (m, k) along and across the sliding from those of the tangents; back with ``sign = -1``."""
        more = way[:, 1:] * jnp.roll(x, -1, axis=0) - before[:, 1:] * jnp.roll(x, 1, axis=0)
        return c * x + sign * more

    y = dependent_answer(turned(turned(a).T).T, use, turned(f[:, None])[:, 0], weight, across)
    return turned(y[:, None], -1.0)[:, 0]
