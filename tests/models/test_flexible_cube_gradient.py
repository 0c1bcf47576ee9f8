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
from nsjax.core.blocks import REVERSE_BYTES

TIME = 0.05
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
def forward(dt: float) -> np.ndarray:
    """Derivative (2, 4) by forward mode."""
    return np.asarray(jax.jit(jax.jacfwd(lambda x: slanting(x, dt, round(TIME / dt))))(jnp.zeros(4)))


def reverse(dt: float, steps: int) -> Any:
    """The compiled program of reverse mode."""
    return jax.jit(jax.jacrev(lambda x: slanting(x, dt, steps))).lower(jnp.zeros(4)).compile()


def stored(program: Any) -> int:
    """Bytes that it sets aside."""
    return int(program.memory_analysis().temp_size_in_bytes)


@pytest.mark.slow
def test_both_modes_agree_and_reverse_mode_is_bounded() -> None:
    """Through 330 steps of sliding contact; memory of 500 and of 8000 steps."""
    dt = 1e-4
    program = reverse(dt, round(TIME / dt))
    found, expected = np.asarray(program(jnp.zeros(4))), forward(dt)
    # the same derivative in another order of sums: 2e-15 was seen
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
    # what is kept of the run, the adjoints of its two outcomes and a step
    assert stored(program) < 2 * REVERSE_BYTES
    assert stored(reverse(dt, 8000)) < 2 * REVERSE_BYTES


WIDTHS = (0.05, 0.05, 0.02, 0.05)
"""Half of the secants'. Nodes begin to stick, one after the other, as friction grows: over a tenth of it
the loss of speed along the plane is no straight line, a secant so wide misses its slope by 2 %.
"""


@pytest.mark.slow
def test_gradient_of_a_rebound_with_friction() -> None:
    """Against wide secants of runs that have converged: half the step moves no secant by 1 % of the
    largest. With 1e-4, 5e-5, 2.5e-5 s the derivative misses them by 2.5, 1.4, 0.8 %, in the mean square.
    """
    dt = 5e-5
    run = functools.partial(slanting, dt=dt, steps=round(TIME / dt))
    steps = np.diag(WIDTHS)
    wide = np.stack([(run(x) - run(-x)) / (2.0 * x.max()) for x in steps], axis=1)
    size = np.abs(wide).max()
    missed = [np.sqrt(np.mean((forward(h) - wide) ** 2)) / size for h in (2.0 * dt, dt)]
    # impacts are found to first order of the step, which is a hundredth of the height of fall at 1 m/s
    assert missed[0] < 0.035
    assert missed[1] < 0.7 * missed[0]
    np.testing.assert_allclose(forward(dt), wide, atol=0.04 * size)
    # their ratio alone sets the motion
    np.testing.assert_allclose(forward(dt)[:, 0], -forward(dt)[:, 1], rtol=1e-6)
