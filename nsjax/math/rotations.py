"""Unit quaternions ``(w, x, y, z)``, body to world, moved by body-fixed increments.

``retract`` normalises, so that a quaternion stays on the unit sphere by construction; all maps have
three finite derivatives at a zero increment, forward and reverse. Source: the
exponential map of unit quaternions, with series where its angle is small.
"""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.types import Array

# Below this value of |xi|^2 / 4 the series of cos and sinc are exact to rounding, and smooth.
SERIES_LIMIT = 1e-2


def multiply(a: Array, b: Array) -> Array:
    """Hamilton product ``a o b`` of quaternions (4,)."""
    w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
    z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]
    return jnp.stack([w, x, y, z])


def conjugate(p: Array) -> Array:
    """Inverse rotation (4,)."""
    return jnp.concatenate([p[:1], -p[1:]])


def matrix(p: Array) -> Array:
    """Rotation matrix (3, 3) of a unit quaternion, body to world."""
    w, x, y, z = p[0], p[1], p[2], p[3]
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return jnp.stack(rows).reshape(3, 3)


def exponential(xi: Array) -> Array:
    """Quaternion (4,) of the rotation vector ``xi`` (3,) [rad].

    ``(cos s, sinc(s) xi / 2)`` with ``s = |xi| / 2``, by series near zero.
    """
    x = 0.25 * jnp.sum(xi * xi)
    near = x < SERIES_LIMIT
    s = jnp.sqrt(jnp.where(near, 1.0, x))
    cosine = 1 - x / 2 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56 * (1 - x / 90))))
    sinc = 1 - x / 6 * (1 - x / 20 * (1 - x / 42 * (1 - x / 72 * (1 - x / 110))))
    w = jnp.where(near, cosine, jnp.cos(s))
    v = 0.5 * jnp.where(near, sinc, jnp.sin(s) / s)
    return jnp.concatenate([w[None], v * xi])


def rotate(p: Array, xi: Array) -> Array:
    """``retract`` of a rotation: ``p o exp(xi)``, normalised (4,).

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.math import rotations
        >>> half_turn = rotations.rotate(jnp.array([1.0, 0, 0, 0]), jnp.array([0, 0, jnp.pi]))
        >>> half_turn.round(12).tolist()
        [0.0, 0.0, 0.0, 1.0]
    """
    moved = multiply(p, exponential(xi))
    return moved / jnp.sqrt(jnp.sum(moved * moved))


def rotation_between(p0: Array, p1: Array) -> Array:
    """``difference`` of rotations: the vector ``xi`` (3,) with ``rotate(p0, xi) = p1``, shortest way.

    Not differentiable for half a turn; for use outside the time loop.
    """
    d = multiply(conjugate(p0), p1)
    d = jnp.where(d[0] < 0.0, -d, d)
    square = jnp.sum(d[1:] * d[1:])
    near = square < 1e-12
    size = jnp.sqrt(jnp.where(near, 1.0, square))
    # 2 atan2(s, w) / s with s -> 0: 2 / w (1 - s^2 / (3 w^2))
    factor = jnp.where(
        near, 2.0 / d[0] * (1.0 - square / (3.0 * d[0] ** 2)), 2.0 * jnp.arctan2(size, d[0]) / size
    )
    return factor * d[1:]


def move_pose(q: Array, xi: Array) -> Array:
    """``retract`` of a free body: ``q = (x, p)`` (7,) along ``xi = (dx, rotation)`` (6,)."""
    return jnp.concatenate([q[:3] + xi[:3], rotate(q[3:], xi[3:])])


def pose_between(q0: Array, q1: Array) -> Array:
    """``difference`` of a free body: the increment (6,) that leads from ``q0`` to ``q1``."""
    return jnp.concatenate([q1[:3] - q0[:3], rotation_between(q0[3:], q1[3:])])
