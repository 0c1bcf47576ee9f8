"""Derivatives written by hand: values that carry a tangent of their own, of first order.

The value of such a function must have the lanes of a batch (`jax.vmap`) wherever its tangent has them, else
the derivative of a batch is wrong. The value therefore depends, with no effect, on arguments that do not
enter it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.types import Array, PyTree


@jax.custom_jvp
def _of_first_order(x: Array) -> Array:
    """One; differentiating it raises an error. As a factor it is a value that reverse mode keeps, so
    that a second differentiation, in either mode, meets it.
    """
    return jnp.ones_like(x)


@_of_first_order.defjvp
def _refuse(primals: Any, tangents: Any) -> Any:
    raise NotImplementedError(
        'second derivative of a derivative through impacts: gradient="saltation" is of first order only. '
        'Use schemes.localized(scheme), or gradient="discrete" for a run without impacts'
    )


def without_derivative(x: PyTree, sentence: str) -> PyTree:
    """``x``; differentiating it, in either mode, raises `NotImplementedError` with the ``sentence``."""

    @jax.custom_jvp
    def same(x: PyTree) -> PyTree:
        return x

    @same.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(sentence)

    return same(x)


def only_tangent(x: Array, refuse: bool = True) -> Array:
    """Zero, with the first derivative of ``x``. A second derivative raises an error with ``refuse``, else
    factors of the result count as constants.
    """
    return _first_tangent(x) if refuse else _open_tangent(x)


def _noting(y: Array, x: Array) -> Array:
    """``y``, with the lanes of a batch of ``x``, which has the same shape."""
    return lax.select(np.zeros(jnp.shape(y), bool), x, y)


@jax.custom_jvp
def _first_tangent(x: Array) -> Array:
    return _noting(jnp.zeros_like(x), x)


@_first_tangent.defjvp
def _keep(primals: Any, tangents: Any) -> Any:
    return jnp.zeros_like(primals[0]), _of_first_order(primals[0]) * tangents[0]


@jax.custom_jvp
def _open_tangent(x: Array) -> Array:
    return _noting(jnp.zeros_like(x), x)


@_open_tangent.defjvp
def _keep_open(primals: Any, tangents: Any) -> Any:
    return jnp.zeros_like(primals[0]), tangents[0]


@jax.custom_jvp
def with_tangent(x: Array, change: Array) -> Array:
    """``x``, with the derivative of ``x + change``; the value of ``change`` does not matter."""
    return _noting(x, change)


@with_tangent.defjvp
def _add(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[0] + tangents[1]


def with_retract_tangent(retract: Callable[[Array, Array], Array], q: Array, xi: Array) -> Array:
    """``q``, with the derivative of ``retract(q, xi)`` for a ``xi`` that is zero but has a derivative."""

    @jax.custom_jvp
    def move(q: Array, xi: Array) -> Array:
        return _joined(q, _no_entries(xi))

    @move.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (q, xi), (dq, dxi) = primals, tangents
        along = jax.jvp(lambda x: retract(q, x), (jnp.zeros_like(xi),), (dxi,))[1]
        return q, dq + along

    return move(q, xi)


def make_live(x: PyTree, by: PyTree) -> PyTree:
    """``x``; if ``by`` has a tangent, then every float in ``x`` has one, of zeros where it had none.

    JAX differentiates the body of a loop anew each time that it finds another part of the carry with a
    tangent: three times for a run from a fixed state. With tangents from the start, once is enough. Each
    float is concatenated with an empty slice of ``by``, and so has its tangent and, in a batch, its lanes.
    """
    none = _none_of(by)
    if none is None:
        return x
    return jax.tree.map(lambda y: _joined(jnp.asarray(y), none) if _is_float(y) and jnp.size(y) else y, x)


def with_lanes(x: PyTree, by: PyTree) -> PyTree:
    """``x``, each of whose arrays has the lanes of a batch of every float in ``by``, and their tangents.

    Constants that stand for values of a derivative need them: JAX takes the lanes of a function with a
    hand-written derivative from the function itself, and fails where its derivative has others.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.nonlinear import with_lanes
        >>> jax.vmap(lambda y: with_lanes(jnp.arange(2), y))(jnp.ones(3)).shape
        (3, 2)
    """
    none = _none_of(by)
    if none is None:
        return x
    return jax.tree.map(lambda y: _joined(jnp.asarray(y), none) if jnp.size(y) else y, x)


def _none_of(by: PyTree) -> Array | None:
    """Empty array (0,) with the tangents and lanes of every float in a tree; None without floats."""
    nothing = [_no_entries(jnp.asarray(y)) for y in jax.tree.leaves(by) if _is_float(y)]
    if not nothing:
        return None
    return lax.concatenate(nothing, 0) if len(nothing) > 1 else nothing[0]


def _is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(x), jnp.floating))


def _no_entries(y: Array) -> Array:
    """Empty slice (0,) of ``y``, which keeps its tangent and its lanes."""
    if not y.ndim:
        return lax.broadcast(y, (0,))
    return lax.slice_in_dim(y, 0, 0).reshape(0)


def _joined(y: Array, none: Array) -> Array:
    return lax.concatenate([y.reshape(-1), none.astype(y.dtype)], 0).reshape(y.shape)
