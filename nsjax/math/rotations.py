"""Unit quaternions ``(w, x, y, z)``, body to world, moved by body-fixed increments.

``retract`` normalises, so that a quaternion stays on the unit sphere by construction; all maps have
three finite derivatives at a zero increment, forward and reverse. Source: the
exponential map of unit quaternions, with series where its angle is small.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.types import Array

# Below this value of |xi|^2 / 4 the series of cos and sinc are exact to rounding, and smooth.
SERIES_LIMIT = 1e-2


_PRODUCT = np.zeros((4, 4, 4))
"""``(a o b)_k = sum a_i b_j _PRODUCT[k, i, j]``."""
for _i, _j, _k, _sign in (
    (0, 0, 0, 1), (1, 1, 0, -1), (2, 2, 0, -1), (3, 3, 0, -1), (0, 1, 1, 1), (1, 0, 1, 1), (2, 3, 1, 1),
    (3, 2, 1, -1), (0, 2, 2, 1), (1, 3, 2, -1), (2, 0, 2, 1), (3, 1, 2, 1), (0, 3, 3, 1), (1, 2, 3, 1),
    (2, 1, 3, -1), (3, 0, 3, 1),
):  # fmt: skip
    _PRODUCT[_k, _i, _j] = _sign
_BACK = np.array([1.0, -1.0, -1.0, -1.0])
"""Signs of the inverse rotation."""
RELATIVE = _PRODUCT * _BACK[None, :, None]
"""Table of ``conj(a) o b`` for `bilinear`."""
SPUN = _PRODUCT[:, :, 1:]
"""Table of ``a o (0, w)`` for `bilinear`: twice the rate of ``a`` at the body angular velocity ``w``."""
# A x = p o x o conj(p): entries (row, column) of the matrix as squares of the quaternion
_MATRIX = np.einsum("mic,rmj->rcij", _PRODUCT[:, :, 1:], (_PRODUCT * _BACK)[1:])


def bilinear(table: np.ndarray, a: Array, b: Array) -> Array:
    """``sum_ij table[..., i, j] a_i b_j`` in five operations, a tenth of those by components."""
    return jnp.sum(table * (a[:, None] * b[None, :]), axis=(-2, -1))


def multiply(a: Array, b: Array) -> Array:
    """Hamilton product ``a o b`` of quaternions (4,)."""
    return bilinear(_PRODUCT, a, b)


def conjugate(p: Array) -> Array:
    """Inverse rotation (4,)."""
    return jnp.asarray(_BACK) * p


def matrix(p: Array) -> Array:
    """Rotation matrix (3, 3) of a unit quaternion, body to world."""
    return bilinear(_MATRIX, p, p)


# cos(s) and sin(s) / s as 1 - x / c_1 (1 - x / c_2 (...)), x = s^2
_COSINE_SINC = 1.0 / np.array([[2.0, 12.0, 30.0, 56.0, 90.0], [6.0, 20.0, 42.0, 72.0, 110.0]])


def exponential(xi: Array) -> Array:
    """Quaternion (4,) of the rotation vector ``xi`` (3,) [rad].

    ``(cos s, sinc(s) xi / 2)`` with ``s = |xi| / 2``, by series near zero.
    """
    x = 0.25 * jnp.sum(xi * xi)
    near = x < SERIES_LIMIT
    s = jnp.sqrt(jnp.where(near, 1.0, x))
    series = 1.0 - x * _COSINE_SINC[:, 4]
    for k in (3, 2, 1, 0):
        series = 1.0 - x * (_COSINE_SINC[:, k] * series)
    both = jnp.where(near, series, jnp.stack([jnp.cos(s), jnp.sin(s) / s]))
    return jnp.concatenate([both[:1], 0.5 * both[1:] * xi])


def rotate(p: Array, xi: Array) -> Array:
    """``retract`` of a rotation: ``p o exp(xi)`` (4,), normalised.

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
