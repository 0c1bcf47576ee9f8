"""Tangents that schemes of impulses keep from step to step, see ``tangent`` of `mixed_scheme`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nsjax.contact.equations import Carried, no_tangent
from nsjax.core.scheme import Carry, Scheme
from nsjax.core.system import System
from nsjax.schemes.choices import tangent_of
from nsjax.schemes.impulses.midpoint_contacts import Remembered
from nsjax.types import PyTree

Pair = tuple[Carried, Carried]
"""Without and with contact rows."""


def with_tangents(
    scheme: Scheme, system: System, carry: Carry, problem: Callable[[bool], tuple[Any, PyTree, int]]
) -> Carry:
    """The start of a run with blank tangents in its memory, if they are kept.

    Args:
        problem: ``(contacts) -> (equations, data, unknowns)`` of any step.
    """
    if system.structure.constant or tangent_of(scheme.options.tangent, system) != "kept":
        return carry
    pair = tuple(no_tangent(*problem(contacts)) for contacts in (False, system.nc > 0))
    return Carry(state=carry.state, memory=Remembered(touch=carry.memory, own=pair))


def tangents_of(carry: Carry) -> Pair | None:
    """Tangents in the memory, if they are kept."""
    if not isinstance(carry.memory, Remembered):
        return None
    one, other = carry.memory.own
    return one, other


def renewed(pair: Pair | None, contacts: bool, carried: Carried | None) -> PyTree:
    """``Stepped.more`` after a step with or without contact rows."""
    if pair is None or carried is None:
        return ()
    return (pair[0], carried) if contacts else (carried, pair[1])
