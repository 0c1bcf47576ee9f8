"""Fits by a design of runs: for costs so rough that derivatives lead nowhere.

After a few impacts a toss depends on its numbers like a saw: the search of `nsjax.identify` from the
nominal numbers ends at once in one of many dents (of 15 tosses after 4 accepted steps). The tosses are run
at points spread over a box instead, a quadratic is laid through the mean cost of the better half of
them, and its least value is the estimate. A run is used by every fit that includes its toss: resampled fits
and whole simulated studies cost no further ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from nsjax.identify.statistics import quantile

SHARE = 0.5
"""Part of the points, those of least cost, through which the quadratic is laid."""
QUARTER = 0.25
"""Part of the points, those of least cost, whose middle is an estimate."""
RESAMPLES = 200
STEEPEST = 1e-3
"""Curvatures of the quadratic are taken to be at least this part of the largest."""


def spread(count: int, size: int) -> np.ndarray:
    """Points (count, size) in ``[-1, 1]``, evenly spread: multiples of powers of the root of
    ``x^(size + 1) = x + 1``, modulo one (Roberts 2018).
    """
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (size + 1.0))
    steps = root ** -np.arange(1.0, size + 1.0)
    return np.asarray(2.0 * ((0.5 + np.outer(np.arange(1, count + 1), steps)) % 1.0) - 1.0)


def filled(cost: np.ndarray) -> np.ndarray:
    """Costs (..., K) of runs; those that failed, not a number, cost what the others of their recording do
    in the mean, and all of a recording that has failed cost the same: they say nothing.
    """
    flat = cost.reshape(-1, cost.shape[-1])
    good = np.isfinite(flat)
    typical = np.where(good, flat, 0.0).sum(axis=0) / np.maximum(good.sum(axis=0), 1)
    typical = np.where(good.any(axis=0), typical, np.nanmax(cost))
    return np.asarray(np.where(np.isfinite(cost), cost, typical))


@dataclasses.dataclass(frozen=True)
class Answer:
    """Least point ``z`` (p,) of the quadratic, its value there, which coordinates are inside the box."""

    z: np.ndarray
    cost: float
    inside: np.ndarray


def _columns(z: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(z.shape[1])
    return np.concatenate([np.ones((len(z), 1)), z, z[:, first] * z[:, second]], axis=1)


def least(z: np.ndarray, cost: np.ndarray) -> Answer:
    """Least value in the box of the quadratic through the better points of costs (M,) at ``z`` (M, p)."""
    p = z.shape[1]
    better = np.argsort(cost)[: max(int(SHARE * len(cost)), 2 * (1 + p + p * (p + 1) // 2))]
    found = np.linalg.lstsq(_columns(z[better]), cost[better], rcond=None)[0]
    bend = np.zeros((p, p))
    bend[np.triu_indices(p)] = found[1 + p :]
    bend = bend + bend.T
    values, vectors = np.linalg.eigh(bend)
    bend = (vectors * np.maximum(values, STEEPEST * np.abs(values).max())) @ vectors.T
    at = np.zeros(p)
    for _ in range(200):  # coordinate by coordinate, each inside its box: converges for convex ones
        for k in range(p):
            at[k] = np.clip(at[k] - (found[1 + k] + bend[k] @ at) / bend[k, k], -1.0, 1.0)
    value = found[0] + found[1 : 1 + p] @ at + 0.5 * at @ bend @ at
    return Answer(at, float(value), np.abs(at) < 1.0)


def middle(z: np.ndarray, cost: np.ndarray) -> Answer:
    """Middle of the points of least cost, a quarter of them: numbers to predict with. Where costs are flat
    it stays among those that did well, while the least value of a quadratic ends at a side of the box. It
    leans towards the middle of the box and says nothing about a number that the costs do not tell: its
    scatter over resampled recordings is no interval.
    """
    better = np.argsort(cost)[: max(int(QUARTER * len(cost)), 1)]
    at = z[better].mean(axis=0)
    return Answer(at, float(cost[better].mean()), np.abs(at) < 1.0)


@dataclasses.dataclass(frozen=True)
class Fitted:
    """An answer, and from resampled fits the deviation (p,) and the half width of the 95 % interval."""

    answer: Answer
    deviation: np.ndarray
    half: np.ndarray


def fit(z: np.ndarray, costs: np.ndarray, seed: int, resamples: int = RESAMPLES) -> Fitted:
    """Fit to costs (M, K) of K recordings, and to as many recordings drawn with replacement."""
    count = costs.shape[1]
    rng = np.random.default_rng(seed)
    drawn = [least(z, costs[:, rng.integers(count, size=count)].mean(axis=1)).z for _ in range(resamples)]
    deviation = np.std(drawn, axis=0, ddof=1)
    return Fitted(least(z, costs.mean(axis=1)), deviation, quantile(0.95, count - 1) * deviation)
