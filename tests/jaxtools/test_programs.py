"""Programs without operations that nothing reads: the same values and derivatives everywhere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from nsjax.jaxtools.programs import code_size, counted, equations, without_repeats


def test_the_same_function() -> None:
    """Of a tree with parts that do not move, and a result that is not looked at."""
    seed = 2
    rng = np.random.default_rng(seed)
    data = {"a": jnp.asarray(rng.normal(size=3)), "n": jnp.asarray(seed)}

    def plain(data, x):
        jnp.tan(data["a"])
        return {"y": x * jnp.sin(data["a"]) + data["n"], "x": x}

    own, x = (lambda data, x: counted(plain, data, x)[0]), jnp.asarray(rng.normal(size=3))
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

    found = [str(jax.make_jaxpr(f)(0.1)).count("sin ") for f in (slope, lambda x: counted(slope, x)[0])]
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


def _merged(f, *arguments) -> tuple[int, int]:
    """Operations of a function before and after equal ones are done once."""
    made = jax.make_jaxpr(f)(*arguments)
    once = without_repeats(made)
    for x in (*arguments, *(2.0 * a for a in arguments)):
        np.testing.assert_array_equal(*(jax_evaluated(m, x) for m in (made, once)))
    return len(made.eqns), len(once.eqns)


def jax_evaluated(made, *arguments) -> np.ndarray:
    return np.asarray(jaxpr_as_fun(made)(*arguments))


def test_equal_operations_are_done_once() -> None:
    """Chains of them, and branches that were traced twice; the results stay the same to the last bit."""

    def branched(x, slope=2.0):
        return jax.lax.cond(x > 0.0, lambda y: slope * jnp.sin(y), lambda y: y * y, x)

    # a comparison, its number, a branch: twice, and their sum
    assert _merged(lambda x: branched(x) + branched(x), jnp.asarray(0.3)) == (7, 4)
    assert _merged(lambda x: branched(x) + branched(x, 3.0), jnp.asarray(0.3)) == (7, 5)
    chain = lambda x: jnp.sin(jnp.cos(2.0 * x))  # noqa: E731
    assert _merged(lambda x: chain(x) * chain(x) + jnp.cos(x), jnp.asarray(0.3)) == (9, 6)


def test_different_operations_stay() -> None:
    """Numbers of other signs and types, other axes, other orders, and operations with effects."""
    x, y = jnp.asarray(0.3), jnp.ones((2, 2))
    assert _merged(lambda x: jnp.arctan2(x, 0.0) + jnp.arctan2(x, -0.0), x) == (3, 3)
    assert _merged(lambda x: (x - 1.0) + (1.0 - x), x) == (3, 3)
    assert _merged(lambda y: jnp.sum(y, 0) + jnp.sum(y, 1), y) == (3, 3)

    def printing(x):
        jax.debug.print("x")
        jax.debug.print("x")
        return x + 1.0

    assert len(without_repeats(jax.make_jaxpr(printing)(0.3)).eqns) == 3
