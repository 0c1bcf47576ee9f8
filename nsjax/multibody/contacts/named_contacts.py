"""Named contacts of a mechanism, evaluated in batches, and their rows from the screws of a tree."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError
from nsjax.core.slots import Slots
from nsjax.linalg import matmul
from nsjax.math import taken
from nsjax.multibody import numbers
from nsjax.multibody.contacts import batches, gap_functions
from nsjax.multibody.contacts.batches import Batch, scene_of, spread_out
from nsjax.multibody.contacts.gap_functions import Meeting, around, gap_bound
from nsjax.multibody.contacts.shape import PairKind
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene, constants, held_features, several
from nsjax.multibody.numbers import CONSTANT, LAW, SPEEDS, TURNING
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Array, PyTree, record

if TYPE_CHECKING:
    from nsjax.multibody.coordinates.absolute import Bodies
    from nsjax.multibody.coordinates.spatial import SpatialTree


@record()
class Choice:
    """Pairs of a batch that a step evaluates. ``slots``: their places; ``near``: () int, number of pairs
    that were near.
    """

    slots: Slots
    near: Array


@dataclasses.dataclass(frozen=True)
class NamedContacts:
    """Named contacts of a mechanism.

    Args:
        dimension: 2 or 3.
        pieces: contacts that are evaluated one by one, and batches.
        rows: number of contacts of each piece.
        order: index of each contact in the concatenated pieces; None if the order is the same.
        turning: names of the coefficients of friction against turning that the contacts of each piece have.
        few: whether only the pairs chosen by a step are evaluated in batches of a group.
    """

    dimension: int
    pieces: tuple[Part | Batch, ...]
    rows: tuple[int, ...]
    order: tuple[int, ...] | None
    turning: tuple[tuple[str, ...], ...] = ()
    few: bool = False

    @functools.cached_property
    def contact_numbers(self) -> np.ndarray:
        """Number of each contact of the concatenated pieces among all contacts."""
        return np.arange(sum(self.rows)) if self.order is None else np.argsort(np.array(self.order))

    @property
    def numbers(self) -> list[np.ndarray]:
        """Numbers of the contacts of each piece among all contacts."""
        ends = np.cumsum(self.rows)
        return [self.contact_numbers[end - n : end] for end, n in zip(ends, self.rows, strict=True)]

    @property
    def chosen(self) -> tuple[Batch, ...]:
        """Batches of which a step evaluates only near pairs."""
        return tuple(x for x in self.many if x.group is not None)

    @property
    def frictionless(self) -> int:
        """Number of frictionless contacts of a step, which are the last ones."""
        last = itertools.takewhile(
            lambda x: isinstance(x[0], Batch) and x[0].frictionless,
            reversed(list(zip(self.pieces, self.rows, strict=True))),
        )
        return sum(n for _, n in last)

    @property
    def of_step(self) -> NamedContacts:
        """The contacts that a step evaluates, in the order of the pieces."""
        rows = [
            n * x.places // len(x.names) if isinstance(x, Batch) else n
            for x, n in zip(self.pieces, self.rows, strict=True)
        ]
        return dataclasses.replace(self, rows=tuple(rows), order=None, few=True)

    def choice(self, piece: Any, p: PyTree) -> Choice | None:
        """The pairs of a piece that a step evaluates; None: all pairs."""
        if not (self.few and isinstance(piece, Batch) and piece.group is not None):
            return None
        chosen: dict[str, Choice] | None = held_features(p).chosen
        return _first(piece) if chosen is None else chosen[piece.names[0]]

    def choose(self, scene: Scene, p: PyTree) -> dict[str, Choice]:
        """The near pairs of every batch of a group, by its first name."""
        found, ready = {}, self._ready(p)
        for piece in self.chosen:
            (first, second), _ = ready[piece.names[0]]
            ends = [several(scene.frames, [x[k] for x in piece.bodies]) for k in (0, 1)]
            kinds = piece.part.option("shapes")

            def bound(ends: Any, shapes: Any, kinds: Any = kinds) -> Array:
                both = scene_of(self.dimension, scene.time, *ends)
                sides = zip(("first", "second"), kinds, shapes, strict=True)
                return gap_bound(kinds, *(around(both, body, kind, x) for body, kind, x in sides))

            axes = batches.axes((first, second), len(piece.names))
            gap = jax.vmap(bound, (-1, axes))(*lax.stop_gradient((ends, (first, second))))
            near = gap < lax.stop_gradient(p[piece.group].reach)
            slots = Slots.first(near, piece.places)
            if slots.all:  # a pair that is not near gives up its place
                place = jnp.where(near, np.arange(piece.places), piece.places)
                slots = Slots(which=jnp.arange(piece.places), used=near, place=place)
            found[piece.names[0]] = Choice(slots=slots, near=jnp.sum(near))
        return found

    @property
    def names(self) -> list[str]:
        """Name of each piece: of a contact, or the first one of a batch."""
        return [x.title if isinstance(x, Batch) else x.name for x in self.pieces]

    @functools.cached_property
    def many(self) -> tuple[Batch, ...]:
        """The batches of contacts with names among the pieces."""
        return tuple(x for x in self.pieces if isinstance(x, Batch) and x.names)

    @property
    def between_bodies(self) -> int:
        """Number of contacts between rigid bodies."""
        parts = [x.part if isinstance(x, Batch) else x for x in self.pieces]
        both = zip(parts, self.rows, strict=True)
        return sum(n for part, n in both if gap_functions.rigid(part))

    @property
    def searched(self) -> bool:
        """Whether a step holds closest points or features of any contact."""
        return any(x.hold is not None for x in self._kinds)

    @property
    def at_points(self) -> tuple[bool, ...]:
        """Whether the rate of every gap of a piece is the normal velocity of its contact points."""
        return tuple(x.rate_at_points for x in self._kinds)

    @property
    def rigid(self) -> bool:
        """Whether all contacts are those of rigid bodies."""
        return all(x.rigid for x in self._kinds)

    def some(self, kept: Sequence[bool]) -> NamedContacts:
        """The contacts of some pieces, in the order of the pieces."""
        which = [k for k, keep in enumerate(kept) if keep]
        pieces, rows = (tuple(self.pieces[k] for k in which), tuple(self.rows[k] for k in which))
        turning = tuple(self.turning[k] for k in which)
        return dataclasses.replace(self, pieces=pieces, rows=rows, order=None, turning=turning)

    @property
    def _kinds(self) -> list[PairKind]:
        return [gap_functions.kind_of(x.part if isinstance(x, Batch) else x) for x in self.pieces]

    def stacked(self, p: PyTree) -> dict[str, Any]:
        """Numbers of the shapes of each batch (`batches.stacked`) and of its laws, by its first name."""
        found, speeds = {}, self._speeds(p)
        for piece in self.many:
            own = [p[name] for name in piece.names]
            shapes = batches.stacked([(x.first, x.second) for x in own])
            laws = {key: _column(p, piece.names, key, piece.rows) for key in (*LAW, *TURNING, *speeds)}
            found[piece.names[0]] = shapes, laws
        return found

    def _ready(self, p: PyTree) -> dict[str, Any]:
        found: dict[str, Any] | None = constants(p).contacts
        return self.stacked(p) if found is None else found

    def each(
        self, scene: Scene, p: PyTree, one: Callable[..., Any], fit: Callable[..., Any], near: Any = None,
        search: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Values of every piece: ``one(scene, part, numbers, near)`` of a contact; of a batch
        ``fit(scene, piece, numbers, near)``, mapped over its pairs, with results along a last axis. Where
        these are a ``search``, pairs that are apart are left out.
        """
        near, found, beside = near or {}, [], self._ready(p) if self.many else {}
        for piece in self.pieces:
            if not isinstance(piece, Batch):
                found.append(one(scene, piece, p[piece.name], near.get(piece.name)))
                continue
            ends, shapes, axes = self._pairs(piece, beside, scene, p)

            def at(ends: Any, shapes: Any, held: Any, piece: Batch = piece) -> Any:
                both = numbers.Contact(first=shapes[0], second=shapes[1])
                return fit(scene_of(self.dimension, scene.time, *ends), piece, both, held)

            # held features belong to the pairs that the step evaluates
            choice = self.choice(piece, p)
            held = None if choice is None and piece.group is not None else near.get(piece.title)
            if search and choice is not None and piece.long_search:
                found.append(
                    batches.searched(functools.partial(at, held=None), ends, shapes, choice.slots.used)
                )
                continue
            found.append(jax.vmap(at, (-1, axes, -1), -1)(ends, shapes, held))
        return found

    def _pairs(
        self, piece: Batch, beside: dict[str, Any], scene: Scene, p: PyTree
    ) -> tuple[list[Any], Any, Any]:
        """Frames of both bodies of the pairs of a batch that a step evaluates, along a last axis; numbers
        of their shapes, and the axes of the pairs in these.
        """
        if piece.source is not None:
            frames, slots = scene.frames, held_features(p).chosen[piece.title]
            both = piece.source.bodies(slots)
            return [frames.at(x) for x in both], piece.source.shapes(slots, p), 0  # type: ignore[attr-defined]
        shapes, choice = beside[piece.title][0], self.choice(piece, p)
        which = None if choice is None or piece.places == len(piece.names) else choice.slots.which
        ends = [several(scene.frames, [x[k] for x in piece.bodies], which) for k in (0, 1)]
        if which is not None:
            shapes = batches.some(shapes, len(piece.names), which)
        return ends, shapes, batches.axes(shapes, len(piece.names) if which is None else which.shape[0])

    def meetings(self, scene: Scene, p: PyTree) -> list[Meeting]:
        """Gaps, contact points and normals, piece by piece."""

        def fit(scene: Scene, piece: Batch, both: Any, near: Any) -> Any:
            meeting = gap_functions.meetings(scene, piece.part, both, near)
            places = [
                spread_out(scene.algebra, piece.rows, x)
                for x in (meeting.here, meeting.there, meeting.normal, *meeting.tangents)
            ]
            return jnp.broadcast_to(meeting.gap, (piece.rows,)), places

        found = self.each(scene, p, gap_functions.meetings, fit, held_features(p).features)
        return [
            _as_meeting(piece, *x) if isinstance(piece, Batch) else x
            for piece, x in zip(self.pieces, found, strict=True)
        ]

    def hold(self, scene: Scene, p: PyTree) -> dict[str, Any]:
        """Features that a step holds fixed, by the name of a contact or the first name of a batch."""

        def one(scene: Scene, part: Part, both: Any, near: Any) -> Any:
            return gap_functions.hold(scene, part, both)

        fit = lambda scene, piece, *x: one(scene, piece.part, *x)  # noqa: E731
        found = self.each(scene, p, one, fit, search=True)
        return {name: x for name, x in zip(self.names, found, strict=True) if x is not None}

    def gaps(self, scene: Scene, p: PyTree) -> list[Any]:
        """Gaps [m] in the order of the contacts, as scalars and arrays."""

        def one(scene: Scene, part: Part, both: Any, near: Any) -> Any:
            return gap_functions.meetings(scene, part, both, near).gap

        def fit(scene: Scene, piece: Batch, both: Any, near: Any) -> Any:
            return jnp.broadcast_to(one(scene, piece.part, both, near), (piece.rows,))

        found = self.each(scene, p, one, fit, held_features(p).features)
        found = [x.T if isinstance(k, Batch) else x for k, x in zip(self.pieces, found, strict=True)]
        return found if self.order is None else [self.in_order([gap_functions.flat(found)])]

    def gap_screws(self, scene: Scene, p: PyTree, side: str) -> list[Array]:
        """Derivatives (3 or 6, k) of the gaps of each piece by the motion of their first or second body."""

        def one(scene: Scene, part: Part, both: Any, near: Any) -> Any:
            body, rows = part.bodies[side == "second"], gap_functions.count(part, both, self.dimension)
            if body == GROUND:
                return jnp.zeros((3 * (self.dimension - 1), rows))
            return gap_functions.gap_screws(scene, part, both, near, body, rows)

        fit = lambda scene, piece, *x: one(scene, piece.part, *x)  # noqa: E731
        found = self.each(scene, p, one, fit, held_features(p).features)
        pairs = zip(self.pieces, found, strict=True)
        return [
            jnp.swapaxes(x, 1, 2).reshape(x.shape[0], -1) if isinstance(k, Batch) else x for k, x in pairs
        ]

    def slips(self, scene: Scene, p: PyTree) -> Array | None:
        """Slip velocities along the tangents (nc, nt) [m/s]; None without contacts."""
        if not self.pieces:
            return None

        def one(scene: Scene, part: Part, both: Any, near: Any) -> Any:
            return gap_functions.meetings(scene, part, both, near).slip(scene)

        def fit(scene: Scene, piece: Batch, both: Any, near: Any) -> Any:
            slip = one(scene, piece.part, both, near)
            return [jnp.broadcast_to(plane.value(x), (piece.rows,)) for x in slip]

        found = self.each(scene, p, one, fit, held_features(p).features)
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
        """A list, given piece by piece, in the order of the contacts."""
        return values if self.order is None else [values[k] for k in self.order]

    def law(self, p: PyTree) -> dict[str, Array]:
        """Numbers (nc,) of the laws of the contacts, by name; those of `numbers.SPEEDS` where needed."""
        keys = (*LAW, *self._speeds(p))
        return dict(zip(keys, self.columns(p, keys), strict=True))

    def _speeds(self, p: PyTree) -> tuple[str, ...]:
        """`numbers.SPEEDS` if the law of any contact depends on the speed, else ()."""
        names = [x for k in self.pieces for x in (k.names[:1] if isinstance(k, Batch) else (k.name,))]
        falls = any(getattr(p[name], key) is not None for name in names for key in SPEEDS)
        return SPEEDS if falls else ()

    def columns(self, p: PyTree, keys: Sequence[str], ordered: bool = True) -> list[Array]:
        """Numbers (nc,) of the laws of the contacts; not ``ordered``: in the order of the pieces."""
        beside = self._ready(p) if self.many else {}
        columns: list[list[Array]] = [[] for _ in keys]
        for piece, n in zip(self.pieces, self.rows, strict=True):
            one = beside[piece.names[0]][1] if isinstance(piece, Batch) else None
            choice = self.choice(piece, p)
            for x, key in zip(columns, keys, strict=True):
                if one is None:
                    x.append(_column(p, [piece.name], key, n))  # type: ignore[union-attr]
                elif choice is None:
                    x.append(one[key])
                else:
                    x.append(one[key].reshape(-1, piece.rows)[choice.slots.which].reshape(-1))  # type: ignore[union-attr]
        made = [self.in_order(x) if ordered else jnp.concatenate(x) for x in columns if x]
        return made or [jnp.zeros(0) for _ in keys]


def _column(p: PyTree, names: Sequence[str], key: str, rows: int) -> Array:
    """One number of the laws of several parts with ``rows`` contacts each, contact by contact."""
    given = [getattr(p[name], key) for name in names]
    if given[0] is None and key in SPEEDS:  # parts of a batch have the same numbers
        given = [CONSTANT.get(key, p[name].friction) for name in names]
    for name, x in zip(names, given, strict=True):
        if x is not None and np.shape(x) not in ((), (1,), (rows,)):
            raise InputError(
                f"contact {name!r}: {key} has shape {np.shape(x)}; give one number, or one for each of its "
                f"{rows} contacts"
            )
    if len(given) > 1 and all(np.ndim(x) == 0 for x in given if x is not None):
        one = jnp.stack([jnp.asarray(0.0 if x is None else x, float) for x in given])
        return jnp.broadcast_to(one[:, None], (len(given), rows)).reshape(-1)
    wide = [jnp.broadcast_to(0.0 if x is None else jnp.asarray(x, float), (rows,)) for x in given]
    return jnp.concatenate(wide)


def _as_meeting(piece: Batch, gap: Array, places: list[Array]) -> Meeting:
    """Contacts of a batch, pair by pair, from gaps (rows, n) and vectors (3, rows, n)."""
    flat = [jnp.swapaxes(x, 1, 2).reshape(x.shape[0], -1) for x in places]
    here, there, normal, *across = [tuple(x) if len(x) == 2 else x for x in flat]
    first, second = (tuple(x[k] for x in piece.bodies for _ in range(piece.rows)) for k in (0, 1))
    return Meeting(gap.T.reshape(-1), first, second, here, there, normal, tuple(across))


def _first(piece: Batch) -> Choice:
    """The first pairs of a batch, as a choice before any step has chosen."""
    few, pairs = piece.places, np.arange(len(piece.names))
    which = jnp.arange(few)
    slots = Slots(which=which, used=which >= 0, place=jnp.asarray(np.minimum(pairs, few)))
    return Choice(slots=slots, near=jnp.asarray(few))


# Rows of contacts in space, from the screws of all velocities.
#
# A unit generalised velocity with the screw ``(w, u)`` gives the point ``x`` of a body that it moves the
# velocity ``u + w x x``, whose component along ``n`` is ``n . u + (x x n) . w``. The rate of a gap
# between closest points of rigid bodies is the relative velocity of these points along the normal, so
# that no gap is differentiated through the chain of bodies. Gaps of features that a step holds fixed have
# another rate: their derivatives by the motions of both bodies stand in place of ``(n, x x n)``.


def rows(tree: SpatialTree | Bodies, lines: Lines, screws: tuple[Array, Array]) -> Array:
    """Rows (nc, 1 + tangents, nv) of gap rates and slips from ``screws``: spins, velocities (nv, 3)."""
    (spins, velocities), d, made = screws, 1 + lines.tangents, jnp.zeros(())
    columns = jnp.concatenate([velocities, spins], axis=1).T
    if not lines.named.pieces:
        return jnp.zeros((0, d, spins.shape[0]))
    for side in ("first", "second"):
        moves = _moved(tree, lines, side)
        if moves is None:
            continue
        # the rate of a point along a way is a product of screws: of the way, with its moment about the
        # origin of the ground, and of the velocity; one product for all contacts
        wide = matmul(lines.of(side).reshape(6, -1).T, columns)
        made = made + moves[:, None, :] * wide.reshape(sum(lines.counts), d, -1)
    return made


@dataclasses.dataclass(frozen=True)
class Lines:
    """Lines along which contacts act on their bodies at an instant.

    Args:
        named: the contacts.
        scene: the bodies.
        tangents: number of tangents of each contact.
        p: refreshed params.
    """

    named: NamedContacts
    scene: Scene
    tangents: int
    p: PyTree

    @functools.cached_property
    def meetings(self) -> list[Meeting]:
        """Contact points and normals, piece by piece."""
        return self.named.meetings(self.scene, self.p)

    @functools.cached_property
    def counts(self) -> list[int]:
        """Number of contacts of each piece."""
        return [jnp.size(x.gap) for x in self.meetings]

    def _vectors(self, of: Callable[[Meeting], Sequence[Any]]) -> Array:
        """Vectors (dimension, nc, k) of all contacts."""
        a, pairs = self.scene.algebra, zip(self.meetings, self.counts, strict=True)
        each = [jnp.stack([spread_out(a, n, y) for y in of(x)], axis=2) for x, n in pairs]
        return self.named.in_order(each, 1)

    @functools.cached_property
    def ways(self) -> Array:
        """Normals, then tangents (dimension, nc, 1 + tangents) of all contacts."""
        return self._vectors(lambda x: (x.normal, *x.tangents)[: 1 + self.tangents])

    def of(self, side: str, about: Array | None = None) -> Array:
        """Derivatives (3 or 6, nc, 1 + tangents) of gaps and slips by the motion of the bodies on one side:
        by their velocity at a point, then by their spin.

        Args:
            side: ``"first"`` or ``"second"``.
            about: (dimension, nc), the points; None: the origin of the ground.
        """
        named, (point, sign) = self.named, ("here", 1.0) if side == "first" else ("there", -1.0)
        arm = self._vectors(lambda x: [getattr(x, point)])
        arm = arm if about is None else arm - about[:, :, None]
        along = sign * jnp.concatenate([self.ways, _moment(arm, self.ways)])
        held = [not x for x in named.at_points]
        if not any(held):
            return along
        both = list(zip(held, self.counts, strict=True))
        found, size = iter(named.some(held).gap_screws(self.scene, self.p, side)), along.shape[0]
        own = named.in_order([next(found) if keep else jnp.zeros((size, n)) for keep, n in both], 1)
        if about is not None:
            push, spin = jnp.split(own, [about.shape[0]])
            own = jnp.concatenate([push, spin - _moment(about, push)])
        normal = jnp.where(named.in_order([jnp.full(n, keep) for keep, n in both]), own, along[:, :, 0])
        return jnp.concatenate([normal[:, :, None], along[:, :, 1:]], axis=2)


def _moment(arm: Array, push: Array) -> Array:
    """Moments (1 or 3, ...) of forces (2 or 3, ...) at ``arm``."""
    if arm.shape[0] == 3:
        return space.cross(arm, push)
    return (arm[0] * push[1] - arm[1] * push[0])[None]


def _moved(tree: SpatialTree | Bodies, lines: Lines, side: str) -> Any:
    """Mask (k, nv): which velocities move the body on a side of each contact; None: all are the ground."""
    named, bodies = lines.named, [x.bodies(side) for x in lines.meetings]
    if all(name == GROUND for own in bodies for name in own):
        return None
    if not named.few:
        return tree.moves_of(named.sorted([name for own in bodies for name in own]))
    found = []
    for piece, own in zip(named.pieces, bodies, strict=True):
        moves: Any = tree.moves_of(own)
        choice = named.choice(piece, lines.p)
        if choice is not None:
            at = choice.slots.which[:, None] * piece.rows + np.arange(piece.rows)  # type: ignore[union-attr]
            moves = jnp.asarray(moves)[at.reshape(-1)]
        found.append(jnp.asarray(moves))
    return found[0] if len(found) == 1 else jnp.concatenate(found)
