"""Contacts of pairs of shapes at their closest points, from the frames of their bodies."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError
from nsjax.multibody.contacts import boxes, profiles
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.contacts.pair_kind import PairKind
from nsjax.multibody.contacts.shape_places import across, along_of, ends, normal_of, segment, solid_box
from nsjax.multibody.contacts.solid_distance import Solid, solid
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.flexible import tubes
from nsjax.multibody.parts import Part
from nsjax.types import Array


def _sphere_solid(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    """Contact of a ball or point with any solid."""
    centre = scene.position(part.bodies[0], numbers.first.at)
    return _on_surface(centre, numbers.first.radius, *_other(scene, part, numbers).at(centre))


def _other(scene: Scene, part: Part, numbers: Any) -> Solid:
    return solid(scene, part.bodies[1], part.option("shapes")[1], numbers.second)


def _balls(scene: Scene, part: Part, numbers: Any, centres: Array) -> ShapeContacts:
    """Contacts of balls around points (d, k) of the axis of the first shape with any solid."""
    found = jax.vmap(_other(scene, part, numbers).at, 1, (0, 1))(centres)
    return _on_surface(centres, numbers.first.radius, *found)


def _capsules(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    one = segment(scene, part.bodies[0], numbers.first)
    other = segment(scene, part.bodies[1], numbers.second)
    instead = across(scene, other[1])
    return closest.capsules(one, numbers.first.radius, other, numbers.second.radius, instead)


def _both_boxes(scene: Scene, part: Part, numbers: Any) -> tuple[boxes.Box, boxes.Box]:
    first, second = part.bodies
    return solid_box(scene, first, numbers.first), solid_box(scene, second, numbers.second)


def _boxes(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    both = _both_boxes(scene, part, numbers)
    return boxes.meet(*both, boxes.hold(*both) if near is None else near)


def _held_boxes(scene: Scene, part: Part, numbers: Any) -> Any:
    return boxes.hold(*_both_boxes(scene, part, numbers))


def _held_capsule(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameters (3,) of points of a capsule's axis that may meet a box, and which of them are contacts."""
    middle, along, half = segment(scene, part.bodies[0], numbers.first)
    box = solid_box(scene, part.bodies[1], numbers.second)
    start, way = (boxes.components(box.axes, x) for x in (middle - box.centre, along))
    return lax.stop_gradient(closest.along_box(start, way, jnp.asarray(half, float), box.half))


def _capsule_box(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    """Contacts at held points of the axis: at the nearest one the distance has no slope along the axis."""
    middle, along, half = segment(scene, part.bodies[0], numbers.first)
    places, kept = _held_capsule(scene, part, numbers) if near is None else near
    centres = middle[:, None] + places * along[:, None]
    contact = _balls(scene, part, numbers, centres)
    back = jnp.where(kept, 0.0, half + numbers.first.radius)
    return dataclasses.replace(contact, gap=contact.gap + back)


def _capsule_hole(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    return _balls(scene, part, numbers, ends(scene, part.bodies[0], numbers.first))


def _pin_rims(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any, Array, Array]:
    """Both rims of a pin in a hollow cylinder: centres (3, 2) and two radius vectors (3,); the components
    of these three perpendicular to the axis of the hole; a point and the direction of this axis.
    """
    (first, second), pin, other = part.bodies, numbers.first, numbers.second
    a, turn = scene.algebra, scene.frame(part.bodies[0]).turn
    own = a.vector(1.0 if pin.axis is None else pin.axis)
    radii = [pin.radius * a.turned(turn, x) for x in a.tangents(own)]
    start, along = scene.position(second, other.at), along_of(scene, second, other.axis)
    centres = ends(scene, first, pin)
    apart = centres - start[:, None]
    square = [
        x - closest.dot(along[:, None], x) * along[:, None] for x in (apart, *(r[:, None] for r in radii))
    ]
    wide = [jnp.broadcast_to(x, (3, 2)) for x in square[1:]]
    return (centres, *radii), (square[0], wide[0], wide[1]), start, along


def _cylinder_hole(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    """A pin in a hollow cylinder: one contact at the point of each rim that is nearest to the wall."""
    (centres, one, other), parts, start, along = _pin_rims(scene, part, numbers)
    near = _held_rims(scene, part, numbers) if near is None else near
    angles = jax.vmap(closest.farthest, (1, 0))(parts, near)
    here = centres + jnp.cos(angles) * one[:, None] + jnp.sin(angles) * other[:, None]
    height = closest.dot(along[:, None], here - start[:, None])
    middle = start[:, None] + height * along[:, None]
    return closest.inside(here, None, middle, numbers.second.radius, across(scene, along)[:, None])


def _held_rims(scene: Scene, part: Part, numbers: Any) -> Any:
    """Angles (2,) of the points of both rims of a pin that are nearest to the wall."""
    across = _pin_rims(scene, part, numbers)[1]
    return lax.stop_gradient(jax.vmap(closest.farthest_searched, 1)(across))


def _on_surface(centre: Array, radius: Any, distance: Array, normal: Array) -> ShapeContacts:
    """Contact of a ball whose centre is at ``distance`` from a surface, along ``normal``."""
    radius = 0.0 if radius is None else radius
    there = centre - distance * normal
    return ShapeContacts(distance - radius, centre - radius * normal, there, normal)


def _seen(scene: Scene, part: Part, numbers: Any) -> Array:
    """The centre of a roller in the axes of a cam."""
    (first, second), a = part.bodies, scene.algebra
    apart = scene.position(first, numbers.first.at) - scene.position(second, None)
    made: Array = a.array(a.turned_back(scene.frame(second).turn, a.vector(apart)))
    return made


def _sphere_profile(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    a, control, point = scene.algebra, jnp.asarray(numbers.second.control), _seen(scene, part, numbers)
    near = profiles.searched(control, point) if near is None else near
    distance, normal = profiles.closest(control, point, near)
    normal = a.array(a.turned(scene.frame(part.bodies[1]).turn, a.vector(normal)))
    return _on_surface(
        scene.position(part.bodies[0], numbers.first.at), numbers.first.radius, distance, normal
    )


def _held_profile(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the closest point of a profile."""
    found = profiles.searched(jnp.asarray(numbers.second.control), _seen(scene, part, numbers))
    return lax.stop_gradient(found)


def _up(scene: Scene, part: Part, numbers: Any) -> Array:
    """The normal of a plane in the axes of a cam."""
    a, normal = scene.algebra, normal_of(scene, part.bodies[1], numbers.second)
    made: Array = a.array(a.turned_back(scene.frame(part.bodies[0]).turn, normal))
    return made


def _profile_plane(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    control, up = jnp.asarray(numbers.first.control), _up(scene, part, numbers)
    near = profiles.lowest_searched(control, up) if near is None else near
    here = scene.position(part.bodies[0], profiles.lowest(control, up, near))
    normal = scene.algebra.array(normal_of(scene, part.bodies[1], numbers.second))
    gap = closest.dot(normal, here - scene.position(part.bodies[1], numbers.second.at))
    return ShapeContacts(gap, here, here - gap * normal, normal)


def _held_lowest(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the point of a profile that a plane may meet."""
    found = profiles.lowest_searched(jnp.asarray(numbers.first.control), _up(scene, part, numbers))
    return lax.stop_gradient(found)


def axis_of(scene: Scene, beam: str, curve: Any) -> tuple[Any, Array, Array]:
    """The curve of a beam, its nodes and their tangents (3, k)."""
    frame = scene.frame(beam)
    turned = jnp.sum(frame.turn * jnp.asarray(curve.tangents)[:, None, :], axis=2)
    return curve, frame.origin, turned.T


def _sphere_tube(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    ball, other, closed = numbers.first, numbers.second, part.option("closed")
    axis, centre = (
        axis_of(scene, part.bodies[1], numbers.second.curve),
        scene.position(part.bodies[0], ball.at),
    )
    near = tubes.searched(*axis, centre, closed) if near is None else near
    u = tubes.closest(*axis, centre, near, closed)
    place, along, _ = tubes.evaluated(*axis, u)
    contact = closest.between(centre, ball.radius, place, other.radius, across(scene, _unit(along)))
    return dataclasses.replace(
        contact, carried=carried(scene, part.bodies[1], axis, u, contact.there - place)
    )


def _unit(along: Array) -> Array:
    return along / jnp.sqrt(jnp.sum(along * along))


def carried(scene: Scene, beam: str, axis: tuple[Any, Array, Array], u: Array, arm: Array) -> Array:
    """Velocity of a point of a beam at ``arm`` from its axis; the spin is linear between the nodes."""
    frame, (places, turns) = scene.frame(beam), tubes.weights(axis[0], u)
    a, away = scene.algebra, jnp.abs(u - np.arange(axis[1].shape[1]))
    spin = jnp.sum(jnp.where(away < 1.0, 1.0 - away, 0.0) * frame.spin, axis=1)
    moved = jnp.sum(places[0] * frame.velocity + turns[0] * a.cross(frame.spin, axis[2]), axis=1)
    made: Array = moved + a.cross(spin, arm)
    return made


def _held_tube(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the point of a beam's axis that is nearest to a ball."""
    axis, centre = (
        axis_of(scene, part.bodies[1], numbers.second.curve),
        scene.position(part.bodies[0], numbers.first.at),
    )
    return lax.stop_gradient(tubes.searched(*axis, centre, part.option("closed")))


def _check_pin(name: str, first: Any, second: Any) -> None:
    """Refuse a hole that is no hollow cylinder, which a pin needs."""
    if second.axis is None or second.half_length is not None:
        what = "a socket" if second.axis is None else "a slot"
        raise InputError(
            f"contact {name!r}: a cylinder does not fit in {what}; give the hole an axis and no "
            "half_length, or a capsule in place of the cylinder"
        )


def _of_boxes(part: Part, numbers: Any, dimension: int) -> int:
    return boxes.CONTACTS[dimension]


KINDS = (
    *(PairKind("sphere", x, _sphere_solid) for x in ("box", "capsule", "cylinder", "hole")),
    PairKind("sphere", "profile", _sphere_profile, hold=_held_profile),
    PairKind("capsule", "capsule", _capsules, 3), PairKind("capsule", "hole", _capsule_hole, 2),
    PairKind("capsule", "box", _capsule_box, 3, _held_capsule, follows=True),
    PairKind("box", "box", _boxes, _of_boxes, _held_boxes, follows=True),
    PairKind("profile", "plane", _profile_plane, hold=_held_lowest),
    PairKind("sphere", "tube", _sphere_tube, hold=_held_tube, rigid=False),
    PairKind("cylinder", "hole", _cylinder_hole, 2, _held_rims, _check_pin),
)  # fmt: skip
