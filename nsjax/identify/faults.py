"""Why a search cannot use what the model returns: a run that failed, or a number that is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nsjax.identify.plan import FitPlan

FAILED = "the run failed"
"""The sentences about runs whose status is not zero."""

NO_CURVATURE = (
    "a scheme that holds an impact in its step has first ones only; take "
    "schemes.localized(schemes.half_explicit(), changes=True), or gradient='discrete' where nothing strikes"
)
"""Why a run has no second derivatives, and what has."""


def is_unlocated(plan: FitPlan, impacts: np.ndarray) -> bool:
    """Whether impacts happened whose decisions were held fixed: plain second derivatives of such runs are
    not those of the motion.
    """
    scheme = plan.common.scheme
    located = scheme.name.startswith("localized(")
    return scheme.gradient == "discrete" and not located and bool(np.any(impacts))


def fault_of(
    plan: FitPlan, trained: Sequence[Any], status: np.ndarray, residual: np.ndarray, jacobian: np.ndarray
) -> str:
    """A sentence, empty if nothing is wrong.

    A run whose values are finite, but whose derivative is not, is sound: the fault lies in a function of
    the model (or of the scheme) that has no derivative where the run passes. The sentence therefore names
    the number and the first measured time at which it shows.

    Args:
        trained: what the last axis of the derivative belongs to.
        status: of the runs (K,).
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
    """A sentence about second derivatives that are not finite, empty if all are."""
    if np.all(np.isfinite(second)):
        return ""
    return "a second derivative of the model is not finite, though the run and its first ones are sound"


def remedy(fault: str) -> str:
    """What to do about a fault at the start of a search."""
    if fault.startswith("the derivative"):
        return (
            "nsjax.check_gradient tells the step; look in the model for a root, quotient, norm or power at "
            "zero, also inside jnp.where"
        )
    return "give another initial value or a smaller dt"


def _first(x: np.ndarray) -> tuple[int, ...] | None:
    """Place of the entry (recording, time, ...) that is not finite at the earliest row of its recording."""
    places = np.argwhere(~np.isfinite(x))
    if not len(places):
        return None
    first = places[np.argmin(places[:, 1])]
    return tuple(int(k) for k in first)


def _place(plan: FitPlan, k: int, i: int) -> str:
    """Recording and time."""
    recording = plan.recordings[k]
    who = f" of {recording.name or f'recording {k}'}" if plan.fitted > 1 else ""
    return f"from t = {float(recording.times[i]):.6g} s on{who}"
