"""Distances of points from triangles in space: the nearest face, edge or vertex, and the distance from it
[Ericson, *Real-Time Collision Detection*, 5.1.5].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.contacts.closest_points import dot, lengthened
from nsjax.multibody.coordinates.spatial_vectors import cross
from nsjax.types import Array


class TrianglePosition(NamedTuple):
    """Position of a point relative to n triangles.

    Args:
        height: (n,) of the point above the planes of the triangles [m].
        over: (n,) whether its projection on the plane lies in the triangle.
        shares: (3, n) positions of the nearest points along the edges, from 0 to 1.
        squares: (3, n) squared distances from the edges [m^2].
    """

    height: Array
    over: Array
    shares: Array
    squares: Array


def position_of(corner: Sequence[Array], centre: Array) -> TrianglePosition:
    """Position of a point (3,) relative to triangles with the vertices ``corner``, three (3, n); a triangle
    without area has only edges.
    """
    edges = [corner[(k + 1) % 3] - corner[k] for k in range(3)]
    _, normal = lengthened(cross(edges[0], edges[1]), jnp.zeros((3, 1)))
    away = [centre[:, None] - x for x in corner]
    over = [dot(cross(normal, e), x) >= 0.0 for e, x in zip(edges, away, strict=True)]
    wide = [dot(e, e) for e in edges]
    shares = [
        jnp.clip(dot(x, e) / jnp.where(k > 0.0, k, 1.0), 0.0, 1.0)
        for e, x, k in zip(edges, away, wide, strict=True)
    ]
    gone = [x - s * e for x, s, e in zip(away, shares, edges, strict=True)]
    return TrianglePosition(
        dot(normal, away[0]), over[0] & over[1] & over[2] & (dot(normal, normal) > 0.5), jnp.stack(shares),
        jnp.stack([dot(x, x) for x in gone]),
    )  # fmt: skip


def first_vertex(flat: Array, edge: Array, share: Array) -> tuple[Array, Array]:
    """First vertex (3,) of the nearest feature of a triangle, one-hot, and the size of the feature: 1.0 a
    vertex, 2.0 an edge from it to the next vertex, 3.0 the face.

    Args:
        flat: whether the face is nearest.
        edge: (3,) one-hot, the nearest edge.
        share: position of the nearest point along this edge, 0 to 1.
    """
    start = jnp.where(share >= 1.0, jnp.roll(edge, 1), edge)
    between = (share > 0.0) & (share < 1.0)
    size = jnp.where(flat, 3.0, jnp.where(between, 2.0, 1.0))
    return jnp.where(flat, np.array([1.0, 0.0, 0.0]), start), size


def from_feature(corner: Sequence[Array], size: Array, centre: Array) -> tuple[Array, Array]:
    """Distance of a point from a feature of a triangle, negative behind a face, and its direction.

    Args:
        corner: three vertices (3,), those of the feature first.
        size: size of the feature, see `first_vertex`.
        centre: the point (3,).
    """
    a, b, c = corner
    _, normal = lengthened(cross(b - a, c - a), jnp.zeros(3))
    edge, away = b - a, centre - a
    wide = dot(edge, edge)
    share = jnp.where(size > 1.5, dot(away, edge) / jnp.where(wide > 0.0, wide, 1.0), 0.0)
    length, out = lengthened(away - share * edge, normal)
    flat = size > 2.5
    return jnp.where(flat, dot(normal, away), length), jnp.where(flat, normal, out)
