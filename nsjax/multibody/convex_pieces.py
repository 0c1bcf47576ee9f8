"""Shapes that are not convex as unions of convex pieces."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import optional
from nsjax.multibody.contacts.shape_parts import Shape, hull
from nsjax.multibody.meshes import checked


def convex_pieces(
    body: str, points: Any, faces: Any, *, concavity: float = 0.05, most: int = 32
) -> list[Shape]:  # fmt: skip
    """A closed surface, of a cup or a hook, as convex pieces that fill it: a `hull` each, in space.

    Give each piece a contact of its own, and all of them as ``shape`` to `body`.

    Args:
        body: name of the body.
        points: (n, 3) in body axes [m].
        faces: (m, 3) indices of the points of each triangle, counter-clockwise seen from outside.
        concavity: largest depth of a hollow that is filled, in (0, 1), relative to the size of the shape.
        most: largest number of pieces; with fewer than needed, neighbours become one.

    Raises:
        InputError: for points and faces that are none, for a concavity and a number out of range, and for a
            surface that encloses no volume.
        MissingPackageError: without the package `coacd`, ``pip install 'nsjax[pieces]'``.

    Limits: the pieces are found once, in seconds for thousands of triangles, and kept for equal arguments.
    They approximate the surface, and meet the surface of other pieces: a body that slides along a seam
    feels no edge, since pieces are flush, up to the concavity.

    Source: Wei and others, *Approximate convex decomposition for 3D meshes with collision-aware concavity
    and tree search*, ACM Trans. Graph. 41 (2022).

    Example:
        >>> from nsjax.multibody import convex_pieces
        >>> convex_pieces("cup", [(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: surface of 'cup' encloses no volume; give a closed one, of triangles
    """
    given, triangles = checked(f"surface of {body!r}", points, faces)
    if not 0.0 < concavity < 1.0:
        raise InputError(f"surface of {body!r}: concavity = {concavity!r}; give a number in (0, 1)")
    if not most >= 1:
        raise InputError(f"surface of {body!r}: most = {most!r}; give a number of pieces, at least 1")
    if not volume(given, triangles) > 0.0:
        raise InputError(f"surface of {body!r} encloses no volume; give a closed one, of triangles")
    found = _pieces(given.tobytes(), triangles.astype(np.int64).tobytes(), float(concavity), int(most))
    return [hull(body, x) for x in found]


def volume(points: np.ndarray, faces: Any) -> float:
    """Volume that a closed surface encloses [m^3], and rounding for an open or flat one."""
    faces = np.asarray(faces)
    a, b, c = (points[faces[:, k]] - points.mean(axis=0) for k in range(3))
    enclosed = float(np.sum(a * np.cross(b, c))) / 6.0
    least = 1e-9 * float(np.prod(np.maximum(np.ptp(points, axis=0), 1e-300)))
    return enclosed if abs(enclosed) > least else 0.0


@functools.lru_cache(maxsize=64)
def _pieces(points: bytes, faces: bytes, concavity: float, most: int) -> tuple[np.ndarray, ...]:
    """Vertices of the pieces, kept in memory."""
    coacd = optional("convex pieces need", "pieces", "coacd")
    coacd.set_log_level("error")
    given = np.frombuffer(points, float).reshape(-1, 3)
    surface = coacd.Mesh(given, np.frombuffer(faces, np.int64).reshape(-1, 3))
    found = coacd.run_coacd(surface, threshold=concavity, max_convex_hull=most, seed=0)
    return tuple(_exact(np.array(vertices, float), given) for vertices, _ in found)


def _exact(vertices: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Vertices with the rounding of 32 bits, moved to the points of the surface and into its box."""
    size = float(np.max(np.ptp(points, axis=0)))
    apart = np.linalg.norm(vertices[:, None] - points[None], axis=2)
    nearest = np.argmin(apart, axis=1)
    same = np.min(apart, axis=1) < 1e-6 * size
    found = np.where(same[:, None], points[nearest], vertices)
    return np.clip(found, points.min(axis=0), points.max(axis=0))
