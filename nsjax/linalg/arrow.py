"""A structure with a few unknowns that are coupled to all others."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg.dense import matmul, matvec, solve
from nsjax.linalg.structure import Coloured, Structure
from nsjax.types import Array, record


@record()
class ArrowMatrix:
    """Matrix ``((A, B), (C, D))``: heads (h, h), their rows (h, m) and columns (m, h), and the rest."""

    heads: Array
    rows: Array
    columns: Array
    rest: Any


@record(static=("structure",))
class EliminatedArrow:
    """An eliminated arrow: factors of the rest, ``D^-1 C`` and the inverse of ``A - B D^-1 C``."""

    structure: Any
    rows: Array
    rest: Any
    response: Array
    inverse: Array

    def solve(self, b: Array) -> Array:
        """``M^-1 b`` (n,) or (n, k)."""
        columns = b if b.ndim == 2 else b[:, None]
        head, tail = self.structure.split(columns)
        tail = self.rest.solve(tail)
        head = matmul(self.inverse, head - matmul(self.rows, tail))
        return self.structure.join(head, tail - matmul(self.response, head)).reshape(b.shape)


@functools.cache
def _pieces(heads: tuple[int, ...], size: int) -> tuple[tuple[bool, int, int], ...]:
    """Runs of unknowns of one kind: whether they are heads, the first index, the index after the last."""
    is_head = np.isin(np.arange(size), heads)
    edges = [0, *(np.flatnonzero(np.diff(is_head)) + 1).tolist(), size]
    return tuple((bool(is_head[i]), i, j) for i, j in itertools.pairwise(edges))


@dataclasses.dataclass(frozen=True)
class Arrow:
    """Structure of a few heads, coupled to every unknown, and the rest with a structure of its own.

    Examples are a floating frame and the nodes of its flexible body, a vehicle and its chains. Tangents of
    the rest are recovered by its structure; each head adds one directional derivative and one gradient, and
    all heads together a dense system.

    Args:
        heads: indices of the heads, increasing.
        rest: structure of all other unknowns, in their order; not a dense one.
        copies: see `BlockTridiagonal`.

    Limits: elimination begins with the rest, whose part of masses and tangents must be regular.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import Arrow, BlockTridiagonal
        >>> wheel = Arrow((0,), BlockTridiagonal(1))
        >>> f = lambda x: jnp.append(x[1:] * 2.0 + x[0], jnp.sum(x))[jnp.array([3, 0, 1, 2])]
        >>> done, _ = wheel.eliminate(wheel.tangent(f, jnp.zeros(4)), jnp.zeros((4, 0)))
        >>> f(done.solve(jnp.arange(4.0))).round(12).tolist()
        [0.0, 1.0, 2.0, 3.0]
    """

    heads: tuple[int, ...]
    rest: Coloured
    copies: int = 1

    dense = False

    @property
    def constant(self) -> bool:
        """Whether the whole tangent is constant, as the structure of the rest promises."""
        return self.rest.constant

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if any(b <= a for a, b in zip((-1, *self.heads), (*self.heads, size), strict=True)):
            return f"heads = {self.heads} of an arrow structure; give increasing numbers below nv = {size}"
        if not isinstance(self.rest, Coloured):
            return f"an arrow around {self.rest}; give BlockTridiagonal, Sparse or another `Coloured` one"
        misfit = self.rest.misfit(size - len(self.heads))
        return None if misfit is None else f"behind the {len(self.heads)} heads of an arrow, {misfit}"

    def stacked(self, copies: int) -> Arrow:
        """The structure for ``copies`` vectors of unknowns one after the other, each coupled like one."""
        return dataclasses.replace(self, copies=copies * self.copies)

    @property
    def _inner(self) -> Any:
        return self.rest if self.copies == 1 else self.rest.stacked(self.copies)

    def split(self, x: Array) -> tuple[Array, Array]:
        """Heads and rest of columns (n, k)."""
        size, k = x.shape[0] // self.copies, x.shape[1]
        by_copy = x.reshape(self.copies, size, k)
        pieces = _pieces(self.heads, size)
        pick = lambda kind: [by_copy[:, i:j] for is_head, i, j in pieces if is_head == kind]  # noqa: E731
        head, tail = (jnp.concatenate(pick(kind), axis=1) for kind in (True, False))
        return head.reshape(-1, k), tail.reshape(-1, k)

    def join(self, head: Array, tail: Array) -> Array:
        """Columns (n, k) from heads and rest."""
        k = head.shape[1]
        sources = [x.reshape(self.copies, -1, k) for x in (tail, head)]
        at, parts = [0, 0], []
        for is_head, i, j in _pieces(self.heads, sources[0].shape[1] + sources[1].shape[1]):
            first = at[is_head]
            parts.append(sources[is_head][:, first : first + j - i])
            at[is_head] = first + j - i
        return jnp.concatenate(parts, axis=1).reshape(-1, k)

    def tangent(self, f: Callable[[Array], Array], x: Array) -> ArrowMatrix:
        """``df/dx``."""
        _, change = jax.linearize(f, x)
        transposed = jax.linear_transpose(change, x)
        head, tail = (part[:, 0] for part in self.split(x[:, None]))
        count, rest = head.shape[0], self._inner
        heads = self.join(jnp.eye(count, dtype=x.dtype), jnp.zeros((tail.shape[0], count), x.dtype))
        seeds = jax.vmap(lambda s: self.join(jnp.zeros((count, 1), x.dtype), s[:, None])[:, 0])
        found = jax.vmap(change)(jnp.concatenate([heads.T, seeds(rest.seeds(tail))]))
        first, columns = self.split(found[:count].T)
        rows = jax.vmap(lambda s: transposed(s)[0])(heads.T)
        return ArrowMatrix(
            heads=first,
            rows=self.split(rows.T)[1].T,
            columns=columns,
            rest=rest.recovered(self.split(found[count:].T)[1].T),
        )

    def times(self, matrix: ArrowMatrix, x: Array) -> Array:
        """``A x`` (n,)."""
        head, tail = (part[:, 0] for part in self.split(x[:, None]))
        first = matvec(matrix.heads, head) + matvec(matrix.rows, tail)
        second = matvec(matrix.columns, head) + self._inner.times(matrix.rest, tail)
        return self.join(first[:, None], second[:, None])[:, 0]

    def eliminate(self, matrix: ArrowMatrix, columns: Array) -> tuple[EliminatedArrow, Array]:
        """Eliminated matrix, and its inverse times ``columns`` (n, k)."""
        rest, response = self._inner.eliminate(matrix.rest, matrix.columns)
        schur = matrix.heads - matmul(matrix.rows, response)
        inverse = solve(schur, jnp.eye(schur.shape[0], dtype=schur.dtype))
        done = EliminatedArrow(
            structure=self, rows=matrix.rows, rest=rest, response=response, inverse=inverse
        )
        return done, done.solve(columns) if columns.shape[1] else columns


def bordered(structure: Structure, count: int) -> Structure:
    """The structure of ``count`` unknowns that are coupled to everything, followed by others that have
    ``structure``.
    """
    if structure.dense:
        return structure
    first = tuple(range(count))
    if isinstance(structure, Arrow):
        return Arrow((*first, *(h + count for h in structure.heads)), structure.rest)
    return Arrow(first, structure)  # type: ignore[arg-type]
