"""Derivative of an answer with contacts that slide in space, by rows along and across their sliding."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import Branches
from nsjax.contact.dependent import dependent_answer
from nsjax.contact.problem import ContactProblem
from nsjax.math import direction
from nsjax.types import Array


def branch_answer(problem: ContactProblem, a: Array, b: Branches, f: Array) -> Array:
    """``x`` (m,) with ``a x = f``, where ``a`` is the tangent of a problem on its branches.

    The law of a contact that slides in space asks for a force along the sliding, and across it for a speed
    as it stops: see `nsjax.contact.dependent.LEAST_TURN`. In these directions the second row alone may
    depend on others.
    """
    if problem.nt < 2 or not problem.rough:
        return dependent_answer(a, b.use, f)
    nc, d, m = problem.rough, 1 + problem.nt, f.shape[0]
    n = direction(b.slope[:nc])
    slides = b.slip[:nc] & (jnp.sum(n * n, axis=1) > 0.0)
    n = jnp.where(slides[:, None], n, np.array([1.0, 0.0]))

    def turned(x: Array, sign: float = 1.0) -> Array:
        """Rows (m, k) along and across for those of the tangents, or back."""
        rows, c, s = x[: nc * d].reshape(nc, d, -1), n[:, :1], sign * n[:, 1:]
        parts = rows[:, 0], c * rows[:, 1] + s * rows[:, 2], c * rows[:, 2] - s * rows[:, 1]
        return jnp.concatenate([jnp.stack(parts, axis=1).reshape(nc * d, -1), x[nc * d :]])

    last = np.arange(d) == d - 1
    across = jnp.concatenate([(slides[:, None] & last).reshape(-1), jnp.zeros(m - nc * d, bool)])
    y = dependent_answer(turned(turned(a).T).T, b.use, turned(f[:, None])[:, 0], turns=across)
    return turned(y[:, None], -1.0)[:, 0]
