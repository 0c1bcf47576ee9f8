"""Contacts of convex hulls: their vertices on planes; spheres on their faces, edges and vertices.

The features that meet are searched at the start of a step and held; gaps then are smooth functions of the
vertices and of the positions of both bodies [Ericson, *Real-Time Collision Detection*, 5.1.5].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError
from nsjax.multibody.contacts import closest_points
from nsjax.multibody.contacts.closest_points import ShapeContacts, dot, first_of, set_back
from nsjax.multibody.contacts.shape import PairKind, normal_of
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.numbers import Hull
from nsjax.multibody.parts import Part
from nsjax.types import Array, record

HULL_ROWS = 8
"""Largest number of contacts of a hull with a plane."""

TILT = 0.05
"""Tangent of the angle by which a plane is tilted to find the vertices on which a hull would rest."""

ROUND = 2.0 * np.pi * np.arange(HULL_ROWS - 1) / (HULL_ROWS - 1)
"""Directions in which the plane is tilted [rad]."""

MANY_VERTICES = "hull of more than `HULL_ROWS` vertices"
"""`form` of the hulls that may share a batch."""

Faces = tuple[tuple[int, int, int], ...]


@record()
class PaddedHull:
    """A hull among others of a batch: vertices (n, 3) in body axes [m] and faces (k, 3), of which the last
    ones repeat so that all hulls have as many.
    """

    vertices: Array
    faces: Array


def padded(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Pairs of shapes whose hulls, where they differ in their faces, have equal numbers of vertices and
    faces: the last ones repeat, which changes neither the nearest feature nor the deepest vertices.
    """
    return list(zip(*(_alike(x) for x in zip(*pairs, strict=True)), strict=True))


def _alike(given: Sequence[Any]) -> Sequence[Any]:
    """Shapes of one side, with hulls of equal sizes."""
    if not isinstance(given[0], Hull) or all(x.faces == given[0].faces for x in given):
        return given
    points, faces = (max(len(getattr(x, k)) for x in given) for k in ("vertices", "faces"))

    def filled(x: Any, size: int) -> Array:
        own = jnp.asarray(x, float)
        return jnp.concatenate([own, jnp.broadcast_to(own[-1], (size - own.shape[0], 3))])

    return [PaddedHull(vertices=filled(x.vertices, points), faces=filled(x.faces, faces)) for x in given]


def form(shape: Any) -> Any:
    """What hulls of a batch have in common: more than `HULL_ROWS` vertices; other shapes as they are."""
    return MANY_VERTICES if isinstance(shape, Hull) and len(shape.vertices) > HULL_ROWS else shape


def index_of(faces: Any) -> Any:
    """Indices (3, k) of the vertices of faces."""
    return np.array(faces).T if isinstance(faces, tuple) else jnp.asarray(faces).astype(int).T


class HullFeature(NamedTuple):
    """A feature of a hull: ``corners`` (3, n), one-hot rows of the three vertices of a face with outward
    orientation, the vertices of the feature first; ``size`` (), 1.0 a vertex, 2.0 an edge, 3.0 a face.
    """

    corners: Array
    size: Array


def prepared(body: str, points: Any) -> tuple[Any, Faces]:
    """Vertices (n, 3) of the convex hull of points (k, 3), and its triangles, with outward normals by the
    right-hand rule. Raises `InputError` for points that span no volume.
    """
    from scipy.spatial import ConvexHull, QhullError

    points = np.asarray(points, float)
    if points.ndim != 2 or points.shape[1] != 3 or points.shape[0] < 4:
        raise InputError(
            f"hull of {body!r}: points have shape {points.shape}; give (n, 3), four points or more"
        )
    try:
        found = ConvexHull(points)
    except QhullError:
        raise InputError(
            f"hull of {body!r}: {points.shape[0]} points span no volume; give some that do not lie in a "
            "plane with the others"
        ) from None
    kept = np.sort(found.vertices)
    a, b, c = (points[found.simplices[:, k]] for k in range(3))
    inward = np.sum(np.cross(b - a, c - a) * found.equations[:, :3], axis=1) <= 0.0
    faces = np.searchsorted(kept, np.where(inward[:, None], found.simplices[:, ::-1], found.simplices))
    return points[kept], tuple((int(i), int(j), int(k)) for i, j, k in faces)


def vertices_of(scene: Scene, body: str, x: Any) -> Array:
    """Vertices (3, n) of a hull in the axes of the ground."""
    a, columns = scene.algebra, jnp.asarray(x.vertices, float).T
    turned = a.turned(scene.frame(body).turn, columns)
    return a.many(a.add(scene.frame(body).origin, turned), columns.shape[1])


def _picked(points: Array, which: Array) -> Array:
    """Points (3, k) selected from points (3, n) by one-hot rows (k, n)."""
    return jnp.sum(points[:, None, :] * which[None], axis=2)


def _on_plane_held(scene: Scene, part: Part, numbers: Any) -> tuple[Array, Array] | None:
    """One-hot rows (8, n) of the vertices of a large hull that meet a plane, and which are no repetition:
    the deepest vertex, and the deepest ones for slightly tilted planes. None: all vertices meet it.
    """
    if np.shape(numbers.first.vertices)[0] <= HULL_ROWS:
        return None
    a, up = scene.algebra, normal_of(scene, part.bodies[1], numbers.second)
    points, normal = lax.stop_gradient((vertices_of(scene, part.bodies[0], numbers.first), a.array(up)))
    one, other = (lax.stop_gradient(a.array(x)) for x in a.tangents(a.vector(normal)))
    ways = [normal, *(normal + TILT * (np.cos(x) * one + np.sin(x) * other) for x in ROUND)]
    depths = [dot(-way[:, None], points) for way in ways]
    which = jnp.stack([first_of(x >= jnp.max(x)) for x in depths])
    return which, ~set_back(_picked(points, which), _size(points))


def _size(points: Array) -> Array:
    """Diagonal of the box around points."""
    wide = lax.stop_gradient(jnp.max(points, axis=1) - jnp.min(points, axis=1))
    return jnp.sqrt(jnp.sum(wide * wide))


def _on_plane(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    normal = scene.algebra.array(normal_of(scene, part.bodies[1], numbers.second))
    points = vertices_of(scene, part.bodies[0], numbers.first)
    near = _on_plane_held(scene, part, numbers) if near is None else near
    here = points if near is None else _picked(points, near[0])
    there = scene.algebra.many(scene.position(part.bodies[1], numbers.second.at), 1)
    gap = dot(normal[:, None], here - there)
    if near is not None:
        gap = gap + jnp.where(near[1], 0.0, _size(points))
    return ShapeContacts(gap, here, here, normal)


def _of_vertices(part: Part, numbers: Any, dimension: int) -> int:
    return min(int(np.shape(numbers.first.vertices)[0]), HULL_ROWS)


def nearest(points: Array, faces: Any, centre: Array) -> HullFeature:
    """The feature of a hull that is nearest to a point outside; for a point inside, the nearest face."""
    points, centre = lax.stop_gradient((points, centre))
    index = index_of(faces)
    look = closest_points.position_of([points[:, k] for k in index], centre)
    height, squares = look.height, look.squares.reshape(-1)
    outside = jnp.max(height) > 0.0
    above = look.over & (height > 0.0)
    least = jnp.min(jnp.where(above, height, jnp.inf))
    flat = ~outside | (least * least <= jnp.min(squares))
    face = jnp.where(outside, above & (height <= least), height >= jnp.max(height))
    edge = first_of(squares <= jnp.min(squares)).reshape(3, -1)
    which = jnp.where(flat, first_of(face), jnp.sum(edge, axis=0))
    turns, size = closest_points.first_vertex(flat, jnp.sum(edge, axis=1), jnp.sum(edge * look.shares))
    # one-hot vertices of that face (3, n), rotated so that the vertices of the feature come first
    places = jnp.sum(which[None].astype(int) * index, axis=1)
    own = (places[:, None] == np.arange(points.shape[1])).astype(float)
    corners = sum((turns[k] * jnp.roll(own, -k, axis=0) for k in range(3)), jnp.zeros_like(own))
    return HullFeature(corners, size)


def from_feature(points: Array, near: HullFeature, centre: Array) -> tuple[Array, Array]:
    """Distance of a point from a feature, negative behind a face, and the direction to the point."""
    corner = [jnp.sum(points * row[None], axis=1) for row in near.corners]
    return closest_points.from_feature(corner, near.size, centre)


def _sphere_held(scene: Scene, part: Part, numbers: Any) -> HullFeature:
    points = vertices_of(scene, part.bodies[1], numbers.second)
    return nearest(points, numbers.second.faces, scene.position(part.bodies[0], numbers.first.at))


def _sphere(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    points = vertices_of(scene, part.bodies[1], numbers.second)
    centre = scene.position(part.bodies[0], numbers.first.at)
    near = _sphere_held(scene, part, numbers) if near is None else near
    distance, normal = from_feature(points, near, centre)
    radius = 0.0 if numbers.first.radius is None else numbers.first.radius
    return ShapeContacts(distance - radius, centre - radius * normal, centre - distance * normal, normal)


KINDS = (
    PairKind("hull", "plane", _on_plane, _of_vertices, _on_plane_held, follows=True),
    PairKind("sphere", "hull", _sphere, hold=_sphere_held, follows=True),
)
