"""Sine and cosine that a compiled time loop computes once, in runs and in their derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.types import Array


@jax.jit
def _plain(x: Array) -> tuple[Array, Array]:
    return jnp.sin(x), jnp.cos(x)


@jax.jit
def _not_finite(x: Array) -> tuple[Array, Array]:
    # zero, or not a number: a difference that keeps the compiler from merging the two branches
    blank = x - x
    return jnp.sin(x) + blank, jnp.cos(x) + blank


def _once(x: Array) -> tuple[Array, Array]:
    return lax.cond(jnp.isfinite(jnp.sum(x)), _plain, _not_finite, x)


@jax.custom_jvp
def sin_cos(x: Array) -> tuple[Array, Array]:
    """``(sin x, cos x)`` of an array, for use in models.

    One evaluation of a vector has a quarter of the operations of four evaluations of its entries: models
    call it once, with all their angles. The values are those of `jax.numpy.sin` and `jax.numpy.cos`, but
    differentiation is cheaper. XLA's fusion on CPU copies an elementary function into every fusion that
    uses it, once per element there: the derivative of a step of the slider-crank evaluates 26 sines and
    cosines instead of 12, which is half of its time. XLA never copies a branch, so that the functions are
    evaluated in one (`jax.vmap` turns the branch into a selection, which keeps only the values).
    Derivatives use the pair itself, ``d(sin x, cos x) = (cos x, -sin x) dx``, without further evaluations.
    On other devices, where a branch needs the host, this is the plain pair.

    Args:
        x: angles of any shape [rad].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.math import sin_cos
        >>> s, c = sin_cos(jnp.pi / 6)
        >>> float(s.round(12)), float((c**2).round(12))
        (0.5, 0.75)
    """
    return lax.platform_dependent(jnp.asarray(x), cpu=_once, default=_plain)


@sin_cos.defjvp
def _rule(primals: Any, tangents: Any) -> Any:
    s, c = sin_cos(*primals)
    (dx,) = tangents
    return (s, c), (c * dx, -s * dx)
