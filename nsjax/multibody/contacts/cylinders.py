"""Contacts of cylinders with flat ends against boxes, capsules, hulls and each other.

Each row is the distance of a point from a solid (`nsjax.multibody.contacts.shape`): of each rim
the deepest point; of the nearer rim also the deepest point of the opposite half, and the four
points over the face of the other solid that are farthest apart, on which the cylinder stands; points of the
axis, less a radius, where sides meet; corners of a box. The points are chosen at the start of a step and
held; a deepest point moves with the bodies.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts import boxes
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts.closest_points import COINCIDE, ShapeContacts, dot, first_of, set_back
from nsjax.multibody.contacts.curves import bounded
from nsjax.multibody.contacts.hulls import TILT, index_of, vertices_of
from nsjax.multibody.contacts.shape import PairKind, Solid, second_solid, segment, solid, solid_box
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.types import Array

FACE = 1e-12
"""Change of a component of a direction below which it still belongs to the same face of a solid."""

LATERAL = 0.03
"""Cosine of the angle between the axis and the contact direction up to which a point of the axis, less a
radius, represents the side of the cylinder: the error is half its square, 5e-4 of the radius.
"""


class Rims(NamedTuple):
    """Both rims of a cylinder: centres (3, 2) and two perpendicular radius vectors (3,)."""

    centres: Array
    one: Array
    other: Array

    def at(self, end: Array, angle: Array) -> Array:
        """Point (3,) of a rim; ``end`` is 0.0 for the first and 1.0 for the second rim."""
        centre = jnp.where(end > 0.5, self.centres[:, 1], self.centres[:, 0])
        return centre + jnp.cos(angle) * self.one + jnp.sin(angle) * self.other

    def along(self, angle: Array) -> Array:
        """Derivative of a point by its angle."""
        return jnp.cos(angle) * self.other - jnp.sin(angle) * self.one


class RimPoints(NamedTuple):
    """Points (k,) of rims: end, angle, second derivative of the distance along the rim (zero for fixed
    points), and whether each makes a contact.
    """

    end: Array
    angle: Array
    bend: Array
    kept: Array


def rims_of(scene: Scene, body: str, x: Any) -> Rims:
    """The rims of a cylinder."""
    a, turn = scene.algebra, scene.frame(body).turn
    middle, along, half = segment(scene, body, x)
    own = a.vector(1.0 if x.axis is None else x.axis)
    one, other = (x.radius * a.turned(turn, y) for y in a.tangents(own))
    return Rims(jnp.stack([middle - half * along, middle + half * along], axis=1), one, other)


def _still(x: Any) -> Any:
    return lax.stop_gradient(x)


def features(other: Solid, direction: Array) -> Array:
    """Components of a direction that tell faces of a box, a cylinder or a hull from each other."""
    if isinstance(other.numbers[0], boxes.Box):
        return boxes.components(other.numbers[0].axes, direction)
    if len(other.numbers) == 1:  # a hull, which has no axis
        return direction
    return dot(direction, other.numbers[1])[None]


def _halved(below: Any, low: Array, high: Array) -> Array:
    """Ends (k,), by bisection, of k conditions that hold at ``low``; ``below`` maps (k,) to (k,) bool."""

    def step(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        holds = below(middle)
        return jnp.where(holds, middle, ends[0]), jnp.where(holds, ends[1], middle)

    # halvings of a bracket, which reduce its length to rounding
    low, high = lax.fori_loop(0, 45, step, (low, high))
    return 0.5 * (low + high)


def _picked(score: Array, mask: Array) -> Array:
    """One at the first largest score among the entries of a non-empty mask, else zeros."""
    score = jnp.where(mask, score, -jnp.inf)
    return first_of(score >= jnp.max(score))


def held_rims(rims: Rims, other: Solid) -> RimPoints:
    """Seven points of the rims of a cylinder that may meet a solid."""
    # points sampled on a rim; four of them carry a cylinder that stands
    samples = 32
    angles, step = 2.0 * np.pi * np.arange(samples) / samples, 2.0 * np.pi / samples

    def rate(end: Array, x: Array) -> Array:
        return dot(other.at(rims.at(end, x))[1], rims.along(x))

    def of_end(end: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Angles (2,) of the deepest and of the opposite point, second derivatives of the distance there,
        depth, angles (4,) of the extreme points over the face, and whether no point is over it.
        """
        away, way = jax.vmap(lambda x: other.at(rims.at(end, x)))(angles)
        start = jnp.sum(_picked(-away, away == away) * angles)
        # cosine of the angle from the deepest point of a rim beyond which a point is on the opposite half
        opposite = jnp.sum(_picked(-away, jnp.cos(angles - start) < -0.5) * angles)
        both, rates_of = jnp.stack([start, opposite]), jax.vmap(lambda x: rate(end, x))
        pair = _halved(lambda x: rates_of(x) < 0.0, both - step, both + step)
        depth, direction = other.at(rims.at(end, pair[0]))
        face = features(other, direction)
        over = jnp.all(jnp.abs(jax.vmap(lambda x: features(other, x))(way) - face) < FACE, axis=1)
        none = ~jnp.any(over)
        turns = [jnp.cos(angles - 0.5 * np.pi * k) for k in range(4)]
        four = jnp.stack([jnp.sum(_picked(x, over | none) * angles) for x in turns])
        rates, bends = jax.vmap(lambda x: jax.jvp(lambda y: rate(end, y), (x,), (jnp.ones(()),)))(pair)
        # where two faces are equally deep the distance has a kink, and the point is fixed
        bends = jnp.where(jnp.abs(rates) <= COINCIDE * bends, bends, 0.0)
        return pair, bends, depth, four, none

    ends = jnp.array([0.0, 1.0])
    pair, bend, depth, four, none = jax.vmap(of_end)(ends)
    near = jnp.where(depth[1] < depth[0], 1.0, 0.0)
    pick = lambda x: jnp.where(near > 0.5, x[1], x[0])  # noqa: E731
    end = jnp.concatenate([ends, jnp.full(5, near)])
    angle = jnp.concatenate([pair[:, 0], pick(pair)[1:], pick(four)])
    bend = jnp.concatenate([bend[:, 0], pick(bend)[1:], jnp.zeros(4)])
    places = jax.vmap(rims.at, out_axes=1)(end, angle)
    radius = jnp.sqrt(dot(rims.one, rims.one))
    back = closest.set_back(places, radius) | (jnp.arange(7) > 2) & pick(none)
    # second derivative of the distance along a rim, in radii, above which the deepest point is well
    # determined and moves with the bodies
    return RimPoints(end, angle, jnp.where(bend > 1e-3 * radius, bend, 0.0), ~back)


def pointed(points: Array, radius: Any, other: Solid, kept: Array, size: Any) -> ShapeContacts:
    """Contacts of balls around points (3, k) with a solid, both contact points in the middle of the gap."""
    distance, unit = jax.vmap(other.at, 1, (0, 1))(points)
    middle = points - 0.5 * (radius + distance) * unit
    return ShapeContacts(distance - radius + jnp.where(kept, 0.0, size), middle, middle, unit)


def of_rims(rims: Rims, other: Solid, held: RimPoints, size: Any) -> ShapeContacts:
    """Contacts of the held points of rims; the deepest points move with the bodies."""

    def one(end: Array, angle: Array, bend: Array) -> Array:
        rate = dot(other.at(rims.at(end, angle))[1], rims.along(angle))
        return rims.at(
            end, angle - jnp.where(bend > 0.0, bounded(rate / jnp.where(bend > 0.0, bend, 1.0)), 0.0)
        )

    points = jax.vmap(one, out_axes=1)(held.end, held.angle, held.bend)
    return pointed(points, 0.0, other, held.kept, size)


def held_axis(line: tuple[Array, Array, Any], other: Solid) -> tuple[Array, Array]:
    """Parameters (3,) of a segment: of the point nearest to a solid, and of both ends of the part over the
    same face; and which of them differ. The distance from a convex solid is convex along the segment.
    """
    middle, along, half = line
    half = jnp.asarray(half, float)

    # one search in each direction along the segment
    sides = jnp.array([1.0, -1.0])

    def seen(s: Array) -> Array:
        return other.at(middle + s * along)[1]

    ways = jax.vmap(lambda side, s: side * dot(seen(side * s), along))
    low, high = sides * _halved(lambda s: ways(sides, s) < -COINCIDE, jnp.full(2, -half), jnp.full(2, half))
    # a nearest point at an end of the segment is found within rounding
    near = 0.5 * (low + high)
    face = features(other, seen(near))
    over = jax.vmap(lambda s: jnp.all(jnp.abs(features(other, seen(s)) - face) < FACE))
    end, start = sides * _halved(lambda s: over(sides * s), sides * near, jnp.full(2, half))
    found = jnp.stack([near, start, end])
    return found, ~closest.set_back(found[None, :], half)


def joined(mets: list[ShapeContacts]) -> ShapeContacts:
    """Contacts of several lists in one."""
    gap = jnp.concatenate([x.gap for x in mets])
    here, there, normal = (
        jnp.concatenate([getattr(x, name) for x in mets], axis=1) for name in ("here", "there", "normal")
    )
    return ShapeContacts(gap, here, there, normal)


def exchanged(x: ShapeContacts) -> ShapeContacts:
    """Contacts with both shapes exchanged."""
    return ShapeContacts(x.gap, x.there, x.here, -x.normal)


def _own(scene: Scene, part: Part, numbers: Any) -> Solid:
    return solid(scene, part.bodies[0], "cylinder", numbers.first)


def _held_capsule(scene: Scene, part: Part, numbers: Any) -> Any:
    line = _still(segment(scene, part.bodies[0], numbers.first))
    return held_axis(line, second_solid(scene, part, numbers).still())


def _capsule_cylinder(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    """Contacts at points of the axis that are held during a step, as for a capsule on a box."""
    middle, along, half = segment(scene, part.bodies[0], numbers.first)
    places, kept = _held_capsule(scene, part, numbers) if near is None else near
    radius = numbers.first.radius
    points = middle[:, None] + places * along[:, None]
    return pointed(points, radius, second_solid(scene, part, numbers), kept, half + radius)


def _facing(box: boxes.Box, direction: Array) -> Array:
    """Signs (3, 4), along the axes of a box, of the corners of the face that faces a direction."""
    own = boxes.components(box.axes, direction)
    face = first_of(jnp.abs(own) >= jnp.max(jnp.abs(own)))
    first, second = boxes.sides(face)
    return (
        (closest.sign(own) * face)[:, None]
        + first[:, None] * boxes.ROUND[0]
        + second[:, None] * boxes.ROUND[1]
    )


def _held_box(scene: Scene, part: Part, numbers: Any) -> Any:
    """Points of the rims and of the axis, and corners of the box, that may meet."""
    other = second_solid(scene, part, numbers).still()
    line = _still(segment(scene, part.bodies[0], numbers.first))
    middle, along, half = line
    places, kept = held_axis(line, other)
    points = middle[:, None] + places * along[:, None]
    ways = jax.vmap(lambda x: other.at(x)[1], 1, 1)(points)
    lateral = (jnp.abs(dot(along[:, None], ways)) < LATERAL) & (jnp.abs(places) < (1.0 - COINCIDE) * half)
    rims = held_rims(_still(rims_of(scene, part.bodies[0], numbers.first)), other)
    return rims, places, kept & lateral, _facing(other.numbers[0], ways[:, 0])


def _cylinder_box(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    first, other = numbers.first, second_solid(scene, part, numbers)
    rims, places, lateral, facing = _held_box(scene, part, numbers) if near is None else near
    middle, along, half = segment(scene, part.bodies[0], first)
    size, box = half + first.radius, solid_box(scene, part.bodies[1], numbers.second)
    points = middle[:, None] + places * along[:, None]
    corners = box.centre[:, None] + boxes.to_ground(box.axes, facing * box.half[:, None])
    return joined([
        of_rims(rims_of(scene, part.bodies[0], first), other, rims, size),
        pointed(points, first.radius, other, lateral, size),
        exchanged(pointed(corners, 0.0, _own(scene, part, numbers), jnp.ones(4, bool), size)),
    ])  # fmt: skip


def _held_cylinders(scene: Scene, part: Part, numbers: Any) -> Any:
    """Points of all rims that may meet, and whether the sides cross between their ends."""
    (first, second), (one, other) = part.bodies, (numbers.first, numbers.second)
    lines = _still((segment(scene, first, one), segment(scene, second, other)))
    ends = closest.of_segments(*lines)
    inside = [
        jnp.abs(dot(point - line[0], line[1])) < (1.0 - COINCIDE) * line[2]
        for point, line in zip(ends, lines, strict=True)
    ]
    lean = dot(lines[0][1], lines[1][1])
    crossed = inside[0] & inside[1] & (1.0 - lean * lean > closest.PARALLEL)
    own = held_rims(_still(rims_of(scene, first, one)), second_solid(scene, part, numbers).still())
    others = held_rims(_still(rims_of(scene, second, other)), _own(scene, part, numbers).still())
    return own, others, crossed


def _cylinders(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    (first, second), (one, other) = part.bodies, (numbers.first, numbers.second)
    own, others, crossed = _held_cylinders(scene, part, numbers) if near is None else near
    lines = segment(scene, first, one), segment(scene, second, other)
    size = lines[0][2] + lines[1][2] + one.radius + other.radius
    a, b = closest.of_segments(*lines)
    instead = boxes.skewed(lines[0][1], lines[1][1], a - b)
    side = closest.between(a[:, None], one.radius, b[:, None], other.radius, instead[:, None])
    middle = 0.5 * (side.here + side.there)
    side = ShapeContacts(side.gap + jnp.where(crossed, 0.0, size), middle, middle, side.normal)
    return joined([
        of_rims(rims_of(scene, first, one), second_solid(scene, part, numbers), own, size),
        exchanged(of_rims(rims_of(scene, second, other), _own(scene, part, numbers), others, size)),
        side,
    ])  # fmt: skip


CYLINDERS = (
    PairKind("capsule", "cylinder", _capsule_cylinder, 3, _held_capsule),
    PairKind("cylinder", "box", _cylinder_box, 14, _held_box),
    PairKind("cylinder", "cylinder", _cylinders, 15, _held_cylinders),
)


# Contacts of cylinders with flat ends on convex hulls.
#
# Each row is the distance of a point from a solid, as for a cylinder on a box
# (`nsjax.multibody.contacts.cylinders`): seven points of the rims, and three points of the axis less a
# radius, against the hull; vertices of the hull, the nearest one and the next on which a tilted plane
# through it would rest, against the cylinder. The points are chosen at the start of a step and held.


QUARTERS = 0.5 * np.pi * np.arange(4)
"""Directions in which the plane through the nearest vertex is tilted [rad]."""

ROWS = 7 + 3 + 1 + len(QUARTERS)
"""Number of contacts: points of the rims, points of the axis, nearest vertex, further vertices."""


def away(faces: Any, points: Array, x: Array) -> tuple[Array, Array]:
    """Distance of a point (3,) from a hull (3, n), negative inside, and its direction outward."""
    index = index_of(faces).T
    still, centre = lax.stop_gradient((points, x))
    look = closest.position_of([still[:, k] for k in index.T], centre)
    squares = look.squares.reshape(-1)
    outside = jnp.max(look.height) > 0.0
    above = jnp.where(look.over & (look.height > 0.0), look.height, jnp.inf)
    flat = ~outside | (jnp.min(above) ** 2 <= jnp.min(squares))
    face = jnp.where(outside, jnp.argmin(above), jnp.argmax(look.height))
    side, beside = jnp.divmod(jnp.argmin(squares), len(faces))
    turns, size = closest.first_vertex(flat, np.arange(3) == side, look.shares[side, beside])
    first = jnp.argmax(turns)
    corners = jnp.asarray(index)[jnp.where(flat, face, beside), (first + np.arange(3)) % 3]
    return closest.from_feature(list(points[:, corners].T), size, x)


def _hull(scene: Scene, part: Part, numbers: Any) -> Solid:
    points = vertices_of(scene, part.bodies[1], numbers.second)
    return Solid(functools.partial(away, numbers.second.faces), (points,))


def _held_vertices(points: Array, own: Solid) -> tuple[Array, Array]:
    """Indices (5,) of the vertices (3, n) that a cylinder may meet, and which of them are no repetition."""
    distance, ways = jax.vmap(own.at, 1, (0, 1))(points)
    first = jnp.argmin(distance)
    way = ways[:, first]
    one, other = (jnp.asarray(x) for x in space.tangents(way))
    tilted = [way + TILT * (float(np.cos(x)) * one + float(np.sin(x)) * other) for x in QUARTERS]
    found = jnp.stack([first, *(jnp.argmin(dot(x[:, None], points)) for x in tilted)])
    wide = jnp.sqrt(jnp.sum((jnp.max(points, axis=1) - jnp.min(points, axis=1)) ** 2))
    return found, ~set_back(points[:, found], wide)


def _held(scene: Scene, part: Part, numbers: Any) -> Any:
    """Points of the rims and of the axis, and vertices of the hull, that may meet."""
    other, own = (make(scene, part, numbers).still() for make in (_hull, _own))
    middle, along, half = line = lax.stop_gradient(segment(scene, part.bodies[0], numbers.first))
    places, kept = held_axis(line, other)
    ways = jax.vmap(lambda s: other.at(middle + s * along)[1])(places)
    # at the ends of the axis the rims already make the contact
    inner = jnp.abs(places) < (1.0 - COINCIDE) * half
    side = kept & inner & (jnp.abs(dot(along[:, None], ways.T)) < LATERAL)
    rims = lax.stop_gradient(rims_of(scene, part.bodies[0], numbers.first))
    return held_rims(rims, other), (places, side), _held_vertices(other.numbers[0], own)


def _meet(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    first, other = numbers.first, _hull(scene, part, numbers)
    rims, (places, side), (which, kept) = _held(scene, part, numbers) if near is None else near
    middle, along, half = segment(scene, part.bodies[0], first)
    size, axis = half + first.radius, middle[:, None] + places * along[:, None]
    corners, own = other.numbers[0][:, which], _own(scene, part, numbers)
    return joined([
        of_rims(rims_of(scene, part.bodies[0], first), other, rims, size),
        pointed(axis, first.radius, other, side, size),
        exchanged(pointed(corners, 0.0, own, kept, size)),
    ])  # fmt: skip


CYLINDERS_ON_HULLS = (PairKind("cylinder", "hull", _meet, ROWS, _held),)
