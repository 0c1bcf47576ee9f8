"""Signed distances of many points from closed outlines and surfaces, positive outside, in numpy.

From polygons and triangles they are exact. The side of a surface is that of the pseudo-normal of its
nearest face, edge or vertex, which is right for every closed surface whose triangles face outward
[Baerentzen and Aanaes, IEEE Trans. Vis. Comput. Graph. 11 (2005)].
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from nsjax.core import InputError
from nsjax.multibody.contacts import curves
from nsjax.multibody.meshes import checked, fewer

Faces = tuple[tuple[int, int, int], ...]


def _array(content: bytes, width: int) -> np.ndarray:
    return np.frombuffer(content, float).reshape(-1, width)


@dataclasses.dataclass(frozen=True)
class Polygon:
    """A closed polygon. ``content``: vertices (n, 2) counter-clockwise, as bytes."""

    content: bytes

    @property
    def points(self) -> np.ndarray:
        """Vertices (n, 2) [m]."""
        return _array(self.content, 2)

    @property
    def drawn(self) -> tuple[np.ndarray, Faces]:
        """Points that pictures show, and triangles between them."""
        return np.concatenate([self.points, self.points[:1]]), ()

    def distance(self, x: np.ndarray) -> np.ndarray:
        """Of points (k, 2)."""
        least, inside = np.full(len(x), np.inf), np.zeros(len(x), bool)
        for a, b in zip(self.points, np.roll(self.points, -1, axis=0), strict=True):
            way, apart = b - a, x - a
            share = np.clip(apart @ way / (way @ way), 0.0, 1.0)
            least = np.minimum(least, np.sum((apart - share[:, None] * way) ** 2, axis=1))
            astride = (x[:, 1] < a[1]) != (x[:, 1] < b[1])
            left = way[0] * apart[:, 1] > way[1] * apart[:, 0]
            inside ^= astride & (left == (b[1] > a[1]))
        return np.where(inside, -1.0, 1.0) * np.sqrt(least)


@dataclasses.dataclass(frozen=True)
class Spline:
    """A closed smooth curve; ``content``: control points (n, 2) of a periodic cubic spline, as bytes."""

    content: bytes

    @functools.cached_property
    def points(self) -> np.ndarray:
        """Points (4 n, 2) of the curve [m]."""
        control: Any = _array(self.content, 2)
        places = np.arange(4 * len(control)) / 4.0
        return np.asarray(jax.vmap(lambda s: curves.evaluated(control, s)[0])(places))

    @property
    def drawn(self) -> tuple[np.ndarray, Faces]:
        """Points that pictures show, and triangles between them."""
        return np.concatenate([self.points, self.points[:1]]), ()

    def distance(self, x: np.ndarray) -> np.ndarray:
        """Of points (k, 2)."""
        return np.asarray(_from_spline(_array(self.content, 2), x))


@jax.jit
def _from_spline(control: Any, x: Any) -> Any:
    def one(point: Any) -> Any:
        return curves.closest(control, point, curves.searched(control, point))[0]

    return jax.lax.map(one, x, batch_size=1024)


@dataclasses.dataclass(frozen=True)
class Given:
    """A function of points (k, d) that returns their signed distances (k,) [m]."""

    function: Callable[[np.ndarray], Any]
    name: str

    @property
    def points(self) -> np.ndarray:
        """No points are known."""
        return np.zeros((0, 0))

    @property
    def drawn(self) -> tuple[np.ndarray, Faces]:
        """Nothing."""
        return self.points, ()

    def distance(self, x: np.ndarray) -> np.ndarray:
        """Of points (k, d)."""
        found = np.asarray(self.function(x), float)
        if found.shape != x.shape[:1] or not np.all(np.isfinite(found)):
            raise InputError(
                f"{self.name}: of points {x.shape} the function gives distances {found.shape}; let it give "
                f"finite ones {x.shape[:1]}"
            )
        return found


@dataclasses.dataclass(frozen=True)
class SurfaceTriangles:
    """A closed surface of triangles. ``content``, ``numbers``: points (n, 3), and triples (m, 3) of their
    indices, counter-clockwise from outside, as bytes.
    """

    content: bytes
    numbers: bytes

    @functools.cached_property
    def corners(self) -> np.ndarray:
        """Corners (m, 3, 3) of all triangles [m]."""
        return _array(self.content, 3)[self.index]

    @property
    def index(self) -> np.ndarray:
        """Indices (m, 3) of their corners."""
        return np.frombuffer(self.numbers, np.int64).reshape(-1, 3)

    @property
    def points(self) -> np.ndarray:
        """Points (n, 3) [m]."""
        return _array(self.content, 3)

    @property
    def drawn(self) -> tuple[np.ndarray, Faces]:
        """Points that pictures show, and triangles between them."""
        points, faces = fewer(self.points, self.index, 2_000)
        return points, tuple((int(a), int(b), int(c)) for a, b, c in faces)

    def distance(self, x: np.ndarray) -> np.ndarray:
        """Of points (k, 3)."""
        nearest = np.zeros(len(x), int)
        for points, found in self._search(x, np.arange(len(x)), np.arange(len(self.corners))):
            nearest[points] = found
        return self._from(nearest, x)

    @functools.cached_property
    def _around(self) -> tuple[np.ndarray, np.ndarray]:
        """Middles (m, 3) and radii (m,) of spheres around the triangles."""
        middles = self.corners.mean(axis=1)
        return middles, np.linalg.norm(self.corners - middles[:, None], axis=2).max(axis=1)

    def _search(
        self, x: np.ndarray, points: np.ndarray, some: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Numbers of points, and of the nearest triangles among ``some``; many points are divided."""
        low, high = x[points].min(axis=0), x[points].max(axis=0)
        centre, reach = 0.5 * (low + high), float(np.linalg.norm(high - low))
        middles, radii = (y[some] for y in self._around)
        away = np.linalg.norm(middles - centre, axis=1)
        some = some[away - radii <= np.min(away + radii) + reach]
        if len(points) * len(some) <= 2**13 or len(points) == 1:
            squares = _squares(x[points] - centre, self.corners[some] - centre)
            yield points, some[np.argmin(squares, axis=1)]
            return
        half = len(points) // 2
        order = points[np.argpartition(x[points, int(np.argmax(high - low))], half)]
        for part in (order[:half], order[half:]):
            yield from self._search(x, part, some)

    def _from(self, which: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Signed distances of points (k, 3) from the triangles that are nearest to them."""
        corners = self.corners[which]
        face, edges, vertices = (y[which] for y in self._normals)
        apart = x - corners[:, 0]
        one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        u, v = _shares(*(np.sum(p * q, axis=1) for p, q in (
            (apart, one), (apart, other), (one, one), (other, other), (one, other))))  # fmt: skip
        feet = corners[:, 0] + u[:, None] * one + v[:, None] * other
        over, normals = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0), face.copy()
        least = np.where(over, np.sum((x - feet) ** 2, axis=1), np.inf)
        for k in range(3):
            start, way = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
            share = np.clip(np.sum((x - start) * way, axis=1) / np.sum(way * way, axis=1), 0.0, 1.0)[
                :, None
            ]
            foot = start + share * way
            square = np.sum((x - foot) ** 2, axis=1)
            nearer, least = square < least, np.minimum(square, least)
            ends = np.where(share > 0.0, vertices[:, (k + 1) % 3], vertices[:, k])
            own = np.where((share > 0.0) & (share < 1.0), edges[:, k], ends)
            feet, normals = (
                np.where(nearer[:, None], new, old) for new, old in ((foot, feet), (own, normals))
            )
        side = np.sum(normals * (x - feet), axis=1)
        return np.where(side < 0.0, -1.0, 1.0) * np.sqrt(least)

    @functools.cached_property
    def _normals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pseudo-normals of the triangles (m, 3), and of their edges and corners (m, 3, 3)."""
        index, n = self.index, len(self.content) // 24
        ways = np.roll(self.corners, -1, axis=1) - self.corners
        face = np.cross(ways[:, 0], ways[:, 1])
        face = face / np.maximum(np.linalg.norm(face, axis=1), np.finfo(float).tiny)[:, None]
        units = ways / np.linalg.norm(ways, axis=2)[:, :, None]
        angle = np.arccos(np.clip(-np.sum(units * np.roll(units, 1, axis=1), axis=2), -1.0, 1.0))
        vertex = np.zeros((n, 3))
        np.add.at(vertex, index, angle[:, :, None] * face[:, None])
        back = dict(zip(_edge_keys(index, n).reshape(-1).tolist(), range(3 * len(index)), strict=True))
        others = np.array(
            [back[x] for x in _edge_keys(index[:, ::-1], n)[:, [1, 0, 2]].reshape(-1).tolist()]
        )
        return face, face[:, None] + face[others // 3].reshape(-1, 3, 3), vertex[index]


def _edge_keys(index: np.ndarray, n: int) -> np.ndarray:
    """One number for each directed edge (m, 3) of triangles between ``n`` points."""
    return index * n + np.roll(index, -1, axis=1)


def _shares(one: Any, other: Any, aa: Any, bb: Any, ab: Any) -> tuple[Any, Any]:
    """Shares of both edges at the foot on a plane; far outside for a triangle without an area."""
    area = aa * bb - ab * ab
    flat = area <= 1e-24 * aa * bb
    safe = np.where(flat, 1.0, area)
    u, v = (bb * one - ab * other) / safe, (aa * other - ab * one) / safe
    return np.where(flat, 2.0, u), np.where(flat, 2.0, v)


def _squares(x: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Squared distances (k, m) of points from triangles, with the rounding of squares of coordinates."""
    a, one, other = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    aa, bb, ab = (np.sum(p * q, axis=1) for p, q in ((one, one), (other, other), (one, other)))
    along, across = (x @ y.T - np.sum(a * y, axis=1) for y in (one, other))
    whole = np.sum(x * x, axis=1)[:, None] - 2.0 * x @ a.T + np.sum(a * a, axis=1)
    u, v = _shares(along, across, aa, bb, ab)
    over = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0)
    third = aa + bb - 2.0 * ab
    edges = (
        (whole, along, aa),
        (whole, across, bb),
        (whole - 2.0 * along + aa, across - along + aa - ab, third),
    )
    least = np.where(over, whole - u * along - v * across, np.inf)
    for square, product, length in edges:
        share = np.clip(product / length, 0.0, 1.0)
        least = np.minimum(least, square - share * (2.0 * product - share * length))
    return np.maximum(least, 0.0)


def triangles(who: str, points: Any, faces: Any) -> SurfaceTriangles:
    """The closed surface of triangles; equal points are one, and triangles face outward. Raises
    `InputError` for triangles that are none, and for surfaces that are not closed.
    """
    points, faces = checked(who, points, faces)
    kept = np.round(points / (1e-9 * float(np.ptp(points, axis=0).max())))
    _, first, same = np.unique(kept, axis=0, return_index=True, return_inverse=True)
    faces = first[same.reshape(-1)[faces]]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)].astype(np.int64)
    keys = _edge_keys(faces, len(points)).reshape(-1)
    back = _edge_keys(faces[:, ::-1], len(points)).reshape(-1)
    alone = np.setxor1d(keys, back)
    known, many = np.unique(keys, return_counts=True)
    alone = alone if len(alone) else known[many > 1]
    if len(alone) or not len(faces):
        edge = divmod(int(alone[0]), len(points)) if len(alone) else (0, 0)
        raise InputError(
            f"{who}: the surface is not closed at the edge between its points {edge[0]} and {edge[1]}; "
            "give triangles of which two meet at each edge, all counter-clockwise seen from outside"
        )
    outward = np.sum(np.linalg.det(points[faces] - points.mean(axis=0))) > 0.0
    return SurfaceTriangles(points.tobytes(), (faces if outward else faces[:, ::-1].copy()).tobytes())


def outline(who: str, surface: Any) -> Polygon | Spline:
    """The closed outline of points (n, 2), or of a function of an angle. Raises `InputError` for others,
    and for outlines that cross themselves.
    """
    if callable(surface):
        return Spline(curves.control_points(who, surface, 2 * curves.SAMPLES).tobytes())
    points = np.asarray(surface, float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3 or not np.all(np.isfinite(points)):
        raise InputError(
            f"{who}: the outline has shape {points.shape}; give finite points (n, 2), three or more, or "
            "with faces points (n, 3)"
        )
    return Polygon(curves.simple(who, points).tobytes())
