"""Order of the blocks of a sparse matrix in which blocks that rows couple are near each other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.types import Array


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
        >>> from nsjax.linalg.narrow_order import narrow_order
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
