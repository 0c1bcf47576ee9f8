"""Joints seen from outside: their coordinates, and the rows of those that are constraints."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.multibody import planar_vectors as plane
from nsjax.multibody import spatial_vectors as space
from nsjax.multibody.frames import Frame, Scene
from nsjax.multibody.parts import Part
from nsjax.multibody.spatial import rotation_of
from nsjax.types import Array

ROWS = {
    2: {"hinge": 2, "slide": 2, "fixed": 3, "distance": 1},
    3: {
        "hinge": 5, "slide": 5, "fixed": 6, "ball": 3, "universal": 4, "cylindrical": 4, "distance": 1,
        "revolute_spherical": 2,
    },
}  # fmt: skip
"""Constraints of a joint that closes a loop."""


def across(axis: Array) -> tuple[Array, Array]:
    """Two unit vectors across a unit axis, in its own axes."""
    first, second = space.tangents(axis)
    return first, second


def axis_of(part: Part, numbers: Any, dimension: int) -> Any:
    """Axis of a joint in the axes of its first body."""
    if dimension == 2:
        return plane.vector(1.0 if numbers.axis is None else numbers.axis)
    if numbers.axis is None:
        return jnp.asarray([1.0, 0.0, 0.0])
    return jnp.asarray(numbers.axis, float)


def measured(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """Coordinate of a hinge or slide and its rate, from the frames of its bodies; the angle of a spatial
    hinge without its full turns, between -pi and pi (`nsjax.multibody.turns` counts them).
    """
    a = scene.algebra
    first, second = (scene.frame(x) for x in part.bodies)
    if part.kind == "slide":
        axis = a.turned(first.turn, axis_of(part, numbers, scene.dimension))
        gone = a.subtract(scene.point(part.bodies[1], numbers.on), scene.point(part.bodies[0], numbers.at))
        arm = a.subtract(scene.point(part.bodies[1], numbers.on), first.origin)
        rate = a.subtract(
            scene.motion(part.bodies[1], scene.arm(part.bodies[1], numbers.on)),
            scene.motion(part.bodies[0], arm),
        )
        return a.dot(axis, gone), a.dot(axis, rate)
    if scene.dimension == 2:
        return (
            plane.plus(second.angle, plane.minus(first.angle)),
            plane.plus(second.spin, plane.minus(first.spin)),
        )
    return _spatial_angle(scene, part, numbers, first, second)


def _spatial_angle(scene: Scene, part: Part, numbers: Any, first: Frame, second: Frame) -> tuple[Any, Any]:
    axis = axis_of(part, numbers, 3)
    one, _ = across(axis)
    frame = rotation_of(numbers.turned)
    here = space.turned(second.turn, space.turned_back(frame, one))
    there, along = space.turned(first.turn, one), space.turned(first.turn, axis)
    angle = jnp.arctan2(space.dot(along, space.cross(there, here)), space.dot(there, here))
    return angle, space.dot(along, space.subtract(second.spin, first.spin))


def rows_of(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    """Residuals of a joint as constraints, in the axes of the ground for its point [m], without unit for
    its directions.
    """
    a = scene.algebra
    apart = a.subtract(scene.point(part.bodies[1], numbers.on), scene.point(part.bodies[0], numbers.at))
    if part.kind == "distance":
        return [a.size(apart) - numbers.length]
    if part.option("path") is not None:
        gone = a.vector(jnp.asarray(part.option("path")(scene.time)[0], float))
        apart = a.subtract(apart, a.turned(scene.frame(part.bodies[0]).turn, gone))
    if scene.dimension == 2:
        return _planar_rows(scene, part, numbers, apart)
    return _spatial_rows(scene, part, numbers, apart)


def _planar_rows(scene: Scene, part: Part, numbers: Any, apart: plane.Vector) -> list[Any]:
    first, second = (scene.frame(x) for x in part.bodies)
    if part.kind == "hinge":
        return list(apart)
    tilt = plane.plus(plane.plus(second.angle, plane.minus(first.angle)), plane.minus(numbers.turned))
    if part.option("path") is not None:
        tilt = plane.plus(tilt, -jnp.asarray(part.option("path")(scene.time)[1], float))
    if part.kind == "fixed":
        return [*apart, tilt]
    axis = plane.turned(first.turn, axis_of(part, numbers, 2))
    return [plane.dot(plane.perp(axis), apart), tilt]


def _spatial_rows(scene: Scene, part: Part, numbers: Any, apart: Any) -> list[Any]:
    first, second = (scene.frame(x) for x in part.bodies)
    point = [space.array(apart)[k] for k in range(3)]
    if part.kind == "ball":
        return point
    axis = axis_of(part, numbers, 3)
    along = space.turned(first.turn, axis)
    if part.kind == "revolute_spherical":
        return [space.size(apart) - numbers.length, space.dot(along, apart)]
    if part.kind == "universal":
        other = space.turned(second.turn, jnp.asarray(numbers.second_axis, float))
        return [*point, space.dot(along, other)]
    frame = rotation_of(numbers.turned)
    if part.option("path") is not None:
        frame = space.both(rotation_of(part.option("path")(scene.time)[1]), frame)
    b, c = (space.turned(second.turn, space.turned_back(frame, x)) for x in across(axis))
    square = [space.dot(along, b), space.dot(along, c)]
    if part.kind == "hinge":
        return point + square
    one, two = (space.turned(first.turn, x) for x in across(axis))
    if part.kind == "fixed":
        return [*point, *square, space.dot(one, c)]
    off = [space.dot(one, apart), space.dot(two, apart)]
    return off + square + ([space.dot(one, c)] if part.kind == "slide" else [])


def row_names(part: Part, dimension: int) -> list[str]:
    """Names of the rows of a joint that is a constraint."""
    if part.kind == "distance":
        return [part.name]
    point = ["x", "y", "z"][:dimension]
    turns = {2: {"fixed": ["angle"]}, 3: {"hinge": ["tilt1", "tilt2"], "universal": ["tilt"], "ball": []}}
    if part.kind == "revolute_spherical":
        found = ["length", "axis"]
    elif part.kind in ("slide", "cylindrical"):
        found = ["across", "angle"] if dimension == 2 else ["across1", "across2", "tilt1", "tilt2"]
        found += ["angle"] if dimension == 3 and part.kind == "slide" else []
    else:
        found = point + turns[dimension].get(
            part.kind, ["tilt1", "tilt2", "angle"] if dimension == 3 else []
        )
    return [f"{part.name}.{x}" for x in found]
