"""Cost, gradient and linearisation of a fit at points of the search."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from nsjax.identify import faults
from nsjax.identify.losses import Loss
from nsjax.identify.plan import FitPlan, padded
from nsjax.identify.program import Predicted, evaluate
from nsjax.identify.transforms import Transform


@dataclasses.dataclass(frozen=True)
class CostPoint:
    """Value, gradient and matrix of the cost at ``z`` (p,).

    Args:
        cost: half the sum of the losses.
        gradient: (p,) of the cost.
        matrix, rest: (r, p), (r,): the cost is ``|matrix s + rest|^2 / 2`` to second order of a
            Gauss-Newton model, up to a constant; all rows of the residuals, compressed.
        residual: (K, n, m) over the noise, zero where masked.
        jacobian: (K, n, m, g + l) of the residuals, the numbers of all recordings first, then own ones.
        fault: what keeps the search from using it, a sentence; empty if all runs went well and everything
            is finite.
        status, impacts, notes: of the runs (K,).
    """

    z: np.ndarray
    cost: float
    gradient: np.ndarray
    matrix: np.ndarray
    rest: np.ndarray
    residual: np.ndarray
    jacobian: np.ndarray
    fault: str
    status: np.ndarray
    impacts: np.ndarray
    notes: np.ndarray

    @property
    def ok(self) -> bool:
        """Whether the search may go here."""
        return not self.fault


class Objective:
    """The cost as a function of the search's coordinates ``z``: first the numbers common to all
    recordings, then those of each recording. ``weights`` (K,): how often each recording counts.
    """

    def __init__(self, plan: FitPlan, loss: Loss, starts: int) -> None:
        self.plan, self.loss, self.starts = plan, loss, starts
        self.shared = [x for x in plan.trained if not x.own]
        self.own = [x for x in plan.trained if x.own]
        self.fitted = plan.fitted
        self.calls = 0
        self.weights = np.ones(self.fitted)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of ``z``."""
        found = [x.name for x in self.shared]
        for k in range(self.fitted):
            who = self.plan.recordings[k].name or f"recording {k}"
            found += [x.name if self.fitted == 1 else f"{x.name} of {who}" for x in self.own]
        return tuple(found)

    @property
    def count(self) -> int:
        """Number of fitted values."""
        return int(self.plan.mask[: self.fitted].sum())

    @property
    def freedom(self) -> int:
        """Degrees of freedom: fitted values minus numbers, at least one."""
        return max(1, self.count - len(self.transforms))

    @property
    def transforms(self) -> list[Transform]:
        """Transforms of the entries of ``z``."""
        return [x.transform for x in self.shared] + [x.transform for x in self.own] * self.fitted

    @property
    def begin(self) -> np.ndarray:
        """The numbers at which the search starts, in the order of ``z``."""
        shared = [x.start[0] for x in self.shared]
        return np.asarray(shared + [x.start[k] for k in range(self.fitted) for x in self.own], float)

    def to_z(self, x: np.ndarray) -> np.ndarray:
        """Coordinates of numbers."""
        return self._each("inverse", x)

    def to_x(self, z: np.ndarray) -> np.ndarray:
        """Numbers of the model."""
        return self._each("forward", z)

    def slope(self, z: np.ndarray) -> np.ndarray:
        """``dx/dz``."""
        return self._each("slope", z)

    def walls(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the coordinates."""
        low, high = self._each("walls", z).T
        return low, high

    def _each(self, name: str, values: np.ndarray) -> np.ndarray:
        pairs = zip(self.transforms, values, strict=True)
        return np.asarray([getattr(t, name)(np.asarray(v)) for t, v in pairs], float)

    def lanes(self, x: np.ndarray, tracks: Sequence[int]) -> np.ndarray:
        """Numbers of each run (L, g + l); recordings held out start as they were given."""
        g, n = len(self.shared), len(self.own)
        rows = []
        for k in tracks:
            own = x[g + n * k : g + n * (k + 1)] if k < self.fitted else [t.start[k] for t in self.own]
            rows.append(np.concatenate([x[:g], np.asarray(own, float)]))
        return np.stack(rows)

    def run(self, x: Sequence[np.ndarray], tracks: Sequence[int]) -> Predicted:
        """These recordings with each of these sets of numbers; first axis: sets times recordings."""
        lanes = np.concatenate([self.lanes(one, tracks) for one in x])
        room = padded(self.starts * len(self.plan.recordings), 8)
        self.calls += 1
        return evaluate(self.plan.program, self.plan.common, np.tile(tracks, len(x)), lanes, room)

    def points(self, z: Sequence[np.ndarray]) -> list[CostPoint]:
        """The search's knowledge at several places, all in one compiled call."""
        tracks = list(range(self.fitted))
        found = self.run([self.to_x(one) for one in z], tracks)
        k = self.fitted
        parts = [jax.tree.map(lambda a, i=i: a[i * k : (i + 1) * k], found) for i in range(len(z))]
        return [self._point(one, part) for one, part in zip(z, parts, strict=True)]

    def _point(self, z: np.ndarray, found: Predicted) -> CostPoint:
        plan, k = self.plan, self.fitted
        mask, noise = plan.mask[:k], plan.noise[:k]
        residual = np.where(mask, (np.asarray(found.values) - plan.values[:k]) / noise, 0.0)
        jacobian = np.where(mask[..., None], np.asarray(found.jacobian) / noise[..., None], 0.0)
        g, n = len(self.shared), len(self.own)
        slope = self.slope(z)
        for i in range(k):
            part = np.concatenate([slope[:g], slope[g + n * i : g + n * (i + 1)]])
            jacobian[i] = jacobian[i] * part
        status = np.asarray(found.status)
        fault = faults.fault_of(plan, self.shared + self.own, status, residual, jacobian)
        ok = not fault
        times = self.weights[:, None, None]
        cost = 0.5 * float(np.sum(times * self.loss.rho(residual))) if ok else np.inf
        root = np.sqrt(times * self.loss.weight(residual)) if ok else np.zeros_like(residual)
        matrix, rest = self.compress(np.nan_to_num(jacobian) * root[..., None], residual * root)
        return CostPoint(
            z=z, cost=cost, gradient=matrix.T @ rest, matrix=matrix, rest=rest, residual=residual,
            jacobian=jacobian, fault=fault, status=status, impacts=np.asarray(found.impacts),
            notes=np.asarray(found.notes),
        )  # fmt: skip

    def compress(self, jacobian: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A small matrix with the same normal equations: the rows of each recording are turned into at
        most one per number that moves it. Squaring, as normal equations do, would lose half the digits.
        """
        g, n = len(self.shared), len(self.own)
        rows, rest = [], []
        for k in range(self.fitted):
            j = jacobian[k].reshape(-1, g + n)
            r = np.nan_to_num(residual[k]).reshape(-1)
            upper: Any = np.linalg.qr(np.concatenate([j, r[:, None]], axis=1), mode="r")
            block = np.zeros((len(upper), g + n * self.fitted))
            block[:, :g] = upper[:, :g]
            block[:, g + n * k : g + n * (k + 1)] = upper[:, g : g + n]
            rows.append(block)
            rest.append(upper[:, -1])
        return np.concatenate(rows), np.concatenate(rest)
