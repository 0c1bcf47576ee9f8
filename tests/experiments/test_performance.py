"""The command of performance: the programs that are timed compute the same; times are never tests."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib

import jax
import numpy as np
import pytest

import nsjax
from experiments.performance import __main__ as command
from experiments.performance import (
    child,
    gradients,
    last,
    peers,
    program_size,
    robots,
    scaling,
    steps,
)
from experiments.performance.__main__ import TITLES, main, sections
from experiments.performance.side_by_side import Row, line, shown
from nsjax import Problem, models, schemes
from nsjax.jaxtools import cache
from nsjax.simulate import _advance, checked

# The programs that the timings compare compute the same motion. Timings are never tests.


STEPS, EVERY = 3000, 100
# Rounding differences grow along the impacts of this stretch by a factor of about a thousand.
AGREEMENT = 1e-8


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    traj = steps.simulate(STEPS, EVERY)
    traj.raise_for_status()
    assert np.sum(np.asarray(traj.impacts)) > 4
    return np.concatenate([np.asarray(traj.q), np.asarray(traj.v)], axis=1)


def check(found: np.ndarray, rows: np.ndarray) -> None:
    assert found.shape == rows.shape
    assert np.max(np.abs(found - rows) / np.maximum(1.0, np.abs(rows))) < AGREEMENT


@pytest.mark.slow
def test_numpy_loop_agrees(rows: np.ndarray) -> None:
    check(steps.run_numpy(STEPS, EVERY), rows)


def test_numba_loop_agrees(rows: np.ndarray) -> None:
    pytest.importorskip("numba")
    check(steps.run_numba(STEPS, EVERY, False), rows)


# What the timings of derivatives measure: the same derivative in both modes, as one kernel, in little
# memory. Timings are never tests.


@pytest.mark.slow
def test_the_same_runs_are_compared() -> None:
    """The program without derivative is the run itself."""
    system, params, state = models.slider_crank()
    traj = nsjax.simulate(system, params, state, schemes.moreau(), dt=gradients.STEP, steps=400, every=400)
    plain = jax.jit(gradients.program("moreau", "plain", 400))(gradients.AT)
    # rounding of two programs, over the first impact
    assert float(plain) == pytest.approx(float(traj.q[-1, 0] + traj.q[-1, 1]), rel=1e-11)
    assert int(np.sum(traj.impacts)) > 0


# Operations of the lowered programs of the slider-crank, exact for the release of JAX they belong to.


COUNTED_WITH = "0.10.2"

# (asked, counted when the bound was last set): a program may shrink, and grow by a hundredth. Plain
# ones last set when tangents without friction ceased to count for the size of impulses, which costs 24
# operations a solver; derivatives when a step and its derivative came to share mass, force and rows;
# those of moreau when gaps in the times of impacts came to be those at the impact, which costs 180; plain
# ones of mixed schemes when contacts that no force holds through a step came to strike, which costs 150;
# all when the numbers of a traced run came to be examined at its start, which costs 660, and half a second
# to compile (`nsjax.core.start_checks.examined`; as it is traced here, a plain program has this, too);
# plain ones when these bits came to be one function: it costs 30, after 27 and 100 of many small changes.
COUNTED = {
    ("moreau", "plain"): (2_000, 2_702), ("moreau", "jitted"): (2_000, 2_764),
    ("moreau", "forward"): (7_000, 7_377), ("generalized_alpha", "plain"): (4_500, 5_856),
    ("generalized_alpha", "forward"): (13_000, 16_569),
}  # fmt: skip


def check_size(scheme: str, mode: str, counted: int) -> None:
    if jax.__version__ != COUNTED_WITH:
        pytest.skip(f"operations were counted with jax {COUNTED_WITH}, this is {jax.__version__}")
    assert program_size.count(scheme, mode) <= 1.01 * counted


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept program holds all results of a run, also those that the counted one does not read."""
    monkeypatch.setattr(cache, "_folder", lambda: None)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize(("scheme", "mode"), COUNTED)
def test_programs_stay_small(scheme: str, mode: str) -> None:
    check_size(scheme, mode, COUNTED[scheme, mode][1])


OPERATIONS = {
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

QUICK = {("hopper", name) for name in OPERATIONS} | {("ant", "moreau"), ("ant", "half_explicit")}
ROBOTS = [
    pytest.param(robot, scheme, marks=[] if (robot, scheme) in QUICK else pytest.mark.slow)
    for scheme, counted in OPERATIONS.items()
    for robot in counted
]


@functools.cache
def robot_beside_mechanics(file: pathlib.Path) -> tuple[Problem, int]:
    problem = program_size.robot(file)
    return problem, program_size.mechanics(problem)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize(("robot", "scheme"), ROBOTS)
def test_a_step_costs_its_mechanics(reference_data: pathlib.Path, robot: str, scheme: str) -> None:
    """A program that is not differentiated holds few masses, forces and sets of rows, and no derivative:
    with all that stood around them a step of Moreau's rule was 11 times its mechanics.
    """
    pytest.importorskip("mujoco")
    problem, own = robot_beside_mechanics(reference_data / "robots" / f"{robot}.xml")
    assert own <= 1.05 * MECHANICS[robot]
    assert own < program_size.count(scheme, "jitted", problem, 1e-3) <= 1.05 * OPERATIONS[scheme][robot]


@pytest.mark.parametrize("notes", [False, True])
def test_a_run_without_notes_looks_for_none(notes: bool) -> None:
    """Outside transformations; they cost a twentieth of a step of Moreau's rule."""
    call = checked(
        *program_size.crank(), schemes.moreau(), dt=1e-5, steps=10, time=None, every=10, save=None,
        gradient=None, events=0, notes=notes, carry=None, progress=None,
    )  # fmt: skip
    given = call.program, call.scheme, call.params, call.run, call.dt, np.array([0, 10])
    assert ("_pair_notes" in _advance.lower(*given).as_text(debug_info=True)) == notes


# The benchmark command: the structure of what it prints. Times themselves are never tests.


def test_rows_say_what_was_asked_and_what_was_missed(capsys: pytest.CaptureFixture[str]) -> None:
    said_of_one = line(Row("a step [us]", 0.25, asked=0.5, note="load 2"))
    assert " ".join(said_of_one.split()) == "a step [us] <= 0.5 0.25 load 2"
    assert Row("steps/s", 2.9, asked=3.0, least=True).missed()
    assert not Row("steps/s", 3.1, asked=3.0, least=True).missed()
    assert not Row("steps/s", asked=3.0, note="skipped").missed()
    found = shown("part", [Row("one", 2.0, asked=1.0), Row("two", note="skipped: why")])
    assert found["part: one"] == 2.0
    assert math.isnan(found["part: two"])
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["one", "<=", "1", "2", "missed"]
    assert said[1].split() == ["two", "-", "skipped:", "why"]


def test_what_is_absent_is_skipped_with_its_reason(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NSJAX_DATA", str(tmp_path))
    found = main(["sizes", "steps", "first", "landing", "lanes"], quick=True)
    assert all(math.isnan(x) for name, x in found.items() if not name.endswith("load"))
    skipped = capsys.readouterr().out.count("skipped: no file")
    assert skipped == 5
    assert robots.file_of("a/robot.xml") == pathlib.Path("a/robot.xml")


def test_last_results_are_kept_and_compared(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value, on = [2.0], dataclasses.replace(last.machine(), load=0.5, cpus=2)
    rows = {"steps": lambda: iter([Row("one [us]", value[0]), Row("two", note="skipped: why")])}
    monkeypatch.setattr(command, "sections", lambda *_: rows | {"sizes": rows["steps"]})
    monkeypatch.setattr(last, "machine", lambda: on)
    main(folder=tmp_path)
    kept = json.loads((tmp_path / "last.json").read_text())
    assert set(kept) == {"steps: one [us]", "sizes: one [us]"}
    assert kept["steps: one [us]"]["found"] == 2.0
    assert {"name", "cpus", "load", "releases"} < set(kept["steps: one [us]"])
    assert "%" not in capsys.readouterr().out
    on, value[0] = dataclasses.replace(on, load=2.5), 3.0
    main(folder=tmp_path)
    said = capsys.readouterr().out
    assert said.count("+50.0 %") == 2
    assert said.count("INVALID") == 1
    assert said.count("MiB") == 4
    kept = json.loads((tmp_path / "last.json").read_text())
    assert (kept["steps: one [us]"]["found"], kept["sizes: one [us]"]["found"]) == (2.0, 3.0)
    main(folder=tmp_path, quick=True)
    assert json.loads((tmp_path / "last.json").read_text()) == kept
    (tmp_path / "last.json").write_text("{")
    assert last.read(tmp_path) == {}


def test_every_section_has_a_title() -> None:
    assert set(sections(True, None, None)) == set(TITLES)


@pytest.mark.slow
def test_a_failing_child_is_a_reason(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match=r"robots.sizes_of.*failed"):
        child.ask("robots.sizes_of", str(tmp_path / "none.xml"), "moreau", "plain")


@pytest.mark.slow
def test_the_chain_moves_as_that_of_exudyn() -> None:
    exudyn = pytest.importorskip("exudyn")
    theirs = peers.exudyn_end(exudyn, peers.LINKS, peers.AGREE_STEPS, 1e-4)
    ours = peers.our_end(scaling.chain(peers.LINKS), peers.AGREE_STEPS, 1e-4)
    # both of order 2 with the same step and coefficients, in other coordinates
    np.testing.assert_allclose(ours, theirs, atol=1e-8)
