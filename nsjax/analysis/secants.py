"""Secants of runs, wider than the teeth of the discrete map, and changes of impacts within them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nsjax.core.system import Problem, contact_names
from nsjax.trajectory import Trajectory

NOT_FINITE = "not finite"
"""Verdict on a derivative that is not a number."""

Read = Callable[[Trajectory], Any]

TEETH = 10.0
"""Least number of steps by which half the width of a secant moves the most sensitive impact."""

DEGREE = 3
"""Degree of the polynomial fitted to the samples of a secant; its slope at the middle is the result."""


def sequence(traj: Trajectory) -> np.ndarray:
    """Contacts in the order of their impacts."""
    events: Any = traj.events
    return np.asarray(events.contact)[: min(int(events.count), len(events.contact))]


def _agreeing(one: np.ndarray, other: np.ndarray) -> int:
    """Number of entries before the first difference of two sequences."""
    same = min(len(one), len(other))
    differ = np.flatnonzero(one[:same] != other[:same])
    return int(differ[0]) if len(differ) else same


def secant_width(
    runs: Callable[[float], Trajectory], middle: Trajectory, dt: float, size: float, given: float | None
) -> tuple[float, float]:
    """Half width of a secant, and the number of steps by which it moves the most sensitive impact."""
    width = 1e-6 * size if given is None else given
    widest = 0.1  # largest half width of an automatic secant over the size of the parameter, or over one
    while True:
        shift = 0.0
        if len(sequence(middle)):
            ends = [runs(s * width) for s in (-1.0, 1.0)]
            one, other = (sequence(traj) for traj in ends)
            same = _agreeing(one, other)
            times = [np.asarray(traj.events.time)[:same] for traj in ends]
            shift = float(np.max(np.abs(times[1] - times[0]), initial=0.0) / (2.0 * dt))
        if given is not None or shift >= TEETH or 2.0 * width > widest * size:
            return width, shift
        width *= 2.0


def secant_slopes(
    runs: Callable[[float], Trajectory], middle: Trajectory, read: Read, width: float, samples: int
) -> tuple[np.ndarray, np.ndarray, list[Trajectory]]:
    """Slopes of the outputs, their standard errors, and the runs."""
    s = np.linspace(-1.0, 1.0, samples)
    found = [middle if x == 0.0 else runs(x * width) for x in s]
    values = np.array([np.ravel(read(traj)) for traj in found])
    powers = s[:, None] ** np.arange(DEGREE + 1)
    fit = np.linalg.lstsq(powers, values, rcond=None)[0]
    rest = np.sum((values - powers @ fit) ** 2, axis=0) / (samples - DEGREE - 1)
    spread = np.linalg.inv(powers.T @ powers)[1, 1]
    return fit[1] / width, np.sqrt(rest * spread) / width, found


def changed_impacts(
    problem: Problem, name: str, width: float, middle: Trajectory, found: list[Trajectory]
) -> list[str]:
    """Sentences about a sequence of impacts that changes within the width; none if it does not."""
    base = sequence(middle)
    for traj in found:
        other = sequence(traj)
        if np.array_equal(base, other):
            continue
        first = _agreeing(base, other)
        longer = traj if len(other) > first else middle
        events: Any = longer.events
        who = contact_names(problem.system)[events.contact[first]]
        return [
            f"{name} within {width:.3g}: {len(base)} and {len(other)} impacts, which first differ at "
            f"impact {first + 1} ({who}, {float(events.time[first]):.6g} s)"
        ]
    return []


def verdict_of(
    derivative: float, secant: float, error: float, tolerance: float, shift: float | None, changed: bool
) -> str:
    """Verdict on a derivative compared with its secant, see `nsjax.check_gradient.Comparison`."""
    if not np.isfinite(derivative):
        return NOT_FINITE
    bound = tolerance * max(abs(derivative), abs(secant)) + 3.0 * error
    if abs(derivative - secant) <= bound:
        return "agrees"
    if changed:
        return "events change"
    return "teeth" if shift is not None and shift < TEETH else "differs"
