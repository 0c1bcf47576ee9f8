"""Ropes between two points that wind about a sphere or cylinder: length, touching points, directions."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.math import norm, real_root, sin_cos
from nsjax.multibody.coordinates.frames import Scene
from nsjax.types import Array

SHORT, SIDE, INSIDE = "short", "side", "inside"
"""Ways about a shape: the shorter one, past a point at its side, and through a ring."""

ONTO, OFF = "onto", "off"
"""Ways of a rope whose last, or first, end is wound onto a shape."""

Pair = tuple[Array, Array]


@dataclasses.dataclass(frozen=True)
class Wound:
    """A rope between two points, which winds about a shape or runs straight.

    Args:
        length: [m].
        on, off: where it meets and leaves the shape, vectors [m]; its first point if it runs straight.
        leaving, arriving: unit vectors along the rope before and behind the shape.
        turned: angle between these directions, along the rope; zero if it runs straight [rad].
        arc: function without arguments, points (n, d) from ``on`` to ``off``, for pictures.
    """

    length: Any
    on: Any
    off: Any
    leaving: Any
    arriving: Any
    turned: Any
    arc: Any


@dataclasses.dataclass(frozen=True)
class Flat:
    """A rope in the plane of a circle, whose first axis points to the rope's first point.

    Args:
        winds: whether the rope touches the circle; all else holds if it does.
        on, off: where it meets and leaves the circle.
        leaving, arriving: directions of the straight pieces.
        legs: lengths of the straight pieces [m].
        swept: angle about the centre from ``on`` to ``off``, with its sign [rad].
        length: [m].
    """

    winds: Array
    on: Pair
    off: Pair
    leaving: Pair
    arriving: Pair
    legs: Pair
    swept: Array
    length: Array


@dataclasses.dataclass(frozen=True)
class Drum:
    """A shape about which a rope winds.

    Args:
        kind, body, numbers: a sphere, or a cylinder without ends.
        way: one of `SHORT`, `SIDE`, `INSIDE`, `ONTO` and `OFF`.
        side: point past which the rope runs, a vector; of an end that is wound up, the direction (2,) in
            which the rope leaves the shape; None for the other ways.
        turns: whole turns about the shape, more than it takes past the side.
    """

    kind: str
    body: str
    numbers: Any
    way: str
    side: Any = None
    turns: int = 0


def wound(scene: Scene, drum: Drum, ends: tuple[Any, Any]) -> Wound:
    """A rope between two points about a shape, the shortest line on its way; smooth where it lifts off.
    ``drum``: the shape; ``ends``: both points, vectors of the algebra.

    Source: MuJoCo's documentation, chapter Computation, and its function ``mju_wrap`` for which way a rope
    takes and when it touches.
    """
    a, body, x, side = scene.algebra, drum.body, drum.numbers, drum.side
    centre = scene.point(body, x.at)
    axis = None
    if drum.kind == "cylinder":
        axis = a.turned(scene.frame(body).turn, a.vector(1.0 if x.axis is None else x.axis))
    place, distance, far = _place(a, centre, axis, ends)
    radius = jnp.asarray(x.radius, float)
    if drum.way == INSIDE:
        flat = _through(distance, far, radius)
    else:
        seen = None if side is None else place.seen(a.subtract(side, centre))
        flat = _about(distance, far, radius, seen, drum.turns)
    length, slope = flat.length, None
    heights: tuple[Any, Any] = None, None
    if place.rise is not None:  # a straight line on the unrolled cylinder
        length, slope = norm(jnp.stack([length, place.rise])), place.rise / length
        heights = (
            place.level + slope * flat.legs[0], place.level + place.rise - slope * flat.legs[1],
        )  # fmt: skip
    gone = a.subtract(ends[1], ends[0])
    direct = a.size(gone)
    straight = a.scale(1.0 / jnp.where(direct > 0.0, direct, 1.0), gone)
    share = flat.length / length

    def taken(bent: Any, straight: Any) -> Any:
        return a.vector(jnp.where(flat.winds, a.array(bent), a.array(straight)))

    def point(pair: Pair, height: Any) -> Any:
        return taken(a.add(centre, place.vector(pair, height)), ends[0])

    def arc(part: float) -> Array:
        """A point of the arc, at a part of its length."""
        s, c = sin_cos(part * flat.swept)
        turned = flat.on[0] * c - flat.on[1] * s, flat.on[0] * s + flat.on[1] * c
        height = None if slope is None else heights[0] + part * (heights[1] - heights[0])
        return a.array(point(turned, height))

    pieces = 12 * (1 + drum.turns)  # of an arc in a picture
    pulls = [a.scale(share, place.vector(pair, slope)) for pair in (flat.leaving, flat.arriving)]
    return Wound(
        length=jnp.where(flat.winds, length, direct), on=point(flat.on, heights[0]),
        off=point(flat.off, heights[1]), leaving=taken(pulls[0], straight),
        arriving=taken(pulls[1], straight), turned=jnp.where(flat.winds, share * jnp.abs(flat.swept), 0.0),
        arc=lambda: jnp.stack([arc(k / pieces) for k in range(pieces + 1)]),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Unwound:
    """The straight piece of a rope between a point and a disc on which the rest is wound.

    Args:
        length: of this piece, and of what the disc has wound up since its angle was zero and the rope left
            it in the given direction [m].
        place: where the rope meets the disc, a vector.
        along: unit vector from the point to this place.
    """

    length: Array
    place: Any
    along: Any


def unwound(scene: Scene, drum: Drum, end: Any) -> Unwound:
    """A rope between a point ``end`` and a disc in the plane, on which it does not slip: with the distance
    D of the point from the centre, the straight piece ``sqrt(D^2 - r^2)`` touches the disc at the angle
    ``+-arccos(r / D)`` from the point, on the side of the direction. Its rate is that of the disc's point
    there against the rope's.
    """
    a, radius = scene.algebra, jnp.asarray(drum.numbers.radius, float)
    centre, turned = scene.point(drum.body, drum.numbers.at), scene.frame(drum.body).angle
    x, y = a.array(a.subtract(end, centre))
    u, w = jnp.asarray(drum.side, float)
    square = x * x + y * y
    leg, sense = real_root(square - radius * radius), jnp.where(x * w - y * u >= 0.0, 1.0, -1.0)
    e = (radius * x - sense * leg * y) / square, (radius * y + sense * leg * x) / square
    touching = jnp.arctan2(u * e[1] - w * e[0], u * e[0] + w * e[1])
    return Unwound(
        length=leg + sense * radius * ((0.0 if turned is None else turned) - touching),
        place=a.add(centre, (radius * e[0], radius * e[1])), along=(-sense * e[1], sense * e[0]),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Place:
    """Axes of the plane of a circle, in the axes of the ground.

    Args:
        a: the algebra.
        along, across, normal: unit vectors; the first points to the rope's first point.
        level, rise: height of this point along the axis of a cylinder, and how much higher the last one is
            [m]; None: there is no axis.
    """

    a: Any
    along: Any
    across: Any
    normal: Any
    level: Any
    rise: Any

    def seen(self, v: Any) -> Pair:
        """Components of a vector in the plane."""
        a = self.a
        return a.value(a.dot(v, self.along)), a.value(a.dot(v, self.across))

    def vector(self, pair: Pair, height: Any) -> Any:
        """A vector from its components."""
        a = self.a
        found = a.add(a.scale(pair[0], self.along), a.scale(pair[1], self.across))
        return found if height is None else a.add(found, a.scale(height, self.normal))


def _place(a: Any, centre: Any, axis: Any, ends: tuple[Any, Any]) -> tuple[_Place, Array, Pair]:
    """The plane of a circle about ``axis``, or through both points where there is none, the distance of the
    first point from the centre and the components of the last one.
    """
    first, last = (a.subtract(end, centre) for end in ends)
    near, level, rise = first, None, None
    if axis is not None:
        level, rise = a.dot(first, axis), a.dot(a.subtract(ends[1], ends[0]), axis)
        near = a.subtract(first, a.scale(level, axis))
    distance = a.size(near)
    along = a.scale(1.0 / jnp.where(distance > 0.0, distance, 1.0), near)
    normal = axis
    if isinstance(along, tuple):  # in the plane
        across = a.perp(along)
    else:
        if axis is None:  # across both points; across the first where they are parallel up to rounding
            found = a.moment(along, last)
            size = a.size(found)
            apart = size > 1e-12 * a.size(last)
            normal = jnp.where(apart, found / jnp.where(apart, size, 1.0), a.tangents(along)[0])
        across = a.swing(normal, along)
    made = _Place(a, along, across, normal, level, rise)
    return made, distance, made.seen(last)


def _nearest(distance: Array, far: Pair) -> Pair:
    """Point nearest to the centre of the line between both points."""
    gone = far[0] - distance, far[1]
    square = gone[0] * gone[0] + gone[1] * gone[1]
    share = jnp.clip(-gone[0] * distance / jnp.where(square > 0.0, square, 1.0), 0.0, 1.0)
    return distance + share * gone[0], share * gone[1]


def _harmless(good: Array, distance: Array, far: Pair, radius: Array) -> tuple[Array, Pair, Array]:
    """Points and radius, in place of which finite ones stand where a rope cannot touch a circle."""
    radius = jnp.where(good, radius, 1.0)
    return (
        jnp.where(good, distance, 2.0),
        (jnp.where(good, far[0], 0.0), jnp.where(good, far[1], 2.0)),
        radius,
    )  # fmt: skip


def _counts(x: Array) -> Array:
    """Whether a radius [m], or the square of a distance [m^2], is more than zero."""
    return x >= 1e-15  # the smallest number of MuJoCo


def _outside(distance: Array, far: Pair, radius: Array) -> Array:
    """Whether a circle has a size, and both points lie outside of it and apart."""
    gone = far[0] - distance, far[1]
    square = radius * radius
    return (
        (distance * distance >= square) & (far[0] * far[0] + far[1] * far[1] >= square)
        & _counts(radius) & _counts(gone[0] * gone[0] + gone[1] * gone[1])
    )  # fmt: skip


def _tangents(distance: Array, far: Pair, radius: Array, sense: Any) -> tuple[Pair, Pair, Array, Array]:
    """Touching points of the tangents from both points about a circle clockwise (``sense`` 1) or counter-
    clockwise (-1), and sine and cosine, times the square of the radius, of the angle between them.
    """
    square = radius * radius
    apart = far[0] * far[0] + far[1] * far[1]
    here, there = real_root(distance * distance - square), real_root(apart - square)
    on = square / distance, -sense * radius * here / distance
    off = (
        (far[0] * square - sense * radius * far[1] * there) / apart,
        (far[1] * square + sense * radius * far[0] * there) / apart,
    )
    sine, cosine = -sense * (on[0] * off[1] - on[1] * off[0]), on[0] * off[0] + on[1] * off[1]
    # tangents cross that are swept by almost a whole turn, so that the rope would lie beside the circle; an
    # angle of zero is no whole turn by rounding
    crossed = (sine < -1e-9 * square) & (-radius * sine <= jnp.minimum(here, there) * (square + cosine))
    return on, off, jnp.arctan2(sine, cosine), crossed


def _about(distance: Array, far: Pair, radius: Array, side: Pair | None, turns: int) -> Flat:
    """A rope about a circle, on the shorter way, or past a point at its side, with whole turns more."""
    outside = _outside(distance, far, radius)
    nearest = _nearest(distance, far)
    winds = nearest[0] * nearest[0] + nearest[1] * nearest[1] <= radius * radius
    distance, far, radius = _harmless(outside, distance, far, radius)
    sense = jnp.where(far[1] >= 0.0, -1.0, 1.0)
    if side is not None:
        winds = winds | (side[0] * nearest[0] + side[1] * nearest[1] < 0.0)
        sense = lax.stop_gradient(_past(distance, far, radius, side, turns))
    on, off, swept, crossed = _tangents(distance, far, radius, sense)
    winds = outside if turns else winds & outside & ~crossed
    # an angle of almost zero may have the wrong sign by rounding
    swept = jnp.where(swept < -1e-9, swept + 2.0 * np.pi, swept) + 2.0 * np.pi * turns
    square = radius * radius
    legs = real_root(distance * distance - square), real_root(far[0] * far[0] + far[1] * far[1] - square)
    leaving, arriving = ((sense * y / radius, -sense * x / radius) for x, y in (on, off))
    length = legs[0] + radius * swept + legs[1]
    return Flat(winds, on, off, leaving, arriving, legs, -sense * swept, length)


def _past(distance: Array, far: Pair, radius: Array, side: Pair, turns: int) -> Array:
    """Sense in which the touching points lie nearer to the side; crossing tangents are second choice."""
    found = []
    for sense in (1.0, -1.0):
        on, off, _, crossed = _tangents(distance, far, radius, sense)
        middle = jnp.stack([on[0] + off[0], on[1] + off[1]])
        size = norm(middle)
        good = (middle[0] * side[0] + middle[1] * side[1]) / jnp.where(size > 0.0, size, 1.0)
        found.append(good if turns else jnp.where(crossed, -jnp.inf, good))
    return jnp.where(found[0] > found[1], 1.0, -1.0)


def _through(distance: Array, far: Pair, radius: Array) -> Flat:
    """A rope through a ring, which touches it at one point with equal angles, or passes straight."""
    nearest = _nearest(distance, far)
    winds = nearest[0] * nearest[0] + nearest[1] * nearest[1] > radius * radius
    winds = winds & _counts(radius)
    distance, far, radius = _harmless(winds, distance, far, radius)
    apart = norm(jnp.stack(far))
    sign = jnp.where(far[1] >= 0.0, 1.0, -1.0)
    angle = jnp.arctan2(sign * far[1], far[0])
    here, there = radius / distance, radius / apart

    def shifted(x: Array, ratio: Array) -> tuple[Array, Array]:
        """Angle at a rope's end, and its derivative by the angle of incidence x."""
        sine, cosine = ratio * jnp.sin(x), ratio * jnp.cos(x)
        other = jnp.sqrt(1.0 - sine * sine)
        return jnp.arctan2(sine, other), cosine / other

    def newton(x: Array, here: Array, there: Array, angle: Array) -> Array:
        one, other = shifted(x, here), shifted(x, there)
        return x - (one[0] + other[0] - 2.0 * x + angle) / (one[1] + other[1] - 2.0)

    # Newton's method from a grazing rope comes from one side: 15 steps for points 1e-6 radii above the
    # ring. The two last steps carry derivatives, first and second
    data = here, there, angle
    still = lax.stop_gradient(data)
    x = lax.fori_loop(0, 16, lambda _, x: newton(x, *still), jnp.full_like(radius, 0.5 * np.pi))
    x = newton(newton(lax.stop_gradient(x), *data), *data)
    turn = sign * (x - shifted(x, here)[0])
    touching = radius * jnp.cos(turn), radius * jnp.sin(turn)
    before, after = (touching[0] - distance, touching[1]), (far[0] - touching[0], far[1] - touching[1])
    legs = norm(jnp.stack(before)), norm(jnp.stack(after))
    leaving, arriving = ((x[0] / leg, x[1] / leg) for x, leg in zip((before, after), legs, strict=True))
    return Flat(
        winds, touching, touching, leaving, arriving, legs, jnp.zeros_like(turn), legs[0] + legs[1]
    )  # fmt: skip
