"""Entries taken by places, and trigonometry, against numpy and the library."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.math import dealt, picked, sin_cos, taken
from nsjax.math.elementary import TERMS


# Entries at known places without a gather.
def test_places_of_any_order_repeated_or_none() -> None:
    seeded = np.random.default_rng(0)
    x = jnp.asarray(seeded.normal(size=(7, 2)))
    tried = [seeded.integers(0, 7, size=n) for n in (0, 1, 2, 5, 12, 30)]
    for places in [*tried, np.arange(7), np.array([3, 3, 3, 4, 5, 0, 0]), np.array([6, 5, 4])]:
        np.testing.assert_array_equal(taken(x, places), np.asarray(x)[places])


def test_no_gather_forward_and_no_scatter_backward() -> None:
    x, places = jnp.arange(9.0), np.array([1, 2, 3, 0, 0, 7, 8, 4])
    f = lambda x: jnp.sum(taken(x, places) ** 3)  # noqa: E731
    text = jax.jit(jax.grad(f)).lower(x).as_text()
    assert "gather" not in text
    assert "scatter" not in text
    np.testing.assert_allclose(jax.grad(f)(x), 3 * np.bincount(places, minlength=9) * np.arange(9.0) ** 2)


def test_places_without_order_are_gathered() -> None:
    places = np.random.default_rng(1).permutation(640)
    f = lambda x: taken(x, places)  # noqa: E731
    x = jnp.arange(640.0)
    assert len(jax.jit(f).lower(x).as_text().splitlines()) < 60
    np.testing.assert_array_equal(f(x), places)


def test_entries_of_long_matrices_are_no_sums() -> None:
    """The same entries along the last axis by either form."""
    places = np.array([0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11])
    for n in (TERMS // 12, 1 + TERMS // 12):
        x = jnp.asarray(np.random.default_rng(n).normal(size=(3, 3, n)))
        np.testing.assert_array_equal(picked(x, places), np.asarray(x)[..., places])
        text = jax.jit(lambda x: picked(x, places)).lower(x).as_text()
        assert ("reduce" in text) == (n * 12 <= TERMS)


# The pair of sine and cosine: values, derivatives of all kinds, evaluations in a compiled derivative.
X = jnp.array([0.3, -2.0, 0.0, 40.0])


def test_values() -> None:
    for x in (X, X.reshape(2, 2), X[1], 0.5):
        for found, exact in zip(sin_cos(x), (np.sin(x), np.cos(x)), strict=True):
            # one rounding of the result and one of the library
            np.testing.assert_allclose(found, exact, rtol=0, atol=3e-16)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_where_it_is(bad: float) -> None:
    for found in sin_cos(X.at[1].set(bad)):
        np.testing.assert_array_equal(np.isnan(found), [False, True, False, False])


def test_derivatives() -> None:
    """First and second, in lanes, against those of the library."""

    def both(f):
        return lambda x: jnp.sum(f(x)[0] * 2.0 + f(x)[1] ** 2)

    plain = both(lambda x: (jnp.sin(x), jnp.cos(x)))
    for order in (jax.grad, jax.hessian):
        # rounding of different formulas of the same number, values up to four
        np.testing.assert_allclose(order(both(sin_cos))(X), order(plain)(X), rtol=0, atol=1e-14)
    lanes = jax.vmap(jax.grad(lambda x: both(sin_cos)(x)))(X)
    np.testing.assert_allclose(lanes, jax.grad(plain)(X), rtol=0, atol=1e-14)


def test_a_derivative_evaluates_nothing_more() -> None:
    """Two evaluations in the compiled loop: one in the branch taken, one in that for infinite numbers."""

    def run(x):
        def step(x, _):
            s, c = sin_cos(x)
            return x + 0.1 * s * c + jnp.outer(jnp.stack([s, c]), jnp.stack([c, s]))[0, 1], None

        return jax.lax.scan(step, x, None, length=10)[0]

    x = jnp.asarray(0.3)
    for f, arguments in ((run, (x,)), (lambda x, d: jax.jvp(run, (x,), (d,)), (x, x))):
        text = jax.jit(f).lower(*arguments).compile().as_text()
        assert text.count(" sine(") == 2
        assert text.count(" cosine(") == 2


def test_entries_are_dealt_to_neighbours_and_to_any_places() -> None:
    """The transpose of the matrix that picks them."""
    x = np.array([1.0, 2.0, 4.0])
    for places in ([0, 1, 2], [2, 3, 4], [4, 0, 2], [1, 1, 3], [3, 2, 1]):
        expected = np.zeros(5)
        np.add.at(expected, places, x)
        np.testing.assert_array_equal(dealt(jnp.asarray(x), np.array(places), 5), expected)
