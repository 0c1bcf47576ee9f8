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
from nsjax.multibody.coordinates.frames import Frame, Scene, ground
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Array

if TYPE_CHECKING:
    from nsjax.multibody.contacts.candidates import Candidates


def stacked(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """Numbers of both shapes of all pairs: pairs along the last axis, of large arrays along the first."""

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
    """Features ``search(ends, shapes)`` of the pairs in use (n,) bool, along a last axis; zeros in other
    places. Each pair has a branch of its own, so that a step does not search pairs that are apart.
    ``ends``: frames of both bodies; ``stack``: numbers of the shapes, see `stacked`.
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
    # numbers of an array from which it is stacked pair after pair, not along a last axis: terrain is read
    # at a few places by an index, which along a last axis first copies the heights of all pairs
    return 0 if size > 512 else -1


# Batches of pairs of two kinds of shapes, evaluated together: named contacts of equal options, and
# candidate pairs of free bodies that every step finds anew.


LONG = ("hull", "heightfield")
"""Kinds of shapes whose features are many, so that a search takes ten times that of boxes or more."""


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
        """Slots for named contacts in a step: the capacity of their group, else one for each contact."""
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
    def title(self) -> str:
        """First name of the contacts; of candidate pairs, their group and the kinds of their shapes."""
        if self.source is None:
            return self.names[0]
        return f"{self.source.group}.{'_'.join(self.source.kinds)}"

    @property
    def slots(self) -> list[str]:
        """Names of the contacts in the slots of candidate pairs."""
        return [] if self.source is None else [f"{self.title}.{k}" for k in range(self.many * self.rows)]

    @property
    def searched(self) -> bool:
        """Whether features are searched for at the start of a step and held during it."""
        return gap_functions.kind_of(self.part).hold is not None


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


def batched(parts: Sequence[Part], dimension: int) -> list[Batch]:
    """Batches of named contacts with the same kind, options and shapes of numbers, in the order of the
    first contact of each batch. Contacts with the ground make batches of their own, so that the frame of
    the ground stays a constant.
    """
    groups: dict[Any, list[Part]] = {}
    for part in parts:
        ends: Any = (part.numbers.first, part.numbers.second)
        if part.option("group") is not None:  # pairs that are apart are not evaluated, however large
            ends = tuple(hulls.form(x) for x in ends)
        leaves, structure = jax.tree.flatten(ends)
        still = tuple(name == GROUND for name in part.bodies)
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
