"""Derivative of an answer with contacts that slide in space, by rows along and across their sliding."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import REGULARISATION, Branches
from nsjax.contact.dependent import dependent_answer
from nsjax.contact.problem import ContactProblem
from nsjax.math import direction
from nsjax.types import Array


def branch_answer(problem: ContactProblem, a: Array, b: Branches, f: Array) -> Array:
    """Solution ``x`` (m,) of ``a x = f``, where ``a`` is the tangent of a problem on its branches."""
    if problem.nt < 2 or not problem.rough:
        return dependent_answer(a, b.use, f)
    nc = problem.rough
    way = jnp.where(b.slip[:nc, None], direction(b.slope[:nc]), 0.0)
    return turned_answer(a, b.use, f, way)


def turned_answer(
    a: Array, use: Array, f: Array, way: Array, first: int = 0, weight: Array | float = REGULARISATION
) -> Array:
    """`nsjax.contact.dependent.dependent_answer` of rows along and across sliding.

    The law of a contact that slides in space asks for a force along the sliding, and across it for a speed
    as it stops: see `nsjax.contact.dependent.LEAST_TURN`. In these directions the second row alone may
    depend on others.

    Args:
        a, use, f, weight: see there.
        way: (nc, 2) directions of sliding, zero where a contact does not slide.
        first: row of the first contact; each has a normal and two tangents.
    """
    nc, m = way.shape[0], f.shape[0]
    end = first + 3 * nc
    slides = jnp.sum(way * way, axis=1) > 0.0
    n = jnp.where(slides[:, None], way, np.array([1.0, 0.0]))

    def turned(x: Array, sign: float = 1.0) -> Array:
        """Rows (m, k) along and across the sliding from those of the tangents; back with ``sign = -1``."""
        rows, c, s = x[first:end].reshape(nc, 3, -1), n[:, :1], sign * n[:, 1:]
        parts = rows[:, 0], c * rows[:, 1] + s * rows[:, 2], c * rows[:, 2] - s * rows[:, 1]
        there = jnp.stack(parts, axis=1).reshape(3 * nc, -1)
        return jnp.concatenate([x[:first], there, x[end:]])

    across = (slides[:, None] & (np.arange(3) == 2)).reshape(-1)
    across = jnp.concatenate([jnp.zeros(first, bool), across, jnp.zeros(m - end, bool)])
    y = dependent_answer(turned(turned(a).T).T, use, turned(f[:, None])[:, 0], weight, across)
    return turned(y[:, None], -1.0)[:, 0]
