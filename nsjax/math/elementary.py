"""Norms, sines and constant entries with finite and cheap derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.types import Array

# Norms whose derivatives are finite everywhere, zero included.


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


def real_root(x: Array) -> Array:
    """Square root of positive numbers, else zero with zero derivative."""
    return jnp.where(x > 0.0, jnp.sqrt(jnp.where(x > 0.0, x, 1.0)), 0.0)


def direction(x: Array, axis: int = -1) -> Array:
    """``x / |x|`` along ``axis``, and zero where ``x`` is zero. For one component: the sign."""
    if x.shape[axis] == 1:
        return jnp.sign(x)
    size = jnp.expand_dims(norm(x, axis), axis)
    return jnp.where(size > 0.0, x / jnp.where(size > 0.0, size, 1.0), 0.0)


# Entries of an array at constant indices without a gather: its transpose is a scatter, and on a CPU a
# scatter splits the one kernel of a time loop.


SLICES = 64
"""Largest number of slices that replace a gather: each adds two operations to the program."""

TERMS = 150
"""Largest number of terms that `picked` sums for each entry: of sums of more than 4,096 terms, over all 27
entries of rotations, the compiler makes calls of a library, which split the kernel of a time loop.
"""


def taken(x: Array, places: np.ndarray) -> Array:
    """``x[places]`` along the first axis, as slices of neighbours and repetitions of one entry. Returns the
    entries (m, ...). Indices that form more than 64 runs of neighbours are gathered: each slice adds two
    operations to the program.

    Args:
        x (n, ...): the array.
        places (m,): indices of the entries, constants that are not traced.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from nsjax.math import taken
        >>> taken(jnp.arange(5.0), np.array([3, 4, 0, 0])).tolist()
        [3.0, 4.0, 0.0, 0.0]
    """
    runs = _runs([int(k) for k in places])
    if len(runs) > SLICES:
        return x[np.asarray(places)]
    found = []
    for first, step, count in runs:
        part = x[first : first + count] if step else x[first : first + 1]
        found.append(part if step or count == 1 else jnp.broadcast_to(part, (count, *x.shape[1:])))
    return jnp.concatenate(found) if found else x[:0]


def picked(x: Array, places: np.ndarray) -> Array:
    """``x[..., places]`` in two operations for any order, as sums with one nonzero term. For short axes:
    every entry of the result reads a row of ``n``. Matrices with long ones are `taken`.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from nsjax.math import picked
        >>> picked(jnp.arange(5.0), np.array([3, 0, 4])).tolist()
        [3.0, 0.0, 4.0]
    """
    if len(places) == 0 or np.all(np.diff(places) == 1):
        first = int(places[0]) if len(places) else 0
        return x[..., first : first + len(places)]
    if x.ndim > 2 and x.shape[-1] * len(places) > TERMS:
        return jnp.moveaxis(taken(jnp.moveaxis(x, -1, 0), places), 0, -1)
    here = np.arange(x.shape[-1])[:, None] == places
    return jnp.sum(jnp.where(here, x[..., :, None], 0.0), axis=-2)


def dealt(x: Array, places: np.ndarray, n: int) -> Array:
    """The vector (n,) to whose entries ``places`` (m,) those of ``x`` (m,) are added; the transpose of
    `picked`. Neighbours are filled up with zeros: a sum over a mask computes every entry of ``x`` anew for
    every entry of the result.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from nsjax.math import dealt
        >>> dealt(jnp.array([1.0, 2.0]), np.array([1, 2]), 4).tolist()
        [0.0, 1.0, 2.0, 0.0]
        >>> dealt(jnp.array([1.0, 2.0, 3.0]), np.array([3, 0, 0]), 4).tolist()
        [5.0, 0.0, 0.0, 1.0]
    """
    if np.all(np.diff(places) == 1):
        return jnp.pad(x, (int(places[0]), n - 1 - int(places[-1])))
    return jnp.sum(jnp.where(np.arange(n)[:, None] == places, x, 0.0), axis=1)


def _runs(places: list[int]) -> list[tuple[int, int, int]]:
    """First index, step (1 or 0) and length of each run."""
    runs: list[tuple[int, int, int]] = []
    for place in places:
        if runs:
            first, step, count = runs[-1]
            if count == 1 and place - first in (0, 1):
                runs[-1] = first, place - first, 2
                continue
            if count > 1 and place == first + step * count:
                runs[-1] = first, step, count + 1
                continue
        runs.append((place, 1, 1))
    return runs


# Sine and cosine that a compiled time loop computes once, in runs and in their derivatives.


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
