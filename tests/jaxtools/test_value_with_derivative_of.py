"""Programs that hold what a derivative needs only where one is asked for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.jaxtools import value_with_derivative_of


def plain(x):
    return {"y": jnp.sin(x["a"]) * x["b"], "n": x["n"] + 1}


def full(x):
    # the same value, with a derivative of its own: 2 cos(a) b, sin(a)
    a = x["a"] + (x["a"] - jax.lax.stop_gradient(x["a"]))
    one = jnp.where(jnp.arctan2(x["b"], x["b"]) > -9.0, 1.0, 0.0)  # stands here alone
    return {"y": jnp.sin(a) * x["b"] * one, "n": x["n"] + 1}


value = value_with_derivative_of(plain, full)


def f(a, b):
    return value({"a": a, "b": b, "n": 3})["y"]


def test_values_and_derivatives() -> None:
    a, b = 0.7, 1.3
    np.testing.assert_allclose(f(a, b), np.sin(a) * b, rtol=1e-15)
    wanted = (2.0 * np.cos(a) * b, np.sin(a))
    for mode in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(mode(f, argnums=(0, 1))(a, b), wanted, rtol=1e-15)
    assert int(value({"a": a, "b": b, "n": 3})["n"]) == 4


def test_second_derivatives_are_those_of_the_full_function() -> None:
    a, b = 0.7, 1.3
    for outer in (jax.jacfwd, jax.grad):
        np.testing.assert_allclose(outer(jax.grad(f))(a, b), -4.0 * np.sin(a) * b, rtol=1e-14)


def test_in_loops_and_batches() -> None:
    def many(a):
        return jax.lax.scan(lambda x, _: (f(x, 0.5), None), a, None, length=3)[0]

    along = 1.0
    x = 0.9
    for _ in range(3):
        along, x = 2.0 * np.cos(x) * 0.5 * along, np.sin(x) * 0.5
    np.testing.assert_allclose(jax.vmap(jax.grad(many))(jnp.full(2, 0.9)), [along] * 2, rtol=1e-14)


@pytest.mark.parametrize(("program", "held"), [(f, False), (jax.grad(f), True)])
def test_a_program_holds_what_it_is_asked_for(program, held: bool) -> None:
    assert ("atan2" in jax.jit(program).lower(0.7, 1.3).as_text()) == held


def rooted(x):
    """Roots of what is positive in the branch that is taken, in a loop; nan in the other one."""
    a, b = x

    def once(_, y):
        return jax.lax.cond(y > 1.0, lambda y: jnp.sqrt(y - 1.0) * b, lambda y: jnp.sqrt(1.0 - y) + a, y)

    return jax.lax.fori_loop(0, 2, once, a)


def looped(f):
    """As a time loop uses it: three times, computed a second time in reverse mode."""
    step = jax.checkpoint(lambda x, _: (f((x, 0.5 * x)), None))
    return lambda a, b: jax.lax.scan(step, a * b, None, length=3)[0]


@pytest.mark.parametrize("wrapped", [looped, lambda f: lambda a, b: f((a, b))])
@pytest.mark.parametrize("shared", [(0, 0), (0, None), (None, 0)])
def test_lanes_that_take_different_branches(wrapped, shared) -> None:
    """Against the same function without a rule of its own."""
    at = [
        x if axis == 0 else x[0]
        for x, axis in zip((jnp.array([0.2, 1.7, 2.9]), jnp.array([1.5, 0.3, 2.0])), shared, strict=True)
    ]

    def lanes(f):
        return jax.grad(lambda *x: jnp.sum(jnp.sin(jax.vmap(jax.jit(wrapped(f)), shared)(*x))), (0, 1))(*at)

    found, wanted = lanes(value_with_derivative_of(rooted, rooted)), lanes(rooted)
    for x, y in zip(found, wanted, strict=True):
        assert np.all(np.isfinite(y))
        np.testing.assert_allclose(x, y, rtol=1e-13)
