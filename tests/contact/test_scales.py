"""Branches decided with several scales in turn: Newton's method cycles less often."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import nsjax
from experiments.performance import program_size
from nsjax import schemes


@pytest.mark.slow
def test_few_steps_of_a_robot_cycle(reference_data: pathlib.Path) -> None:
    """A quadruped with limits and dry friction in twelve joints falls on its feet. Steps that need more
    than the fifty plain ones had cycled: 73 of 500 with one scale, 7 with four.
    """
    pytest.importorskip("mujoco")
    problem = program_size.robot(reference_data / "robots" / "go1_feet.xml")
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=500)
    assert int(traj.status) == 0
    assert np.sum(np.asarray(traj.iterations) > 50) < 25
