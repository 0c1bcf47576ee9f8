"""Operations of the lowered programs of the slider-crank, exact for the release of JAX they belong to."""

from __future__ import annotations

import functools
import pathlib

import jax
import numpy as np
import pytest

from experiments.performance import program_size
from nsjax import Problem, schemes
from nsjax.simulate import _advance, checked

COUNTED_WITH = "0.10.2"

# (asked, counted when the bound was last set): a program may shrink, and grow by a hundredth. Plain
# ones last set when tangents without friction ceased to count for the size of impulses, which costs 24
# operations a solver; derivatives when a step and its derivative came to share mass, force and rows;
# those of moreau when gaps in the times of impacts came to be those at the impact, which costs 180; plain
# ones of mixed schemes when contacts that no force holds through a step came to strike, which costs 150;
# all when the numbers of a traced run came to be examined at its start, which costs 660, and half a second
# to compile (`nsjax.core.start_checks.examined`; as it is traced here, a plain program has this, too).
COUNTED = {
    ("moreau", "plain"): (2_000, 2_647),
    ("moreau", "jitted"): (2_000, 2_709),
    ("moreau", "forward"): (7_000, 7_377),
    ("generalized_alpha", "plain"): (4_500, 5_726),
    ("generalized_alpha", "forward"): (13_000, 16_569),
}


def check(scheme: str, mode: str, counted: int) -> None:
    if jax.__version__ != COUNTED_WITH:
        pytest.skip(f"operations were counted with jax {COUNTED_WITH}, this is {jax.__version__}")
    assert program_size.count(scheme, mode) <= 1.01 * counted


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "mode"), COUNTED)
def test_programs_stay_small(scheme: str, mode: str) -> None:
    check(scheme, mode, COUNTED[scheme, mode][1])


STEPS = {
    "moreau": {"hopper": 4_667, "ant": 7_927},
    "half_explicit": {"hopper": 10_951, "ant": 15_500},
    "ggl_decoupled": {"hopper": 8_103, "ant": 14_670},
    "generalized_alpha": {"hopper": 12_774, "ant": 18_079},
    "nsga_decoupled": {"hopper": 25_647, "ant": 31_456},
}
"""One scheme of each family: operations of a program with 1,000 steps, when last set; those that stood at
the edge of their bound were set anew when the numbers of a traced run came to be examined at its
start, which costs 310 for a hopper and 420 for an ant."""

MECHANICS = {"hopper": 1_851, "ant": 1_928}
"""Operations of the mechanics once, when last set. They were 3,053 and 7,096 while bodies were moved one by
one: the ratios asked then, 3 of Moreau's rule and 6 of generalized-alpha, are of those.
"""

QUICK = {("hopper", name) for name in STEPS} | {("ant", "moreau"), ("ant", "half_explicit")}
ROBOTS = [
    pytest.param(robot, scheme, marks=[] if (robot, scheme) in QUICK else pytest.mark.slow)
    for scheme, counted in STEPS.items()
    for robot in counted
]


@functools.cache
def robot_beside_mechanics(file: pathlib.Path) -> tuple[Problem, int]:
    problem = program_size.robot(file)
    return problem, program_size.mechanics(problem)


@pytest.mark.slow
@pytest.mark.parametrize(("robot", "scheme"), ROBOTS)
def test_a_step_costs_its_mechanics(reference_data: pathlib.Path, robot: str, scheme: str) -> None:
    """A program that is not differentiated holds few masses, forces and sets of rows, and no derivative:
    with all that stood around them a step of Moreau's rule was 11 times its mechanics.
    """
    pytest.importorskip("mujoco")
    problem, own = robot_beside_mechanics(reference_data / "robots" / f"{robot}.xml")
    assert own <= 1.05 * MECHANICS[robot]
    assert own < program_size.count(scheme, "jitted", problem, 1e-3) <= 1.05 * STEPS[scheme][robot]


@pytest.mark.parametrize("notes", [False, True])
def test_a_run_without_notes_looks_for_none(notes: bool) -> None:
    """Outside transformations; they cost a twentieth of a step of Moreau's rule."""
    call = checked(
        *program_size.crank(), schemes.moreau(), dt=1e-5, steps=10, time=None, every=10, save=None,
        gradient=None, events=0, notes=notes, carry=None, progress=None,
    )  # fmt: skip
    given = call.program, call.scheme, call.params, call.run, call.dt, np.array([0, 10])
    assert ("_pair_notes" in _advance.lower(*given).as_text(debug_info=True)) == notes
