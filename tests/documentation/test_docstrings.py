"""What a user can import says what it is: arguments, shapes or units, errors, source, and an example, which
`tests/test_quality.py` runs.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from typing import Any

from docs import entries
from docs.pages import is_documented
from nsjax.types import Array

SHOWN = [entry for entry in entries() if is_documented(entry.thing)]
PUBLIC = {entry.path: entry.thing for entry in SHOWN}

ELSEWHERE = {
    # records that a function returns: its example has one
    "nsjax.Consistent": "nsjax.consistent",
    "nsjax.Trajectory": "nsjax.simulate",
    "nsjax.io.Saved": "nsjax.load",
    "nsjax.plot.Live": "nsjax.plot.live",
    "nsjax.io.Program": "nsjax.load_program",
    "nsjax.GradientCheck": "nsjax.check_gradient",
    "nsjax.Stepper": "nsjax.stepper",
    "nsjax.analysis.InverseDynamics": "nsjax.analysis.inverse_dynamics",
    "nsjax.analysis.Linearised": "nsjax.analysis.linearise",
    "nsjax.multibody.Mesh": "nsjax.multibody.mesh",
    "nsjax.multibody.Sensor": "nsjax.multibody.sensor",
    "nsjax.multibody.Change": "nsjax.multibody.change",
    "nsjax.multibody.coordinates.frames.Scene": "nsjax.multibody.force",
    "nsjax.AccuracyCheck": "nsjax.check_accuracy",
    "nsjax.SweepResult": "nsjax.sweep",
    "nsjax.SideBySide": "nsjax.side_by_side",
    "nsjax.WorkPrecision": "nsjax.sweep_time_step",
    "nsjax.Estimate": "nsjax.identify",
    "nsjax.plot.Animation": "nsjax.animate",
    "nsjax.models.Fields": "nsjax.models.solid_of",
    "nsjax.analysis.Drift": "nsjax.analysis.measure_drift",
    "nsjax.analysis.EnergyBalance": "nsjax.analysis.energy_balance",
    "nsjax.analysis.Equilibria": "nsjax.analysis.equilibrium",
    "nsjax.analysis.Growth": "nsjax.analysis.growth",
    "nsjax.analysis.Impact": "nsjax.analysis.impact_table",
    "nsjax.analysis.Modes": "nsjax.analysis.modes",
    "nsjax.analysis.Phase": "nsjax.analysis.contact_phases",
    "nsjax.schemes.building.Maps": "nsjax.schemes.building.single",
    # what steps tell, column by column
    "nsjax.core.scheme.RowQuantities": "nsjax.Trajectory",
    "nsjax.Event": "nsjax.Output",
    "nsjax.Output": "nsjax.Scheme",
    # exceptions and warnings
    "nsjax.RunError": "nsjax.Trajectory",
    "nsjax.Stopped": "nsjax.simulate_to_file",
    "nsjax.multibody.LeftOutWarning": "nsjax.multibody.read_mjcf",
    # what a scheme of one's own is made of: examples show them at work
    "nsjax.Scheme": "nsjax.schemes.building.impulse_scheme",
    "nsjax.schemes.building.BaseEnd": "nsjax.schemes.building",
    "nsjax.schemes.building.Memory": "nsjax.schemes.building",
    "nsjax.schemes.building.Tolerances": "nsjax.schemes.building",
    "nsjax.schemes.building.FrozenRowEquations": "nsjax.schemes.building.impulse_scheme",
    "nsjax.schemes.building.ImpulseRun": "nsjax.schemes.building.impulse_scheme",
    "nsjax.schemes.building.ImpulseCoefficients": "nsjax.schemes.building.impulse_scheme",
    "nsjax.schemes.building.Balance": "nsjax.schemes.building.forced_jump",
    "nsjax.schemes.building.Formed": "nsjax.schemes.building",
    "nsjax.schemes.building.SolverSettings": "nsjax.schemes.building.forced_jump",
    "nsjax.schemes.building.Step": "nsjax.schemes.building",
    "nsjax.schemes.building.StepForces": "nsjax.schemes.building.forced_jump",
    "nsjax.schemes.building.SystemState": "nsjax.schemes.building",
    "nsjax.schemes.building.velocity_jump": "nsjax.schemes.building.forced_jump",
    "nsjax.schemes.building.StepData": "nsjax.schemes.building.ImpulseRun",
    "nsjax.schemes.building.Stepped": "nsjax.schemes.building.impulse_scheme",
}
"""Names without an example of their own, and the function, class or module whose text names them."""

BUILT = ("nsjax.models", "nsjax.schemes")
"""Modules whose functions carry equations."""

NO_EQUATIONS = ("nsjax.models.solid_of",)
"""Functions of these that carry none."""

FACE = re.compile(r"\([\w ,*+]*\)|\[.+\]|[Nn]umber|velocit")
"""A shape in round brackets, a unit in square ones; a count or kind in words."""

CITED = re.compile(r"\[[A-Z][\w&]*[ \]]|Source:|[A-Z]\. [A-Z][a-z]+")
"""A key of the guide's sources, the paragraph of sources, or an author."""


def text_of(thing: Any) -> str:
    """Docstrings of a thing and, of a class, of those it derives from."""
    kinds = [x for x in inspect.getmro(thing) if x is not object] if inspect.isclass(thing) else [thing]
    return "\n".join(inspect.getdoc(x) or "" for x in kinds)


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return {}
    found = inspect.signature(thing).parameters
    return {k: x for k, x in found.items() if k not in ("self", "args", "kwargs")}


def unmentioned(thing: Any) -> list[str]:
    """Arguments that the docstring does not name."""
    text = text_of(thing)
    return [k for k in parameters(thing) if not re.search(rf"(?<!\w){re.escape(k)}(?!\w)", text)]


def raised(thing: Any) -> set[str]:
    """Exceptions that a function raises itself; a record raises in what it calls at its start."""
    plain = inspect.unwrap(thing)
    if inspect.isclass(plain):
        methods = [getattr(plain, name, None) for name in ("__post_init__", "_check")]
        return set().union(*(raised(x) for x in methods if inspect.isfunction(x)))
    tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
    calls = [x.exc for x in ast.walk(tree) if isinstance(x, ast.Raise)]
    names = {x.func.id for x in calls if isinstance(x, ast.Call) and isinstance(x.func, ast.Name)}
    return {x for x in names if x.endswith("Error") and x != "NotImplementedError"}


def untold(thing: Any) -> set[str]:
    """Exceptions that are raised without a word in the docstring."""
    told = (inspect.getdoc(thing) or "").partition("Raises:")[2]
    return {x for x in raised(thing) if x not in told}


def faceless(thing: Any) -> list[str]:
    """Arguments that are arrays and nothing else, of which neither shape nor unit is told."""
    lines, found = text_of(thing).splitlines(), []
    for name, given in parameters(thing).items():
        if str(given.annotation) not in ("Array", "np.ndarray", "Array | np.ndarray"):
            continue
        # the line of the argument, and what is left of the sentence on the next two
        at = [k for k, x in enumerate(lines) if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", x)]
        if not any(FACE.search(" ".join(lines[k : k + 3])) for k in at):
            found.append(name)
    return found


def test_arguments_are_told() -> None:
    assert not {x.path: found for x in SHOWN if (found := unmentioned(x.thing))}


def test_errors_are_told() -> None:
    assert not {x.path: found for x in SHOWN if (found := untold(x.thing))}


def test_arrays_have_shapes_or_units() -> None:
    assert not {x.path: found for x in SHOWN if (found := faceless(x.thing))}


def test_examples_are_there() -> None:
    without = {x.path for x in SHOWN if ">>> " not in (inspect.getdoc(x.thing) or "")}
    assert without == set(ELSEWHERE), "write an example, or take those from ELSEWHERE that have one"


def test_other_examples_are_there() -> None:
    """They name it, in text, annotations or methods, and have an example, or a place of their own."""
    for name, place in ELSEWHERE.items():
        thing = PUBLIC[place] if place in PUBLIC else importlib.import_module(place)
        notes = (
            inspect.getsource(thing) if inspect.isclass(thing) else getattr(thing, "__annotations__", {})
        )
        text = f"{inspect.getdoc(thing)} {notes}"
        assert name.rpartition(".")[2].lower() in text.lower(), name
        assert ">>> " in text or place in ELSEWHERE, name


def test_models_and_schemes_have_a_source() -> None:
    built = [x for x in SHOWN if x.module in BUILT and inspect.isfunction(inspect.unwrap(x.thing))]
    bare = [x.path for x in built if not CITED.search(inspect.getdoc(x.thing) or "")]
    assert bare == list(NO_EQUATIONS)


def test_the_tests_see_what_is_missing() -> None:
    def bad(one: Array, other: int) -> None:
        """Takes one."""
        raise ValueError("no")

    assert unmentioned(bad) == ["other"]
    assert untold(bad) == {"ValueError"}
    assert faceless(bad) == ["one"]
