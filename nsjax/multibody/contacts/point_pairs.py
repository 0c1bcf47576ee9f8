"""Contacts of points and balls with planes, walls and each other; in the plane, components that are known
to be zero are None and cost no operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.contacts.pair_kind import PairKind
from nsjax.multibody.contacts.shape_places import ends, normal_of, rim_points, turn_of
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part

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
    apart = a.subtract(point, there)
    length = a.size(apart)
    normal = a.scale(1.0 / jnp.where(length > 0.0, length, 1.0), apart)
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


KINDS = (
    PairKind("sphere", "plane", _on_plane), PairKind("points", "plane", _on_plane, _of_points),
    PairKind("corners", "plane", _on_plane, corners_of), PairKind("sphere", "walls", _between_walls, 2),
    PairKind("points", "walls", _between_walls, _of_both_walls),
    PairKind("corners", "walls", _between_walls, corners_of), PairKind("sphere", "sphere", _spheres),
    PairKind("box", "plane", _on_plane, corners_of), PairKind("capsule", "plane", _on_plane, 2),
    PairKind("cylinder", "plane", _rims_on_plane, 10),
)  # fmt: skip
