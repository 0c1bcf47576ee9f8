"""Intervals from the scatter between recordings, and from profiles of the likelihood."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import numpy as np

from nsjax.identify import search
from nsjax.identify.objective import CostPoint, Objective
from nsjax.identify.search import Levenberg, Search
from nsjax.identify.statistics import Statistics

# Intervals from the scatter between recordings, valid under robust losses and model error.
#
# The noise level measures the repeatability of a value within a run; it does not measure model error,
# which differs between runs. Recordings are independent, values within a recording are not: recordings
# are the clusters of the estimates below. Numbers that belong to one recording (its start) are eliminated
# first.


INTERVALS = ("noise", "profile", "recordings", "bootstrap")

Bend = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Scatter:
    """Uncertainty of the numbers common to all recordings, from the scatter between recordings.

    Args:
        statistics: with the covariance and deviations of the common numbers from the scatter; the numbers
            of single recordings keep the deviations from the noise.
        quantiles: (p, 2) ends of the interval in coordinates of the search, nan where not from resamples.
        sentence: why the intervals do not have their level, empty if they have.
    """

    statistics: Statistics
    quantiles: np.ndarray
    sentence: str


def kind_of_intervals(objective: Objective, asked: str | None) -> str:
    """Kind of intervals: ``asked``, or by default from the recordings where there are enough."""
    if asked is not None:
        return asked
    # number of recordings from which their scatter is the default source of intervals: Student's quantile
    # (2.26 at ten) makes intervals from fewer recordings wide, and they are still uncertain
    fewest = 10
    return "recordings" if objective.shared and objective.fitted >= fewest else "noise"


def _parts(objective: Objective, point: CostPoint, bend_of: Bend) -> tuple[np.ndarray, np.ndarray]:
    """Second derivatives (K, g, g) and gradients (K, g) of the cost of each recording with respect to the
    common numbers, its own numbers eliminated. ``bend_of`` gives the second derivative of the loss of a
    residual, or a substitute. The curvature of the model is included where the point has it.
    """
    g, loss = len(objective.shared), objective.loss
    hessian, gradient = [], []
    for k in range(objective.fitted):
        j = point.jacobian[k].reshape(-1, point.jacobian.shape[-1])
        r = point.residual[k].reshape(-1)
        bend = bend_of(r)
        h, b = j.T @ (bend[:, None] * j), j.T @ (r * loss.weight(r))
        h = h if point.bend is None else h + point.bend[k]
        back = h[:g, g:] @ np.linalg.pinv(h[g:, g:])
        hessian.append(h[:g, :g] - back @ h[g:, :g])
        gradient.append(b[:g] - back @ b[g:])
    return np.stack(hessian), np.stack(gradient)


def _in_tails(objective: Objective, point: CostPoint, free: np.ndarray) -> str:
    """Sentence for a cost that is not quadratic near its minimum, because the loss has no curvature at most
    residuals. The estimate is then like a median, whose scatter does not follow from derivatives.
    """
    bends: tuple[Bend, Bend] = (objective.loss.slope_of_pull, np.ones_like)
    both = [_parts(objective, point, bend)[0].sum(axis=0)[np.ix_(free, free)] for bend in bends]
    size = np.sqrt(np.maximum(np.diag(both[1]), np.finfo(float).tiny))
    own, square = (x / np.outer(size, size) for x in both)
    share = float(np.min(np.linalg.eigvals(np.linalg.pinv(square) @ own).real))
    # least mean curvature of the loss at the estimate, relative to squares: one for squares, for Huber's
    # loss the share of residuals below its knee, zero for a median. Below a half most residuals lie above
    # the knee
    least = 0.5
    if share >= least:
        return ""
    return (
        f"most residuals lie beyond the knee of the loss {objective.loss.kind!r}, where leaving out a "
        "recording is no small change; widen it, or take intervals='bootstrap'"
    )


def by_leaving_out(objective: Objective, point: CostPoint, found: Statistics) -> Scatter:
    """Covariance by leaving out each recording in turn, to first order (a sandwich estimate)::

        cov = (K - 1) / K  sum_k d_k d_k',      d_k = (A - H_k)^-1 g_k,   A = sum_k H_k

    with the gradient ``g_k`` and the second derivative ``H_k`` of the cost of recording ``k``. ``H_k`` is
    that of Gauss and Newton (or the exact one, on request) with the derivative of ``r rho'`` of the loss;
    where the cost has no minimum with these derivatives, with the weights ``rho'``.
    Unlike ``A^-1 (sum g g') A^-1`` it is not too small for few recordings (Bell & McCaffrey 2002).
    """
    free = np.flatnonzero(np.isfinite(found.deviation_z[: len(objective.shared)]))
    none = np.full((len(found.deviation_z), 2), np.nan)
    if not free.size:
        return Scatter(found, none, "nothing common to the recordings is known")
    for bend_of in (objective.loss.slope_of_pull, objective.loss.weight):
        hessian, gradient = _parts(objective, point, bend_of)
        hessian, gradient = hessian[:, free][:, :, free], gradient[:, free]
        size = np.sqrt(np.maximum(np.einsum("kii->i", hessian), np.finfo(float).tiny))
        hessian, gradient = hessian / np.outer(size, size), gradient / size
        values, vectors = np.linalg.eigh(hessian.sum(axis=0))
        if values[0] > 1e-10 * values[-1]:
            break
    else:
        return Scatter(found, none, "the cost has no minimum here to second order")
    root = vectors / np.sqrt(np.maximum(values, 1e-300))
    count, moved = len(hessian), []
    # leverage above which a single recording determines a direction: without it nothing is known there
    alone = 1.0 - 1e-6
    for h, b in zip(hessian, gradient, strict=True):
        share, along = np.linalg.eigh(root.T @ h @ root)
        if share[-1] >= alone:
            return Scatter(found, none, "a number rests on one recording alone")
        moved.append(root @ along @ ((along.T @ root.T @ b) / (1.0 - share)) / size)
    moves = np.stack(moved)
    inner = (count - 1) / count * moves.T @ moves
    return Scatter(_with(objective, point, found, free, inner), none, _in_tails(objective, point, free))


def _with(
    objective: Objective, point: CostPoint, found: Statistics, free: np.ndarray, inner: np.ndarray
) -> Statistics:
    """Statistics with the covariance ``inner`` of the coordinates ``free``, which are common to recordings;
    covariances with numbers of single recordings are set to unknown.
    """
    slope = objective.slope(point.z)
    shared = len(objective.shared)
    covariance, deviation = found.covariance.copy(), found.deviation_z.copy()
    covariance[:shared, shared:] = covariance[shared:, :shared] = np.nan
    covariance[np.ix_(free, free)] = inner * np.outer(slope[free], slope[free])
    deviation[free] = np.sqrt(np.diag(inner))
    return dataclasses.replace(found, covariance=covariance, deviation_z=deviation)


def by_resampling(
    objective: Objective, point: CostPoint, found: Statistics, *, level: float, resamples: int, seed: int,
    tolerance: float, most: int,
) -> Scatter:  # fmt: skip
    """Quantiles and covariance of fits to K recordings drawn with replacement from the K given (bootstrap).

    Every fit starts from the estimate. Unlike linearised intervals the quantiles include curved valleys of
    the cost and numbers near a bound; every resample costs some runs of all recordings.
    """
    rng = np.random.default_rng(seed)
    g, drawn, good = len(objective.shared), [], 0
    for _ in range(resamples):
        one = copy.copy(objective)
        draws = rng.integers(objective.fitted, size=objective.fitted)
        one.weights = np.bincount(draws, minlength=objective.fitted).astype(float)
        end = search.search(one, [point.z], search.METHODS[0], tolerance, most)[0]
        objective.calls = one.calls
        good += end.converged
        drawn.append(point.z if end.best is None else end.best.z)
    z = np.stack(drawn)[:, :g]
    free = np.flatnonzero(np.isfinite(found.deviation_z[:g]))
    quantiles = np.full((len(found.deviation_z), 2), np.nan)
    quantiles[:g] = np.quantile(z, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0).T
    inner = np.atleast_2d(np.cov(z[:, free], rowvar=False)) if free.size else np.zeros((0, 0))
    missed = resamples - good
    why = f"{missed} of {resamples} resampled fits did not converge"
    converged = 0.95  # share of the resampled fits that must converge for their quantiles to count
    enough = good >= converged * resamples
    return Scatter(_with(objective, point, found, free, inner), quantiles, "" if enough else why)


# Intervals from profiles of the likelihood: they end where the cost has risen to that of the level.


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
    of a quadratic cost at ``half[k]``, ``(half / deviation)^2 s^2 / 2``, found by the secant method on its
    square root. Where the cost does not rise so far, the end is infinite, or the wall.
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
    """One end; ``asked``: coordinate and signed half width; ``effort``: tolerance and most points."""
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
