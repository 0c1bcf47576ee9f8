"""Structure of large solids: tangents known by products, solved by preconditioned conjugate gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.linalg.krylov import conjugate_gradients
from nsjax.linalg.preconditioners import Preconditioner
from nsjax.types import Array, PyTree, record


@record(static=("structure",))
class Iterative:
    """A matrix whose linear systems are solved by iteration.

    Args:
        structure: the structure of the matrix.
        product: ``x -> A x``.
        made: numbers of its preconditioner.
    """

    structure: ConjugateGradients
    product: Any
    made: PyTree

    def precondition(self, x: Array) -> Array:
        """``P^-1 x`` (n,)."""
        return self.structure.preconditioner.apply(self.made, x)

    def _solve(self, b: Array) -> Array:
        s = self.structure

        def iterate(product: Callable[[Array], Array], b: Array) -> Array:
            found = conjugate_gradients(product, self.precondition, b, s.tolerance, s.max_iterations)
            return jnp.where(found.solved, found.x, jnp.nan)

        answer: Array = lax.custom_linear_solve(self.product, b, iterate, iterate, symmetric=True)
        return answer

    def solve(self, b: Array) -> Array:
        """``A^-1 b`` (n,) or (n, k); nan where the iteration has not converged."""
        if b.ndim == 1:
            return self._solve(b)
        return lax.map(self._solve, b.T).T if b.shape[1] else b


@dataclasses.dataclass(frozen=True)
class ConjugateGradients:
    """Structure of large meshes of solids: only products with the tangent are formed, element by element.

    Time and memory of a solution are those of a few dozen forces. `nsjax.schemes.nsga_decoupled` takes
    contacts of single nodes (``touched``) into the iteration; elsewhere every row of the border costs a
    solution, which suits few contacts and constraints.

    Args:
        preconditioner: `nsjax.linalg.NodeBlocks` (any mesh) or `nsjax.linalg.Separable` (boxes of equal
            elements).
        touched: promise that contact ``k`` depends on the velocities of node ``touched[k]`` alone; all
            nodes are different.
        tolerance: relative residual at which an iteration ends.
        max_iterations: number of iterations after which a solution fails: its values are then nan.
        local: whether rows of contacts are formed at their nodes alone; set for schemes that can take it.

    Limits: symmetric, positive definite tangents of vector spaces, for one vector of unknowns
    (`stacked`), so that schemes with several stages or stabilised positions are refused.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import ConjugateGradients, NodeBlocks
        >>> chain = ConjugateGradients(NodeBlocks((0, 1, 0, 1), 1))
        >>> f = lambda x: 3.0 * x - jnp.pad(x[1:], (0, 1)) - jnp.pad(x[:-1], (1, 0))
        >>> done, _ = chain.eliminate(chain.tangent(f, jnp.zeros(4)), jnp.zeros((4, 0)))
        >>> f(done.solve(jnp.arange(4.0))).round(8).tolist()
        [0.0, 1.0, 2.0, 3.0]
    """

    preconditioner: Preconditioner
    touched: tuple[int, ...] = ()
    tolerance: float = 1e-10
    max_iterations: int = 1000
    local: bool = False

    constant = False
    dense = False

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if len(set(self.touched)) < len(self.touched):
            return "structure: touched names a node twice; give every contact a node of its own"
        return self.preconditioner.misfit(size)

    def stacked(self, copies: int) -> ConjugateGradients:
        """Itself for one vector of unknowns; several are refused."""
        if copies == 1:
            return self
        raise ValueError(
            f"structure: ConjugateGradients does not solve for {copies} vectors of unknowns at once, as "
            "this scheme asks; take nsga_decoupled, moreau or bathe, or a structure that eliminates "
            "(Lattice, Sparse)"
        )

    def tangent(self, f: Callable[[Array], Array], x: Array) -> Any:
        """``df/dx`` as a product."""
        return jax.linearize(f, x)[1]

    def times(self, matrix: Any, x: Array) -> Array:
        """``A x`` (n,)."""
        found: Array = matrix(x)
        return found

    def eliminate(self, matrix: Any, columns: Array) -> tuple[Iterative, Array]:
        """The matrix with its preconditioner, and its inverse times ``columns`` (n, k)."""
        made = lax.stop_gradient(self.preconditioner.made(matrix, columns.shape[0]))
        done = Iterative(structure=self, product=matrix, made=made)
        return done, done.solve(columns)
