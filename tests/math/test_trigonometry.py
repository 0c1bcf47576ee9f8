"""The pair of sine and cosine: values, derivatives of all kinds, evaluations in a compiled derivative."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.math import sin_cos

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
