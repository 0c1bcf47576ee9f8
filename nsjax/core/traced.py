"""Functions of a system that are traced once."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from nsjax.core.system import System
from nsjax.startup.owned import kept

_EVALUATED = (
    "mass",
    "inertia",
    "force",
    "gap",
    "slip",
    "rows",
    "constraint",
    "velocity_constraint",
    "drag",
    "damping",
)
"""Functions that a step evaluates and differentiates in many places."""


@kept
def traced_once(system: System) -> System:
    """The system with functions that are traced once for arguments of the same shapes, wherever a program
    evaluates or differentiates them; the program has the same operations as before.

    If the program is stored from an earlier process, the first step spends most of its time on tracing.
    Without this function, tracing the functions of models takes up to a third of this time.

    Example:
        >>> from nsjax import models
        >>> from nsjax.core.traced import traced_once
        >>> system = models.bouncing_ball().system
        >>> traced_once(system) is traced_once(system)
        True
    """
    found = {name: getattr(system, name) for name in _EVALUATED}
    once: dict[str, Any] = {name: jax.jit(f, inline=True) for name, f in found.items() if f is not None}
    return dataclasses.replace(system, **once)
