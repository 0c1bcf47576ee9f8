"""Runs tell that their energy rises at an impact, and only then."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes, status
from nsjax.contact import ContactLaw
from nsjax.report import first_rise
from tests.design import slow_but


def unaware() -> nsjax.Problem:
    """An elastic bar with damping whose system does not say that it is stiff."""
    problem = models.elastic_bar(elements=8, distance=2.0, damping=2.5)
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, stiff=False))


def test_a_rise_is_told() -> None:
    """The step, the time, the contact, both energies, and what to do."""
    traj = nsjax.simulate(*unaware(), schemes.generalized_alpha(0.0), dt=0.05, steps=40)
    assert int(traj.status) & status.ENERGY_ROSE
    first = int(np.flatnonzero(np.sum(traj.impacts, axis=1))[0])
    energy = np.asarray(traj["energy"])
    assert max(energy[first : first + 2]) > 1.1 * energy[first - 1]
    assert (int(traj.first_failure.step), int(traj.first_failure.contact)) == (first, 0)
    text = str(traj)
    assert "energy rises" in text
    assert f"t = {float(traj.t[first]):.9g} s" in text
    with pytest.raises(nsjax.RunError, match=r"the energy rose at an impact.*stiff=True"):
        traj.raise_for_status()


@pytest.mark.slow
def test_the_remedy_helps() -> None:
    problem = unaware()
    problem = dataclasses.replace(problem, system=dataclasses.replace(problem.system, stiff=True))
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(0.0), dt=0.05, steps=40)
    traj.raise_for_status()
    assert "energy rises" not in str(traj)


def _mass(q, p):
    return jnp.eye(1)


def _force(t, q, v, p):
    return jnp.full(1, -p["g"])


def _potential(t, q, p):
    return p["g"] * q[0]


def _gap(t, q, p):
    return q - p["size"] * jnp.sin(p["omega"] * t)


def _law(p):
    return ContactLaw(restitution=p["e"])


TABLE = nsjax.System(nq=1, nv=1, nc=1, mass=_mass, force=_force, potential=_potential, gap=_gap, law=_law)


@pytest.mark.parametrize(
    "make", slow_but([schemes.moreau, schemes.generalized_alpha, schemes.bathe], schemes.moreau)
)
def test_a_table_that_shakes_is_a_drive(make) -> None:
    """It throws a ball higher and higher: that is no fault."""
    p = {"g": 9.81, "size": 0.05, "omega": 60.0, "e": 0.9}
    state = nsjax.State(t=0.0, q=jnp.full(1, 0.3), v=jnp.zeros(1))
    traj = nsjax.simulate(TABLE, p, state, make(), dt=1e-3, steps=1500)
    assert np.max(traj["energy"]) > 1.5 * traj["energy"][0]
    traj.raise_for_status()


def test_drives_explain_as_much_as_before_the_impact() -> None:
    kinetic = np.asarray([1.0, 1.0, 1.0, 1.0, 1.0])
    assert first_rise([3], kinetic, np.asarray([1.0, 1.0, 1.0, 1.09, 1.0])) is None
    assert first_rise([3], kinetic, np.asarray([1.0, 1.0, 1.0, 1.11, 1.0])) == 3
    assert first_rise([3], kinetic, np.asarray([1.0, 1.0, 1.0, 1.0, 1.11])) == 3
    assert first_rise([3], kinetic, np.asarray([1.0, 0.9, 1.0, 1.4, 1.0])) is None
