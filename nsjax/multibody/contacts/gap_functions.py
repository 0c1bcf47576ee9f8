"""Gaps and slip velocities of contacts, from the frames of the bodies."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.multibody.contacts.all_pairs import KINDS
from nsjax.multibody.contacts.pair_kind import PairKind
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.types import Array


@dataclasses.dataclass(frozen=True)
class Meeting:
    """Contacts of two bodies at an instant, one or (k,) of them.

    Args:
        gap: [m].
        first, second: names of the bodies; for contacts of several pairs, one name a contact.
        here, there: contact points on the first and on the second body [m].
        normal: unit vector from the second to the first.
        tangents: unit vectors across the normal.
        carried: velocity of ``there`` [m/s]; None: it moves with the second body.
        moving: velocity of ``here`` [m/s]; None: it moves with the first body.
    """

    gap: Any
    first: Any
    second: Any
    here: Any
    there: Any
    normal: Any
    tangents: tuple[Any, ...]
    carried: Any = None
    moving: Any = None

    def bodies(self, side: str) -> list[str]:
        """Names of the ``"first"`` or ``"second"`` bodies of all contacts."""
        own = getattr(self, side)
        return [own] * jnp.size(self.gap) if isinstance(own, str) else list(own)

    def slip(self, scene: Scene) -> list[Any]:
        """Slip velocity of the first body relative to the second along the tangents [m/s]."""
        a = scene.algebra
        one = self.moving
        if one is None:
            one = scene.motion(self.first, a.subtract(self.here, scene.frame(self.first).origin))
        other = self.carried
        if other is None:
            other = scene.motion(self.second, a.subtract(self.there, scene.frame(self.second).origin))
        moved = a.subtract(one, other)
        return [a.dot(t, moved) for t in self.tangents]


def kind_of(part: Part) -> PairKind:
    """The kind of pair of a contact."""
    return KINDS[part.option("shapes")]


def count(part: Part, numbers: Any, dimension: int) -> int:
    """Number of contacts of a part."""
    nodes = part.option("nodes")
    if nodes is not None:  # a contact of every node of a beam
        return int(nodes)
    known = kind_of(part).count
    return known if isinstance(known, int) else known(part, numbers, dimension)


def rigid(part: Part) -> bool:
    """Whether each shape of a contact is fixed to one rigid body, not to the nodes of a beam."""
    return part.option("nodes") is None and kind_of(part).rigid


def names(part: Part, numbers: Any, dimension: int) -> list[str]:
    """Names of the contacts of a part."""
    n = count(part, numbers, dimension)
    return [part.name] if n == 1 else [f"{part.name}.{k}" for k in range(n)]


def hold(scene: Scene, part: Part, numbers: Any) -> Any:
    """Features of the contacts of a part that a step holds fixed; None: none."""
    find = kind_of(part).hold
    return None if find is None else find(scene, part, numbers)


def meetings(scene: Scene, part: Part, numbers: Any, near: Any = None) -> Meeting:
    """The contacts of a part; ``near`` are its held features, None: they are searched for."""
    a, own = scene.algebra, kind_of(part).meet(scene, part, numbers, near)
    here, there, normal = (
        x if x is None or isinstance(x, tuple) else a.vector(x) for x in (own.here, own.there, own.normal)
    )
    across = a.tangents(normal) if own.tangents is None else own.tangents
    first, second = part.bodies
    return Meeting(own.gap, first, second, here, there, normal, across, own.carried, own.moving)


def flat(rows: list[Any]) -> Array:
    """Scalars, arrays (k,) and None for zero, joined in one array."""
    if len(rows) == 1:
        return jnp.reshape(plane.value(rows[0]), -1)
    if all(x is None or jnp.ndim(x) == 0 for x in rows):
        return jnp.stack([plane.value(x) for x in rows])
    return jnp.concatenate([jnp.reshape(plane.value(x), -1) for x in rows])


def columns(rows: list[list[Any]], counts: list[int]) -> Array:
    """Slips of meetings with ``counts`` contacts as one array (nc, nt)."""
    found = [
        jnp.stack([jnp.broadcast_to(plane.value(x), (n,)) for x in row], axis=1)
        for row, n in zip(rows, counts, strict=True)
    ]
    return found[0] if len(found) == 1 else jnp.concatenate(found)
