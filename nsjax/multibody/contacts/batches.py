"""Batches of pairs of two kinds of shapes, evaluated together.

The bodies are rigid. The rate of a gap therefore is the relative velocity of both contact points along the
normal, as for every distance between closest points.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody import numbers
from nsjax.multibody.contacts import gap_functions, hulls
from nsjax.multibody.contacts.gap_functions import BOUNDED
from nsjax.multibody.contacts.heightfields import with_blocks
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import ALGEBRA, Frame, Scene, ground
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Array, record

if TYPE_CHECKING:
    from nsjax.multibody.contacts.candidates import Candidates
    from nsjax.multibody.coordinates.absolute import Bodies

# Numbers of the shapes of a batch, stacked pair by pair, and searches among its pairs.


def stacked(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The numbers of both shapes of all pairs, in arrays: pairs along the last axis, of large arrays along
    the first one.
    """

    def beside(*x: Any) -> Array:
        axis = _axis(np.size(x[0]))
        made = jnp.stack([jnp.asarray(y, float) for y in x], axis=axis)
        # the compiler would move a large copy into every branch of a step that reads it
        return lax.optimization_barrier(made) if axis == 0 else made

    blocked = [(one, with_blocks(other)) for one, other in pairs]
    return jax.tree.map(beside, *hulls.padded(blocked))


def axes(stack: Any, count: int) -> Any:
    """The axis of the ``count`` pairs in each array of a stack."""
    return jax.tree.map(lambda x: _axis(x.size // count), stack)


def some(stack: Any, count: int, which: Array) -> Any:
    """The stack of the pairs ``which`` out of ``count``."""
    return jax.tree.map(lambda x, axis: x[which] if axis == 0 else x[..., which], stack, axes(stack, count))


def searched(
    search: Callable[[Any, Any], Any], ends: Any, stack: Any, used: Array
) -> Any:  # fmt: skip
    """Features ``search(ends, shapes)`` of the pairs in use, along a last axis; zeros in the other places.
    Each pair has a branch of its own, so that a step does not search pairs that are apart.

    Args:
        search: features of one pair.
        ends: frames of both bodies, pairs along a last axis.
        stack: numbers of the shapes, see `stacked`.
        used: (n,) bool, the pairs in use.
    """
    count = used.shape[0]
    given = lax.stop_gradient((ends, stack))
    axes_of = jax.tree.map(lambda x: -1, ends), axes(stack, count)

    def one(k: Array) -> Any:
        return search(
            *jax.tree.map(lambda x, a: lax.dynamic_index_in_dim(x, k, a, keepdims=False), given, axes_of)
        )

    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(one, jnp.asarray(0)))
    made = lax.map(lambda k: lax.cond(used[k], one, lambda _: none, k), jnp.arange(count))
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), made)


def _axis(size: int) -> int:
    # numbers of an array from which it is stacked pair after pair, not along a last axis. Terrain is read
    # at a few places by an index: a read along a last axis first copies the heights of all pairs. In a
    # profile of a quadruped above 201 by 201 heights its searches took 6.5 ms of a step with these copies,
    # 3.7 ms without
    return 0 if size > 512 else -1


# Batches of pairs of two kinds of shapes, evaluated together: named contacts of equal options, and
# candidate pairs of free bodies that every step finds anew.


LONG = ("hull", "heightfield")
"""Kinds of shapes whose features are many: a search takes up to 4 ms for two hulls of 200 vertices, 0.1 ms
for a capsule on terrain, and 0.01 ms for a pair of boxes or cylinders.
"""


@record()
class Places:
    """Pairs of a batch: numbers (n,) of both bodies (ground: 0), numbers of their shapes, held features."""

    first: Array
    second: Array
    shapes: Any
    near: Any


@record()
class BatchMeetings:
    """Contacts of a batch: gaps (n, k), points and normals (n, k, d), tangents (n, k, nt, d)."""

    gap: Array
    here: Array
    there: Array
    normal: Array
    tangents: Array


@dataclasses.dataclass(frozen=True)
class Batch:
    """Pairs of the same two kinds of shapes with the same options.

    Args:
        part: a contact with these options, between bodies ``"first"`` and ``"second"``.
        rows: contacts of each pair.
        names: names of the contacts; empty for candidate pairs.
        bodies: names of both bodies of each named contact.
        source: the candidate pairs; None for named contacts.
        frictionless: whether all contacts are known to have no friction.
    """

    part: Part
    rows: int
    names: tuple[str, ...] = ()
    bodies: tuple[tuple[str, str], ...] = ()
    source: Candidates | None = None
    frictionless: bool = False

    @property
    def group(self) -> str | None:
        """Group of which a step evaluates only near pairs: where its capacity is below the number of named
        contacts, or the search of features is long and no capacity is asked; None: all are evaluated.
        """
        long = self.long_search and self._bounded and not self.part.option("asked")
        chosen = len(self.names) > self.places or long
        return self.part.option("group") if chosen else None

    @property
    def places(self) -> int:
        """Slots for named contacts in a step: the capacity of their group, else one for each contact, as on
        terrain, whose heights would be copied into every slot.
        """
        capacity = None if "heightfield" in self.part.option("shapes") else self.part.option("capacity")
        return min(capacity, len(self.names)) if capacity and self._bounded else len(self.names)

    @property
    def long_search(self) -> bool:
        """Whether the search of features takes so long that each pair has a branch for it."""
        return self.searched and any(x in LONG for x in self.part.option("shapes"))

    @property
    def _bounded(self) -> bool:
        """Whether both shapes have a bounding volume."""
        return all(x in BOUNDED for x in self.part.option("shapes"))

    @property
    def many(self) -> int:
        """Slots for pairs: all named contacts, or the capacity for candidate pairs."""
        return len(self.names) if self.source is None else self.source.capacity

    @property
    def slots(self) -> list[str]:
        """Names of the contacts in the slots of candidate pairs: group, kinds of shapes, and a number."""
        if self.source is None:
            return []
        title = f"{self.source.group}.{'_'.join(self.source.kinds)}"
        return [f"{title}.{k}" for k in range(self.many * self.rows)]

    def _each(self, tree: Bodies, frames: Any, places: Places, of: Callable[..., Any]) -> Any:
        """``of(scene, part, numbers, near)`` of all pairs, from the frames of all bodies."""

        def one(ends: tuple[Any, Any], places: Places) -> Any:
            scene = scene_of(tree.dimension, jnp.zeros(()), *map(tree.alone, ends))
            both = numbers.Contact(first=places.shapes[0], second=places.shapes[1])
            return of(scene, self.part, both, places.near)

        ends = _taken(frames, places.first), _taken(frames, places.second)
        return jax.vmap(one)(ends, places)

    def meetings(self, tree: Bodies, frames: Any, places: Places, tangents: int) -> BatchMeetings:
        """Gaps, points and normals of all pairs, from the frames of all bodies."""
        d, a = tree.dimension, ALGEBRA[tree.dimension]

        def of(*pair: Any) -> BatchMeetings:
            found = gap_functions.meetings(*pair)
            spread = lambda x: spread_out(a, self.rows, x).T  # noqa: E731
            across = [spread(x) for x in found.tangents[:tangents]]
            return BatchMeetings(
                gap=jnp.broadcast_to(found.gap, (self.rows,)), here=spread(found.here),
                there=spread(found.there), normal=spread(found.normal),
                tangents=jnp.stack(across, axis=1) if across else jnp.zeros((self.rows, 0, d)),
            )  # fmt: skip

        return self._each(tree, frames, places, of)

    def rates(self, tree: Bodies, frames: Any, places: Places, centres: Array) -> Array:
        """Derivatives (n, 2, k, block) of the gap rates by the velocities of both bodies. For held features
        they equal those of the contact points only where the gap is zero.
        """
        d = tree.dimension

        def of(scene: Scene, part: Part, both: Any, near: Any) -> Array:
            given = scene, part, both, near
            return jnp.stack([gap_functions.gap_screws(*given, x, self.rows) for x in ("first", "second")])

        screws = self._each(tree, frames, places, of)
        push, spin = screws[:, :, :d], screws[:, :, d:]
        both = jnp.stack([jnp.asarray(places.first), jnp.asarray(places.second)], axis=1)
        x = centres[both][..., None]
        # about the mass centres; in space along the axes of the bodies
        if d == 2:
            spin = spin - (x[:, :, :1] * push[:, :, 1:] - x[:, :, 1:] * push[:, :, :1])
        else:
            spin = spin - space.cross(x, push, axis=2)
            spin = jnp.sum(frames[1][both][..., None] * spin[:, :, :, None], axis=2)
        return jnp.swapaxes(jnp.concatenate([push, spin], axis=2), 2, 3)

    def hold(self, tree: Bodies, frames: Any, places: Places) -> Any:
        """Features of all pairs that a step holds fixed; None: none."""
        if not self.searched:
            return None
        return self._each(tree, frames, places, lambda *pair: gap_functions.hold(*pair[:3]))

    @property
    def searched(self) -> bool:
        """Whether features are searched for at the start of a step and held during it."""
        return gap_functions.kind_of(self.part).hold is not None


def _taken(frames: Any, places: Array) -> Any:
    """The frames of the bodies with these numbers."""
    return jax.tree.map(lambda x: x[places], frames)


def spread_out(a: Any, rows: int, x: Any) -> Array:
    """One or several vectors of the algebra as an array (d, rows)."""
    if a is plane:
        return jnp.stack([jnp.broadcast_to(a.value(c), (rows,)) for c in x])
    return a.many(x, rows)


def scene_of(dimension: int, time: Any, first: Frame | None, second: Frame | None) -> Scene:
    """Scene of both bodies of a pair, named ``"first"`` and ``"second"``; None: the ground."""
    both = {"first": first, "second": second}
    still = ground(dimension)
    return Scene(dimension, time, {name: still if x is None else x for name, x in both.items()})


def turning_keys(part: Part) -> tuple[str, ...]:
    """Names of the coefficients of friction against turning that a contact has."""
    return tuple(key for key in numbers.TURNING if getattr(part.numbers, key) is not None)


def batched(parts: Sequence[Part], dimension: int, grounded: bool = True) -> list[Batch]:
    """Batches of named contacts with the same kind, options and shapes of numbers, in the order of the
    first contact of each batch.

    Args:
        parts: the contacts.
        dimension: 2 or 3.
        grounded: whether contacts with the ground make batches of their own, so that the frame of the
            ground stays a constant.
    """
    groups: dict[Any, list[Part]] = {}
    for part in parts:
        ends: Any = (part.numbers.first, part.numbers.second)
        if part.option("group") is not None:  # pairs that are apart are not evaluated, however large
            ends = tuple(hulls.form(x) for x in ends)
        leaves, structure = jax.tree.flatten(ends)
        still = tuple(name == GROUND for name in part.bodies) if grounded else ()
        rows = gap_functions.count(part, part.numbers, dimension)
        frictionless = part.option("group") is not None and part.numbers.friction is None
        turning = turning_keys(part)
        key = (
            part.options, structure, tuple(np.shape(x) for x in leaves), still, turning, frictionless, rows,
        )  # fmt: skip
        groups.setdefault(key, []).append(part)
    return [
        Batch(
            Part("contact", "pair", ("first", "second"), None, own[0].options), key[-1],
            tuple(x.name for x in own), tuple((x.bodies[0], x.bodies[1]) for x in own),
            frictionless=key[-2],
        )
        for key, own in groups.items()
    ]  # fmt: skip
