"""What all searches have in common: each looks at a place and is told what is there."""

from __future__ import annotations

import numpy as np

from nsjax.identify.objective import CostPoint, Objective

SHORTEST = 2.0**-30
"""Part of a step at which a search gives up."""


class Search:
    """A search: look at ``trial``, `tell` what is there, until ``done``. ``curved``: whether it wants exact
    second derivatives.
    """

    curved = False

    def __init__(self, z: np.ndarray, objective: Objective, tolerance: float, most: int) -> None:
        self.trial, self.tolerance, self.most = z, tolerance, most
        self.low, self.high = objective.walls(z)
        self.known = objective.plan.known
        self.freedom = objective.freedom
        self.best: CostPoint | None = None
        self.done = self.converged = False
        self.why = ""
        self.history: list[tuple[float, np.ndarray]] = []
        self.told = 0

    def tell(self, point: CostPoint) -> None:
        """Takes note of what is at ``trial`` and chooses the next."""
        raise NotImplementedError

    def _stop(self, converged: bool, why: str) -> None:
        self.done, self.converged, self.why = True, converged, why

    def _take(self, point: CostPoint) -> None:
        self.best = point
        self.history.append((point.cost, point.z))

    def _free(self, point: CostPoint) -> np.ndarray:
        """Coordinates that are not pressed against a wall."""
        at_low = (point.z <= self.low) & (point.gradient > 0.0)
        at_high = (point.z >= self.high) & (point.gradient < 0.0)
        return ~(at_low | at_high)

    @staticmethod
    def _arrived(length: float) -> str:
        return f"converged, to {length:.1g} standard deviations: below lie the teeth of the discrete map"

    def _root(self) -> float:
        """Standard deviation of the residuals over their noise: one for a known noise level."""
        assert self.best is not None
        return 1.0 if self.known else float(np.sqrt(2.0 * self.best.cost / self.freedom)) or 1e-300
