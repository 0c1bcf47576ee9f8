"""Newton corrections of large solids with contacts at single nodes; the iteration includes the laws.

At a node with a contact, forces ``dpi`` and increments ``dw`` obey the linearised laws; eliminating the
forces with the left inverse ``W^+`` of their directions leaves a system for the increments alone::

    J dw - W dpi = -r,     (1 - D) dpi + D p Y dw = -D rows,     dpi = W^+ (J dw + r)
    =>  (1 - W D W^+) J dw + W D p Y dw = -(1 - W D W^+) r - W D rows

Held rows (``D = 1``: closed contacts, sticking contacts) are constraints on ``dw``: preconditioner and
search directions are projected onto the increments that these rows leave free. Without tangents the system
is symmetric and solved by conjugate gradients, else by BiCGStab. Nothing grows with the square of the
number of contacts. Derivatives of a solution, forward and reverse, are solutions of the same kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.system import System, is_local
from nsjax.linalg import Local, at_nodes, matmul, onto_nodes, solve
from nsjax.linalg.iterative import Iterative, conjugate_gradients, stabilised
from nsjax.types import Array, PyTree, record


def without_responses(system: System) -> bool:
    """Whether every contact is at a single node of a large solid, so that responses are never formed."""
    return is_local(system)


@record()
class NodeProblem:
    """Linearised subproblem with ``m`` rows a contact and ``c`` coordinates at its node.

    Args:
        done: the eliminated tangent ``J``.
        wt: ``W'``, also ``Y``.
        back: ``W^+`` (nc, m, c).
        law: ``D`` (nc, m, m).
        k, p: factors (nc, m) of impulses and of rates in the rows.
    """

    done: Iterative
    wt: Local
    back: Array
    law: Array
    k: Array
    p: Array

    def at(self, x: Array) -> Array:
        """Entries (nc, c) at the nodes of contacts."""
        return at_nodes(x, self.wt.nodes, self.wt.values.shape[2])

    def to_velocities(self, x: Array) -> Array:
        """Vector (nv,) from entries (nc, c) at the nodes of contacts."""
        return onto_nodes(x, self.wt.nodes, self.wt.size)

    def forces(self, x: Array) -> Array:
        """``W x`` (nc, c) of rows (nc, m)."""
        return _times(jnp.swapaxes(self.wt.values, 1, 2), x)

    def least_increments(self, x: Array) -> Array:
        """Least increments (nc, c) with rates ``x`` (nc, m)."""
        return _times(jnp.swapaxes(self.back, 1, 2), x)


def _times(a: Array, x: Array) -> Array:
    """Products (nc, i) of matrices (nc, i, j) with (nc, j)."""
    return jnp.sum(a * x[:, None, :], axis=2)


def tangent_at_nodes(level: Any, d: PyTree, w: Array, s: Array, held: Array) -> NodeProblem:
    """Linearisation of a subproblem with contacts at single nodes."""
    nc, n, structure = level.system.nc, level.system.nv, level.system.structure
    wt = level.node_directions(d, w)
    matrix = structure.tangent(lambda w: functools.reduce(jnp.add, level.terms(d, w, held)), w)
    # no columns: responses of contacts are never formed
    done, _ = structure.eliminate(matrix, jnp.zeros((n, 0)))
    law = law_blocks(lambda x: level.by_contact(level.law(d, level.in_rows(x))), level.by_contact(s))
    k, p = (level.by_contact(jnp.broadcast_to(x, (level.rows,))) for x in level.factors(d))
    assert law.shape[0] == nc
    return NodeProblem(done=done, wt=wt, back=left_inverse(wt), law=law, k=k, p=p)


def left_inverse(wt: Local) -> Array:
    """``W^+ = (W' W)^-1 W'`` (nc, m, c)."""
    w = wt.values
    return jax.vmap(lambda a: solve(matmul(a, a.T), a))(w)


def own_responses(structure: Any, wt: Local, inertia: Callable[[Array], Array]) -> Array:
    """Diagonal (nc, m) of the Delassus operator at single nodes, by the preconditioner's diagonal."""
    heavy = structure.tangent(inertia, jnp.zeros(wt.size))
    made = structure.preconditioner.made(heavy, wt.size)
    own = at_nodes(structure.preconditioner.diagonal(made), wt.nodes, wt.values.shape[2])
    return jnp.sum(wt.values**2 * own[:, None], axis=2)


def law_blocks(law: Callable[[Array], Array], sigma: Array) -> Array:
    """``D`` (nc, m, m) of a law (nc, m) -> (nc, m), contact by contact."""
    nc, m = sigma.shape
    columns = [jax.jvp(law, (sigma,), (jnp.broadcast_to(one, (nc, m)),))[1] for one in np.eye(m)]
    return jnp.stack(columns, axis=2)


def correction_at_nodes(x: NodeProblem, dynamic: Array, rows: Array) -> tuple[Array, Array]:
    """Increments ``dw`` (nv,), ``dx`` (nc, m) by the residuals of dynamics (nv,) and laws (nc, m)."""
    # rows whose law holds their rate fix a part of the increment, whatever the dynamics: the iteration runs
    # in what they leave free, where the matrix is that of the free body
    held = jnp.diagonal(x.law, axis1=1, axis2=2) >= 1.0
    s = x.done.structure

    def free_part(r: Array) -> Array:
        """The part of a right-hand side that held rows leave free."""
        return r - x.to_velocities(x.forces(jnp.where(held, _times(x.back, x.at(r)), 0.0)))

    def free_increment(w: Array) -> Array:
        """The part of an increment that held rows leave free."""
        return w - x.to_velocities(x.least_increments(jnp.where(held, _times(x.wt.values, x.at(w)), 0.0)))

    def apply_law(rho: Array, w: Array, shift: Array | float = 0.0) -> Array:
        """``(1 - W D W^+) rho + W D (p Y w + shift)``."""
        act = x.p * _times(x.wt.values, x.at(w)) + shift - _times(x.back, x.at(rho))
        return rho + x.to_velocities(x.forces(_times(x.law, act)))

    start = x.to_velocities(x.least_increments(jnp.where(held, -rows / x.p, 0.0)))
    known = -apply_law(dynamic + x.done.product(start), start, rows)
    # friction depends on the normal force, which does not depend on friction: no symmetric matrix
    symmetric = x.law.shape[1] == 1
    iterate = conjugate_gradients if symmetric else stabilised

    def solve_free(product: Callable[[Array], Array], b: Array) -> Array:
        """Solution among the increments that held rows leave free; with the transposed matrix, too."""
        found = iterate(
            lambda w: free_part(product(w)),
            lambda r: free_increment(x.done.precondition(free_part(r))),
            free_part(b), s.tolerance, s.max_iterations,
        )  # fmt: skip
        return jnp.where(found.solved, found.x, jnp.nan)

    product = x.done.product if symmetric else lambda w: apply_law(x.done.product(w), w)
    dw = start + lax.custom_linear_solve(product, known, solve_free, solve_free, symmetric=symmetric)
    force = _times(x.back, x.at(x.done.product(dw) + dynamic))
    change = _times(x.law, force - rows - x.p * _times(x.wt.values, x.at(dw)))
    return dw, (change - rows) / x.k
