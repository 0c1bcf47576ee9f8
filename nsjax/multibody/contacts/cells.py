"""Pairs of points that are near each other, found by cells, into a list of fixed length."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.types import Array, record

IN_A_ROW = 16
"""Points examined in three neighbouring cells along x. A cell is as wide as the distance of the search. Of
equal spheres that do not overlap, three such cells hold at most 3 * 4 centres inside and on their faces, in
the densest packing. Points beyond this number are reported as lost."""

WIDE = 1 << 20
"""Cells along an axis with numbers of their own; cells beyond share numbers, which costs only time."""

NOBODY = np.iinfo(np.int64).max
"""Number of an empty slot: above all others."""


@record()
class CandidatePairs:
    """Candidate pairs of a contact search, in ascending order of their identities.

    Args:
        first, second: (capacity,) int, numbers of both members; zeros in empty slots.
        identity: (capacity,) int, ``first * many + second``; `NOBODY` in empty slots.
        lost: () bool, whether there were more pairs than slots.
    """

    first: Array
    second: Array
    identity: Array
    lost: Array

    @property
    def used(self) -> Array:
        """(capacity,) bool, slots with a pair."""
        return self.identity != NOBODY


def near_pairs(x: Array, within: Array, count: int) -> tuple[Array, Array, Array]:
    """Pairs of points ``x`` (n, 3) that may be closer than ``within`` [m]: numbers (k,) of the first and of
    the second point, both ``count`` in entries without a pair, and whether some pairs were left out.

    Each point is compared with the points of its own cell and of half of the 26 cells around, which form
    five rows of cells in the sorted list. Besides the sort, the work grows linearly with the points.
    """
    n = x.shape[0]
    cell = jnp.floor((x - jnp.min(x, axis=0)) / within).astype(int) + 1
    number = (cell[:, 2] * WIDE + cell[:, 1]) * WIDE + cell[:, 0]
    order = jnp.argsort(number)
    number = number[order]
    rows = np.array([0, 1, WIDE - 1, WIDE, WIDE + 1])[:, None] * WIDE  # along y and z, half of them
    start = jnp.searchsorted(number, number + rows - 1)
    # in the row of its own cell a point meets only later points
    start = jnp.where(rows == 0, np.arange(n) + 1, start)
    end = jnp.searchsorted(number, number + rows + 1, side="right")
    place = start[:, :, None] + np.arange(IN_A_ROW)
    here = place < end[:, :, None]
    other = order[jnp.clip(place, 0, n - 1)]
    own = jnp.broadcast_to(order[None, :, None], other.shape)
    low, high = jnp.minimum(own, other), jnp.maximum(own, other)
    pairs = (jnp.where(here, z, count).reshape(-1) for z in (low, high))
    return (*pairs, jnp.any(end - start > IN_A_ROW))  # type: ignore[return-value]


def listed(
    first: Array, second: Array, wanted: Array, many: int, capacity: int, lost: Array
) -> CandidatePairs:
    """The pairs marked by ``wanted``, in slots.

    Args:
        first, second: (k,) int below ``many``, members of all pairs.
        wanted: (k,) bool, pairs to keep.
        many: number of members.
        capacity: number of slots.
        lost: () bool, whether some pairs are missing already.
    """
    (place,) = jnp.nonzero(wanted, size=capacity, fill_value=-1)
    identity = jnp.where(place >= 0, first[place] * many + second[place], NOBODY)
    identity = jnp.sort(identity)
    plain = jnp.where(identity == NOBODY, 0, identity)
    return CandidatePairs(
        first=plain // many, second=plain % many, identity=identity,
        lost=lost | (jnp.sum(wanted) > capacity),
    )  # fmt: skip
