"""Velocity jumps of the family at which corrections of laws and dynamics together cycle."""

from __future__ import annotations

import pytest

import nsjax
from nsjax import schemes
from tests.gradients.dry import carriage, drawn

CYCLES = 42
"""A draw at rest on the floor with friction, a bounded row that holds the same motion, and a motor at its
bound: thirty corrections go round in step 25."""
FEW = 6
"""Linear solves of a subproblem, or rounds, that are enough where nothing cycles."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsga_decoupled", "nsga_neglected", "nsga_coupled"])
def test_a_contact_problem_does_not_cycle(name: str) -> None:
    scheme, (params, state) = schemes.REGISTRY[name].factory(), drawn(CYCLES)
    traj = nsjax.simulate(carriage(1), params, state, scheme, dt=0.01, steps=30, save=("residual",))
    assert int(traj.carry.carry.memory.solves.max()) <= FEW * (3 if name == "nsga_coupled" else 1)
    assert int(traj.status) == 0
    # the certificate knows nothing of the solver
    assert float(traj.residual.max()) < 1e-11


@pytest.mark.slow
def test_corrections_of_all_rows_at_once_cycle_and_then_take_the_contact_problem() -> None:
    scheme, (params, state) = schemes.nsga_coupled(iteration="monolithic"), drawn(CYCLES)
    traj = nsjax.simulate(carriage(1), params, state, scheme, dt=0.01, steps=30, save=("residual",))
    assert int(traj.carry.carry.memory.solves.max()) > scheme.options.max_iterations
    assert int(traj.status) == 0
    assert float(traj.residual.max()) < 1e-11


ROUNDS = (2, 5, 8, 11, 28)
"""Draws in space at which corrections cycle, one subproblem after the other or all rows at once."""


@pytest.mark.slow
def test_rounds_take_the_jump_of_the_contact_problem() -> None:
    scheme, system = schemes.nsga_coupled(), carriage(2)
    for seed in ROUNDS:
        save = ("residual", "iterations")
        traj = nsjax.simulate(system, *drawn(seed), scheme, dt=0.01, steps=60, save=save)
        assert int(traj.status) == 0, seed
        assert int(traj.iterations.max()) <= 3 * FEW, seed
        assert float(traj.residual.max()) < 1e-11, seed
