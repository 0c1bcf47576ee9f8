"""Nodes of a structured mesh of bricks, in slices."""

from __future__ import annotations

import dataclasses
import itertools
import math

import jax.numpy as jnp
import numpy as np

from nsjax.linalg.structure import Coloured
from nsjax.linalg.tridiagonal import Tridiagonal
from nsjax.types import Array


@dataclasses.dataclass(frozen=True)
class Lattice(Coloured):
    """Structure of a box of nodes, each coupled to its 26 neighbours: solids of hexahedra.

    Slices of nodes across the axis with most nodes are the blocks of a block-tridiagonal matrix. The
    tangent is recovered from ``27 block`` directional derivatives, columns of every third node in each
    direction; elimination and solution cost ``slices (nodes of a slice * block)^3``.

    Args:
        nodes: along the three axes; unknowns come node by node, the last axis running fastest.
        block: unknowns of a node.
        constant: see `Dense`.
        copies: see `BlockTridiagonal`.

    Limits: blocks above 24 unknowns call LAPACK, which costs a time loop its single kernel. No exchange of
    rows. Above some thousand unknowns elimination costs seconds.

    Example:
        >>> from nsjax.linalg import Lattice
        >>> Lattice((6, 6, 6), 3).misfit(648) is None
        True
    """

    nodes: tuple[int, int, int]
    block: int
    constant: bool = False
    copies: int = 1

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if len(self.nodes) == 3 and math.prod(self.nodes) * self.block == size:
            return None
        return f"nv = {size}, but its lattice has {self.nodes} nodes of {self.block} unknowns"

    def stacked(self, copies: int) -> Lattice:
        """The structure for ``copies`` vectors of unknowns one after the other, each coupled like one."""
        return dataclasses.replace(self, copies=copies * self.copies)

    @property
    def _axis(self) -> int:
        """The axis across which slices are cut."""
        return int(np.argmax(self.nodes))

    @property
    def _across(self) -> tuple[int, int]:
        """Nodes of a slice along its two axes."""
        first, second = (n for axis, n in enumerate(self.nodes) if axis != self._axis)
        return first, second

    def to_blocks(self, x: Array) -> Array:
        """Vectors (n, k) slice by slice (N, width, k)."""
        k, slices = x.shape[1], self.nodes[self._axis]
        grid = x.reshape(self.copies, *self.nodes, self.block, k)
        return jnp.moveaxis(grid, 1 + self._axis, 0).reshape(slices, -1, k)

    def from_blocks(self, x: Array, size: int) -> Array:
        """Inverse of `to_blocks`."""
        slices, k = x.shape[0], x.shape[2]
        grid = x.reshape(slices, self.copies, *self._across, self.block, k)
        return jnp.moveaxis(grid, 0, 1 + self._axis).reshape(size, k)

    def seeds(self, x: Array) -> Array:
        """Directions of one colour, unknown of a node and copy each, in the order colours, unknowns,
        copies.
        """
        place = np.indices(self.nodes).reshape(3, -1) % 3
        order = [self._axis, *(a for a in range(3) if a != self._axis)]
        colours = [
            np.all(place[order] == np.array(c)[:, None], axis=0)
            for c in itertools.product(range(3), repeat=3)
        ]
        node = np.asarray(colours, x.dtype)[:, None, None, None, :, None]
        unknown = np.eye(self.block)[None, :, None, None, None, :]
        copy = np.eye(self.copies)[None, None, :, :, None, None]
        return jnp.asarray((node * unknown * copy).reshape(27 * self.block * self.copies, -1))

    def recovered(self, found: Array) -> Tridiagonal:
        """The matrix from its products with `seeds`."""
        s, b, slices, (m, n) = self.copies, self.block, self.nodes[self._axis], self._across
        grid = found.reshape(3, 9, b, s, s, *self.nodes, b)
        # (colour of the slice, of the column in it, its unknown, its copy; slice, copy, row, unknown)
        rows = jnp.moveaxis(grid, 5 + self._axis, 4).reshape(3, 9, b, s, slices, s, m * n, b)
        i, j = np.divmod(np.arange(m * n), n)
        near = (np.abs(i[:, None] - i) <= 1) & (np.abs(j[:, None] - j) <= 1)
        colour, own = 3 * (i % 3) + j % 3, np.arange(slices) % 3

        def beside(d: int) -> Array:
            """Blocks that couple every slice to the slice ``d`` places further."""
            here = [((own + d) % 3 == c)[:, None, None, None] for c in range(3)]
            picked = [jnp.where(here[c], rows[c], 0.0) for c in range(3)]
            columns = (picked[0] + picked[1] + picked[2])[colour]
            # (column, its unknown, its copy; slice, copy, row, unknown)
            entries = jnp.where(near.T[:, None, None, None, None, :, None], columns, 0.0)
            return jnp.transpose(entries, (3, 4, 5, 6, 2, 0, 1)).reshape(slices, s * m * n * b, -1)

        return Tridiagonal(lower=beside(-1), diagonal=beside(0), upper=beside(1))
