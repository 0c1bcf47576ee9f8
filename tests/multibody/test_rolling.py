"""Wheels and balls that roll without slip: closed forms, both coordinates, schemes, derivatives, forces."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, hinge, rolling, slide
from nsjax.multibody.start import RedundantConstraintsWarning

SLOW = pytest.mark.slow
BOTH = [
    ("joint", schemes.moreau()), ("absolute", schemes.generalized_alpha()),
    ("absolute", schemes.moreau(constraint_form="index_3")), ("joint", schemes.nsga_decoupled()),
    ("absolute", schemes.ggl_unified()), ("absolute", schemes.half_explicit()),
]  # fmt: skip


def ball(coordinates, inertia=0.4, pull=3.0):
    """A ball of radius 1 m on a plane that the gravity is inclined to."""
    return assemble(
        body("ball", mass=1.0, inertia=(inertia, inertia, inertia)),
        rolling("roll", "ground", "ball", radius=1.0), gravity=(pull, 0.0, -9.0), coordinates=coordinates,
        start={"ball": ((0.0, 0.0, 1.0), None)},
    )  # fmt: skip


@SLOW
@pytest.mark.parametrize(("coordinates", "scheme"), BOTH)
def test_a_ball_on_an_incline(coordinates, scheme) -> None:
    """``5/7 g sin``, friction ``2/7 m g sin``, and a weight that presses."""
    traj = nsjax.simulate(*ball(coordinates), scheme, dt=1e-2, steps=50)
    traj.raise_for_status()
    np.testing.assert_allclose(traj.body("ball").velocity[-1], [0.5 * 15 / 7, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(traj.body("ball").position[-1, 2], 1.0, atol=1e-9)
    np.testing.assert_allclose(traj.joint("roll").force[-1], [-6 / 7, 0.0, 9.0], atol=1e-9)
    np.testing.assert_allclose(traj.joint("roll").torque[-1], [0.0, 6 / 7, 0.0], atol=1e-9)


@SLOW
def test_derivative_by_the_inertia() -> None:
    """``x = pull t^2 / 2 / (1 + J / (m r^2))`` but for the order of the scheme."""
    modes = (jax.jacrev, jax.jacfwd)

    def end(inertia):
        problem = ball("joint")
        moved = problem.replace(**{"ball.inertia": inertia * jnp.ones(3)})
        return nsjax.simulate(*moved, schemes.moreau(), dt=1e-2, steps=20).v[-1, 0]

    found = [float(jax.jit(mode(end))(jnp.asarray(0.4))) for mode in modes]
    assert abs(found[0] + 0.2 * 3.0 / 1.4**2) < 1e-9
    assert max(found) - min(found) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", pytest.param("absolute", marks=SLOW)])
def test_a_disc_of_the_plane(coordinates) -> None:
    """``2/3 g sin`` on a slope of which the normal is given."""
    s, c = 0.6, 0.8
    problem = assemble(
        body("disc", mass=2.0, inertia=1.0),  # of radius 1 m, full
        rolling("roll", "ground", "disc", radius=1.0, normal=(-s, c), at=(1.0, 0.0)), gravity=9.0,
        start={"disc": ((1.0 - s, c, 0.0), None)}, coordinates=coordinates,
    )  # fmt: skip
    assert problem.system.labels.constraints == ("roll.contact", "roll.forward")
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-2, steps=50)
    down = -2 / 3 * 9.0 * s * 0.5
    np.testing.assert_allclose(traj.body("disc").velocity[-1], [down * c, down * s], atol=1e-9)
    force = np.array([-s, c]) * 2.0 * 9.0 * c + np.array([c, s]) * 2.0 * 9.0 * s / 3
    np.testing.assert_allclose(traj.joint("roll").force[-1], force, atol=1e-9)


ANGLE, ROUND = 1.0, 1.5
"""Between the axis of Euler's disc and the vertical, and the radius of the circle of its centre."""


def eulers_disc(coordinates):
    """A thin disc of radius 1 m in steady precession, and its rate.

    Momentum about the centre and the force of the contact give ``m g r cos x = W^2 sin x ((m r^2 + C) R / r
    + A cos x)``.
    """
    mass, about, axial = 1.0, 0.25, 0.5
    s, c = np.sin(ANGLE), np.cos(ANGLE)
    rate = np.sqrt(mass * 9.81 * c / (s * ((mass + axial) * ROUND + about * c)))
    spin = (-rate * s, 0.0, -rate * ROUND)
    problem = assemble(
        body("disc", mass=mass, inertia=(about, about, axial)),
        rolling("roll", "ground", "disc", radius=1.0, axis=(0.0, 0.0, 1.0)), gravity=(0.0, 0.0, -9.81),
        start={"disc": (((ROUND, 0.0, s), (0.0, ANGLE, 0.0)), ((0.0, rate * ROUND, 0.0), spin))},
        coordinates=coordinates,
    )  # fmt: skip
    return problem, rate


@SLOW
@pytest.mark.parametrize(
    ("coordinates", "scheme", "order"),
    [
        ("joint", schemes.generalized_alpha(), 2),
        ("absolute", schemes.generalized_alpha(constraint_form="ggl"), 2),
        ("joint", schemes.moreau(), 1),
    ],
)
def test_eulers_disc_in_steady_precession(coordinates, scheme, order) -> None:
    problem, rate = eulers_disc(coordinates)
    errors = []
    for steps in (100, 200):
        traj = nsjax.simulate(*problem, scheme, dt=1.0 / steps, steps=steps)
        traj.raise_for_status()
        wanted = np.array([ROUND * np.cos(rate), ROUND * np.sin(rate), np.sin(ANGLE)])
        errors.append(np.max(np.abs(np.asarray(traj.body("disc").position[-1]) - wanted)))
    assert errors[1] < (3e-2 if order == 1 else 3e-4)
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2


def cart(coordinates, left=5.0, right=6.0):
    """Two driven wheels of radius 0.2 m, 1 m apart, on an axle that keeps its height."""
    up, wide = {"axis": (0.0, 1.0, 0.0)}, {"radius": 0.2, "contact": False}
    parts = [
        body("x", mass=1e-9, inertia=(0.1, 0.1, 0.1)), slide("X", "ground", "x", axis=(1.0, 0.0, 0.0)),
        body("y", mass=0.5, inertia=(0.1, 0.1, 0.1)), slide("Y", "x", "y", axis=(0.0, 1.0, 0.0)),
        body("cart", mass=2.0, inertia=(0.1, 0.2, 0.3)), hinge("yaw", "y", "cart", axis=(0.0, 0.0, 1.0)),
    ]  # fmt: skip
    for name, side in (("left", 0.5), ("right", -0.5)):
        parts += [
            body(name, mass=0.3, inertia=(0.003, 0.006, 0.003)),
            hinge(f"{name}_axle", "cart", name, at=(0.0, side, 0.0), **up),
            rolling(f"{name}_roll", "ground", name, **up, **wide),
        ]
    start = {"left": (0.0, left), "right": (0.0, right)}
    return assemble(*parts, coordinates=coordinates, start=start)


@pytest.mark.parametrize("coordinates", [pytest.param("absolute", marks=SLOW)])
def test_the_turning_circle_of_a_cart(coordinates) -> None:
    """Speed ``r (a + b) / 2`` and yaw ``r (b - a) / d`` of its wheels; the start finds them."""
    with pytest.warns(RedundantConstraintsWarning, match="right_roll.sideways"):
        problem = cart(coordinates)
    assert problem.system.nh == 3
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-2, steps=100)
    traj.raise_for_status()
    speed, yaw = 0.2 * 5.5, 0.2
    radius = speed / yaw
    wanted = [radius * np.sin(yaw), radius * (1.0 - np.cos(yaw)), 0.0]
    np.testing.assert_allclose(traj.body("cart").velocity[0], [speed, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(traj.body("cart").position[-1], wanted, atol=2e-5)
    # both wheels keep their rates
    for name, rate in (("left", 5.0), ("right", 6.0)):
        assert abs(float(traj.joint(f"{name}_axle").rate[-1]) - rate) < 1e-4


@pytest.mark.slow
def test_a_ball_on_a_moving_plane() -> None:
    """A plane that is accelerated takes a ball along with ``J / (J + m r^2)`` of its acceleration."""
    problem = assemble(
        body("table", mass=1.0, inertia=(0.1, 0.1, 0.1)),
        slide("drive", "ground", "table", axis=(1.0, 0.0, 0.0), motion=lambda t: 0.7 * t * t),
        body("ball", mass=1.0, inertia=(0.4, 0.4, 0.4)), rolling("roll", "table", "ball", radius=1.0),
        gravity=(0.0, 0.0, -9.81), start={"ball": ((0.0, 0.0, 1.0), None)},
    )  # fmt: skip
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-2, steps=50)
    traj.raise_for_status()
    np.testing.assert_allclose(traj.body("ball").velocity[-1], [0.5 * 1.4 * 2 / 7, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(traj.joint("roll").force[-1], [1.4 * 2 / 7, 0.0, 9.81], atol=1e-6)


def test_a_start_that_is_left_open_rolls() -> None:
    guess = {"ball": ((0.0, 0.0, 0.7), None)}
    parts = body("ball", mass=1.0, inertia=(0.4, 0.4, 0.4)), rolling("w", "ground", "ball", radius=1.0)
    problem = assemble(*parts, gravity=(0.0, 0.0, -9.81), guess=guess)
    assert abs(problem.state.q[2] - 1.0) < 1e-11
    saved = dataclasses.replace(problem)
    assert saved.params["w"].own.radius == 1.0
