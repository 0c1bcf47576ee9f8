"""Cost, gradient and linearisation of a fit at points of the search, and faults that stop it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from nsjax.core import InputError
from nsjax.identify.losses import Loss
from nsjax.identify.plan import FitPlan, LaneFit, evaluate, padded
from nsjax.identify.transforms import Transform

# Faults of model runs that stop a search: a failed run, or values and derivatives that are not finite.


FAILED = "the run failed"
"""Beginning of the sentences about runs whose status is not zero."""

NO_CURVATURE = (
    "a scheme that holds an impact in its step has first ones only; take "
    "schemes.localized(schemes.half_explicit(), changes=True), or gradient='discrete' where nothing strikes"
)
"""Sentence: why a run has no second derivatives, and which runs have them."""


def is_unlocated(plan: FitPlan, impacts: np.ndarray) -> bool:
    """Whether impacts are not located in time, so that second derivatives are not those of the motion."""
    scheme = plan.common.scheme
    located = scheme.name.startswith("localized(")
    return scheme.gradient == "discrete" and not located and bool(np.any(impacts))


def fault_of(
    plan: FitPlan, trained: Sequence[Any], status: np.ndarray, residual: np.ndarray, jacobian: np.ndarray
) -> str:
    """Sentence about a failed run or values that are not finite, empty if nothing is wrong. Where only
    derivatives are not finite, a function of the model has none at some state of the run: the sentence
    names the trained number and the first such measured time.

    Args:
        trained: the numbers along the last axis of the derivative.
        status: status bits of the runs (K,).
        residual, jacobian: (K, n, m) and (K, n, m, g + l), zero where nothing is measured.
    """
    if np.any(status):
        return FAILED
    lost = _first(residual)
    if lost is not None:
        k, i, j = lost
        return f"{plan.program.names[j]} of the model is not finite {_place(plan, k, i)}"
    lost = _first(jacobian)
    if lost is None:
        return ""
    k, i, j, c = lost
    what = f"{plan.program.names[j]} by {trained[c].name}"
    return f"the derivative of {what} is not finite {_place(plan, k, i)}, though the run itself is sound"


def bent(second: np.ndarray) -> str:
    """Sentence about second derivatives that are not finite, empty if all are finite."""
    if np.all(np.isfinite(second)):
        return ""
    return "a second derivative of the model is not finite, though the run and its first ones are sound"


def remedy(fault: str) -> str:
    """Sentence with the remedy for a fault at the start of a search."""
    if fault.startswith("the derivative"):
        return (
            "nsjax.check_gradient tells the step; look in the model for a root, quotient, norm or power at "
            "zero, also inside jnp.where"
        )
    return "give another initial value or a smaller dt"


def _first(x: np.ndarray) -> tuple[int, ...] | None:
    """Indices (recording, time, ...) of the entry that is not finite at the earliest row, or None."""
    places = np.argwhere(~np.isfinite(x))
    if not len(places):
        return None
    first = places[np.argmin(places[:, 1])]
    return tuple(int(k) for k in first)


def _place(plan: FitPlan, k: int, i: int) -> str:
    """Text with recording and time."""
    recording = plan.recordings[k]
    who = f" of {recording.name or f'recording {k}'}" if plan.fitted > 1 else ""
    return f"from t = {float(recording.times[i]):.6g} s on{who}"


# Cost, gradient and linearisation of a fit at points of the search.


@dataclasses.dataclass(frozen=True)
class CostPoint:
    """Cost, gradient and Gauss-Newton model at a point ``z`` (p,) of the search.

    Args:
        cost: half the sum of the losses.
        gradient: (p,) of the cost.
        matrix, rest: (r, p), (r,): Gauss-Newton model ``|matrix s + rest|^2 / 2`` of the cost at ``z + s``,
            up to a constant; the rows of all residuals, compressed.
        residual: (K, n, m) residuals over the noise, zero where masked.
        jacobian: (K, n, m, g + l) of the residuals, the numbers common to all recordings first, then those
            of the recording.
        bend: (K, g + l, g + l), on request: part of the second derivatives of the cost of each recording
            that comes from the curvature of the model (and of the transforms).
        hessian: (p, p) exact second derivatives of the cost, on request.
        fault: sentence that says why the search cannot use the point; empty if all runs succeeded and all
            values are finite.
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
    bend: np.ndarray | None = None
    hessian: np.ndarray | None = None

    @property
    def ok(self) -> bool:
        """Whether the search may use this point."""
        return not self.fault


class Objective:
    """The cost as a function of the search's coordinates ``z``: first the numbers common to all
    recordings, then those of each recording. ``weights`` (K,): how often each recording counts.
    ``curved``: whether the program of the last points, which also runs the fits, has second derivatives.
    """

    def __init__(self, plan: FitPlan, loss: Loss, starts: int) -> None:
        self.plan, self.loss, self.starts = plan, loss, starts
        self.shared = [x for x in plan.trained if not x.own]
        self.own = [x for x in plan.trained if x.own]
        self.fitted = plan.fitted
        self.calls = 0
        self.curved = False
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
        """Coordinates ``z`` of the model's numbers ``x``."""
        return self._each("inverse", x)

    def to_x(self, z: np.ndarray) -> np.ndarray:
        """Numbers ``x`` of the model at coordinates ``z``."""
        return self._each("forward", z)

    def slope(self, z: np.ndarray) -> np.ndarray:
        """Derivatives ``dx/dz`` of the transforms."""
        return self._each("slope", z)

    def walls(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the coordinates."""
        low, high = self._each("walls", z).T
        return low, high

    def bend(self, z: np.ndarray) -> np.ndarray:
        """Second derivatives ``d2x/dz2`` of the transforms."""
        return self._each("bend", z)

    def _each(self, name: str, values: np.ndarray) -> np.ndarray:
        pairs = zip(self.transforms, values, strict=True)
        return np.asarray([getattr(t, name)(np.asarray(v)) for t, v in pairs], float)

    def lanes(self, x: np.ndarray, tracks: Sequence[int]) -> np.ndarray:
        """Numbers of each run (L, g + l); recordings held out have their given start."""
        g, n = len(self.shared), len(self.own)
        rows = []
        for k in tracks:
            own = x[g + n * k : g + n * (k + 1)] if k < self.fitted else [t.start[k] for t in self.own]
            rows.append(np.concatenate([x[:g], np.asarray(own, float)]))
        return np.stack(rows)

    def run(self, x: Sequence[np.ndarray], tracks: Sequence[int]) -> LaneFit:
        """Runs of the recordings ``tracks`` with each set of ``x``; first axis: sets times recordings."""
        lanes = np.concatenate([self.lanes(one, tracks) for one in x])
        room = padded(self.starts * len(self.plan.recordings), 8)
        program = dataclasses.replace(self.plan.program, curved=self.curved)
        self.calls += 1
        return evaluate(program, self.plan.common, np.tile(tracks, len(x)), lanes, room)

    def points(self, z: Sequence[np.ndarray], curved: bool = False) -> list[CostPoint]:
        """Cost and derivatives at several points ``z``, all in one compiled call. Raises `InputError` for
        second derivatives of a run that has none.
        """
        tracks = list(range(self.fitted))
        self.curved = curved
        try:
            found = self.run([self.to_x(one) for one in z], tracks)
        except NotImplementedError as error:
            raise InputError(f"identify: exact second derivatives: {NO_CURVATURE}") from error
        if curved and is_unlocated(self.plan, np.asarray(found.impacts)):
            raise InputError(f"identify: exact second derivatives through impacts: {NO_CURVATURE}")
        k = self.fitted
        parts = [jax.tree.map(lambda a, i=i: a[i * k : (i + 1) * k], found) for i in range(len(z))]
        return [self._point(one, part) for one, part in zip(z, parts, strict=True)]

    def _point(self, z: np.ndarray, found: LaneFit) -> CostPoint:
        plan, k = self.plan, self.fitted
        mask, noise = plan.mask[:k], plan.noise[:k]
        residual = np.where(mask, (np.asarray(found.values) - plan.values[:k]) / noise, 0.0)
        jacobian = np.where(mask[..., None], np.asarray(found.jacobian) / noise[..., None], 0.0)
        raw, slope = jacobian, self.by_recording(self.slope(z))
        jacobian = raw * slope[:, None, None]
        status = np.asarray(found.status)
        fault = fault_of(plan, self.shared + self.own, status, residual, jacobian)
        second = None
        if found.second is not None:
            second = np.where(mask[..., None, None], np.asarray(found.second) / noise[..., None, None], 0.0)
            fault = fault or bent(second)
        ok = not fault
        times = self.weights[:, None, None]
        cost = 0.5 * float(np.sum(times * self.loss.rho(residual))) if ok else np.inf
        root = np.sqrt(times * self.loss.weight(residual)) if ok else np.zeros_like(residual)
        matrix, rest = self.compress(np.nan_to_num(jacobian) * root[..., None], residual * root)
        bend = hessian = None
        if second is not None and ok:
            pull = times * residual * self.loss.weight(residual)
            bend = np.einsum("knm,knmij,ki,kj->kij", pull, second, slope, slope)
            own = np.einsum("knm,knmi->ki", pull, raw) * self.by_recording(self.bend(z))
            bend = bend + own[:, :, None] * np.eye(own.shape[1])
            knees = times * self.loss.slope_of_pull(residual)
            hessian = self.assembled(bend + np.einsum("knm,knmi,knmj->kij", knees, jacobian, jacobian))
        return CostPoint(
            z=z, cost=cost, gradient=matrix.T @ rest, matrix=matrix, rest=rest, residual=residual,
            jacobian=jacobian, fault=fault, status=status, impacts=np.asarray(found.impacts),
            notes=np.asarray(found.notes), bend=bend, hessian=hessian,
        )  # fmt: skip

    def by_recording(self, entries: np.ndarray) -> np.ndarray:
        """Entries (p,) distributed to the numbers of each recording (K, g + l)."""
        g, n = len(self.shared), len(self.own)
        own = entries[g:].reshape(self.fitted, n)
        return np.concatenate([np.tile(entries[:g], (self.fitted, 1)), own], axis=1)

    def assembled(self, blocks: np.ndarray) -> np.ndarray:
        """Matrix (p, p) assembled from the blocks (K, g + l, g + l) of the recordings."""
        g, n = len(self.shared), len(self.own)
        found = np.zeros((g + n * self.fitted, g + n * self.fitted))
        for k, block in enumerate(blocks):
            places = np.concatenate([np.arange(g), g + n * k + np.arange(n)])
            found[np.ix_(places, places)] += block
        return found

    def compress(self, jacobian: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Small matrix and vector with the same normal equations, by an orthogonal factorisation of the
        rows of each recording. Forming normal equations would lose half the digits.
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
