"""Structures of few couplings: independent blocks, chains, slices of a mesh, arrows."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg.blocks import Blocks, Paired
from nsjax.linalg.dense import Tridiagonal, matmul, matvec, solve
from nsjax.linalg.structure import BlockTridiagonal, Coloured, Structure, completed
from nsjax.types import Array, record

# The structure of models whose unknowns fall into blocks that are not coupled.


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
        """Directions of one colour, unknown of a node and copy each, colours first, copies last."""
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


# Chains of bodies whose joints are eliminated with their velocities.


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
        # a first node without a joint lacks all of its multipliers
        joints = BlockTridiagonal(
            self.joint, copies=self.copies, lacking=0 if self.grounded else self.joint
        )
        return BlockTridiagonal(self.block, copies=self.copies), joints

    def to_blocks(self, x: Array) -> Array:
        """Vectors (n, k) node by node (N, width, k): its velocities, then the multipliers of its joint."""
        split, (first, second) = self._nodes(x.shape[0]) * self.block * self.copies, self._parts()
        return jnp.concatenate([first.to_blocks(x[:split]), second.to_blocks(x[split:])], axis=1)

    def from_blocks(self, x: Array, size: int) -> Array:
        """Inverse of `to_blocks`."""
        split, (first, second) = self.block * self.copies, self._parts()
        moving = x.shape[0] * split
        velocities = first.from_blocks(x[:, :split], moving)
        return jnp.concatenate([velocities, second.from_blocks(x[:, split:], size - moving)])

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


# Nodes of a structured mesh of bricks, in slices.


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


# A structure with a few unknowns that are coupled to all others.


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
        # directions of the rest mix rows of heads: these come from the transposed map
        rows = jax.vmap(lambda s: transposed(s)[0])(heads.T)
        return ArrowMatrix(
            heads=first, rows=self.split(rows.T)[1].T, columns=columns,
            rest=rest.recovered(self.split(found[count:].T)[1].T),
        )  # fmt: skip

    def times(self, matrix: ArrowMatrix, x: Array) -> Array:
        """``A x`` (n,)."""
        head, tail = (part[:, 0] for part in self.split(x[:, None]))
        first = matvec(matrix.heads, head) + matvec(matrix.rows, tail)
        second = matvec(matrix.columns, head) + self._inner.times(matrix.rest, tail)
        return self.join(first[:, None], second[:, None])[:, 0]

    def eliminate(self, matrix: ArrowMatrix, columns: Array) -> tuple[EliminatedArrow, Array]:
        """Eliminated matrix, and its inverse times ``columns`` (n, k)."""
        # heads are eliminated last: first, they would fill the rest
        rest, response = self._inner.eliminate(matrix.rest, matrix.columns)
        schur = matrix.heads - matmul(matrix.rows, response)
        inverse = solve(schur, jnp.eye(schur.shape[0], dtype=schur.dtype))
        done = EliminatedArrow(
            structure=self, rows=matrix.rows, rest=rest, response=response, inverse=inverse
        )
        return done, done.solve(columns) if columns.shape[1] else columns


def bordered(structure: Structure, count: int) -> Structure:
    """The structure of ``count`` unknowns coupled to everything, and of those of ``structure``."""
    if structure.dense:
        return structure
    first = tuple(range(count))
    if isinstance(structure, Arrow):
        return Arrow((*first, *(h + count for h in structure.heads)), structure.rest)
    return Arrow(first, structure)  # type: ignore[arg-type]
