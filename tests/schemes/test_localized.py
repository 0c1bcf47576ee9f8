"""Impacts at their own time: accuracy, first and second derivatives by plain differentiation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import State, System, models, schemes
from nsjax.contact import ContactLaw
from nsjax.gradient_notes import COUPLED, UNLOCATED
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row
from tests.design import each_family
from tests.gradients import balls, pendulum
from tests.gradients.program import floats, off, primes_near, sensitivity, slope

TIME, RADIUS = 0.91, 0.05
BALL = models.bouncing_ball(restitution=0.8)
AT = jnp.array([0.8, 9.81, 1.0])


def closed_form(x: jax.Array) -> jax.Array:
    """Height and velocity between the first and the second impact; x = (restitution, gravity, height)."""
    e, g, h = x
    first = jnp.sqrt(2.0 * h / g)
    speed, rest = e * g * first, TIME - first
    return jnp.stack([RADIUS + speed * rest - 0.5 * g * rest**2, speed - g * rest])


def end(x: jax.Array) -> jax.Array:
    """The same with seven steps."""
    problem = BALL.replace(restitution=x[0], gravity=x[1], initial_q=jnp.stack([x[2] + RADIUS]))
    traj = nsjax.simulate(*problem, schemes.localized(schemes.moreau()), dt=TIME / 7, steps=7, every=7)
    return jnp.concatenate([traj.q[-1], traj.v[-1]])


def test_parabolas_are_exact() -> None:
    # the impact is 1e-12 m deep; the contact solver's relative regularisation is 1e-9
    np.testing.assert_allclose(end(AT), closed_form(AT), atol=1e-10)


@pytest.mark.slow
def test_first_derivatives_are_exact_on_parabolas() -> None:
    found = jax.jit(jax.jacfwd(end))(AT)
    np.testing.assert_allclose(found, jax.jacfwd(closed_form)(AT), rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_second_derivatives_are_exact_on_parabolas() -> None:
    """All of them; the saltation derivative refuses to be differentiated."""
    exact = jax.hessian(closed_form)(AT)
    np.testing.assert_allclose(jax.jit(jax.hessian(end))(AT), exact, rtol=1e-6, atol=1e-6)
    reverse = jax.jit(jax.jacrev(jax.jacrev(end)))(AT)
    np.testing.assert_allclose(reverse, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inner", "case"),
    [(schemes.half_explicit(), pendulum.STICK), (schemes.generalized_alpha(rho_inf=1.0), pendulum.SLIP)],
)
def test_order_two_of_state_and_derivative(inner, case: pendulum.Case) -> None:
    """A double pendulum at a rough wall, against event-driven integration."""
    x, exact = pendulum.reference(case)
    grid = primes_near(100, 4, 3).ravel()
    scheme = schemes.localized(inner)
    found = [
        sensitivity(pendulum.SYSTEM, pendulum.build, scheme, case.values, case.time, n, "discrete")
        for n in grid
    ]
    assert not any(a.notes for a in found)
    states, slopes = [off(a.x, x) for a in found], [off(a.jacobian, exact) for a in found]
    print(inner.name, case.name, states[-1], slopes[-1])
    for errors in (states, slopes):
        # no saw-tooth: every point lies on the line
        assert -np.polyfit(np.log(grid), np.log(errors), 1)[0] > 1.8


# a pendulum that swings against a wall, without friction

SWING = np.array([9.81, 0.2, 0.7])
"""Gravity over length, distance of the wall, restitution."""
SWINGS = System(
    nq=1, nv=1, nc=1, nt=0, mass=lambda q, p: jnp.ones((1, 1)),
    force=lambda t, q, v, p: -p[0] * jnp.sin(q), gap=lambda t, q, p: p[1] - jnp.sin(q),
    law=lambda p: ContactLaw(restitution=p[2]),
)  # fmt: skip
TURN, AROUND = -0.8, 2.0


def swung(p: np.ndarray = SWING) -> tuple[np.ndarray, np.ndarray]:
    """State at `AROUND`, and instants of impacts, by event-driven integration."""

    def left(t, x):
        return p[1] - np.sin(x[0])

    left.terminal, left.direction = True, -1
    x, t, times = np.array([TURN, 0.0]), 0.0, []
    while True:
        run = solve_ivp(
            lambda t, x: [x[1], -p[0] * np.sin(x[0])], (t, AROUND), x, method="DOP853", rtol=1e-13,
            atol=1e-14, max_step=4e-3, events=left,
        )  # fmt: skip
        t, x = run.t[-1], run.y[:, -1]
        if run.status == 0:
            return x, np.array(times)
        times.append(t)
        x = np.array([x[0], -p[2] * x[1]])


@each_family("name")
def test_orders_of_all_schemes(name: str) -> None:
    """State and instants have the order that the scheme inside has in smooth motion."""
    exact, times = swung()
    entry, scheme = schemes.REGISTRY[name], schemes.localized(schemes.REGISTRY[name].factory())
    keep = LoopProgram(system=SWINGS, keep=("notes",), events=4)

    @jax.jit
    def end(dt, steps):
        state = State(t=0.0, q=jnp.array([TURN]), v=jnp.zeros(1))
        params, state = floats((jnp.asarray(SWING), state))
        run = begin_run(keep, scheme, params, state, dt, None)
        run, row = run_row(prepare_run(keep, scheme, params, dt), run, steps)
        return jnp.concatenate([row["q"], row["v"]]), run.events.time, run.status, row["notes"]

    grid, errors = primes_near(100, 4, 10), []
    for n in grid.ravel():
        x, found, status, bits = end(AROUND / int(n), int(n))
        assert int(status) == 0
        assert not np.any(bits)
        errors.append([off(x, exact), off(found[: len(times)], times)])
    orders = [slope(np.reshape(e, grid.shape), grid) for e in np.transpose(errors)]
    print(name, orders, errors[-1])
    assert min(orders) > entry.order[0] - 0.1


def swinging(p: jax.Array) -> tuple[jax.Array, State]:
    return p, State(t=0.0, q=jnp.array([TURN]), v=jnp.zeros(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["generalized_alpha", "nsga_decoupled"])
def test_orders_of_derivatives_with_a_memory(name: str) -> None:
    """Steps start from an acceleration of a time before, which depends on the length of the last step:
    with it the orders were 1.6 (spectral radius 0.8), 0.7 (0.3) and 0.9 (HHT). The reference is differences
    of order four over a width of 2e-4 of event-driven motions to 1e-13: 1e-9.
    """
    x, h = swung()[0], 2e-4
    by = [[swung(SWING + k * h * e)[0] for k in (1, -1, 2, -2)] for e in np.eye(3)]
    exact = np.transpose([(8.0 * (a - b) - (c - d)) / (12.0 * h) for a, b, c, d in by])
    grid, factory = primes_near(100, 4, 6), schemes.REGISTRY[name].factory
    for numbers in ({"alpha_f": 0.1}, {"alpha_f": 0.3}) if name == "hht" else ({}, {"rho_inf": 0.3}):
        scheme = schemes.localized(factory(**numbers))
        runs = [sensitivity(SWINGS, swinging, scheme, SWING, AROUND, int(n)) for n in grid.ravel()]
        assert not any(run.notes for run in runs)
        errors = [[off(run.x, x), off(run.jacobian, exact)] for run in runs]
        for each in np.transpose(errors):
            assert slope(np.reshape(each, grid.shape), grid) > 1.9


@pytest.mark.slow
def test_two_impacts_in_one_step() -> None:
    """At one instant or at two, they are located; slow ones are left to the scheme inside, and noted."""
    scheme = schemes.localized(schemes.moreau())
    for case in balls.CASES:
        found = sensitivity(balls.SYSTEM, balls.build, scheme, case.vector(), case.time, 101)
        assert not found.notes & (COUPLED | UNLOCATED)
        x, exact = balls.reference(case)
        # parabolas are exact; an impact is 1e-12 m deep
        assert off(found.x, x) < 1e-9
        assert off(found.jacobian, exact) < 1e-6
    drop = BALL.replace(initial_q=np.array([RADIUS + 1e-3]), restitution=0.5)
    traj = nsjax.simulate(*drop, scheme, dt=1e-3, steps=100, every=100, save=["notes"])
    assert np.any(np.asarray(traj.notes) & UNLOCATED)


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["half_explicit", "changes", "generalized_alpha", "bathe"])
def test_impacts_at_the_end_of_a_step(inner: str) -> None:
    """Two balls that reach the floor at the end of a step, or up to 1e-6 s before or after it."""
    scheme = schemes.localized(getattr(schemes, inner, schemes.half_explicit)(), changes=inner == "changes")
    grid, time, e, g = 0.4, 0.6, 0.8, 9.81

    def exact(instants: jax.Array) -> jax.Array:
        rest = time - instants
        return e * g * instants * rest - 0.5 * g * rest**2

    @jax.jit
    def found(instants: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def heights(x: jax.Array) -> tuple[jax.Array, jax.Array]:
            params, start = balls.build(jnp.concatenate([0.5 * g * x**2, jnp.zeros(2), jnp.array([e, g])]))
            run = nsjax.simulate(balls.SYSTEM, params, start, scheme, dt=0.02, time=time, save=["notes"])
            return run.q[-1], (run.q[-1], run.notes)

        slopes, (ends, notes) = jax.jacfwd(heights, has_aux=True)(instants)
        return ends, slopes, notes

    offsets = [s * x for x in (0.0, 1e-15, 1e-13, 2.5e-13, 1e-12, 2e-11, 1e-9) for s in (1.0, -1.0)]
    for first in offsets:
        for second in (0.0, first, 1e-13, 2e-12, -3e-11, -1e-6):
            at = jnp.array([grid + first, grid + second])
            ends, slopes, notes = found(at)
            # the impact is put 2e-11 s before the end of the step, where the balls are 8e-11 m high
            np.testing.assert_allclose(ends, exact(at), rtol=0, atol=2e-10)
            # rounding of a motion, 1e-16, over its least length, 1e-9 of a step
            np.testing.assert_allclose(slopes, jax.jacfwd(exact)(at), rtol=0, atol=1e-7)
            assert not np.any(np.asarray(notes) & UNLOCATED)
