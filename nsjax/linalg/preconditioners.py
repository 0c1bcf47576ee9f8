"""Preconditioners (cheap inverses) of matrices of meshes that are known only by their products."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.linalg.dense import solve
from nsjax.types import Array, PyTree


class Preconditioner(Protocol):
    """Interface of a preconditioner, a cheap inverse. Frozen, hashable, without numbers."""

    def misfit(self, size: int) -> str | None:
        """Why it cannot be that of a matrix of ``size`` unknowns; None if it can."""

    def made(self, product: Callable[[Array], Array], size: int) -> PyTree:
        """Numbers that `apply` needs, computed from products with the matrix."""

    def apply(self, made: PyTree, x: Array) -> Array:
        """``P^-1 x`` (size,), symmetric and positive definite."""

    def diagonal(self, made: PyTree) -> Array:
        """Diagonal of ``P^-1`` (size,)."""


def coloured(size: int, elements: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """Colours of nodes such that no element has two nodes of the same colour.

    Example:
        >>> from nsjax.linalg.preconditioners import coloured
        >>> coloured(4, [(0, 1), (1, 2), (2, 3)])
        (0, 1, 0, 1)
    """
    near: list[set[int]] = [set() for _ in range(size)]
    for element in elements:
        for node in element:
            near[node].update(element)
    found = [-1] * size
    for node in range(size):
        taken = {found[k] for k in near[node]}
        found[node] = next(c for c in range(size + 1) if c not in taken)
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class NodeBlocks:
    """Block Jacobi preconditioner: blocks of single nodes, from one product per colour and unknown of a
    node.

    Args:
        colours: colour of each node, see `coloured`: 8 colours for a box of hexahedra.
        block: unknowns of a node.
    """

    colours: tuple[int, ...]
    block: int

    def misfit(self, size: int) -> str | None:
        """Why it cannot be that of a matrix of ``size`` unknowns; None if it can."""
        if len(self.colours) * self.block == size:
            return None
        return f"nv = {size}, but its mesh has {len(self.colours)} nodes of {self.block} unknowns"

    def made(self, product: Callable[[Array], Array], size: int) -> Array:
        """Inverses of the blocks (nodes, block, block)."""
        b, colours = self.block, np.array(self.colours)
        colour, unknown = (x.ravel() for x in np.indices((colours.max() + 1, b)))

        def add(total: Array, one: tuple[Array, Array]) -> tuple[Array, None]:
            mine = (one[0] == colours)[:, None]
            here = (np.arange(b) == one[1])[None, :]
            column = product((mine & here).astype(float).reshape(-1)).reshape(-1, b)
            return total + jnp.where(mine, column, 0.0)[:, :, None] * here[:, None, :], None

        start = jnp.zeros((len(colours), b, b))
        blocks, _ = lax.scan(add, start, (jnp.asarray(colour), jnp.asarray(unknown)))
        return jax.vmap(lambda a: solve(a, jnp.eye(b)))(blocks)

    def apply(self, made: Array, x: Array) -> Array:
        """``P^-1 x``."""
        return jnp.sum(made * x.reshape(-1, 1, self.block), axis=2).reshape(-1)

    def diagonal(self, made: Array) -> Array:
        """Diagonal of ``P^-1`` (size,)."""
        return jnp.sum(made * np.eye(self.block), axis=2).reshape(-1)


@functools.cache
def _modes(nodes: int, held: bool) -> tuple[np.ndarray, np.ndarray]:
    """Squared frequencies and modes (nodes, nodes), of unit modal mass, of a bar of equal elements with
    mass 1 and stiffness 1; with ``held`` its end beyond the last node is fixed.
    """
    from scipy.linalg import eigh

    n = nodes + held
    ends = np.r_[1.0, np.full(n - 2, 2.0), 1.0]
    beside = np.eye(n, k=1) + np.eye(n, k=-1)
    stiffness, mass = np.diag(ends) - beside, (2.0 * np.diag(ends) + beside) / 6.0
    squares, modes = eigh(stiffness[:nodes, :nodes], mass[:nodes, :nodes])
    return squares, modes


@dataclasses.dataclass(frozen=True)
class Separable:
    """Preconditioner of boxes of equal hexahedra: ``a M + sum b_d K_d`` with masses and stiffnesses of
    three crossed bars, inverted exactly by their modes (fast diagonalisation). Four products give the
    numbers ``a``, ``b_d`` of every unknown. It is spectrally equivalent to the tangents of elastic bodies
    under moderate strain, however fine the mesh and whatever the step.

    Args:
        nodes: number of nodes along the three axes, two or more with a held node; the last axis runs
            fastest.
        block: unknowns of a node.
        held: for each of the three axes, whether a held node follows the last one.

    Source: Lynch, Rice, Thomas, Numer. Math. 6 (1964) 185-199.
    """

    nodes: tuple[int, int, int]
    block: int
    held: tuple[bool, bool, bool] = (False, False, False)

    def misfit(self, size: int) -> str | None:
        """Why it cannot be that of a matrix of ``size`` unknowns; None if it can."""
        if int(np.prod(self.nodes)) * self.block == size and min(self.nodes) >= 1:
            return None
        return f"nv = {size}, but its box has {self.nodes} nodes of {self.block} unknowns"

    @property
    def _bars(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [_modes(n, h) for n, h in zip(self.nodes, self.held, strict=True)]

    def made(self, product: Callable[[Array], Array], size: int) -> Array:
        """Inverse modal values (*nodes, block)."""
        bars = self._bars

        def probe(axis: int) -> np.ndarray:
            """Product of the lowest modes, with a middle mode along ``axis`` instead; none for -1."""
            x, y, z = (m[:, len(m) // 2 if k == axis else 0] for k, (_, m) in enumerate(bars))
            return np.repeat((x[:, None, None] * y[:, None] * z)[..., None], self.block, axis=3)

        def quotient(one: Array) -> Array:
            """Rayleigh quotient of the vector ``one`` for every unknown of the nodes (block,)."""
            return jnp.sum(one * product(one.reshape(-1)).reshape(one.shape), axis=(0, 1, 2))

        # one after the other: if they were written out, the compiler would form the matrix anew for each
        base, *bent = lax.map(quotient, jnp.asarray(np.stack([probe(k) for k in (-1, 0, 1, 2)])))
        whole, first = jnp.zeros((*self.nodes, self.block)), base
        for axis, (squares, _) in enumerate(bars):
            middle = len(squares) // 2
            gain = (bent[axis] - base) / (squares[middle] - squares[0])
            slope = jnp.where(gain > 0.0, gain, 0.0)
            first = first - slope * squares[0]
            shape = [-1 if k == axis else 1 for k in range(3)]
            whole = whole + slope * squares.reshape(*shape, 1)
        least = 1e-3 * jnp.abs(base)  # for an indefinite tangent
        return 1.0 / (whole + jnp.where(first > least, first, least))

    def _crossed(self, matrices: list[np.ndarray], x: Array) -> Array:
        """``(A x B x C) x`` of nodal vectors (*nodes, block)."""
        for axis, a in enumerate(matrices):
            x = jnp.moveaxis(jnp.tensordot(jnp.asarray(a), x, axes=(1, axis)), 0, axis)
        return x

    def apply(self, made: Array, x: Array) -> Array:
        """``P^-1 x``."""
        bars = self._bars
        modal = made * self._crossed([m.T for _, m in bars], x.reshape(made.shape))
        return self._crossed([m for _, m in bars], modal).reshape(-1)

    def diagonal(self, made: Array) -> Array:
        """Diagonal of ``P^-1`` (size,)."""
        return self._crossed([m * m for _, m in self._bars], made).reshape(-1)


def box_colours(nodes: Any) -> tuple[int, ...]:
    """Eight colours of a box of nodes, see `NodeBlocks`."""
    i, j, k = (x.ravel() % 2 for x in np.indices(tuple(nodes)))
    return tuple((4 * i + 2 * j + k).tolist())
