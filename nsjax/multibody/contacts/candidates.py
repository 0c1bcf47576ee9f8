"""Candidate pairs: which shapes are near each other, found by cells, anew in every step."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts.all_shapes import PAIRS
from nsjax.multibody.contacts.gap_functions import ENDLESS, Around, around, gap_bound
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.types import Array, PyTree, record

if TYPE_CHECKING:
    from nsjax.multibody.coordinates.absolute import Bodies

# Broad phase: pairs of points that are near each other, found by cells, into a list of fixed length.
#
# Space is cut into cells as wide as the distance of the search, and the points are sorted by their cells.
# The points of three cells in a row along x then follow each other in the list, so that the neighbours of
# a point stand in a few stretches of it. The pairs of all stretches are written one after the other into
# ``room`` places: many points in one cell and few in another need no more places than they have pairs.


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
    # in its own row a point meets later points alone, so that each pair comes once
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
    # one more than the number, so that neighbours below are not negative
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
    """Pairs of points ``own`` (n,) with those of the list ``order`` from ``start`` to ``end`` (rows, n)."""
    # pairs of each stretch; their running sum is the place where the next one begins
    count = jnp.maximum(end - start, 0).reshape(-1)
    stop = jnp.cumsum(count)
    place = jnp.arange(room)
    # stretches that end at or before a place
    ends = jnp.zeros(room, int).at[stop].add(1, mode="drop")
    which = jnp.minimum(jnp.cumsum(ends), count.shape[0] - 1)
    inside = place - (stop - count)[which] + start.reshape(-1)[which]
    return CellPairs(
        first=own[which % start.shape[1]], second=order[jnp.clip(inside, 0, order.shape[0] - 1)],
        here=place < stop[-1], count=stop[-1],
    )  # fmt: skip


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
    # slots that ascend by identity: memory finds the contacts of the step before by a search
    identity = identity if ascending else jnp.sort(identity)
    plain = jnp.where(identity == NOBODY, 0, identity)
    return CandidatePairs(
        first=plain // many, second=plain % many, identity=identity,
        needed=jnp.maximum(needed, jnp.sum(wanted)),
    )  # fmt: skip


# Candidate pairs of a group of shapes: the pairs that are near each other, found anew in every step.


DIRECT = 2000
"""Pairs of two kinds of shapes up to which all are looked at. A search by cells takes as long for fewer."""

Members = tuple[tuple[str, str], ...]
"""Kind and body of each shape of a group."""


def pair_counts(
    members: Members, split: int | None, apart: tuple[tuple[str, str], ...]
) -> dict[tuple[str, str], int]:
    """Numbers of pairs of a group, by the kinds of their shapes, without pairs of bodies ``apart``.

    Args:
        members: kind and body of each shape.
        split: shapes from this number on meet the shapes before it; None: all meet each other.
    """
    first, second = members[:split], members if split is None else members[split:]
    kinds = itertools.product(*(dict.fromkeys(kind for kind, _ in x) for x in (first, second)))
    banned = {frozenset(x) for x in apart if len(set(x)) == 2}
    found: dict[tuple[str, str], int] = {}
    for one, other in kinds:
        known = (one, other) if (one, other) in PAIRS else (other, one)
        if split is None and one != other and known in found:
            continue
        here, there = (
            Counter(body for kind, body in x if kind == k) for x, k in ((first, one), (second, other))
        )
        meet = here.total() * there.total() - sum(n * there[body] for body, n in here.items())
        meet -= sum(here[a] * there[b] + here[b] * there[a] for a, b in banned)
        if split is None and one == other:  # each pair was counted from both sides
            meet //= 2
        if meet:
            found[known] = found.get(known, 0) + meet
    return found


def pair_template(kinds: tuple[str, str]) -> Part:
    """A contact of two shapes of these kinds, between bodies ``"first"`` and ``"second"``."""
    return Part("contact", "pair", ("first", "second"), None, (("shapes", kinds),))


def size_classes(radii: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Rows of shapes in classes whose radii differ by at most two, from the largest on."""
    found: list[list[int]] = []
    # cells of a search have the size of the largest, and one of the densest heap holds 1.4 ratio^3 of the
    # smallest
    largest, ratio = np.inf, 2.0
    for k in np.argsort(-radii, kind="stable"):
        if not found or radii[k] * ratio < largest:
            largest = radii[k]
            found.append([])
        found[-1].append(int(k))
    return tuple(tuple(sorted(x)) for x in found)


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Pairs of two kinds of shapes of a group.

    Args:
        group: name of the group.
        kinds: kinds of the first and of the second shape.
        places: numbers of the bodies (ground: 0) of all shapes of the first and of the second kind.
        classes: rows of these shapes in classes of similar size, by which a step searches.
        capacity: slots for pairs that are near.
        dimension: 2 or 3.
        sides: whether each shape is of the second of two groups; None: all shapes meet each other.
        banned: pairs of numbers of bodies that do not meet.
    """

    group: str
    kinds: tuple[str, str]
    places: tuple[tuple[int, ...], tuple[int, ...]]
    classes: tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
    capacity: int
    dimension: int
    sides: tuple[tuple[bool, ...], ...] | None = None
    banned: tuple[tuple[int, int], ...] = ()

    @property
    def many(self) -> int:
        """Number above the identities of all pairs."""
        return len(self.places[0]) * len(self.places[1])

    def bodies(self, slots: CandidatePairs) -> list[Array]:
        """Numbers (capacity,) of the first and of the second bodies of the pairs in slots (ground: 0)."""
        rows = slots.first, slots.second
        return [jnp.asarray(x)[k] for x, k in zip(self.places, rows, strict=True)]

    def shapes(self, slots: CandidatePairs, p: PyTree) -> list[Any]:
        """Numbers of both shapes of the pairs in slots."""
        rows = zip(self.kinds, (slots.first, slots.second), strict=True)
        return [jax.tree.map(lambda y, k=k: y[k], p[self.group].shapes[kind]) for kind, k in rows]

    def near(self, tree: Bodies, frames: Any, p: PyTree) -> CandidatePairs:
        """Pairs whose gap, bounded from below by `apart`, is less than the reach of the group."""
        return self.search(self._volumes(tree, frames, p), p[self.group].reach)

    def search(self, volumes: tuple[Around, Around], reach: Any) -> CandidatePairs:
        """The same pairs from the bounding volumes of the shapes of both kinds."""
        found = [self._searched(rows, among, volumes, reach) for rows, among in self._searches]
        first, second, here, needed = (jnp.concatenate(x) for x in zip(*found, strict=True))
        ends = _taken(volumes[0], first), _taken(volumes[1], second)
        # cells are coarse: the bound of the gap decides
        near = here & (jax.vmap(functools.partial(gap_bound, self.kinds))(*ends) < reach)
        return listed(
            first, second, near, len(self.places[1]), self.capacity, jnp.max(needed),
            ascending=self.direct,
        )  # fmt: skip

    def near_count(self, tree: Bodies, frames: Any, p: PyTree) -> Array:
        """Number () of slots that would hold all near pairs and their search, from all pairs."""
        (one, other), reach = self._volumes(tree, frames, p), p[self.group].reach
        second = np.arange(len(self.places[1]))
        bound = jax.vmap(functools.partial(gap_bound, self.kinds), (None, 0))

        def of(k: Array) -> Array:
            near = bound(_taken(one, k), other) < reach
            later = second > k if self.kinds[0] == self.kinds[1] else True
            return jnp.sum(near & later & self._meet(k, second, jnp))

        every = jnp.sum(lax.map(of, jnp.arange(len(self.places[0]))))
        return jnp.maximum(every, self.search((one, other), reach).needed)

    @property
    def direct(self) -> bool:
        """Whether all pairs are looked at, without a search by cells."""
        return len(self._searches) == 1 and self._direct(*self._searches[0])

    @functools.cached_property
    def _searches(self) -> list[tuple[tuple[np.ndarray, np.ndarray], bool]]:
        """Rows of two classes of shapes that meet, and whether these are the same class."""
        whole: Any = tuple(np.arange(len(x)) for x in self.places)
        same = self.kinds[0] == self.kinds[1]
        if self._direct(whole, same):
            return [(whole, same)]
        first, second = ([np.array(x) for x in own] for own in self.classes)
        if not same:
            return [((a, b), False) for a in first for b in second]
        both = itertools.combinations_with_replacement(range(len(first)), 2)
        return [((first[k], first[m]), k == m) for k, m in both]

    def _direct(self, rows: tuple[np.ndarray, np.ndarray], among: bool) -> bool:
        """Whether all pairs of two classes are looked at."""
        n, m = len(rows[0]), len(rows[1])
        pairs = n * (n - 1) // 2 if among else n * m
        return self.kinds[1] in ENDLESS or pairs <= max(DIRECT, ROOM * self.capacity)

    def _searched(
        self, rows: tuple[np.ndarray, np.ndarray], among: bool, volumes: tuple[Around, Around], reach: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Shapes of pairs that may be near, the mask of those that meet, and the slots (1,) needed."""
        if self._direct(rows, among):
            n, m = len(rows[0]), len(rows[1])
            one, other = np.triu_indices(n, 1) if among else np.divmod(np.arange(n * m), m)
            first, second = self._ordered(rows[0][one], rows[1][other], np)
            meet = self._meet(first, second, np)
            return first[meet], second[meet], np.ones(np.sum(meet), bool), np.zeros(1, int)
        here, there = (_taken(x, k) for x, k in zip(volumes, rows, strict=True))
        within = jnp.max(here.radius) + jnp.max(there.radius) + reach
        room = ROOM * self.capacity
        if among:
            found = pairs_within(here.centre, within, room)
        else:
            found = pairs_between(here.centre, there.centre, within, room)
        pairs = jnp.asarray(rows[0])[found.first], jnp.asarray(rows[1])[found.second]
        first, second = self._ordered(*pairs, jnp)
        meet = found.here & self._meet(first, second, jnp)
        return first, second, meet, (-(-found.count // ROOM))[None]

    def _ordered(self, one: Any, other: Any, xp: Any) -> tuple[Any, Any]:
        """Rows of both shapes of pairs; of shapes of one kind the lower row comes first."""
        if self.kinds[0] != self.kinds[1]:
            return one, other
        return xp.minimum(one, other), xp.maximum(one, other)

    def _meet(self, first: Any, second: Any, xp: Any) -> Any:
        """Mask of pairs of shapes, given by their rows, whose bodies meet."""
        here, there = (xp.asarray(x)[k] for x, k in zip(self.places, (first, second), strict=True))
        meet = here != there
        if self.sides is not None:
            late = [xp.asarray(x)[k] for x, k in zip(self.sides, (first, second), strict=True)]
            meet = meet & (late[0] != late[1])
        if self.banned:
            most = 1 + max(map(max, (*self.places, *self.banned)))
            known = np.sort(np.array([min(x) * most + max(x) for x in self.banned]))
            key = xp.minimum(here, there) * most + xp.maximum(here, there)
            at = xp.minimum(xp.searchsorted(known, key), len(known) - 1)
            meet = meet & (xp.asarray(known)[at] != key)
        return meet

    def _volumes(self, tree: Bodies, frames: Any, p: PyTree) -> tuple[Around, Around]:
        """Bounding volumes of all shapes of both kinds."""
        shapes = p[self.group].shapes
        one, other = (
            self._around(tree, frames, kind, np.array(places), shapes[kind])
            for kind, places in zip(self.kinds, self.places, strict=True)
        )
        return one, other

    def _around(self, tree: Bodies, frames: Any, kind: str, places: np.ndarray, shapes: Any) -> Around:
        """Bounding volumes of all shapes of a kind."""
        own = jax.tree.map(lambda x: x[places], frames)

        def one(frame: Any, shape: Any) -> Around:
            scene = Scene(self.dimension, jnp.zeros(()), {"body": tree.alone(frame)})
            return around(scene, "body", kind, shape)

        return jax.vmap(one)(own, shapes)


def _taken(x: Around, k: Any) -> Around:
    """Bounding volumes of some shapes."""
    return jax.tree.map(lambda y: y[k], x)
