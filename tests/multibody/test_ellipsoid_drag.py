"""Forces of a medium on an ellipsoid: closed forms of a sphere, derivatives at rest, sentences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core import InputError
from nsjax.core.operators import prepared
from nsjax.multibody import assemble, body, ellipsoid_drag

RADIUS, RHO, MU = 0.2, 900.0, 25.0
BLUNT, SLENDER, TURNS, KUTTA, MAGNUS = 0.5, 0.25, 1.5, 1.0, 0.7
U, W = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, -2.0])


def forces(velocity: Any, coordinates: str = "joint", **given: Any) -> jax.Array:
    """Force and moment on a sphere at the centre of a body, (6,)."""
    ball = body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    medium = ellipsoid_drag("water", "a", (RADIUS,) * 3, **given)
    problem = assemble(
        ball, medium, start={"a": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))}, coordinates=coordinates
    )
    system = problem.system
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))
    return system.force(jnp.zeros(()), jnp.asarray(problem.state.q), jnp.asarray(velocity), p)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_a_sphere(coordinates: str) -> None:
    """Stokes' drag, ``C rho A |u| u``, Magnus' force, and no lift of Kutta: the normal is along ``u``."""
    slow = forces(np.concatenate([U, W]), coordinates, viscosity=MU)
    wanted = np.concatenate([-6.0 * np.pi * MU * RADIUS * U, -8.0 * np.pi * MU * RADIUS**3 * W])
    assert np.allclose(slow, wanted, rtol=1e-12)
    fast = forces(
        np.concatenate([U, W]),
        coordinates,
        density=RHO,
        coefficients=(BLUNT, SLENDER, TURNS, KUTTA, MAGNUS),
    )
    push = -BLUNT * RHO * np.pi * RADIUS**2 * np.linalg.norm(U) * U
    push += MAGNUS * RHO * 4.0 / 3.0 * np.pi * RADIUS**3 * np.cross(W, U)
    turn = -TURNS * RHO * 8.0 / 15.0 * np.pi * RADIUS**5 * np.linalg.norm(W) * W
    assert np.allclose(fast, np.concatenate([push, turn]), rtol=1e-12)


def test_wind_and_added_mass() -> None:
    """In the wind nothing resists but turns; added masses act across the motion."""
    still = forces(np.concatenate([U, np.zeros(3)]), density=RHO, viscosity=MU, wind=U)
    assert np.allclose(still, 0.0, atol=1e-12)
    added = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    more = forces(np.concatenate([U, W]), density=RHO, added=added) - forces(
        np.concatenate([U, W]), density=RHO
    )
    p, l = RHO * added[:3] * U, RHO * added[3:] * W  # noqa: E741
    assert np.allclose(more[:3], np.cross(p, W), rtol=1e-9)
    assert np.allclose(more[3:], np.cross(p, U) + np.cross(l, W), rtol=1e-9)


@pytest.mark.slow
def test_derivatives_at_rest() -> None:
    """They are those of the viscous drag, forward and reverse."""
    for derivative in (jax.jacfwd, jax.jacrev):
        slope = derivative(lambda v: forces(v, density=RHO, viscosity=MU))(jnp.zeros(6))
        wanted = [-6.0 * np.pi * MU * RADIUS] * 3 + [-8.0 * np.pi * MU * RADIUS**3] * 3
        assert np.allclose(slope, np.diag(wanted), rtol=1e-12, atol=1e-12)


def test_in_the_plane_it_is_refused() -> None:
    medium = ellipsoid_drag("medium", "a", (1.0, 1.0, 1.0), density=1.0)
    problem = assemble(body("a", mass=1.0, inertia=1.0), medium, gravity=9.81)
    with pytest.raises(InputError, match="the mechanism is planar, and an ellipsoid is in space; take"):
        problem.system.force(jnp.zeros(()), jnp.zeros(3), jnp.zeros(3), problem.params)
