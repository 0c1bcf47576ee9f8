"""The flexible cube: momentum, energy, hanging, and the gradient of its rebound."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes


# The soft brick on its plane: balance of momentum, materials, friction, held faces, refusals.
@pytest.mark.slow
def test_momentum_and_energy_of_a_bounce() -> None:
    """The jump of momentum is the sum of impulses and weight, exactly; the plane gives no energy."""
    cube = models.flexible_cube(elements=2, height=0.01, velocity=np.array([0.0, 0.0, -1.0]))
    traj = nsjax.simulate(*cube, schemes.nsga_decoupled(relative_tolerance=1e-8), dt=1e-3, time=0.06)
    traj.raise_for_status()
    impulse = float(np.asarray(traj.impulse_normal).sum())
    change = 1e-3 * float(traj["centre_dz"][-1] - traj["centre_dz"][0])
    # the criterion of the solves, relative to the momentum
    assert change == pytest.approx(impulse - 9.81e-3 * 0.06, abs=1e-10)
    assert float(traj["centre_dz"][-1]) > 0.3
    energy = np.asarray(traj["energy"])
    assert energy.max() <= energy[0] + 1e-9
    assert np.asarray(traj.gap).min() >= -1e-9
    assert int(traj.iterations.max()) <= 10
    stress = np.asarray(traj["stress"])
    assert stress[0] < 1e-12  # rounding of places
    # a plane wave of the impact velocity carries rho c v = 11 N/m^2
    assert 5.0 < stress.max() < 33.0
    assert np.asarray(traj["volume_ratio"]).min() > 0.5


@pytest.mark.slow
def test_a_held_brick_hangs_from_its_base() -> None:
    """Under its weight, far above the plane: the lower face hangs ``rho g L^2 / (2 E)`` lower."""
    held = models.flexible_cube(
        elements=(1, 1, 4), held="upper", height=1.0, poisson=0.0, young=90.0, density=0.1
    )
    system, p, state = held

    @jax.jit
    def heights(q):
        matrix = system.structure.tangent(lambda x: -system.force(0.0, q + x, 0.0 * q, p), 0.0 * q)
        _, sag = system.structure.eliminate(matrix, system.force(0.0, q, 0.0 * q, p)[:, None])
        return system.gap(0.0, q + sag[:, 0], p)

    lower = np.asarray(heights(jnp.asarray(state.q))) - 1.0
    # nodal displacements of a bar are exact
    np.testing.assert_allclose(lower, -0.1 * 9.81 * 0.01 / 180.0, rtol=1e-9)


def test_a_moving_plane_and_a_moving_base() -> None:
    system, p, state = models.flexible_cube(
        elements=1, held="upper", rough=True, table_amplitude=0.1, table_frequency=3.0, belt=0.5,
        base_amplitude=0.2, base_frequency=2.0, height=0.0,
    )  # fmt: skip
    t, q = jnp.asarray(0.4), jnp.asarray(state.q)
    looked = jax.jit(lambda q, v: (system.gap(t, q, p), system.slip(t, q, v, p), system.force(t, q, v, p)))
    gap, slip, force = looked(q, 0.0 * q)
    np.testing.assert_allclose(gap, -0.1 * np.sin(1.2))
    np.testing.assert_allclose(slip, [[0.4 * np.cos(0.8) - 0.5, 0.0]] * 4)
    pulled = np.asarray(force).reshape(-1, 3).sum(axis=0)
    # of the free nodes: half of the mass
    np.testing.assert_allclose(pulled, 0.5e-3 * np.array([0.8 * np.sin(0.8), 0.0, -9.81]), atol=1e-15)


@pytest.mark.slow
def test_a_crushed_cube_ends_in_a_sentence() -> None:
    """Thrown at four times the speed of its waves."""
    cube = models.flexible_cube(elements=1, rough=True, height=0.001, velocity=np.array([0.0, 0.0, -50.0]))
    traj = nsjax.simulate(*cube, schemes.moreau(), dt=1e-3, steps=2000, every=1000)
    assert int(traj.status) != 0
    with pytest.raises(Exception, match="the force function returned a value that is not finite"):
        traj.raise_for_status()


# Derivatives of the soft brick's rebound: both modes, bounded memory, wide secants of converged runs.
STEP, STEPS = 5e-5, 1000
"""Of a slanting bounce, whose nodes strike, slide and leave one after the other from 10 to 43 ms [s]."""


@pytest.mark.slow
def test_gradient_of_the_rebound() -> None:
    """Speed of the centre after a bounce with respect to stiffness, density and start, against secants as
    wide as a tenth; all four nodes of the face strike at once.
    """
    dt, time = 2.5e-5, 0.06
    steps = round(time / dt)

    def rebound(x):
        cube = models.flexible_cube(
            elements=1, young=90.0 * (1.0 + x[0]), density=1.0 + x[1], height=0.0105 * (1.0 + x[2]),
            velocity=np.array([0.0, 0.0, -1.0]),
        )  # fmt: skip
        traj = nsjax.simulate(*cube, schemes.nsga_decoupled(), dt=dt, steps=steps, every=steps)
        return traj["centre_dz"][-1]

    found = np.asarray(jax.jit(jax.jacfwd(rebound))(jnp.zeros(3)))
    run = jax.jit(rebound)
    wide = [float(run(0.05 * one) - run(-0.05 * one)) / 0.1 for one in jnp.eye(3)]
    # first order of the impacts: 13 per cent with 1e-4 s
    np.testing.assert_allclose(found, wide, rtol=0.06)
    # their ratio alone sets the speed of waves; weight during contact adds little
    assert found[0] == pytest.approx(-found[1], rel=0.01)


def slanting(x: Any, dt: float, steps: int) -> Any:
    """Velocity of the centre of eight elements, across and along a rough plane, by logarithms of
    stiffness, density, friction and height of fall.
    """
    cube = models.flexible_cube(
        elements=2, rough=True, young=90.0 * (1.0 + x[0]), density=1.0 + x[1], friction=0.3 * (1.0 + x[2]),
        height=0.0105 * (1.0 + x[3]), velocity=np.array([0.6, 0.0, -1.0]),
    )  # fmt: skip
    traj = nsjax.simulate(*cube, schemes.nsga_decoupled(), dt=dt, steps=steps, every=steps)
    found = [traj["centre_dz"][-1], traj["centre_dx"][-1]]
    return np.array(found) if isinstance(x, np.ndarray) else jnp.stack(found)


@functools.cache
def forward() -> np.ndarray:
    """Derivative (2, 4) by forward mode."""
    return np.asarray(jax.jit(jax.jacfwd(lambda x: slanting(x, STEP, STEPS)))(jnp.zeros(4)))
