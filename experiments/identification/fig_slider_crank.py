"""Clearance, restitution and friction of the slider-crank from a noisy path of its slider.

Data: centre of the slider, x and y at 2 kHz for 0.05 s, from the event-driven reference (exact
impacts), with normal noise. The noise is chosen by the Fisher matrix of the reference itself: with 50
micrometres, a twentieth of the clearance, the standard deviations are 0.5 % of the clearance, 1.4 % of
the restitution and 2 % of the friction, and no correlation exceeds 0.6. All three are told apart.

The fitted model must be wrong by much less than that. A scheme of first order on smooth motion is not:
Moreau's rule biases the friction by 33 deviations with steps of 1e-5 s, by 1.7 with 5e-7 s. The theta
method with theta = 1/2 is of second order between impacts; what is left, impacts up to a step late,
biases the estimates by less than 0.1 deviations at 1.25e-6 s. (`localized` does not help here: the slider
lands with two corners at once, which it leaves to the scheme inside.)

The same optimiser and number of runs with ``gradient="discrete"`` stand beside it: no fit succeeds, the
data seem not to depend on the clearance at all (it decides in which step an impact happens, and such
decisions are frozen there), and restitution and friction end many deviations from the truth.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes, transforms

from .. import common
from ..references.slider_crank import Data, event_driven

NAMES = ("clearance", "restitution", "friction")
TRUTH = np.array([1e-3, 0.4, 0.01])
GUESS = np.array([1.1e-3, 0.45, 0.015])
TIMES = 5e-4 * np.arange(1, 101)
SIGMA = 5e-5
"""Standard deviation of the noise [m]."""
STEP = 1.25e-6
STARTS, RUNS = 3, 60
"""Searches of a fit, and runs of the model that each may take: from one start alone, 2 of 50 fits end in
a local minimum, where the sequence of bounces is another."""
SEEDS = 50
SCHEME = schemes.moreau_theta(0.5)


def path(p: np.ndarray) -> np.ndarray:
    """Exact centre of the slider (100, 2) [m]."""
    clearance, restitution, friction = map(float, p)
    data = Data(clearance=clearance, restitution=restitution, friction=friction)
    x = event_driven(data, tuple(TIMES.tolist())).x
    along = data.l1 * np.cos(x[:, 0]) + data.l2 * np.cos(x[:, 1])
    return np.stack([along, data.l1 * np.sin(x[:, 0]) + data.l2 * np.sin(x[:, 1])], axis=1)


@functools.cache
def sensitivity() -> np.ndarray:
    """Derivatives (200, 3) of the exact path, by central differences of relative width 1e-4."""
    columns = []
    for k, size in enumerate(TRUTH):
        d = 1e-4 * size * (np.arange(len(TRUTH)) == k)
        columns.append((path(TRUTH + d) - path(TRUTH - d)).reshape(-1) / (2e-4 * size))
    return np.stack(columns, axis=1)


def fisher() -> np.ndarray:
    """Covariance of the best unbiased estimate: inverse of the Fisher matrix of the exact motion."""
    j = sensitivity() / SIGMA
    return np.asarray(np.linalg.inv(j.T @ j))


def recording(seed: int) -> nsjax.Recording:
    """Noisy data."""
    noisy = path(TRUTH) + SIGMA * np.random.default_rng(seed).normal(size=(len(TIMES), 2))
    return nsjax.Recording(times=TIMES, values={"x": noisy[:, 0], "y": noisy[:, 1]}, noise=SIGMA)


def fit(seed: int, gradient: str = "saltation") -> nsjax.Estimate:
    """One fit from the guess."""
    train = {
        "clearance": transforms.positive(), "restitution": transforms.interval(0.2, 0.7),
        "friction": transforms.positive(),
    }  # fmt: skip
    guess: Any = dict(zip(NAMES, GUESS.tolist(), strict=True))
    return nsjax.identify(
        models.slider_crank(**guess), SCHEME, recording(seed), train, dt=STEP, gradient=gradient,
        starts=STARTS, spread=0.2, max_runs=RUNS,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Study:
    """Fits of several seeds: estimates, deviations (n, 3), intervals (n, 3, 2), success, runs taken."""

    values: np.ndarray
    deviation: np.ndarray
    interval: np.ndarray
    success: np.ndarray
    calls: np.ndarray

    def numbers(self, label: str) -> common.Numbers:
        """Coverage of the intervals, bias and scatter in estimated standard deviations."""
        n = len(self.values)
        known = np.isfinite(self.deviation)  # else the interval holds everything and says nothing
        inside = known & (self.interval[..., 0] < TRUTH) & (self.interval[..., 1] > TRUTH)
        found = {f"{label}: successful fits of {n}": float(self.success.sum())}
        for k, name in enumerate(NAMES):
            deviation = float(np.median(self.deviation[:, k]))
            bias = float(np.median((self.values[:, k] - TRUTH[k]) / self.deviation[:, k]))
            found[f"{label}, {name}: intervals with the truth of {n}"] = float(inside[:, k].sum())
            found[f"{label}, {name}: median bias / deviation"] = bias
            found[f"{label}, {name}: scatter / deviation"] = float(
                np.std(self.values[:, k], ddof=1) / deviation
            )
        found[f"{label}: runs per fit"] = float(np.mean(self.calls))
        return found


def study(seeds: int, gradient: str) -> Study:
    """Fits with so many seeds of the noise, by one compiled program."""
    fits = [fit(seed, gradient) for seed in range(seeds)]
    return Study(
        np.stack([x.values for x in fits]), np.stack([x.deviation for x in fits]),
        np.stack([x.interval for x in fits]), np.asarray([x.success for x in fits]),
        np.asarray([x.calls for x in fits]),
    )  # fmt: skip


def _model_bias() -> np.ndarray:
    """Error of the scheme at the truth, as it moves the estimates, in their deviations (3,)."""
    every = round(5e-4 / STEP)
    system, params, state = models.slider_crank()
    steps = len(TIMES) * every
    traj = nsjax.simulate(system, params, state, SCHEME, dt=STEP, steps=steps, every=every)
    error = np.stack([np.asarray(traj[name]) for name in "xy"], axis=1)[1:] - path(TRUTH)
    covariance = fisher()
    moved = covariance @ (sensitivity().T @ error.reshape(-1)) / SIGMA**2
    return np.asarray(moved / np.sqrt(np.diag(covariance)))


def _numbers(found: dict[str, Study], seconds: float) -> common.Numbers:
    covariance = fisher()
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    bias = _model_bias()
    numbers: common.Numbers = {"first fit, compilation included [s CPU]": seconds}
    for k, name in enumerate(NAMES):
        numbers[f"Fisher, {name}: deviation / value"] = float(deviation[k] / TRUTH[k])
        numbers[f"model bias, {name}: bias / deviation"] = float(bias[k])
    numbers["Fisher: largest correlation"] = float(np.abs(correlation - np.eye(3)).max())
    for label, one in found.items():
        numbers |= one.numbers(label)
    return numbers


def _paint(figure: Any, found: dict[str, Study]) -> None:
    axes = figure.subplots(1, 3)
    for k, (ax, name) in enumerate(zip(axes, NAMES, strict=True)):
        for (label, one), colour, shift in zip(
            found.items(), ("#1f4e9c", "#c8501e"), (0.0, 0.4), strict=False
        ):
            y = np.arange(len(one.values)) + shift
            below = one.values[:, k] - one.interval[:, k, 0]
            above = one.interval[:, k, 1] - one.values[:, k]
            ax.errorbar(
                one.values[:, k] / TRUTH[k], y, xerr=np.stack([below, above]) / TRUTH[k], fmt=".",
                color=colour, markersize=2, linewidth=0.5, label=label,
            )  # fmt: skip
        ax.axvline(1.0, color="k", linewidth=0.8)
        ax.set(xlabel=f"{name} / truth", yticks=[])
    axes[0].set_ylabel("seed of the noise")
    axes[0].legend(loc="upper left", fontsize=6)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Fits, compares, draws; ``quick`` takes two seeds and no discrete gradient."""
    begin = time.process_time()
    fit(0)
    seconds = time.process_time() - begin
    found = {"saltation": study(2 if quick else SEEDS, "saltation")}
    if not quick:
        found["discrete"] = study(SEEDS, "discrete")
    numbers = _numbers(found, seconds)
    arrays = {f"{label} {field}": getattr(one, field) for label, one in found.items()
              for field in ("values", "deviation", "interval", "calls")}  # fmt: skip
    # two seeds make no statistics
    expected = common.load_expected(__file__, without="saltation" if quick else None)
    return common.finish(
        __file__, folder, numbers, {"truth": TRUTH, **arrays}, (16.0, 9.0), lambda f: _paint(f, found),
        expected=expected,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
