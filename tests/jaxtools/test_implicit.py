"""The implicit derivative on an equation with a known solution."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from nsjax.jaxtools import implicit_solution, keep_solutions


def solver(a):
    """Square root by Heron's rule, iterated in a loop that has no reverse derivative."""
    x = lax.while_loop(lambda x: jnp.max(jnp.abs(x * x - a)) > 1e-14, lambda x: 0.5 * (x + a / x), a)
    return x, jnp.asarray(7)


root = implicit_solution(solver, lambda x, _: lambda a: x - (x * x - a) / (2 * lax.stop_gradient(x)))


def test_derivative_of_a_square_root() -> None:
    a = jnp.array([2.0, 9.0])
    exact = np.diag(0.5 / np.sqrt(a))
    np.testing.assert_allclose(root(a)[0], np.sqrt(a), rtol=1e-14)
    np.testing.assert_allclose(jax.jacfwd(lambda a: root(a)[0])(a), exact, rtol=1e-13)
    np.testing.assert_allclose(jax.jacrev(lambda a: root(a)[0])(a), exact, rtol=1e-13)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda a: root(a)[0]))(a), np.diag(exact), rtol=1e-13)
    assert root(a)[1] == 7


@pytest.mark.parametrize(("again", "loops"), [(jax.checkpoint, 2), (keep_solutions, 1)])
def test_answers_are_kept_by_their_name(again, loops: int) -> None:
    """What is computed a second time for reverse mode iterates a second time, unless answers are kept."""

    def last(a):
        return jnp.sum(lax.cond(a[0] > 1.0, lambda a: jnp.sin(root(2.0 * a)[0]), jnp.cos, a))

    a = jnp.array([2.0, 9.0])
    program = jax.jit(jax.value_and_grad(again(last))).lower(a)
    assert program.as_text().count("stablehlo.while") == loops
    x = np.sqrt(2.0 * np.asarray(a))
    np.testing.assert_allclose(program.compile()(a)[1], np.cos(x) / x, rtol=1e-13)
