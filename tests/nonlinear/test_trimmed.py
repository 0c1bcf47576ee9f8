"""Programs without operations that nothing reads: the same values and derivatives everywhere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.nonlinear import trimmed
from nsjax.nonlinear.trimmed import code_size, equations


@pytest.mark.parametrize("seed", range(3))
def test_the_same_function(seed: int) -> None:
    """Of a tree with parts that do not move, and a result that is not looked at."""
    rng = np.random.default_rng(seed)
    data = {"a": jnp.asarray(rng.normal(size=3)), "n": jnp.asarray(seed)}

    def plain(data, x):
        jnp.tan(data["a"])
        return {"y": x * jnp.sin(data["a"]) + data["n"], "x": x}

    own, x = (lambda data, x: trimmed(plain, data, x)), jnp.asarray(rng.normal(size=3))
    for f in (lambda f: f(data, x)["y"], lambda f: jax.jit(f)(data, x)["y"]):
        np.testing.assert_allclose(f(own), f(plain), rtol=1e-14)
    batch = jax.vmap(own, in_axes=(None, 0))(data, jnp.stack([x, 2 * x]))["y"]
    np.testing.assert_allclose(batch[1], plain(data, 2 * x)["y"], rtol=1e-14)
    slopes = [jax.grad(lambda x, f=f: jnp.sum(f(data, x)["y"] ** 2))(x) for f in (own, plain)]
    np.testing.assert_allclose(*slopes, rtol=1e-14)
    curves = [jax.jacfwd(jax.jacrev(lambda x, f=f: f(data, x)["y"] ** 2))(x) for f in (own, plain)]
    np.testing.assert_allclose(*curves, rtol=1e-13)


def test_nothing_else_is_in_the_program() -> None:
    def slope(x):
        return jax.jvp(jnp.sin, (x,), (jnp.ones(()),))[1]

    found = [str(jax.make_jaxpr(f)(0.1)).count("sin ") for f in (slope, lambda x: trimmed(slope, x))]
    assert found == [1, 0]


def test_sizes_of_programs_count_what_they_call() -> None:
    """One for each operation, and one for each axis of its largest array."""
    numbers, both = [jnp.ones(()), jnp.ones(3), jnp.ones((3, 3))], jax.jit(lambda x: jnp.sin(jnp.cos(x)))
    for axes, x in enumerate(numbers):
        made = jax.make_jaxpr(both)(x)
        assert (equations(made), code_size(made)) == (2, 2 * (1 + axes))
    total = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0.0, jnp.sin, both, x))(numbers[0])
    assert equations(total) == code_size(total) == 5  # a comparison, its number, and both branches
    assert code_size(jax.make_jaxpr(lambda x: jax.lax.reduce_sum(x, (0, 1)))(numbers[2])) == 3
