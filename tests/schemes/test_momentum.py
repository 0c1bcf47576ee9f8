"""Impulses are the time integrals of the scheme's forces and its jumps: momentum balances in every step.

With a constant force ``h``, constant mass and constant rows ``M (v_{i+1} - v_i) = dt h + W P``, whatever
the scheme does with the accelerations of earlier steps.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, State, System, schemes
from tests.design import each_family

MASSES = np.array([1.5, 1.5, 0.4, 0.4])
WEIGHT = np.array([0.3, -9.81 * 1.5, 0.1, -9.81 * 0.4])


# Two planar point masses (x1, y1, x2, y2) on a lift between them, whose stroke is prescribed; the first one
# meets a floor with friction. The force of the lift varies, all rows are constant.


def _mass(q, p):
    return jnp.diag(MASSES)


def _force(t, q, v, p):
    return jnp.asarray(WEIGHT)


def _gap(t, q, p):
    return q[1:2]


def _slip(t, q, v, p):
    return v[:1, None]


def _law(p):
    return ContactLaw(restitution=p["restitution"], friction=p["friction"])


def _lift(t, q, p):
    return q[3:4] - q[1:2] - 0.02 * jnp.sin(20.0 * t)


LIFT = System(
    nq=4, nv=4, nc=1, nt=1, nb=1, mass=_mass, force=_force, gap=_gap, slip=_slip, law=_law, constraint=_lift
)
PARAMS = {"restitution": 0.5, "friction": 0.3}
ROWS = np.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 1.0]])
FALLING = State(t=0.0, q=np.array([0.0, 0.02, 0.0, 0.02]), v=np.array([0.6, 0.0, 0.0, 0.4]))


def lifted(scheme: Any, **options: Any) -> nsjax.Trajectory:
    """0.4 s: several bounces, sliding, sticking, and the lift's force all the time."""
    traj = nsjax.simulate(LIFT, PARAMS, FALLING, scheme, dt=1e-3, steps=400, **options)
    traj.raise_for_status()
    return traj


def imbalance(traj: nsjax.Trajectory) -> np.ndarray:
    """Velocity (rows - 1, 4) that force and impulses do not explain."""
    impulses = np.concatenate(
        [traj.impulse_normal, traj.impulse_tangential[:, 0], traj.constraint_impulse], axis=1
    )
    explained = np.diff(np.asarray(traj.t))[:, None] * WEIGHT + impulses[1:] @ ROWS
    return np.diff(np.asarray(traj.v), axis=0) - explained / MASSES


# rounding of velocities of about 1 m/s; the coupled scheme iterates its three problems to 1e-11
BALANCED = 1e-14
BOUND = {"nsga_coupled": 1e-11}


@each_family("name", "half_explicit")
def test_momentum_of_every_step_with_a_constraint_and_bounces(name: str) -> None:
    scheme = schemes.REGISTRY[name].factory()
    traj = lifted(scheme)
    assert traj.impacts.sum() >= 2
    assert (np.asarray(traj.closed_time) > 0).mean() > 0.2  # and rests
    assert np.ptp(traj.constraint_force) > 2.0
    bound = BOUND.get(name, BALANCED)
    assert np.abs(imbalance(traj)).max() < bound
    assert np.abs(imbalance(lifted(scheme, every=8))).max() < 8 * bound


OPTIONS = {
    "keep": schemes.generalized_alpha(0.5, acceleration_after_change="keep"),
    "undamped": schemes.generalized_alpha(1.0),
    "forces left out at the start": schemes.bathe(consistent_initial_acceleration=False),
    "index_1": schemes.generalized_alpha(0.8, constraint_form="index_1"),
    "index_3": schemes.bathe(constraint_form="index_3"),
    "ggl": schemes.hht(0.2, constraint_form="ggl"),
    "drop": schemes.half_explicit(impact_step="drop"),
    "averaged": schemes.half_explicit(averaged_force=True),
    "localized": schemes.localized(schemes.moreau()),
    "Moreau, index_3": schemes.moreau(constraint_form="index_3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_momentum_with_the_options_that_touch_forces(name: str) -> None:
    traj = lifted(OPTIONS[name])
    assert traj.impacts.sum() >= 2
    assert np.abs(imbalance(traj)).max() < BALANCED
