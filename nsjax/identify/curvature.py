"""Covariance from the exact second derivatives of the cost: the observed information."""

from __future__ import annotations

import dataclasses

import numpy as np

from nsjax.identify.objective import CostPoint, Objective
from nsjax.identify.statistics import NULL, Statistics, describe

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

    With squares the covariance is ``s^2 H^-1``, the inverse of the observed information of normal noise.
    With another loss, ``psi = r rho'``, it is that of an estimating equation, ``c H^-1 J'J H^-1`` with
    ``c = n / f mean(psi^2)``. Both equal those of `describe` where the model is linear. Directions in which
    the data say nothing, and numbers at a wall, are those of the linearised model.
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
