"""Fits by a design of runs: for costs so rough that derivatives lead nowhere.

After a few impacts a toss depends on its numbers like a saw: the search of `nsjax.identify` from the
nominal numbers ends at once in one of many dents (of 15 tosses after 4 accepted steps). The tosses are run
at points spread over a box instead, a quadratic is laid through the mean cost of the better half of
them, and its least value is the estimate. A run is used by every fit that includes its toss: resampled fits
and whole simulated studies cost no further ones.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

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


def middle(z: np.ndarray, cost: np.ndarray, share: float = QUARTER) -> Answer:
    """Middle of the points of least cost, a quarter or another share of them: numbers to predict with.
    Where costs are flat it stays among those that did well, while the least value of a quadratic ends at a
    side of the box. It leans towards the middle of the box and says nothing about a number that the costs
    do not tell: its scatter over resampled recordings is no interval.
    """
    better = np.argsort(cost)[: max(int(share * len(cost)), 1)]
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


RULES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "best run": lambda z, cost: z[np.argmin(cost)],
    "least value": lambda z, cost: least(z, cost).z,
    "middle of an eighth": lambda z, cost: middle(z, cost, 0.125).z,
    "middle of a quarter": lambda z, cost: middle(z, cost).z,
}
"""Numbers to predict with, from the mean costs of the design. Which rule is best is for folds to say."""


@dataclasses.dataclass(frozen=True)
class Nested:
    """Predictions by a rule that was chosen without what it predicts.

    Args:
        rule, z: the rule that all folds choose together, and its point (p,) from all recordings.
        chosen: the rule of every outer fold.
        points: its point (folds, p).
        after: errors (K, ...) of each recording, predicted by its outer fold.
        inside: errors (folds, K, ...) by which the rule of an outer fold was chosen, not a number in the
            fold itself.
    """

    rule: str
    z: np.ndarray
    chosen: tuple[str, ...]
    points: np.ndarray
    after: np.ndarray
    inside: np.ndarray


def nested(
    z: np.ndarray, cost: np.ndarray, fold: np.ndarray,
    predict: Callable[[np.ndarray, np.ndarray], np.ndarray], price: Callable[[np.ndarray], np.ndarray],
) -> Nested:  # fmt: skip
    """Nested folds: every outer fold is predicted by the rule that predicts the other folds best, each of
    them from the rest, and that is fitted to all of these.

    Args:
        z, cost: points (M, p) of the design, costs (M, K) of all recordings.
        fold: of every recording (K,), counted from zero.
        predict: ``(points (N, p), recordings (N,)) -> errors (N, ...)`` of runs.
        price: ``errors (N, ...) -> costs (N,)``.
    """
    folds = range(int(fold.max()) + 1)
    sets = [*((k,) for k in folds), *itertools.combinations(folds, 2)]
    point = {
        (left, rule): RULES[rule](z, cost[:, ~np.isin(fold, left)].mean(axis=1))
        for left in sets for rule in RULES
    }  # fmt: skip
    jobs = [(key, np.flatnonzero(np.isin(fold, key[0]))) for key in point]
    rows = predict(
        np.concatenate([np.tile(point[key], (len(who), 1)) for key, who in jobs]),
        np.concatenate([who for _, who in jobs]),
    )
    ends = np.cumsum([len(who) for _, who in jobs])[:-1]
    table = {}
    for (key, who), found in zip(jobs, np.split(rows, ends), strict=True):
        table[key] = np.full((len(fold), *rows.shape[1:]), np.nan)
        table[key][who] = found

    def of(keys: dict[int, tuple[tuple[int, ...], str]]) -> np.ndarray:
        """Errors of folds, each from its own entry of the table."""
        found = np.full((len(fold), *rows.shape[1:]), np.nan)
        for k, key in keys.items():
            found[fold == k] = table[key][fold == k]
        return found

    def others(outer: int, rule: str) -> np.ndarray:
        """The other folds, each predicted without itself and without the outer one."""
        return of({k: ((min(k, outer), max(k, outer)), rule) for k in folds if k != outer})

    def least_of(errors: dict[str, np.ndarray]) -> str:
        return min(errors, key=lambda rule: float(price(errors[rule]).mean()))

    chosen = [least_of({rule: others(k, rule)[fold != k] for rule in RULES}) for k in folds]
    rule = least_of({rule: of({k: ((k,), rule) for k in folds}) for rule in RULES})
    return Nested(
        rule, RULES[rule](z, cost.mean(axis=1)), tuple(chosen),
        np.stack([point[(k,), name] for k, name in enumerate(chosen)]),
        of({k: ((k,), name) for k, name in enumerate(chosen)}),
        np.stack([others(k, name) for k, name in enumerate(chosen)]),
    )  # fmt: skip


def in_lots(
    size: int, z: np.ndarray, who: np.ndarray, run: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """What ``run`` gives for points (N, p) and recordings (N,), ``size`` of them at once, so that one
    compiled program serves all; the last lot begins again.
    """
    lots = [np.arange(k, k + size) % len(who) for k in range(0, len(who), size)]
    return np.concatenate([run(z[rows], who[rows]) for rows in lots])[: len(who)]


def ratio_of_medians(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Medians (E,) of errors ``after`` (K, E) over those of ``before``."""
    return np.asarray(np.median(after, axis=0) / np.median(before, axis=0))


def _drawn(before: np.ndarray, after: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Logarithms (draws, E) of the ratio over recordings drawn with replacement."""
    picked = rng.integers(len(before), size=(draws, len(before)))
    return np.asarray(np.log(np.median(after[picked], axis=1) / np.median(before[picked], axis=1)))


def held_out(
    before: np.ndarray, after: np.ndarray, inside: np.ndarray, fold: np.ndarray,
    seed: int = 0, draws: int = 2000,
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """Ratio (E,) of the median of held-out errors ``after`` (K, E) to that of ``before``, the ends (2, E)
    of its 95 % interval, and by how much it was widened.

    Recordings drawn with replacement scatter the ratio by their chance alone; the fit, and the choice of
    its rule, scatter too, and held-out errors lean on one another. Nested folds measure all of it: what the
    folds inside promise, against what the outer fold then shows, less the chance of the outer fold (Bates,
    Hastie and Tibshirani 2021, algorithm 1, on logarithms of ratios of medians, one widening for all
    errors). The widening is between one and the root of the number of folds. Predictions that failed are
    worse than any.

    Args:
        before, after: errors (K, E).
        inside: errors (folds, K, E) of `Nested`.
        fold: of every recording (K,).
        seed, draws: of the drawing.
    """
    one, other, within = (np.where(np.isfinite(x), x, 1e300) for x in (before, after, inside))
    rng, count = np.random.default_rng(seed), len(inside)
    missed = []
    for k in range(count):
        out = fold == k
        promised = np.log(ratio_of_medians(one[~out], within[k][~out]))
        shown = np.log(ratio_of_medians(one[out], other[out]))
        missed.append((promised - shown) ** 2 - np.var(_drawn(one[out], other[out], draws, rng), axis=0))
    many = _drawn(one, other, draws, rng)
    ratio = ratio_of_medians(one, other)
    share = (count - 1) / count * np.mean(missed) / np.mean(np.var(many, axis=0))
    wide = float(np.sqrt(np.clip(share if np.isfinite(share) else count, 1.0, count)))
    middle, ends = np.log(ratio), np.quantile(many, [0.025, 0.975], axis=0, method="nearest")
    known = np.isfinite(ratio) & np.isfinite(ends)
    return ratio, np.where(known, np.exp(middle + wide * (ends - middle)), np.exp(ends)), wide
