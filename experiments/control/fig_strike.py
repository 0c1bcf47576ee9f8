"""A slider-crank strikes its guide at a wanted time and speed: Newton's method beside Adam.

Two torques on the crank, before and after an instant, are sought with which the third strike of the slider
comes when and as fast as it is wanted, and which stay near none. Strikes are located
(`nsjax.schemes.localized`): their times and speeds, and first and second derivatives of them, are smooth.
They are compared with those of the event-driven motion.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.analysis import observed_order
from nsjax.jaxtools.compilation import compiled_once

from .. import common
from . import strike
from .search import Aim, adam, curved, newton

WANT = (6.8e-3, 0.11)
"""Desired time [s] and speed [m/s]; without torque they are 7.475 ms and 0.0842 m/s."""

GUESS, SCALE, MISS = (0.0, 0.0), (5.0, 5.0), (1e-5, 1e-3)
STEPS = (40.0, 80.0, 160.0, 320.0)
QUICK = 160.0
TRIES = 200
"""Number of gradients of Adam."""

WIDTHS = (2e-3, 2e-2)
"""Widths [N m] of central differences of the reference, for first and second derivatives."""


def aim(steps: float) -> Aim:
    """Target of the strike."""
    return Aim(end=strike.strike, steps=steps, guess=GUESS, scale=SCALE, want=WANT, miss=MISS)


def motion_curves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strike of the event-driven motion, and its first and second derivatives by differences."""
    near, far = (width * np.eye(2) for width in WIDTHS)
    f = strike.motion_strike
    slopes = np.stack([(f(x + e) - f(x - e)) / (2 * WIDTHS[0]) for e in near], axis=1)
    second = [[f(x + d + e) - f(x + d - e) - f(x - d + e) + f(x - d - e) for d in far] for e in far]
    return f(x), slopes, np.moveaxis(np.array(second), 2, 0) / (4 * WIDTHS[1] ** 2)


def errors(x: np.ndarray, steps: float, theirs: tuple[np.ndarray, ...]) -> list[float]:
    """Errors of time [s], speed [m/s], first and second derivatives (relative, in units of `MISS`)."""
    ours = curved(x, strike.strike, steps)
    unit = np.array(MISS)
    found = [float(abs(ours[0][k] - theirs[0][k])) for k in range(2)]
    for a, b in zip(ours[1:], theirs[1:], strict=True):
        weight = unit.reshape(2, *[1] * (a.ndim - 1))
        found.append(float(np.linalg.norm((a - b) / weight) / np.linalg.norm(b / weight)))
    return found


@compiled_once
def _rows(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    found = strike.run(x, strike.END / strike.MOST, strike.MOST, 1)
    return jnp.asarray(found.t), jnp.asarray(found.gap)


def gaps(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Instants [s] and distances of the slider from the upper wall [m]."""
    t, gap = (np.asarray(rows) for rows in _rows(jnp.asarray(x)))
    return t, gap[:, :2].min(axis=1)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes large steps, and no order is measured."""
    steps = QUICK if quick else STEPS[-1]
    begun = time.process_time()
    found, costs, sizes = newton(aim(steps))
    seconds = [time.process_time() - begun]
    tried = adam(aim(steps), TRIES)
    seconds.append(time.process_time() - begun - seconds[0])
    theirs = motion_curves(found)
    apart = np.array([errors(found, n, theirs) for n in ((QUICK,) if quick else STEPS)])
    numbers = {
        "Newton: Hessians": float(len(costs) - 1),
        "Newton: size of the gradient at the end": sizes[-1],
        "Adam: cost after 200 gradients over Newton's": tried[-1] / costs[-1],
        "time of the motion's strike less the wanted one [s]": float(abs(theirs[0][0] - WANT[0])),
        "speed of the motion's strike less the wanted one [m/s]": float(abs(theirs[0][1] - WANT[1])),
        "first derivatives, from the motion's": float(apart[-1, 2]),
        "second derivatives, from the motion's": float(apart[-1, 3]),
    }
    if not quick:
        for k, what in enumerate(("time", "speed", "first derivatives", "second derivatives")):
            numbers[f"order of the {what}"] = -observed_order(STEPS, apart[:, k])
    lines = [(gaps(x), label) for x, label in ((np.zeros(2), "no torque"), (found, "found"))]

    def paint(figure: Any) -> None:
        way, search = figure.subplots(1, 2, width_ratios=(3, 2))
        for (t, gap), label in lines:
            way.plot(1e3 * t, 1e3 * gap, label=label)
        way.axvline(1e3 * WANT[0], color="0.6", linestyle="--")
        way.set(xlabel="time [ms]", ylabel="distance from the upper wall [mm]")
        way.legend()
        search.semilogy(np.array(costs) - costs[-1] + 1e-16, "o-", markersize=3, label="Newton")
        search.semilogy(np.abs(np.array(tried) - costs[-1]) + 1e-16, label="Adam")
        search.set(xscale="symlog", xlabel="Hessians, gradients", ylabel="cost above the least")
        search.legend()

    arrays = {
        "numbers": found, "newton": costs, "gradients": sizes, "adam": tried, "errors": apart,
        "seconds": seconds,
    }  # fmt: skip
    return common.finish(__file__, folder, numbers, arrays, (16.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
