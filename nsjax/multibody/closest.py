"""Closest points of simple shapes in closed form, with exact derivatives and none that is not a number.

Points and vectors are arrays (d,), or (d, k) for k of them. Where a direction is lost (centres that meet, a
centre on an axis, parallel axes), another one takes its place: the gap stays right, and its derivative is
that along the direction taken.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.types import Array

MEET = 1e-14
"""Points nearer than this coincide [m]: rounding of positions of the size of a metre, a hundred times."""

PARALLEL = 1e-12
"""Squared sine of an angle below which axes are parallel: beneath it the crossing of unit axes is rounding
of their products, a thousand times.
"""


@dataclasses.dataclass(frozen=True)
class Met:
    """Where two shapes meet: gap, points on the first and on the second, unit normal to the first."""

    gap: Array
    here: Array
    there: Array
    normal: Array


def dot(a: Array, b: Array) -> Array:
    """``a . b`` along the first axis."""
    return jnp.sum(a * b, axis=0)


def lengthened(apart: Array, instead: Array) -> tuple[Array, Array]:
    """Length and direction of a vector; along ``instead`` where it has none."""
    square = jnp.sum(apart * apart, axis=0)
    away = square > MEET * MEET
    size = jnp.sqrt(jnp.where(away, square, 1.0))
    unit = jnp.where(away, apart / size, instead)
    return jnp.where(away, size, dot(instead, apart)), unit


def within(x: Array, half: Any) -> Array:
    """``x``, or the nearer one of ``-half`` and ``half``; None: no bounds."""
    if half is None:
        return x
    return jnp.where(x > half, half, jnp.where(x < -half, -half, x))


def on_segment(point: Array, middle: Array, along: Array, half: Any) -> Array:
    """The point of a segment (of a line for None) nearest to a point."""
    return middle + within(dot(point - middle, along), half) * along


def of_segments(one: tuple[Array, Array, Any], other: tuple[Array, Array, Any]) -> tuple[Array, Array]:
    """The nearest points of two segments ``(middle, unit axis, half length)``; of parallel ones, some."""
    (m, d, h), (n, e, k) = one, other
    apart, lean = m - n, dot(d, e)
    c, f = dot(d, apart), dot(e, apart)
    crossing = 1.0 - lean * lean
    across = crossing > PARALLEL
    s = within(jnp.where(across, (lean * f - c) / jnp.where(across, crossing, 1.0), 0.0), h)
    t = within(lean * s + f, k)
    s = within(lean * t - c, h)
    return m + s * d, n + t * e


def between(here: Array, radius: Any, there: Array, other: Any, instead: Array) -> Met:
    """Balls around two points of centre lines."""
    length, unit = lengthened(here - there, instead)
    radius, other = (0.0 if x is None else x for x in (radius, other))
    return Met(length - radius - other, here - radius * unit, there + other * unit, unit)


def inside(here: Array, radius: Any, there: Array, hollow: Any, instead: Array) -> Met:
    """A ball inside a hollow around a point of its centre line: clearance less eccentricity."""
    length, unit = lengthened(here - there, instead)
    radius = 0.0 if radius is None else radius
    return Met(hollow - radius - length, here + radius * unit, there + hollow * unit, -unit)


def boxed(x: Array, half: Array) -> tuple[Array, Array]:
    """Distance (negative inside) of a point (d,) from a box around the origin, and its direction; inside,
    the nearest face counts, the first of several.
    """
    depth = half - jnp.abs(x)
    nearest = jnp.arange(x.shape[0]) == jnp.argmin(depth)
    face = jnp.where(nearest, jnp.where(x < 0.0, -1.0, 1.0), 0.0)
    length, unit = lengthened(x - within(x, half), face)
    out = jnp.any(depth < -MEET)
    return jnp.where(out, length, -jnp.sum(jnp.where(nearest, depth, 0.0))), jnp.where(out, unit, face)


def capsules(
    one: tuple[Array, Array, Any], radius: Any, other: tuple[Array, Array, Any], second: Any, instead: Array
) -> Met:  # fmt: skip
    """Five contacts: the nearest points, and each end against the other axis, which hold parallel ones."""
    (m, d, h), (n, e, k) = one, other
    pairs = [of_segments(one, other)]
    pairs += [(end, on_segment(end, n, e, k)) for end in (m - h * d, m + h * d)]
    pairs += [(on_segment(end, m, d, h), end) for end in (n - k * e, n + k * e)]
    here, there = (jnp.stack([pair[i] for pair in pairs], axis=1) for i in (0, 1))
    return between(here, radius, there, second, instead[:, None])


def rims(
    normal: Array, middle: Array, along: Array, half: Any, radius: Any, fixed: tuple[Array, Array]
) -> Array:
    """Points (3, 10) of a cylinder that a plane may meet: of each rim the deepest, and four that turn with
    the body, on which it stands.
    """
    side = normal - dot(normal, along) * along
    _, out = lengthened(side, fixed[0])
    arms = [-out, fixed[0], fixed[1], -fixed[0], -fixed[1]]
    return jnp.stack(
        [middle + sign * half * along + radius * arm for sign in (1.0, -1.0) for arm in arms], axis=1
    )
