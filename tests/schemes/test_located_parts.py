"""Located impacts of mechanisms of parts: derivatives of first and second order in closed form."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax import schemes

MASS, INERTIA, RADIUS, HEIGHT, GRAVITY, TIME = 1.0, 0.004, 0.1, 0.5, 9.81, 0.6
STICKS, SLIDES = jnp.array([2.0, -0.3, 1.0, 0.7, 0.2]), jnp.array([4.0, -0.3, 1.0, 0.7, 0.2])
"""Velocity [m/s], [rad/s], restitution, friction: with the first the ball rolls after its impact."""


def thrown() -> nsjax.Problem:
    """The ball above a rough floor."""
    floor = mb.plane("ground", at=(0.0, 0.0), normal=(0.0, 1.0))
    return mb.assemble(
        mb.body("ball", mass=MASS, inertia=INERTIA),
        mb.contact("floor", mb.sphere("ball", RADIUS), floor, restitution=0.7, friction=0.2),
        gravity=(0.0, -GRAVITY), start={"ball": ((0.0, HEIGHT, 0.0), (0.0, 0.0, 0.0))},
    )  # fmt: skip


def end(ball: nsjax.Problem, x: jax.Array) -> jax.Array:
    """State after one impact, by 37 steps."""
    problem = ball.replace(**{"floor.restitution": x[3], "floor.friction": x[4]})
    state = dataclasses.replace(problem.state, v=x[:3])
    scheme = schemes.localized(schemes.half_explicit())
    traj = nsjax.simulate(problem.system, problem.params, state, scheme, dt=TIME / 37, steps=37, every=37)
    return jnp.concatenate([traj.q[-1], traj.v[-1]])


def closed_form(x: jax.Array) -> jax.Array:
    """The same by parabolas and the impact of a ball on a rough floor."""
    along, up, spin, e, friction = x
    first = (up + jnp.sqrt(up**2 + 2.0 * GRAVITY * (HEIGHT - RADIUS))) / GRAVITY
    rest, down = TIME - first, GRAVITY * first - up
    normal = MASS * (1.0 + e) * down
    stop = -(along + RADIUS * spin) / (1.0 / MASS + RADIUS**2 / INERTIA)
    bound = friction * normal
    tangential = jnp.where(jnp.abs(stop) < bound, stop, jnp.sign(stop) * bound)
    v, w, u = along + tangential / MASS, spin + RADIUS * tangential / INERTIA, e * down
    return jnp.stack([
        along * first + v * rest, RADIUS + u * rest - 0.5 * GRAVITY * rest**2, spin * first + w * rest,
        v, u - GRAVITY * rest, w,
    ])  # fmt: skip


@pytest.mark.slow
def test_a_ball_on_a_rough_floor() -> None:
    """Parabolas are exact, the impact is 1e-12 m deep, and its solver's relative regularisation is 1e-9:
    values to 1e-8, and second derivatives, which are of the order of one, to 1e-6.
    """
    run = functools.partial(end, thrown())
    both = jax.jit(lambda x: (run(x), jax.jacfwd(jax.jacfwd(run))(x)))
    for x in (STICKS, SLIDES):
        value, bend = both(x)
        np.testing.assert_allclose(value, closed_form(x), atol=1e-8)
        np.testing.assert_allclose(bend, jax.hessian(closed_form)(x), rtol=1e-6, atol=1e-6)
    assert float(closed_form(STICKS)[3] + RADIUS * closed_form(STICKS)[5]) == pytest.approx(0.0, abs=1e-12)
    assert float(closed_form(SLIDES)[3] + RADIUS * closed_form(SLIDES)[5]) > 0.1
