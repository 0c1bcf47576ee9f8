"""Faults of model runs that stop a search: a failed run, or values and derivatives that are not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nsjax.identify.plan import FitPlan

FAILED = "the run failed"
"""Beginning of the sentences about runs whose status is not zero."""

NO_CURVATURE = (
    "a scheme that holds an impact in its step has first ones only; take "
    "schemes.localized(schemes.half_explicit(), changes=True), or gradient='discrete' where nothing strikes"
)
"""Sentence: why a run has no second derivatives, and which runs have them."""


def is_unlocated(plan: FitPlan, impacts: np.ndarray) -> bool:
    """Whether a run had impacts that are not located in time, whose second derivatives with fixed contact
    decisions are not those of the motion.
    """
    scheme = plan.common.scheme
    located = scheme.name.startswith("localized(")
    return scheme.gradient == "discrete" and not located and bool(np.any(impacts))


def fault_of(
    plan: FitPlan, trained: Sequence[Any], status: np.ndarray, residual: np.ndarray, jacobian: np.ndarray
) -> str:
    """Sentence about a failed run or values that are not finite, empty if nothing is wrong.

    Where values are finite but derivatives are not, the fault lies in a function of the model (or of the
    scheme) that has no derivative at some state of the run. The sentence therefore names the trained number
    and the first measured time of a derivative that is not finite.

    Args:
        trained: the numbers along the last axis of the derivative.
        status: status bits of the runs (K,).
        residual, jacobian: (K, n, m) and (K, n, m, g + l), zero where nothing is measured.
    """
    if np.any(status):
        return FAILED
    lost = _first(residual)
    if lost is not None:
        k, i, j = lost
        return f"{plan.program.names[j]} of the model is not finite {_place(plan, k, i)}"
    lost = _first(jacobian)
    if lost is None:
        return ""
    k, i, j, c = lost
    what = f"{plan.program.names[j]} by {trained[c].name}"
    return f"the derivative of {what} is not finite {_place(plan, k, i)}, though the run itself is sound"


def bent(second: np.ndarray) -> str:
    """Sentence about second derivatives that are not finite, empty if all are finite."""
    if np.all(np.isfinite(second)):
        return ""
    return "a second derivative of the model is not finite, though the run and its first ones are sound"


def remedy(fault: str) -> str:
    """Sentence with the remedy for a fault at the start of a search."""
    if fault.startswith("the derivative"):
        return (
            "nsjax.check_gradient tells the step; look in the model for a root, quotient, norm or power at "
            "zero, also inside jnp.where"
        )
    return "give another initial value or a smaller dt"


def _first(x: np.ndarray) -> tuple[int, ...] | None:
    """Indices (recording, time, ...) of the entry that is not finite at the earliest row, or None."""
    places = np.argwhere(~np.isfinite(x))
    if not len(places):
        return None
    first = places[np.argmin(places[:, 1])]
    return tuple(int(k) for k in first)


def _place(plan: FitPlan, k: int, i: int) -> str:
    """Text with recording and time."""
    recording = plan.recordings[k]
    who = f" of {recording.name or f'recording {k}'}" if plan.fitted > 1 else ""
    return f"from t = {float(recording.times[i]):.6g} s on{who}"
