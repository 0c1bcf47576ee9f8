"""Operations of the lowered programs of the slider-crank, exact for the release of JAX they belong to."""

from __future__ import annotations

import pathlib

import jax
import pytest

from experiments.performance import program_size

COUNTED_WITH = "0.10.2"

# (asked, counted when the bound was last set): a program may shrink, and grow by a hundredth. Last set when
# loops and derivatives lost what nobody reads (`nsjax.nonlinear.trimmed`).
COUNTED = {
    ("moreau", "plain"): (2_000, 1_979),
    ("moreau", "jitted"): (2_000, 2_058),
    ("moreau", "forward"): (7_000, 7_255),
    ("generalized_alpha", "plain"): (4_500, 4_938),
    ("generalized_alpha", "forward"): (13_000, 15_743),
}
SLOW = {
    ("moreau", "reverse"): (9_000, 10_796),
    ("generalized_alpha", "jitted"): (4_500, 5_478),
    ("generalized_alpha", "reverse"): (16_000, 20_408),
    ("bathe", "plain"): (7_000, 7_306),
    ("bathe", "forward"): (18_000, 21_032),
    ("bathe", "reverse"): (20_000, 25_921),
}


def check(scheme: str, mode: str, counted: int) -> None:
    if jax.__version__ != COUNTED_WITH:
        pytest.skip(f"operations were counted with jax {COUNTED_WITH}, this is {jax.__version__}")
    assert program_size.count(scheme, mode) <= 1.01 * counted


@pytest.mark.parametrize(("scheme", "mode"), COUNTED)
def test_programs_stay_small(scheme: str, mode: str) -> None:
    check(scheme, mode, COUNTED[scheme, mode][1])


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "mode"), SLOW)
def test_all_programs_stay_small(scheme: str, mode: str) -> None:
    check(scheme, mode, SLOW[scheme, mode][1])


@pytest.mark.parametrize("robot", ["hopper", pytest.param("ant", marks=pytest.mark.slow)])
def test_an_implicit_step_costs_its_mechanics(reference_data: pathlib.Path, robot: str) -> None:
    """Asked: at most 6. A pass looks at the equations once, and so do its difference quotients; before, the
    tangent for stiff forces differentiated all of them, and half of what it left was read by nobody.
    """
    pytest.importorskip("mujoco")
    problem = program_size.robot(reference_data / "robots" / f"{robot}.xml")
    own = program_size.mechanics(problem)
    step = program_size.count("generalized_alpha", "jitted", problem, 1e-3)
    assert 0.5 * 5.2 <= step / own <= 1.03 * 5.27


@pytest.mark.parametrize(("robot", "counted"), [("hopper", 1.84), ("ant", 2.25)])
def test_a_plain_step_costs_its_mechanics(reference_data: pathlib.Path, robot: str, counted: float) -> None:
    """Asked: at most 3. A program that is not differentiated holds one mass, the forces at two velocities,
    one set of rows, and no derivative: with all that stands around them it was 11.
    """
    pytest.importorskip("mujoco")
    problem = program_size.robot(reference_data / "robots" / f"{robot}.xml")
    own, step = program_size.mechanics(problem), program_size.count("moreau", "jitted", problem, 1e-3)
    assert 0.5 * counted <= step / own <= 1.05 * counted


def test_sources_add_up() -> None:
    own, _ = program_size.sources("moreau", "plain", "file")
    assert sum(own.values()) == program_size.count("moreau", "plain")
    assert own["contact/newton.py"] > 0
