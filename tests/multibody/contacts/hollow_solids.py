"""Closed surfaces of solids that are not convex."""

from __future__ import annotations

from typing import Any

import numpy as np


def extruded(outline: Any, triangles: Any, height: float) -> tuple[np.ndarray, np.ndarray]:
    """A prism along z over an outline, counter-clockwise."""
    n = len(outline)
    points = np.array([(x, y, z) for z in (0.0, height) for x, y in outline])
    faces = [(a, c, b) for a, b, c in triangles] + [(a + n, b + n, c + n) for a, b, c in triangles]
    for i in range(n):
        j = (i + 1) % n
        faces += [(i, j, j + n), (i, j + n, i + n)]
    return points, np.array(faces)


def turned(sections: Any, around: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """A closed ring of radii and heights about z, clockwise in the plane of radius and height."""
    angle, n = 2.0 * np.pi * np.arange(around) / around, len(sections)
    points = np.concatenate([
        np.stack([r * np.cos(angle), r * np.sin(angle), np.full(around, z)], axis=1) for r, z in sections
    ])  # fmt: skip
    faces = []
    for k in range(n):
        for i in range(around):
            j, up = (i + 1) % around, (k + 1) % n
            faces += [(k * around + i, k * around + j, up * around + j)]
            faces += [(k * around + i, up * around + j, up * around + i)]
    return points, np.array(faces)


L = extruded([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)],
             0.5)  # fmt: skip
CUP = extruded(
    [(0, 0), (3, 0), (3, 2), (2, 2), (2, 1), (1, 1), (1, 2), (0, 2)],
    [(0, 1, 5), (1, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)], 1.0,
)  # fmt: skip
RING = turned([(1.0, 0.0), (1.0, 0.4), (0.5, 0.4), (0.5, 0.0)])
