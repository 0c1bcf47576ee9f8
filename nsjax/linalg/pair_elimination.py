"""Elimination of blocks that rows over pairs of blocks couple: ``(1 + B A) w = b``."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.linalg.narrow_order import narrow_order
from nsjax.linalg.paired import Paired
from nsjax.types import Array, record

HUBS = 4
"""Number of blocks, those with the most couplings, that are eliminated last: in no order of all blocks is a
tray that carries a heap near all that it carries."""


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


def pair_order(rows: Paired, on: Array) -> PairOrder:
    """The order of the blocks of ``rows`` that are coupled by the groups (n,) of rows that are ``on``."""
    n = rows.blocks
    # Blocks eliminated at once: 1.7 N^(2/3), and at least a half of up to a hundred, always enough;
    # or half of these where they are enough. A cube of k^3 blocks, each coupled to those beside it, has the
    # bandwidth 0.8 k^2; boxes of 300 spheres, twice as high as wide, have 29 to 39 (here: 39 or 77), and of
    # 1,000 spheres up to 85 (here: 85 or 170).
    most = min(n, max(int(1.7 * n ** (2.0 / 3.0)) + 1, min(-(-n // 2), 50)))
    widths = tuple(sorted({-(-most // 2), most}))
    coupled = on & jnp.all(rows.of < n, axis=1)
    touching = jnp.repeat(coupled.astype(int), 2)
    count = jax.ops.segment_sum(touching, rows.of.reshape(-1), num_segments=n + 1)[:n]
    hubs = lax.top_k(count, min(HUBS, n))[1]
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
    known = jnp.concatenate([b.at[ends].set(0.0)[:, None], beside], axis=1)
    made = lax.switch(jnp.minimum(order.which, len(ways) - 1), ways, known.reshape(n, c, -1))
    alone, moved = made[:, 0], made[:, 1:]
    hubs = jnp.linalg.solve(corner - below @ moved, b[ends] - below @ alone)
    return (alone - moved @ hubs).at[ends].set(hubs)


@record()
class _Entries:
    """Blocks (m, c, c) of a matrix at the places ``row`` and ``column`` (m,); those that do not count are
    left out.
    """

    values: Array
    counts: Array
    row: Array
    column: Array


def _eliminated(entries: _Entries, place: Array, width: int, b: Array) -> Array:
    """Solutions (blocks c, k) for right-hand sides (blocks, c, k), with ``width`` blocks in a part."""
    blocks, c, k = b.shape
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
