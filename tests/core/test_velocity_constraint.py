"""Constraints that velocities alone fulfil: a skate on an incline by every scheme."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import State, System, schemes
from nsjax.analysis import equilibrium, linearise, measure_drift
from nsjax.core import InputError, Problem

SLOW = pytest.mark.slow
MASS, SPIN, PULL = 1.5, 1.3, 2.0


def mass(q, p):
    return jnp.diag(jnp.array([MASS, MASS, 0.3]))


def force(t, q, v, p):
    return jnp.stack([MASS * p["pull"], jnp.zeros(()), jnp.zeros(())])


def across(t, q, v, p):
    """Velocity of the skate across its blade."""
    return (v[0] * jnp.sin(q[2]) - v[1] * jnp.cos(q[2]))[None]


def squared(t, q, v, p):
    return (v[0] ** 2)[None]


SKATE = System(nq=3, nv=3, nb=1, nh=1, mass=mass, force=force, velocity_constraint=across, name="skate")
PROBLEM = Problem(
    system=SKATE, params={"pull": PULL}, state=State(t=0.0, q=np.zeros(3), v=np.array([0.0, 0.0, SPIN]))
)


def cycloid(t, pull=PULL):
    """Position of a skate that starts at rest and turns at a constant rate, straight down at first."""
    w = SPIN
    fall = pull / (4 * w * w) * (1 - np.cos(2 * w * t))
    return np.array([fall, pull / (2 * w) * (t - np.sin(2 * w * t) / (2 * w)), w * t])


def error(scheme, steps):
    traj = nsjax.simulate(*PROBLEM, scheme, dt=1.0 / steps, steps=steps)
    traj.raise_for_status()
    return np.max(np.abs(np.asarray(traj.q[-1]) - cycloid(1.0))), traj


FIRST = [
    schemes.moreau(constraint_form="index_3"),
    *(pytest.param(x, marks=SLOW) for x in (
        schemes.ggl_unified(), schemes.moreau(constraint_form="ggl"), schemes.moreau_theta(),
        schemes.ggl_decoupled(),
        schemes.ggl_unified(position_multiplier=False),
    )),
]  # fmt: skip
SECOND = [
    schemes.generalized_alpha(constraint_form="ggl"),
    *(pytest.param(x, marks=SLOW) for x in (
        schemes.generalized_alpha(constraint_form="index_1"), schemes.half_explicit(), schemes.bathe(),
        schemes.nsga_decoupled(), schemes.nsga_coupled(iteration="monolithic"),
    )),
]  # fmt: skip


def _check(scheme, order):
    coarse, fine = (error(scheme, n)[0] for n in (50, 100))
    assert abs(np.log2(coarse / fine) - order) < 0.05
    assert fine < (8e-3 if order == 1 else 1.2e-4)


@pytest.mark.parametrize("scheme", FIRST)
def test_a_skate_by_schemes_of_first_order(scheme) -> None:
    _check(scheme, 1)


@pytest.mark.parametrize("scheme", SECOND)
def test_a_skate_by_schemes_of_second_order(scheme) -> None:
    _check(scheme, 2)


@pytest.mark.slow
def test_force_and_rate_of_the_row() -> None:
    """``lambda = m v w + m pull sin(w t)``, ``v = pull sin(w t) / w``, on acceleration level in index 2."""
    _, traj = error(schemes.generalized_alpha(), 100)
    wanted = MASS * 2.0 * PULL * np.sin(SPIN)
    assert abs(abs(float(traj.constraint_force[-1, 0])) - wanted) < 1e-4
    drift = measure_drift(traj)
    assert np.max(np.abs(drift.constraint_rate)) < 1e-13
    assert np.all(drift.constraint == 0.0)


@SLOW
@pytest.mark.parametrize(
    "scheme", [schemes.moreau(), schemes.generalized_alpha(), schemes.nsga_decoupled()]
)
def test_derivative_of_the_end_by_the_pull(scheme) -> None:
    """The path is in proportion to the pull."""

    def end(pull):
        moved = dataclasses.replace(PROBLEM, params={"pull": pull})
        return nsjax.simulate(*moved, scheme, dt=0.01, steps=100).q[-1, 1]

    x = jnp.asarray(PULL)
    value, forward = jax.jit(lambda x: jax.jvp(end, (x,), (jnp.ones(()),)))(x)
    assert abs(float(forward) - float(value) / PULL) < 1e-9
    assert abs(float(jax.jit(jax.grad(end))(x)) - float(forward)) < 1e-11


def test_what_is_refused() -> None:
    with pytest.raises(
        InputError, match="nh = 2 of nb = 1 constraints on velocities; count them in nb, too"
    ):
        dataclasses.replace(SKATE, nh=2)
    with pytest.raises(InputError, match="velocity_constraint is missing with nc = 0, nt = 0, nb = 1"):
        dataclasses.replace(SKATE, velocity_constraint=None)
    bent = dataclasses.replace(PROBLEM, system=dataclasses.replace(SKATE, velocity_constraint=squared))
    with pytest.raises(InputError, match="velocity_constraint is not affine in v"):
        nsjax.simulate(*bent, schemes.moreau(), dt=0.01, steps=1)
    aside = dataclasses.replace(PROBLEM, state=State(t=0.0, q=np.zeros(3), v=np.array([0.0, 1.0, 0.0])))
    with pytest.raises(
        InputError, match="rate of constraint 0 = -1 at the start; the start violates it on"
    ):
        nsjax.simulate(*aside, schemes.moreau(), dt=0.01, steps=1)
    words = (
        r"smooth = 'zero' leaves constraints to corrections of the position, and skate has nh = 1 without "
        r"position level \(wheels that roll\); use smooth = 'constrained'"
    )
    with pytest.raises(InputError, match=words):
        nsjax.simulate(*PROBLEM, schemes.nsga_decoupled(smooth="zero"), dt=0.01, steps=1)
    words = (
        r"the last 1 constraints hold velocities alone \(wheels that roll\), so that positions at rest are "
        "not isolated; hold the wheel by a joint, or leave these constraints out"
    )
    for ask in (equilibrium, linearise):
        with pytest.raises(InputError, match=f"{ask.__name__}: {words}"):
            ask(PROBLEM)


def test_a_start_is_made_consistent() -> None:
    aside = dataclasses.replace(PROBLEM, state=State(t=0.0, q=np.zeros(3), v=np.array([0.5, 1.0, 0.2])))
    found = nsjax.consistent(aside)
    np.testing.assert_allclose(found.problem.state.v, [0.5, 0.0, 0.2], atol=1e-14)
