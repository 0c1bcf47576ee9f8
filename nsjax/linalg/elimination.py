"""Elimination planned outside of programs: sparse patterns, blocks in pairs, independent rows."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.linalg.blocks import Paired
from nsjax.types import Array, record


def independent(rows: np.ndarray) -> tuple[int, ...]:
    """Indices of the rows that are linearly independent of the rows before them."""
    kept: list[int] = []
    basis: list[np.ndarray] = []
    # relative size up to which the part of a row that is orthogonal to the others counts as zero: rounding
    # of positions that close loops, and of the rows
    rank = 1e-8
    for k, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):  # twice, for rounding
            for one in basis:
                rest = rest - one * (one @ rest)
        if np.linalg.norm(rest) > rank * (1.0 + float(np.linalg.norm(row))):
            kept.append(k)
            basis.append(rest / np.linalg.norm(rest))
    return tuple(kept)


# Sparsity patterns, and elimination plans that are computed from them once, outside of any program.


@dataclasses.dataclass(frozen=True)
class Pattern:
    """Pattern of coupled unknowns of a model: symmetric, diagonal included, hashed by content.

    Make it with `Pattern.of_matrix` or `Pattern.of_elements`.

    Args:
        size: number of unknowns.
        pairs: coupled pairs ``i < j`` in order.

    Example:
        >>> from nsjax.linalg import Pattern
        >>> Pattern.of_elements(3, [(0, 1), (1, 2)]).pairs
        ((0, 1), (1, 2))
    """

    size: int
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def _from_indices(cls, size: int, i: np.ndarray, j: np.ndarray) -> Pattern:
        both = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1)[i != j], axis=0)
        return cls(size=size, pairs=tuple(map(tuple, both.tolist())))

    @classmethod
    def of_matrix(cls, matrix: Any) -> Pattern:
        """Pattern of the entries of a square matrix that are not zero (numpy or scipy.sparse).

        Example:
            >>> import numpy as np
            >>> from nsjax.linalg import Pattern
            >>> Pattern.of_matrix(np.eye(3) + np.eye(3, k=2)).pairs
            ((0, 2),)
        """
        i, j = matrix.nonzero()
        return cls._from_indices(matrix.shape[0], np.asarray(i), np.asarray(j))

    @classmethod
    def of_elements(cls, size: int, elements: Iterable[Iterable[int]]) -> Pattern:
        """Pattern of a finite-element matrix: all unknowns of an element are coupled.

        Example:
            >>> from nsjax.linalg import Pattern
            >>> Pattern.of_elements(4, [(0, 1), (1, 3)]).pairs
            ((0, 1), (1, 3))
        """
        grids = [np.meshgrid(list(e), list(e)) for e in elements]
        i, j = (np.concatenate([np.zeros(0, int), *(g[k].ravel() for g in grids)]) for k in (0, 1))
        return cls._from_indices(size, i, j)

    def neighbours(self) -> list[np.ndarray]:
        """For every unknown the indices of the unknowns with which it is coupled."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for i, j in self.pairs:
            found[i].append(j)
            found[j].append(i)
        return [np.array(x, int) for x in found]


def _ordering(near: list[np.ndarray]) -> np.ndarray:
    """Reverse Cuthill-McKee ordering: breadth first from an end of each part, few neighbours first."""
    degree = np.array([len(x) for x in near])
    order: list[int] = []
    seen = np.zeros(len(near), bool)

    def sweep(start: int) -> list[int]:
        found, mark = [start], {start}
        for node in found:
            fresh = [k for k in near[node].tolist() if k not in mark]
            found += sorted(fresh, key=lambda k: (degree[k], k))
            mark.update(fresh)
        return found

    while not seen.all():
        start = int(np.argmin(np.where(seen, len(near) + 1, degree)))
        for _ in range(2):  # the last node of a sweep is nearly an end
            start = sweep(start)[-1]
        part = sweep(start)
        seen[part] = True
        order += part
    return np.array(order[::-1])


def _colours(near: list[np.ndarray], order: np.ndarray) -> np.ndarray:
    """Colour of every column such that no row has two columns of a colour: greedy, in the given order."""
    colour = np.full(len(near), -1)
    for j in order.tolist():
        rows = [j, *near[j].tolist()]
        taken = {int(colour[k]) for r in rows for k in (r, *near[r].tolist())}
        colour[j] = next(c for c in range(len(near) + 1) if c not in taken)
    return colour


@dataclasses.dataclass(frozen=True)
class EliminationPlan:
    """Plan of an elimination: unknowns ordered to a narrow band, and cut into blocks as wide as the band.

    Args:
        order: (n,) unknown at each place.
        place: (n,) place of each unknown.
        width: unknowns of a block; the last block is filled up.
        colours: (n,) colours of the columns.
        index: (3, N, width, width) place of each entry below, on and above the diagonal in the compressed
            columns (colours * n), and 0 where ``inside`` is false.
        inside: whether the pattern has the entry.
        filled: (N, width) whether a place is beyond the last unknown.
    """

    order: np.ndarray
    place: np.ndarray
    width: int
    colours: np.ndarray
    index: np.ndarray
    inside: np.ndarray
    filled: np.ndarray


@functools.cache
def plan(pattern: Pattern) -> EliminationPlan:
    """`EliminationPlan` of a pattern."""
    near, n = pattern.neighbours(), pattern.size
    order = _ordering(near)
    place = np.argsort(order)
    colours = _colours(near, order)
    pairs = np.array(pattern.pairs, int).reshape(-1, 2)
    width = max(1, int(np.max(np.abs(place[pairs[:, 0]] - place[pairs[:, 1]]), initial=1)))
    blocks = -(-n // width)
    index, inside = (np.zeros((3, blocks, width, width), kind) for kind in (int, bool))
    row = np.concatenate([np.arange(n), pairs[:, 0], pairs[:, 1]])
    column = np.concatenate([np.arange(n), pairs[:, 1], pairs[:, 0]])
    i, a = np.divmod(place[row], width)
    j, b = np.divmod(place[column], width)
    index[j - i + 1, i, a, b] = colours[column] * n + row
    inside[j - i + 1, i, a, b] = True
    filled = (np.arange(blocks * width) >= n).reshape(blocks, width)
    return EliminationPlan(order, place, width, colours, index, inside, filled)


# Order of the blocks of a sparse matrix in which blocks that rows couple are near each other.


def narrow_order(of: Array, on: Array, blocks: int) -> Array:
    """Place (blocks,) int of every block in an order of small bandwidth, by the rule of Cuthill and McKee.

    From a block at the rim of each connected part, the blocks follow by the number of couplings to it
    (levels), within a level by the place of the first neighbour in the level before, and of the same one by
    their numbers of couplings.

    Args:
        of: (n, 2) int, pairs of coupled blocks; indices that are not below ``blocks`` are the ground.
        on: (n,) bool, pairs that count.
        blocks: number of blocks.

    Source: Cuthill and McKee 1969; the rim by twice the farthest block, as George and Liu 1979 do.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg.elimination import narrow_order
        >>> chain = jnp.array([[0, 3], [3, 1], [1, 4], [4, 2]])
        >>> narrow_order(chain, jnp.ones(4, bool), 5).tolist()
        [0, 2, 4, 1, 3]
    """
    coupled = on & jnp.all(of < blocks, axis=1) & (of[:, 0] != of[:, 1])
    both = jnp.where(coupled[:, None], of, blocks)
    one, other = both.T.reshape(-1), both[:, ::-1].T.reshape(-1)
    index, far = jnp.arange(blocks), jnp.asarray(blocks, int)

    def least_of_neighbours(x: Array) -> Array:
        """Least value (blocks,) of ``x`` (blocks,) among the neighbours of each block."""
        padded = jnp.concatenate([x, far[None].astype(x.dtype)])
        return jax.ops.segment_min(padded[one], other, num_segments=blocks + 1)[:blocks]

    def settled(x: Array, step: int) -> Array:
        """``x`` after ``x_i = min(x_i, x_j + step)`` over all couplings."""

        def spread(both: tuple[Array, Array]) -> tuple[Array, Array]:
            new = jnp.minimum(both[0], least_of_neighbours(both[0]) + step)
            return new, jnp.any(new < both[0])

        return lax.while_loop(lambda both: both[1], spread, (x, jnp.asarray(True)))[0]

    part = settled(index, 0)
    count = jax.ops.segment_sum(jnp.ones_like(other), other, num_segments=blocks + 1)[:blocks]

    def levels(start: Array) -> Array:
        return settled(jnp.where(start, 0, far), 1)

    def farthest(level: Array) -> Array:
        """One block of each part: of those with the largest level, one with the fewest couplings."""
        here = jnp.ones(blocks, bool)
        for x in (-level, count, index):
            best = jnp.where(here, x, jnp.iinfo(x.dtype).max)
            here = here & (x == jax.ops.segment_min(best, part, num_segments=blocks)[part])
        return here

    level = levels(farthest(levels(farthest(levels(part == index)))))

    def by_level(k: Array, place: Array) -> Array:
        parent = jnp.where(level == k, least_of_neighbours(jnp.where(level == k - 1, place, far)), 0)
        known = jnp.where(level < k, place, 0)
        order = jnp.lexsort((index, count, parent, known, level, part))
        return jnp.zeros_like(place).at[order].set(index)

    first = jnp.lexsort((index, count, level, part))
    place = jnp.zeros(blocks, index.dtype).at[first].set(index)
    return lax.fori_loop(1, jnp.max(level) + 1, by_level, place)


# Elimination of blocks that rows over pairs of blocks couple: ``(1 + B A) w = b``.


@record(static=("widths",))
class PairOrder:
    """Order in which blocks are eliminated.

    Args:
        place: (blocks,) int, place of every block.
        hubs: (h,) int, blocks that are eliminated last.
        which: () int, index of the smallest of the ``widths`` with which all other couplings are between
            the same or adjacent parts of so many places; their number where there is none.
        widths: numbers of blocks eliminated at once, rising.
    """

    place: Array
    hubs: Array
    which: Array
    widths: tuple[int, ...]

    @property
    def narrow(self) -> Array:
        """Whether the elimination is possible in this order."""
        return self.which < len(self.widths)

    @property
    def numbers(self) -> Array:
        """(blocks + 1,) int, index among the hubs of each block; their number for others and the ground."""
        n, h = self.place.shape[0], self.hubs.shape[0]
        return jnp.full(n + 1, h).at[self.hubs].set(np.arange(h))


def pair_order(rows: Paired, on: Array, most_hubs: int = 4) -> PairOrder:
    """The order of the blocks of ``rows`` that are coupled by the groups (n,) of rows that are ``on``. The
    ``most_hubs`` blocks with the most couplings are the last: in no order of all blocks is a tray that
    carries a heap near all that it carries.
    """
    n = rows.blocks
    # Blocks eliminated at once: 1.7 N^(2/3), and at least a half of up to a hundred, always enough;
    # or half of these where they are enough. A cube of k^3 coupled blocks has the bandwidth 0.8 k^2
    most = min(n, max(int(1.7 * n ** (2.0 / 3.0)) + 1, min(-(-n // 2), 50)))
    widths = tuple(sorted({-(-most // 2), most}))
    coupled = on & jnp.all(rows.of < n, axis=1)
    touching = jnp.repeat(coupled.astype(int), 2)
    count = jax.ops.segment_sum(touching, rows.of.reshape(-1), num_segments=n + 1)[:n]
    hubs = lax.top_k(count, min(most_hubs, n))[1]
    alone = jnp.zeros(n + 1, bool).at[hubs].set(True)
    coupled = coupled & ~jnp.any(alone[rows.of], axis=1)
    place = narrow_order(rows.of, coupled, n)
    ends = place[jnp.clip(rows.of, 0, n - 1)]
    apart = [jnp.any(coupled & (jnp.abs(jnp.diff(ends // width, axis=1)[:, 0]) > 1)) for width in widths]
    return PairOrder(place=place, hubs=hubs, which=jnp.sum(jnp.stack(apart)), widths=widths)


def solve_pairs(wt: Paired, response: Paired, inner: Array, on: Array, b: Array, order: PairOrder) -> Array:
    """``w`` (blocks c,) with ``w + response inner wt w = b``.

    In its order the matrix is block-tridiagonal with a border of the hubs. It is formed and eliminated one
    block row at a time. For ``N`` blocks and parts of ``k`` blocks, time is in proportion to ``N k^2``,
    memory to ``N k``.

    Args:
        wt, response: rows (n r, blocks c), and the transpose of such rows between the same blocks.
        inner: (n, r, r), from the products with ``wt`` to the factors of ``response``.
        on: (n,) bool, groups that count.
        b: (blocks c,).
        order: a narrow one.

    Limits: rows are exchanged within parts alone. No derivative.
    """
    n, c, h = wt.blocks, wt.values.shape[3], order.hubs.shape[0]
    turned = jnp.einsum("nxy,nbyd->nbxd", inner, wt.values)
    entries = jnp.einsum("naxc,nbxd->nabcd", response.values, turned).reshape(-1, c, c)
    pairs = [wt.of[:, [0, 0, 1, 1]].reshape(-1), wt.of[:, [0, 1, 0, 1]].reshape(-1)]
    counts = jnp.repeat(on, 4) & (pairs[0] < n) & (pairs[1] < n)
    row, column = (jnp.where(counts, x, n) for x in pairs)
    (up, left), (low, right) = ((x, order.numbers[x]) for x in (row, column))
    inside = (left == h) & (right == h) & counts

    def border(rows: int, columns: int, i: Array, j: Array) -> Array:
        """Entries (rows c, columns c) at the block rows ``i`` and columns ``j``, where both exist."""
        made = jnp.zeros((rows, columns, c, c)).at[i, j].add(entries, mode="drop")
        return jnp.swapaxes(made, 1, 2).reshape(rows * c, columns * c)

    beside = border(n, h, jnp.where(left == h, up, n), right)
    below = border(h, n, left, jnp.where(right == h, low, n))
    corner = jnp.eye(h * c) + border(h, h, left, right)
    place = jnp.append(order.place, 0)
    interior = _Entries(values=entries, counts=inside, row=place[row], column=place[column])
    ways = [functools.partial(_eliminated, interior, order.place, width) for width in order.widths]
    ends = (order.hubs[:, None] * c + np.arange(c)).reshape(-1)
    # the interior is solved for the right-hand side and for the columns of the border at once; what is left
    # are the hubs, by their Schur complement
    known = jnp.concatenate([b.at[ends].set(0.0)[:, None], beside], axis=1)
    made = lax.switch(jnp.minimum(order.which, len(ways) - 1), ways, known.reshape(n, c, -1))
    alone, moved = made[:, 0], made[:, 1:]
    hubs = jnp.linalg.solve(corner - below @ moved, b[ends] - below @ alone)
    return (alone - moved @ hubs).at[ends].set(hubs)


@record()
class _Entries:
    """Blocks (m, c, c) of a matrix at ``row`` and ``column`` (m,); those that do not count are absent."""

    values: Array
    counts: Array
    row: Array
    column: Array


def _eliminated(entries: _Entries, place: Array, width: int, b: Array) -> Array:
    """Solutions (blocks c, k) for right-hand sides (blocks, c, k), with ``width`` blocks in a part."""
    blocks, c, k = b.shape
    # parts are so wide that a part couples with its two neighbours alone: block Gauss, down and up
    parts, size = -(-blocks // width), width * c
    known = jnp.zeros((parts * width, c, k)).at[place].set(b).reshape(parts, size, k)

    def formed(part: Array) -> Array:
        """Rows (size, 3 size) of a part, over the unknowns of the part before, its own, and the next."""
        there, here = entries.row - part * width, entries.column - (part - 1) * width
        own = entries.counts & (there >= 0) & (there < width) & (here >= 0)
        made = jnp.zeros((width, 3 * width, c, c))
        made = made.at[jnp.where(own, there, width), here].add(entries.values, mode="drop")
        return jnp.swapaxes(made, 1, 2).reshape(size, 3 * size)

    def down(before: tuple[Array, Array], own: tuple[Array, Array]) -> tuple[tuple[Array, Array], Any]:
        (right, y), (part, b) = before, own
        lower, middle, upper = jnp.split(formed(part), 3, axis=1)
        pivot = middle + jnp.eye(size) - lower @ right
        end = jnp.linalg.solve(pivot, jnp.concatenate([upper, b - lower @ y], axis=1))
        both = end[:, :size], end[:, size:]
        return both, both

    def up(x: Array, own: tuple[Array, Array]) -> tuple[Array, Array]:
        right, y = own
        x = y - right @ x
        return x, x

    first = jnp.zeros((size, size)), jnp.zeros((size, k))
    _, (right, y) = lax.scan(down, first, (jnp.arange(parts), known))
    _, x = lax.scan(up, jnp.zeros((size, k)), (right, y), reverse=True)
    return x.reshape(-1, c, k)[place].reshape(-1, k)
