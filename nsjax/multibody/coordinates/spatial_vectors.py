"""Vectors of space as arrays (3,), or (3, k) for k vectors; None is a vector that is zero by construction.

The functions have the same names as in `nsjax.multibody.coordinates.planar_vectors`. Turns are rotation
matrices (3, 3), None: no turn; spins are angular velocities in the axes of the ground.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.jaxtools import rules
from nsjax.math import norm as safe_norm
from nsjax.math import rotations
from nsjax.types import Array

Vector = Any
"""(3,), or (3, n) for n vectors; None: zero."""

Turn = Any
"""(3, 3), or (3, 3, n) for n bodies; None: no turn."""

ZERO: Vector = None


def value(a: Any) -> Array:
    """A scalar as an array."""
    return jnp.zeros(()) if a is None else jnp.asarray(a, float)


def vector(numbers: Any) -> Vector:
    """Vector from None (zero), a number (along the x axis), or an array (3,)."""
    if numbers is None:
        return None
    if not isinstance(numbers, tuple | list) and jnp.ndim(numbers) == 0:
        return jnp.stack([jnp.asarray(numbers, float), jnp.zeros(()), jnp.zeros(())])
    return jnp.asarray(numbers)


def _same_axes(a: Array, b: Array) -> tuple[Array, Array]:
    """Two vectors with equal numbers of axes: one vector is broadcast against many."""
    if a.ndim < b.ndim:
        return a[:, None], b
    return (a, b[:, None]) if b.ndim < a.ndim else (a, b)


def add(a: Vector, b: Vector) -> Vector:
    """``a + b``."""
    if a is None or b is None:
        return b if a is None else a
    a, b = _same_axes(a, b)
    return a + b


def negative(a: Vector) -> Vector:
    """``-a``."""
    return None if a is None else -a


def subtract(a: Vector, b: Vector) -> Vector:
    """``a - b``."""
    return add(a, negative(b))


def scale(k: Any, a: Vector) -> Vector:
    """``k a``."""
    return None if a is None or k is None else k * a


def dot(a: Vector, b: Vector) -> Any:
    """``a . b``."""
    if a is None or b is None:
        return None
    a, b = _same_axes(a, b)
    return jnp.sum(a * b, axis=0)


def cycled(a: Array, axis: int = 0) -> Array:
    """Components permuted to ``(y, z, x)``."""
    return rules.cycled(jnp.asarray(a), axis % jnp.ndim(a), 1)


def cross(a: Vector, b: Vector, axis: int = 0) -> Vector:
    """Cross product ``a x b`` along an axis as ``(a * b' - a' * b)'``; a prime permutes components."""
    if a is None or b is None:
        return None
    a, b = _same_axes(a, b)
    return cycled(a * cycled(b, axis) - cycled(a, axis) * b, axis)


moment = cross
swing = cross


def _columns(turn: Array, a: Array) -> tuple[Array, Array]:
    """A turn and a vector with matching axes: one turn for many vectors, or many turns for one vector."""
    if turn.ndim == 2:
        return (turn if a.ndim == 1 else turn[:, :, None]), a
    return turn, (a[:, None] if a.ndim == 1 else a)


def turned(turn: Turn, a: Vector) -> Vector:
    """A vector, given in body axes, in the axes of the ground."""
    if turn is None or a is None:
        return a
    turn, a = _columns(turn, a)
    return jnp.sum(turn * a[None], axis=1)


def turned_back(turn: Turn, a: Vector) -> Vector:
    """A vector, given in the axes of the ground, in body axes."""
    if turn is None or a is None:
        return a
    turn, a = _columns(turn, a)
    return jnp.sum(turn * a[:, None], axis=0)


def both(first: Turn, second: Turn) -> Turn:
    """The matrix product of two turns."""
    if first is None or second is None:
        return second if first is None else first
    if first.ndim != second.ndim:
        first, second = (x[:, :, None] if x.ndim == 2 else x for x in (first, second))
    return jnp.sum(first[:, :, None] * second[None], axis=1)


def size(a: Vector) -> Array:
    """Length of a vector; its derivative is zero at zero."""
    return safe_norm(array(a), axis=0)


def array(a: Vector) -> Array:
    """A vector as an array (3,)."""
    return jnp.zeros(3) if a is None else a


def many(a: Vector, n: int) -> Array:
    """Vectors as an array (3, n): from (3, n), from one for all (3,) or (3, 1), or from zero (None)."""
    a = array(a)
    return jnp.broadcast_to(a[:, None] if a.ndim == 1 else a, (3, n))


def tangents(normal: Vector) -> tuple[Vector, ...]:
    """Two unit tangents of a unit normal, smooth except where its z component changes sign.

    Source: the branch-free basis of Duff and others, *Building an orthonormal basis, revisited*, JCGT 6
    (2017).
    """
    x, y, z = normal[0], normal[1], normal[2]
    sign = jnp.where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    first = jnp.stack([1.0 + sign * x * x * a, sign * b, -sign * x])
    return first, jnp.stack([b, sign + y * y * a, -y])


_CROSS = np.zeros((3, 3, 3))
"""``(a x)_ij = _CROSS[i, j, k] a_k``."""
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _CROSS[_i, _j, _k], _CROSS[_j, _i, _k] = -1.0, 1.0


def skew(a: Array) -> Array:
    """Matrix (3, 3) of the cross product with ``a`` (3,); (3, 3, n) for (3, n)."""
    table = _CROSS if a.ndim == 1 else _CROSS[..., None]
    return jnp.sum(table * a, axis=2)


def inertia_matrix(x: Any) -> Any:
    """An inertia (3, 3) from a number, three moments, or a matrix; zero from None."""
    if x is None:
        return np.zeros((3, 3))
    return x if np.ndim(x) == 2 else x * np.eye(3)


def rotation_of(turned: Any) -> Any:
    """Matrix of a rotation vector (3,); None: no rotation."""
    return None if turned is None else rotations.matrix(rotations.exponential(jnp.asarray(turned, float)))


def about(axis: Array, angle: Array) -> Array:
    """Rotation matrix (3, 3) about a unit axis."""
    k = skew(axis)
    s, c = jnp.sin(angle), jnp.cos(angle)
    return c * jnp.eye(3) + s * k + (1.0 - c) * axis[:, None] * axis[None, :]


def quaternion(turn: Array) -> Array:
    """Unit quaternion (4,) of a rotation matrix (3, 3), by its largest component."""
    m, trace = turn, jnp.trace(turn)
    size = jnp.stack([trace, m[0, 0], m[1, 1], m[2, 2]])
    candidates = jnp.stack([
        jnp.stack([1 + trace, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]),
        jnp.stack([m[2, 1] - m[1, 2], 1 + 2 * m[0, 0] - trace, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]]),
        jnp.stack([m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1 + 2 * m[1, 1] - trace, m[1, 2] + m[2, 1]]),
        jnp.stack([m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1 + 2 * m[2, 2] - trace]),
    ])  # fmt: skip
    best = candidates[jnp.argmax(size)]
    return best / jnp.sqrt(jnp.sum(best * best))
