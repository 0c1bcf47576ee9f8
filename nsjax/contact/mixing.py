"""Anderson's mixing of the last steps of an iteration, for sequences of impulses of many contacts.

The changes ``dx_k`` and ``df_k`` of the last places ``x_k`` and steps ``f_k`` are stored. The next place is
``x + f - sum_k w_k (dx_k + df_k)`` with the weights that make ``|f - sum_k w_k df_k|`` least.

Source: Anderson 1965.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from nsjax.linalg import solve
from nsjax.types import Array

DEPENDENT = 1e-12
"""Regularisation of the weights of mixing, relative to the squares of the changes: above rounding of their
products.
"""


def added(a: Array, x: Array) -> Array:
    """Sum of ``a_i x_i`` over the first axis, written out term by term: XLA's program for a reduction here
    takes twenty times as long.
    """
    return functools.reduce(jnp.add, (a[i] * x[i] for i in range(a.shape[0])))


def products(a: Array, x: Array) -> Array:
    """Scalar products of ``x`` with each ``a_i``."""
    made: Array = a.reshape(a.shape[0], -1) @ x.reshape(-1)
    return made


def weights(square: Array, along: Array) -> Array:
    """Weights (k,) with which changes cancel a step best.

    Args:
        square: products (k, k) of the changes; zeros for changes that do not count.
        along: products (k,) of the changes with the step.
    """
    size = square.shape[0]
    diagonal = jnp.sum(square * np.eye(size), axis=1)
    on = diagonal > 0.0
    scale = jnp.where(on, 1.0 / jnp.sqrt(jnp.where(on, diagonal, 1.0)), 0.0)
    unit = scale[:, None] * square * scale + jnp.where(on, DEPENDENT, 1.0)[:, None] * np.eye(size)
    return scale * solve(unit, (scale * along)[:, None])[:, 0]
