"""Contacts of convex solids with corners: hulls and boxes, and capsules on hulls.

At the start of a step the nearest features of both solids are searched. Overlapping solids are first moved
apart along the axis of least depth: the normal of a face of either, then the direction between the nearest
points of the separated solids, if the depth along it is less. Further contacts are the features that would
meet if one solid were tilted slightly: corners and crossings of edges that support a face on a face. The
features are held during the step; gaps are smooth functions of their vertices [Gilbert, Johnson, Keerthi
1988, *A fast procedure for computing the distance between complex objects*, IEEE J. Robot. Autom. 4(2)].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts import boxes, closest_points
from nsjax.multibody.contacts.closest_pairs import CORNERS, POINTS
from nsjax.multibody.contacts.closest_points import (
    COINCIDE,
    ShapeContacts,
    dot,
    first_of,
    lengthened,
    set_back,
    sign,
)
from nsjax.multibody.contacts.hulls import HULL_ROWS, ROUND, TILT, Faces, index_of, vertices_of
from nsjax.multibody.contacts.shape import PairKind
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.types import Array

APART = 1e-2
"""Distance to which solids are moved apart for the search, relative to the size of the smaller one: a fifth
of `TILT`, so that a tilt brings corners and edges nearer than the rest of a face; and large enough for the
rounding of squared distances.
"""

NUDGE = COINCIDE
"""Tilt that decides between parallel features [rad]. It changes distances of points by `COINCIDE` relative
to the size of a solid, which bounds the error of a gap. The squared distance changes by the relative amount
``2 NUDGE / APART = 2e-4``, far above what a further vertex must bring, see `_nearest`.
"""

TABLE = 4096
"""Products of faces and vertices up to which all heights are compared; beyond, vertices bound them."""


FACES_OF_TETRAHEDRON = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]).T


class Solid(NamedTuple):
    """Vertices (3, n) in the axes of the ground, indices (k, 3) of the corners of its faces, radius [m]."""

    points: Array
    faces: Any
    radius: Any


class Simplex(NamedTuple):
    """Nearest feature of the difference of two solids: indices (3,) of vertices of both, of which the first
    ``size`` count, and the vector ``apart`` (3,) between the nearest points.
    """

    first: Array
    second: Array
    size: Array
    apart: Array


class SolidFeatures(NamedTuple):
    """Features of two solids that meet, for k contacts.

    Args:
        first, second: (3, k) indices of the vertices of both solids.
        kind: (k,) 0.0 two vertices or an edge and a vertex, 1.0 a vertex of the first on a face of the
            second, 2.0 a face of the first on a vertex of the second, 3.0 two edges.
        edge: (2, k) whether an edge of the first, and of the second, meets a vertex.
        normal: (3, k) from the second to the first.
        outside: (k,) whether the solids were so far apart that nearest points give the normal.
        back: (k,) addition to the gap where a row has no contact [m]; else zero.
    """

    first: Array
    second: Array
    kind: Array
    edge: Array
    normal: Array
    outside: Array
    back: Array


def _box_faces() -> Faces:
    """Indices of three corners of every face of a box, with the outward normal by the right-hand rule."""
    signs, found = CORNERS[3], []
    for axis in range(3):
        for way in (-1.0, 1.0):
            a, b, c = (int(k) for k in np.flatnonzero(signs[:, axis] == way)[:3])
            out = np.cross(signs[b] - signs[a], signs[c] - signs[a])[axis] * way > 0.0
            found.append((a, b, c) if out else (a, c, b))
    return tuple(found)


BOX_FACES = _box_faces()


def _solid(scene: Scene, body: str, kind: str, x: Any) -> Solid:
    if kind == "hull":
        return Solid(vertices_of(scene, body, x), x.faces, 0.0)
    points = scene.algebra.array(POINTS[kind](scene, body, x))
    if kind == "box":
        return Solid(points, BOX_FACES, 0.0)
    return Solid(points, (), x.radius)


def _solids(scene: Scene, part: Part, numbers: Any) -> tuple[Solid, Solid]:
    both = zip(part.bodies, part.option("shapes"), (numbers.first, numbers.second), strict=True)
    one, other = (_solid(scene, *x) for x in both)
    return one, other


def _least_deep(one: Solid, other: Solid) -> tuple[Array, Array]:
    """Largest separation along the normals of all faces, and its direction towards the first solid."""
    found = []
    for solid, against, way in ((other, one, 1.0), (one, other, -1.0)):
        if len(solid.faces):
            a, b, c = (solid.points[:, k] for k in index_of(solid.faces))
            _, normal = lengthened(space.cross(b - a, c - a), jnp.zeros((3, 1)))
            room, which = _above_faces(normal, dot(normal, a), against.points)
            found.append((room, way * jnp.sum(normal * which, axis=1)))
    if len(found) == 1:
        return found[0]
    (room, normal), (rest, instead) = found
    return jnp.maximum(room, rest), jnp.where(room >= rest, normal, instead)


def _above_faces(normal: Array, level: Array, points: Array) -> tuple[Array, Array]:
    """Least height of points (3, n) above the face of a solid where it is largest, and this face (k,),
    one-hot. Normals (3, k) and levels (k,) are those of the faces.
    """
    if normal.shape[1] * points.shape[1] <= TABLE:
        heights = jnp.sum(normal[:, :, None] * points[:, None, :], axis=0)
        room = jnp.min(heights, axis=1) - level
        return jnp.max(room), first_of(room >= jnp.max(room))

    def lower(x: tuple[Array, Array]) -> tuple[Array, Array]:
        bound, _ = x
        face = jnp.argmax(bound)
        deepest = jnp.argmin(dot(_column(normal, face)[:, None], points))
        # the heights of any point bound all faces, and those of the deepest one are exact for its face
        less = jnp.minimum(bound, dot(normal, _column(points, deepest)[:, None]) - level)
        return less, jnp.max(less) < jnp.max(bound)

    start = dot(normal, points[:, :1]) - level, jnp.ones((), bool)
    bound, _ = lax.while_loop(lambda x: x[1], lower, start)
    return jnp.max(bound), first_of(bound >= jnp.max(bound))


def _along(one: Array, other: Array, normal: Array) -> Array:
    """Separation of points along a direction."""
    return jnp.min(dot(normal[:, None], one)) - jnp.max(dot(normal[:, None], other))


def _column(points: Array, place: Array) -> Array:
    return jnp.sum(jnp.where(jnp.arange(points.shape[1]) == place, points, 0.0), axis=1)


def _reduced(one: Array, other: Array, first: Array, second: Array) -> Simplex:
    """The feature, nearest to the origin outside, of the tetrahedron of four differences of vertices."""
    y = jnp.stack([_column(one, i) - _column(other, j) for i, j in zip(first, second, strict=True)], axis=1)
    look = closest_points.position_of([y[:, k] for k in FACES_OF_TETRAHEDRON], jnp.zeros(3))
    over = jnp.where(look.over, look.height**2, jnp.inf)
    flat = jnp.min(over) <= jnp.min(look.squares)
    edge = first_of(look.squares.reshape(-1) <= jnp.min(look.squares)).reshape(3, 4)
    which = jnp.where(flat, first_of(over <= jnp.min(over)), jnp.sum(edge, axis=0))
    turns, size = closest_points.first_vertex(flat, jnp.sum(edge, axis=1), jnp.sum(edge * look.shares))
    place = jnp.sum(FACES_OF_TETRAHEDRON * which[None].astype(int), axis=1)
    place = sum((turns[k].astype(int) * jnp.roll(place, -k) for k in range(3)), 0 * place)
    # unused indices repeat the first vertex
    place = jnp.where(jnp.arange(3) < size, place, place[0])
    away, way = closest_points.from_feature([_column(y, k) for k in place], size, jnp.zeros(3))
    first, second = (
        jnp.sum(jnp.where(place[:, None] == jnp.arange(4), x[None], 0), axis=1) for x in (first, second)
    )
    return Simplex(first, second, size, -away * way)


def _nearest(one: Array, other: Array, normal: Array) -> Simplex:
    """The nearest features of points (3, n) and (3, m) that lie apart along ``normal``."""

    def support(way: Array) -> tuple[Array, Array]:
        return jnp.argmin(dot(way[:, None], one)), jnp.argmax(dot(way[:, None], other))

    def far(x: tuple[Array, Simplex, Array]) -> Array:
        # largest number of vertices of the difference of both solids that the search visits; it ends
        # earlier where no vertex is nearer
        return (x[0] < 40) & x[2]

    def step(x: tuple[Array, Simplex, Array]) -> tuple[Array, Simplex, Array]:
        k, now, _ = x
        i, j = support(now.apart)
        square = dot(now.apart, now.apart)
        gain = square - dot(now.apart, _column(one, i) - _column(other, j))
        new = _reduced(one, other, jnp.append(now.first, i), jnp.append(now.second, j))
        # a further vertex brings fifty times the rounding eps / APART**2 = 2e-12 of the squared distance
        better = (gain > 1e-10 * square) & (dot(new.apart, new.apart) < square)
        return k + 1, jax.tree.map(lambda a, b: jnp.where(better, a, b), new, now), better

    i, j = support(normal)
    start = Simplex(jnp.full(3, i), jnp.full(3, j), jnp.ones(()), _column(one, i) - _column(other, j))
    return lax.while_loop(far, step, (jnp.zeros((), int), start, jnp.ones((), bool)))[1]


def _second(x: Array) -> Array:
    """The second distinct index of three."""
    return jnp.where(x[1] != x[0], x[1], x[2])


def _features(x: Simplex) -> tuple[Array, Array, Array, Array]:
    """Entries ``first``, ``second``, ``kind`` and ``edge`` of `SolidFeatures`, from a nearest feature."""
    whole = x.size > 2.5
    many = [1 + (y[1] != y[0]) + ((y[2] != y[0]) & (y[2] != y[1])) for y in (x.first, x.second)]
    face = jnp.where(many[0] == 3, 2.0, jnp.where(many[1] == 3, 1.0, 3.0))
    kind = jnp.where(whole, face, 0.0)
    edge = jnp.stack([many[0] > 1, (many[1] > 1) & (many[0] == 1)])
    first, second = (
        jnp.where(kind == 3.0, jnp.stack([y[0], _second(y), y[2]]), y) for y in (x.first, x.second)
    )
    return first, second, kind, edge


def _tilts(normal: Array, along: Array | None) -> Array:
    """Rotation vectors (3, k) of the first solid: one that decides between parallel features, the tilts."""
    one, other = (jnp.asarray(x) for x in space.tangents(normal))
    nudge = NUDGE * (0.8 * one + 0.6 * other)
    if along is None:
        ways = [TILT * (float(np.cos(x)) * one + float(np.sin(x)) * other) for x in ROUND]
    else:
        _, across = lengthened(space.cross(normal, along), one)
        ways = [TILT * across, -TILT * across]
    return jnp.stack([nudge, *ways], axis=1)


def _held(scene: Scene, part: Part, numbers: Any) -> SolidFeatures:
    one, other = _solids(scene, part, numbers)
    a, b = lax.stop_gradient((one.points, other.points))
    sizes = [jnp.sqrt(jnp.sum((jnp.max(x, axis=1) - jnp.min(x, axis=1)) ** 2)) for x in (a, b)]
    size = jnp.where(sizes[0] < sizes[1], sizes[0], sizes[1])
    room, normal = _least_deep(one._replace(points=a), other._replace(points=b))

    def moved(points: Array, room: Array, normal: Array) -> Array:
        lack = APART * size - room
        return points + jnp.where(lack > 0.0, lack, 0.0) * normal[:, None]

    def nearer(_: Array, x: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        room, normal, _ = x
        found = _nearest(moved(a, room, normal), b, normal)
        _, way = lengthened(found.apart, normal)
        deep = _along(a, b, way)
        better = deep > room
        return jnp.where(better, deep, room), jnp.where(better, way, normal), found.first[0]

    # directions tried one after the other for the least depth, each between the nearest points of the
    # solids moved apart along the last one
    room, normal, vertex = lax.fori_loop(0, 4, nearer, (room, normal, jnp.zeros((), int)))
    middle = _column(a, vertex)

    def tilted(turn: Array) -> Simplex:
        arm = a - middle[:, None]
        points = middle[:, None] + arm + space.cross(turn[:, None], arm)
        return _nearest(moved(points, _along(points, b, normal), normal), b, normal)

    turns = _tilts(normal, a[:, 1] - a[:, 0] if not len(one.faces) else None)
    places = jax.vmap(tilted, 1, 0)(turns)
    first, second, kind, edge = jax.vmap(_features, 0, -1)(places)
    many = kind.shape[0]
    # distance, relative to sizes and coordinates, from which on the nearest points give the normal: their
    # rounding turns it by eps / directed = 2e-11 at most; that of points 6e-10 m apart was off by 3e-8
    directed = 1e-5
    near = SolidFeatures(
        first, second, kind, edge, jnp.broadcast_to(normal[:, None], (3, many)),
        jnp.full(many, room > directed * (size + jnp.max(jnp.abs(middle)))), jnp.zeros(many),
    )  # fmt: skip
    contact = _between(one._replace(points=a), other._replace(points=b), near)
    # cosine of the largest angle, 26 degrees, between the normals of further contacts and of the first:
    # nine times the tilt of the search. Features with a larger angle are another contact of the same
    # solids and do not support this face
    lean = (dot(contact.normal, normal[:, None]) < 0.9) & (np.arange(many) > 0)
    back = set_back(jnp.concatenate([contact.here, contact.there]), size) | lean
    wide = sizes[0] + sizes[1] + one.radius
    return near._replace(back=lax.stop_gradient(jnp.where(back, wide - contact.gap, 0.0)))


def _between(one: Solid, other: Solid, near: SolidFeatures) -> ShapeContacts:
    """Contacts of held features."""

    def place(near: SolidFeatures) -> tuple[Array, Array, Array, Array]:
        a, b = (
            [_column(points, k) for k in own]
            for points, own in ((one.points, near.first), (other.points, near.second))
        )
        ways = []
        for x in (b, a):
            _, way = lengthened(space.cross(x[1] - x[0], x[2] - x[0]), near.normal)
            ways.append(sign(dot(way, near.normal)) * way)
        # a vertex and an edge, or two vertices
        shares = []
        for x, point, edge in ((a, b[0], near.edge[0]), (b, a[0], near.edge[1])):
            along = x[1] - x[0]
            share = dot(point - x[0], along) / jnp.where(edge, dot(along, along), 1.0)
            share = jnp.where(near.outside, share, lax.stop_gradient(share))
            shares.append(x[0] + jnp.where(edge, share, 0.0) * along)
        length, way = lengthened(shares[0] - shares[1], near.normal)
        way = jnp.where(near.outside, way, near.normal)
        gap = jnp.where(near.outside, length, dot(near.normal, shares[0] - shares[1]))
        # two edges
        lines = [lengthened(x[1] - x[0], near.normal)[1] for x in (a, b)]
        skew = boxes.skewed(lines[0], lines[1], near.normal)
        crossed = boxes.nearest_points(a[0], lines[0], b[0], lines[1], skew)
        heights = [dot(n, a[0] - b[0]) for n in (*ways, skew)]
        kinds = [near.kind == k for k in (0.0, 1.0, 2.0)]

        def chosen(*given: Array) -> Array:
            return jnp.select(kinds, given[:3], given[3])

        return (
            chosen(gap, heights[0], heights[1], heights[2]),
            chosen(shares[0], a[0], b[0] + heights[1] * ways[1], crossed[0]),
            chosen(shares[1], a[0] - heights[0] * ways[0], b[0], crossed[1]),
            chosen(way, *ways, skew),
        )

    gap, here, there, normal = jax.vmap(place, -1, -1)(near)
    return ShapeContacts(gap - one.radius + near.back, here - one.radius * normal, there, normal)


def _meet(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    near = _held(scene, part, numbers) if near is None else near
    return _between(*_solids(scene, part, numbers), near)


KINDS = (
    *(PairKind(x, "hull", _meet, HULL_ROWS, _held, follows=True) for x in ("hull", "box")),
    PairKind("capsule", "hull", _meet, 3, _held, follows=True),
)
