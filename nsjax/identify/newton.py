"""Newton's method with the exact Hessian of the cost, in a trust region."""

from __future__ import annotations

import numpy as np

from nsjax.identify.objective import CostPoint, Objective
from nsjax.identify.search import SHORTEST, Search


def trusted_step(gradient: np.ndarray, hessian: np.ndarray, radius: float) -> tuple[np.ndarray, bool]:
    """Minimiser ``s`` of ``g's + s'Hs / 2`` with ``|s| <= radius``, and whether it lies inside the ball.

    The step is Newton's where the Hessian is positive definite and the step short enough. Otherwise it
    solves ``(H + m) s = -g`` with the shift ``m > -lambda_min`` that gives the length ``radius``; where
    ``g`` is orthogonal to the most negative eigenvector (at a saddle), a multiple of that eigenvector is
    added (Moré & Sorensen 1983).

    Args:
        gradient, hessian: (n,), (n, n), symmetric.
        radius: radius of the ball in the same coordinates; may be infinite.
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

    ``H`` contains the curvature of the model beside the term of Gauss and Newton, so that the search
    converges quadratically for residuals of any size. Where ``H`` is not positive definite, or the step
    leaves the region, the quadratic model is minimised on the region's boundary (`trusted_step`), which
    descends from saddles and maxima as well. The region is a ball in ``|D s|``; ``D`` holds the largest
    square roots of the diagonal curvatures so far, Gauss and Newton's or exact. Its initial radius is the
    norm of the residuals. The radius shrinks to a quarter of a step that reduces the cost by less than
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
