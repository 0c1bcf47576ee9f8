"""Pairs of shapes that meet at closest points, from the frames of their bodies."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.multibody import closest, profiles
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


def _along(scene: Scene, body: str, axis: Any) -> Array:
    """Axis of a shape in the axes of the ground; None: the x axis of its body."""
    a = scene.algebra
    made: Array = a.array(a.turned(scene.frame(body).turn, a.vector(1.0 if axis is None else axis)))
    return made


def _across(scene: Scene, along: Array) -> Array:
    """A unit vector across an axis."""
    a = scene.algebra
    made: Array = a.array(a.tangents(a.vector(along))[0])
    return made


def _segment(scene: Scene, body: str, shape: Any) -> tuple[Array, Array, Any]:
    return _point(scene, body, shape.at), _along(scene, body, shape.axis), shape.half_length


def ends(scene: Scene, body: str, shape: Any) -> Array:
    """Centres (d, 2) of the ends of a capsule."""
    middle, along, half = _segment(scene, body, shape)
    return jnp.stack([middle - half * along, middle + half * along], axis=1)


def rim_points(scene: Scene, body: str, shape: Any, normal: Array) -> Array:
    """Points (3, 10) of a cylinder that may meet a plane."""
    middle, along, half = _segment(scene, body, shape)
    turn = scene.frame(body).turn
    own = scene.algebra.vector(1.0 if shape.axis is None else shape.axis)
    fixed = tuple(scene.algebra.turned(turn, x) for x in scene.algebra.tangents(own))
    return closest.rims(normal, middle, along, half, shape.radius, (fixed[0], fixed[1]))


def _sphere_capsule(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), ball, other = part.bodies, numbers.first, numbers.second
    middle, along, half = _segment(scene, second, other)
    centre = _point(scene, first, ball.at)
    there = closest.on_segment(centre, middle, along, half)
    return closest.between(centre, ball.radius, there, other.radius, _across(scene, along))


def _capsules(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    one = _segment(scene, part.bodies[0], numbers.first)
    other = _segment(scene, part.bodies[1], numbers.second)
    instead = _across(scene, other[1])
    return closest.capsules(one, numbers.first.radius, other, numbers.second.radius, instead)


def _sphere_hole(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), ball, other = part.bodies, numbers.first, numbers.second
    centre, there = _point(scene, first, ball.at), _point(scene, second, other.at)
    along = _along(scene, second, other.axis)
    if other.axis is not None:
        there = closest.on_segment(centre, there, along, other.half_length)
    return closest.inside(centre, ball.radius, there, other.radius, _across(scene, along))


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


def _sphere_cylinder(scene: Scene, part: Part, numbers: Any, near: Any) -> Met:
    (first, second), ball, other = part.bodies, numbers.first, numbers.second
    middle, along, half = _segment(scene, second, other)
    centre = _point(scene, first, ball.at)
    height = closest.dot(centre - middle, along)
    radial, out = closest.lengthened(centre - middle - height * along, _across(scene, along))
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


def nearby(scene: Scene, part: Part, numbers: Any) -> Array:
    """Parameter of the closest point of a profile, held fixed during a step."""
    found = profiles.searched(jnp.asarray(numbers.second.control), _seen(scene, part, numbers))
    return lax.stop_gradient(found)


PAIRS = {
    ("sphere", "capsule"): _sphere_capsule, ("capsule", "capsule"): _capsules,
    ("sphere", "hole"): _sphere_hole, ("sphere", "box"): _sphere_box,
    ("sphere", "cylinder"): _sphere_cylinder, ("sphere", "profile"): _sphere_profile,
}  # fmt: skip
"""Functions ``(scene, part, numbers, near) -> Met``."""
