"""Contacts by name of a mechanism: those alike are evaluated at once, so that a program grows with the
kinds of pairs and not with their number.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.math import taken
from nsjax.multibody import numbers
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import Batch, alike, scene_of, spread_out
from nsjax.multibody.contacts.candidates import apart, around, first_of
from nsjax.multibody.contacts.gap_functions import Meeting
from nsjax.multibody.contacts.pair_kind import PairKind
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene, several
from nsjax.multibody.numbers import LAW, side_by_side
from nsjax.multibody.parts import Part
from nsjax.types import Array, PyTree, record

AT_ONCE = 4
"""Pairs from which those alike are evaluated at once. Operations of gap, slip and rows on a tree of 17
bodies, one by one and at once, for 1, 2, 4, 8, 16 pairs of sphere and plane, the cheapest: 620, 791, 1312,
2115, 3566 and 1048, 1053, 1105, 1105, 1105; of two capsules: 1577, 2606, 4581, 8197, 15484 and 1989, 2094,
2094, 2094, 2164. Rows of eight pairs of capsules take 2.3 us at once (3.8), of four, eight and sixteen of
capsule and plane 1.0, 1.6 and 2.0 (0.7, 1.3 and 1.4): the gate is set by the size of programs.
"""

SEARCHED_AT_ONCE = 2
"""The same of pairs whose features are searched for, a larger program. A run of three boxes on each other
has 10,578 operations in place of 13,791 and compiles in 9.8 s in place of 12.1; a step takes as long.
"""

BESIDE = "contacts side by side"
"""Key of the numbers of such pairs in prepared params; no part has it, since names are words."""

CHOSEN = "contacts at hand"
"""Key of the contacts that a step looks at (`Choice`), in refreshed params, by the first name of those
alike.
"""

NEAREST = "closest points"
"""Key of what a step holds fixed, in refreshed params, by the name of a contact or the first one of those
alike.
"""


@record()
class Choice:
    """Pairs of those alike that a step looks at.

    Args:
        which: (places,) int, of the pair that stands there.
        used: (places,) bool, whether one does.
        place: (pairs,) int, of every pair; the number of places: it has none.
        near: () int, pairs that were near.
    """

    which: Array
    used: Array
    place: Array
    near: Array


@dataclasses.dataclass(frozen=True)
class Named:
    """Contacts by name.

    Args:
        dimension: 2 or 3.
        pieces: those that are evaluated by themselves, and those alike.
        rows: contacts of each piece.
        order: places of the contacts in those of the pieces; None if they are the same.
        few: whether of the pieces with a group those are evaluated that a step has chosen.
    """

    dimension: int
    pieces: tuple[Part | Batch, ...]
    rows: tuple[int, ...]
    order: tuple[int, ...] | None
    few: bool = False

    @property
    def chosen(self) -> tuple[Batch, ...]:
        """Pieces of which a step looks at some."""
        return tuple(x for x in self.many if x.group is not None)

    @property
    def smooth(self) -> int:
        """Contacts of a step without friction, the last ones."""
        last = itertools.takewhile(
            lambda x: isinstance(x[0], Batch) and x[0].smooth,
            reversed(list(zip(self.pieces, self.rows, strict=True))),
        )
        return sum(n for _, n in last)

    @property
    def of_step(self) -> Named:
        """The contacts of a step, in the order of the pieces."""
        rows = [
            n * x.places // len(x.names) if isinstance(x, Batch) else n
            for x, n in zip(self.pieces, self.rows, strict=True)
        ]
        return dataclasses.replace(self, rows=tuple(rows), order=None, few=True)

    def choice(self, piece: Any, p: PyTree) -> Choice | None:
        """The pairs of a piece that are evaluated; None: all."""
        if not (self.few and isinstance(piece, Batch) and piece.group is not None):
            return None
        made: Choice = p[CHOSEN][piece.names[0]] if CHOSEN in p else _first(piece)
        return made

    def choose(self, scene: Scene, p: PyTree) -> dict[str, Choice]:
        """The pairs of every piece that are near."""
        found, ready = {}, zip(self.many, self._ready(p), strict=True)
        for piece, ((first, second), _) in ready:
            if piece.group is None:
                continue
            ends = [several(scene.frames, [x[k] for x in piece.bodies]) for k in (0, 1)]
            kinds = piece.part.option("shapes")

            def bound(ends: Any, shapes: Any, kinds: Any = kinds) -> Array:
                both = scene_of(self.dimension, scene.time, *ends)
                sides = zip(("first", "second"), kinds, shapes, strict=True)
                return apart(kinds, *(around(both, body, kind, x) for body, kind, x in sides))

            gap = jax.vmap(bound, -1)(*lax.stop_gradient((ends, (first, second))))
            near = gap < lax.stop_gradient(p[piece.group].reach)
            which, place = first_of(near, piece.places)
            used = which < len(piece.names)
            which = jnp.where(used, which, 0)
            found[piece.names[0]] = Choice(which=which, used=used, place=place, near=jnp.sum(near))
        return found

    @functools.cached_property
    def many(self) -> tuple[Batch, ...]:
        """Those that are evaluated at once."""
        return tuple(x for x in self.pieces if isinstance(x, Batch))

    @property
    def between_bodies(self) -> int:
        """Contacts of rigid bodies."""
        parts = [x.part if isinstance(x, Batch) else x for x in self.pieces]
        both = zip(parts, self.rows, strict=True)
        return sum(n for part, n in both if gap_functions.rigid(part))

    @property
    def searched(self) -> bool:
        """Whether a step holds closest points or features of any."""
        return any(x.hold is not None for x in self._kinds)

    @property
    def rates_at_points(self) -> bool:
        """Whether rates of all gaps are those of the points that meet."""
        return all(x.rate_at_points for x in self._kinds)

    @property
    def _kinds(self) -> list[PairKind]:
        return [gap_functions.kind_of(x.part if isinstance(x, Batch) else x) for x in self.pieces]

    def stacked(self, p: PyTree) -> tuple[Any, ...]:
        """Numbers of shapes of those alike, side by side along a last axis, and of their laws."""
        found = []
        for piece in self.many:
            own = [p[name] for name in piece.names]
            shapes = side_by_side([(x.first, x.second) for x in own], axis=-1)
            found.append((shapes, [self._column(own, key, piece.rows) for key in LAW]))
        return tuple(found)

    def _column(self, own: Sequence[Any], key: str, rows: int) -> Array:
        """One number of the laws of several parts, contact by contact."""
        given = [getattr(x, key) for x in own]
        if len(own) > 1 and all(np.ndim(x) == 0 for x in given if x is not None):
            one = jnp.stack([jnp.asarray(0.0 if x is None else x, float) for x in given])
            return jnp.broadcast_to(one[:, None], (len(own), rows)).reshape(-1)
        wide = [jnp.broadcast_to(0.0 if x is None else jnp.asarray(x, float), (rows,)) for x in given]
        return jnp.concatenate(wide)

    def _ready(self, p: PyTree) -> tuple[Any, ...]:
        found: tuple[Any, ...] = p[BESIDE] if BESIDE in p else self.stacked(p)
        return found

    def _each(
        self, scene: Scene, p: PyTree, one: Callable[..., Any], fit: Callable[..., Any], near: Any = None
    ) -> list[Any]:
        """``one(scene, part, numbers, near)`` of every piece, of those alike ``fit(scene, piece, ...)`` at
        once, with results along a last axis.
        """
        near, found, beside = near or {}, [], iter(self._ready(p) if self.many else ())
        for piece in self.pieces:
            if not isinstance(piece, Batch):
                found.append(one(scene, piece, p[piece.name], near.get(piece.name)))
                continue
            shapes, choice = next(beside)[0], self.choice(piece, p)
            which = None if choice is None else choice.which
            ends = [several(scene.frames, [x[k] for x in piece.bodies], which) for k in (0, 1)]
            if which is not None:
                shapes = jax.tree.map(lambda x, k=which: x[..., k], shapes)

            def at(ends: Any, shapes: Any, held: Any, piece: Batch = piece) -> Any:
                both = numbers.Contact(first=shapes[0], second=shapes[1])
                return fit(scene_of(self.dimension, scene.time, *ends), piece, both, held)

            # what a step holds is of the pairs that it looks at
            held = None if choice is None and piece.group is not None else near.get(piece.names[0])
            found.append(jax.vmap(at, -1, -1)(ends, shapes, held))
        return found

    def met(self, scene: Scene, p: PyTree) -> list[Meeting]:
        """Where they meet, piece by piece."""

        def fit(scene: Scene, piece: Batch, both: Any, near: Any) -> Any:
            met = gap_functions.meetings(scene, piece.part, both, near)
            places = [
                spread_out(scene.algebra, piece.rows, x)
                for x in (met.here, met.there, met.normal, *met.tangents)
            ]
            return jnp.broadcast_to(met.gap, (piece.rows,)), places

        found = self._each(scene, p, gap_functions.meetings, fit, p.get(NEAREST))
        return [
            _as_meeting(piece, *x) if isinstance(piece, Batch) else x
            for piece, x in zip(self.pieces, found, strict=True)
        ]

    def held(self, scene: Scene, p: PyTree) -> dict[str, Any]:
        """What a step holds fixed of them."""

        def one(scene: Scene, part: Part, both: Any, near: Any) -> Any:
            return gap_functions.held(scene, part, both)

        found = self._each(scene, p, one, lambda scene, piece, *x: one(scene, piece.part, *x))
        names = [x.names[0] if isinstance(x, Batch) else x.name for x in self.pieces]
        return {name: x for name, x in zip(names, found, strict=True) if x is not None}

    def gaps(self, scene: Scene, p: PyTree) -> list[Any]:
        """Gaps [m] in the order of the contacts: numbers, and arrays of several."""

        def one(scene: Scene, part: Part, both: Any, near: Any) -> Any:
            return gap_functions.meetings(scene, part, both, near).gap

        def fit(scene: Scene, piece: Batch, both: Any, near: Any) -> Any:
            return jnp.broadcast_to(one(scene, piece.part, both, near), (piece.rows,))

        found = self._each(scene, p, one, fit, p.get(NEAREST))
        found = [x.T if isinstance(k, Batch) else x for k, x in zip(self.pieces, found, strict=True)]
        return found if self.order is None else [self.in_order([gap_functions.flat(found)])]

    def slips(self, scene: Scene, p: PyTree) -> Array | None:
        """Velocities along the tangents (nc, nt) [m/s]; None: there is no contact."""
        if not self.pieces:
            return None

        def one(scene: Scene, part: Part, both: Any, near: Any) -> Any:
            return gap_functions.meetings(scene, part, both, near).slip(scene)

        def fit(scene: Scene, piece: Batch, both: Any, near: Any) -> Any:
            slip = one(scene, piece.part, both, near)
            return [jnp.broadcast_to(plane.value(x), (piece.rows,)) for x in slip]

        found = self._each(scene, p, one, fit, p.get(NEAREST))
        rows = [
            [x.T.reshape(-1) for x in own] if isinstance(k, Batch) else own
            for k, own in zip(self.pieces, found, strict=True)
        ]
        return self.in_order([gap_functions.columns(rows, list(self.rows))])

    def in_order(self, values: list[Array], axis: int = 0) -> Array:
        """Values of the pieces in the order of the contacts, along an axis."""
        x = values[0] if len(values) == 1 else jnp.concatenate(values, axis=axis)
        if self.order is None:
            return x
        return jnp.swapaxes(taken(jnp.swapaxes(x, 0, axis), np.array(self.order)), 0, axis)

    def sorted(self, values: list[Any]) -> list[Any]:
        """The same of what is no number."""
        return values if self.order is None else [values[k] for k in self.order]

    def law(self, p: PyTree) -> list[Array]:
        """Restitution, tangential restitution and friction of the contacts (nc,)."""
        beside = iter(self._ready(p) if self.many else ())
        columns: list[list[Array]] = [[] for _ in LAW]
        for piece, n in zip(self.pieces, self.rows, strict=True):
            one = next(beside)[1] if isinstance(piece, Batch) else None
            choice = self.choice(piece, p)
            if isinstance(piece, Batch) and one is not None and choice is not None:
                one = [x.reshape(-1, piece.rows)[choice.which].reshape(-1) for x in one]
            own = [] if isinstance(piece, Batch) else [p[piece.name]]
            for k, key in enumerate(LAW):
                columns[k].append(self._column(own, key, n) if one is None else one[k])
        return [self.in_order(x) if x else jnp.zeros(0) for x in columns]


def _as_meeting(piece: Batch, gap: Array, places: list[Array]) -> Meeting:
    """Pair by pair, of values (rows, n) and (3, rows, n)."""
    flat = [jnp.swapaxes(x, 1, 2).reshape(x.shape[0], -1) for x in places]
    here, there, normal, *across = [tuple(x) if len(x) == 2 else x for x in flat]
    first, second = (tuple(x[k] for x in piece.bodies for _ in range(piece.rows)) for k in (0, 1))
    return Meeting(gap.T.reshape(-1), first, second, here, there, normal, tuple(across))


def _smooth_last(
    contacts: list[Part], counts: list[int], of: dict[str, Batch]
) -> tuple[list[Part], list[int]]:
    """Contacts, and how many each is, with those behind all others of which a step looks at some that have
    no friction.
    """

    def smooth(k: int) -> bool:
        piece = of.get(contacts[k].name)
        return piece is not None and piece.group is not None and piece.smooth

    order = sorted(range(len(contacts)), key=smooth)
    return [contacts[k] for k in order], [counts[k] for k in order]


def _first(piece: Batch) -> Choice:
    """The first pairs, where no step has chosen."""
    few, pairs = piece.places, np.arange(len(piece.names))
    which = jnp.arange(few)
    return Choice(
        which=which, used=which >= 0, place=jnp.asarray(np.minimum(pairs, few)), near=jnp.asarray(few)
    )  # fmt: skip


def _enough(batch: Batch, at_once: int) -> bool:
    """Whether those alike are evaluated at once."""
    return len(batch.names) >= (min(at_once, SEARCHED_AT_ONCE) if batch.searched else at_once)


def named(parts: Sequence[Part], dimension: int, at_once: int | None = AT_ONCE) -> Named:
    """Contacts by name of parts, those of which there are ``at_once`` alike together, or as many as
    `SEARCHED_AT_ONCE` where features are searched for; None: none are.
    """
    contacts = [x for x in parts if x.kind == "contact"]
    counts = [gap_functions.count(x, x.numbers, dimension) for x in contacts]
    rigid = [x for x in contacts if gap_functions.rigid(x)]
    groups = [] if at_once is None else [x for x in alike(rigid, dimension) if _enough(x, at_once)]
    of = {name: x for x in groups for name in x.names}
    places = dict(zip([x.name for x in contacts], np.cumsum([0, *counts])[:-1], strict=True))
    pieces: list[Part | Batch] = []
    rows, standing, done = [], [], set()
    # of the contacts of a step those without friction stand last, see `System.smooth`
    contacts, counts = _smooth_last(contacts, counts, of)
    for part, n in zip(contacts, counts, strict=True):
        if part.name in done:
            continue
        piece = of.get(part.name)
        own = (part.name,) if piece is None else piece.names
        done |= set(own)
        pieces.append(dataclasses.replace(part, numbers=None) if piece is None else piece)
        rows.append(n * len(own))
        standing += [int(places[name]) + k for name in own for k in range(n)]
    order = None if standing == sorted(standing) else tuple(int(k) for k in np.argsort(standing))
    return Named(dimension, tuple(pieces), tuple(rows), order)
