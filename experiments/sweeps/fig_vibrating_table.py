"""Bifurcation diagram of the ball on the vibrating table, and its Lyapunov exponent.

The table moves as ``A sin(w t)`` at 25 Hz, restitution 0.5; ``G = A w^2 / g`` is varied. Every lane runs
200 periods, from beside the motion with one impact per period where there is one (others exist beside it:
the ball may stay on the table for a part of each period). The velocities at the last 60 returns of the
table to its rest position are drawn (a Poincare section). The exponents start from there and cover 40
periods.

With ``b = (1 - e) / (1 + e)`` the motion with one impact per period exists for ``G > pi b = 1.0472``, where
the table moves at ``pi b g / w`` in the impact. There the impact map has determinant ``e^2`` and the
multiplier -1 at ``G = sqrt(pi^2 b^2 + (2 (1 + e^2) / (1 + e)^2)^2) = 1.5268``: the period doubles
(A.C.J. Luo, R.P.S. Han, Nonlinear Dynamics 10 (1996) 1-18). Where its multipliers are complex, the exponent
is ``ln(e)`` per period. `impact_map` iterates exact flights, without any time-stepping, for comparison.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, reductions, schemes

from .. import common

GRAVITY, RESTITUTION, FREQUENCY = 9.81, 0.5, 2 * np.pi * 25.0
PERIOD = 2 * np.pi / FREQUENCY
STEPS = 1000
"""Number of steps per period."""

LAST = 60
B = (1 - RESTITUTION) / (1 + RESTITUTION)
ONSET = np.pi * B
DOUBLING = float(np.hypot(ONSET, 2 * (1 + RESTITUTION**2) / (1 + RESTITUTION) ** 2))
KEPT = {
    "section": reductions.samples("v", first=-LAST),
    "q": reductions.final("q"),
    "impacts": reductions.total("impacts"),
}


def problem() -> nsjax.Problem:
    """The ball above the table; the sweeps give amplitude and start."""
    return models.bouncing_ball(
        radius=0.0, restitution=RESTITUTION, gravity=GRAVITY, table_frequency=FREQUENCY
    )  # fmt: skip


def period_one(ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Height and velocity of the motion with one impact per period as the table passes its rest position
    upwards; a drop of 2 mm where there is none.
    """
    phase = np.arccos(np.minimum(1.0, ONSET / ratios))  # of the impact
    flown = PERIOD - phase / FREQUENCY
    z = ratios * GRAVITY / FREQUENCY**2 * np.sin(phase) + GRAVITY / 2 * (PERIOD - flown) * flown
    v = GRAVITY * (PERIOD / 2 - flown)
    return np.where(ratios > ONSET, z, 2e-3), np.where(ratios > ONSET, v, 0.0)


def starts(ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Initial heights and velocities close to those of `period_one`."""
    z, v = period_one(ratios)
    return z, 1.001 * v


def impact_map(ratio: float, periods: int) -> np.ndarray:
    """Velocities at the last `LAST` returns of the table to rest, by exact flights between impacts.

    Impacts are bracketed on a fine grid of the flight and then bisected; a ball that comes to rest on the
    table leaves it where the table falls faster than the ball.
    """
    amplitude = ratio * GRAVITY / FREQUENCY**2
    table = lambda t: amplitude * np.sin(FREQUENCY * t)  # noqa: E731
    speed = lambda t: amplitude * FREQUENCY * np.cos(FREQUENCY * t)  # noqa: E731
    t = 0.0
    z, v = (float(x) for x in starts(np.asarray(ratio)))
    found: dict[int, float] = {}
    while t < periods * PERIOD:
        s = np.linspace(1e-9, 8 * PERIOD, 8001)
        gap = z + v * s - GRAVITY / 2 * s**2 - table(t + s)
        below = np.flatnonzero(gap < 0.0)
        low, high = s[max(below[0] - 1, 0)], s[below[0]]
        for _ in range(60):
            middle = (low + high) / 2
            open_ = z + v * middle - GRAVITY / 2 * middle**2 - table(t + middle) > 0.0
            low, high = (middle, high) if open_ else (low, middle)
        for k in range(int(np.ceil(t / PERIOD)), int((t + low) / PERIOD) + 1):
            found[k] = v - GRAVITY * (k * PERIOD - t)
        rate = v - GRAVITY * low - speed(t + low)
        t += low
        z = float(table(t))
        if -rate < 1e-6:  # at rest: carried until the table's acceleration reaches that of gravity
            phase = np.arcsin(min(1.0, 1.0 / ratio)) if ratio > 1.0 else np.nan
            if not ratio > 1.0:
                return np.full(LAST, amplitude * FREQUENCY)
            leave = (np.floor((t / PERIOD) - phase / (2 * np.pi)) + 1) * PERIOD + phase / FREQUENCY
            for k in range(int(np.ceil(t / PERIOD)), int(leave / PERIOD) + 1):
                found[k] = speed(k * PERIOD)
            t, z, rate = leave, float(table(leave)), 0.0
        v = speed(t) - RESTITUTION * rate
    return np.array([found[k] for k in range(periods - LAST + 1, periods + 1)])


def diagram(ratios: np.ndarray, periods: int, steps: int = STEPS) -> nsjax.SweepResult:
    """One lane per ratio, one row per period."""
    z, v = starts(ratios)
    over = {
        "params.table_amplitude": ratios * GRAVITY / FREQUENCY**2,
        "state.q": z[:, None],
        "state.v": v[:, None],
    }
    found = nsjax.sweep(
        problem(), schemes.moreau(), over, reduce=KEPT, dt=PERIOD / steps, steps=steps * periods,
        every=steps,
    )  # fmt: skip
    found.raise_for_status()
    return found


def exponents(ratios: np.ndarray, run: nsjax.SweepResult, periods: int, steps: int = STEPS) -> np.ndarray:
    """Finite-time Lyapunov exponent per period, from the end of the runs: the table is back there."""
    over = {
        "params.table_amplitude": ratios * GRAVITY / FREQUENCY**2,
        "state.q": np.maximum(run["q"], 0.0),  # steps end a little below the table
        "state.v": run["section"][:, -1],
    }
    found = nsjax.sweep_lyapunov(
        problem(), schemes.moreau(), over, dt=PERIOD / steps, steps=steps * periods,
        unit_time=1.0 / FREQUENCY,
    )  # fmt: skip
    return found * PERIOD


def spread(section: np.ndarray) -> np.ndarray:
    """Distance of a velocity from the one a period before, largest over the section [m/s]."""
    return np.abs(np.diff(section[..., 0], axis=1)).max(axis=1)


def _numbers(ratios: np.ndarray, run: nsjax.SweepResult, rates: np.ndarray) -> common.Numbers:
    section = run["section"]
    moving = spread(section)
    single = (ratios > ONSET + 0.06) & (ratios < 1.4)  # with complex multipliers
    exact = period_one(ratios[single])[1]
    # the two velocities separate with the square root of the distance from the period doubling
    near = (ratios > DOUBLING) & (ratios < DOUBLING + 0.1) & (moving > 0.004)
    slope, square = np.polyfit(ratios[near], moving[near] ** 2, 1) if near.sum() > 3 else (1.0, np.nan)
    return {
        "period one: largest change of velocity [m/s]": float(moving[single].max()),
        "period one: largest error of velocity [m/s]": float(np.abs(section[single, -1, 0] - exact).max()),
        "period doubles at": float(-square / slope),
        "period one: exponent per period": float(np.mean(rates[single])),
        "largest exponent per period": float(rates.max()),
        "chaotic lanes": float(np.mean(rates[ratios > 4.0] > 0.1)) if np.any(ratios > 4.0) else np.nan,
        "impacts per period, period one": float(np.mean(run["impacts"][single, 0])) / 200.0,
    }


def _paint(figure: Any, ratios: np.ndarray, run: nsjax.SweepResult, rates: np.ndarray, exact: Any) -> None:
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1.0))
    for k in range(LAST):
        mark, size = (",", 1.0) if len(ratios) > 100 else (".", 2.5)  # pixels, where they are many
        top.plot(ratios, run["section"][:, k, 0], mark, markersize=size, color="#1f4e9c", alpha=0.6)
    few, sections = exact
    for k in range(LAST):
        top.plot(
            few, sections[:, k], ".", color="#c4581b", markersize=1.2, label="impact map" if not k else None
        )
    top.legend(loc="upper left")
    top.set_ylabel("velocity at rest position [m/s]")
    bottom.plot(ratios, rates, color="#1f4e9c", linewidth=0.6)
    bottom.axhline(0.0, color="black", linewidth=0.5)
    bottom.axhline(np.log(RESTITUTION), color="black", linewidth=0.5, linestyle=":")
    bottom.set(ylim=(-1.5, 1.5), xlabel=r"$A \omega^2 / g$", ylabel="exponent per period")
    for ax in (top, bottom):
        for at in (ONSET, DOUBLING):
            ax.axvline(at, color="black", linewidth=0.5, linestyle="--")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, draws and compares; ``quick``: fewer lanes, longer steps, no exponents."""
    steps, number = (200, 45) if quick else (STEPS, 700)
    ratios = np.linspace(0.8, 6.0 if not quick else 1.7, number)
    run = diagram(ratios, 200, steps)
    rates = np.full(number, np.nan) if quick else exponents(ratios, run, 40, steps)
    few = ratios[:: len(ratios) // 20]
    sections = np.array([impact_map(ratio, 200) for ratio in few])
    numbers = _numbers(ratios, run, rates)
    same = (few > ONSET + 0.05) & (few < 1.62)
    mine = run["section"][:: len(ratios) // 20, :, 0]
    numbers["largest distance from the impact map up to 1.62 [m/s]"] = float(
        np.abs(np.sort(mine) - np.sort(sections))[same].max()  # the two halves of period two may be swapped
    )
    arrays = {"ratio": ratios, "section": run["section"][..., 0], "exponent": rates}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 12.0),
        lambda f: _paint(f, ratios, run, rates, (few, sections)),
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
