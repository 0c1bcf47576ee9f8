"""Contacts of the surfaces of beams with each other and with solids: one around each node of the first.

The section of a beam is circular and perpendicular to its axis. The nearest points of two surfaces thus lie
on the line between the nearest points of the axes: the gap is the distance of the axes less both radii, and
the formulations by axes and by surfaces agree. Both contact forces act at one common point, so that they
change neither momentum nor moment of momentum.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from nsjax.multibody.contacts import axis_places
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts.axis_places import Axis, Places
from nsjax.multibody.contacts.closest_pairs import axis_of, carried
from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.contacts.pair_kind import PairKind
from nsjax.multibody.contacts.shape_places import across
from nsjax.multibody.contacts.solid_distance import Solid, solid
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import cross
from nsjax.multibody.parts import Part
from nsjax.types import Array

SOLIDS = ("plane", "box", "capsule", "cylinder", "hole")
"""Solids that the surface of a beam meets, besides other beams."""


def _axis(scene: Scene, part: Part, numbers: Any, which: int) -> Axis:
    shape = (numbers.first, numbers.second)[which]
    closed = bool(part.option(("first_closed", "closed")[which]))
    return Axis(*axis_of(scene, part.bodies[which], shape.curve), closed)


def _moving(scene: Scene, beam: str, axis: Axis, u: Array, arms: Array) -> Array:
    """Velocities (3, k) of points of a beam at ``arms`` (3, k) from its axis at parameters ``u`` (k,)."""
    u = axis_places.wrapped(axis, u)
    made: Array = jax.vmap(lambda s, arm: carried(scene, beam, axis[:3], s, arm), (0, 1), 1)(u, arms)
    return made


def _back(axis: Axis, places: Places, more: Any) -> Array:
    """Addition to the gaps (k,) that opens places without a contact: an element plus the radii; else 0."""
    along = axis.nodes[:, 1] - axis.nodes[:, 0]
    return jnp.where(places.kept, 0.0, jnp.sqrt(closest.dot(along, along)) + more)


def _solid(scene: Scene, part: Part, numbers: Any) -> Solid:
    return solid(scene, part.bodies[1], part.option("shapes")[1], numbers.second)


def _held_solid(scene: Scene, part: Part, numbers: Any) -> Any:
    """Places of a beam, around its nodes, that may meet a solid."""
    axis, other = axis_places.frozen(_axis(scene, part, numbers, 0)), _solid(scene, part, numbers).still()
    none = jnp.zeros(len(axis_places.bounds(axis)[0]))
    return axis_places.searched(axis, axis_places.slope_of(axis, other.away), none)._replace(foot=None)


def _tube_solid(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    axis, other, radius = _axis(scene, part, numbers, 0), _solid(scene, part, numbers), numbers.first.radius
    places: Places = _held_solid(scene, part, numbers) if near is None else near
    u = axis_places.followed(axis, other, places)
    centres = jax.vmap(lambda s: axis.at(s)[0], out_axes=1)(u)
    distance, unit = jax.vmap(other.at, 1, (0, 1))(centres)
    arms = -0.5 * (radius + distance) * unit
    middle = centres + arms
    return ShapeContacts(
        distance - radius + _back(axis, places, radius), middle, middle, unit,
        moving=_moving(scene, part.bodies[0], axis, u, arms),
    )  # fmt: skip


def _held_tubes(scene: Scene, part: Part, numbers: Any) -> Any:
    """Places of a beam that may meet another beam, and their feet on it."""
    one, other = (axis_places.frozen(_axis(scene, part, numbers, k)) for k in (0, 1))
    return axis_places.between(one, other)


def _unit(x: Array) -> Array:
    return x / jnp.sqrt(closest.dot(x, x))


def _between(scene: Scene, one: Array, other: Array) -> Array:
    """Unit normal of two directions (3,), the normal of crossing axes; for parallel axes, of the first."""
    made = cross(one, other)
    square = closest.dot(made, made)
    askew = square > closest.PARALLEL
    return jnp.where(askew, made / jnp.sqrt(jnp.where(askew, square, 1.0)), across(scene, one))


def _tubes(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    one, other = (_axis(scene, part, numbers, k) for k in (0, 1))
    r, s = numbers.first.radius, numbers.second.radius
    places: Places = _held_tubes(scene, part, numbers) if near is None else near
    u, w = axis_places.both_followed(one, other, places)
    (here, first, _), (there, second, _) = (
        jax.vmap(axis.at, out_axes=1)(x) for axis, x in ((one, u), (other, w))
    )
    instead = jax.vmap(lambda a, b: _between(scene, a, b), 1, 1)(_unit(first), _unit(second))
    length, unit = closest.lengthened(here - there, instead)
    middle = 0.5 * (here + there + (s - r) * unit)
    return ShapeContacts(
        length - r - s + _back(one, places, r + s), middle, middle, unit,
        moving=_moving(scene, part.bodies[0], one, u, middle - here),
        carried=_moving(scene, part.bodies[1], other, w, middle - there),
    )  # fmt: skip


KINDS = (
    *(PairKind("tube", x, _tube_solid, hold=_held_solid, rigid=False) for x in SOLIDS),
    PairKind("tube", "tube", _tubes, hold=_held_tubes, rigid=False),
)
