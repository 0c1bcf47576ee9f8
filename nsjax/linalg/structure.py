"""Structures that a model may promise for its tangent matrix, and the linear algebra of each.

A structure recovers the tangent of any residual from a few directional derivatives, eliminates it, and
solves with it. Contacts and loop closures do not belong to it: they are a border of few rows, handled
by their Schur complement (`nsjax.contact.stage`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.linalg.dense import (
    INLINE_LIMIT,
    Factors,
    Tridiagonal,
    factor,
    matmul,
    matvec,
    product,
    solve,
    solve_factored,
)
from nsjax.linalg.elimination import Pattern, plan
from nsjax.types import Array, PyTree, record


class Structure(Protocol):
    """Interface of a structure; users may write their own. Frozen, hashable, without numbers.

    Matrices are whatever `tangent` returns, pytrees of arrays, and eliminated ones have
    ``solve(b)``, ``A^-1 b`` of (n,) or (n, k), with derivatives of what `tangent` returned.

    Example:
        >>> from nsjax.linalg import BlockTridiagonal, Structure
        >>> chain: Structure = BlockTridiagonal(2)
        >>> chain.dense
        False
    """

    @property
    def constant(self) -> bool:
        """Whether the tangent, the inertia and the directions of the rows are the same in all states and at
        all times, so that they are factorised once per run.
        """

    @property
    def dense(self) -> bool:
        """Whether matrices are arrays (n, n) with all couplings, also by forces of contacts and joints."""

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""

    def stacked(self, copies: int) -> Structure:
        """The structure for ``copies`` vectors of unknowns one after the other, each coupled like one."""

    def tangent(self, f: Callable[[Array], Array], x: Array) -> Any:
        """``df/dx``, from directional derivatives."""

    def times(self, matrix: Any, x: Array) -> Array:
        """``A x`` (n,)."""

    def eliminate(self, matrix: Any, columns: Array) -> tuple[Any, Array]:
        """Eliminated matrix, and its inverse times ``columns`` (n, k)."""


class Elimination(Protocol):
    """An eliminated matrix."""

    def solve(self, b: Array) -> Array:
        """``A^-1 b`` (n,) or (n, k)."""


@record()
class Inverse:
    """An eliminated dense matrix."""

    inverse: Array

    def solve(self, b: Array) -> Array:
        """``A^-1 b`` (n,) or (n, k)."""
        return matvec(self.inverse, b) if b.ndim == 1 else matmul(self.inverse, b)


@record()
class Triangles:
    """An eliminated dense matrix of many unknowns: triangular factors, a third of an inverse's cost."""

    lu: Array
    order: Array

    def solve(self, b: Array) -> Array:
        """``A^-1 b`` (n,) or (n, k)."""
        x = (b[:, None] if b.ndim == 1 else b)[self.order]
        x = lax.linalg.triangular_solve(self.lu, x, left_side=True, lower=True, unit_diagonal=True)
        return lax.linalg.triangular_solve(self.lu, x, left_side=True).reshape(b.shape)


@dataclasses.dataclass(frozen=True)
class Dense:
    """Structure without a promise: every unknown may be coupled to every other one.

    Args:
        constant: the tangent, the inertia and the directions of the rows are the same in all states and
            at all times, so that they are factorised once per run.
        inverse: whether a tangent of any size is inverted; else one of more than 24 unknowns is factorised.

    Example:
        >>> from nsjax.linalg import Dense
        >>> Dense().misfit(100) is None
        True
    """

    constant: bool = False
    inverse: bool = False

    dense = True

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        most = 2000  # unknowns above which a dense matrix is refused
        if size <= most:
            return None
        return (
            f"nv = {size} with a dense structure, which ends at {most} unknowns; promise structure="
            "BlockTridiagonal(block) or Sparse(pattern)"
        )

    def stacked(self, copies: int) -> Dense:
        """The structure for ``copies`` vectors of unknowns one after the other, each coupled like one.

        The tangent of several vectors is inverted, because jaxlib 0.10.2 refuses the solves with triangular
        factors in the loops of such steps: ``No registered implementation for untyped custom call to
        lapack_dtrsm_ffi``. The calls lose the version of their interface on the way into the compiler.
        """
        return self if copies == 1 else dataclasses.replace(self, inverse=True)

    def tangent(self, f: Callable[[Array], Array], x: Array) -> Array:
        """``df/dx`` (n, n)."""
        return jax.jacfwd(f)(x)

    def times(self, matrix: Array, x: Array) -> Array:
        """``A x`` (n,)."""
        return matvec(matrix, x)

    def eliminate(self, matrix: Array, columns: Array) -> tuple[Inverse | Triangles, Array]:
        """Eliminated matrix, and its inverse times ``columns`` (n, k)."""
        n = matrix.shape[0]
        if n > INLINE_LIMIT and not self.inverse:
            lu, _, order = lax.linalg.lu(matrix)
            done = Triangles(lu=lu, order=order)
            return done, done.solve(columns) if columns.shape[1] else columns
        solved = solve(matrix, jnp.concatenate([jnp.eye(n), columns], axis=1))
        return Inverse(inverse=solved[:, :n]), solved[:, n:]


@record(static=("structure",))
class EliminatedTridiagonal:
    """An eliminated block-tridiagonal matrix, in the order of the unknowns."""

    structure: Any
    matrix: Tridiagonal
    factors: Factors

    def solve(self, b: Array) -> Array:
        """``A^-1 b`` (n,) or (n, k), by substitution."""
        columns = b if b.ndim == 2 else b[:, None]
        x = solve_factored(self.matrix, self.factors, self.structure.to_blocks(columns))
        return self.structure.from_blocks(x, b.shape[0]).reshape(b.shape)


def completed(matrix: Tridiagonal, missing: Any) -> Tridiagonal:
    """The matrix with rows of the unit matrix at the places ``missing`` (N, width) bool without unknown."""
    unit = missing[:, :, None] * np.eye(missing.shape[1])
    return dataclasses.replace(matrix, diagonal=matrix.diagonal + unit)


def columns_of(f: Callable[[Array], Array], x: Array, seeds: Array) -> Array:
    """Directional derivatives (seeds, n) of ``f``."""
    return jax.vmap(lambda s: jax.jvp(f, (x,), (s,))[1])(seeds)


class Coloured(Structure):
    """Base of structures, block tridiagonal in some order: frozen records with a number of ``copies``."""

    dense = False

    def stacked(self, copies: int) -> Any:
        """The structure for ``copies`` vectors of unknowns one after the other, each coupled like one."""
        own: Any = self
        return dataclasses.replace(own, copies=copies * own.copies)

    def to_blocks(self, x: Array) -> Array:
        """Vectors (n, k) in the order of the blocks (N, width, k)."""
        raise NotImplementedError

    def from_blocks(self, x: Array, size: int) -> Array:
        """Inverse of `to_blocks`."""
        raise NotImplementedError

    def seeds(self, x: Array) -> Array:
        """Directions (k, n) whose products with a matrix over vectors like ``x`` (n,) determine it."""
        raise NotImplementedError

    def recovered(self, found: Array) -> Tridiagonal:
        """The matrix from its products with `seeds`."""
        raise NotImplementedError

    def tangent(self, f: Callable[[Array], Array], x: Array) -> Tridiagonal:
        """``df/dx``."""
        return self.recovered(columns_of(f, x, self.seeds(x)))

    def times(self, matrix: Tridiagonal, x: Array) -> Array:
        """``A x`` (n,)."""
        return self.from_blocks(product(matrix, self.to_blocks(x[:, None])), x.shape[0])[:, 0]

    def eliminate(self, matrix: Tridiagonal, columns: Array) -> tuple[EliminatedTridiagonal, Array]:
        """Eliminated matrix, and its inverse times ``columns`` (n, k)."""
        done = EliminatedTridiagonal(structure=self, matrix=matrix, factors=factor(matrix))
        return done, done.solve(columns) if columns.shape[1] else columns


@dataclasses.dataclass(frozen=True)
class BlockTridiagonal(Coloured):
    """Structure of a chain: unknowns come node by node, and a node is coupled to its two neighbours only.

    It suits bars and beams, and chains of bodies in order. The tangent is recovered from ``3 block``
    directional derivatives; elimination and solution cost ``nodes block^3``.

    Args:
        block: unknowns of a node.
        constant: see `Dense`.
        copies: vectors of unknowns, such as the stages of a step, one after the other; set by `stacked`.
        lacking: first unknowns of the first node that do not exist, such as the place of a pinned end.

    Limits: elimination without exchange of rows: masses and tangents with regular leading parts.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import BlockTridiagonal
        >>> chain = BlockTridiagonal(1)
        >>> f = lambda x: 3.0 * x - jnp.pad(x[1:], (0, 1)) - jnp.pad(x[:-1], (1, 0))
        >>> done, _ = chain.eliminate(chain.tangent(f, jnp.zeros(4)), jnp.zeros((4, 0)))
        >>> f(done.solve(jnp.arange(4.0))).round(12).tolist()
        [0.0, 1.0, 2.0, 3.0]
    """

    block: int
    constant: bool = False
    copies: int = 1
    lacking: int = 0

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if self.block >= 1 and (size + self.lacking) % self.block == 0 and 0 <= self.lacking < self.block:
            return None
        without = f" without {self.lacking}" if self.lacking else ""
        return (
            f"nv = {size} is not a multiple of the block {self.block}{without} of its block-tridiagonal "
            "structure"
        )

    @property
    def _width(self) -> int:
        return self.block * self.copies

    def to_blocks(self, x: Array) -> Array:
        """Vectors (n, k) node by node (N, width, k)."""
        if self.lacking:
            by_copy = x.reshape(self.copies, -1, x.shape[1])
            x = jnp.pad(by_copy, ((0, 0), (self.lacking, 0), (0, 0))).reshape(-1, x.shape[1])
        if self.copies == 1:
            return x.reshape(-1, self.block, x.shape[1])
        by_copy = x.reshape(self.copies, -1, self.block, x.shape[1])
        return jnp.swapaxes(by_copy, 0, 1).reshape(-1, self._width, x.shape[1])

    def from_blocks(self, x: Array, size: int) -> Array:
        """Inverse of `to_blocks`."""
        if self.copies > 1:
            x = jnp.swapaxes(x.reshape(-1, self.copies, self.block, x.shape[2]), 0, 1)
        if self.lacking:
            x = x.reshape(self.copies, -1, x.shape[-1])[:, self.lacking :]
        return x.reshape(size, -1)

    def seeds(self, x: Array) -> Array:
        """Directions (3 width, n): one unknown of every third node at once."""
        n, b = x.shape[0], self._width
        nodes = jax.eval_shape(self.to_blocks, x[:, None]).shape[0]
        # nodes three apart share no neighbour: their columns do not mix
        every_third = (np.arange(nodes) % 3 == np.arange(3)[:, None]).astype(x.dtype)
        one = (every_third[:, None, :, None] * np.eye(b)[:, None, :]).reshape(3 * b, -1, b)
        return jax.vmap(lambda s: self.from_blocks(s[:, :, None], n)[:, 0])(jnp.asarray(one))

    def recovered(self, found: Array) -> Tridiagonal:
        """The matrix from its products with `seeds`."""
        b = self._width
        found = jax.vmap(lambda s: self.to_blocks(s[:, None])[:, :, 0])(found).reshape(3, b, -1, b)
        colour = np.arange(found.shape[2]) % 3

        def beside(d: int) -> Array:
            """Blocks that couple every node to the node ``d`` places further."""
            picked = [jnp.where(((colour + d) % 3 == c)[None, :, None], found[c], 0.0) for c in range(3)]
            return jnp.transpose(picked[0] + picked[1] + picked[2], (1, 2, 0))

        matrix = Tridiagonal(lower=beside(-1), diagonal=beside(0), upper=beside(1))
        if not self.lacking:
            return matrix
        missing = np.zeros(matrix.diagonal.shape[:2])
        missing[0] = np.tile(np.arange(self.block) < self.lacking, self.copies)
        return completed(matrix, missing)


@dataclasses.dataclass(frozen=True)
class Sparse(Coloured):
    """Structure with a fixed pattern of few couplings: meshes, trees of bodies.

    The tangent is recovered from as many directional derivatives as the columns have colours. Unknowns
    are put in the order of reverse Cuthill and McKee, which makes a narrow band, and the band is eliminated
    in blocks of its width: the order and the colours are computed once, outside of any program.

    Args:
        pattern: which unknowns are coupled.
        constant: see `Dense`.
        copies: see `BlockTridiagonal`.

    Limits: costs ``n width^2``: fine for long bodies and plane meshes up to some thousand unknowns,
    wasteful for solids (the band of a cube with ``m`` unknowns along an edge is ``m^2`` wide). Blocks above
    24 unknowns call LAPACK, which costs a time loop its single kernel. No exchange of rows. Reverse mode
    scatters.

    Example:
        >>> from nsjax.linalg import Pattern, Sparse
        >>> Sparse(Pattern.of_elements(4, [(0, 1), (1, 3)])).misfit(4) is None
        True
    """

    pattern: Pattern
    constant: bool = False
    copies: int = 1

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if self.pattern.size == size:
            return None
        return f"nv = {size}, but its sparse structure has a pattern of {self.pattern.size} unknowns"

    def to_blocks(self, x: Array) -> Array:
        """Vectors (n, k) in the order of elimination (N, copies * width, k)."""
        way, k = plan(self.pattern), x.shape[1]
        ordered = x.reshape(self.copies, -1, k)[:, way.order]
        # places without an unknown fill the last block
        full = jnp.pad(ordered, ((0, 0), (0, way.filled.size - way.order.size), (0, 0)))
        blocks = full.reshape(self.copies, -1, way.width, k)
        return jnp.swapaxes(blocks, 0, 1).reshape(-1, self.copies * way.width, k)

    def from_blocks(self, x: Array, size: int) -> Array:
        """Inverse of `to_blocks`."""
        way, k = plan(self.pattern), x.shape[2]
        by_copy = jnp.swapaxes(x.reshape(-1, self.copies, way.width, k), 0, 1)
        return by_copy.reshape(self.copies, -1, k)[:, way.place].reshape(size, k)

    def seeds(self, x: Array) -> Array:
        """Directions (copies colours, n): all columns of one colour in one copy at once."""
        way, s = plan(self.pattern), self.copies
        one = np.asarray(way.colours == np.arange(int(way.colours.max()) + 1)[:, None], x.dtype)
        return jnp.asarray((np.eye(s)[:, None, :, None] * one[None, :, None, :]).reshape(s * len(one), -1))

    def recovered(self, found: Array) -> Tridiagonal:
        """The matrix from its products with `seeds`."""
        way, s, w = plan(self.pattern), self.copies, plan(self.pattern).width
        count = found.shape[0] // s
        # (copy of the column, colour, copy of the row, row) -> (copy of the row, copy of the column, ...)
        flat = jnp.transpose(found.reshape(s, count, s, -1), (2, 0, 1, 3)).reshape(s, s, -1)
        entries = jnp.where(way.inside, flat[:, :, way.index], 0.0)
        blocks = jnp.transpose(entries, (2, 3, 0, 4, 1, 5)).reshape(3, -1, s * w, s * w)
        matrix = Tridiagonal(lower=blocks[0], diagonal=blocks[1], upper=blocks[2])
        return completed(matrix, np.tile(way.filled, (1, s)))


def eliminated(structure: Structure, f: Callable[[Array], Array], x: Array) -> Any:
    """The eliminated tangent of ``f`` at ``x``."""
    matrix: PyTree = structure.tangent(f, x)
    return structure.eliminate(matrix, jnp.zeros((x.shape[0], 0)))[0]
