"""Broad phase: pairs of points that are near each other, found by cells, into a list of fixed length.

Space is cut into cells as wide as the distance of the search, and the points are sorted by their cells.
The points of three cells in a row along x then follow each other in the list, so that the neighbours of a
point stand in a few stretches of it. The pairs of all stretches are written one after the other into
``room`` places: many points in one cell and few in another need no more places than they have pairs.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.types import Array, record

WIDE = 1 << 20
"""Cells along an axis with numbers of their own; cells beyond share numbers, which costs only time."""

ROOM = 8
"""Places for the pairs of neighbouring cells, in multiples of the slots for pairs that are near. Of points
at random places, cells and their neighbours hold 27 / (4 pi / 3) = 6.4 times the pairs that are near.
"""

NOBODY = np.iinfo(np.int64).max
"""Number of an empty slot: above all others."""


@record()
class CandidatePairs:
    """Candidate pairs of a contact search, in ascending order of their identities.

    Args:
        first, second: (capacity,) int, numbers of both members; zeros in empty slots.
        identity: (capacity,) int, ``first * many + second``; `NOBODY` in empty slots.
        needed: () int, slots that would hold all pairs; a lower bound of them where there are fewer.
    """

    first: Array
    second: Array
    identity: Array
    needed: Array

    @property
    def used(self) -> Array:
        """(capacity,) bool, slots with a pair."""
        return self.identity != NOBODY

    @property
    def lost(self) -> Array:
        """() bool, whether some pairs have no slot."""
        return self.needed > self.identity.shape[0]


@record()
class CellPairs:
    """Pairs of points in neighbouring cells.

    Args:
        first, second: (room,) int, numbers of both points.
        here: (room,) bool, places that hold a pair.
        count: () int, number of such pairs, which may be above the number of places.
    """

    first: Array
    second: Array
    here: Array
    count: Array


def pairs_within(x: Array, within: Array, room: int) -> CellPairs:
    """Pairs of points ``x`` (n, d) that may be closer than ``within`` [m], each once, in either order.

    Each point meets the later points of its own row of three cells, and all points of half of the rows
    around it.
    """
    number = _cells(x, within, jnp.min(x, axis=0))
    order = jnp.argsort(number)
    number = number[order]
    rows = np.array([0, 1] if x.shape[1] == 2 else [0, 1, WIDE - 1, WIDE, WIDE + 1]) * WIDE
    start, end = _stretches(number, number, rows)
    start = jnp.concatenate([np.arange(1, x.shape[0] + 1)[None], start[1:]])
    return _unrolled(start, end, order, order, room)


def pairs_between(x: Array, y: Array, within: Array, room: int) -> CellPairs:
    """Pairs of a point of ``x`` (n, d) and one of ``y`` (m, d) that may be closer than ``within`` [m]."""
    corner = jnp.minimum(jnp.min(x, axis=0), jnp.min(y, axis=0))
    own, number = _cells(x, within, corner), _cells(y, within, corner)
    order = jnp.argsort(number)
    around = np.array([-1, 0, 1])
    rows = (around if x.shape[1] == 2 else np.add.outer(around * WIDE, around).reshape(-1)) * WIDE
    start, end = _stretches(own, number[order], rows)
    return _unrolled(start, end, jnp.arange(x.shape[0]), order, room)


def _cells(x: Array, within: Array, corner: Array) -> Array:
    """Numbers (n,) of the cells of points, from the ``corner`` below all points."""
    cell = jnp.floor((x - corner) / jnp.where(within > 0.0, within, 1.0)).astype(int) + 1
    number = cell[:, 0]
    for k in range(1, x.shape[1]):
        number = number + cell[:, k] * WIDE**k
    return number


def _stretches(own: Array, number: Array, rows: np.ndarray) -> tuple[Array, Array]:
    """First and last place (rows, n), in the sorted list ``number``, of three cells of each row."""
    around = own + rows[:, None]
    return jnp.searchsorted(number, around - 1), jnp.searchsorted(number, around + 1, side="right")


def _unrolled(start: Array, end: Array, own: Array, order: Array, room: int) -> CellPairs:
    """The pairs of stretches, one after the other: of the points ``own`` (n,) with those of the list
    ``order`` from ``start`` to before ``end`` (rows, n).
    """
    count = jnp.maximum(end - start, 0).reshape(-1)
    stop = jnp.cumsum(count)
    place = jnp.arange(room)
    # stretches that end at or before a place
    ends = jnp.zeros(room, int).at[stop].add(1, mode="drop")
    which = jnp.minimum(jnp.cumsum(ends), count.shape[0] - 1)
    inside = place - (stop - count)[which] + start.reshape(-1)[which]
    return CellPairs(
        first=own[which % start.shape[1]],
        second=order[jnp.clip(inside, 0, order.shape[0] - 1)],
        here=place < stop[-1],
        count=stop[-1],
    )


def listed(
    first: Array, second: Array, wanted: Array, many: int, capacity: int, needed: Array | int = 0,
    ascending: bool = False,
) -> CandidatePairs:  # fmt: skip
    """The pairs marked by ``wanted``, in slots.

    Args:
        first, second: (k,) int, members of all pairs.
        wanted: (k,) bool, pairs to keep.
        many: number of second members.
        capacity: number of slots.
        needed: () int, slots that the search needs as far as it knows.
        ascending: whether the pairs come in ascending order.
    """
    (place,) = jnp.nonzero(wanted, size=capacity, fill_value=-1)
    identity = jnp.where(place >= 0, first[place] * many + second[place], NOBODY)
    identity = identity if ascending else jnp.sort(identity)
    plain = jnp.where(identity == NOBODY, 0, identity)
    return CandidatePairs(
        first=plain // many, second=plain % many, identity=identity,
        needed=jnp.maximum(needed, jnp.sum(wanted)),
    )  # fmt: skip
