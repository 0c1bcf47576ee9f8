"""Splines as tables: values and rates beside scipy's, what an input reads of them, derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import nsjax
from nsjax import schemes
from nsjax.core.signals import ready
from nsjax.multibody import actuator, assemble, body, hinge
from tests.design import in_turn

ENDS = {
    "natural": "natural", "clamped": "clamped", "rates": ((1, 0.3), (1, -2.0)),
    "several": ((1, [0.3, 1.0]), (1, [-2.0, 0.5])),
}  # fmt: skip


def pendulum(effort=None, law=None) -> nsjax.Problem:
    return assemble(
        body("rod", mass=1.0, inertia=0.1, com=0.5), hinge("pin", "ground", "rod"),
        actuator("motor", "pin", effort, law=law), gravity=9.81,
    )  # fmt: skip


def drawn(seed: int, count: int, several: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.02, 0.4, count))
    return times, rng.normal(size=(count, 2) if several else count)


@pytest.mark.parametrize(("name", "count"), in_turn(ENDS, (2, 3, 12)))
def test_a_spline_is_that_of_scipy(name, count) -> None:
    """Worst over twenty draws, and over the whole table, its times included."""
    f = [jax.jit(jax.vmap(x, (0, None))) for x in _with_rates(name == "several")]
    for seed in range(20):
        times, values = drawn(seed, count, name == "several")
        ends = ENDS[name] if isinstance(ENDS[name], str) else [x for _, x in ENDS[name]]
        table = nsjax.signal(times, values, "cubic", ends=ends)
        known = CubicSpline(times, values, bc_type=ENDS[name])
        at = np.concatenate([np.linspace(times[0], times[-1], 50)[:-1], times[:-1]])
        for k, found in enumerate(f):
            size = np.max(np.abs(known(at, k)))
            np.testing.assert_allclose(found(at, table), known(at, k), atol=1e-11 * (1.0 + size))


def _with_rates(several):
    """The value of a table at a time, its rate and its second derivative."""
    value = lambda t, table: table.at(t)  # noqa: E731
    rate = jax.jacfwd(value)
    return value, rate, jax.jacfwd(rate)


def test_before_and_after_a_spline_its_ends_count() -> None:
    times, values = drawn(3, 6)
    table = nsjax.signal(times, values, "cubic")
    np.testing.assert_array_equal([table.at(-1.0), table.at(times[-1] + 1.0)], values[[0, -1]])
    np.testing.assert_array_equal([jax.grad(table.at)(x) for x in (-1.0, times[-1] + 1.0)], 0.0)
    one = nsjax.signal([0.5], [2.0], "cubic")
    assert [float(one.at(x)) for x in (0.0, 0.5, 1.0)] == [2.0, 2.0, 2.0]


def test_a_table_that_is_ready_has_the_same_values_and_derivatives() -> None:
    times, values = drawn(4, 9)

    def at(values, prepare):
        table = nsjax.signal(times, values, "cubic", ends="clamped")
        table = ready({"a": table})["a"] if prepare else table
        return jax.vmap(table.at)(jnp.linspace(times[0], times[-1], 30))

    one, other = (jax.jit(at, static_argnums=1)(values, x) for x in (True, False))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-15)
    one, other = (jax.jit(jax.jacfwd(at), static_argnums=1)(values, x) for x in (True, False))
    np.testing.assert_allclose(one, other, atol=1e-14)
    known = CubicSpline(times, np.eye(9), bc_type="clamped")(np.linspace(times[0], times[-1], 30))
    np.testing.assert_allclose(one, known, atol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.jacrev(at), static_argnums=1)(values, True), known, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", pytest.param("generalized_alpha", marks=pytest.mark.slow)])
def test_a_spline_as_input_is_the_function_it_was_sampled_from(scheme) -> None:
    """A cubic polynomial is its own spline with its rates at the ends: the run is that of the law."""
    shape = np.polynomial.Polynomial([0.3, -2.0, 5.0, 40.0])
    times = np.linspace(0.0, 0.2, 6)
    table = nsjax.signal(times, shape(times), "cubic", ends=shape.deriv()(times[[0, -1]]))
    run = {"dt": 1e-3, "steps": 190}
    found = nsjax.simulate(*pendulum(0.0), getattr(schemes, scheme)(), **run, inputs={"motor": table})
    known = nsjax.simulate(
        *pendulum(law=lambda t, x, rate, own: jnp.polyval(shape.coef[::-1], t)),
        getattr(schemes, scheme)(),
        **run,
    )
    np.testing.assert_allclose(found.q, known.q, atol=1e-13)


@pytest.mark.slow
def test_derivatives_of_a_run_by_a_spline() -> None:
    """By every value, forward and reverse, beside central secants of width 1e-3 of a smooth motion."""
    times, values = np.linspace(0.0, 0.2, 6), np.array([0.0, 0.4, -0.3, 0.2, 0.1, 0.0])

    def end(values):
        table = nsjax.signal(times, values, "cubic")
        return nsjax.simulate(
            *pendulum(0.0), schemes.half_explicit(), dt=1e-3, steps=200, inputs={"motor": table}
        ).q[-1, 0]  # fmt: skip

    forward, reverse = jax.jacfwd(end)(values), jax.grad(end)(values)
    np.testing.assert_allclose(forward, reverse, rtol=1e-11)
    width = 1e-3
    secants = [float(end(values + width * e) - end(values - width * e)) / (2 * width) for e in np.eye(6)]
    np.testing.assert_allclose(forward, secants, rtol=1e-7, atol=1e-9)
