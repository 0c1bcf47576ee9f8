"""Small dense and block-tridiagonal products and solves, which keep a time loop in one kernel.

A LAPACK call or a library matrix product inside a time loop costs a factor of about six on CPU. Up to
`INLINE_LIMIT` unknowns, `LOOP_LIMIT` of positive matrices, everything here is elementwise arithmetic; above
it the library takes over.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from nsjax.linalg.blocks import Blocks, Local, Paired
from nsjax.types import Array, record

INLINE_LIMIT = 24
"""Number of unknowns up to which any matrix is eliminated in the kernel: implicit steps with more unknowns
have more bytes than a kernel, and a library with row exchange is faster there.
"""
LOOP_LIMIT = 64
"""Number of unknowns up to which an elimination of a positive matrix, or one that needs no derivative, is a
loop in the kernel, and number of terms up to which large products of matrices are sums of outer products,
in a third of the time of sums over the middle axis. A library would divide the time loop: the step of a
chain takes nine times as long at 32 links, and fourteen times at 48.
"""
ROW_LIMIT = 256
"""Number of rows up to which all are solved inside the kernel of a time loop although few are active."""
CONSTANT_LIMIT = 150
"""Number of rows up to which a unit matrix is a constant of the program."""
WRITTEN_LIMIT = 12
"""Number of unknowns up to which an elimination is written out. The zeros of a mass matrix of a tree are
not used: an elimination by depth makes a step at most 4 % shorter, with a hundred operations more.
"""


def unit_matrix(n: int) -> Any:
    """The unit matrix (n, n). Large ones are computed, since a program copies constants into branches."""
    return np.eye(n) if n <= CONSTANT_LIMIT else jnp.where(indices(n)[:, None] == indices(n), 1.0, 0.0)


def indices(n: int) -> Array:
    """``0 .. n - 1`` as a value of the program."""
    return lax.iota(int, n)


def matvec(a: Array | Blocks | Local | Paired, x: Array) -> Array:
    """``a @ x`` for a matrix (m, n) and a vector (n,)."""
    if isinstance(a, Blocks | Local | Paired):
        return a.times(x)
    inline_matvec = ROW_LIMIT * LOOP_LIMIT  # numbers of products up to which the loop keeps one kernel
    if a.size > inline_matvec:
        return a @ x
    # not `summed`: the compiler would copy its last additions into each operation that reads the product
    return jnp.sum(a * x[None, :], axis=1)


# loop counters are never negative: each index of its own takes three operations more
_part = functools.partial(lax.dynamic_slice_in_dim, allow_negative_indices=False)
_entry = functools.partial(lax.dynamic_index_in_dim, keepdims=False, allow_negative_indices=False)
_with_entry = functools.partial(lax.dynamic_update_index_in_dim, allow_negative_indices=False)


def _outer(products: int, terms: int) -> bool:
    """Whether a product of matrices is a sum of outer products, see `LOOP_LIMIT`."""
    return products > 1000 and terms <= LOOP_LIMIT


def matmul(a: Any, b: Any, few: bool = False) -> Any:
    """``a @ b`` for matrices (m, k) and (k, n). The product of two `Blocks` is `Blocks`.
    ``few``: in few operations, at up to three times the time, for derivatives, whose programs are large.
    """
    if isinstance(a, Blocks):
        return a.after(b) if isinstance(b, Blocks) else a.times(b)
    size, terms = a.size * b.shape[1], a.shape[1]
    if _outer(size, terms) and not few:
        return functools.reduce(jnp.add, (a[:, k, None] * b[k] for k in range(terms)))
    # numbers of products and of terms up to which the loop keeps one kernel; few operations: the library's
    # product of more terms is shorter than a sum
    inline_product, inline_terms = 4096, 32 if few else LOOP_LIMIT
    if size > inline_product and terms > inline_terms:
        return a @ b
    return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)


def matmul_by_rows(a: Array, b: Array) -> Array:
    """``a @ b.T`` for matrices (m, k) and (n, k), by a transposed copy of ``b``.

    The compiler reads ``b.T`` from ``b`` with a stride, without vector instructions.
    """
    if not _outer(a.size * b.shape[0], b.shape[1]):
        return matmul(a, b.T)

    def turn(k: Array, turned: Array) -> Array:
        return _with_entry(turned, _entry(b, k, axis=1), k, 0)

    return matmul(a, lax.fori_loop(0, b.shape[1], turn, jnp.zeros(b.shape[::-1], b.dtype)))


def _gauss_jordan(a: Array, b: Array) -> Array:
    """Solution of ``a x = b`` by rank-one Gauss-Jordan without pivoting, written out for few unknowns.
    ``b`` stays apart, so that the result is linear in it and transposes in reverse mode.
    """
    n = a.shape[0]
    one = np.eye(n)

    def eliminate(k: int, both: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = both
        factor = a[:, k : k + 1] / a[k : k + 1, k : k + 1] * (1.0 - one[:, k : k + 1])
        return a - factor * a[k : k + 1], b - factor * b[k : k + 1]

    def in_turn(k: Array, both: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = both
        pivot, known = (_part(x, k, 1) for x in both)
        column = _part(a, k, 1, axis=1)
        unit = column / _part(pivot, k, 1, axis=1)
        factor = jnp.where(np.arange(n)[:, None] == k, 0.0, unit)
        return a - factor * pivot, b - factor * known

    if n <= WRITTEN_LIMIT:
        for k in range(n):
            a, b = eliminate(k, (a, b))
    else:
        a, b = lax.fori_loop(0, n, in_turn, (a, b))
    return b / jnp.sum(a * one, axis=1, keepdims=True)


@jax.custom_jvp
def _inline_solve(a: Array, b: Array) -> Array:
    """`_gauss_jordan`, whose derivative ``x' = a^-1 (b' - a' x)`` costs one more right-hand side for each
    tangent: the compiler recognises the same elimination of ``a`` and does it once.
    """
    return _gauss_jordan(a, b)


@functools.partial(_inline_solve.defjvp, symbolic_zeros=True)
def _inline_solve_rule(primals: Any, tangents: Any) -> Any:
    (a, b), (da, db) = primals, tangents
    x = _inline_solve(a, b)
    if isinstance(da, SymbolicZero):
        return x, _inline_solve(a, jnp.zeros_like(b) if isinstance(db, SymbolicZero) else db)
    change = -matmul(da, x)
    return x, _inline_solve(a, change if isinstance(db, SymbolicZero) else db + change)


def solve(a: Array, b: Array, limit: int = INLINE_LIMIT) -> Array:
    """Solves ``a x = b`` for a matrix of right-hand sides (n, k).

    Up to ``limit`` unknowns by elimination without row exchange: the caller guarantees
    pivots that stay away from zero (positive definite, or regularised and row-scaled matrices).
    """
    if a.shape[0] <= limit:
        return _inline_solve(a, b)
    return jnp.linalg.solve(a, b)


def solve_rows(a: Array, b: Array, rows: Array) -> Array:
    """Solves ``a x = b`` (n,) where the rows outside ``rows`` (n,) bool are those of the unit matrix.

    For iterations, which need no derivative: up to `LOOP_LIMIT` unknowns the elimination is a short loop
    over the rows that matter, at a cost in proportion to their number. Pivots as in `solve`.
    """
    n = a.shape[0]
    if n > LOOP_LIMIT or jax.default_backend() != "cpu":
        return _solve_at_once(a, b)
    index = np.arange(n)

    def following(k: Array | int) -> Array:
        return jnp.min(jnp.where(rows & (index > k), index, n))

    def eliminate(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        k, a = carry
        row = _part(a, k, 1)
        unit = _part(a, k, 1, axis=1) / _part(row, k, 1, axis=1)
        return following(k), a - jnp.where(index[:, None] == k, 0.0, unit) * row

    known = jnp.where(rows, 0.0, b)
    b = jnp.where(rows, b - jnp.sum(a * known[None, :], axis=1), 0.0)
    start = following(-1), jnp.concatenate([a, b[:, None]], axis=1)
    _, a = lax.while_loop(lambda carry: carry[0] < n, eliminate, start)
    return jnp.where(rows, a[:, n] / jnp.sum(a[:, :n] * np.eye(n), axis=1), known)


def _solve_at_once(a: Array, b: Array) -> Array:
    """``a x = b`` (n,) with all rows, the same operations in every lane of a batch.

    An accelerator asks the host after every pass of a loop of unknown length if it goes on.
    """
    if a.shape[0] <= WRITTEN_LIMIT:
        return _gauss_jordan(a, b[:, None])[:, 0]
    return jnp.linalg.solve(a, b[:, None])[:, 0]


def solve_some_rows(a: Array, b: Array, rows: Array) -> Array:
    """`solve_rows` for many rows of which few matter.

    The elimination loops over pairs of these rows, so that a time loop that calls it in few steps can be
    one kernel.
    """
    if jax.default_backend() != "cpu":
        return _solve_at_once(a, b)
    n = a.shape[0]
    after = _following(rows)

    def eliminate(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, a, b = carry
        row, own = _entry(a, k), _entry(b, k)
        pivot = _entry(row, k)

        def reduce(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            i, a, b = carry
            other = _entry(a, i)
            part = jnp.where(i == k, 0.0, _entry(other, k) / pivot)
            a = _with_entry(a, other - part * row, i, 0)
            b = _with_entry(b, _entry(b, i) - part * own, i, 0)
            return _entry(after, i + 1), a, b

        _, a, b = lax.while_loop(lambda carry: carry[0] < n, reduce, (after[0], a, b))
        return _entry(after, k + 1), a, b

    # rows that do not matter have ``x = b``, which goes to the right-hand side; the elimination then steps
    # from one row that matters to the next
    known = jnp.where(rows, 0.0, b)
    _, a, b = lax.while_loop(lambda carry: carry[0] < n, eliminate, (after[0], a, b - matvec(a, known)))
    return jnp.where(rows, b / a.reshape(-1)[:: n + 1], known)


def _following(rows: Array) -> Array:
    """Index (n + 1,) of the next true entry of ``rows`` (n,) from each place on; ``n`` without one."""
    n = rows.shape[0]

    def back(k: Array, after: Array) -> Array:
        here, then = n - 1 - k, _entry(after, n - k)
        here = jnp.where(_entry(rows, here), here, then)
        return _with_entry(after, here, n - 1 - k, 0)

    return lax.fori_loop(0, n, back, jnp.full(n + 1, n))


def solve_positive(a: Array, b: Array) -> Array:
    """Solves ``a x = b`` with ``a`` symmetric positive definite, (n, k) right-hand sides.

    A singular matrix gives values that are not finite. So does an indefinite one above `LOOP_LIMIT`
    unknowns (`INLINE_LIMIT` on other devices than the CPU); below, it is eliminated nevertheless.
    """
    # other devices start kernels at every pass of the elimination: a library takes fewer
    if a.shape[0] <= (LOOP_LIMIT if jax.default_backend() == "cpu" else INLINE_LIMIT):
        return _inline_solve(a, b)
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a, lower=True), b)


# Block-tridiagonal matrices: product, elimination without row exchange, substitution, derivatives.
#
# Everything is a loop over the blocks whose body is inline arithmetic on one block, so that it stays
# inside the one kernel of a time loop; the cost is proportional to the number of blocks. Blocks above
# `nsjax.linalg.INLINE_LIMIT` unknowns go to the library.


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
