"""Pictures of a system: shapes as points in the axes of the world, at an instant.

`nsjax.System.shapes` returns a `Picture` of them; `nsjax.animate` and `nsjax.to_paraview` draw it at the
rows of a run. Points of the plane are (x, y), of space (x, y, z), in metres; a row of nan breaks a line.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.types import Array, identity, record

ROUND, AROUND, RINGS = 48, 16, 6
"""Edges of the polygons that are drawn for circles, an error of half a pixel at a radius of 250 pixels;
edges around bodies of revolution, which shading hides; rings of a half sphere.
"""

KINDS = ("line", "area", "mesh", "dots", "plane")
"""Kinds of shapes, by the meaning of their points: a polyline; a closed polygon, filled, in the plane;
corners of triangles, in space; single points; a point of a line or plane and the tip of its unit normal
there, drawn as far as all other shapes reach, or, with further points, a little beyond the ways of these.
"""

ROLES = ("body", "joint", "spring", "ground")
"""Roles of shapes, which choose their colours."""


@record(static=("name", "kind", "role", "faces", "quantity"))
class Shape:
    """A line, area, mesh or set of points that is drawn.

    Args:
        points: (n, 2) or (n, 3) at an instant [m].
        name: name of the part; or names of shapes alike, along a first axis of all their arrays.
        kind: one of `KINDS`.
        role: one of `ROLES`.
        faces: triangles of a mesh, as triples of indices of points.
        values: (n,) numbers at the points of a mesh, which give its colour; None: the colour of its role.
        quantity: label of the values, ``"name [unit]"``.
        marks: (n, 2) or (n, 3) displacements of the points in shares of the picture's diagonal: a symbol
            with the same size in every picture; None: none.
        pose: (d, d + 1) rotation matrix and place of the axes of a rigid body, in which then the points are
            given, the same in all states: pages hold them once; None: points in the axes of the world.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.shapes import Shape
        >>> Shape(points=jnp.zeros((2, 2)), name="rod").kind
        'line'
    """

    points: Array
    name: str | tuple[str, ...]
    kind: str = "line"
    role: str = "body"
    faces: tuple[tuple[int, int, int], ...] = ()
    values: Array | None = None
    quantity: str = ""
    marks: Array | None = None
    pose: Array | None = None


@record()
class Places:
    """Places where contacts act: points (nc, d) [m], unit normals (nc, d) towards the body that is pushed,
    tangents (nc, nt, d). Contacts without a place have nan.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.shapes import Places
        >>> under = jnp.array([[0.0, 0.0]])
        >>> up, along = jnp.array([[0.0, 1.0]]), jnp.array([[[1.0, 0.0]]])
        >>> Places(points=under, normals=up, tangents=along).tangents.shape
        (1, 1, 2)
    """

    points: Array
    normals: Array
    tangents: Array


@record(static=("note", "axes"))
class Picture:
    """Picture of a system at an instant.

    Args:
        shapes: one or more shapes.
        contacts: places where contact forces act; None: they are not drawn.
        magnified: factor by which small displacements are drawn larger, None: 1.
        note: name of the displacements that are magnified.
        axes: names of the coordinates.

    Example:
        >>> from nsjax.shapes import Picture, Shape, disc, level
        >>> def picture(t, q, p):  # for ``System(shapes=picture)``
        ...     ball = Shape(points=disc(0.1) + q, name="ball", kind="area")
        ...     return Picture(shapes=(ball, level((0.0, 0.0), (0.0, 1.0))))
    """

    shapes: tuple[Shape, ...]
    contacts: Places | None = None
    magnified: Array | float | None = None
    note: str = ""
    axes: tuple[str, ...] = ("x", "y", "z")


@dataclasses.dataclass(frozen=True, eq=False)
class PlacedPicture:
    """Picture in two steps, for ``System(shapes=...)``, each of which is a program of its own: places of
    bodies, and what is drawn at them. In one program the compiler repeats a chain of bodies in all shapes.

    Args:
        places: function ``(t, q, p)`` that returns a tree of arrays.
        drawn: function ``(places, t, q, p)`` that returns a `Picture`.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.shapes import Picture, PlacedPicture, Shape, disc
        >>> def drawn(at, t, q, p):
        ...     return Picture(shapes=(Shape(points=disc(0.1) + at, name="ball", kind="area"),))
        >>> ball = PlacedPicture(places=lambda t, q, p: q, drawn=drawn)
        >>> ball(0.0, jnp.zeros(2), None).shapes[0].name
        'ball'
    """

    places: Callable[..., Any]
    drawn: Callable[..., Picture]

    def __hash__(self) -> int:
        return hash((identity(self.places), identity(self.drawn)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlacedPicture):
            return NotImplemented
        mine, theirs = ((identity(x.places), identity(x.drawn)) for x in (self, other))
        return mine == theirs

    def __call__(self, t: Any, q: Any, p: Any) -> Picture:
        """The picture, as one program."""
        return self.drawn(self.places(t, q, p), t, q, p)


def points(*given: Any) -> Array:
    """Array (n, d) of points, ``given`` by d numbers or traced scalars each [m].

    Example:
        >>> from nsjax.shapes import points
        >>> points((0.0, 1.0), (2.0, 3.0)).shape
        (2, 2)
    """
    return jnp.stack([jnp.stack([jnp.asarray(x, float) for x in row]) for row in given])


def placed(local: Any, origin: Any, turn: Any = None) -> Array:
    """Points (n, d) [m] given in body axes, in the axes of the world.

    Args:
        local: (n, d) in body axes [m].
        origin: (d,) origin of the body axes [m].
        turn: angle [rad] in the plane, matrix (3, 3) in space, body to world; None: no rotation.

    Example:
        >>> from nsjax.shapes import placed
        >>> placed([(1.0, 0.0)], (0.5, 2.0)).tolist()
        [[1.5, 2.0]]
    """
    local = jnp.asarray(local, float)
    if turn is not None:
        turn = jnp.asarray(turn, float)
        if turn.ndim == 0:
            c, s = jnp.cos(turn), jnp.sin(turn)
            turn = jnp.stack([c, -s, s, c]).reshape(2, 2)
        local = jnp.sum(turn[None] * local[:, None, :], axis=2)
    return local + jnp.asarray(origin, float)


def disc(radius: Any, spoke: bool = True) -> Array:
    """Outline (n, 2) of a disc of a ``radius`` [m] around the origin, with a ``spoke`` along x, which shows
    how the disc turns.

    Example:
        >>> from nsjax.shapes import ROUND, disc
        >>> disc(0.1, spoke=False).shape == (ROUND + 1, 2)
        True
    """
    angles = np.linspace(0.0, 2.0 * np.pi, ROUND + 1)
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    whole = np.concatenate([rim, np.zeros((1, 2)), rim[:1]]) if spoke else rim
    return jnp.asarray(radius, float) * jnp.asarray(whole)


def rectangle(half_length: Any, half_height: Any) -> Array:
    """Outline (5, 2) of a rectangle with half edges ``half_length``, ``half_height`` [m] along x and y.

    Example:
        >>> from nsjax.shapes import rectangle
        >>> rectangle(0.5, 0.25)[0].tolist()
        [0.5, 0.25]
    """
    corners = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]])
    return jnp.asarray(corners) * jnp.stack(
        [jnp.asarray(half_length, float), jnp.asarray(half_height, float)]
    )


def stadium(half_length: Any, radius: Any) -> Array:
    """Outline (n, 2) of a capsule of the plane along x around the origin, of a ``radius`` [m] and with a
    ``half_length`` [m] of the axis between the centres of its half discs.

    Example:
        >>> from nsjax.shapes import stadium
        >>> float(stadium(1.0, 0.5)[:, 0].max())
        1.5
    """
    half = np.linspace(-0.5 * np.pi, 0.5 * np.pi, ROUND // 2 + 1)
    angles = np.concatenate([half, half + np.pi, half[:1]])
    ends = np.concatenate([np.ones(len(half)), -np.ones(len(half)), [1.0]])
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    shift = np.stack([ends, 0.0 * ends], axis=1)
    return jnp.asarray(radius, float) * rim + jnp.asarray(half_length, float) * shift


BOX = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
BOX_FACES = (
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
)  # fmt: skip
"""Corners of a box in units of its half edges, and its faces."""


def box(half: Any) -> Array:
    """Corners (8, 3) of a box around the origin from its ``half`` edges (3,) [m]; faces: `BOX_FACES`.

    Example:
        >>> from nsjax.shapes import BOX_FACES, Shape, box
        >>> Shape(points=box((0.3, 0.2, 0.1)), name="crate", kind="mesh", faces=BOX_FACES).points.shape
        (8, 3)
    """
    return jnp.asarray(BOX) * jnp.asarray(half, float)


@functools.cache
def lathe_faces(rings: int, around: int = AROUND) -> tuple[tuple[int, int, int], ...]:
    """Triangles between ``rings`` of ``around`` points each, one ring after the other: ``2 around (rings -
    1)`` triples of indices.

    Example:
        >>> from nsjax.shapes import lathe_faces
        >>> len(lathe_faces(4, around=8))
        48
    """
    found = []
    for r in range(rings - 1):
        for k in range(around):
            a, b = r * around + k, r * around + (k + 1) % around
            found += [(a, b, b + around), (a, b + around, a + around)]
    return tuple(found)


def lathe(heights: Any, radii: Any, along: Any = None, around: int = AROUND) -> Array:
    """Points (rings around, 3) of a body of revolution about the origin, from the ``heights`` and ``radii``
    (rings,) [m] of rings with ``around`` points each, ``along`` its axis, a unit vector (3,) (None: x).

    Example:
        >>> from nsjax.shapes import ball_rings, lathe
        >>> lathe(*ball_rings(0.1), along=(0.0, 0.0, 1.0), around=8).shape
        (104, 3)
    """
    axis = jnp.asarray([1.0, 0.0, 0.0] if along is None else along, float)
    first, second = across(axis)
    angles = 2.0 * np.pi * np.arange(around) / around
    ring = np.cos(angles)[:, None] * first + np.sin(angles)[:, None] * second
    heights, radii = jnp.asarray(heights, float), jnp.asarray(radii, float)
    found = heights[:, None, None] * axis + radii[:, None, None] * ring[None]
    return jnp.reshape(found, (-1, 3))


def across(axis: Any) -> tuple[Array, Array]:
    """Two unit vectors across a unit vector ``axis`` (3,).

    Example:
        >>> from nsjax.shapes import across
        >>> [x.tolist() for x in across((0.0, 0.0, 1.0))]
        [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    """
    axis = jnp.asarray(axis, float)
    other = jnp.where(jnp.abs(axis[0]) < 0.9, jnp.asarray([1.0, 0.0, 0.0]), jnp.asarray([0.0, 1.0, 0.0]))
    first = jnp.cross(axis, other)
    first = first / jnp.sqrt(jnp.sum(first * first))
    return first, jnp.cross(axis, first)


def ball_rings(radius: Any) -> tuple[Array, Array]:
    """Heights and radii of the rings of a sphere of a ``radius`` [m], for `lathe`.

    Example:
        >>> from nsjax.shapes import RINGS, ball_rings
        >>> len(ball_rings(0.1)[0]) == 2 * RINGS + 1
        True
    """
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RINGS + 1)
    radius = jnp.asarray(radius, float)
    return radius * np.sin(angles), radius * np.cos(angles)


def capsule_rings(radius: Any, half_length: Any) -> tuple[Array, Array]:
    """Heights and radii of the rings of a capsule of a ``radius`` and a ``half_length`` of the axis between
    the centres of its half spheres [m], for `lathe`.

    Example:
        >>> from nsjax.shapes import capsule_rings
        >>> round(float(capsule_rings(0.5, 1.0)[0].max()), 6)
        1.5
    """
    angles = np.linspace(0.0, 0.5 * np.pi, RINGS + 1)
    radius, half = jnp.asarray(radius, float), jnp.asarray(half_length, float)
    upper, width = half + radius * np.sin(angles), radius * np.cos(angles)
    return jnp.concatenate([-upper[::-1], upper]), jnp.concatenate([width[::-1], width])


def cylinder_rings(radius: Any, half_length: Any) -> tuple[Array, Array]:
    """Heights and radii of the rings of a cylinder of a ``radius`` and a ``half_length`` [m], for `lathe`.

    Example:
        >>> from nsjax.shapes import cylinder_rings
        >>> cylinder_rings(0.5, 1.0)[0].tolist()
        [-1.0, -1.0, 1.0, 1.0]
    """
    half, radius = jnp.asarray(half_length, float), jnp.asarray(radius, float)
    return half * np.array([-1.0, -1.0, 1.0, 1.0]), radius * np.array([0.0, 1.0, 1.0, 0.0])


COILS = np.stack(
    [
        np.concatenate([[0.0], np.linspace(0.15, 0.85, 13), [1.0]]),
        np.concatenate([[0.0, 0.0], np.tile([1.0, -1.0], 6)[:-1], [0.0, 0.0]]),
    ],
    axis=1,
)
"""Shares of the way and of the width (n, 2) of a drawn spring: straight ends, six coils between them."""


def zigzag(start: Any, end: Any, width: Any) -> Array:
    """Line (n, d) of a spring from ``start`` to ``end`` (d,), with coils of half width ``width`` [m].

    Example:
        >>> from nsjax.shapes import zigzag
        >>> zigzag((0.0, 0.0), (1.0, 0.0), 0.1)[-1].tolist()
        [1.0, 0.0]
    """
    start, end = jnp.asarray(start, float), jnp.asarray(end, float)
    gone = end - start
    length = jnp.sqrt(jnp.sum(gone * gone))
    unit = gone / jnp.where(length > 0.0, length, 1.0)
    if start.shape[0] == 2:
        side = jnp.stack([-unit[1], unit[0]])
    else:
        straight = jnp.asarray([1.0, 0.0, 0.0])
        side = across(jnp.where(length > 0.0, unit, straight))[0]
    along, swing = COILS.T
    return start + along[:, None] * gone + jnp.asarray(width, float) * swing[:, None] * side


def level(point: Any, normal: Any, name: str = "ground") -> Shape:
    """A floor or wall: a plane in space, or a line in the plane, that reaches as far as all other shapes;
    by a ``point`` (d,) [m], its unit ``normal`` (d,) and its ``name``.

    Example:
        >>> from nsjax.shapes import level
        >>> level((0.0, 0.0), (0.0, 1.0)).kind
        'plane'
    """
    point = jnp.asarray(point, float)
    both = jnp.stack([point, point + jnp.asarray(normal, float)])
    return Shape(points=both, name=name, kind="plane", role="ground")
