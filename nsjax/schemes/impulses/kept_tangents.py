"""Tangents that schemes of impulses keep from step to step: ``tangent="kept"``, see `mixed_scheme`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nsjax.contact.equations import CarriedTangent, no_tangent
from nsjax.schemes.choices import tangent_of
from nsjax.schemes.impulses.impulse_step import ImpulseRun
from nsjax.types import PyTree

Pair = tuple[CarriedTangent, CarriedTangent]
"""Tangents of the steps without and with contact rows."""


def blank_tangents(run: ImpulseRun, problem: Callable[[bool], tuple[Any, PyTree, int]]) -> PyTree:
    """Memory at the start of a run: a pair of empty tangents if tangents are kept, else ``()``.

    Args:
        run: any step of the run.
        problem: ``(contacts) -> (equations, data, unknowns)``, the equations of that step.
    """
    system = run.system
    if system.structure.constant or tangent_of(run.scheme.options.tangent, system) != "kept":
        return ()
    return tuple(no_tangent(*problem(contacts)) for contacts in (False, system.nc > 0))


def carried_tangent(run: ImpulseRun) -> CarriedTangent | None:
    """The tangent of the last step of this kind, with or without contact rows; None if none is kept."""
    found: CarriedTangent | None = run.memory[run.contacts] if run.memory else None
    return found


def memory_after(run: ImpulseRun, carried: CarriedTangent | None) -> PyTree:
    """Memory (`Stepped.more`) after a step whose solver returned the tangent ``carried``."""
    if not run.memory or carried is None:
        return ()
    without, within = run.memory
    return (without, carried) if run.contacts else (carried, within)
