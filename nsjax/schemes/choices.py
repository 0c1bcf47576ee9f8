"""Options that several schemes offer under the same names, and their checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax.contact.criteria import Criteria
from nsjax.core.changes import as_number
from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError, check_choice, nearest
from nsjax.core.system import TANGENTS, System, add

FORMS = ("index_2", "ggl", "index_3", "index_1")
"""Forms of bilateral constraints: on velocity, position and velocity, position, acceleration level."""

MIXED = (
    "stage_tolerance", "tolerance", "gap_tolerance", "consistent_initial_acceleration",
    "acceleration_after_change", "constraint_form", "tangent", "force_at_release", "max_passes",
    "max_iterations", "criteria",
)  # fmt: skip
"""Keywords common to all schemes of the mixed framework."""

METRICS = ("auto", "euclidean", "kinetic")
"""Metrics of a projection of positions."""


def choose(name: str, option: str, value: str, known: tuple[str, ...]) -> str:
    """``value``, if it is one of ``known``.

    Args:
        name, option: of the scheme and of its option, for the error message.

    Raises:
        InputError: for another value.
    """
    check_choice(f"{name}: {option}", value, known)
    return value


def known_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """``options``, if all of them are options of the mixed framework (`MIXED`).

    Raises:
        InputError: for an unknown option.
    """
    for key in options:
        if key not in MIXED:
            raise InputError(f"{name}: unknown option {key!r}; {nearest(key, MIXED)}")
    return options


def within(name: str, option: str, value: Any, low: float, high: float = np.inf, remedy: str = "") -> Any:
    """``value``, if it lies in ``[low, high]`` or is traced; ``remedy`` ends the sentence of the error.

    Raises:
        InputError: for a value that is no number, or outside the range.
    """
    if is_traced(value):
        return value
    plain = as_number(value)
    if isinstance(plain, list | tuple) or np.asarray(plain).dtype.kind not in "iuf" or not np.size(plain):
        raise InputError(f"{name}: {option} = {value!r} is no number; give one")
    if not np.all((low <= np.asarray(plain)) & (np.asarray(plain) <= high)):
        range_ = f"be at least {low:g}" if high == np.inf else f"lie in [{low:g}, {high:g}]"
        end = f"; {remedy}" if remedy else ""
        raise InputError(f"{name}: {option} = {value}; it must {range_}{end}")
    return value


def checked_criteria(name: str, criteria: Criteria | None) -> Criteria | None:
    """``criteria`` of events, if they are a `nsjax.Criteria` or None.

    Raises:
        InputError: for a value of another type.
    """
    if criteria is not None and not isinstance(criteria, Criteria):
        raise InputError(
            f"{name}: criteria must be a nsjax.Criteria, got {criteria!r}; "
            "change single numbers as in nsjax.Criteria(gate=3.0)"
        )
    return criteria


def choose_tangent(name: str, value: str) -> str:
    """``value``, if it is a tangent of the iteration.

    Raises:
        InputError: for another value.
    """
    return choose(name, "tangent", value, ("auto", *TANGENTS))


def tangent_of(choice: str, system: System) -> str:
    """The tangent of the iteration: ``choice``, or for ``"auto"`` the hint of the model."""
    return system.tangent_hint if choice == "auto" else choice


def kinetic_metric(choice: str, system: System) -> bool:
    """Whether positions are corrected along ``M^-1 W``: for ``"kinetic"``, and for ``"auto"`` in models
    with rotations, whose coordinates have different units.
    """
    return choice == "kinetic" or (choice == "auto" and system.retract is not add)
