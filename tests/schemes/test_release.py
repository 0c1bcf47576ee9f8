"""The force of a contact that leaves during a step."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes


def bar() -> nsjax.Problem:
    """An elastic bar of 40 elements by the formulas of the source alone: with a model that says it is stiff
    the step of a release is one of the implicit Euler rule.
    """
    problem = models.elastic_bar(elements=40)
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, stiff=False))


def rebound(scheme: nsjax.core.Scheme, dt: float) -> tuple[float, float]:
    """Energy of the bar after its contact with a wall, of that before; and that which the impact of its
    first node alone must leave: ``E - v^2 / (2 W' M^-1 W)``.
    """
    problem = bar()
    s, p, state = problem.system, problem.params, problem.state
    mass = np.asarray(jax.vmap(lambda x: s.inertia(state.q, x, p))(jnp.eye(s.nv)))
    row = np.asarray(jax.jacobian(lambda q: s.gap(0.0, q, p))(state.q))[0]
    v = np.asarray(state.v)
    loss = 0.5 * (row @ v) ** 2 / (row @ np.linalg.solve(mass, row)) / (0.5 * v @ mass @ v)
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=round(3.0 / dt))
    traj.raise_for_status()
    assert traj.impacts.sum() == 1
    assert not np.asarray(traj.impulse_normal)[-1].any()
    energy = np.asarray(traj["energy"])
    return float(energy[-1] / energy[0]), 1.0 - loss


@pytest.mark.slow
def test_undamped_newmark_keeps_the_energy_at_a_release() -> None:
    """Whatever the step."""
    scheme = schemes.newmark(force_at_release="drop")
    for dt in (0.02, 0.05):
        found, left = rebound(scheme, dt)
        assert found == pytest.approx(left, abs=1e-11)


@pytest.mark.slow
def test_a_kept_force_pushes_what_leaves() -> None:
    """The energy that the source's formulas add at the release, more in a larger step."""
    gains = []
    for dt in (0.02, 0.05):
        found, left = rebound(schemes.newmark(), dt)
        gains.append(found - left)
    assert gains[0] > 1e-4
    assert gains[1] > 2.0 * gains[0]


@pytest.mark.slow
def test_derivatives_past_a_release() -> None:
    """A bar of four elements strikes and leaves: derivatives of its last state agree with wide secants."""
    found = nsjax.check_gradient(
        models.elastic_bar(elements=4), schemes.newmark(force_at_release="drop"),
        parameters=("young", "density", "distance"), dt=2e-3, time=2.6, samples=9,
    )  # fmt: skip
    assert found.impacts == 1
    assert found.agrees, str(found)
