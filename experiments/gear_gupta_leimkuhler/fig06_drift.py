"""[S&U&S] Figure 6: drift of the slider with an ideal guide, constraint on velocity and acceleration level.

Bilateral slider-crank (21)-(24), dt = 1e-4 s, 2 s. The paper names no scheme: it says that the height of
the slider drifts about linearly on velocity level (index 2) and parabolically on acceleration level
(index 1). Both are properties of scheme and level together, so three families are shown:

(a) Moreau's rule, first order: parabolic on acceleration level, to useless sizes; on velocity level
    bounded, because the error comes back with every turn of the crank.
(b) Schemes of second order: linear on both levels, smaller by two and three orders of magnitude.
(c) The classical Runge-Kutta method on the equations without multiplier (`reduced`): linear on velocity
    level, a parabola on acceleration level, as the paper has it. It is the only one that shows both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import models, schemes
from nsjax.analysis import observed_order

from .. import common
from . import looks, reduced

STEP, DURATION = 1e-4, 2.0
LEVELS = ("index 1", "index 2")
INSTANTS = (0.05, 0.1, 0.5, 1.0)
SCHEMES: dict[str, Any] = {
    "Moreau, index 1": schemes.moreau(constraint_form="index_1"),
    "Moreau, index 2": schemes.moreau(constraint_form="index_2"),
    "gen-alpha 0.8, index 1": schemes.generalized_alpha(0.8, constraint_form="index_1"),
    "gen-alpha 0.8, index 2": schemes.generalized_alpha(0.8, constraint_form="index_2"),
    "HETS, index 2": schemes.half_explicit(),
}


def height(scheme: Any, step: float, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Time and height of the slider, which the guide should keep at zero."""
    problem, steps = models.slider_crank_bilateral(), round(DURATION / step)
    traj = common.run(problem, scheme, step, steps, every, save=["constraint_force"])
    return np.asarray(traj.t), np.asarray(traj["y"])


def power(time: np.ndarray, y: np.ndarray, begin: float, end: float) -> float:
    """Exponent ``n`` of ``|y| = t^n``, fitted to the largest value so far."""
    part = (time >= begin) & (time <= end)
    envelope = np.maximum.accumulate(np.abs(y))
    return observed_order(time[part], envelope[part])


def linearity(time: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope [m/s] of the line through all values, and the largest deviation from it over its rise."""
    line = np.polyfit(time, y, 1)
    return float(line[0]), float(np.abs(y - np.polyval(line, time)).max() / abs(line[0] * time[-1]))


def curvature(time: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Rise in the second half of the time over that in the first, 1 for a line and 3 for a parabola from
    rest, of the parabola through all values; and the largest deviation from it over its end.
    """
    parabola = np.polyfit(time, y, 2)
    begin, middle, end = np.polyval(parabola, [0.0, 0.5 * time[-1], time[-1]])
    away = np.abs(y - np.polyval(parabola, time)).max()
    return float((end - middle) / (middle - begin)), float(away / abs(end))


def _numbers(found: dict[str, tuple[np.ndarray, np.ndarray]]) -> common.Numbers:
    numbers: common.Numbers = {}
    for name in ("Moreau, index 1", "Moreau, index 2"):
        time, y = found[name]
        for instant in INSTANTS:
            numbers[f"{name}: largest |y| to {instant} s"] = float(np.abs(y[time <= instant + 1e-9]).max())
    numbers["Moreau, index 1: power of time"] = power(*found["Moreau, index 1"], 0.01, 0.5)
    time, y = found["Moreau, index 2"]
    numbers["Moreau, index 2: second half / first half"] = float(
        np.abs(y[time > 1.0]).max() / np.abs(y[time <= 1.0]).max()
    )
    for name in ("gen-alpha 0.8, index 1", "gen-alpha 0.8, index 2", "HETS, index 2"):
        slope, deviation = linearity(*found[name])
        numbers[f"{name}: drift [m/s]"] = slope
        numbers[f"{name}: deviation from line / drift"] = deviation
    for level in LEVELS:
        name = f"Runge-Kutta 4, {level}"
        slope, numbers[f"{name}: deviation from line / drift"] = linearity(*found[name])
        rise, away = curvature(*found[name])
        numbers[f"{name}: rise of the second half / first half"] = rise
        numbers[f"{name}: deviation from parabola / drift"] = away
        numbers[f"{name}: drift [m/s]"] = slope
    for name, scheme in SCHEMES.items():
        coarse, fine = (np.abs(y).max() for y in (found[name][1], height(scheme, STEP / 8, 8)[1]))
        if name != "Moreau, index 1":  # has left the range of small errors
            numbers[f"{name}: order of drift in dt"] = float(np.log(coarse / fine) / np.log(8))
    return numbers


def _paint(figure: Any, found: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    left, right, last = figure.subplots(1, 3)
    small = left.inset_axes((0.44, 0.56, 0.52, 0.36))
    for name, (time, y) in found.items():
        family, form = name.split(", ")
        look: Any = {"color": looks.COLOURS[family], "linestyle": "--" if form == "index 1" else "-"}
        if family == "Moreau":
            left.plot(time, y, label=form, **look)
            if form == "index 2":
                small.plot(time, 1e3 * y, linewidth=0.4, **look)
        elif family == "Runge-Kutta 4":
            scale = 1e9 if form == "index 2" else 1e7
            unit = "nm" if form == "index 2" else "0.1 $\\mu$m"
            last.plot(time, scale * y, label=f"{form} [{unit}]", linewidth=0.6, **look)
        else:
            right.plot(time, 1e3 * y, label=name, linewidth=0.6, **look)
    small.set_title("$y$ [mm], index 2", fontsize=6, pad=2)
    small.tick_params(labelsize=6)
    left.set(title="(a) Moreau's rule", ylabel="height of slider $y$ [m]")
    left.legend(loc="lower left")
    right.set(title="(b) second order", ylabel="height of slider $y$ [mm]")
    right.legend(loc="lower left")
    last.set(title="(c) Runge-Kutta, order 4", ylabel="height of slider $y$, units in the legend")
    last.legend()
    for axis in (left, right, last):
        axis.set(xlabel="time $t$ [s]", xlim=(0.0, 2.0))


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 6; ``quick`` changes nothing, the run is short."""
    found = {name: height(scheme, STEP) for name, scheme in SCHEMES.items()}
    found |= {f"Runge-Kutta 4, {level}": reduced.height(level, STEP, DURATION) for level in LEVELS}
    numbers = _numbers(found)
    arrays = {name: y for name, (_, y) in found.items()}
    return common.finish(
        __file__, folder, numbers, {"t": found["Moreau, index 1"][0], **arrays}, (19.0, 7.0),
        lambda f: _paint(f, found),
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
