"""Pairs of shapes that meet at closest points, from the frames of their bodies."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody import boxes, closest, profiles, tubes
from nsjax.multibody.closest import Met
from nsjax.multibody.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.multibody.spatial import rotation_of
from nsjax.types import Array


def turn_of(turned: Any, dimension: int) -> Any:
    """Of the axes of a shape in those of its body, as a turn of the algebra."""
    if turned is None or dimension == 3:
        return rotation_of(turned)
    return jnp.sin(turned), jnp.cos(turned)


def _point(scene: Scene, body: str, at: Any) -> Array:
    return scene.position(body, at)


def along_of(scene: Scene, body: str, axis: Any) -> Array:
    """Axis of a shape in the axes of the ground; None: the x axis of its body."""
    a = scene.algebra
    made: Array = a.array(a.turned(scene.frame(body).turn, a.vector(1.0 if axis is None else axis)))
    return made


def across(scene: Scene, along: Array) -> Array:
    """A unit vector across an axis."""
    a = scene.algebra
    made: Array = a.array(a.tangents(a.vector(along))[0])
    return made


def segment(scene: Scene, body: str, shape: Any) -> tuple[Array, Array, Any]:
    """Middle, direction and half length of the axis of a shape."""
    return _point(scene, body, shape.at), along_of(scene, body, shape.axis), shape.half_length


def ends(scene: Scene, body: str, shape: Any) -> Array:
    """Centres (d, 2) of the ends of a capsule."""
    middle, along, half = segment(scene, body, shape)
    return jnp.stack([middle - half * along, middle + half * along], axis=1)


def rim_points(scene: Scene, body: str, shape: Any, normal: Array) -> Array:
    """Points (3, 10) of a cylinder that may meet a plane."""
    middle, along, half = segment(scene, body, shape)
    turn = scene.frame(body).turn
    own = scene.algebra.vector(1.0 if shape.axis is None else shape.axis)
    fixed = tuple(scene.algebra.turned(turn, x) for x in scene.algebra.tangents(own))
    return closest.rims(normal, middle, along, half, shape.radius, (fixed[0], fixed[1]))


def _sphere_capsule(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), ball, other = part.bodies, numbers.first, numbers.second
    middle, along, half = segment(scene, second, other)
    centre = _point(scene, first, ball.at)
    there = closest.on_segment(centre, middle, along, half)
    return closest.between(centre, ball.radius, there, other.radius, across(scene, along))


def _capsules(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    one = segment(scene, part.bodies[0], numbers.first)
    other = segment(scene, part.bodies[1], numbers.second)
    instead = across(scene, other[1])
    return closest.capsules(one, numbers.first.radius, other, numbers.second.radius, instead)


def _sphere_hole(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), ball, other = part.bodies, numbers.first, numbers.second
    centre, there = _point(scene, first, ball.at), _point(scene, second, other.at)
    along = along_of(scene, second, other.axis)
    if other.axis is not None:
        there = closest.on_segment(centre, there, along, other.half_length)
    return closest.inside(centre, ball.radius, there, other.radius, across(scene, along))


def solid_box(scene: Scene, body: str, shape: Any) -> boxes.Box:
    """A box in the axes of the ground."""
    a, d = scene.algebra, scene.dimension
    turn, own = scene.frame(body).turn, turn_of(shape.turned, d)
    axes = [a.array(a.turned(turn, a.turned(own, a.vector(jnp.asarray(e))))) for e in np.eye(d)]
    edges = [shape.half_length, shape.half_height, shape.half_depth][:d]
    half = jnp.stack([jnp.asarray(x, float) for x in edges])
    return boxes.Box(_point(scene, body, shape.at), jnp.stack(axes, axis=1), half)


def _sphere_box(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), ball, other, a = part.bodies, numbers.first, numbers.second, scene.algebra
    turn, own = scene.frame(second).turn, turn_of(other.turned, scene.dimension)
    centre = _point(scene, first, ball.at)
    apart = a.vector(centre - _point(scene, second, other.at))
    local = a.array(a.turned_back(own, a.turned_back(turn, apart)))
    edges = [other.half_length, other.half_height, other.half_depth][: scene.dimension]
    distance, unit = closest.boxed(local, jnp.stack([jnp.asarray(x, float) for x in edges]))
    normal = a.array(a.turned(turn, a.turned(own, a.vector(unit))))
    return _on_surface(centre, ball.radius, distance, normal)


def _both_boxes(scene: Scene, part: Part, numbers: Any) -> tuple[boxes.Box, boxes.Box]:
    first, second = part.bodies
    return solid_box(scene, first, numbers.first), solid_box(scene, second, numbers.second)


def _boxes(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    both = _both_boxes(scene, part, numbers)
    return boxes.met(*both, boxes.held(*both) if near is None else near)


def _held_boxes(scene: Scene, part: Part, numbers: Any) -> Any:
    return boxes.held(*_both_boxes(scene, part, numbers))


def _held_capsule(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameters of the points of a capsule's axis that may meet a box, and which of them do."""
    middle, along, half = segment(scene, part.bodies[0], numbers.first)
    solid = solid_box(scene, part.bodies[1], numbers.second)
    start, way = (boxes.seen(solid.axes, x) for x in (middle - solid.centre, along))
    return lax.stop_gradient(closest.along_box(start, way, jnp.asarray(half, float), solid.half))


def _capsule_box(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    """From fixed points of the axis: the nearest one has no derivative along it."""
    middle, along, half = segment(scene, part.bodies[0], numbers.first)
    solid = solid_box(scene, part.bodies[1], numbers.second)
    places, kept = _held_capsule(scene, part, numbers) if near is None else near
    centres = middle[:, None] + places * along[:, None]
    local = boxes.seen(solid.axes, centres - solid.centre[:, None])
    distance, unit = jax.vmap(closest.boxed, (1, None), (0, 1))(local, solid.half)
    met = _on_surface(centres, numbers.first.radius, distance, boxes.through(solid.axes, unit))
    back = jnp.where(kept, 0.0, half + numbers.first.radius)
    return dataclasses.replace(met, gap=met.gap + back)


def _capsule_hole(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), shaft, other = part.bodies, numbers.first, numbers.second
    centres, there = ends(scene, first, shaft), _point(scene, second, other.at)[:, None]
    along = along_of(scene, second, other.axis)
    if other.axis is not None:
        there = closest.on_segment(centres, there, along[:, None], other.half_length)
    return closest.inside(centres, shaft.radius, there, other.radius, across(scene, along)[:, None])


def _pin_rims(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any, Array, Array]:
    """Of both rims of a pin in a hollow cylinder, centres (3, 2) and radii along two directions, the parts
    of these three across the axis, and a point of the axis with its direction.
    """
    (first, second), pin, other = part.bodies, numbers.first, numbers.second
    a, turn = scene.algebra, scene.frame(part.bodies[0]).turn
    own = a.vector(1.0 if pin.axis is None else pin.axis)
    radii = [pin.radius * a.turned(turn, x) for x in a.tangents(own)]
    start, along = _point(scene, second, other.at), along_of(scene, second, other.axis)
    centres = ends(scene, first, pin)
    apart = centres - start[:, None]
    square = [
        x - closest.dot(along[:, None], x) * along[:, None] for x in (apart, *(r[:, None] for r in radii))
    ]
    wide = [jnp.broadcast_to(x, (3, 2)) for x in square[1:]]
    return (centres, *radii), (square[0], wide[0], wide[1]), start, along


def _cylinder_hole(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    """A pin in a hollow cylinder: of each rim the point nearest to the wall."""
    (centres, one, other), parts, start, along = _pin_rims(scene, part, numbers)
    near = _held_rims(scene, part, numbers) if near is None else near
    angles = jax.vmap(closest.farthest, (1, 0))(parts, near)
    here = centres + jnp.cos(angles) * one[:, None] + jnp.sin(angles) * other[:, None]
    height = closest.dot(along[:, None], here - start[:, None])
    middle = start[:, None] + height * along[:, None]
    return closest.inside(here, None, middle, numbers.second.radius, across(scene, along)[:, None])


def _held_rims(scene: Scene, part: Part, numbers: Any) -> Any:
    """Where on the rims of a pin it is nearest to the wall."""
    across = _pin_rims(scene, part, numbers)[1]
    return lax.stop_gradient(jax.vmap(closest.farthest_searched, 1)(across))


def _sphere_cylinder(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), ball, other = part.bodies, numbers.first, numbers.second
    middle, along, half = segment(scene, second, other)
    centre = _point(scene, first, ball.at)
    height = closest.dot(centre - middle, along)
    radial, out = closest.lengthened(centre - middle - height * along, across(scene, along))
    edges = jnp.stack([jnp.asarray(x, float) for x in (other.radius, half)])
    distance, unit = closest.boxed(jnp.stack([radial, height]), edges)
    return _on_surface(centre, ball.radius, distance, unit[0] * out + unit[1] * along)


def _on_surface(centre: Array, radius: Any, distance: Array, normal: Array) -> Met:
    """A ball whose centre is so far from a surface."""
    radius = 0.0 if radius is None else radius
    there = centre - distance * normal
    return Met(distance - radius, centre - radius * normal, there, normal)


def _seen(scene: Scene, part: Part, numbers: Any) -> Array:
    """The centre of a roller in the axes of a cam."""
    (first, second), a = part.bodies, scene.algebra
    apart = _point(scene, first, numbers.first.at) - _point(scene, second, None)
    made: Array = a.array(a.turned_back(scene.frame(second).turn, a.vector(apart)))
    return made


def _sphere_profile(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    a, control, point = scene.algebra, jnp.asarray(numbers.second.control), _seen(scene, part, numbers)
    near = profiles.searched(control, point) if near is None else near
    distance, normal = profiles.closest(control, point, near)
    normal = a.array(a.turned(scene.frame(part.bodies[1]).turn, a.vector(normal)))
    return _on_surface(
        _point(scene, part.bodies[0], numbers.first.at), numbers.first.radius, distance, normal
    )


def _held_profile(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the closest point of a profile."""
    found = profiles.searched(jnp.asarray(numbers.second.control), _seen(scene, part, numbers))
    return lax.stop_gradient(found)


def _normal(scene: Scene, part: Part, numbers: Any) -> Any:
    """Of a plane, out of it, as a vector of the algebra."""
    a, up = scene.algebra, numbers.second.normal
    up = np.eye(scene.dimension)[-1] if up is None else up
    return a.turned(scene.frame(part.bodies[1]).turn, a.vector(jnp.asarray(up, float)))


def _up(scene: Scene, part: Part, numbers: Any) -> Array:
    """The normal of a plane in the axes of a cam."""
    a, normal = scene.algebra, _normal(scene, part, numbers)
    made: Array = a.array(a.turned_back(scene.frame(part.bodies[0]).turn, normal))
    return made


def _profile_plane(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    control, up = jnp.asarray(numbers.first.control), _up(scene, part, numbers)
    near = profiles.lowest_searched(control, up) if near is None else near
    here = _point(scene, part.bodies[0], profiles.lowest(control, up, near))
    normal = scene.algebra.array(_normal(scene, part, numbers))
    gap = closest.dot(normal, here - _point(scene, part.bodies[1], numbers.second.at))
    return Met(gap, here, here - gap * normal, normal)


def _held_lowest(scene: Scene, part: Part, numbers: Any) -> Any:
    """Parameter of the point of a profile that a plane may meet."""
    found = profiles.lowest_searched(jnp.asarray(numbers.first.control), _up(scene, part, numbers))
    return lax.stop_gradient(found)


def axis_of(scene: Scene, beam: str, curve: Any) -> tuple[Any, Array, Array]:
    """The curve of a beam, its nodes and their tangents (3, k)."""
    frame = scene.frame(beam)
    turned = jnp.sum(frame.turn * jnp.asarray(curve.tangents)[:, None, :], axis=2)
    return curve, frame.origin, turned.T


def _sphere_tube(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    ball, other, closed = numbers.first, numbers.second, part.option("closed")
    axis, centre = (
        axis_of(scene, part.bodies[1], numbers.second.curve),
        _point(scene, part.bodies[0], ball.at),
    )
    near = tubes.searched(*axis, centre, closed) if near is None else near
    u = tubes.closest(*axis, centre, near, closed)
    place, along, _ = tubes.evaluated(*axis, u)
    met = closest.between(centre, ball.radius, place, other.radius, across(scene, _unit(along)))
    return dataclasses.replace(met, carried=carried(scene, part.bodies[1], axis, u, met.there - place))


def _unit(along: Array) -> Array:
    return along / jnp.sqrt(jnp.sum(along * along))


def carried(scene: Scene, beam: str, axis: tuple[Any, Array, Array], u: Array, arm: Array) -> Array:
    """Velocity of a point of a beam at ``arm`` from its axis; sections turn as nodes do, linear between."""
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
        _point(scene, part.bodies[0], numbers.first.at),
    )
    return lax.stop_gradient(tubes.searched(*axis, centre, part.option("closed")))


HELD = {
    ("sphere", "profile"): _held_profile, ("box", "box"): _held_boxes, ("capsule", "box"): _held_capsule,
    ("profile", "plane"): _held_lowest, ("sphere", "tube"): _held_tube,
    ("cylinder", "hole"): _held_rims,
}  # fmt: skip
"""Functions ``(scene, part, numbers)``: what is held fixed during a step."""

PAIRS = {
    ("sphere", "capsule"): _sphere_capsule, ("capsule", "capsule"): _capsules,
    ("sphere", "hole"): _sphere_hole, ("sphere", "box"): _sphere_box,
    ("sphere", "cylinder"): _sphere_cylinder, ("sphere", "profile"): _sphere_profile,
    ("box", "box"): _boxes, ("capsule", "box"): _capsule_box, ("capsule", "hole"): _capsule_hole,
    ("profile", "plane"): _profile_plane, ("sphere", "tube"): _sphere_tube,
    ("cylinder", "hole"): _cylinder_hole,
}  # fmt: skip
"""Functions ``(scene, part, numbers, near) -> Met``; ``near``: what is held, None: it is looked for."""
