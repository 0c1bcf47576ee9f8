"""One of two linear maps by a value of the run, and functions in several kernels."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.jaxtools.choices import CHOICE, chosen_map, first_maps_in_loops, in_kernels, in_one_list
from nsjax.jaxtools.internals import jaxpr_as_fun
from nsjax.jaxtools.programs import holds

MAPS = (
    lambda data, x: [jnp.sin(data[0]) * x[0][:2], 2.0 * x[1]],
    lambda data, x: [jnp.cos(data[0]) * x[0][1:], data[1][0] * x[1] + x[0][0]],
)


def ours(which, data, x):
    return chosen_map(which, MAPS, data, x)


def theirs(which, data, x):
    return jax.lax.cond(which, MAPS[1], MAPS[0], data, x)


def objective(f, which, data, x):
    a, b = f(which, data, x)
    return jnp.sum(a**2) + jnp.sum(b**3)


@pytest.mark.parametrize("which", [pytest.param(False, marks=pytest.mark.slow), True])
def test_derivatives_of_any_order_are_those_of_a_branch(which: bool) -> None:
    rng = np.random.default_rng(which)
    data = [jnp.asarray(rng.normal(size=2)), jnp.asarray(rng.normal(size=3))]
    x, turn = [jnp.asarray(rng.normal(size=3)), jnp.asarray(0.7)], jnp.asarray(which)
    for g in (
        lambda f, turn, data, x: f(turn, data, x),
        lambda f, turn, data, x: jax.grad(lambda x: objective(f, turn, data, x))(x),
        lambda f, turn, data, x: jax.grad(lambda data: objective(f, turn, data, x))(data),
        lambda f, turn, data, x: jax.jvp(jax.grad(lambda x: objective(f, turn, data, x)), (x,), (x,)),
        lambda f, turn, data, x: jax.hessian(lambda data: objective(f, turn, data, x))(data),
        lambda f, turn, data, x: jax.vmap(lambda x: objective(f, turn, data, [x, x[0]]))(jnp.ones((2, 3))),
    ):
        found, wanted = (jax.jit(functools.partial(g, f))(turn, data, x) for f in (ours, theirs))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13), found, wanted)
    jax.tree.map(np.testing.assert_array_equal, ours(turn, data, x), theirs(turn, data, x))


def test_lanes_that_differ_take_the_second_map() -> None:
    data, x = [jnp.ones(2), jnp.ones(3)], [jnp.arange(3.0), jnp.asarray(1.0)]
    found = jax.vmap(lambda which: jax.grad(lambda x: objective(ours, which, data, x))(x))(
        jnp.array([False, True])
    )
    wanted = jax.grad(lambda x: objective(theirs, True, data, x))(x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, jnp.stack([b, b]), rtol=1e-14), found, wanted)


def test_reverse_mode_stores_the_operands_alone() -> None:
    data, x = [jnp.ones(2), jnp.ones(3)], [jnp.arange(3.0), jnp.asarray(1.0)]
    count = lambda f: len(jax.tree.leaves(jax.vjp(lambda x: f(data[0][0] > 0.0, data, x), x)[1]))  # noqa: E731
    assert count(ours) == 3  # the value it depends on and the data; no results of its maps


@pytest.mark.parametrize("most", [1, 5, 10**6])
def test_a_function_in_kernels(most: int) -> None:
    """Floats, integers, bools, constants, and functions in it; each part a kernel of a larger loop."""
    table = jnp.arange(4.0)

    def f(x, k, on):
        y = jax.jit(lambda x: jnp.sin(x) + table[:3])(x)
        z = jax.checkpoint(lambda y: jnp.where(on, y * y, -y))(y)
        return jnp.outer(z, x), k + 1, ~on, z[k], y.sum(), 3.0

    x, k, on = jnp.array([0.3, -0.2, 0.9]), jnp.asarray(1), jnp.asarray([True, False, True])
    made = jax.make_jaxpr(f)(x, k, on)
    found = jax.jit(lambda once: in_kernels(made, once, most)(x, k, on))(1)
    for a, b in zip(found, f(x, k, on), strict=True):
        assert jnp.asarray(a).dtype == jnp.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-15)
    assert not {"jit", "remat2"} & {line.primitive.name for line in in_one_list(made).eqns}


@pytest.mark.parametrize("product", [False, True])
def test_a_product_of_matrices_is_no_part_of_a_kernel(product: bool) -> None:
    """Else all that shares a loop with it is compiled in pieces."""

    def f(x):
        y = jax.lax.cond(x[0, 0] > 0.0, (lambda y: y @ y) if product else (lambda y: y * y), jnp.tanh, x)
        return jnp.cos(y)

    x = jnp.eye(20)
    made = jax.make_jaxpr(lambda x: f(jnp.sin(x)))(x)
    run = lambda once: in_kernels(made, once, 10**6)(x)  # noqa: E731
    np.testing.assert_allclose(jax.jit(run)(1)[0], f(jnp.sin(x)), rtol=1e-14)
    names = [line.primitive.name for line in jax.make_jaxpr(run)(1).eqns]
    assert names.count("while") == (3 if product else 1)


STEPS = 24


def passes(library: bool = False, reverse: bool = True, rows: int = 2) -> tuple:
    """Traced pass through rows of steps, with the data of both maps, and its arguments."""
    first = (lambda data, x: [*MAPS[0](data, [x[0] @ jnp.eye(3), x[1]])]) if library else MAPS[0]

    def run(which, many, data):
        def step(x, now):
            on, a = now
            moved = jax.checkpoint(lambda x: chosen_map(on, (first, MAPS[1]), [a, data[1]], x))(x)
            return [jnp.append(moved[0], moved[1]), moved[1]], None

        def row(x, now):
            return jax.lax.scan(step, x, now, reverse=reverse)

        start = [jnp.arange(3.0), jnp.asarray(1.0)]
        return jax.lax.scan(row, start, (which, many), reverse=reverse)[0]

    data, many = [jnp.ones(2), jnp.linspace(1.0, 2.0, 3)], jnp.linspace(0.0, 3.0, 2 * STEPS)
    given = jnp.zeros((rows, STEPS // rows), bool), many.reshape(rows, -1, 2), data
    return jax.make_jaxpr(run)(*given), given


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("rows", [1, 2, STEPS])
@pytest.mark.parametrize("on", [(), (0,), (STEPS - 1,), (3, 4, 9), tuple(range(STEPS))])
def test_first_maps_in_loops_of_their_own(on: tuple[int, ...], rows: int, reverse: bool) -> None:
    """Second maps at either end, side by side, nowhere and everywhere; rows of one step, too."""
    made, (which, many, data) = passes(reverse=reverse, rows=rows)
    loops = first_maps_in_loops(made)
    assert holds(made, (CHOICE,))
    assert not holds(loops, (CHOICE,))
    which = which.reshape(-1).at[jnp.array(on, int)].set(True).reshape(which.shape)
    both = [jax.jit(jaxpr_as_fun(x))(which, many, *data) for x in (made, loops)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14), *both)


def test_maps_with_library_calls_stay_in_one_scan() -> None:
    made, _ = passes(library=True)
    assert first_maps_in_loops(made) is made


@pytest.mark.parametrize("name", ["scatter", "scatter-add", "sort", "dot_general"])
def test_what_a_kernel_cannot_hold_is_found(name: str) -> None:
    """Scatters hold a function of their own, how entries meet."""
    places = jnp.array([2, 0])
    f = {
        "scatter": lambda x: x.at[places].set(1.0),
        "scatter-add": lambda x: x.at[places].add(1.0),
        "sort": jnp.sort,
        "dot_general": lambda x: x @ x,
    }[name]
    assert holds(jax.make_jaxpr(jax.jit(f))(jnp.ones(3)), (name,))
