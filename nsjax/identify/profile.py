"""Intervals from profiles of the likelihood: they end where the cost has risen to that of the level."""

from __future__ import annotations

import numpy as np

from nsjax.identify.objective import CostPoint, Objective
from nsjax.identify.search import Search
from nsjax.identify.solve import Levenberg
from nsjax.identify.statistics import Statistics


def _pinned(objective: Objective, z: np.ndarray, k: int, tolerance: float, most: int) -> CostPoint | None:
    """Point of least cost with coordinate ``k`` fixed; None if the model fails there."""
    search: Search = Levenberg(z, objective, tolerance, most, damped=True)
    search.low, search.high = search.low.copy(), search.high.copy()
    search.low[k] = search.high[k] = z[k]
    while not search.done:
        search.tell(objective.points([search.trial], search.curved)[0])
    return search.best


def ends_of(
    objective: Objective, best: CostPoint, found: Statistics, half: np.ndarray, tolerance: float, most: int
) -> tuple[np.ndarray, str]:
    """Ends of the intervals (p, 2) in coordinates of the search, and a sentence why ends are missing.

    At an end of number ``k`` the least cost over all other numbers exceeds that of the estimate by the rise
    of a quadratic cost at ``half[k]``, ``(half / deviation)^2 s^2 / 2``. The square root of the rise is
    nearly linear in the number; the secant method finds the end. Where the cost does not rise so far, the
    end is infinite, or the wall.
    """
    ends, missed = np.full((len(best.z), 2), np.nan), []
    for k in np.flatnonzero(np.isfinite(found.deviation_z) & (found.deviation_z > 0.0)):
        for side, sign in enumerate((-1.0, 1.0)):
            ends[k, side] = _end(objective, best, found, (int(k), sign * half[k]), (tolerance, most))
            if not np.isfinite(ends[k, side]):
                missed.append(objective.names[k])
    names = ", ".join(dict.fromkeys(missed))
    return ends, f"the cost does not rise to the level on a side of {names}" if missed else ""


def _end(
    objective: Objective, best: CostPoint, found: Statistics, asked: tuple[int, float],
    effort: tuple[float, int],
) -> float:  # fmt: skip
    """One end; ``asked``: coordinate and signed half width of the linearised interval; ``effort``:
    tolerance and largest number of points.
    """
    k, half = asked
    sign, deviation = float(np.sign(half)), float(found.deviation_z[k])
    wanted = abs(half) / deviation
    size = 1.0 if objective.plan.known else found.variance
    low, high = objective.walls(objective.to_z(objective.begin))
    room = float(high[k] - best.z[k] if sign > 0 else best.z[k] - low[k])
    z, here, before = best.z, min(abs(half), room), (0.0, 0.0)
    # error of the root of the cost's rise, in standard deviations over the wanted one, at which an end is
    # accepted
    near = 1e-3
    trials = 15  # largest number of values of a number, for one end, at which the other numbers are fitted
    # largest ratio of the next trial's distance from the estimate to that of the present trial
    farthest = 4.0
    for _ in range(trials):
        z = z.copy()
        z[k] = best.z[k] + sign * here
        point = _pinned(objective, z, k, *effort)
        if point is None:
            here = 0.5 * (here + before[0])
            continue
        z = point.z
        rise = float(np.sqrt(2.0 * max(point.cost - best.cost, 0.0) / size))
        if abs(rise - wanted) <= near * wanted or (here >= room and rise < wanted):
            return float(z[k])
        slope = (rise - before[1]) / (here - before[0])
        ahead = here + (wanted - rise) / slope if slope > 0.0 else np.inf
        before, here = (here, rise), min(max(ahead, here / farthest), farthest * here, room)
    return sign * np.inf
