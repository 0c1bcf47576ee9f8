"""Tangents that schemes of impulses keep from step to step, see ``tangent`` of `mixed_scheme`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nsjax.contact.equations import CarriedTangent, no_tangent
from nsjax.schemes.choices import tangent_of
from nsjax.schemes.impulses.impulse_step import ImpulseRun
from nsjax.types import PyTree

Pair = tuple[CarriedTangent, CarriedTangent]
"""Without and with contact rows."""


def blank_tangents(run: ImpulseRun, problem: Callable[[bool], tuple[Any, PyTree, int]]) -> PyTree:
    """Tangents of which nothing is known, where they are kept, else ``()``: a memory at its start.

    Args:
        problem: ``(contacts) -> (equations, data, unknowns)`` of any step.
    """
    system = run.system
    if system.structure.constant or tangent_of(run.scheme.options.tangent, system) != "kept":
        return ()
    return tuple(no_tangent(*problem(contacts)) for contacts in (False, system.nc > 0))


def carried_tangent(run: ImpulseRun) -> CarriedTangent | None:
    """The tangent of the last step with or without contact rows, as this one, if it is kept."""
    found: CarriedTangent | None = run.memory[run.contacts] if run.memory else None
    return found


def renewed(run: ImpulseRun, carried: CarriedTangent | None) -> PyTree:
    """`Stepped.more` after a step that has ended with this tangent."""
    if not run.memory or carried is None:
        return ()
    without, within = run.memory
    return (without, carried) if run.contacts else (carried, within)
