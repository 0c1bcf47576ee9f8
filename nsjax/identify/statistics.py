"""Covariance, quantiles and identifiability at the end of a search, and the error of the step size."""

from __future__ import annotations

import dataclasses

import numpy as np

from nsjax.identify.objective import CostPoint, Objective
from nsjax.identify.plan import with_step

NULL = 1e-7
"""Ratio of a singular value to the largest below which the data do not depend on its direction."""


@dataclasses.dataclass(frozen=True)
class Statistics:
    """Covariance and singular values of the sensitivity matrix at the end of a search.

    Args:
        covariance: (p, p) of the numbers themselves; infinite where the data say nothing, nan for
            numbers at a bound.
        deviation_z: (p,) standard deviations of the coordinates of the search.
        singular_values: (g,) of the sensitivity matrix, for relative changes of the numbers and
            residuals in noise levels: the inverse is the relative standard deviation in that direction.
            For the numbers common to several recordings, if there are any, with those of single recordings
            eliminated (the start of a recording has no size for relative changes); else for all.
        directions: (g, g), rows: the directions, relative changes of the numbers.
        variance: of the residuals over the noise (chi squared per degree of freedom); one is expected.
        largest: largest singular value of all numbers, the reference for those that count as zero.
        moving: (p,) whether the data depend on a number.
    """

    covariance: np.ndarray
    deviation_z: np.ndarray
    singular_values: np.ndarray
    directions: np.ndarray
    variance: float
    largest: float
    moving: np.ndarray

    @property
    def null(self) -> np.ndarray:
        """Whether each singular value counts as zero (g,)."""
        return np.asarray(self.singular_values <= NULL * self.largest)


def describe(objective: Objective, point: CostPoint) -> Statistics:
    """Statistics at a point.

    With squares the covariance is ``s^2 (J'J)^-1``, ``s^2 = 1`` for a known noise level and the variance
    of the residuals otherwise. With another loss, ``psi = r rho'``, it is Huber's
    ``s^2 (J'J)^-1`` with ``s^2 = n / f mean(psi^2) / mean(psi')^2`` for ``n`` values and ``f`` degrees of
    freedom (Huber 1981, section 7.6).
    """
    plan, loss = objective.plan, objective.loss
    mask = plan.mask[: plan.fitted]
    residual = point.residual[mask]
    freedom = objective.freedom
    matrix, _ = objective.compress(point.jacobian, point.residual)
    slope = objective.slope(point.z)
    x = objective.to_x(point.z)
    # zero, increments and starts that differ between recordings have no size to relate a change to
    sizeless = (x == 0.0) | np.asarray([name.startswith("state.xi") for name in objective.names])
    sizeless[len(objective.shared) :] |= objective.fitted > 1
    size = np.where(sizeless, 1.0, np.abs(x))
    relative = matrix / slope * size
    shared = _shared(objective, point, size / slope)
    _, values, directions = np.linalg.svd(
        _padded(relative if shared is None else shared), full_matrices=False
    )
    variance = float(np.sum(residual**2)) / freedom
    scale = 1.0 if plan.known else variance
    if loss.kind != "squares":
        pull = residual * loss.weight(residual)
        scale = float(np.mean(pull**2) / np.mean(loss.slope_of_pull(residual)) ** 2)
        scale *= residual.size / freedom
    low, high = objective.walls(objective.to_z(objective.begin))
    box = np.asarray([t.kind == "box" for t in objective.transforms])
    held = box & ((point.z <= low) | (point.z >= high))
    covariance = _covariance(relative, held, scale) * np.outer(size, size)
    deviation = np.sqrt(np.diag(covariance))
    sizes = np.linalg.norm(relative, axis=0)
    largest = max(float(values[0]), float(np.max(sizes)), np.finfo(float).tiny)
    return Statistics(
        covariance, deviation / np.abs(slope), values, directions, variance, largest, ~_null(sizes)
    )


def _shared(objective: Objective, point: CostPoint, scale: np.ndarray) -> np.ndarray | None:
    """Sensitivity (r, g) to numbers common to recordings, others eliminated; None where all or none are."""
    g = len(objective.shared)
    if not g or not objective.own or objective.fitted < 2:
        return None
    left = []
    for k in range(objective.fitted):
        both = point.jacobian[k].reshape(-1, point.jacobian.shape[-1])
        shared, own = both[:, :g] * scale[:g], both[:, g:]
        length = np.linalg.norm(own, axis=0)
        basis, sizes, _ = np.linalg.svd(own / np.where(length > 0.0, length, 1.0), full_matrices=False)
        basis = basis[:, ~_null(sizes)]
        left.append(np.linalg.qr(shared - basis @ (basis.T @ shared), mode="r"))
    return np.concatenate(left)


def _null(sizes: np.ndarray) -> np.ndarray:
    """Whether each singular value counts as zero relative to the largest."""
    return np.asarray(sizes <= NULL * max(float(np.max(sizes)), np.finfo(float).tiny))


def _padded(matrix: np.ndarray) -> np.ndarray:
    """The matrix with rows of zeros added, so that every column has a singular value."""
    short = max(0, matrix.shape[1] - matrix.shape[0])
    return np.pad(matrix, ((0, short), (0, 0)))


def _covariance(relative: np.ndarray, held: np.ndarray, scale: float) -> np.ndarray:
    """Covariance of relative changes (p, p); infinite for numbers on which the data do not depend."""
    p = relative.shape[1]
    found = np.full((p, p), np.nan)
    free = np.flatnonzero(~held)
    if free.size == 0:
        return found
    _, values, vt = np.linalg.svd(_padded(relative[:, free]), full_matrices=False)
    null = _null(values)
    good = vt[~null] / values[~null, None]
    inner = scale * good.T @ good
    lost = np.any(np.abs(vt[null]) > 1e-6, axis=0) if null.any() else np.zeros(free.size, bool)
    inner[lost, :] = 0.0
    inner[:, lost] = 0.0
    inner[lost, lost] = np.inf
    found[np.ix_(free, free)] = inner
    return found


def quantile(level: float, freedom: int | None) -> float:
    """Half width of a two-sided interval in standard deviations: of the normal distribution, or of
    Student's for a variance estimated with ``freedom`` degrees of freedom.

    Example:
        >>> from nsjax.identify.statistics import quantile
        >>> round(quantile(0.95, None), 3), round(quantile(0.95, 10), 3)
        (1.96, 2.228)
    """
    from scipy.special import ndtri, stdtrit

    share = 0.5 + 0.5 * level
    return float(ndtri(share) if freedom is None else stdtrit(freedom, share))


def noise_alone(objective: Objective, point: CostPoint, found: Statistics) -> str:
    """Sentence why residuals are not independent noise of the given level, which intervals from the noise
    assume; empty if they look like it. Two tests: the size of the residuals, where the level is given and
    the loss is squares; and the correlation of ``psi = r rho'`` of successive values, in which four times
    ``1 / sqrt(n)`` are significant.
    """
    plan, loss = objective.plan, objective.loss
    large = found.variance > 1.0 + 4.0 * np.sqrt(2.0 / objective.freedom)
    if large and plan.known and loss.kind == "squares":
        return f"the residuals are {np.sqrt(found.variance):.3g} times the noise level"
    pull = point.residual * loss.weight(point.residual)
    both = plan.mask[: plan.fitted, 1:] & plan.mask[: plan.fitted, :-1]
    square = float(np.sum(np.where(both, pull[:, 1:] ** 2 + pull[:, :-1] ** 2, 0.0))) / 2.0
    alike = float(np.sum(np.where(both, pull[:, 1:] * pull[:, :-1], 0.0)))
    if square > 0.0 and alike > 4.0 / np.sqrt(both.sum()) * square:
        return f"neighbouring residuals are alike (correlation {alike / square:.2g}), as of a model error"
    return ""


def identifiability(objective: Objective, found: Statistics, impacts: int) -> list[str]:
    """Sentences about directions in which the data say nothing or almost nothing."""
    names = objective.names
    sentences = []
    silent = ~found.moving
    for k in np.flatnonzero(silent):
        sentences.append(
            f"not identifiable: {names[k]} does not move the data (zero gradient)"
            + _no_impact(names[k], impacts)
        )
    # ratio of a number's entry in a direction to the largest entry from which the number takes part in it
    least_share = 0.1
    for value, direction, null in zip(found.singular_values, found.directions, found.null, strict=True):
        share = np.abs(direction) / np.max(np.abs(direction))
        involved = [k for k in np.flatnonzero(share >= least_share) if not silent[k]]
        if not involved:
            continue
        if null and len(involved) > 1:
            sentences.append(
                f"not identifiable: {_listed([names[k] for k in involved])} together; the data stay the "
                f"same under relative changes in the ratio {_ratio(direction[involved])}. Fix one of them"
            )
        elif null:
            sentences.append(
                f"not identifiable: {names[involved[0]]} does nothing that numbers of single recordings do "
                "not do as well. Fix it, or them"
            )
        elif not null and objective.plan.known and value < 1.0:
            what = _listed([names[k] for k in involved])
            sentences.append(
                f"hardly identifiable: {what}; the standard deviation is {1.0 / value:.2g} times the value"
                + (
                    f" along relative changes in the ratio {_ratio(direction[involved])}"
                    if len(involved) > 1
                    else ""
                )
            )
    return sentences


def _no_impact(name: str, impacts: int) -> str:
    if impacts == 0 and any(word in name for word in ("restitution", "friction", "clearance")):
        return "; no impact happens in the time of the data"
    return ""


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _ratio(entries: np.ndarray) -> str:
    unit = entries / entries[np.argmax(np.abs(entries))]
    return " : ".join(f"{x:.2g}" for x in unit)


# Covariance from the exact second derivatives of the cost: the observed information.


KINDS = ("linear", "exact")
"""Second derivatives behind the intervals: those of the linearised model, or those of the cost itself."""


def hessian(objective: Objective, point: CostPoint) -> np.ndarray:
    """Second derivatives (p, p) of the cost with respect to the numbers themselves."""
    assert point.hessian is not None
    slope, bend = objective.slope(point.z), objective.bend(point.z)
    own = np.diag(point.gradient * bend / slope)
    return np.asarray((point.hessian - own) / np.outer(slope, slope))


def observed(objective: Objective, point: CostPoint, found: Statistics) -> tuple[Statistics, str]:
    """Statistics with the covariance of the exact curvature, and a sentence why there is none, or empty.

    With squares the covariance is ``s^2 H^-1``, the inverse of the observed information. With another loss,
    ``psi = r rho'``, it is ``c H^-1 J'J H^-1`` with ``c = n / f mean(psi^2)``. Both equal those of
    `describe` where the model is linear. Directions without data, and numbers at a wall, are those of the
    linearised model.
    """
    plan, loss = objective.plan, objective.loss
    free = np.flatnonzero(np.isfinite(found.deviation_z))
    if point.hessian is None or not free.size:
        return found, "the cost has no second derivatives here"
    matrix, _ = objective.compress(point.jacobian, point.residual)
    size = np.linalg.norm(matrix, axis=0)[free]
    linear = matrix[:, free] / size
    _, values, vt = np.linalg.svd(linear, full_matrices=False)
    seen = vt[values > NULL * values[0]]
    exact = seen @ (point.hessian[np.ix_(free, free)] / np.outer(size, size)) @ seen.T
    bends, directions = np.linalg.eigh(exact)
    if bends[0] <= NULL * bends[-1]:
        return found, "the cost has no minimum here to second order"
    inverse = seen.T @ (directions / bends) @ directions.T @ seen
    inner = inverse * (1.0 if plan.known else found.variance)
    if loss.kind != "squares":
        residual = point.residual[plan.mask[: plan.fitted]]
        pull = residual * loss.weight(residual)
        scale = float(np.mean(pull**2)) * residual.size / objective.freedom
        inner = scale * inverse @ linear.T @ linear @ inverse
    slope = objective.slope(point.z)
    deviation, covariance = found.deviation_z.copy(), found.covariance.copy()
    deviation[free] = np.sqrt(np.diag(inner)) / size
    covariance[np.ix_(free, free)] = inner * np.outer(slope[free] / size, slope[free] / size)
    return dataclasses.replace(found, covariance=covariance, deviation_z=deviation), ""


def beside(objective: Objective, point: CostPoint) -> str:
    """Sentence that compares deviations from the exact curvature with those of the linearised model."""
    linear = describe(objective, point)
    exact, why = observed(objective, point, linear)
    known = np.isfinite(linear.deviation_z) & (linear.deviation_z > 0.0)
    if why or not known.any():
        return f"exact curvature: {why or 'nothing is known of any number'}"
    ratio = exact.deviation_z[known] / linear.deviation_z[known]
    return (
        f"exact curvature: standard deviations are {np.min(ratio):.3g} to {np.max(ratio):.3g} times those "
        "of the linearised model"
    )


# Error that the step size leaves in the numbers of a fit, from one more run with half the step.


@dataclasses.dataclass(frozen=True)
class StepError:
    """Error of the step size at the end of a search.

    Args:
        error: (p,) of the coordinates of the search, zero where none is found.
        sentence: what the report says; empty where the error is small.
    """

    error: np.ndarray
    sentence: str


def step_error(objective: Objective, best: CostPoint, half: np.ndarray) -> StepError:
    """Error of the numbers by the step size ``dt``, to first order.

    A run at the same numbers with ``dt / 2`` changes the residuals by ``d``, and so the optimum by
    ``-J+ d``. The whole error of a run of first order in ``dt``, as all schemes are at impacts and dry
    friction, is twice that; of smooth motion by a scheme of second order it is 4/3 of it. ``half``: (p,)
    half widths of the intervals in coordinates of the search.
    """
    plan, none = objective.plan, np.zeros(len(best.z))
    dt = float(plan.common.dt)
    finer = Objective(with_step(plan, 0.5 * dt), objective.loss, objective.starts)
    point = finer.points([best.z])[0]
    objective.calls += 1
    if not point.ok:
        return StepError(
            none, f"whether dt = {dt:g} is short enough is not known: with half of it {point.fault}"
        )
    root = np.sqrt(objective.weights[:, None, None] * objective.loss.weight(best.residual))
    matrix, rest = objective.compress(
        best.jacobian * root[..., None], (point.residual - best.residual) * root
    )
    free, size = np.isfinite(half) & (half > 0.0), np.linalg.norm(matrix, axis=0)
    free &= size > NULL * max(float(np.max(size)), np.finfo(float).tiny)
    error = none.copy()
    error[free] = 2.0 * np.linalg.lstsq(matrix[:, free] / size[free], -rest, rcond=NULL)[0] / size[free]
    share = np.where(free, np.abs(error) / np.where(free, half, 1.0), 0.0)
    worst = int(np.argmax(share))
    # share of half an interval from which the error of the step counts: an interval of 95 % whose centre is
    # off by this share contains the true number in 92 % of all cases
    tolerable = 0.25
    if share[worst] <= tolerable:
        return StepError(none, "")
    moved = (objective.to_x(best.z + error) - objective.to_x(best.z))[worst]
    enough = dt * tolerable / share[worst]
    digit = 10.0 ** np.floor(np.log10(enough))
    enough = digit * np.floor(enough / digit)
    return StepError(
        np.abs(error),
        f"dt = {dt:g} is long for these data: with short steps {objective.names[worst]} would move by "
        f"about {moved:.2g}, {share[worst]:.2g} times half its interval (from a run with half the step); "
        f"the intervals are widened by such errors; dt = {enough:g} would do",
    )
