"""Impacts at their own time: accuracy, first and second derivatives by plain differentiation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.notes import COUPLED, UNLOCATED
from tests.gradients import balls, pendulum
from tests.gradients.program import off, primes_near, sensitivity

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
    "inner", [schemes.half_explicit(), schemes.generalized_alpha(rho_inf=1.0), schemes.moreau_theta()]
)
@pytest.mark.parametrize("case", [pendulum.SLIP, pendulum.STICK], ids=lambda case: case.name)
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
