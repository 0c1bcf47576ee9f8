"""Contacts of free bodies in absolute coordinates with groups of candidate pairs, and their rows by bodies.

Named contacts come first, in their order; after them come the slots of candidate pairs, which are found
anew in every step (`nsjax.multibody.contacts.candidates`).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactLaw
from nsjax.core.slots import ContactSet
from nsjax.linalg import BlockDiagonal
from nsjax.multibody.contacts import gap_functions, hulls
from nsjax.multibody.contacts.batches import Batch, BatchMeetings, Places, batched
from nsjax.multibody.contacts.candidates import (
    CandidatePairs,
    Candidates,
    pair_counts,
    pair_template,
    size_classes,
)
from nsjax.multibody.contacts.gap_functions import ENDLESS, radius_of
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.absolute import Bodies
from nsjax.multibody.coordinates.frames import constants, held_features, holding
from nsjax.multibody.joints import FREE
from nsjax.multibody.numbers import LAW, side_by_side
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology
from nsjax.types import Array, PyTree, is_traced, record


@record()
class ContactNumbers:
    """Numbers of named contacts: shapes of each batch, and laws (n,) of all contacts in their order."""

    shapes: tuple[Any, ...]
    law: dict[str, Array]


@dataclasses.dataclass(frozen=True)
class Contacts(ContactSet):
    """All contacts of a mechanism of free bodies: contact functions of its system, and its
    `System.contact_set`.

    Args:
        tree: the bodies.
        batches: batches of named contacts, then batches of candidate pairs.
        order: index of each named contact in the concatenated batches; None if the order is the same.
        tangents: number of tangents of a contact.
    """

    tree: Bodies
    batches: tuple[Batch, ...]
    order: tuple[int, ...] | None
    tangents: int
    changing = True

    @functools.cached_property
    def named(self) -> tuple[Batch, ...]:
        """Batches of named contacts."""
        return tuple(x for x in self.batches if x.source is None)

    @functools.cached_property
    def found(self) -> tuple[Batch, ...]:
        """Batches of candidate pairs."""
        return self.batches[len(self.named) :]

    def promises(self) -> dict[str, Any]:
        """Arguments of the system: structure of its mass matrix, islands, and contacts."""
        block = FREE.sizes[self.tree.dimension][1]
        structure = BlockDiagonal(block)
        return {"structure": structure, "islands": 0, "allowed": self.allowed, "contact_set": self}

    def prepare(self, p: PyTree) -> ContactNumbers:
        """Numbers of the named contacts, stacked in arrays."""
        shapes = tuple(
            side_by_side(hulls.padded([(p[name].first, p[name].second) for name in batch.names]))
            for batch in self.named
        )
        law = {}
        for key in LAW:
            columns = []
            for batch in self.named:
                values = [getattr(p[name], key) for name in batch.names]
                given = [jnp.zeros(batch.rows) if x is None else jnp.asarray(x, float) for x in values]
                columns += [jnp.broadcast_to(x, (batch.rows,)) for x in given]
            law[key] = self._in_order(jnp.concatenate(columns)) if columns else jnp.zeros(0)
        return ContactNumbers(shapes=shapes, law=law)

    def _in_order(self, x: Array) -> Array:
        """Values of all contacts, given batch by batch, in the order of the contacts."""
        if self.order is None:
            return x
        n = len(self.order)
        return jnp.concatenate([x[:n][np.array(self.order)], x[n:]])

    def _stacked(self, p: PyTree) -> ContactNumbers:
        made: ContactNumbers | None = constants(p).contacts
        return self.prepare(p) if made is None else made

    def _named_shapes(self, p: PyTree) -> tuple[Any, ...]:
        """Shapes of the batches of named contacts; None for those of candidate pairs."""
        return (*self._stacked(p).shapes, *[None] * len(self.found))

    def _pairs(self, batch: Batch, near: tuple[Any, Any], named: Any, p: PyTree) -> Places:
        """Pairs of a batch: those in the slots of ``near``, or those with names and their shapes."""
        slots, features = near
        if batch.source is None:
            first, second = np.array([[self.tree.places[x] or 0 for x in pair] for pair in batch.bodies]).T
        else:
            first, second, named = batch.source.pairs(slots, p)
        return Places(first=first, second=second, shapes=named, near=features)

    def _places(self, p: PyTree) -> list[Places]:
        """Pairs of all batches."""
        found = held_features(p).candidates or ((None, None),) * len(self.batches)
        return [self._pairs(*x, p) for x in zip(self.batches, found, self._named_shapes(p), strict=True)]

    def refresh(self, t: Array, q: Array, p: PyTree) -> PyTree:
        """Params with the candidate pairs at (t, q) and the held features of all pairs."""
        frames, found = self.tree.all_frames(q, None, p), []
        for batch, own in zip(self.batches, self._named_shapes(p), strict=True):
            slots = None if batch.source is None else batch.source.near(self.tree, frames, p)
            places = self._pairs(batch, (slots, None), own, p)
            found.append((slots, batch.hold(self.tree, frames, places)))
        return holding(p, candidates=tuple(found))

    def _meetings(self, q: Array, p: PyTree) -> tuple[Any, list[tuple[Places, BatchMeetings]]]:
        frames, places = self.tree.all_frames(q, None, p), self._places(p)
        both = zip(self.batches, places, strict=True)
        return frames, [(x, batch.meetings(self.tree, frames, x, self.tangents)) for batch, x in both]

    def _used(self, p: PyTree, values: list[Array], empty: Any) -> Array:
        """Values (n, k, ...) of all batches as (nc, ...); empty slots hold ``empty``, None: the reach."""
        flat = []
        for k, (batch, x) in enumerate(zip(self.batches, values, strict=True)):
            if batch.source is not None:
                on = held_features(p).candidates[k][0].used.reshape(-1, *[1] * (x.ndim - 1))
                x = jnp.where(on, x, p[batch.source.group].reach if empty is None else empty)
            flat.append(x.reshape(-1, *x.shape[2:]))
        return self._in_order(jnp.concatenate(flat))

    def gap(self, t: Array, q: Array, p: PyTree) -> Array:
        """Gaps (nc,) [m]; in empty slots the reach of their group."""
        return self._used(p, [meeting.gap for _, meeting in self._meetings(q, p)[1]], None)

    def slip(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Slip velocities along the tangents (nc, nt) [m/s]."""
        block = v.shape[0] // len(self.tree.names)
        moving = jnp.concatenate([v.reshape(-1, block), jnp.zeros((1, block))])
        rows = self.directions(t, q, p)[:, :, 1:]
        return jnp.sum(rows * moving[self.bodies(p)][:, :, None, :], axis=(1, 3))

    def allowed(self, t: Array, q: Array, p: PyTree) -> Array:
        """Mask (nc,) of the slots that hold a pair; true for named contacts."""
        return self._used(p, [jnp.ones((x.many, x.rows), bool) for x in self.batches], False)

    def law(self, p: PyTree) -> ContactLaw:
        """The law of all contacts."""
        columns = {key: [x] for key, x in self._stacked(p).law.items()}
        for batch in self.found:
            given = p[batch.source.group]  # type: ignore[union-attr]
            for key in LAW:
                x = getattr(given, key)
                value = jnp.asarray(0.0 if x is None else x, float)
                columns[key].append(jnp.broadcast_to(value, (batch.many * batch.rows,)))
        law: dict[str, Any] = {key: jnp.concatenate(x) for key, x in columns.items()}
        return ContactLaw(**law)

    def bodies(self, p: PyTree) -> Array:
        """Numbers (nc, 2) int of both bodies, see `nsjax.core.slots.ContactSet`."""
        n, found = len(self.tree.names), []
        for batch, x in zip(self.batches, self._places(p), strict=True):
            both = jnp.stack([jnp.asarray(x.first), jnp.asarray(x.second)], axis=1)
            own = jnp.where(both == 0, n, both - 1)  # `ContactSet` counts the ground last
            found.append(jnp.broadcast_to(own[:, None], (batch.many, batch.rows, 2)))
        return self._used(p, found, n)

    def directions(self, t: Array, q: Array, p: PyTree) -> Array:
        """Rows (nc, 2, 1 + nt, block) of gap rate and slips, see `nsjax.core.slots.ContactSet`."""
        frames, found = self._meetings(q, p)
        d, n = self.tree.dimension, len(self.tree.names)
        poses = q.reshape(n, -1)[:, :d]
        centres, turns = jnp.concatenate([jnp.zeros((1, d)), poses]), frames[1]
        values = []
        for batch, (places, meeting) in zip(self.batches, found, strict=True):
            ways = jnp.concatenate([meeting.normal[:, :, None], meeting.tangents], axis=2)
            sides = []
            for sign, k, point in ((1.0, places.first, meeting.here), (-1.0, places.second, meeting.there)):
                arm = (point - centres[k][:, None])[:, :, None]
                turn = None if d == 2 else turns[k][:, None, None]
                sides.append(sign * jnp.concatenate([ways, _moments(arm, ways, turn)], axis=3))
            both = jnp.stack(sides, axis=2)
            if batch.searched:
                rates = jnp.swapaxes(batch.rates(self.tree, frames, places, centres), 1, 2)
                both = jnp.concatenate([rates[:, :, :, None], both[:, :, :, 1:]], axis=3)
            values.append(both)
        return self._used(p, values, 0.0)

    def identity(self, p: PyTree) -> Array:
        """Identities (nc,) int of the contacts of all pairs, ascending; empty slots have their own."""
        first = sum(x.many * x.rows for x in self.named)
        # named contacts keep their numbers; those of found pairs follow
        numbered = [jnp.arange(first)]
        for k, batch in enumerate(self.found, len(self.named)):
            slots: CandidatePairs = held_features(p).candidates[k][0]
            # numbers of empty slots follow those of the pairs, so that the list ascends
            empty = batch.source.many + np.arange(batch.many)  # type: ignore[union-attr]
            own = jnp.where(slots.used, slots.identity, empty)
            numbered.append(first + (own[:, None] * batch.rows + np.arange(batch.rows)).reshape(-1))
            first += (batch.source.many + batch.many) * batch.rows  # type: ignore[union-attr]
        return jnp.concatenate(numbered)

    def overflow(self, p: PyTree) -> Array:
        """Whether there were more candidate pairs than slots."""
        lost = [held_features(p).candidates[k][0].lost for k in range(len(self.named), len(self.batches))]
        return jnp.any(jnp.stack(lost)) if lost else jnp.asarray(False)

    def near_counts(self, q: Array, p: PyTree) -> dict[str, Array]:
        """Capacity () that would hold all pairs near at a position, by the name of the group."""
        frames = self.tree.all_frames(q, None, p)
        found: dict[str, Array] = {}
        for batch in self.found:
            source: Any = batch.source
            near = source.near_count(self.tree, frames, p)
            found[source.group] = jnp.maximum(near, found.get(source.group, 0))
        return found


def _moments(arm: Array, ways: Array, turn: Array | None) -> Array:
    """Moments (..., 1 or 3) of unit forces about the mass centre; in space along body axes."""
    if turn is None:
        return (arm[..., 0] * ways[..., 1] - arm[..., 1] * ways[..., 0])[..., None]
    return jnp.sum(turn * space.cross(arm, ways, axis=-1)[..., :, None], axis=-2)


def batches_of(
    parts: tuple[Part, ...], topology: Topology
) -> tuple[tuple[Batch, ...], tuple[int, ...] | None]:
    """Batches of the contacts of a mechanism, and the order of the named contacts; no batches without
    groups of candidate pairs in absolute coordinates.
    """
    groups = [x for x in parts if x.kind == "contact_group"]
    if topology.coordinates != "absolute" or not groups:
        return (), None
    tree = Bodies(topology)
    places = {name: k for k, name in enumerate((GROUND, *tree.names))}
    named, order = _named(tuple(x for x in parts if x.kind == "contact"), topology.dimension)
    found = [x for part in groups for x in _found(part, places, topology.dimension)]
    return (*named, *found), order


def _named(parts: tuple[Part, ...], dimension: int) -> tuple[list[Batch], tuple[int, ...] | None]:
    """Batches of named contacts, and the index of each contact in them; None if the order is the same."""
    found, own_numbers, first = batched(parts, dimension, grounded=False), {}, 0
    for batch in found:
        for name in batch.names:
            own_numbers[name] = range(first, first + batch.rows)
            first += batch.rows
    order = [k for part in parts for k in own_numbers[part.name]]
    return found, None if order == list(range(first)) else tuple(order)


def _found(part: Part, places: dict[str, int], dimension: int) -> list[Batch]:
    """Batches of candidate pairs of a group, one for each two kinds of shapes."""
    members, split, banned = part.option("members"), part.option("split"), part.option("apart") or ()
    batches = []
    for kinds, count in pair_counts(members, split, banned).items():
        own = [[k for k, (kind, _) in enumerate(members) if kind == x] for x in kinds]
        bodies = [tuple(places[members[k][1]] for k in rows) for rows in own]
        sides = None if split is None else tuple(tuple(k >= split for k in rows) for rows in own)
        classes = [
            _classes(part, kind, len(rows), dimension) for kind, rows in zip(kinds, own, strict=True)
        ]
        source = Candidates(
            group=part.name, kinds=kinds, places=(bodies[0], bodies[1]), classes=(classes[0], classes[1]),
            capacity=min(part.option("capacity"), count), dimension=dimension,
            sides=sides,
            banned=tuple((places[a], places[b]) for a, b in banned if a in places and b in places),
        )  # fmt: skip
        template = pair_template(kinds)
        batches.append(Batch(template, gap_functions.count(template, None, dimension), source=source))
    return batches


def _classes(part: Part, kind: str, count: int, dimension: int) -> tuple[tuple[int, ...], ...]:
    """Classes of similar size of the shapes of a kind; one class where their sizes are not known yet."""
    shapes = part.numbers.shapes[kind]
    if kind in ENDLESS or is_traced(shapes):
        return (tuple(range(count)),)
    return size_classes(np.broadcast_to(np.asarray(radius_of(kind, shapes, dimension)), (count,)))
