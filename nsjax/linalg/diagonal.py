"""The structure of models whose unknowns fall into blocks that are not coupled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg.blocks import Blocks
from nsjax.linalg.dense import solve
from nsjax.linalg.paired import Paired
from nsjax.linalg.structure import BlockTridiagonal
from nsjax.types import Array, record


def block_jacobian(f: Callable[[Array], Array], x: Array, blocks: int) -> Blocks:
    """Jacobian of a function (n,) -> (m,) of ``blocks`` equal parts, each of which depends on the same part
    of ``x`` alone: one directional derivative per entry of a part.
    """
    size = x.shape[0] // blocks

    def moved(y: Array) -> Array:
        return f(x + jnp.broadcast_to(y, (blocks, size)).reshape(-1))

    found = jax.jacfwd(moved)(jnp.zeros(size, x.dtype))
    return Blocks(values=found.reshape(blocks, -1, size))


@record(static=("structure",))
class BlockInverse:
    """An eliminated block-diagonal matrix."""

    structure: Any
    inverse: Blocks

    def solve(self, b: Any) -> Any:
        """``A^-1 b`` of (n,), (n, k), or columns in `Blocks` or `Paired` of as many blocks."""
        if isinstance(b, Blocks):
            return self.inverse.after(b)
        if isinstance(b, Paired):
            inverse = self.inverse.values
            held = jnp.concatenate([inverse, jnp.zeros_like(inverse[:1])])[b.of]
            values = jnp.einsum("nscd,nsrd->nsrc", held, b.values)
            return dataclasses.replace(b, values=values)
        columns = self.structure.to_blocks(b if b.ndim == 2 else b[:, None])
        x = self.inverse.after(Blocks(values=columns)).values
        return self.structure.from_blocks(x, b.shape[0]).reshape(b.shape)


@dataclasses.dataclass(frozen=True)
class BlockDiagonal(BlockTridiagonal):
    """Structure of many free bodies: unknowns come body by body, inertia and forces couple no two bodies.

    The tangent is recovered from ``block`` directional derivatives; elimination and solution cost
    ``bodies block^3``. Contacts of a body with its surroundings need not couple bodies, either: see
    ``islands`` of `nsjax.System`.

    Args:
        block: unknowns of a body.
        constant: see `Dense`.
        copies, lacking: see `BlockTridiagonal`.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import BlockDiagonal
        >>> bodies = BlockDiagonal(2)
        >>> f = lambda x: (x.reshape(2, 2) + 0.5 * x.reshape(2, 2)[:, ::-1]).reshape(4)
        >>> done, _ = bodies.eliminate(bodies.tangent(f, jnp.zeros(4)), jnp.zeros((4, 0)))
        >>> f(done.solve(jnp.arange(4.0))).round(12).tolist()
        [0.0, 1.0, 2.0, 3.0]
    """

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if self.block >= 1 and size % self.block == 0:
            return None
        return f"nv = {size} is not a multiple of the block {self.block} of its block-diagonal structure"

    def seeds(self, x: Array) -> Array:
        """Directions (width, n): one unknown of all blocks at once."""
        n, w = x.shape[0], self._width
        one = np.broadcast_to(np.eye(w)[:, None, :, None], (w, n // w, w, 1))
        return jax.vmap(lambda s: self.from_blocks(s, n)[:, 0])(jnp.asarray(one, x.dtype))

    def recovered(self, found: Array) -> Any:
        """The matrix from its products with `seeds`."""
        blocks = jax.vmap(lambda s: self.to_blocks(s[:, None])[:, :, 0])(found)
        return Blocks(values=jnp.transpose(blocks, (1, 2, 0)))

    def times(self, matrix: Any, x: Array) -> Array:
        """``A x`` (n,)."""
        product = matrix.after(Blocks(values=self.to_blocks(x[:, None]))).values
        return self.from_blocks(product, x.shape[0])[:, 0]

    def eliminate(self, matrix: Any, columns: Any) -> tuple[Any, Any]:
        """Eliminated matrix, and its inverse times ``columns`` (n, k) or in `Blocks`."""
        one = jnp.eye(self._width, dtype=matrix.values.dtype)
        inverse = jax.vmap(lambda a: solve(a, one))(matrix.values)
        done = BlockInverse(structure=self, inverse=Blocks(values=inverse))
        return done, done.solve(columns) if columns.shape[1] else columns
