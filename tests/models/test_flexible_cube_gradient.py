"""Derivatives of the soft brick's rebound: both modes, bounded memory, wide secants of converged runs."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes

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
            elements=1,
            young=90.0 * (1.0 + x[0]),
            density=1.0 + x[1],
            height=0.0105 * (1.0 + x[2]),
            velocity=np.array([0.0, 0.0, -1.0]),
        )
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
        elements=2,
        rough=True,
        young=90.0 * (1.0 + x[0]),
        density=1.0 + x[1],
        friction=0.3 * (1.0 + x[2]),
        height=0.0105 * (1.0 + x[3]),
        velocity=np.array([0.6, 0.0, -1.0]),
    )
    traj = nsjax.simulate(*cube, schemes.nsga_decoupled(), dt=dt, steps=steps, every=steps)
    found = [traj["centre_dz"][-1], traj["centre_dx"][-1]]
    return np.array(found) if isinstance(x, np.ndarray) else jnp.stack(found)


@functools.cache
def forward() -> np.ndarray:
    """Derivative (2, 4) by forward mode."""
    return np.asarray(jax.jit(jax.jacfwd(lambda x: slanting(x, STEP, STEPS)))(jnp.zeros(4)))
