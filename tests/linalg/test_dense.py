"""Products and solves against numpy, on both sides of every size limit, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg import (
    INLINE_LIMIT,
    LOOP_LIMIT,
    Dense,
    matmul,
    matvec,
    solve,
    solve_positive,
    solve_rows,
    solve_some_rows,
)
from nsjax.linalg.dense import matmul_by_rows


@pytest.mark.parametrize("n", [1, 3, 12, 13, INLINE_LIMIT, INLINE_LIMIT + 1, LOOP_LIMIT, LOOP_LIMIT + 1])
def test_solves(n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n + 2))
    spd, b = a @ a.T + np.eye(n), rng.normal(size=(n, 3))
    for function in (solve, solve_positive):
        x = jax.jit(function)(spd, b)
        np.testing.assert_allclose(spd @ x, b, atol=1e-11 * np.linalg.cond(spd))
    # not symmetric: rows scaled, one coupling on one side only
    skewed = spd / np.diag(spd)[:, None]
    skewed[-1, 0] += 0.3
    np.testing.assert_allclose(jax.jit(solve)(skewed, b), np.linalg.solve(skewed, b), rtol=1e-8)


@pytest.mark.parametrize("n", [14, pytest.param(3, marks=pytest.mark.slow)])
def test_derivatives_of_solves(n: int) -> None:
    """d(A^-1 b) = -A^-1 dA A^-1 b + A^-1 db, forward and reverse."""
    rng = np.random.default_rng(n)
    w = rng.normal(size=(n, n + 2))
    a, b = w @ w.T + np.eye(n), rng.normal(size=(n, 1))
    da, db = rng.normal(size=(n, n)), rng.normal(size=(n, 1))
    exact = np.linalg.solve(a, db - da @ np.linalg.solve(a, b))
    x, dx = jax.jit(lambda *x: jax.jvp(solve, x[:2], x[2:]))(a, b, da, db)
    np.testing.assert_allclose(dx, exact, rtol=1e-8)
    cotangent = rng.normal(size=x.shape)
    ga, gb = jax.jit(lambda a, b, back: jax.vjp(solve, a, b)[1](back))(a, b, cotangent)
    np.testing.assert_allclose(np.sum(ga * da) + np.sum(gb * db), np.sum(cotangent * exact), rtol=1e-8)


@pytest.mark.parametrize(("size", "terms"), [(4, 7), (20, 7), (100, 7), (100, 40)])
def test_products(size: int, terms: int) -> None:
    """As sums, as outer products, by the library."""
    rng = np.random.default_rng(size)
    a, b, x = rng.normal(size=(size, terms)), rng.normal(size=(terms, size)), rng.normal(size=terms)
    np.testing.assert_allclose(matmul(a, b), a @ b, atol=1e-13)
    np.testing.assert_allclose(matvec(a, x), a @ x, atol=1e-13)


@pytest.mark.parametrize(
    ("size", "terms"), [(3, 2), *(pytest.param(*x, marks=pytest.mark.slow) for x in ((32, 18), (24, 40)))]
)
def test_products_by_rows(size: int, terms: int) -> None:
    """``a b'`` by a transposed copy, without one, and by the library; derivatives in both modes."""
    rng = np.random.default_rng(size)
    a, b = (jnp.asarray(rng.normal(size=(n, terms))) for n in (size, size + 1))
    np.testing.assert_allclose(matmul_by_rows(a, b), a @ b.T, rtol=1e-12, atol=1e-12)
    for slope in (jax.jacfwd, jax.jacrev):
        found, right = (
            jax.jit(slope(lambda b, f=f: jnp.sum(f(a, b) ** 2)))(b) for f in (matmul_by_rows, _plain)
        )
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11)


def _plain(a: jax.Array, b: jax.Array) -> jax.Array:
    return a @ b.T


@pytest.mark.parametrize(
    ("of", "n"),
    [(solve_rows, n) for n in (1, 8, LOOP_LIMIT, LOOP_LIMIT + 1)] + [(solve_some_rows, n) for n in (1, 70)],
)
def test_rows_of_the_unit_matrix_are_left_out(of: Callable[..., Any], n: int) -> None:
    """The same answer as of all rows, whichever take part; the others are known."""
    rng = np.random.default_rng(n)
    full = rng.normal(size=(n, n)) + 3.0 * n * np.eye(n)
    for rows in (rng.random(n) < 0.5, np.zeros(n, bool), np.ones(n, bool)):
        a, b = np.where(rows[:, None], full, np.eye(n)), rng.normal(size=n)
        found = jax.jit(of)(a, b, rows)
        # rounding of an elimination with pivots of the order of 3 n
        np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("n", [INLINE_LIMIT + 6, INLINE_LIMIT])
def test_eliminated_matrices_solve_and_differentiate(n: int) -> None:
    """By inverse or by factors: one column, several, batches; derivatives by ``x' = A^-1 (b' - A' x)``."""
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=(n, 3))
    da, db, weight = rng.normal(size=(n, n)), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))

    def answers(a, b):
        done, response = Dense().eliminate(a, b)
        return done.solve(b), response, done.solve(b[:, 0])

    x = np.linalg.solve(a, b)
    change = np.linalg.solve(a, db - da @ x)
    back = np.linalg.solve(a.T, weight)
    for found, exact in ((answers, x), (lambda a, b: jax.jvp(answers, (a, b), (da, db))[1], change)):
        both, response, one = found(a, b)
        for y, z in ((both, exact), (response, exact), (one, exact[:, 0])):
            np.testing.assert_allclose(y, z, atol=1e-13)
    by_a, by_b = jax.grad(lambda a, b: jnp.sum(weight * answers(a, b)[0]), (0, 1))(a, b)
    np.testing.assert_allclose(by_b, back, atol=1e-13)
    np.testing.assert_allclose(by_a, -back @ x.T, atol=1e-13)
    several = jax.vmap(answers)(np.stack([a, 2 * a]), np.stack([b, b]))[0]
    np.testing.assert_allclose(several, np.stack([x, x / 2]), atol=1e-13)
