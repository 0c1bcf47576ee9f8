"""Rodrigues vectors ``alpha = 2 tan(angle / 2) n`` of rotations: rational in their components, without
trigonometry and without a branch near zero; singular at half a turn only.

Source: [GN (84)-(111)], in the axes of the ground: a change ``dalpha`` rotates a turned vector by the
infinitesimal rotation ``Xi dalpha``.
"""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.types import Array


def skew(a: Array) -> Array:
    """Matrix (3, 3) of the cross product ``a x``."""
    zero = jnp.zeros_like(a[0])
    return jnp.stack([zero, -a[2], a[1], a[2], zero, -a[0], -a[1], a[0], zero]).reshape(3, 3)


def scale(alpha: Array) -> Array:
    """Factor ``c = 4 / (4 + alpha . alpha)``."""
    return 4.0 / (4.0 + jnp.sum(alpha * alpha))


def matrix(alpha: Array) -> Array:
    """Rotation matrix ``I + c (A + A^2 / 2)`` (3, 3).

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.math import rodrigues
        >>> quarter = rodrigues.matrix(jnp.array([0.0, 0.0, 2.0]))
        >>> quarter[:, 0].tolist()
        [0.0, 1.0, 0.0]
    """
    A, square = skew(alpha), jnp.sum(alpha * alpha)
    twice = alpha[:, None] * alpha[None, :] - square * jnp.eye(3)
    return jnp.eye(3) + scale(alpha) * (A + 0.5 * twice)


def spin(alpha: Array) -> Array:
    """Matrix ``Xi = c (I + A / 2)`` (3, 3) from a change ``dalpha`` to the rotation ``Xi dalpha``."""
    return scale(alpha) * (jnp.eye(3) + 0.5 * skew(alpha))
