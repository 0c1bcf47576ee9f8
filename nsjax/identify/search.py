"""Searches that propose trial points and receive costs, so that several share one compiled program."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import nearest
from nsjax.identify.objective import CostPoint, Objective

SHORTEST = 2.0**-30
"""Fraction of the full step below which a search gives up."""


class Search:
    """A search: costs at ``trial`` go to `tell` until ``done``; ``curved``: by second derivatives."""

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


# Newton's method with the exact Hessian of the cost, in a trust region.


def trusted_step(gradient: np.ndarray, hessian: np.ndarray, radius: float) -> tuple[np.ndarray, bool]:
    """Minimiser ``s`` of ``g's + s'Hs / 2`` with ``|s| <= radius``, and whether it lies inside the ball.

    The step is Newton's where the Hessian is positive definite and the step short enough. Otherwise it
    solves ``(H + m) s = -g`` with the shift ``m > -lambda_min`` that gives the length ``radius``; where
    ``g`` is orthogonal to the most negative eigenvector (at a saddle), a multiple of that eigenvector is
    added (Moré & Sorensen 1983). ``gradient``, ``hessian``: (n,), (n, n), symmetric; ``radius``: radius of
    the ball in the same coordinates; may be infinite.
    """
    values, vectors = np.linalg.eigh(hessian)
    along = vectors.T @ gradient
    # ratio of an eigenvalue of the Hessian to the largest below which it is zero: the cost does not change
    # along its eigenvector
    rounding = 1e-11
    small = rounding * max(float(np.max(np.abs(values))), np.finfo(float).tiny)
    null = np.abs(values) <= small
    if values[0] >= -small:
        step = -along / np.where(null, np.inf, values)
        if np.linalg.norm(step) <= radius:
            return vectors @ step, True
    least = max(0.0, -float(values[0]))
    if not np.isfinite(radius):
        radius = 1.0

    def shifted(shift: float) -> np.ndarray:
        bottom = values + least + shift
        return -along / np.where(bottom > 0.0, bottom, np.inf)

    low, high = small * 1e-4, float(np.linalg.norm(along)) / radius + small
    if np.linalg.norm(shifted(low)) < radius:
        step = shifted(low)
        step[0] = np.copysign(np.sqrt(radius**2 - step[1:] @ step[1:]), step[0])
        return vectors @ step, False
    for _ in range(100):
        middle = float(np.sqrt(low * high))
        longer = np.linalg.norm(shifted(middle)) > radius
        low, high = (middle, high) if longer else (low, middle)
    return vectors @ shifted(high), False


class Newton(Search):
    """Newton's method inside a box: ``H s = -g`` with the exact Hessian, in a trust region.

    ``H`` contains the curvature of the model, so that the search converges quadratically for residuals of
    any size. Where it is not positive definite, or the step leaves the region, the quadratic model is
    minimised on the region's boundary (`trusted_step`), which descends from saddles and maxima as well. The
    region is a ball in ``|D s|``, with the largest square roots of the diagonal curvatures so far; its
    first radius is the norm of the residuals. It shrinks to a quarter of a step that gains less than
    predicted, and doubles after good steps. Coordinates pressed against a wall are fixed, trials are
    projected into the box.
    """

    curved = True

    def __init__(self, z: np.ndarray, objective: Objective, tolerance: float, most: int) -> None:
        super().__init__(z, objective, tolerance, most)
        self.scale = np.zeros_like(z)
        self.radius, self.length, self.predicted = np.inf, np.inf, 0.0
        self.inside = False

    def tell(self, point: CostPoint) -> None:
        """Takes the cost at ``trial`` and chooses the next trial."""
        if not self._begun(point):
            return None
        if self.best is None:
            self.radius = float(np.sqrt(2.0 * point.cost))
            self._take(point)
            return self._propose()
        gain = (self.best.cost - point.cost) / self.predicted if point.ok else -np.inf
        # length of a Newton step in standard deviations of the estimate below which the search has
        # converged although the cost does not fall as predicted: the step is too short to show in the cost
        near = 0.02
        if gain < 0.25 and self.inside and np.sqrt(2.0 * self.predicted) <= near * self._root():
            if gain > 0.0:
                self._take(point)
            return self._stop(True, "converged")
        if gain < 0.25:
            self.radius = 0.25 * self.length
        elif gain > 0.75:
            self.radius = max(self.radius, 2.0 * self.length)
        if gain > 1e-4:
            self._take(point)
        self._propose()

    def _propose(self) -> None:
        point = self.best
        assert point is not None
        assert point.hessian is not None
        bends = np.sqrt(np.abs(np.diag(point.hessian)))
        self.scale = np.maximum(self.scale, np.maximum(np.linalg.norm(point.matrix, axis=0), bends))
        free = self._free(point)
        if not self._moves(bool(np.any(point.matrix) or np.any(point.hessian)), free):
            return None
        step = self._downhill(point, free)
        small = np.all(np.abs(step) <= 1e-12 * (np.abs(point.z) + 1e-12))
        if self.inside and (small or self.predicted <= self.tolerance * point.cost):
            return self._stop(True, "converged")
        if self._spent():
            return None
        if small or self.predicted < 0.0:
            return self._stuck()
        self.trial = np.clip(point.z + step, self.low, self.high)

    def _downhill(self, point: CostPoint, free: np.ndarray) -> np.ndarray:
        """The next step. A wall can turn a long step uphill; a step in a smaller region points downhill."""
        d = np.where(self.scale > 0.0, self.scale, 1.0)[free]
        slope = point.gradient[free] / d
        hessian = np.asarray(point.hessian)
        bent = hessian[np.ix_(free, free)] / np.outer(d, d)
        least = SHORTEST * self.radius
        while True:
            step = np.zeros_like(point.z)
            inner, self.inside = trusted_step(slope, bent, self.radius)
            step[free] = inner / d
            step = np.clip(point.z + step, self.low, self.high) - point.z
            self.length = float(np.linalg.norm(step[free] * d))
            self.predicted = -float(point.gradient @ step + 0.5 * step @ hessian @ step)
            if self.predicted >= 0.0 or self.radius <= least:
                return step
            self.radius = 0.25 * min(self.radius, float(np.linalg.norm(inner)))


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
    largest column norms so far; the trial is projected into the box. ``lambda`` follows the gain ratio
    (Nielsen 1999). Without damping (``gauss_newton``) a step that does not reduce the cost is halved
    instead.

    The cost of a time-stepping run is a saw-tooth, and derivatives through impacts are those of the line
    through its teeth. Near the end the search therefore seeks the zero of the gradient, by the length
    ``|A s|`` of the undamped step in standard deviations.
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
    """Search by the given method from ``z``. Raises `InputError` for an unknown method."""
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
