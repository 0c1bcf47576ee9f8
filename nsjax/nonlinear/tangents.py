"""Derivatives made by hand: values that carry a tangent of their own, of first order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from nsjax.types import Array, PyTree


@jax.custom_jvp
def _of_first_order(x: Array) -> Array:
    """One; differentiating it raises a sentence. As a factor it is a value that reverse mode keeps, so
    that whatever is differentiated next, in either mode, comes by it.
    """
    return jnp.ones_like(x)


@_of_first_order.defjvp
def _refuse(primals: Any, tangents: Any) -> Any:
    raise NotImplementedError(
        'second derivative of a derivative through impacts: gradient="saltation" is of first order only. '
        'Use schemes.localized(scheme), or gradient="discrete" for a run without impacts'
    )


def only_tangent(x: Array, refuse: bool = True) -> Array:
    """Zero, with the derivative of ``x``: of first order, a second one raises a sentence, unless it is not
    to be refused; then what scales it is held fixed.
    """
    return _first_tangent(x) if refuse else _open_tangent(x)


@jax.custom_jvp
def _first_tangent(x: Array) -> Array:
    return jnp.zeros_like(x)


@_first_tangent.defjvp
def _keep(primals: Any, tangents: Any) -> Any:
    return jnp.zeros_like(primals[0]), _of_first_order(primals[0]) * tangents[0]


@jax.custom_jvp
def _open_tangent(x: Array) -> Array:
    return jnp.zeros_like(x)


@_open_tangent.defjvp
def _keep_open(primals: Any, tangents: Any) -> Any:
    return jnp.zeros_like(primals[0]), tangents[0]


@jax.custom_jvp
def with_tangent(x: Array, change: Array) -> Array:
    """``x``, with the derivative of ``x + change``; the value of ``change`` is not looked at."""
    return x


@with_tangent.defjvp
def _add(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[0] + tangents[1]


def moved(retract: Callable[[Array, Array], Array], q: Array, xi: Array) -> Array:
    """``q``, with the derivative of ``retract(q, xi)`` for a ``xi`` that is zero but has a derivative."""

    @jax.custom_jvp
    def move(q: Array, xi: Array) -> Array:
        return q

    @move.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (q, xi), (dq, dxi) = primals, tangents
        along = jax.jvp(lambda x: retract(q, x), (jnp.zeros_like(xi),), (dxi,))[1]
        return q, dq + along

    return move(q, xi)


def made_live(x: PyTree, by: PyTree) -> PyTree:
    """``x``; if ``by`` has a tangent, then every float in ``x`` has one, of zeros where it had none.

    JAX differentiates the body of a loop anew each time that it meets another part of the carry with a
    tangent: three times for a run from a fixed state. With tangents from the start, once is enough.
    """
    leaves: list[Any]
    tree: Any
    leaves, tree = jax.tree.flatten(x)
    floats = [k for k, value in enumerate(leaves) if _is_float(value)]
    kept = _made_live([leaves[k] for k in floats], [y for y in jax.tree.leaves(by) if _is_float(y)])
    for k, value in zip(floats, kept, strict=True):
        leaves[k] = value
    return tree.unflatten(leaves)


def _is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(x), jnp.floating))


@jax.custom_jvp
def _made_live(x: list[Array], by: list[Array]) -> list[Array]:
    return x


@functools.partial(_made_live.defjvp, symbolic_zeros=True)
def _with_zeros(primals: Any, tangents: Any) -> Any:
    """Zeros made of no entries of a tangent: plain ones are constants, which JAX counts as no tangent."""
    x, change = primals[0], tangents[0]
    source = next(dy for dy in [*tangents[1], *change] if not isinstance(dy, SymbolicZero))
    nothing = jnp.ravel(source)[:0]

    def zeros(y: Array) -> Array:
        size = int(np.prod(jnp.shape(y), dtype=int))
        return lax.pad(nothing.astype(y.dtype), np.zeros((), y.dtype), [(size, 0, 0)]).reshape(jnp.shape(y))

    pairs = zip(x, change, strict=True)
    return x, [zeros(y) if isinstance(dy, SymbolicZero) else dy for y, dy in pairs]
