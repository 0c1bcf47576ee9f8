"""Norms whose derivatives are finite everywhere, zero included."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.types import Array


def norm(x: Array, axis: int = -1) -> Array:
    """Euclidean norm along ``axis``; its derivative at zero is zero.

    Args:
        x: vector (n,), or an array of vectors.
        axis: axis of their components.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from nsjax.math import norm
        >>> jax.grad(norm)(jnp.zeros(2)).tolist()
        [0.0, 0.0]
    """
    square = jnp.sum(x * x, axis=axis)
    zero = square == 0.0
    return jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, square)))


def direction(x: Array, axis: int = -1) -> Array:
    """``x / |x|`` along ``axis``, and zero where ``x`` is zero. For one component: the sign."""
    if x.shape[axis] == 1:
        return jnp.sign(x)
    size = jnp.expand_dims(norm(x, axis), axis)
    return jnp.where(size > 0.0, x / jnp.where(size > 0.0, size, 1.0), 0.0)
