"""Resistance of a medium: closed forms of a fall, of a spin and of a glide."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, fluid_drag

SLOW = pytest.mark.slow
MASS, BOX, RHO, MU, G = 1.3, (0.3, 0.2, 0.1), 900.0, 25.0, 9.81
INERTIA = (0.05, 0.08, 0.11)
TIME, STEPS = 0.4, 400


def fallen(density, dimension, coordinates):
    """Height lost by a plate that falls from rest along the second axis of its box."""
    flat = dimension == 2
    plate = body("plate", mass=MASS, inertia=INERTIA[2] if flat else INERTIA)
    medium = fluid_drag("water", "plate", BOX, density=RHO)
    gravity = (0.0, -G) if flat else (0.0, -G, 0.0)
    problem = assemble(plate, medium, gravity=gravity, coordinates=coordinates)
    problem = problem.replace(**{"water.own.density": density})
    run = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=TIME / STEPS, steps=STEPS, every=STEPS)
    return -run.body("plate").position[-1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "coordinates"),
    [
        (2, "joint"),
        (3, "absolute"),
    ],
)
def test_a_falling_plate(dimension, coordinates) -> None:
    """Quadratic resistance k v^2: the height is ``m/k log cosh(t sqrt(g k/m))``."""

    def exact(density):
        k = 0.5 * density * BOX[0] * BOX[2]
        return MASS / k * jnp.log(jnp.cosh(TIME * jnp.sqrt(G * k / MASS)))

    run = jax.jit(jax.value_and_grad(lambda x: fallen(x, dimension, coordinates)))
    height, slope = run(RHO)
    # order 2; the fall's time scale sqrt(m/(g k)) is a hundred steps
    assert abs(height - exact(RHO)) < 3e-5 * exact(RHO)
    assert abs(slope - jax.grad(exact)(RHO)) < 1e-4 * abs(jax.grad(exact)(RHO))
    forward = jax.jit(lambda x: jax.jvp(lambda y: fallen(y, dimension, coordinates), (x,), (1.0,))[1])(RHO)
    assert abs(forward - slope) < 1e-10 * abs(slope)


@pytest.mark.parametrize("coordinates", [pytest.param("absolute", marks=SLOW)])
def test_spins_and_glides(coordinates) -> None:
    """Viscous resistance leaves an exponential, quadratic one ``w / (1 + k w t)``, each about a principal
    axis; a box turned about that axis by a quarter has its edges exchanged.
    """
    mean, (a, b, c) = sum(BOX) / 3.0, BOX
    start = {"disc": ((0.0, 0.0, 0.0), ((0.0, 0.0, 2.0), (0.0, 0.0, 30.0)))}
    disc = body("disc", mass=MASS, inertia=INERTIA, com=(0.0, 0.0, 0.05))

    def end(**given):
        medium = fluid_drag("oil", ("disc", (0.0, 0.0, 0.05)), BOX, **given)
        problem = assemble(disc, medium, start=start, coordinates=coordinates)
        run = nsjax.simulate(
            *problem, schemes.generalized_alpha(), dt=TIME / STEPS, steps=STEPS, every=STEPS
        )
        found = run.body("disc")
        return np.array([found.spin[-1, 2], found.velocity[-1, 2]])

    thick = np.array([np.pi * mean**3 * MU / INERTIA[2], 3.0 * np.pi * mean * MU / MASS])
    wanted = np.array([30.0, 2.0]) * np.exp(-thick * TIME)
    # order 2, time constants of more than twenty steps: (dt/T)^2/12 t/T is the error of the trapezoid
    assert np.allclose(end(viscosity=MU), wanted, rtol=4e-3)
    still = np.array([RHO * c * (a**4 + b**4) / 64.0 / INERTIA[2], 0.5 * RHO * a * b / MASS])
    wanted = np.array([30.0, 2.0]) / (1.0 + still * np.array([30.0, 2.0]) * TIME)
    assert np.allclose(end(density=RHO), wanted, rtol=1e-4)
    assert np.allclose(end(density=RHO, turned=(0.0, 0.0, np.pi / 2.0)), wanted, rtol=1e-4)
    # with the wind nothing resists
    assert np.allclose(end(density=RHO, wind=(0.0, 0.0, 2.0))[1], 2.0, rtol=1e-12)


def test_turned_in_the_plane() -> None:
    """A box turned by a quarter resists with the other edge."""
    for turned, edge in ((0.0, BOX[0]), (np.pi / 2.0, BOX[1])):
        plate = body("plate", mass=MASS, inertia=INERTIA[2])
        medium = fluid_drag("air", "plate", BOX, density=RHO, turned=turned)
        problem = assemble(plate, medium, start={"plate": ((0.0, 0.0, 0.0), (0.0, 3.0, 0.0))})
        force = problem.system.force(0.0, problem.state.q, problem.state.v, problem.params)
        assert np.allclose(force, [0.0, -0.5 * RHO * edge * BOX[2] * 9.0, 0.0], rtol=1e-12, atol=1e-9)
