"""Programs without operations that nothing reads: the same values and derivatives everywhere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from nsjax.jaxtools.programs import code_size, counted, equations, sliced_once, without_repeats
from nsjax.jaxtools.rules import cycled


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


def _sliced(x, a):
    """Slices that overlap, lie apart and come twice, of rows and columns, in calls and branches."""
    part = jax.jit(lambda u: u[:1] * u[1:2] + u[1:2])
    both = jax.lax.cond(x[0] > 0.0, lambda u: u[:3] * u[3:6], lambda u: u[4:] - u[:3], x)
    rows = jnp.sum(jnp.sin(a[:3] * a[3:])) * jnp.sum(a[1:4] ** 2)
    columns = jnp.sum(a[:, :2] ** 2) * jnp.sum(a[:, 3:]) + a[2, 1]
    return (
        x[0] * x[1] * jnp.sum(x[:3]) + rows * columns + part(x[5:])[0] * part(x[:2])[0] + jnp.sum(both**2)
    )


def test_slices_of_an_array_are_one_operation() -> None:
    """The same values and derivatives of first and second order, with concatenations in place of sums."""
    rng = np.random.default_rng(4)
    x, a = rng.normal(size=7), rng.normal(size=(6, 4))
    made = jax.make_jaxpr(_sliced)(x, a)
    once = sliced_once(made)
    own = lambda *x: jaxpr_as_fun(once)(*x)[0]  # noqa: E731
    slope = lambda f, x, a: jax.grad(lambda x: f(x, a) + jnp.sum(jax.grad(f, 1)(x, a) ** 2))(x)  # noqa: E731
    every = [jax.jit(lambda x, a, f=f: (f(x, a), slope(f, x, a))) for f in (own, _sliced)]
    for start in (x, -x, 0.0 * x):
        for one, other in zip(*(f(start, a) for f in every), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
    counts = [str(jax.make_jaxpr(jax.grad(f, (0, 1)))(x, a)).count(" pad[") for f in (own, _sliced)]
    assert counts[0] < counts[1] / 2
    assert sliced_once(once) is once


def test_cycled_entries() -> None:
    """Values of ``numpy.roll``; derivatives of both modes, of the second order too, and in lanes."""
    x = np.random.default_rng(3).normal(size=(3, 4))
    for axis, places in ((0, 1), (0, 2), (1, 3)):

        def all_of(turn, x):
            f = lambda x: jnp.sum(jnp.sin(turn(x)) * x)  # noqa: E731
            return (
                jax.grad(f)(x),
                jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2))(x),
                jax.jvp(f, (x,), (x,))[1],
            )

        own = lambda x, k=axis, n=places: cycled(x, k, n)  # noqa: E731
        wanted = lambda x, k=axis, n=places: jnp.roll(x, -n, k)  # noqa: E731
        np.testing.assert_array_equal(own(x), np.roll(x, -places, axis))
        found, known = (jax.jit(lambda x, f=f: all_of(f, x))(x) for f in (own, wanted))
        for one, other in zip(found, known, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-14)
        lanes = jax.vmap(own, -1, -1)(np.stack([x, -x], -1))
        np.testing.assert_array_equal(lanes[..., 1], np.roll(-x, -places, axis))
