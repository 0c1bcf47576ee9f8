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
