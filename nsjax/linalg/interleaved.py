"""Chains of bodies whose joints are eliminated with their velocities."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from nsjax.linalg.structure import BlockTridiagonal, Structure, completed
from nsjax.linalg.tridiagonal import Tridiagonal
from nsjax.types import Array


@dataclasses.dataclass(frozen=True)
class Saddle(BlockTridiagonal):
    """Structure of velocities and multipliers of `Interleaved`: ``((A, -W), (W', 0))`` node by node.

    Vectors hold all velocities (copies * nodes * block), then all multipliers, also copy by copy.

    Args:
        joint: rows of the constraint between a node and the one before.
        grounded: whether the first node has such rows, to the ground.
    """

    joint: int = 1
    grounded: bool = True

    @property
    def _width(self) -> int:
        return (self.block + self.joint) * self.copies

    def _nodes(self, size: int) -> int:
        missing = 0 if self.grounded else self.joint * self.copies
        return (size + missing) // self._width

    def _parts(self) -> tuple[BlockTridiagonal, BlockTridiagonal]:
        return BlockTridiagonal(self.block, copies=self.copies), BlockTridiagonal(
            self.joint, copies=self.copies
        )

    def to_blocks(self, x: Array) -> Array:
        """Vectors (n, k) node by node (N, width, k): its velocities, then the multipliers of its joint."""
        k, split = x.shape[1], self._nodes(x.shape[0]) * self.block * self.copies
        multipliers = x[split:]
        if not self.grounded:
            by_copy = multipliers.reshape(self.copies, -1, k)
            multipliers = jnp.pad(by_copy, ((0, 0), (self.joint, 0), (0, 0))).reshape(-1, k)
        first, second = self._parts()
        return jnp.concatenate([first.to_blocks(x[:split]), second.to_blocks(multipliers)], axis=1)

    def from_blocks(self, x: Array, size: int) -> Array:
        """Inverse of `to_blocks`."""
        nodes, width, k = x.shape
        split, (first, second) = self.block * self.copies, self._parts()
        velocities = first.from_blocks(x[:, :split], nodes * split)
        multipliers = second.from_blocks(x[:, split:], nodes * (width - split))
        if not self.grounded:
            multipliers = multipliers.reshape(self.copies, -1, k)[:, self.joint :].reshape(-1, k)
        return jnp.concatenate([velocities, multipliers])

    def recovered(self, found: Array) -> Tridiagonal:
        """The matrix from its products with `seeds`; missing rows are those of the unit matrix."""
        matrix = super().recovered(found)
        if self.grounded:
            return matrix
        missing = np.zeros(matrix.diagonal.shape[:2])
        missing[0, self.block * self.copies :] = 1.0
        return completed(matrix, missing)


class Interleaving(Structure, Protocol):
    """A structure that eliminates constraints, the first of all, with the velocities."""

    copies: int

    def inside(self, size: int) -> int:
        """Number of rows of the eliminated constraints of a copy with ``size`` velocities."""

    @property
    def free(self) -> Structure:
        """The structure without the eliminated constraints."""

    @property
    def saddle(self) -> Structure:
        """Structure of velocities and multipliers together."""


def interleaving(structure: Structure) -> Interleaving | Any:
    """The structure if it is `Interleaving`, else None."""
    return structure if hasattr(structure, "saddle") else None


@dataclasses.dataclass(frozen=True)
class Interleaved(BlockTridiagonal):
    """Structure of a chain of bodies in absolute coordinates: joints between neighbours are constraints.

    Velocities come node by node, and so do the first rows of `System.constraint`: ``joint`` rows that tie
    a node to the one before it, those of the first node to the ground. They are eliminated with the
    velocities, node by node, velocities first, so that no rows need to be exchanged: the cost is in
    proportion to the number of nodes. Further rows of `System.constraint`, such as loop closures, and
    contacts are a border.

    Args:
        block: velocities of a node.
        joint: rows of the joint of a node.
        grounded: whether the first node has a joint, to the ground; without, its rows are left out.
        constant, copies, lacking: see `BlockTridiagonal`.

    Limits: constraints on velocity level (``constraint_form="index_2"``); schemes that correct positions
    refuse it. A joint may act on a node and the one before only, and its rows are independent.

    Example:
        >>> from nsjax.linalg import Interleaved
        >>> chain = Interleaved(3, joint=2)
        >>> chain.inside(3 * 20), chain.misfit(61)
        (40, 'nv = 61 is not a multiple of the block 3 of its block-tridiagonal structure')
    """

    joint: int = 1
    grounded: bool = True

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if self.constant:
            return "constant = True with interleaved joints, whose directions turn; leave constant out"
        return super().misfit(size)

    def inside(self, size: int) -> int:
        """Rows of the constraints that are eliminated with ``size`` velocities."""
        return self.joint * (size // self.block - (not self.grounded))

    @property
    def free(self) -> BlockTridiagonal:
        """The structure without its joints."""
        return BlockTridiagonal(self.block, copies=self.copies)

    @property
    def saddle(self) -> Saddle:
        """Structure of velocities and multipliers."""
        return Saddle(self.block, copies=self.copies, joint=self.joint, grounded=self.grounded)
