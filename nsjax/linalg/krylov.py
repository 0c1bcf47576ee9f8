"""Iterative solutions of linear systems by products with a matrix that is never formed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.types import Array, record

Apply = Callable[[Array], Array]
"""A linear map of vectors (n,)."""


@record()
class KrylovSolution:
    """Answer (n,), number of products with the matrix, and whether the residual has reached its bound."""

    x: Array
    iterations: Array
    solved: Array


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum(a * b)


def _ratio(a: Array, b: Array) -> Array:
    """``a / b``, zero where the iteration has broken down."""
    return jnp.where(b != 0.0, a / jnp.where(b != 0.0, b, 1.0), 0.0)


def conjugate_gradients(
    product: Apply, precondition: Apply, b: Array, tolerance: Array | float, max_iterations: int
) -> KrylovSolution:
    """Solution of ``A x = b`` for a symmetric matrix that is positive definite on the range of ``P^-1``.

    Stops with ``|b - A x| <= tolerance |b|`` of the recursive residual, or if this is nan.

    Args:
        product: ``A x``.
        precondition: ``P^-1 r``, symmetric; a projection in it keeps the search in its range.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg.krylov import conjugate_gradients
        >>> found = conjugate_gradients(lambda x: 2.0 * x, lambda r: r, jnp.ones(3), 1e-12, 10)
        >>> found.x.tolist(), int(found.iterations)
        ([0.5, 0.5, 0.5], 1)
    """
    bound = (tolerance * tolerance) * _dot(b, b)

    def going(carry: Any) -> Array:
        *_, square, count = carry
        return (square > bound) & (count < max_iterations)

    def body(carry: Any) -> Any:
        x, r, p, rho, _, count = carry
        ap = product(p)
        alpha = _ratio(rho, _dot(p, ap))
        x, r = x + alpha * p, r - alpha * ap
        z = precondition(r)
        new = _dot(r, z)
        return x, r, z + _ratio(new, rho) * p, new, _dot(r, r), count + 1

    z = precondition(b)
    start = jnp.zeros_like(b), b, z, _dot(b, z), _dot(b, b), jnp.asarray(0)
    x, *_, square, count = lax.while_loop(going, body, start)
    return KrylovSolution(x=x, iterations=count, solved=square <= bound)


def stabilised(
    product: Apply, precondition: Apply, b: Array, tolerance: Array | float, max_iterations: int
) -> KrylovSolution:
    """Solution of ``A x = b`` for an unsymmetric matrix by BiCGStab, with two products in each iteration.

    Source: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631-644.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg.krylov import stabilised
        >>> a = jnp.array([[2.0, 1.0], [-1.0, 2.0]])
        >>> found = stabilised(lambda x: a @ x, lambda r: r, jnp.array([3.0, 1.0]), 1e-12, 10)
        >>> found.x.round(12).tolist()
        [1.0, 1.0]
    """
    bound = (tolerance * tolerance) * _dot(b, b)

    def going(carry: Any) -> Array:
        *_, square, count = carry
        return (square > bound) & (count < max_iterations)

    def body(carry: Any) -> Any:
        x, r, p, v, (rho, alpha, omega), _, count = carry
        new = _dot(b, r)
        beta = _ratio(new, rho) * _ratio(alpha, omega)
        p = r + beta * (p - omega * v)
        along = precondition(p)
        v = product(along)
        alpha = _ratio(new, _dot(b, v))
        s = r - alpha * v
        across = precondition(s)
        t = product(across)
        omega = _ratio(_dot(t, s), _dot(t, t))
        x = x + alpha * along + omega * across
        r = s - omega * t
        return x, r, p, v, (new, alpha, omega), _dot(r, r), count + 2

    zero, one = jnp.zeros_like(b), jnp.ones(())
    start = zero, b, zero, zero, (one, one, one), _dot(b, b), jnp.asarray(0)
    x, *_, square, count = lax.while_loop(going, body, start)
    return KrylovSolution(x=x, iterations=count, solved=square <= bound)
