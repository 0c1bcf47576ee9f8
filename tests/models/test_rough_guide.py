"""Guides with friction and without clearance: a block pressed from both sides, and the slider-crank."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, State, System, models, schemes

PRESS, RATE, FRICTION, MASS, SPEED = 20.0, 7.0, 0.3, 2.0, 3.0
BLOCK = System(
    nq=2, nv=2, nc=2, nt=1, mass=lambda q, p: MASS * np.eye(2),
    force=lambda t, q, v, p: jnp.stack([0.0 * t, PRESS * jnp.cos(RATE * t)]),
    gap=lambda t, q, p: jnp.stack([q[1], -q[1]]),
    slip=lambda t, q, v, p: jnp.stack([v[0], v[0]])[:, None],
    law=lambda p: ContactLaw(friction=FRICTION),
)  # fmt: skip
"""A block in an ideal guide, pressed by a force that changes its side."""

SLOW = pytest.mark.slow
SCHEMES = [
    pytest.param(schemes.moreau(), id="moreau"),
    *(
        pytest.param(getattr(schemes, name)(), marks=SLOW, id=name)
        for name in ("moreau_theta", "ggl_unified", "ggl_decoupled", "nsga_decoupled", "generalized_alpha",
                     "bathe", "ed_alpha", "half_explicit")
    ),
]  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pressed_block_loses_the_friction_of_the_magnitude(scheme):
    """``m dv/dt = -mu |N|``, whose integral is that of ``|cos|``; one side presses at a time."""
    steps, time = 400, 0.8
    traj = nsjax.simulate(
        BLOCK, (), State(t=0.0, q=np.zeros(2), v=np.array([SPEED, 0.0])), scheme, dt=time / steps,
        steps=steps,
    )  # fmt: skip
    traj.raise_for_status()
    turn = RATE * np.asarray(traj.t)
    half = np.floor(turn / np.pi + 0.5)
    exact = SPEED - FRICTION * PRESS / MASS * (2 * half + (-1) ** half * np.sin(turn)) / RATE
    assert half[-1] == 2
    # a quadrature of |cos| by steps of 0.014 rad, dt^2 / 12 of the slope of the force, and two kinks
    np.testing.assert_allclose(traj.v[:, 0], exact, atol=1e-4)
    np.testing.assert_allclose(traj.q[:, 1], 0.0, atol=1e-15)
    assert np.asarray(traj.force_normal).min(axis=1).max() < 1e-7 * PRESS  # the contact solver's tolerance


TIME, ROUGH = 0.03, 0.3


def one_coordinate(p, n: int = 1200):
    """Angle and rate of the crank at the end, and the forces of the guide, by Runge and Kutta's rule on the
    crank's angle; multiplier and friction by a linear system for each sign of the normal force.
    """
    l1, l2, m1, m2, m3 = p.crank_length, p.rod_length, p.crank_mass, p.rod_mass, p.slider_mass
    side, first = l1 * l2 * (m2 / 2 + m3), p.crank_inertia + l1 * l1 * (m1 / 4 + m2 + m3)

    def rate(x):
        s1, c1 = np.sin(x[0]), np.cos(x[0])
        s2 = -l1 / l2 * s1
        c2 = np.sqrt(1 - s2 * s2)
        om = np.array([x[1], -l1 * c1 / (l2 * c2) * x[1]])
        cross = side * (c1 * c2 + s1 * s2), side * (s1 * c2 - c1 * s2)
        mass = np.array([[first, cross[0]], [cross[0], p.rod_inertia + l2 * l2 * (m2 / 4 + m3)]])
        weight = p.gravity * np.array([l1 * c1 * (m1 / 2 + m2 + m3), l2 * c2 * (m2 / 2 + m3)])
        force = np.array([-cross[1] * om[1] ** 2, cross[1] * om[0] ** 2]) - weight
        across, along = np.array([l1 * c1, l2 * c2]), np.array([-l1 * s1, -l2 * s2])
        bend = l1 * s1 * om[0] ** 2 + l2 * s2 * om[1] ** 2
        for sign in (1.0, -1.0):
            push = across - np.sign(along @ om) * ROUGH * sign * along
            matrix = np.block([[mass, -push[:, None]], [across[None], np.zeros((1, 1))]])
            z = np.linalg.solve(matrix, np.append(force, bend))
            if sign * z[2] >= 0.0:
                return np.array([x[1], z[0]]), z[2]
        raise AssertionError("no sign of the normal force fits")

    x, h, normal = np.array([0.0, 150.0]), TIME / n, []
    for _ in range(n):
        a, force = rate(x)
        normal.append(force)
        b, _ = rate(x + 0.5 * h * a)
        c, _ = rate(x + 0.5 * h * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + rate(x + h * c)[0])
    return x, np.array(normal)


@pytest.mark.slow
def test_slider_crank_in_a_rough_guide():
    """The force changes its side twice; between these events the scheme is of second order."""
    problem = models.slider_crank_bilateral(rough=True, friction=ROUGH)
    exact, normal = one_coordinate(problem.params)
    assert np.sum(np.diff(np.sign(normal)) != 0) == 2
    errors = []
    for steps in (300, 600):
        traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=TIME / steps, steps=steps)
        traj.raise_for_status()
        errors.append(abs(float(traj.q[-1, 0]) - exact[0]))
        sides = np.asarray(traj.force_normal)[1:]
        assert sides.min(axis=1).max() < 1e-9
        loaded = sides[:, 0] - sides[:, 1]
        # most steps are far from the changes of side: forces of a step's end beside those of its start
        apart = np.abs(loaded - normal[:: len(normal) // steps])
        assert np.median(apart) < 0.02 * np.abs(normal).max()
    assert errors[0] < 1e-3
    assert errors[1] < errors[0] / 3.0
    assert np.abs(exact[0] - one_coordinate(problem.params, 600)[0][0]) < errors[1] / 100
