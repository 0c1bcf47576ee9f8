"""Contacts of points, balls and pairs of shapes at their closest points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError
from nsjax.multibody.contacts import boxes, curves
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.contacts.shape import (
    PairKind,
    across,
    along_of,
    ends,
    normal_of,
    rim_points,
    second_solid,
    segment,
    solid_box,
    turn_of,
)
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.types import Array

# Contacts of points and balls with planes, walls and each other; in the plane, components that are known
# to be zero are None and cost no operation.


CORNERS = {
    2: np.array([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]),
    3: np.array([[x, y, z] for z in (1.0, -1.0) for y in (1.0, -1.0) for x in (-1.0, 1.0)]),
}
"""Signs of the corners of a box; in the plane: upper left, upper right, lower left, lower right."""


def _centre(scene: Scene, body: str, shape: Any) -> Any:
    return scene.point(body, shape.at)


def _ends(scene: Scene, body: str, shape: Any) -> Any:
    return scene.algebra.vector(ends(scene, body, shape))


def _listed(scene: Scene, body: str, shape: Any) -> Any:
    a, columns = scene.algebra, jnp.asarray(shape.at).T
    several = (columns[0], columns[1]) if scene.dimension == 2 else columns
    return a.add(scene.frame(body).origin, a.turned(scene.frame(body).turn, several))


def _corners(scene: Scene, body: str, shape: Any) -> Any:
    a, d = scene.algebra, scene.dimension
    half = [shape.half_length, shape.half_height, shape.half_depth][:d]
    local: Any = tuple(signs * x for signs, x in zip(CORNERS[d].T, half, strict=True))
    local = local if d == 2 else jnp.stack(local)
    local = a.turned(turn_of(shape.turned, d), local)
    return a.add(scene.point(body, shape.at), a.turned(scene.frame(body).turn, local))


POINTS: dict[str, Callable[[Scene, str, Any], Any]] = {
    "sphere": _centre, "points": _listed, "corners": _corners, "box": _corners, "capsule": _ends,
}  # fmt: skip
"""Functions ``(scene, body, shape)`` that return points of shapes, or centres of balls, as vectors."""


def _points(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """The points of the first shape and their radius; None: no radius."""
    shape = numbers.first
    return POINTS[part.option("shapes")[0]](scene, part.bodies[0], shape), getattr(shape, "radius", None)


def _above(scene: Scene, part: Part, numbers: Any, point: Any, radius: Any, normal: Any) -> ShapeContacts:
    """Contacts of balls (of points for a radius of None) with a plane."""
    a, there = scene.algebra, scene.point(part.bodies[1], numbers.second.at)
    gap = plane.plus(a.dot(normal, a.subtract(point, there)), plane.minus(radius))
    here = a.subtract(point, a.scale(radius, normal))
    return ShapeContacts(gap, here, here, normal)


def _on_plane(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    point, radius = _points(scene, part, numbers)
    return _above(scene, part, numbers, point, radius, normal_of(scene, part.bodies[1], numbers.second))


def _rims_on_plane(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    """Contacts of the points of both rims of a cylinder that a plane may meet."""
    normal = normal_of(scene, part.bodies[1], numbers.second)
    point = rim_points(scene, part.bodies[0], numbers.first, normal)
    return _above(scene, part, numbers, point, None, normal)


def _spheres(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    a, (point, radius), other = scene.algebra, _points(scene, part, numbers), numbers.second
    there = scene.point(part.bodies[1], other.at)
    between = a.subtract(point, there)
    length = a.size(between)
    normal = a.scale(1.0 / jnp.where(length > 0.0, length, 1.0), between)
    gap = plane.plus(length, plane.minus(plane.plus(radius, other.radius)))
    there = a.add(there, a.scale(other.radius, normal))
    return ShapeContacts(gap, a.subtract(point, a.scale(radius, normal)), there, normal)


def _between_walls(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    (point, radius), frame = _points(scene, part, numbers), scene.frame(part.bodies[1])
    along = plane.turned(frame.turn, (1.0, None))
    up = plane.perp(along)
    if part.option("shapes")[0] == "corners":
        sides = CORNERS[2][:, 1]  # a corner meets the wall on its own side
    else:
        once = plane.value(plane.dot(along, point)).reshape(-1).shape[0]
        sides = np.repeat([[1.0, -1.0]], once, axis=0).reshape(-1)
        point = tuple(None if x is None else jnp.repeat(jnp.reshape(x, -1), 2) for x in point)
    height = plane.dot(up, plane.subtract(point, frame.origin))
    wall = jnp.where(sides > 0.0, numbers.second.upper, numbers.second.lower)
    gap = plane.plus(sides * (wall - plane.value(height)), plane.minus(radius))
    normal = plane.scale(-sides, up)
    here = plane.subtract(point, plane.scale(radius, normal))
    return ShapeContacts(gap, here, here, normal, tangents=(along,))


def corners_of(part: Part, numbers: Any, dimension: int) -> int:
    """Number of corners of a box."""
    return len(CORNERS[dimension])


def _of_points(part: Part, numbers: Any, dimension: int) -> int:
    return int(np.shape(numbers.first.at)[0])


def _of_both_walls(part: Part, numbers: Any, dimension: int) -> int:
    return 2 * _of_points(part, numbers, dimension)


POINT_PAIRS = (
    PairKind("sphere", "plane", _on_plane), PairKind("points", "plane", _on_plane, _of_points),
    PairKind("corners", "plane", _on_plane, corners_of), PairKind("sphere", "walls", _between_walls, 2),
    PairKind("points", "walls", _between_walls, _of_both_walls),
    PairKind("corners", "walls", _between_walls, corners_of), PairKind("sphere", "sphere", _spheres),
    PairKind("box", "plane", _on_plane, corners_of), PairKind("capsule", "plane", _on_plane, 2),
    PairKind("cylinder", "plane", _rims_on_plane, 10),
)  # fmt: skip


# Contacts of pairs of shapes at their closest points, from the frames of their bodies.


def _sphere_solid(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    """Contact of a ball or point with any solid."""
    centre = scene.position(part.bodies[0], numbers.first.at)
    return _on_surface(centre, numbers.first.radius, *second_solid(scene, part, numbers).at(centre))


def _balls(scene: Scene, part: Part, numbers: Any, centres: Array) -> ShapeContacts:
    """Contacts of balls around points (d, k) of the axis of the first shape with any solid."""
    found = jax.vmap(second_solid(scene, part, numbers).at, 1, (0, 1))(centres)
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
    between = centres - start[:, None]
    square = [
        x - closest.dot(along[:, None], x) * along[:, None] for x in (between, *(r[:, None] for r in radii))
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
    between = scene.position(first, numbers.first.at) - scene.position(second, None)
    return a.array(a.turned_back(scene.frame(second).turn, a.vector(between)))


def _sphere_profile(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    a, control, point = scene.algebra, jnp.asarray(numbers.second.control), _seen(scene, part, numbers)
    near = curves.searched(control, point) if near is None else near
    distance, normal = curves.closest(control, point, near)
    normal = a.array(a.turned(scene.frame(part.bodies[1]).turn, a.vector(normal)))
    return _on_surface(
        scene.position(part.bodies[0], numbers.first.at), numbers.first.radius, distance, normal
    )


def _held_profile(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the closest point of a profile."""
    found = curves.searched(jnp.asarray(numbers.second.control), _seen(scene, part, numbers))
    return lax.stop_gradient(found)


def _up(scene: Scene, part: Part, numbers: Any) -> Array:
    """The normal of a plane in the axes of a cam."""
    a, normal = scene.algebra, normal_of(scene, part.bodies[1], numbers.second)
    return a.array(a.turned_back(scene.frame(part.bodies[0]).turn, normal))


def _profile_plane(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    control, up = jnp.asarray(numbers.first.control), _up(scene, part, numbers)
    near = curves.lowest_searched(control, up) if near is None else near
    here = scene.position(part.bodies[0], curves.lowest(control, up, near))
    normal = scene.algebra.array(normal_of(scene, part.bodies[1], numbers.second))
    gap = closest.dot(normal, here - scene.position(part.bodies[1], numbers.second.at))
    return ShapeContacts(gap, here, here - gap * normal, normal)


def _held_lowest(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the point of a profile that a plane may meet."""
    found = curves.lowest_searched(jnp.asarray(numbers.first.control), _up(scene, part, numbers))
    return lax.stop_gradient(found)


def axis_of(scene: Scene, beam: str, curve: Any) -> tuple[Any, Array, Array]:
    """The curve of a beam, its nodes and their tangents (3, k)."""
    frame = scene.frame(beam)
    turned = jnp.sum(frame.turn * jnp.asarray(curve.tangents)[:, None, :], axis=2)
    return curve, frame.origin, turned.T


def _sphere_tube(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    ball, other, closed = numbers.first, numbers.second, part.option("closed")
    axis = axis_of(scene, part.bodies[1], numbers.second.curve)
    centre = scene.position(part.bodies[0], ball.at)
    near = curves.curve_searched(*axis, centre, closed) if near is None else near
    u = curves.closest_on_curve(*axis, centre, near, closed)
    place, along, _ = curves.curve_at(*axis, u)
    contact = closest.between(centre, ball.radius, place, other.radius, across(scene, _unit(along)))
    return dataclasses.replace(
        contact, carried=carried(scene, part.bodies[1], axis, u, contact.there - place)
    )


def _unit(along: Array) -> Array:
    return along / jnp.sqrt(jnp.sum(along * along))


def carried(scene: Scene, beam: str, axis: tuple[Any, Array, Array], u: Array, arm: Array) -> Array:
    """Velocity of a point of a beam at ``arm`` from its axis; the spin is linear between the nodes."""
    frame, (places, turns) = scene.frame(beam), curves.weights(axis[0], u)
    a, away = scene.algebra, jnp.abs(u - np.arange(axis[1].shape[1]))
    spin = jnp.sum(jnp.where(away < 1.0, 1.0 - away, 0.0) * frame.spin, axis=1)
    moved = jnp.sum(places[0] * frame.velocity + turns[0] * a.cross(frame.spin, axis[2]), axis=1)
    return moved + a.cross(spin, arm)


def _held_tube(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the point of a beam's axis that is nearest to a ball."""
    axis = axis_of(scene, part.bodies[1], numbers.second.curve)
    centre = scene.position(part.bodies[0], numbers.first.at)
    return lax.stop_gradient(curves.curve_searched(*axis, centre, part.option("closed")))


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


CLOSEST_PAIRS = (
    *(PairKind("sphere", x, _sphere_solid) for x in ("box", "capsule", "cylinder", "hole")),
    PairKind("sphere", "profile", _sphere_profile, hold=_held_profile),
    PairKind("capsule", "capsule", _capsules, 3), PairKind("capsule", "hole", _capsule_hole, 2),
    PairKind("capsule", "box", _capsule_box, 3, _held_capsule, follows=True),
    PairKind("box", "box", _boxes, _of_boxes, _held_boxes, follows=True),
    PairKind("profile", "plane", _profile_plane, hold=_held_lowest),
    PairKind("sphere", "tube", _sphere_tube, hold=_held_tube, rigid=False),
    PairKind("cylinder", "hole", _cylinder_hole, 2, _held_rims, _check_pin),
)  # fmt: skip
