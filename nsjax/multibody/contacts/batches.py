"""Pairs of two kinds of shapes, evaluated at once: contacts by name that are alike, and pairs of free
bodies that are found anew in every step.

The bodies are rigid, so that rates follow from where shapes meet: that of a gap is the velocity along the
normal of one point against the other, as of all distances between closest points.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.multibody import numbers
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.candidates import SOLIDS, Candidates
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.absolute import Bodies
from nsjax.multibody.coordinates.frames import ALGEBRA, Frame, Scene, ground
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Array, record


@record()
class Places:
    """Pairs of a batch: bodies (n,) after the ground, which is 0; numbers of their shapes; what is held."""

    first: Array
    second: Array
    shapes: Any
    near: Any


@record()
class BatchMeetings:
    """Where contacts of a batch meet: gaps (n, k), points and normals (n, k, d), tangents (n, k, nt, d)."""

    gap: Array
    here: Array
    there: Array
    normal: Array
    tangents: Array


@dataclasses.dataclass(frozen=True)
class Batch:
    """Pairs alike.

    Args:
        part: one of them, between bodies ``"first"`` and ``"second"``.
        rows: contacts of each.
        names: of the parts; none of pairs that are found.
        bodies: names of both bodies of each.
        source: the pairs that are found; None of those by name.
        smooth: whether it is known that all are without friction.
    """

    part: Part
    rows: int
    names: tuple[str, ...] = ()
    bodies: tuple[tuple[str, str], ...] = ()
    source: Candidates | None = None
    smooth: bool = False

    @property
    def group(self) -> str | None:
        """Group with a capacity of the contacts by name; None: all are looked at."""
        return self.part.option("group") if len(self.names) > self.places else None

    @property
    def places(self) -> int:
        """Places for contacts by name in a step, as many as there are without a capacity."""
        capacity = self.part.option("capacity")
        known = all(x in SOLIDS for x in self.part.option("shapes"))
        return min(capacity, len(self.names)) if capacity and known else len(self.names)

    @property
    def many(self) -> int:
        """Places for pairs."""
        return len(self.names) if self.source is None else self.source.capacity

    @property
    def slots(self) -> list[str]:
        """Names of the contacts of places for pairs that are found: of their group, kinds of shapes, and a
        number.
        """
        if self.source is None:
            return []
        title = f"{self.source.group}.{'_'.join(self.source.kinds)}"
        return [f"{title}.{k}" for k in range(self.many * self.rows)]

    def _scene(self, tree: Bodies, first: Any, second: Any) -> Scene:
        """Both bodies of a pair."""
        return scene_of(tree.dimension, jnp.zeros(()), tree.alone(first), tree.alone(second))

    def _meeting(self, tree: Bodies, ends: tuple[Any, Any], places: Places) -> gap_functions.Meeting:
        """Gaps and slips of one pair."""
        both = numbers.Contact(first=places.shapes[0], second=places.shapes[1])
        return gap_functions.meetings(self._scene(tree, *ends), self.part, both, places.near)

    def met(self, tree: Bodies, frames: Any, places: Places, tangents: int) -> BatchMeetings:
        """Where its pairs meet, from the arrays of all bodies."""
        d, a = tree.dimension, ALGEBRA[tree.dimension]

        def one(ends: tuple[Any, Any], places: Places) -> BatchMeetings:
            found = self._meeting(tree, ends, places)
            spread = lambda x: spread_out(a, self.rows, x).T  # noqa: E731
            across = [spread(x) for x in found.tangents[:tangents]]
            return BatchMeetings(
                gap=jnp.broadcast_to(found.gap, (self.rows,)), here=spread(found.here),
                there=spread(found.there), normal=spread(found.normal),
                tangents=jnp.stack(across, axis=1) if across else jnp.zeros((self.rows, 0, d)),
            )  # fmt: skip

        made: BatchMeetings = jax.vmap(one)(self._ends(frames, places), places)
        return made

    def rates(self, tree: Bodies, frames: Any, places: Places, centres: Array) -> Array:
        """Directions of the gap rates (n, 2, k, block) as derivatives: of features that are held they are
        those of closest points only where the gap is zero.
        """

        def one(ends: tuple[Any, Any], places: Places, centres: tuple[Array, Array]) -> Array:
            def gap(*ends: Any) -> Array:
                return jnp.broadcast_to(self._meeting(tree, ends, places).gap, (self.rows,))

            along = jax.linearize(gap, *ends)[1]
            still = jax.tree.map(jnp.zeros_like, ends)
            moves = [_moves(tree.dimension, x, c) for x, c in zip(ends, centres, strict=True)]
            first = jax.vmap(lambda x: along(x, still[1]))(moves[0])
            return jnp.stack([first.T, jax.vmap(lambda x: along(still[0], x))(moves[1]).T])

        own = centres[places.first], centres[places.second]
        made: Array = jax.vmap(one)(self._ends(frames, places), places, own)
        return made

    def held(self, tree: Bodies, frames: Any, places: Places) -> Any:
        """What a step holds fixed of its pairs; None: nothing."""
        if not self.searched:
            return None

        def one(ends: tuple[Any, Any], places: Places) -> Any:
            both = numbers.Contact(first=places.shapes[0], second=places.shapes[1])
            return gap_functions.held(self._scene(tree, *ends), self.part, both)

        return jax.vmap(one)(self._ends(frames, places), places)

    @property
    def searched(self) -> bool:
        """Whether features are searched for, and held during a step."""
        return gap_functions.kind_of(self.part).hold is not None

    def _ends(self, frames: Any, places: Places) -> tuple[Any, Any]:
        """Entries of both bodies of all pairs."""
        return _taken(frames, places.first), _taken(frames, places.second)


def _moves(dimension: int, frame: Any, centre: Array) -> Any:
    """Rates (block, ...) of the entries of a body by its velocities: of its mass centre, and its spin, in
    space about its own axes.
    """
    origin, turn, angle, velocity, spin = frame
    arm, d = origin - centre, dimension
    swung: Any
    still = tuple(
        jax.tree.map(lambda x: jnp.zeros((d, *x.shape)), x) for x in (turn, angle, velocity, spin)
    )
    pushed = jnp.eye(d), *still
    if d == 2:
        (s, c), zero = turn, jnp.zeros((1, 2))
        swung = (
            jnp.stack([-arm[1], arm[0]]).reshape(1, 2),
            (c[None], -s[None]),
            jnp.ones(1),
            zero,
            jnp.zeros(1),
        )
    else:
        swing = jax.vmap(lambda w: (space.cross(w, arm), space.skew(w) @ turn))(turn.T)
        swung = (*swing, None, jnp.zeros((3, 3)), jnp.zeros((3, 3)))
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y]), pushed, swung)


def _taken(frames: Any, places: Array) -> Any:
    """The frames of these bodies."""
    return jax.tree.map(lambda x: x[places], frames)


def spread_out(a: Any, rows: int, x: Any) -> Array:
    """A vector of the algebra, one or several, as an array (d, rows)."""
    if a.DIMENSION == 2:
        return jnp.stack([jnp.broadcast_to(a.value(c), (rows,)) for c in x])
    made: Array = a.many(x, rows)
    return made


def scene_of(dimension: int, time: Any, first: Frame | None, second: Frame | None) -> Scene:
    """Both bodies of a pair, ``"first"`` and ``"second"``; None: the ground."""
    both = {"first": first, "second": second}
    still = ground(dimension)
    return Scene(dimension, time, {name: still if x is None else x for name, x in both.items()})


def alike(parts: Sequence[Part], dimension: int, grounded: bool = True) -> list[Batch]:
    """Contacts by name, those alike together, in the order of the first ones: of one kind, with the same
    numbers given.

    Args:
        grounded: whether those with the ground stand apart, so that its frame is no number.
    """
    groups: dict[Any, list[Part]] = {}
    for part in parts:
        leaves, structure = jax.tree.flatten((part.numbers.first, part.numbers.second))
        ends = tuple(name == GROUND for name in part.bodies) if grounded else ()
        rows = gap_functions.count(part, part.numbers, dimension)
        smooth = part.option("group") is not None and part.numbers.friction is None
        key = part.options, structure, tuple(np.shape(x) for x in leaves), ends, smooth, rows
        groups.setdefault(key, []).append(part)
    return [
        Batch(
            Part("contact", "pair", ("first", "second"), None, own[0].options), key[-1],
            tuple(x.name for x in own), tuple((x.bodies[0], x.bodies[1]) for x in own), smooth=key[-2],
        )
        for key, own in groups.items()
    ]  # fmt: skip
