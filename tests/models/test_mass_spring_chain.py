"""Chains of any length against the closed forms of a uniform chain."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes


def closed_form(n: int, support: str) -> np.ndarray:
    """Angular frequencies for k = m = 1: free at the end, or with the last mass held."""
    if support == "constraint":
        return 2.0 * np.sin(np.pi * np.arange(1, n) / (2 * n))
    return 2.0 * np.sin(np.pi * (2 * np.arange(1, n + 1) - 1) / (4 * n + 2))


@pytest.mark.parametrize(
    ("n", "support"),
    [
        (40, "constraint"),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((1, "constraint"), (3, "spring"))),
    ],
)
def test_frequencies(n: int, support: str) -> None:
    system, p, start = models.mass_spring_chain(support=support, masses=n, support_stiffness=0.0)
    stiffness = -jax.jacfwd(lambda q: system.force(0.0, q, start.v, p))(jnp.zeros(n))
    free = n - system.nb
    found = np.sqrt(np.linalg.eigvalsh(np.asarray(stiffness)[:free, :free]))
    np.testing.assert_allclose(found, closed_form(n, support), rtol=1e-12)
    # forces are those of the potential, with the support's spring and weights of unlike masses too
    p = p.__class__(
        mass=jnp.arange(1.0, n + 1), stiffness=jnp.arange(2.0, n + 2), support_stiffness=7.0, gravity=3.0
    )
    q = jnp.sin(jnp.arange(1.0, n + 1))
    slope = jax.grad(lambda q: system.potential(0.0, q, p))(q)
    np.testing.assert_allclose(system.force(0.0, q, start.v, p), -slope, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_a_mode_of_a_long_chain() -> None:
    """Thirty masses, solved node by node, keep their second mode: second order in the step."""
    n, dt, steps = 30, 0.05, 400
    omega = closed_form(n, "spring")[1]
    k = np.arange(1, n + 1)
    shape = np.sin(k * 3 * np.pi / (2 * n + 1))
    chain = models.mass_spring_chain(masses=n, gravity=0.0, support_stiffness=0.0, initial_q=0.1 * shape)
    assert chain.system.structure.block == 1
    traj = nsjax.simulate(*chain, schemes.generalized_alpha(rho_inf=1.0), dt=dt, steps=steps, every=20)
    traj.raise_for_status()
    # the trapezoidal rule turns by 2 atan(omega dt / 2) in a step, and does not damp
    angle = 2 * np.arctan(omega * dt / 2) * np.asarray(traj.t) / dt
    np.testing.assert_allclose(traj.q, 0.1 * np.cos(angle)[:, None] * shape, atol=1e-9)
