"""One correction of the nonsmooth generalized-alpha family: linearised dynamics, bordered by the laws.

Source: [C (33), (39), (43), (47)-(50)].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import REGULARISATION
from nsjax.core.system import System
from nsjax.linalg import Elimination, Structure, matmul, matvec, solve
from nsjax.types import Array, record

# Of the diagonal, for dependent rows; relative, in increments. Rows with friction are dependent wherever a
# body sticks on two points, and have that of the contact solver. Without friction a thousandth of it is
# enough, with which a linear problem is solved by one correction: the counts of [C] are of one.
SMOOTH_REGULARISATION = 1e-12


@record()
class Linear:
    """``J dw - W dpi``, ready to be solved, and ``dy/dw``: of a dense structure the matrix (n, n), with the
    bilateral rows added by ``p W Y``; else the factors, and ``J^-1 W`` in place of ``W``.

    Args:
        matrix, done: one of them.
        directions: ``W`` or ``J^-1 W`` (n, rows).
        values: ``Y = dy/dw`` (rows, n).
        added: (rows,) bool, rows that the matrix contains.
    """

    matrix: Array | Any
    done: Elimination | None
    directions: Array
    values: Array
    added: Any


def linearised(
    structure: Structure, dynamics: Callable[[Array], Array], w: Array, directions: Array, values: Array,
    p: Array, bilateral: Any,
) -> Linear:  # fmt: skip
    """Tangent of the dynamics at ``w``, factored if the structure asks for it.

    A dense one takes its bilateral rows (rows,) bool in, and is thus regular for a singular mass.
    """
    matrix: Any = structure.tangent(dynamics, w)
    if structure.dense:
        if np.any(bilateral):
            matrix = matrix + matmul(directions, jnp.where(bilateral, p, 0.0)[:, None] * values)
        return Linear(matrix=matrix, done=None, directions=directions, values=values, added=bilateral)
    done, response = structure.eliminate(matrix, directions)
    added = np.zeros(len(bilateral), bool)
    return Linear(matrix=None, done=done, directions=response, values=values, added=added)


@record()
class Tangent:
    """Linearised subproblem: `Linear`, ``D = dpi/dsigma`` (rows, rows), factors of the rows (rows,), and
    their relative regularisation.
    """

    linear: Linear
    law: Array
    k: Array
    p: Array
    weight: Array | float = SMOOTH_REGULARISATION


def regularisation(system: System) -> float:
    """Relative weight that keeps dependent rows of the model apart."""
    return REGULARISATION if system.nt else SMOOTH_REGULARISATION


def correction(x: Tangent, dynamic: Array, rows: Array) -> tuple[Array, Array]:
    """``(dw, dx)`` of the linearised rows::

        J dw - W dpi = -r,     k dx - dpi = -(k x - pi),     dpi = D (k dx - p Y dw)

    by elimination of ``dw``; the unknowns of the border are ``dsigma``, or ``k dx`` for the rows that the
    matrix contains.
    """
    a, m = x.linear, x.law.shape[0]
    if a.done is not None:
        free, response = -a.done.solve(dynamic), matmul(a.directions, x.law)
    else:
        both = jnp.concatenate([-dynamic[:, None], matmul(a.directions, x.law)], axis=1)
        solved = solve(a.matrix, both)
        free, response = solved[:, 0], solved[:, 1:]
    if not m:
        return free, jnp.zeros(0)
    delassus = x.p[:, None] * matmul(a.values, response)
    border = jnp.eye(m) - x.law + delassus * (1.0 + x.weight * np.eye(m))
    known = -rows - x.p * matvec(a.values, free)
    u = solve(border, known[:, None])[:, 0]
    dw = free + matvec(response, u)
    change = jnp.where(a.added, u, u + x.p * matvec(a.values, dw))
    return dw, change / x.k
