"""The inertia of a system at a position, as the structure of the system wants it."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.core.operators import momentum
from nsjax.core.system import System
from nsjax.linalg import Dense, Elimination, eliminated, matvec, solve_positive
from nsjax.types import Array, PyTree, record


@record(static=("system",))
class Inertia:
    """``M(q)``: its product and its inverse. Made by `inertia_at`.

    Args:
        system, q, params: where it is taken.
        matrix: (nv, nv) for dense structures without factors, else None.
        factors: eliminated matrix, or None.
    """

    system: System
    q: Array
    params: PyTree
    matrix: Array | None
    factors: Elimination | None

    def times(self, w: Array) -> Array:
        """``M w`` (nv,)."""
        if self.matrix is not None:
            return matvec(self.matrix, w)
        return momentum(self.system, self.q, w, self.params)

    def solve(self, columns: Array) -> Array:
        """``M^-1 b`` for columns (nv, k)."""
        if self.factors is not None:
            return self.factors.solve(columns)
        return solve_positive(self.matrix, columns)  # type: ignore[arg-type]


def mass_matrix(system: System, q: Array, p: PyTree) -> Array:
    """``M(q)`` (nv, nv), also of a system that gives inertia only."""
    if system.mass is not None:
        return system.mass(q, p)
    return Dense().tangent(lambda w: momentum(system, q, w, p), jnp.zeros(system.nv, q.dtype))


def factored_inertia(system: System, q: Array, p: PyTree) -> Elimination:
    """``M(q)`` eliminated, for any structure."""
    return eliminated(system.structure, lambda w: momentum(system, q, w, p), jnp.zeros(system.nv, q.dtype))


def inertia_at(system: System, q: Array, p: PyTree, kept: Elimination | None = None) -> Inertia:
    """Inertia at ``q``.

    Args:
        kept: factors from `constant_inertia`, where they exist.
    """
    if kept is not None:
        return Inertia(system=system, q=q, params=p, matrix=None, factors=kept)
    if isinstance(system.structure, Dense):
        return Inertia(system=system, q=q, params=p, matrix=mass_matrix(system, q, p), factors=None)
    return Inertia(system=system, q=q, params=p, matrix=None, factors=factored_inertia(system, q, p))


def constant_inertia(system: System, p: PyTree) -> Elimination | None:
    """Factors that hold for a whole run, if the structure promises that they do; else None."""
    if not system.structure.constant:
        return None
    return factored_inertia(system, jnp.zeros(system.nq), p)
