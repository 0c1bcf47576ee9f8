"""What the smooth motion of the nonsmooth generalized-alpha contains: order, refusals, derivatives.

Single steps are compared with plain linear algebra in `test_nsga_step`.
"""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, State, System, schemes
from tests.references import slope

TIME = 0.8
BEAD = System(
    nq=2, nv=2, nc=1, mass=lambda q, p: np.eye(2), force=lambda t, q, v, p: jnp.stack([0.0 * p, -p]),
    gap=lambda t, q, p: (q[1] - 0.5 * q[0] ** 2)[None], law=lambda p: ContactLaw(restitution=0.0),
)  # fmt: skip
"""A point that slides in a parabolic bowl; the parameter is gravity."""
BOWL = State(t=0.0, q=np.array([1.0, 0.5]), v=np.zeros(2))

PENDULUM = System(
    nq=2, nv=2, nb=1, mass=lambda q, p: np.eye(2), force=lambda t, q, v, p: jnp.stack([0.0 * p, -p]),
    constraint=lambda t, q, p: 0.5 * (jnp.sum(q * q) - 1.0)[None],
)  # fmt: skip
RIGHT = State(t=0.0, q=np.array([1.0, 0.0]), v=np.zeros(2))
G = 9.81


def integrated(f, x, n: int = 4000):
    """Runge and Kutta's fourth-order rule over `TIME`."""
    h = TIME / n
    for _ in range(n):
        a = f(x)
        b = f(x + 0.5 * h * a)
        c = f(x + 0.5 * h * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + f(x + h * c))
    return x


def bead():
    """Position and velocity along the axis, by the one coordinate of the motion on the bowl."""
    return integrated(
        lambda x: np.array([x[1], -x[0] * (x[1] ** 2 + G) / (1 + x[0] ** 2)]), np.array([1.0, 0.0])
    )


def pendulum():
    angle, rate = integrated(lambda x: np.array([x[1], -G * np.sin(x[0])]), np.array([0.5 * np.pi, 0.0]))
    return np.array([np.sin(angle), rate * np.cos(angle)])


def coupled(smooth: str):
    return schemes.nsga_coupled(iteration="monolithic", smooth=smooth)


SLOW = pytest.mark.slow
CASES = [
    pytest.param(BEAD, BOWL, bead, coupled("full"), 2.0, marks=SLOW, id="bead, full"),
    pytest.param(BEAD, BOWL, bead, coupled("constrained"), 1.0, marks=SLOW, id="bead, constrained"),
    pytest.param(
        BEAD, BOWL, bead, schemes.nsga_decoupled(smooth="zero"), 1.0, marks=SLOW, id="bead, zero"
    ),
    pytest.param(PENDULUM, RIGHT, pendulum, coupled("full"), 2.0, marks=SLOW, id="pendulum, full"),
    pytest.param(
        PENDULUM, RIGHT, pendulum, schemes.nsga_decoupled(smooth="free"), 1.0, id="pendulum, free"
    ),
    pytest.param(PENDULUM, RIGHT, pendulum, coupled("free"), 1.0, marks=SLOW, id="pendulum, coupled, free"),
    pytest.param(
        PENDULUM, RIGHT, pendulum, schemes.nsga_decoupled(smooth="zero"), 1.0, marks=SLOW,
        id="pendulum, zero",
    ),
    pytest.param(PENDULUM, RIGHT, pendulum, coupled("zero"), 1.0, marks=SLOW, id="pendulum, coupled, zero"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "start", "exact", "scheme", "order"), CASES)
def test_order_of_the_motion(system, start, exact, scheme, order):
    errors, steps = [], (320, 640, 1280)
    for n in steps:
        traj = nsjax.simulate(system, G, start, scheme, dt=TIME / n, steps=n)
        traj.raise_for_status()
        end = np.array([traj.q[-1, 0], traj.v[-1, 0]])
        errors.append(np.abs(end - exact()))
    found = [slope([TIME / n for n in steps], [e[k] for e in errors]) for k in (0, 1)]
    np.testing.assert_allclose(found, order, atol=0.15)  # three step sizes, the next power of the step


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [schemes.nsga_decoupled, schemes.nsga_coupled])
def test_light_point_on_a_curved_surface_beside_a_heavy_body(scheme) -> None:
    """A point lands on a hill. The characteristic mass is that of a model with a drum a thousand times as
    heavy, and has no part in the motion: before gaps vanish it makes multipliers, not forces.
    """
    hill = dataclasses.replace(BEAD, gap=lambda t, q, p: (q[1] + 0.5 * q[0] ** 2)[None])
    start = State(t=0.0, q=np.array([0.2, 0.6]), v=np.array([1.0, 0.0]))
    run = functools.partial(nsjax.simulate, hill, G, start, dt=1e-2, steps=60)
    light, heavy = run(scheme()), run(scheme(mass_scale=1e3))
    assert int(heavy.status) == 0
    assert np.any(np.asarray(light.impacts))
    np.testing.assert_allclose(heavy.q, light.q, rtol=0, atol=1e-9)
