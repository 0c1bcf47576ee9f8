"""Matrices whose rows depend on the unknowns of two blocks each, and that store only those entries."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

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
        inverse: (blocks, c, c) blocks of the matrix that has multiplied such a transpose, such as the
            inverse mass for directions; None: none has.

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
    inverse: Array | None = None

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
        pushed = jnp.sum(self.values * x.reshape(n, 1, r, 1), axis=2)
        return self.gathered(pushed)[: self.blocks].reshape(-1)

    def taken(self, groups: Array) -> Paired:
        """The rows of the ``groups`` (k,) alone."""
        return dataclasses.replace(self, values=self.values[groups], of=self.of[groups])

    def gathered(self, x: Array) -> Array:
        """Sums (blocks + 1, ...) of entries (n, 2, ...) over each block, that of the ground last."""
        flat = x.reshape(-1, *x.shape[2:])
        return jax.ops.segment_sum(flat, self.of.reshape(-1), num_segments=self.blocks + 1)

    def local(self, other: Paired) -> Array:
        """Diagonal blocks (n, r, r) of ``self other``, with ``other`` the transpose of such rows."""
        return jnp.einsum("nsic,nsjc->nij", self.values, other.values)

    def after(self, other: Paired) -> Array:
        """``self other`` (n r, k r) as an array; ``other`` is the transpose of rows of ``k`` groups."""
        (n, _, r, c), k = self.values.shape, other.values.shape[0]
        product = jnp.zeros((n, r, k, r))
        for one in range(2):
            for two in range(2):
                mine = self.of[:, one]
                same = (mine[:, None] == other.of[:, two]) & (mine[:, None] < self.blocks)
                parts = self.values[:, one].reshape(n * r, c) @ other.values[:, two].reshape(k * r, c).T
                product = product + jnp.where(same[:, None, :, None], parts.reshape(n, r, k, r), 0.0)
        return product.reshape(n * r, k * r)

    def dense(self) -> Array:
        """The matrix as an array, for small ones."""
        return jax.vmap(self.times)(jnp.eye(self.shape[1])).T
