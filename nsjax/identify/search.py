"""Base class of all searches: a search proposes a trial point and receives the cost there."""

from __future__ import annotations

import numpy as np

from nsjax.identify.objective import CostPoint, Objective

SHORTEST = 2.0**-30
"""Fraction of the full step below which a search gives up."""


class Search:
    """A search: the caller evaluates the cost at ``trial`` and hands it to `tell`, until ``done``.
    ``curved``: whether the search needs exact second derivatives.
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
        self.evaluations, self.fault = 0, ""

    def tell(self, point: CostPoint) -> None:
        """Takes the cost at ``trial`` and chooses the next trial."""
        raise NotImplementedError

    def _stop(self, converged: bool, why: str) -> None:
        self.done, self.converged, self.why = True, converged, why

    def _begun(self, point: CostPoint) -> bool:
        """Counts a point and returns whether the search continues; a fault at its start ends it."""
        self.evaluations, self.fault = self.evaluations + 1, point.fault
        if self.best is None and not point.ok:
            self._stop(False, f"at the start of the search {point.fault}")
        return not self.done

    def _moves(self, depends: bool, free: np.ndarray) -> bool:
        """Whether a coordinate can move: the data depend on the numbers, and one is ``free`` of walls."""
        if not depends:
            self._stop(False, "the data do not depend on anything that is trained (zero gradient)")
        elif not np.any(free):
            self._stop(True, "every trained number is at a bound")
        return not self.done

    def _spent(self, remedy: str = "a better start") -> bool:
        """Whether the allowed number of points is used up, which ends the search."""
        if self.evaluations >= self.most:
            self._stop(
                False, f"stopped after {self.most} runs of the model; raise max_runs, or take {remedy}"
            )
        return self.done

    def _stuck(self) -> None:
        """Ends a search that finds no descent."""
        why = self.fault or "the model's derivative may be wrong here"
        self._stop(False, f"no step reduces the cost; {why}")

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
