"""Block-diagonal matrices that store only their blocks."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg.paired import Paired
from nsjax.types import Array, record

_WRITTEN_SUM = 24


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
    `nsjax.linalg.matmul` take it like an array.

    Args:
        values: (n, r, c).

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
