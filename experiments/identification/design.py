"""Fits by a design of runs: for costs so rough that derivatives lead nowhere.

After a few impacts a toss depends on its numbers like a saw: the search of `nsjax.identify` from the
nominal numbers ends at once in one of many dents (of 15 tosses after 4 accepted steps). The tosses are run
at points spread over a box instead, a quadratic is laid through the mean cost of the better half of
them, and its least value is the estimate. A run is used by every fit that includes its toss: resampled fits
and whole simulated studies cost no further ones.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from nsjax.identify.statistics import quantile

SHARE = 0.5
"""Share of the points, those of least cost, to which the quadratic is fitted."""
QUARTER = 0.25
"""Share of the points, those of least cost, whose mean is an estimate."""
RESAMPLES = 200
FAILED = 1e300
"""Error of a prediction that failed."""
STEEPEST = 1e-3
"""Least ratio of a curvature of the quadratic to the largest; smaller curvatures are raised to it."""


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
    """Costs (..., K) of runs, in which a failed run (not a number) gets the mean cost of its recording's
    other runs. If all runs of a recording failed, they have equal costs and no influence.
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


def _better(z: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Points of least cost, enough of them for a quadratic."""
    p = z.shape[1]
    return np.asarray(np.argsort(cost)[: max(int(SHARE * len(cost)), 2 * (1 + p + p * (p + 1) // 2))])


def least(z: np.ndarray, cost: np.ndarray) -> Answer:
    """Least value in the box of the quadratic through the better points of costs (M,) at ``z`` (M, p)."""
    p = z.shape[1]
    better = _better(z, cost)
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
    """Mean of the quarter of the points with least cost, for predictions. Where costs are flat it stays
    among points of low cost, while the minimum of a quadratic ends at a side of the box. It is biased
    towards the middle of the box and has no meaning for a number that the costs do not determine: its
    scatter over resampled recordings is not an interval.
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


def _best_run(z: np.ndarray, cost: np.ndarray) -> int:
    return int(np.argmin(cost))


def _smoothed(z: np.ndarray, cost: np.ndarray) -> int:
    """Where the quadratic through the better points is least, among these."""
    better = _better(z, cost)
    found = np.linalg.lstsq(_columns(z[better]), cost[better], rcond=None)[0]
    return int(better[np.argmin(_columns(z[better]) @ found)])


def _halfway(z: np.ndarray, cost: np.ndarray) -> int:
    """Where the mean of the cost and of a parabola in every number, through all points, is least."""
    columns = np.concatenate([np.ones((len(z), 1)), z, z * z], axis=1)
    fitted = columns @ np.linalg.lstsq(columns, cost, rcond=None)[0]
    return int(np.argmin(fitted + cost))


def _central(z: np.ndarray, cost: np.ndarray) -> int:
    """The point of the better quarter that is nearest to its `middle`."""
    better = np.argsort(cost)[: max(int(QUARTER * len(cost)), 1)]
    return int(better[np.argmin(np.sum((z[better] - middle(z, cost).z) ** 2, axis=1))])


RULES: dict[str, Callable[[np.ndarray, np.ndarray], int]] = {
    "best run": _best_run, "least of the quadratic": _smoothed, "halfway to parabolas": _halfway,
    "next to the middle": _central,
}  # fmt: skip
"""Rules that choose a point of the design for predictions from mean costs, so that every prediction is an
existing run. Cross-validation selects the best rule.
"""


@dataclasses.dataclass(frozen=True)
class Nested:
    """Predictions by rules chosen without the predicted recordings, over several splits into folds.

    Args:
        rule, best: for predictions of further recordings: the rule that most outer folds choose, and its
            point (an index of the design) from all recordings.
        shares: shares of the outer folds that choose each rule.
        fold: fold of every recording (splits, K).
        after: points (splits, K) that predict each recording, chosen from the other folds.
        inside: points (splits, folds, K) by which the rule of an outer fold was chosen; -1 in the fold.
    """

    rule: str
    best: int
    shares: dict[str, float]
    fold: np.ndarray
    after: np.ndarray
    inside: np.ndarray


def nested(z: np.ndarray, cost: np.ndarray, folds: int, splits: int = 40, seed: int = 0) -> Nested:
    """Nested folds: every outer fold is predicted by the rule that predicts the other folds best, each of
    them from the rest, and that is fitted to all of these. It costs no run.

    Args:
        z, cost: points (M, p) of the design, costs (M, K) of all recordings.
        folds: number of folds of a split.
        splits, seed: number and seed of the random splits.
    """
    count, rng = cost.shape[1], np.random.default_rng(seed)
    fold = np.stack([rng.permutation(count) % folds for _ in range(splits)])
    after, inside = np.full((splits, count), -1), np.full((splits, folds, count), -1)
    votes: collections.Counter[str] = collections.Counter()
    for n in range(splits):
        outer, own = fold[n], cost.T
        for k in range(folds):
            found = {}
            for name, rule in RULES.items():
                picked = np.full(count, -1)
                for other in set(range(folds)) - {k}:
                    rest = (outer != k) & (outer != other)
                    picked[outer == other] = rule(z, cost[:, rest].mean(axis=1))
                price = own[np.flatnonzero(outer != k), picked[outer != k]].mean()
                found[name] = (price, picked)
            name = min(found, key=lambda x: found[x][0])
            votes[name] += 1
            inside[n, k] = found[name][1]
            after[n, outer == k] = RULES[name](z, cost[:, outer != k].mean(axis=1))
    chosen = max(RULES, key=lambda x: votes[x])
    shares = {name: votes[name] / (splits * folds) for name in RULES}
    return Nested(chosen, RULES[chosen](z, cost.mean(axis=1)), shares, fold, after, inside)


def at(errors: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Errors (..., K, E) of every recording at its own point (..., K), from those of the design (M, K, E);
    failed runs have larger errors than all others.
    """
    known = np.where(np.isfinite(errors), errors, FAILED)
    return np.asarray(known[points, np.arange(errors.shape[1])])


def _drawn(before: np.ndarray, after: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Logarithms (draws, E) of the ratio over recordings drawn with replacement, in splits drawn too."""
    count = len(before)
    picked, split = rng.integers(count, size=(draws, count)), rng.integers(len(after), size=(draws, 1))
    return _logarithm(before[picked], after[split, picked])


def _logarithm(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.median(after, axis=-2) / np.median(before, axis=-2)))


def held_out(
    before: np.ndarray, errors: np.ndarray, found: Nested, seed: int = 0, draws: int = 2000
) -> tuple[np.ndarray, np.ndarray, float]:
    """Ratio (E,) of the median of held-out errors to that of ``before``, geometric mean over the splits;
    the ends (2, E) of its 95 % interval, and by how much it was widened.

    Recordings drawn with replacement scatter the ratio by their chance alone; the fit, and the choice of
    its rule, scatter too, and held-out errors lean on one another. Nested folds measure all of it: what the
    folds inside promise, against what the outer fold then shows, less the chance of the outer fold (Bates,
    Hastie and Tibshirani 2021, algorithm 1, on logarithms of ratios of medians, one widening for all
    errors). The widening is between one and the root of the number of folds. Predictions that failed are
    worse than any.

    Args:
        before, errors: errors (K, E) of the recordings by the nominal numbers, (M, K, E) of the design.
        found: nested folds of that design.
        seed, draws: of the drawing.
    """
    one, other = np.where(np.isfinite(before), before, FAILED), at(errors, found.after)
    rng, missed = np.random.default_rng(seed), []
    splits, folds, _ = found.inside.shape
    for n in range(splits):
        within = at(errors, found.inside[n])
        for k in range(folds):
            out = found.fold[n] == k
            promised = _logarithm(one[~out], within[k][~out])
            shown = _logarithm(one[out], other[n][out])
            chance = np.var(_drawn(one[out], other[n : n + 1, out], draws // 10, rng), axis=0)
            missed.append((promised - shown) ** 2 - chance)
    many, centre = _drawn(one, other, draws, rng), np.mean(_logarithm(one, other), axis=0)
    share = (folds - 1) / folds * np.mean(missed) / np.mean(np.var(many, axis=0))
    wide = float(np.sqrt(np.clip(share if np.isfinite(share) else folds, 1.0, folds)))
    ends = np.quantile(many, [0.025, 0.975], axis=0, method="nearest")
    return np.exp(centre), np.exp(centre + wide * (ends - centre)), wide


def held_out_numbers(
    before: np.ndarray, errors: np.ndarray, found: Nested, titles: Sequence[str], where: str = "",
    unit: str = "",
) -> dict[str, float]:  # fmt: skip
    """`held_out` by name: per error its nominal median, the ratio and the ends of its interval.

    Args:
        before, errors, found: as of `held_out`.
        titles: of the errors (E).
        where: of all of them, as ``", at 0.5 s"``.
        unit: behind the nominal median.
    """
    ratio, ends, wide = held_out(before, errors, found)
    numbers = {f"held out{where}: intervals widened by": wide}
    for k, title in enumerate(titles):
        numbers[f"held out, {title}: nominal, median{unit}"] = float(np.median(before[:, k]))
        numbers[f"held out, {title}: fitted / nominal"] = float(ratio[k])
        numbers[f"held out, {title}: fitted / nominal, lower end"] = float(ends[0, k])
        numbers[f"held out, {title}: fitted / nominal, upper end"] = float(ends[1, k])
    return numbers
