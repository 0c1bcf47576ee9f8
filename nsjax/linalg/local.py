"""Matrices whose rows depend on the unknowns of one node each, and that store only those entries."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.linalg.blocks import summed
from nsjax.types import Array, record


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
    """First number and step of nodes whose numbers are equally far apart, as on a face of a box; None for
    others.
    """
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
