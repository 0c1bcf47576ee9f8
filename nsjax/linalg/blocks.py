"""Matrices that store only their blocks: block-diagonal, with rows of one node, or of two blocks."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.types import Array, record


@record(static=("blocks", "across"))
class Paired:
    """Matrix (n r, blocks c) of ``n`` groups of ``r`` rows, each over two blocks of ``c`` unknowns: the
    directions of contacts between two bodies. `nsjax.linalg.matvec` takes it like an array.

    The two blocks of a group are data, so that they may change from step to step. Products gather and add
    up by blocks: memory and time are in proportion to the number of groups.

    Args:
        values: (n, 2, r, c) over the unknowns of the first and of the second block.
        of: (n, 2) int, the blocks of a group, two different ones; the index ``blocks`` is the fixed ground.
        blocks: number of blocks.
        across: whether the matrix is the transpose of this one.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import Paired, matvec
        >>> rows = Paired(values=jnp.array([[[[1.0]], [[-2.0]]]]), of=jnp.array([[0, 2]]), blocks=3)
        >>> matvec(rows, jnp.array([5.0, 7.0, 1.0])).tolist(), matvec(rows.T, jnp.ones(1)).tolist()
        ([3.0], [1.0, 0.0, -2.0])
    """

    values: Array
    of: Array
    blocks: int
    across: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix."""
        n, _, r, c = self.values.shape
        return (self.blocks * c, n * r) if self.across else (n * r, self.blocks * c)

    @property
    def T(self) -> Paired:
        """Transposed."""
        return dataclasses.replace(self, across=not self.across)

    def times(self, x: Array) -> Array:
        """Product with a vector."""
        n, _, r, c = self.values.shape
        if not self.across:
            padded = jnp.concatenate([x.reshape(self.blocks, c), jnp.zeros((1, c), x.dtype)])
            return jnp.sum(self.values * padded[self.of][:, :, None, :], axis=(1, 3)).reshape(-1)
        pushed = jnp.sum(self.values * x.reshape(n, 1, r, 1), axis=2).reshape(-1, c)
        made = jax.ops.segment_sum(pushed, self.of.reshape(-1), num_segments=self.blocks + 1)
        return made[: self.blocks].reshape(-1)

    def taken(self, groups: Array) -> Paired:
        """The rows of the ``groups`` (k,) alone."""
        return dataclasses.replace(self, values=self.values[groups], of=self.of[groups])

    def local(self, other: Paired) -> Array:
        """Diagonal blocks (n, r, r) of ``self other``, with ``other`` the transpose of such rows."""
        return jnp.einsum("nsic,nsjc->nij", self.values, other.values)

    def dense(self) -> Array:
        """The matrix as an array, for small ones."""
        return jax.vmap(self.times)(jnp.eye(self.shape[1])).T


# Block-diagonal matrices that store only their blocks.


_WRITTEN_SUM = 24
"""Number of terms up to which a sum is written out; more take long to compile."""


def summed(x: Array) -> Array:
    """Sum over the last axis, by adding one half onto the other: XLA hands sums of products over many
    blocks to a library, and a time loop is then no longer one kernel. Exported for such products.
    """
    n = x.shape[-1]
    if n > _WRITTEN_SUM:
        return jnp.sum(x, axis=-1)
    odd = []
    while n > 1:
        odd += [x[..., -1]] * (n % 2)
        n = n // 2
        x = x[..., :n] + x[..., n : 2 * n]
    return sum(odd, x[..., 0])


@record()
class Blocks:
    """Block-diagonal matrix (n r, n c) of ``n`` blocks that need not be square; `nsjax.linalg.matvec` and
    `nsjax.linalg.matmul` take it like an array. ``values``: (n, r, c).

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import Blocks, matvec
        >>> rows = Blocks(values=jnp.array([[[1.0, 2.0]], [[3.0, 4.0]]]))
        >>> rows.shape, matvec(rows, jnp.array([1.0, 1.0, 1.0, -1.0])).tolist()
        ((2, 4), [3.0, -1.0])
    """

    values: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix."""
        n, r, c = self.values.shape
        return n * r, n * c

    @property
    def T(self) -> Blocks:
        """Transposed."""
        return Blocks(values=jnp.swapaxes(self.values, 1, 2))

    def __mul__(self, factor: Array | float) -> Blocks:
        """Times a number."""
        return Blocks(values=self.values * factor)

    __rmul__ = __mul__

    def times(self, x: Array) -> Array:
        """Product with a vector (n c,) or with columns (n c, k)."""
        n, r, c = self.values.shape
        if x.ndim == 1:
            return summed(self.values * x.reshape(n, 1, c)).reshape(n * r)
        return self.after(Blocks(values=x.reshape(n, c, -1))).values.reshape(n * r, -1)

    def after(self, other: Blocks) -> Blocks:
        """Product with a matrix of as many blocks."""
        a, b = self.values, other.values
        if a.shape[2] > _WRITTEN_SUM:
            return Blocks(values=a @ b)
        terms = (a[:, :, k, None] * b[:, None, k, :] for k in range(a.shape[2]))  # see `summed`
        return Blocks(values=functools.reduce(jnp.add, terms))

    def diagonal(self) -> Array:
        """Entries (n r,) of square blocks."""
        return summed(self.values * np.eye(self.values.shape[1])).reshape(-1)

    def dense(self) -> Array:
        """The matrix as an array, for small ones."""
        n, r, c = self.values.shape
        one = np.eye(n)[:, None, :, None]
        return jnp.reshape(one * self.values[:, :, None, :], (n * r, n * c))


def magnitude(a: Any) -> Any:
    """Absolute values of the entries of an array, `Blocks`, `nsjax.linalg.Local` or `Paired`."""
    return jax.tree.map(jnp.abs, a)


def every(a: Any, count: int, step: int, *, columns: bool = False) -> Any:
    """Every ``step``-th of the first ``count`` rows (or columns). In `Blocks`, `Local` and `Paired`
    matrices, which must have no further rows, it is every ``step``-th of each block.
    """
    if isinstance(a, Blocks):
        return Blocks(values=a.values[:, :, ::step] if columns else a.values[:, ::step])
    if hasattr(a, "nodes"):  # `nsjax.linalg.Local`
        return dataclasses.replace(a, values=a.values[:, ::step])
    if isinstance(a, Paired):
        return dataclasses.replace(a, values=a.values[:, :, ::step])
    return a[:, :count:step] if columns else a[:count:step]


def product_diagonal(a: Any, b: Any) -> Array:
    """Diagonal of ``a b``, without forming the product."""
    if isinstance(a, Blocks):
        return summed(a.values * b.T.values).reshape(-1)
    if isinstance(a, Paired):
        return jnp.sum(a.values * b.values, axis=(1, 3)).reshape(-1)
    return jnp.sum(a * b.T, axis=1)


# Matrices whose rows depend on the unknowns of one node each, and that store only those entries.


@record(static=("nodes", "size", "across"))
class Local:
    """Matrix (n r, size) of ``n`` groups of ``r`` rows, each over the unknowns of one node: the directions
    of contacts of single nodes. `nsjax.linalg.matvec` takes it like an array.

    Args:
        values: (n, r, c) over the ``c`` unknowns of the node.
        nodes: node of each group, all different.
        size: number of unknowns.
        across: whether the matrix is the transpose of this one.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import Local, matvec
        >>> rows = Local(values=jnp.array([[[1.0, 2.0]]]), nodes=(1,), size=4)
        >>> matvec(rows, jnp.arange(4.0)).tolist(), matvec(rows.T, jnp.ones(1)).tolist()
        ([8.0], [0.0, 0.0, 1.0, 2.0])
    """

    values: Array
    nodes: tuple[int, ...]
    size: int
    across: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix."""
        n, r, _ = self.values.shape
        return (self.size, n * r) if self.across else (n * r, self.size)

    @property
    def T(self) -> Local:
        """Transposed."""
        return Local(values=self.values, nodes=self.nodes, size=self.size, across=not self.across)

    def times(self, x: Array) -> Array:
        """Product with a vector."""
        n, r, c = self.values.shape
        if not self.across:
            return summed(self.values * at_nodes(x, self.nodes, c)[:, None]).reshape(-1)
        pushed = summed(jnp.swapaxes(self.values, 1, 2) * x.reshape(n, 1, r))
        return onto_nodes(pushed, self.nodes, self.size)

    def dense(self) -> Array:
        """The matrix as an array, for small ones."""
        return jax.vmap(self.times)(jnp.eye(self.shape[1])).T


def _progression(nodes: tuple[int, ...]) -> tuple[int, int] | None:
    """First number and step of nodes whose numbers are equally far apart; None for others."""
    steps = set(np.diff(nodes).tolist()) or {1}
    step = steps.pop()
    return (nodes[0], step) if nodes and not steps and step > 0 else None


def at_nodes(x: Array, nodes: tuple[int, ...], block: int) -> Array:
    """Unknowns (n, block) of nodes: a slice where their numbers are equally far apart, else a gather."""
    rows, regular = x.reshape(-1, block), _progression(nodes)
    if regular is None:
        return jnp.asarray(rows[np.array(nodes, int)])
    first, step = regular
    return rows[first : nodes[-1] + 1 : step]


def onto_nodes(x: Array, nodes: tuple[int, ...], size: int) -> Array:
    """Vector (size,) with the unknowns (n, block) of nodes, zero elsewhere.

    Nodes whose numbers are equally far apart are padded with zeros; else this is a scatter, with which a
    loop is no longer one kernel. Loops of large solids are never one kernel: each of their iterations
    computes the forces of thousands of elements, which take far longer than the start of some kernels.
    """
    block, regular = x.shape[1], _progression(nodes)
    if regular is None:
        whole = jnp.zeros((size // block, block), x.dtype)
        return whole.at[np.array(nodes, int)].set(x, unique_indices=True).reshape(-1)
    first, step = regular
    after = size // block - 1 - nodes[-1]
    return lax.pad(x, jnp.zeros((), x.dtype), ((first, after, step - 1), (0, 0, 0))).reshape(-1)


def local_jacobian(
    f: Callable[[Array], Array], x: Array, rows: int, nodes: tuple[int, ...], block: int
) -> Local:
    """Jacobian of ``f``, ``(size,) -> (n rows,)``, where every group of ``rows`` depends on the unknowns of
    its node alone: one directional derivative per unknown of a node.
    """

    def moved(y: Array) -> Array:
        return f(x + jnp.broadcast_to(y, (x.shape[0] // block, block)).reshape(-1))

    found = jax.jacfwd(moved)(jnp.zeros(block, x.dtype))
    return Local(values=found.reshape(-1, rows, block), nodes=nodes, size=x.shape[0])
