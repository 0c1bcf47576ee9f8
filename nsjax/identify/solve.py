"""Searches that propose trial points and receive costs, so that several share one compiled program."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import nearest
from nsjax.identify.newton import Newton
from nsjax.identify.objective import CostPoint, Objective
from nsjax.identify.search import SHORTEST, Search

METHODS = ("levenberg_marquardt", "gauss_newton", "newton")

NEAR, TOOTH, FLOOR = 3.0, 0.02, 0.3
"""Lengths of the undamped step in standard deviations of the estimate. Below `NEAR` a trial may raise the
cost slightly if it halves that length. Below `TOOTH` the search has converged when the cost no longer
follows its prediction, below `FLOOR` when neither the cost nor the length falls."""

STIFFEST = 1e14
"""Damping ``lambda`` above which a search gives up."""


class Levenberg(Search):
    """Damped Gauss-Newton steps inside a box.

    ``(A'A + lambda D^2) s = -A'b`` on the coordinates that are not pressed against a wall, ``D`` the
    largest column norms so far, solved by orthogonalisation; the trial is projected into the box.
    ``lambda`` follows the gain ratio (Nielsen 1999). Without damping (``gauss_newton``) a step that does
    not reduce the cost is halved instead.

    The cost of a time-stepping run is a saw-tooth, whose teeth can be as high as the change of the cost
    over one standard deviation, while derivatives through impacts are those of the line through the teeth.
    Near the end the search therefore seeks the zero of the gradient: its criterion is the length of the
    undamped step in standard deviations, ``|A s|``.
    """

    def __init__(
        self, z: np.ndarray, objective: Objective, tolerance: float, most: int, damped: bool
    ) -> None:
        super().__init__(z, objective, tolerance, most)
        self.damped = damped
        self.damping, self.growth, self.part = 1e-3, 2.0, 1.0
        self.scale = np.zeros_like(z)
        self.predicted, self.length = 0.0, np.inf

    def tell(self, point: CostPoint) -> None:
        """Takes the cost at ``trial`` and chooses the next trial."""
        if not self._begun(point):
            return None
        if self.best is None:
            return self._accept(point, self._length(point))
        here, root = self.length, self._root()
        length = self._length(point) if point.ok else np.inf
        gain = (self.best.cost - point.cost) / self.predicted if point.ok else -np.inf
        # largest rise of the cost at a trial below `NEAR`, in units of the variance of the residuals
        rise = 2.0
        near = here <= NEAR * root and point.cost - self.best.cost <= rise * root**2
        if here <= TOOTH * root and not 0.5 < gain < 1.5:
            return self._stop(True, self._arrived(here / root))
        if gain > 0.0:
            self.damping *= max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3)
        elif near and length <= 0.5 * here:
            self.damping /= 3.0
        elif here <= FLOOR * root and self.damping <= 1.0:
            return self._stop(True, self._arrived(here / root))
        else:
            self.damping *= self.growth
            self.growth, self.part = 2.0 * self.growth, 0.5 * self.part
            return self._propose()
        return self._accept(point, length)

    def _accept(self, point: CostPoint, length: float) -> None:
        self.growth, self.part, self.length = 2.0, 1.0, length
        self._take(point)
        self._propose()

    def _length(self, point: CostPoint) -> float:
        """Length ``|A s|`` of the undamped step, in standard deviations for noise of level one."""
        return float(np.linalg.norm(point.matrix @ self._step(point, 0.0)))

    def _step(self, point: CostPoint, damping: float) -> np.ndarray:
        free = self._free(point)
        d = np.where(self.scale > 0.0, self.scale, 1.0)[free]
        # columns of unit length: the least-squares solver judges rank relative to the largest
        rows = [point.matrix[:, free] / d, np.sqrt(damping) * np.eye(len(d))]
        right = np.concatenate([-point.rest, np.zeros(len(d))])
        step = np.zeros_like(point.z)
        step[free] = np.linalg.lstsq(np.concatenate(rows), right, rcond=1e-12)[0] / d
        return np.clip(point.z + step, self.low, self.high) - point.z

    def _downhill(self, point: CostPoint) -> np.ndarray:
        """The next step. A wall can turn a long step uphill; a shorter or damped one points downhill."""
        while True:
            step = self._step(point, self.damping if self.damped else 0.0)
            step = step if self.damped else self.part * step
            moved = point.matrix @ step
            self.predicted = -float(point.gradient @ step + 0.5 * moved @ moved)
            if self.predicted >= 0.0 or self.damping > STIFFEST or self.part < SHORTEST:
                return step
            self.damping, self.part = 10.0 * self.damping, 0.5 * self.part

    def _propose(self) -> None:
        point = self.best
        assert point is not None
        self.scale = np.maximum(self.scale, np.linalg.norm(point.matrix, axis=0))
        if not self._moves(bool(np.any(point.matrix)), self._free(point)):
            return None
        step = self._downhill(point)
        small = np.all(np.abs(step) <= 1e-12 * (np.abs(point.z) + 1e-12))
        little = self.predicted <= self.tolerance * point.cost
        # a short step is no sign of convergence where the damping is high
        if small or (little and self.damping <= 1.0):
            return self._stop(True, "converged")
        if self._spent():
            return None
        if self.damping > STIFFEST or self.part < SHORTEST:
            if self.length <= FLOOR * self._root():
                return self._stop(True, self._arrived(self.length / self._root()))
            return self._stuck()
        self.trial = np.clip(point.z + step, self.low, self.high)


class Descent(Search):
    """Gradient steps of an optimiser of `optax` on coordinates of about unit size, inside the box."""

    QUIET = 10

    def __init__(
        self, z: np.ndarray, objective: Objective, tolerance: float, most: int, optimiser: Any
    ) -> None:
        super().__init__(z, objective, tolerance, most)
        linear = np.asarray([t.kind in ("free", "box") for t in objective.transforms])
        self.unit = np.where(linear & (z != 0.0), np.abs(z), 1.0)
        self.optimiser, self.memory = optimiser, optimiser.init(z / self.unit)
        self.costs: list[float] = []

    def tell(self, point: CostPoint) -> None:
        """Takes the cost at ``trial`` and takes the next gradient step."""
        self.evaluations += 1
        if not point.ok:
            return self._stop(False, f"after {self.evaluations} steps {point.fault}; take shorter ones")
        if self.best is None or point.cost < self.best.cost:
            self._take(point)
        self.costs.append(point.cost)
        if not self._moves(bool(np.any(point.matrix)), np.ones(1)):
            return None
        recent = self.costs[-self.QUIET :]
        if len(recent) == self.QUIET and max(recent) - min(recent) <= self.tolerance * max(recent):
            return self._stop(True, "converged: the cost has come to rest")
        if self._spent("longer steps"):
            return None
        change, self.memory = self.optimiser.update(
            point.gradient * self.unit, self.memory, point.z / self.unit
        )
        self.trial = np.clip(point.z + self.unit * np.asarray(change), self.low, self.high)


def make(method: Any, z: np.ndarray, objective: Objective, tolerance: float, most: int) -> Search:
    """Search by the given method from ``z``.

    Raises:
        InputError: for an unknown method.
    """
    if isinstance(method, str):
        if method not in METHODS:
            hint = nearest(method, METHODS)
            raise InputError(f"identify: method = {method!r}; {hint}; or give an optimiser of optax")
        if method == "newton":
            return Newton(z, objective, tolerance, most)
        return Levenberg(z, objective, tolerance, most, damped=method == METHODS[0])
    if not (hasattr(method, "init") and hasattr(method, "update")):
        raise InputError(
            f"identify: method = {method!r}; give one of {', '.join(METHODS)} or optax.adam(...)"
        )
    return Descent(z, objective, tolerance, most, method)


def search(
    objective: Objective, starts: list[np.ndarray], method: Any, tolerance: float, most: int
) -> list[Search]:
    """Finished searches, run side by side: one compiled call for the trials of all unfinished ones."""
    searches = [make(method, z, objective, tolerance, most) for z in starts]
    while True:
        active = [s for s in searches if not s.done]
        if not active:
            return searches
        points = objective.points([s.trial for s in active], active[0].curved)
        for one, point in zip(active, points, strict=True):
            one.tell(point)
