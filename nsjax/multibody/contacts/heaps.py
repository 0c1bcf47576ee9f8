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
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import Batch
from nsjax.multibody.contacts.candidates import (
    CandidatePairs,
    Candidates,
    pair_counts,
    pair_template,
    size_classes,
)
from nsjax.multibody.contacts.gap_functions import ENDLESS, radius_of
from nsjax.multibody.contacts.named_contacts import Lines, NamedContacts
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.absolute import Bodies
from nsjax.multibody.coordinates.frames import Scene, held_features, holding
from nsjax.multibody.joints import FREE
from nsjax.multibody.numbers import LAW
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology
from nsjax.types import Array, PyTree, is_traced


@dataclasses.dataclass(frozen=True)
class Contacts(ContactSet):
    """All contacts of a mechanism of free bodies: contact functions of its system, and its
    `System.contact_set`.

    Args:
        tree: the bodies.
        named: contacts with names.
        found: batches of candidate pairs.
        tangents: number of tangents of a contact.
    """

    tree: Bodies
    named: NamedContacts
    found: tuple[Batch, ...]
    tangents: int
    changing = True

    @functools.cached_property
    def every(self) -> NamedContacts:
        """All contacts: those with names, then those of candidate pairs."""
        named, rows = self.named, tuple(x.many * x.rows for x in self.found)
        order = None if named.order is None else (*named.order, *(sum(named.rows) + np.arange(sum(rows))))
        return dataclasses.replace(
            named, pieces=(*named.pieces, *self.found), rows=(*named.rows, *rows), order=order,
            turning=(*named.turning, *((),) * len(self.found)),
        )  # fmt: skip

    def promises(self) -> dict[str, Any]:
        """Arguments of the system: structure of its mass matrix, islands, and contacts."""
        block = FREE.sizes[self.tree.dimension][1]
        structure = BlockDiagonal(block)
        return {"structure": structure, "islands": 0, "allowed": self.allowed, "contact_set": self}

    def _scene(self, q: Array, p: PyTree) -> Scene:
        return Scene(self.tree.dimension, jnp.zeros(()), self.tree.frames(q, None, p))

    def refresh(self, t: Array, q: Array, p: PyTree) -> PyTree:
        """Params with the candidate pairs at (t, q) and the held features of all pairs."""
        scene, frames = self._scene(q, p), self.tree.all_frames(q, None, p)
        p = holding(p, chosen={x.title: x.source.near(self.tree, frames, p) for x in self.found})  # type: ignore[union-attr]
        return holding(p, features=self.every.hold(scene, p))

    def gap(self, t: Array, q: Array, p: PyTree) -> Array:
        """Gaps (nc,) [m]; in empty slots the reach of their group."""
        gap = gap_functions.flat(self.every.gaps(self._scene(q, p), p))
        reach = [jnp.full(x.many * x.rows, p[x.source.group].reach) for x in self.found]  # type: ignore[union-attr]
        return jnp.where(self._used(p), gap, jnp.concatenate([jnp.zeros(sum(self.named.rows)), *reach]))

    def slip(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Slip velocities along the tangents (nc, nt) [m/s]."""
        block = v.shape[0] // len(self.tree.names)
        moving = jnp.concatenate([v.reshape(-1, block), jnp.zeros((1, block))])
        rows = self.directions(t, q, p)[:, :, 1:]
        return jnp.sum(rows * moving[self.bodies(p)][:, :, None, :], axis=(1, 3))

    def allowed(self, t: Array, q: Array, p: PyTree) -> Array:
        """Mask (nc,) of the slots that hold a pair; true for named contacts."""
        return self._used(p)

    def _used(self, p: PyTree) -> Array:
        slots = held_features(p).chosen
        each = [jnp.repeat(slots[x.title].used, x.rows) for x in self.found]
        return jnp.concatenate([np.ones(sum(self.named.rows), bool), *each])

    def law(self, p: PyTree) -> ContactLaw:
        """The law of all contacts."""
        law: dict[str, Any] = {}
        for key, own in zip(LAW, self.named.columns(p, LAW), strict=True):
            given = [(getattr(p[x.source.group], key), x.many * x.rows) for x in self.found]  # type: ignore[union-attr]
            more = (jnp.full(n, 0.0 if x is None else x, float) for x, n in given)
            law[key] = jnp.concatenate([own, *more])
        return ContactLaw(**law)

    def _numbers(self, p: PyTree) -> Array:
        """Numbers (nc, 2) of both bodies of every contact, as in `Bodies.places` (ground: 0)."""
        places, found = self.tree.places, []
        for piece, n in zip(self.every.pieces, self.every.rows, strict=True):
            if isinstance(piece, Batch) and piece.source is not None:
                own: Any = jnp.stack(piece.source.bodies(held_features(p).chosen[piece.title]), axis=1)
            else:
                ends = piece.bodies if isinstance(piece, Batch) else (piece.bodies,)
                own = np.array([[places[x] or 0 for x in pair] for pair in ends])
            found.append(jnp.repeat(own, n // len(own), axis=0))
        return self.every.in_order(found)

    def bodies(self, p: PyTree) -> Array:
        """Numbers (nc, 2) int of both bodies, see `nsjax.core.slots.ContactSet`."""
        n, own = len(self.tree.names), self._numbers(p)
        # `ContactSet` counts the ground last
        return jnp.where((own == 0) | ~self._used(p)[:, None], n, own - 1)

    def directions(self, t: Array, q: Array, p: PyTree) -> Array:
        """Rows (nc, 2, 1 + nt, block) of gap rate and slips, see `nsjax.core.slots.ContactSet`."""
        scene, d, sides = self._scene(q, p), self.tree.dimension, []
        turns = scene.frames.parts[1]  # type: ignore[attr-defined]
        lines = Lines(self.every, scene, self.tangents, p)
        centres = jnp.concatenate([jnp.zeros((1, d)), self.tree.poses(q)[:, :d]])
        for side, own in zip(("first", "second"), self._numbers(p).T, strict=True):
            along = lines.of(side, centres[own].T)
            if d == 3:  # moments in body axes
                turn = jnp.moveaxis(turns[own], 0, -1)[..., None]
                along = jnp.concatenate([along[:d], space.turned_back(turn, along[d:])])
            sides.append(along)
        rows = jnp.transpose(jnp.stack(sides), (2, 0, 3, 1))
        return jnp.where(self._used(p)[:, None, None, None], rows, 0.0)

    def identity(self, p: PyTree) -> Array:
        """Identities (nc,) int of the contacts of all pairs, ascending; empty slots have their own."""
        first = sum(self.named.rows)
        # named contacts keep their numbers; those of found pairs follow
        numbered = [jnp.arange(first)]
        for batch in self.found:
            slots: CandidatePairs = held_features(p).chosen[batch.title]
            # numbers of empty slots follow those of the pairs, so that the list ascends
            empty = batch.source.many + np.arange(batch.many)  # type: ignore[union-attr]
            own = jnp.where(slots.used, slots.identity, empty)
            numbered.append(first + (own[:, None] * batch.rows + np.arange(batch.rows)).reshape(-1))
            first += (batch.source.many + batch.many) * batch.rows  # type: ignore[union-attr]
        return jnp.concatenate(numbered)

    def overflow(self, p: PyTree) -> Array:
        """Whether there were more candidate pairs than slots."""
        return jnp.any(jnp.stack([held_features(p).chosen[x.title].lost for x in self.found]))

    def near_counts(self, q: Array, p: PyTree) -> dict[str, Array]:
        """Capacity () that would hold all pairs near at a position, by the name of the group."""
        frames = self.tree.all_frames(q, None, p)
        found: dict[str, Array] = {}
        for batch in self.found:
            source: Any = batch.source
            near = source.near_count(self.tree, frames, p)
            found[source.group] = jnp.maximum(near, found.get(source.group, 0))
        return found


def batches_of(parts: tuple[Part, ...], topology: Topology) -> tuple[Batch, ...]:
    """Batches of candidate pairs of a mechanism; none without such groups in absolute coordinates."""
    groups = [x for x in parts if x.kind == "contact_group"]
    if topology.coordinates != "absolute" or not groups:
        return ()
    places = {name: k for k, name in enumerate((GROUND, *Bodies(topology).names))}
    return tuple(x for part in groups for x in _found(part, places, topology.dimension))


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
