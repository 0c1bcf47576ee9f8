"""Contacts of two boxes: corners, faces and edges that meet.

Separating axes [Ericson, *Real-Time Collision Detection*, 4.4, 5.5] and the clipping of one face against
the other tell which features meet; the features are held during a step (`hold`). Gaps, points and normals
of held features are smooth functions of the positions (`meet`): of a corner against the plane of a face,
and of two edges along their common normal. Rows without a contact have the sizes of both boxes as their
gap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts.closest_points import COINCIDE, ShapeContacts, dot, first_of, sign
from nsjax.multibody.coordinates.spatial_vectors import cross
from nsjax.types import Array

ASKEW = 1e-2
"""Squared sine of the angle of two edges below which their contact takes the normal of the face."""


class Box(NamedTuple):
    """Centre (d,), axes (d, d) as columns in the axes of the ground, half edges (d,)."""

    centre: Array
    axes: Array
    half: Array


class BoxFeatures(NamedTuple):
    """Features of two boxes that meet.

    Args:
        second: (), whether the reference face belongs to the second box.
        face, against: (d,) outward normals of the reference and incident face in the axes of their boxes.
        kept: (n,) rows with a contact.
        corner: in the plane (2,), whether the contact is a corner of the incident face, not of the
            reference face; in space (8,), whether it is a corner, not a crossing of edges.
        row: (8, 12) selection, for each row, of one of 12 candidates: four corners of the incident face or
            entries of its edges over the reference face, four exits, four corners of the reference face.
        share: (k,) position of the crossings along the edges of the incident face, 0 to 1.
        across: (2, k) signs of the edges of the reference face that are crossed.
        crossed: (), whether the only contact is of two edges; one, other: (3,) axis of each edge, one-hot;
            beside, opposite: (3,) signs of the sides of their boxes on which these edges lie.
    """

    second: Array
    face: Array
    against: Array
    kept: Array
    corner: Array
    row: Any = None
    share: Any = None
    across: Any = None
    crossed: Any = None
    one: Any = None
    other: Any = None
    beside: Any = None
    opposite: Any = None


def to_ground(axes: Array, local: Array) -> Array:
    """Vectors (d,) or (d, k), given along the axes of a box, in the axes of the ground."""
    if local.ndim == 1:
        return jnp.sum(axes * local[None, :], axis=1)
    return jnp.sum(axes[:, :, None] * local[None], axis=1)


def components(axes: Array, vector: Array) -> Array:
    """Components of vectors (d,) or (d, k) along axes (d, n)."""
    if vector.ndim == 1:
        return jnp.sum(axes * vector[:, None], axis=0)
    return jnp.sum(axes[:, :, None] * vector[:, None, :], axis=0)


def _reference(held: BoxFeatures, one: Box, other: Box) -> tuple[Box, Box]:
    """The box of the reference face, and the incident one."""
    pick = lambda a, b: jnp.where(held.second, a, b)  # noqa: E731
    return jax.tree.map(pick, other, one), jax.tree.map(pick, one, other)


def hold(one: Box, other: Box) -> BoxFeatures:
    """Features of two boxes that meet, without derivatives."""
    one, other = lax.stop_gradient((one, other))
    # separations along the axes of both boxes, and their directions from the second to the first
    lean = jnp.abs(jnp.sum(one.axes[:, :, None] * other.axes[:, None, :], axis=0))
    c, f = (components(x.axes, one.centre - other.centre) for x in (one, other))
    own = jnp.abs(c) - one.half - jnp.sum(lean * other.half[None, :], axis=1)
    others = jnp.abs(f) - other.half - jnp.sum(lean * one.half[:, None], axis=0)
    c, f = sign(c), sign(f)
    # gain in separation for which a face of the first box is preferred to one of the second, relative to
    # the smallest half edge: above rounding, which would exchange the roles of faces
    least = 1e-6 * jnp.min(jnp.minimum(one.half, other.half))
    second = ~(jnp.max(own) > jnp.max(others) + least)
    mine, theirs = -c * first_of(own >= jnp.max(own)), f * first_of(others >= jnp.max(others))
    face = jnp.where(second, theirs, mine)
    found = BoxFeatures(second=second, face=face, against=face, kept=second, corner=second)
    reference, incident = _reference(found, one, other)
    facing = components(incident.axes, to_ground(reference.axes, face))
    steep = jnp.abs(facing)
    against = -sign(facing) * first_of(steep >= jnp.max(steep))
    found = found._replace(against=against)
    if one.half.shape[0] == 2:
        return _flat_held(found, reference, incident)
    return _crossed(
        _clipped(found, reference, incident), one, other, jnp.maximum(jnp.max(own), jnp.max(others))
    )


def meet(one: Box, other: Box, found: BoxFeatures) -> ShapeContacts:
    """Contacts of two boxes: two in the plane, eight in space."""
    reference, incident = _reference(found, one, other)
    if one.half.shape[0] == 2:
        gap, upper, lower, normal = _flat(found, reference, incident)
    else:
        gap, upper, lower, normal = _rows(found, reference, incident)
    # points are of the incident box against the reference face: exchanged where that face is of the first
    here, there = jnp.where(found.second, upper, lower), jnp.where(found.second, lower, upper)
    normal = jnp.where(found.second, normal, -normal)
    if one.half.shape[0] == 2:
        return ShapeContacts(_opened(gap, found.kept, one, other), here, there, normal)
    alone = _edges(found, one, other)
    first = np.arange(gap.shape[0]) == 0
    used = jnp.where(found.crossed, first, found.kept)
    here, there, normal = (
        jnp.where(found.crossed & first, x[:, None], y)
        for x, y in zip((alone.here, alone.there, alone.normal), (here, there, normal), strict=True)
    )
    gap = jnp.where(found.crossed & first, alone.gap, gap)
    return ShapeContacts(_opened(gap, used, one, other), here, there, normal)


def _opened(gap: Array, used: Array, one: Box, other: Box) -> Array:
    """Gaps; in rows without a contact the sizes of both boxes, with the rates of the contact points."""
    size = jnp.sum(one.half) + jnp.sum(other.half)
    return gap + jnp.where(used, 0.0, size - lax.stop_gradient(gap))


def _edge(local: Array) -> Array:
    """Direction along a face of a planar box, from its normal."""
    return jnp.stack([-local[1], local[0]])


def _flat_corners(found: BoxFeatures, reference: Box, incident: Box) -> tuple[Array, ...]:
    """Normals of both faces, then of the reference face the direction, middle and half length; its corners
    and those of the incident face (2, 2), in the same order.
    """
    n, m = to_ground(reference.axes, found.face), to_ground(incident.axes, found.against)
    along = to_ground(reference.axes, _edge(found.face))
    own = -to_ground(incident.axes, _edge(found.against))  # faces oppose each other
    signs = jnp.array([-1.0, 1.0])
    middle, centre = (
        box.centre + to_ground(box.axes, x * box.half)
        for box, x in ((reference, found.face), (incident, found.against))
    )
    wide, narrow = (
        jnp.sum(jnp.abs(_edge(x)) * box.half)
        for box, x in ((reference, found.face), (incident, found.against))
    )
    corners = middle[:, None] + wide * along[:, None] * signs
    ends = centre[:, None] + narrow * own[:, None] * signs
    return n, m, along, middle, wide, corners, ends


def _flat_held(found: BoxFeatures, reference: Box, incident: Box) -> BoxFeatures:
    """Features in the plane: which box owns the corner at each end of the overlap of both faces."""
    _, _, along, middle, wide, _, ends = _flat_corners(found, reference, incident)
    x = dot(along[:, None], ends - middle[:, None])
    slack = (1.0 + COINCIDE) * wide
    inside = jnp.stack([x[0] >= -slack, x[1] <= slack])
    apart = (x[0] > slack) | (x[1] < -slack)
    return found._replace(corner=inside, kept=inside | ~apart)


def _flat(found: BoxFeatures, reference: Box, incident: Box) -> tuple[Array, Array, Array, Array]:
    """Gaps (2,), points on the incident and on the reference box, normals to the incident one (2, 2)."""
    n, m, _, middle, _, corners, ends = _flat_corners(found, reference, incident)
    heights = dot(n[:, None], ends - middle[:, None])
    centre = 0.5 * (ends[:, 0] + ends[:, 1])
    depths = dot(m[:, None], corners - centre[:, None])
    return (
        jnp.where(found.corner, heights, depths),
        jnp.where(found.corner, ends, corners - depths * m[:, None]),
        jnp.where(found.corner, ends - heights * n[:, None], corners),
        jnp.where(found.corner, n[:, None], -m[:, None]),
    )


CONTACTS = {2: 2, 3: 8}
"""Number of contacts of two boxes by dimension: two rectangles intersect in at most eight corners."""

ROUND = np.array([[1.0, -1.0, -1.0, 1.0], [1.0, 1.0, -1.0, -1.0]])
"""Signs of the corners of a face in the order of its border."""


def sides(local: Array) -> tuple[Array, Array]:
    """The two axes along a face, one-hot (3,), from its normal along the third axis of the box."""
    plain = jnp.abs(local)
    first = jnp.stack([plain[2], plain[0], plain[1]])
    return first, jnp.stack([plain[1], plain[2], plain[0]])


def _face(box: Box, local: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Normal, middle, directions (3, 2) along its sides, half edges (2,), corners (3, 4)."""
    both = jnp.stack(sides(local), axis=1)
    along, half = to_ground(box.axes, both), jnp.sum(both * box.half[:, None], axis=0)
    middle = box.centre + to_ground(box.axes, local * box.half)
    corners = middle[:, None] + jnp.sum(along[:, :, None] * (half[:, None] * ROUND)[None], axis=1)
    return to_ground(box.axes, local), middle, along, half, corners


def _clipped(found: BoxFeatures, reference: Box, incident: Box) -> BoxFeatures:
    """Features in space: corners, and crossings of edges, of the overlap of both faces."""
    _, middle, along, half, corners = _face(reference, found.face)
    _, centre, own, wide, ends = _face(incident, found.against)
    x = components(along, ends - middle[:, None])
    way = jnp.roll(x, -1, axis=1) - x
    slack = ((1.0 + COINCIDE) * half)[:, None]
    moving = jnp.abs(way) > COINCIDE * slack
    rate = jnp.where(moving, way, 1.0)
    low, high = (-slack - x) / rate, (slack - x) / rate
    outside = jnp.abs(x) > slack
    enters = jnp.where(moving, jnp.minimum(low, high), jnp.where(outside, 2.0, -1.0))
    leaves = jnp.where(moving, jnp.maximum(low, high), jnp.where(outside, -1.0, 2.0))
    start, end = jnp.max(enters, axis=0), jnp.min(leaves, axis=0)
    # a shorter overlap is a corner on a border, or none
    shared = jnp.minimum(end, 1.0) - jnp.maximum(start, 0.0) > 4.0 * COINCIDE
    # an edge enters over the border that it crosses last, and leaves over the one that it crosses first
    border = jnp.concatenate([enters[0] >= enters[1], leaves[0] <= leaves[1]])
    ways = jnp.concatenate([-sign(way), sign(way)], axis=1)
    across = ways * jnp.stack([jnp.where(border, 1.0, 0.0), jnp.where(border, 0.0, 1.0)])
    within = jnp.all(jnp.abs(x) <= slack, axis=0)
    inner = jnp.abs(components(own, corners - centre[:, None])) < ((1.0 - COINCIDE) * wide)[:, None]
    kept = jnp.concatenate(
        [within | (shared & (start > 0.0)), shared & (end < 1.0), jnp.all(inner, axis=0)]
    )
    before = jnp.sum(np.tril(np.ones((12, 12)), -1) * kept[None, :], axis=1)
    row = kept[None, :] & (before[None, :] == np.arange(CONTACTS[3])[:, None])
    used = jnp.any(row, axis=1)
    share = jnp.concatenate([start, end])
    return found._replace(
        kept=used, row=jnp.where(used[:, None], row, np.arange(12) == 0).astype(float),
        corner=jnp.concatenate([within, jnp.zeros(4, bool)]), across=across,
        share=jnp.where(share < 0.0, 0.0, jnp.where(share > 1.0, 1.0, share)),
    )  # fmt: skip


def _rows(found: BoxFeatures, reference: Box, incident: Box) -> tuple[Array, Array, Array, Array]:
    """Gaps (8,), points on the incident and on the reference box, normals to the incident one (3, 8)."""
    n, middle, along, half, corners = _face(reference, found.face)
    m, centre, _, _, ends = _face(incident, found.against)
    edges = jnp.roll(ends, -1, axis=1) - ends
    edges, begins = jnp.concatenate([edges, edges], axis=1), jnp.concatenate([ends, ends], axis=1)
    # a corner of the incident face above the reference face
    height = dot(n[:, None], begins - middle[:, None])
    # edges of the incident face over edges of the reference face, along their common normal
    other = jnp.sum(along[:, :, None] * jnp.abs(found.across)[::-1][None], axis=1)
    upper = begins + found.share * edges
    side = jnp.sum(along[:, :, None] * (half[:, None] * found.across)[None], axis=1)
    lower = middle[:, None] + side + dot(other, upper - middle[:, None]) * other
    edge = edges / jnp.sqrt(dot(edges, edges))
    normal = skewed(edge, other, n[:, None])
    gap = dot(normal, upper - lower)
    upper, lower = nearest_points(upper, edge, lower, other, normal)
    # corners of the reference face below the incident one
    depth = dot(m[:, None], corners - centre[:, None])
    gaps = jnp.concatenate([jnp.where(found.corner, height, gap), depth])
    uppers = [jnp.where(found.corner, begins, upper), corners - depth * m[:, None]]
    lowers = [jnp.where(found.corner, begins - height * n[:, None], lower), corners]
    normals = [jnp.where(found.corner, n[:, None], normal), jnp.broadcast_to(-m[:, None], corners.shape)]
    upper, lower, normal = (
        jnp.sum(jnp.concatenate(x, axis=1)[:, None, :] * found.row[None], axis=2)
        for x in (uppers, lowers, normals)
    )
    return jnp.sum(gaps[None, :] * found.row, axis=1), upper, lower, normal


def skewed(a: Array, b: Array, towards: Array) -> Array:
    """Common unit normals of ``a`` and ``b`` on the side of ``towards``, which replaces parallel ones'."""
    made = cross(a, b)
    square = dot(made, made)
    skew = square > ASKEW
    made = made / jnp.sqrt(jnp.where(skew, square, 1.0))
    return jnp.where(skew, sign(dot(made, towards)) * made, towards)


def nearest_points(upper: Array, a: Array, lower: Array, b: Array, normal: Array) -> tuple[Array, Array]:
    """Nearest points of lines through ``upper`` along ``a``, ``lower`` along ``b``; a foot if parallel."""
    between, lean = upper - lower, dot(a, b)
    square = 1.0 - lean * lean
    skew = square > ASKEW
    step = (lean * dot(b, between) - dot(a, between)) / jnp.where(skew, square, 1.0)
    upper = upper + jnp.where(skew, step, 0.0) * a
    return upper, upper - dot(normal, between) * normal


PAIRED = np.array([[i, j] for i in range(3) for j in range(3)]).T
"""The nine combinations of an axis of the first with an axis of the second box, as two rows."""


def _crossed(found: BoxFeatures, one: Box, other: Box, most: Array) -> BoxFeatures:
    """Features with the contact of two edges where it separates the boxes by more than ``most``."""
    a, b = (
        jnp.stack([box.axes[:, int(k)] for k in row], axis=1)
        for box, row in zip((one, other), PAIRED, strict=True)
    )
    made = cross(a, b)
    square = dot(made, made)
    skew = square > ASKEW
    normal = made / jnp.sqrt(jnp.where(skew, square, 1.0))
    apart = dot(normal, (one.centre - other.centre)[:, None])
    normal = sign(apart) * normal
    reach = sum(
        jnp.sum(jnp.abs(components(box.axes, normal)) * box.half[:, None], axis=0) for box in (one, other)
    )
    room = jnp.where(skew, jnp.abs(apart) - reach, -jnp.inf)
    # gain in separation for which the axis across two edges is preferred to that of a face, relative to
    # the smallest half edge: axes across edges of faces on each other are nearly their normal
    least = 1e-3 * jnp.min(jnp.minimum(one.half, other.half))
    chosen = first_of(room >= jnp.max(room))
    along = [
        jnp.sum(jnp.where(row[:, None] == np.arange(3), chosen[:, None], 0.0), axis=0) for row in PAIRED
    ]
    best = jnp.sum(chosen * normal, axis=1)
    return found._replace(
        crossed=jnp.max(room) > most + least, one=along[0], other=along[1],
        beside=(1.0 - along[0]) * -sign(components(one.axes, best)),
        opposite=(1.0 - along[1]) * sign(components(other.axes, best)),
    )  # fmt: skip


def _edges(found: BoxFeatures, one: Box, other: Box) -> ShapeContacts:
    """The contact of two edges."""
    a, b = to_ground(one.axes, found.one), to_ground(other.axes, found.other)
    here = one.centre + to_ground(one.axes, found.beside * one.half)
    there = other.centre + to_ground(other.axes, found.opposite * other.half)
    outward = to_ground(other.axes, found.opposite) - to_ground(one.axes, found.beside)
    normal = skewed(a, b, outward)
    return ShapeContacts(dot(normal, here - there), *nearest_points(here, a, there, b, normal), normal)
