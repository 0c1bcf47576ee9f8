"""Vectors of the plane as pairs of scalars; None is a component that is zero by construction.

Such zeros (a centre of mass at the joint, an offset along the x axis) are left out of the program, which
saves a fifth of an implicit step of a small mechanism. The functions have the same names as in
`nsjax.multibody.coordinates.spatial_vectors`, so that force elements, joints and contacts are written once.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.math import norm as safe_norm
from nsjax.types import Array

Scalar = Any
"""A traced scalar, or None: zero."""

Vector = tuple[Scalar, Scalar]
"""Components along x and y; arrays (k,) as components make k vectors."""

Turn = tuple[Scalar, Scalar] | None
"""Sine and cosine of an angle; None: no turn."""

ZERO: Vector = (None, None)


def plus(a: Scalar, b: Scalar) -> Scalar:
    """``a + b``."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


def minus(a: Scalar) -> Scalar:
    """``-a``."""
    return None if a is None else -a


def times(a: Scalar, b: Scalar) -> Scalar:
    """``a b``."""
    return None if a is None or b is None else a * b


def value(a: Scalar) -> Array:
    """A scalar as an array."""
    return jnp.zeros(()) if a is None else jnp.asarray(a, float)


def vector(numbers: Any) -> Vector:
    """Vector from None (zero), a number (along the x axis), or an array (2,)."""
    if numbers is None:
        return ZERO
    if not isinstance(numbers, tuple | list) and jnp.ndim(numbers) == 0:
        return numbers, None
    return numbers[0], numbers[1]


def add(a: Vector, b: Vector) -> Vector:
    """``a + b``."""
    return plus(a[0], b[0]), plus(a[1], b[1])


def negative(a: Vector) -> Vector:
    """``-a``."""
    return minus(a[0]), minus(a[1])


def subtract(a: Vector, b: Vector) -> Vector:
    """``a - b``."""
    return add(a, negative(b))


def scale(k: Scalar, a: Vector) -> Vector:
    """``k a``."""
    return times(k, a[0]), times(k, a[1])


def dot(a: Vector, b: Vector) -> Scalar:
    """``a . b``."""
    return plus(times(a[0], b[0]), times(a[1], b[1]))


def perp(a: Vector) -> Vector:
    """A vector turned by a quarter turn counter-clockwise."""
    return minus(a[1]), a[0]


def moment(arm: Vector, force: Vector) -> Scalar:
    """``arm x force``."""
    return plus(times(arm[0], force[1]), minus(times(arm[1], force[0])))


def swing(spin: Scalar, arm: Vector) -> Vector:
    """Velocity ``spin x arm``."""
    return scale(spin, perp(arm))


def turned(turn: Turn, a: Vector) -> Vector:
    """A vector, given in body axes, in the axes of the ground."""
    if turn is None:
        return a
    s, c = turn
    return plus(times(c, a[0]), minus(times(s, a[1]))), plus(times(s, a[0]), times(c, a[1]))


def turned_back(turn: Turn, a: Vector) -> Vector:
    """A vector, given in the axes of the ground, in body axes."""
    return turned(None if turn is None else (-turn[0], turn[1]), a)


def both(first: Turn, second: Turn) -> Turn:
    """The product of two turns, as sine and cosine of the sum of their angles."""
    if first is None or second is None:
        return second if first is None else first
    (s, c), (z, x) = first, second
    return s * x + c * z, c * x - s * z


def size(a: Vector) -> Array:
    """Length of a vector; its derivative is zero at zero."""
    return safe_norm(array(a))


def array(a: Vector) -> Array:
    """A vector as an array (2,)."""
    return jnp.stack([value(a[0]), value(a[1])])


def tangents(normal: Vector) -> tuple[Vector, ...]:
    """The single unit tangent of a unit normal; along x for a normal along y."""
    return ((normal[1], minus(normal[0])),)
