"""Terrain: heights over a regular grid, with two triangles in a cell.

At the start of a step, each point of a body searches the cells around it for the nearest face, edge or
vertex of their triangles. A ball also searches for the next two faces over which its centre lies; these
support it in a valley. The features are held during the step, so that gaps are smooth functions of heights
and positions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import shapes
from nsjax.core import InputError
from nsjax.multibody.contacts import closest_points
from nsjax.multibody.contacts.closest_pairs import POINTS
from nsjax.multibody.contacts.closest_points import ShapeContacts, first_of, set_back
from nsjax.multibody.contacts.shape import PairKind, Shape, ShapeKind
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import rotation_of, turned
from nsjax.multibody.parts import GROUND, Part, number
from nsjax.types import Array, is_traced, record

CORNERS = np.array([[[0, 0], [1, 0], [1, 1]], [[0, 0], [1, 1], [0, 1]]])
"""Vertices of both triangles of a cell, counter-clockwise from above, as grid offsets from the cell."""

POINTS_OF = {"sphere": 1, "capsule": 2, "box": 8, "corners": 8}
"""Number of points by which a shape meets terrain."""


@record()
class Heightfield:
    """Heights (nx, ny) over a rectangle [m], its half edges [m], its centre in body axes [m], and the
    rotation vector (3,) of its axes relative to the body.
    """

    heights: Array
    half_length: Array | float
    half_width: Array | float
    at: Array | None = None
    turned: Array | None = None


class TerrainFeatures(NamedTuple):
    """Features of terrain that meet a point.

    Args:
        places: (3, 2, k) grid indices of the vertices of the triangles; the vertices of the feature first.
        size: (k,) 1.0 a vertex, 2.0 an edge, 3.0 a face.
        side: () 1.0 for a point above the terrain, -1.0 below it.
        back: (k,) addition that opens the gap of a row without a contact, to the sum of half edges [m].
    """

    places: Array
    size: Array
    side: Array
    back: Array


def heightfield(
    body: str, heights: Any, half_length: Any, half_width: Any, *, at: Any = None, turned: Any = None
) -> Shape:
    """Terrain in space: heights over a regular grid, solid below.

    The height at ``(x_i, y_j)`` is ``heights[i, j]``, with ``x_i = half_length (2 i / (nx - 1) - 1)`` and
    ``y_j = half_width (2 j / (ny - 1) - 1)``. A cell has two triangles, which meet between its corners
    ``(i, j)`` and ``(i + 1, j + 1)``, as terrain of MuJoCo has.

    Args:
        body: name of the body that carries the terrain, ``"ground"`` for instance.
        heights: (nx, ny) above the origin of the terrain's axes, along z [m].
        half_length, half_width: half edges of the grid along x and y [m].
        at: centre of the grid in body axes [m].
        turned: rotation vector (3,) of the terrain's axes relative to the body [rad].

    Raises:
        InputError: for less than two rows or columns of heights, and edges that are not positive.

    Limits: a centre or point beside the grid has no contact. Boxes meet the terrain with their corners and
    capsules with both ends only: a peak may stand between these. A gap larger than the spacing of the grid
    is not that of the nearest point. A ball is compared with all cells within its radius. Each contact has
    heights of its own: varied heights act in one contact only.

    Source: *MuJoCo documentation*, XML reference, asset/hfield (the triangles of a cell); [Ericson,
    *Real-Time Collision Detection*, 5.1.5] (closest points).

    Example:
        >>> import numpy as np
        >>> from nsjax.multibody import contact, heightfield, sphere
        >>> x = np.linspace(-2.0, 2.0, 21)
        >>> hills = 0.1 * np.sin(2.0 * x)[:, None] * np.cos(x)[None, :]
        >>> ground = heightfield("ground", hills, 2.0, 2.0)
        >>> contact("floor", sphere("ball", 0.1), ground, friction=0.5).bodies
        ('ball', 'ground')
    """
    heights = number("heightfield", body, "heights", heights)
    if np.ndim(heights) != 2 or min(np.shape(heights)) < 2:
        raise InputError(
            f"heightfield of {body!r}: heights have shape {np.shape(heights)}; give "
            "(n, m), two or more each way"
        )
    edges = {"half_length": half_length, "half_width": half_width}
    kept = {k: number("heightfield", body, k, x) for k, x in edges.items()}
    for name, x in kept.items():
        if not is_traced(x) and not x > 0.0:
            raise InputError(f"heightfield of {body!r}: {name} = {x}; give a length above zero")
    own = Heightfield(
        heights=heights, at=number("heightfield", body, "at", at),
        turned=number("heightfield", body, "turned", turned), **kept,
    )  # fmt: skip
    return Shape("heightfield", body, own)


def _steps(x: Heightfield) -> tuple[Array, Array]:
    """Half edges (2,) of the grid and its spacings (2,) [m]."""
    half = jnp.stack([jnp.asarray(x.half_length, float), jnp.asarray(x.half_width, float)])
    return half, 2.0 * half / (np.array(np.shape(x.heights)) - 1.0)


def _vertices(x: Heightfield, places: Array) -> list[Array]:
    """Three vertices (3, ...) of triangles, from their grid indices (3, 2, ...)."""
    half, step = _steps(x)
    heights = jnp.asarray(x.heights, float)
    return [
        jnp.stack([p[0] * step[0] - half[0], p[1] * step[1] - half[1], heights[p[0], p[1]]]) for p in places
    ]


def _turn(scene: Scene, part: Part, x: Heightfield) -> Any:
    """Rotations of the terrain's axes: of its body against the ground, and of the axes in the body."""
    return scene.frame(part.bodies[1]).turn, rotation_of(x.turned)


def _back(turn: Any) -> Any:
    """The inverse rotation; None: no rotation."""
    return None if turn is None else turn.T


def _seen(scene: Scene, part: Part, numbers: Any) -> Array:
    """Points of the first shape (3, n) in the axes of the terrain."""
    a, x = scene.algebra, numbers.second
    points = a.array(POINTS[part.option("shapes")[0]](scene, part.bodies[0], numbers.first))
    points = points[:, None] if points.ndim == 1 else points
    body, own = _turn(scene, part, x)
    separation = points - scene.position(part.bodies[1], x.at)[:, None]
    return turned(_back(own), turned(_back(body), separation))


def _triangle(number: Array, wide: int) -> Array:
    """Grid indices (3, 2) of the vertices of a triangle, from its number."""
    cell, other = number // 2, number % 2 == 1
    return jnp.stack([cell // wide, cell % wide]) + jnp.where(other, CORNERS[1], CORNERS[0])


def _above(x: Heightfield, point: Array) -> tuple[Array, Array]:
    """Height of a point (3,) above the triangle below it, and whether the point is over the grid."""
    half, step = _steps(x)
    many = np.array(np.shape(x.heights))
    share = (point[:2] + half) / step
    cell = jnp.clip(jnp.floor(share).astype(int), 0, many - 2)
    u, v = share - cell
    wide = int(many[1]) - 1
    corner = _triangle(2 * (cell[0] * wide + cell[1]) + (v > u), wide)
    a, b, c = (k[2] for k in _vertices(x, corner))
    height = jnp.where(v > u, a + v * (c - a) + u * (b - c), a + u * (b - a) + v * (c - b))
    return point[2] - height, jnp.all(jnp.abs(point[:2]) <= half)


def _window(x: Heightfield, point: Array, radius: Any) -> tuple[Array, Array]:
    """Indices (2,) of the first and of the last cell within a radius and a spacing of a point."""
    half, step = _steps(x)
    last = np.array(np.shape(x.heights)) - 2
    ends = (point[:2] + way * (radius + step) + half for way in (-1.0, 1.0))
    low, high = (jnp.clip(jnp.floor(y / step).astype(int), 0, last) for y in ends)
    return low, high


def _looked(
    x: Heightfield, number: Array, point: Array, side: Array
) -> tuple[closest_points.TrianglePosition, Array]:
    """Distances of a point from a triangle, and whether the point is over its face on the given side."""
    corner = [k[:, None] for k in _vertices(x, _triangle(number, x.heights.shape[1] - 1))]
    found = closest_points.position_of(corner, point)
    return found, (found.over & (found.height * side >= 0.0))[0]


def _searched(x: Heightfield, point: Array, radius: Any, many: int) -> TerrainFeatures:
    """The nearest feature of the triangles around a point (3,), and ``many - 1`` more faces."""
    above, inside = _above(x, point)
    side = jnp.where(above < 0.0, -1.0, 1.0)
    low, high = _window(x, point, radius)
    wide, across = x.heights.shape[1] - 1, high[1] - low[1] + 1

    def one(k: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        cell = (low[0] + k // across) * wide + low[1] + k % across
        for which in (2 * cell, 2 * cell + 1):
            found, over = _looked(x, which, point, side)
            face = found.height[0] ** 2
            nearest = jnp.where(over, face, jnp.min(found.squares))
            best = _inserted(best, nearest, jnp.where(over, face, jnp.inf), which)
        return best

    behind = many if many > 1 else 0
    none = jnp.full(1 + behind, jnp.inf), jnp.zeros(1 + behind, int)
    squares, numbers = lax.fori_loop(0, (high[0] - low[0] + 1) * across, one, none)
    if behind:  # the first of the faces may be the nearest feature
        same = (numbers[1] == numbers[0]) & jnp.isfinite(squares[1])
        squares, numbers = (jnp.where(same, y[1:], y[:-1]) for y in (squares, numbers))
    places, sizes = jax.vmap(lambda k: _feature(x, k, point, side), 0, -1)(numbers)
    away, feet, _ = jax.vmap(lambda y, n: _foot(x, y, n, point), -1, -1)(places, sizes)
    kept = jnp.isfinite(squares) & inside & ~set_back(feet, jnp.sum(_steps(x)[1]))
    away = jnp.where(sizes > 2.5, away, side * away)
    return TerrainFeatures(places, sizes, side, jnp.where(kept, 0.0, jnp.sum(_steps(x)[0]) + radius - away))


def _feature(x: Heightfield, number: Array, point: Array, side: Array) -> tuple[Array, Array]:
    """Grid indices (3, 2) of a triangle's vertices, those of the nearest feature first; their number."""
    found, over = _looked(x, number, point, side)
    least = found.squares[:, 0]
    edge = first_of(least <= jnp.min(least))
    turns, size = closest_points.first_vertex(over, edge, jnp.sum(edge * found.shares[:, 0]))
    places = _triangle(number, x.heights.shape[1] - 1)
    return sum((turns[k].astype(int) * jnp.roll(places, -k, axis=0) for k in range(3)), 0 * places), size


def _foot(x: Heightfield, places: Array, size: Array, point: Array) -> tuple[Array, Array, Array]:
    """Distance of a point from a feature, the foot on the feature, and the direction from the foot."""
    away, way = closest_points.from_feature(_vertices(x, places), size, point)
    return away, point - away * way, way


def _inserted(best: tuple[Array, Array], nearest: Array, face: Array, number: Array) -> tuple[Array, Array]:
    """The least squared distance so far, followed by the sorted ones of faces, after one more triangle."""
    squares, numbers = best
    new = jnp.concatenate([nearest[None], jnp.full(squares.shape[0] - 1, face)])
    before = new < squares
    shifted = jnp.concatenate([jnp.zeros(2, bool), before[1:-1]])[: squares.shape[0]]

    def placed(own: Array, new: Array) -> Array:
        moved = jnp.concatenate([own[:1], own[:-1]])
        return jnp.where(shifted, moved, jnp.where(before, new, own))

    return placed(squares, new), placed(numbers, jnp.full(squares.shape[0], number))


def _many(part: Part, numbers: Any) -> int:
    """Number of contacts of each point, or ball: with the nearest feature, and with two more faces."""
    return 1 if getattr(numbers.first, "radius", None) is None else 3


def _held(scene: Scene, part: Part, numbers: Any) -> TerrainFeatures:
    points, x = lax.stop_gradient((_seen(scene, part, numbers), numbers.second))
    radius = lax.stop_gradient(_radius(numbers))
    many = _many(part, numbers)
    return jax.vmap(lambda point: _searched(x, point, radius, many), 1, -1)(points)


def _radius(numbers: Any) -> Any:
    radius = getattr(numbers.first, "radius", None)
    return 0.0 if radius is None else radius


def _meet(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    x, points, radius = numbers.second, _seen(scene, part, numbers), _radius(numbers)
    near = _held(scene, part, numbers) if near is None else near

    def one(point: Array, near: TerrainFeatures) -> tuple[Array, Array]:
        away, _, way = jax.vmap(lambda y, n: _foot(x, y, n, point), -1, -1)(near.places, near.size)
        over = jnp.where(near.size > 2.5, 1.0, near.side)
        return over * away, over * way

    away, normal = jax.vmap(one, -1, -2)(points, near)
    many = near.size.shape[0]
    here = jnp.repeat(points, many, axis=1)
    away, normal = away.reshape(-1), normal.reshape(3, -1)
    here = here - radius * normal
    there = here - (away - radius) * normal
    body, own = _turn(scene, part, x)
    origin = scene.position(part.bodies[1], x.at)[:, None]
    here, there, normal = (turned(body, turned(own, y)) for y in (here, there, normal))
    return ShapeContacts(away - radius + near.back.T.reshape(-1), origin + here, origin + there, normal)


def _count(part: Part, numbers: Any, dimension: int) -> int:
    kind = part.option("shapes")[0]
    own = int(np.shape(numbers.first.at)[0]) if kind == "points" else POINTS_OF[kind]
    return own * _many(part, numbers)


def _drawn(scene: Scene, name: str, body: str, x: Any) -> tuple[shapes.Shape, ...]:
    """The triangles of terrain, for pictures."""
    many = np.shape(x.heights)
    places = np.stack(np.meshgrid(*(np.arange(k) for k in many), indexing="ij")).reshape(2, -1)
    points = _vertices(x, jnp.asarray(places)[None])[0]
    points = turned(scene.frame(body).turn, turned(rotation_of(x.turned), points))
    cells = np.stack(np.meshgrid(*(np.arange(k - 1) for k in many), indexing="ij")).reshape(2, -1).T
    corner = cells[:, None, None, :] + CORNERS[None]
    faces = (corner[..., 0] * many[1] + corner[..., 1]).reshape(-1, 3)
    role = "ground" if body == GROUND else "body"
    rows = (scene.position(body, x.at)[:, None] + points).T
    return (
        shapes.Shape(
            points=rows, name=name, kind="mesh", role=role,
            faces=tuple((int(a), int(b), int(c)) for a, b, c in faces),
        ),
    )  # fmt: skip


PAIRS = tuple(
    PairKind(x, "heightfield", _meet, _count, _held, follows=True)
    for x in ("sphere", "points", "corners", "box", "capsule")
)

KIND = ShapeKind(
    "heightfield", _drawn, PAIRS,
    instead=((2, "a heightfield is spatial; use planes, or spheres of the ground"),),
)  # fmt: skip


# Highest points of terrain in blocks of cells: a lower bound of the gap between terrain and a shape.


@record()
class BlockedHeightfield(Heightfield):
    """Terrain with the highest points ``tops`` (k, l) of its blocks [m], their edges ``width`` (2,) and the
    smaller spacing of the grid ``spacing`` () [m].
    """

    tops: Array
    width: Array
    spacing: Array


def with_blocks(x: Any) -> Any:
    """Terrain with its blocks; other shapes as they are."""
    if not isinstance(x, Heightfield):
        return x
    heights = lax.stop_gradient(jnp.asarray(x.heights, float))
    cells = np.array(heights.shape) - 1
    # largest number of blocks along an edge of terrain: a bound compares with 256 numbers at most
    size = -(-cells // 16)
    many = -(-cells // size)
    highest = jnp.maximum(heights[:-1], heights[1:])
    highest = jnp.maximum(highest[:, :-1], highest[:, 1:])
    lack = [(0, int(k)) for k in many * size - cells]
    filled = jnp.pad(highest, lack, constant_values=-jnp.inf)
    tops = jnp.max(filled.reshape(many[0], size[0], many[1], size[1]), axis=(1, 3))
    half = lax.stop_gradient(jnp.stack([jnp.asarray(k, float) for k in (x.half_length, x.half_width)]))
    spacing: Array = 2.0 * half / cells
    own = {k: getattr(x, k) for k in ("heights", "half_length", "half_width", "at", "turned")}
    return BlockedHeightfield(**own, tops=tops, width=spacing * size, spacing=jnp.min(spacing))


def above(terrain: BlockedHeightfield, centre: Array, wide: Array, radius: Array) -> Array:
    """Lower bound of the gap of a shape to terrain [m].

    Of the features of the terrain, those within ``room = radius + spacing`` of the shape, measured along
    both horizontal axes, lie below the highest top of the blocks there; all others are farther away than
    ``room``. A shape beside the grid has no contact. Hence::

        gap >= max(beside, min(room, lowest point of the shape - highest top))

    Args:
        terrain: with blocks.
        centre: of the shape (3,) in the axes of the terrain [m].
        wide: half widths (3,) of the shape along these axes [m].
        radius: of a sphere around the shape [m].
    """
    half = jnp.stack([jnp.asarray(k, float) for k in (terrain.half_length, terrain.half_width)])
    beside = jnp.max(jnp.abs(centre[:2]) - wide[:2] - half)
    room, over = radius + terrain.spacing, []
    for k, many in enumerate(terrain.tops.shape):
        low = np.arange(many) * terrain.width[k] - half[k]
        away = jnp.maximum(low - centre[k], centre[k] - low - terrain.width[k])
        over.append(away <= wide[k] + room)
    top = jnp.max(jnp.where(over[0][:, None] & over[1][None, :], terrain.tops, -jnp.inf))
    height = centre[2] - wide[2] - top
    return jnp.maximum(beside, jnp.minimum(room, height))
