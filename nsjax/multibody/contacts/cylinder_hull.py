"""Contacts of cylinders with flat ends on convex hulls.

Each row is the distance of a point from a solid, as for a cylinder on a box
(`nsjax.multibody.contacts.cylinders`): seven points of the rims, and three points of the axis less a
radius, against the hull; vertices of the hull, the nearest one and the next on which a tilted plane through
it would rest, against the cylinder. The points are chosen at the start of a step and held.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts import cylinders, triangles
from nsjax.multibody.contacts.closest_points import COINCIDE, ShapeContacts, dot, set_back
from nsjax.multibody.contacts.hulls import TILT, index_of, vertices_of
from nsjax.multibody.contacts.pair_kind import PairKind
from nsjax.multibody.contacts.shape_places import segment
from nsjax.multibody.contacts.solid_distance import Solid, solid
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.types import Array

QUARTERS = 0.5 * np.pi * np.arange(4)
"""Directions in which the plane through the nearest vertex is tilted [rad]."""

ROWS = 7 + 3 + 1 + len(QUARTERS)
"""Number of contacts: points of the rims, points of the axis, nearest vertex, further vertices."""


def away(faces: Any, points: Array, x: Array) -> tuple[Array, Array]:
    """Distance of a point (3,) from a hull with vertices (3, n), and its direction outward; inside the hull
    the distance is negative, from the nearest face.
    """
    index = index_of(faces).T
    still, centre = lax.stop_gradient((points, x))
    look = triangles.seen([still[:, k] for k in index.T], centre)
    squares = look.squares.reshape(-1)
    outside = jnp.max(look.height) > 0.0
    above = jnp.where(look.over & (look.height > 0.0), look.height, jnp.inf)
    flat = ~outside | (jnp.min(above) ** 2 <= jnp.min(squares))
    face = jnp.where(outside, jnp.argmin(above), jnp.argmax(look.height))
    side, beside = jnp.divmod(jnp.argmin(squares), len(faces))
    turns, size = triangles.first_vertex(flat, np.arange(3) == side, look.shares[side, beside])
    first = jnp.argmax(turns)
    corners = jnp.asarray(index)[jnp.where(flat, face, beside), (first + np.arange(3)) % 3]
    return triangles.from_feature(list(points[:, corners].T), size, x)


def _hull(scene: Scene, part: Part, numbers: Any) -> Solid:
    points = vertices_of(scene, part.bodies[1], numbers.second)
    return Solid(functools.partial(away, numbers.second.faces), (points,))


def _cylinder(scene: Scene, part: Part, numbers: Any) -> Solid:
    return solid(scene, part.bodies[0], "cylinder", numbers.first)


def _held_vertices(points: Array, own: Solid) -> tuple[Array, Array]:
    """Indices (5,) of the vertices (3, n) that a cylinder may meet, and which of them are no repetition."""
    distance, ways = jax.vmap(own.at, 1, (0, 1))(points)
    first = jnp.argmin(distance)
    way = ways[:, first]
    one, other = (jnp.asarray(x) for x in space.tangents(way))
    tilted = [way + TILT * (float(np.cos(x)) * one + float(np.sin(x)) * other) for x in QUARTERS]
    found = jnp.stack([first, *(jnp.argmin(dot(x[:, None], points)) for x in tilted)])
    wide = jnp.sqrt(jnp.sum((jnp.max(points, axis=1) - jnp.min(points, axis=1)) ** 2))
    return found, ~set_back(points[:, found], wide)


def _held(scene: Scene, part: Part, numbers: Any) -> Any:
    """Points of the rims and of the axis, and vertices of the hull, that may meet."""
    other, own = (make(scene, part, numbers).still() for make in (_hull, _cylinder))
    middle, along, half = line = lax.stop_gradient(segment(scene, part.bodies[0], numbers.first))
    places, kept = cylinders.held_axis(line, other)
    ways = jax.vmap(lambda s: other.at(middle + s * along)[1])(places)
    # at the ends of the axis the rims already make the contact
    inner = jnp.abs(places) < (1.0 - COINCIDE) * half
    side = kept & inner & (jnp.abs(dot(along[:, None], ways.T)) < cylinders.LATERAL)
    rims = lax.stop_gradient(cylinders.rims_of(scene, part.bodies[0], numbers.first))
    return cylinders.held_rims(rims, other), (places, side), _held_vertices(other.numbers[0], own)


def _meet(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    first, other = numbers.first, _hull(scene, part, numbers)
    rims, (places, side), (which, kept) = _held(scene, part, numbers) if near is None else near
    middle, along, half = segment(scene, part.bodies[0], first)
    size, axis = half + first.radius, middle[:, None] + places * along[:, None]
    corners, own = other.numbers[0][:, which], _cylinder(scene, part, numbers)
    return cylinders.joined([
        cylinders.of_rims(cylinders.rims_of(scene, part.bodies[0], first), other, rims, size),
        cylinders.pointed(axis, first.radius, other, side, size),
        cylinders.turned_over(cylinders.pointed(corners, 0.0, own, kept, size)),
    ])  # fmt: skip


KINDS = (PairKind("cylinder", "hull", _meet, ROWS, _held),)
