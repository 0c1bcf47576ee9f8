"""Error that the step size leaves in the numbers of a fit, from one more run with half the step."""

from __future__ import annotations

import dataclasses

import numpy as np

from nsjax.identify.objective import CostPoint, Objective
from nsjax.identify.plan import with_step
from nsjax.identify.statistics import NULL


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
    friction, is twice that; of smooth motion by a scheme of second order it is 4/3 of it.

    Args:
        half: (p,) half widths of the intervals in coordinates of the search.
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
