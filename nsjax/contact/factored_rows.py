"""Rows of Newton's method from the factors of the Delassus operator, without its matrix."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import Branches, curvature_blocks
from nsjax.contact.problem import ContactProblem, DelassusFactors
from nsjax.linalg import LOOP_LIMIT, OUTER_TERMS, ROW_LIMIT, product_diagonal
from nsjax.linalg.dense import indices
from nsjax.types import Array


def has_rows(problem: ContactProblem) -> bool:
    """Whether the rows of a problem are formed from its factors: from arrays with few velocities, if there
    are up to `ROW_LIMIT` rows, but at most `LOOP_LIMIT` whose force always acts.
    """
    g, m, always = problem.delassus, problem.free.shape[0], problem.bounded * problem.tangents + problem.nb
    alone = problem.leading or problem.tangents == 2
    if not isinstance(g, DelassusFactors) or alone or not always <= LOOP_LIMIT < m <= ROW_LIMIT:
        return False
    return all(isinstance(x, jax.Array) for x in (g.wt, g.response)) and g.wt.shape[1] <= OUTER_TERMS


def factored_tangent(
    problem: ContactProblem, x: Array, r: Array, b: Branches, weight: Array, soft: Array | float
) -> Array:  # fmt: skip
    """`nsjax.contact.branches.tangent` (m, m) as ``T M^-1 W + K``, for ``G = W' M^-1 W + diag(soft)``.

    ``T`` (m, nv) mixes the rows of ``r W'`` of each contact, ``K`` couples the rows of each contact. One
    matrix is written, and none is read.

    Args:
        problem: as in `has_rows`.
        x, r, b: impulses (m,), scaling (m,) and branches of the rows.
        weight: regularisation of the active rows.
        soft: compliances of the rows (m,), or one number.
    """
    first, n, d = problem.ends[0], problem.rough, 1 + problem.nt
    g, soft = problem.delassus, r * soft
    wt = r[:, None] * g.wt
    mixed, own = rows_of_contacts(problem, x, r, b, weight, soft)
    rows = wt[:first].reshape(n, d, -1)
    rows = functools.reduce(jnp.add, (mixed[:, :, j, None] * rows[:, j, None] for j in range(d)))
    last = b.use[first:, None]
    turned = jnp.concatenate([rows.reshape(first, -1), jnp.where(last, wt[first:], 0.0)])
    alone = jnp.where(last, weight + soft[first:, None], 1.0)
    near = jnp.concatenate([own.reshape(first, d), jnp.pad(alone, ((0, 0), (0, d - 1)))])
    return _filled(turned, g.response, near, first)


def rows_of_contacts(
    problem: ContactProblem, x: Array, r: Array, b: Branches, weight: Array, soft: Array
) -> tuple[Array, Array]:
    """``T`` and ``K`` (rough, 1 + nt, 1 + nt) of the contacts with all rows: the tangent is
    ``T r W' M^-1 W + K``. See `factored_tangent`; ``soft`` (m,) are compliances times ``r``.
    """
    first, n, d = problem.ends[0], problem.rough, 1 + problem.nt
    g, one = problem.delassus, np.eye(1 + problem.nt)
    use = b.use[:first].reshape(n, d, 1)
    slope = jnp.concatenate([jnp.zeros((n, 1)), b.slope[:n]], axis=1)
    mixed = jnp.where(use, one, 0.0)
    own = jnp.where(use, weight * one, one - slope[:, :, None] * one[0])
    if problem.nt == 2:
        turn = jnp.pad(curvature_blocks(problem, x, b), ((0, 0), (1, 0), (1, 0)))
        # a row that nothing moves keeps its unit row
        moves = (r * product_diagonal(g.wt, g.response) + soft)[:first].reshape(n, d, 1) > 0.0
        turn = jnp.where(moves, turn, 0.0)
        mixed, own = mixed + turn, own - turn
    return mixed, own + mixed * soft[:first].reshape(n, 1, d)


def _filled(turned: Array, response: Any, near: Array, first: int) -> Array:
    """``turned response`` plus the entries ``near`` (m, d) in the columns of each row's own contact."""
    m, d = near.shape
    row = indices(m)
    start = jnp.where(row < first, row - row % d, row)[:, None]
    terms = [turned[:, k, None] * response[k] for k in range(turned.shape[1])]
    terms += [jnp.where(indices(m) == start + j, near[:, j, None], 0.0) for j in range(d)]
    return functools.reduce(jnp.add, terms)
