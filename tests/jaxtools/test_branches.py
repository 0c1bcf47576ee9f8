"""Loops whose bodies hold what their results need, and branches that reverse mode computes again."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from nsjax.jaxtools.control_flow import branch, repeat, repeat_for


def body(scale: jax.Array, both: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    x, k = both
    jax.jacfwd(jnp.sin)(x)  # nobody reads it
    jax.jit(jnp.tan)(x)
    return x + scale * jnp.cos(x), k + 1


def run(loop, scale: jax.Array, x: jax.Array, count: jax.Array) -> jax.Array:
    """A loop over a body that looks at what stands around it."""
    return loop(lambda both: both[1] < count, lambda both: body(scale, both), (x, jnp.zeros_like(count)))[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_same_values_and_derivatives(seed: int) -> None:
    """Eagerly, compiled, in a batch, and in forward mode; no turns at all, too."""
    rng = np.random.default_rng(seed)
    scale, x, count = jnp.asarray(rng.normal()), jnp.asarray(rng.normal(size=3)), jnp.asarray(4 * seed)
    wanted, own = (lambda s, x, n=loop: run(n, s, x, count) for loop in (lax.while_loop, repeat))
    near = {"rtol": 1e-14, "atol": 1e-14}
    np.testing.assert_allclose(own(scale, x), wanted(scale, x), **near)
    np.testing.assert_allclose(jax.jit(own)(scale, x), wanted(scale, x), **near)
    batch = jax.vmap(own, in_axes=(None, 0))(scale, x)
    np.testing.assert_allclose(batch, jax.vmap(wanted, in_axes=(None, 0))(scale, x), **near)
    along = [jax.jvp(f, (scale, x), (jnp.ones(()), x))[1] for f in (own, wanted)]
    np.testing.assert_allclose(*along, **near)


def test_nothing_else_is_in_the_program() -> None:
    arguments = jnp.asarray(0.1), jnp.ones(3), jnp.asarray(5)
    texts = [
        jax.jit(lambda *a, n=n: run(n, *a)).lower(*arguments).as_text() for n in (lax.while_loop, repeat)
    ]
    assert [len(re.findall("stablehlo.tan", text)) for text in texts] == [1, 0]


def test_counted_loops_number_their_turns() -> None:
    found = repeat_for(jnp.asarray(4), lambda k, x: x + k, jnp.zeros((), int))
    assert int(found) == 6


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_branch_computed_again_keeps_its_arguments_alone(sign: float) -> None:
    def f(x: jax.Array, again: bool) -> jax.Array:
        yes = lambda x: jnp.sum(jnp.sin(jnp.cos(jnp.exp(x))))  # noqa: E731
        return branch(x[0] > 0.0, yes, lambda x: jnp.prod(x), x, again=again)

    def handed_over(again: bool) -> int:
        made = jax.make_jaxpr(jax.grad(lambda x: f(x, again)))(jnp.ones(3))
        return len(next(line for line in made.eqns if line.primitive is lax.cond_p).outvars)

    x = sign * jnp.asarray([0.3, 0.5, 0.7])
    near = {"rtol": 1e-15, "atol": 1e-15}  # the same operations
    np.testing.assert_allclose(*(jax.grad(f)(x, again) for again in (True, False)), **near)
    along = [jax.jvp(lambda x, n=n: f(x, n), (x,), (x,))[1] for n in (True, False)]
    np.testing.assert_allclose(*along, **near)
    assert handed_over(True) == 2 < handed_over(False)  # its value and the argument
