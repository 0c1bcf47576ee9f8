"""Linear rows of contacts of which some depend on others: one answer among many, without a weight.

Where a contact sticks along a guide that sticks itself, or a box stands on its corners, the rows of active
contacts depend on each other: their matrix is singular, and data that change may ask of them what they
cannot fulfil together. A small weight on the diagonal makes the matrix regular, but answers such a change
by a number as large as one over the weight, most of it rounding, which then grows from step to step.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.branches import AT_BOUND, REGULARISATION
from nsjax.linalg import LOOP_LIMIT, matmul, matvec, solve
from nsjax.types import Array

LEAST_PIVOT = 1e-8
"""A row of unit diagonal depends on others where elimination leaves less of its diagonal: rounding leaves
1e-15, and digits are lost by one over what is left."""

LEAST_TURN = AT_BOUND
"""The same for friction across sliding in space. A contact that slides with the velocity ``u`` resists to
turning by ``mu x_N / |u|``: as it stops, its row across becomes that of a contact that sticks. Where other
rows hold the contact across its sliding, what is left of the diagonal is ``r |u| / (mu x_N)``, which falls
from step to step, and rounding of the speed across changes forces by one over it. Below the part of its
bound up to which a force is at it, the sliding that the others hold does not turn, and no force across is
the answer.
"""


def dependent_answer(
    a: Array, use: Array, f: Array, weight: Array | float = REGULARISATION, turns: Array | None = None
) -> Array:
    """``x`` (m,) of least size with ``a x = f`` in rows that determine it; ``a`` has no derivative here.

    Elimination passes over rows that depend on others, from the last row to the first: bilateral rows count
    before bounded ones, and these before contacts, whose restitution refers to the velocity before the
    step. With the independent rows ``I``, the others ``D`` and ``B = a_II^-1`` the changes that move
    nothing are the columns of ``N = (-B a_ID, 1)``, and ``x = (1 - N (N' N)^-1 N') B f``. No number on the
    way is larger than the independent rows make it.

    Args:
        a: (m, m) rows, used ones with a unit diagonal.
        use: (m,) bool, rows that may depend on each other; the others are independent.
        f: (m,) live.
        weight: of the diagonal, see limits.
        turns: (m,) bool, rows across friction that slides: the last ones to count, and zero where they
            depend on others, see `LEAST_TURN`; None: none.

    Limits: with more than `nsjax.linalg.LOOP_LIMIT` rows ``weight`` stands on the diagonal instead.
    """
    a = lax.stop_gradient(a)
    m = a.shape[0]
    if m > LOOP_LIMIT:
        added = jnp.where(use if turns is None else use | turns, weight, 0.0)[:, None] * np.eye(m)
        return solve(a + added, f[:, None])[:, 0]
    inverse, free = _eliminated(a, use, turns)
    if turns is not None:
        free = free & ~turns
    moves = jnp.where(free, matmul(inverse, a) - np.eye(m), 0.0)
    square = matmul(moves.T, moves) + jnp.where(free, 0.0, 1.0) * np.eye(m)
    held = lax.stop_gradient(solve(square, moves.T))
    x = matvec(inverse, f)
    return x - matvec(moves, matvec(held, x))


def _eliminated(a: Array, use: Array, turns: Array | None) -> tuple[Array, Array]:
    """``B``, zero in dependent rows and columns (m, m), and which (m,) bool these are."""
    m = a.shape[0]
    least = jnp.where(use, LEAST_PIVOT, -1.0)
    place: Any = np.arange(m)[::-1]  # of every row; no permutation of the matrix
    if turns is not None:
        least = jnp.where(turns, LEAST_TURN, least)
        later = np.arange(m) + jnp.where(turns, 0, m)
        place = jnp.sum(later[None, :] > later[:, None], axis=1)

    def eliminate(n: Array, both: tuple[Array, Array]) -> tuple[Array, Array]:
        x, free = both
        here = place == n
        row = jnp.sum(jnp.where(here[:, None], x, 0.0), axis=0)
        pivot = jnp.sum(jnp.where(here, row[:m], 0.0))
        passed = jnp.any(here & (jnp.abs(pivot) <= least))
        row = jnp.where(passed, 0.0, row / jnp.where(passed, 1.0, pivot))
        column = jnp.sum(jnp.where(here, x[:, :m], 0.0), axis=1)
        x = jnp.where(here[:, None], row, x - column[:, None] * row)
        return x, free | (here & passed)

    start = jnp.concatenate([a, jnp.eye(m)], axis=1), jnp.zeros(m, bool)
    x, free = lax.fori_loop(0, m, eliminate, start)
    return jnp.where(free[:, None] | free[None, :], 0.0, x[:, m:]), free
