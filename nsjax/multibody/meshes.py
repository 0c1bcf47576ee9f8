"""Triangles that pictures show of a body."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from nsjax.core import InputError


@dataclasses.dataclass(frozen=True, repr=False)
class Mesh:
    """Triangles that pictures show of a body, see `mesh`.

    Args:
        body: its name.
        corners: points in body axes, as bytes of numbers of 32 bits.
        triangles: triples of their indices, likewise.
    """

    body: str
    corners: bytes
    triangles: bytes
    kind = "mesh"

    def __repr__(self) -> str:
        return f"mesh({self.body!r}, {len(self.faces)} triangles)"

    @property
    def points(self) -> np.ndarray:
        """Points (n, 3) [m]."""
        return np.frombuffer(self.corners, np.float32).reshape(-1, 3).astype(float)

    @property
    def faces(self) -> np.ndarray:
        """Triples of indices (m, 3)."""
        return np.frombuffer(self.triangles, np.int32).reshape(-1, 3)


def mesh(body: str, points: Any, faces: Any, *, most: int = 2_000) -> Mesh:
    """Triangles of a body, in space, for pictures alone: the argument ``shape`` of `body`.

    Args:
        body: name of the body.
        points: (n, 3) in body axes [m].
        faces: (m, 3) indices of the points of each triangle.
        most: largest number of triangles; of more, the points in each cell of a grid become one.

    Raises:
        InputError: for points that are not (n, 3), and triangles of other points.

    Example:
        >>> from nsjax.multibody import body, mesh
        >>> sheet = mesh("fin", [(0, 0, 0), (0.2, 0, 0), (0, 0, 0.1)], [(0, 1, 2)])
        >>> body("fin", mass=0.1, shape=sheet).option("meshes")
        (mesh('fin', 1 triangles),)
    """
    points, faces = fewer(*checked(f"mesh of {body!r}", points, faces), most)
    return Mesh(body, points.astype(np.float32).tobytes(), faces.astype(np.int32).tobytes())


def checked(who: str, points: Any, faces: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) and triples (m, 3) of their indices. Raises `InputError` for others."""
    points, faces = np.asarray(points, float), np.asarray(faces)
    if points.ndim != 2 or points.shape[1] != 3 or not np.all(np.isfinite(points)):
        raise InputError(f"{who}: points have shape {points.shape}; give finite numbers (n, 3)")
    whole = faces.ndim == 2 and faces.shape[1] == 3 and np.issubdtype(faces.dtype, np.integer)
    if not whole or not len(faces) or faces.min() < 0 or faces.max() >= len(points):
        raise InputError(
            f"{who}: faces have shape {faces.shape}; give triples (m, 3) of indices of the {len(points)} "
            "points"
        )
    return points, faces


def fewer(points: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many triangles: points in a cell of a grid become their mean, in ever larger cells."""
    span, cells, kept = np.ptp(points, axis=0).max(), 256.0, (points, faces)
    while len(kept[1]) > most and cells > 1.0:
        keys = np.floor((points - points.min(axis=0)) / (span / cells)).astype(int)
        _, cell, many = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        middles = np.stack([np.bincount(cell, weights=x) for x in points.T], axis=1) / many[:, None]
        found = np.unique(cell[faces], axis=0)
        split = (found != np.roll(found, 1, axis=1)).all(axis=1)
        kept, cells = (middles, found[split]), cells / 1.2
    return kept
