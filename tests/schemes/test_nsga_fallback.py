"""Velocity jumps of the nonsmooth generalized-alpha family at which Newton's iteration cycles."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from tests.gradients.dry import carriage, drawn

SLOW = [pytest.param(f"nsga_{kind}", marks=pytest.mark.slow) for kind in ("neglected", "coupled")]
FAMILY = ["nsga_decoupled", *SLOW]
CYCLES = 42
"""A draw at rest on the floor with friction, a bounded row that holds the same motion, and a motor at its
bound: thirty corrections go round in step 25."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY)
def test_what_newton_does_not_find_the_contact_solver_does(name: str) -> None:
    scheme, (params, state) = schemes.REGISTRY[name].factory(), drawn(CYCLES)
    traj = nsjax.simulate(carriage(1), params, state, scheme, dt=0.01, steps=30, save=("residual",))
    assert int(traj.carry.carry.memory.solves.max()) > scheme.options.max_iterations
    assert int(traj.status) == 0
    # the certificate knows nothing of the solver
    assert float(traj.residual.max()) < 1e-11


ROUNDS = (2, 5, 8, 11, 28)
"""Draws in space at which rounds of the coupled scheme cycle, and left the contact solver's answer again as
long as only one round began with it.
"""


@pytest.mark.slow
def test_late_rounds_take_the_jump_of_the_contact_solver() -> None:
    scheme, system = schemes.nsga_coupled(), carriage(2)
    for seed in ROUNDS:
        save = ("residual", "iterations")
        traj = nsjax.simulate(system, *drawn(seed), scheme, dt=0.01, steps=60, save=save)
        assert int(traj.status) == 0, seed
        late = np.asarray(traj.iterations) > 3 * scheme.options.max_iterations
        assert np.any(late), seed
        # others stop by the criterion of the dynamics, which is less strict than this one
        assert np.max(np.asarray(traj.residual)[late]) < 1e-11, seed
