"""Least answer of linear contact rows of which some depend on others, without a weight on the diagonal.

Where a contact sticks along a guide that sticks itself, or a box stands on its corners, the rows of active
contacts depend on each other: their matrix is singular, and data that change may ask of them what they
cannot fulfil together. A small weight on the diagonal makes the matrix regular, but its answer to such a
change is as large as one over the weight, most of it rounding, which then grows from step to step.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.branches import AT_BOUND, REGULARISATION
from nsjax.linalg import LOOP_LIMIT, matmul, matvec, solve
from nsjax.types import Array

LEAST_PIVOT = 1e-8
"""Pivot below which a row of unit diagonal depends on the others: rounding leaves 1e-15, and the answer
loses digits by one over the pivot."""

FIRST_PIVOT = 1e-4
"""Pivot above which a row is eliminated at once; rows below it wait for all others. A rod that leans by
1e-4 and sticks at both ends has three rows along itself, of which the third has a pivot of 1e-8. Eliminated
in its turn, it would leave rounding over 1e-8 as pivot of a fifth row, which would count as independent."""

NOISE = 1e-14
"""Rounding of pivots; divided by the least pivot so far it is that of the pivots that follow."""

LEAST_TURN = AT_BOUND
"""Pivot below which the row of friction across the sliding in space depends on the others. A contact that
slides with the velocity ``u`` resists turning by ``mu x_N / |u|``: as it stops, its row across becomes that
of a contact that sticks. Where other rows hold the contact across its sliding, the pivot is
``r |u| / (mu x_N)``, which falls from step to step, and rounding of the speed across changes forces by one
over it. Below `AT_BOUND`, the relative distance within which a force is at its bound, the direction of
sliding is taken as held by the others, and the force across is zero.
"""


def dependent_answer(
    a: Array, use: Array, f: Array, weight: Array | float = REGULARISATION, turns: Array | None = None
) -> Array:
    """Least ``x`` (m,) with ``a x = f`` in the independent rows, with derivatives of any order.

    Elimination passes over rows that depend on others, from the last row to the first: bilateral rows count
    before bounded ones, and these before contacts, whose restitution refers to the velocity before the
    step. Rows with small pivots are tried again after all others. With the independent rows ``I``, the
    others ``D`` and ``B = a_II^-1`` the changes that move nothing are the columns of ``N = (-B a_ID, 1)``,
    and ``x = (1 - N (N' N)^-1 N') B f``. No intermediate number is larger than the independent rows make
    it.

    Args:
        a: (m, m) rows, used ones with a unit diagonal.
        use: (m,) bool, rows that may depend on each other; the others are independent.
        f: (m,) right-hand side.
        weight: of the diagonal, see limits.
        turns: (m,) bool, rows of friction across the sliding: eliminated last, and with the answer zero
            where they depend on others, see `LEAST_TURN`; None: there are none.

    Limits: a row whose part beside the others is smaller than 1e-4 of it (the root of `LEAST_PIVOT`) counts
    as dependent: two walls that meet at such an angle are one wall. With more rows than
    `nsjax.linalg.LOOP_LIMIT` ``weight`` is added to the diagonal instead.
    """
    m = a.shape[0]
    if m > LOOP_LIMIT:
        added = jnp.where(use if turns is None else use | turns, weight, 0.0)[:, None] * np.eye(m)
        return solve(a + added, f[:, None])[:, 0]
    inverse, free = _eliminated(a, use, turns)
    if turns is not None:
        free = free & ~turns
    moves = jnp.where(free, matmul(inverse, a, few=True) - np.eye(m), 0.0)
    square = matmul(moves.T, moves, few=True) + jnp.where(free, 0.0, 1.0) * np.eye(m)
    x = matvec(inverse, f)
    return x - matvec(moves, matvec(solve(square, moves.T, LOOP_LIMIT), x))


@jax.custom_jvp
def _eliminated(a: Array, use: Array, turns: Array | None) -> tuple[Array, Array]:
    """``B`` (m, m), zero in dependent rows and columns, and the dependent rows (m,) bool.

    The derivative is that of an inverse: it does not go through the elimination.
    """
    m = a.shape[0]
    first, last, bounded = jnp.asarray(FIRST_PIVOT), jnp.asarray(LEAST_PIVOT), use
    place: Any = np.arange(m)[::-1]  # order of elimination; rows stay in place
    if turns is not None:
        first, last = jnp.where(turns, jnp.inf, first), jnp.where(turns, LEAST_TURN, last)
        bounded = use | turns
        later = np.arange(m) + jnp.where(turns, 0, m)
        place = jnp.sum(later[None, :] > later[:, None], axis=1)

    def eliminate(n: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, free, smallest = carry
        here = free & (place == lax.rem(n, m))
        row = jnp.sum(jnp.where(here[:, None], x, 0.0), axis=0)
        pivot = jnp.sum(jnp.where(here, row[:m], 0.0))
        least = jnp.where(n < m, first, jnp.maximum(last, NOISE / smallest))
        here = here & ((jnp.abs(pivot) > least) | ~bounded)
        found = jnp.any(here)
        row = jnp.where(found, row / jnp.where(found, pivot, 1.0), 0.0)
        column = jnp.sum(jnp.where(here, x[:, :m], 0.0), axis=1)
        x = jnp.where(here[:, None], row, x - column[:, None] * row)
        return x, free & ~here, jnp.where(found, jnp.minimum(smallest, jnp.abs(pivot)), smallest)

    start = jnp.concatenate([a, jnp.eye(m)], axis=1), jnp.ones(m, bool), jnp.ones(())
    if jax.default_backend() != "cpu":  # where loops of unknown length wait for the host
        x, free, _ = lax.fori_loop(0, 2 * m, eliminate, start)
    else:
        going = lambda c: (c[0] < m) | ((c[0] < 2 * m) & jnp.any(c[1][1]))  # noqa: E731
        onwards = lambda c: (c[0] + 1, eliminate(*c))  # noqa: E731
        _, (x, free, _) = lax.while_loop(going, onwards, (jnp.asarray(0), start))
    return jnp.where(free[:, None] | free[None, :], 0.0, x[:, m:]), free


@_eliminated.defjvp
def _inverse_moves(primals: Any, tangents: Any) -> Any:
    inverse, free = _eliminated(*primals)
    change = -matmul(inverse, matmul(tangents[0], inverse, few=True), few=True)
    return (inverse, free), (change, np.zeros(free.shape, jax.dtypes.float0))
