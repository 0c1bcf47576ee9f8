"""Closest points of simple shapes and triangles in closed form, with derivatives that are never NaN.

Points and vectors are arrays (d,), or (d, k) for k of them. Where a direction is undefined (coincident
centres, a centre on an axis, parallel axes), a given direction replaces it: the gap stays right, and its
derivative is the one along that direction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.coordinates.spatial_vectors import cross
from nsjax.types import Array

MEET = 1e-14
"""Distance below which points coincide [m]: about a hundred roundings of a position of one metre."""

PARALLEL = 1e-12
"""Squared sine of an angle below which axes are parallel: a thousand times rounding."""

COINCIDE = 1e-6
"""Distance, relative to the shapes, below which contact points coincide, and the second is opened."""


@dataclasses.dataclass(frozen=True)
class ShapeContacts:
    """Contacts of two shapes.

    Args:
        gap: [m].
        here, there: contact points on the first and on the second shape: arrays (d,) or (d, k), or vectors
            of the algebra.
        normal: unit vector from the second to the first shape.
        carried, moving: velocity of ``there`` and of ``here`` where that body is not rigid; else None.
        tangents: directions across the normal; None: the default ones of the normal.
    """

    gap: Any
    here: Any
    there: Any
    normal: Any
    carried: Array | None = None
    moving: Array | None = None
    tangents: tuple[Any, ...] | None = None


def dot(a: Array, b: Array) -> Array:
    """``a . b`` along the first axis."""
    return jnp.sum(a * b, axis=0)


def lengthened(separation: Array, instead: Array) -> tuple[Array, Array]:
    """Length and direction of a vector; the direction is ``instead`` where the vector vanishes."""
    square = jnp.sum(separation * separation, axis=0)
    away = square > MEET * MEET
    size = jnp.sqrt(jnp.where(away, square, 1.0))
    unit = jnp.where(away, separation / size, instead)
    return jnp.where(away, size, dot(instead, separation)), unit


def within(x: Array, half: Any) -> Array:
    """``x`` clipped to ``-half`` to ``half``; None: no bounds."""
    if half is None:
        return x
    return jnp.where(x > half, half, jnp.where(x < -half, -half, x))


def on_segment(point: Array, middle: Array, along: Array, half: Any) -> Array:
    """The point of a segment (of a line where ``half`` is None) that is nearest to a point."""
    return middle + within(dot(point - middle, along), half) * along


def of_segments(one: tuple[Array, Array, Any], other: tuple[Array, Array, Any]) -> tuple[Array, Array]:
    """Nearest points of two segments ``(middle, unit axis, half length)``; for parallel ones any pair."""
    (m, d, h), (n, e, k) = one, other
    separation, lean = m - n, dot(d, e)
    c, f = dot(d, separation), dot(e, separation)
    crossing = 1.0 - lean * lean
    across = crossing > PARALLEL
    s = within(jnp.where(across, (lean * f - c) / jnp.where(across, crossing, 1.0), 0.0), h)
    t = within(lean * s + f, k)
    s = within(lean * t - c, h)
    return m + s * d, n + t * e


def between(here: Array, radius: Any, there: Array, other: Any, instead: Array) -> ShapeContacts:
    """Contact of balls around points ``here`` and ``there`` of two centre lines."""
    length, unit = lengthened(here - there, instead)
    radius, other = (0.0 if x is None else x for x in (radius, other))
    return ShapeContacts(length - radius - other, here - radius * unit, there + other * unit, unit)


def inside(here: Array, radius: Any, there: Array, hollow: Any, instead: Array) -> ShapeContacts:
    """Contact of a ball in a hollow of radius ``hollow`` around ``there``: clearance less eccentricity."""
    length, unit = lengthened(here - there, instead)
    radius = 0.0 if radius is None else radius
    return ShapeContacts(hollow - radius - length, here + radius * unit, there + hollow * unit, -unit)


def boxed(x: Array, half: Array) -> tuple[Array, Array]:
    """Signed distance of a point (d,) from a box around the origin, and the direction outward."""
    depth = half - jnp.abs(x)
    nearest = jnp.arange(x.shape[0]) == jnp.argmin(depth)
    face = jnp.where(nearest, jnp.where(x < 0.0, -1.0, 1.0), 0.0)
    length, unit = lengthened(x - within(x, half), face)
    out = jnp.any(depth < -MEET)
    return jnp.where(out, length, -jnp.sum(jnp.where(nearest, depth, 0.0))), jnp.where(out, unit, face)


def capsules(
    one: tuple[Array, Array, Any], radius: Any, other: tuple[Array, Array, Any], second: Any, instead: Array
) -> ShapeContacts:  # fmt: skip
    """Three contacts of two capsules: at the nearest points, and at both ends of the overlap, which keep
    parallel capsules from turning; the gap of an end that coincides with the nearest points is opened.
    Capsules that cross at a small angle need all three: a row that switched between points would make the
    gap jump.
    """
    (m, d, h), (n, e, k) = one, other
    lean, place = dot(d, e), dot(n - m, d)
    side = sign(lean)
    pairs = [of_segments(one, other)]
    for which in (-1.0, 1.0):
        end, far = m + which * h * d, n + which * side * k * e
        mine, theirs = (end, on_segment(end, n, e, k)), (on_segment(far, m, d, h), far)
        own = h < which * place + side * lean * k
        pairs.append((jnp.where(own, mine[0], theirs[0]), jnp.where(own, mine[1], theirs[1])))
    here, there = (jnp.stack([pair[i] for pair in pairs], axis=1) for i in (0, 1))
    back = set_back(jnp.concatenate([here, there]), h + k)
    contact = between(here, radius, there, second, instead[:, None])
    radius, second = (0.0 if x is None else x for x in (radius, second))
    return dataclasses.replace(contact, gap=contact.gap + jnp.where(back, h + k + radius + second, 0.0))


def sign(x: Array) -> Array:
    """Sign of a number, 1 for zero."""
    return jnp.where(x < 0.0, -1.0, 1.0)


def first_of(mask: Array) -> Array:
    """One at the first true entry, else zeros; a comparison of up to 64 entries, as argmax is a kernel."""
    n = mask.shape[0]
    if n > 64:
        return jnp.where(mask & (np.arange(n) == jnp.argmax(mask)), 1.0, 0.0)
    before = np.tril(np.ones((n, n)), -1) * mask[None, :]
    return jnp.where(mask & (jnp.sum(before, axis=1) == 0.0), 1.0, 0.0)


def set_back(places: Array, size: Any) -> Array:
    """Mask (k,) of the points (d, k) that coincide with an earlier point."""
    k = places.shape[1]
    separation = jnp.sum((places[:, :, None] - places[:, None, :]) ** 2, axis=0)
    same = (separation <= (COINCIDE * size) ** 2) & np.tril(np.ones((k, k), bool), -1)
    return jnp.any(same, axis=1)


def along_box(middle: Array, along: Array, half: Any, edges: Array) -> tuple[Array, Array]:
    """Parameters (3,) of a segment, given in the axes of a box: of the point nearest to the box, and of
    both ends of the part over the nearest face; and which of them are distinct.

    Along the segment the derivative of the squared distance does not decrease and is linear between the
    planes of the faces: its values at these planes give its zero.
    """
    moving = jnp.abs(along) > COINCIDE
    rate = jnp.where(moving, along, 1.0)
    low, high = (-edges - middle) / rate, (edges - middle) / rate
    stops = within(jnp.concatenate([jnp.where(moving, low, 0.0), jnp.where(moving, high, 0.0)]), half)
    stops = jnp.concatenate([stops, jnp.stack([-half, half])])
    places = middle[:, None] + stops * along[:, None]
    slope = dot(along[:, None], places - within(places, edges[:, None]))
    # between the last place where the distance falls and the first where it grows the derivative is linear:
    # its zero, or the middle where it is flat all along, as for an edge on a face
    flat = COINCIDE * COINCIDE * half
    below = jnp.max(jnp.where(slope <= flat, stops, -half))
    above = jnp.min(jnp.where(slope >= -flat, stops, half))
    f, g = (
        jnp.sum(along * (x - within(x, edges))) for x in (middle + below * along, middle + above * along)
    )
    bend = (g - f) / jnp.where(above > below, above - below, 1.0)
    steep = (above > below) & (bend > COINCIDE)
    near = jnp.where(steep, below - f / jnp.where(steep, bend, 1.0), 0.5 * (below + above))
    out = jnp.abs(middle + near * along) - edges
    face = first_of(out >= jnp.max(out)) > 0.0
    # the part over the nearest face is what the planes of the other faces leave of the segment
    beside = jnp.abs(middle) > edges
    enters = jnp.where(moving, jnp.minimum(low, high), jnp.where(beside, jnp.inf, -jnp.inf))
    leaves = jnp.where(moving, jnp.maximum(low, high), jnp.where(beside, -jnp.inf, jnp.inf))
    start, end = jnp.max(jnp.where(face, -half, enters)), jnp.min(jnp.where(face, half, leaves))
    start, end = jnp.where(start < -half, -half, start), jnp.where(end > half, half, end)
    there = start < end
    found = jnp.stack([near, jnp.where(there, start, near), jnp.where(there, end, near)])
    return found, ~set_back(found[None, :], half)


def rims(
    normal: Array, middle: Array, along: Array, half: Any, radius: Any, fixed: tuple[Array, Array]
) -> Array:
    """Points (3, 10) of a cylinder that a plane may meet: of each rim the deepest and four fixed ones."""
    side = normal - dot(normal, along) * along
    _, out = lengthened(side, fixed[0])
    arms = [-out, fixed[0], fixed[1], -fixed[0], -fixed[1]]
    return jnp.stack(
        [middle + sign * half * along + radius * arm for sign in (1.0, -1.0) for arm in arms], axis=1
    )


RIM_SAMPLES, RIM_STEPS = 8, 6
"""Points sampled on a rim, of which the farthest and the one opposite start Newton's method, and the number
of Newton steps: each squares the initial error, at most a sixteenth of a turn.
"""


def _across_rim(across: tuple[Array, Array, Array], angle: Array) -> tuple[Array, Array]:
    """First and second derivative, along a rim, of half its squared distance from an axis. Where the second
    one belongs to no maximum, it is replaced by one that makes a Newton step go outward.
    """
    c, u, w = across
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    place, rate = c + cos * u + sin * w, cos * w - sin * u
    size = dot(u, u) + dot(w, w)
    bend = dot(rate, rate) + dot(place, c - place)
    # second derivative of half the squared distance along a rim, relative to the squared radius, below
    # which all points of the rim are equally far
    flat = 1e-9
    return dot(place, rate), jnp.where(bend < -flat * size, bend, -size)


def _outward(across: tuple[Array, Array, Array], angle: Array) -> Array:
    slope, bend = _across_rim(across, angle)
    step = -slope / bend
    return angle + jnp.where(step > 0.5, 0.5, jnp.where(step < -0.5, -0.5, step))


def farthest_searched(across: tuple[Array, Array, Array]) -> Array:
    """Angle of the point of a rim ``c + cos u + sin w`` that is farthest from an axis, without derivatives.

    Args:
        across: components (3,) perpendicular to the axis of ``c``, ``u`` and ``w``: the centre, and two
            perpendicular radius vectors of the rim.
    """
    across = lax.stop_gradient(across)
    c, u, w = across
    angles = 2.0 * np.pi * np.arange(RIM_SAMPLES) / RIM_SAMPLES
    places = c[:, None] + np.cos(angles) * u[:, None] + np.sin(angles) * w[:, None]
    start = jnp.sum(first_of(dot(places, places) >= jnp.max(dot(places, places))) * angles)
    one, other = (
        lax.fori_loop(0, RIM_STEPS, lambda _, x: _outward(across, x), x) for x in (start, start + np.pi)
    )
    sizes = [dot(y, y) for y in (c + jnp.cos(x) * u + jnp.sin(x) * w for x in (one, other))]
    return jnp.where(sizes[1] > sizes[0], other, one)


def farthest(across: tuple[Array, Array, Array], near: Array) -> Array:
    """Angle of the farthest point of a rim with its derivatives, from an angle nearby."""
    angle = lax.stop_gradient(_outward(*lax.stop_gradient((across, near))))
    slope, bend = _across_rim(across, angle)
    return angle - slope / lax.stop_gradient(bend)


# Distances of points from triangles in space: the nearest face, edge or vertex, and the distance from it
# [Ericson, *Real-Time Collision Detection*, 5.1.5].


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
    """Position of a point (3,) relative to triangles, three (3, n); one without area has only edges."""
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
