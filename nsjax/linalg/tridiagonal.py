"""Block-tridiagonal matrices: product, elimination without row exchange, substitution, derivatives.

Everything is a loop over the blocks whose body is inline arithmetic on one block, so that it stays inside
the one kernel of a time loop; the cost is proportional to the number of blocks. Blocks above
`nsjax.linalg.INLINE_LIMIT` unknowns go to the library.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.linalg.dense import matmul, solve
from nsjax.types import Array, record


@record()
class Tridiagonal:
    """Blocks (N, b, b) below, on and above the diagonal; ``lower[0]`` and ``upper[-1]`` count as zero."""

    lower: Array
    diagonal: Array
    upper: Array


@record()
class Factors:
    """``D_i' = D_i - L_i C_{i-1}`` inverted, ``D_i'^-1 L_i`` and ``C_i = D_i'^-1 U_i``, each (N, b, b)."""

    inverse: Array
    left: Array
    right: Array


def _each(a: Array, x: Array) -> Array:
    """``a_i x_i`` for blocks (N, b, b) and (N, b, k)."""
    if a.shape[1] == 1:
        return a * x
    return jax.vmap(matmul)(a, x)


def product(a: Tridiagonal, x: Array) -> Array:
    """``A x`` for blocks of vectors (N, b, k)."""
    none = jnp.zeros_like(x[:1])
    before, after = jnp.concatenate([none, x[:-1]]), jnp.concatenate([x[1:], none])
    return _each(a.lower, before) + _each(a.diagonal, x) + _each(a.upper, after)


def _inverse(block: Array) -> Array:
    if block.shape[0] == 1:
        return 1.0 / block
    return solve(block, jnp.eye(block.shape[0], dtype=block.dtype))


def factor(a: Tridiagonal) -> Factors:
    """Elimination from the first block to the last. No derivative: see `solve_factored`.

    The caller guarantees pivot blocks that stay regular: symmetric positive definite or diagonally
    dominant matrices.
    """
    a = lax.stop_gradient(a)

    def eliminate(right: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Any]:
        lower, diagonal, upper = row
        inverse = _inverse(diagonal - matmul(lower, right))
        right = matmul(inverse, upper)
        return right, (inverse, matmul(inverse, lower), right)

    first = jnp.zeros_like(a.diagonal[0])
    _, (inverse, left, right) = lax.scan(eliminate, first, (a.lower, a.diagonal, a.upper))
    return Factors(inverse=inverse, left=left, right=right)


def _substitute(f: Factors, b: Array) -> Array:
    """``A^-1 b`` for blocks of vectors (N, b, k)."""

    def down(y: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        left, own = row
        y = own - matmul(left, y)
        return y, y

    def up(x: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        right, y = row
        x = y - matmul(right, x)
        return x, x

    none = jnp.zeros_like(b[0])
    _, y = lax.scan(down, none, (f.left, _each(f.inverse, b)))
    _, x = lax.scan(up, none, (f.right, y), reverse=True)
    return x


def solve_factored(a: Tridiagonal, f: Factors, b: Array) -> Array:
    """Solves ``A x = b`` with the factors of ``A``; blocks of vectors (N, b, k).

    Derivatives of any order, forward and reverse: each costs one more substitution, ``x' = A^-1 (b' -
    A' x)``, and no elimination; derivatives of the factors are not used.
    """

    def substitute(_: Any, b: Array) -> Array:
        return _substitute(f, b)

    def transposed(_: Any, b: Array) -> Array:
        return jax.linear_transpose(lambda x: _substitute(f, x), b)(b)[0]

    return lax.custom_linear_solve(lambda x: product(a, x), b, substitute, transposed)
