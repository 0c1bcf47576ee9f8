"""The inertia of a system at a position, in the form of the system's structure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import Joints, Rows, all_rows, momentum
from nsjax.core.system import System, bordered
from nsjax.linalg import (
    Blocks,
    Dense,
    Elimination,
    Local,
    Paired,
    eliminated,
    interleaving,
    matmul,
    matvec,
    solve_positive,
)
from nsjax.types import Array, PyTree, record

NO_RESPONSES = (
    "derivative of the motion through contacts at nodes of the structure ConjugateGradients: responses of "
    'all contacts would be formed. Take gradient="discrete", the derivative of the program, without '
    "that of the times of impacts; or a structure that eliminates (flexible_cube: "
    'solver="direct")'
)
"""Error sentence: why motions through contacts at single nodes are not differentiated."""


@record()
class ConstantInertia:
    """Inertia that is constant over a run: its factors, and ``M^-1 W`` (nv, rows) of all rows."""

    factors: Elimination
    response: Any


@record(static=("system",))
class Inertia:
    """Inertia ``M(q)`` with its product and its inverse; made by `inertia_at`.

    With constraints that are eliminated with the velocities (`System.inside`) the inverse solves
    ``M dv - W x = push``, ``W' dv = 0``.

    Args:
        system, q, params: the system, its position and its params.
        matrix: (nv, nv) for dense structures without factors, else None.
        factors: eliminated matrix, of velocities and multipliers where joints are inside; or None.
        response: ``M^-1 W`` (nv, rows) where it is known.
        inverse: (nv, nv), where it is formed: see `inverted`.
    """

    system: System
    q: Array
    params: PyTree
    matrix: Array | None
    factors: Elimination | None
    response: Any = None
    inverse: Array | None = None

    def heavier(self, added: Array) -> Inertia:
        """The same with an inertia (nv,) or (nv, nv) added to a dense matrix without factors."""
        assert self.matrix is not None
        return dataclasses.replace(self, matrix=heavier(self.matrix, added))

    def inverted(self) -> Inertia:
        """The same inertia with the inverse matrix formed if it is dense: for several solutions
        at one position, one after the other.
        """
        if self.matrix is None or self.factors is not None:
            return self
        inverse = solve_positive(self.matrix, jnp.eye(self.matrix.shape[0], dtype=self.matrix.dtype))
        return dataclasses.replace(self, inverse=inverse)

    def times(self, w: Array) -> Array:
        """``M w`` (nv,)."""
        if self.matrix is not None:
            return matvec(self.matrix, w)
        return momentum(self.system, self.q, w, self.params)

    def solve(self, columns: Any) -> Any:
        """``M^-1 b`` for columns (nv, k), or in `Blocks`."""
        if not columns.shape[1]:
            return columns
        if self.inverse is not None:
            return self._by_inverse(columns.T)
        if self.factors is None:
            return solve_positive(self.matrix, columns)  # type: ignore[arg-type]
        inside, n = self.system.inside, columns.shape[0]
        if not inside:
            return self.factors.solve(columns)
        return self.factors.solve(jnp.concatenate([columns, jnp.zeros((inside, columns.shape[1]))]))[:n]

    def _by_inverse(self, rows: Array) -> Array:
        """``M^-1 b`` (nv, k) for ``b' = rows`` (k, nv); the inverse is symmetric, and this order of the
        product has vector instructions.
        """
        return matmul(rows, self.inverse).T

    def constrained(self, push: Array, rates: Array) -> tuple[Array, Array]:
        """``dv`` (nv,) and impulses ``x`` (inside,) of the joints inside: ``M dv = push + W x`` with
        ``W' dv = rates``.
        """
        if self.factors is None or not self.system.inside:
            return self.solve(push[:, None])[:, 0], rates
        both = self.factors.solve(jnp.concatenate([push, rates]))
        return both[: push.shape[0]], both[push.shape[0] :]

    def answers(self, push: Array, rows: Rows) -> tuple[Array, Any]:
        """``M^-1 push`` (nv,) and ``M^-1 W`` (nv, rows) for all rows of the system, or the last ones."""
        wt = rows.wt
        if isinstance(wt, Local):
            raise NotImplementedError(NO_RESPONSES)
        if isinstance(wt, Blocks | Paired):
            response = self.solve(wt.T) if self.response is None else self.response
            return self.solve(push[:, None])[:, 0], response
        if self.response is not None:
            drift = self.solve(push[:, None])[:, 0]
            if not wt.shape[0]:
                return drift, wt.T
            return drift, self.response[:, self.response.shape[1] - wt.shape[0] :]
        if self.inverse is not None:
            return matvec(self.inverse, push), self._by_inverse(wt)
        x = self.solve(jnp.concatenate([push[:, None], wt.T], axis=1))
        return x[:, 0], x[:, 1:]


def mass_matrix(system: System, q: Array, p: PyTree) -> Array:
    """``M(q)`` (nv, nv), also of a system that gives inertia only."""
    if system.mass is not None:
        return system.mass(q, p)
    return Dense().tangent(lambda w: momentum(system, q, w, p), jnp.zeros(system.nv, q.dtype))


def heavier(mass: Array, added: Array) -> Array:
    """A mass matrix with an inertia (nv,) on its diagonal, or (nv, nv), added to it."""
    return mass + (added if added.ndim == 2 else added[:, None] * np.eye(added.shape[0]))


def added_momentum(added: Array, v: Array) -> Array:
    """Momentum (nv,) of such an inertia."""
    return matvec(added, v) if added.ndim == 2 else added * v


def saddle(system: System, t: Array, q: Array, p: PyTree) -> Callable[[Array], Array]:
    """Affine function ``(w, x) -> (M w - W x, W' w)`` (nv + inside,) for the constraints inside the
    structure.
    """
    joints = Joints(system=system, t=t, q=q, params=p)

    def along(y: Array) -> Array:
        w, x = y[: system.nv], y[system.nv :]
        return jnp.concatenate([momentum(system, q, w, p) - joints.force(x), joints.rate(w)])

    return along


def factored_inertia(system: System, t: Array, q: Array, p: PyTree) -> Elimination:
    """``M(q)`` eliminated, for any structure, with the constraints inside it."""
    structure, rest = system.structure, jnp.zeros(system.nv + system.inside, q.dtype)
    if system.inside:
        return eliminated(interleaving(structure).saddle, saddle(system, t, q, p), rest)
    return eliminated(structure, lambda w: momentum(system, q, w, p), rest)


def inertia_at(
    system: System, t: Array | float, q: Array, p: PyTree, kept: ConstantInertia | None = None, *,
    joints: bool = True,
) -> Inertia:  # fmt: skip
    """Inertia at ``(t, q)``.

    Args:
        kept: result of `constant_inertia`, where it is known.
        joints: whether joints inside the structure constrain the motion, see `Inertia`.
    """
    matrix, factors, response = None, None, None
    if not joints:
        system = bordered(system)
    if kept is not None:
        factors, response = kept.factors, kept.response
    elif system.structure.dense:
        matrix = mass_matrix(system, q, p)
    else:
        factors = factored_inertia(system, jnp.asarray(t), q, p)
    return Inertia(system=system, q=q, params=p, matrix=matrix, factors=factors, response=response)


def constant_inertia(system: System, p: PyTree) -> ConstantInertia | None:
    """Factors that hold for a whole run if the structure is constant, else None."""
    if not system.structure.constant:
        return None
    rest = jnp.zeros(system.nq)
    factors = factored_inertia(system, jnp.zeros(()), rest, p)
    if not system.nc and not system.nb:
        return ConstantInertia(factors=factors, response=jnp.zeros((system.nv, 0)))
    rows = all_rows(system, jnp.zeros(()), rest, p)
    return ConstantInertia(factors=factors, response=factors.solve(rows.wt.T))
